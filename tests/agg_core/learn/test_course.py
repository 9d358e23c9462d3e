"""Fits that were stopped: what they go on to is, to the bit, what they would have come to."""

from itertools import islice

import numpy as np
import pytest

from agg_core.base import checkpoints as kept_by
from agg_core.base.checkpoints import Checkpoints
from agg_core.base.moves import entries
from agg_core.learn.estimator import AggregateHMM
from agg_core.learn.learners import learn_steps
from agg_core.learn.table import LEARNERS
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM
from tests.agg_core.learn.test_near import NEAR

D = 5
CHECKPOINTED = [
    name for name, learner in LEARNERS.items() if learner.checkpointed or not learner.steps
]


def model():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(D), D) * 0.4 + 0.6 * np.eye(D)
    return HMM(
        np.full(D, 1 / D), rows, CategoricalEmission(np.full((D, D), 0.02) + 0.9 * np.eye(D))
    )


def groups(hmm, size):
    observations, _ = hmm.sample(240, 4, 1)
    return aggregate(observations, size, hmm.n_states, np.random.default_rng(2))


@pytest.fixture(autouse=True)
def every_iteration(monkeypatch):
    """Every iteration is kept, however long writing takes."""
    monkeypatch.setattr(kept_by, "SHARE", 0.0)


def outcome(steps):
    states = []
    while True:
        try:
            states.append(next(steps))
        except StopIteration as end:
            return states, *end.value


def assert_same(hmm, other):
    np.testing.assert_array_equal(hmm.startprob, other.startprob)
    np.testing.assert_array_equal(entries(hmm.transmat), entries(other.transmat))
    np.testing.assert_array_equal(hmm.emission.values, other.emission.values)


CASES = [
    *((name, 6, {}) for name in CHECKPOINTED),
    ("cfb", 1, {}),
    ("cfb", 6, {"calibrate": 2}),
    ("cavity", 6, {"calibrate": 1}),
    ("cavity", 6, {"fixed": ()}),
    ("sampling", 6, {"fixed": ()}),
]


@pytest.mark.parametrize(("name", "size", "choices"), CASES)
@pytest.mark.parametrize("stop", [1, 4, 7, 11])
def test_a_fit_goes_on_as_if_it_had_not_stopped(tmp_path, name, size, choices, stop):
    if size > 1 and not LEARNERS[name].groups:
        pytest.skip("a learner of single people")
    hmm = model()
    observed = groups(hmm, size)
    start = HMM(hmm.startprob, np.full((D, D), 1 / D), hmm.emission)
    told = {
        "inference": name, "n_iter": 12, "tol": 0.0, "fixed": ("emission",), "random_state": 3,
        **choices,
    }  # fmt: skip
    states, whole, monitor = outcome(learn_steps(observed, start, **told))
    known = (start, start.emission)

    def course():
        return Checkpoints(tmp_path / "checkpoint").course("fit", known)

    list(islice(learn_steps(observed, start, course=course(), **told), stop))
    gone_on, found, monitor_then = outcome(learn_steps(observed, start, course=course(), **told))
    assert_same(found, whole)
    assert monitor_then.history == monitor.history
    assert monitor_then.reason == monitor.reason
    assert monitor_then.change == monitor.change
    # Leaps stand three iterations; nothing else is done twice.
    assert len(gone_on) <= len(states) - stop + 4
    if states[-1].of_people is not None:
        assert_same(gone_on[-1].of_people, states[-1].of_people)
    # Nor is a fit that has ended gone on with.
    again, found, _ = outcome(learn_steps(observed, start, course=course(), **told))
    assert len(again) <= 4
    assert_same(found, whole)


@pytest.mark.parametrize("name", ["cfb", "sampling"])
def test_so_does_one_of_moves_within_a_reach(tmp_path, name):
    observations, _ = NEAR.sample(240, 3, 0)
    observed = aggregate(observations, 6, NEAR.n_states, np.random.default_rng(1))
    told = {"inference": name, "n_iter": 6, "tol": 0.0, "fixed": ("emission",), "random_state": 3}
    _, whole, _ = outcome(learn_steps(observed, NEAR, **told))
    kept = Checkpoints(tmp_path / "checkpoint")
    list(islice(learn_steps(observed, NEAR, course=kept.course("fit"), **told), 3))
    _, found, _ = outcome(learn_steps(observed, NEAR, course=kept.course("fit"), **told))
    assert_same(found, whole)


def test_an_estimator_does_so_too(tmp_path):
    hmm = model()
    observed = groups(hmm, 6)

    def fitted(course=None, stop=None):
        made = AggregateHMM(
            D, inference="sampling", n_iter=8, tol=0.0, init=hmm, fixed=("emission",),
            random_state=5,
        )  # fmt: skip
        list(islice(made.fit_steps(observed, course), stop))
        return made

    whole, kept = fitted(), Checkpoints(tmp_path / "checkpoint")
    fitted(kept.course("fit"), 3)
    found = fitted(kept.course("fit"))
    assert_same(found.hmm_, whole.hmm_)
    assert found.monitor_.history == whole.monitor_.history
