"""The noise of fixes: planted shares and metres found again, and likelihoods over a grid."""

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from scipy.optimize import brentq

from agg_core.learn.noise import FEWEST_STEPS, n_noise_steps, noise_steps
from agg_core.model.aggregates import aggregate, aggregate_points
from agg_core.model.emissions import Misplacing, grid_emission
from agg_core.model.gaussian import Blurring, GaussianEmission, grid_gaussian_emission
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


def learned(parts, stated=None, noise=MISPLACING):
    start = HMM(np.full(D, 1 / D), distance_decay_transmat(GRID), noise.emission(0.5))
    steps, n = noise_steps(parts, start, noise, stated), 0
    while True:
        try:
            assert next(steps).iteration == n + 1
        except StopIteration as end:
            assert n <= n_noise_steps(stated=stated is not None)
            return end.value
        n += 1


@pytest.mark.parametrize(
    ("share", "size"), [(0.0, 1), (0.05, 1), (0.15, 1), (0.0, 8), (0.05, 8), (0.1, 8)]
)
def test_a_planted_share_is_found_again(share, size):
    groups, _ = observed(share, 2_000, size)
    assert learned([groups]).amount == pytest.approx(share, abs=0.02 if size == 1 else 0.025)


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
    assert learned([groups]).amount == pytest.approx(grid[np.argmax(scores)], abs=0.015)


def test_parts_have_one_share_and_transitions_of_their_own():
    first, second = observed(0.1, 1_500, 4, seed=2)[0], observed(0.1, 1_500, 4, seed=3)[0]
    assert learned([first, second]).amount == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("stated", "contradicted"), [(0.0, True), (0.1, False), (0.11, False), (0.25, True)]
)
def test_a_stated_share_is_contradicted_if_it_is_wrong(stated, contradicted):
    groups, _ = observed(0.1, 2_000, 1)
    assert learned([groups], stated).contradicted is contradicted


def test_two_steps_or_too_few_groups_tell_nothing():
    assert FEWEST_STEPS == 3
    assert learned([observed(0.1, 500, 5, length=2)[0]]).amount is None
    assert learned([observed(0.1, 25, 5)[0]], 0.4).amount is None


@pytest.mark.parametrize("share", [0.0, 0.07, 1.0])
@pytest.mark.parametrize("outside", [False, True])
def test_the_emission_is_that_of_the_grid(share, outside):
    misplacing = Misplacing.on_grid(GRID, 3_000.0, outside=outside)
    np.testing.assert_allclose(
        misplacing.emission(share).emissionprob,
        grid_emission(GRID, share, 3_000.0, outside=outside), atol=1e-15,
    )  # fmt: skip


def test_the_share_of_misplaced_people_by_hand():
    """Two cells, and a third one that is seen without error and tells nothing."""
    misplacing = Misplacing(np.eye(3), np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    joint = np.array([[90.0, 10, 0], [5, 45, 0], [0, 0, 1000]])
    assert misplacing.improved(joint, 0.2) == 15 / 150
    assert misplacing.improved(np.diag([0.0, 0, 1000]), 0.2) is None
    # Where both ways lead to a cell, Bayes' rule shares its people out.
    blurred = Misplacing(np.full((2, 2), 0.5), np.array([[0.0, 1], [1, 0]]))
    wrong = 10 * 0.2 / (0.2 + 0.4)
    assert blurred.improved(np.array([[0.0, 10], [0, 0]]), 0.2) == pytest.approx(wrong / 10)


# ---------------------------------------------------------------- metres

BLURRING = Blurring.on_grid(GRID)
SIDE = BLURRING.side_m


def placed(sides, n, size, length=4, seed=1):
    """People anywhere in their cells, seen with noise of so many sides of a cell."""
    states, people, grouping = np.random.default_rng(seed).spawn(3)
    hidden = truth().sample(n, length, states)[1]
    within = people.uniform(-0.5, 0.5, (*hidden.shape, 2)) * GRID.cell_size_m
    noise = people.normal(0.0, sides * SIDE, within.shape)
    places = GRID.centroids_m[hidden] + within + noise
    return aggregate_points(places, size, grouping), places


def test_the_side_is_that_of_a_cell():
    width, height = GRID.cell_size_m
    assert pytest.approx(np.sqrt((width**2 + height**2) / 2)) == SIDE


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("sides", "size"), [(0.3, 1), (0.6, 1), (0.3, 6)],
)  # fmt: skip
def test_planted_metres_are_found_again(sides, size, seed):
    groups, _ = placed(sides, 1_000, size, seed=seed)
    assert learned([groups], noise=BLURRING).amount == pytest.approx(sides * SIDE, rel=0.12)


@pytest.mark.parametrize("size", [1, 6])
def test_where_there_is_no_noise_few_metres_are_learned(size):
    """A cell has edges and its normal stand-in has none: that looks like a little noise."""
    groups, _ = placed(0.0, 1_000, size)
    assert learned([groups], noise=BLURRING).amount < 0.12 * SIDE


def test_metres_of_single_people_are_near_those_that_hmmlearn_finds_most_likely():
    """By the likelihood over a grid of metres under the true transitions."""
    groups, places = placed(0.4, 1_000, 1)
    model, true = GaussianHMM(D, "full", init_params=""), truth()
    model.startprob_, model.transmat_ = true.startprob, true.transmat
    model.means_ = GRID.centroids_m
    grid, scores = np.arange(0.2, 0.61, 0.05), []
    for sides in grid:
        variances = np.square(GRID.cell_size_m) / 12 + (sides * SIDE) ** 2
        model.covars_ = np.tile(np.diag(variances), (D, 1, 1))
        scores.append(model.score(places.reshape(-1, 2), [4] * len(places)))
    best = grid[np.argmax(scores)] * SIDE
    assert learned([groups], noise=BLURRING).amount == pytest.approx(best, abs=0.05 * SIDE)


@pytest.mark.parametrize(
    ("stated", "contradicted"), [(0.0, True), (0.3, False), (0.36, False), (0.6, True)]
)
def test_stated_metres_are_contradicted_if_they_are_wrong(stated, contradicted):
    groups, _ = placed(0.3, 1_000, 1)
    assert learned([groups], stated * SIDE, BLURRING).contradicted is contradicted


@pytest.mark.parametrize(
    ("learned_sides", "stated_sides", "near"),
    [(0.15, 0.0, True), (0.25, 0.0, False), (0.3, 0.25, True), (0.3, 0.4, False),
     (2.0, 1.85, True), (2.0, 2.3, False)],
)  # fmt: skip
def test_metres_are_near_by_what_edges_look_like_or_by_a_tenth(learned_sides, stated_sides, near):
    assert BLURRING.near(learned_sides * SIDE, stated_sides * SIDE) is near


def test_exact_positions_do_not_contradict_that_they_are_exact():
    assert not learned([placed(0.0, 1_000, 1)[0]], 0.0, BLURRING).contradicted


def test_two_steps_or_too_few_groups_tell_no_metres():
    assert learned([placed(0.3, 500, 5, length=2)[0]], noise=BLURRING).amount is None
    assert learned([placed(0.3, 25, 5)[0]], noise=BLURRING).amount is None


def moments(rows, about):
    """People, their sum of places and of squared places about a point, (1 + 2 + 4,)."""
    away = np.asarray(rows) - about
    square = np.einsum("ni,nj->ij", away, away)
    return np.concatenate([[len(away)], away.sum(axis=0), square.ravel()])


def test_metres_by_hand():
    """Squared distances 8 + 2 of two people in square cells, less 2 a person, halved."""
    plain = GaussianEmission(
        np.array([[0.0, 0], [10, 0], [1e9, 1e9]]), np.tile(np.eye(2), (3, 1, 1)), "fixed",
        origin=np.array([5.0, 0]),
    )  # fmt: skip
    blurring = Blurring(plain, 2, np.sqrt(12))
    seen = np.array(
        [
            moments([[2.0, 2.0]], [5.0, 0]), moments([[11.0, -1.0]], [5.0, 0]),
            moments([[1e9, 1e9]] * 50, [5.0, 0]),
        ]
    )  # fmt: skip
    expected = np.sqrt((8 + 2 - 2 * 2) / (2 * 2))
    for amount in (0.0, 0.7, 9.0):
        assert blurring.improved(seen, amount) == pytest.approx(expected)
    # Nearer than people of a cell are on average there is no noise; and outside tells nothing.
    assert blurring.improved(seen * [[0], [1], [1]], 0.7) == 0.0
    assert blurring.improved(seen * [[0], [0], [1]], 0.7) is None


def test_in_cells_of_many_sizes_each_tells_as_much_as_it_knows():
    """The step goes where Newton's on the derivative of the likelihood ends: there it stays."""
    covars = np.array([np.diag([1.0, 4.0]), np.array([[9.0, 2.0], [2.0, 5.0]])])
    plain = GaussianEmission(np.zeros((2, 2)), covars, "fixed", origin=np.zeros(2))
    people, spread = np.array([30.0, 12.0]), covars + np.array([[2.0, 0.3], [0.3, 3.0]])
    seen = np.column_stack(
        [people, np.zeros((2, 2)), (people[:, None, None] * spread).reshape(2, 4)]
    )

    def slope(variance):
        total = 0.0
        for n, c, s in zip(people, covars, spread, strict=True):
            inverse = np.linalg.inv(c + variance * np.eye(2))
            total += n * (np.trace(inverse @ s @ inverse) - np.trace(inverse)) / 2
        return total

    best, blurring = brentq(slope, 0.1, 20.0, xtol=1e-13), Blurring(plain, 2, 5.0)
    assert blurring.improved(seen, np.sqrt(best)) == pytest.approx(np.sqrt(best))
    amount = 5.0
    for _ in range(30):
        amount = blurring.improved(seen, amount)
    assert amount == pytest.approx(np.sqrt(best))


@pytest.mark.parametrize("outside", [False, True])
def test_the_emission_in_metres_is_that_of_the_grid(outside):
    """In a rectangle a place has variance side^2 / 12 each way, and the noise adds its own."""
    emission = Blurring.on_grid(GRID, outside=outside).emission(700.0)
    assert emission.n_states == D + outside
    np.testing.assert_allclose(emission.means[:D], GRID.centroids_m)
    expected = np.diag(np.square(GRID.cell_size_m) / 12 + 700.0**2)
    np.testing.assert_allclose(emission.covars, np.tile(expected, (D + outside, 1, 1)))
    other = grid_gaussian_emission(GRID, 700.0, outside=outside)
    np.testing.assert_array_equal(emission.covars, other.covars)


def test_the_outside_takes_no_digits_from_the_moments():
    """It lies ten million kilometres away."""
    blurring = Blurring.on_grid(GRID, outside=True)
    groups, _ = placed(0.3, 200, 1)
    emission = blurring.emission(0.3 * SIDE)
    table = emission.likelihoods(groups)
    sure = np.where(table.values == 1.0, 1.0, 0.0)
    found = blurring.improved(emission.statistics(groups, table, sure), 0.3 * SIDE)
    nearest = table.states[sure == 1.0]
    away = groups.points - GRID.centroids_m[nearest]
    less = np.square(GRID.cell_size_m) / 12
    weight = (less + (0.3 * SIDE) ** 2) ** -2.0
    by_hand = ((away**2 - less) * weight).sum() / (len(away) * weight.sum())
    assert found == pytest.approx(np.sqrt(max(by_hand, 0.0)), rel=1e-9)
