"""Plain tables of counts, long and wide: columns, cells, times, and what is no count."""

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import CountChoices, looks_like_counts, read_counts
from agg_core.space.settings import AreaSettings, HexSettings, MeshSettings
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED

HOURS = ["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00"]


def long(*rows, header="time,cell,count"):
    return "\n".join([header, *rows]).encode()


def read(*rows, header="time,cell,count", **choices):
    return read_counts(long(*rows, header=header), **choices)


# -------------------------------------------------------------------------- zero, suppressed, none


def test_zero_suppressed_and_missing_are_three_things():
    values = ["0", "*", "x", "<5", "5未満", "\\N", "", "NA", "7"]
    table = read(*(f"{HOURS[0]},c{i},{value}" for i, value in enumerate(values)))
    P, S, M = PUBLISHED, SUPPRESSED, MISSING
    assert table.status[0].tolist() == [P, S, S, S, S, M, M, M, P]
    assert table.counts[0, [0, 8]].tolist() == [0, 7]
    assert table.suppressed_below == 5
    assert "as the table's marks say" in table.report.guesses["suppressed below"].note


@pytest.mark.parametrize(
    ("dash", "state"), [("missing", MISSING), ("suppressed", SUPPRESSED), ("zero", PUBLISHED)]
)
def test_a_dash_is_what_the_table_says(dash, state):
    table = read(f"{HOURS[0]},A,-", f"{HOURS[0]},B,12", dash=dash)
    assert table.status[0].tolist() == [state, PUBLISHED]
    assert "dash" in table.report.guesses
    assert table.report.guesses["dash"].option == "dash"


@pytest.mark.parametrize(
    ("mark", "below"),
    [("<10", 10), ("< 10", 10), ("<=4", 5), ("≤ 4", 5), ("less than 20", 20), ("10人未満", 10),
     ("fewer than 6", 6), ("＜１０", 10)],
)  # fmt: skip
def test_marks_that_tell_their_bound(mark, below):
    table = read(f"{HOURS[0]},A,{mark}", f"{HOURS[0]},B,12")
    assert (table.n_suppressed, table.suppressed_below) == (1, below)
    assert read(f"{HOURS[0]},A,{mark}", suppressed_below=50).suppressed_below == 50


@pytest.mark.parametrize(
    ("values", "meaning"),
    [
        # Zeros are written: what has no row was not measured.
        ([0, 1, 2, 3], "missing"),
        # All that stand there are small and none is zero: the others are.
        ([1, 1, 2, 3], "zero"),
        # Nothing below 10, and many are not there.
        ([10, 11, 30, 12], "suppressed"),
    ],
)
def test_what_an_absent_row_means(values, meaning):
    rows = [f"2024-01-01 {hour:02d}:00,c{hour},{values[hour % 4]}" for hour in range(8)]
    table = read(*rows)
    assert table.n_published + table.n_suppressed + table.n_missing == 64
    guess = table.report.guesses["absent"]
    assert guess.value == meaning
    assert set(guess.alternatives) == {"zero", "missing", "suppressed"} - {meaning}
    assert "56 cells" in guess.note
    expected = {"missing": MISSING, "zero": PUBLISHED, "suppressed": SUPPRESSED}[meaning]
    off_diagonal = ~np.eye(8, dtype=bool)
    assert (table.status[off_diagonal] == expected).all()
    for stated in ("zero", "missing"):
        state = PUBLISHED if stated == "zero" else MISSING
        other = read_counts(long(*rows), absent=stated)
        assert (other.status[off_diagonal] == state).all()


def test_a_stated_bound_makes_absent_rows_suppressed():
    table = read(f"{HOURS[0]},A,3", f"{HOURS[1]},B,4", suppressed_below=3)
    assert (table.n_suppressed, table.suppressed_below) == (2, 3)


def test_what_is_no_count_is_set_aside_and_missing_never_absent():
    rows = [f"{HOURS[0]},A,-5", f"{HOURS[0]},B,many", f"{HOURS[0]},C,1e300", f"{HOURS[0]},D,inf",
            f"{HOURS[0]},E,7", "someday,E,7", f"{HOURS[1]},,7"]  # fmt: skip
    table = read(*rows, absent="zero")
    assert table.status[0].tolist() == [MISSING] * 4 + [PUBLISHED]
    aside = {cause: rows.count for cause, rows in table.report.set_aside.items()}
    assert aside == {
        "negative count": 1, "count is no number": 2, "count beyond all people": 1,
        "unreadable time": 1, "missing cell": 1,
    }  # fmt: skip
    assert table.report.set_aside["negative count"].lines == (2,)
    assert table.report.rows_used + sum(aside.values()) == table.report.rows_read == 7


def test_thousands_and_decimals():
    assert read(f'{HOURS[0]},A,"1,200"', f'{HOURS[0]},B,"12,345"').counts.tolist() == [
        [1200, 12345]
    ]
    text = "time;cell;count\n2024-01-01 00:00;A;12,5\n2024-01-01 00:00;B;1,25\n"
    assert read_counts(text.encode()).counts.tolist() == [[12.5, 1.25]]


# ----------------------------------------------------------------------------------- twins


def test_twins_are_said_never_summed_in_silence():
    rows = [f"{HOURS[0]},A,5", f"{HOURS[0]},A,6", f"{HOURS[0]},B,4", f"{HOURS[0]},B,4"]
    table = read(*rows)
    assert table.counts.tolist() == [[6, 4]]
    guess = table.report.guesses["duplicates"]
    assert (guess.value, guess.alternatives) == ("last", ("first", "sum", "largest"))
    aside = {cause: rows.count for cause, rows in table.report.set_aside.items()}
    assert aside == {
        "row that says again what another says": 1, "other count of the same cell and time": 1,
    }  # fmt: skip
    # Who asks for a sum has several kinds of people, of whom there may be as many.
    results = {way: read(*rows, duplicates=way).counts[0].tolist() for way in guess.alternatives}
    assert results == {"first": [5, 4], "sum": [11, 8], "largest": [6, 4]}
    assert read(*rows, duplicates="sum").report.rows_used == 4


def test_a_twin_without_a_count_gives_way():
    table = read(f"{HOURS[0]},A,5", f"{HOURS[0]},A,", f"{HOURS[0]},B,x", f"{HOURS[0]},B,")
    assert table.status.tolist() == [[PUBLISHED, SUPPRESSED]]
    assert table.counts[0, 0] == 5


def test_many_twins_are_asked_about_with_the_column_that_tells_them_apart():
    rows = [f"{hour},c{cell},{kind},row{kind}{cell},{cell + 3 * (kind == 'f')}"
            for hour in HOURS for cell in range(8) for kind in "mf"]  # fmt: skip
    header = "time,cell,kind,remark,count"
    with pytest.raises(InputError) as told:
        read(*rows, header=header)
    assert told.value.code == "conflicting-counts"
    assert "24 of 24 cells" in str(told.value)
    assert told.value.option == "--where=kind=VALUE"
    men = read(*rows, header=header, where={"kind": "m"})
    assert men.counts.tolist() == [list(range(8))] * 3
    both = read(*rows, header=header, duplicates="sum")
    assert both.counts[0].tolist() == [2 * cell + 3 for cell in range(8)]


# ----------------------------------------------------------------------------------- cells


def test_cells_named_by_mesh_codes_keep_the_order_of_the_grid():
    codes = ["53394612", "53394500", "53394611"]
    frame = pd.DataFrame(
        {"time": HOURS[0], "mesh": [float(code) for code in codes], "population": [12, 0, 11]}
    )
    table = read_counts(frame)
    assert table.cells == ("53394500", "53394611", "53394612")
    assert table.grid == MeshSettings(codes=table.cells)
    assert table.counts.tolist() == [[0, 11, 12]]
    lon, lat = table.grid.make().centroids.T
    assert table.grid.make().assign(lon, lat).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "codes", "kind"),
    [
        ("cell", ["533945001", "533945002"], MeshSettings),
        ("meshcode", ["5339", "5340"], MeshSettings),
        # Stations, too, have numbers of four digits.
        ("station", ["5339", "5340"], type(None)),
        ("h3", ["872F5AAD8ffffff", "872f5aadaffffff"], HexSettings),
        ("tile", ["0123", "0122"], AreaSettings),
        ("room", ["0123", "0122"], type(None)),
        ("zone", ["A", "B"], type(None)),
    ],
)
def test_cells_are_known_by_their_names(name, codes, kind):
    table = read(*(f"{HOURS[0]},{code},{i}" for i, code in enumerate(codes)),
                 header=f"time,{name},count")  # fmt: skip
    assert type(table.grid) is kind
    if table.grid is not None:
        assert table.grid.make().labels == list(table.cells)


def test_cells_named_by_their_place_are_the_areas_nearest_to_it():
    lon, lat = np.meshgrid([139.70, 139.71, 139.72], [35.60, 35.61])
    places = np.column_stack([lon.ravel(), lat.ravel()])
    rows = [f"{HOURS[0]},{x},{y},{i}" for i, (x, y) in enumerate(places)]
    table = read(*rows, f"{HOURS[0]},,35.6,9", header="time,lon,lat,count")
    grid = table.grid.make()
    at = grid.assign(*places.T)
    # Each count at its own place, and a place a little off still in its cell.
    assert table.counts[0, at].tolist() == list(range(6))
    off = places + np.array([0.004, -0.004])
    assert (grid.assign(*off.T) == at).all()
    assert table.report.set_aside["missing position"].count == 1


def test_stations_with_a_table_of_places_beside(tmp_path):
    (tmp_path / "counts.csv").write_text(
        "hour,station,bikes\n2015-10-01 00:00,7,1\n2015-10-01 00:00,12,2\n2015-10-01 00:00,-1,3\n"
        "2015-10-01 00:00,101,4\n"
    )
    (tmp_path / "stations.csv").write_text(
        "station,name,lat,lon\n101,C,40.72,-74.03\n7,A,40.70,-74.00\n12,B,40.71,-74.02\n"
    )
    table = read_counts(tmp_path, tz="America/New_York")
    assert table.cells == ("7", "12", "101")
    assert table.counts.tolist() == [[1, 2, 4]]
    grid = table.grid.make()
    assert grid.labels == ["7", "12", "101"]
    assert grid.assign([-74.03, -74.0], [40.72, 40.70]).tolist() == [2, 0]
    guess = table.report.guesses["cells without a place"]
    assert (guess.value, guess.option) == ("leave out", "placeless")
    kept = read_counts(tmp_path, placeless="keep")
    assert kept.cells == ("-1", "7", "12", "101")
    assert kept.grid is None


def test_an_extent_and_days_leave_out_the_rest():
    rows = [f"2024-01-0{day} 00:00,{code},{day}" for day in (1, 2, 3)
            for code in ("53394500", "53394511", "53394599")]  # fmt: skip
    table = read(*rows, header="time,mesh,count", bbox=(139.62, 35.66, 139.65, 35.69),
                 first_day="2024-01-02", last_day="2024-01-02")  # fmt: skip
    assert table.cells == ("53394500", "53394511")
    assert table.counts.tolist() == [[2, 2]]
    assert table.report.set_aside["before the first day"].count == 3
    with pytest.raises(InputError) as told:
        read(*rows, first_day="yesterday")
    assert told.value.code == "malformed-date"


def test_names_are_safe_to_show():
    table = read(f'{HOURS[0]},"=cmd\n\x07{"x" * 500}",1', f"{HOURS[0]},B,2")
    assert all(name.isprintable() and len(name) <= 80 for name in table.cells)


def test_a_sum_over_the_cells_is_no_cell():
    table = read(f"{HOURS[0]},A,1", f"{HOURS[0]},Total,3", f"{HOURS[0]},B,2")
    assert table.cells == ("A", "B")
    assert table.report.set_aside["sum over the cells"].count == 1


# ----------------------------------------------------------------------------------- times


def test_a_date_and_an_hour_in_two_columns_on_a_stated_clock():
    rows = ["2024-01-01,0,A,1", "2024-01-01,23,A,2", "2024-01-01,24,A,3", "2024-01-02,1,A,4"]
    table = read(*rows, header="date,hour,zone,people", tz="Asia/Tokyo")
    local = table.times.tz_convert("Asia/Tokyo").strftime("%d %H").tolist()
    assert local == ["01 00", "01 23", "02 00", "02 01"]
    assert table.sequence.tolist() == [0, 1, 1, 1]
    # As a typed file has them.
    frame = pd.DataFrame(
        {"date": pd.to_datetime(["2024-01-01", "2024-01-01"]), "hour": [5, 6], "n": 1, "cell": "A"}
    )
    assert read_counts(frame).times.hour.tolist() == [5, 6]


def test_slots_are_an_order_until_somebody_says_when_they_begin():
    rows = [f"2024-01-0{day},{slot},A,1" for day in (1, 2) for slot in range(30)]
    table = read(*rows, header="date,slot,cell,n")
    assert table.slots[:2] == ("slot 0", "slot 1")
    assert np.bincount(table.sequence).tolist() == [30, 30]
    assert "first_slot" in table.report.guesses["slots"].note
    stated = read(*rows, header="date,slot,cell,n", first_slot="09:00", slot_minutes=20,
                  tz="Asia/Tokyo")  # fmt: skip
    assert stated.slots[:2] == ("09:00", "09:20")
    assert str(stated.times[0]) == "2024-01-01 00:00:00+00:00"
    assert "slots" not in stated.report.guesses


def test_gaps_begin_runs_and_days_of_23_hours_do_not():
    rows = [f"2024-03-{day:02d},A,{day}" for day in (7, 8, 9, 10, 11, 12, 14)]
    table = read(*rows, header="date,cell,count", tz="America/New_York")
    # The clock is put on on 10 March.
    assert np.diff(table.times[:5]).astype("timedelta64[h]").astype(int).tolist() == [
        24, 24, 24, 23,
    ]  # fmt: skip
    assert table.sequence.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert table.slots == ("00:00",)


def test_one_moment_per_step_is_the_last_in_it():
    rows = [f"2024-01-01 00:{minute:02d},{cell},{minute}"
            for minute in (0, 7, 14, 31, 44) for cell in "AB"]  # fmt: skip
    table = read(*rows, step_minutes=15)
    assert table.times.minute.tolist() == [0, 30]
    assert table.counts.tolist() == [[14, 14], [44, 44]]
    assert table.report.set_aside["earlier in the same step"].count == 6


# ------------------------------------------------------------------------------------ wide


def test_a_row_per_time_and_a_column_per_cell():
    text = "time,North,South,total\n" + "\n".join(
        f"{hour},{a},{b},9" for hour, a, b in zip(HOURS, "12x", ["3", "", "5"], strict=True)
    )
    table = read_counts(text.encode(), tz="Asia/Tokyo")
    assert table.cells == ("North", "South")
    assert table.status.tolist() == [
        [PUBLISHED, PUBLISHED], [PUBLISHED, MISSING], [SUPPRESSED, PUBLISHED],
    ]  # fmt: skip
    assert "total" in table.report.guesses["columns"].note


def test_a_date_and_an_hour_before_columns_of_cells():
    text = "date,hour,North,South\n2024-01-01,9,1,2\n2024-01-01,10,3,4\n"
    table = read_counts(text.encode(), tz="Asia/Tokyo")
    assert table.slots == ("09:00", "10:00")
    assert table.counts.tolist() == [[1, 2], [3, 4]]


def test_rows_with_some_cells_within_an_extent_are_used():
    text = "time,53394500,53394501,53394599\n" + "".join(f"{hour},1,2,3\n" for hour in HOURS)
    table = read_counts(text.encode(), bbox=(139.62, 35.66, 139.65, 35.69))
    assert table.cells == ("53394500", "53394501")
    assert (table.report.rows_used, dict(table.report.set_aside)) == (3, {})


def test_a_date_of_digits_alone_is_a_time():
    table = read("20240401,A,1", "20240402,A,2", header="date,cell,count")
    assert table.times.strftime("%Y-%m-%d").tolist() == ["2024-04-01", "2024-04-02"]


def test_files_of_the_same_columns_are_one_table_and_others_are_named(tmp_path):
    for day in (1, 2):
        (tmp_path / f"{day}.csv").write_text(f"time,cell,count\n2024-01-0{day} 00:00,A,{day}\n")
    (tmp_path / "0 about.csv").write_text("hour,from,to,trips\n2024-01-01 00:00,A,B,1\n")
    table = read_counts(tmp_path)
    assert table.counts.ravel().tolist() == [1, 2]
    assert table.report.guesses["files"].value == "2 of 3 tables read"
    assert "0 about.csv is not" in table.report.guesses["files"].note


def test_codes_as_names_of_columns_are_a_header():
    text = "日時,53394500,53394501\n2024/01/01 00:00,1,2\n2024/01/01 01:00,-3,4\n"
    table = read_counts(text.encode())
    assert table.grid == MeshSettings(codes=("53394500", "53394501"))
    assert table.status.tolist() == [[PUBLISHED, PUBLISHED], [MISSING, PUBLISHED]]
    assert table.report.remarks["unread"] == "Taken for missing: negative count (1)."
    assert (table.report.rows_read, table.report.rows_used) == (2, 2)


# --------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("content", "role"),
    [
        (b"a,b\n1,2\n", "time"),
        (b"time,cell,weight,height\n2024-01-01 00:00,A,1,2\n", "count"),
        (b"time,count\n2024-01-01 00:00,1\n", "cell"),
        (b"2024-01-01 00:00,A,5\n2024-01-01 01:00,A,5\n", "time"),
    ],
)
def test_a_column_that_is_not_sure_is_asked_for(content, role):
    with pytest.raises(InputError) as told:
        read_counts(content)
    assert told.value.code == "column-not-found"
    assert told.value.option == f"--column {role}=NAME"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"user_id,time,lon,lat\n1,2024-01-01 00:00,139.7,35.6\n", "table-of-trajectories"),
        (b"time,cell,count\nnever,A,1\n", "unreadable-times"),
        (b"time,cell,count\n2024-01-01 00:00,,1\n", "no-rows-left"),
        (b"time,h3,count\n2024-01-01 00:00,872f5aad8ffffff,1\n2024-01-01 00:00,862f5aad7ffffff,1\n",
         "cell-sizes-differ"),
        (b"time,cell,lon,lat,count\n2024-01-01 00:00,A,1,1,1\n2024-01-01 00:00,B,1,1,1\n",
         "cells-share-place"),
    ],
)  # fmt: skip
def test_what_cannot_be_known_is_asked(content, code):
    with pytest.raises(InputError) as told:
        read_counts(content)
    assert told.value.code == code


def test_a_file_without_a_header_is_read_by_position():
    content = b"2024-01-01 00:00,A,5\n2024-01-01 01:00,A,6\n"
    table = read_counts(content, columns={"time": 0, "cell": 1, "count": 2})
    assert table.counts.tolist() == [[5], [6]]
    with pytest.raises(InputError) as told:
        read_counts(content, columns={"people": 2})
    assert told.value.code == "unknown-role"
    with pytest.raises(InputError) as told:
        read_counts(content, columns={"count": 7})
    assert told.value.code == "unknown-column"


def test_a_table_too_large_is_refused():
    rows = [f"2024-01-01 {i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d},c{i},1"
            for i in range(7_100)]  # fmt: skip
    with pytest.raises(InputError) as told:
        read(*rows)
    assert told.value.code == "table-too-large"
    assert "7,100 cells at 7,100 moments" in str(told.value)


def test_choices_are_checked_named_and_changed():
    choices = CountChoices.of({"count": "n"}, {"sex": "1"}, bbox=(1.0, 2.0, 3.0, 4.0))
    assert CountChoices.from_dict(choices.to_dict()) == choices
    assert choices.changed("suppressed_below", "10").suppressed_below == 10
    assert choices.changed("column count", "m").columns == (("count", "m"),)
    assert choices.changed("absent", "zero").absent == "zero"
    for wrong, code in (
        ({"absence": "zero"}, "unknown-option"),
        ({"absent": "gone"}, "not-a-choice"),
        ({"bbox": (1.0, 2.0)}, "malformed-extent"),
    ):
        with pytest.raises(InputError) as told:
            CountChoices.of(**wrong)
        assert told.value.code == code
    with pytest.raises(InputError) as told:
        choices.changed("suppressed_below", "few")
    assert told.value.code == "not-a-number"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time,cell,count\n2024-01-01 00:00,A,5", True),
        ("date,time,area,residence,age,gender,population\n20240101,0000,53394500,-1,-1,-1,5", True),
        ("mesh1kmid,prefcode,citycode,year,month,dayflag,timezone,population\n1,1,1,1,1,1,1,1",
         True),
        ("quadkey,date_time,n_crisis\n0123,2020-04-01 0000,1", True),
        ("time,A,B,C\n2024-01-01 00:00,1,2,3", True),
        ("date,parks_percent_change_from_baseline\n2020-02-15,1", True),
        ("hour,station,bikes\n2015-10-01 00:00,3183,13", True),
        ("user_id,time,lon,lat\n1,2024-01-01 00:00,139.7,35.6", False),
        ("user_id,time,lon,lat,count\n1,2024-01-01 00:00,139.7,35.6,1", False),
        ("id,time,lon,lat\n1,2024-01-01 00:00,139.7,35.6", False),
        ("id,time,lon,lat,speed,heading\n1,2024-01-01 00:00,139.7,35.6,1,2", False),
        ("time,lon,lat,speed\n2024-01-01 00:00,139.7,35.6,1", False),
        ("bike_id,started_at,ended_at\n1,2024-01-01 00:00,2024-01-01 00:00", False),
        ("name,size\nA,1", False),
    ],
)  # fmt: skip
def test_counts_and_trajectories_are_told_apart(text, expected):
    names, *rows = [line.split(",") for line in text.splitlines()]
    assert looks_like_counts(names, rows) is expected
