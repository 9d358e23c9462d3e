"""H3: against the h3 package itself."""

from __future__ import annotations

import h3
import numpy as np
import pytest
import shapely

from agg_core.space.build import Grid
from agg_core.space.grid import OUTSIDE
from tests.faults import refused

AROUND = (139.6, 35.55, 139.95, 35.82)


def test_places_get_the_cell_that_h3_gives() -> None:
    grid = Grid.from_h3(7, AROUND)
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(139.6, 139.95, 1000), rng.uniform(35.55, 35.82, 1000)
    cells = grid.assign(lon, lat)
    expected = [h3.latlng_to_cell(y, x, 7) for x, y in zip(lon, lat, strict=True)]
    assert [grid.labels[c] for c in cells] == expected


def test_places_on_borders_and_corners_are_in_one_cell() -> None:
    grid = Grid.from_h3(7, AROUND)
    corners = shapely.get_coordinates(grid.polygons)
    cells = grid.assign(corners[:, 0], corners[:, 1])
    expected = [h3.latlng_to_cell(y, x, 7) for x, y in corners]
    known = {label: i for i, label in enumerate(grid.labels)}
    assert cells.tolist() == [known.get(cell, OUTSIDE) for cell in expected]


def test_what_is_no_place_is_outside() -> None:
    grid = Grid.from_h3(5, AROUND)
    assert grid.assign([np.nan, 139.7, np.inf, 0.0], [35.6, np.nan, 35.6, 0.0]).tolist() == [-1] * 4
    assert grid.assign([], []).tolist() == []


def test_cells_are_those_that_meet_the_extent() -> None:
    grid = Grid.from_h3(6, AROUND)
    box = shapely.box(*AROUND)
    assert shapely.intersects(grid.polygons, box).all()
    around = {n for cell in grid.labels for n in h3.grid_disk(cell, 1)} - set(grid.labels)
    beyond = Grid.from_h3(cells=sorted(around))
    assert not (shapely.area(shapely.intersection(beyond.polygons, box)) > 1e-9).any()


def test_neighbours_are_those_of_h3() -> None:
    grid = Grid.from_h3(6, AROUND)
    number = {label: i for i, label in enumerate(grid.labels)}
    for cell, near in zip(grid.labels, grid.neighbours, strict=True):
        ring = set(h3.grid_disk(cell, 1)) - {cell}
        assert near.tolist() == sorted(number[n] for n in ring if n in number)


def test_sizes_are_those_of_h3() -> None:
    grid = Grid.from_h3(6, AROUND)
    expected = [h3.cell_area(cell, unit="m^2") for cell in grid.labels]
    # H3 works on a sphere.
    np.testing.assert_allclose(grid.areas_m2, expected, rtol=0.01)


def test_given_cells_keep_their_order() -> None:
    origin = h3.latlng_to_cell(35.68, 139.77, 8)
    cells = [origin, *sorted(set(h3.grid_disk(origin, 1)) - {origin}), origin.upper()]
    grid = Grid.from_h3(cells=cells)
    assert grid.labels == cells[:-1]
    assert grid.resolution == 8
    assert [len(n) for n in grid.neighbours] == [6] + [3] * 6
    np.testing.assert_array_equal(
        grid.assign(grid.centroids[:, 0], grid.centroids[:, 1]), np.arange(7)
    )


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ({"resolution": 16, "bounds": AROUND}, "value-out-of-range", "0 to 15"),
        ({"resolution": 15, "bounds": AROUND}, "too-many-cells", "10,000"),
        ({"resolution": 2, "bounds": (-100.0, 0.0, 100.0, 10.0)}, "extent-too-wide", ""),
        ({"cells": ["xyz"]}, "not-h3-cell", "xyz"),
        ({"cells": ["872f5aad8ffffff", "862f5aad7ffffff"]}, "cell-sizes-differ", ""),
        ({}, "no-cells-given", ""),
    ],
)
def test_what_is_no_h3_is_one_sentence(arguments: dict, code: str, told: str) -> None:
    with refused(code, told):
        Grid.from_h3(**arguments)
