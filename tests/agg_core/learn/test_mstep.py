import numpy as np
import pytest

from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.mstep import Pull, Statistics, check_parts, distance, maximised, remaining
from agg_core.model.aggregates import Aggregates
from agg_core.model.gaussian import GaussianEmission
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

CFB = collective_forward_backward
PLACES = np.array([[3.0, 1.0], [0.0, 4.0]])
EMISSION = np.array([[0.7, 0.3], [0.2, 0.8]])
HMM2 = HMM.categorical([0.5, 0.5], [[0.6, 0.4], [0.3, 0.7]], EMISSION)


def assert_statistics(found, start, transitions, emission=None):
    np.testing.assert_allclose(found.start, start, atol=1e-12)
    np.testing.assert_allclose(found.transitions, transitions, atol=1e-12)
    if emission is None:
        assert found.emission is None
    else:
        np.testing.assert_allclose(found.emission, emission, atol=1e-12)


# ---------------------------------------------------------------- sums over people


def test_arithmetic_by_hand():
    one = Statistics(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[4.0]]))
    two = Statistics(np.array([3.0, 0.0]), np.array([[0.0, 2.0], [2.0, 1.0]]), np.array([[8.0]]))
    assert_statistics(one + two, [4, 2], [[1, 2], [4, 4]], [[12]])
    assert_statistics(one - two, [-2, 2], [[1, -2], [0, 2]], [[-4]])
    assert_statistics(one * 0.5, [0.5, 1], [[0.5, 0], [1, 1.5]], [[2]])
    assert_statistics(one.towards(two, 0.25), [1.5, 1.5], [[0.75, 0.5], [2, 2.5]], [[5]])
    assert_statistics(one, [1, 2], [[1, 0], [2, 3]], [[4]])


def test_without_an_emission_there_is_none():
    bare = Statistics(np.ones(2), np.eye(2))
    assert_statistics(bare + bare, [2, 2], 2 * np.eye(2))
    assert_statistics(bare.towards(bare * 3, 0.5) - bare, [1, 1], np.eye(2))


def test_statistics_of_groups_add_up_to_those_of_all():
    rng = np.random.default_rng(0)
    model = oracles.random_model(rng, 2, 2)
    hmm = HMM.categorical(*model)
    groups = [oracles.random_histograms(rng, model, size, 3) for size in (1, 2, 3)]

    def of(some):
        aggregates = Aggregates.from_dense(some)
        table = hmm.emission.likelihoods(aggregates)
        expected = CFB(hmm, aggregates, table, tol=1e-12, max_sweeps=9999, with_emission=True)
        return Statistics.of(expected, hmm, aggregates, table)

    exact = [oracles.collective_counts(model, group) for group in groups]
    total = sum(exact[1:], exact[0])
    for found in (of(groups), of(groups[:1]) + of(groups[1:])):
        np.testing.assert_allclose(found.start, total.start, atol=1e-8)
        np.testing.assert_allclose(found.transitions, total.transitions, atol=1e-8)
        np.testing.assert_allclose(found.emission, total.emission, atol=1e-8)


def test_an_emission_that_was_not_asked_for_has_no_statistics():
    aggregates = Aggregates.from_dense([[[1, 1], [2, 0]]])
    table = HMM2.emission.likelihoods(aggregates)
    assert Statistics.of(CFB(HMM2, aggregates, table), HMM2, aggregates, table).emission is None


# ---------------------------------------------------------------- the maximum


def test_the_maximum_is_normalised_counts():
    found = maximised(Statistics(np.array([1.0, 3.0]), PLACES, np.array([[1.0, 1], [0, 5]])), HMM2)
    np.testing.assert_allclose(found.startprob, [0.25, 0.75])
    np.testing.assert_allclose(found.transmat, [[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_allclose(found.emission.emissionprob, [[0.5, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize("part", ["startprob", "transmat", "emission"])
def test_fixed_parts_stay(part):
    statistics = Statistics(np.array([1.0, 3.0]), PLACES, np.array([[1.0, 1], [0, 5]]))
    found = maximised(statistics, HMM2, fixed=(part,), pull=Pull(HMM2.transmat, 3.0))
    moved = {
        "startprob": found.startprob is not HMM2.startprob,
        "transmat": found.transmat is not HMM2.transmat,
        "emission": found.emission is not HMM2.emission,
    }
    assert moved == {name: name != part for name in moved}


def test_rows_that_nobody_is_in_stay():
    statistics = Statistics(np.array([1.0, 0.0]), np.array([[1.0, 3.0], [0.0, 0.0]]))
    found = maximised(statistics, HMM2)
    np.testing.assert_allclose(found.transmat, [[0.25, 0.75], [0.3, 0.7]])
    assert found.emission is HMM2.emission
    nobody = maximised(Statistics(np.zeros(2), np.zeros((2, 2))), HMM2)
    np.testing.assert_array_equal(nobody.transmat, HMM2.transmat)
    np.testing.assert_array_equal(nobody.startprob, HMM2.startprob)


def test_one_step_says_nothing_of_moves_even_with_a_pull():
    found = maximised(Statistics(np.ones(2), np.zeros((2, 2))), HMM2, pull=Pull(np.eye(2), 5.0))
    np.testing.assert_array_equal(found.transmat, HMM2.transmat)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_gaussian_moments_are_weighted_means_and_covariances(offset):
    """Far from 0 the squares of places have no digits left for the covariance."""
    rng = np.random.default_rng(1)
    points = offset + rng.normal(0, [1.0, 3.0], (1, 1, 40, 2))
    aggregates = Aggregates.from_samples(points)
    emission = GaussianEmission.checked(offset + np.array([[-1.0, 0], [1, 2.0]]), [1.0, 2.0])
    table = emission.likelihoods(aggregates)
    weight = rng.random((40, 2))
    found = emission
    for _ in range(2):  # the origin of the first is kept
        statistics = found.statistics(aggregates, table, weight.ravel())
        found = found.from_statistics(statistics)
    np.testing.assert_allclose(statistics[:, 0], weight.sum(axis=0))
    for x in range(2):
        mean = np.average(points[0, 0], weights=weight[:, x], axis=0)
        covar = np.cov(points[0, 0].T, aweights=weight[:, x], ddof=0)
        np.testing.assert_allclose(found.means[x], mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.covars[x], covar, rtol=1e-6, atol=1e-8)


def test_gaussian_statistics_can_be_mixed_between_iterations():
    """Moments are taken about one origin although the means move: half and half is the whole."""
    rng = np.random.default_rng(2)
    halves = 1e5 + rng.normal(0, 2.0, (2, 1, 1, 30, 1))
    first = GaussianEmission.checked([[1e5]], [1.0])
    parts, emission = [], first
    for half in halves:
        aggregates = Aggregates.from_samples(half)
        parts.append(emission.statistics(aggregates, emission.likelihoods(aggregates), np.ones(30)))
        emission = emission.from_statistics(parts[-1])
    found = emission.from_statistics(parts[0] + parts[1])
    assert found.means[0, 0] == pytest.approx(halves.mean(), rel=1e-12)
    assert found.covars[0, 0, 0] == pytest.approx(halves.var(), rel=1e-8)


def test_counts_below_nothing_are_none():
    """A correction may leave less than nobody."""
    found = HMM2.emission.from_statistics(np.array([[3.0, -1.0], [-1.0, -2.0]]))
    np.testing.assert_allclose(found.emissionprob, [[1.0, 0.0], EMISSION[1]])
    gaussian = GaussianEmission.checked([[0.0], [9.0]], [1.0, 4.0])
    moments = np.array([[2.0, 6.0, 20.0], [-1.0, 3.0, 1.0]])
    kept = gaussian.from_statistics(moments)
    assert kept.means.tolist() == [[4.5 + 3.0], [9.0]]
    assert kept.covars.tolist() == [[[1.0]], [[4.0]]]


def test_statistics_are_raised_to_others():
    found = HMM2.emission.at_least(np.array([[3.0, -1.0], [0.5, 2.0]]), np.full((2, 2), 1.0))
    np.testing.assert_array_equal(found, [[3.0, 1.0], [1.0, 2.0]])
    gaussian = GaussianEmission.checked([[0.0], [9.0]], [1.0, 4.0])
    moments = np.array([[2.0, -6.0, 20.0], [0.5, 3.0, 1.0]])
    least = np.array([[1.0, 5.0, 5.0], [1.0, 7.0, 8.0]])
    np.testing.assert_array_equal(gaussian.at_least(moments, least), [moments[0], least[1]])


# ---------------------------------------------------------------- the pull


def family(shape, stay, fall):
    """Rows that stay with one chance and else move by a power of the shape."""
    away = np.where(np.eye(len(shape), dtype=bool), 0.0, np.where(shape > 0, shape, 0.0) ** fall)
    away = np.where(shape > 0, away, 0.0)
    rows = (1 - stay) * away / away.sum(axis=1, keepdims=True)
    return rows + stay * np.eye(len(shape))


def decay(d, rng=None):
    places = np.arange(d) if rng is None else rng.random(d) * d
    weight = np.exp(-np.abs(places[:, None] - places))
    return weight / weight.sum(axis=1, keepdims=True)


def test_pull_adds_its_strength_to_every_row_and_nothing_where_no_one_can_go():
    rng = np.random.default_rng(4)
    shape = decay(5)
    shape[0, 4] = shape[2, 0] = shape[3, 3] = 0.0
    found = Pull(shape, 4.0).pseudo_counts(rng.gamma(1.0, 3.0, (5, 5)) * (shape > 0))
    np.testing.assert_allclose(found.sum(axis=1), 4.0)
    np.testing.assert_array_equal(found == 0, shape == 0)


def test_states_that_only_stay_or_only_move():
    shape = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]])
    counts = np.array([[9.0, 0.0, 0.0], [2.0, 0.0, 2.0], [1.0, 1.0, 6.0]])
    found = Pull(shape, 1.0).pseudo_counts(counts)
    # Only the last row has both: its people alone, and two halves, say how many stay.
    stay = 6.5 / 9
    leave = (1 - stay) / 2
    np.testing.assert_allclose(found, [[1, 0, 0], [0.5, 0, 0.5], [leave, leave, stay]], atol=1e-9)
    np.testing.assert_array_equal(Pull(np.eye(2), 2.0).pseudo_counts(5 * np.eye(2)), 2 * np.eye(2))


def test_nobody_seen_means_the_shape():
    shape = decay(4)
    rows = Pull(shape, 1.0).pseudo_counts(np.zeros((4, 4)))
    np.testing.assert_allclose(rows, family(shape, 0.5, 1.0), atol=1e-12)


def test_a_shape_of_vanishing_chances_still_sums_to_one():
    shape = np.array([[1.0, 1e-200, 1e-250], [1e-300, 1.0, 1e-200], [1e-100, 1e-150, 1.0]])
    rows = Pull(shape, 1.0).pseudo_counts(np.array([[5.0, 3, 1], [1, 5, 3], [3, 1, 5.0]]))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert (rows > 0).all()


def test_rows_with_few_people_borrow_and_rows_with_many_do_not():
    counts = np.array([[90.0, 5, 5], [0.0, 0.0, 0.0], [250.0, 250.0, 500.0]])
    shape = np.full((3, 3), 1 / 3)
    found = maximised(
        Statistics(np.ones(3), counts), HMM.categorical([1, 0, 0], np.eye(3), np.eye(3)),
        pull=Pull(shape, 2.0),
    ).transmat  # fmt: skip
    stay = 590.5 / 1101
    np.testing.assert_allclose(found[1], [(1 - stay) / 2, stay, (1 - stay) / 2], atol=1e-9)
    np.testing.assert_allclose(found[2, 2], (500 + 2 * stay) / 1002)


# ---------------------------------------------------------------- distances


def test_parts_of_the_model_are_named():
    check_parts(("startprob", "emission"))
    with refused("unknown-part", "['pi']"):
        check_parts(["transmat", "pi"])


def test_the_distance_is_the_largest_of_three():
    moved = HMM.categorical([0.45, 0.55], [[0.5, 0.5], [0.3, 0.7]], EMISSION)
    assert distance(HMM2, moved, np.array([3.0, 1.0])) == pytest.approx(0.2 * 3 / 4)
    assert distance(HMM2, moved, np.array([0.0, 1.0])) == pytest.approx(0.1)
    assert distance(HMM2, moved, np.zeros(2)) == pytest.approx(0.1)
    shown = HMM.categorical([0.5, 0.5], HMM2.transmat, [[0.7, 0.3], [0.6, 0.4]])
    assert distance(HMM2, shown, np.ones(2)) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0.1, 0.05, 0.1),
        (1.0, 0.9, 2.0),
        (0.1, 0.1, 2.0),
        (3.0, 4.0, 4.0),
        (0.1, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (np.inf, 0.5, 2.0),
        (1e-15, 2e-15, 0.0),  # rounding alone: nothing is left to go
    ],
)
def test_what_remains_is_a_geometric_series(first, second, expected):
    assert remaining(first, second) == pytest.approx(expected)
