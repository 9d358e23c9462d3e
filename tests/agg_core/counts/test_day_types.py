"""Types of days, counted by hand on a calendar."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.report import Guess
from agg_core.counts.day_types import DaysNamed, TypedDays, check_labels
from agg_core.counts.erring import CountError, erring_pairs
from agg_core.counts.pairs import DAY_TYPES, pairs_of
from tests.agg_core.counts import made
from tests.faults import refused

START = "2024-04-29"
"""A Monday and a holiday in Japan, as are the third to the sixth of May."""
STRIKE = {"2024-05-07": "strike", "2024-05-11": "strike", "2024-05-14": "strike"}


def table(days=21, zone="Asia/Tokyo"):
    """Two moments on each day, and nothing between days."""
    runs = np.repeat(np.arange(days), 2)
    return made.table(np.ones((days * 2, 2)), steps=2, start=START, runs=runs, zone=zone)


@pytest.fixture(scope="module")
def pairs():
    return pairs_of(table())


def days_of(found):
    """Days of the month of each type, April's 29th and 30th as -1 and 0."""
    first = np.datetime64("2024-05-01")
    return {
        name: [int((np.datetime64(day) - first).astype(int)) + 1 for day in days]
        for name, days in zip(found.names, found.dates, strict=True)
    }


def test_without_names_days_are_weekdays_and_weekends(pairs):
    assert DaysNamed().on(pairs) is pairs
    found = days_of(DaysNamed().told(pairs))
    assert list(found) == ["weekday", "weekend"]
    assert found["weekend"] == [4, 5, 11, 12, 18, 19]


def test_holidays_are_a_type_and_else_days_of_weekends(pairs):
    days = DaysNamed("JP")
    assert days_of(days.told(pairs)) == {
        "weekday": [0, 1, 2, 7, 8, 9, 10, 13, 14, 15, 16, 17],
        "weekend": [11, 12, 18, 19],
        "holiday": [-1, 3, 4, 5, 6],
    }
    typed = days.on(pairs)
    assert typed.day_types == ("weekday", "weekend", "holiday")
    assert set(typed.day_type.tolist()) == {0, 1, 3}
    assert typed.types_apart == (1, 2)
    # Not apart, they count as days of weekends; apart from all other days they are five.
    assert typed.type_numbers((1,)).sum() == 9
    assert typed.type_numbers((2,)).sum() == 5
    assert np.bincount(typed.type_numbers((1, 2))).tolist() == [12, 4, 5]


def test_too_few_holidays_are_days_of_weekends_and_said(pairs):
    # In Germany the first and the ninth of May, Ascension; Whit Monday is the twentieth.
    found = DaysNamed("DE").told(pairs)
    assert found.joined == (("holiday", 2),)
    assert days_of(found)["weekend"] == [1, 4, 5, 9, 11, 12, 18, 19]
    assert len(found.sentences) == 1
    assert DaysNamed("DE").on(pairs).day_types == DAY_TYPES


def test_a_label_counts_before_all_else(pairs):
    days = DaysNamed("JP", check_labels(STRIKE | {"2024-05-06": "strike"}))
    found = days_of(days.told(pairs))
    assert found["strike"] == [6, 7, 11, 14]
    assert found["holiday"] == [-1, 3, 4, 5]
    assert found["weekend"] == [12, 18, 19]
    typed = days.on(pairs)
    assert typed.types_apart == (1, 2, 3)
    # Without strikes apart their days are what they are otherwise: the sixth a holiday.
    assert np.bincount(typed.type_numbers((1, 2))).tolist() == [12, 4, 5]
    assert np.bincount(typed.type_numbers((3,))).tolist() == [17, 4]


def test_times_of_day_are_named_by_types(pairs):
    typed = DaysNamed("JP", check_labels(STRIKE)).on(pairs)
    # The second moment of a day begins no pair.
    assert typed.by_day_type((1, 3)).slots == tuple(
        f"{slot} {name}" for name in ("weekday", "weekend", "strike") for slot in ("00:00", "01:00")
    )
    assert typed.by_day_type((3,)).slots[0] == "00:00 other day"
    assert np.bincount(typed.by_day_type((3,)).slot).tolist() == [18, 0, 3]
    kept = typed.take(typed.day_type >= 4)
    assert kept.by_day_type((3,)).slot.tolist() == [2, 2, 2]


def test_a_label_of_too_few_days_is_joined_to_what_they_are_otherwise(pairs):
    labels = {"2024-05-07": "match", "2024-05-11": "match", "2030-01-01": "far"}
    found = DaysNamed(labels=check_labels(labels)).told(pairs)
    assert found == replace(DaysNamed().told(pairs), joined=(("far", 0), ("match", 2)))
    assert len(found.sentences) == 2
    typed = DaysNamed(labels=check_labels(labels)).on(pairs)
    np.testing.assert_array_equal(typed.day_type, pairs.day_type)


def test_labels_may_be_the_types_that_there_are(pairs):
    labels = {"2024-05-06": "Weekday", "2024-05-07": "weekend", "2024-05-08": "HOLIDAY"}
    found = days_of(DaysNamed("JP", check_labels(labels)).told(pairs))
    assert list(found) == ["weekday", "weekend", "holiday"]
    assert 6 in found["weekday"]
    assert found["weekend"] == [7, 11, 12, 18, 19]
    assert found["holiday"] == [-1, 3, 4, 5, 8]
    # Too few without those of a calendar: days of weekends.
    few = DaysNamed(labels=check_labels(labels)).told(pairs)
    assert few.joined == (("holiday", 1),)
    assert 8 in days_of(few)["weekend"]


def test_types_that_leave_too_few_other_days_cannot_be_apart(pairs):
    weekdays = [day for day, kind in zip(pairs.date, pairs.day_type, strict=True) if not kind]
    labels = {str(np.datetime64(int(day), "D")): "work" for day in weekdays[:-2]}
    typed = DaysNamed(labels=check_labels(labels)).on(pairs)
    assert typed.can_be_apart((1,))
    assert typed.can_be_apart((2,))
    assert not typed.can_be_apart((1, 2))
    assert typed.types_apart == (1,)
    assert not replace(typed, day_type=None).has_day_types


def test_dates_are_those_of_the_local_clock():
    # Two in the morning in Tokyo is still the day before in Greenwich.
    runs = np.repeat(np.arange(9), 2)
    late = made.table(np.ones((18, 2)), steps=2, start=START, runs=runs, zone="Asia/Tokyo")
    assert late.times[0].day == 28
    found = DaysNamed(labels=(("2024-04-29", "a"),)).told(pairs_of(late))
    assert found.joined == (("a", 1),)


def test_counts_that_err_have_the_same_types(pairs):
    days = DaysNamed("JP", check_labels(STRIKE))
    erring = days.on(erring_pairs(table(), CountError(0.1, 1.0), outside=False))
    np.testing.assert_array_equal(erring.day_type, days.on(pairs).day_type)
    assert erring.day_types == days.on(pairs).day_types


def test_counts_that_stand_for_months_have_no_dates():
    stand_in = table()
    guesses = {"dates": Guess("months and kinds of day")}
    stand_in = replace(stand_in, report=replace(stand_in.report, guesses=guesses))
    assert not stand_in.has_dates
    DaysNamed().check(stand_in)
    DaysNamed("JP").check(table())
    for days in (DaysNamed("JP"), DaysNamed(labels=(("2024-05-01", "a"),))):
        with refused("dates-unknown"):
            days.check(stand_in)


def test_labels_are_kept_in_order_and_each_once():
    given = [("2024-05-02", " school  holiday"), ("2024-05-01", "a"), ("2024-05-01", "a")]
    kept = (("2024-05-01", "a"), ("2024-05-02", "school holiday"))
    assert check_labels(given) == check_labels(dict(given)) == check_labels(kept) == kept


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([("2024-05-01", "a"), ("2024-05-01", "b")], "day-labels-conflict"),
        ([("2024-02-30", "a")], "day-label-without-date"),
        ([("tomorrow", "a")], "day-label-without-date"),
        ([("", "a")], "day-label-without-date"),
        ([("2024-05-01", " ")], "day-label-unusable"),
        ([("2024-05-01", "x" * 41)], "day-label-unusable"),
        ([("2024-05-01", "a\x00b")], "day-label-unusable"),
        ([(f"2024-05-{day:02d}", f"label {day}") for day in range(1, 14)], "too-many-day-labels"),
    ],
)
def test_labels_that_cannot_be_kept_are_refused(labels, code):
    with refused(code):
        check_labels(labels)


def test_nothing_is_said_where_all_names_have_enough_days():
    assert TypedDays(("weekday",), (("2024-05-01",),)).sentences == ()
