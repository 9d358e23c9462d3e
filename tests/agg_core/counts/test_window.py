"""Windows of many cells: which cells they hold, and the movement that is learned there."""

import numpy as np
import pytest

from agg_core.counts.choosing import DENSE, learn_flows
from agg_core.counts.local import Nearby
from agg_core.counts.pairs import pairs_of
from agg_core.counts.rows import Strength
from agg_core.counts.window import local_movement_factor, window_of
from agg_core.counts.worlds import movement_factor
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import GridSettings
from tests.agg_core.counts import made

SIDE, REACH_M = 8, 1_200.0
GRID = GridSettings(139.6, 35.6, 139.6 + 0.011 * SIDE, 35.6 + 0.009 * SIDE, SIDE, SIDE)
STRENGTH = Strength(20.0)


@pytest.fixture(scope="module")
def city():
    """People of 64 cells of a kilometre who go to a cell beside their own, or stay."""
    rng = np.random.default_rng(0)
    grid = GRID.make()
    shape = distance_decay_transmat(grid, 0.8, reach_m=REACH_M)
    chances = shape.toarray() * rng.uniform(0.5, 1.5, shape.shape)
    chances /= chances.sum(axis=1, keepdims=True)
    counts = [rng.multinomial(64 * 200, rng.dirichlet(np.full(64, 5.0)))]
    for _ in range(71):
        counts.append(rng.multinomial(counts[-1], chances).sum(axis=0))
    pairs = pairs_of(made.table(np.array(counts)))
    return pairs, Nearby.of(shape, grid.centroids_m), grid.centroids_m, shape


def test_few_cells_are_all_in_the_window(city):
    pairs, near, places, _ = city
    window = window_of(pairs, near, places, n_cells=60)
    assert window.states.tolist() == window.core.tolist() == list(range(64))
    assert window.near is near


def test_a_window_has_the_cells_about_most_people_and_those_beside_them(city):
    pairs, near, places, shape = city
    window = window_of(pairs, near, places, n_cells=9)
    inner = window.states[window.near.cells]
    assert len(inner) == 9
    around = (shape.toarray()[:, inner] > 0).any(axis=1)
    np.testing.assert_array_equal(window.states, np.flatnonzero(around))
    np.testing.assert_array_equal(window.pairs.before, pairs.before[:, window.states])
    for cell in window.states[window.core]:
        assert set(np.flatnonzero(shape.toarray()[cell])) <= set(inner)
    # People about the middle are the most.
    people = pairs.before.sum(axis=0)
    middle = np.argmax((shape.toarray() > 0) @ people)
    assert middle in inner
    pattern = window.near.pattern
    moves = {*zip(window.states[pattern.origin], window.states[pattern.dest], strict=True)}
    assert all(shape[i, j] > 0 for i, j in moves)
    assert len(moves) == (shape.toarray()[np.ix_(*[window.states] * 2)] > 0).sum() - len(
        around[around]
    )


def test_movement_of_a_window_is_held_against_who_moved(city):
    """Where all cells are in it, it is the factor of whole tables but for chance."""
    pairs, near, places, shape = city
    window = window_of(pairs, near, places)
    *_, last = learn_flows(pairs, near, DENSE, STRENGTH)
    found = local_movement_factor(window, near.pattern, last.transmats, STRENGTH, random_state=1)
    whole = near.pattern.table(last.transmats[0]).toarray()[None]
    expected = movement_factor(pairs, shape.toarray(), whole, DENSE, STRENGTH, random_state=1)
    assert found == pytest.approx(expected, abs=0.03)


def test_a_part_of_the_cells_tells_the_movement_too(city):
    pairs, near, places, _ = city
    window = window_of(pairs, near, places, n_cells=36)
    assert 0 < len(window.core) < 36
    *_, last = learn_flows(pairs, near, DENSE, STRENGTH)
    found = local_movement_factor(window, near.pattern, last.transmats, STRENGTH, random_state=1)
    assert found == pytest.approx(1.0, abs=0.15)
