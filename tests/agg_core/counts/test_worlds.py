"""Simulated worlds: who moves, what is counted of them, and movement that learners add."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.counts import worlds
from agg_core.counts.choosing import DENSE
from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.rows import Strength
from agg_core.counts.state import FlowState
from agg_core.counts.worlds import movement_factor, simulated_world, with_movement
from tests.agg_core.counts import made

STAY, SWAP = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])


def test_people_move_by_the_transitions_of_their_time():
    pairs = made.pairs([[5, 1], [4, 2]], [[5, 1], [4, 2]], slot=[0, 1], n_slots=2)
    moved, world = simulated_world(
        pairs, pairs.before, np.stack([STAY, SWAP]), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(moved, [[[5, 0], [0, 1]], [[0, 4], [2, 0]]])
    np.testing.assert_array_equal(world.after, [[5, 1], [2, 4]])


def test_where_counts_err_people_go_on_through_a_run():
    table = made.table([[5, 1], [9, 9], [9, 9], [9, 9]], steps=4)
    pairs = erring_pairs(table, CountError(0.0, 1.0), outside=False)
    _, world = simulated_world(pairs, pairs.before, SWAP[None], np.random.default_rng(0))
    np.testing.assert_array_equal(world.before, [[5, 1], [1, 5], [5, 1]])
    np.testing.assert_array_equal(world.after, [[1, 5], [5, 1], [1, 5]])


def test_counts_of_a_world_err_as_the_real_ones():
    table = made.table(np.full((400, 2), 1000.0), steps=400)
    pairs = erring_pairs(table, CountError(0.05, 10.0), outside=False)
    _, world = simulated_world(pairs, pairs.before, STAY[None], np.random.default_rng(0))
    assert (world.before % 10 == 0).all()
    assert world.before.std() == pytest.approx(np.sqrt(50**2 + 100 / 12), rel=0.06)
    # The count after a pair is that before the next one.
    np.testing.assert_array_equal(world.after[:-1], world.before[1:])


def test_nobody_counts_those_outside():
    table = made.table([[5, 1], [3, 1], [4, 1]], steps=3)
    pairs = erring_pairs(table, CountError(0.5, 1.0), outside=True)
    _, world = simulated_world(pairs, pairs.before, np.eye(3)[None], np.random.default_rng(0))
    np.testing.assert_array_equal(world.before[:, 2], [0, 0])


def test_the_factor_is_true_over_learned_movement(monkeypatch):
    pairs = made.pairs([[400, 600]] * 5, [[400, 600]] * 5)
    half = np.array([[0.5, 0.5], [0.5, 0.5]])

    def learn(pairs, shape, learner, strength, **_):
        yield FlowState(1, np.array([[[0.2, 0.8], [0.8, 0.2]]]), 0.0)

    monkeypatch.setattr(worlds, "learn_flows", learn)
    found = movement_factor(pairs, half, half[None], DENSE, Strength(0.0), random_state=0)
    assert found == pytest.approx(0.5 / 0.8, rel=0.03)


def test_more_movement_goes_to_the_same_places():
    A = np.array([[0.6, 0.3, 0.1], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(
        with_movement(A, 1.5), [[0.4, 0.45, 0.15], [0, 1, 0], [0.5, 0.5, 0]], atol=1e-12
    )
    np.testing.assert_allclose(with_movement(A, 0.5)[2], [0.25, 0.25, 0.5])
    np.testing.assert_allclose(with_movement(A[None], 99.0).sum(axis=-1), 1)
    assert with_movement(A, 99.0)[0, 0] == pytest.approx(0.001)


def test_a_learner_that_is_right_needs_no_correction():
    """Exact counts of people who hardly move, from many pairs."""
    rng = np.random.default_rng(2)
    A = np.full((4, 4), 0.01) + 0.96 * np.eye(4)
    pairs = made.moving_pairs(rng, A[None], 40, 2000)
    shape = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    factor = movement_factor(pairs, shape, A[None], DENSE, Strength(20.0), random_state=1)
    assert factor == pytest.approx(1.0, abs=0.1)
    assert replace(pairs).n_pairs == 40
