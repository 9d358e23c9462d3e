"""Maps as pydeck decks that ask for no tile: outline, blocks and arrows are their own layers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pydeck as pdk
from pydeck.bindings.json_tools import default_serialize

from agg_core.errors import InputError
from agg_core.grid import Grid
from agg_core.plotting.arrows import (
    Direction,
    arrow_rings,
    arrow_widths,
    flow_differences,
    flows_of_cell,
    select_flows,
)
from agg_core.plotting.theme import (
    ARROW_ALPHA,
    HEAT_ALPHA,
    LIGHT,
    Theme,
    arrow_colours,
    css,
    difference_colours,
    heat_colours,
)

__all__ = [
    "MAP_SIZE_PX",
    "arrow_half_widths_m",
    "arrow_half_widths_px",
    "cell_labels",
    "clip_outline",
    "difference_deck",
    "fit_view",
    "fixes_deck",
    "flow_deck",
    "grid_deck",
    "heat_deck",
]

FloatArray = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]
Outline = Mapping[str, Any]
Records = list[dict[str, Any]]

MAP_SIZE_PX = (540, 500)
"""Width and height that a map is fitted to: two side by side on a page 1,280 px wide."""

DECIMALS = 5
TILE_PX = 512
MARGIN_PX = 16
MAX_HALF_WIDTH = 0.115
MIN_HALF_WIDTH = 0.03
MAX_INSET = 0.24
MAX_MERCATOR_LAT = 85.0
FAINT_ALPHA = 80
RIM_PX = 0.7


def heat_deck(
    grid: Grid,
    counts: npt.ArrayLike,
    *,
    vmax: float,
    outline: Outline | None = None,
    theme: Theme = LIGHT,
    selected: int | None = None,
    size_px: tuple[int, int] = MAP_SIZE_PX,
) -> pdk.Deck:
    """People per block, counts (d,), on a colour scale that ends at `vmax` people.

    Empty blocks stay clear. `selected` draws a frame round one cell.
    """
    people = _per_cell(grid, counts)
    cells = _cells(grid, theme)
    fills = heat_colours(theme, people, vmax)
    for cell, fill, number in zip(cells, fills.tolist(), people.tolist(), strict=True):
        cell["fill"] = [*fill, HEAT_ALPHA if number > 0 else 0]
        cell["people"] = round(number, 2)
        cell["what"] = f"{_people(number)} people"
    layers = [*_ground(grid.bounds, outline, theme), _cell_layer(cells)]
    return _deck(grid.bounds, [*layers, *_frame(grid, selected, theme)], theme, size_px)


def flow_deck(
    grid: Grid,
    flows: pd.DataFrame,
    *,
    vmax: float,
    threshold: float,
    top_n: int | None = 300,
    outline: Outline | None = None,
    theme: Theme = LIGHT,
    totals: npt.ArrayLike | None = None,
    totals_vmax: float | None = None,
    reference: pd.DataFrame | None = None,
    names: tuple[str, str] = ("estimate", "truth"),
    selected: int | None = None,
    direction: Direction | None = None,
    size_px: tuple[int, int] = MAP_SIZE_PX,
) -> pdk.Deck:
    """Arrows of the flows that `select_flows` keeps, coloured and sized on a scale up to `vmax`.

    `flows` has columns origin, dest, count in people per step. `totals` (d,) people per cell give
    a faint heat beneath, up to `totals_vmax` (its own maximum without). `reference`, a table like
    `flows`, adds its count to the text that shows under the pointer; `names` call the two.
    `selected` frames a cell; with a `direction` only the arrows into it, out of it or both remain.
    Flows from or to the state outside (`grid.n_cells`) have no arrow; `select_flows` counts them.
    """
    drawn = _of_selected(flows, selected, direction)
    chosen = select_flows(drawn, threshold, top_n, n_cells=grid.n_cells).frame
    count = chosen["count"].to_numpy(dtype=float)
    what = [f"{_people(number)} people per step" for number in count]
    if reference is not None:
        other = _matching(chosen, reference)
        what = [
            f"{names[0]}: {text}\n{names[1]}: {_people(number)} people per step"
            for text, number in zip(what, other, strict=True)
        ]
    arrows = _arrows(grid, chosen, count, vmax, arrow_colours(theme, count, vmax), what)
    cells = _flow_cells(grid, flows, theme)
    if totals is not None:
        _tint(cells, _per_cell(grid, totals), totals_vmax, theme)
    layers = [*_ground(grid.bounds, outline, theme), _cell_layer(cells)]
    layers += [*_frame(grid, selected, theme), _arrow_layer(arrows, theme)]
    return _deck(grid.bounds, layers, theme, size_px)


def difference_deck(
    grid: Grid,
    estimate: pd.DataFrame,
    truth: pd.DataFrame,
    *,
    vmax: float,
    threshold: float,
    top_n: int | None = 300,
    outline: Outline | None = None,
    theme: Theme = LIGHT,
    names: tuple[str, str] = ("estimate", "truth"),
    selected: int | None = None,
    direction: Direction | None = None,
    size_px: tuple[int, int] = MAP_SIZE_PX,
) -> pdk.Deck:
    """Arrows of estimate minus truth where they differ by `threshold` people per step or more.

    Orange where the estimate is greater, blue where it is smaller; the scale ends at -vmax, vmax.
    `selected` and `direction` as in `flow_deck`.
    """
    both = _of_selected(flow_differences(estimate, truth), selected, direction)
    chosen = select_flows(both, threshold, top_n, n_cells=grid.n_cells).frame
    here, there = chosen["estimate"].to_numpy(dtype=float), chosen["truth"].to_numpy(dtype=float)
    what = [
        f"{_people(a - b, sign=True)} people per step\n"
        f"{names[0]}: {_people(a)}, {names[1]}: {_people(b)}"
        for a, b in zip(here, there, strict=True)
    ]
    colours = difference_colours(theme, here - there, vmax)
    arrows = _arrows(grid, chosen, here - there, vmax, colours, what)
    layers = [*_ground(grid.bounds, outline, theme), _cell_layer(_cells(grid, theme))]
    layers += [*_frame(grid, selected, theme), _arrow_layer(arrows, theme)]
    return _deck(grid.bounds, layers, theme, size_px)


def grid_deck(
    grid: Grid,
    outline: Outline | None = None,
    *,
    theme: Theme = LIGHT,
    size_px: tuple[int, int] = MAP_SIZE_PX,
) -> pdk.Deck:
    """The empty grid over the outline, with its row and column numbers along two sides."""
    cells = _cells(grid, theme)
    for cell in cells:
        cell["fill"] = [*theme.arrow[1], 28]
        cell["line"] = [*theme.grid_line, 190]
    layers = [*_ground(grid.bounds, outline, theme), _cell_layer(cells)]
    numbers = _edge_numbers(grid)
    if numbers:
        layers.append(_number_layer(numbers, theme))
    return _deck(grid.bounds, layers, theme, size_px, margin_px=MARGIN_PX * 2)


def fixes_deck(
    lon: npt.ArrayLike,
    lat: npt.ArrayLike,
    bounds: Bounds,
    *,
    outline: Outline | None = None,
    theme: Theme = LIGHT,
    max_points: int = 5_000,
    size_px: tuple[int, int] = MAP_SIZE_PX,
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
        get_fill_color=[*theme.series[0], 110],
        get_radius=2.2,
        radius_units="'pixels'",
        pickable=False,
    )
    layers = [*_ground(bounds, outline, theme), fixes]
    return _deck(bounds, layers, theme, size_px, tooltip=False)


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


def clip_outline(outline: Outline, bounds: Bounds, *, padding: float = 0.35) -> dict[str, Any]:
    """The features of a GeoJSON collection near the bounds: shapes only, rounded, uncut.

    A feature stays when its bounding box meets the bounds widened by `padding` of their size.
    Properties are left behind.
    """
    west, south, east, north = bounds
    pad_x, pad_y = padding * (east - west), padding * (north - south)
    near = []
    for feature in outline["features"]:
        shape = feature["geometry"]
        if not shape or not shape.get("coordinates"):
            continue
        places = np.array(list(_positions(shape["coordinates"])))
        low, high = places.min(axis=0), places.max(axis=0)
        if (
            low[0] <= east + pad_x
            and high[0] >= west - pad_x
            and low[1] <= north + pad_y
            and high[1] >= south - pad_y
        ):
            geometry = {"type": shape["type"], "coordinates": _rounded(shape["coordinates"])}
            near.append({"type": "Feature", "properties": {}, "geometry": geometry})
    return {"type": "FeatureCollection", "features": near}


def cell_labels(grid: Grid) -> list[str]:
    """Name of each cell: row and column counted from 0 in the south-west, or its number."""
    if _is_rectangle(grid):
        return [f"row {i // grid.cols}, column {i % grid.cols}" for i in range(grid.n_cells)]
    return [f"cell {cell}" for cell in range(grid.n_cells)]


def arrow_half_widths_m(grid: Grid) -> tuple[float, float]:
    """Least and greatest half width of an arrow on this grid's maps, in metres."""
    unit = _unit_m(grid)
    return MIN_HALF_WIDTH * unit, MAX_HALF_WIDTH * unit


def arrow_half_widths_px(grid: Grid, size_px: tuple[int, int] = MAP_SIZE_PX) -> tuple[float, float]:
    """Least and greatest half width in pixels before anyone zooms: for the legend of the map."""
    view = fit_view(grid.bounds, *size_px, margin_px=MARGIN_PX)
    west, _, east, _ = grid.bounds
    ends = grid.to_metres([[west, view.latitude], [east, view.latitude]])
    width_px = TILE_PX * 2**view.zoom * (east - west) / 360
    px_per_m = width_px / float(np.hypot(*(ends[1] - ends[0])))
    least, greatest = arrow_half_widths_m(grid)
    return least * px_per_m, greatest * px_per_m


def _is_rectangle(grid: Grid) -> bool:
    return grid.rows * grid.cols == grid.n_cells


def _unit_m(grid: Grid) -> float:
    """Side of a typical block in metres, kept between 1/20 and 1/10 of the map.

    Arrows of a very fine grid would be hairs and those of a very coarse one would hide the map.
    """
    west, south, east, north = grid.bounds
    corners = grid.to_metres([[west, south], [east, south], [west, north]])
    area = np.hypot(*(corners[1] - corners[0])) * np.hypot(*(corners[2] - corners[0]))
    return math.sqrt(float(area)) / min(max(math.sqrt(grid.n_cells), 10.0), 20.0)


def _mercator(lat: float) -> float:
    clipped = min(max(lat, -MAX_MERCATOR_LAT), MAX_MERCATOR_LAT)
    return math.asinh(math.tan(math.radians(clipped)))


def _people(number: float, *, sign: bool = False) -> str:
    """A number of people to read: whole from 10 on, one decimal below."""
    digits = 0 if abs(number) >= 9.95 else 1
    return f"{number:{'+' if sign else ''},.{digits}f}"


def _of_selected(
    flows: pd.DataFrame, selected: int | None, direction: Direction | None
) -> pd.DataFrame:
    if selected is None or direction is None:
        return flows
    return flows_of_cell(flows, selected, direction)


def _per_cell(grid: Grid, counts: npt.ArrayLike) -> FloatArray:
    people = np.asarray(counts, dtype=float)
    if people.shape != (grid.n_cells,):
        raise InputError(
            f"A map of this grid needs one number for each of its {grid.n_cells} cells; "
            f"it was given an array of shape {people.shape}."
        )
    if not (np.isfinite(people) & (people >= 0)).all():
        raise InputError("People per cell must be finite numbers, 0 or more.")
    return people


def _lonlat(lon: npt.ArrayLike, lat: npt.ArrayLike) -> FloatArray:
    x, y = np.asarray(lon, dtype=float), np.asarray(lat, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or not np.isfinite([x, y]).all():
        raise InputError("Fixes need one finite longitude and one finite latitude each.")
    return np.column_stack([x, y])


def _cells(grid: Grid, theme: Theme) -> Records:
    rings = [np.round(ring, DECIMALS).tolist() for ring in grid.rings()]
    line = [*theme.grid_line, 70]
    return [
        {"cell": cell, "ring": ring, "fill": [0, 0, 0, 0], "line": line, "where": label, "what": ""}
        for cell, (ring, label) in enumerate(zip(rings, cell_labels(grid), strict=True))
    ]


def _flow_cells(grid: Grid, flows: pd.DataFrame, theme: Theme) -> Records:
    """Cells that tell how many come in, go out and stay; ends outside the grid count too."""
    origin = flows["origin"].to_numpy(dtype=np.int64)
    dest = flows["dest"].to_numpy(dtype=np.int64)
    count = flows["count"].to_numpy(dtype=float)
    moves = origin != dest
    d = grid.n_cells
    into = np.bincount(dest[moves], count[moves], d + 1)
    out_of = np.bincount(origin[moves], count[moves], d + 1)
    stays = np.bincount(origin[~moves], count[~moves], d + 1)
    cells = _cells(grid, theme)
    for i, cell in enumerate(cells):
        cell["what"] = (
            f"in: {_people(into[i])}, out: {_people(out_of[i])} people per step"
            f"\nstay: {_people(stays[i])}"
        )
    return cells


def _tint(cells: Records, people: FloatArray, vmax: float | None, theme: Theme) -> None:
    top = float(people.max()) if vmax is None else vmax
    if vmax is None and top <= 0:
        return
    fills = heat_colours(theme, people, top).tolist()
    for cell, fill, number in zip(cells, fills, people.tolist(), strict=True):
        cell["fill"] = [*fill, FAINT_ALPHA if number > 0 else 0]
        cell["what"] = f"{_people(number)} people\n{cell['what']}"


def _matching(flows: pd.DataFrame, reference: pd.DataFrame) -> FloatArray:
    """Count of the same origin and dest in another table, 0 where it has none."""
    pairs = flows[["origin", "dest"]].merge(
        reference[["origin", "dest", "count"]], on=["origin", "dest"], how="left"
    )
    return pairs["count"].fillna(0.0).to_numpy(dtype=float)


def _arrows(
    grid: Grid,
    chosen: pd.DataFrame,
    value: FloatArray,
    vmax: float,
    colours: npt.NDArray[np.int64],
    what: Sequence[str],
) -> Records:
    """One record per flow, the smallest first, so that the largest is drawn on top."""
    origin = chosen["origin"].to_numpy(dtype=np.int64)
    dest = chosen["dest"].to_numpy(dtype=np.int64)
    half = arrow_widths(np.abs(value), vmax, *arrow_half_widths_m(grid))
    centres = grid.centroids_m
    rims = RIM_PX * np.clip(half / arrow_half_widths_m(grid)[1] * 2, 0.0, 1.0)
    rings_m = arrow_rings(centres[origin], centres[dest], half, max_inset=MAX_INSET * _unit_m(grid))
    rings = grid.to_degrees(rings_m.reshape(-1, 2)).reshape(rings_m.shape)
    labels = cell_labels(grid)
    records = [
        {
            "origin": a,
            "dest": b,
            "count": round(number, 2),
            "ring": ring,
            "rim": rim,
            "fill": [*colour, ARROW_ALPHA],
            "where": f"from {labels[a]} to {labels[b]}",
            "what": text,
        }
        for a, b, number, ring, rim, colour, text in zip(
            origin.tolist(),
            dest.tolist(),
            value.tolist(),
            np.round(rings, DECIMALS).tolist(),
            np.round(rims, 2).tolist(),
            colours.tolist(),
            what,
            strict=True,
        )
    ]
    return records[::-1]


def _steady(part: str, colour: str | list[int]) -> dict[str, Any]:
    """Fill colour given to the drawn part of a layer itself.

    Streamlit fades the `getFillColor` of all that is not selected, which would fade the flows of
    the very cell that was clicked; it leaves the colour of a part as it is.
    """
    return {part: {"getFillColor": colour}}


def _cell_layer(cells: Records) -> pdk.Layer:
    return pdk.Layer(
        "PolygonLayer",
        cells,
        id="cells",
        get_polygon="ring",
        _subLayerProps=_steady("fill", "@@=fill"),
        get_line_color="line",
        get_line_width=0.6,
        line_width_units="'pixels'",
        pickable=True,
    )


def _arrow_layer(arrows: Records, theme: Theme) -> pdk.Layer:
    """Arrows with a rim in the colour of the land, thinner on thin ones, that parts crossings."""
    return pdk.Layer(
        "PolygonLayer",
        arrows,
        id="arrows",
        get_polygon="ring",
        _subLayerProps=_steady("fill", "@@=fill"),
        get_line_color=[*theme.land, 220],
        get_line_width="rim",
        line_width_units="'pixels'",
        pickable=True,
        auto_highlight=True,
        highlight_color=[*theme.series[1], 255],
    )


def _frame(grid: Grid, selected: int | None, theme: Theme) -> list[pdk.Layer]:
    if selected is None or not 0 <= selected < grid.n_cells:
        return []
    ring = np.round(grid.rings()[selected], DECIMALS).tolist()
    return [
        pdk.Layer(
            "PolygonLayer",
            [{"ring": ring}],
            id="selected",
            get_polygon="ring",
            filled=False,
            get_line_color=[*theme.text, 255],
            get_line_width=2,
            line_width_units="'pixels'",
            pickable=False,
        )
    ]


def _ground(bounds: Bounds, outline: Outline | None, theme: Theme) -> list[pdk.Layer]:
    """The water, wide enough to pan over, and the land upon it.

    An outline that does not reach over the whole extent says nothing of where the water is: then
    all is land.
    """
    near = None if outline is None else clip_outline(outline, bounds)
    water_known = near is not None and _covers(near, bounds)
    west, south, east, north = bounds
    wide, high = 10 * (east - west), 10 * (north - south)
    left, right = max(west - wide, -180.0), min(east + wide, 180.0)
    low = max(south - high, -MAX_MERCATOR_LAT)
    top = min(north + high, MAX_MERCATOR_LAT)
    ring = [[left, low], [right, low], [right, top], [left, top], [left, low]]
    water = pdk.Layer(
        "PolygonLayer",
        [{"ring": np.round(ring, DECIMALS).tolist()}],
        id="background",
        get_polygon="ring",
        _subLayerProps=_steady("fill", [*(theme.background if water_known else theme.land), 255]),
        stroked=False,
        pickable=False,
    )
    if near is None:
        return [water]
    land = pdk.Layer(
        "GeoJsonLayer",
        near,
        id="outline",
        _subLayerProps=_steady("polygons-fill", [*theme.land, 255]),
        get_line_color=[*theme.outline, 255],
        get_line_width=0.7,
        line_width_units="'pixels'",
        pickable=False,
    )
    return [water, land]


def _covers(outline: Outline, bounds: Bounds) -> bool:
    """Whether the box about all features holds the bounds."""
    places = np.array(
        [
            place
            for feature in outline["features"]
            for place in _positions(feature["geometry"]["coordinates"])
        ]
    )
    if not len(places):
        return False
    (west, south), (east, north) = places.min(axis=0), places.max(axis=0)
    return bool(
        west <= bounds[0] and south <= bounds[1] and east >= bounds[2] and north >= bounds[3]
    )


def _edge_numbers(grid: Grid) -> Records:
    """Row numbers west of the grid and column numbers south of it."""
    if not _is_rectangle(grid):
        return []
    rows, cols = grid.rows, grid.cols
    west, south, _, _ = grid.bounds
    centres = grid.centroids
    numbers = [
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


class _CompactDeck(pdk.Deck):  # type: ignore[misc]  # pydeck has no types
    """A deck whose JSON has no indents: a quarter of the bytes on the way to the browser."""

    def to_json(self) -> str:
        return json.dumps(self, sort_keys=True, default=default_serialize, separators=(",", ":"))


def _deck(
    bounds: Bounds,
    layers: list[pdk.Layer],
    theme: Theme,
    size_px: tuple[int, int],
    *,
    margin_px: int = MARGIN_PX,
    tooltip: bool = True,
) -> pdk.Deck:
    """A flat map without tiles.

    The text under the pointer is plain text, never HTML, so a name in the data cannot act.
    """
    style = {
        "backgroundColor": css(theme.paper, 0.94),
        "color": css(theme.text),
        "border": f"1px solid {css(theme.outline)}",
        "borderRadius": "4px",
        "fontSize": "13px",
        "padding": "6px 8px",
    }
    controller = {"dragRotate": False, "touchRotate": False, "keyboard": {"rotateSpeedX": 0}}
    return _CompactDeck(
        layers=layers,
        views=[pdk.View(type="MapView", controller=controller)],
        initial_view_state=fit_view(bounds, *size_px, margin_px=margin_px),
        map_provider=None,
        height=size_px[1],
        tooltip={"text": "{where}\n{what}", "style": style} if tooltip else False,
    )


def _positions(coordinates: Any) -> Iterable[tuple[float, float]]:
    if isinstance(coordinates[0], int | float):
        yield float(coordinates[0]), float(coordinates[1])
        return
    for part in coordinates:
        yield from _positions(part)


def _rounded(coordinates: Any) -> Any:
    if isinstance(coordinates[0], int | float):
        return [round(float(coordinates[0]), DECIMALS), round(float(coordinates[1]), DECIMALS)]
    return [_rounded(part) for part in coordinates]
