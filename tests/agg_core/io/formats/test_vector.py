"""Vector files: every format alike, coordinate systems by hand values, what is hostile."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from libpysal.examples import get_path
from shapely.geometry import MultiPolygon, Point, box

from agg_core.base.errors import InputError
from agg_core.io.formats import vector
from agg_core.io.formats.vector import VectorFile, read_vector

HOLED = box(0, 0, 4, 4).difference(box(1, 1, 2, 2))
WARDS = gpd.GeoDataFrame(
    {"name": ["千代田区", "港区", "Ōta"], "code": [13101, 13103, 13111]},
    geometry=[HOLED, MultiPolygon([box(5, 0, 6, 1), box(7, 0, 8, 1)]), box(9, 9, 10, 10)],
    crs="EPSG:4326",
)
FORMATS = ("GeoJSON", "GeoPackage", "FlatGeobuf", "GeoParquet", "zipped Shapefile")


def written(frame: gpd.GeoDataFrame, kind: str, folder: Path, **choices: Any) -> bytes:
    if kind == "zipped Shapefile":
        return zipped_shapefile(frame, folder, **choices)
    suffix = {"GeoJSON": "geojson", "GeoPackage": "gpkg", "FlatGeobuf": "fgb"}.get(kind, "parquet")
    path = folder / f"out.{suffix}"
    if kind == "GeoParquet":
        frame.to_parquet(path)
    else:
        order = {"SPATIAL_INDEX": "NO"} if kind == "FlatGeobuf" else {}
        frame.to_file(path, **order)
    return path.read_bytes()


def zipped_shapefile(
    frame: gpd.GeoDataFrame,
    folder: Path,
    parts: tuple[str, ...] = ("shp", "shx", "dbf", "prj", "cpg"),
    within: str = "folder/",
    encoding: str = "utf-8",
) -> bytes:
    frame.to_file(folder / "out.shp", encoding=encoding)
    return zipped(
        {
            f"{within}out.{part}": (folder / f"out.{part}").read_bytes()
            for part in parts
            if (folder / f"out.{part}").exists()
        }
    )


def zipped(entries: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return packed.getvalue()


def geojson(*geometries: Any, **members: Any) -> bytes:
    found = [{"type": "Feature", "properties": {}, "geometry": g} for g in geometries]
    return json.dumps({"type": "FeatureCollection", "features": found, **members}).encode()


def refusal(content: bytes, **choices: Any) -> InputError:
    """The error that a file is refused by, looked at for being one sentence."""
    with pytest.raises(InputError) as fault:
        read_vector(content, "mine", **choices)
    told = str(fault.value)
    assert told.endswith(".")
    assert "\n" not in told
    return fault.value


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_areas(kind: str, tmp_path: Path) -> None:
    found = read_vector(written(WARDS, kind, tmp_path), "wards.any")
    assert found.format == kind
    assert found.crs == "EPSG:4326"
    assert found.frame.crs == "EPSG:4326"
    assert found.frame["name"].tolist() == ["千代田区", "港区", "Ōta"]
    assert found.frame["code"].astype(int).tolist() == [13101, 13103, 13111]
    assert found.frame.geometry.normalize().geom_equals(WARDS.geometry.normalize()).all()
    assert found.frame.index.tolist() == [0, 1, 2]
    assert found.without_shape == {}
    assert found.guesses == {}
    assert found.name == "wards.any"


@pytest.mark.parametrize("kind", FORMATS)
def test_the_system_of_the_file_is_heeded(kind: str, tmp_path: Path) -> None:
    """Zone IX: 0, 0 is at 36 N, 139 E 50' by definition (Japan's notice No. 9 of 2002)."""
    there = gpd.GeoDataFrame({"a": [1]}, geometry=[Point(0, 0)], crs="EPSG:6677")
    if kind == "GeoJSON":
        crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::6677"}}
        content = geojson({"type": "Point", "coordinates": [0, 0]}, crs=crs)
    else:
        content = written(there, kind, tmp_path)
    found = read_vector(content, "origin")
    assert found.crs == "EPSG:6677"
    (place,) = shapely.get_coordinates(found.frame.geometry)
    np.testing.assert_allclose(place, [139 + 50 / 60, 36.0], atol=1e-8)


def transverse_mercator_6677(lon: float, lat: float) -> tuple[float, float]:
    """Easting and northing of zone IX by Krueger's series to the third power of n (GRS80)."""
    a, f, m0 = 6378137.0, 1 / 298.257222101, 0.9999
    n = f / (2 - f)
    alpha = [
        n / 2 - 2 / 3 * n**2 + 5 / 16 * n**3,
        13 / 48 * n**2 - 3 / 5 * n**3,
        61 / 240 * n**3,
    ]
    radius = a / (1 + n) * (1 + n**2 / 4 + n**4 / 64)

    def conformal(phi: float) -> float:
        e = 2 * np.sqrt(n) / (1 + n)
        return float(np.sinh(np.arctanh(np.sin(phi)) - e * np.arctanh(e * np.sin(phi))))

    def meridian(phi: float) -> float:
        chi = np.arctan(conformal(phi))
        return chi + sum(c * np.sin(2 * (j + 1) * chi) for j, c in enumerate(alpha))

    phi, away = np.radians(lat), np.radians(lon - (139 + 50 / 60))
    t = conformal(phi)
    xi, eta = np.arctan2(t, np.cos(away)), np.arctanh(np.sin(away) / np.hypot(1, t))
    north = xi + sum(
        c * np.sin(2 * (j + 1) * xi) * np.cosh(2 * (j + 1) * eta) for j, c in enumerate(alpha)
    )
    east = eta + sum(
        c * np.cos(2 * (j + 1) * xi) * np.sinh(2 * (j + 1) * eta) for j, c in enumerate(alpha)
    )
    return radius * m0 * east, radius * m0 * (north - meridian(np.radians(36.0)))


@pytest.mark.parametrize(("lon", "lat"), [(139.767, 35.681), (139.3, 35.3), (140.4, 36.5)])
def test_zone_ix_by_the_formulas(lon: float, lat: float) -> None:
    east, north = transverse_mercator_6677(lon, lat)
    content = geojson({"type": "Point", "coordinates": [east, north]})
    found = read_vector(content, "place", crs="EPSG:6677")
    (place,) = shapely.get_coordinates(found.frame.geometry)
    np.testing.assert_allclose(place, [lon, lat], atol=1e-8)


def tokyo_to_wgs84(lon: float, lat: float) -> tuple[float, float]:
    """The shift of EPSG:15484 by hand: geocentric on Bessel 1841, plus three metres, on WGS84."""
    a, f = 6377397.155, 1 / 299.1528128
    e2, phi, lam = f * (2 - f), np.radians(lat), np.radians(lon)
    radius = a / np.sqrt(1 - e2 * np.sin(phi) ** 2)
    x = radius * np.cos(phi) * np.cos(lam) - 146.414
    y = radius * np.cos(phi) * np.sin(lam) + 507.337
    z = radius * (1 - e2) * np.sin(phi) + 680.507
    a, f = 6378137.0, 1 / 298.257223563
    e2 = f * (2 - f)
    for _ in range(10):
        radius = a / np.sqrt(1 - e2 * np.sin(phi) ** 2)
        phi = np.arctan2(z + e2 * radius * np.sin(phi), np.hypot(x, y))
    return float(np.degrees(np.arctan2(y, x))), float(np.degrees(phi))


def test_the_old_datum_by_the_formulas() -> None:
    """Zone VI of the Tokyo datum: 0, 0 is at 36 N, 136 E of that datum."""
    content = geojson({"type": "Point", "coordinates": [0, 0]})
    found = read_vector(content, "place", crs="EPSG:30166")
    (place,) = shapely.get_coordinates(found.frame.geometry)
    # Other published shifts of this datum differ by some metres: 1e-4 degrees are about ten.
    np.testing.assert_allclose(place, tokyo_to_wgs84(136.0, 36.0), atol=1e-4)


@pytest.mark.parametrize("stated", [None, "EPSG:30166", "30166"])
def test_municipalities_in_the_old_datum_lie_where_they_are(stated: str | None) -> None:
    stem = Path(get_path("tokyomet262.shp")).with_suffix("")
    parts = ("shp", "shx", "dbf", "prj") if stated is None else ("shp", "shx", "dbf")
    content = zipped({f"t.{p}": stem.with_suffix(f".{p}").read_bytes() for p in parts})
    found = read_vector(content, "tokyomet262.zip", crs=stated)
    assert found.crs == "EPSG:30166"
    frame = found.frame.set_index("GEOCODE")
    middle = frame.geometry["13101"].centroid
    assert (middle.x, middle.y) == pytest.approx((139.754, 35.687), abs=0.002)
    assert len(frame) == 262


def test_what_is_stated_goes_before_what_the_file_says(tmp_path: Path) -> None:
    wrong = gpd.GeoDataFrame({"a": [1]}, geometry=[Point(0, 0)], crs="EPSG:6676")
    found = read_vector(written(wrong, "GeoPackage", tmp_path), "x", crs="epsg:6677")
    assert found.frame.geometry[0].x == pytest.approx(139 + 50 / 60)
    assert found.guesses["crs"].alternatives == ("EPSG:6676",)


def test_a_file_that_says_nothing_is_in_degrees_or_asks(tmp_path: Path) -> None:
    plain = zipped_shapefile(WARDS, tmp_path, parts=("shp", "shx", "dbf", "cpg"))
    assert read_vector(plain, "x").guesses["crs"].value == "EPSG:4326"
    metres = WARDS.set_geometry(WARDS.geometry.scale(1e5, 1e5, origin=(0, 0)))
    bare = zipped_shapefile(metres, tmp_path, parts=("shp", "shx", "dbf", "cpg"))
    assert refusal(bare).code == "not-degrees"


@pytest.mark.parametrize(
    ("crs", "code"),
    [
        ("+proj=x +nadgrids=/a", "unknown-crs"),
        ("EPSG:99999", "crs-not-convertible"),
        ("EPSG:4978", "crs-not-convertible"),
        ("EPSG:6677", "places-outside-crs"),
    ],
)
def test_a_wrong_system_is_one_sentence(crs: str, code: str) -> None:
    assert refusal(geojson({"type": "Point", "coordinates": [1e9, 2e9]}), crs=crs).code == code


def test_swapped_axes_are_told() -> None:
    assert (
        refusal(geojson({"type": "Point", "coordinates": [35.5, 139.5]})).code
        == "coordinates-swapped"
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_features_without_geometry_stay_as_rows_and_are_counted(kind: str, tmp_path: Path) -> None:
    shapes = [HOLED, None, shapely.Polygon()]
    frame = gpd.GeoDataFrame({"a": [1, 2, 3]}, geometry=shapes, crs="EPSG:4326")
    found = read_vector(written(frame, kind, tmp_path), "x")
    assert found.frame["a"].astype(int).tolist() == [1, 2, 3]
    assert found.frame.geometry.isna().tolist() == [False, True, True]
    assert found.without_shape == {"without geometry": 2}


def test_broken_geojson_geometries_are_counted() -> None:
    deep: dict[str, Any] = {"type": "Point", "coordinates": [1, 2]}
    for _ in range(12):
        deep = {"type": "GeometryCollection", "geometries": [deep]}
    found = read_vector(
        geojson(
            {"type": "Point", "coordinates": [1, 2, 300]},
            {"type": "Point", "coordinates": ["1", 2]},
            {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]},
            {"type": "Circle", "coordinates": [0, 0]},
            {"type": "LineString", "coordinates": [[1, 2], [float("nan"), 4]]},
            deep,
            None,
            {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]},
            {
                "type": "GeometryCollection",
                "geometries": [{"type": "Point", "coordinates": [5, 6]}],
            },
        ),
        "x",
    )
    assert found.without_shape == {
        "without geometry": 1,
        "with broken coordinates": 3,
        "of an unknown type": 1,
        "nested too deep": 1,
    }
    kinds = [None if g is None else g.geom_type for g in found.frame.geometry]
    assert kinds == ["Point", *[None] * 6, "MultiPoint", "GeometryCollection"]


def test_heights_and_measures_are_left_behind(tmp_path: Path) -> None:
    frame = gpd.GeoDataFrame({"a": [1]}, geometry=[Point(1, 2, 3)], crs="EPSG:4326")
    for kind in FORMATS:
        found = read_vector(written(frame, kind, tmp_path), "x")
        assert not found.frame.geometry.has_z.any()
        assert shapely.get_coordinates(found.frame.geometry).tolist() == [[1, 2]]


def test_attributes_of_geojson_keep_their_kind() -> None:
    document = {
        "type": "Feature",
        "properties": {"n": 12, "huge": 10**30, "list": [1, "ö"], "none": None, "geometry": "x"},
        "geometry": {"type": "Point", "coordinates": [1, 2]},
    }
    row = read_vector(json.dumps(document).encode(), "x").frame.iloc[0]
    assert row["n"] == 12
    assert row["huge"] == 1e30
    assert row["list"] == '[1, "ö"]'
    assert pd.isna(row["none"])
    assert row["geometry"] == Point(1, 2)


def test_japanese_text_without_its_encoding_is_guessed(tmp_path: Path) -> None:
    content = zipped_shapefile(
        WARDS.iloc[:2], tmp_path, parts=("shp", "shx", "dbf", "prj"), encoding="cp932"
    )
    found = read_vector(content, "n03.zip")
    assert found.frame["name"].tolist() == ["千代田区", "港区"]
    assert found.guesses["encoding"].value == "cp932"


def test_one_of_several_layers(tmp_path: Path) -> None:
    path = tmp_path / "two.gpkg"
    WARDS.to_file(path, layer="wards")
    WARDS.iloc[:1].to_file(path, layer="one")
    content = path.read_bytes()
    assert len(read_vector(content, "x").frame) == 3
    assert read_vector(content, "x").guesses["layer"].alternatives == ("one",)
    assert len(read_vector(content, "x", layer="one").frame) == 1
    told = refusal(content, layer="two")
    assert told.code == "unknown-layer"
    assert "it has wards, one" in str(told)


def test_a_view_is_not_computed(tmp_path: Path) -> None:
    path = tmp_path / "view.gpkg"
    WARDS.to_file(path, layer="wards")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    with sqlite3.connect(path) as database:
        database.execute("UPDATE gpkg_contents SET table_name = 'v'")
        database.execute("UPDATE gpkg_geometry_columns SET table_name = 'v'")
        database.execute(f"CREATE VIEW v AS SELECT i AS fid, NULL AS geom FROM ({endless})")
    database.close()
    assert refusal(path.read_bytes()).code == "no-geometry-table"


def test_names_in_an_archive_are_no_paths(tmp_path: Path) -> None:
    content = zipped_shapefile(WARDS, tmp_path, within="../../../../evil/")
    assert len(read_vector(content, "x").frame) == 3
    absolute = zipped_shapefile(WARDS, tmp_path, within="/etc/")
    assert len(read_vector(absolute, "x").frame) == 3


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    wards = written(WARDS, "GeoJSON", tmp_path)
    assert len(read_vector(zipped({"a/wards.geojson": wards, "readme.txt": b""}), "x").frame) == 3
    assert (
        len(read_vector(zipped({"wards.geojson": wards, "__MACOSX/b.shp": b"x"}), "x").frame) == 3
    )
    within = zipped({"inner.zip": zipped({"wards.geojson": wards})})
    assert refusal(within).code == "no-shapefile-in-zip"
    disguised = zipped({"wards.geojson": zipped({"wards.geojson": wards})})
    assert refusal(disguised).code == "archive-in-archive"
    lacking = zipped_shapefile(WARDS, tmp_path, parts=("shp", "prj"))
    told = refusal(lacking)
    assert told.code == "shapefile-parts-missing"
    assert "lacks the .shx and .dbf" in str(told)


def test_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wards = written(WARDS, "GeoJSON", tmp_path)
    parquet = written(WARDS, "GeoParquet", tmp_path)
    many = zipped({f"{i}.txt": b"" for i in range(vector.MOST_ENTRIES + 1)})
    told = refusal(many)
    assert told.code == "too-many-files"
    assert "more than 2,000 files" in str(told)
    monkeypatch.setattr(vector, "MOST_UNPACKED_MEGABYTES", 0.001)
    assert refusal(zipped({"a.geojson": b" " * 1001})).code == "unpacks-too-large"
    monkeypatch.setattr(vector, "MOST_UNPACKED_MEGABYTES", 0.0001)
    assert refusal(parquet).code == "unpacks-too-large"
    monkeypatch.setattr(vector, "MOST_UNPACKED_MEGABYTES", 500)
    monkeypatch.setattr(vector, "MOST_FEATURES", 2)
    for kind in FORMATS:
        told = refusal(written(WARDS, kind, tmp_path))
        assert told.code == "too-many-features"
        assert "3 features and at most 2" in str(told)
    monkeypatch.setattr(vector, "MOST_FEATURES", 10)
    monkeypatch.setattr(vector, "MOST_COLUMNS", 1)
    told = refusal(wards)
    assert told.code == "too-many-columns"
    assert "2 columns and at most 1" in str(told)
    monkeypatch.setattr(vector, "MOST_BRACKETS", 10)
    assert refusal(wards).code == "too-many-objects"
    monkeypatch.setattr(vector, "MOST_MEGABYTES", 0.0001)
    assert refusal(wards).code == "file-too-large"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (b"{", "malformed-json"),
        (b"[" * 100_000, "malformed-json"),
        (b'{"type": "Topology"}', "not-geojson"),
        (b'{"type": "FeatureCollection", "features": []}', "no-features"),
        (b"\xff\xfe{\x00}\x00", "not-geojson"),
        (b"<kml/>", "unsupported-xml"),
        (b"\x1f\x8b...", "packed-by-gzip"),
        (b"\x00\x00\x27\x0a...", "shapefile-in-parts"),
        (b"PK\x03\x04...", "damaged-archive"),
        (b"SQLite format 3\x00...", "damaged-vector-file"),
        (b"fgb\x03...", "damaged-vector-file"),
        (b"PAR1...", "damaged-vector-file"),
    ],
)
def test_a_file_of_another_kind_is_one_sentence(content: bytes, code: str) -> None:
    assert refusal(content).code == code


def test_a_table_without_geometry_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    assert refusal(path.read_bytes()).code == "no-geometry"
    with sqlite3.connect(tmp_path / "plain.db") as database:
        database.execute("CREATE TABLE t (a)")
    database.close()
    assert refusal((tmp_path / "plain.db").read_bytes()).code == "no-geometry-table"


@pytest.mark.parametrize("kind", FORMATS)
def test_altered_files_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    content = written(WARDS, kind, tmp_path)
    rng = np.random.default_rng(0)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(60):
        altered = bytearray(content)
        for at in rng.integers(0, len(altered), rng.integers(1, 9)):
            altered[at] = rng.integers(0, 256)
        if rng.random() < 0.3:
            del altered[rng.integers(1, len(altered)) :]
        try:
            found = read_vector(bytes(altered), "altered")
        except InputError:
            outcomes["refused"] += 1
        else:
            assert isinstance(found, VectorFile)
            outcomes["read"] += 1
    assert outcomes["refused"] > 0


def test_real_wards_and_rail_lines(shared_data: Path) -> None:
    folder = shared_data / "tokyo_polygons"
    wards = read_vector((folder / "N03-21_13_210101_s0010.geojson").read_bytes(), "wards")
    assert len(wards.frame) == 63
    station = Point(139.7671, 35.6812)  # Tokyo station, in Chiyoda
    assert wards.frame.loc[wards.frame.contains(station), "N03_007"].tolist() == ["13101"]
    name = "derived_rail_lines_greater_tokyo.geojson"
    rails = read_vector((folder / name).read_bytes(), name)
    assert set(rails.frame.geom_type) <= {"LineString", "MultiLineString"}
    assert len(rails.frame) == 167
