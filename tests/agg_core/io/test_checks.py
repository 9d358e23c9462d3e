"""Order, twins, leaps and wrong clocks, on fixes made by hand."""

from collections import Counter

import numpy as np
import pytest

from agg_core.io import Choices
from agg_core.io.account import Account
from agg_core.io.checks import Tidy, usual_span
from agg_core.io.fixes import Fixes

START = np.datetime64("2024-02-01T09:00:00", "us")
KM_PER_DEGREE = 111.195  # of a great circle of the mean radius


def fixes(*rows):
    """(user, minutes after the start, degrees north) a row."""
    user, minutes, lat = (np.array(column) for column in zip(*rows, strict=True))
    time = START + minutes.astype("timedelta64[m]")
    return Fixes(user, time, np.zeros(len(rows)), lat.astype(float), np.arange(len(rows)))


def tidied(made, **stated):
    account = Account()
    account.follow(0, lambda rows: rows + 1)
    days = Counter(made.time.astype("datetime64[D]"))
    tidy = Tidy(["a", "b"], Choices.of(**stated), account, usual_span(days))
    return tidy(made), account.result(), tidy.guesses


def test_fixes_come_in_order_of_person_and_time():
    kept, aside, guesses = tidied(fixes((1, 5, 0), (0, 9, 0), (1, 0, 0), (0, 1, 0)))
    assert kept.row.tolist() == [3, 1, 2, 0]
    assert (aside, guesses) == ({}, {})


def test_the_speed_of_a_move():
    # A degree in five minutes is 1,334 km/h, in six 1,112.
    slow = tidied(fixes((0, 0, 0), (0, 6, 1)))[2]
    fast = tidied(fixes((0, 0, 0), (0, 5, 1)))[2]
    assert "speed" not in slow
    assert fast["speed"].note == "moves faster than 1,200 km/h: 1"
    limit = 60 * KM_PER_DEGREE / 5
    assert len(tidied(fixes((0, 0, 0), (0, 5, 1)), max_speed=limit + 1)[0]) == 2
    assert len(tidied(fixes((0, 0, 0), (0, 5, 1)), max_speed=limit - 1)[0]) == 1


@pytest.mark.parametrize(
    ("lats", "kept"),
    [
        ([0, 0.01, 5, 0.02, 0.03], [0, 1, 3, 4]),  # a leap and back
        ([5, 0.01, 0.02, 0.03], [1, 2, 3]),  # wrong from the start
        ([0, 0.01, 0.02, 5], [0, 1, 2]),  # wrong at the end
        ([0, 5, 5.01, 0.01, 0.02], [0, 3, 4]),  # two wrong fixes that agree
        ([0, 5, 0.01, 5, 0.02, 9, 0.03], [0, 2, 4, 6]),
        ([0, 0.01, 5, 5.01, 5.02], [2, 3, 4]),  # more than half lie elsewhere
    ],
)
def test_the_largest_part_that_can_be_walked_stays(lats, kept):
    made = fixes(*((0, minute, lat) for minute, lat in enumerate(lats)))
    assert tidied(made, max_speed=300)[0].row.tolist() == kept


def test_a_leap_of_one_person_leaves_the_others_alone():
    made = fixes((0, 0, 0), (0, 1, 5), (0, 2, 0), (1, 0, 40), (1, 1, 40))
    kept, aside, _ = tidied(made, max_speed=300)
    assert kept.row.tolist() == [0, 2, 3, 4]
    assert aside["faster than 300 km/h"].lines == (2,)
    assert aside["faster than 300 km/h"].example.startswith("user_id=a, time=2024-02-01T09:01:00")


YEAR = 366 * 24 * 60


@pytest.mark.parametrize(
    ("minutes", "far"),
    [
        ([0, 1, 2, 20 * YEAR], [3]),
        ([-20 * YEAR, 0, 1, 2], [0]),
        ([0, 1, 2, 3 * YEAR], []),  # a long pause
        ([-44 * YEAR, 0, 1, 20 * YEAR, 20 * YEAR + 1, 2], [0, 3, 4]),
    ],
)
def test_clocks_years_away(minutes, far):
    made = fixes(*((0, minute, 0) for minute in minutes))
    kept, _, guesses = tidied(made)
    assert sorted(set(range(len(minutes))) - set(kept.row.tolist())) == far
    assert ("clocks" in guesses) == bool(far)
    assert ("gaps" in guesses) == (minutes == [0, 1, 2, 3 * YEAR])
    assert len(tidied(made, time_outliers="keep")[0]) == len(minutes)


def test_of_twins_the_last_or_the_first_in_the_file():
    made = fixes((0, 0, 1), (0, 5, 2), (0, 0, 3), (0, 0, 4))
    assert tidied(made)[0].lat.tolist() == [4, 2]
    assert tidied(made, duplicates="first")[0].lat.tolist() == [1, 2]
    assert tidied(made)[1]["duplicate time"].lines == (1, 3)


def test_pauses_are_counted_within_people():
    day = 24 * 60
    made = fixes((0, 0, 0), (0, day, 0), (0, 2 * day + 1, 0), (1, 9 * day, 0))
    assert tidied(made)[2]["gaps"].value == "pauses longer than a day: 1"
