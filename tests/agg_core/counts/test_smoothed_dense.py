"""EM through a smoother: where it begins and where it ends."""

from itertools import islice

import numpy as np
import pytest

from agg_core.counts import smoothed_dense
from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.rows import Strength
from agg_core.counts.smoothed_dense import smoothed_steps
from tests.agg_core.counts import made

A = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])
SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
PLAIN = {"FARTHER": 1.0, "FIRST_STEPS": 200, "INNER_STEPS": 200}
"""EM as textbooks have it: each step to the end, and no farther."""


def counted(error):
    """Runs of three counts of 3,000 people, which err, far from where they would stay."""
    rng = np.random.default_rng(4)
    counts = []
    runs = np.repeat(np.arange(100), 3)
    for moment in range(300):
        if moment % 3 == 0:
            there = rng.multinomial(3000, rng.dirichlet(np.ones(3)))
        counts.append(np.rint(there * (1 + error * rng.standard_normal(3))))
        there = rng.multinomial(there, A).sum(axis=0)
    return erring_pairs(
        made.table(counts, steps=3, runs=runs), CountError(0.02, 1.0), outside=False
    )


def state(pairs, turns):
    *_, last = islice(smoothed_steps(pairs, SHAPE, Strength(20.0)), turns)
    return last


@pytest.fixture(scope="module")
def pairs():
    """Counts that err by 2 %."""
    return counted(0.02)


@pytest.mark.parametrize("error", [0.02, 0.1])
def test_it_ends_where_plain_em_does(error, monkeypatch):
    pairs = counted(error)
    end = state(pairs, 100)
    for name, value in PLAIN.items():
        monkeypatch.setattr(smoothed_dense, name, value)
    plain_end = state(pairs, 200)
    np.testing.assert_allclose(end.transmats, plain_end.transmats, atol=1e-3)
    assert end.log_likelihood == pytest.approx(plain_end.log_likelihood, abs=0.1)


def test_it_goes_on_from_where_another_fit_ended(pairs):
    end = state(pairs, 40)
    again = smoothed_steps(pairs, SHAPE, Strength(20.0), start=end)
    np.testing.assert_allclose(next(again).transmats, end.transmats, atol=0.01)


def test_true_moves_are_found_although_counts_err(pairs):
    assert np.abs(state(pairs, 60).transmats[0] - A).max() < 0.03
