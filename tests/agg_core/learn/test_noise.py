"""The share of misplaced fixes: planted ones found again, and a likelihood over a grid."""

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from agg_core.learn.noise import FEWEST_STEPS, n_share_steps, share_steps
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import Misplacing, grid_emission
from agg_core.model.hmm import HMM, distance_decay_transmat
from agg_core.space.build import Grid

GRID = Grid.from_bbox(139.0, 35.0, 139.4, 35.4, rows=4, cols=4)
D = GRID.n_cells
MISPLACING = Misplacing.on_grid(GRID)


def truth(seed=5, stay=0.8):
    """Most stay, the others go anywhere, to some cells more than to others."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(D, 1.0), size=D) * (1 - stay)
    return HMM.categorical(
        rng.dirichlet(np.full(D, 5.0)), rows + stay * np.eye(D), MISPLACING.plain
    )


def observed(share, n, size, length=4, seed=1):
    states, people, grouping = np.random.default_rng(seed).spawn(3)
    hidden = truth().sample(n, length, states)[1]
    symbols = MISPLACING.emission(share).sample(hidden, people)
    return aggregate(symbols, size, D, grouping), symbols


def learned(parts, stated=None):
    start = HMM(np.full(D, 1 / D), distance_decay_transmat(GRID), MISPLACING.emission(0.5))
    steps, n = share_steps(parts, start, MISPLACING, stated), 0
    while True:
        try:
            assert next(steps).iteration == n + 1
        except StopIteration as end:
            assert n <= n_share_steps(stated=stated is not None)
            return end.value
        n += 1


@pytest.mark.parametrize(
    ("share", "size"), [(0.0, 1), (0.05, 1), (0.15, 1), (0.0, 8), (0.05, 8), (0.1, 8)]
)
def test_a_planted_share_is_found_again(share, size):
    groups, _ = observed(share, 2_000, size)
    assert learned([groups]).share == pytest.approx(share, abs=0.02 if size == 1 else 0.025)


def test_of_single_people_it_is_near_the_share_that_hmmlearn_finds_most_likely():
    """By the likelihood over a grid of shares under the true transitions."""
    groups, symbols = observed(0.12, 4_000, 1)
    model, true = CategoricalHMM(n_components=D), truth()
    model.startprob_, model.transmat_ = true.startprob, true.transmat
    grid = np.arange(0.04, 0.21, 0.01)
    scores = []
    for share in grid:
        model.emissionprob_ = grid_emission(GRID, share)
        scores.append(model.score(symbols.reshape(-1, 1), [4] * len(symbols)))
    assert learned([groups]).share == pytest.approx(grid[np.argmax(scores)], abs=0.015)


def test_parts_have_one_share_and_transitions_of_their_own():
    first, second = observed(0.1, 1_500, 4, seed=2)[0], observed(0.1, 1_500, 4, seed=3)[0]
    assert learned([first, second]).share == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("stated", "contradicted"), [(0.0, True), (0.1, False), (0.11, False), (0.25, True)]
)
def test_a_stated_share_is_contradicted_if_it_is_wrong(stated, contradicted):
    groups, _ = observed(0.1, 2_000, 1)
    assert learned([groups], stated).contradicted is contradicted


def test_two_steps_or_too_few_groups_tell_nothing():
    assert FEWEST_STEPS == 3
    assert learned([observed(0.1, 500, 5, length=2)[0]]).share is None
    assert learned([observed(0.1, 25, 5)[0]], 0.4).share is None


@pytest.mark.parametrize("share", [0.0, 0.07, 1.0])
@pytest.mark.parametrize("outside", [False, True])
def test_the_emission_is_that_of_the_grid(share, outside):
    misplacing = Misplacing.on_grid(GRID, 3_000.0, outside=outside)
    np.testing.assert_allclose(
        misplacing.emission(share).emissionprob,
        grid_emission(GRID, share, 3_000.0, outside=outside), atol=1e-15,
    )  # fmt: skip


def test_expected_misplaced_people_by_hand():
    """Two cells, and a third one that is seen without error and tells nothing."""
    misplacing = Misplacing(np.eye(3), np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    joint = np.array([[90.0, 10, 0], [5, 45, 0], [0, 0, 1000]])
    assert misplacing.expected(joint, 0.2) == (15.0, 150.0)
    # Where both ways lead to a cell, Bayes' rule shares its people out.
    blurred = Misplacing(np.full((2, 2), 0.5), np.array([[0.0, 1], [1, 0]]))
    wrong = 10 * 0.2 / (0.2 + 0.4)
    assert blurred.expected(np.array([[0.0, 10], [0, 0]]), 0.2) == pytest.approx((wrong, 10))
