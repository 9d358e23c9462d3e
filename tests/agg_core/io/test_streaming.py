import itertools
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from shapely.geometry import box

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories, streaming
from agg_core.io.choices import Choices
from agg_core.io.fixes import Fixes
from agg_core.io.streaming import CountProgress, count_cells, count_steps, read_sequences
from agg_core.space.build import Grid
from agg_core.space.grid import OUTSIDE
from agg_core.tables.sequences import cell_counts, to_sequences

GRID = Grid.from_bbox(10, 0, 14, 3, 3, 4)
"""Three rows of four cells, one degree each."""
OUT = 9.5
"""A longitude outside the grid."""


def made(user, time, lon, lat):
    """Fixes in the order of the rows, their times in microseconds since 1970."""
    return Fixes(user, time.astype("datetime64[us]"), lon, lat, np.arange(len(user)))


def batch(rows):
    """Fixes of (person, UTC time, longitude) in the southern row of cells."""
    users, times, lons = zip(*rows, strict=True)
    us = np.array(times, dtype="datetime64[us]").astype(np.int64)
    return made(np.array(users), us, np.array(lons, float), np.full(len(rows), 0.5))


def listed(counts):
    """Counts as (clock, cell) -> people."""
    clock = counts["time"].dt.strftime("%m-%d %H:%M")
    return dict(zip(zip(clock, counts["cell"], strict=True), counts["count"], strict=True))


def random_fixes(seed, n, people, first, hours):
    """Fixes of people in any order, on borders of cells, within them and outside."""
    rng = np.random.default_rng(seed)
    start = np.datetime64(first, "us").astype(np.int64)
    return made(
        rng.integers(people, size=n),
        start + rng.integers(hours * 3600, size=n) * 10**6,
        rng.choice(np.arange(9, 15.1, 0.25), n),
        rng.choice(np.arange(-0.5, 3.6, 0.25), n),
    )


def cut(fixes, seed, pieces=5):
    """The same rows in batches."""
    at = np.sort(np.random.default_rng(seed).integers(len(fixes), size=pieces - 1))
    columns = [np.split(c, at) for c in fixes.columns]
    return [Fixes(*parts) for parts in zip(*columns, strict=True)]


def by_sequences(fixes, step, zone, max_gap, grid=GRID):
    """What `cell_counts` makes of the same rows read as one table."""
    frame = pd.DataFrame(
        {
            "user_id": fixes.user.astype(str),
            "time": pd.DatetimeIndex(fixes.time, tz="UTC"),
            "lon": fixes.lon,
            "lat": fixes.lat,
        }
    )
    # The shortest gap there is bridges no empty bin.
    return cell_counts(read_trajectories(frame, tz=zone), grid, step, max_gap or "1us")


# ---------------------------------------------------------------- the rule


def test_the_last_fix_of_a_bin_counts_whatever_the_order_of_rows():
    rows = [
        (0, "2024-05-01T08:29:59", 11.5),
        (1, "2024-05-01T08:10", OUT),
        (0, "2024-05-01T08:01", 10.5),
        (2, "2024-05-01T08:00", 11.5),
        (0, "2024-05-01T08:30", 12.5),
        (2, "2024-05-01T09:29", 13.5),
    ]
    expected = {
        ("05-01 08:00", 1): 2,
        ("05-01 08:00", 12): 1,
        ("05-01 08:30", 2): 1,
        ("05-01 09:00", 3): 1,
    }
    for order in itertools.islice(itertools.permutations(rows), 0, 720, 37):
        halves = [batch(order[:3]), batch(order[3:])]
        assert listed(count_cells(halves, GRID, "30min")) == expected


def test_of_two_fixes_at_one_instant_the_later_row_counts():
    same = [(0, "2024-05-01T08:10", 10.5), (0, "2024-05-01T08:10", 11.5)]
    assert listed(count_cells([batch(same)], GRID)) == {("05-01 08:00", 1): 1}
    parts = [batch(same[1:]), batch(same[:1])]
    assert listed(count_cells(parts, GRID)) == {("05-01 08:00", 0): 1}


def test_bins_follow_the_local_clock():
    rows = [batch([(0, "2024-05-01T20:40", 10.5)])]
    assert listed(count_cells(rows, GRID, "1h", "Asia/Kolkata")) == {("05-02 02:00", 0): 1}


def test_empty_bins_are_filled_only_between_fixes_within_max_gap():
    rows = [(0, "2024-05-01T08:10", 10.5), (0, "2024-05-01T09:40", 11.5)]
    assert listed(count_cells([batch(rows)], GRID)) == {
        ("05-01 08:00", 0): 1,
        ("05-01 09:30", 1): 1,
    }
    filled = {(f"05-01 {clock}", 0): 1 for clock in ("08:00", "08:30", "09:00")}
    assert listed(count_cells([batch(rows)], GRID, max_gap="90min")) == {
        **filled,
        ("05-01 09:30", 1): 1,
    }
    assert len(count_cells([batch(rows)], GRID, max_gap="89min")) == 2


def test_without_a_row_there_is_an_empty_table():
    empty = batch([(0, "2024-05-01T08:10", 10.5)]).take(slice(0))
    for batches in ([], [empty]):
        counts = count_cells(batches, GRID)
        assert counts.empty
        assert list(counts.columns) == ["time", "cell", "count"]


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Asia/Tokyo", "1969-12-31T12:00"),
        ("Europe/London", "2024-03-30T20:00"),
        ("Europe/London", "2024-10-26T20:00"),
        ("America/New_York", "2024-11-02T20:00"),
        ("Australia/Lord_Howe", "2024-04-06T08:00"),
    ],
)
@pytest.mark.parametrize(
    ("step", "max_gap"),
    [("30min", None), ("30min", "65min"), ("4h", "3h"), ("10min", "2h"), ("15min", "5min")],
)
def test_counts_are_those_of_sequences(zone, first, step, max_gap):
    for seed in range(3):
        fixes = random_fixes(seed, 300, [1, 10, 150][seed], first, 24)
        counts = count_cells(cut(fixes, seed), GRID, step, zone, max_gap)
        pd.testing.assert_frame_equal(counts, by_sequences(fixes, step, zone, max_gap))


KINDS = {
    "rectangle": GRID,
    "mesh": Grid.from_mesh(2, (139.0, 35.0, 139.3, 35.3)),
    "mesh with gaps": Grid.from_mesh(codes=("533901", "523970", "533900", "523977")),
    "h3": Grid.from_h3(5, (139.0, 35.0, 139.3, 35.3)),
    "areas": Grid.from_polygons(
        gpd.GeoDataFrame(
            {"name": ["east", "south", "west"]},
            geometry=[box(11.5, 1, 13, 3), box(10, 0, 13, 1), box(10, 1, 11.5, 3)], crs="EPSG:4326",
        )
    ),
}  # fmt: skip
"""Grids of every kind; in some the cells are not numbered row by row, or a box has holes."""


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_numbered_as_everywhere_else(kind):
    """One person per place, one bin: the counts are those of `Grid.assign` and of `sequences`."""
    grid = KINDS[kind]
    west, south, east, north = grid.bounds
    rng = np.random.default_rng(0)
    inner = grid.centroids
    around = rng.uniform((west - 0.1, south - 0.1), (east + 0.1, north + 0.1), (300, 2))
    corners = np.array([[west, south], [east, north], [west, north], [east, south]])
    lon, lat = np.concatenate([inner, around, corners]).T
    start = np.datetime64("2024-05-01T08:10", "us").astype(np.int64)
    fixes = made(np.arange(len(lon)), np.full(len(lon), start), lon, lat)
    counts = count_cells([fixes], grid)
    assert counts["count"].sum() == len(lon)
    found = counts.set_index("cell")["count"].to_dict()
    cell = grid.assign(lon, lat)
    expected = {c: int((cell == c).sum()) for c in set(cell.tolist()) - {OUTSIDE}}
    assert found == {**expected, grid.n_cells: int((cell == OUTSIDE).sum())}
    assert set(range(grid.n_cells)) <= set(found)
    pd.testing.assert_frame_equal(counts, by_sequences(fixes, "30min", "UTC", None, grid))
    # In an area it is the area that geometry says, by another library's predicate.
    inside = shapely.contains_properly(grid.polygons[:, None], shapely.points(inner)[None])
    np.testing.assert_array_equal(inside, np.eye(grid.n_cells, dtype=bool))


def test_any_grid_that_assigns_cells_will_do():
    class Halves:
        n_cells = 2

        def assign(self, lon, lat):
            return np.select([lon < 10, lon < 12, lon < 14], [-1, 0, 1], -1)

    rows = [(0, "2024-05-01T08:10", 10.5), (1, "2024-05-01T08:10", 13.5),
            (2, "2024-05-01T08:10", OUT)]  # fmt: skip
    counts = count_cells([batch(rows)], Halves())
    assert counts["cell"].tolist() == [0, 1, 2]


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("max_gap", [None, "5h"])
def test_what_does_not_fit_goes_through_files_and_comes_out_the_same(
    tmp_path, monkeypatch, max_gap
):
    monkeypatch.setattr(streaming, "ROWS_AT_ONCE", 700)
    monkeypatch.setattr(streaming, "MIN_JOINED", 100)
    fixes = random_fixes(0, 20_000, 400, "2024-10-20", 20 * 24)
    batches = cut(fixes, 0, 12)
    # Room for 5,000 of the 20,000 fixes while they are put in order.
    limit = 3 * 5_000 * 24
    steps = list(
        count_steps(
            batches, GRID, "30min", "Europe/London", max_gap, max_table_bytes=limit,
            scratch=tmp_path,
        )
    )  # fmt: skip
    assert len({step.spilled_bytes for step in steps[:-1]}) > 3
    assert max(step.table_bytes for step in steps[:-1]) <= limit
    assert list(tmp_path.iterdir()) == []
    pd.testing.assert_frame_equal(steps[-1], by_sequences(fixes, "30min", "Europe/London", max_gap))


def test_the_later_of_two_rows_at_one_instant_counts_through_files_too():
    crowd = random_fixes(1, 3_000, 2_000, "2024-05-02", 10)
    rows = [(0, "2024-05-01T08:10", 10.5), (0, "2024-05-01T08:10", 11.5)]
    for order in (rows, rows[::-1]):
        batches = [batch(order[:1]), crowd, batch(order[1:]), crowd]
        *_, progress, counts = count_steps(batches, GRID, max_table_bytes=100_000)
        assert progress.spilled_bytes > 0
        first_day = counts[counts["time"] < "2024-05-02"]
        assert listed(first_day) == {("05-01 08:00", int(order[1][2] - 10)): 1}


def test_a_broken_date_takes_a_fix_not_a_century():
    rows = [(i, year, 10.5) for i, year in enumerate(("1900-01-02", "2024-05-01", "2199-12-30"))]
    progress, counts = count_steps([batch(rows)], GRID, "1s", "Asia/Tokyo")
    assert progress.table_bytes < 1e6
    assert counts["count"].tolist() == [1, 1, 1]


def test_people_who_come_and_go_take_memory_only_while_they_are_there():
    day = np.datetime64("2024-05-01", "us").astype(np.int64)
    ones = np.ones(6400)
    daily = [
        made(
            np.arange(6400) + 6400 * d,
            np.full(6400, day + d * 86_400 * 10**6), 10.5 * ones, 0.5 * ones,
        )
        for d in range(30)
    ]  # fmt: skip
    *_, progress, counts = count_steps(daily, GRID, "30min")
    assert progress.people == 6400 * 30
    assert progress.table_bytes == 6400 * 30 * 24
    assert counts["count"].tolist() == [6400] * 30


def test_files_that_cannot_be_written_are_named(tmp_path):
    fixes = random_fixes(0, 2_000, 400, "2024-05-01", 20 * 24)
    with pytest.raises(InputError) as told:
        count_cells([fixes], GRID, max_table_bytes=1, scratch=tmp_path / "missing")
    assert told.value.code == "file-not-written"


def test_more_counts_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(streaming, "MAX_COUNTS", 1000)
    fixes = random_fixes(0, 3_000, 50, "2024-05-01", 20 * 24)
    with pytest.raises(InputError) as told:
        count_cells([fixes], GRID, "1min")
    assert told.value.code == "table-too-large"


# ---------------------------------------------------------------- progress and faults


def test_progress_comes_with_every_batch_and_stopping_stops_the_reading():
    read = []

    def source():
        for part in cut(random_fixes(0, 100, 10, "2024-05-01", 24), 0, 4):
            read.append(len(part))
            yield part

    steps = count_steps(source(), GRID)
    first = next(steps)
    assert isinstance(first, CountProgress)
    assert (first.rows, len(read)) == (read[0], 1)
    steps.close()
    assert len(read) == 1
    *progress, counts = count_steps(source(), GRID)
    assert [p.rows for p in progress] == np.cumsum(read[1:]).tolist()
    assert progress[-1].people == 10
    assert isinstance(counts, pd.DataFrame)


GOOD = batch([(0, "2024-05-01T08:10", 10.5), (1, "2024-05-01T08:10", 10.5)])


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"lon": np.zeros(1)}, "lengths-differ"),
        ({"user": np.array([0, -1])}, "user-out-of-range"),
        ({"user": np.array([0, 1 << 29])}, "user-out-of-range"),
        ({"time": np.array([0, -(1 << 60)]).astype("datetime64[us]")}, "time-out-of-range"),
        ({"time": np.array([0, 1 << 60]).astype("datetime64[us]")}, "time-out-of-range"),
        ({"time": np.array(["2024-05-01", "NaT"], dtype="datetime64[us]")}, "time-out-of-range"),
    ],
)
def test_a_malformed_batch_is_refused(fault, code):
    with pytest.raises(InputError) as told:
        count_cells([replace(GOOD, **fault)], GRID)
    assert told.value.code == code


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        ({"step": "7min"}, "step-not-dividing-day"),
        ({"max_gap": "-1h"}, "value-out-of-range"),
        ({"timezone": "Mars/Olympus"}, "unknown-time-zone"),
    ],
)
def test_settings_that_do_not_fit_are_named(choice, code):
    with pytest.raises(InputError) as told:
        count_cells([GOOD], GRID, **choice)
    assert told.value.code == code


def test_people_beyond_sixteen_bits_are_told_apart():
    """Whose numbers are alike in their lower half: 1 and 65,537, both in two cells."""
    rows = [(65_537, "2024-05-01T08:01", 10.5), (1, "2024-05-01T08:02", 11.5),
            (65_537, "2024-05-01T08:03", 12.5), (1, "2024-05-01T08:04", 13.5)]  # fmt: skip
    assert listed(count_cells([batch(rows)], GRID)) == {
        ("05-01 08:00", 2): 1,
        ("05-01 08:00", 3): 1,
    }


@pytest.mark.parametrize("max_gap", [None, "10min", "3h"])
@pytest.mark.parametrize("table_bytes", [1 << 30, 20_000])
def test_sequences_of_batches_are_those_of_the_table(monkeypatch, max_gap, table_bytes):
    """In a year with two moves of the clock, with people in and out of the cells."""
    monkeypatch.setattr(streaming, "ROWS_AT_ONCE", 500)
    fixes = random_fixes(3, 6_000, 40, "2024-03-30T12:00", 72)
    seen = pd.DataFrame(
        {
            "user_id": [f"p{number}" for number in fixes.user],
            "time": fixes.time, "lon": fixes.lon, "lat": fixes.lat,
        }
    )  # fmt: skip
    people = read_trajectories(seen, tz="Europe/Berlin")
    found = read_sequences(
        seen, GRID, "30min", 2, None, max_gap, Choices.of(tz="Europe/Berlin"),
        max_table_bytes=table_bytes,
    )  # fmt: skip
    right = to_sequences(people, GRID, "30min", 2, None, max_gap)
    assert found.rows_read == len(seen)
    one, other = (order_of(each) for each in (found.sequences, right))
    pd.testing.assert_frame_equal(one, other)
    assert found.sequences.dropped == right.dropped
    assert (found.sequences.fixes == -1).all()
    assert found.sequences.has_outside


def order_of(sequences):
    """A row for each sequence: whose, when, and where."""
    table = sequences.windows.loc[sequences.window].reset_index(drop=True)
    table = table.assign(user_id=sequences.user_ids[sequences.individual])
    for i in range(sequences.length):
        table[f"state {i}"] = sequences.states[:, i]
    return table.sort_values(["user_id", "start_utc"], ignore_index=True)


def test_sequences_need_a_window():
    seen = pd.DataFrame(
        {"user_id": ["a", "b"], "time": ["2024-05-01 08:00", "2024-05-01 09:00"], "lon": 10.5,
         "lat": 0.5}
    )  # fmt: skip
    with pytest.raises(InputError) as told:
        read_sequences(seen, GRID)
    assert told.value.code == "no-window"
