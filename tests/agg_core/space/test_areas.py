"""Own areas: names, parts, borders, overlaps, what is broken; Tokyo's wards."""

from __future__ import annotations

import csv
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely.geometry import LineString, MultiPolygon, Point, Polygon, box

from agg_core.io.formats.vector import read_vector
from agg_core.space import areas
from agg_core.space.areas import EACH_ROW, AreaGrid
from agg_core.space.build import Grid
from agg_core.space.grid import OUTSIDE
from tests.faults import refused


def table(names, shapes, **columns):
    return gpd.GeoDataFrame({"name": names, **columns}, geometry=list(shapes), crs="EPSG:4326")


TWO = table(["西区", "東区"], [box(0, 0, 1, 1), box(1, 0, 2, 1)])


def test_areas_are_cells_with_their_names() -> None:
    grid = Grid.from_polygons(TWO)
    assert grid.labels == ["西区", "東区"]
    assert grid.bounds == (0, 0, 2, 1)
    assert grid.assign([0.5, 1.5, 2.5, np.nan], [0.5, 0.5, 0.5, 0.5]).tolist() == [0, 1, -1, -1]
    assert [n.tolist() for n in grid.neighbours] == [[1], [0]]
    frame = grid.to_geodataframe()
    assert frame["area"].tolist() == ["西区", "東区"]
    assert grid.areas_m2[0] == pytest.approx(111_320 * 110_574, rel=0.01)


def test_a_place_on_a_shared_border_is_in_the_first_of_them() -> None:
    grid = Grid.from_polygons(TWO)
    assert grid.assign([1.0, 1.0, 0.0, 2.0], [0.5, 1.0, 0.0, 1.0]).tolist() == [0, 0, 0, 1]
    turned = Grid.from_polygons(TWO.iloc[::-1])
    assert [turned.labels[c] for c in turned.assign([1.0], [0.5])] == ["東区"]


def test_where_areas_overlap_the_first_holds_and_it_is_told() -> None:
    grid = Grid.from_polygons(table(["a", "b"], [box(0, 0, 2, 2), box(1, 0, 5, 1)]))
    assert grid.assign([1.5, 1.5, 3.0], [0.5, 1.5, 0.5]).tolist() == [0, 0, 1]
    (overlap,) = grid.overlaps
    assert (overlap.first, overlap.second) == ("a", "b")
    assert overlap.share == pytest.approx(1 / 4)
    assert Grid.from_polygons(TWO).overlaps == ()


def test_parts_of_one_name_are_one_cell() -> None:
    grid = Grid.from_polygons(
        table(["a", "b", "a"], [box(0, 0, 1, 1), box(1, 0, 2, 1), box(5, 5, 6, 6)])
    )
    assert grid.labels == ["a", "b"]
    assert grid.assign([0.5, 5.5, 1.5], [0.5, 5.5, 0.5]).tolist() == [0, 0, 1]
    assert grid.report is not None
    assert grid.report.n_parts == 1
    assert [cell for cell, _ in grid.pieces()] == [0, 0, 1]


def test_one_name_in_two_cities_is_two_cells() -> None:
    frame = gpd.GeoDataFrame(
        {
            "pref": ["神奈川県"] * 5,
            "city": ["横浜市", "横浜市", "相模原市", "横浜市", None],
            "ward": ["緑区", "南区", "緑区", "緑区", "葉山町"],
            "code": ["14113", "14105", "14151", "14113", "14301"],
        },
        geometry=[box(i, 0, i + 1, 1) for i in range(5)],
    )
    grid = Grid.from_polygons(frame)
    assert grid.labels == ["横浜市 緑区", "南区", "相模原市 緑区", "葉山町"]
    assert grid.report is not None
    assert grid.report.named.value == "ward"
    assert grid.report.named.alternatives == ("city", "pref", "code", "")
    assert Grid.from_polygons(frame, "code").labels == ["14113", "14105", "14151", "14301"]
    assert Grid.from_polygons(frame, "ward").labels == ["緑区", "南区", "葉山町"]
    assert Grid.from_polygons(frame, EACH_ROW).n_cells == 5


def test_rows_without_a_name_are_areas_of_their_own() -> None:
    grid = Grid.from_polygons(
        table(["aa", None, "", "b2b"], [box(i, 0, i + 1, 1) for i in range(4)])
    )
    assert grid.labels == ["aa", "no name 2", "no name 3", "b2b"]
    assert grid.report is not None
    assert grid.report.n_unnamed == 2


def test_codes_name_where_nothing_else_does() -> None:
    frame = gpd.GeoDataFrame({"zone": [101.0, 102.0]}, geometry=[box(0, 0, 1, 1), box(1, 0, 2, 1)])
    assert Grid.from_polygons(frame).labels == ["101", "102"]
    bare = frame[["geometry"]]
    assert Grid.from_polygons(bare).labels == ["area 1", "area 2"]


def test_what_is_no_area_is_counted_and_what_crosses_itself_is_mended() -> None:
    bow_tie = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    shapes = [bow_tie, None, Polygon(), Point(1, 1), LineString([(0, 0), (1, 1)]), box(5, 5, 6, 6)]
    grid = Grid.from_polygons(table(list("abcdef"), shapes))
    assert grid.labels == ["a", "f"]
    report = grid.report
    assert report is not None
    assert report.n_rows == 6
    assert report.left_out == {"without geometry": 2, "points or lines": 2}
    assert report.n_mended == 1
    assert shapely.area(grid.polygons[0]) == pytest.approx(2.0)
    assert shapely.is_valid(grid.polygons).all()


def test_a_tangle_is_left_out_in_little_time() -> None:
    tangle = Polygon(np.random.default_rng(0).random((1500, 2)))
    grid = Grid.from_polygons(table(["tangle", "box"], [tangle, box(5, 5, 6, 6)]))
    assert grid.labels == ["box"]
    assert grid.report is not None
    assert grid.report.left_out == {"crossing themselves too often": 1}


def test_a_hole_is_outside_and_the_place_inside_is_inside() -> None:
    ring = box(0, 0, 4, 4).difference(box(1, 1, 3, 3))
    grid = Grid.from_polygons(table(["ring"], [ring]))
    assert grid.assign([2.0, 0.5], [2.0, 0.5]).tolist() == [OUTSIDE, 0]
    lon, lat = grid.centroids[0]
    assert grid.assign([lon], [lat]).tolist() == [0]
    ((_, rings),) = grid.pieces()
    assert len(rings) == 2


def test_they_come_back_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    shapes = [Point(*rng.random(2)).buffer(rng.random()) for _ in range(5)]
    grid = Grid.from_polygons(table(list("abcde"), shapes))
    again = AreaGrid(grid.names, grid.packed)
    assert again == grid
    assert again.digest == grid.digest
    assert shapely.equals_identical(again.polygons, np.array(shapes, dtype=object)).all()


@pytest.mark.parametrize("damage", ["", "AAAA", "!!!!", None])
def test_damaged_areas_are_one_sentence(damage: str | None) -> None:
    grid = Grid.from_polygons(TWO)
    packed = grid.packed[:-8] if damage is None else damage
    with refused("saved-areas-damaged"):
        _ = AreaGrid(grid.names, packed).polygons
    with refused("saved-areas-damaged"):
        _ = AreaGrid(("one",), grid.packed).polygons


def test_areas_within_an_extent_lose_parts_far_away() -> None:
    islands = MultiPolygon([box(0, 0, 1, 1), box(50, 0, 51, 1)])
    grid = Grid.from_polygons(table(["near", "far"], [islands, box(9, 9, 10, 10)]))
    near = grid.within((0.5, 0.5, 2.0, 2.0))
    assert near.labels == ["near"]
    assert near.bounds == (0, 0, 1, 1)
    with refused("areas-elsewhere"):
        grid.within((-50, -50, -40, -40))


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("unknown-column", "'x'; they have name"):
        Grid.from_polygons(TWO, "x")
    with refused("no-areas", "1 points or lines"):
        Grid.from_polygons(table(["a"], [Point(0, 0)]))
    many = table([f"n{i}x" for i in range(10_001)], [box(i, 0, i + 1, 1) for i in range(10_001)])
    with refused("too-many-cells", "10,001 cells and at most 10,000"):
        Grid.from_polygons(many.assign(geometry=many.geometry.scale(0.001, 1, origin=(0, 0))))
    monkeypatch.setattr(areas, "MOST_POINTS", 9)
    with refused("too-many-points", "10 points and at most 9"):
        Grid.from_polygons(TWO)


def test_a_table_in_another_system_is_brought_to_degrees_or_refused() -> None:
    square = table(["a"], [box(0, 0, 1000, 1000)])
    there = square.set_crs("EPSG:6677", allow_override=True)
    assert Grid.from_polygons(there).bounds[:2] == pytest.approx((139 + 50 / 60, 36.0))
    with refused("not-degrees"):
        Grid.from_polygons(square)


def test_names_are_one_line_of_text() -> None:
    grid = Grid.from_polygons(table(["a\nb\x00c", "x" * 500], [box(0, 0, 1, 1), box(1, 0, 2, 1)]))
    assert grid.labels[0] == "a b?c"
    assert len(grid.labels[1]) == 80


def test_very_detailed_areas_are_drawn_with_fewer_points() -> None:
    angle = np.linspace(0, 2 * np.pi, 40_000, endpoint=False)
    coast = Polygon(np.column_stack([np.cos(angle), np.sin(angle)]))
    grid = Grid.from_polygons(table(["a"], [coast]))
    drawn = sum(len(ring) for _, rings in grid.pieces() for ring in rings)
    assert drawn < 30_000
    assert shapely.get_num_coordinates(grid.polygons).sum() == 40_001


STATIONS = {
    "JR-East.Yamanote.Shinjuku": "新宿区",
    "JR-East.Yamanote.Shibuya": "渋谷区",
    "JR-East.Yamanote.Ikebukuro": "豊島区",
    "JR-East.Yamanote.Tokyo": "千代田区",
    "JR-East.Yamanote.Shinagawa": "港区",  # not in Shinagawa
    "JR-East.Yamanote.Meguro": "品川区",  # not in Meguro
    "JR-East.Yamanote.Ueno": "台東区",
}


def test_known_stations_lie_in_their_wards(shared_data: Path) -> None:
    folder = shared_data / "tokyo_polygons"
    content = (folder / "N03-21_13_210101_s0010.geojson").read_bytes()
    grid = Grid.from_polygons(read_vector(content, "wards").frame)
    assert grid.report is not None
    assert grid.report.named.value == "N03_004"
    assert grid.n_cells == 63
    assert {"千代田区", "八王子市", "小笠原村"} <= set(grid.labels)
    with (folder / "derived_stations_greater_tokyo.csv").open(encoding="utf-8") as file:
        places = {row["id"]: row for row in csv.DictReader(file)}
    lon, lat = (
        np.array([float(places[name][axis]) for name in STATIONS]) for axis in ("lon", "lat")
    )
    assert [grid.labels[c] for c in grid.assign(lon, lat)] == list(STATIONS.values())
    # Every station, against the slow way: each ward asked for each station.
    lon, lat = (np.array([float(p[axis]) for p in places.values()]) for axis in ("lon", "lat"))
    counts = np.bincount(grid.assign(lon, lat) + 1, minlength=64)[1:]
    slow = [int(shapely.intersects_xy(ward, lon, lat).sum()) for ward in grid.polygons]
    assert counts.tolist() == slow
    assert 900 < counts.sum() < len(lon)


def test_wards_of_three_cities_keep_apart(shared_data: Path) -> None:
    content = (shared_data / "tokyo_polygons" / "N03-21_14_210101_s0010.geojson").read_bytes()
    grid = Grid.from_polygons(read_vector(content, "kanagawa").frame)
    assert grid.n_cells == 58
    assert {"横浜市 緑区", "相模原市 緑区", "横浜市 南区", "相模原市 南区"} <= set(grid.labels)
