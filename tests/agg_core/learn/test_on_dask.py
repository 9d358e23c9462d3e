"""Learners on a Dask cluster learn the same as here, to the bit, whoever is killed meanwhile."""

import logging
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from distributed import LocalCluster
from scipy import sparse

from agg_core.base.dask_engine import OWN
from agg_core.base.engine import use_engine
from agg_core.base.moves import entries
from agg_core.counts.certainty import replicates
from agg_core.counts.choosing import DENSE, DRAWN, try_candidates
from agg_core.counts.rows import Strength
from agg_core.counts.worlds import movement_factor
from agg_core.learn.choosing import prior_steps
from agg_core.learn.learners import learn, learn_steps
from agg_core.learn.table import LEARNERS
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import HMM
from tests.agg_core.base import parts
from tests.agg_core.counts import made


@contextmanager
def on_two_workers():
    """An engine of two processes."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=OWN, silence_logs=logging.CRITICAL
        ) as cluster,
        use_engine(cluster.scheduler_address.replace("tcp://", "dask://")) as engine,
    ):
        yield engine


@pytest.fixture(scope="module")
def engine():
    with on_two_workers() as found:
        yield found


def groups(size=5, n=400, d=4):
    """People of a chain in groups, and where learning begins; the emission is known."""
    rng = np.random.default_rng(3)
    emission = 0.9 * np.eye(d) + 0.1 / d
    transmat = 0.6 * np.eye(d) + 0.4 * rng.dirichlet(np.ones(d), d)
    truth = HMM.categorical(np.full(d, 1 / d), transmat, emission / emission.sum(axis=1)[:, None])
    symbols, _ = truth.sample(n, 4, rng)
    start = HMM.categorical(truth.startprob, np.full((d, d), 1 / d), truth.emission.emissionprob)
    return aggregate(symbols, size, d, rng), start


def learned(name, engine=None, size=5, near=False):
    observed, start = groups(size)
    if near:
        start = replace(start, transmat=sparse.csr_array(start.transmat))
    return learn(
        observed, start, engine=engine, inference=name, fixed=("emission",), n_iter=3, tol=0.0,
        random_state=5,
    )  # fmt: skip


def assert_same(found, known):
    for mine, theirs in ((found[0].startprob, known[0].startprob),
                         (entries(found[0].transmat), entries(known[0].transmat)),
                         (found[1].history, known[1].history)):  # fmt: skip
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", [row.name for row in LEARNERS.own.values() if row.groups])
def test_a_learner_learns_the_same(engine, name):
    assert_same(learned(name, engine), learned(name))


@pytest.mark.parametrize("name", [row.name for row in LEARNERS.own.values() if row.near])
def test_sparse_transitions_are_learned_the_same(engine, name):
    assert_same(learned(name, engine, near=True), learned(name, near=True))


def test_single_people_tell_the_same(engine):
    assert_same(learned("cfb", engine, size=1), learned("cfb", size=1))


LEARNED = [row.name for row in LEARNERS.own.values() if row.groups and row.name != "auto"]


@pytest.mark.parametrize("name", LEARNED)
def test_a_worker_that_is_killed_at_work_changes_nothing(name):
    """On workers of its own: one that is killed before it has quite begun is not replaced."""
    known = learned(name)
    observed, start = groups()
    with on_two_workers() as engine:
        steps = learn_steps(
            observed, start, inference=name, fixed=("emission",), n_iter=3, tol=0.0, random_state=5
        )
        next(steps)
        (worker, *_) = engine.client.nthreads()
        engine.client.run(parts.die_of_the_next, workers=[worker])
        last = [state.hmm for state in steps][-1]
    np.testing.assert_array_equal(last.transmat, known[0].transmat)


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
def test_worlds_and_candidates_of_counts_are_the_same(engine, learner):
    rows = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])[None]
    pairs = made.moving_pairs(np.random.default_rng(7), rows, 6, 12)

    def found():
        worlds = list(replicates(pairs, rows[0], rows, learner, Strength(5.0), 4, random_state=1))
        factor = movement_factor(pairs, rows[0], rows, learner, Strength(5.0), random_state=1)
        trials = try_candidates(pairs, rows[0], time="one", random_state=1)
        return worlds, factor, [(trial.candidate, trial.scores) for trial in trials]

    here = found()
    with use_engine(engine):
        there = found()
    np.testing.assert_array_equal(there[0], here[0])
    assert there[1] == here[1]
    assert [candidate for candidate, _ in there[2]] == [candidate for candidate, _ in here[2]]
    for (_, mine), (_, theirs) in zip(there[2], here[2], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_prior_that_is_chosen_is_the_same_and_so_are_the_steps(engine):
    observed, start = groups(size=20)

    def found():
        steps = prior_steps(
            observed, start, inference="cavity", fixed=("emission",), random_state=0
        )
        energies = []
        while True:
            try:
                energies.append(next(steps).free_energy)
            except StopIteration as end:
                return energies, end.value

    here = found()
    with use_engine(engine):
        assert found() == here
