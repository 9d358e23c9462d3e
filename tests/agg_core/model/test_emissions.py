import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.emissions import CategoricalEmission, grid_emission, observe
from agg_core.space.build import Grid
from tests.faults import refused

EMISSION = np.array([[0.5, 0.0, 0.3, 0.2], [0.0, 1.0, 0.0, 0.0], [0.0, 0.1, 0.0, 0.9]])
TOKYO = Grid.from_bbox(139.2, 35.2, 140.1, 36.0, rows=3, cols=4)
"""Cells 8, 4, 0 in the west from north to south; 5 and 6 have all their neighbours."""


# ---------------------------------------------------------------- drawing observations


def test_observations_follow_the_rows():
    n = 60_000
    states = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], n // 3))
    seen = observe(states, EMISSION, 1)
    for state in range(3):
        counts = np.bincount(seen[states == state], minlength=4)
        m = n // 3
        sigma = np.sqrt(m * EMISSION[state] * (1 - EMISSION[state]))
        assert (np.abs(counts - m * EMISSION[state]) <= 5 * sigma).all()
        assert (counts[EMISSION[state] == 0] == 0).all()


def test_observations_of_different_people_are_independent():
    seen = observe(np.zeros((40_000, 2), dtype=int), EMISSION[:1], 2)
    pairs = np.bincount(seen[:, 0] * 4 + seen[:, 1], minlength=16).reshape(4, 4) / 40_000
    expected = np.outer(EMISSION[0], EMISSION[0])
    assert (np.abs(pairs - expected) <= 5 * np.sqrt(expected * (1 - expected) / 40_000)).all()


def test_a_symbol_of_probability_zero_is_never_drawn_at_the_ends():
    table = np.array([[0.0, 1e-17, 1 - 1e-17, 0.0]])
    assert set(observe(np.zeros(100_000, dtype=int), table, 3)) == {2}


def test_observations_keep_the_shape_and_repeat_with_the_seed():
    states = np.random.default_rng(0).integers(3, size=(5, 4, 2))
    seen = observe(states, EMISSION, 4)
    assert seen.shape == states.shape
    np.testing.assert_array_equal(seen, observe(states, EMISSION, np.random.default_rng(4)))
    np.testing.assert_array_equal(observe(states, np.eye(3), 0), states)


def test_nobody_shows_nothing():
    assert observe(np.zeros((0, 3), dtype=int), EMISSION, 0).shape == (0, 3)


@pytest.mark.parametrize("bad", [-1, 3])
def test_states_without_a_row_are_refused(bad):
    with refused("state-out-of-range", "0..2"):
        observe([0, bad], EMISSION)


# ---------------------------------------------------------------- likelihoods and the M-step


def test_likelihoods_are_the_columns():
    aggregates = Aggregates.from_dense([[[2, 0, 1, 0], [0, 1, 0, 2]]])
    found = CategoricalEmission(EMISSION).likelihoods(aggregates)
    assert found.n_states == 3
    for token, symbol in enumerate([0, 2, 1, 3]):
        at = slice(found.indptr[found.row[token]], found.indptr[found.row[token] + 1])
        column = np.zeros(3)
        column[found.states[at]] = found.values[at]
        np.testing.assert_array_equal(column, EMISSION[:, symbol])
        assert (found.values[at] > 0).all()


def test_the_m_step_normalises_and_keeps_the_rows_of_empty_states():
    emission = CategoricalEmission(EMISSION)
    found = emission.likelihoods(aggregate([[0, 1]], 1, 4))
    # Entries in the order of symbols: 0 from state 0; 1 from 1 and 2; 2 from 0; 3 from 0 and 2.
    entries = list(zip(found.states, np.repeat(range(4), np.diff(found.indptr)), strict=True))
    assert entries == [(0, 0), (1, 1), (2, 1), (0, 2), (0, 3), (2, 3)]
    counts = np.array([6.0, 0.0, 1.0, 3.0, 1.0, 3.0])
    statistics = emission.statistics(aggregate([[0, 1]], 1, 4), found, counts)
    np.testing.assert_array_equal(statistics, [[6, 0, 3, 1], [0, 0, 0, 0], [0, 1, 0, 3]])
    fitted = emission.from_statistics(statistics).emissionprob
    expected = [[0.6, 0, 0.3, 0.1], [0, 1, 0, 0], [0, 0.25, 0, 0.75]]
    np.testing.assert_allclose(fitted, expected, atol=1e-15)


def test_distance_is_the_mean_l1_of_rows():
    other = np.array([[0.0, 0.5, 0.3, 0.2], [0.0, 1.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.9]])
    gap = CategoricalEmission(EMISSION).distance(CategoricalEmission(other))
    assert gap == pytest.approx((1.0 + 0.0 + 0.2) / 3)
    with pytest.raises(TypeError):
        CategoricalEmission(EMISSION).distance(object())


# ---------------------------------------------------------------- noise on a grid


@pytest.mark.parametrize(
    ("misclassify", "sigma_m"), [(0, 0), (0.05, 0), (0, 8000), (0.2, 3000), (1, 20_000), (0.3, 1e6)]
)
def test_rows_sum_to_one(misclassify, sigma_m):
    emission = grid_emission(TOKYO, misclassify, sigma_m)
    assert emission.shape == (12, 12)
    assert (emission >= 0).all()
    np.testing.assert_allclose(emission.sum(axis=1), 1, atol=1e-12)


def test_without_noise_it_is_the_identity():
    np.testing.assert_array_equal(grid_emission(TOKYO, 0.0, 0.0), np.eye(12))
    np.testing.assert_allclose(grid_emission(TOKYO, 0.0, 1.0), np.eye(12), atol=1e-3)
    one = Grid.from_bbox(0, 0, 1, 1, 1, 1)
    np.testing.assert_array_equal(grid_emission(one, 0.4, 5e4), [[1.0]])


def test_a_wrong_cell_is_one_of_those_that_exist():
    emission = grid_emission(TOKYO, 0.24)
    by_hand = {
        0: dict.fromkeys([1, 4, 5], 0.08),  # corner: 3
        1: dict.fromkeys([0, 2, 4, 5, 6], 0.048),  # side: 5
        8: dict.fromkeys([4, 5, 9], 0.08),
        4: dict.fromkeys([0, 1, 5, 8, 9], 0.048),
        5: dict.fromkeys([0, 1, 2, 4, 6, 8, 9, 10], 0.03),  # inside: 8
    }
    for cell, near in by_hand.items():
        expected = np.zeros(12)
        expected[cell] = 0.76
        expected[list(near)] = list(near.values())
        np.testing.assert_allclose(emission[cell], expected, atol=1e-15)


def lands(from_cell, to_cell, sigma):
    """Chance by numerical integration, in units of cells of one side."""

    def from_place(u):
        low = to_cell - from_cell - u
        return norm.cdf((low + 1) / sigma) - norm.cdf(low / sigma)

    return quad(from_place, 0, 1, epsabs=1e-13, epsrel=1e-12)[0]


@pytest.mark.parametrize("sigma_m", [500.0, 9000.0, 60_000.0])
def test_gaussian_noise_by_numerical_integration(sigma_m):
    width, height = TOKYO.cell_size_m
    across = np.array([[lands(i, j, sigma_m / width) for j in range(4)] for i in range(4)])
    along = np.array([[lands(i, j, sigma_m / height) for j in range(3)] for i in range(3)])
    expected = np.kron(along, across)
    expected /= expected.sum(axis=1, keepdims=True)
    # Shares below a millionth are cut: no row moves by more than its twelve of them.
    np.testing.assert_allclose(grid_emission(TOKYO, 0.0, sigma_m), expected, atol=1.3e-5)
    if sigma_m > 1e4:
        np.testing.assert_allclose(grid_emission(TOKYO, 0.0, sigma_m), expected, atol=1e-12)


def test_both_noises_by_simulation():
    """Move a uniform place, forget those off the grid, then book a share to a neighbour."""
    rng = np.random.default_rng(6)
    n, sigma_m, misclassify = 400_000, 11_000.0, 0.15
    width, height = TOKYO.cell_size_m
    emission = grid_emission(TOKYO, misclassify, sigma_m)
    for cell in (0, 5, 7):
        row, col = divmod(cell, 4)
        x = (col + rng.random(n)) * width + rng.normal(0, sigma_m, n)
        y = (row + rng.random(n)) * height + rng.normal(0, sigma_m, n)
        j, i = np.floor(x / width).astype(int), np.floor(y / height).astype(int)
        on = (j >= 0) & (j < 4) & (i >= 0) & (i < 3)
        i, j = i[on], j[on]
        wrong = np.flatnonzero(rng.random(len(i)) < misclassify)
        for at in wrong:
            near = [
                (a, b)
                for a in range(i[at] - 1, i[at] + 2)
                for b in range(j[at] - 1, j[at] + 2)
                if (a, b) != (i[at], j[at]) and 0 <= a < 3 and 0 <= b < 4
            ]
            i[at], j[at] = near[int(rng.random() * len(near))]
        share = np.bincount(i * 4 + j, minlength=12) / len(i)
        sigma = np.sqrt(emission[cell] * (1 - emission[cell]) / len(i))
        assert (np.abs(share - emission[cell]) <= 5 * sigma + 2e-5).all()


def test_noise_is_local_on_a_fine_grid():
    grid = Grid.from_bbox(139.0, 35.0, 141.4, 37.0, rows=14, cols=16)
    side = min(grid.cell_size_m)
    emission = grid_emission(grid, 0.05, side / 10)
    assert (emission > 0).sum(axis=1).max() <= 25
    assert (np.diag(emission) > 0.7).all()


def test_noise_far_beyond_the_grid_forgets_the_cell():
    np.testing.assert_allclose(grid_emission(TOKYO, 0.0, 1e7), np.full((12, 12), 1 / 12), atol=1e-5)


@pytest.mark.parametrize("misclassify", [-0.1, 1.1, np.nan])
def test_chances_out_of_range_are_refused(misclassify):
    with refused("value-out-of-range"):
        grid_emission(TOKYO, misclassify)


@pytest.mark.parametrize("sigma_m", [-1.0, np.nan, np.inf, 1e8])
def test_impossible_noise_is_refused(sigma_m):
    with refused("value-out-of-range", "10,000 km"):
        grid_emission(TOKYO, 0.05, sigma_m)


def test_outside_is_seen_without_error():
    extended = grid_emission(TOKYO, 0.1, 5000.0, outside=True)
    assert extended.shape == (13, 13)
    np.testing.assert_array_equal(extended[:12, :12], grid_emission(TOKYO, 0.1, 5000.0))
    assert extended[12].tolist() == [0.0] * 12 + [1.0]
    assert extended[:12, 12].tolist() == [0.0] * 12
