import itertools

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from agg_core.aggregates import Aggregates, aggregate
from agg_core.em import em_steps
from agg_core.errors import InputError
from agg_core.inference import INFERENCE
from agg_core.mstep import PARTS
from agg_core.parameters import HMM
from agg_core.synthetic import random_hmm
from tests.agg_core import oracles

CFB = INFERENCE["cfb"]
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
    with pytest.raises(InputError, match=r"fixed names \['transitions'\]"):
        iterations(aggregate([[0, 1]], 1, 2), random_hmm(2, 2, 0), 1, fixed=("transitions",))
