"""Counts that err: variances, pairs in runs, and who is outside."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.counts.erring import LEAST_VARIANCE, CountError, erring_pairs
from agg_core.counts.pairs import pairs_of
from tests.agg_core.counts import made


def test_the_variance_of_an_error_is_relative_and_of_rounding():
    people = np.array([0.0, 10.0, 100.0])
    found = CountError(0.05, 10.0).variance(people)
    np.testing.assert_allclose(found, [100 / 12, 0.25 + 100 / 12, 25 + 100 / 12])
    assert (CountError(0.0, 0.0).variance(people) > 0).all()


@pytest.mark.parametrize("step", [1.0, 0.5, 0.1])
def test_rounding_takes_small_errors_away_from_whole_counts(step):
    people = np.array([1.0, 3.0, 8.0, 15.0, 60.0])
    rng = np.random.default_rng(0)
    wrong = people * (1 + 0.05 * rng.standard_normal((400_000, 5)))
    rounded = np.rint(wrong / step) * step
    error = CountError(0.05, step)
    squares = np.square(rounded - people).mean(axis=0)
    np.testing.assert_allclose(
        error.variance(people) - LEAST_VARIANCE, squares, rtol=0.03, atol=1e-4
    )


@pytest.mark.parametrize("step", [0.0, 0.3, 1.0, 5.0])
def test_the_slope_is_the_derivative_of_the_variance(step):
    people = np.array([2.0, 8.0, 15.0, 60.0])
    h = 1e-7
    above, below = (CountError((0.05**2 + sign * h) ** 0.5, step) for sign in (1, -1))
    rise = (above.variance(people) - below.variance(people)) / (2 * h)
    np.testing.assert_allclose(CountError(0.05, step).slope(people), rise, rtol=1e-4, atol=1e-6)


def table(**about):
    counts = [[5, 3], [4, 5], [6, 2], [7, 1], [3, 4], [np.nan, 4], [2, 2], [1, 3]]
    return made.table(counts, runs=[0, 0, 0, 1, 1, 1, 1, 1], **about)


def test_runs_end_where_the_table_does_and_where_a_count_is_missing():
    pairs = erring_pairs(table(), CountError(0.1, 1.0), outside=False)
    assert pairs.moment.tolist() == [0, 1, 3, 6]
    runs = pairs.runs()
    assert [run.pairs.tolist() for run in runs] == [[0, 1], [2], [3]]
    np.testing.assert_array_equal(runs[0].counts, [[5, 3], [4, 5], [6, 2]])
    assert pairs.n_left_out == 2
    # Sums need not be the same, as they have to be where counts are exact.
    assert pairs.before.sum(axis=1).tolist() == [8, 9, 8, 4]


def test_a_pair_that_is_left_out_breaks_a_run():
    pairs = erring_pairs(made.table(np.ones((5, 2))), CountError(0.1, 1.0), outside=False)
    assert [len(run.pairs) for run in pairs.runs()] == [4]
    kept = pairs.take([0, 1, 3])
    assert [len(run.pairs) for run in kept.runs()] == [2, 1]
    assert kept.error == pairs.error


def test_outside_is_who_is_missing_from_the_fullest_moment_of_a_run():
    pairs = erring_pairs(table(), CountError(0.1, 1.0), outside=True)
    assert pairs.has_outside
    np.testing.assert_array_equal(pairs.before[:, 2], [1, 0, 0, 4])
    np.testing.assert_array_equal(pairs.after[:, 2], [0, 1, 1, 4])
    assert np.isinf(pairs.spread_before[:, 2]).all()
    assert pairs.n_filled == 0


def test_a_suppressed_count_may_lie_anywhere_below_its_limit():
    hidden = made.table([[20, np.inf], [18, 12], [np.inf, 15]], below=10)
    pairs = erring_pairs(hidden, CountError(0.1, 1.0), outside=False)
    np.testing.assert_allclose(pairs.spread_before, [[0, 100 / 12], [0, 0]])
    np.testing.assert_allclose(pairs.spread_after, [[0, 0], [100 / 12, 0]])
    assert pairs.n_filled == 2


@pytest.mark.parametrize("start", ["2024-04-05", "2024-04-01"])
def test_types_of_days_have_times_of_their_own(start):
    # Twelve days of two moments: from a Friday on they have two weekends, from a Monday on one.
    counts = np.ones((24, 2))
    pairs = pairs_of(made.table(counts, steps=2, start=start, runs=np.repeat(np.arange(12), 2)))
    weekend = [1, 2, 8, 9] if start == "2024-04-05" else [5, 6]
    assert np.flatnonzero(pairs.day_type).tolist() == weekend
    assert pairs.has_day_types == (start == "2024-04-05")
    typed = pairs.by_day_type()
    assert typed.slots == ("00:00 weekday", "01:00 weekday", "00:00 weekend", "01:00 weekend")
    assert set(typed.slot[weekend]) == {2}
    assert not replace(pairs, day_type=None).has_day_types
