"""The ground of the world: a made-up one by hand, the shipped one by well-known places."""

from __future__ import annotations

import json
import math
import socket

import numpy as np
import pytest
import shapely
from shapely.geometry import shape

from agg_core.base import shipped
from agg_core.io.ground import RUNGS, Paths, World, ground_near, world
from agg_core.made.samples import load_outline
from tests.faults import refused

COARSEST = len(RUNGS) - 1
CITIES = {
    "Jersey City": (-74.09, 40.69, -74.02, 40.75),
    "Tokyo": (139.28, 35.36, 140.24, 36.06),
    "Santos": (-46.45, -24.02, -46.25, -23.9),
    "Fiji": (178.2, -18.3, 179.95, -16.4),
    "Bergen": (5.15, 60.3, 5.45, 60.5),
    "Norway": (4.0, 58.0, 31.0, 71.0),
    "Finnish lakes": (26.0, 61.0, 30.0, 63.0),
    "one place": (2.35, 48.85, 2.35, 48.85),
    "the world": (-180.0, -90.0, 180.0, 90.0),
}


def paths(rings, closed, rung=COARSEST):
    where = np.concatenate([np.asarray(ring, dtype=float) for ring in rings])
    lengths = [len(ring) for ring in rings]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rungs = np.broadcast_to(np.asarray(rung, dtype=np.uint8), len(where)).copy()
    return Paths(where, starts, np.arange(len(rings)), rungs, closed)


def square(west, south, east, north):
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def made(*land, borders=([[50.0, 50.0], [51.0, 50.0]],), places=()):
    lines = paths(borders, closed=False)
    return World(
        {"land": paths(land, closed=True), "region": lines, "border": lines},
        [name for name, *_ in places],
        np.array([people for _, people, *_ in places], dtype=np.int64),
        np.array([where for *_, where in places], dtype=float).reshape(-1, 2),
    )


def shapes(found, kind="land"):
    return [shape(f["geometry"]) for f in found["features"] if f["properties"]["kind"] == kind]


def whole(found):
    parts = shapely.get_parts(np.array(shapes(found), dtype=object))
    return shapely.union_all(shapely.make_valid(parts))


def names(found):
    return [
        f["properties"]["name"] for f in found["features"] if f["properties"]["kind"] == "place"
    ]


# -------------------------------------------------------------------------------- by hand


def test_boxes_of_all_tolerances_make_up_the_land_once():
    found = ground_near((4.0, 4.0, 4.5, 4.5), of=made(square(0, 0, 20, 20), square(100, 0, 101, 1)))
    (land,) = shapes(found)
    assert whole(found).area == pytest.approx(20 * 20 + 1)
    assert sum(part.area for part in land.geoms) == pytest.approx(20 * 20 + 1), "nothing lies twice"


def test_far_away_shapes_are_as_coarse_as_the_file_has_them():
    # A bay 1 degree wide, whose inner corners only the finest shape has.
    ring = [[0, 0], [4, 0], [4, 1], [5, 1], [5, 0], [20, 0], [20, 20], [0, 20], [0, 0]]
    of = made(ring)
    of.kinds["land"].rung[2:4] = 0
    near = whole(ground_near((4.0, 0.0, 5.0, 1.0), of=of))
    far = whole(ground_near((-120.0, 0.0, -119.0, 1.0), of=of))
    assert near.area == pytest.approx(20 * 20 - 1)
    assert far.area == pytest.approx(20 * 20)


def test_land_across_the_antimeridian_goes_on():
    of = made(square(178, -1, 180, 1), square(-180, -1, -177, 1))
    east = whole(ground_near((178.5, -0.5, 179.9, 0.5), of=of))
    west = whole(ground_near((-179.9, -0.5, -178.5, 0.5), of=of))
    assert east.bounds == pytest.approx((178, -1, 183, 1))
    assert east.area == pytest.approx(10)
    assert west.bounds == pytest.approx((-182, -1, -177, 1))


def test_no_land_lies_beyond_the_ends_of_the_map():
    found = ground_near((-180, -90, 180, 90), of=made(square(-180, -90, 180, -60)))
    assert whole(found).bounds == pytest.approx((-180, -85.05, 180, -60))


def test_places_are_the_largest_first_and_have_turned_as_the_land_has():
    of = made(
        square(0, 0, 1, 1),
        places=[("Large", 900, [-179.0, 0.0]), ("Small", 20, [179.0, 0.5])],
    )
    found = ground_near((178.0, -1.0, 179.9, 1.0), of=of)
    assert names(found) == ["Large", "Small"]
    assert [point.coords[0] for point in shapes(found, "place")] == [(181.0, 0.0), (179.0, 0.5)]


def test_of_many_places_those_near_the_extent_are_kept():
    of = made(
        square(0, 0, 1, 1),
        places=[(f"{i}", 1000 - i, [90 + i / 100, 40.0]) for i in range(500)]
        + [("here", 5, [10.0, 10.0])],
    )
    found = names(ground_near((9.9, 9.9, 10.1, 10.1), of=of))
    assert found[-1] == "here"
    assert found[:3] == ["0", "1", "2"]
    assert len(found) < 150


def test_land_gives_way_to_an_outline_that_knows_the_coast_better():
    # The coast of the outline is at 1 degree east; the coarse one is 0.005 degrees, some 550 m,
    # farther out. West of the outline the land goes on.
    outline = {"features": [{"geometry": {"type": "Polygon", "coordinates": [square(0, 0, 1, 1)]}}]}
    land = whole(ground_near((0.2, 0.2, 0.8, 0.8), outline, of=made(square(-20, 0, 1.005, 1))))
    assert not land.intersects(shapely.box(0.05, 0.05, 1.1, 0.95))
    assert land.contains(shapely.box(-19.9, 0.01, -0.01, 0.99))


def test_land_beyond_an_outline_stays_where_it_is_more_than_a_strip():
    outline = {"features": [{"geometry": {"type": "Polygon", "coordinates": [square(0, 0, 1, 1)]}}]}
    land = whole(ground_near((0.2, 0.2, 0.8, 0.8), outline, of=made(square(0, 0, 1.1, 1))))
    assert land.contains(shapely.box(1.001, 0.05, 1.099, 0.95))
    lines = {"features": [{"geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}]}
    assert whole(ground_near((0.2, 0.2, 0.8, 0.8), lines, of=made(square(0, 0, 2, 2)))).area == 4


@pytest.mark.parametrize(
    "bounds", [(1, 0, 0, 1), (0, 1, 1, 0), (0, -91, 1, 0), (math.nan, 0, 1, 1), (0, 0, 999, 1)]
)
def test_bounds_that_are_none_are_refused(bounds):
    with refused("bounds-out-of-order"):
        ground_near(bounds, of=made(square(0, 0, 1, 1)))


# ---------------------------------------------------------------------------- the shipped


@pytest.fixture(scope="module")
def grounds():
    return {city: ground_near(bounds) for city, bounds in CITIES.items()}


def test_the_file_is_small():
    assert shipped.shipped("data/ground.parquet").stat().st_size < 2_600_000


@pytest.mark.parametrize("city", CITIES)
def test_what_the_browser_gets_is_small(grounds, city):
    found = json.dumps(grounds[city], separators=(",", ":"), ensure_ascii=False).encode()
    assert 50_000 < len(found) < 300_000


@pytest.mark.parametrize("city", CITIES)
def test_the_world_is_there_about_every_city(grounds, city):
    west, _, east, _ = CITIES[city]
    land = whole(grounds[city])
    assert land.bounds[0] >= (west + east) / 2 - 180
    assert land.bounds[2] <= (west + east) / 2 + 180
    for lon, lat in ((10, 50), (-100, 40), (-60, -10), (25, 0), (135, -25), (100, 60)):
        turned = (lon - (west + east) / 2 + 180) % 360 + (west + east) / 2 - 180
        assert land.contains(shapely.Point(turned, lat)), (lon, lat)
    for lon, lat in ((-30, 30), (-150, 0), (80, -30), (0, -50)):
        turned = (lon - (west + east) / 2 + 180) % 360 + (west + east) / 2 - 180
        assert not land.contains(shapely.Point(turned, lat)), (lon, lat)


@pytest.mark.parametrize(
    ("city", "lon", "lat", "is_land"),
    [
        ("Jersey City", -74.060, 40.735, True),  # Journal Square
        ("Jersey City", -73.970, 40.780, True),  # Central Park
        ("Jersey City", -74.045, 40.660, False),  # Upper New York Bay
        ("Tokyo", 139.767, 35.681, True),  # Tokyo station
        ("Tokyo", 139.850, 35.500, False),  # Tokyo Bay
        ("Tokyo", 136.080, 35.250, False),  # Lake Biwa
        ("Santos", -46.640, -23.550, True),  # São Paulo, Praça da Sé
        ("Santos", -46.300, -24.100, False),  # the Atlantic
        ("Fiji", 179.350, -16.600, True),  # Vanua Levu
        ("Fiji", 180.080, -16.820, True),  # Taveuni, east of the antimeridian
        ("Fiji", 180.600, -17.500, False),  # Koro Sea
        ("Bergen", 5.350, 60.370, True),  # Bergen
        ("the world", 33.0, -1.0, False),  # Lake Victoria
    ],
)
def test_known_places(grounds, city, lon, lat, is_land):
    assert any(part.contains(shapely.Point(lon, lat)) for part in shapes(grounds[city])) == is_land


def test_names_of_cities():
    assert world().names[world().people.argmax()] == "Shanghai"
    found = ground_near(CITIES["Tokyo"])
    people = [
        f["properties"]["population"]
        for f in found["features"]
        if f["properties"]["kind"] == "place"
    ]
    assert {"Tokyo", "Yokohama", "Chiba", "Saitama", "Paris"} <= {*names(found), "Paris"}
    assert people == sorted(people, reverse=True)


def test_the_sea_of_the_outline_stays_sea():
    bounds, outline = CITIES["Tokyo"], load_outline()
    fine = shapely.union_all(
        shapely.make_valid(np.array([shape(f["geometry"]) for f in outline["features"]]))
    )
    bay = shapely.box(139.78, 35.35, 140.05, 35.66).difference(fine)
    coarse = whole(ground_near(bounds)).intersection(bay).area
    left = whole(ground_near(bounds, outline)).intersection(bay).area
    assert coarse > 0.02 * bay.area
    assert left < 0.002 * bay.area


def test_a_border_runs_between_france_and_germany(grounds):
    (border,) = shapes(ground_near((7.4, 48.3, 8.0, 48.8)), "border")
    assert border.distance(shapely.Point(7.80, 48.58)) < 0.03  # the Rhine by Strasbourg
    assert not shapes(grounds["the world"], "region")


def test_no_request_leaves_this_machine(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a request")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    world.cache_clear()
    assert names(ground_near(CITIES["Jersey City"]))


def test_a_missing_file_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "app_folder", lambda: tmp_path)
    world.cache_clear()
    with refused("shipped-file-missing"):
        ground_near(CITIES["Tokyo"])
