"""Points of vector files: attributes beside degrees, in every format; what is no point is told."""

import io
import zipfile

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely.geometry import LineString, MultiPoint, Point, box

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories
from agg_core.io.features import is_geoparquet, open_features, recognises_features

PEOPLE = ["a", "a", "花子"]
TIMES = pd.to_datetime(["2024-02-01 09:00", "2024-02-01 09:10", "2024-02-01 09:20"], utc=True)
PLACES = [Point(139.70, 35.60), Point(139.75, 35.65), Point(139.80, 35.70)]
KINDS = ("GeoPackage", "FlatGeobuf", "GeoParquet", "zipped Shapefile")


def points(shapes=PLACES, crs="EPSG:4326", **columns):
    base = {"user_id": PEOPLE[: len(shapes)], "time": TIMES[: len(shapes)]}
    return gpd.GeoDataFrame(base | columns, geometry=list(shapes), crs=crs)


def written(frame, kind, folder):
    if kind == "GeoParquet":
        frame.to_parquet(folder / "out.parquet")
        return (folder / "out.parquet").read_bytes()
    if kind == "zipped Shapefile":
        # A shapefile has dates but no times, so the times go there as text.
        as_text = frame.assign(time=frame["time"].dt.strftime("%Y-%m-%d %H:%M:%SZ"))
        as_text.to_file(folder / "out.shp", encoding="utf-8")
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.glob("out.*")):
                archive.write(path, path.name)
        return target.getvalue()
    name, order = {
        "GeoPackage": ("out.gpkg", {}),
        "FlatGeobuf": ("out.fgb", {"SPATIAL_INDEX": "NO"}),
    }[kind]
    frame.to_file(folder / name, **order)
    return (folder / name).read_bytes()


def loaded(data, **choices):
    source = open_features(data, "x", **choices)
    rows = source.load(range(len(source.names)))
    columns = {name: rows.columns[i].to_pylist() for i, name in enumerate(source.names)}
    return source, rows, columns


@pytest.mark.parametrize("kind", KINDS)
def test_points_in_every_format_become_the_same_fixes(kind, tmp_path):
    data = written(points(), kind, tmp_path)
    assert recognises_features(data[:4096]) == (kind != "GeoParquet")
    source, rows, columns = loaded(data)
    assert source.names[:2] == ("lon", "lat")
    assert columns["lon"] == pytest.approx([139.70, 139.75, 139.80])
    assert columns["lat"] == pytest.approx([35.60, 35.65, 35.70])
    assert columns["user_id"] == PEOPLE
    assert rows.line_numbers(np.arange(3)).tolist() == [1, 2, 3]
    trajectories = read_trajectories(data)
    assert trajectories.table["time"].tolist() == list(TIMES)
    assert trajectories.table["user_id"].tolist() == PEOPLE


def test_the_sample_is_text(tmp_path):
    frame = points(speed=[1.5, None, 2.0])
    source = open_features(written(frame, "GeoPackage", tmp_path), "x")
    at = source.names.index("speed")
    assert [row[at] for row in source.sample] == ["1.5", "", "2.0"]
    assert all(isinstance(cell, str) for row in source.sample for cell in row)


def test_map_metres_become_degrees(tmp_path):
    # Zone IX of Japan's plane rectangular system begins at 139 deg 50 min E, 36 deg N.
    frame = points([Point(0, 0)], crs="EPSG:6677")
    _, _, columns = loaded(written(frame, "GeoPackage", tmp_path))
    assert columns["lon"] == pytest.approx([139 + 50 / 60], abs=1e-7)
    assert columns["lat"] == pytest.approx([36.0], abs=1e-7)
    unsaid = written(frame.set_crs(None, allow_override=True), "GeoParquet", tmp_path)
    assert loaded(unsaid, crs="EPSG:6677")[2]["lat"] == pytest.approx([36.0], abs=1e-7)


def test_features_without_geometry_have_no_place(tmp_path):
    shapes = [PLACES[0], None, MultiPoint([PLACES[2]])]
    data = written(points(shapes), "GeoPackage", tmp_path)
    _, rows, columns = loaded(data)
    assert columns["lon"] == [139.70, None, 139.80]
    assert (rows.n_rows, rows.set_aside) == (3, {})
    report = read_trajectories(data).report
    assert report.set_aside["missing position"].lines == (2,)


def test_what_is_no_single_point_is_set_aside_and_numbered(tmp_path):
    shapes = [MultiPoint(PLACES[:2]), LineString(PLACES), PLACES[2]]
    _, rows, columns = loaded(written(points(shapes), "GeoParquet", tmp_path))
    assert columns["user_id"] == ["花子"]
    assert rows.line_numbers(np.arange(1)).tolist() == [3]
    assert {cause: (out.count, out.lines) for cause, out in rows.set_aside.items()} == {
        "several points in one feature": (1, (1,)),
        "a line in place of a point": (1, (2,)),
    }


@pytest.mark.parametrize(
    ("shapes", "code"),
    [
        ([box(0, 0, 1, 1)], "areas-not-trajectories"),
        ([LineString([(0, 0), (1, 1)])], "lines-without-times"),
        ([MultiPoint(PLACES)], "no-points"),
        ([None, None], "no-geometry"),
    ],
)  # fmt: skip
def test_files_without_points_are_refused(shapes, code, tmp_path):
    with pytest.raises(InputError) as told:
        open_features(written(points(shapes), "GeoParquet", tmp_path), "x")
    assert told.value.code == code


def test_attributes_of_mixed_and_odd_kinds(tmp_path):
    frame = points(
        moving=[True, False, True],
        kind=pd.Categorical(["bus", "bus", "tram"]),
        lon=[1.0, 2.0, 3.0],
        nothing=[None, None, None],
    )
    source, rows, columns = loaded(written(frame, "GeoParquet", tmp_path))
    assert columns["moving"] == [True, False, True]
    assert columns["kind"] == ["bus", "bus", "tram"]
    assert columns["nothing"] == [None] * 3
    # The geometry says where, whatever an attribute of the same name says.
    assert rows.columns[0].to_pylist() == [139.70, 139.75, 139.80]
    assert [name for name in source.names if name == "lon"] == ["lon", "lon"]
    assert rows.columns[source.names.index("time")].type.tz is not None


def test_times_beyond_what_python_can_write_are_shown_as_such(tmp_path):
    far = np.array([2**62, 0], dtype="datetime64[us]")
    data = written(points(PLACES[:2], time=far), "GeoParquet", tmp_path)
    source = open_features(data, "x")
    at = source.names.index("time")
    assert [row[at] for row in source.sample] == ["out of range", "1970-01-01 00:00:00"]


def test_parquet_is_told_apart_by_its_end(tmp_path):
    assert is_geoparquet(written(points(), "GeoParquet", tmp_path))
    plain = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), plain)
    assert not is_geoparquet(plain.getvalue().to_pybytes())
    assert not is_geoparquet(b"PAR1 and no more")
    assert not recognises_features(b"id,time\n")
    assert not recognises_features(b"PK\x03\x04" + bytes(26))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    places=st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=1, max_size=20),
    kind=st.sampled_from(KINDS[:3]),
)
def test_points_come_back(places, kind, tmp_path):
    frame = gpd.GeoDataFrame(
        {"time": [TIMES[0]] * len(places)}, geometry=[Point(p) for p in places], crs="EPSG:4326"
    )
    for old in tmp_path.iterdir():
        old.unlink()
    _, _, columns = loaded(written(frame, kind, tmp_path))
    assert list(zip(columns["lon"], columns["lat"], strict=True)) == places


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_only_ever_an_input_error(kind, tmp_path):
    original = written(points(), kind, tmp_path)
    rng = np.random.default_rng(len(kind))
    outcomes = {"read": 0, "refused": 0}
    for _ in range(75):
        data = bytearray(original)
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] ^= 1 << int(rng.integers(8))
        choice = rng.random()
        if choice < 0.2:
            del data[int(rng.integers(len(data))) :]
        elif choice < 0.3:
            at = int(rng.integers(len(data)))
            data[at:at] = data[at : at + 40]
        try:
            loaded(bytes(data))
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 10
