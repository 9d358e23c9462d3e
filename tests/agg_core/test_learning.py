import itertools
from dataclasses import replace

import numpy as np
import pytest

from agg_core.aggregates import aggregate
from agg_core.em import LearnState, em_steps
from agg_core.errors import InputError, UnreachableError
from agg_core.inference import INFERENCE
from agg_core.inference.pairs import least_squares
from agg_core.learning import ConvergenceMonitor, inference_named, learn
from agg_core.parameters import HMM
from agg_core.synthetic import random_hmm
from tests.agg_core import oracles

CFB = INFERENCE["cfb"]


def iterations(aggregates, model, n):
    """The first n states of EM."""
    steps = em_steps(aggregates, HMM.categorical(*model), inference=CFB)
    return list(itertools.islice(steps, n))


def assert_same(hmm, model, atol):
    found = hmm.startprob, hmm.transmat, hmm.emission.emissionprob
    for mine, expected in zip(found, model, strict=True):
        np.testing.assert_allclose(mine, expected, atol=atol, rtol=0)


def drawn(seed, n, length, d=3, n_symbols=3):
    """Symbols of n people who follow the paper's generator, and the model."""
    model = random_hmm(d, n_symbols, seed)
    return HMM.categorical(*model).sample(n, length, seed + 1000)[0], model


# ---------------------------------------------------------------- the end of a stream


def test_em_stops_for_an_honest_reason():
    symbols, truth = drawn(13, 100, 5)
    aggregates, hmm = aggregate(symbols, 1, 3), HMM.categorical(*truth)
    _, limit = learn(aggregates, hmm, inference="cfb", n_iter=3, tol=1e-12)
    assert (limit.reason, limit.converged, limit.iteration) == ("limit", False, 3)
    assert limit.change > 1e-12
    learned, converged = learn(aggregates, hmm, inference="cfb", n_iter=5000, tol=1e-5)
    assert (converged.reason, converged.converged) == ("converged", True)
    assert converged.change < 1e-5
    assert 3 < converged.iteration < 5000
    assert np.isfinite(converged.history).all()
    again, _ = learn(aggregates, learned, inference="cfb", n_iter=1, tol=0)
    assert_same(again, (learned.startprob, learned.transmat, learned.emission.emissionprob), 1e-4)
    kept, none = learn(aggregates, hmm, n_iter=0)
    assert kept is hmm
    assert (none.reason, none.history) == ("limit", [])


def test_the_monitor_by_hand():
    symbols, truth = drawn(14, 20, 3)
    states = iterations(aggregate(symbols, 1, 3), truth, 4)
    monitor = ConvergenceMonitor(tol=0.0, n_iter=3)
    assert monitor.reason == "running"
    assert [monitor.report(state) for state in states[:3]] == [False, False, True]
    assert monitor.history == [state.free_energy for state in states[:3]]
    at_the_last_moment = ConvergenceMonitor(tol=10.0, n_iter=1)
    assert at_the_last_moment.report(states[0])
    assert at_the_last_moment.converged


@pytest.mark.parametrize(
    ("tol", "noise", "n_unconverged", "reason"),
    [
        (1e-3, 0.0, 0, "running"),
        (1e-3, 0.05, 0, "converged"),
        (0.05, 0.0, 0, "converged"),
        (1e-3, 0.02, 0, "running"),
        (1e-3, 0.05, 1, "running"),
    ],
)
def test_what_cannot_be_told_from_noise_is_no_change(tol, noise, n_unconverged, reason):
    hmm = HMM.categorical(*random_hmm(2, 2, 0))
    state = LearnState(1, hmm, 10.0, 0.03, 0, 1.0, n_unconverged, noise)
    monitor = ConvergenceMonitor(tol=tol, n_iter=9)
    assert monitor.report(state) == (reason == "converged")
    assert monitor.reason == reason


def test_learners_by_name():
    assert inference_named("cfb") is CFB
    assert inference_named("auto") in INFERENCE.values()
    with pytest.raises(InputError, match="no learner called 'magic'; choose one of: auto, samp"):
        inference_named("magic")


# ---------------------------------------------------------------- the paper's experiment


@pytest.mark.parametrize("d", [3, 5])
def test_single_people_teach_most(d):
    """Figure 3: T = 5; the gap of held-out likelihood grows with M (emission known here)."""
    n, seeds, sizes = 1000, range(4), (1, 10, 50)
    gap = np.zeros((len(seeds), len(sizes)))
    for s in seeds:
        symbols, truth = drawn(100 * d + s, n, 5, d, d)
        test = aggregate(HMM.categorical(*truth).sample(n, 5, s)[0], 1, d)

        def nll(hmm, test=test):
            return CFB(hmm, test, hmm.emission.likelihoods(test)).free_energy / n

        guess = (*oracles.random_model(np.random.default_rng(s), d, d)[:2], truth[2])
        for m, size in enumerate(sizes):
            hmm, _ = learn(
                aggregate(symbols, size, d, s), HMM.categorical(*guess), inference="cfb",
                fixed=("emission",), n_iter=100, tol=1e-4,
            )  # fmt: skip
            gap[s, m] = nll(hmm) - nll(HMM.categorical(*truth))
    mean = gap.mean(axis=0)
    assert mean[0] < mean[1]
    assert mean[0] < mean[2]
    # Two of d (d - 1) + d - 1 free parameters, halved, over N: what the sample itself costs.
    assert mean[0] < 5 * (d * d - 1) / 2 / n


def test_a_fit_that_cannot_go_on_keeps_what_worked(monkeypatch):
    aggregates, model = tiny_groups()
    calls = itertools.count(1)

    def breaks_at_the_third(*things, **choices):
        if next(calls) == 3:
            raise UnreachableError("Nothing fits any more.")
        return CFB(*things, **choices)

    monkeypatch.setitem(INFERENCE, "cfb", breaks_at_the_third)
    hmm, monitor = learn(aggregates, HMM.categorical(*model), inference="cfb", n_iter=9)
    assert (monitor.reason, monitor.iteration, monitor.converged) == ("failed", 2, False)
    assert monitor.message == "Nothing fits any more."
    good = iterations(aggregates, model, 2)[-1].hmm
    np.testing.assert_array_equal(hmm.transmat, good.transmat)


def test_a_free_energy_that_is_no_number_is_a_failure(monkeypatch):
    aggregates, model = tiny_groups()

    def no_number(*things, **choices):
        return replace(CFB(*things, **choices), free_energy=np.nan)

    monkeypatch.setitem(INFERENCE, "cfb", no_number)
    hmm, monitor = learn(aggregates, HMM.categorical(*model), inference="cfb", n_iter=9)
    assert (monitor.reason, monitor.history) == ("failed", [])
    assert "no longer a number at iteration 1" in monitor.message
    np.testing.assert_array_equal(hmm.transmat, HMM.categorical(*model).transmat)


def test_a_start_that_explains_nothing_is_an_error():
    hmm = HMM.categorical([1.0, 0.0], np.eye(2), np.eye(2))
    with pytest.raises(UnreachableError):
        learn(aggregate([[0, 1]], 1, 2), hmm, inference="cfb")


def test_least_squares_is_a_learner_like_the_others():
    aggregates, model = tiny_groups()
    hmm = HMM.categorical(*model)
    found, monitor = learn(aggregates, hmm, inference="moments", fixed=("emission",), tol=1e-9)
    startprob, transmat = least_squares(aggregates, hmm, n_iter=100, tol=1e-9)
    np.testing.assert_allclose(found.transmat, transmat, atol=1e-6)
    np.testing.assert_allclose(found.startprob, startprob, atol=1e-12)
    assert found.emission is hmm.emission
    assert (np.diff(monitor.history) <= 1e-12).all()
    with pytest.raises(InputError, match="moments learns startprob and transmat only"):
        learn(aggregates, hmm, inference="moments")


def test_the_noise_map_is_one_of_two():
    with pytest.raises(InputError, match="noise_map must be one of emission, identity"):
        inference_named("cfb", "none")


def tiny_groups():
    model = oracles.random_model(np.random.default_rng(3), 2, 3)
    people = HMM.categorical(*model).sample(200, 3, 3)[0]
    return aggregate(people, 4, 3, 3), model
