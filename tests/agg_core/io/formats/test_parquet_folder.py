"""Folders of Parquet: what comes of them is what one file of the same rows gives."""

from __future__ import annotations

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.base.errors import InputError
from agg_core.cli.main import main
from agg_core.io import Choices, count_trips, read_trajectories
from agg_core.io.counts import holds_counts, read_counts
from agg_core.io.fixes import FixReader
from agg_core.io.formats import parquet, registry
from agg_core.io.formats.registry import open_source
from agg_core.io.formats.vector import places_in_degrees
from agg_core.io.streaming import count_cells, read_sequences
from agg_core.space.build import Grid
from agg_core.tables.sequences import cell_counts

DAYS = ("2024-05-01", "2024-05-02", "2024-05-03")
GRID = Grid.from_bbox(139.0, 35.0, 139.4, 35.4, 4, 4)


def fixes_of(day, n=60):
    """Fixes of ten people through a day, in order of time."""
    rng = np.random.default_rng(int(day[-2:]))
    minutes = np.sort(rng.choice(24 * 60, n, replace=False))
    return pd.DataFrame(
        {
            "user_id": [f"p{i}" for i in rng.integers(10, size=n)],
            "time": pd.Timestamp(day) + pd.to_timedelta(minutes, unit="min"),
            "lon": rng.uniform(139.0, 139.4, n).round(4),
            "lat": rng.uniform(35.0, 35.4, n).round(4),
        }
    )


ALL = pd.concat([fixes_of(day) for day in DAYS], ignore_index=True)


def partitioned(folder, frame_of, row_group_size=20):
    """A partition a day, each with row groups of some rows."""
    for day in DAYS:
        (folder / f"date={day}").mkdir(parents=True)
        frame_of(day).to_parquet(
            folder / f"date={day}" / "part-0.parquet", row_group_size=row_group_size
        )
    return folder


@pytest.fixture
def folder(tmp_path):
    return partitioned(tmp_path / "log", fixes_of)


def same_table(found, right):
    """People are numbered as they are met, in rows that are set aside too."""
    columns = ["user_id", "time", "lon", "lat"]
    one, other = (
        each.table[columns].sort_values(["user_id", "time"], ignore_index=True)
        for each in (found, right)
    )
    pd.testing.assert_frame_equal(one, other)


def test_a_folder_reads_as_one_file_of_its_rows(folder):
    found = read_trajectories(folder)
    same_table(found, read_trajectories(ALL))
    assert found.report.rows_read == len(ALL)
    assert found.report.guesses["files"].value == "3 of 3 read"
    assert found.report.guesses["ids"].value == "shared"
    assert "folders" in found.report.guesses


def test_plain_files_of_a_folder_are_one_table_too(tmp_path):
    for day in DAYS:
        fixes_of(day).to_parquet(tmp_path / f"{day}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    same_table(read_trajectories(tmp_path), read_trajectories(ALL))


def test_counting_a_folder_is_counting_its_table(folder):
    reader = FixReader(open_source(folder, Choices()), Choices())
    counts = count_cells(reader.batches(), GRID, "1h")
    pd.testing.assert_frame_equal(counts, cell_counts(read_trajectories(ALL), GRID, "1h", "1us"))


def test_a_partition_is_a_column_of_its_rows(tmp_path):
    def clocks(day):
        made = fixes_of(day)
        return made.assign(time=made["time"].dt.strftime("%H:%M"))

    by_user = tmp_path / "by_user"
    for name in ("ann", "bob=1"):
        (by_user / f"user={name.replace('=', '%3D')}").mkdir(parents=True)
        rows = fixes_of(DAYS[0]).drop(columns="user_id")
        rows.to_parquet(by_user / f"user={name.replace('=', '%3D')}" / "0.parquet")
    same_table(read_trajectories(partitioned(tmp_path / "log", clocks)), read_trajectories(ALL))
    assert set(read_trajectories(by_user).table["user_id"]) == {"ann", "bob=1"}


LON = float(ALL["lon"][7])


@pytest.mark.parametrize(
    ("stated", "keeps", "cause", "n_read"),
    [
        ({"first_day": DAYS[1]}, ALL["time"] >= DAYS[1], "before the first day", 120),
        ({"last_day": DAYS[0]}, ALL["time"] < DAYS[1], "after the last day", 60),
        (
            {"within": (139.1, 35.0, 139.2, 35.2)},
            ALL["lon"].between(139.1, 139.2) & (ALL["lat"] <= 35.2),
            "outside the extent to read",
            180,
        ),
        ({"where": {"date": DAYS[2]}}, ALL["time"] >= DAYS[2], f"not date={DAYS[2]}", 60),
        ({"where": {"lon": LON}}, ALL["lon"] == LON, f"not lon={LON}", 180),
    ],
)
def test_what_is_not_needed_is_passed_over_and_counted(
    folder, monkeypatch, stated, keeps, cause, n_read
):
    read = []
    whole = pq.ParquetFile.iter_batches

    def watched(self, *arguments, **named):
        for batch in whole(self, *arguments, **named):
            read.append(batch.num_rows)
            yield batch

    found = read_trajectories(folder, **stated)
    same_table(found, read_trajectories(ALL[keeps]))
    assert found.report.rows_read == len(ALL)
    assert found.report.set_aside[cause].count == len(ALL) - keeps.sum()
    assert found.report.set_aside[cause].lines[0] == int(np.flatnonzero(~keeps)[0]) + 1
    choices = Choices.of(**stated)
    reader = FixReader(open_source(folder, choices), choices)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    assert sum(map(len, reader.batches())) == keeps.sum()
    assert sum(read) == n_read


def test_an_extent_passes_over_row_groups(tmp_path):
    ALL.sort_values("lon").to_parquet(tmp_path / "all.parquet", row_group_size=10)
    choices = Choices.of(within=(139.1, 35.0, 139.2, 35.4))
    reader = FixReader(open_source(tmp_path / "all.parquet", choices), choices)
    read = [len(fixes) for fixes in reader.batches()]
    n_within = ALL["lon"].between(139.1, 139.2).sum()
    assert sum(read) == n_within
    assert reader.rows_read == len(ALL)
    aside = reader.account.result()["outside the extent to read"]
    assert aside.count == len(ALL) - n_within


def test_where_nothing_is_left_it_is_said(folder, capsys):
    with pytest.raises(InputError) as told:
        read_trajectories(folder, where={"date": "2000-01-01"})
    assert told.value.code == "no-rows-left"
    with pytest.raises(InputError) as told:
        read_sequences(folder, GRID, choices=Choices.of(first_day="2030-01-01"))
    assert told.value.code == "no-rows-left"
    asked = ["counts", str(folder), "--bbox", "139,35,140,36", "--first-day", "2030-01-01"]
    assert main(asked) == 2
    assert "180" in capsys.readouterr().err


def test_row_groups_of_one_file_are_passed_over_too(tmp_path):
    ALL.to_parquet(tmp_path / "all.parquet", row_group_size=10)
    part = parquet.Part.of_path(tmp_path / "all.parquet", "all")
    source = open_source(tmp_path / "all.parquet", Choices())
    limits = parquet.Needed(1, "late", least=np.datetime64(DAYS[2]))
    rows = list(source.needing([limits]).batches([0]))
    passed = sum(aside.count for each in rows for aside in each.set_aside.values())
    assert part.n_rows == len(ALL) == passed + sum(each.n_rows for each in rows)
    assert passed == 120
    assert rows[-1].line_numbers(np.array([0])).tolist() == [121]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_days_are_those_of_the_clock_that_is_shown(tmp_path, zone):
    def in_zone(day):
        return fixes_of(day).assign(time=lambda table: table["time"].dt.tz_localize("UTC"))

    folder = partitioned(tmp_path / "log", in_zone, row_group_size=5)
    found = read_trajectories(folder, tz=zone, first_day=DAYS[1], last_day=DAYS[1])
    clock = ALL["time"].dt.tz_localize("UTC").dt.tz_convert(zone).dt.strftime("%Y-%m-%d")
    assert found.report.rows_kept == (clock == DAYS[1]).sum() > 0


def test_points_are_read_in_every_encoding(tmp_path):
    for crs in ("EPSG:4326", "EPSG:6677"):
        for encoding in ("WKB", "geoarrow"):
            folder = tmp_path / f"{crs[-4:]}-{encoding}"
            for day in DAYS:
                (folder / f"date={day}").mkdir(parents=True)
                rows = fixes_of(day)
                points = gpd.points_from_xy(rows["lon"], rows["lat"], crs="EPSG:4326")
                frame = gpd.GeoDataFrame(rows[["user_id", "time"]], geometry=points).to_crs(crs)
                frame.to_parquet(
                    folder / f"date={day}" / "0.parquet", geometry_encoding=encoding,
                    write_covering_bbox=encoding == "WKB", row_group_size=20,
                    schema_version="1.1.0",
                )  # fmt: skip
            found = read_trajectories(folder)
            right = read_trajectories(ALL)
            assert found.table["user_id"].tolist() == right.table["user_id"].tolist()
            for axis in ("lon", "lat"):
                np.testing.assert_allclose(found.table[axis], right.table[axis], atol=1e-7)
            within = read_trajectories(folder, within=(139.10005, 34.9, 139.19995, 35.5))
            assert within.report.rows_kept == ALL["lon"].between(139.10005, 139.19995).sum()
            assert within.report.rows_read == len(ALL)


def test_points_of_a_file_too_large_to_load_are_read_in_batches(tmp_path, monkeypatch):
    points = gpd.points_from_xy(ALL["lon"], ALL["lat"], crs="EPSG:4326")
    frame = gpd.GeoDataFrame(ALL[["user_id", "time"]], geometry=points)
    frame.to_parquet(tmp_path / "points.parquet")
    loaded = read_trajectories(tmp_path / "points.parquet")
    monkeypatch.setattr(registry, "MOST_MEGABYTES", 0)
    monkeypatch.setattr(registry, "open_features", None)
    same_table(read_trajectories(tmp_path / "points.parquet"), loaded)
    same_table(loaded, read_trajectories(ALL))


def test_points_that_are_none_are_set_aside(tmp_path):
    """A geometry that is missing, and one that is a line, among points: the slow way."""
    rows = fixes_of(DAYS[0])
    points = gpd.points_from_xy(rows["lon"], rows["lat"], crs="EPSG:4326").to_numpy()
    points[3] = None
    gpd.GeoDataFrame(rows[["user_id", "time"]], geometry=points, crs="EPSG:4326").to_parquet(
        tmp_path / "a.parquet"
    )
    fixes_of(DAYS[1]).iloc[:0].to_parquet(tmp_path / "_none.parquet")
    (tmp_path / "b").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "b" / "a.parquet")
    (tmp_path / "b" / "b.parquet").write_bytes((tmp_path / "b" / "a.parquet").read_bytes())
    found = read_trajectories(tmp_path / "b")
    assert found.report.set_aside["missing position"].count == 2
    assert found.report.rows_read == 2 * len(rows)


def test_columns_that_some_files_lack_are_missing_there(tmp_path):
    for i, day in enumerate(DAYS):
        rows = fixes_of(day).assign(accuracy=5.0)
        rows = rows if i else rows.drop(columns="accuracy")
        kind = {"user_id": "category"} if i == 1 else {}
        rows.astype(kind).to_parquet(tmp_path / f"{day}.parquet")
    found = read_trajectories(tmp_path, max_accuracy=10.0)
    assert found.report.rows_kept == read_trajectories(ALL).report.rows_kept


def test_rows_of_another_table_are_counted(folder):
    pd.DataFrame({"station": ["a", "b"], "name": ["x", "y"]}).to_parquet(
        folder / f"date={DAYS[0]}" / "stations.parquet"
    )
    (folder / f"date={DAYS[0]}" / "readme.txt").write_text("no table")
    found = read_trajectories(folder)
    same_table(found, read_trajectories(ALL))
    assert found.report.set_aside["rows of a file with other columns"].count == 2
    assert found.report.rows_read == len(ALL) + 2
    assert found.report.guesses["files"].value == "3 of 5 read"


def test_trips_of_a_folder_are_those_of_its_table(tmp_path):
    rng = np.random.default_rng(0)

    def trips_of(day):
        n = 80
        start = pd.Timestamp(day) + pd.to_timedelta(rng.integers(24 * 60, size=n), unit="min")
        ends = {}
        for end in ("start", "end"):
            station = rng.integers(4, size=n)
            ends |= {f"{end}_station_id": station.astype(str)}
            ends |= {f"{end}_lng": 139 + station / 10 + rng.uniform(0, 0.01, n)}
            ends |= {f"{end}_lat": np.where(rng.random(n) < 0.1, np.nan, 35.0 + station / 10)}
        return pd.DataFrame({"started_at": start, **ends})

    made = {day: trips_of(day) for day in DAYS}
    folder = partitioned(tmp_path / "trips", made.__getitem__)
    every = pd.concat(list(made.values()), ignore_index=True)
    found = count_trips(folder, step="2h")
    assert (found.trips, found.left_out) == (len(every), 0)
    by = [every["started_at"].dt.floor("2h"), every["start_station_id"], every["end_station_id"]]
    # A longitude without a latitude is no place.
    placed = every.assign(start_lng=every["start_lng"].where(every["start_lat"].notna()))
    right = placed.groupby(by).agg(
        count=("started_at", "size"), origin_lon=("start_lng", "median"),
        dest_lat=("end_lat", "median"),
    )  # fmt: skip
    assert found.table["count"].tolist() == right["count"].tolist()
    for column in ("origin_lon", "dest_lat"):
        np.testing.assert_allclose(found.table[column], right[column])
    only = count_trips(folder, Choices.of(where={"date": DAYS[1]}), step="2h")
    assert (only.trips, only.not_selected) == (80, 160)
    none = count_trips(folder, Choices.of(where={"date": "2000-01-01"}), step="2h")
    assert (len(none.table), none.trips, none.not_selected) == (0, 0, 240)


def test_counts_of_a_folder_are_those_of_its_table(tmp_path):
    def counts_of(day):
        hours = [f"{hour:02d}:00" for hour in range(4)]
        counts = int(day[-1]) + np.arange(8)
        return pd.DataFrame({"time": np.repeat(hours, 2), "cell": ["A", "B"] * 4, "count": counts})

    folder = partitioned(tmp_path / "counts", counts_of)
    assert holds_counts(folder)
    found = read_counts(folder)
    whole = pd.concat(
        [counts_of(day).assign(time=lambda t, d=day: d + " " + t["time"]) for day in DAYS]
    )
    right = read_counts(whole)
    assert found.cells == right.cells
    assert found.times.equals(right.times)
    np.testing.assert_array_equal(found.counts, right.counts)


def test_a_folder_may_be_called_by_a_name(tmp_path, folder):
    """As the app hands over what it may open."""
    same_table(read_trajectories({"a log": folder}), read_trajectories(ALL))
    rows = pd.DataFrame({"time": ["08:00", "09:00"], "cell": "A", "count": [3, 4]})
    counts = partitioned(tmp_path / "counts", lambda _: rows)
    assert holds_counts({"counts": counts})
    assert not holds_counts({"a log": folder})
    assert read_counts({"counts": counts}).n_moments == read_counts(counts).n_moments == 6


# -------------------------------------------------------------------------- what is refused


def damaged(folder):
    path = folder / f"date={DAYS[1]}" / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:-30])


def other_kind(folder):
    rows = fixes_of(DAYS[1]).assign(lon="east")
    rows.to_parquet(folder / f"date={DAYS[1]}" / "part-0.parquet")


def other_partitions(folder):
    (folder / "hour=3").mkdir()
    fixes_of(DAYS[0]).to_parquet(folder / "hour=3" / "part-0.parquet")


def link_out(folder):
    fixes_of(DAYS[0]).to_parquet(folder.parent / "out.parquet")
    (folder / "link.parquet").symlink_to(folder.parent / "out.parquet")


def link_to_folder(folder):
    (folder / "more").symlink_to(folder.parent)


def no_rows(folder):
    for path in folder.rglob("*.parquet"):
        fixes_of(DAYS[0]).iloc[:0].to_parquet(path)


def no_files(folder):
    for path in folder.rglob("*.parquet"):
        path.unlink()


def zones(folder):
    table = pa.Table.from_pandas(fixes_of(DAYS[1])).replace_schema_metadata(
        {"timezone": "Asia/Tokyo"}
    )
    pq.write_table(table, folder / f"date={DAYS[1]}" / "part-0.parquet")


def broken_geometry(folder):
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path).replace_schema_metadata({"geo": json.dumps({"columns": 1})})
        pq.write_table(table, path)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (damaged, "damaged-parquet"),
        (other_kind, "mixed-column-types"),
        (other_partitions, "partitions-differ"),
        (link_out, "link-leads-out"),
        (link_to_folder, "link-leads-out"),
        (no_rows, "no-rows"),
        (no_files, "no-files"),
        (zones, "mixed-time-zones"),
        (broken_geometry, "damaged-parquet"),
    ],
)
def test_what_is_wrong_with_a_folder_is_named(folder, spoil, code):
    spoil(folder)
    with pytest.raises(InputError) as told:
        read_trajectories(folder)
    assert told.value.code == code


def test_an_end_of_a_link_within_the_folder_is_read(folder):
    (folder / f"date={DAYS[0]}" / "again.parquet").symlink_to(
        folder / f"date={DAYS[1]}" / "part-0.parquet"
    )
    assert read_trajectories(folder).report.rows_read == len(ALL) + 60


def test_thousands_of_files_are_one_table(tmp_path):
    rows = pa.Table.from_pandas(ALL.iloc[:2])
    for i in range(2_000):
        pq.write_table(rows, tmp_path / f"{i:04d}.parquet")
    assert read_trajectories(tmp_path).report.rows_read == 4_000


def test_map_metres_of_points_have_no_range_in_degrees():
    """What a reader relies on: places are moved as the vector reader moves them."""
    places = places_in_degrees(np.array([[0.0, 0.0]]), "EPSG:6677", "x")
    np.testing.assert_allclose(places, [[139.8333333, 36.0]], atol=1e-6)
