import itertools

import numpy as np
import pytest

from agg_core.base.errors import UnreachableError
from agg_core.learn.calibration import CALIBRATION_NOISE, calibrated_steps, simulated_groups
from agg_core.learn.em import em_steps
from agg_core.learn.esteps.cavity import cavity_forward_backward
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.mstep import Statistics
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

CFB, CAVITY = collective_forward_backward, cavity_forward_backward
KNOWN = ("emission",)


def random_model(seed, d=3, n_symbols=3):
    return HMM.categorical(*oracles.random_model(np.random.default_rng(seed), d, n_symbols))


GAPS = Aggregates.from_dense(
    [[[2, 1, 0], [0, 0, 0], [0, 1, 2]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[5, 0, 0]] * 3]
)


# ---------------------------------------------------------------- groups that are made up


@pytest.mark.parametrize("kind", ["symbols", "places"])
def test_groups_are_like_those_given(kind):
    if kind == "symbols":
        hmm, given = random_model(0), GAPS
        observed = GAPS.to_dense().sum(axis=2)
    else:
        hmm = HMM.gaussian([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0, 1], [5, 5]], [1.0, 2.0])
        points = hmm.sample(8, 3, 0)[0].reshape(2, 4, 3, 2).transpose(0, 2, 1, 3).copy()
        points[1, 0] = np.nan
        given = Aggregates.from_samples(points)
        observed = np.array([[4, 4, 4], [0, 4, 4]])
    groups, truth, table = simulated_groups(hmm, given, 1)
    per_step = np.bincount(groups.step_of_token, groups.count, len(groups.indptr) - 1)
    np.testing.assert_array_equal(per_step.reshape(observed.shape), observed)
    np.testing.assert_array_equal(groups.sizes, given.sizes)
    assert (groups.length, len(groups)) == (given.length, len(given))
    assert truth.start.sum() == given.n_individuals
    assert truth.transitions.sum() == 2 * given.n_individuals
    assert truth.emission is None
    if kind == "symbols":
        assert groups.n_symbols == given.n_symbols
    fresh = hmm.emission.likelihoods(groups)
    np.testing.assert_array_equal(table.values, fresh.values)
    np.testing.assert_array_equal(table.row, fresh.row)


def test_the_truth_is_what_can_be_seen_of_single_people():
    """Seen as they are, at M = 1, people leave an E-step nothing to guess."""
    hmm = random_model(1)
    hmm = HMM.categorical(hmm.startprob, hmm.transmat, np.eye(3))
    singles = aggregate(hmm.sample(50, 4, 0)[0], 1, 3)
    groups, truth, table = simulated_groups(hmm, singles, 2, with_emission=True)
    found = Statistics.of(CFB(hmm, groups, table, with_emission=True), hmm, groups, table)
    np.testing.assert_allclose(truth.start, found.start, atol=1e-12)
    np.testing.assert_allclose(truth.transitions, found.transitions, atol=1e-12)
    np.testing.assert_allclose(truth.emission, found.emission, atol=1e-12)


def test_the_truth_of_places_is_what_can_be_seen_of_single_people():
    """States so far apart that a place leaves no doubt."""
    hmm = HMM.gaussian([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0], [1000.0]], [1.0, 4.0])
    singles = aggregate_points(hmm.sample(40, 3, 0)[0], 1)
    groups, truth, table = simulated_groups(hmm, singles, 2, with_emission=True)
    found = Statistics.of(CFB(hmm, groups, table, with_emission=True), hmm, groups, table)
    np.testing.assert_allclose(truth.transitions, found.transitions, atol=1e-12)
    np.testing.assert_allclose(truth.emission, found.emission, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("size", [1, 5])
def test_the_truth_of_noisy_groups_is_the_model_on_average(size):
    """Mean over draws of start, moves and shown symbols within five standard errors."""
    hmm = random_model(3)
    given = aggregate(hmm.sample(40, 3, 0)[0], size, 3, 1)
    n = 200
    draws = [simulated_groups(hmm, given, seed, with_emission=True)[1] for seed in range(n)]
    at = [hmm.startprob]
    at += [hmm.startprob @ np.linalg.matrix_power(hmm.transmat, t) for t in (1, 2)]
    expected = {
        "start": 40 * at[0],
        "transitions": 40 * (at[0] + at[1])[:, None] * hmm.transmat,
        "emission": 40 * sum(at)[:, None] * hmm.emission.emissionprob,
    }
    for part, mean in expected.items():
        found = np.array([getattr(draw, part) for draw in draws])
        error = found.std(axis=0, ddof=1) / np.sqrt(n)
        assert (np.abs(found.mean(axis=0) - mean) < 5 * error).all()


def test_groups_repeat_with_the_seed():
    hmm = random_model(4)
    one, two, other = (simulated_groups(hmm, GAPS, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.to_dense(), two.to_dense())
    assert not np.array_equal(one.to_dense(), other.to_dense())


# ---------------------------------------------------------------- learning

D, STAY, SIZE = 5, 0.8, 20


@pytest.fixture(scope="module")
def movers():
    """Five cells, one in five people moves, groups of 20 seen at two steps without noise."""
    rng = np.random.default_rng(0)
    truth = HMM.categorical(
        [0.3, 0.25, 0.2, 0.15, 0.1], shifted(STAY), np.eye(D)
    )  # fmt: skip
    states = truth.sample(400 * SIZE, 2, rng)[1]
    return aggregate(states, SIZE, D, rng), (states[:, 0] != states[:, 1]).mean()


def shifted(stay):
    transmat = np.full((D, D), (1 - stay) / (D - 1))
    np.fill_diagonal(transmat, stay)
    return transmat


def start(stay=0.6):
    return HMM.categorical(np.full(D, 1 / D), shifted(stay), np.eye(D))


def movement(hmm):
    return 1 - hmm.startprob @ np.diag(hmm.transmat)


def nth(steps, n):
    return next(itertools.islice(steps, n - 1, None))


@pytest.mark.parametrize(("inference", "plain", "n"), [(CFB, 1.9, 60), (CAVITY, 1.3, 35)])
def test_the_bias_of_an_e_step_is_gone(movers, inference, plain, n):
    """Uncorrected, CFB sees twice the movement there was; 400 groups tell it to about 4 %."""
    aggregates, true = movers
    uncorrected = nth(em_steps(aggregates, start(), inference=inference, fixed=KNOWN), 20)
    assert movement(uncorrected.hmm) > plain * true
    steps = calibrated_steps(aggregates, start(), inference=inference, fixed=KNOWN, random_state=0)
    assert movement(nth(steps, n).hmm) == pytest.approx(true, rel=0.1)


def test_the_first_iterations_are_plain(movers):
    aggregates, _ = movers
    steps = calibrated_steps(aggregates, start(), inference=CFB, fixed=KNOWN, random_state=0)
    plain = em_steps(aggregates, start(), inference=CFB, fixed=KNOWN)
    first, one = next(steps), next(plain)
    np.testing.assert_allclose(first.hmm.transmat, one.hmm.transmat, atol=1e-12)
    assert first.free_energy == one.free_energy
    assert first.noise == CALIBRATION_NOISE
    assert (first.iteration, first.change) == (1, 2.0)


def test_an_exact_e_step_stays_where_it_is():
    """At M = 1 and without noise nothing is to be corrected: C_true = C_simulated."""
    hmm = random_model(5)
    hmm = HMM.categorical(hmm.startprob, hmm.transmat, np.eye(3))
    singles = aggregate(hmm.sample(60, 3, 0)[0], 1, 3)
    steps = calibrated_steps(singles, hmm, inference=CFB, fixed=KNOWN, random_state=0)
    plain = em_steps(singles, hmm, inference=CFB, fixed=KNOWN)
    for found, expected in zip(itertools.islice(steps, 12), plain, strict=False):
        np.testing.assert_allclose(found.hmm.transmat, expected.hmm.transmat, atol=1e-9)


@pytest.mark.parametrize("replicates", [1, 3])
def test_it_repeats_with_the_seed(movers, replicates):
    aggregates = movers[0].take(np.arange(50))

    def learned(seed):
        steps = calibrated_steps(
            aggregates, start(), inference=CFB, replicates=replicates, fixed=KNOWN,
            random_state=seed,
        )  # fmt: skip
        return nth(steps, 9).hmm.transmat

    np.testing.assert_array_equal(learned(1), learned(1))
    assert np.abs(learned(1) - learned(2)).max() > 1e-6


def test_replicates_make_it_steadier(movers):
    """The spread over seeds falls; nine replicates have a third of the noise of one."""
    aggregates = movers[0].take(np.arange(20))

    def spread(replicates):
        found = [
            nth(
                calibrated_steps(
                    aggregates, start(STAY), inference=CFB, replicates=replicates, fixed=KNOWN,
                    random_state=seed,
                ), 8,
            ).hmm.transmat
            for seed in range(6)
        ]  # fmt: skip
        return np.std(found, axis=0).mean()

    assert spread(9) < 0.6 * spread(1)


@pytest.mark.parametrize("part", ["startprob", "transmat", "emission"])
def test_fixed_parts_stay(part):
    hmm = random_model(6)
    groups = aggregate(hmm.sample(60, 3, 0)[0], 4, 3, 1)
    found = nth(
        calibrated_steps(groups, hmm, inference=CFB, fixed=(part,), random_state=0), 9
    ).hmm  # fmt: skip
    same = {
        "startprob": np.array_equal(found.startprob, hmm.startprob),
        "transmat": np.array_equal(found.transmat, hmm.transmat),
        "emission": found.emission is hmm.emission,
    }
    assert same == {name: name == part for name in same}


def test_impossible_moves_stay_impossible():
    ring = np.where(np.abs(np.subtract.outer(range(D), range(D))) % (D - 2) <= 1, shifted(0.6), 0)
    ring /= ring.sum(axis=1, keepdims=True)
    hmm = HMM.categorical(np.full(D, 1 / D), ring, np.eye(D))
    groups = aggregate(hmm.sample(400, 3, 0)[0], 8, D, 1)
    found = nth(calibrated_steps(groups, hmm, inference=CFB, fixed=KNOWN, random_state=0), 15).hmm
    np.testing.assert_array_equal(found.transmat == 0, ring == 0)
    np.testing.assert_allclose(found.transmat.sum(axis=1), 1)


def test_an_emission_is_learned_without_losing_a_symbol():
    """A symbol that a correction takes away for once must not be impossible for good."""
    rng = np.random.default_rng(8)
    truth = HMM.categorical(
        [0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], [[0.9, 0.09, 0.01], [0.2, 0.79, 0.01]]
    )
    groups = aggregate(truth.sample(300, 4, rng)[0], 10, 3, rng)
    hmm = HMM.categorical(
        [0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], [[0.8, 0.15, 0.05], [0.3, 0.65, 0.05]]
    )
    found = nth(calibrated_steps(groups, hmm, inference=CFB, random_state=0), 40).hmm
    assert (found.emission.emissionprob > 0).all()
    apart = np.abs(found.emission.emissionprob - truth.emission.emissionprob).sum(axis=1)
    assert apart.max() < 0.35


@pytest.mark.parametrize("seed", range(3))
def test_no_symbol_of_few_people_is_lost(seed):
    rng = np.random.default_rng(seed)
    truth = HMM.categorical(
        [0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], [[0.9, 0.08, 0.02], [0.2, 0.78, 0.02]]
    )
    groups = aggregate(truth.sample(60, 4, rng)[0], 10, 3, rng)
    hmm = HMM.categorical(*oracles.random_model(rng, 2, 3))
    found = nth(calibrated_steps(groups, hmm, inference=CFB, random_state=seed), 20).hmm
    assert (found.emission.emissionprob > 0).all()


def test_learned_places():
    rng = np.random.default_rng(9)
    truth = HMM.gaussian([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], [[0.0], [4.0]], [1.0, 1.0])
    groups = aggregate_points(truth.sample(300, 3, rng)[0], 5, rng)
    hmm = HMM.gaussian(
        [0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], [[0.5], [3.0]], [1.0, 1.0], "full", np.eye(1) * 0.01
    )
    found = nth(calibrated_steps(groups, hmm, inference=CFB, random_state=0), 25).hmm
    np.testing.assert_allclose(found.emission.means, truth.emission.means, atol=0.3)
    np.testing.assert_allclose(found.emission.covars, truth.emission.covars, atol=0.35)


# ---------------------------------------------------------------- what is refused


def test_bad_choices_are_refused():
    hmm = random_model(7)
    with refused("value-out-of-range", "calibrate"):
        next(calibrated_steps(GAPS, hmm, inference=CFB, replicates=0))
    with refused("unknown-part", "['moves']"):
        next(calibrated_steps(GAPS, hmm, inference=CFB, fixed=("moves",)))
    soft = Aggregates.from_dense([[[0.5, 0.5, 1.0], [1.0, 1.0, 0.0]]])
    with refused("not-whole-people"):
        next(calibrated_steps(soft, hmm, inference=CFB))
    stays = HMM.categorical([1.0, 0.0], np.eye(2), np.eye(2))
    with refused("observation-impossible", kind=UnreachableError):
        next(calibrated_steps(aggregate([[0, 1]], 1, 2), stays, inference=CFB))
