"""Tables of counters: lines, directions, slots of any length, days, and what is set aside."""

import pandas as pd
import pytest

from agg_core.io.counters import KnownLines, read_counters
from tests.faults import refused

LINES = {
    "River": ("eastbound", "westbound"),
    "centre": ("in", "out"),
    "canal": ("north-eastbound", "south-westbound"),
}
TIMES = ("08:00", "09:00", "17:00")
KNOWN = KnownLines(LINES, TIMES, 60.0)


def read(text, known=KNOWN):
    return read_counters(text.encode(), known)


def volumes(table):
    return dict(zip(zip(*(table.counters[name] for name in ("line", "direction", "time")),
                        strict=True), table.counters["count"], strict=True))  # fmt: skip


def test_counters_of_a_line_and_a_way_are_summed():
    found = read(
        "line,direction,time,count\nRiver,eastbound,08:00,100\nriver,E,8:00,20\n"
        "RIVER,forward,09:00,7\nRiver,west,09:00,5\n"
    )
    assert volumes(found) == {
        ("River", "eastbound", "08:00"): 120, ("River", "eastbound", "09:00"): 7,
        ("River", "westbound", "09:00"): 5,
    }  # fmt: skip
    assert (found.set_aside, found.slot_minutes, found.n_days) == ({}, 60, 1)


def test_slots_of_a_quarter_of_an_hour_are_made_hourly():
    rows = "".join(
        f"River,E,08:{minute:02d},{10 + i}\n" for i, minute in enumerate((0, 15, 30, 45))
    )
    found = read("line,direction,time,count\n" + rows)
    assert found.slot_minutes == 15
    assert volumes(found) == {("River", "eastbound", "08:00"): 10 + 11 + 12 + 13}
    # A quarter that is missing is as the others.
    less = read("line,direction,time,count\nRiver,E,08:00,10\nRiver,E,08:15,11\nRiver,E,08:45,12\n")
    assert volumes(less) == {("River", "eastbound", "08:00"): pytest.approx(4 * 11)}


def test_hourly_counts_are_hourly_where_steps_are_shorter():
    known = KnownLines(LINES, ("08:00", "08:30", "09:00"), 30.0)
    found = read("line,direction,time,count\nRiver,E,08:00,100\nRiver,E,09:00,60\n", known)
    assert volumes(found) == {
        ("River", "eastbound", "08:00"): 100, ("River", "eastbound", "09:00"): 60,
    }  # fmt: skip


def test_one_time_lasts_an_hour_or_a_longer_step_of_the_flows():
    for minutes, volume in ((30.0, 100), (60.0, 100), (120.0, 50)):
        known = KnownLines(LINES, ("08:00",), minutes)
        found = read("line,direction,time,count\nRiver,E,08:00,100\n", known)
        assert volumes(found) == {("River", "eastbound", "08:00"): volume}
    unknown = read("line,direction,time,count\nRiver,E,08:00,9\n", KnownLines(LINES, TIMES))
    assert volumes(unknown) == {("River", "eastbound", "08:00"): 9}


def test_how_long_a_count_lasts_can_be_said():
    known = KnownLines(LINES, ("08:00",), 30.0, slot_minutes=30)
    found = read("line,direction,time,count\nRiver,E,08:00,100\n", known)
    assert volumes(found) == {("River", "eastbound", "08:00"): 200}
    with refused("value-out-of-range"):
        read("line,direction,time,count\nRiver,E,08:00,1\n", KnownLines(LINES, TIMES, 30, "UTC", 0))


def test_days_are_averaged_by_moments_and_by_a_column_of_dates():
    moments = (
        "line,direction,time,count\nRiver,E,2024-05-01 08:00,100\nRiver,E,2024-05-01 08:30,40\n"
        "River,E,2024-05-02 08:00,60\nRiver,E,2024-05-02 08:30,20\n"
    )
    expected = {("River", "eastbound", "08:00"): (140 + 80) / 2}
    found = read(moments)
    assert (volumes(found), found.n_days) == (expected, 2)
    dates = moments.replace("time,count", "date,time,count").replace(" 08", ",08")
    assert volumes(read(dates)) == expected


@pytest.mark.parametrize(
    ("line", "written", "way"),
    [
        ("centre", "in", "in"), ("centre", "Outbound", "out"), ("centre", "2", "out"),
        ("centre", "N", None), ("River", "in", None), ("River", "EB", "eastbound"),
        ("River", "to west", "westbound"), ("River", "N", None), ("River", "NE", "eastbound"),
        ("canal", "N", "north-eastbound"), ("canal", "sw", "south-westbound"),
        ("canal", "northeast", "north-eastbound"), ("canal", "SE", None),
        ("canal", "backward", "south-westbound"), ("River", "up", None), ("River", "", None),
    ],
)  # fmt: skip
def test_directions_by_name_by_order_and_by_winds(line, written, way):
    found = read(f"line,direction,time,count\n{line},{written},08:00,1\nRiver,E,09:00,1\n")
    assert volumes(found).get((line, way, "08:00")) == (None if way is None else 1)
    assert found.set_aside == ({"no such direction": 1} if way is None else {})


def test_what_cannot_be_used_is_set_aside_with_a_count():
    found = read(
        "line,direction,time,count\nRiver,E,08:00,3\nlake,E,08:00,1\nRiver,up,08:00,1\n"
        "River,E,12:00,1\nRiver,E,noon,1\nRiver,E,08:00,-2\nRiver,E,08:00,many\nRiver,E,08:00,\n"
    )
    assert volumes(found) == {("River", "eastbound", "08:00"): 3}
    assert found.set_aside == {
        "no such line": 1, "no such direction": 1, "no such time of day": 2, "negative count": 1,
        "count is no number": 1, "missing count": 1,
    }  # fmt: skip


def test_a_label_that_is_no_clock_time_is_of_a_whole_day():
    known = KnownLines(LINES, ("whole day", "08:00"), 60.0)
    found = read("line,direction,time,count\nRiver,E,whole day,2400\nRiver,E,08:00,9\n", known)
    assert volumes(found) == {
        ("River", "eastbound", "whole day"): 100, ("River", "eastbound", "08:00"): 9,
    }  # fmt: skip


def test_a_data_frame_and_a_workbook_give_the_same(tmp_path):
    rows = pd.DataFrame({"line": ["River"], "direction": ["E"], "time": ["08:00"], "count": [4.0]})
    rows.to_parquet(tmp_path / "a.parquet")
    for source in (rows, tmp_path / "a.parquet"):
        assert volumes(read_counters(source, KNOWN)) == {("River", "eastbound", "08:00"): 4}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("line,direction,count\nRiver,E,1\n", "column-not-found"),
        ("line,direction,time,count\nlake,E,08:00,1\n", "unknown-lines"),
        ("line,direction,time,count\nRiver,E,08:00,\n", "no-rows-left"),
        ("line,direction,time,count\nRiver,E,2024-05-01,1\n", "times-missing"),
        ("", "empty-file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text, code):
    with refused(code):
        read(text)
