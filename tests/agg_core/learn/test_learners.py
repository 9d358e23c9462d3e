import itertools
from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.errors import UnreachableError
from agg_core.learn.em import LearnState, em_steps
from agg_core.learn.esteps.cavity import cavity_forward_backward
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.esteps.gaussian_pairs import gaussian_pairs_steps
from agg_core.learn.esteps.pairs import least_squares
from agg_core.learn.estimator import AggregateHMM
from agg_core.learn.learners import (
    Choice,
    ConvergenceMonitor,
    choose_learner,
    inference_named,
    learn,
    learner_steps,
    log_likelihood,
)
from agg_core.learn.mstep import Pull
from agg_core.learn.saem import sampling_steps
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM
from agg_core.study.settings import LearnSettings
from tests.agg_core import oracles
from tests.faults import refused
from tests.threads import in_two_threads

CFB = collective_forward_backward
CFB_PLACE = "agg_core.learn.esteps.cfb.collective_forward_backward"


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
    state = LearnState(
        iteration=1, hmm=hmm, free_energy=10.0, change=0.03, n_empty=0, sweeps=1.0,
        n_unconverged=n_unconverged, noise=noise,
    )  # fmt: skip
    monitor = ConvergenceMonitor(tol=tol, n_iter=9)
    assert monitor.report(state) == (reason == "converged")
    assert monitor.reason == reason


def test_learners_by_name():
    assert inference_named("cfb") is CFB
    assert inference_named("auto") is cavity_forward_backward
    with refused("unknown-learner", "'magic'; choose one of: auto, samp"):
        inference_named("magic")


# ---------------------------------------------------------------- the best for the data


def sticky(stay, d=5):
    """People who stay with this chance or go to any other cell, seen without noise."""
    transmat = np.full((d, d), (1 - stay) / (d - 1))
    np.fill_diagonal(transmat, stay)
    return HMM.categorical(np.full(d, 1 / d), transmat, np.eye(d))


def taken(aggregates, hmm, name="auto", fixed=("emission",)):
    return choose_learner(name, aggregates, hmm, fixed=fixed)


def test_single_people_are_learned_from_exactly():
    singles = aggregate(sticky(0.8).sample(50, 3, 0)[0], 1, 5)
    assert taken(singles, sticky(0.8)) == Choice(
        "cfb", "single people hide nothing, so the likelihood is exact"
    )


@pytest.mark.parametrize(
    ("size", "n", "learner", "warm"),
    [
        (2, 200, "sampling", True),  # 2 people in 5 cells: 1.1 per occupied one
        (20, 4_000, "sampling", True),
        (100, 10_000, "gaussian_pairs", False),
        (100, 1_000, "sampling", False),  # ten groups: too few pairs of steps
    ],
)
def test_crowded_cells_are_left_to_gaussian_pairs(size, n, learner, warm):
    groups = aggregate(sticky(0.8).sample(n, 2, 0)[0], size, 5, 1)
    choice = taken(groups, sticky(0.8))
    assert (choice.learner, choice.warm) == (learner, warm)
    assert f"{groups.count.mean():.0f}" in choice.reason


def test_what_gaussian_pairs_cannot_learn_is_sampled():
    groups = aggregate(sticky(0.8).sample(10_000, 2, 0)[0], 100, 5, 1)
    assert taken(groups, sticky(0.8), fixed=()).learner == "sampling"
    places = Aggregates.from_samples(np.random.default_rng(0).normal(size=(20, 3, 30, 2)))
    gaussian = HMM.gaussian([0.5, 0.5], np.full((2, 2), 0.5), np.eye(2), np.ones(2))
    assert taken(places, gaussian) == replace(taken(places, gaussian), learner="sampling")


def test_parts_of_people_are_not_sampled():
    groups = Aggregates.from_dense([[[1.5, 0.5], [1.0, 1.0]]])
    choice = taken(groups, HMM.categorical([0.5, 0.5], np.full((2, 2), 0.5), np.eye(2)))
    assert choice.learner == "cavity"
    assert "whole people" in choice.reason


def test_a_name_is_taken_at_its_word():
    groups = aggregate(sticky(0.8).sample(40, 2, 0)[0], 4, 5, 1)
    assert taken(groups, sticky(0.8), "cfb").learner == "cfb"
    with refused("unknown-learner", "'magic'"):
        taken(groups, sticky(0.8), "magic")


def test_sampling_goes_on_from_gaussian_pairs():
    """Groups of 20 hide all but a twentieth: without that start the first steps lead nowhere."""
    symbols, states = sticky(0.8).sample(8_000, 2, 3)
    groups = aggregate(symbols, 20, 5, 4)
    truth = (states[:, 0] != states[:, 1]).mean()

    def moves(name):
        state = next(learner_steps(name, groups, sticky(0.4), fixed=("emission",), random_state=0))
        return state.hmm.startprob @ (1 - np.diagonal(state.hmm.transmat)) / truth

    assert moves("auto") == pytest.approx(1, abs=0.15)
    assert moves("sampling") > 1.5


@pytest.mark.parametrize("size", [1, 4])
def test_the_log_likelihood_of_groups_is_that_of_their_counts(size):
    """Against all that the people of a group may have done."""
    rng = np.random.default_rng(size)
    model = oracles.random_model(rng, 2, 2)
    groups = [oracles.random_histograms(rng, model, size, 3) for _ in range(4)]
    exact = -sum(oracles.group_counts(model, group).free_energy for group in groups)
    found = log_likelihood(HMM.categorical(*model), Aggregates.from_dense(groups))
    assert found == pytest.approx(exact, abs=1e-10 if size == 1 else 0.1)


def test_a_learner_without_an_e_step_cannot_be_calibrated():
    groups = aggregate(sticky(0.8).sample(40, 2, 0)[0], 4, 5, 1)
    with refused("learner-not-calibrated", "gaussian_pairs"):
        learn(groups, sticky(0.8), inference="gaussian_pairs", fixed=("emission",), calibrate=1)


def test_learners_of_papers_have_no_prior():
    groups = aggregate(sticky(0.8).sample(40, 2, 0)[0], 4, 5, 1)
    for name, pulled in (("cfb", False), ("least_squares", False), ("cavity", True)):
        free, held = (
            next(learner_steps(name, groups, sticky(0.5), fixed=("emission",), prior=prior))
            for prior in (0.0, 100.0)
        )
        moved = np.abs(free.hmm.transmat - held.hmm.transmat).max()
        assert (moved > 1e-3) == pulled, name


@pytest.mark.parametrize("name", ["sampling", "cavity", "gaussian_pairs"])
@pytest.mark.parametrize("consumer", ["learner_steps", "AggregateHMM", "settings"])
def test_the_prior_is_the_same_wherever_a_learner_is_called(name, consumer):
    groups, start = aggregate(sticky(0.8).sample(40, 2, 0)[0], 4, 5, 1), sticky(0.5)

    def first(**prior):
        if consumer == "AggregateHMM":
            init = {"startprob": start.startprob, "transmat": start.transmat}
            init["emissionprob"] = start.emission.emissionprob
            model = AggregateHMM(
                5, inference=name, n_iter=1, fixed=("emission",), init=init, random_state=3, **prior
            )
            return model.fit(groups).transmat_
        if consumer == "settings":
            prior = {"prior": LearnSettings(**prior).prior}
        steps = learner_steps(name, groups, start, fixed=("emission",), random_state=3, **prior)
        return next(steps).hmm.transmat

    np.testing.assert_array_equal(first(), first(prior=2.0))
    assert np.abs(first() - first(prior=1.0)).max() > 1e-4


@pytest.mark.parametrize("prior", [0.0, 2.0, 50.0])
def test_the_prior_pulls_the_warm_start_too(prior):
    """Sampling goes on from where Gaussian pairs come to under the same prior."""
    groups, start = aggregate(sticky(0.8).sample(600, 2, 0)[0], 6, 5, 1), sticky(0.5)
    choice = choose_learner("auto", groups, start, fixed=("emission",))
    assert (choice.learner, choice.warm) == ("sampling", True)

    def pairs():
        steps = gaussian_pairs_steps(groups, start, fixed=("emission",), prior=prior)
        for state in itertools.islice(steps, 8):
            yield state
            if state.change < 1e-3:
                return

    came = list(pairs())[-1]
    by_hand = HMM(
        0.95 * came.startprob + 0.05 * start.startprob,
        0.95 * came.transmat + 0.05 * start.transmat,
        start.emission,
    )
    went_on = sampling_steps(
        groups, by_hand, fixed=("emission",), pull=Pull(start.transmat, prior), random_state=7
    )
    found = learner_steps("auto", groups, start, fixed=("emission",), prior=prior, random_state=7)
    np.testing.assert_array_equal(next(found).hmm.transmat, next(went_on).hmm.transmat)


KERNELS = ("cavity", "cfb", "gaussian_pairs", "nlbp", "bethe_rda", "prox")
"""Learners whose kernels have threads."""


def learned_by_kernels():
    """A few iterations of each on 50 groups."""
    groups, start = aggregate(sticky(0.8).sample(600, 3, 0)[0], 12, 5, 1), sticky(0.5)
    found = []
    for name in KERNELS:
        hmm, monitor = learn(groups, start, inference=name, fixed=("emission",), n_iter=3, tol=0)
        found.append(np.r_[hmm.startprob, hmm.transmat.ravel(), monitor.history])
    return found


def test_what_is_learned_does_not_hang_on_the_number_of_threads():
    np.testing.assert_array_equal(learned_by_kernels(), in_two_threads(learned_by_kernels))


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

    monkeypatch.setattr(CFB_PLACE, breaks_at_the_third)
    hmm, monitor = learn(aggregates, HMM.categorical(*model), inference="cfb", n_iter=9)
    assert (monitor.reason, monitor.iteration, monitor.converged) == ("failed", 2, False)
    assert monitor.message == "Nothing fits any more."
    good = iterations(aggregates, model, 2)[-1].hmm
    np.testing.assert_array_equal(hmm.transmat, good.transmat)


def test_a_free_energy_that_is_no_number_is_a_failure(monkeypatch):
    aggregates, model = tiny_groups()

    def no_number(*things, **choices):
        return replace(CFB(*things, **choices), free_energy=np.nan)

    monkeypatch.setattr(CFB_PLACE, no_number)
    hmm, monitor = learn(aggregates, HMM.categorical(*model), inference="cfb", n_iter=9)
    assert (monitor.reason, monitor.history) == ("failed", [])
    assert "no longer a number at iteration 1" in monitor.message
    np.testing.assert_array_equal(hmm.transmat, HMM.categorical(*model).transmat)


def test_a_start_that_explains_nothing_is_an_error():
    hmm = HMM.categorical([1.0, 0.0], np.eye(2), np.eye(2))
    with refused("observation-impossible", kind=UnreachableError):
        learn(aggregate([[0, 1]], 1, 2), hmm, inference="cfb")


def test_least_squares_is_a_learner_like_the_others():
    aggregates, model = tiny_groups()
    hmm = HMM.categorical(*model)
    found, monitor = learn(
        aggregates, hmm, inference="least_squares", fixed=("emission",), tol=1e-9
    )
    startprob, transmat = least_squares(aggregates, hmm, n_iter=100, tol=1e-9)
    np.testing.assert_allclose(found.transmat, transmat, atol=1e-6)
    np.testing.assert_allclose(found.startprob, startprob, atol=1e-12)
    assert found.emission is hmm.emission
    assert (np.diff(monitor.history) <= 1e-12).all()
    with refused("emission-not-fixed", "least_squares"):
        learn(aggregates, hmm, inference="least_squares")


def test_the_noise_map_is_one_of_two():
    with refused("not-a-choice", "noise_map"):
        inference_named("cfb", "none")


def tiny_groups():
    model = oracles.random_model(np.random.default_rng(3), 2, 3)
    people = HMM.categorical(*model).sample(200, 3, 3)[0]
    return aggregate(people, 4, 3, 3), model
