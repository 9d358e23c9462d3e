"""What happened, summed over the days: against all tables with those margins, and in worlds."""

import math

import numpy as np
import pytest

from agg_core.counts import certainty, posterior
from agg_core.counts.certainty import replicates
from agg_core.counts.choosing import DENSE, DRAWN
from agg_core.counts.posterior import (
    FULL,
    QUICK,
    Effort,
    gaussian_flows,
    happened_flows,
    split_r_hat,
)
from agg_core.counts.rows import Strength
from tests.agg_core.counts import made
from tests.agg_core.counts.test_posterior import expected_by_counting

STAY = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
GO = np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4], [0.3, 0.6, 0.1]])
COUNTS = [([3, 2, 4], [2, 4, 3]), ([4, 3, 2], [3, 3, 3]), ([5, 0, 3], [2, 4, 2])]
SHAPE = 0.2 + 0.4 * np.eye(3)


def three(slot=(0, 1, 0)):
    """Three pairs of counts of three cells at two times of day."""
    before, after = zip(*COUNTS, strict=True)
    return made.pairs(before, after, slot=slot, n_slots=2)


@pytest.mark.parametrize("transmats", [np.stack([STAY, GO]), STAY[None]], ids=["by time", "one"])
def test_flows_are_sums_over_the_days_of_all_that_can_have_been(transmats):
    found = happened_flows(three(), transmats, effort=Effort(8, 2_000, 30), random_state=1)
    mean, variance = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    for slot, (before, after) in zip((0, 1, 0), COUNTS, strict=True):
        each = expected_by_counting(before, after, transmats[slot % len(transmats)])
        mean[slot] += each[0]
        variance[slot] += each[1]
    # 16,000 draws that tell as much as 4,000 on their own, five standard errors.
    np.testing.assert_array_less(np.abs(found.flows - mean), 5 * np.sqrt(variance / 4_000) + 1e-9)
    assert found.method == "drawn"
    assert found.r_hat < 1.02


@pytest.mark.parametrize("effort", [FULL, QUICK], ids=["full", "quick"])
def test_flows_meet_the_counts_before_and_after(effort):
    found = happened_flows(three(), np.stack([STAY, GO]), effort=effort, random_state=0)
    before, after = (np.array(side, dtype=float) for side in zip(*COUNTS, strict=True))
    for slot, pairs in ((0, [0, 2]), (1, [1])):
        np.testing.assert_allclose(found.flows[slot].sum(axis=1), before[pairs].sum(axis=0))
        np.testing.assert_allclose(found.flows[slot].sum(axis=0), after[pairs].sum(axis=0))


def test_the_same_seed_gives_the_same_flows_in_whatever_portions(monkeypatch):
    once, again, other = (
        happened_flows(three(), STAY[None], random_state=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(once.flows, again.flows)
    assert once.r_hat == again.r_hat
    assert (once.flows != other.flows).any()
    monkeypatch.setattr(posterior, "MOST_BYTES", 1)
    portioned = happened_flows(three(), STAY[None], random_state=1)
    np.testing.assert_array_equal(once.flows, portioned.flows)
    assert once.r_hat == portioned.r_hat


def test_too_few_draws_tell_nothing_of_how_they_mix():
    found = happened_flows(three(), STAY[None], effort=QUICK, random_state=1)
    assert found.method == "drawn"
    assert math.isnan(found.r_hat)


NAMES = ("MOST_CROWDED", "MOST_FULLY", "MOST_QUICKLY", "CROWDED")
LIMITS = {
    "few": ((26, 26, 26, 1.0), "drawn", True),
    "crowded": ((25, 26, 26, 3.0), "normal", False),
    "not crowded": ((25, 26, 26, 30.0), "drawn", True),
    "many": ((25, 25, 26, 30.0), "drawn", False),
    "very many": ((25, 25, 25, 30.0), "normal", False),
}


@pytest.mark.parametrize("case", LIMITS)
def test_how_much_is_drawn_goes_by_people_and_crowds(case, monkeypatch):
    """26 people in all, 3.25 of them in each of 8 occupied cells."""
    limits, method, known = LIMITS[case]
    for name, value in zip(NAMES, limits, strict=True):
        monkeypatch.setattr(posterior, name, value)
    found = happened_flows(three(), np.stack([STAY, GO]), random_state=0)
    assert found.method == method
    assert math.isfinite(found.r_hat) is known
    if method == "normal":
        expected = np.zeros((2, 3, 3))
        for slot, (before, after) in zip((0, 1, 0), COUNTS, strict=True):
            expected[slot] += gaussian_flows(
                np.array(before, float), np.array(after, float), (STAY, GO)[slot]
            )
        np.testing.assert_allclose(found.flows, expected)


def test_r_hat_of_several_is_that_of_their_sums():
    # Halves (0, 2) and (4, 6): within 2, between 8; halves (0, 2) twice: within 2, between 0.
    apart, alike = [[0.0, 2.0, 4.0, 6.0]], [[0.0, 2.0, 0.0, 2.0]]
    assert split_r_hat(np.array([apart, alike])) == pytest.approx(math.sqrt((2 + 8) / 4))
    rng = np.random.default_rng(0)
    assert split_r_hat(rng.normal(size=(72, 4, 40))) == pytest.approx(1.0, abs=0.01)


# ----------------------------------------------------------------------------------------- worlds


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
def test_a_world_tells_what_happened_from_its_own_counts(learner):
    """Few people in each cell: both counts of a pair tell much of who went where between them."""
    pairs = made.moving_pairs(np.random.default_rng(2), np.stack([STAY, GO]), 30, 4)
    worlds = replicates(
        pairs, SHAPE, np.stack([STAY, GO]), learner, Strength(5.0, 30.0), 2, random_state=0
    )
    for moved, usual, told in worlds:
        np.testing.assert_allclose(told.sum(axis=2), moved.sum(axis=2))
        np.testing.assert_allclose(told.sum(axis=1), moved.sum(axis=1))
        assert made.common_part(told, moved) > made.common_part(usual, moved)


def test_worlds_do_not_hang_on_how_much_is_drawn_of_what_happened(monkeypatch):
    pairs = made.moving_pairs(np.random.default_rng(7), STAY[None], 4, 12)

    def worlds():
        return list(replicates(pairs, SHAPE, STAY[None], DENSE, Strength(5.0), 3, random_state=1))

    before = worlds()
    monkeypatch.setattr(certainty, "QUICK", Effort(2, 9, 1))
    for (moved, usual, told), (moved_then, usual_then, told_then) in zip(
        before, worlds(), strict=True
    ):
        np.testing.assert_array_equal(moved, moved_then)
        np.testing.assert_array_equal(usual, usual_then)
        assert (told != told_then).any()
