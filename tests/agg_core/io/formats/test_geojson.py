import json

import numpy as np
import pytest
from hypothesis import given, settings

from agg_core.base.errors import InputError
from agg_core.io.formats.geojson import open_geojson, recognises_geojson
from tests.agg_core.io.documents import JOURNEYS, as_rows, columns, left_out, outcomes

A, B = [139.5, 35.5], [139.75, 35.25]
T0, T1 = "2024-05-01T08:00:00Z", "2024-05-01T08:10:00Z"


def feature(kind, coordinates, **properties):
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features, **members):
    return {"type": "FeatureCollection", "features": list(features), **members}


def opened(document):
    text = document if isinstance(document, str) else json.dumps(document)
    assert recognises_geojson(text.encode()[:4096])
    return open_geojson(text.encode(), "day.geojson")


def test_points_keep_their_properties_as_columns():
    source = opened(
        collection(
            feature("Point", [*A, 12], uid=731904466120957813, ts=1714550400, tags=["x"], ok=True),
            feature("Point", B, uid="b", ts=1714551000.5, extra={"a": 1}),
            {"type": "Feature", "properties": {"uid": "c", "ts": 1}, "geometry": None},
            {"type": "Feature", "properties": None, "geometry": {"type": "Point"}},
        )
    )
    assert source.names == ("lon", "lat", "uid", "ts", "ok")
    assert source.has_header
    assert columns(source) == [
        (139.5, 35.5, "731904466120957813", "1714550400", "true"),
        (139.75, 35.25, "b", "1714551000.5", None),
        (None, None, "c", "1", None),
        (None, None, None, None, None),
    ]
    assert source.sample[1] == ["139.75", "35.25", "b", "1714551000.5", ""]
    assert source.load([0]).line_numbers(np.array([0, 3])).tolist() == [1, 4]


@pytest.mark.parametrize(
    "properties",
    [
        {"coordTimes": [T0, T1]},
        {"coordTimes": [[T0, T1]]},
        {"times": [T0, T1]},
        {"coordinateProperties": {"times": [T0, T1]}},
        {"datetimes": [T0, T1]},
        {"timestamp": [T0, T1]},
        {"coordTimes": [T0, T1], "time": T0},
    ],
)
def test_a_line_takes_the_list_of_times_beside_it(properties):
    source = opened(feature("LineString", [A, B], id="a", **properties))
    assert columns(source, "id", "time", "lon", "lat") == [("a", T0, *A), ("a", T1, *B)]


@pytest.mark.parametrize("unit", [1, 1000])
def test_a_fourth_coordinate_is_a_time_where_it_can_be(unit):
    line = [[*A, 0, 1650000000 * unit], [*B, 0, 1650000060.5 * unit], [*B, 0, 7], [*B, 0]]
    later = {1: "1650000060.5", 1000: "1650000060500"}[unit]
    times = [time for (time,) in columns(opened(feature("LineString", line, id=1)), "time")]
    assert times == [str(1650000000 * unit), later, None, None]


def test_nested_times_of_several_lines_are_paired_line_by_line(shared_data):
    path = shared_data / "messy" / "29_coordtimes.geojson"
    source = open_geojson(path.read_bytes(), path.name)
    assert columns(source, "name", "time", "lon", "lat") == [
        ("a", "2019-10-05T01:29:08Z", 139.7671, 35.6812),
        ("a", "2019-10-05T01:29:11Z", 139.7675, 35.6815),
        ("a", "2019-10-05T01:29:17Z", 139.769, 35.6822),
        ("b", "2019-10-05T02:00:00Z", 139.7, 35.69),
        ("b", "2019-10-05T02:01:00Z", 139.71, 35.69),
    ]
    assert left_out(source) == {"fewer times than points": (2, (6, 7))}


def test_a_feature_without_times_does_not_keep_the_others_out(shared_data):
    path = shared_data / "messy" / "30_trip_linestring_4d.geojson"
    source = open_geojson(path.read_bytes(), path.name)
    assert columns(source, "user_id", "time", "lon", "lat") == [
        ("A", "1650000000", 139.7671, 35.6812),
        ("A", "1650000060", 139.77, 35.6845),
        ("A", "1650000120", 139.773, 35.685),
        ("B", None, 139.7, 35.69),
        ("B", None, 139.71, 35.69),
    ]
    assert source.guesses["people"].note == "called by its vendor"


@pytest.mark.parametrize(
    ("kind", "coordinates", "times", "cause", "count"),
    [
        ("LineString", [A, B], [T0], "fewer times than points", 2),
        ("LineString", [A, B], [], "fewer times than points", 2),
        ("LineString", [A], [T0, T1], "more times than points", 1),
        ("LineString", [A, B], [[T0], [T1]], None, 0),
        ("MultiLineString", [[A, B], [A]], [T0, T1, T0], None, 0),
        ("MultiLineString", [[A, B], [A]], [T0, T1], "fewer times than points", 3),
        ("MultiLineString", [[A, B], [A]], [T0] * 4, "more times than points", 3),
        ("MultiLineString", [[A, B], [A]], [[T0, T1]], "fewer times than points", 1),
        ("MultiLineString", [[A], [A]], [[T0], [T1], [T1]], "more times than points", 2),
        ("MultiPoint", [A, B], [T0, T1], None, 0),
        ("MultiPoint", [A, B], [T0], "fewer times than points", 2),
    ],
)
def test_points_and_times_that_do_not_match_are_left_out(kind, coordinates, times, cause, count):
    whole = feature("LineString", [A], id="z", times=[T0])
    source = opened(collection(feature(kind, coordinates, id="a", times=times), whole))
    assert {c: n for c, (n, _) in left_out(source).items()} == ({cause: count} if cause else {})
    assert columns(source, "id", "time")[-1] == ("z", T0)


def test_points_and_lines_may_stand_together():
    members = {
        "type": "GeometryCollection",
        "geometries": [
            {"type": "LineString", "coordinates": [A, B]},
            {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": A}]},
        ],
    }
    many = {"type": "Feature", "geometry": members, "properties": {"uid": "m", "times": [T0, T1]}}
    source = opened(
        collection(
            feature("Point", A, uid="p", time=T1),
            many,
            feature("MultiPoint", [A, B], uid="q", time=T0),
            feature("LineString", [A, B], uid="l", time=T0),
            feature("Polygon", [[A, B, A]], uid="area"),
            "no feature",
            {"type": "Feature", "geometry": {"type": "Circle"}},
        )
    )
    assert source.names == ("time", "lon", "lat", "uid", "time (property)")
    assert columns(source, "uid", "time", "lon", "lat") == [
        ("p", T1, *A),
        ("m", T0, *A),
        ("m", T1, *B),
        ("m", None, *A),
        ("q", T0, *A),
        ("q", T0, *B),
    ]
    assert {cause: count for cause, (count, _) in left_out(source).items()} == {
        "one time for a whole line": 2,
        "areas": 1,
        "not a feature": 1,
        "broken or unknown geometry": 1,
    }


def test_times_of_a_geometry_collection_belong_to_its_members():
    lines = [{"type": "LineString", "coordinates": line} for line in ([A, B], [B])]
    members = {"type": "GeometryCollection", "geometries": lines}
    document = {
        "type": "Feature", "geometry": members,
        "properties": {"uid": 1, "coordTimes": [[T0, T1], [T1]]},
    }  # fmt: skip
    assert columns(opened(document), "time", "lon") == [(T0, A[0]), (T1, B[0]), (T1, B[0])]


def test_moving_features_are_read():
    moving = {
        "type": "Feature", "id": "ship", "properties": {"speed": 3},
        "crs": {"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
        "temporalGeometry": {
            "type": "MovingPoint", "datetimes": [T0, 1714551000000], "coordinates": [A, B],
        },
    }  # fmt: skip
    other = json.loads(json.dumps(moving))
    other["temporalGeometry"] = {
        "type": "MovingGeometryCollection",
        "prisms": [moving["temporalGeometry"], {"type": "MovingPolygon"}],
    }
    for document, causes in (
        (moving, {}),
        (collection(other), {"moving feature that is no point": (1, (3,))}),
    ):
        source = opened(document)
        assert columns(source, "user_id", "time", "lon", "lat") == [
            ("ship", T0, *A),
            ("ship", "1714551000000", *B),
        ]
        assert left_out(source) == causes


@pytest.mark.parametrize(
    ("properties", "people", "note"),
    [
        ([{"speed": 1}, {"speed": 2}], ["1", "2"], "numbered from 1"),
        ([{"mode": "bus"}, {"mode": "bus"}], ["1", "2"], "numbered from 1"),
        ([{"mode": "bus"}, {"speed": 1}], ["1", "2"], "numbered from 1"),
        ([{"mode": "bus", "day": "x"}, {"mode": "bus", "day": "y"}], ["x", "y"], "its day"),
    ],
)
def test_lines_without_an_id_are_a_person_each(properties, people, note):
    lines = [feature("LineString", [A], times=[T0], **found) for found in properties]
    source = opened(collection(*lines))
    assert columns(source, "user_id") == [(person,) for person in people]
    assert source.guesses["people"].note.endswith(note)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(feature("Point", place, uid=1, t=T0)) for place in (A, B)),
        "".join(f"\x1e{json.dumps(feature('Point', place, uid=1, t=T0))}\n" for place in (A, B)),
        json.dumps([feature("Point", place, uid=1, t=T0) for place in (A, B)]),
        json.dumps([collection(feature("Point", place, uid=1, t=T0)) for place in (A, B)]),
        json.dumps(
            collection(*(feature("Point", place, uid=1, t=T0) for place in (A, B))), indent=2
        ),
        json.dumps({"features": [feature("Point", place, uid=1, t=T0) for place in (A, B)]})[:-1]
        + ', "type": "FeatureCollection"}',
    ],
)
def test_every_way_to_put_features_together_is_read(text):
    assert columns(opened(text), "uid", "t", "lon", "lat") == [("1", T0, *A), ("1", T0, *B)]


def test_a_bare_geometry_is_read():
    line = {"type": "LineString", "coordinates": [[*A, 0, 1650000000], [*B, 0, 1650000060]]}
    assert columns(opened(line), "user_id", "time", "lon") == [
        ("1", "1650000000", 139.5),
        ("1", "1650000060", 139.75),
    ]


def named(code):
    return {"type": "name", "properties": {"name": code}}


def test_coordinates_of_another_system_become_degrees():
    # Japan Plane Rectangular CS IX has its origin at 36 N, 139 50' E; Web Mercator spans
    # 20037508.342789244 m from the meridian of Greenwich to that of 180 degrees.
    for code, place, degrees in (
        ("urn:ogc:def:crs:EPSG::6677", [0.0, 0.0], (139 + 50 / 60, 36.0)),
        ("EPSG:3857", [20037508.342789244 / 2, 0.0], (90.0, 0.0)),
        ("urn:ogc:def:crs:OGC:1.3:CRS84", A, tuple(A)),
        ("EPSG:4326", A, tuple(A)),
    ):
        points = (feature("Point", where, uid=1, t=T0) for where in (place, ["x", 1]))
        source = opened(collection(*points, crs=named(code)))
        (read, broken) = columns(source, "lon", "lat")
        assert read == pytest.approx(degrees, abs=1e-7)
        assert None in broken
        assert source.guesses["crs"].value.startswith("EPSG:")


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (collection(feature("Polygon", [[A, B, A]])), "areas-not-trajectories"),
        (collection(), "no-points"),
        (collection({"type": "Feature"}, {"type": "Point"}), "no-times"),
        ({"type": "FeatureCollection", "features": {}}, "no-points"),
        (collection(feature("LineString", [A, B], id=1)), "no-times"),
        (collection(feature("LineString", [A, B], id=1, time=T0)), "no-points"),
        (collection(feature("LineString", [A, B], id=1, times=[T0])), "no-points"),
        (
            collection(feature("Point", A, t=T0), crs=named("EPSG:99999")),
            "crs-not-convertible",
        ),
        (collection(feature("Point", A, t=T0), crs=named("/etc/passwd")), "unknown-stated-crs"),
        (
            collection(feature("Point", [1e9, 1e9], t=T0), crs=named("EPSG:6677")),
            "places-outside-crs",
        ),
        (json.dumps(collection(feature("Point", A, t=T0)))[:-9], "breaks-off-early"),
        ('{"type": "Feature", "geometry": ' + '{"geometries": [' * 9999, "nested-too-deep"),
        ('{"type": "Point", "coordinates": ' + "[" * 100_000, "nested-too-deep"),
    ],
)
def test_what_cannot_be_read_is_named(document, code):
    with pytest.raises(InputError) as told:
        opened(document)
    assert told.value.code == code


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"time": T0}, "one time for a whole line"),
        ({"times": [T0]}, "fewer times than points"),
    ],
)
def test_why_no_point_can_be_read_is_told(given, cause):
    with pytest.raises(InputError) as told:
        opened(collection(feature("LineString", [A, B], id=1, **given)))
    assert cause in str(told.value)


def test_a_place_outside_of_its_system_is_null_and_counted():
    points = [feature("Point", where, t=T0) for where in ([0, 0], [1e9, 1e9])]
    source = opened(collection(*points, crs=named("EPSG:6677")))
    assert columns(source, "lon", "lat")[1] == (None, None)
    assert source.guesses["crs"].note == "1 places lie outside of it"


def test_two_systems_in_one_file_are_refused():
    parts = [
        collection(feature("Point", A, t=T0), crs=named(f"EPSG:{code}")) for code in (4326, 3857)
    ]
    with pytest.raises(InputError) as told:
        opened("\n".join(map(json.dumps, parts)))
    assert told.value.code == "mixed-crs"


def test_other_json_is_not_recognised():
    others = ([], {"type": "Topology"}, [{"id": 1, "type": "bus"}], {"locations": []}, 5)
    assert not any(recognises_geojson(json.dumps(other).encode()) for other in others)
    assert recognises_geojson("\ufeff{'type'".replace("'", '"').encode() + b': "Feature"')


def test_half_a_surrogate_pair_is_replaced():
    text = json.dumps(feature("Point", A, id="a", t=T0)).replace('"a"', '"\\ud83d"')
    assert columns(opened(text), "id") == [("?",)]


@settings(max_examples=60, deadline=None)
@given(JOURNEYS)
def test_what_is_written_is_read_back(journeys):
    points = [
        feature("Point", [lon, lat], user_id=person, time=time)
        for person, time, lon, lat in as_rows(journeys)
    ]
    lines = [
        feature(
            "LineString",
            [[lon, lat] for _, lon, lat in fixes],
            user_id=person,
            coordTimes=[time for time, _, _ in fixes],
        )
        for person, fixes in journeys.items()
    ]
    for features in (points, lines):
        source = opened(collection(*features))
        assert columns(source, "user_id", "time", "lon", "lat") == as_rows(journeys)


def test_damaged_documents_only_ever_give_an_input_error():
    points = collection(
        feature("Point", A, id="東", t=T0), feature("Point", B, t=T1), crs=named("EPSG:4326")
    )
    lines = collection(
        feature("MultiLineString", [[A, B], [A]], coordTimes=[[T0, T1], [T0]]),
        feature("LineString", [[*A, 0, 1650000000]], vendor="A"),
    )
    for document in (points, lines):
        read, refused = outcomes(open_geojson, json.dumps(document).encode())
        assert read > 20
        assert refused > 50
