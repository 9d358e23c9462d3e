"""Flows within a reach: one block with all cells is the dense learner, slopes by differences."""

import numpy as np
import pytest
from scipy import sparse

from agg_core.counts import dense
from agg_core.counts.blocks import pools_of, tiles
from agg_core.counts.local import LocalProblem, MovePattern, Nearby
from agg_core.counts.rows import Strength
from tests.agg_core.counts import made
from tests.agg_core.counts.test_dense import slope_by_differences

SHAPES = {
    "full": [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]],
    "gap": [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.0, 0.4, 0.6]],
    "kept": [[0.6, 0.3, 0.1], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]],
}
STRENGTHS = [Strength(0.0), Strength(30.0), Strength(7.0, 20.0)]


@pytest.fixture
def pairs():
    rng = np.random.default_rng(6)
    return made.moving_pairs(rng, rng.dirichlet([2.0, 1.5, 3.0], (2, 3)), 4, 60)


def local(pairs, shape, strength, numbers):
    pattern = MovePattern.of(sparse.csr_array(np.array(shape)))
    near = Nearby(pattern, tuple(pattern.blocks(np.array(numbers))))
    return LocalProblem.of(pairs, near, strength)


def some_point(problem):
    return problem.start + np.random.default_rng(7).normal(0, 3.0, len(problem.start))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strength", STRENGTHS)
def test_one_block_of_all_cells_is_the_dense_learner(pairs, shape, strength):
    whole = dense.Problem.of(pairs, np.array(SHAPES[shape]), strength)
    problem = local(pairs, SHAPES[shape], strength, [0, 0, 0])
    x = some_point(problem)
    np.testing.assert_allclose(problem.start, whole.start)
    (value, slope), (expected, slopes) = problem.objective(x), whole.objective(x)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope, slopes, rtol=1e-9, atol=1e-9 * np.abs(slopes).max())
    for moves, transmat in zip(problem.moves(x), whole.transmats(x), strict=True):
        np.testing.assert_allclose(problem.pattern.table(moves).toarray(), transmat, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strength", STRENGTHS)
def test_slope_of_blocks(pairs, shape, strength):
    problem = local(pairs, SHAPES[shape], strength, [1, 0, 1])
    x = some_point(problem)
    by_hand = slope_by_differences(lambda at: problem.objective(at)[0], x)
    slope = problem.objective(x)[1]
    np.testing.assert_allclose(slope, by_hand, rtol=1e-5, atol=1e-6 * np.abs(by_hand).max())


def test_pools_of_unlike_numbers_of_pairs(pairs):
    strength = Strength(7.0, 20.0)
    fewer = pairs.take(np.arange(pairs.n_pairs) != 2)
    whole = dense.Problem.of(fewer, np.array(SHAPES["full"]), strength)
    problem = local(fewer, SHAPES["full"], strength, [0, 0, 0])
    assert sorted(pools_of(fewer, by_time=True).n) == [3, 4]
    x = some_point(problem)
    assert problem.objective(x)[0] == pytest.approx(whole.objective(x)[0], rel=1e-12)


def test_tiles_are_squares():
    places = np.array([[0.0, 0.0], [400.0, 900.0], [1100.0, 0.0], [0.0, 1000.0]])
    number = tiles(places, 1000.0)
    assert number[0] == number[1]
    assert len(set(number)) == 3
