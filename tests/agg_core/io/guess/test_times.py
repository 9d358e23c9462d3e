import numpy as np
import pyarrow as pa
import pytest

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.guess.times import TimeReader, parse_times


def column(*values):
    return pa.chunked_array([pa.array(values)])


def read(*values, **choices):
    times = parse_times(column(*values), **choices)
    return [None if np.isnat(t) else str(t).removesuffix(".000000") for t in times.utc]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59"),
        ("2024-02-29T23:59:59.1234567+09:00", "2024-02-29T14:59:59.123456"),
        ("2024-02-29 23:59", "2024-02-29T23:59:00"),
        ("2024/2/9 3:05:07", "2024-02-09T03:05:07"),
        ("2024-02-29", "2024-02-29T00:00:00"),
        ("2024-02-29 10:00:00 UTC", "2024-02-29T10:00:00"),
        ("2024-02-29 10:00:00-0330", "2024-02-29T13:30:00"),
        ("2024-02-29 10:00+09", "2024-02-29T01:00:00"),
        ("20240229T100000Z", "2024-02-29T10:00:00"),
        ("20240229100000", "2024-02-29T10:00:00"),
        ("20240229", "2024-02-29T00:00:00"),
        ("20240229.0", "2024-02-29T00:00:00"),
        ("2024-02-29 0905", "2024-02-29T09:05:00"),
        ("2024-02-29 090507", "2024-02-29T09:05:07"),
        ("29/02/2024 10:00", "2024-02-29T10:00:00"),
        ("29.2.2024 10:00", "2024-02-29T10:00:00"),
        ("02/29/2024 12:05:00 AM", "2024-02-29T00:05:00"),
        ("02/29/2024 12:05 pm", "2024-02-29T12:05:00"),
        ("2021/4/1 24:00", "2021-04-02T00:00:00"),
        ("2021/4/1 25:10", "2021-04-02T01:10:00"),
        ("1561939200", "2019-07-01T00:00:00"),
        ("1561939200000", "2019-07-01T00:00:00"),
        ("1561939200000001", "2019-07-01T00:00:00.000001"),
        ("1561939200.5", "2019-07-01T00:00:00.500000"),
    ],
)
def test_one_time_in_each_form(text, instant):
    assert read(f" {text} ") == [instant]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        ([1561939200], "seconds"),
        ([1561939200_000], "milliseconds"),
        ([1561939200_000_000], "microseconds"),
        ([1561939200_000_000_000], "nanoseconds"),
        ([1561939200.0], "seconds"),
    ],
)
def test_epoch_units_by_magnitude(values, form):
    times = parse_times(column(*values))
    assert times.guesses["time format"].value == f"epoch {form}"
    assert str(times.utc[0]) == "2019-07-01T00:00:00.000000"


def test_one_reading_of_day_and_month_for_the_whole_column():
    assert read("11/03/2019 08:00", "13/03/2019 08:00") == [
        "2019-03-11T08:00:00",
        "2019-03-13T08:00:00",
    ]
    assert read("11/03/2019 08:00", "11/13/2019 08:00")[0] == "2019-11-03T08:00:00"
    both = parse_times(column("01/02/2019 08:00", "02/02/2019 08:00"))
    guess = both.guesses["time format"]
    assert (guess.value, guess.alternatives) == ("day/month/year", ("month/day/year",))
    assert "both ways" in guess.note
    chosen = read("01/02/2019 08:00", time_format="month/day/year")
    assert chosen == ["2019-01-02T08:00:00"]
    with pytest.raises(InputError) as told:
        read("01/02/2019 08:00", time_format="dmy")
    assert told.value.code == "unknown-time-format"


@pytest.mark.parametrize(
    "bad",
    ["2023-02-29", "2024-13-01", "2024-02-29 48:00", "2024-02-29 10:60", "2024-00-10", "1700-01-01",
     "2024-02-29 13:00 PM", "2024-02-29 10:00+24:00", "soon"],
)  # fmt: skip
def test_times_that_do_not_exist_are_unreadable(bad):
    times = parse_times(column("2024-02-28", bad, "", None))
    assert np.isnat(times.utc).tolist() == [False, True, True, True]
    assert times.causes["unreadable time"].tolist() == [False, True, False, False]
    assert times.causes["missing time"].tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("values", "tz", "zone"),
    [
        (["2024-02-01T09:00+09:00"], None, "UTC+09:00"),
        (["2024-02-01T09:00Z"], None, "UTC"),
        (["2024-02-01T09:00+09:00", "2024-02-01T09:00+08:00"], None, "UTC"),
        (["2024-02-01T09:00+09:00"], "Asia/Tokyo", "Asia/Tokyo"),
        (["2024-02-01T09:00"], "Asia/Tokyo", "Asia/Tokyo"),
        (["2024-02-01T09:00"], None, "UTC"),
    ],
)
def test_the_zone_of_the_clock(values, tz, zone):
    assert parse_times(column(*values), tz).timezone == zone


def test_an_offset_in_the_file_wins_over_the_stated_zone():
    assert read("2024-02-01T09:00+01:00", tz="Asia/Tokyo") == ["2024-02-01T08:00:00"]
    mixed = parse_times(column("2024-02-01T09:00Z", "2024-02-01T09:00"), "Asia/Tokyo")
    assert [str(t)[:13] for t in mixed.utc] == ["2024-02-01T09", "2024-02-01T00"]
    assert "times without an offset (1) are read in Asia/Tokyo" in mixed.guesses["time zone"].note


def test_a_zone_that_was_not_stated_is_a_guess():
    guess = parse_times(column("2024-02-01 09:00")).guesses["time zone"]
    assert guess.value == "UTC"
    assert "not stated" in guess.note


def test_hours_that_the_clock_skips_or_repeats_are_set_aside():
    times = parse_times(
        column("2018-03-25 01:55", "2018-03-25 02:00", "2018-03-25 03:00", "2018-10-28 02:30"),
        "Europe/Copenhagen",
    )
    assert np.isnat(times.utc).tolist() == [False, True, False, True]
    skipped = times.causes["time skipped by the clock of Europe/Copenhagen"]
    twice = times.causes["time shown twice by the clock of Europe/Copenhagen"]
    assert skipped.tolist() == [False, True, False, False]
    assert twice.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Tue Apr 03 18:00:09 +0000 2012", "2012-04-03T18:00:09"),
        ("Tue Apr 3 18:00:09 2012", "2012-04-03T18:00:09"),
        ("Tue, 03 Apr 2012 18:00:09 +0900", "2012-04-03T09:00:09"),
        ("3-Apr-2012 18:00", "2012-04-03T18:00:00"),
        ("03 April 2012, 6:00 PM", "2012-04-03T18:00:00"),
        ("April 3rd, 2012 18:00:09", "2012-04-03T18:00:09"),
        ("3. Dez 2012 18:00", "2012-12-03T18:00:00"),
        ("2021年4月1日 8時5分", "2021-04-01T08:05:00"),
        ("2021年4月1日8時", "2021-04-01T08:00:00"),
        ("2021年4月1日 午後8時30分15秒", "2021-04-01T20:30:15"),
        ("2021年12月31日 8:05", "2021-12-31T08:05:00"),
        ("２０２１／０４／０１　０８：３０", "2021-04-01T08:30:00"),
        ("44197.375", "2021-01-01T09:00:00"),
        ("44197.3819444444", "2021-01-01T09:10:00"),
        ("29/02/24 10:00", "2024-02-29T10:00:00"),
        ("02/29/24 10:00", "2024-02-29T10:00:00"),
        ("24/02/29 10:00", "2024-02-29T10:00:00"),
        ("1/2/70, 9:05 AM", "1970-01-02T09:05:00"),
        ("20240229 10:00:05", "2024-02-29T10:00:05"),
    ],
)
def test_one_time_in_the_writing_of_many_lands(text, instant):
    assert read(f" {text} ") == [instant]


def test_two_digits_leave_three_orders_open():
    guess = parse_times(column("03/04/05 08:00")).guesses["time format"]
    assert (guess.value, set(guess.alternatives)) == (
        "day/month/year",
        {"month/day/year", "year-month-day"},
    )
    assert read("03/04/05 08:00", time_format="year-month-day") == ["2003-04-05T08:00:00"]


def test_the_order_is_that_of_all_batches():
    first, later = column("01/02/2019 08:00"), column("01/13/2019 08:00")
    times = TimeReader(lambda: [first, later])
    assert str(times.read(first)[0][0])[:10] == "2019-01-02"
    assert times.guesses["time format"] == Guess("month/day/year", option="time_format")


def test_what_arrow_cannot_read_is_read_all_the_same():
    times = TimeReader(lambda: [column("2024-02-29 10:00")], "Asia/Tokyo")
    instants = [
        str(times.read(column(text))[0][0])[:16]
        for text in ("2024-02-29 10:00", "2024/2/29 25:10", "2024-02-29T10:00+09:00")
    ]
    assert instants == ["2024-02-29T01:00", "2024-02-29T16:10", "2024-02-29T01:00"]
    assert times.guesses["time zone"].note.startswith("times without an offset (2)")
