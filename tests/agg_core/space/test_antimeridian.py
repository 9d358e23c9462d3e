"""Grids over 180 degrees of longitude: Fiji, the Aleutians, Chukotka."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from shapely.geometry import mapping, shape

from agg_core import Grid, to_sequences
from agg_core.base.errors import InputError
from agg_core.io import read_trajectories
from agg_core.io.counts import read_counts
from agg_core.io.gates import read_gates
from agg_core.io.outlines import cut_outline
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


FIJI = (176.5, -19.5, 182.0, -15.5)
SUVA, TAVEUNI_WEST, LAU = (178.44, -18.14), (179.95, -16.85), (-178.9, -17.8)


@pytest.mark.parametrize("east", [182.0, -178.0])
def test_h3_cells_lie_on_both_sides(east):
    grid = Grid.from_h3(4, (176.5, -19.5, east, -15.5))
    west, _, right, _ = grid.bounds
    assert 175 < west < 177
    assert 182 < right < 184
    lon, lat = np.transpose([SUVA, TAVEUNI_WEST, LAU])
    cells = grid.assign(lon, lat)
    assert len(set(cells.tolist())) == 3
    assert (cells >= 0).all()
    for cell, x, y in zip(cells, lon, lat, strict=True):
        assert grid.polygons[cell].covers(shapely.Point(x if x > 0 else x + 360, y))
    assert grid.assign(lon + 360 * (lon < 0), lat).tolist() == cells.tolist()
    assert HexSettings(176.5, -19.5, east, -15.5, 4).make() == grid


def test_h3_cells_that_are_given_are_the_same():
    grid = Grid.from_h3(4, FIJI)
    again = Grid.from_h3(cells=grid.cells)
    assert again.bounds == grid.bounds
    assert all(polygon.area < 1 for polygon in again.polygons)


def test_h3_cells_of_both_hemispheres_are_refused():
    with refused("extent-too-wide"):
        Grid.from_h3(1, (10.0, -10.0, 200.0, 10.0))


def test_areas_that_are_cut_at_180_degrees_are_one():
    west = shapely.box(179, -17, 180, -16)
    east = shapely.box(-180, -17, -179, -16)
    areas = gpd.GeoDataFrame(
        {"name": ["north", "lau"]},
        geometry=[shapely.MultiPolygon([west, east]), shapely.box(-179, -19, -178, -17)],
        crs="EPSG:4326",
    )
    grid = Grid.from_polygons(areas, name="name")
    assert grid.bounds == (179, -19, 182, -16)
    assert grid.polygons[0].geom_type == "Polygon"
    assert grid.polygons[0].area == 2
    assert grid.assign([179.5, -179.5, 180.0, -178.5, 0.0], [-16.5, -16.5, -16.5, -18.0, -16.5]
                       ).tolist() == [0, 0, 0, 1, OUTSIDE]  # fmt: skip
    for extent in ((-178.9, -19, -178, -18), (181.1, -19, 182, -18)):
        assert grid.within(extent).names == ("lau",)
    assert grid.within((179.5, -17, -179.5, -16)).names == ("north",)


def test_areas_of_the_whole_world_stay_as_they_are():
    areas = gpd.GeoDataFrame(
        {"name": ["a", "b", "c"]},
        geometry=[shapely.box(west, 0, west + 9, 9) for west in (-170, 0, 161)],
        crs="EPSG:4326",
    )  # fmt: skip
    assert Grid.from_polygons(areas, name="name").bounds == (-170, 0, 170, 9)


def test_the_mesh_of_japan_says_that_it_ends():
    with pytest.raises(InputError):
        Grid.from_mesh(2, (178.0, 10.0, 182.0, 12.0))


HOURS = ["2024-05-13 08:00", "2024-05-13 09:00"]


def counted(cells, **more):
    rows = [(hour, cell, 3 + i) for i, cell in enumerate(cells) for hour in HOURS]
    table = pd.DataFrame(rows, columns=["time", "cell", "count"])
    for name, values in more.items():
        table[name] = np.repeat(values, 2)
    return table


def test_counts_of_places_on_both_sides_are_near_each_other():
    names = ["suva", "taveuni", "lau"]
    lon, lat = np.transpose([SUVA, TAVEUNI_WEST, LAU])
    table = read_counts(counted(names, lon=lon, lat=lat))
    grid = table.grid.make()
    assert grid.bounds[2] - grid.bounds[0] < 20
    found = grid.assign(lon, lat)
    assert [grid.names[cell] for cell in found] == names
    some = read_counts(counted(names, lon=lon, lat=lat), bbox=(179.0, -19, -178.0, -15))
    assert some.cells == ("lau", "taveuni")
    assert (
        read_counts(counted(names, lon=lon, lat=lat), bbox=(179, -19, 182, -15)).cells == some.cells
    )


def test_the_place_of_a_cell_whose_rows_lie_on_both_sides_is_between_them():
    table = read_counts(pd.DataFrame({
        "time": [*HOURS, *HOURS], "cell": ["a", "a", "b", "b"], "count": [1, 2, 3, 4],
        "lon": [179.9, -179.9, 178.0, 178.0], "lat": [-17.0] * 4,
    }))  # fmt: skip
    grid = table.grid.make()
    assert grid.assign([180.0, 178.0], [-17.0, -17.0]).tolist() == [0, 1]
    assert grid.bounds[2] - grid.bounds[0] < 20


def test_tiles_on_both_sides_are_near_each_other():
    keys = ["311111", "200000"]  # the last below the equator and the first, over the line
    table = read_counts(counted(keys).rename(columns={"cell": "quadkey"}).astype({"quadkey": str}))
    west, _, right, _ = table.grid.make().bounds
    assert right - west == pytest.approx(2 * 360 / 2**6)


def test_an_extent_to_read_goes_over_the_line():
    text = b"user_id,time,lon,lat\n" + b"".join(
        f"a,2024-05-13 08:{i}0,{lon},{lat}\n".encode()
        for i, (lon, lat) in enumerate([SUVA, TAVEUNI_WEST, LAU])
    )
    for within in ((179.0, -19.0, -178.0, -15.0), (179.0, -19.0, 182.0, -15.0)):
        report = read_trajectories(text, within=within).report
        assert report.rows_kept == 2
        assert report.set_aside["outside the extent to read"].count == 1


def test_stations_on_both_sides_have_grounds_of_their_own():
    gates = pd.DataFrame(
        [(hour, name, 3, 2) for hour in HOURS for name in ("suva", "lau")],
        columns=["time", "station", "entries", "exits"],
    )
    places = pd.DataFrame([("suva", *SUVA), ("lau", *LAU)], columns=["station", "lon", "lat"])
    table = read_gates(gates, places=places)
    grid = table.grid.make()
    assert grid.bounds[2] - grid.bounds[0] < 20
    assert table.distances_km[0, 1] < 400


def test_an_outline_is_cut_on_both_sides():
    lau = {"type": "Feature", "geometry": mapping(shapely.box(-179, -18, -178, -17))}
    viti = {"type": "Feature", "geometry": mapping(shapely.box(177, -18, 178, -17))}
    outline = {"type": "FeatureCollection", "features": [lau, viti]}
    near = cut_outline(outline, FIJI, 0.0)
    shapes = [shape(one["geometry"]) for one in near["features"]]
    assert sorted(each.bounds for each in shapes) == [(177, -18, 178, -17), (181, -18, 182, -17)]


def test_arrows_between_both_sides_are_short():
    grid = Grid.from_h3(4, FIJI)
    lon = grid.centroids[:, 0]
    assert lon.max() - lon.min() < 10
    assert lon.max() > 180
    metres = grid.centroids_m
    assert np.ptp(metres, axis=0).max() < 800_000
    assert np.abs(grid.to_degrees(metres) - grid.centroids).max() < 1e-6
