"""Screenlines and cordons: which flows cross, against another way of asking and by hand."""

import io

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely.geometry import LineString, MultiLineString, Point, Polygon, box

from agg_core.evidence.lines import (
    MOST_LINES,
    Crossings,
    Screenline,
    cordon_around,
    cordon_through,
    crossings,
    line_between,
    line_through,
    screenlines_of,
)
from agg_core.io.formats.vector import read_vector
from agg_core.space.build import Grid
from tests.agg_core import tiny
from tests.faults import refused

ROWS = Grid.from_bbox(139.0, 35.0, 139.3, 35.3, rows=3, cols=3)


def grids():
    wards = gpd.GeoDataFrame(
        {"name": list("abcde")},
        geometry=[
            Polygon([(139, 35), (139.2, 35), (139.1, 35.2)]), box(139.2, 35, 139.3, 35.1),
            box(139.2, 35.1, 139.3, 35.3), Polygon([(139, 35), (139.1, 35.2), (139, 35.3)]),
            Polygon([(139.1, 35.2), (139.2, 35), (139.2, 35.3), (139, 35.3)]),
        ],
        crs="EPSG:4326",
    )  # fmt: skip
    bounds = (139.0, 35.0, 139.3, 35.3)
    return {
        "rows": ROWS,
        "mesh": Grid.from_mesh(2, bounds),
        "h3": Grid.from_h3(6, bounds),
        "areas": Grid.from_polygons(wards),
    }


def pairs(grid):
    cells = np.arange(grid.n_cells)
    origin, dest = np.meshgrid(cells, cells, indexing="ij")
    return origin.ravel(), dest.ravel()


def net_by_points(grid, line, origin, dest):
    """How often a way goes from left to right less the reverse, one crossing point at a time."""
    path = shapely.transform(line, grid.to_metres)
    way = LineString(grid.centroids_m[[origin, dest]])
    net = 0
    for a, b in zip(path.coords[:-1], path.coords[1:], strict=True):
        if way.intersects(LineString([a, b])):
            (x, y), (u, v) = np.subtract(b, a), np.subtract(way.coords[1], way.coords[0])
            net += 1 if x * v - y * u < 0 else -1
    return net


@pytest.mark.parametrize("kind", ["rows", "mesh", "h3", "areas"])
@pytest.mark.parametrize("seed", range(3))
def test_flows_across_a_line_equal_brute_force_over_pairs(kind, seed):
    grid, rng = grids()[kind], np.random.default_rng(seed)
    west, south, east, north = grid.bounds
    places = rng.uniform([west, south], [east, north], (5, 2))
    line = Screenline("river", LineString(places))
    origin, dest = pairs(grid)
    forward, backward = line.crossed(grid, origin, dest)
    net = [net_by_points(grid, line.shape, o, d) if o != d else 0
           for o, d in zip(origin, dest, strict=True)]  # fmt: skip
    np.testing.assert_array_equal(forward, np.array(net) > 0)
    np.testing.assert_array_equal(backward, np.array(net) < 0)
    assert forward.any()
    assert backward.any()
    # Who goes back crosses it the other way.
    n = grid.n_cells
    np.testing.assert_array_equal(forward.reshape(n, n), backward.reshape(n, n).T)


@pytest.mark.parametrize("kind", ["rows", "mesh", "h3", "areas"])
def test_flows_over_a_cordon_equal_brute_force_over_pairs(kind):
    grid = grids()[kind]
    west, south, east, north = grid.bounds
    middle = Point((west + east) / 2, (south + north) / 2)
    cordon = Screenline("centre", middle.buffer((east - west) / 4))
    origin, dest = pairs(grid)
    came, left = cordon.crossed(grid, origin, dest)
    area = shapely.transform(cordon.shape, grid.to_metres)
    places = [Point(place) for place in grid.centroids_m]
    for k, (o, d) in enumerate(zip(origin, dest, strict=True)):
        inside = area.contains(places[o]), area.contains(places[d])
        passes = area.intersection(LineString([places[o], places[d]])).length > 1e-6
        through = not any(inside) and o != d and passes
        assert came[k] == ((not inside[0] and inside[1]) or through)
        assert left[k] == ((inside[0] and not inside[1]) or through)
    assert came.any()


def test_a_line_through_a_corner_of_the_way_is_crossed_once():
    path = np.array([[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]])
    ways = np.array([[-1.0, 0.0], [1.0, 0.0]])
    assert crossings(path, ways[:1], ways[1:]).tolist() == [1]
    assert crossings(path, ways[1:], ways[:1]).tolist() == [-1]
    # A place on the line belongs to its left, which is the west of a line to the north.
    on = np.array([[0.0, 0.5]])
    assert crossings(path, on, ways[1:]).tolist() == [1]
    assert crossings(path, ways[:1], on).tolist() == [0]
    # To and fro over a winding line is no crossing; a touch of a corner is none.
    winding = np.array([[-0.5, -1.0], [-0.5, 1.0], [0.5, 1.0], [0.5, -1.0]])
    assert crossings(winding, ways[:1], ways[1:]).tolist() == [0]
    tip = np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    assert crossings(tip, ways[:1], ways[1:]).tolist() == [0]


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ([(139.1, 35.0), (139.1, 35.3)], ("eastbound", "westbound")),
        ([(139.1, 35.3), (139.1, 35.0)], ("westbound", "eastbound")),
        ([(139.0, 35.1), (139.3, 35.1)], ("southbound", "northbound")),
        ([(139.0, 35.0), (139.33, 35.27)], ("south-eastbound", "north-westbound")),
    ],
)
def test_directions_are_those_of_the_compass(places, names):
    line = Screenline("a", LineString(places))
    assert line.directions(ROWS) == names
    origin, dest = pairs(ROWS)
    forward, _ = line.crossed(ROWS, origin, dest)
    gone = (ROWS.centroids_m[dest] - ROWS.centroids_m[origin])[forward].mean(axis=0)
    towards = {"east": (1, 0), "west": (-1, 0), "south": (0, -1), "north": (0, 1)}
    for word, way in towards.items():
        if word in names[0]:
            assert np.dot(gone, way) > 0


def test_directions_of_rings_and_areas():
    ring = LineString([(139.1, 35.1), (139.2, 35.1), (139.2, 35.2), (139.1, 35.1)])
    assert Screenline("ring", ring).directions(ROWS) == ("inwards", "outwards")
    assert Screenline("area", box(139.1, 35.1, 139.2, 35.2)).directions(ROWS) == ("in", "out")


def test_pieces_of_a_line_are_one():
    whole = LineString([(139.15, 34.9), (139.15, 35.15), (139.15, 35.4)])
    halves = MultiLineString([list(whole.coords[:2]), list(whole.coords[1:])])
    origin, dest = pairs(ROWS)
    for one, other in zip(
        Screenline("a", whole).crossed(ROWS, origin, dest),
        Screenline("a", halves).crossed(ROWS, origin, dest),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def vector(names, shapes, column="name"):
    out = io.BytesIO()
    frame = gpd.GeoDataFrame({column: names}, geometry=shapes, crs="EPSG:4326")
    out.write(frame.to_json().encode())
    return read_vector(out.getvalue(), "lines.geojson")


def test_lines_and_areas_of_a_file_are_screenlines_and_cordons():
    shapes = [
        LineString([(0, 0), (1, 1)]),
        box(0, 0, 1, 1),
        Point(0, 0),
        LineString([(0, 1), (1, 0)]),
    ]
    found = screenlines_of(vector(["River", "Centre", "x", "River"], shapes))
    assert [line.name for line in found] == ["River", "Centre", "River (3)"]
    assert [line.is_cordon for line in found] == [False, True, False]
    unnamed = screenlines_of(vector([None, None], shapes[:2], "remark"))
    assert [line.name for line in unnamed] == ["line 1", "line 2"]


def test_files_without_lines_are_refused_and_so_are_too_many():
    with refused("no-screenlines"):
        screenlines_of(vector(["a"], [Point(0, 0)]))
    many = [LineString([(0, k / 1000), (1, k / 1000)]) for k in range(MOST_LINES + 1)]
    with refused("too-many-screenlines", str(MOST_LINES)):
        screenlines_of(vector([str(k) for k, _ in enumerate(many)], many))


def test_a_cordon_that_crosses_itself_is_mended():
    bow = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    found = screenlines_of(vector(["bow"], [bow]))
    assert found[0].shape.is_valid
    assert found[0].shape.area == pytest.approx(0.5)


def test_every_pair_and_every_piece_is_looked_at(monkeypatch):
    line = Screenline("a", LineString([(139.0, 35.0), (139.12, 35.2), (139.3, 35.3)]))
    origin, dest = pairs(ROWS)
    whole = line.crossed(ROWS, origin, dest)
    monkeypatch.setattr("agg_core.evidence.lines.AT_ONCE", 7)
    for one, other in zip(whole, line.crossed(ROWS, origin, dest), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_cordon_around_cells_holds_these_and_no_other():
    grid = tiny.GRID.make()
    line = cordon_around("x", grid, [0, 1, 4])
    assert (line.name, line.is_cordon) == ("x", True)
    origin, dest = (part.ravel() for part in np.indices((9, 9)))
    inside = np.isin(np.arange(9), [0, 1, 4])
    into, out = line.crossed(grid, origin, dest)
    assert (into >= (~inside[origin] & inside[dest])).all()
    assert (out >= (inside[origin] & ~inside[dest])).all()
    assert not (into | out)[inside[origin] & inside[dest]].any()
    with refused("no-cells-chosen"):
        cordon_around("x", grid, [])
    with refused("unknown-cell"):
        cordon_around("x", grid, [9])


def test_a_line_goes_from_one_place_to_another():
    line = line_between("x", (139.1, 34.9), (139.1, 35.4))
    assert line.directions(tiny.GRID.make()) == ("eastbound", "westbound")
    for start, end in (((139, 35), (139, 35)), ((181, 0), (0, 0)), ((0, 91), (0, 0))):
        with refused("no-line"):
            line_between("x", start, end)


def test_a_line_through_several_places_is_crossed_like_its_pieces():
    grid = tiny.GRID.make()
    corner = [(139.1, 34.9), (139.1, 35.1), (139.4, 35.1)]
    line = line_through("corner", corner)
    assert [tuple(place) for place in line.shape.coords] == corner
    # It goes round the two cells in the south-east.
    origin, dest = np.divmod(np.arange(81), 9)
    out, into = line.crossed(grid, dest, origin), line.crossed(grid, origin, dest)
    within = np.isin(np.arange(9), [1, 2])
    across = within[origin] != within[dest]
    assert (sum(way.astype(int) for way in out) == across).all()
    assert (sum(way.astype(int) for way in into) == across).all()


def test_a_cordon_through_places_holds_what_lies_within_and_its_corners():
    grid = tiny.GRID.make()
    middles = [tuple(place) for place in grid.centroids.tolist()]
    found = cordon_through("c", [middles[cell] for cell in (0, 2, 8, 6)])
    assert found.is_cordon
    other = cordon_through("c", [middles[cell] for cell in (0, 2, 8)])
    origin, dest = np.array([0, 3, 3]), np.array([1, 0, 6])
    into, out = other.crossed(grid, origin, dest)
    assert into.tolist() == [False, True, False]
    assert out.tolist() == [False, False, False]
    # A border that crosses itself goes around two areas.
    crossed = cordon_through("c", [middles[cell] for cell in (0, 8, 2, 6)])
    assert len(crossed.shape.geoms) == 2


@pytest.mark.parametrize("cells", [(), (0,), (0, 1), (0, 1, 2), (0, 1, 0), (0, 1, 2, 1)], ids=str)
def test_a_cordon_without_an_area_is_refused(cells):
    middles = [tuple(place) for place in tiny.GRID.make().centroids.tolist()]
    with refused("no-area"):
        cordon_through("c", [middles[cell] for cell in cells])


def test_a_line_of_one_place_or_none_on_earth_is_refused():
    for places in ([], [(139.0, 35.0)], [(139.0, 35.0)] * 3, [(139.0, 35.0), (999.0, 35.0)]):
        with refused("no-line"):
            line_through("l", places)
    with refused("no-area"):
        cordon_through("c", [(139.0, 35.0), (999.0, 35.0), (139.0, 36.0)])


def test_crossings_that_are_kept_are_those_of_the_lines_for_any_pairs():
    grid, rng = tiny.GRID.make(), np.random.default_rng(0)
    lines = [
        line_through("l", [(139.1, 34.9), (139.12, 35.2), (139.4, 35.2)]),
        Screenline("c", box(139.1, 35.1, 139.2, 35.2)),
    ]  # fmt: skip
    kept = Crossings(lines, grid)
    for n in (5, 40, 81, 81, 7):
        origin, dest = np.divmod(rng.choice(81, n, replace=False), 9)
        for number, line in enumerate(lines):
            found = kept.of(number, origin, dest)
            np.testing.assert_array_equal(found, np.stack(line.crossed(grid, origin, dest)))
