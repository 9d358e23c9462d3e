"""A panel beside counts: whose moves are known, and what its people count for."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.counts.beside import apart_from_panel
from agg_core.counts.panel import allowed, area_weights, areas_of, homes_of, panel_of
from agg_core.counts.posterior import happened_flows
from agg_core.counts.worlds import simulated_world
from tests.agg_core.counts import made

STATES = np.array([[0, 0, 1], [1, 0, -1], [1, 2, 2]])
"""Three moments of three people, of whom the last one is not seen once."""


def followed(rng, transmat, n_people, n_moments):
    """States (T, K) of people who move by one chain, and the pairs of counts of all of them."""
    d = len(transmat)
    states = np.empty((n_moments, n_people), dtype=np.int64)
    states[0] = rng.integers(d, size=n_people)
    for moment in range(1, n_moments):
        ends = np.cumsum(transmat[states[moment - 1]], axis=1)
        states[moment] = (ends < rng.random((n_people, 1)) * ends[:, -1:]).sum(axis=1)
    counts = np.stack([np.bincount(row, minlength=d) for row in states])
    pairs = made.pairs(counts[:-1], counts[1:])
    return states, replace(pairs, moment=np.arange(n_moments - 1))


def true_moves(states, d):
    moves = np.zeros((len(states) - 1, d, d))
    for p in range(len(moves)):
        np.add.at(moves[p], (states[p], states[p + 1]), 1)
    return moves


CHAIN = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])


def test_moves_are_of_people_seen_at_both_moments() -> None:
    panel = panel_of(STATES, np.array([0, 1]))
    assert panel.pair.tolist() == [0, 0, 1, 1]
    assert panel.origin.tolist() == [0, 0, 1, 0]
    assert panel.dest.tolist() == [1, 0, 1, 2]
    assert panel.n_people == 2


def test_nobody_seen_twice_is_refused() -> None:
    with pytest.raises(InputError) as fault:
        panel_of(np.array([[0, -1], [-1, 1]]), np.array([0]))
    assert fault.value.code == "panel-elsewhere"


def test_some_pairs_have_their_people_by_mask_and_by_number() -> None:
    panel = panel_of(STATES, np.array([0, 1]))
    assert panel.take(np.array([1]), 2).dest.tolist() == [1, 2]
    twice = panel.take(np.array([1, 0, 1]), 2)
    assert twice.pair.tolist() == [0, 0, 1, 1, 2, 2]
    assert twice.dest.tolist() == [1, 2, 1, 0, 1, 2]
    turned = panel.take(np.array([1, 0]), 2)
    assert turned.pair.tolist() == [0, 0, 1, 1]
    assert turned.dest.tolist() == [1, 2, 1, 0]


def test_weights_weigh_moves_by_person() -> None:
    panel = replace(panel_of(STATES, np.array([0, 1])), weights=np.array([0.5, 1.5, 1.0]))
    moves = panel.moves(np.array([0, 0]), 1, 3, weighed=True)[0]
    assert moves.tolist() == [[1.5, 0.5, 1.5], [0, 0.5, 0], [0, 0, 0]]


def test_more_of_a_panel_than_were_counted_are_not_taken() -> None:
    panel = panel_of(STATES, np.array([0, 1]))
    before = np.array([[1.0, 5, 5], [5, 5, 5]])
    after = np.array([[5.0, 5, 5], [5, 0, 5]])
    assert allowed(panel, before, after).tolist() == [True, False, False, True]


def test_a_panel_of_everybody_is_what_happened() -> None:
    states, pairs = followed(np.random.default_rng(0), CHAIN, 12, 6)
    pairs = replace(pairs, panel=panel_of(states, pairs.moment))
    found = happened_flows(pairs, CHAIN[None], keep_pairs=True, random_state=0)
    truth = true_moves(states, 3)
    np.testing.assert_array_equal(found.flows[0], truth.sum(axis=0))
    assert found.by_pair is not None
    by_pair = np.zeros((5, 9))
    by_pair[found.by_pair.pair, found.by_pair.at] = found.by_pair.people
    np.testing.assert_array_equal(by_pair.reshape(truth.shape), truth)


def test_what_is_known_is_taken_from_counts_and_added_to_what_happened() -> None:
    states, pairs = followed(np.random.default_rng(1), CHAIN, 40, 8)
    pairs = replace(pairs, panel=panel_of(states[:, :10], pairs.moment))
    known = apart_from_panel(pairs)
    others = true_moves(states[:, 10:], 3)
    np.testing.assert_array_equal(known.pairs.before, others.sum(axis=2))
    np.testing.assert_array_equal(known.pairs.after, others.sum(axis=1))
    assert known.n_beyond == 0
    found = happened_flows(pairs, CHAIN[None], random_state=0)
    np.testing.assert_allclose(found.flows[0].sum(axis=1), pairs.before.sum(axis=0))
    np.testing.assert_allclose(found.flows[0].sum(axis=0), pairs.after.sum(axis=0))
    assert (found.flows[0] >= true_moves(states[:, :10], 3).sum(axis=0)).all()


def test_nobody_is_taken_where_it_is_not_known_who_was_counted() -> None:
    states, pairs = followed(np.random.default_rng(1), CHAIN, 40, 8)
    panel = replace(panel_of(states[:, :10], pairs.moment), among=False)
    known = apart_from_panel(replace(pairs, panel=panel))
    assert known.panel is None
    np.testing.assert_array_equal(known.pairs.before, pairs.before)


@pytest.mark.parametrize("among", [True, False])
def test_a_world_has_a_panel_of_its_own_of_the_same_size(among) -> None:
    states, pairs = followed(np.random.default_rng(2), CHAIN, 50, 30)
    panel = replace(panel_of(states[:, :20], pairs.moment), among=among)
    pairs = replace(pairs, panel=panel)
    moved, world = simulated_world(pairs, pairs.before, CHAIN[None], np.random.default_rng(3))
    assert world.panel is not None
    np.testing.assert_array_equal(world.panel.origin, panel.origin)
    assert (world.panel.dest != panel.dest).any()
    if among:
        assert (world.panel.moves(pairs.slot, 1, 3) <= moved).all()
        assert apart_from_panel(world).n_beyond == 0
    seen = world.panel.moves(pairs.slot, 1, 3)[0]
    shares = seen / seen.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, CHAIN, atol=5 * np.sqrt(0.25 / seen.sum(axis=1).min()))


def test_homes_are_by_night_and_else_the_first_cell() -> None:
    states = np.array([[0, 4, -1, -1], [1, 2, 3, -1], [1, 2, 5, -1], [2, 2, 5, -1]])
    night = np.array([False, True, True, False])
    assert homes_of(states, night)[[0, 1, 3]].tolist() == [1, 2, -1]
    assert homes_of(states, np.zeros(4, dtype=bool)).tolist() == [0, 4, 3, -1]


def test_areas_hold_about_as_many_people() -> None:
    places = np.array([[x, y] for x in range(8) for y in range(4)], dtype=float)
    area = areas_of(np.ones(32), places, 16)
    assert np.bincount(area).tolist() == [4] * 8
    # The longer side is halved first.
    assert len(np.unique(areas_of(np.ones(32), places, 4)[places[:, 0] < 4])) == 1
    assert areas_of(np.ones(3), None, 100).tolist() == [0, 1, 2]
    assert (areas_of(np.ones(32), places, 1) == 0).all()


def test_the_bias_of_a_panel_is_found_in_a_made_city() -> None:
    rng = np.random.default_rng(0)
    people = np.array([4000.0, 3000, 2000, 1000])
    chances = np.array([0.06, 0.02, 0.06, 0.02])
    weights = area_weights(rng.binomial(people.astype(int), chances).astype(float), people)
    ratio = weights / weights[0]
    np.testing.assert_allclose(ratio, [1, 3, 1, 3], rtol=0.35)


def test_few_people_say_little_of_a_bias_and_their_mean_weight_is_one() -> None:
    weights = area_weights(np.array([3.0, 1, 0, 0]), np.full(4, 100.0))
    assert (weights @ [3, 1, 0, 0]) / 4 == pytest.approx(1)
    assert weights.max() < 2 * weights.min()
    assert area_weights(np.zeros(2), np.ones(2)).tolist() == [1, 1]
