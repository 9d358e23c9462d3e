"""Pairs of successive counts: which moments follow, what is left out, and who is outside."""

import numpy as np
import pytest

from agg_core.counts.pairs import pairs_of
from agg_core.made.counts import simulate_city
from tests.agg_core import tiny
from tests.agg_core.counts import made
from tests.faults import refused

HIDDEN, MISSING = np.inf, np.nan


def test_pairs_are_each_moment_and_the_next():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [0, 4]], steps=3))
    assert pairs.before.tolist() == [[3, 1], [2, 2]]
    assert pairs.after.tolist() == [[2, 2], [0, 4]]
    assert pairs.slot.tolist() == [0, 1]
    assert pairs.slots == ("00:00", "01:00", "02:00")
    assert (pairs.n_pairs, pairs.n_states, pairs.n_days) == (2, 2, 1)
    assert (pairs.n_left_out, pairs.n_filled, pairs.has_outside) == (0, 0, False)


def test_pairs_cross_midnight_and_belong_to_the_day_they_begin_in():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [1, 3], [4, 0]], steps=2))
    assert pairs.slot.tolist() == [0, 1, 0]
    assert pairs.day.tolist() == [0, 0, 1]
    assert pairs.before[1].tolist() == [2, 2]
    assert pairs.after[1].tolist() == [1, 3]


def test_the_day_is_that_of_the_zone():
    # 30 hours from midnight in Tokyo are two local days, but begin at 15:00 of a third in UTC.
    pairs = pairs_of(made.table([[1, 2]] * 30, zone="Asia/Tokyo"))
    assert np.bincount(pairs.day).tolist() == [24, 5]


def test_no_pair_leads_from_one_run_to_another():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [1, 3], [4, 0]], steps=4, runs=[0, 0, 1, 1]))
    assert pairs.before.tolist() == [[3, 1], [1, 3]]
    assert pairs.after.tolist() == [[2, 2], [4, 0]]
    assert pairs.n_days == 2
    assert pairs.n_left_out == 0


def test_pairs_with_a_missing_count_are_left_out_and_counted():
    counts = [[3, 1], [2, 2], [MISSING, 3], [4, 0], [0, 4], [1, 3]]
    pairs = pairs_of(made.table(counts, steps=6))
    assert pairs.before.tolist() == [[3, 1], [4, 0], [0, 4]]
    assert pairs.slot.tolist() == [0, 3, 4]
    assert pairs.n_left_out == 2


def test_days_of_different_totals_have_no_outside_but_no_pair_from_one_to_the_next():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [5, 1], [4, 2]], steps=2))
    assert not pairs.has_outside
    assert pairs.before.tolist() == [[3, 1], [5, 1]]
    assert pairs.n_left_out == 1


def test_people_who_come_and_go_are_outside():
    pairs = pairs_of(made.table([[3, 1], [2, 5], [1, 0]], steps=3))
    assert pairs.has_outside
    assert pairs.n_states == 3
    assert pairs.before.tolist() == [[3, 1, 3], [2, 5, 0]]
    assert pairs.after.tolist() == [[2, 5, 0], [1, 0, 6]]
    assert not pairs.open_before[:, -1].any()


def test_across_midnight_the_outside_of_the_smaller_day_is_larger():
    # Fullest moments of 4 and of 7: the pair across midnight has 7 people at both ends.
    pairs = pairs_of(made.table([[3, 1], [2, 1], [2, 5], [1, 0]], steps=2))
    assert pairs.before.tolist() == [[3, 1, 0], [2, 1, 4], [2, 5, 0]]
    assert pairs.after.tolist() == [[2, 1, 1], [2, 5, 0], [1, 0, 6]]
    assert pairs.n_left_out == 0


@pytest.mark.parametrize("people", [150, 300])
def test_suppressed_counts_are_within_bounds_and_sums_are_equal(people):
    city = simulate_city(4, 4, days=3, people=people, random_state=2)
    pairs = pairs_of(made.city_table(city, below=10, runs=np.repeat([0, 1, 2], 24)))
    first = np.flatnonzero(np.arange(71) % 24 != 23)
    hidden = city.counts < 10
    assert pairs.n_filled == hidden[first].sum() + hidden[first + 1].sum()
    assert pairs.n_filled > 100
    np.testing.assert_array_equal(pairs.open_before, hidden[first])
    for counts, is_open, true in (
        (pairs.before, pairs.open_before, city.counts[first]),
        (pairs.after, pairs.open_after, city.counts[first + 1]),
    ):
        assert counts[is_open].min() >= 0
        assert counts[is_open].max() < 10
        np.testing.assert_array_equal(counts, np.floor(counts))
        np.testing.assert_array_equal(counts[~is_open], true[~is_open])
    np.testing.assert_array_equal(pairs.before.sum(axis=1), pairs.after.sum(axis=1))


def test_suppressed_counts_that_cannot_hold_the_rest_leave_people_outside():
    # Two cells below 3 hold 4 people at most; 40 were there an hour ago.
    pairs = pairs_of(made.table([[40, 0, 0], [20, HIDDEN, HIDDEN]], steps=2, below=3))
    assert pairs.has_outside
    assert pairs.before.tolist() == [[40, 0, 0, 0]]
    inside = pairs.after[0, :3]
    assert inside[0] == 20
    assert (inside[1:] < 3).all()
    assert pairs.after[0].sum() == 40


def test_people_and_pairs_by_time_of_day():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [1, 3], [4, 0]], steps=2))
    assert pairs.people.tolist() == [[4, 4], [2, 2]]
    assert pairs.pairs_per_slot.tolist() == [2, 1]
    assert pairs.crowd == pytest.approx(12 / 6)


def test_an_empty_cell_does_not_thin_out_the_crowd():
    assert made.pairs([[6, 0], [2, 0]], [[0, 6], [1, 1]]).crowd == 4


def test_some_of_the_pairs_by_mask_or_number():
    pairs = pairs_of(made.table([[3, 1], [2, 2], [1, 3], [4, 0]], steps=2))
    for chosen in ([False, True, True], [1, 2]):
        some = pairs.take(chosen)
        assert some.before.tolist() == [[2, 2], [1, 3]]
        assert some.after.tolist() == [[1, 3], [4, 0]]
        assert some.day.tolist() == [0, 1]
        assert some.slot.tolist() == [1, 0]
        assert some.slots == pairs.slots


@pytest.mark.parametrize(
    ("counts", "runs"),
    [
        ([[1, 2]], None),
        ([[1, 2], [2, 1]], [0, 1]),
        ([[1, 2], [MISSING, 1], [2, 1]], None),
    ],
)
def test_without_two_successive_moments_nothing_is_paired(counts, runs):
    with refused("no-successive-moments") as caught:
        pairs_of(made.table(counts, runs=runs))
    assert tiny.is_one_sentence(str(caught.value))
