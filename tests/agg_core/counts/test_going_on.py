"""Fits of counts that were stopped: they come, to the bit, to what they would have come to."""

from functools import cache
from itertools import islice

import numpy as np
import pytest

from agg_core.base import checkpoints as kept_by
from agg_core.base.checkpoints import Checkpoints, use_checkpoints
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows
from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.local import Nearby
from agg_core.counts.measuring import measuring_steps
from agg_core.counts.rows import Strength
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import GridSettings
from tests.agg_core.counts import made

SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
A = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])
N_ITER = 6
GRID = GridSettings(139.6, 35.6, 139.633, 35.618, 2, 3)


@pytest.fixture(autouse=True)
def every_iteration(monkeypatch):
    """Every iteration is kept, however long writing takes."""
    monkeypatch.setattr(kept_by, "SHARE", 0.0)


@cache
def exact(people):
    return made.moving_pairs(np.random.default_rng(0), np.array([A, SHAPE]), 30, people)


@cache
def table_that_errs():
    rng = np.random.default_rng(4)
    counts, there = [], np.full(3, 1000)
    for moment in range(60):
        if moment % 3 == 0:
            there = rng.multinomial(3000, rng.dirichlet(np.ones(3)))
        counts.append(np.rint(there * (1 + 0.05 * rng.standard_normal(3))))
        there = rng.multinomial(there, A).sum(axis=0)
    return made.table(counts, steps=3, runs=np.repeat(np.arange(20), 3))


def cases():
    grid = GRID.make()
    near = Nearby.of(distance_decay_transmat(grid, 0.8, reach_m=1_500.0), grid.centroids_m)
    rng = np.random.default_rng(1)
    moved = made.moving_pairs(rng, np.full((1, 6, 6), 1 / 6), 20, 600)
    erring = erring_pairs(table_that_errs(), CountError(0.02, 1.0), outside=False)
    return {
        "drawn": (exact(9), SHAPE, DRAWN, Strength(5.0)),
        "drawn by time": (exact(9), SHAPE, DRAWN, Strength(5.0, 30.0)),
        "drawn with rows of their own": (exact(9), SHAPE, DRAWN, Strength(5.0, 30.0, 50.0)),
        "dense": (exact(900), SHAPE, DENSE, Strength(20.0)),
        "dense by time": (exact(900), SHAPE, DENSE, Strength(20.0, 10.0)),
        "erring": (erring, SHAPE, DENSE, Strength(20.0)),
        "within a reach": (moved, near, DENSE, Strength(20.0)),
    }


def learned(case, course=None):
    pairs, shape, learner, strength = cases()[case]
    rng = np.random.default_rng(3)
    steps = learn_flows(
        pairs, shape, learner, strength, n_iter=N_ITER, random_state=rng, course=course
    )
    return steps, rng


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_fit_goes_on_as_if_it_had_not_stopped(tmp_path, case, stop, monkeypatch):
    monkeypatch.setattr("agg_core.counts.choosing.TOL", {DRAWN: 0.0, DENSE: 0.0})
    steps, rng = learned(case)
    states = list(steps)
    assert [state.iteration for state in states] == list(range(1, N_ITER + 1))

    def course():
        return Checkpoints(tmp_path / "checkpoint").course("fit")

    list(islice(learned(case, course())[0], stop))
    steps, rng_then = learned(case, course())
    gone_on = list(steps)
    assert [state.iteration for state in gone_on] == list(range(stop, N_ITER + 1))
    for state, whole in zip(gone_on, states[stop - 1 :], strict=True):
        np.testing.assert_array_equal(state.transmats, whole.transmats)
        assert state.change == whole.change
        if whole.logits is not None:
            np.testing.assert_array_equal(state.logits, whole.logits)
    # What is drawn after the fit is what would have been.
    assert rng_then.integers(2**31) == rng.integers(2**31)
    again = list(learned(case, course())[0])
    assert [state.iteration for state in again] == [N_ITER]


@pytest.mark.parametrize("error", [None, 0.05])
def test_measuring_goes_on_too(tmp_path, error, monkeypatch):
    def measured():
        steps = measuring_steps(
            table_that_errs(), lambda outside: np.full((3 + outside,) * 2, 1 / (3 + outside)),
            error=error, expansion=None, random_state=0,
        )  # fmt: skip
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    whole = measured()
    turns = Turns(monkeypatch)
    with use_checkpoints(tmp_path / "checkpoint"):
        turns.most = 12
        with pytest.raises(KeyboardInterrupt):
            measured()
        turns.most, turns.n = 10_000, 0
        found = measured()
        done = turns.n
        assert measured().told() == found.told()
    assert found.told() == whole.told()
    np.testing.assert_array_equal(found.pairs.before, whole.pairs.before)
    turns.n = 0
    measured()
    assert done <= turns.n - 11, "the turns that were made are not made again"


class Turns:
    """Counts the turns of the smoother, and stops the work at one of them."""

    def __init__(self, monkeypatch):
        from agg_core.counts import smoothed_dense

        self.n, self.most = 0, 10_000
        smoothed = smoothed_dense.smoothed

        def counted(*given):
            self.n += 1
            if self.n > self.most:
                raise KeyboardInterrupt
            return smoothed(*given)

        monkeypatch.setattr(smoothed_dense, "smoothed", counted)
