"""Noise and moments of cells of any shape: by hand, by rectangles, by drawing places."""

from __future__ import annotations

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely.geometry import box

from agg_core.model.emissions import grid_emission
from agg_core.model.gaussian import grid_gaussian_emission
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.build import Grid
from agg_core.space.integrals import area_noise, moments

HEXAGONS = Grid.from_h3(7, (139.70, 35.62, 139.80, 35.70))


def drawn(shape, n, rng):
    """Places anywhere in a shape, (n, 2)."""
    west, south, east, north = shape.bounds
    places = np.empty((0, 2))
    while len(places) < n:
        some = rng.uniform((west, south), (east, north), (2 * n, 2))
        places = np.vstack([places, some[shapely.contains_xy(shape, *some.T)]])
    return places[:n]


@pytest.mark.parametrize("sigma", [30.0, 150.0, 900.0, 6000.0])
def test_noise_of_squares_is_that_of_cells(sigma: float) -> None:
    grid = Grid.from_bbox(139.70, 35.60, 139.75, 35.64, 4, 5)
    exact = grid.noise(sigma).toarray()
    found = area_noise(grid.polygons_m, sigma).toarray()
    np.testing.assert_allclose(found, exact, atol=4e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("sigma", [100.0, 600.0, 3000.0])
def test_noise_of_hexagons_is_that_of_drawn_places(sigma: float) -> None:
    n, rng = 20_000, np.random.default_rng(0)
    found = HEXAGONS.noise(sigma).toarray()
    for cell in (0, HEXAGONS.n_cells // 2):
        places = drawn(HEXAGONS.polygons_m[cell], n, rng)
        seen = HEXAGONS.to_degrees(places + rng.normal(0, sigma, places.shape))
        cells = HEXAGONS.assign(seen[:, 0], seen[:, 1])
        share = np.bincount(cells[cells >= 0], minlength=HEXAGONS.n_cells) / (cells >= 0).sum()
        # Four standard errors of a share of so many places, and the rule's own error.
        np.testing.assert_allclose(found[cell], share, atol=4 * 0.5 / np.sqrt(n) + 2e-3)


def test_noise_of_areas_with_holes_and_islands_is_that_of_drawn_places() -> None:
    ring = box(139.70, 35.60, 139.78, 35.68).difference(box(139.72, 35.62, 139.76, 35.66))
    island = shapely.MultiPolygon(
        [box(139.725, 35.625, 139.74, 35.64), box(139.79, 35.6, 139.8, 35.68)]
    )
    frame = gpd.GeoDataFrame({"name": ["ring", "island"]}, geometry=[ring, island], crs="EPSG:4326")
    grid = Grid.from_polygons(frame)
    found, n, rng = grid.noise(500.0).toarray(), 20_000, np.random.default_rng(1)
    for cell in (0, 1):
        places = drawn(grid.polygons_m[cell], n, rng)
        seen = grid.to_degrees(places + rng.normal(0, 500.0, places.shape))
        cells = grid.assign(seen[:, 0], seen[:, 1])
        share = np.bincount(cells[cells >= 0], minlength=2) / (cells >= 0).sum()
        np.testing.assert_allclose(found[cell], share, atol=0.02)


def test_without_noise_everybody_is_seen_where_they_are() -> None:
    np.testing.assert_array_equal(HEXAGONS.noise(0.0).toarray(), np.eye(HEXAGONS.n_cells))


def test_cells_too_small_for_the_squares_still_have_their_noise() -> None:
    shapes = np.array([box(0, 0, 1000, 1000), box(1000, 0, 2000, 1000), box(2010, 10, 2012, 12)])
    many = np.concatenate([shapes, [box(0, 1000 * k, 1000, 1000 * k + 1000) for k in range(1, 20)]])
    chance = area_noise(many, 300.0).toarray()
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert chance[2, 1] > 0.4, "from the islet most land in the area beside it"


def test_moments_by_hand() -> None:
    triangle = shapely.Polygon([(10, 20), (16, 20), (10, 23)])
    holed = box(0, 0, 4, 4).difference(box(1, 1, 3, 3))
    pair = shapely.MultiPolygon([box(0, 0, 2, 1), box(8, 0, 10, 1)])
    mean, covariance = moments(np.array([triangle, holed, pair], dtype=object))
    np.testing.assert_allclose(mean, [[12, 21], [2, 2], [5, 0.5]])
    # A right triangle of legs a, b: a^2 / 18, b^2 / 18 and -ab / 36.
    np.testing.assert_allclose(covariance[0], [[2, -0.5], [-0.5, 0.5]])
    # Second moments about the middle of the square of 4 less that of 2: (64/3 - 4/3 ... ) / 12.
    whole = (16 * 16 / 12 - 4 * 4 / 12) / 12
    np.testing.assert_allclose(covariance[1], [[whole, 0], [0, whole]], atol=1e-12)
    np.testing.assert_allclose(covariance[2], [[16 + 4 / 12, 0], [0, 1 / 12]], atol=1e-12)


def test_moments_of_hexagons_are_those_of_drawn_places() -> None:
    mean, covariance = HEXAGONS.moments_m
    places = drawn(HEXAGONS.polygons_m[3], 50_000, np.random.default_rng(0))
    side = np.sqrt(HEXAGONS.areas_m2[3])
    np.testing.assert_allclose(mean[3], places.mean(axis=0), atol=0.01 * side)
    np.testing.assert_allclose(covariance[3], np.cov(places.T), atol=0.01 * side**2)


def test_a_neighbour_is_a_cell_that_touches() -> None:
    emission = grid_emission(HEXAGONS, misclassify=0.3)
    for cell, near in enumerate(HEXAGONS.neighbours):
        assert emission[cell, cell] == pytest.approx(0.7)
        assert emission[cell, near] == pytest.approx(np.full(len(near), 0.3 / len(near)))
        assert np.count_nonzero(emission[cell]) == len(near) + 1


def test_start_and_gaussian_emission_are_made_for_any_cells() -> None:
    d = HEXAGONS.n_cells
    start = distance_decay_transmat(HEXAGONS, outside=True)
    assert start.shape == (d + 1, d + 1)
    np.testing.assert_allclose(start.sum(axis=1), 1.0)
    border = HEXAGONS.border_distance_m
    inner, outer = int(border.argmax()), int(border.argmin())
    assert start[outer, d] > start[inner, d], "who is near the border leaves sooner"
    emission = grid_gaussian_emission(HEXAGONS, 100.0, outside=True)
    assert emission.covars.shape == (d + 1, 2, 2)
    variance = HEXAGONS.moments_m[1][0, 0, 0] + 100.0**2
    assert emission.covars[0, 0, 0] == pytest.approx(variance)
