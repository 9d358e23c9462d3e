"""The smoother against the joint normal law of all counts of a run, written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.smoothing import expected_people, innovations, smoothed
from tests.agg_core.counts import made

A = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
B = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
COUNTS = np.array([[40.0, 30, 35], [44, 28, 30], [50, 33, 28], [41, 36, 29]])


def joint(pairs, rows, size):
    """Law of people of all moments given the first counts, and what is counted of them."""
    (run,) = pairs.runs()
    n, d = run.counts.shape
    seen = np.isfinite(run.spread)
    variance = np.where(seen, pairs.error.variance(size) + run.spread, 0.0)
    mean = [run.counts[0]]
    first = np.diag(variance[0])
    for hidden in np.flatnonzero(~seen[0]):
        first[hidden] = first[:, hidden] = -variance[0]
        first[hidden, hidden] = variance[0].sum()
    # People of moment t are a linear map of those of the first one, and noise of each step.
    noises = [first]
    for t in range(1, n):
        mean.append(mean[-1] @ rows[t - 1])
        noises.append(
            np.diag(size[t - 1] @ rows[t - 1]) - rows[t - 1].T * size[t - 1] @ rows[t - 1]
        )
    covariance = np.zeros((n * d, n * d))
    for s in range(n):
        for t in range(n):
            for k in range(min(s, t) + 1):
                left, right = np.eye(d), np.eye(d)
                for step in range(k, s):
                    left = left @ rows[step]
                for step in range(k, t):
                    right = right @ rows[step]
                covariance[s * d : s * d + d, t * d : t * d + d] += left.T @ noises[k] @ right
    # The first counts are where it begins; they are not counted again.
    counted = np.flatnonzero(seen[1:].ravel()) + d
    return np.concatenate(mean), covariance, counted, variance.ravel()[counted], run.counts.ravel()


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_people_are_what_all_counts_of_a_run_tell(outside, hidden):
    counts = COUNTS.copy()
    if hidden:
        counts[2, 1] = np.inf
    d = 3 + outside
    rows = np.full((2, d, d), 0.1)
    rows[:, :3, :3] = np.stack([A, B]) * (0.9 if outside else 1.0)
    if outside:
        rows[:, 3] = [0.1, 0.1, 0.1, 0.7]
    table = made.table(counts, steps=2, below=40 if hidden else 0, runs=[0, 0, 0, 0])
    pairs = erring_pairs(table, CountError(0.08, 1.0), outside=outside)
    people = (pairs.before + 1, pairs.after + 1)
    size = np.vstack([people[0], people[1][-1:]])
    found = smoothed(pairs, rows, people)
    mean, covariance, counted, variance, y = joint(pairs, rows[[0, 1, 0]], size)
    of_counts = covariance[np.ix_(counted, counted)] + np.diag(variance)
    gain = covariance[:, counted] @ np.linalg.inv(of_counts)
    after = mean + gain @ (y[counted] - mean[counted])
    left = covariance - gain @ covariance[counted]
    np.testing.assert_allclose(found.before, after.reshape(4, d)[:-1], atol=1e-8)
    np.testing.assert_allclose(found.after, after.reshape(4, d)[1:], atol=1e-8)
    for t in range(3):
        at, then = slice(t * d, t * d + d), slice(t * d + d, t * d + 2 * d)
        np.testing.assert_allclose(found.of_before[t], left[at, at], atol=1e-8)
        np.testing.assert_allclose(found.of_after[t], left[then, then], atol=1e-8)
        np.testing.assert_allclose(found.cross[t], left[at, then], atol=1e-8)
    whole = multivariate_normal(mean[counted], of_counts).logpdf(y[counted])
    assert found.scores.sum() == pytest.approx(whole)


def test_the_slope_is_that_of_the_log_density():
    pairs = erring_pairs(made.table(COUNTS, steps=4), CountError(0.08, 1.0), outside=False)
    people = (pairs.before, pairs.after)

    def density(square):
        error = CountError(float(np.sqrt(square)), 1.0)
        again = erring_pairs(made.table(COUNTS, steps=4), error, outside=False)
        # The first counts, where the filter begins, are told by the same error in both.
        return smoothed(again, A[None], people).scores

    step = 1e-6
    rise = (density(0.0064 + step) - density(0.0064 - step)).sum() / (2 * step)
    found = smoothed(pairs, A[None], people)
    # What the error of the first counts adds is left out of the slope.
    first = _slope_of_the_first(pairs, people, step)
    assert found.slope == pytest.approx(rise - first, rel=1e-3)
    assert found.information > 0


def _slope_of_the_first(pairs, people, step):
    from agg_core.counts import smoothing

    (run,) = pairs.runs()
    size = np.vstack([people[0], people[1][-1:]])
    variance = pairs.error.variance(size)
    ends = []
    for sign in (1, -1):
        other = variance.copy()
        other[0] += sign * step * size[0] ** 2
        ends.append(smoothing._filter(run, np.repeat(A[None], 3, axis=0), size, other).scores.sum())
    return (ends[0] - ends[1]) / (2 * step)


def test_exact_counts_are_the_people():
    pairs = made.pairs(COUNTS[:-1], COUNTS[1:])
    np.testing.assert_array_equal(expected_people(pairs, A[None]), COUNTS[:-1])
    erring = erring_pairs(made.table(COUNTS, steps=4), CountError(0.0, 0.0), outside=False)
    # All but exact: the process is far less certain than the counts.
    close = COUNTS * (105 / COUNTS.sum(axis=1))[:, None]
    erring_close = erring_pairs(made.table(close, steps=4), erring.error, outside=False)
    np.testing.assert_allclose(expected_people(erring_close, A[None]), close[:-1], atol=0.1)


@pytest.mark.parametrize("outside", [False, True])
def test_innovations_of_a_run_have_the_density_of_all_its_counts(outside):
    """They are independent, so that their densities multiply to that of the joint law."""
    d = 3 + outside
    rows = np.full((1, d, d), 0.1)
    rows[0, :3, :3] = A * (0.9 if outside else 1.0)
    if outside:
        rows[0, 3] = [0.1, 0.1, 0.1, 0.7]
    table = made.table(COUNTS, steps=4, runs=[0, 0, 0, 0])
    pairs = erring_pairs(table, CountError(0.08, 1.0), outside=outside)
    found = innovations(pairs, rows)
    size = np.maximum(np.vstack([pairs.before, pairs.after[-1:]]), 0.01)
    mean, covariance, counted, variance, y = joint(pairs, rows[[0, 0, 0]], size)
    of_counts = covariance[np.ix_(counted, counted)] + np.diag(variance)
    right = multivariate_normal(mean[counted], of_counts).logpdf(y[counted])
    steps = zip(found.far[:, :3], found.spread[:, :3, :3], strict=True)
    assert sum(multivariate_normal(cov=V).logpdf(e) for e, V in steps) == pytest.approx(right)
    if outside:
        assert not found.far[:, 3].any()
        assert not found.spread[:, 3].any()
