"""Flow maps as pydeck decks: arrows of an estimate or a truth, and of their difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pydeck as pdk

from agg_core.plotting.arrows import FlowSelection, arrow_rings, arrow_widths, select_flows
from agg_core.plotting.deck import (
    DECIMALS,
    PLAIN,
    Records,
    Scene,
    cell_layer,
    cell_records,
    frame_layers,
    make_deck,
    people_text,
    px_per_m,
    steady,
    typical_side_m,
)
from agg_core.plotting.theme import (
    ARROW_ALPHA,
    FADED_ALPHA,
    SHADE_ALPHA,
    Theme,
    arrow_colours,
    difference_colours,
    heat_colours,
)
from agg_core.space.grid import BaseGrid
from agg_core.tables.flows import (
    Direction,
    cell_totals,
    counts_of,
    flow_differences,
    flows_of_cell,
    net_flows,
)

__all__ = [
    "SHADES",
    "Shade",
    "arrow_half_widths_m",
    "arrow_half_widths_px",
    "difference_deck",
    "drawn_flows",
    "flow_deck",
    "flow_rings",
]

FloatArray = npt.NDArray[np.float64]

Shade = Literal["people", "incoming", "outgoing", "stays", "change"]
SHADES: tuple[Shade, ...] = ("people", "incoming", "outgoing", "stays", "change")
"""What the shade of a cell may stand for: columns of `agg_core.tables.flows.cell_totals`."""

MAX_HALF_WIDTH = 0.115
MIN_HALF_WIDTH = 0.03
MAX_INSET = 0.24
LEAST_SHADED = 0.5
"""An estimate leaves traces of people everywhere; less than half a person is not shaded."""
RIM_PX = 0.7


def flow_deck(
    grid: BaseGrid,
    flows: pd.DataFrame,
    *,
    vmax: float,
    threshold: float,
    top_n: int | None = 300,
    scene: Scene = PLAIN,
    shade: Shade | None = None,
    shade_vmax: float | None = None,
    reference: pd.DataFrame | None = None,
    names: tuple[str, str] = ("estimate", "truth"),
    net: bool = False,
    selected: int | None = None,
    direction: Direction = "both",
) -> pdk.Deck:
    """Arrows of the flows that `drawn_flows` keeps, coloured and sized on a scale up to `vmax`.

    `flows` has columns origin, dest, count in people per step. `shade` tints each cell by one of
    its totals, up to `shade_vmax` (the largest on this map without). `reference`, a table like
    `flows`, adds its figures to the text that shows under the pointer; `names` call the two.
    `net` draws what is left of each pair when the way back is taken off. `selected` frames a
    cell and leaves only the arrows into it, out of it or both.
    A column `resolved` of `flows` fades the arrows of flows that the data do not resolve; columns
    `low` and `high` are the ends of an interval, told under the pointer.
    Flows from or to the state outside (`grid.n_cells`) have no arrow; `drawn_flows` counts them.
    """
    chosen = drawn_flows(
        grid, flows, threshold, top_n, net=net, selected=selected, direction=direction
    ).frame
    count = chosen["count"].to_numpy(dtype=float)
    unit = "more people per step than back" if net else "people per step"
    what = [f"{unit}: {people_text(number)}" for number in count]
    if reference is not None:
        what = [
            f"{unit}\n{names[0]}: {people_text(here)}\n{names[1]}: {people_text(there)}"
            for here, there in zip(count, _same_pairs(chosen, reference, net), strict=True)
        ]
    what = [text + sure for text, sure in zip(what, _sureness(chosen), strict=True)]
    arrows = _arrows(grid, chosen, count, vmax, arrow_colours(scene.theme, count, vmax), what)
    totals = cell_totals(flows, grid.n_cells)
    cells = cell_records(grid, scene.theme)
    if reference is None:
        _tell_totals(cells, [("", totals)])
    else:
        beside = cell_totals(reference, grid.n_cells)
        _tell_totals(cells, [(f"{names[0]}: ", totals), (f"{names[1]}: ", beside)])
    if shade is not None:
        _tint(cells, totals[shade].to_numpy(), shade, shade_vmax, scene.theme)
    return _flow_map(grid, cells, arrows, selected, scene)


def difference_deck(
    grid: BaseGrid,
    estimate: pd.DataFrame,
    truth: pd.DataFrame,
    *,
    vmax: float,
    threshold: float,
    top_n: int | None = 300,
    scene: Scene = PLAIN,
    names: tuple[str, str] = ("estimate", "truth"),
    net: bool = False,
    selected: int | None = None,
    direction: Direction = "both",
) -> pdk.Deck:
    """Arrows of estimate minus truth where they differ by more than `threshold` people per step.

    Orange where the estimate is greater, blue where it is smaller; the scale ends at -vmax, vmax.
    `net`, `selected` and `direction` as in `flow_deck`.
    """
    pair = (net_flows(estimate), net_flows(truth)) if net else (estimate, truth)
    chosen = drawn_flows(
        grid, flow_differences(*pair), threshold, top_n, selected=selected, direction=direction
    ).frame
    here, there = chosen["estimate"].to_numpy(dtype=float), chosen["truth"].to_numpy(dtype=float)
    what = [
        f"people per step: {people_text(a - b, sign=True)}\n"
        f"{names[0]}: {people_text(a)}\n{names[1]}: {people_text(b)}"
        for a, b in zip(here, there, strict=True)
    ]
    colours = difference_colours(scene.theme, here - there, vmax)
    arrows = _arrows(grid, chosen, here - there, vmax, colours, what)
    cells = cell_records(grid, scene.theme)
    _tell_totals(
        cells,
        [
            (f"{name}: ", cell_totals(table, grid.n_cells))
            for name, table in zip(names, (estimate, truth), strict=True)
        ],
    )
    return _flow_map(grid, cells, arrows, selected, scene)


def drawn_flows(
    grid: BaseGrid,
    flows: pd.DataFrame,
    threshold: float,
    top_n: int | None = 300,
    *,
    net: bool = False,
    selected: int | None = None,
    direction: Direction = "both",
) -> FlowSelection:
    """The flows that a map of these choices draws, and what it leaves out."""
    table = net_flows(flows) if net else flows
    if selected is not None:
        table = flows_of_cell(table, selected, direction)
    return select_flows(table, threshold, top_n, n_cells=grid.n_cells)


def arrow_half_widths_m(grid: BaseGrid) -> tuple[float, float]:
    """Least and greatest half width of an arrow on this grid's maps, in metres."""
    unit = typical_side_m(grid)
    return MIN_HALF_WIDTH * unit, MAX_HALF_WIDTH * unit


def arrow_half_widths_px(grid: BaseGrid, scene: Scene = PLAIN) -> tuple[float, float]:
    """Least and greatest half width in pixels before anyone zooms: for the legend of the map."""
    least, greatest = arrow_half_widths_m(grid)
    scale = px_per_m(grid, scene)
    return least * scale, greatest * scale


def flow_rings(
    grid: BaseGrid, chosen: pd.DataFrame, size: FloatArray, vmax: float
) -> tuple[FloatArray, FloatArray]:
    """Outlines (n, 8, 2) of arrows in degrees, and their half widths (n,) in metres."""
    centres = grid.centroids_m
    half = arrow_widths(size, vmax, *arrow_half_widths_m(grid))
    rings_m = arrow_rings(
        centres[chosen["origin"].to_numpy(dtype=np.int64)],
        centres[chosen["dest"].to_numpy(dtype=np.int64)],
        half,
        max_inset=MAX_INSET * typical_side_m(grid),
    )
    return grid.to_degrees(rings_m.reshape(-1, 2)).reshape(rings_m.shape), half


def _same_pairs(chosen: pd.DataFrame, reference: pd.DataFrame, net: bool) -> FloatArray:
    """What the other table says of the drawn pairs; net of the way back it may be negative."""
    there = counts_of(reference, chosen["origin"], chosen["dest"])
    return there - counts_of(reference, chosen["dest"], chosen["origin"]) if net else there


def _sureness(chosen: pd.DataFrame) -> list[str]:
    """Lines on how sure each flow is, as far as the table says."""
    lines = [""] * len(chosen)
    if {"low", "high"} <= set(chosen.columns):
        lines = [
            f"\nbetween {people_text(low)} and {people_text(high)}" if np.isfinite(low) else ""
            for low, high in zip(chosen["low"], chosen["high"], strict=True)
        ]
    return [
        line if sure else f"{line}\nnot resolved by the data"
        for line, sure in zip(lines, _resolved(chosen), strict=True)
    ]


def _resolved(chosen: pd.DataFrame) -> list[bool]:
    if "resolved" not in chosen.columns:
        return [True] * len(chosen)
    return chosen["resolved"].astype(bool).tolist()


def _tell_totals(cells: Records, sides: Sequence[tuple[str, pd.DataFrame]]) -> None:
    """Cells that tell how many come in, go out and stay; ends outside the grid count too."""
    columns = [
        (name, *(totals[column].tolist() for column in ("incoming", "outgoing", "stays")))
        for name, totals in sides
    ]
    for cell in cells:
        i = cell["cell"]
        lines = [
            f"{name}in {people_text(into[i])}, out {people_text(out_of[i])}, "
            f"stay {people_text(stays[i])}"
            for name, into, out_of, stays in columns
        ]
        cell["what"] = "\n".join(["people per step", *lines])


def _tint(
    cells: Records, totals: FloatArray, shade: Shade, vmax: float | None, theme: Theme
) -> None:
    size = np.abs(totals)
    top = float(size.max()) if vmax is None else vmax
    if top <= 0:
        return
    colours = (difference_colours if shade == "change" else heat_colours)(theme, totals, top)
    fills, sizes = colours.tolist(), size.tolist()
    for cell in cells:
        fill, number = fills[cell["cell"]], sizes[cell["cell"]]
        cell["fill"] = [*fill, SHADE_ALPHA if number >= LEAST_SHADED else 0]


def _arrows(
    grid: BaseGrid,
    chosen: pd.DataFrame,
    value: FloatArray,
    vmax: float,
    colours: npt.NDArray[np.int64],
    what: Sequence[str],
) -> Records:
    """One record per flow, the smallest first, so that the largest is drawn on top."""
    origin = chosen["origin"].to_numpy(dtype=np.int64)
    dest = chosen["dest"].to_numpy(dtype=np.int64)
    rings, half = flow_rings(grid, chosen, np.abs(value), vmax)
    rims = RIM_PX * np.clip(half / arrow_half_widths_m(grid)[1] * 2, 0.0, 1.0)
    records = [
        {
            "origin": a,
            "dest": b,
            "count": round(number, 2),
            "ring": ring,
            "rim": rim,
            "fill": [*colour, ARROW_ALPHA if sure else FADED_ALPHA],
            "where": f"from {grid.labels[a]} to {grid.labels[b]}",
            "what": text,
        }
        for a, b, number, ring, rim, colour, text, sure in zip(
            origin.tolist(),
            dest.tolist(),
            value.tolist(),
            np.round(rings, DECIMALS).tolist(),
            np.round(rims, 2).tolist(),
            colours.tolist(),
            what,
            _resolved(chosen),
            strict=True,
        )
    ]
    return records[::-1]


def _flow_map(
    grid: BaseGrid, cells: Records, arrows: Records, selected: int | None, scene: Scene
) -> pdk.Deck:
    """Arrows over cells, each with a rim in the colour of the land that parts crossings."""
    theme = scene.theme
    layer = pdk.Layer(
        "PolygonLayer",
        arrows,
        id="arrows",
        get_polygon="ring",
        _subLayerProps=steady("fill", "@@=fill"),
        get_line_color=[*theme.land, 220],
        get_line_width="rim",
        line_width_units="'pixels'",
        pickable=True,
        auto_highlight=True,
        highlight_color=[*theme.series[1], 255],
    )
    layers = [cell_layer(cells), *frame_layers(grid, selected, theme), layer]
    return make_deck(grid.bounds, layers, scene)
