"""Spans of time in words."""

from itertools import pairwise

import pytest

from agg_core.base.durations import SAID_S, about, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (89, "89 s"),
        (150, "2 min"),
        (5400, "1 h 30 min"),
        (9000, "2 h 30 min"),
        (3_600 * 24 + 300.9, "24 h 05 min"),
        (3_600 * 100, "100 h 00 min"),
    ],
)
def test_a_span(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, 0.4, "a few seconds"),
        (2, 5, "a few seconds"),
        (18, 66, "20 s to 1 min"),
        (110, 380, "2 to 6 min"),
        (41, 50, "45 s"),
        (3_000, 10_000, "45 min to 3 h"),
        (90_000, 400_000, "24 h or more"),
        (300_000, 400_000, "days"),
    ],
)
def test_a_range_in_round_numbers(low, high, words):
    assert about(low, high) == words


def test_numbers_that_are_said_are_within_a_third_of_what_they_stand_for():
    steps = [b / a for a, b in pairwise(SAID_S[2:])]
    # Half of a step, by ratio, to either side.
    assert max(steps) ** 0.5 < 4 / 3 + 0.1
