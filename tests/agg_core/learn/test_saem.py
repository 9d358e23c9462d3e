import itertools

import numpy as np
import pytest

from agg_core.base.errors import UnreachableError
from agg_core.learn.em import accelerated_em_steps
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.mstep import Pull
from agg_core.learn.saem import MOST_UPDATES, SAMPLING_NOISE, sampling_steps
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

CFB = collective_forward_backward
KNOWN = ("emission",)
D, STAY = 5, 0.8


def nth(steps, n):
    return next(itertools.islice(steps, n - 1, None))


def blurred(d):
    return 0.8 * np.eye(d) + 0.2 / d


def people(seed, n, length, d=3):
    rng = np.random.default_rng(seed)
    start, trans, _ = random_hmm(d, d, seed)
    truth = HMM.categorical(start, trans, blurred(d))
    return truth.sample(n, length, rng)[0], truth, rng


def guess(seed, d=3):
    start, trans, _ = oracles.random_model(np.random.default_rng(seed), d, d)
    return HMM.categorical(start, trans, blurred(d))


def shifted(stay):
    transmat = np.full((D, D), (1 - stay) / (D - 1))
    np.fill_diagonal(transmat, stay)
    return transmat


def nll(hmm, singles):
    table = hmm.emission.likelihoods(singles)
    return CFB(hmm, singles, table).free_energy / singles.n_individuals


@pytest.mark.parametrize("before", [0.6, 0.95])
def test_movement_is_that_of_the_people(before):
    """Five cells, one in five moves, groups of 20 at two steps; 400 tell it to about 4 %."""
    rng = np.random.default_rng(0)
    truth = HMM.categorical([0.3, 0.25, 0.2, 0.15, 0.1], shifted(STAY), np.eye(D))
    states = truth.sample(400 * 20, 2, rng)[1]
    hmm = HMM.categorical(np.full(D, 1 / D), shifted(before), np.eye(D))
    steps = sampling_steps(aggregate(states, 20, D, rng), hmm, fixed=KNOWN, random_state=0)
    found = nth(steps, 6).hmm
    true = (states[:, 0] != states[:, 1]).mean()
    assert 1 - found.startprob @ np.diag(found.transmat) == pytest.approx(true, rel=0.1)


def test_single_people_are_learned_as_by_baum_welch():
    symbols, _, _ = people(1, 600, 4)
    singles = aggregate(symbols, 1, 3)
    exact = nth(accelerated_em_steps(singles, guess(1), inference=CFB, fixed=KNOWN), 90)
    assert exact.change < 1e-5
    found = nth(sampling_steps(singles, guess(1), fixed=KNOWN, random_state=0), 10)
    np.testing.assert_allclose(found.hmm.startprob, exact.hmm.startprob, atol=0.03)
    np.testing.assert_allclose(found.hmm.transmat, exact.hmm.transmat, atol=0.04)
    assert nll(found.hmm, singles) == pytest.approx(nll(exact.hmm, singles), abs=2e-3)


def test_an_emission_is_learned_as_by_baum_welch():
    """What is learned explains held-out people as well."""
    symbols, truth, _ = people(2, 600, 5)
    singles, test = aggregate(symbols, 1, 3), aggregate(truth.sample(600, 5, 77)[0], 1, 3)
    hmm = HMM.categorical(
        truth.startprob, 0.5 * truth.transmat + 0.5 / 3, 0.6 * np.eye(3) + 0.4 / 3
    )
    exact = nth(accelerated_em_steps(singles, hmm, inference=CFB), 60).hmm
    found = nth(sampling_steps(singles, hmm, random_state=0), 10).hmm
    assert np.abs(found.emission.emissionprob - hmm.emission.emissionprob).max() > 0.05
    assert nll(found, singles) == pytest.approx(nll(exact, singles), abs=5e-3)
    assert nll(found, test) < nll(hmm, test)
    assert nll(found, test) == pytest.approx(nll(exact, test), abs=0.01)


def test_places_are_learned():
    rng = np.random.default_rng(3)
    truth = HMM.gaussian([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], [[0.0], [4.0]], [1.0, 1.0])
    groups = aggregate_points(truth.sample(300, 3, rng)[0], 5, rng)
    hmm = HMM.gaussian([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], [[0.5], [3.0]], [2.0, 2.0])
    found = nth(sampling_steps(groups, hmm, random_state=0), 6).hmm
    np.testing.assert_allclose(found.emission.means, truth.emission.means, atol=0.3)
    np.testing.assert_allclose(found.emission.covars, truth.emission.covars, atol=0.35)
    np.testing.assert_allclose(found.transmat, truth.transmat, atol=0.12)


def test_it_repeats_with_the_seed():
    symbols, _, rng = people(4, 100, 3)
    groups = aggregate(symbols, 5, 3, rng)

    def learned(seed):
        return nth(sampling_steps(groups, guess(4), fixed=KNOWN, random_state=seed), 2)

    one, two, other = learned(1), learned(1), learned(2)
    np.testing.assert_array_equal(one.hmm.transmat, two.hmm.transmat)
    assert one.free_energy == two.free_energy
    assert np.abs(one.hmm.transmat - other.hmm.transmat).max() > 1e-6


@pytest.mark.parametrize("part", ["startprob", "transmat", "emission"])
def test_fixed_parts_stay(part):
    symbols, _, rng = people(5, 60, 3)
    hmm = guess(5)
    steps = sampling_steps(aggregate(symbols, 4, 3, rng), hmm, fixed=(part,), random_state=0)
    found = nth(steps, 2).hmm
    same = {
        "startprob": np.array_equal(found.startprob, hmm.startprob),
        "transmat": np.array_equal(found.transmat, hmm.transmat),
        "emission": found.emission is hmm.emission,
    }
    assert same == {name: name == part for name in same}


def test_impossible_starts_and_moves_stay_impossible():
    trans = np.array([[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.3, 0.0, 0.7]])
    truth = HMM.categorical([0.6, 0.4, 0.0], trans, blurred(3))
    groups = aggregate(truth.sample(80, 4, 0)[0], 8, 3, 1)
    found = nth(sampling_steps(groups, truth, fixed=KNOWN, random_state=0), 2)
    np.testing.assert_array_equal(found.hmm.transmat == 0, trans == 0)
    assert found.hmm.startprob[2] == 0
    assert found.n_unconverged == 0
    np.testing.assert_allclose(found.hmm.transmat.sum(axis=1), 1)


def test_a_strong_pull_makes_rows_those_of_gravity():
    symbols, _, rng = people(6, 200, 3)
    groups = aggregate(symbols, 5, 3, rng)
    shape = np.full((3, 3), 1 / 3)
    hmm = guess(6)
    pulled = nth(
        sampling_steps(groups, hmm, fixed=KNOWN, pull=Pull(shape, 1e6), random_state=0), 2
    ).hmm.transmat
    stay = np.diag(pulled)
    np.testing.assert_allclose(stay, stay.mean(), atol=1e-3)
    # Attractions of destinations cancel on the way round: it is as likely either way.
    one_way = pulled[0, 1] * pulled[1, 2] * pulled[2, 0]
    assert one_way == pytest.approx(pulled[0, 2] * pulled[2, 1] * pulled[1, 0], rel=1e-2)
    free = nth(sampling_steps(groups, hmm, fixed=KNOWN, random_state=0), 2).hmm.transmat
    assert np.ptp(np.diag(free)) > 0.03


def test_what_is_told_of_an_iteration():
    symbols, _, rng = people(7, 60, 3)
    groups = aggregate(symbols, 4, 3, rng)
    steps = sampling_steps(groups, guess(7), fixed=KNOWN, random_state=0)
    states = list(itertools.islice(steps, 4))
    assert [state.iteration for state in states] == [1, 2, 3, 4]
    assert {state.noise for state in states} == {SAMPLING_NOISE}
    # Small groups: the most M-steps there are, of two rounds each.
    assert {state.sweeps for state in states} == {2.0 * MOST_UPDATES} == {40.0}
    # Blocks that can be held against each other are full after 18, 27, 41 and 62 M-steps.
    assert [state.change < 2.0 for state in states] == [False, False, False, True]
    assert np.isfinite([state.free_energy for state in states]).all()


def test_without_choice_the_energy_is_known():
    """One person, seen as they are: minus the log-probability under the parameters before."""
    hmm = HMM.categorical([0.2, 0.8], [[0.7, 0.3], [0.4, 0.6]], np.eye(2))
    state = next(
        sampling_steps(
            aggregate([[0, 1, 1]], 1, 2), hmm, fixed=("emission", "startprob", "transmat")
        )
    )
    assert state.free_energy == pytest.approx(-np.log(0.2 * 0.3 * 0.6))


def test_bad_input_is_refused():
    hmm = guess(8)
    with refused("unknown-part", "['means']"):
        next(sampling_steps(aggregate([[0, 1]], 1, 3), hmm, fixed=("means",)))
    with refused("not-whole-people"):
        next(sampling_steps(Aggregates.from_dense([[[0.5, 0.5, 0], [1.0, 0, 0]]]), hmm))
    stays = HMM.categorical([1.0, 0.0], np.eye(2), np.eye(2))
    with refused("observation-impossible", "sequence 0 at step 1", kind=UnreachableError):
        next(sampling_steps(aggregate([[0, 1]], 1, 2), stays, fixed=KNOWN))
