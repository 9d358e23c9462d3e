import itertools
from dataclasses import replace

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from agg_core.base.errors import UnreachableError
from agg_core.learn.em import SLACK, accelerated_em_steps, em_steps
from agg_core.learn.esteps.cavity import cavity_forward_backward
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.mstep import PARTS, Pull
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

CFB = collective_forward_backward
TIGHT = {"inference": CFB, "sweep_tol": 1e-13, "max_sweeps": 50_000}


def iterations(aggregates, model, n, **choices):
    """The first n states of EM."""
    choices = {**TIGHT, **choices}
    return list(itertools.islice(em_steps(aggregates, HMM.categorical(*model), **choices), n))


def parts(hmm):
    return hmm.startprob, hmm.transmat, hmm.emission.emissionprob


def assert_same(hmm, model, atol=1e-8):
    for found, expected in zip(parts(hmm), model, strict=True):
        np.testing.assert_allclose(found, expected, atol=atol, rtol=0)


def drawn(seed, n, length, d=3, n_symbols=3):
    """Symbols of n people who follow the paper's generator, and the model."""
    model = random_hmm(d, n_symbols, seed)
    return HMM.categorical(*model).sample(n, length, seed + 1000)[0], model


# ---------------------------------------------------------------- M = 1 is Baum-Welch


def baum_welch(symbols, model, n_iter, params):
    peer = CategoricalHMM(
        len(model[0]), n_features=model[2].shape[1], n_iter=n_iter, tol=-np.inf,
        params=params, init_params="",
    )  # fmt: skip
    peer.startprob_, peer.transmat_, peer.emissionprob_ = (part.copy() for part in model)
    return peer.fit(symbols.reshape(-1, 1), [symbols.shape[1]] * len(symbols))


@pytest.mark.parametrize(
    ("params", "fixed"), [("ste", ()), ("st", ("emission",)), ("t", ("startprob", "emission"))]
)
@pytest.mark.parametrize("n_iter", [1, 2, 12])
def test_one_person_a_group_is_baum_welch(params, fixed, n_iter):
    symbols, _ = drawn(1, 60, 6, 3, 4)
    start = oracles.random_model(np.random.default_rng(2), 3, 4)
    peer = baum_welch(symbols, start, n_iter, params)
    states = iterations(aggregate(symbols, 1, 4), start, n_iter, fixed=fixed)
    assert_same(states[-1].hmm, (peer.startprob_, peer.transmat_, peer.emissionprob_))
    energies = [-state.free_energy for state in states]
    np.testing.assert_allclose(energies, list(peer.monitor_.history)[-n_iter:], rtol=1e-12)
    assert all(state.expected.sweeps == 1 for state in states)


def test_one_long_sequence_is_baum_welch():
    symbols, _ = drawn(3, 1, 200, 3, 4)
    start = oracles.random_model(np.random.default_rng(4), 3, 4)
    peer = baum_welch(symbols, start, 20, "ste")
    assert_same(iterations(aggregate(symbols, 1, 4), start, 20)[-1].hmm,
                (peer.startprob_, peer.transmat_, peer.emissionprob_))  # fmt: skip


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize("size", [2, 4])
def test_em_on_groups_equals_em_on_whole_paths(size):
    rng = np.random.default_rng(size)
    truth, model = oracles.random_model(rng, 2, 3), oracles.random_model(rng, 2, 3)
    groups = [oracles.random_histograms(rng, truth, size, 3) for _ in range(4)]
    states = iterations(Aggregates.from_dense(groups), model, 4)
    for state in states:
        counts = [oracles.collective_counts(model, group) for group in groups]
        total = sum(counts[1:], counts[0])
        assert state.free_energy == pytest.approx(total.free_energy, abs=1e-8)
        model = oracles.maximised(total, model)
        assert_same(state.hmm, model)


def test_groups_of_unequal_size_weigh_by_their_people():
    """The printed 1/K would give a group of 1 the weight of a group of 30."""
    rng = np.random.default_rng(7)
    truth, model = oracles.random_model(rng, 3, 3), oracles.random_model(rng, 3, 3)
    groups = [oracles.random_histograms(rng, truth, size, 3) for size in (1, 4, 30)]
    counts = [oracles.collective_counts(model, group) for group in groups]
    (state,) = iterations(Aggregates.from_dense(groups), model, 1)
    by_hand = sum(counts[1:], counts[0])
    assert by_hand.start.sum() == pytest.approx(35)
    assert_same(state.hmm, oracles.maximised(by_hand, model))
    equal = sum(c.start / c.start.sum() for c in counts) / 3
    assert np.abs(equal - state.hmm.startprob).max() > 0.01


@pytest.mark.parametrize("size", [1, 2, 5, 25, 100])
@pytest.mark.parametrize("fixed", [(), ("emission",), ("startprob",), ("transmat",)])
def test_free_energy_never_rises(size, fixed):
    symbols, truth = drawn(size, 100, 5, 4, 4)
    model = list(oracles.random_model(np.random.default_rng(size), 4, 4))
    for part in fixed:
        model[PARTS.index(part)] = truth[PARTS.index(part)]
    states = iterations(aggregate(symbols, size, 4, 0), model, 30, fixed=fixed, sweep_tol=1e-11)
    energy = np.array([state.free_energy for state in states])
    assert (np.diff(energy) <= 1e-9 * np.abs(energy[0])).all()
    assert energy[-1] < energy[0]
    assert all(state.expected.n_unconverged == 0 for state in states)
    for part in fixed:
        at = PARTS.index(part)
        np.testing.assert_array_equal(parts(states[-1].hmm)[at], parts(HMM.categorical(*model))[at])


@pytest.mark.parametrize("size", [1, 6])
def test_every_sequence_twice_changes_nothing_learned(size):
    symbols, _ = drawn(9, 30, 4)
    model = oracles.random_model(np.random.default_rng(9), 3, 3)
    dense = aggregate(symbols, size, 3, 0).to_dense()
    once = iterations(Aggregates.from_dense(dense), model, 6)
    twice = iterations(Aggregates.from_dense(np.concatenate([dense, dense])), model, 6)
    assert_same(twice[-1].hmm, parts(once[-1].hmm), 1e-9)
    assert twice[-1].free_energy == pytest.approx(2 * once[-1].free_energy, rel=1e-9)
    np.testing.assert_allclose(
        twice[-1].expected.transitions, 2 * once[-1].expected.transitions, rtol=1e-7, atol=1e-9
    )


def test_warm_messages_do_not_change_where_em_goes():
    symbols, _ = drawn(10, 60, 5)
    model = oracles.random_model(np.random.default_rng(10), 3, 3)
    aggregates = aggregate(symbols, 10, 3, 0)
    states = iterations(aggregates, model, 8, sweep_tol=1e-12)
    hmm = HMM.categorical(*model)
    for state in states:
        cold = CFB(
            hmm, aggregates, hmm.emission.likelihoods(aggregates),
            tol=1e-12, max_sweeps=50_000, with_emission=True,
        )  # fmt: skip
        np.testing.assert_allclose(state.expected.transitions, cold.transitions, atol=1e-7)
        hmm = state.hmm
    assert states[-1].expected.sweeps < cold.sweeps


def test_ordinary_sweeps_end_where_tight_ones_do():
    symbols, truth = drawn(11, 300, 5)
    model = (*oracles.random_model(np.random.default_rng(11), 3, 3)[:2], truth[2])
    aggregates = aggregate(symbols, 10, 3, 0)
    tight = iterations(aggregates, model, 60, fixed=("emission",), sweep_tol=1e-10)
    plain = itertools.islice(
        em_steps(aggregates, HMM.categorical(*model), inference=CFB, fixed=("emission",)), 60
    )
    assert_same(list(plain)[-1].hmm, parts(tight[-1].hmm), 2e-3)


# ---------------------------------------------------------------- zeros and empty rows


def test_structural_zeros_stay():
    start = np.array([0.5, 0.5, 0.0])
    trans = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]])
    emit = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7]])
    symbols = HMM.categorical(start, trans, emit).sample(40, 4, 0)[0]
    for size in (1, 8):
        state = iterations(aggregate(symbols, size, 3, 0), (start, trans, emit), 10)[-1]
        for found, given in zip(parts(state.hmm), (start, trans, emit), strict=True):
            assert (found[given == 0] == 0).all()
            np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-12)
        assert state.n_empty == 0


def test_rows_that_nobody_is_in_keep_their_value_and_are_counted():
    start = np.array([0.5, 0.5, 0.0, 0.0])
    trans = np.array(
        [[0.6, 0.4, 0, 0], [0.3, 0.7, 0, 0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]
    )
    emit = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.3, 0.7]])
    for size in (1, 3):
        aggregates = aggregate([[0, 1, 1], [1, 0, 1], [0, 0, 1]], size, 2, 0)
        state = iterations(aggregates, (start, trans, emit), 3)[-1]
        assert state.n_empty == 2
        np.testing.assert_array_equal(state.hmm.transmat[2:], trans[2:])
        np.testing.assert_array_equal(state.hmm.emission.emissionprob[2:], emit[2:])


def test_one_step_leaves_the_transitions_alone():
    model = oracles.random_model(np.random.default_rng(0), 2, 2)
    state = iterations(aggregate([[0], [1], [1]], 1, 2), model, 5)[-1]
    np.testing.assert_allclose(state.hmm.transmat, model[1], atol=1e-15)
    assert state.n_empty == 0


# ---------------------------------------------------------------- the stream


@pytest.mark.parametrize("only", [*PARTS, None])
def test_change_is_the_largest_move_of_a_part(only):
    symbols, _ = drawn(12, 50, 4)
    model = oracles.random_model(np.random.default_rng(12), 3, 3)
    fixed = [part for part in PARTS if only not in (part, None)]
    aggregates, hmm = aggregate(symbols, 5, 3, 0), HMM.categorical(*model)
    for number, state in enumerate(iterations(aggregates, model, 3, fixed=fixed), start=1):
        people = state.expected.transitions.sum(axis=1)
        before, after = parts(hmm), parts(state.hmm)
        gaps = [np.abs(a - b).sum(axis=-1) for a, b in zip(before, after, strict=True)]
        expected = max(gaps[0], np.average(gaps[1], weights=people), gaps[2].mean())
        assert state.change == pytest.approx(expected, rel=1e-12)
        assert expected > 0
        assert state.iteration == number
        hmm = state.hmm


def test_unknown_parts_are_refused():
    with refused("unknown-part", "['transitions']"):
        iterations(aggregate([[0, 1]], 1, 2), random_hmm(2, 2, 0), 1, fixed=("transitions",))


# ---------------------------------------------------------------- leaps


def blurred(d):
    return 0.8 * np.eye(d) + 0.2 / d


def hidden_moves(size, n_groups, seed=0):
    """Groups of people who are seen through a blur, and a start that is not the truth."""
    start, trans, _ = random_hmm(3, 3, seed)
    people = HMM.categorical(start, trans, blurred(3)).sample(size * n_groups, 3, seed)[0]
    guess = oracles.random_model(np.random.default_rng(seed + 9), 3, 3)
    return aggregate(people, size, 3, seed + 1), (*guess[:2], blurred(3))


def gap(hmm, other):
    """Largest L1 distance of start, transitions (mean of rows) and emission (mean of rows)."""
    return max(
        np.abs(a - b).sum(axis=-1).mean() for a, b in zip(parts(hmm), parts(other), strict=True)
    )


def leaping(aggregates, model, n, **choices):
    choices = {**TIGHT, "sweep_tol": 1e-10, **choices}
    steps = accelerated_em_steps(aggregates, HMM.categorical(*model), **choices)
    return list(itertools.islice(steps, n))


def first_near(states, end, within=1e-4):
    return next(s.iteration for s in states if gap(s.hmm, end) < within)


@pytest.fixture(scope="module", params=[CFB, cavity_forward_backward])
def race(request):
    """Plain EM and EM with leaps from one start, both to their end."""
    aggregates, model = hidden_moves(20, 60, 5)
    choices = {"inference": request.param, "fixed": ("emission",), "sweep_tol": 1e-9}
    leaps = leaping(aggregates, model, 180, **choices)
    after = iterations(aggregates, parts(leaps[-1].hmm), 1, **choices)[0]
    return iterations(aggregates, model, 450, **choices), leaps, after


def test_leaps_end_where_plain_em_ends(race):
    """Plain EM is on its way to the same place, and does not leave it."""
    plain, leaps, after = race
    end = leaps[-1].hmm
    assert gap(after.hmm, end) < 1e-8
    far, near = gap(plain[300].hmm, end), gap(plain[-1].hmm, end)
    assert near < 1e-4
    assert near < far / 3
    assert leaps[-1].free_energy == pytest.approx(plain[-1].free_energy, rel=1e-7)


def test_leaps_need_far_fewer_iterations(race):
    plain, leaps, _ = race
    end = leaps[-1].hmm
    assert first_near(leaps, end) < first_near(plain, end) / 3


def test_leaps_never_raise_the_free_energy(race):
    energy = np.array([state.free_energy for state in race[1]])
    assert (np.diff(energy) <= SLACK * np.abs(energy[:-1])).all()
    assert [state.iteration for state in race[1]] == list(range(1, len(energy) + 1))


def test_change_is_how_far_it_still_is(race):
    """Never much too hopeful; after a good leap, by design, too careful for a while."""
    plain, leaps, _ = race
    end = leaps[-1].hmm
    ratio = np.array(
        [
            state.change / distance
            for state in leaps
            if 1e-6 < (distance := gap(state.hmm, end)) < 5e-3
        ]
    )
    assert len(ratio) > 15
    assert ratio.min() > 0.25
    assert 0.6 < np.median(ratio) < 3
    # The length of the last step of plain EM says far too little.
    late = next(s for s in plain if gap(s.hmm, end) < 1e-3)
    assert late.change < 0.1 * gap(late.hmm, end)


def test_nothing_is_known_of_the_distance_before_two_steps():
    aggregates, model = hidden_moves(5, 10)
    first, second, *_ = leaping(aggregates, model, 3, fixed=("emission",))
    one, two = iterations(aggregates, model, 2, fixed=("emission",))
    assert first.change == 2.0
    rate = two.change / one.change
    assert second.change == pytest.approx(two.change / (1 - rate), rel=1e-6)
    assert_same(second.hmm, parts(two.hmm), 1e-9)


def uphill_leaps():
    """An E-step whose free energy at every leap (the third of three) is said to be too high."""
    calls = itertools.count(1)

    def inference(*things, **choices):
        found = CFB(*things, **choices)
        leap = next(calls) % 3 == 0
        return replace(found, free_energy=np.abs(found.free_energy) * 2) if leap else found

    return inference


def impossible_leaps():
    """An E-step that fails at every leap."""
    calls = itertools.count(1)

    def inference(*things, **choices):
        if next(calls) % 3 == 0:
            raise UnreachableError("Nothing fits.")
        return CFB(*things, **choices)

    return inference


@pytest.mark.parametrize("inference", [uphill_leaps(), impossible_leaps()])
def test_a_leap_that_fails_is_not_taken(inference):
    """Every third iteration is lost, and the others are plain EM."""
    aggregates, model = hidden_moves(20, 30)
    states = leaping(aggregates, model, 12, inference=inference, fixed=("emission",))
    plain = iterations(aggregates, model, 8, fixed=("emission",))
    taken = [state for state in states if state.iteration % 3]
    for found, expected in zip(taken, plain, strict=True):
        assert_same(found.hmm, parts(expected.hmm), 1e-7)
    for lost, before in zip(states[2::3], states[1::3], strict=True):
        assert lost.hmm is before.hmm
        assert lost.free_energy == before.free_energy
    assert [state.iteration for state in states] == list(range(1, 13))


@pytest.mark.parametrize("size", [1, 6])
def test_leaps_with_a_learned_emission(size):
    symbols, _ = drawn(21, 120, 5)
    model = oracles.random_model(np.random.default_rng(21), 3, 3)
    aggregates = aggregate(symbols, size, 3, 0)
    leaps = leaping(aggregates, model, 60)
    energy = np.array([state.free_energy for state in leaps])
    assert (np.diff(energy) <= SLACK * np.abs(energy[:-1])).all()
    plain = iterations(aggregates, model, 60, sweep_tol=1e-10)
    assert energy[-1] < plain[-1].free_energy
    for part in parts(leaps[-1].hmm):
        np.testing.assert_allclose(part.sum(axis=-1), 1, atol=1e-12)
        assert (part >= 0).all()


@pytest.mark.parametrize("covariance_type", ["full", "fixed"])
def test_leaps_with_learned_places(covariance_type):
    truth = HMM.gaussian([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], [[0.0], [3.0]], [1.0, 1.0])
    aggregates = aggregate_points(truth.sample(120, 4, 0)[0], 4, 0)
    hmm = HMM.gaussian(
        [0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], [[0.5], [1.5]], [1.0, 1.0], covariance_type
    )
    choices = {**TIGHT, "sweep_tol": 1e-9}
    leaps = list(itertools.islice(accelerated_em_steps(aggregates, hmm, **choices), 45))
    plain = list(itertools.islice(em_steps(aggregates, hmm, **choices), 150))
    energy = np.array([state.free_energy for state in leaps])
    assert (np.diff(energy) <= SLACK * np.abs(energy[:-1])).all()
    assert energy[-1] == pytest.approx(plain[-1].free_energy, rel=1e-6)
    np.testing.assert_allclose(
        leaps[-1].hmm.emission.means, plain[-1].hmm.emission.means, atol=5e-3
    )
    if covariance_type == "fixed":
        np.testing.assert_array_equal(leaps[-1].hmm.emission.covars, hmm.emission.covars)


def test_leaps_keep_zeros_and_fixed_parts():
    start = np.array([0.5, 0.5, 0.0])
    trans = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]])
    symbols = HMM.categorical(start, trans, blurred(3)).sample(60, 4, 0)[0]
    states = leaping(
        aggregate(symbols, 10, 3, 0), (start, trans, blurred(3)), 30, fixed=("emission",)
    )
    last = states[-1].hmm
    np.testing.assert_array_equal(last.transmat == 0, trans == 0)
    np.testing.assert_array_equal(last.startprob == 0, start == 0)
    np.testing.assert_array_equal(last.emission.emissionprob, blurred(3))
    only_start = leaping(
        aggregate(symbols, 10, 3, 0), (start, trans, blurred(3)), 9, fixed=("emission", "transmat")
    )
    np.testing.assert_array_equal(only_start[-1].hmm.transmat, trans)


def test_unknown_parts_are_refused_with_leaps():
    with refused("unknown-part", "['all']"):
        leaping(aggregate([[0, 1]], 1, 2), random_hmm(2, 2, 0), 1, fixed=("all",))


# ---------------------------------------------------------------- people who pull


@pytest.mark.parametrize("steps", [em_steps, accelerated_em_steps])
def test_a_pull_adds_its_people_to_every_row(steps):
    aggregates, model = hidden_moves(5, 10)
    hmm = HMM.categorical(*model)
    pull = Pull(hmm.transmat, 7.0)
    state = next(steps(aggregates, hmm, fixed=("emission",), pull=pull, **TIGHT))
    counts = state.expected.transitions
    rows = (counts + pull.pseudo_counts(counts)) / (counts.sum(axis=1, keepdims=True) + 7.0)
    np.testing.assert_allclose(state.hmm.transmat, rows, atol=1e-12)
    without = next(steps(aggregates, hmm, fixed=("emission",), **TIGHT))
    assert np.abs(without.hmm.transmat - rows).max() > 1e-3
