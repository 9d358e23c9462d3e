"""Pieces of the page Flows: controls, maps that answer a click, figures, and the address."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from agg_core.exports.page import html_page
from agg_core.plotting.arrows import FlowSelection
from agg_core.plotting.charts import arrow_legend, difference_legend, heat_legend
from agg_core.plotting.flow_maps import (
    SHADES,
    arrow_half_widths_px,
    difference_deck,
    drawn_flows,
    flow_deck,
)
from agg_core.plotting.theme import SHADE_ALPHA
from agg_core.space.grid import BaseGrid
from agg_core.study.result import ESTIMATE, FlowResult, only_resolved
from agg_core.tables.flows import flow_differences, net_flows
from ui import cached
from ui.address import params_of, set_address, take_away, tell_note
from ui.counts_data import NO_PLACES
from ui.flow_figures import about, cell, comparison, distrust, numbers, unsettled
from ui.flow_view import (
    DIRECTIONS,
    MOST_ARROWS,
    SHOWS,
    FlowView,
    step_label,
    threshold_held,
    times_shown,
)
from ui.linked import linked
from ui.panels import STATIC, source_heading
from ui.paper import paper
from ui.scene import basemap_choice, map_size_px, scene
from ui.shell import theme
from ui.state import Run
from ui.views import KEY, held_view, hold
from ui.window import is_narrow

__all__ = ["clicked_cell", "show"]

STAYS: Literal["session"] = "session"
"""Controls keep what was chosen while they are not shown."""

PLAYING, MOVED_ON = "flows.playing", "flows.moved_on"
PLAY_S = 2.0
LEGEND_PX = {False: 300, True: 420}
NOT_RESOLVED = "faded: not resolved"
LEGEND_ALT = "Width and colour of the arrows by people per step"
SHOW_LABELS = {"both": "Side by side", "difference": "Difference"}
DIRECTION_LABELS = {"both": "In and out", "in": "In", "out": "Out"}
THRESHOLD_LABELS = {
    "threshold": "Arrows above",
    "difference_threshold": "Differences above",
    "cell_threshold": "Cell's arrows above",
}
SHADE_LABELS = {
    "people": "people there",
    "incoming": "coming in",
    "outgoing": "going out",
    "stays": "staying",
    "change": "in minus out",
}

# ------------------------------------------------------------------------------------ page


@dataclass(frozen=True)
class _Pictured:
    """What the maps of one time are drawn from: a table of flows of each source."""

    grid: BaseGrid
    tables: Mapping[str, pd.DataFrame]
    whole: Mapping[str, pd.DataFrame]
    """The same with the flows that are left out, for what stands beside an arrow."""
    names: Mapping[str, str]
    brief: Mapping[str, str]
    """Names for the text under the pointer, where room is small."""
    unit: str
    has_intervals: bool
    measured: bool
    """Whether what stands beside the estimate is a truth that it is measured by."""


def show(run: Run[Any]) -> None:
    """Everything about a run: controls, maps, figures."""
    playing = bool(st.session_state.get(PLAYING))
    st.fragment(_show, run_every=PLAY_S if playing else None)(run)


def _show(run: Run[Any]) -> None:
    whole = cached.result(run.key)
    result = cached.result_of(run.key, held_view(whole).days)
    playing = bool(st.session_state.get(PLAYING))
    view = held_view(result)
    hold(_moved_on(view, result) if playing else view)
    view = _controls(result)
    tell_note(view)
    params = params_of(run, view.to_params(result))
    if not playing:
        set_address(params)
    figures = None
    if view.truth in result.truths:
        figures = cached.comparison(run.key, view.time, view.truth, view.threshold, view.days)
        distrust(figures)
    unsettled(result)
    tables = _tables(result, view)
    if result.states.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
    else:
        _maps(run.key, result, tables, view)
    if view.cell is not None and view.truth is not None:
        moment = view.time if view.step is None else None
        cell(result, tables[ESTIMATE], tables[view.truth], view.cell, view.truth, moment)
    if figures is not None and view.truth is not None:
        comparison(figures, view.threshold, result.source_label(view.truth))
    take_away(run, result, view.time, params, partial(_page, run, result, view))
    if figures is not None and view.truth is not None:
        paper(run, view.truth, view.threshold, view.top_n, view.days)
    if figures is None or result.has_intervals:
        numbers(result, _shown(tables, result, view)[ESTIMATE], tables, view)
    about(result, view.time, run.title)


def _moved_on(view: FlowView, result: FlowResult) -> FlowView:
    """The next moment, unless it is a click that asked for the maps before their time."""
    now = time.monotonic()
    if now - st.session_state.get(MOVED_ON, 0.0) < 0.8 * PLAY_S:
        return view
    st.session_state[MOVED_ON] = now
    return view.next_moment(result)


def _tables(result: FlowResult, view: FlowView) -> dict[str, pd.DataFrame]:
    """The flows of the estimate and of what stands beside it, largest first."""
    sources = [source for source in (ESTIMATE, view.truth) if source is not None]
    return {source: result.table(view.time, source, view.step) for source in sources}


def _shown(
    tables: Mapping[str, pd.DataFrame], result: FlowResult, view: FlowView
) -> Mapping[str, pd.DataFrame]:
    """The flows that arrows are drawn of: those that are resolved, if only these are asked for.

    Of differences those that are resolved on either side that has intervals; a truth has none, and
    is shown whole.
    """
    if not (view.resolved and result.has_intervals):
        return tables
    sure = only_resolved(tables)
    if view.show != "difference":
        return sure
    ends = ["origin", "dest"]
    doubted = [table[ends] for table in sure.values() if "resolved" in table]
    either = pd.concat(doubted).drop_duplicates()
    return {source: table.merge(either, on=ends) for source, table in tables.items()}


def _maps(run: str, result: FlowResult, tables: Mapping[str, pd.DataFrame], view: FlowView) -> None:
    brief = {source: result.source_name(source) for source in tables}
    pictured = _Pictured(
        grid=result.states.placed_grid,
        tables=_shown(tables, result, view),
        whole=tables,
        names={source: source_heading(result, source) for source in tables},
        brief={source: name[0].upper() + name[1:] for source, name in brief.items()},
        unit=f"per {result.step_name}",
        has_intervals=result.has_intervals,
        measured=view.truth in result.truths,
    )
    if view.show == "difference" and view.truth is not None:
        _difference(run, pictured, view, view.truth)
    else:
        _side_by_side(run, pictured, view)
    _legends(run, pictured, view)


# -------------------------------------------------------------------------------- controls


def _controls(result: FlowResult) -> FlowView:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _choose_moment(result)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _choose_arrows(result)
    return held_view(result)


def _choose_moment(result: FlowResult) -> None:
    """When, and what stands beside what."""
    times = times_shown(result)
    if result.times == result.times_of_day:
        st.segmented_control(
            "Time of day", times, required=True, key=f"{KEY}time", persist_state=STAYS,
            width="content",
        )  # fmt: skip
    elif len(times) > 1:
        st.select_slider(
            f"Time of day at which a step begins, {times[1]} to {times[-1]}", times,
            key=f"{KEY}time", persist_state=STAYS,
        )  # fmt: skip
    if len(times) > 1 or st.session_state[f"{KEY}step"] is not None:
        _play_button()
    if result.n_steps:
        at = str(st.session_state[f"{KEY}time"])
        st.selectbox(
            "Step", range(result.n_steps), key=f"{KEY}step", persist_state=STAYS, width=170,
            index=None, placeholder="mean of all",
            format_func=lambda step: step_label(result, at, step),
        )  # fmt: skip
    if result.days:
        st.multiselect(
            "Days", result.days, key=f"{KEY}days", persist_state=STAYS, width=240,
            placeholder="all days",
            help="What happened on these days, per step; what usually happens stays.",
        )  # fmt: skip
    if not result.references:
        return
    st.segmented_control(
        "Show", SHOWS, format_func=SHOW_LABELS.__getitem__, required=True,
        key=f"{KEY}show", persist_state=STAYS, width="content",
    )  # fmt: skip
    if len(result.references) > 1:
        st.selectbox(
            "Beside the estimate", result.references, format_func=result.source_label,
            key=f"{KEY}truth", persist_state=STAYS, width=210,
        )  # fmt: skip


def _choose_arrows(result: FlowResult) -> None:
    """Which flows are arrows, and what else the maps show."""
    whole = st.session_state[f"{KEY}cell"] is None
    threshold = threshold_held(st.session_state[f"{KEY}show"], st.session_state[f"{KEY}cell"])
    st.number_input(
        THRESHOLD_LABELS[threshold], min_value=0.0, format="%g", width=170,
        step=5.0 if threshold == "threshold" else 1.0, help=f"People per {result.step_name}.",
        key=KEY + threshold, persist_state=STAYS,
    )  # fmt: skip
    st.number_input(
        "At most so many", min_value=1, max_value=MOST_ARROWS, step=50,
        key=f"{KEY}top_n", persist_state=STAYS, width=150, help="The largest are drawn.",
    )  # fmt: skip
    st.selectbox(
        "Cell", range(result.states.n_cells), key=f"{KEY}cell", persist_state=STAYS, width=210,
        index=None, placeholder="all cells", format_func=result.states.cells.__getitem__,
        help="Or click a cell or an arrow on a map; click the cell again for all.",
    )  # fmt: skip
    if not whole:
        st.segmented_control(
            "Its flows", DIRECTIONS, format_func=DIRECTION_LABELS.__getitem__, required=True,
            key=f"{KEY}direction", persist_state=STAYS, width="content",
        )  # fmt: skip
    placed = result.states.grid is not None
    if placed and st.session_state[f"{KEY}show"] != "difference":
        st.selectbox(
            "Shade", SHADES, format_func=SHADE_LABELS.__getitem__, width=180, index=None,
            key=f"{KEY}shade", persist_state=STAYS, placeholder="none",
            help="What the shade of a cell stands for.",
        )  # fmt: skip
    with st.popover("More", icon=":material/tune:", key="flows.more"):
        if result.has_intervals:
            st.toggle(
                "Only flows that are resolved", key=f"{KEY}resolved", persist_state=STAYS,
                help="Leaves out flows whose interval is too wide to say that people move so.",
            )  # fmt: skip
        if placed:
            st.toggle(
                "Net flows", key=f"{KEY}net", persist_state=STAYS,
                help="Of each pair of cells only the surplus of one way over the other.",
            )  # fmt: skip
            st.toggle(
                "Begin close to the chosen cell", key=f"{KEY}close", persist_state=STAYS,
                disabled=whole,
            )  # fmt: skip
            basemap_choice()


def _play_button() -> None:
    """A button rather than a switch: what it does next stands on it."""
    playing = bool(st.session_state.get(PLAYING))

    def turn() -> None:
        st.session_state[PLAYING] = not playing
        st.session_state[MOVED_ON] = time.monotonic()

    pressed = st.button(
        "Pause" if playing else "Play", key="flows.play", on_click=turn,
        icon=":material/pause:" if playing else ":material/play_arrow:",
        help=f"Goes through the times of day, one every {PLAY_S:g} seconds.",
    )  # fmt: skip
    if pressed:
        st.rerun()


# ------------------------------------------------------------------------------------ maps


Spot = tuple[str, int]
"""What a map says is selected: the layer ("cells", "arrows") and the number within it."""


def clicked_cell(
    now: Spot | None, before: Spot | None, ends: tuple[int, int] | None, chosen: int | None
) -> int | None:
    """The cell to show after a map has spoken: what it says ``now`` and what it said ``before``.

    A map speaks when it is clicked, and repeats itself when it is drawn anew: then all stays. A
    second click on the same cell takes its selection back and tells nothing else. A click on the
    ``chosen`` cell gives the whole map, one on an arrow its far end as seen from there (``ends``
    are its origin and dest).
    """
    if now == before:
        return chosen
    if now is None:
        if before is None or before[0] != "cells":
            return chosen
        return None if before[1] == chosen else before[1]
    if now[0] == "arrows" and ends is not None:
        return ends[1] if ends[0] == chosen else ends[0]
    return None if now[1] == chosen else now[1]


def _cell_clicked(map_key: str) -> None:
    """Callback of a map: keep the cell to show, as `clicked_cell` says."""
    selection = st.session_state[map_key]["selection"]
    now = next(
        ((layer, int(numbers[0])) for layer, numbers in selection["indices"].items() if numbers),
        None,
    )
    if now is not None and now[0] == "cells":
        # A cell of several parts stands on the map as often.
        now = ("cells", int(selection["objects"]["cells"][0]["cell"]))
    arrows = selection["objects"].get("arrows")
    ends = (int(arrows[0]["origin"]), int(arrows[0]["dest"])) if arrows else None
    memory = f"flows.clicked.{map_key}"
    st.session_state[f"{KEY}cell"] = clicked_cell(
        now, st.session_state.get(memory), ends, st.session_state[f"{KEY}cell"]
    )
    st.session_state[memory] = now


def _draw(deck: Any, height: int, key: str, alt: str) -> None:
    st.pydeck_chart(deck, height=height, key=key, alt=alt, on_select=partial(_cell_clicked, key))


def _map_px(pictured: _Pictured, view: FlowView) -> tuple[int, int]:
    alone = view.show == "difference" or len(pictured.tables) == 1 or is_narrow()
    return map_size_px(pictured.grid.bounds, 1 if alone else 2)


def _side_by_side(run: str, pictured: _Pictured, view: FlowView) -> None:
    """A map of each source, on the same scales."""
    vmax, shade_vmax = cached.flow_scale(run, view.truth, view.days), None
    if view.shade is not None:
        shade_vmax = cached.total_scale(run, view.truth, view.shade, view.days)
    sources = list(pictured.tables)
    size = _map_px(pictured, view)
    below = is_narrow() or len(sources) == 1
    places = [st.container() for _ in sources] if below else st.columns(2, gap="small")
    for place, source, other in zip(places, sources, reversed(sources), strict=True):
        with place:
            name = pictured.names[source]
            if len(sources) > 1:
                st.header(name, anchor=False)
            deck = flow_deck(
                pictured.grid, pictured.tables[source], vmax=vmax, threshold=view.least,
                top_n=view.top_n, scene=scene(size, view.focus(pictured.grid)),
                shade=view.shade, shade_vmax=shade_vmax,
                reference=None if other == source else pictured.whole[other],
                names=(pictured.brief[source], pictured.brief[other]), net=view.net,
                selected=view.cell, direction=view.direction,
            )  # fmt: skip
            _draw(deck, size[1], f"flows.{source}", f"Map of flows: {name}")
            drawn = drawn_flows(
                pictured.grid, pictured.tables[source], view.least, view.top_n, net=view.net,
                selected=view.cell, direction=view.direction,
            )  # fmt: skip
            st.caption(_drawn(drawn, view, pictured.unit))
    if len(sources) > 1:
        linked([f"flows.{source}" for source in sources])


def _difference(run: str, pictured: _Pictured, view: FlowView, truth_source: str) -> None:
    name, other = pictured.names[ESTIMATE], pictured.names[truth_source]
    st.header(f"{name}, minus: {other}", anchor=False)
    estimate, truth = pictured.tables[ESTIMATE], pictured.tables[truth_source]
    size = _map_px(pictured, view)
    deck = difference_deck(
        pictured.grid, estimate, truth, vmax=cached.difference_scale(run, truth_source, view.days),
        threshold=view.least, top_n=view.top_n, scene=scene(size, view.focus(pictured.grid)),
        names=(pictured.brief[ESTIMATE], pictured.brief[truth_source]), net=view.net,
        selected=view.cell, direction=view.direction,
    )  # fmt: skip
    _draw(deck, size[1], "flows.difference", f"Map of differences: {name} minus {other}")
    pair = (net_flows(estimate), net_flows(truth)) if view.net else (estimate, truth)
    drawn = drawn_flows(
        pictured.grid, flow_differences(*pair), view.least, view.top_n,
        selected=view.cell, direction=view.direction,
    )  # fmt: skip
    if drawn.n_above == 0:
        st.caption(
            f"No flow differs by more than {view.least:g} people {pictured.unit}: lower the "
            "threshold to see arrows."
        )
        return
    colours = (
        "the estimate has more people on this way; blue: it has fewer."
        if pictured.measured
        else "more people went this way than usually do; blue: fewer."
    )
    st.caption(
        f"Orange: {colours} {drawn.n_above:,} flows differ by more than {view.least:g} people "
        + pictured.unit
        + (f"; the {drawn.n_shown:,} largest are drawn." if drawn.n_shown < drawn.n_above else ".")
    )


def _legends(run: str, pictured: _Pictured, view: FlowView) -> None:
    with st.container(horizontal=True, gap="large"):
        if view.show == "difference" and view.truth is not None:
            sides = "Estimate minus truth" if pictured.measured else "Happened minus usual"
            figure = difference_legend(
                cached.difference_scale(run, view.truth, view.days), theme(),
                title=f"{sides}, people {pictured.unit}",
            )  # fmt: skip
            st.plotly_chart(
                figure, width="content", config=STATIC, key="flows.legend", alt=LEGEND_ALT
            )
            return
        drawn_in = scene(_map_px(pictured, view), view.focus(pictured.grid))
        widths = arrow_half_widths_px(pictured.grid, drawn_in)
        figure = arrow_legend(
            cached.flow_scale(run, view.truth, view.days), view.least, theme(),
            half_widths_px=widths, title=f"People {pictured.unit}",
            width_px=LEGEND_PX[pictured.has_intervals],
            faded=NOT_RESOLVED if pictured.has_intervals else "",
        )  # fmt: skip
        st.plotly_chart(figure, width="content", config=STATIC, key="flows.legend", alt=LEGEND_ALT)
        if view.shade is not None:
            top = cached.total_scale(run, view.truth, view.shade, view.days)
            title = f"Shade: {SHADE_LABELS[view.shade]}, people {pictured.unit}"
            legend = difference_legend if view.shade == "change" else heat_legend
            figure = legend(top, theme(), title=title, alpha=SHADE_ALPHA)
            st.plotly_chart(figure, width="content", config=STATIC, key="flows.shades", alt=title)


def _drawn(drawn: FlowSelection, view: FlowView, unit: str) -> str:
    whose = "people who move" if view.cell is None else "people who move in or out of this cell"
    if view.cell is not None and view.direction != "both":
        way = "into" if view.direction == "in" else "out of"
        whose = f"people who move {way} this cell"
    if view.net:
        whose = whose.replace("people who move", "people of net movement")
    if drawn.n_above == 0:
        return (
            f"No flow exceeds {view.least:g} people {unit}: lower the threshold to see arrows. "
            f"There are {drawn.total_moves:,.0f} {whose} {unit}."
        )
    said = (
        ("1 arrow" if drawn.n_shown == 1 else f"{drawn.n_shown:,} arrows")
        + (f" of {drawn.n_above:,} above the threshold" if drawn.n_shown < drawn.n_above else "")
        + f", {drawn.share_shown:.0%} of the {drawn.total_moves:,.0f} {whose} {unit}."
    )
    if drawn.outside_count >= 0.5:
        said += f" {drawn.outside_count:,.0f} of them cross the border of the grid, not drawn."
    return said + _faded(drawn)


def _faded(drawn: FlowSelection) -> str:
    if "resolved" not in drawn.frame:
        return ""
    faded = int((~drawn.frame["resolved"].astype(bool)).sum())
    if not faded:
        return ""
    are = "arrow is" if faded == 1 else "arrows are"
    return f" {faded:,} {are} faded: the data do not resolve whether so many people go there."


def _page(run: Run[Any], result: FlowResult, view: FlowView) -> bytes:
    size = map_size_px(result.states.placed_grid.bounds, 1 if view.truth is None else 2)
    return html_page(
        result, view.time, run.title, truth=view.truth, threshold=view.threshold,
        top_n=view.top_n, resolved_only=view.resolved and result.has_intervals, scene=scene(size),
    )  # fmt: skip
