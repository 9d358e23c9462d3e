from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from agg_core.base.errors import UnreachableError
from agg_core.learn.em import em_steps
from agg_core.learn.esteps.poisson import bethe_rda, nlbp, prox
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

line_search = partial(nlbp, step="line_search")

ROADS = {"nlbp": nlbp, "line search": line_search, "bethe_rda": bethe_rda, "prox": prox}
SWEEPS = {"nlbp": 5_000, "line search": 1_000, "bethe_rda": 100_000, "prox": 2_000}
"""Far more than an E-step is given: the optimum itself is wanted. Bethe-RDA takes most of them."""

NOISE_MAPS = ("emission", "identity")

every_road = pytest.mark.parametrize("road", ROADS)
every_map = pytest.mark.parametrize("noise_map", NOISE_MAPS)


def infer(road, model, readings, sizes, **choices):
    """Expected counts of readings (K, T, S) of groups of these sizes."""
    hmm = HMM.categorical(*model)
    aggregates = Aggregates.from_dense(readings, sizes=sizes)
    choices = {"tol": 1e-10, "max_sweeps": SWEEPS[road], **choices}
    return ROADS[road](hmm, aggregates, hmm.emission.likelihoods(aggregates), **choices)


def shows(model, noise_map):
    return model[2] if noise_map == "emission" else np.eye(len(model[0]))


def paths_of(model, length):
    """p(x_1..x_T) as an array with T axes."""
    start, trans, _ = model
    paths = start
    for _ in range(length - 1):
        paths = paths[..., None] * trans
    return paths


def free_energy(paths, model, readings, size, noise_map):
    """F by its definition, of any distribution over paths with the chain's structure."""
    chance = shows(model, noise_map)
    prior = paths_of(model, len(readings))
    some = paths > 0
    total = size * (paths[some] * np.log(paths[some] / prior[some])).sum()
    for t, seen in enumerate(readings):
        if seen.sum() > 0:
            rate = size * oracles.marginal(paths, t) @ chance
            total += rate.sum() - seen[seen > 0] @ np.log(rate[seen > 0])
    return total


def planted(rng, noise_map, size, length=3, d=3, n_symbols=4):
    """A model, readings and the path distribution that is their optimum, by construction.

    Any ratios r_t(o) of reading to rate give paths with weights exp(sum_o C(x, o) r_t(o)) on the
    states; readings r times the rates of these paths then make the gradient of F vanish there.
    """
    model = oracles.random_model(rng, d, d if noise_map == "identity" else n_symbols)
    chance = shows(model, noise_map)
    ratios = rng.exponential(1.0, (length, chance.shape[1]))
    paths = paths_of(model, length)
    for t, psi in enumerate(ratios @ chance.T):
        paths = paths * np.exp(psi).reshape([-1 if a == t else 1 for a in range(length)])
    paths = paths / paths.sum()
    rates = np.array([size * oracles.marginal(paths, t) @ chance for t in range(length)])
    return model, ratios * rates, paths


def assert_at(expected, paths, energies, sizes, atol):
    """Counts are those of the distributions over paths, and F is their sum."""
    length = paths[0].ndim
    start = sum(m * oracles.marginal(p, 0) for m, p in zip(sizes, paths, strict=True))
    moves = sum(
        m * oracles.marginal(p, t, t + 1)
        for m, p in zip(sizes, paths, strict=True)
        for t in range(length - 1)
    )
    np.testing.assert_allclose(expected.start, start, atol=atol, rtol=0)
    np.testing.assert_allclose(expected.transitions, moves, atol=atol, rtol=0)
    assert expected.free_energy == pytest.approx(sum(energies), abs=1e-6)
    assert expected.emission is None
    assert expected.n_unconverged == 0


# ---------------------------------------------------------------- the optimum


@every_road
@every_map
@pytest.mark.parametrize("seed", range(5))
def test_optimum_that_was_planted(road, noise_map, seed):
    rng = np.random.default_rng(seed)
    model, readings, paths = planted(rng, noise_map, 10.0)
    energy = free_energy(paths, model, readings, 10.0, noise_map)
    expected = infer(road, model, readings[None], [10.0], noise_map=noise_map)
    atol = 1e-2 if road == "bethe_rda" else 1e-6
    assert_at(expected, [paths], [energy], [10.0], atol)


@every_map
@pytest.mark.parametrize("seed", range(20))
def test_all_roads_end_at_one_free_energy(noise_map, seed):
    rng = np.random.default_rng(100 + seed)
    model = oracles.random_model(rng, 3, 3)
    other = oracles.random_model(rng, 3, 3)
    readings = oracles.random_histograms(rng, other, 10, 4)[None]
    ends = {
        road: infer(road, model, readings, [10.0], noise_map=noise_map).free_energy
        for road in ROADS
    }
    for end in ends.values():
        assert end == pytest.approx(ends["prox"], abs=1e-6)


@every_map
@pytest.mark.parametrize("seed", range(4))
def test_optimum_by_a_general_optimiser_over_all_paths(noise_map, seed):
    rng = np.random.default_rng(200 + seed)
    model = oracles.random_model(rng, 2, 2)
    readings = rng.poisson(4.0, (3, 2)) + 1.0
    prior = paths_of(model, 3)

    def energy(flat):
        return free_energy(flat.reshape(prior.shape), model, readings, 8.0, noise_map)

    found = optimize.minimize(
        energy, prior.ravel(), method="SLSQP", bounds=[(1e-9, 1)] * prior.size,
        constraints={"type": "eq", "fun": lambda flat: flat.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    expected = infer("prox", model, readings[None], [8.0], noise_map=noise_map)
    assert expected.free_energy == pytest.approx(found.fun, abs=1e-7)
    moves = sum(8 * oracles.marginal(found.x.reshape(prior.shape), t, t + 1) for t in range(2))
    np.testing.assert_allclose(expected.transitions, moves, atol=5e-3)


OUTSIDE_MODEL = (
    np.array([0.5, 0.3, 0.2]),
    np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]),
    np.array([[0.8, 0.1, 0.1, 0.0], [0.1, 0.7, 0.1, 0.1], [0.0, 0.2, 0.3, 0.5]]),
)
OUTSIDE_READINGS = np.array([[6.0, 2.0, 1.0, 3.0], [3.0, 5.0, 2.0, 1.0], [1.0, 4.0, 4.0, 4.0]])


@every_road
def test_optimum_by_private_pgm(road):
    """The pinned numbers come from mbi 2.0.0 (private-pgm), in double precision.

    ``mbi.estimation.MirrorDescent().estimate`` with domain x0, x1, x2 of 3 values, known_total 10,
    20,000 iterations, from ``mbi.MarginalLossFn`` over the cliques (x0, x1), (x1, x2) with the loss
    sum_t sum_o (rate - y log rate) + sum p01 log(p01 / 10 / (pi A)) + sum p12 log(p12 / (n1 A)),
    where p and n are the tables projected to two and one of x0, x1, x2 and rate = n_t C;
    JAX with jax_enable_x64. ``mbi.estimation.LBFGS`` gives the same to 1e-13. For the identity the
    first three columns of the readings are those of the states.
    """
    start, trans, _ = OUTSIDE_MODEL
    expected = infer(road, OUTSIDE_MODEL, OUTSIDE_READINGS[None], [10.0])
    assert expected.free_energy == pytest.approx(-3.9449156810305, abs=1e-6)
    states = (start, trans, np.eye(3))
    expected = infer(road, states, OUTSIDE_READINGS[None, :, :3], [10.0], noise_map="identity")
    assert expected.free_energy == pytest.approx(-5.9528808143858, abs=1e-6)
    if road != "bethe_rda":
        by_outside = np.array(  # x0 to x1 and x1 to x2 together
            [
                [5.07460905, 2.34748948, 1.53601779],
                [0.45391375, 5.77710159, 1.05459595],
                [0.41962341, 1.01056939, 2.3260796],
            ]
        )
        np.testing.assert_allclose(expected.transitions, by_outside, atol=1e-6)


@every_road
def test_one_step_by_hand(road):
    """pi = (1/2, 1/2) and weights (3, 1) make mu = (3/4, 1/4): the readings of 4 people follow."""
    model = np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.eye(2)
    readings = np.array([[[3 * np.log(3), 0.0]]])
    expected = infer(road, model, readings, [4.0], noise_map="identity")
    np.testing.assert_allclose(expected.start, [3.0, 1.0], atol=1e-3)
    divergence = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert expected.free_energy == pytest.approx(4 - 3 * np.log(3) ** 2 + 4 * divergence, abs=1e-6)
    np.testing.assert_array_equal(expected.transitions, np.zeros((2, 2)))


@every_road
@every_map
def test_readings_as_the_model_expects_them_move_nobody(road, noise_map):
    model = (
        OUTSIDE_MODEL[0],
        OUTSIDE_MODEL[1],
        oracles.random_model(np.random.default_rng(3), 3, 3)[2],
    )
    nodes = [model[0], model[0] @ model[1], model[0] @ model[1] @ model[1]]
    rates = 20 * np.array(nodes) @ shows(model, noise_map)
    expected = infer(road, model, rates[None], [20.0], noise_map=noise_map)
    np.testing.assert_allclose(expected.start, 20 * model[0], atol=1e-6)
    moves = 20 * (nodes[0] + nodes[1])[:, None] * model[1]
    np.testing.assert_allclose(expected.transitions, moves, atol=1e-6)
    assert expected.free_energy == pytest.approx(60 - (rates * np.log(rates)).sum(), abs=1e-9)


# ---------------------------------------------------------------- the course of the iterations


@pytest.mark.parametrize("road", ["line search", "prox"])
@every_map
@pytest.mark.parametrize("seed", range(5))
def test_free_energy_never_rises(road, noise_map, seed):
    rng = np.random.default_rng(300 + seed)
    model = oracles.random_model(rng, 4, 4)
    other = oracles.random_model(rng, 4, 4)
    readings = oracles.random_histograms(rng, other, 30, 5)[None]
    course = [
        infer(road, model, readings, [30.0], noise_map=noise_map, max_sweeps=n).free_energy
        for n in range(1, 40)
    ]
    assert all(after <= before + 1e-12 * abs(before) for before, after in pairwise(course))
    end = infer(road, model, readings, [30.0], noise_map=noise_map).free_energy
    assert course[0] > end + 1e-3
    assert course[-1] == pytest.approx(end, abs=1e-6)


def test_a_fixed_step_may_go_astray_where_a_line_search_does_not():
    """Nobody moves for 100 steps: all gradients point the same way, and 0.08 of it is too much."""
    model = np.array([0.5, 0.5]), np.eye(2), np.eye(2)
    readings = np.tile([7.0, 3.0], (1, 100, 1))
    assert infer("nlbp", model, readings, [10.0]).n_unconverged == 1
    for road in ("line search", "prox"):
        expected = infer(road, model, readings, [10.0])
        assert expected.n_unconverged == 0
        slope = optimize.brentq(
            lambda m: 100 * (0.7 / m - 0.3 / (1 - m)) - np.log(m / (1 - m)), 0.5, 0.9, xtol=1e-14
        )
        np.testing.assert_allclose(expected.start, [10 * slope, 10 - 10 * slope], atol=1e-6)
        np.testing.assert_array_equal(expected.transitions[[0, 1], [1, 0]], 0)


@every_road
@every_map
def test_messages_save_sweeps_and_change_nothing(road, noise_map):
    rng = np.random.default_rng(6)
    model = oracles.random_model(rng, 3, 3)
    readings = np.array([oracles.random_histograms(rng, model, 10, 4) for _ in range(3)])
    sizes = [10.0] * 3
    cold = infer(road, model, readings, sizes, noise_map=noise_map)
    warm = infer(road, model, readings, sizes, noise_map=noise_map, messages=cold.messages)
    assert warm.sweeps < cold.sweeps / 2
    close = {"atol": 1e-6, "rtol": 0}
    np.testing.assert_allclose(warm.transitions, cold.transitions, **close)
    assert warm.free_energy == pytest.approx(cold.free_energy, abs=1e-8)
    part = infer(road, model, readings, sizes, noise_map=noise_map, max_sweeps=5)
    assert part.n_unconverged == 3
    assert part.sweeps == 5
    kept = part.messages.copy()
    on = infer(road, model, readings, sizes, noise_map=noise_map, messages=part.messages)
    np.testing.assert_array_equal(part.messages, kept)
    assert on.free_energy == pytest.approx(cold.free_energy, abs=1e-6)
    nearby = tuple(0.9 * part + 0.1 / part.shape[-1] for part in model)
    moved = infer(road, nearby, readings, sizes, noise_map=noise_map, messages=cold.messages)
    afresh = infer(road, nearby, readings, sizes, noise_map=noise_map)
    # Dual averaging still weighs in the gradients under the old model, which were many here.
    close = 1e-2 if road == "bethe_rda" else 1e-6
    assert moved.free_energy == pytest.approx(afresh.free_energy, abs=close)


def test_the_fixed_step_goes_on_exactly_where_it_was():
    rng = np.random.default_rng(7)
    model = oracles.random_model(rng, 3, 3)
    readings = oracles.random_histograms(rng, model, 10, 4)[None]
    part = infer("nlbp", model, readings, [10.0], max_sweeps=20)
    on = infer("nlbp", model, readings, [10.0], max_sweeps=20, messages=part.messages)
    once = infer("nlbp", model, readings, [10.0], max_sweeps=40)
    np.testing.assert_array_equal(on.transitions, once.transitions)


@every_road
@every_map
def test_free_energy_falls_as_em_goes_on(road, noise_map):
    rng = np.random.default_rng(8)
    truth = oracles.random_model(rng, 3, 3)
    readings = [oracles.random_histograms(rng, truth, 10, 4) for _ in range(20)]
    start, trans, _ = oracles.random_model(rng, 3, 3)
    steps = em_steps(
        Aggregates.from_dense(readings),
        HMM.categorical(start, trans, truth[2]),
        inference=partial(ROADS[road], noise_map=noise_map),
        fixed=("emission",),
        sweep_tol=1e-9,
        max_sweeps=1_000,
    )
    course = [next(steps).free_energy for _ in range(12)]
    slack = 1e-4 if road == "bethe_rda" else 1e-7
    assert all(after <= before + slack for before, after in pairwise(course))
    assert course[-1] < course[0] - 1


# ---------------------------------------------------------------- groups, steps and zeros


@every_road
@every_map
def test_groups_of_unequal_size_add_up(road, noise_map):
    rng = np.random.default_rng(9)
    model, first, at_first = planted(rng, noise_map, 1.0, d=3, n_symbols=3)
    chance, sizes = shows(model, noise_map), [1.0, 6.0, 2.5e4]
    readings, paths = [first], [at_first]
    for size in sizes[1:]:
        ratios = rng.exponential(1.0, first.shape)
        weights = np.exp(ratios @ chance.T)
        tilted = np.einsum("xyz,x,y,z->xyz", paths_of(model, 3), *weights)
        paths.append(tilted / tilted.sum())
        nodes = np.array([oracles.marginal(paths[-1], t) for t in range(3)])
        readings.append(ratios * size * (nodes @ chance))
    energies = [
        free_energy(p, model, y, m, noise_map)
        for p, y, m in zip(paths, readings, sizes, strict=True)
    ]
    expected = infer(road, model, np.array(readings), sizes, noise_map=noise_map, tol=1e-12)
    if road == "bethe_rda":
        assert expected.free_energy == pytest.approx(sum(energies), abs=1e-3)
    else:
        assert_at(expected, paths, energies, sizes, 1e-4)


def test_many_sequences_are_the_sum_of_single_ones():
    rng = np.random.default_rng(10)
    model = oracles.random_model(rng, 3, 3)
    readings = rng.poisson(3.0, (23, 4, 3)) + 1.0
    sizes = rng.integers(5, 15, 23).astype(float)
    for road in ROADS:
        sweeps = {"max_sweeps": 300}
        together = infer(road, model, readings, sizes, **sweeps)
        alone = [
            infer(road, model, y[None], [m], **sweeps) for y, m in zip(readings, sizes, strict=True)
        ]
        moves = sum(one.transitions for one in alone)
        np.testing.assert_allclose(together.transitions, moves, atol=1e-10)
        assert together.free_energy == pytest.approx(sum(one.free_energy for one in alone))
        assert together.sweeps == pytest.approx(np.mean([one.sweeps for one in alone]))
        again = infer(road, model, readings, sizes, **sweeps)
        np.testing.assert_array_equal(together.transitions, again.transitions)


@every_road
def test_only_readings_per_person_decide(road):
    """Ten times the people and readings: ten times the counts, in as many sweeps."""
    few = infer(road, OUTSIDE_MODEL, OUTSIDE_READINGS[None], [10.0], max_sweeps=400)
    many = infer(road, OUTSIDE_MODEL, 10 * OUTSIDE_READINGS[None], [100.0], max_sweeps=400)
    np.testing.assert_allclose(many.transitions, 10 * few.transitions, rtol=1e-9)
    assert many.sweeps == few.sweeps


@every_road
@every_map
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_step_that_nobody_observed_adds_nothing(road, noise_map, missing):
    rng = np.random.default_rng(20 + missing)
    model, readings, _ = planted(rng, noise_map, 10.0)
    readings[missing] = 0
    prior = paths_of(model, 3)

    def energy(logits):
        weight = prior * np.exp(logits.reshape(prior.shape))
        return free_energy(weight / weight.sum(), model, readings, 10.0, noise_map)

    found = optimize.minimize(energy, np.zeros(prior.size), method="BFGS", options={"gtol": 1e-6})
    expected = infer(road, model, readings[None], [10.0], noise_map=noise_map)
    assert expected.free_energy == pytest.approx(found.fun, abs=1e-6)


@every_road
def test_structural_zeros_stay_zero_and_the_rest_is_right(road):
    start = np.array([0.5, 0.5, 0.0])
    trans = np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]])
    emit = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7]])
    model = start, trans, emit
    readings = np.array([[2.0, 4.0, 0.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]])
    prior = paths_of(model, 3)

    def energy(logits):
        weight = prior * np.exp(logits.reshape(prior.shape))
        return free_energy(weight / weight.sum(), model, readings, 5.0, "emission")

    found = optimize.minimize(energy, np.zeros(prior.size), method="BFGS", options={"gtol": 1e-6})
    expected = infer(road, model, readings[None], [5.0])
    assert expected.free_energy == pytest.approx(found.fun, abs=1e-6)
    assert expected.start[2] == 0
    assert (expected.transitions[trans == 0] == 0).all()
    assert expected.start.sum() == pytest.approx(5)
    assert expected.transitions.sum() == pytest.approx(10)


# ---------------------------------------------------------------- numbers at the edge


@pytest.mark.parametrize("tol", [1e-6, 1e-10])
@pytest.mark.parametrize(
    ("road", "tiny"),
    [
        ("nlbp", 1e-12),
        *((road, 10.0**-n) for road in ("line search", "prox") for n in (12, 100, 300)),
    ],
)
def test_a_state_next_to_impossible_whose_reading_is_not(road, tiny, tol):
    """Rates start far below the floor; at the end log(m / pi) - 1 / (2 m) is the same for both."""
    model = np.array([1 - tiny, tiny]), np.full((2, 2), 0.5), np.eye(2)
    readings = np.array([[[5.0, 5.0]]])
    expected = infer(road, model, readings, [10.0], noise_map="identity", tol=tol)

    def pull(m):
        return np.log(m) - np.log(tiny) - 0.5 / m - (np.log1p(-m) - 0.5 / (1 - m))

    share = optimize.brentq(pull, 1e-6, 1 - 1e-6, xtol=1e-15)
    np.testing.assert_allclose(expected.start, [10 - 10 * share, 10 * share], atol=1e3 * tol)
    assert expected.n_unconverged == 0


def test_the_fixed_step_says_where_it_is_too_long():
    model = np.array([1.0, 1e-100]), np.full((2, 2), 0.5), np.eye(2)
    expected = infer("nlbp", model, np.array([[[5.0, 5.0]]]), [10.0])
    assert expected.n_unconverged == 1


@pytest.mark.parametrize("road", ["nlbp", "line search", "prox"])
def test_readings_that_pull_to_states_between_which_nobody_moves(road):
    """On the way the weights reach e^(10^9), on paths that do not exist: only logarithms hold."""
    tiny = 1e-12
    model = np.array([1 - 2 * tiny, tiny, tiny]), np.eye(3), np.eye(3)
    readings = np.array([[[0.0, 10.0, 0.0], [0.0, 0.0, 10.0]]])
    expected = infer(road, model, readings, [10.0], noise_map="identity")

    def pull(m):
        return np.log(m / tiny) - 1 / m - np.log((1 - 2 * m) / (1 - 2 * tiny))

    share = optimize.brentq(pull, 1e-3, 0.499, xtol=1e-15)
    np.testing.assert_allclose(expected.start, [10 - 20 * share, 10 * share, 10 * share], atol=1e-5)
    np.testing.assert_allclose(expected.transitions, np.diag(expected.start), atol=1e-12)
    assert expected.n_unconverged == 0


@pytest.mark.parametrize("road", ["line search", "prox"])
def test_paths_that_fall_behind_by_more_than_a_double_holds_may_come_back(road):
    """Nobody moves; one step speaks for state 0 by e^800, three together for state 1 by a bit more.

    Planted: ratios r of reading to rate, and the odds of the two paths from their sums.
    """
    model = np.array([0.5, 0.5]), np.eye(2), np.eye(2)
    ratios = np.array([[800.0, 0.0], [0.0, 267.0], [0.0, 267.0], [0.0, 266.5]])
    share = 1 / (1 + np.exp(ratios[:, 1].sum() - ratios[:, 0].sum()))
    rates = 10 * np.array([share, 1 - share])
    expected = infer(road, model, (ratios * rates)[None], [10.0], max_sweeps=20_000)
    np.testing.assert_allclose(expected.start, rates, atol=1e-6)
    np.testing.assert_allclose(expected.transitions, 3 * np.diag(rates), atol=1e-6)


def test_dual_averaging_says_that_it_remembers_a_bad_start_for_long():
    model = np.array([1 - 1e-12, 1e-12]), np.full((2, 2), 0.5), np.eye(2)
    expected = infer("bethe_rda", model, np.array([[[5.0, 5.0]]]), [10.0], max_sweeps=500)
    assert np.isfinite(expected.free_energy)
    best = infer("prox", model, np.array([[[5.0, 5.0]]]), [10.0])
    assert expected.free_energy > best.free_energy + 1
    assert expected.n_unconverged == 1


@every_road
def test_long_sequences_keep_their_numbers(road):
    rng = np.random.default_rng(30)
    model = oracles.random_model(rng, 3, 4)
    readings = rng.poisson(5.0, (1, 500, 4)) + 1.0
    expected = infer(road, model, readings, [24.0], max_sweeps=300)
    assert np.isfinite(expected.free_energy)
    assert expected.transitions.sum() == pytest.approx(24 * 499)
    assert expected.start.sum() == pytest.approx(24)


@pytest.mark.parametrize("road", ["nlbp", "line search", "prox"])
@pytest.mark.parametrize("tiny", [1e-100, 1e-300])
def test_a_symbol_all_but_impossible_still_tells_states_apart(road, tiny):
    """Only the ratio 1 : 3 matters to the marginals: as if it were thousandths."""

    def ends(scale):
        emit = np.array([[1 - scale, scale], [1 - 3 * scale, 3 * scale]])
        model = np.array([0.5, 0.5]), np.array([[0.6, 0.4], [0.2, 0.8]]), emit
        return infer(road, model, np.array([[[3.0, 1.0], [1.0, 3.0]]]), [4.0])

    np.testing.assert_allclose(ends(tiny).transitions, ends(1e-9).transitions, atol=1e-6)


# ---------------------------------------------------------------- what cannot be done


@every_road
def test_a_reading_out_of_reach_is_named(road):
    # From 0 one only stays or goes to 1, and nobody starts in 2.
    model = (
        np.array([0.5, 0.5, 0.0]),
        np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]]),
        np.eye(3),
    )
    fine = [[3.0, 1.0, 0.0], [2.0, 2.0, 0.0]]
    readings = np.array([fine, [[2.0, 2.0, 0.0], [1.0, 2.0, 1.0]], [[1.0, 1.0, 2.0], [4.0, 0, 0]]])
    with refused(
        "observation-impossible", "symbol 2 in sequence 1 at step 1", kind=UnreachableError
    ):
        infer(road, model, readings, [4.0] * 3)
    blurred = (*model[:2], np.array([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]]))
    with refused(
        "observation-impossible", "symbol 2 in sequence 1 at step 1", kind=UnreachableError
    ):
        infer(road, blurred, readings, [4.0] * 3)


def test_counts_that_no_single_group_could_show_are_no_error_here():
    """With no moves the shares of two steps cannot both hold; noise may part them all the same."""
    model = np.array([0.5, 0.5]), np.eye(2), np.eye(2)
    for road in ROADS:
        expected = infer(road, model, np.array([[[3.0, 1.0], [1.0, 3.0]]]), [4.0])
        np.testing.assert_allclose(expected.transitions, [[2, 0], [0, 2]], atol=1e-6)
        assert expected.free_energy == pytest.approx(8 - 8 * np.log(2), abs=1e-9)


@every_road
def test_a_learned_emission_is_refused(road):
    with refused("emission-not-fixed"):
        infer(road, OUTSIDE_MODEL, OUTSIDE_READINGS[None], [10.0], with_emission=True)


@every_road
@every_map
def test_places_are_refused(road, noise_map):
    places = Aggregates.from_samples(np.zeros((1, 2, 3, 1)))
    table = TokenLikelihoods(
        indptr=np.arange(7), states=np.zeros(6, dtype=int), values=np.ones(6),
        row=np.arange(6), n_states=3,
    )  # fmt: skip
    hmm = HMM.categorical(*OUTSIDE_MODEL)
    with refused("symbols-needed"):
        ROADS[road](hmm, places, table, noise_map=noise_map)


@every_road
def test_states_cannot_be_counted_by_another_number_of_symbols(road):
    with refused("symbols-unlike-states", "4 symbols and 3 states"):
        infer(road, OUTSIDE_MODEL, OUTSIDE_READINGS[None], [10.0], noise_map="identity")


def test_a_step_of_another_name_is_refused():
    hmm, singles = HMM.categorical(*OUTSIDE_MODEL), aggregate([[0, 1]], 1, 4)
    with refused("not-a-choice", "step must be one of fixed, line_search"):
        nlbp(hmm, singles, hmm.emission.likelihoods(singles), step="newton")


@every_road
def test_inputs_are_not_changed(road):
    hmm = HMM.categorical(*OUTSIDE_MODEL)
    aggregates = Aggregates.from_dense(OUTSIDE_READINGS[None], sizes=[10.0])
    likelihoods = hmm.emission.likelihoods(aggregates)
    parts = (
        hmm.startprob, hmm.transmat, aggregates.count, aggregates.sizes, likelihoods.values,
    )  # fmt: skip
    before = [part.copy() for part in parts]
    ROADS[road](hmm, aggregates, likelihoods, max_sweeps=20)
    for part, kept in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, kept)
