import json

import numpy as np
import pytest
from hypothesis import given, settings

from agg_core.base.errors import InputError
from agg_core.io.formats.google import open_google, recognises_google
from tests.agg_core.io.documents import JOURNEYS, columns, left_out, outcomes

FIX = ("time", "lon", "lat", "kind")
RECORDS = {
    "locations": [
        {"latitudeE7": 356812000, "longitudeE7": -1397671000, "accuracy": 20, "timestampMs": "0"},
        {"latitudeE7": 1, "longitudeE7": 2, "timestamp": "2024-05-01T08:00:00Z", "deviceTag": -7},
        {"timestamp": "2024-05-01T08:10:00Z", "source": "WIFI"},
    ]
}
VISIT = {
    "placeVisit": {
        "location": {"latitudeE7": 350000000, "longitudeE7": 1390000000, "name": "Home"},
        "duration": {
            "startTimestamp": "2024-05-01T08:00:00Z",
            "endTimestamp": "2024-05-01T09:00:00Z",
        },
    }
}
ACTIVITY = {
    "activitySegment": {
        "startLocation": {"latitudeE7": 350000000, "longitudeE7": 1390000000},
        "endLocation": {"latitudeE7": 351000000, "longitudeE7": 1391000000},
        "duration": {"startTimestampMs": "1714554000000", "endTimestampMs": "1714555800000"},
        "waypointPath": {"waypoints": [{"latE7": 1, "lngE7": 2}, {"latE7": 3, "lngE7": 4}]},
        "simplifiedRawPath": {
            "points": [
                {
                    "latE7": 350500000,
                    "lngE7": 1390500000,
                    "accuracyMeters": 12,
                    "timestamp": "2024-05-01T09:10:00Z",
                }
            ]
        },
    }
}
ANDROID = [
    {
        "startTime": "2024-05-01T08:00:00.000+09:00",
        "endTime": "2024-05-01T10:00:00.000+09:00",
        "timelinePath": [
            {"point": "35.1°, 139.7°", "time": "2024-05-01T08:05:00.000+09:00"},
            {"point": "35.2°, -139.8°", "time": "2024-05-01T08:15:00.000+09:00"},
        ],
    },
    {
        "startTime": "2024-05-01T10:00:00.000+09:00",
        "endTime": "2024-05-01T11:00:00.000+09:00",
        "visit": {"topCandidate": {"placeLocation": {"latLng": "35.3°, 139.9°"}}},
    },
    {
        "startTime": "2024-05-01T11:00:00.000+09:00",
        "endTime": "2024-05-01T11:30:00.000+09:00",
        "activity": {"start": {"latLng": "35.3°, 139.9°"}, "end": {"latLng": "35.4°, 140.0°"}},
    },
    {"startTime": "2024-05-01T08:00:00Z", "timelineMemory": {"trip": {}}},
]
SIGNALS = [
    {
        "position": {
            "LatLng": "35.5°, 139.5°",
            "accuracyMeters": 13,
            "timestamp": "2024-05-01T07:00:00Z",
        }
    },
    {"wifiScan": {"deliveryTime": "2024-05-01T07:01:00Z"}},
]
IPHONE = [
    {
        "endTime": "2024-05-01T09:00:00.000+09:00",
        "startTime": "2024-05-01T08:00:00.000+09:00",
        "visit": {"topCandidate": {"placeLocation": "geo:35.1,139.7"}, "hierarchyLevel": "0"},
    },
    {
        "endTime": "2024-05-01T09:30:00.000+09:00",
        "startTime": "2024-05-01T09:00:00.000+09:00",
        "activity": {"start": "geo:35.1,139.7", "end": "geo:-35.2,139.8"},
    },
    {
        "endTime": "2024-05-01T10:00:00.000+09:00",
        "startTime": "2024-05-01T09:30:00.000+09:00",
        "timelinePath": [{"point": "geo:35.3,139.9", "durationMinutesOffsetFromStartTime": "12"}],
    },
]


def opened(document):
    data = json.dumps(document, ensure_ascii=False).encode()
    assert recognises_google(data[:4096])
    return open_google(data, "Timeline.json")


def test_records_are_degrees_times_ten_million():
    source = opened(RECORDS)
    assert columns(source) == [
        ("1", "1970-01-01T00:00:00.000+00:00", -139.7671, 35.6812, 20.0, "record", None),
        ("1", "2024-05-01T08:00:00Z", 2e-7, 1e-7, None, "record", "-7"),
        ("1", "2024-05-01T08:10:00Z", None, None, None, "record", None),
    ]
    assert source.guesses["people"].value == "one person"


def test_the_records_of_the_collection_of_troubles(shared_data):
    path = shared_data / "messy" / "39_google_records.json"
    source = open_google(path.read_bytes(), path.name)
    assert columns(source, "time", "lon", "lat", "accuracy_m") == [
        ("2022-04-15T05:20:00.000+00:00", 139.7671, 35.6812, 20.0),
        ("2022-04-15T05:30:00.123Z", 139.77, 35.6845, 1800.0),
        ("2022-04-15T05:40:00Z", 139.77, 35.6845, 15.0),
        ("2022-04-15T05:50:00Z", None, None, 15.0),
        ("2022-04-15T06:00:00Z", 139.77, 429.4967295, 15.0),
    ]


def test_semantic_history_gives_both_ends_of_a_visit_and_the_path_between():
    source = opened({"timelineObjects": [VISIT, ACTIVITY, {"other": 1}]})
    assert columns(source, *FIX, "accuracy_m") == [
        ("2024-05-01T08:00:00Z", 139.0, 35.0, "visit", None),
        ("2024-05-01T09:00:00Z", 139.0, 35.0, "visit", None),
        ("2024-05-01T09:00:00.000+00:00", 139.0, 35.0, "activity", None),
        ("2024-05-01T09:10:00Z", 139.05, 35.05, "path", 12.0),
        ("2024-05-01T09:30:00.000+00:00", 139.1, 35.1, "activity", None),
    ]
    assert left_out(source) == {
        "waypoints without times": (2, (6, 7)),
        "entry that is not understood": (1, (8,)),
    }
    assert source.load([0]).line_numbers(np.array([4])).tolist() == [5]


def test_a_visit_within_a_visit_and_one_without_a_place():
    inner = json.loads(json.dumps(VISIT["placeVisit"]))
    inner["duration"] = {"startTimestamp": "2024-05-01T08:30:00Z"}
    outer = {"centerLatE7": 10000000, "centerLngE7": 20000000, "childVisits": [inner]}
    assert columns(opened({"timelineObjects": [{"placeVisit": outer}]}), *FIX) == [
        (None, 2.0, 1.0, "visit"),
        ("2024-05-01T08:30:00Z", 139.0, 35.0, "visit"),
    ]


def test_the_timeline_of_android():
    source = opened({"semanticSegments": ANDROID, "rawSignals": SIGNALS, "userLocationProfile": {}})
    assert columns(source, *FIX) == [
        ("2024-05-01T08:05:00.000+09:00", 139.7, 35.1, "path"),
        ("2024-05-01T08:15:00.000+09:00", -139.8, 35.2, "path"),
        ("2024-05-01T10:00:00.000+09:00", 139.9, 35.3, "visit"),
        ("2024-05-01T11:00:00.000+09:00", 139.9, 35.3, "visit"),
        ("2024-05-01T11:00:00.000+09:00", 139.9, 35.3, "activity"),
        ("2024-05-01T11:30:00.000+09:00", 140.0, 35.4, "activity"),
    ]
    assert left_out(source) == {
        "entries without a place, such as memories": (1, (7,)),
        "signals without a place": (1, (9,)),
        "raw signals beside the timeline": (1, (8,)),
    }


def test_raw_signals_are_read_where_there_is_nothing_else():
    source = opened({"rawSignals": SIGNALS, "semanticSegments": []})
    assert columns(source, *FIX, "accuracy_m") == [
        ("2024-05-01T07:00:00Z", 139.5, 35.5, "signal", 13.0)
    ]
    assert left_out(source) == {"signals without a place": (1, (2,))}
    assert source.guesses["signals"].note == "the file holds no timeline"


def test_the_timeline_of_an_iphone():
    assert columns(opened(IPHONE), *FIX) == [
        ("2024-05-01T08:00:00.000+09:00", 139.7, 35.1, "visit"),
        ("2024-05-01T09:00:00.000+09:00", 139.7, 35.1, "visit"),
        ("2024-05-01T09:00:00.000+09:00", 139.7, 35.1, "activity"),
        ("2024-05-01T09:30:00.000+09:00", 139.8, -35.2, "activity"),
        ("2024-05-01T09:42:00+09:00", 139.9, 35.3, "path"),
    ]


@pytest.mark.parametrize(
    ("minutes", "point"),
    [("many", "geo:35,139"), ("1e300", "geo:35,139"), (None, "geo:35,139"), ("1", "nowhere")],
)
def test_what_a_path_does_not_tell_is_null(minutes, point):
    path = [{"point": point, "durationMinutesOffsetFromStartTime": minutes}]
    document = [*IPHONE, {**IPHONE[2], "timelinePath": path}]
    time, lon, lat, _ = columns(opened(document), *FIX)[-1]
    assert (time is None) == (minutes != "1")
    assert (lon, lat) == ((None, None) if point == "nowhere" else (139.0, 35.0))


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"semanticSegments": []}, "no-points"),
        ({"timelineObjects": [{}]}, "no-points"),
        ({"userLocationProfile": {}}, "no-points"),
    ],
)
def test_a_history_without_places_is_refused(document, code):
    with pytest.raises(InputError) as told:
        opened(document)
    assert told.value.code == code


def test_a_history_is_recognised_by_its_keys():
    others = ({"locations": [{"lat": 1}]}, [{"startTime": 1}], {"type": "Feature"}, [])
    assert not any(recognises_google(json.dumps(other).encode()) for other in others)


@settings(max_examples=60, deadline=None)
@given(JOURNEYS)
def test_what_is_written_is_read_back(journeys):
    fixes = next(iter(journeys.values()))
    records = [
        {"timestamp": time, "longitudeE7": round(lon * 1e7), "latitudeE7": round(lat * 1e7)}
        for time, lon, lat in fixes
    ]
    assert columns(opened({"locations": records}), "time", "lon", "lat") == fixes
    path = [{"time": time, "point": f"{lat:.5f}°, {lon:.5f}°"} for time, lon, lat in fixes]
    timeline = {"semanticSegments": [{"timelinePath": path}]}
    assert columns(opened(timeline), "time", "lon", "lat") == fixes


def test_damaged_documents_only_ever_give_an_input_error():
    android = {"semanticSegments": ANDROID, "rawSignals": SIGNALS}
    for document in (RECORDS, {"timelineObjects": [VISIT, ACTIVITY]}, android, IPHONE):
        read, refused = outcomes(open_google, json.dumps(document).encode(), count=150)
        assert read > 10
        assert refused > 30
