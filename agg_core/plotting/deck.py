"""What all maps share: the scene, the ground without tiles, cells, and the deck itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pydeck as pdk
from pydeck.bindings.json_tools import default_serialize

from agg_core.base.errors import InputError
from agg_core.io.outlines import OUTLINE_PADDING, covers, cut_outline
from agg_core.plotting.theme import LIGHT, Theme, css
from agg_core.space.grid import BaseGrid

__all__ = [
    "DECIMALS",
    "MAP_SIZE_PX",
    "MARGIN_PX",
    "PLAIN",
    "Bounds",
    "Outline",
    "Records",
    "Scene",
    "cell_layer",
    "cell_records",
    "fit_view",
    "fitting_height_px",
    "frame_layers",
    "ground_json",
    "ground_layers",
    "make_deck",
    "people_text",
    "per_cell",
    "steady",
    "typical_side_m",
]

FloatArray = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]
"""West, south, east, north in degrees."""
Outline = Mapping[str, Any]
"""A GeoJSON FeatureCollection in WGS84."""
Records = list[dict[str, Any]]

MAP_SIZE_PX = (540, 500)
"""Width and height that a map is fitted to: two side by side on a page 1,280 px wide."""

DECIMALS = 5
TILE_PX = 512
MARGIN_PX = 16
MAX_MERCATOR_LAT = 85.0
AREAS = ("Polygon", "MultiPolygon")
TILT_DEGREES = 50
UNDER_ALL = {"depthWriteEnabled": False}
"""Layers of the ground lie in one plane: without depths a tilted map draws one over the other."""

TILT_STEP_BACK = 0.2
"""Levels of zoom less, so that the near edge of a tilted map, which looks wider, still fits."""


@dataclass(frozen=True)
class Scene:
    """What the maps of a page share: the ground, the colours, the size, where one looks.

    outline : shapes under the cells
    ground : land and borders of the world beneath them, of `agg_core.io.ground.ground_near`
    theme : colours
    size_px : width and height that the first view is fitted to
    basemap : address of an online MapLibre style; None, and nothing is asked of the network
    under : the layers of `ground_layers` as `ground_json` made them for the extent and colours,
        so that maps of it share them; None, and each map makes its own of outline and ground
    """

    outline: Outline | None = None
    ground: Outline | None = None
    theme: Theme = LIGHT
    size_px: tuple[int, int] = MAP_SIZE_PX
    basemap: str | None = None
    under: str | None = None


PLAIN = Scene()
"""A scene with nothing chosen."""


def fit_view(bounds: Bounds, width_px: int, height_px: int, *, margin_px: int = 0) -> pdk.ViewState:
    """View that shows the whole of west, south, east, north in a map of a given size.

    In Web Mercator the world is 512 · 2^zoom pixels wide; the zoom is the greatest at which both
    sides of the extent fit, less `margin_px` at each side of the map.
    """
    west, south, east, north = bounds
    bottom, top = _mercator(south), _mercator(north)
    room = max(width_px - 2 * margin_px, 1), max(height_px - 2 * margin_px, 1)
    sides = max((east - west) / 360, 1e-7), max((top - bottom) / (2 * math.pi), 1e-7)
    zoom = min(math.log2(px / (TILE_PX * side)) for px, side in zip(room, sides, strict=True))
    middle = math.degrees(math.atan(math.sinh((bottom + top) / 2)))
    return pdk.ViewState(
        longitude=round((west + east) / 2, DECIMALS),
        latitude=round(middle, DECIMALS),
        zoom=round(zoom, 4),
        pitch=0,
        bearing=0,
    )


def fitting_height_px(bounds: Bounds, width_px: int, *, least: int = 320, most: int = 820) -> int:
    """Height of a map that the bounds fill at this width, within two limits."""
    west, south, east, north = bounds
    # All fixes may lie on one meridian, or at one place.
    shape = (_mercator(north) - _mercator(south)) / math.radians(max(east - west, 1e-7))
    height = (width_px - 2 * MARGIN_PX) * shape + 2 * MARGIN_PX
    return round(min(max(height, least), most))


def typical_side_m(grid: BaseGrid) -> float:
    """Side of a typical cell in metres, kept between 1/20 and 1/10 of the map.

    Arrows of a very fine grid would be hairs and those of a very coarse one would hide the map.
    """
    west, south, east, north = grid.bounds
    corners = grid.to_metres([[west, south], [east, south], [west, north]])
    area = np.hypot(*(corners[1] - corners[0])) * np.hypot(*(corners[2] - corners[0]))
    return math.sqrt(float(area)) / min(max(math.sqrt(grid.n_cells), 10.0), 20.0)


def _mercator(lat: float) -> float:
    clipped = min(max(lat, -MAX_MERCATOR_LAT), MAX_MERCATOR_LAT)
    return math.asinh(math.tan(math.radians(clipped)))


def people_text(number: float, *, sign: bool = False) -> str:
    """A number of people to read: whole from 10 on, one decimal below."""
    digits = 0 if abs(number) >= 9.95 else 1
    return f"{number:{'+' if sign else ''},.{digits}f}"


def per_cell(grid: BaseGrid, counts: npt.ArrayLike) -> FloatArray:
    """Counts (d,) of people, checked.

    Raises
    ------
    InputError
        If there is not one for each cell, or one is negative or not a number.
    """
    people = np.asarray(counts, dtype=float)
    if people.shape != (grid.n_cells,):
        raise InputError(
            f"A map of this grid needs one number for each of its {grid.n_cells} cells; "
            f"it was given an array of shape {people.shape}.",
            code="wrong-shape",
        )
    if not (np.isfinite(people) & (people >= 0)).all():
        raise InputError("People per cell must be finite numbers, 0 or more.", code="not-counts")
    return people


def cell_records(grid: BaseGrid, theme: Theme) -> Records:
    """A clear cell each, with its name for the text under the pointer.

    A cell of several parts, such as a ward with islands, has a record for each.
    """
    line, labels = [*theme.grid_line, 70], grid.labels
    return [
        {
            "cell": cell, "ring": _outline_of(rings), "fill": [0, 0, 0, 0], "line": line,
            "where": labels[cell], "what": "",
        }
        for cell, rings in grid.pieces()
    ]  # fmt: skip


def _outline_of(rings: list[FloatArray]) -> list[Any]:
    """A ring for deck.gl, or a ring and its holes."""
    rounded = [np.round(ring, DECIMALS).tolist() for ring in rings]
    return rounded if len(rounded) > 1 else list(rounded[0])


def steady(part: str, colour: str | list[int]) -> dict[str, Any]:
    """Fill colour given to the drawn part of a layer itself, as its ``_subLayerProps``.

    Streamlit fades the `getFillColor` of all that is not selected, which would fade the flows of
    the very cell that was clicked; it leaves the colour of a part as it is.
    """
    return {part: {"getFillColor": colour}}


def cell_layer(cells: Records) -> pdk.Layer:
    """Cells in their own ``fill`` and ``line`` colours."""
    return pdk.Layer(
        "PolygonLayer",
        cells,
        id="cells",
        get_polygon="ring",
        _subLayerProps=steady("fill", "@@=fill"),
        get_line_color="line",
        get_line_width=0.6,
        line_width_units="'pixels'",
        pickable=True,
    )


def frame_layers(grid: BaseGrid, selected: int | None, theme: Theme) -> list[pdk.Layer]:
    """A frame round the selected cell, or nothing."""
    if selected is None or not 0 <= selected < grid.n_cells:
        return []
    rings = [_outline_of(rings) for cell, rings in grid.pieces() if cell == selected]
    return [
        pdk.Layer(
            "PolygonLayer",
            [{"ring": ring} for ring in rings],
            id="selected",
            get_polygon="ring",
            filled=False,
            get_line_color=[*theme.text, 255],
            get_line_width=2,
            line_width_units="'pixels'",
            pickable=False,
        )
    ]


def ground_layers(bounds: Bounds, scene: Scene) -> list[pdk.Layer]:
    """The water, wide enough to pan over, and the land upon it; nothing over an online basemap.

    Without a ground, an outline that does not reach over the whole extent says nothing of where the
    water is: then all is land.
    """
    if scene.basemap is not None:
        return []
    theme = scene.theme
    near = None if scene.outline is None else cut_outline(scene.outline, bounds, OUTLINE_PADDING)
    world = scene.ground
    water_known = world is not None or (near is not None and covers(near, bounds))
    west, south, east, north = bounds
    wide, high = 10 * (east - west), 10 * (north - south)
    middle = (west + east) / 2 if east > 180 else 0.0
    left, right = max(west - wide, middle - 180), min(east + wide, middle + 180)
    low = max(south - high, -MAX_MERCATOR_LAT)
    top = min(north + high, MAX_MERCATOR_LAT)
    if world is not None:
        middle = (west + east) / 2
        left, low, right, top = middle - 180, -MAX_MERCATOR_LAT, middle + 180, MAX_MERCATOR_LAT
    ring = [[left, low], [right, low], [right, top], [left, top], [left, low]]
    water = pdk.Layer(
        "PolygonLayer",
        [{"ring": np.round(ring, DECIMALS).tolist()}],
        id="background",
        get_polygon="ring",
        _subLayerProps=steady("fill", [*(theme.background if water_known else theme.land), 255]),
        stroked=False,
        parameters=UNDER_ALL,
        pickable=False,
    )
    layers = [water] if world is None else [water, _world_layer(world, theme)]
    if near is None:
        return layers
    has_areas = any(shape["geometry"]["type"] in AREAS for shape in near["features"])
    line = theme.outline if has_areas else theme.grid_line
    land = pdk.Layer(
        "GeoJsonLayer",
        near,
        id="outline",
        _subLayerProps=steady("polygons-fill", [*theme.land, 255]),
        get_line_color=[*line, 255],
        get_line_width=0.7,
        line_width_units="'pixels'",
        parameters=UNDER_ALL,
        pickable=False,
    )
    return [*layers, land]


def ground_json(bounds: Bounds, scene: Scene) -> str:
    """The layers of `ground_layers` as they stand in the JSON of a deck, for ``Scene.under``."""
    return _compact(ground_layers(bounds, scene))[1:-1]


def _world_layer(ground: Outline, theme: Theme) -> pdk.Layer:
    """Land without a line round it, where none shows that it is cut, and borders upon it."""
    shapes = [
        {"type": "Feature", "properties": {}, "geometry": feature["geometry"]}
        for feature in ground["features"]
        if feature["properties"]["kind"] != "place"
    ]
    return pdk.Layer(
        "GeoJsonLayer",
        {"type": "FeatureCollection", "features": shapes},
        id="ground",
        _subLayerProps=steady("polygons-fill", [*theme.land, 255]),
        stroked=False,
        get_line_color=[*theme.outline, 255],
        get_line_width=0.7,
        line_width_units="'pixels'",
        parameters=UNDER_ALL,
        pickable=False,
    )


def _compact(made: Any) -> str:
    return json.dumps(made, sort_keys=True, default=default_serialize, separators=(",", ":"))


LAYERS = '"layers":['


class _CompactDeck(pdk.Deck):  # type: ignore[misc]  # pydeck has no types
    """A deck whose JSON has no indents: a quarter of the bytes on the way to the browser.

    ``under`` is JSON of layers beneath its own.
    """

    def __init__(self, *, under: str, **given: Any) -> None:
        super().__init__(**given)
        self.under = under

    def to_json(self) -> str:
        told = default_serialize(self)
        under = told.pop("under")
        if under and told["layers"]:
            under += ","
        # In a text of the data the quotes would be escaped, so that the first is that of the deck.
        return _compact(told).replace(LAYERS, LAYERS + under, 1)


def make_deck(
    bounds: Bounds,
    layers: list[pdk.Layer],
    scene: Scene,
    *,
    margin_px: int = MARGIN_PX,
    tooltip: bool = True,
    tilted: bool = False,
) -> pdk.Deck:
    """A map of layers over the ground; it lies flat and north is up unless ``tilted``.

    The text under the pointer is plain text, never HTML, so a name in the data cannot act.
    """
    theme = scene.theme
    style = {
        "backgroundColor": css(theme.paper, 0.94),
        "color": css(theme.text),
        "border": f"1px solid {css(theme.outline)}",
        "borderRadius": "4px",
        "fontSize": "13px",
        "padding": "6px 8px",
        # Below the pointer and about it: at the right edge of a map it would else be cut.
        "margin": "18px 0 0 -100px",
    }
    # A click would wait for a second one that might follow; the wheel and buttons zoom as well.
    controller: dict[str, Any] = {
        "dragRotate": tilted, "touchRotate": tilted, "doubleClickZoom": False,
    }  # fmt: skip
    if not tilted:
        controller["keyboard"] = {"rotateSpeedX": 0}
    view = fit_view(bounds, *scene.size_px, margin_px=margin_px)
    if tilted:
        view.pitch = TILT_DEGREES
        view.zoom = round(view.zoom - TILT_STEP_BACK, 4)
    online = {"map_provider": "maplibre", "map_style": scene.basemap}
    return _CompactDeck(
        layers=layers,
        under=ground_json(bounds, scene) if scene.under is None else scene.under,
        views=[pdk.View(type="MapView", controller=controller)],
        initial_view_state=view,
        height=scene.size_px[1],
        tooltip={"text": "{where}\n{what}", "style": style} if tooltip else False,
        **({"map_provider": None} if scene.basemap is None else online),
    )
