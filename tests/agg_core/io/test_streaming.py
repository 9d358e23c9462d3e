import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.io import read_trajectories, streaming
from agg_core.io.streaming import CountProgress, FixBatch, count_cells, count_steps
from agg_core.space.grid import Grid
from agg_core.tables.trajectories import cell_counts

GRID = Grid.from_bbox(10, 0, 14, 3, 3, 4)
"""Three rows of four cells, one degree each."""
OUT = 9.5
"""A longitude outside the grid."""
TILE_BYTES = 16 * 64 * 8


def batch(rows):
    """Fixes of (person, UTC time, longitude) in the southern row of cells."""
    users, times, lons = zip(*rows, strict=True)
    us = np.array(times, dtype="datetime64[us]").astype(np.int64)
    return FixBatch(np.array(users), us, np.array(lons, float), np.full(len(rows), 0.5))


def listed(counts):
    """Counts as (clock, cell) -> people."""
    clock = counts["time"].dt.strftime("%m-%d %H:%M")
    return dict(zip(zip(clock, counts["cell"], strict=True), counts["count"], strict=True))


def random_fixes(seed, n, people, first, hours):
    """Fixes of people in any order, on borders of cells, within them and outside."""
    rng = np.random.default_rng(seed)
    start = np.datetime64(first, "us").astype(np.int64)
    return FixBatch(
        rng.integers(people, size=n),
        start + rng.integers(hours * 3600, size=n) * 10**6,
        rng.choice(np.arange(9, 15.1, 0.25), n),
        rng.choice(np.arange(-0.5, 3.6, 0.25), n),
    )


def cut(fixes, seed, pieces=5):
    """The same rows in batches."""
    at = np.sort(np.random.default_rng(seed).integers(len(fixes), size=pieces - 1))
    columns = [np.split(c, at) for c in (fixes.user, fixes.time_us, fixes.lon, fixes.lat)]
    return [FixBatch(*parts) for parts in zip(*columns, strict=True)]


def by_sequences(fixes, step, zone, max_gap):
    """What `cell_counts` makes of the same rows read as one table."""
    frame = pd.DataFrame(
        {
            "user_id": fixes.user.astype(str),
            "time": pd.to_datetime(fixes.time_us, unit="us", utc=True),
            "lon": fixes.lon,
            "lat": fixes.lat,
        }
    )
    # The shortest gap there is bridges no empty bin.
    return cell_counts(read_trajectories(frame, tz=zone), GRID, step, max_gap or "1us")


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
    empty = replace(batch([(0, "2024-05-01T08:10", 10.5)]), **dict.fromkeys(
        ("user", "time_us", "lon", "lat"), np.empty(0)
    ))  # fmt: skip
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
def test_what_does_not_fit_goes_through_files_and_comes_out_the_same(tmp_path, max_gap):
    fixes = random_fixes(0, 20_000, 400, "2024-10-20", 20 * 24)
    batches = cut(fixes, 0, 12)
    # Of 7 blocks of people with 60 tiles each, two fit at a time.
    limit = 130 * TILE_BYTES * (1 if max_gap is None else 2)
    steps = list(
        count_steps(
            batches, GRID, "30min", "Europe/London", max_gap, max_table_bytes=limit,
            scratch=tmp_path,
        )
    )  # fmt: skip
    assert len({step.spilled_bytes for step in steps[:-1]}) > 3
    assert list(tmp_path.iterdir()) == []
    pd.testing.assert_frame_equal(steps[-1], by_sequences(fixes, "30min", "Europe/London", max_gap))


def test_the_later_of_two_rows_at_one_instant_counts_through_files_too():
    crowd = random_fixes(1, 3_000, 2_000, "2024-05-02", 10)
    rows = [(0, "2024-05-01T08:10", 10.5), (0, "2024-05-01T08:10", 11.5)]
    for order in (rows, rows[::-1]):
        batches = [batch(order[:1]), crowd, batch(order[1:]), crowd]
        *_, progress, counts = count_steps(batches, GRID, max_table_bytes=20 * TILE_BYTES)
        assert progress.spilled_bytes > 0
        first_day = counts[counts["time"] < "2024-05-02"]
        assert listed(first_day) == {("05-01 08:00", int(order[1][2] - 10)): 1}


def test_a_broken_date_takes_a_tile_not_a_century():
    rows = [(i, year, 10.5) for i, year in enumerate(("1900-01-02", "2024-05-01", "2199-12-30"))]
    progress, counts = count_steps([batch(rows)], GRID, "1s", "Asia/Tokyo")
    assert progress.table_bytes < 1e6
    assert counts["count"].tolist() == [1, 1, 1]


def test_people_who_come_and_go_take_memory_only_while_they_are_there():
    day = np.datetime64("2024-05-01", "us").astype(np.int64)
    ones = np.ones(6400)
    daily = [
        FixBatch(
            np.arange(6400) + 6400 * d,
            np.full(6400, day + d * 86_400 * 10**6), 10.5 * ones, 0.5 * ones,
        )
        for d in range(30)
    ]  # fmt: skip
    *_, progress, counts = count_steps(daily, GRID, "30min")
    assert progress.people == 6400 * 30
    # A table of all people and bins would take 30 x 3 times what they touch.
    assert progress.table_bytes < 2 * 30 * 100 * TILE_BYTES
    assert counts["count"].tolist() == [6400] * 30


def test_people_who_do_not_fit_even_few_at_a_time_are_refused():
    fixes = random_fixes(0, 2_000, 60, "2024-05-01", 20 * 24)
    with pytest.raises(InputError, match="use a longer step or allow more memory"):
        count_cells([fixes], GRID, "30min", max_table_bytes=20 * TILE_BYTES)


def test_files_that_cannot_be_written_are_named(tmp_path):
    fixes = random_fixes(0, 2_000, 400, "2024-05-01", 20 * 24)
    with pytest.raises(InputError, match="Temporary files cannot be written"):
        count_cells([fixes], GRID, max_table_bytes=1, scratch=tmp_path / "missing")


def test_more_counts_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(streaming, "MAX_COUNTS", 1000)
    fixes = random_fixes(0, 3_000, 50, "2024-05-01", 20 * 24)
    with pytest.raises(InputError, match="no room for counts of so many"):
        count_cells([fixes], GRID, "1min")


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
    ("fault", "message"),
    [
        ({"lon": np.zeros(1)}, "differ in length"),
        ({"user": np.array([0, -1])}, "numbered from 0"),
        ({"user": np.array([0, 1 << 29])}, "numbered from 0"),
        ({"time_us": np.array([0, -(1 << 60)])}, "outside the years 1900 to 2199"),
        ({"time_us": np.array([0, 1 << 60])}, "outside the years 1900 to 2199"),
    ],
)
def test_a_malformed_batch_is_refused(fault, message):
    with pytest.raises(InputError, match=message):
        count_cells([replace(GOOD, **fault)], GRID)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"step": "7min"}, "divide a day evenly"),
        ({"max_gap": "-1h"}, "longer than nothing"),
        ({"timezone": "Mars/Olympus"}, "No time zone"),
    ],
)
def test_settings_that_do_not_fit_are_named(choice, message):
    with pytest.raises(InputError, match=message):
        count_cells([GOOD], GRID, **choice)


def test_a_grid_with_too_many_cells_is_refused():
    with pytest.raises(InputError, match="too fine"):
        count_cells([GOOD], Grid.from_bbox(0, 0, 1, 1, 6000, 6000))


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("zone", ["Europe/London", "Asia/Tokyo", "Africa/Casablanca", "UTC-03:30"])
def test_the_clock_gives_local_bins_at_positions_that_never_go_back(zone):
    rng = np.random.default_rng(0)
    first, end = (np.datetime64(year, "us").astype(np.int64) for year in ("1900", "2200"))
    utc = np.sort(rng.integers(first, end, 20_000))
    for step_us in (600 * 10**6, 4 * 3600 * 10**6):
        clock = streaming._Clock.of(zone, step_us)
        utc = np.sort(np.concatenate([utc, clock.starts, clock.starts[1:] - 1]))
        stretch = np.searchsorted(clock.starts, utc, "right") - 1
        local = utc + clock.offsets[stretch]
        assert (local == to_local(utc.astype("datetime64[us]"), zone).astype(np.int64)).all()
        position = local // step_us + clock.shifts[stretch]
        assert position[0] == 0
        assert (np.diff(position) >= 0).all()
        again = np.searchsorted(clock.first_positions, position, "right") - 1
        assert (position - clock.shifts[again] == local // step_us).all()


coordinate = st.floats(-3, 3) | st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 1.0])


@given(
    st.tuples(st.floats(-2, 1), st.floats(1e-3, 1), st.integers(1, 70), st.integers(1, 70)),
    st.lists(st.tuples(coordinate, coordinate), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_compiled_blocks_are_those_of_the_grid(extent, places):
    west, width, rows, cols = extent
    grid = Grid.from_bbox(west, west, west + width, west + 2 * width, rows, cols)
    lon, lat = np.array(places).T
    lon = np.concatenate([lon, grid.lon_edges, np.nextafter(grid.lon_edges, -9)])
    lat = np.resize(
        np.concatenate([lat, grid.lat_edges, np.nextafter(grid.lat_edges, 9)]), len(lon)
    )
    found = streaming._blocks(lon, lat, grid.lon_edges, grid.lat_edges)
    cell = grid.assign(lon, lat)
    assert found.tolist() == np.where(cell < 0, grid.n_cells, cell).tolist()
