import itertools

import numpy as np
import pytest
from pyproj import Geod

from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import (
    HMM,
    align_labels,
    check_probs,
    distance_decay_transmat,
    random_probs,
    sample_states,
)
from agg_core.space.build import Grid
from tests.faults import refused

START = np.array([0.2, 0.0, 0.8])
TRANS = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
EMIT = np.array([[0.9, 0.1], [0.0, 1.0], [0.4, 0.6]])


def test_probabilities_are_made_exact():
    found = check_probs([0.3333333, 0.6666666], "startprob", ndim=1)
    assert found.sum() == 1.0
    np.testing.assert_allclose(found, [1 / 3, 2 / 3], atol=1e-6)
    given = np.array([[0.25, 0.75], [1.0, 0.0]])
    kept = given.copy()
    np.testing.assert_array_equal(check_probs(given, "transmat", ndim=2), given)
    np.testing.assert_array_equal(given, kept)


@pytest.mark.parametrize(
    ("values", "ndim", "code", "told"),
    [
        ([[0.5, 0.5]], 1, "wrong-shape", "1 dimension"),
        ([0.5, 0.5], 2, "wrong-shape", "2 dimension"),
        ([], 1, "wrong-shape", "(0,)"),
        ([0.5, 0.6], 1, "sum-not-one", "row 0"),
        ([[0.5, 0.5], [0.5, 0.51], [0.1, 0.1]], 2, "sum-not-one", "row 2"),
        ([1.5, -0.5], 1, "not-probabilities", ""),
        ([np.nan, 1.0], 1, "not-probabilities", ""),
        ([np.inf, 1.0], 1, "not-probabilities", ""),
        ([0.0, 0.0], 1, "sum-not-one", ""),
        ([0.5, 0.5 + 2e-6], 1, "sum-not-one", ""),
    ],
)
def test_what_is_no_probability_is_refused(values, ndim, code, told):
    with refused(code, told):
        check_probs(values, "x", ndim)


def test_a_model_checks_that_its_parts_fit():
    hmm = HMM.categorical(START, TRANS, EMIT)
    assert hmm.n_states == 3
    assert isinstance(hmm.emission, CategoricalEmission)
    with refused("wrong-shape", "(3,) and (2, 2)"):
        HMM.categorical(START, np.eye(2), EMIT)
    with refused("wrong-shape", "emission of 2 states"):
        HMM.categorical(START, TRANS, EMIT[:2])
    with refused("sum-not-one", "transmat", "row 1"):
        HMM.categorical(START, [[1, 0, 0], [0.5, 0, 0], [0, 0, 1]], EMIT)


def test_samples_follow_the_model():
    n = 100_000
    symbols, states = HMM.categorical(START, TRANS, EMIT).sample(n, 3, 0)
    assert symbols.shape == states.shape == (n, 3)
    for path in itertools.product(range(3), repeat=3):
        p = START[path[0]] * TRANS[path[0], path[1]] * TRANS[path[1], path[2]]
        share = (states == path).all(axis=1).mean()
        assert share == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n))
    for state, step in itertools.product(range(3), range(3)):
        shown = symbols[states[:, step] == state, step]
        if shown.size:
            p = EMIT[state, 1]
            assert shown.mean() == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / shown.size))


def test_samples_repeat_with_the_seed():
    hmm = HMM.categorical(START, TRANS, EMIT)
    for one, two in zip(
        hmm.sample(50, 4, 3), hmm.sample(50, 4, np.random.default_rng(3)), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    assert (hmm.sample(50, 4, 3)[1] != hmm.sample(50, 4, 4)[1]).any()


def test_a_sample_of_nobody_is_empty():
    assert sample_states(START, TRANS, 0, 4, 0).shape == (0, 4)


def test_random_rows_are_uniform_on_the_simplex():
    rows = random_probs((20_000, 3), 0)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    # Uniform on the triangle: mean 1/3, variance 1/18, covariance -1/36.
    np.testing.assert_allclose(rows.mean(axis=0), 1 / 3, atol=5 * np.sqrt(1 / 18 / 20_000))
    covariance = np.full((3, 3), -1 / 36) + np.eye(3) / 12
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=2e-3)
    assert random_probs((4,), 1).shape == (4,)
    np.testing.assert_array_equal(random_probs((2, 4), 1), random_probs((2, 4), 1))


def test_distance_decay_by_hand():
    """Three cells in a row: the middle one has a neighbour on each side, as far away."""
    grid = Grid.from_bbox(139.0, 35.0, 139.3, 35.08, rows=1, cols=3)
    found = distance_decay_transmat(grid, stay=0.7)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(np.diag(found), 0.7)
    np.testing.assert_allclose(found[1, [0, 2]], 0.15)
    geod = Geod(ellps="WGS84")
    step = geod.inv(139.05, 35.04, 139.15, 35.04)[2]
    side = (step + geod.inv(139.15, 35.0, 139.15, 35.08)[2]) / 2
    near, far = np.exp(-step / side) + 1e-6, np.exp(-2 * step / side) + 1e-6
    np.testing.assert_allclose(found[0, 1], 0.3 * near / (near + far), rtol=1e-4)
    np.testing.assert_allclose(found[0, 2], 0.3 * far / (near + far), rtol=1e-4)


def test_distance_decay_rules_nothing_out_and_may_know_an_outside():
    grid = Grid.from_bbox(139.0, 35.0, 141.4, 37.0, rows=5, cols=7)
    found = distance_decay_transmat(grid, outside=True)
    assert found.shape == (36, 36)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(np.diag(found), 0.6)
    middle, corner = 2 * 7 + 3, 0
    assert found[corner, 35] > found[middle, 35]
    assert found[35, corner] > found[35, middle]
    one = Grid.from_bbox(0, 0, 1, 1, 1, 1)
    np.testing.assert_array_equal(distance_decay_transmat(one), [[1.0]])
    np.testing.assert_allclose(distance_decay_transmat(one, outside=True), [[0.6, 0.4], [0.4, 0.6]])


def test_a_gaussian_model_is_checked_and_sampled():
    hmm = HMM.gaussian(START, TRANS, [[0.0], [5.0], [9.0]], [1.0, 1.0, 4.0])
    places, states = hmm.sample(20_000, 2, 0)
    assert places.shape == (20_000, 2, 1)
    assert states.shape == (20_000, 2)
    for x, mean, sd in ((0, 0, 1), (1, 5, 1), (2, 9, 2)):
        mine = places[states == x]
        assert abs(mine.mean() - mean) < 5 * sd / np.sqrt(len(mine))
    with refused("wrong-shape", "emission of 2 states"):
        HMM.gaussian(START, TRANS, [[0.0], [5.0]], [1.0, 1.0])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
@pytest.mark.parametrize("kind", ["categorical", "gaussian"])
def test_labels_are_aligned_whatever_their_order(order, kind):
    rng = np.random.default_rng(4)
    if kind == "categorical":
        reference = HMM.categorical(START, TRANS, np.eye(3) * 0.7 + 0.1)
        near = HMM.categorical(START, TRANS, rng.dirichlet(np.ones(3), 3) * 0.2 + np.eye(3) * 0.8)
    else:
        reference = HMM.gaussian(START, TRANS, [[0.0], [3.0], [6.0]], [1.0, 1.0, 1.0])
        near = HMM.gaussian(START, TRANS, [[0.5], [2.5], [7.0]], [1.0, 2.0, 1.0])
    shuffled = near.permuted(order)
    assert shuffled.transmat[0, 1] == TRANS[order[0]][order[1]]
    aligned = align_labels(shuffled, reference)
    np.testing.assert_array_equal(aligned.startprob, near.startprob)
    np.testing.assert_array_equal(aligned.transmat, near.transmat)
    assert near.emission.distance(aligned.emission) == pytest.approx(0, abs=1e-12)


def test_models_of_different_size_cannot_be_aligned():
    small = HMM.categorical([1.0], [[1.0]], [[1.0, 0, 0]])
    with refused("states-differ", "1 and 3 states"):
        align_labels(small, HMM.categorical(START, TRANS, EMIT))
