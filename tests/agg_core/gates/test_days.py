import numpy as np
import pandas as pd
import pytest

from agg_core.gates.days import kinds_of_days, passing_as, service_days
from agg_core.io.gates import read_gates
from agg_core.tables.gates import GateTable
from tests.agg_core.gates.made import STATIONS, long_table, trips
from tests.faults import refused


def gates(n_days: int = 7) -> GateTable:
    entries, exits, _ = trips(n_days)
    return read_gates(long_table(entries), long_table(exits))


def test_a_day_ends_in_the_night() -> None:
    days = service_days(gates())
    # Trips are from 6 to 23: the middle of the quiet hours is the cut.
    assert days.n_days == 7
    assert days.dates[0] == "2024-05-06"
    assert days.entries[:, days.slot == 6].sum() > 0
    assert days.slot[0] in (2, 3)
    assert days.slots[int(days.slot[0])] == f"{days.slot[0]:02d}:00"


def test_who_leaves_after_midnight_is_of_the_evening() -> None:
    entries, exits = np.zeros((2, 3, 24, len(STATIONS)))
    entries[:, 8], exits[:, 9] = 10, 10
    entries[0, 23, 0], exits[1, 0, 1] = 5, 5
    days = service_days(read_gates(long_table(entries), long_table(exits)))
    assert days.dates[0] == "2024-05-06"
    of_first = days.exits[0].sum(axis=0)
    assert of_first[1] == pytest.approx(15)


def test_both_sums_of_a_day_are_the_larger() -> None:
    entries, exits, _ = trips(5)
    exits = np.floor(exits * 0.9)
    days = service_days(read_gates(long_table(entries), long_table(exits)))
    assert days.exits.sum(axis=(1, 2)) == pytest.approx(entries.sum(axis=(1, 2)))
    assert days.entries.sum(axis=(1, 2)) == pytest.approx(entries.sum(axis=(1, 2)))
    assert days.never_left == pytest.approx((entries - exits).sum(axis=(1, 2)))


def test_missing_hours_are_as_usual_and_missing_days_are_left_out() -> None:
    entries, exits, _ = trips(10)
    table = long_table(entries)
    one_hour = (table["date"] == "2024-05-08") & (table["hour"] == 12)
    a_day = (table["date"] == "2024-05-09") & (table["hour"] > 8)
    days = service_days(read_gates(table[~one_hour & ~a_day], long_table(exits)))
    assert days.left_out == ("2024-05-09",)
    assert days.n_filled == len(STATIONS)
    at = days.dates.index("2024-05-08")
    others = [0, 1, 4]
    assert entries[others, 12].sum() / 3 == pytest.approx(
        days.entries[at, days.slot == 12].sum(), rel=0.1
    )


def test_a_closed_station_is_seen() -> None:
    entries, exits, _ = trips(6)
    entries[2, :, 4], exits[2, :, 4] = 0, 0
    days = service_days(read_gates(long_table(entries), long_table(exits)))
    assert np.argwhere(~days.is_open).tolist() == [[2, 4]]


def test_kinds_of_days() -> None:
    dates = ("2024-05-06", "2024-05-10", "2024-05-11", "2024-05-12", "2024-05-13")
    assert kinds_of_days(dates).tolist() == [0, 0, 1, 2, 0]
    assert kinds_of_days(dates, {"2024-05-13": "holiday"}).tolist() == [0, 0, 1, 2, 3]


def test_a_holiday_passes_as_a_sunday() -> None:
    entries, exits, _ = trips(35)
    weekday = np.array(kinds_of_days(tuple(
        str(np.datetime64("2024-05-06") + day) for day in range(35)
    )))  # fmt: skip
    calm = (weekday == 2) | (np.arange(35) == 9)
    entries[calm] = np.roll(entries[calm], -3, axis=1)
    exits[calm] = np.roll(exits[calm], -3, axis=1)
    days = service_days(read_gates(long_table(entries), long_table(exits)))
    found = passing_as(days, kinds_of_days(days.dates))
    assert found[9] == 2
    others = np.arange(35) != 9
    assert np.array_equal(found[others], weekday[others])


def test_quarter_hours_become_hours() -> None:
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-05-06", periods=4 * 24 * 3, freq="15min").strftime("%Y-%m-%d %H:%M")
    rows = [(time, name) for time in times for name in "ab"]
    table = pd.DataFrame(rows, columns=["time", "station"])
    table["entries"], table["exits"] = rng.poisson(20, len(rows)), rng.poisson(20, len(rows))
    days = service_days(read_gates(table))
    assert days.entries.shape[1] == 96
    whole = days.by_hour()
    assert whole.entries.shape[1] == 24
    assert whole.step_minutes == 60.0
    assert whole.entries.sum() == pytest.approx(days.entries.sum())


def test_no_whole_day() -> None:
    entries, exits, _ = trips(1)
    table = long_table(entries)
    with refused("no-whole-day"):
        service_days(read_gates(*(side[side["hour"] < 9] for side in (table, long_table(exits)))))


def test_steps_of_two_hours_are_refused() -> None:
    times = pd.date_range("2024-05-06", periods=36, freq="2h").strftime("%Y-%m-%d %H:%M")
    table = pd.DataFrame({"time": times, "station": "a", "entries": 5, "exits": 5})
    with refused("steps-too-long"):
        service_days(read_gates(table))
