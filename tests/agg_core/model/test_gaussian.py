import itertools
import warnings

import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM
from scipy.stats import multivariate_normal

from agg_core.learn.em import em_steps
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.estimator import AggregateHMM
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.gaussian import (
    FLOOR,
    GaussianEmission,
    covariance_floor,
    grid_gaussian_emission,
    grid_positions,
    shaped_covariance,
)
from agg_core.model.hmm import HMM
from agg_core.space.build import Grid
from tests.agg_core import oracles
from tests.faults import refused

CFB = collective_forward_backward
TYPES = ("full", "diag", "spherical", "fixed")


def random_gaussian(seed, d=3, s=2, spread=3.0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, s, s))
    covars = half @ half.transpose(0, 2, 1) + 0.5 * np.eye(s)
    return HMM.gaussian(
        rng.dirichlet(np.ones(d)),
        rng.dirichlet(np.ones(d), d),
        rng.normal(0, spread, (d, s)),
        covars,
    )


def densities(emission, points):
    """p(point | state), (d, U), by scipy."""
    return np.array(
        [
            multivariate_normal(mean, covar).pdf(points)
            for mean, covar in zip(emission.means, emission.covars, strict=True)
        ]
    ).reshape(emission.n_states, -1)


def table_of(found, n_rows):
    """The table of likelihoods as a dense array (U, d), scaling undone."""
    dense = np.zeros((n_rows, found.n_states))
    rows = np.repeat(np.arange(n_rows), np.diff(found.indptr))
    dense[rows, found.states] = found.values
    return dense * np.exp(found.log_scale)[:, None]


def refitted(emission, aggregates, likelihoods, counts):
    return emission.from_statistics(emission.statistics(aggregates, likelihoods, counts))


def test_likelihoods_are_those_of_scipy():
    hmm = random_gaussian(0)
    points = hmm.sample(20, 3, 0)[0]
    singles = aggregate_points(points, 1)
    found = hmm.emission.likelihoods(singles)
    np.testing.assert_allclose(
        table_of(found, 60), densities(hmm.emission, points.reshape(-1, 2)).T, rtol=1e-12
    )
    assert found.values.max() == 1.0


def test_a_place_far_from_every_state_still_has_a_likelihood():
    emission = GaussianEmission.checked([[0.0], [1.0]], [1.0, 1.0])
    found = emission.likelihoods(Aggregates.from_samples([[[[1e4]]]]))
    assert found.log_scale[0] == pytest.approx(-0.5 * (1e4 - 1) ** 2 - 0.5 * np.log(2 * np.pi))
    assert found.values.min() > 0


def test_a_tail_cuts_states_from_the_support():
    emission = GaussianEmission(np.array([[0.0], [3.0], [50.0]]), np.ones((3, 1, 1)), tail=1e-6)
    found = emission.likelihoods(Aggregates.from_samples([[[[0.0]]]]))
    assert found.states.tolist() == [0, 1]  # exp(-9 / 2) is kept, exp(-1250) is not


@pytest.mark.parametrize("covariance_type", ["diag", "full", "spherical"])
def test_single_people_are_learned_as_by_hmmlearn(covariance_type):
    truth = random_gaussian(1)
    n, length = 60, 5
    points = truth.sample(n, length, 1)[0]
    rng = np.random.default_rng(2)
    init = {
        "startprob": np.full(3, 1 / 3),
        "transmat": 0.7 * np.eye(3) + 0.1,
        "means": truth.emission.means + rng.normal(0, 1, (3, 2)),
        "covars": np.tile(2 * np.eye(2), (3, 1, 1)),
    }
    peer = GaussianHMM(
        3, covariance_type=covariance_type, n_iter=20, tol=-np.inf, init_params="",
        min_covar=0, covars_prior=0, covars_weight=0,
    )  # fmt: skip
    peer.startprob_, peer.transmat_ = init["startprob"], init["transmat"]
    peer.means_ = init["means"]
    peer.covars_ = {"full": init["covars"], "diag": np.full((3, 2), 2.0)}.get(
        covariance_type, np.full(3, 2.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(points.reshape(-1, 2), [length] * n)
    mine = AggregateHMM(
        3, emission="gaussian", covariance_type=covariance_type, n_iter=20, tol=0, init=init
    ).fit(points)
    np.testing.assert_allclose(mine.monitor_.history, -np.array(peer.monitor_.history), rtol=1e-10)
    np.testing.assert_allclose(mine.startprob_, peer.startprob_, atol=1e-9)
    np.testing.assert_allclose(mine.transmat_, peer.transmat_, atol=1e-9)
    np.testing.assert_allclose(mine.means_, peer.means_, atol=1e-9)
    # hmmlearn 0.3.3 lists each spherical covariance once per coordinate.
    covars = peer.covars_[:: len(peer.covars_) // 3]
    np.testing.assert_allclose(mine.covars_, covars, atol=1e-9)
    log_p = peer.score(points.reshape(-1, 2), [length] * n)
    assert mine.score(points) == pytest.approx(log_p / n, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_inferred_as_by_all_paths(seed):
    hmm = random_gaussian(seed, d=2, spread=1.0)
    rng = np.random.default_rng(seed)
    groups = [hmm.sample(3, 3, rng)[0].transpose(1, 0, 2) for _ in range(2)]
    aggregates = Aggregates.from_samples(groups)
    total = []
    for group in groups:
        # Each place is a symbol that was seen once; its density takes the part of p(o | x).
        model = hmm.startprob, hmm.transmat, densities(hmm.emission, group.reshape(-1, 2))
        seen = np.eye(9).reshape(3, 3, 9).sum(axis=1)
        total.append(oracles.collective_counts(model, seen))
    exact = total[0] + total[1]
    likelihoods = hmm.emission.likelihoods(aggregates)
    found = CFB(hmm, aggregates, likelihoods, tol=1e-12, max_sweeps=20_000, with_emission=True)
    np.testing.assert_allclose(found.start, exact.start, atol=1e-8)
    np.testing.assert_allclose(found.transitions, exact.transitions, atol=1e-8)
    assert found.free_energy == pytest.approx(exact.free_energy, abs=1e-8)
    # The M-step by hand: Proposition 3 with the exact token posteriors (2 groups, d, 9 places).
    weight = np.concatenate([t.emission for t in total], axis=1)
    places = np.concatenate([g.reshape(-1, 2) for g in groups])
    means = weight @ places / weight.sum(axis=1, keepdims=True)
    fitted = refitted(hmm.emission, aggregates, likelihoods, found.emission)
    np.testing.assert_allclose(fitted.means, means, atol=1e-7)
    for x in range(2):
        away = places - means[x]
        covar = (weight[x, :, None] * away).T @ away / weight[x].sum()
        np.testing.assert_allclose(fitted.covars[x], covar, atol=1e-7)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("size", [1, 4])
def test_the_free_energy_falls(covariance_type, size):
    truth = random_gaussian(5)
    points = truth.sample(40, 4, 5)[0]
    aggregates = aggregate_points(points, size, 0)
    start = random_gaussian(6)
    emission = GaussianEmission(
        start.emission.means, shaped(start.emission.covars, covariance_type), covariance_type,
        covariance_floor(points.reshape(-1, 2)),
    )  # fmt: skip
    steps = em_steps(
        aggregates, HMM(start.startprob, start.transmat, emission),
        inference=CFB, sweep_tol=1e-10, max_sweeps=3_000,
    )  # fmt: skip
    energies = [state.free_energy for state in itertools.islice(steps, 15)]
    assert energies[0] - energies[-1] > 1
    assert (np.diff(energies) <= 1e-6).all()


def shaped(covars, covariance_type):
    if covariance_type == "fixed":
        return covars
    return np.array([shaped_covariance(covar, covariance_type) for covar in covars])


def test_fixed_covariances_stay_and_means_move():
    truth = random_gaussian(7)
    points = truth.sample(50, 3, 7)[0]
    init = {"means": truth.emission.means + 0.5, "covars": truth.emission.covars}
    found = AggregateHMM(
        3, emission="gaussian", covariance_type="fixed", init=init, n_iter=3, random_state=0
    ).fit(aggregate_points(points, 5, 0))
    np.testing.assert_array_equal(found.covars_, truth.emission.covars)
    assert np.abs(found.means_ - init["means"]).max() > 0.05


def test_a_collapsing_covariance_stops_at_the_floor():
    rng = np.random.default_rng(0)
    points = np.concatenate([np.zeros((30, 2)), rng.normal(10, 1, (30, 2))])
    floor = covariance_floor(points)
    pooled = np.cov(points.T, bias=True)
    np.testing.assert_allclose(np.diag(floor), FLOOR * np.diag(pooled))
    for covariance_type in ("full", "diag", "spherical"):
        found = AggregateHMM(
            2, emission="gaussian", covariance_type=covariance_type, n_iter=20, random_state=0,
            init={"means": [[0.0, 0.0], [10.0, 10.0]]},
        ).fit(points[:, None, :])  # fmt: skip
        expected = shaped_covariance(floor, covariance_type)
        np.testing.assert_allclose(found.covars_[0], expected, rtol=1e-9)
        assert np.isfinite(found.monitor_.history).all()


def test_the_floor_is_met_by_the_constrained_maximum():
    floor = np.array([[1.0, 0.3], [0.3, 0.5]])
    sample = np.array([[4.0, 0.1], [0.1, 0.01]])
    found = shaped_covariance(sample, "full", floor)
    assert np.linalg.eigvalsh(found - floor).min() > -1e-12

    def log_likelihood(covar):
        return -np.linalg.slogdet(covar)[1] - np.trace(np.linalg.solve(covar, sample))

    rng = np.random.default_rng(1)
    for _ in range(200):  # nothing that meets the floor is better
        half = rng.normal(size=(2, 2)) * rng.choice([0.1, 1, 3])
        assert log_likelihood(floor + half @ half.T) <= log_likelihood(found) + 1e-12


def test_covariances_above_the_floor_are_left_alone():
    covar = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(shaped_covariance(covar, "full", 1e-3 * np.eye(2)), covar)


def test_coordinates_that_never_change_are_not_singular():
    points = np.column_stack([np.arange(5.0), np.ones(5), np.arange(5.0)])
    assert np.linalg.eigvalsh(covariance_floor(points)).min() > 0
    assert covariance_floor(np.ones((1, 2))).tolist() == [[FLOOR, 0], [0, FLOOR]]


def test_a_state_that_nobody_is_in_keeps_its_values():
    emission = GaussianEmission.checked([[0.0], [100.0]], [1.0, 4.0])
    aggregates = Aggregates.from_samples([[[[0.0], [1.0]]]])
    likelihoods = emission.likelihoods(aggregates)
    fitted = refitted(emission, aggregates, likelihoods, np.array([1.0, 0.0, 1.0, 0.0]))
    assert fitted.means.tolist() == [[0.5], [100.0]]
    assert fitted.covars.tolist() == [[[0.25]], [[4.0]]]


def test_samples_have_the_moments():
    hmm = random_gaussian(9, d=2)
    states = np.repeat([0, 1], 40_000)
    places = hmm.emission.sample(states, np.random.default_rng(0))
    for x in range(2):
        mine = places[states == x]
        np.testing.assert_allclose(mine.mean(axis=0), hmm.emission.means[x], atol=0.05)
        np.testing.assert_allclose(
            np.cov(mine.T), hmm.emission.covars[x], atol=0.03 * np.trace(hmm.emission.covars[x])
        )


def test_mismatch_is_the_squared_hellinger_distance():
    one = GaussianEmission.checked([[0.0], [1.0]], [1.0, 4.0])
    other = GaussianEmission.checked([[0.5], [1.0]], [2.0, 4.0])
    grid = np.linspace(-60, 60, 200_001)
    p, q = densities(one, grid), densities(other, grid)
    expected = [[1 - np.trapezoid(np.sqrt(a * b), grid) for b in q] for a in p]
    np.testing.assert_allclose(one.mismatch(other), expected, atol=1e-9)


def test_distance_is_told_in_standard_deviations():
    one = GaussianEmission.checked([[0.0], [0.0]], [4.0, 1.0])
    other = GaussianEmission.checked([[1.0], [0.0]], [4.0, 1.5])
    assert one.distance(one) == 0
    assert one.distance(other) == pytest.approx((0.5 + 0.5) / 2)


@pytest.mark.parametrize(
    ("values", "code", "told"),
    [
        (([0.0, 1.0], [1.0, 1.0]), "malformed-means", "(2,)"),
        (([[np.nan]], [1.0]), "malformed-means", ""),
        (([[0.0], [1.0]], [1.0]), "wrong-shape", "(2, 1, 1)"),
        (([[0.0]], [-1.0]), "covariance-not-positive", ""),
        (([[0.0]], [np.nan]), "covariance-not-positive", ""),
        (([[0.0, 0.0]], [[[1.0, 0.5], [0.4, 1.0]]]), "covariance-not-positive", ""),
        (([[0.0]], [1.0], "round"), "not-a-choice", "covariance_type"),
    ],
)
def test_bad_values_are_refused(values, code, told):
    with refused(code, told):
        GaussianEmission.checked(*values)


def test_variances_may_be_given_short():
    full = [[[2.0, 0.0], [0.0, 2.0]]]
    for covars in (full, [[2.0, 2.0]], [2.0]):
        assert GaussianEmission.checked([[0.0, 0.0]], covars).covars.tolist() == full


def test_places_and_symbols_are_not_mixed_up():
    places = Aggregates.from_samples([[[[0.0]]]])
    counts = aggregate([[0]], 1, 1)
    gaussian = GaussianEmission.checked([[0.0]], [1.0])
    with refused("places-needed"):
        gaussian.likelihoods(counts)
    with refused("symbols-needed"):
        CategoricalEmission(np.eye(1)).likelihoods(places)
    with refused("coordinates-differ", "1 coordinates but the observations have 2"):
        gaussian.likelihoods(Aggregates.from_samples([[[[0.0, 1.0]]]]))


GRID = Grid.from_bbox(139.6, 35.6, 139.9, 35.8, 4, 5)


def test_cells_are_seen_with_the_moments_of_a_uniform_place_and_noise():
    emission = grid_gaussian_emission(GRID, 700.0)
    rng = np.random.default_rng(0)
    west, east = GRID.lon_edges[2:4]
    south, north = GRID.lat_edges[1:3]
    places = rng.uniform([west, south], [east, north], (100_000, 2))
    seen = grid_positions(GRID, places, 700.0, rng)
    cell = 1 * 5 + 2
    sd = np.sqrt(np.diag(emission.covars[cell]))
    np.testing.assert_allclose(seen.mean(axis=0), emission.means[cell], atol=0.02 * sd.max())
    np.testing.assert_allclose(np.cov(seen.T), emission.covars[cell], atol=0.02 * sd.max() ** 2)


def test_outside_is_seen_without_error_and_apart():
    emission = grid_gaussian_emission(GRID, 5_000.0, outside=True)
    lonlat = np.array([[GRID.centroids[7], [0.0, 0.0]]])
    seen = grid_positions(GRID, lonlat, 5_000.0, 0)
    found = emission.likelihoods(aggregate_points(seen, 1))
    assert GRID.n_cells not in found.states[: found.indptr[1]]
    assert found.states[found.indptr[1] :].tolist() == [GRID.n_cells]


def test_positions_repeat_with_the_seed_and_need_no_inside():
    far = np.zeros((2, 3, 2))
    np.testing.assert_array_equal(grid_positions(GRID, far, 10.0), grid_positions(GRID, far, 10.0))
    inside = np.tile(GRID.centroids[0], (2, 3, 1))
    one, two = (grid_positions(GRID, inside, 10.0, 4) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.ptp(one) > 0


@pytest.mark.parametrize("sigma_m", [-1.0, 2e7, np.nan])
def test_bad_position_noise_is_refused(sigma_m):
    with refused("value-out-of-range", "10,000 km"):
        grid_gaussian_emission(GRID, sigma_m)
