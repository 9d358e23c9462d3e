"""The learner for many people: its likelihood by another library, its slopes by differences."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from agg_core.counts import dense
from agg_core.counts.dense import dense_steps, pooled_log_likelihood
from agg_core.counts.rows import Strength
from tests.agg_core import oracles
from tests.agg_core.counts import made


def covariance(y, transmat):
    """Of the next counts of people y, one multinomial per origin, and of the noise besides."""
    V = dense.DITHER * np.eye(len(y))
    for people, row in zip(y, transmat, strict=True):
        V += people * (np.diag(row) - np.outer(row, row))
    return V


def slope_by_differences(function, x, step=1e-5):
    slope = np.empty(x.size)
    for i in range(x.size):
        shift = np.zeros(x.size)
        shift[i] = step
        shift = shift.reshape(x.shape)
        slope[i] = (function(x + shift) - function(x - shift)) / (2 * step)
    return slope.reshape(x.shape)


def along(slope):
    """The part of a slope that keeps the sums of rows, which are one."""
    return slope - slope.mean(axis=1, keepdims=True)


def likelihood(pairs, transmat):
    """Value and slope (d, d) of one matrix at all times."""
    value, slope = pooled_log_likelihood(dense.pooled(pairs, by_time=False), transmat[None])
    return value, slope[0]


@pytest.fixture
def transmats():
    return np.random.default_rng(1).dirichlet(np.ones(3) + np.array([1.0, 0.5, 2.0]), (2, 3))


@pytest.mark.parametrize("people", [5, 500, 50_000])
def test_likelihood_of_one_pair_is_that_of_a_normal_vector(transmats, people):
    pairs = made.moving_pairs(np.random.default_rng(2), transmats[:1], 1, people)
    pool = dense.pooled(pairs, by_time=False)
    value, _ = pooled_log_likelihood(pool, transmats[0])
    y, z = pairs.before[0], pairs.after[0]
    V = covariance(y, transmats[0])
    density = multivariate_normal.logpdf(z, y @ transmats[0], V) + 1.5 * np.log(2 * np.pi)
    traced = 0.5 * dense.DITHER * np.trace(np.linalg.inv(V))
    # Squares of all people are taken from one another on the way.
    assert value == pytest.approx(density - traced, abs=1e-14 * people**2, rel=1e-9)


def test_pooled_pairs_share_the_covariance_of_their_mean(transmats):
    pairs = made.moving_pairs(np.random.default_rng(3), transmats[:1], 7, 40)
    pool = dense.pooled(pairs, by_time=False)
    value, _ = pooled_log_likelihood(pool, transmats[0])
    V = covariance(pairs.before.mean(axis=0), transmats[0])
    densities = [
        multivariate_normal.logpdf(z, y @ transmats[0], V)
        for y, z in zip(pairs.before, pairs.after, strict=True)
    ]
    expected = sum(densities) + 7 * (
        1.5 * np.log(2 * np.pi) - 0.5 * dense.DITHER * np.trace(np.linalg.inv(V))
    )
    assert value == pytest.approx(expected, rel=1e-9)


def test_pools_are_times_of_day(transmats):
    pairs = made.moving_pairs(np.random.default_rng(4), transmats, 5, 40)
    sums = dense.pooled(pairs, by_time=True)
    assert (sums.slot.tolist(), sums.n.tolist()) == ([0, 1], [5, 5])
    np.testing.assert_allclose(sums.y[1], pairs.before[1::2].sum(axis=0))
    both = zip(pairs.before[1::2], pairs.after[1::2], strict=True)
    np.testing.assert_allclose(sums.yz[1], sum(np.outer(y, z) for y, z in both))
    value, slope = pooled_log_likelihood(sums, transmats)
    alone = [likelihood(pairs.take(pairs.slot == h), transmats[h]) for h in (0, 1)]
    assert value == pytest.approx(alone[0][0] + alone[1][0])
    np.testing.assert_allclose(slope, [alone[0][1], alone[1][1]])


@pytest.mark.parametrize("people", [8, 3000])
def test_slope_of_the_likelihood(transmats, people):
    pairs = made.moving_pairs(np.random.default_rng(5), transmats[:1], 6, people)
    pool = dense.pooled(pairs, by_time=False)
    at = transmats[1]
    slope = pooled_log_likelihood(pool, at)[1][0]
    by_hand = slope_by_differences(lambda rows: pooled_log_likelihood(pool, rows)[0], at)
    np.testing.assert_allclose(along(slope), along(by_hand), rtol=1e-5, atol=1e-5 * people)


def test_slope_is_zero_at_the_truth_on_average_over_all_that_may_happen(transmats):
    """All tables of moves of two unlike pairs, weighted by their chances: no bias of the pool."""
    A, splits = transmats[0], oracles._splits(6, 3)
    total = np.zeros((3, 3))
    firsts = [(4, 1, 1), (0, 2, 4)]
    chances, _ = oracles._tables(firsts, splits, A)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    for p, first in zip(chances[0], splits, strict=True):
        for q, second in zip(chances[1], splits, strict=True):
            pool = dense.pooled(made.pairs(firsts, [first, second]), by_time=False)
            total += p * q * pooled_log_likelihood(pool, A)[1][0]
    np.testing.assert_allclose(along(total), 0, atol=1e-9)


@pytest.mark.parametrize(
    ("strength", "gap"),
    [(Strength(0.0), False), (Strength(30.0), True), (Strength(7.0, 20.0), True)],
)
def test_slope_of_the_objective(transmats, strength, gap):
    pairs = made.moving_pairs(np.random.default_rng(6), transmats, 4, 60)
    shape = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.0 if gap else 0.1, 0.3, 0.6]])
    shape /= shape.sum(axis=1, keepdims=True)
    problem = dense.Problem.of(pairs, shape, strength)
    x = problem.start + np.random.default_rng(7).normal(0, 3.0, len(problem.start))
    # Gravity 1 + 3 + 1, rows 6, leaving 3, and two times of attraction 3, leaving 3 and pace.
    assert len(x) == 14 - gap + (14 if strength.by_time else 0)
    _, slope = problem.objective(x)
    by_hand = slope_by_differences(lambda at: problem.objective(at)[0], x)
    np.testing.assert_allclose(slope, by_hand, rtol=1e-5, atol=1e-6 * np.abs(by_hand).max())


def test_slopes_where_nobody_may_stay_or_leave(transmats):
    pairs = made.moving_pairs(np.random.default_rng(6), transmats, 4, 60)
    shape = np.array([[0.6, 0.3, 0.1], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    problem = dense.Problem.of(pairs, shape, Strength(7.0, 20.0))
    x = problem.start + np.random.default_rng(7).normal(0, 3.0, len(problem.start))
    found = problem.transmats(x)
    np.testing.assert_array_equal(found[:, [1, 2, 2], [1, 0, 1]], 0)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    slope = problem.objective(x)[1]
    by_hand = slope_by_differences(lambda at: problem.objective(at)[0], x)
    np.testing.assert_allclose(slope, by_hand, rtol=1e-5, atol=1e-6 * np.abs(by_hand).max())


def test_the_objective_is_minus_likelihood_and_prior(transmats):
    """Every layer by hand: gravity, rows of the day, times of day, and what each costs."""
    pairs = made.moving_pairs(np.random.default_rng(8), transmats, 4, 60)
    shape = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    problem = dense.Problem.of(pairs, shape, Strength(30.0, 20.0))
    rng, away = np.random.default_rng(9), ~np.eye(3, dtype=bool)
    decay, pull, leave = 1.4, rng.normal(0, 0.5, 3), -0.7
    rows, leaving = rng.normal(0, 0.4, (3, 3)) * away, rng.normal(0, 0.3, 3)
    attraction, then, pace = (rng.normal(0, 0.3, size) for size in ((2, 3), (2, 3), 2))
    people = pairs.before.sum(axis=0)
    then_people = np.stack([pairs.before[pairs.slot == h].sum(axis=0) for h in (0, 1)])
    told = [0.2 * then_people, 0.16 * then_people, 0.16 * then_people.sum(axis=1)]
    scale = np.sqrt(np.column_stack(told) + 21)
    x = np.concatenate(
        [
            [decay * np.sqrt(people.sum())], pull * np.sqrt(people),
            [leave * np.sqrt(people.sum())], (rows * np.sqrt(people)[:, None])[away],
            leaving * np.sqrt(people), (np.column_stack([attraction, then, pace]) * scale).ravel(),
        ]
    )  # fmt: skip
    gravity = shape**decay * np.exp(pull) * away
    day = gravity * np.exp(rows)
    going = day * np.exp(attraction)[:, None, :]
    gravity, day, going = (
        part / part.sum(axis=-1, keepdims=True) for part in (gravity, day, going)
    )
    share = 1 / (1 + np.exp(-(leave + leaving + pace[:, None] + then)))
    by_time = share[:, :, None] * going + (1 - share)[:, :, None] * np.eye(3)
    np.testing.assert_allclose(problem.transmats(x), by_time)
    expected = -pooled_log_likelihood(dense.pooled(pairs, by_time=True), by_time)[0]
    expected += 30 * 0.2 * (gravity[away] * np.log(gravity[away] / day[away])).sum()
    expected += 0.5 * 30 * 0.16 * (leaving**2).sum()
    expected += 0.5 * 21 * ((attraction**2).sum() + (then**2).sum()) + 0.5 * (pace**2).sum()
    expected += 0.5 * ((decay - 1) ** 2 + (pull**2).sum())
    assert problem.objective(x)[0] == pytest.approx(expected)


def last_of(pairs, shape, strength, n=40):
    *_, last = islice(dense_steps(pairs, shape, strength), n)
    return last


def test_it_is_the_best_there_is(transmats):
    """From where it ends another library finds nothing better."""
    pairs = made.moving_pairs(np.random.default_rng(9), transmats, 30, 500)
    problem = dense.Problem.of(pairs, np.full((3, 3), 1 / 3), Strength(20.0, 10.0))
    best = minimize(problem.objective, problem.start, jac=True, options={"maxiter": 5000})
    found = last_of(pairs, np.full((3, 3), 1 / 3), Strength(20.0, 10.0)).transmats
    np.testing.assert_allclose(found, problem.transmats(best.x), atol=1e-3)


def test_gravity_is_found_from_far_away():
    """Moves of a decay and attractions unlike those of the start, tied strongly: no standstill."""
    rng = np.random.default_rng(15)
    place = np.arange(6.0)
    shape = np.exp(-np.abs(place[:, None] - place))
    shape /= shape.sum(axis=1, keepdims=True)
    away = ~np.eye(6, dtype=bool)
    going = shape**0.3 * np.array([8.0, 1, 1, 3, 1, 1]) * away
    truth = 0.7 * np.eye(6) + 0.3 * going / going.sum(axis=1, keepdims=True)
    pairs = made.moving_pairs(rng, truth[None], 60, 3000)
    found = last_of(pairs, shape, Strength(10_000.0)).transmats
    assert made.row_error(found, truth[None]) < 0.1


def test_one_matrix_is_recovered():
    rng = np.random.default_rng(10)
    truth = rng.dirichlet(np.ones(4), (1, 4))
    pairs = made.moving_pairs(rng, truth, 60, 5000)
    last = last_of(pairs, np.full((4, 4), 0.25), Strength(0.0))
    assert last.transmats.shape == (1, 4, 4)
    assert made.row_error(last.transmats, truth) < 0.02
    assert last.change < 1e-3


def test_times_of_day_that_differ_by_attraction_are_recovered():
    rng = np.random.default_rng(11)
    day = rng.dirichlet(np.ones(4), 4)
    truth = day * np.array([[3.0, 1, 1, 1], [1, 1, 1, 3.0]])[:, None]
    truth /= truth.sum(axis=2, keepdims=True)
    pairs = made.moving_pairs(rng, truth, 60, 5000)
    found = last_of(pairs, np.full((4, 4), 0.25), Strength(0.0, 10.0)).transmats
    assert made.row_error(found, truth) < 0.05
    one = last_of(pairs, np.full((4, 4), 0.25), Strength(0.0)).transmats
    assert made.row_error(found, truth) < 0.2 * made.row_error(one, truth)


def test_crowds_do_not_slow_the_descent_of_times_of_day():
    """Ten thousand times the people pull ten thousand times as hard on what a time changes."""
    rng = np.random.default_rng(16)
    going = rng.dirichlet(np.ones(6), 6) * ~np.eye(6, dtype=bool)
    then = going * rng.lognormal(0, 1, (8, 1, 6))
    share = rng.uniform(0.05, 0.3, (8, 1, 1))
    truth = (1 - share) * np.eye(6) + share * then / then.sum(axis=2, keepdims=True)
    pairs = made.moving_pairs(rng, truth, 20, 1_000_000)
    found = last_of(pairs, np.full((6, 6), 0.1) + 0.4 * np.eye(6), Strength(0.0, 10.0), 10)
    assert made.row_error(found.transmats, truth) < 0.02


def test_moves_that_the_shape_rules_out_never_come_back(transmats):
    shape = np.array([[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    pairs = made.moving_pairs(np.random.default_rng(12), transmats[:1], 10, 200)
    found = last_of(pairs, shape, Strength(5.0), 5).transmats
    assert found[0, 0, 2] == 0
    np.testing.assert_allclose(found.sum(axis=2), 1)


def test_a_strong_prior_wins(transmats):
    pairs = made.moving_pairs(np.random.default_rng(14), transmats[:1], 30, 500)
    shape = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    found = last_of(pairs, shape, Strength(1e8)).transmats[0]
    # Gravity rows have one stay share and one ratio of two destinations for all.
    np.testing.assert_allclose(np.diagonal(found), found[0, 0], atol=1e-3)
