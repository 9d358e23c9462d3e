"""Outlines: every kind of GeoJSON, coordinate systems, what is hostile, thinning and cutting."""

from __future__ import annotations

import io
import json
import operator
import zipfile
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from libpysal.examples import get_path
from shapely.geometry import shape

from agg_core.base.errors import InputError
from agg_core.io import outlines
from agg_core.io.formats import vector
from agg_core.io.formats.vector import read_vector
from agg_core.io.outlines import cut_outline, outline_of

SQUARE = [[139.0, 35.0], [140.0, 35.0], [140.0, 36.0], [139.0, 36.0], [139.0, 35.0]]
HOLE = [[139.4, 35.4], [139.4, 35.6], [139.6, 35.6], [139.6, 35.4], [139.4, 35.4]]
ROAD = [[139.0, 35.5], [139.5, 35.25], [140.0, 35.5]]
POLYGON = {"type": "Polygon", "coordinates": [SQUARE, HOLE]}
LINE = {"type": "LineString", "coordinates": ROAD}


def read_outline(content, filename, crs=None):
    """The outline of a file as its bytes."""
    return outline_of(read_vector(content, filename, crs))


def read(document: Any, name: str = "mine.geojson") -> outlines.Outline:
    return read_outline(json.dumps(document).encode(), name)


def features(*geometries: Any, **members: Any) -> dict[str, Any]:
    found = [{"type": "Feature", "properties": {"name": "x"}, "geometry": g} for g in geometries]
    return {"type": "FeatureCollection", "features": found, **members}


def shapes(outline: outlines.Outline) -> list[Any]:
    return [feature["geometry"] for feature in outline.features["features"]]


def ring(places: Any) -> list[list[float]]:
    closed = np.vstack([places, places[:1]])
    return np.asarray(closed).tolist()


def refusal(content: bytes, name: str = "mine.geojson") -> InputError:
    """The error that a file is refused by, looked at for being one sentence."""
    with pytest.raises(InputError) as fault:
        read_outline(content, name)
    told = str(fault.value)
    assert told.endswith(".")
    assert "\n" not in told
    return fault.value


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (POLYGON, [POLYGON]),
        (LINE, [LINE]),
        ({"type": "Feature", "properties": None, "geometry": LINE}, [LINE]),
        (features(POLYGON, LINE), [POLYGON, LINE]),
        ({"type": "GeometryCollection", "geometries": [LINE, POLYGON]}, [LINE, POLYGON]),
        (
            {"type": "MultiLineString", "coordinates": [ROAD, HOLE]},
            [{"type": "MultiLineString", "coordinates": [ROAD, HOLE]}],
        ),
        (
            {"type": "MultiPolygon", "coordinates": [[HOLE], [ring([[1, 1], [2, 1], [2, 2]])]]},
            [
                {
                    "type": "MultiPolygon",
                    "coordinates": [[HOLE], [[[1.0, 1.0], [2.0, 1.0], [2.0, 2.0], [1.0, 1.0]]]],
                }
            ],
        ),
    ],
    ids=["polygon", "line", "feature", "collection", "geometries", "lines", "polygons"],
)
def test_every_kind_is_read_as_it_is(document: Any, expected: list[Any]) -> None:
    found = read(document)
    assert shapes(found) == expected
    assert found.n_shapes == len(expected)
    assert found.n_left_out == {}
    assert found.crs == "EPSG:4326"
    assert found.tolerance_m == 0
    assert found.n_points_read == found.n_points_kept


def test_the_facts_about_a_small_file() -> None:
    found = read(features(POLYGON, LINE))
    assert found.name == "mine.geojson"
    assert found.bounds == (139.0, 35.0, 140.0, 36.0)
    assert found.n_points_read == 13
    assert all(feature["properties"] == {} for feature in found.features["features"])
    assert found.meets((139.9, 35.9, 141.0, 37.0))
    assert not found.meets((140.1, 35.0, 141.0, 36.0))


def test_heights_and_decimals_are_left_behind() -> None:
    found = read({"type": "LineString", "coordinates": [[1.123456789, 2, 99], [3, 4.000004, 98]]})
    assert shapes(found)[0]["coordinates"] == [[1.12346, 2.0], [3.0, 4.0]]


def test_what_is_left_out_is_counted_by_cause() -> None:
    broken = [
        {"type": "LineString", "coordinates": [[1, 2], ["3", 4]]},
        {"type": "LineString", "coordinates": [[1, 2], [True, 4]]},
        {"type": "LineString", "coordinates": [[1, 2], [float("nan"), 4]]},
        {"type": "LineString", "coordinates": [[1, 2]]},
        {"type": "Polygon", "coordinates": [[[1, 2], [3, 4]]]},
        {"type": "Polygon", "coordinates": {"a": 1}},
    ]
    flat = {"type": "Polygon", "coordinates": [ring(np.array([[1.0, 1], [2, 2], [3, 3]]))]}
    others = [
        {"type": "Point", "coordinates": [1, 2]},
        {"type": "MultiPoint", "coordinates": [[1, 2]]},
        {"type": "Circle", "coordinates": [1, 2]},
        None,
        {"type": "Polygon", "coordinates": []},
    ]
    found = read(features(LINE, *broken, flat, *others))
    assert shapes(found) == [LINE]
    assert found.n_left_out == {
        "with broken coordinates": 6,
        "without size": 1,
        "points": 2,
        "of an unknown type": 1,
        "without geometry": 2,
    }


def test_numbers_beyond_all_measure_are_broken_coordinates() -> None:
    texts = [b"1e999", b"-1e999", b"9" * 5000, b"Infinity", b"NaN"]
    for text in texts:
        content = b'{"type": "LineString", "coordinates": [[1, 2], [%s, 4]]}' % text
        told = refusal(content)
        assert told.code == "nothing-to-draw"
        assert "1 with broken coordinates" in str(told)


def test_an_area_that_crosses_itself_is_mended() -> None:
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    (mended,) = shapes(read(bow_tie))
    area = shape(mended)
    assert area.is_valid
    assert area.area == pytest.approx(2.0)  # two triangles of base 2 and height 1
    assert area.geom_type == "MultiPolygon"


# 40 degrees north, 140 east of Greenwich is the origin of zone X (EPSG:6678); zone IX (EPSG:6677)
# has its own at 36 N, 139 E 50': by definition the coordinates there are 0, 0.
@pytest.mark.parametrize(
    "name",
    ["urn:ogc:def:crs:EPSG::6677", "EPSG:6677", "http://www.opengis.net/def/crs/EPSG/0/6677"],
)
def test_the_stated_system_is_converted(name: str) -> None:
    crs = {"type": "name", "properties": {"name": name}}
    found = read({"type": "LineString", "coordinates": [[0, 0], [0, 1000]], "crs": crs})
    (west, south), (_, north) = shapes(found)[0]["coordinates"]
    assert (west, south) == pytest.approx((139 + 50 / 60, 36.0), abs=1e-5)
    # A degree of latitude at 36 N is 110.95 km on GRS80; the scale at the origin is 0.9999.
    assert (north - south) * 110_950 * 0.9999 == pytest.approx(1000, abs=2)
    assert found.crs == "EPSG:6677"


def test_the_tokyo_datum_is_shifted() -> None:
    """Zone VI of the old datum: its origin 36 N, 136 E lies some 450 m from there in WGS84."""
    crs = {"type": "name", "properties": {"name": "EPSG:30166"}}
    found = read({"type": "LineString", "coordinates": [[0, 0], [0, 1000]], "crs": crs})
    lon, lat = shapes(found)[0]["coordinates"][0]
    moved = np.hypot((lon - 136) * 90_200, (lat - 36) * 110_950)
    assert 350 < moved < 550
    assert lon < 136
    assert lat > 36


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::6668"])
def test_degrees_stay_degrees(name: str) -> None:
    found = read(features(LINE, crs={"type": "name", "properties": {"name": name}}))
    assert shapes(found) == [LINE]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (
            {**LINE, "crs": {"type": "name", "properties": {"name": "EPSG:99999"}}},
            "crs-not-convertible",
        ),
        (
            {**LINE, "crs": {"type": "name", "properties": {"name": "EPSG:4978"}}},
            "crs-not-convertible",
        ),
        (
            {**LINE, "crs": {"type": "link", "properties": {"href": "http://x.org"}}},
            "unknown-stated-crs",
        ),
        ({**LINE, "crs": {"properties": {"name": "+proj=x +nadgrids=/a"}}}, "unknown-stated-crs"),
        ({**LINE, "crs": "EPSG:4326"}, "unknown-stated-crs"),
        ({"type": "LineString", "coordinates": [[1e6, 2e6], [3e6, 4e6]]}, "not-degrees"),
        ({"type": "LineString", "coordinates": [[35.5, 139.5], [36, 140]]}, "coordinates-swapped"),
        (
            {
                "type": "LineString",
                "coordinates": [[1e9, 2e9], [3e9, 4e9]],
                "crs": {"properties": {"name": "EPSG:6677"}},
            },
            "places-outside-crs",
        ),
    ],
)
def test_a_wrong_system_is_one_sentence(document: Any, code: str) -> None:
    assert refusal(json.dumps(document).encode()).code == code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (b"{", "malformed-json"),
        (b"[1, 2]", "not-geojson"),
        (b'{"type": "Topology"}', "not-geojson"),
        (b'{"type": ["Polygon"]}', "not-geojson"),
        (b'{"type": "FeatureCollection"}', "not-geojson"),
        (b'{"type": "FeatureCollection", "features": []}', "no-features"),
        (b"\xff\xfe{\x00}\x00", "not-geojson"),
        (b'{"type": "\xff"}', "malformed-json"),
        (b"[" * 100_000, "malformed-json"),
        (b'{"a":' * 100_000, "malformed-json"),
        (b"PK\x03\x04...", "damaged-archive"),
        (b"\x00\x00\x27\x0a...", "shapefile-in-parts"),
        (b"SQLite format 3\x00...", "damaged-vector-file"),
        (b"\x1f\x8b...", "packed-by-gzip"),
        (b"  <?xml version='1.0'?><kml/>", "unsupported-xml"),
        (b"PAR1...", "damaged-vector-file"),
    ],
)
def test_a_file_of_another_kind_is_one_sentence(content: bytes, code: str) -> None:
    assert refusal(content).code == code


def test_a_name_cannot_break_the_sentence() -> None:
    told = refusal(b"{", "a\nb" + "x" * 500)
    assert told.code == "malformed-json"
    assert "a?b" in str(told)


def test_collections_within_each_other_end_somewhere() -> None:
    deep: Any = LINE
    for _ in range(12):
        deep = {"type": "GeometryCollection", "geometries": [deep]}
    told = refusal(json.dumps(deep).encode())
    assert told.code == "nothing-to-draw"
    assert "1 nested too deep" in str(told)


def test_too_large_a_file_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "MOST_MEGABYTES", 0.0001)
    assert refusal(b" " * 101).code == "file-too-large"
    monkeypatch.setattr(vector, "MOST_MEGABYTES", 50)
    monkeypatch.setattr(vector, "MOST_BRACKETS", 1000)
    assert refusal(b"[" + b"[]," * 1001 + b"[]]").code == "too-many-objects"


def wavy(n: int, centre: tuple[float, float] = (139.5, 35.5), radius: float = 0.4) -> np.ndarray:
    """A coast about a centre, with bays of about 300 m."""
    rng = np.random.default_rng(1)
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    far = radius * (1 + 0.003 * rng.standard_normal(n))
    return np.column_stack([centre[0] + far * np.cos(angle), centre[1] + far * np.sin(angle)])


def test_a_large_outline_is_thinned_and_tells_how_far_lines_moved() -> None:
    coast = wavy(12_000)
    found = read({"type": "Polygon", "coordinates": [ring(coast)]})
    assert len(json.dumps(found.features, separators=(",", ":"))) < 155_000
    assert found.n_points_read == 12_001
    assert found.n_points_kept < 8_000
    drawn = np.array(shapes(found)[0]["coordinates"][0])
    # Brute force: the farthest point of the file from the drawn ring, in metres about 35.5 N.
    scale = 111_320 * np.array([np.cos(np.radians(coast[:, 1].min())), 1.0])
    line = shapely.LineString(drawn * scale)
    farthest = shapely.distance(shapely.points(coast * scale), line).max()
    assert found.tolerance_m == pytest.approx(farthest, abs=1e-6)
    assert 0 < found.tolerance_m < 1500


def test_neighbours_still_share_their_border_when_thinned() -> None:
    rng = np.random.default_rng(2)
    y = np.linspace(35.0, 36.0, 12_000)
    border = np.column_stack([139.5 + 0.002 * rng.standard_normal(len(y)), y])
    left = np.vstack([border, [[139.0, 36.0], [139.0, 35.0]]])
    right = np.vstack([border, [[140.0, 36.0], [140.0, 35.0]]])
    found = read(features(*({"type": "Polygon", "coordinates": [ring(s)]} for s in (left, right))))
    a, b = (shape(geometry) for geometry in shapes(found))
    assert found.n_points_kept < found.n_points_read / 2
    assert a.intersection(b).area == pytest.approx(0, abs=1e-9)
    assert a.union(b).area == pytest.approx(1.0, abs=1e-6)


def test_of_very_many_islands_the_largest_stay_and_the_rest_is_counted() -> None:
    rng = np.random.default_rng(3)
    corners = rng.uniform([139, 35], [140, 36], (6_000, 2))
    sides = np.full(len(corners), 0.001)
    sides[:50] = 0.01
    unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    islands = [[ring(c + s * unit)] for c, s in zip(corners, sides, strict=True)]
    found = read({"type": "MultiPolygon", "coordinates": islands})
    kept = shapes(found)[0]["coordinates"]
    assert len(kept) == 50
    assert found.n_left_out == {"parts too small to see": 5_950}


def test_a_tangle_is_left_out_in_little_time() -> None:
    places = np.random.default_rng(4).random((1500, 2)).round(3)
    tangle = {"type": "Polygon", "coordinates": [ring(places)]}
    found = read(features(LINE, tangle))
    assert shapes(found) == [LINE]
    assert found.n_left_out == {"crossing themselves too often": 1}


BOUNDS = (139.0, 35.0, 140.0, 36.0)


def box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [corners]}


def test_cutting_keeps_what_is_within_and_drops_what_is_outside() -> None:
    inside, outside = box(139.2, 35.2, 139.8, 35.8), box(142, 35, 143, 36)
    found = cut_outline(features(inside, outside, None), BOUNDS, 0.1)
    assert [f["geometry"] for f in found["features"]] == [inside]
    assert found["features"][0]["properties"] == {}


def test_cutting_ends_an_area_at_the_widened_bounds() -> None:
    (found,) = cut_outline(features(box(139.5, 30, 150, 35.5)), BOUNDS, 0.1)["features"]
    area = shape(found["geometry"])
    assert area.bounds == pytest.approx((139.5, 34.9, 140.1, 35.5))
    assert area.area == pytest.approx(0.6 * 0.6)


def test_cutting_drops_a_far_island_of_a_shape_that_is_near() -> None:
    near, far = box(139.2, 35.2, 139.8, 35.8), box(139.2, 33.0, 139.3, 33.1)
    both = {"type": "MultiPolygon", "coordinates": [near["coordinates"], far["coordinates"]]}
    (found,) = cut_outline(features(both), BOUNDS, 0.35)["features"]
    assert shape(found["geometry"]).equals(shape(near))


def test_cutting_a_line_leaves_its_pieces() -> None:
    zigzag = {"type": "LineString", "coordinates": [[139.2, 34], [139.4, 38], [139.6, 34]]}
    (found,) = cut_outline(features(zigzag), BOUNDS, 0.0)["features"]
    assert found["geometry"]["type"] == "MultiLineString"
    assert found["geometry"]["coordinates"] == [
        [[139.25, 35.0], [139.3, 36.0]],
        [[139.5, 36.0], [139.55, 35.0]],
    ]


def test_what_only_touches_the_edge_goes() -> None:
    touching = box(140, 35, 141, 36)
    assert cut_outline(features(touching), BOUNDS, 0.0)["features"] == []


def test_cutting_leaves_its_input_as_it_was() -> None:
    outline = features(box(139.5, 30, 150, 35.5))
    before = json.dumps(outline)
    cut_outline(outline, BOUNDS, 0.1)
    assert json.dumps(outline) == before


@pytest.mark.parametrize(
    ("file_name", "n_shapes"),
    [
        ("N03-21_11_210101_s0010.geojson", 72),
        ("N03-21_12_210101_s0010.geojson", 60),
        ("N03-21_13_210101_s0010.geojson", 63),
        ("N03-21_14_210101_s0010.geojson", 58),
        ("derived_rail_lines_greater_tokyo.geojson", 167),
    ],
)
def test_real_files_are_read(shared_data: Path, file_name: str, n_shapes: int) -> None:
    content = (shared_data / "tokyo_polygons" / file_name).read_bytes()
    found = read_outline(content, file_name)
    assert found.n_shapes == n_shapes
    assert found.n_left_out == {}
    assert len(json.dumps(found.features, separators=(",", ":"))) < 150_000
    assert found.meets(BOUNDS)


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "parquet", "zip"])
def test_other_formats_give_the_same_outline(suffix: str, tmp_path: Path) -> None:
    wards = features(POLYGON, {"type": "Polygon", "coordinates": [HOLE]})
    frame = gpd.GeoDataFrame.from_features(wards, crs="EPSG:4326")
    path = tmp_path / f"wards.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "zip":
        frame.to_file(tmp_path / "w.shp")
        with zipfile.ZipFile(path, "w") as archive:
            for part in ("shp", "shx", "dbf", "prj"):
                archive.write(tmp_path / f"w.{part}", f"w.{part}")
    else:
        frame.to_file(path)
    found, plain = read_outline(path.read_bytes(), path.name), read(wards)
    mine, theirs = ([shape(s) for s in shapes(outline)] for outline in (found, plain))
    key = operator.attrgetter("area")  # FlatGeobuf may order features by place
    for one, other in zip(sorted(mine, key=key), sorted(theirs, key=key), strict=True):
        assert one.equals(other)
    assert found.crs == "EPSG:4326"


def test_the_system_of_an_outline_can_be_stated() -> None:
    line = {"type": "LineString", "coordinates": [[0, 0], [0, 1000]]}
    found = read_outline(json.dumps(line).encode(), "road.geojson", "EPSG:6677")
    (west, south), _ = shapes(found)[0]["coordinates"]
    assert (west, south) == pytest.approx((139 + 50 / 60, 36.0), abs=1e-5)
    assert found.crs == "EPSG:6677"


def test_municipalities_in_the_old_datum_lie_over_those_of_today(shared_data: Path) -> None:
    """libpysal's Tokyo (EPSG:30166) beside N03: the palace is in Chiyoda in both."""
    stem = Path(get_path("tokyomet262.shp")).with_suffix("")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for part in ("shp", "shx", "dbf", "prj"):
            archive.write(stem.with_suffix(f".{part}"), f"t.{part}")
    old = read_outline(packed.getvalue(), "t.zip")
    assert old.crs == "EPSG:30166"
    path = shared_data / "tokyo_polygons" / "N03-21_13_210101_s0010.geojson"
    today = read_outline(path.read_bytes(), path.name)
    palace = shapely.Point(139.7528, 35.6852)
    (one,), (other,) = (
        [s for s in map(shape, shapes(outline)) if s.covers(palace)] for outline in (old, today)
    )
    # Both are thinned out; without the shift of the datum they would be 450 m apart.
    assert one.centroid.distance(other.centroid) * 100_000 < 150


def test_real_districts_hold_known_places(shared_data: Path) -> None:
    path = shared_data / "tokyo_polygons" / "N03-21_13_210101_s0010.geojson"
    found = read_outline(path.read_bytes(), path.name)
    names = [f["properties"]["N03_004"] for f in json.loads(path.read_text())["features"]]
    imperial_palace = shapely.Point(139.7528, 35.6852)
    holders = [
        name
        for name, geometry in zip(names, shapes(found), strict=True)
        if shape(geometry).covers(imperial_palace)
    ]
    assert holders == ["千代田区"]
    mainland = cut_outline(found.features, (139.28, 35.36, 140.24, 36.06), 0.35)
    south = min(shape(f["geometry"]).bounds[1] for f in mainland["features"])
    assert south >= 35.36 - 0.35 * 0.7 - 1e-5, "the islands in the far south are gone"


def test_very_many_small_holes_do_not_cost_the_area() -> None:
    corners = np.random.default_rng(5).uniform([139.1, 35.1], [139.9, 35.9], (8_000, 2))
    holes = [ring(c + np.array([[0, 0], [0, 1e-4], [1e-4, 0]])) for c in corners]
    found = read({"type": "Polygon", "coordinates": [SQUARE, *holes]})
    assert shape(shapes(found)[0]).area == pytest.approx(1.0, abs=0.01)
    assert found.bounds == (139.0, 35.0, 140.0, 36.0)
    assert found.tolerance_m == 0


def test_an_extent_without_height_is_cut_all_the_same() -> None:
    line = {"type": "LineString", "coordinates": [[139.0, 35.0], [140.0, 36.0]]}
    outline = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": line}]}
    cut = cut_outline(outline, (139.4, 35.5, 139.6, 35.5), 1.0)
    (x, y), *_ = cut["features"][0]["geometry"]["coordinates"]
    assert (x, y) == pytest.approx((139.49, 35.49))
