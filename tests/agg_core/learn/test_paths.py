"""States of single people: against all paths written out, and against hmmlearn."""

from itertools import product

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM, GaussianHMM

from agg_core.base.errors import UnreachableError
from agg_core.learn.estimator import AggregateHMM
from tests.faults import refused

START = np.array([0.5, 0.3, 0.2])
MOVES = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
EMIT = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.2, 0.2], [0.05, 0.05, 0.3, 0.6]])
MEANS = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])
COVARS = np.array([[[1.0, 0.3], [0.3, 0.8]], [[0.5, 0.0], [0.0, 0.6]], [[1.2, -0.2], [-0.2, 1.0]]])


def known(emission, covariance_type="full"):
    """A model whose parameters are given: all is fixed, nothing is learned."""
    init = {"startprob": START, "transmat": MOVES}
    rng = np.random.default_rng(0)
    if emission == "categorical":
        init |= {"emissionprob": EMIT}
        data = rng.integers(0, 4, (12, 6))
    else:
        init |= {"means": MEANS, "covars": COVARS}
        data = rng.normal(1.0, 2.0, (12, 6, 2))
    model = AggregateHMM(
        n_states=3, emission=emission, init=init, n_iter=0, covariance_type=covariance_type
    )
    return model.fit(data), data


def other(emission):
    if emission == "categorical":
        model = CategoricalHMM(n_components=3, n_features=4)
        model.emissionprob_ = EMIT
    else:
        model = GaussianHMM(n_components=3, covariance_type="full")
        model.n_features, model.means_, model.covars_ = 2, MEANS, COVARS
    model.startprob_, model.transmat_ = START, MOVES
    return model


def as_rows(data):
    return data.reshape(-1, 2 if data.ndim == 3 else 1), [data.shape[1]] * len(data)


@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_decode_and_marginals_are_hmmlearns(emission):
    model, data = known(emission)
    log_prob, states = other(emission).decode(*as_rows(data))
    ours = model.decode(data)
    assert ours[0] == pytest.approx(log_prob, rel=1e-12)
    np.testing.assert_array_equal(ours[1], states.reshape(12, 6))
    np.testing.assert_array_equal(model.predict(data), ours[1])
    probs = other(emission).predict_proba(*as_rows(data)).reshape(12, 6, 3)
    np.testing.assert_allclose(model.predict_proba(data), probs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_criteria_are_hmmlearns(emission):
    model, data = known(emission)
    assert model.aic(data) == pytest.approx(other(emission).aic(*as_rows(data)), rel=1e-10)
    assert model.bic(data) == pytest.approx(other(emission).bic(*as_rows(data)), rel=1e-10)


def test_a_fixed_part_is_no_free_parameter():
    model, data = known("categorical")
    free = model.aic(data)
    assert model.set_params(fixed=("emission",)).aic(data) == pytest.approx(free - 2 * 9)


def test_viterbi_and_marginals_are_those_of_all_paths_written_out():
    model, data = known("categorical")
    log_probs, best = 0.0, []
    marginals = np.zeros((len(data), 6, 3))
    for n, seen in enumerate(data):
        joint = {}
        for path in product(range(3), repeat=6):
            p = START[path[0]] * EMIT[path[0], seen[0]]
            for t in range(1, 6):
                p *= MOVES[path[t - 1], path[t]] * EMIT[path[t], seen[t]]
            joint[path] = p
            for t in range(6):
                marginals[n, t, path[t]] += p
        top = max(joint, key=joint.get)
        best.append(top)
        log_probs += np.log(joint[top])
    marginals /= marginals.sum(axis=2, keepdims=True)
    found = model.decode(data)
    assert found[0] == pytest.approx(log_probs, rel=1e-12)
    np.testing.assert_array_equal(found[1], best)
    np.testing.assert_allclose(model.predict_proba(data), marginals, rtol=1e-10)


def test_a_step_not_seen_is_passed():
    model, data = known("gaussian")
    data = data[:1].copy()
    data[0, 1:] = np.nan
    now = model.predict_proba(data[:, :, None, :])[0]
    for t in range(1, 6):
        np.testing.assert_allclose(now[t], now[t - 1] @ MOVES, rtol=1e-10)


def test_groups_have_no_states_of_people():
    model, _ = known("categorical")
    groups = np.array([[[2, 1, 0, 0], [1, 1, 1, 0]]])
    for ask in (model.decode, model.predict, model.predict_proba, model.aic, model.bic):
        with refused("single-people-needed"):
            ask(groups)


def test_what_cannot_happen_is_refused():
    init = {"startprob": [1, 0], "transmat": np.eye(2), "emissionprob": np.eye(2)}
    model = AggregateHMM(n_states=2, init=init, n_iter=0).fit(np.array([[0, 0]]))
    for ask in (model.decode, model.predict_proba):
        with refused("sequence-impossible", "Sequence 1", kind=UnreachableError):
            ask(np.array([[0, 0], [0, 1]]))
