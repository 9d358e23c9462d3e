"""Grids over 180 degrees of longitude: Fiji, the Aleutians, Chukotka."""

import numpy as np
import pytest

from agg_core import Grid
from agg_core.space.grid import OUTSIDE
from agg_core.space.settings import GridSettings
from agg_core.study.suggest import suggest_extent
from tests.faults import refused

LON = [177.5, 179.5, -179.5, -177.5, 0.0, 176.9]


@pytest.mark.parametrize("east", [183.0, -177.0])
def test_cells_go_on_beyond_180_degrees(east):
    grid = Grid.from_bbox(177.0, -19.0, east, -16.0, rows=1, cols=6)
    assert grid.assign(LON, np.full(6, -17.0)).tolist() == [0, 2, 3, 5, OUTSIDE, OUTSIDE]
    assert grid.bounds == (177.0, -19.0, 183.0, -16.0)
    settings = GridSettings(177.0, -19.0, east, -16.0, rows=1, cols=6)
    assert settings.make() == grid


def test_an_extent_that_is_reversed_is_still_refused():
    with refused("empty-extent"):
        Grid.from_bbox(140.0, 35.0, 139.0, 36.0, rows=1, cols=1)
    with refused("extent-out-of-range"):
        Grid.from_bbox(170.0, 35.0, 531.0, 36.0, rows=1, cols=1)


def test_the_extent_of_places_on_both_sides_is_narrow():
    lon = np.concatenate([np.linspace(177, 180, 200), np.linspace(-180, -178, 200)])
    west, _, east, _ = suggest_extent(lon, np.linspace(-19, -16, 400))
    assert 176 < west < 178
    assert 181 < east < 183
