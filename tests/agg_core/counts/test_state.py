"""Where a learner stands: how far rows moved, and what it begins with."""

import numpy as np
import pytest

from agg_core.counts.state import apart, begin_rows
from tests.agg_core.counts import made

PAIRS = made.pairs([[30, 10], [0, 20]], [[20, 20], [10, 10]], slot=[0, 1], n_slots=2)
SAME, SWAP = np.eye(2), np.eye(2)[::-1]


def test_distance_counts_rows_by_the_people_in_them():
    # 30 of 60 people are in the first cell, and its row moved by 0.2 + 0.2.
    after = np.array([[[0.8, 0.2], [0.0, 1.0]]])
    assert apart(SAME[None], after, PAIRS) == pytest.approx(0.5 * 0.4)


def test_distance_by_time_of_day():
    # Only the 20 people in the second cell at the second time are in a row that moved.
    before = np.stack([SAME, SAME])
    after = np.stack([SAME, [[0.0, 1.0], [0.5, 0.5]]])
    assert apart(before, after, PAIRS) == pytest.approx(20 / 60 * 1.0)


def test_the_farthest_is_two_and_the_same_is_zero():
    assert apart(SAME[None], SWAP[None], PAIRS) == 2
    assert apart(SAME[None], SAME[None], PAIRS) == 0


def test_nobody_is_no_distance():
    empty = made.pairs([[0, 0]], [[0, 0]])
    assert apart(SAME[None], SWAP[None], empty) == 0


def test_rows_to_begin_with_are_repeated_kept_or_averaged():
    np.testing.assert_array_equal(begin_rows(SAME, 3), [SAME, SAME, SAME])
    both = np.stack([SAME, SWAP])
    np.testing.assert_array_equal(begin_rows(both, 2), both)
    np.testing.assert_array_equal(begin_rows(both, 1), [[[0.5, 0.5], [0.5, 0.5]]])
    np.testing.assert_array_equal(begin_rows(SWAP[None], 2), [SWAP, SWAP])


def test_rows_to_begin_with_are_a_copy():
    begun = begin_rows(SAME, 1)
    begun[0, 0, 0] = 7
    assert SAME[0, 0] == 1
