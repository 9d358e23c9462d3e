"""What chances within a reach lead to, held against whole tables of few cells."""

import numpy as np
import pytest
from scipy import sparse

from agg_core.counts.held_out import gravity_prediction, predict, prediction_scores
from agg_core.counts.local import MovePattern, Nearby
from agg_core.counts.local_flows import (
    local_gravity,
    local_happened,
    local_prediction,
    local_scores,
    moved_as,
    of_people,
)
from agg_core.counts.posterior import gaussian_flows
from agg_core.counts.worlds import with_movement
from tests.agg_core.counts import made

D = 6


@pytest.fixture
def transmats():
    """A ring of cells, of which each leads to its neighbours, at two times of day."""
    ring = np.eye(D) + np.roll(np.eye(D), 1, axis=1) + np.roll(np.eye(D), -1, axis=1)
    rows = ring * np.random.default_rng(0).uniform(0.2, 1.0, (2, D, D)) + 3 * np.eye(D)
    return rows / rows.sum(axis=2, keepdims=True)


@pytest.fixture
def pairs(transmats):
    return made.moving_pairs(np.random.default_rng(1), transmats, 5, 4000)


def near_of(transmats, numbers=(0,) * D):
    pattern = MovePattern.of(sparse.csr_array(transmats[0]))
    return Nearby(pattern, tuple(pattern.blocks(np.array(numbers))))


def moves_of(pattern, transmats):
    own = np.arange(D)
    return np.stack([np.r_[A[pattern.origin, pattern.dest], A[own, own]] for A in transmats])


def test_what_happened_is_that_of_the_normal_distribution(pairs, transmats):
    pattern = near_of(transmats).pattern
    found, _ = local_happened(pairs, pattern, moves_of(pattern, transmats))
    for slot in (0, 1):
        mine = pairs.slot == slot
        each = zip(pairs.before[mine], pairs.after[mine], strict=True)
        expected = sum(gaussian_flows(y, z, transmats[slot]) for y, z in each)
        np.testing.assert_allclose(pattern.table(found[slot]).toarray(), expected, atol=0.01)


def test_what_happened_where_a_cell_is_certain_or_empty(pairs, transmats):
    rows = transmats[:1].copy()
    rows[0, 0] = np.eye(D)[0]
    rows[0, :, 0] = np.eye(D)[0]
    rows /= rows.sum(axis=2, keepdims=True)
    before = pairs.before[:1].copy()
    before[0, 3] = 0.0
    after = before @ rows[0] + [[0.0, 5.0, -5.0, 4.0, -4.0, 0.0]]
    alone = made.pairs(before, after)
    pattern = near_of(rows).pattern
    happened, _ = local_happened(alone, pattern, moves_of(pattern, rows))
    found = pattern.table(happened[0]).toarray()
    np.testing.assert_allclose(found, gaussian_flows(before[0], after[0], rows[0]), atol=0.01)
    assert found[0, 0] == pytest.approx(before[0, 0])


def test_what_happened_in_single_pairs(pairs, transmats):
    pattern = near_of(transmats).pattern
    moves = moves_of(pattern, transmats)
    sums, each = local_happened(pairs, pattern, moves, keep_pairs=True)
    assert local_happened(pairs, pattern, moves)[1] is None
    keys, people = each.summed(pairs.slot)
    found = np.zeros((2, D, D))
    found.ravel()[keys] = people
    expected = [pattern.table(flows).toarray() for flows in sums]
    np.testing.assert_allclose(found, expected, atol=0.05 * pairs.n_pairs)


def test_scores_of_one_block_are_those_of_whole_tables(pairs, transmats):
    near = near_of(transmats)
    found = local_scores(pairs, near, moves_of(near.pattern, transmats))
    np.testing.assert_allclose(found, prediction_scores(pairs, transmats), rtol=1e-9)


@pytest.mark.parametrize("numbers", [(0,) * D, (0, 0, 0, 1, 1, 1)])
def test_errors_of_predictions_do_not_hang_on_blocks(pairs, transmats, numbers):
    near = near_of(transmats, numbers)
    found = local_prediction(pairs, near, moves_of(near.pattern, transmats))
    whole = predict(pairs, transmats)
    assert (found.mae, found.rmse) == pytest.approx((whole.mae, whole.rmse))
    stay = local_prediction(pairs, near, None, "persistence")
    assert stay.mae == pytest.approx(predict(pairs, None).mae)
    assert np.isnan(stay.score)


def test_cells_in_no_block_are_not_predicted(pairs, transmats):
    near = near_of(transmats, (0, 0, -1, -1, -1, 0))
    assert near.cells.tolist() == [0, 1, 5]
    found = local_prediction(pairs, near, None)
    assert found.mae == pytest.approx(np.abs(pairs.after - pairs.before)[:, [0, 1, 5]].mean())


def test_gravity_is_that_of_whole_tables(pairs, transmats):
    near = near_of(transmats)
    found = local_gravity(pairs, near)
    expected = gravity_prediction(pairs, transmats[0])
    np.testing.assert_allclose(near.pattern.table(found[0]).toarray(), expected[0], atol=1e-3)


@pytest.mark.parametrize("factor", [0.5, 1.3, 50.0])
def test_more_or_less_movement(transmats, factor):
    pattern = near_of(transmats).pattern
    found = moved_as(pattern, moves_of(pattern, transmats), factor)
    expected = with_movement(transmats, factor)
    for rows, whole in zip(found, expected, strict=True):
        np.testing.assert_allclose(pattern.table(rows).toarray(), whole, atol=1e-12)


def test_flows_of_people(pairs, transmats):
    pattern = near_of(transmats).pattern
    found = of_people(pattern, pairs.people, moves_of(pattern, transmats))
    expected = pairs.people[:, :, None] * transmats
    np.testing.assert_allclose(pattern.table(found[1]).toarray(), expected[1])
