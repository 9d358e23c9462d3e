"""Maps of a grid, of people per cell and of fixes, as pydeck decks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pydeck as pdk

from agg_core.base.errors import InputError
from agg_core.plotting.deck import (
    DECIMALS,
    MARGIN_PX,
    PLAIN,
    Bounds,
    Records,
    Scene,
    cell_layer,
    cell_records,
    frame_layers,
    make_deck,
    people_text,
    per_cell,
)
from agg_core.plotting.theme import HEAT_ALPHA, Theme, heat_colours, over_land
from agg_core.space import RectangleGrid
from agg_core.space.grid import BaseGrid

__all__ = ["fixes_deck", "grid_deck", "heat_deck"]

FloatArray = npt.NDArray[np.float64]

TALLEST = 0.22
"""Height of the fullest column of a tilted map, as a share of the extent's longer side."""

MATERIAL = {"ambient": 0.75, "diffuse": 0.43, "shininess": 1, "specularColor": [0, 0, 0]}
"""Under deck.gl's own lights the roof of a column, and with it the scale, keeps its colour."""


def heat_deck(
    grid: BaseGrid,
    counts: npt.ArrayLike,
    *,
    vmax: float,
    scene: Scene = PLAIN,
    selected: int | None = None,
    columns: bool = False,
) -> pdk.Deck:
    """People per cell, counts (d,), on a colour scale that ends at `vmax` people.

    Empty cells stay clear. `selected` draws a frame round one cell. With `columns` the map is
    tilted and each cell stands as high as its people, in the same colours.
    """
    people = per_cell(grid, counts)
    cells = cell_records(grid, scene.theme)
    fills = heat_colours(scene.theme, people, vmax)
    if columns:
        fills = over_land(scene.theme, fills, HEAT_ALPHA)
    alpha = 255 if columns else HEAT_ALPHA
    colours, numbers = fills.tolist(), people.tolist()
    for cell in cells:
        fill, number = colours[cell["cell"]], numbers[cell["cell"]]
        cell["fill"] = [*fill, alpha if number > 0 else 0]
        cell["people"] = round(number, 2)
        cell["what"] = f"{people_text(number)} people"
    layer = (
        _column_layer(cells, _tallest_m(grid) / vmax, scene.theme) if columns else cell_layer(cells)
    )
    layers = [layer, *frame_layers(grid, selected, scene.theme)]
    return make_deck(grid.bounds, layers, scene, tilted=columns)


def _tallest_m(grid: BaseGrid) -> float:
    return TALLEST * max(grid.extent_m)


def _column_layer(cells: Records, m_per_person: float, theme: Theme) -> pdk.Layer:
    """Opaque cells in the colours that flat ones have over land, their edges drawn."""
    return pdk.Layer(
        "PolygonLayer",
        [cell for cell in cells if cell["people"] > 0],
        id="cells",
        get_polygon="ring",
        get_elevation="people",
        elevation_scale=m_per_person,
        extruded=True,
        wireframe=True,
        material=MATERIAL,
        get_fill_color="fill",
        get_line_color=[*theme.land, 255],
        pickable=True,
    )


def grid_deck(grid: BaseGrid, *, scene: Scene = PLAIN) -> pdk.Deck:
    """The empty grid over the outline; rows and columns have their numbers along two sides."""
    theme = scene.theme
    cells = cell_records(grid, theme)
    for cell in cells:
        cell["fill"] = [*theme.arrow[1], 28]
        cell["line"] = [*theme.grid_line, 190]
    layers = [cell_layer(cells)]
    if isinstance(grid, RectangleGrid):
        layers.append(_number_layer(_edge_numbers(grid), theme))
    return make_deck(grid.bounds, layers, scene, margin_px=MARGIN_PX * 2)


def fixes_deck(
    lon: npt.ArrayLike,
    lat: npt.ArrayLike,
    bounds: Bounds,
    *,
    scene: Scene = PLAIN,
    max_points: int = 5_000,
) -> pdk.Deck:
    """At most `max_points` fixes (n,) in degrees, always the same sample of the same fixes.

    Raises
    ------
    InputError
        If the two differ in length or hold something that is not a number.
    """
    places = _lonlat(lon, lat)
    if len(places) > max_points:
        keep = np.random.default_rng(0).choice(len(places), max_points, replace=False)
        places = places[np.sort(keep)]
    fixes = pdk.Layer(
        "ScatterplotLayer",
        [{"at": place} for place in np.round(places, DECIMALS).tolist()],
        id="fixes",
        get_position="at",
        get_fill_color=[*scene.theme.series[0], 110],
        get_radius=2.2,
        radius_units="'pixels'",
        pickable=False,
    )
    return make_deck(bounds, [fixes], scene, tooltip=False)


def _lonlat(lon: npt.ArrayLike, lat: npt.ArrayLike) -> FloatArray:
    x, y = np.asarray(lon, dtype=float), np.asarray(lat, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or not np.isfinite([x, y]).all():
        raise InputError(
            "Fixes need one finite longitude and one finite latitude each.", code="malformed-fixes"
        )
    return np.column_stack([x, y])


def _edge_numbers(grid: RectangleGrid) -> Records:
    """Row numbers west of the grid and column numbers south of it."""
    rows, cols = grid.rows, grid.cols
    west, south, _, _ = grid.bounds
    centres = grid.centroids
    numbers: list[dict[str, Any]] = [
        {"at": [west, centres[row * cols][1]], "text": str(row), "offset": [-11, 0]}
        for row in range(0, rows, _stride(rows))
    ]
    numbers += [
        {"at": [centres[col][0], south], "text": str(col), "offset": [0, 11]}
        for col in range(0, cols, _stride(cols))
    ]
    for number in numbers:
        number["at"] = np.round(number["at"], DECIMALS).tolist()
    return numbers


def _stride(n: int) -> int:
    return max(1, math.ceil(n / 20))


def _number_layer(numbers: Records, theme: Theme) -> pdk.Layer:
    return pdk.Layer(
        "TextLayer",
        numbers,
        id="labels",
        get_position="at",
        get_text="text",
        get_pixel_offset="offset",
        get_color=[*theme.text, 255],
        get_size=11,
        pickable=False,
    )
