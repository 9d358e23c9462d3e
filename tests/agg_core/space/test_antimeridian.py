"""Grids over 180 degrees of longitude: Fiji, the Aleutians, Chukotka."""

import numpy as np
import pandas as pd
import pytest
import shapely

from agg_core import Grid, read_trajectories, to_sequences
from agg_core.io.counts import read_counts
from agg_core.space.degrees import great_circle_km
from agg_core.space.grid import OUTSIDE
from agg_core.space.settings import GridSettings, HexSettings
from agg_core.study.suggest import suggest_extent
from tests.faults import refused

LON = [177.5, 179.5, -179.5, -177.5, 0.0, 176.9]


@pytest.mark.parametrize("east", [183.0, -177.0])
def test_cells_go_on_beyond_180_degrees(east):
    grid = Grid.from_bbox(177.0, -19.0, east, -16.0, rows=1, cols=6)
    assert grid.assign(LON, np.full(6, -17.0)).tolist() == [0, 2, 3, 5, OUTSIDE, OUTSIDE]
    assert grid.bounds == (177.0, -19.0, 183.0, -16.0)
    settings = GridSettings(177.0, -19.0, east, -16.0, rows=1, cols=6)
    assert settings.make() == grid


def test_an_extent_that_is_reversed_is_still_refused():
    with refused("empty-extent"):
        Grid.from_bbox(140.0, 35.0, 139.0, 36.0, rows=1, cols=1)
    with refused("extent-out-of-range"):
        Grid.from_bbox(170.0, 35.0, 531.0, 36.0, rows=1, cols=1)


def test_the_extent_of_places_on_both_sides_is_narrow():
    lon = np.concatenate([np.linspace(177, 180, 200), np.linspace(-180, -178, 200)])
    west, _, east, _ = suggest_extent(lon, np.linspace(-19, -16, 400))
    assert 176 < west < 178
    assert 181 < east < 183


@pytest.mark.parametrize("east", [181.0, -179.0])
def test_h3_cells_go_on_beyond_180_degrees(east):
    grid = Grid.from_h3(5, (179.0, -18.0, east, -16.0))
    west, _, beyond, _ = grid.bounds
    assert 178.5 < west < 179
    assert 181 < beyond < 181.5
    assert all(shape.bounds[2] - shape.bounds[0] < 1 for shape in grid.polygons)
    lon = np.array([179.5, 179.99, 180.0, -180.0, -179.99, -179.5, 0.0, 177.0])
    cell = grid.assign(lon, np.full(8, -17.0))
    assert (cell[:6] != OUTSIDE).all()
    assert cell[2] == cell[3]
    assert cell[6:].tolist() == [OUTSIDE, OUTSIDE]
    places = np.column_stack([np.where(lon < 0, lon + 360, lon), np.full(8, -17.0)])
    for at, own in zip(places[[0, 1, 4, 5]], cell[[0, 1, 4, 5]], strict=True):
        assert shapely.Point(at).within(grid.polygons[own])
    assert HexSettings(179.0, -18.0, east, -16.0, resolution=5).make() == grid
    assert Grid.from_h3(cells=grid.cells).bounds == grid.bounds


def fiji(n=12):
    """People who cross the line, each an hour after the other."""
    return pd.DataFrame(
        [(f"u{person}", f"2024-05-01T0{hour}:00Z", (179.7 + 0.1 * hour + 180) % 360 - 180,
          -17.0 + 0.01 * person) for person in range(n) for hour in range(7)],
        columns=["user_id", "time", "lon", "lat"],
    )  # fmt: skip


def test_what_lies_within_an_extent_over_the_line_is_read():
    table = fiji()
    kept = read_trajectories(table, within=(179.65, -20.0, -179.75, -10.0)).report
    assert (kept.rows_read, kept.rows_kept) == (84, 72)
    assert sum(rows.count for rows in kept.set_aside.values()) == 12
    with refused("malformed-extent"):
        read_trajectories(table, within=(140.0, 35.0, 139.0, 36.0))


def test_parts_of_a_file_are_passed_over_by_latitude_alone(tmp_path):
    fiji().to_parquet(tmp_path / "1.parquet", row_group_size=7)
    kept = read_trajectories(tmp_path / "1.parquet", within=(179.65, -20.0, -179.75, -16.965))
    assert (
        kept.report.rows_kept == sum(-17.0 + 0.01 * person <= -16.965 for person in range(12)) * 6
    )
    assert kept.report.rows_read == 84


def test_counts_of_an_extent_over_the_line():
    text = "time,cell,count,lat,lon\n" + "".join(
        f"2024-05-01 0{hour}:00,{name},{5 + hour},-17,{lon}\n"
        for hour in range(3) for name, lon in (("a", 179.5), ("b", 179.8), ("c", 170.0))
    )  # fmt: skip
    assert read_counts(text.encode(), bbox=(179.0, -20.0, -179.0, -10.0)).cells == ("a", "b")


def test_people_step_over_the_line_on_h3_cells():
    people = read_trajectories(fiji())
    grid = Grid.from_h3(5, (179.0, -18.0, -179.0, -16.0))
    sequences = to_sequences(people, grid, step="1h", length=7, start="00:00")
    assert (sequences.states < grid.n_cells).all()
    km = great_circle_km(*grid.centroids[sequences.states[:, 0]].T,
                         *grid.centroids[sequences.states[:, -1]].T)  # fmt: skip
    assert km.max() < 100
