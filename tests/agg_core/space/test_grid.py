import numpy as np
import pytest
from pyproj import Geod

from agg_core.space.build import Grid
from agg_core.space.grid import OUTSIDE
from tests.faults import refused

SMALL = Grid.from_bbox(10.0, 50.0, 13.0, 52.0, rows=2, cols=3)
"""Cells of one degree: 0 1 2 in the south, 3 4 5 in the north."""


def test_cells_are_numbered_row_by_row_from_the_south_west():
    lon = [10.5, 11.5, 12.5, 10.5, 11.5, 12.5]
    lat = [50.5, 50.5, 50.5, 51.5, 51.5, 51.5]
    assert SMALL.assign(lon, lat).tolist() == [0, 1, 2, 3, 4, 5]
    assert SMALL.n_cells == 6
    assert SMALL.bounds == (10.0, 50.0, 13.0, 52.0)


@pytest.mark.parametrize(
    ("lon", "lat", "cell"),
    [
        (10.0, 50.0, 0),  # the corner of the extent
        (11.0, 50.0, 1),  # a cell holds its western border,
        (10.0, 51.0, 3),  # and its southern one
        (11.0, 51.0, 4),
        (13.0, 50.5, 2),  # the outer borders belong to the last cells
        (10.5, 52.0, 3),
        (13.0, 52.0, 5),
        (np.nextafter(11.0, 0), 50.5, 0),
        (np.nextafter(13.0, 99), 50.5, OUTSIDE),
        (np.nextafter(10.0, 0), 50.5, OUTSIDE),
        (10.5, np.nextafter(52.0, 99), OUTSIDE),
        (10.5, np.nextafter(50.0, 0), OUTSIDE),
        (np.nan, 50.5, OUTSIDE),
        (10.5, np.nan, OUTSIDE),
        (np.inf, 50.5, OUTSIDE),
        (10.5, -np.inf, OUTSIDE),
    ],
)
def test_borders(lon, lat, cell):
    assert SMALL.assign([lon], [lat]).tolist() == [cell]
    assert OUTSIDE == -1


def test_assign_takes_nothing_and_changes_nothing():
    assert SMALL.assign([], []).shape == (0,)
    lon, lat = np.array([np.nan, 10.5]), np.array([50.5, 99.0])
    SMALL.assign(lon, lat)
    np.testing.assert_array_equal(lon, [np.nan, 10.5])
    np.testing.assert_array_equal(lat, [50.5, 99.0])


def test_assign_agrees_with_a_search_through_the_cells():
    grid = Grid.from_bbox(139.1, 35.2, 140.3, 36.05, rows=14, cols=16)
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(139.0, 140.4, 500), rng.uniform(35.1, 36.15, 500)
    expected = np.full(500, -1)
    for cell, ring in enumerate(grid.rings()):
        (west, south), (east, north) = ring.min(axis=0), ring.max(axis=0)
        expected[(lon >= west) & (lon < east) & (lat >= south) & (lat < north)] = cell
    np.testing.assert_array_equal(grid.assign(lon, lat), expected)
    assert (expected == -1).any()
    assert len(np.unique(expected)) > 150


def test_centroids():
    np.testing.assert_allclose(
        SMALL.centroids,
        [[10.5, 50.5], [11.5, 50.5], [12.5, 50.5], [10.5, 51.5], [11.5, 51.5], [12.5, 51.5]],
    )
    assert SMALL.assign(*SMALL.centroids.T).tolist() == list(range(6))


def test_cell_size_of_an_odd_grid_is_that_of_its_middle_cell():
    grid = Grid.from_bbox(139.0, 35.0, 139.9, 35.6, rows=3, cols=3)
    geod = Geod(ellps="WGS84")
    width, height = grid.cell_size_m
    assert width == pytest.approx(geod.inv(139.3, 35.3, 139.6, 35.3)[2], rel=1e-12)
    assert height == pytest.approx(geod.inv(139.45, 35.2, 139.45, 35.4)[2], rel=1e-12)
    # By hand: a degree of longitude is 111.32 km x cos(latitude), of latitude 110.95 km there.
    assert width == pytest.approx(0.3 * 111_320 * np.cos(np.radians(35.3)), rel=2e-3)
    assert height == pytest.approx(0.2 * 110_947, rel=2e-3)


def test_metres_are_true_to_distance_and_direction_from_the_middle():
    grid = Grid.from_bbox(139.0, 35.0, 140.0, 36.0, rows=4, cols=4)
    places = np.array([[139.2, 35.1], [139.5, 35.9], [139.9, 35.5], [139.5, 35.5]])
    metres = grid.to_metres(places)
    azimuth, _, distance = Geod(ellps="WGS84").inv(
        np.full(4, 139.5), np.full(4, 35.5), places[:, 0], places[:, 1]
    )
    np.testing.assert_allclose(np.hypot(*metres.T), distance, rtol=1e-8, atol=1e-6)
    turn = np.radians(azimuth[:3])
    np.testing.assert_allclose(metres[:3, 0], distance[:3] * np.sin(turn), atol=1e-2)
    np.testing.assert_allclose(metres[:3, 1], distance[:3] * np.cos(turn), atol=1e-2)


def test_metres_and_back():
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.uniform(9, 14, 50), rng.uniform(49, 53, 50)])
    np.testing.assert_allclose(SMALL.to_degrees(SMALL.to_metres(places)), places, atol=1e-9)
    metres = rng.uniform(-50_000, 50_000, (50, 2))
    np.testing.assert_allclose(SMALL.to_metres(SMALL.to_degrees(metres)), metres, atol=1e-3)
    np.testing.assert_allclose(SMALL.centroids_m, SMALL.to_metres(SMALL.centroids))


def listed(grid):
    return [near.tolist() for near in grid.neighbours]


def test_neighbours_of_corner_side_and_inside():
    near = listed(Grid.from_bbox(0, 0, 4, 3, rows=3, cols=4))
    #  8  9 10 11
    #  4  5  6  7
    #  0  1  2  3
    assert near[0] == [1, 4, 5]
    assert near[3] == [2, 6, 7]
    assert near[11] == [6, 7, 10]
    assert near[1] == [0, 2, 4, 5, 6]
    assert near[4] == [0, 1, 5, 8, 9]
    assert near[7] == [2, 3, 6, 10, 11]
    assert near[5] == [0, 1, 2, 4, 6, 8, 9, 10]


def test_neighbours_in_thin_grids():
    assert listed(Grid.from_bbox(0, 0, 4, 1, rows=1, cols=4)) == [[1], [0, 2], [1, 3], [2]]
    assert listed(Grid.from_bbox(0, 0, 1, 3, rows=3, cols=1)) == [[1], [0, 2], [1]]
    assert listed(Grid.from_bbox(0, 0, 1, 1, rows=1, cols=1)) == [[]]


def test_rings_are_closed_counter_clockwise_and_cover_the_extent():
    rings = SMALL.rings()
    assert rings.shape == (6, 5, 2)
    np.testing.assert_array_equal(rings[:, 0], rings[:, -1])
    x, y = rings[..., 0], rings[..., 1]
    twice_area = (x[:, :-1] * y[:, 1:] - x[:, 1:] * y[:, :-1]).sum(axis=1)  # shoelace
    np.testing.assert_allclose(twice_area, 2.0)
    np.testing.assert_allclose(rings[4].min(axis=0), [11, 51])
    np.testing.assert_allclose(rings[4].max(axis=0), [12, 52])


def test_geodataframe():
    frame = SMALL.to_geodataframe()
    assert list(frame.columns) == ["cell", "row", "col", "geometry"]
    assert frame.crs.to_epsg() == 4326
    assert frame["cell"].tolist() == [0, 1, 2, 3, 4, 5]
    assert frame["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["col"].tolist() == [0, 1, 2, 0, 1, 2]
    assert frame.geometry.is_valid.all()
    assert frame.union_all().bounds == pytest.approx(SMALL.bounds)
    assert [cell.area for cell in frame.geometry] == pytest.approx([1.0] * 6)
    middles = [[cell.centroid.x, cell.centroid.y] for cell in frame.geometry]
    np.testing.assert_allclose(middles, SMALL.centroids)


@pytest.mark.parametrize(
    ("extent", "shape", "code", "told"),
    [
        (
            (0, 0, 1, 1),
            (0, 2),
            "value-out-of-range",
            "0 x 2",
        ),
        ((0, 0, 1, 1), (2, -1), "value-out-of-range", "2 x -1"),
        ((1, 0, 0, 1), (2, 2), "empty-extent", "west 1 must be less than east 0"),
        ((0, 1, 1, 1), (2, 2), "empty-extent", ""),
        ((-181, 0, 1, 1), (2, 2), "extent-out-of-range", ""),
        ((0, 0, 360.5, 1), (2, 2), "extent-out-of-range", ""),
        ((0, -90.1, 1, 1), (2, 2), "extent-out-of-range", ""),
        ((0, 0, 1, 91), (2, 2), "extent-out-of-range", ""),
        ((np.nan, 0, 1, 1), (2, 2), "malformed-extent", ""),
        ((0, 0, np.inf, 1), (2, 2), "malformed-extent", ""),
    ],
)
def test_bad_extents_are_refused(extent, shape, code, told):
    with refused(code, told):
        Grid.from_bbox(*extent, *shape)


def test_the_whole_globe_is_a_grid():
    assert Grid.from_bbox(-180, -90, 180, 90, 2, 2).assign([180.0], [90.0]).tolist() == [3]


@pytest.mark.parametrize(
    ("west", "east", "cols"),
    [(139.4, 139.9, 50), (-180, 180, 3601), (0.1, 0.7, 7), (5, 5 + 2e-9, 9)],
)
def test_places_fall_between_the_edges_that_a_search_finds(west, east, cols):
    grid = Grid.from_bbox(west, 0, east, 1, 1, cols)
    edges, rng = grid.lon_edges, np.random.default_rng(0)
    lon = np.concatenate(
        [
            rng.uniform(2 * west - east, 2 * east - west, 20_000),
            *(edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)),
            [np.nan, np.inf, -np.inf, 1e300, -1e300],
        ]
    )
    found = np.searchsorted(edges, lon, side="right") - 1
    right = np.where(lon == edges[-1], cols - 1, np.where(found < cols, found, OUTSIDE))
    assert grid.assign(lon, np.full(len(lon), 0.5)).tolist() == right.tolist()
