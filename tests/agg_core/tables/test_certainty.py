"""Intervals from errors of whole worlds hold what they should."""

import numpy as np
import pytest
from scipy import sparse

from agg_core.tables.certainty import LEVEL, RootErrors, sum_interval, varied_rows

T_3 = 2.353363
"""Student's t that 5 % exceed, of 3 degrees of freedom, from a printed table."""


def errors_of(happened, learned):
    errors = RootErrors(learned.shape)
    for world in happened:
        errors.add(world, learned)
    return errors


def test_an_interval_by_hand():
    # Errors of the root are -20, -19, ... 20 for flows of which 100 were learned; the 5 % and 95 %
    # quantiles of those 41 numbers are -18 and 18.
    learned = np.full(41, 100.0**2)
    errors = errors_of([(100.0 + np.arange(-20, 21)) ** 2], learned)
    found = errors.interval(learned)
    # A flow's own error counts as one among eleven, the mean square is 140.
    apart = np.sqrt((np.arange(-20, 21) ** 2 + 10 * 140) / (11 * 140))
    np.testing.assert_allclose(found.low, (100 - 18 * apart) ** 2)
    np.testing.assert_allclose(found.high, (100 + 18 * apart) ** 2)
    assert LEVEL == 0.9


def test_errors_are_those_of_flows_of_which_as_much_was_learned():
    """The learner halves all flows; an interval around half of one holds the whole."""
    rng = np.random.default_rng(2)
    truth = rng.lognormal(5, 1, 5000)
    errors = RootErrors(truth.shape)
    for _ in range(4):
        errors.add(truth, truth / 2 * rng.lognormal(0, 0.1, truth.shape))
    found = errors.interval(truth / 2)
    held = (found.low <= truth) & (truth <= found.high)
    assert held.mean() > LEVEL
    assert (found.low > truth / 2).mean() > 0.9


def test_flows_of_like_size_share_their_errors_and_others_do_not():
    learned = np.r_[np.full(50, 100.0), np.full(50, 4.0)]
    errors = errors_of([np.r_[np.full(50, 121.0), np.full(50, 25.0)]], learned)
    found = errors.interval(learned)
    np.testing.assert_allclose(np.sqrt(found.low), np.r_[np.full(50, 11), np.full(50, 5)])
    np.testing.assert_allclose(found.low, found.high)


def test_few_flows_of_a_size_borrow_errors_from_the_sizes_beside():
    # One flow of 64 to 128, and forty of the octave below that err by 3.
    learned = np.r_[100.0, np.full(40, 49.0)]
    errors = errors_of([np.r_[100.0, np.full(40, 100.0)]], learned)
    assert errors.interval(learned).high[0] == pytest.approx(13**2)


def test_a_flow_that_errs_more_than_its_like_has_a_wider_interval():
    rng = np.random.default_rng(3)
    learned = np.full(200, 400.0)
    spread = np.r_[3.0, np.ones(199)]
    worlds = (np.maximum(20 + spread * rng.normal(size=200), 0) ** 2 for _ in range(40))
    found = errors_of(worlds, learned).interval(learned)
    width = np.sqrt(found.high) - np.sqrt(found.low)
    assert width[0] > 2 * np.median(width)


def test_flows_that_may_be_are_spread_as_errors_less_what_is_chance():
    rng = np.random.default_rng(4)
    learned = np.full(4000, 900.0)
    errors = errors_of(((30 + rng.normal(1.0, 2.0, 4000)) ** 2 for _ in range(3)), learned)
    varied = np.sqrt(errors.varied(learned, rng)) - 30
    # The mean square of errors is 1 + 4; a quarter of a person's root is chance.
    assert (varied**2).mean() == pytest.approx(5 - 0.25, rel=0.05)
    only_chance = errors_of([(30 + rng.normal(0, 0.5, 4000)) ** 2], learned)
    assert np.abs(np.sqrt(only_chance.varied(learned, rng)) - 30).mean() < 0.1


def test_no_end_is_negative_and_what_may_be_nothing_is_not_resolved():
    errors = errors_of([[0.0, 81.0], [4.0, 121.0]], np.array([0.5, 100.0]))
    found = errors.interval(np.array([0.5, 100.0]))
    assert found.low[0] == 0
    assert found.resolved.tolist() == [False, True]
    # Resolved: the half-width of the interval is less than the flow.
    assert (found.high[0] - found.low[0]) / 2 > 0.5
    assert (found.high[1] - found.low[1]) / 2 < 100


def test_one_world_of_one_flow_has_no_spread():
    found = errors_of([[36.0]], np.array([25.0])).interval(np.array([25.0]))
    assert found.low == found.high == pytest.approx(36)


def test_errors_of_one_time_of_day_are_among_those_of_all():
    rng = np.random.default_rng(0)
    learned = rng.gamma(2, 20, (2, 3, 3))
    both = errors_of(rng.poisson(learned, (5, 2, 3, 3)).astype(float), learned)
    np.testing.assert_array_equal(
        both.at(1).interval(learned[1]).high, both.interval(learned).high[1]
    )


@pytest.mark.parametrize("n_worlds", [12, 400])
def test_nine_in_ten_of_what_happens_are_in_the_interval(n_worlds):
    """Errors of roots are normal with a bias and a spread that grow with the flow's size."""
    rng = np.random.default_rng(1)
    flows = rng.lognormal(4, 1.5, 20_000)
    size = np.floor(np.log2(flows))
    bias, spread = 0.1 * size, 0.3 + 0.1 * np.abs(size)

    def world():
        return np.maximum(np.sqrt(flows) + rng.normal(bias, spread), 0) ** 2

    errors = errors_of((world() for _ in range(n_worlds)), flows)
    found, happened = errors.interval(flows), world()
    held = (found.low <= happened) & (happened <= found.high)
    for some in (flows > 5, flows > 100):
        assert held[some].mean() == pytest.approx(LEVEL, abs=0.02)


# ------------------------------------------------------------------------------------------- sums


def test_an_interval_of_hand_calculated_errors():
    # Errors 1, 2, 3, 6 have mean 3 and variance (4 + 1 + 0 + 9) / 3.
    half = T_3 * np.sqrt(14 / 3) * np.sqrt(1 + 1 / 4)
    low, high = sum_interval(20.0, [1.0, 2.0, 3.0, 6.0])
    assert (low, high) == pytest.approx((23 - half, 23 + half), rel=1e-6)


def test_nobody_is_fewer_than_none_but_a_difference_is_below():
    errors = [-2.0, -4.0, -3.0, -3.0]
    low, high = sum_interval(0.5, errors)
    assert low == high == 0.0
    low, high = sum_interval(0.5, errors, positive=False)
    assert low < high < 0.0


def test_several_sums_at_once_have_the_intervals_of_each():
    rng = np.random.default_rng(0)
    sums, errors = np.array([[10.0, 20.0], [30.0, 40.0]]), rng.normal(size=(2, 2, 5))
    low, high = sum_interval(sums, errors)
    for at in np.ndindex(2, 2):
        assert (low[at], high[at]) == sum_interval(sums[at], errors[at])


def test_the_interval_holds_the_next_of_normal_errors_nine_times_in_ten():
    errors = np.random.default_rng(1).normal(3.0, 2.0, (20_000, 13))
    low, high = sum_interval(np.full(20_000, 100.0), errors[:, :12])
    truth = 100.0 + errors[:, 12]
    held = ((low <= truth) & (truth <= high)).mean()
    # Four standard errors of a share of 20,000.
    assert abs(held - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 20_000)


def test_rows_of_sparse_transitions_vary_as_those_of_whole_ones():
    rng = np.random.default_rng(3)
    allowed = (rng.random((7, 7)) < 0.5) | np.eye(7, dtype=bool)
    transmats = rng.random((2, 7, 7)) * allowed
    transmats /= transmats.sum(axis=-1, keepdims=True)
    flows = 200 * transmats
    seen = RootErrors(flows.shape)
    for _ in range(4):
        seen.add(rng.poisson(flows).astype(float) + 3.0 * allowed, flows)
    few = RootErrors((2, int(allowed.sum())))
    few.sized = seen.sized
    like = sparse.csr_array(allowed.astype(float))
    found = varied_rows(
        transmats[:, allowed], flows[:, allowed], few, np.random.default_rng(1), like
    )
    sums = np.zeros((2, 7, 7))
    sums[:, allowed] = found
    np.testing.assert_allclose(sums.sum(axis=-1), 1.0)
    assert (found >= 0).all()
    assert not np.allclose(found, transmats[:, allowed])
    # With a pattern of all moves the figures are the same.
    every = sparse.csr_array(np.ones((7, 7)))
    rows = varied_rows(
        transmats.reshape(2, -1), flows.reshape(2, -1), seen, np.random.default_rng(2), every
    )
    expected = varied_rows(transmats, flows, seen, np.random.default_rng(2))
    np.testing.assert_allclose(rows, expected.reshape(2, -1), rtol=1e-12)
