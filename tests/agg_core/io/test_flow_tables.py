"""Tables of known flows: names, times of day, counts that are none, and formats that agree."""

import gzip
import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.io import archives
from agg_core.io.flow_tables import KnownStates, read_flow_table
from tests.faults import refused

NAMES = ("a", "b", "53394500")
OUT = 3
TIMES = ("08:00", "09:00", "23:30")
WHOLE = KnownStates(NAMES, "outside")
BY_TIME = KnownStates(NAMES, "outside", TIMES, 60, "Asia/Tokyo")


def flows_of(table):
    """Counts by time, origin and dest."""
    columns = table.flows[["time", "origin", "dest", "count"]]
    return {(t, o, d): count for t, o, d, count in columns.itertuples(index=False)}


def read(text, known=WHOLE):
    return read_flow_table(text.encode(), known)


def test_rows_are_summed_by_origin_and_dest():
    table = read("origin,dest,count\na,b,3\nb,53394500,2.5\na,b,4\na,outside,1\na,a,6\n")
    assert flows_of(table) == {(0, 0, 1): 7, (0, 1, 2): 2.5, (0, 0, OUT): 1, (0, 0, 0): 6}
    assert table.flows["rows"].sum() == 5
    assert (table.times, table.set_aside) == ((), {})


def test_what_cannot_be_used_is_set_aside_with_a_count():
    table = read(
        "origin,dest,count\na,b,3\nz,a,1\na,z,1\na,,1\nb,a,-2\nb,a,-3\nb,a,many\nb,a,<5\nb,a,\n"
        "b,a\n"
    )
    assert flows_of(table) == {(0, 0, 1): 3}
    width = {cause for cause in table.set_aside if "column" in cause or "value" in cause}
    assert len(width) == 1
    assert {cause: n for cause, n in table.set_aside.items() if cause not in width} == {
        "no such cell": 3, "negative count": 2, "count is no number": 1, "suppressed count": 1,
        "missing count": 1,
    }  # fmt: skip


ROWS = [
    ("08:00", "a", "b", 3.0),
    ("08:00", "a", "b", 2.0),
    ("09:00", "b", "53394500", 4.0),
    ("23:30", "53394500", "outside", 1.5),
    ("12:00", "a", "b", 9.0),
]
TIMED = {(0, 0, 1): 5, (1, 1, 2): 4, (2, 2, OUT): 1.5}


def frame(rows=ROWS):
    return pd.DataFrame(rows, columns=["time", "origin", "dest", "count"])


def parquet(table):
    out = io.BytesIO()
    table.to_parquet(out)
    return out.getvalue()


CONTENTS = {
    **{
        f"separated by {mark!r}": frame().to_csv(index=False, sep=mark).encode() for mark in ",;\t|"
    },
    "in another encoding": frame().to_csv(index=False).encode("utf-16"),
    "packed": gzip.compress(frame().to_csv(index=False).encode()),
    "Parquet": parquet(frame()),
    "a data frame": frame(),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_formats_give_the_same_flows(content):
    table = read_flow_table(content, BY_TIME)
    assert flows_of(table) == TIMED
    assert (table.times, table.set_aside) == (TIMES, {"no such time of day": 1})


def test_a_table_without_times_is_of_the_whole_day_and_times_are_summed_where_none_are_known():
    assert read("origin,dest,count\na,b,3\n", BY_TIME).times == ()
    summed = read_flow_table(frame(), WHOLE)
    assert flows_of(summed) == {(0, 0, 1): 14, (0, 1, 2): 4, (0, 2, OUT): 1.5}
    assert summed.times == ()


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("8:00", 0), ("08:00:00", 0), ("0859", 0), ("8", None), ("9:30", 1), ("10:00", None),
        ("23:45", 2), ("00:29", 2), ("24:00", 2), ("00:30", None), ("7:59", None), ("noon", None),
    ],
)  # fmt: skip
def test_a_clock_time_counts_for_the_time_of_day_that_it_lies_in(written, time):
    table = read(f"time,origin,dest,count\n08:00,b,a,1\n{written},a,b,2\n", BY_TIME)
    expected = {(0, 1, 0): 1} if time is None else {(0, 1, 0): 1, (time, 0, 1): 2}
    assert flows_of(table) == expected
    assert table.set_aside == ({"no such time of day": 1} if time is None else {})


def test_bare_numbers_are_hours_only_where_the_column_says_so():
    rows = "origin,dest,count\n8,a,b,1\n9,a,b,2\n23,a,b,4\n"
    table = read(f"hour,{rows}", BY_TIME)
    assert flows_of(table) == {(0, 0, 1): 1, (1, 0, 1): 2}
    assert table.set_aside == {"no such time of day": 1}
    with refused("numbers-not-times"):
        read(f"slot,{rows}", BY_TIME)


def test_a_label_that_is_no_clock_time_is_a_time():
    known = KnownStates(NAMES, "outside", ("day 11:00-15:00", "night 01:00-05:00"))
    table = read("time,origin,dest,count\nnight 01:00-05:00,a,b,2\n11:30,a,b,3\n", known)
    assert flows_of(table) == {(1, 0, 1): 2}
    assert table.set_aside == {"no such time of day": 1}


STAMPS = ["2024-05-01T23:10Z", "2024-05-03T00:05Z", "2024-05-02T14:40Z", "2024-05-02T03:00Z"]


@pytest.mark.parametrize("typed", [False, True])
def test_moments_are_summed_into_times_of_the_local_clock(typed):
    """23:10 UTC is 08:10 in Tokyo, 14:40 UTC 23:40."""
    times = pd.to_datetime(STAMPS) if typed else STAMPS
    content = pd.DataFrame({"timestamp": times, "origin": "a", "dest": "b", "count": [1, 2, 4, 8]})
    table = read_flow_table(parquet(content), BY_TIME)
    assert flows_of(table) == {(0, 0, 1): 1, (1, 0, 1): 2, (2, 0, 1): 4}
    assert table.set_aside == {"no such time of day": 1}


def test_moments_without_a_zone_are_of_the_clock_of_the_flows():
    table = read("datetime,origin,dest,count\n2024-05-01 08:10,a,b,1\n", BY_TIME)
    assert flows_of(table) == {(0, 0, 1): 1}


def test_dates_are_no_times_of_day():
    table = read("time,origin,dest,count\n2024-05-01,a,b,1\n2024-05-02,a,b,2\n", BY_TIME)
    assert (flows_of(table), table.times) == ({(0, 0, 1): 3}, ())


def test_names_are_taken_before_numbers_and_may_be_whole_numbers():
    text = "origin,dest,origin_name,dest_name,count\n1,0,a,b,3\n"
    assert flows_of(read(text)) == {(0, 0, 1): 3}
    ends = pd.DataFrame({"origin": [53394500.0], "dest": ["a"], "count": [2]})
    assert flows_of(read_flow_table(ends, WHOLE)) == {(0, 2, 0): 2}
    wide = read("origin,dest,count\n５３３９４５００, b ,2\n")
    assert flows_of(wide) == {(0, 2, 1): 2}


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("origin,dest,count\nx,y,3\n", "unknown-cells", ["a, b, 53394500"]),
        ("origin,dest,people,n\na,b,-3,1\n", "no-rows-left", ["negative count"]),
        ("origin,dest,count\nz,a,3\n", "no-rows-left", ["no such cell"]),
        ("time,origin,dest,count\n12:00,a,b,3\n", "no-rows-left", ["no such time of day"]),
        ("origin,count\na,3\n", "column-not-found", ["dest", "origin, count"]),
        ("origin,dest,share\na,b,0.5\n", "column-not-found", ["count"]),
        ("a,b,5\nb,a,4\n", "column-not-found", ["origin"]),
    ],
)
def test_a_table_that_is_of_no_use_is_refused(text, code, told):
    with refused(code, *told):
        read(text, BY_TIME)


def test_many_cells_are_not_all_told():
    with refused("unknown-cells", "c0, c1, ") as fault:
        read_flow_table(
            b"origin,dest,count\nx,y,3\n", KnownStates([f"c{i}" for i in range(99)], "o")
        )
    assert "c9," not in str(fault.value)


def test_a_file_that_claims_more_than_its_size_can_hold_is_refused():
    n = 40_000_000
    table = pa.table({
        "origin": pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), n), ["a"]),
        "dest": pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), n), ["b"]),
        "count": pa.repeat(pa.scalar(1, pa.int64()), n),
    })  # fmt: skip
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    assert len(out.getvalue()) < 1_000_000
    with refused("implausible-row-count"):
        read_flow_table(out.getvalue(), WHOLE)


def test_a_file_that_unpacks_to_far_more_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "RATIO_FREE_BYTES", 1 << 16)
    bomb = gzip.compress(b"origin,dest,count\n" + b"a,b,1\n" * 200_000)
    with refused("unpacks-too-large"):
        read_flow_table(bomb, WHOLE)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with refused("file-not-opened"):
        read_flow_table(tmp_path / "none.csv", WHOLE)


DATED = "date,hour,origin,dest,count\n2024-05-01,8,a,b,3\n2024-05-01,9,a,b,2\n2024-05-02,8,b,a,4\n"


def of_days(table):
    return {date: flows_of(table.of_date(date)) for date in table.dates}


def test_days_are_kept_apart_where_that_is_asked():
    table = read_flow_table(DATED.encode(), BY_TIME, by_date=True)
    assert table.dates == ("2024-05-01", "2024-05-02")
    assert of_days(table) == {
        "2024-05-01": {(0, 0, 1): 3, (1, 0, 1): 2}, "2024-05-02": {(0, 1, 0): 4},
    }  # fmt: skip
    assert flows_of(table.of_all_dates()) == flows_of(read_flow_table(DATED.encode(), BY_TIME))


def test_days_of_moments_are_those_of_the_local_clock():
    text = "time,origin,dest,count\n2024-05-01T23:40:00Z,a,b,3\n2024-05-02T15:10:00Z,a,b,1\n"
    table = read_flow_table(text.encode(), BY_TIME, by_date=True)
    # 08:40 on the second and 00:10 on the third of May in Tokyo.
    assert of_days(table) == {"2024-05-02": {(0, 0, 1): 3}, "2024-05-03": {(2, 0, 1): 1}}


def test_a_table_without_days_has_none_whatever_is_asked():
    table = read_flow_table(b"origin,dest,count\na,b,3\na,b,4\n", WHOLE, by_date=True)
    assert table.dates == ()
    assert flows_of(table.of_all_dates()) == {(0, 0, 1): 7}


def test_rows_without_a_date_are_set_aside():
    table = read_flow_table(
        b"date,origin,dest,count\n2024-05-01,a,b,3\n,a,b,4\n", WHOLE, by_date=True
    )
    assert table.dates == ("2024-05-01",)
    assert table.set_aside == {"no date": 1}
