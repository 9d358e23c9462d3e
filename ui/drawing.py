"""Lines and cordons that are drawn on the map of the page Evidence, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from agg_core.evidence.lines import (
    Screenline,
    cordon_around,
    cordon_through,
    line_through,
)
from agg_core.plotting.deck import fitting_height_px
from agg_core.plotting.evidence import lines_deck
from agg_core.study.result import FlowResult
from ui.brought import add_lines, brought, trying
from ui.scene import scene
from ui.window import content_width_px

__all__ = ["map_of_lines"]

MAP = "evidence.lines.map"
DRAWN, CLICKS = "evidence.drawn", "evidence.clicks"
"""Names of the cells that a line goes through so far, and how many clicks there have been."""

CORNERS, ENDS = 3, 2
"""Points of a cordon, and of a line, at the least."""

GAP_PX, HIGHEST_PX = 32, 420


def map_of_lines(result: FlowResult, lines: Sequence[Screenline]) -> None:
    """The lines over the cells; cells that are clicked become the points of another one."""
    grid = result.states.placed_grid
    width = (content_width_px() - GAP_PX) * 2 // 5
    size = (width, fitting_height_px(grid.bounds, width, most=HIGHEST_PX))
    points, clicks = _points(result), int(st.session_state.get(CLICKS, 0))
    st.pydeck_chart(
        lines_deck(
            grid, lines, points, growing=grid.centroids[points], clicks=clicks,
            scene=scene(grid.bounds, size),
        ),
        width=width, height=size[1], key=MAP, alt="The lines over the cells",
        on_select=lambda: _clicked(result), selection_mode="single-object",
    )  # fmt: skip
    if points:
        _ways_on(result, points)
    st.caption(
        "Click cells one after the other: a line goes through their middles, and the first cell "
        "again closes it as a cordon. A cell whose middle lies on a line is to the left of it, and "
        "on a cordon inside."
    )


def _points(result: FlowResult) -> list[int]:
    """Numbers of the cells that the line goes through so far."""
    number = {name: cell for cell, name in enumerate(result.states.cells)}
    return [number[name] for name in st.session_state.get(DRAWN, ()) if name in number]


def _keep(result: FlowResult, points: Sequence[int]) -> None:
    st.session_state[DRAWN] = [result.states.cells[cell] for cell in points]


def _clicked(result: FlowResult) -> None:
    """Callback: the cell that was clicked is the next point, or closes the line."""
    objects = st.session_state[MAP].selection.objects
    cells = [int(cell["cell"]) for some in objects.values() for cell in some if "cell" in cell]
    if not cells:
        return
    st.session_state[CLICKS] = int(st.session_state.get(CLICKS, 0)) + 1
    _take(result, cells[-1])


def _take(result: FlowResult, cell: int) -> None:
    points = _points(result)
    if len(points) >= CORNERS and cell == points[0]:
        _closed(result)
    elif cell < result.states.n_cells and points[-1:] != [cell]:
        _keep(result, [*points, cell])


def _undo(result: FlowResult) -> None:
    _keep(result, _points(result)[:-1])


def _ended(result: FlowResult, line: Screenline) -> None:
    add_lines(line)
    _keep(result, [])


def _name(kind: str) -> str:
    """A name for what was drawn that no other line has."""
    names, number = {line.name for line in brought().lines}, 1
    while f"{kind} {number}" in names:
        number += 1
    return f"{kind} {number}"


def _places(result: FlowResult) -> list[tuple[float, float]]:
    places = result.states.placed_grid.centroids[_points(result)].tolist()
    return [(lon, lat) for lon, lat in places]


def _opened(result: FlowResult) -> None:
    trying(lambda: _ended(result, line_through(_name("line"), _places(result))))


def _closed(result: FlowResult) -> None:
    trying(lambda: _ended(result, cordon_through(_name("cordon"), _places(result))))


def _around(result: FlowResult) -> None:
    cells, grid = dict.fromkeys(_points(result)), result.states.placed_grid
    trying(lambda: _ended(result, cordon_around(_name("cordon"), grid, list(cells))))


def _ways_on(result: FlowResult, points: Sequence[int]) -> None:
    """What can be made of the points, and the way back."""
    with st.container(horizontal=True, gap="small"):
        for label, key, icon, least, make in (
            ("Line through them", "line", "polyline", ENDS, _opened),
            ("Close it as a cordon", "closed", "pentagon", CORNERS, _closed),
            ("Cordon around the chosen cells", "cordon", "select_all", 1, _around),
            ("Undo the last point", "undo", "undo", 1, _undo),
        ):
            if len(points) >= least:
                st.button(
                    label, key=f"evidence.map.{key}", icon=f":material/{icon}:", on_click=make,
                    args=(result,), type="tertiary" if key == "undo" else "secondary",
                )  # fmt: skip
