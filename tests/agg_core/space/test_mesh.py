"""JIS mesh: published codes, borders, coverings, lists of codes."""

from __future__ import annotations

import numpy as np
import pytest
from jismesh.utils import to_meshcode

from agg_core.space.build import Grid
from agg_core.space.grid import OUTSIDE
from tests.faults import refused

TOKYO_STATION = (139.767125, 35.681236)
AROUND = (139.6, 35.55, 139.95, 35.82)


@pytest.mark.parametrize(
    ("level", "code"),
    [(1, "5339"), (2, "533946"), (3, "53394611"), (4, "533946113"), (5, "5339461132")],
)
def test_tokyo_station_lies_in_its_published_cells(level: int, code: str) -> None:
    grid = Grid.from_mesh(level, (139.76, 35.67, 139.77, 35.69))
    (cell,) = grid.assign([TOKYO_STATION[0]], [TOKYO_STATION[1]])
    assert grid.labels[cell] == code


def test_the_first_level_has_the_bounds_of_the_standard() -> None:
    """5339: 35 degrees 20 minutes to 36 N, 139 to 140 E; a cell is 40 minutes by a degree."""
    grid = Grid.from_mesh(codes=["5339"])
    assert grid.bounds == pytest.approx((139.0, 35 + 1 / 3, 140.0, 36.0), abs=1e-12)
    assert grid.n_cells == 1


def test_a_third_level_cell_is_30_by_45_seconds() -> None:
    grid = Grid.from_mesh(codes=["64414288"])  # Sapporo station, 43.0686 N 141.3508 E
    west, south, east, north = grid.bounds
    assert (east - west, north - south) == pytest.approx((45 / 3600, 30 / 3600))
    assert grid.assign([141.3508], [43.0686]).tolist() == [0]
    assert grid.areas_m2[0] == pytest.approx(1.0e6, rel=0.1)


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5, 6])
def test_cells_agree_with_the_package_everywhere(level: int) -> None:
    small = (139.6, 35.55, 139.95, 35.82) if level < 5 else (139.7, 35.6, 139.75, 35.65)
    grid = Grid.from_mesh(level, small)
    rng = np.random.default_rng(0)
    west, south, east, north = small
    lon, lat = rng.uniform(west, east, 500), rng.uniform(south, north, 500)
    cells = grid.assign(lon, lat)
    assert (cells >= 0).all(), "the cells cover the extent"
    assert [grid.labels[c] for c in cells] == [str(c) for c in to_meshcode(lat, lon, level)]
    assert len(set(grid.labels)) == grid.n_cells
    # The package cannot take a single place.
    middle = np.vstack([grid.centroids, grid.centroids[:1]])
    assert grid.labels == [str(c) for c in to_meshcode(middle[:, 1], middle[:, 0], level)][:-1]


def test_a_cell_holds_its_western_and_southern_border_only() -> None:
    grid = Grid.from_mesh(codes=["53394611"])
    west, south, east, north = grid.bounds
    lon = [west, east, np.nextafter(east, 0), west, np.nan]
    lat = [south, south, south, north, south]
    assert grid.assign(lon, lat).tolist() == [0, OUTSIDE, 0, OUTSIDE, OUTSIDE]


def test_an_extent_on_the_lines_of_the_mesh_gets_no_cells_beyond() -> None:
    grid = Grid.from_mesh(2, (139.0, 35 + 1 / 3, 140.0, 36.0))
    assert grid.n_cells == 64
    assert grid.labels[0] == "533900"
    assert grid.labels[-1] == "533977"


def test_given_codes_keep_their_order() -> None:
    grid = Grid.from_mesh(codes=["53394612", "53394601", "53394600", "53394612", "36220000"])
    assert grid.labels == ["53394612", "53394601", "53394600", "36220000"]
    places = grid.centroids
    assert grid.assign(places[:, 0], places[:, 1]).tolist() == [0, 1, 2, 3]
    assert [n.tolist() for n in grid.neighbours] == [[1], [0, 2], [1], []]
    assert grid.assign([139.77], [35.684]).tolist() == [OUTSIDE]


def test_noise_and_distances_are_those_of_the_same_cells() -> None:
    mesh = Grid.from_mesh(3, (139.7, 35.65, 139.8, 35.7))
    rows, cols = mesh.shape
    cells = Grid.from_bbox(*mesh.bounds, rows, cols)
    np.testing.assert_allclose(
        mesh.noise(400.0).toarray(), cells.noise(400.0).toarray(), atol=1e-12
    )
    np.testing.assert_allclose(mesh.border_distance_m, cells.border_distance_m)
    np.testing.assert_allclose(mesh.centroids, cells.centroids)
    assert [n.tolist() for n in mesh.neighbours] == [n.tolist() for n in cells.neighbours]


def test_noise_of_some_cells_stays_among_them() -> None:
    whole = Grid.from_mesh(3, (139.7, 35.65, 139.8, 35.7))
    some = [0, 1, 2, 9, 10, 25]
    part = Grid.from_mesh(codes=[whole.labels[i] for i in some])
    expected = whole.noise(700.0).toarray()[np.ix_(some, some)]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(part.noise(700.0).toarray(), expected, atol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ({"level": 7, "bounds": AROUND}, "value-out-of-range", "levels 1 to 6"),
        ({"level": 6, "bounds": AROUND}, "too-many-cells", "10,000"),
        ({"level": 2, "bounds": (2.0, 48.0, 3.0, 49.0)}, "outside-mesh", ""),
        ({"level": 2, "bounds": (140.0, 35.0, 139.0, 36.0)}, "empty-extent", ""),
        ({"codes": ["5339461"]}, "not-mesh-code", "4, 6, 8"),
        ({"codes": ["東京"]}, "not-mesh-code", "4, 6, 8"),
        ({"codes": ["533988"]}, "not-mesh-code", ""),
        ({"codes": ["0139"]}, "not-mesh-code", ""),
        ({"codes": ["5339", "533946"]}, "cell-sizes-differ", ""),
        ({"level": 3, "codes": ["533946"]}, "cell-sizes-differ", ""),
        ({"codes": ["533946005"]}, "not-mesh-code", ""),
        ({}, "no-cells-given", ""),
    ],
)
def test_what_is_no_mesh_is_one_sentence(arguments: dict, code: str, told: str) -> None:
    with refused(code, told):
        Grid.from_mesh(**arguments)


def test_the_table_of_cells() -> None:
    frame = Grid.from_mesh(3, (139.7, 35.65, 139.72, 35.66)).to_geodataframe()
    assert list(frame.columns) == ["cell", "mesh", "geometry"]
    assert frame.crs == "EPSG:4326"
