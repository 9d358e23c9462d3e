"""What happened, summed over the days: against all tables with those margins, and in worlds."""

import math

import numpy as np
import pytest

from agg_core.counts import certainty, posterior
from agg_core.counts.certainty import replicates
from agg_core.counts.choosing import DENSE, DRAWN
from agg_core.counts.posterior import (
    FULL,
    LESS,
    QUICK,
    Effort,
    gaussian_flows,
    happened_flows,
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
    found = happened_flows(three(), transmats, effort=Effort(8, 8_000, 240), random_state=1)
    mean, variance = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    for slot, (before, after) in zip((0, 1, 0), COUNTS, strict=True):
        each = expected_by_counting(before, after, transmats[slot % len(transmats)])
        mean[slot] += each[0]
        variance[slot] += each[1]
    # 64,000 draws that tell as much as 4,000 on their own, five standard errors.
    np.testing.assert_array_less(np.abs(found.flows - mean), 5 * np.sqrt(variance / 4_000) + 1e-9)
    assert found.n_eff > 4_000
    assert found.method == "drawn"
    assert found.r_hat < 1.02


@pytest.mark.parametrize("effort", [FULL, LESS, QUICK], ids=["full", "less", "quick"])
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


NAMES = ("MOST_CROWDED", "MOST_FULLY", "MOST_DRAWN", "CROWDED")
LIMITS = {
    "few": ((26, 26, 26, 1.0), FULL),
    "crowded": ((25, 26, 26, 3.0), None),
    "not crowded": ((25, 26, 26, 30.0), FULL),
    "many": ((25, 25, 26, 30.0), LESS),
    "very many": ((25, 25, 25, 30.0), None),
}


@pytest.mark.parametrize("case", LIMITS)
def test_how_much_is_drawn_goes_by_people_and_crowds(case, monkeypatch):
    """26 people in all, 3.25 of them in each of 8 occupied cells."""
    limits, effort = LIMITS[case]
    for name, value in zip(NAMES, limits, strict=True):
        monkeypatch.setattr(posterior, name, value)
    found = happened_flows(three(), np.stack([STAY, GO]), random_state=0)
    assert found.method == ("normal" if effort is None else "drawn")
    assert math.isfinite(found.r_hat) is math.isfinite(found.n_eff) is (effort is not None)
    if effort is not None:
        first = effort.burn + effort.n_draws
        assert found.rounds in {first + effort.n_draws * (2**more - 2) for more in range(1, 9)}
    else:
        expected = np.zeros((2, 3, 3))
        for slot, (before, after) in zip((0, 1, 0), COUNTS, strict=True):
            expected[slot] += gaussian_flows(
                np.array(before, float), np.array(after, float), (STAY, GO)[slot]
            )
        np.testing.assert_allclose(found.flows, expected)


def test_mixing_of_each_flow_and_of_what_is_shown():
    found = happened_flows(three(), np.stack([STAY, GO]), threshold=0.5, random_state=0)
    (by_time, sizes), (of_day, day_sizes) = found.mixing.by_time, found.mixing.of_day
    assert by_time.shape == sizes.shape == (2, 3, 3)
    assert of_day.shape == day_sizes.shape == (3, 3)
    moves = ~np.eye(3, dtype=bool)
    shown = [
        (by_time[0][moves & (found.flows[0] > 0.5 * 2)], sizes[0][moves & (found.flows[0] > 1)]),
        (by_time[1][moves & (found.flows[1] > 0.5)], sizes[1][moves & (found.flows[1] > 0.5)]),
        (of_day[moves & (found.flows.sum(0) > 1.5)], day_sizes[moves & (found.flows.sum(0) > 1.5)]),
    ]
    assert found.r_hat >= max(r_hats.max(initial=0) for r_hats, _ in shown)
    assert found.n_eff <= min(some.min(initial=math.inf) for _, some in shown)
    # Of people in no cell nothing varies; there are 640 draws.
    empty = made.pairs([[0, 4, 0]], [[2, 2, 0]], slot=(0,))
    of_none = happened_flows(empty, np.full((1, 3, 3), 1 / 3), random_state=0)
    assert of_none.mixing.by_time[0, 0, 2].tolist() == [1.0] * 3
    assert of_none.mixing.by_time[1, 0, 2].tolist() == [640.0] * 3


def test_types_of_days_mix_together():
    apart = three(slot=(0, 1, 2))
    transmats = np.stack([STAY, GO, STAY])
    pairs = made.pairs(apart.before, apart.after, slot=(0, 1, 2), n_slots=4)
    found = happened_flows(pairs, np.concatenate([transmats, STAY[None]]), n_times=2)
    assert found.flows.shape == (4, 3, 3)
    assert found.mixing.by_time.shape == (2, 2, 3, 3)


def test_draws_of_too_many_flows_are_kept_of_the_day_or_of_the_movers(monkeypatch):
    whole, day, movers = [], [], []
    for room, found in ((1 << 20, whole), (4 * 640 * 9, day), (4 * 640 * 9 - 1, movers)):
        monkeypatch.setattr(posterior, "MOST_SERIES", room)
        found.append(happened_flows(three(), np.stack([STAY, GO]), threshold=9.0, random_state=0))
        np.testing.assert_array_equal(found[0].flows, whole[0].flows)
        # Nobody is shown, so that those who move are what it goes by.
        assert found[0].r_hat == whole[0].r_hat
    np.testing.assert_array_equal(day[0].mixing.of_day, whole[0].mixing.of_day)
    assert day[0].mixing.by_time is None
    assert movers[0].mixing.by_time is movers[0].mixing.of_day is None


def ring(n_people, d=20):
    """A ring of cells of whom a tenth goes on to either side, and the moves that were made."""
    transmat = 0.8 * np.eye(d) + 0.1 * (np.roll(np.eye(d), 1, 1) + np.roll(np.eye(d), -1, 1))
    rng = np.random.default_rng(3)
    moved = np.stack([rng.multinomial(n_people, row) for row in transmat])
    return made.pairs(np.full((1, d), n_people), moved.sum(axis=0)[None]), transmat[None]


def test_chains_go_on_until_they_have_mixed_or_it_is_too_much_work(monkeypatch):
    pairs, transmats = ring(300)
    short = Effort(4, 40, 0)
    # From the first round on, chains that begin apart are not yet where they belong.
    monkeypatch.setattr(posterior, "PER_CHAIN", 400)
    monkeypatch.setattr(posterior, "MOST_WORK", 0)
    begun = happened_flows(pairs, transmats, effort=short, threshold=1.0, random_state=0)
    assert begun.r_hat > 1.05
    assert begun.rounds == 40
    monkeypatch.setattr(posterior, "MOST_WORK", 10_000_000)
    mixed = happened_flows(pairs, transmats, effort=short, threshold=1.0, random_state=0)
    assert mixed.r_hat <= 1.05
    assert mixed.rounds in {40 * (2**more - 1) for more in range(2, 16)}
    assert mixed.n_eff > 3 * begun.n_eff
    # 6,000 people over 400, four chains: 60 chains of moves a round.
    monkeypatch.setattr(posterior, "MOST_WORK", 60 * 120)
    twice = happened_flows(pairs, transmats, effort=short, threshold=1.0, random_state=0)
    assert twice.rounds == 120


def test_a_crowded_ring_mixes():
    found = happened_flows(*ring(300), threshold=1.0, random_state=0)
    assert found.method == "drawn"
    assert found.r_hat <= 1.05
    assert found.n_eff > 200


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
    monkeypatch.setattr(certainty, "QUICK", Effort(2, 9, 8))
    for (moved, usual, told), (moved_then, usual_then, told_then) in zip(
        before, worlds(), strict=True
    ):
        np.testing.assert_array_equal(moved, moved_then)
        np.testing.assert_array_equal(usual, usual_then)
        assert (told != told_then).any()


@pytest.mark.parametrize("expansion", [1.0, 3.0])
def test_worlds_tell_who_moved_within_each_pair(expansion):
    pairs = made.moving_pairs(np.random.default_rng(7), STAY[None], 6, 40)
    told = []
    worlds = replicates(
        pairs, SHAPE, STAY[None], DENSE, Strength(5.0), 3, expansion=expansion,
        by_pair=lambda *both: told.append(both), random_state=1,
    )  # fmt: skip
    plain = replicates(
        pairs, SHAPE, STAY[None], DENSE, Strength(5.0), 3, expansion=expansion, random_state=1
    )
    for (moved, _, estimate), (moved_then, *_) in zip(worlds, plain, strict=True):
        # A world is the same whether or not it is asked.
        np.testing.assert_array_equal(moved, moved_then)
        by_pair, estimated = told.pop(0)
        slot = pairs.slot
        keys, people = estimated.summed(slot)
        found = np.zeros(estimate.size)
        found[keys] = people
        np.testing.assert_allclose(found, estimate.ravel(), atol=0.2 * expansion)
        keys, people = by_pair.summed(slot)
        found = np.zeros(moved.size)
        found[keys] = people
        if expansion == 1:
            np.testing.assert_array_equal(found, moved.ravel())
        # Of 240 people each stands for two more, Poisson.
        assert found.sum() == pytest.approx(240 * expansion, abs=5 * (240 * (expansion - 1)) ** 0.5)
