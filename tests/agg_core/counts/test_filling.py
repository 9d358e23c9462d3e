"""Suppressed counts: the mean of a censored Poisson count, and one total for a day."""

import numpy as np
import pytest
from scipy.stats import poisson

from agg_core.counts.filling import fill, share_out, shared_sums


def filled(counts, below, *, slot=None, known=None):
    """`fill` for counts whose suppressed ones are NaN."""
    counts = np.asarray(counts, dtype=float)
    n = len(counts)
    slot = np.zeros(n, dtype=int) if slot is None else np.asarray(slot)
    return fill(
        np.where(np.isnan(counts), 0.0, counts),
        np.isnan(counts),
        np.ones(n, dtype=bool) if known is None else np.asarray(known),
        slot,
        int(slot.max()) + 1,
        below,
    )


def censored_mean(rate, most):
    """Mean of a Poisson count that is known to be ``most`` at most, by adding up."""
    count = np.arange(most + 1)
    return float(poisson.pmf(count, rate) @ count / poisson.cdf(most, rate))


def censored_rate(published, n_hidden, most):
    """The most likely rate of counts of which some are only known to be small, on a fine grid."""
    rates = np.linspace(0.01, 40, 400_000)
    likely = poisson.logpmf(np.array(published)[:, None], rates).sum(axis=0)
    return float(rates[np.argmax(likely + n_hidden * poisson.logcdf(most, rates))])


def test_counts_of_which_none_is_suppressed_stay():
    counts = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert filled(counts, 10).tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("published", "n_hidden", "below"),
    [([12, 11, 14, 10, 13], 3, 10), ([5, 3, 4], 2, 3), ([10, 10], 1, 10)],
)
def test_the_fill_is_the_mean_of_a_censored_poisson_count(published, n_hidden, below):
    counts = np.array([*published, *[np.nan] * n_hidden], dtype=float)[:, None]
    found = filled(counts, below)
    expected = censored_mean(censored_rate(published, n_hidden, below - 1), below - 1)
    np.testing.assert_allclose(found[len(published) :, 0], expected, atol=1e-3)
    np.testing.assert_array_equal(found[: len(published), 0], published)


def test_times_of_day_beside_count_half():
    # Published 20 at hour 0, 40 at hour 2, nothing known of hour 1 but that it is under 10: its
    # rate solves r = (m(r) + 20 / 2 + 40 / 2) / 2, which puts it near the limit.
    counts = np.array([[20.0], [np.nan], [40.0]])
    found = filled(counts, 10, slot=[0, 1, 2])[1, 0]
    rate = 15.0
    for _ in range(200):
        rate = (censored_mean(rate, 9) + 30) / 2
    assert found == pytest.approx(censored_mean(rate, 9), rel=1e-6)


def test_a_cell_of_thousands_is_filled_with_nearly_the_limit():
    counts = np.array([[3_000.0]] * 20 + [[np.nan]])
    assert filled(counts, 10)[-1, 0] == pytest.approx(censored_mean(100, 9), abs=0.1)
    assert filled(counts, 10)[-1, 0] <= 9


def test_cells_that_are_never_published_are_filled_alike_and_within_bounds():
    rng = np.random.default_rng(0)
    counts = np.column_stack([rng.integers(10, 40, (12, 3)), np.full((12, 2), np.nan)])
    found = filled(counts, 10)[:, 3:]
    assert found.min() > 0
    assert found.max() < 10
    np.testing.assert_allclose(found, found[0, 0])


def test_a_cell_is_empty_where_no_count_is_just_above_the_limit():
    counts = np.array([[500.0, np.nan], [510.0, np.nan]])
    assert filled(counts, 10)[:, 1].max() < 1e-6


def test_unknown_moments_tell_nothing_of_rates():
    counts = np.array([[12.0], [11.0], [np.nan], [900.0]])
    known = [True, True, True, False]
    expected = censored_mean(censored_rate([12, 11], 1, 9), 9)
    assert filled(counts, 10, known=known)[2, 0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("below", [1, 0.5])
def test_below_one_is_nobody(below):
    assert filled([[5.0], [np.nan]], below)[1, 0] == 0


def test_fills_beat_zero_and_the_middle_of_the_interval():
    """Sums of people who are Poisson in cells of every size, the truth known."""
    rng = np.random.default_rng(4)
    true = rng.poisson(rng.lognormal(2, 1, 60), (40, 60)).astype(float)
    hidden = true < 10
    found = filled(np.where(hidden, np.nan, true), 10)

    def error(values):
        return np.abs(np.where(hidden, values, true) - true).sum()

    assert error(found) < 0.8 * min(error(0.0), error(4.5), error(9.0))


# ---------------------------------------------------------------------------- one total for a day


def shared(values, hidden, day, below, known=None):
    values, hidden = np.asarray(values, dtype=float), np.asarray(hidden, dtype=bool)
    known = np.ones(len(values), dtype=bool) if known is None else np.asarray(known)
    return shared_sums(values.copy(), hidden, known, np.asarray(day), below)


def test_where_bounds_allow_it_a_day_has_one_total():
    # Published 18 and 20 and one and two open cells below 10: totals of 20 to 27 are possible;
    # those of the fills are 22 and 26, their mean is 24.
    values = [[18.0, 4.0, 0.0], [20.0, 3.0, 3.0]]
    hidden = [[0, 1, 0], [0, 1, 1]]
    found, outside = shared(values, hidden, [0, 0], 10)
    assert found.tolist() == [[18, 6, 0], [20, 2, 2]]
    assert outside.tolist() == [0, 0]


def test_the_total_is_what_the_fullest_published_moment_needs():
    found, outside = shared([[10.0, 2.0], [15.0, 0.0]], [[0, 1], [0, 0]], [0, 0], 10)
    assert found.tolist() == [[10, 5], [15, 0]]
    assert outside.tolist() == [0, 0]


def test_each_day_has_a_total_of_its_own():
    values = [[10.0, 2.0], [12.0, 0.0], [30.0, 3.0], [35.0, 0.0]]
    hidden = [[0, 1], [0, 0], [0, 1], [0, 0]]
    found, _ = shared(values, hidden, [0, 0, 1, 1], 10)
    assert found.sum(axis=1).tolist() == [12, 12, 35, 35]


def test_where_bounds_do_not_allow_it_the_fullest_moment_has_everybody():
    # 40 published people cannot be 10 and a cell below 5 an hour later.
    values = [[40.0, 0.0], [10.0, 3.0], [20.0, 2.4]]
    found, outside = shared(values, [[0, 0], [0, 1], [0, 1]], [0, 0, 0], 5)
    assert found.tolist() == [[40, 0], [10, 3], [20, 2]]
    assert outside.tolist() == [0, 27, 18]


def test_one_day_that_does_not_close_opens_all():
    # The second day alone would have been scaled to 12; people come and go, so it is not.
    values = [[40.0, 0.0], [10.0, 3.0], [10.0, 1.0], [12.0, 0.0]]
    hidden = [[0, 0], [0, 1], [0, 1], [0, 0]]
    found, outside = shared(values, hidden, [0, 0, 1, 1], 5)
    assert found[2].tolist() == [10, 1]
    assert outside.tolist() == [0, 27, 1, 0]


def test_unknown_moments_have_no_say():
    values = [[10.0, 2.0], [12.0, 0.0], [999.0, 0.0]]
    hidden = [[0, 1], [0, 0], [0, 0]]
    found, outside = shared(values, hidden, [0, 0, 0], 10, known=[True, True, False])
    assert found[0].tolist() == [10, 2]
    assert outside.tolist() == [0, 0, 0]


def test_counts_that_are_not_whole_are_scaled_in_proportion():
    values = [[10.5, 2.0, 4.0], [19.5, 0.0, 0.0]]
    found, outside = shared(values, [[0, 1, 1], [0, 0, 0]], [0, 0], 10)
    np.testing.assert_allclose(found[0], [10.5, 3.0, 6.0], rtol=1e-9)
    assert outside.tolist() == [0, 0]


def test_no_fill_is_scaled_beyond_its_limit():
    # 16 open people in cells of 1 and 8 that hold 9 each at most.
    found, _ = shared([[10.5, 1.0, 8.0], [26.5, 0.0, 0.0]], [[0, 1, 1], [0, 0, 0]], [0, 0], 10)
    np.testing.assert_allclose(found[0], [10.5, 7.0, 9.0], rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_days_at_random_close_within_bounds(seed):
    """People who move among cells at random: the truth is one of the totals that are possible."""
    rng = np.random.default_rng(seed)
    true = rng.multinomial(150, rng.dirichlet(np.ones(12)), size=8).astype(float)
    hidden = true < 10
    values = filled(np.where(hidden, np.nan, true), 10)
    found, outside = shared(values, hidden, np.zeros(8), 10)
    assert outside.max() == 0
    assert np.unique(found.sum(axis=1)).size == 1
    assert found[hidden].min() >= 0
    assert found[hidden].max() <= 9
    np.testing.assert_array_equal(found[~hidden], true[~hidden])


@pytest.mark.parametrize(
    ("values", "total", "expected"),
    [
        ([1.6, 2.3, 0.1], 4, [2, 2, 0]),
        ([1.6, 2.3, 0.4], 5, [2, 2, 1]),
        ([1.5, 1.5], 3, [2, 1]),
        ([0.2, 0.3], 0, [0, 0]),
        ([2.0, 1.0], 3, [2, 1]),
        ([1.2, 0.9], 6, [3, 3]),
        ([3.0, 0.0, 2.0], 3, [2, 0, 1]),
        ([0.0, 0.0], 0, [0, 0]),
    ],
)
def test_largest_remainders_go_up(values, total, expected):
    assert share_out(np.array(values), total).tolist() == expected


def test_shares_add_up_at_random():
    rng = np.random.default_rng(1)
    for _ in range(100):
        values = rng.exponential(3, rng.integers(1, 9))
        total = round(values.sum())
        found = share_out(values, total)
        assert found.sum() == total
        np.testing.assert_array_less(np.abs(found - values), 1)
