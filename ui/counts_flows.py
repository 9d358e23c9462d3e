"""Flows learned from counts: one map, how sure each arrow is, and the table behind it."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from agg_core.flows import Direction
from agg_core.grid import Grid
from agg_core.plotting.arrows import FlowSelection
from agg_core.plotting.charts import arrow_legend, difference_legend, heat_legend
from agg_core.plotting.flow_maps import (
    SHADES,
    Shade,
    arrow_half_widths_px,
    drawn_flows,
    flow_deck,
)
from agg_core.plotting.theme import SHADE_ALPHA
from ui import cached
from ui.counts_data import NO_PLACES
from ui.counts_job import CountedFlows
from ui.counts_learn import alike, who_learned
from ui.flow_view import CELL_THRESHOLD, DIRECTIONS, MOST_ARROWS, TOP
from ui.flows import DIRECTION_LABELS, LEGEND_ALT, SHADE_LABELS, cell_clicked
from ui.panels import STATIC
from ui.scene import basemap_choice, map_size_px, scene
from ui.shell import plain, theme
from ui.state import Run
from ui.views import COUNTS_KEY

__all__ = ["show"]

WHOLE_DAY = "whole day"
MAP = "counts.map"
MOST_ROWS = 1_000
NOT_RESOLVED = "faded: not resolved"
LEGEND_PX = 420


@dataclass(frozen=True)
class _View:
    """What the controls say."""

    slot: int | None
    threshold: float
    top_n: int
    cell: int | None
    direction: Direction
    shade: Shade | None
    resolved_only: bool


def show(run: Run[Any]) -> None:
    """The map of flows at a time of day, or over the whole day, and its table."""
    found = cached.counted(run.key)
    if st.query_params:
        st.query_params.clear()  # the address is that of a picture of other flows
    grid = None if found.study.grid is None else found.study.grid.make()
    view = _controls(found, grid)
    flows = cached.counted_table(run.key, view.slot)
    if view.resolved_only:
        flows = flows.loc[flows["resolved"]]
    if grid is None:
        st.info(NO_PLACES, icon=":material/info:")
    else:
        _map(run.key, grid, flows, view)
    _table(found, flows, view)
    _about(found, run.title)


# -------------------------------------------------------------------------------- controls


def _controls(found: CountedFlows, grid: Grid | None) -> _View:
    labels = [found.study.slots[slot] for slot in found.slots]
    times = dict(zip((WHOLE_DAY, *labels), (None, *found.slots), strict=True))
    _first(found, times)
    if len(labels) > 1:
        st.select_slider(
            f"Time of day at which a step begins, {labels[0]} to {labels[-1]}", list(times),
            key=f"{COUNTS_KEY}time",
        )  # fmt: skip
    chosen = str(st.session_state[f"{COUNTS_KEY}time"])
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        cell, direction = _choose_flows(found)
        shade = _choose_shade() if grid is not None else None
        with st.popover("More", icon=":material/tune:", key="counts.more"):
            resolved_only = st.toggle(
                "Only flows that are resolved", key=f"{COUNTS_KEY}resolved",
                help="Leaves out flows whose interval is too wide to say that people move so.",
            )  # fmt: skip
            if grid is not None:
                basemap_choice()
    held = "threshold" if cell is None else "cell_threshold"
    return _View(
        slot=times[chosen],
        threshold=float(st.session_state[COUNTS_KEY + held]),
        top_n=int(st.session_state[f"{COUNTS_KEY}top_n"]),
        cell=cell, direction=direction, shade=shade, resolved_only=resolved_only,
    )  # fmt: skip


def _first(found: CountedFlows, times: Container[str]) -> None:
    """What the controls show before anybody chooses."""
    values: dict[str, Any] = {
        "time": WHOLE_DAY, "top_n": TOP, "cell": None, "direction": "both", "shade": "people",
        "cell_threshold": CELL_THRESHOLD,
    }  # fmt: skip
    if f"{COUNTS_KEY}threshold" not in st.session_state:
        values["threshold"] = found.first_threshold
    for name, value in values.items():
        st.session_state.setdefault(COUNTS_KEY + name, value)
    if st.session_state[f"{COUNTS_KEY}time"] not in times:
        st.session_state[f"{COUNTS_KEY}time"] = WHOLE_DAY


def _choose_flows(found: CountedFlows) -> tuple[int | None, Direction]:
    cells, names = range(found.study.n_cells), found.names
    whole = st.session_state[f"{COUNTS_KEY}cell"] is None
    st.number_input(
        "Arrows above" if whole else "Cell's arrows above", min_value=0.0, step=1.0, format="%g",
        width=170, help="People per step.",
        key=COUNTS_KEY + ("threshold" if whole else "cell_threshold"),
    )  # fmt: skip
    st.number_input(
        "At most so many", min_value=1, max_value=MOST_ARROWS, step=50, width=150,
        key=f"{COUNTS_KEY}top_n", help="The largest are drawn.",
    )  # fmt: skip
    cell = st.selectbox(
        "Cell", cells, key=f"{COUNTS_KEY}cell", width=210, index=None, placeholder="all cells",
        format_func=names.__getitem__,
        help="Or click a cell or an arrow on the map; click the cell again for all.",
    )  # fmt: skip
    if cell is not None:
        st.segmented_control(
            "Its flows", DIRECTIONS, format_func=DIRECTION_LABELS.__getitem__, required=True,
            key=f"{COUNTS_KEY}direction", width="content",
        )  # fmt: skip
    direction: Direction = st.session_state[f"{COUNTS_KEY}direction"]
    return cell, direction


def _choose_shade() -> Shade | None:
    return st.selectbox(
        "Shade", SHADES, format_func=SHADE_LABELS.__getitem__, width=180, index=None,
        key=f"{COUNTS_KEY}shade", placeholder="none", help="What the shade of a cell stands for.",
    )  # fmt: skip


# ------------------------------------------------------------------------------ map, table


def _map(run: str, grid: Grid, flows: pd.DataFrame, view: _View) -> None:
    size = map_size_px(grid.bounds)
    top, shade_top = cached.counted_flow_scale(run), None
    if view.shade is not None:
        shade_top = cached.counted_total_scale(run, view.shade)
    deck = flow_deck(
        grid, flows, vmax=top, threshold=view.threshold, top_n=view.top_n, scene=scene(size),
        shade=view.shade, shade_vmax=shade_top, selected=view.cell, direction=view.direction,
    )  # fmt: skip
    st.pydeck_chart(
        deck, height=size[1], key=MAP, alt="Map of flows learned from counts",
        on_select=partial(cell_clicked, MAP, f"{COUNTS_KEY}cell"),
    )  # fmt: skip
    drawn = drawn_flows(
        grid, flows, view.threshold, view.top_n, selected=view.cell, direction=view.direction
    )
    if drawn.n_above == 0:
        st.caption(
            f"No flow exceeds {view.threshold:g} people per step: lower the threshold to see "
            f"arrows. {drawn.total_moves:,.0f} people move{_ways(view)} per step."
        )
    else:
        st.caption(
            f"{_arrows_said(drawn)}, {drawn.share_shown:.0%} of the {drawn.total_moves:,.0f} "
            f"people who move{_ways(view)} per step on an average day.{_faded_said(drawn)}"
        )
    if drawn.outside_count >= 0.5:
        st.caption(f"{drawn.outside_count:,.0f} people come from outside or go there, not drawn.")
    _legends(grid, view, top, shade_top, scene(size))


def _arrows_said(drawn: FlowSelection) -> str:
    some = f" of {drawn.n_above:,}" if drawn.n_shown < drawn.n_above else ""
    return (
        f"{drawn.n_shown:,}{some} {'arrow' if drawn.n_above == 1 else 'arrows'} above the threshold"
    )


def _ways(view: _View) -> str:
    if view.cell is None:
        return ""
    ways = {"in": "into", "out": "out of", "both": "into or out of"}
    return f" {ways[view.direction]} this cell"


def _faded_said(drawn: FlowSelection) -> str:
    faded = int((~drawn.frame["resolved"].astype(bool)).sum())
    if not faded:
        return ""
    are = "arrow is" if faded == 1 else "arrows are"
    return f" {faded:,} {are} faded: the counts do not resolve whether so many people go there."


def _legends(grid: Grid, view: _View, top: float, shade_top: float | None, drawn_in: Any) -> None:
    with st.container(horizontal=True, gap="large"):
        figure = arrow_legend(
            top, view.threshold, theme(), half_widths_px=arrow_half_widths_px(grid, drawn_in),
            width_px=LEGEND_PX, faded=NOT_RESOLVED,
        )  # fmt: skip
        st.plotly_chart(figure, width="content", config=STATIC, key="counts.legend", alt=LEGEND_ALT)
        if view.shade is not None and shade_top is not None:
            title = f"Shade of a cell: {SHADE_LABELS[view.shade]}, people per step"
            legend = difference_legend if view.shade == "change" else heat_legend
            figure = legend(shade_top, theme(), title=title, alpha=SHADE_ALPHA)
            st.plotly_chart(figure, width="content", config=STATIC, key="counts.shades", alt=title)


def _table(found: CountedFlows, flows: pd.DataFrame, view: _View) -> None:
    """The flows as numbers, the largest first, with their intervals."""
    names = dict(enumerate(found.names))
    moves = flows.loc[flows["origin"] != flows["dest"]]
    if view.cell is not None:
        ends = {"in": ["dest"], "out": ["origin"], "both": ["origin", "dest"]}[view.direction]
        moves = moves.loc[(moves[ends] == view.cell).any(axis=1)]
    moves = moves.sort_values("count", ascending=False).head(MOST_ROWS)
    st.dataframe(
        pd.DataFrame(
            {
                "From": moves["origin"].map(names),
                "To": moves["dest"].map(names),
                "People": moves["count"],
                "Low": moves["low"],
                "High": moves["high"],
                "Resolved": moves["resolved"].astype(bool),
            }
        ),
        hide_index=True, key="counts.table", height=320, width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.1f") for name in ("People", "Low", "High")
        },
    )  # fmt: skip
    sure = (
        "the ends of a 90 % interval found by simulating such counts and learning from them again"
        if found.study.settings.replicates
        else "no intervals, since no worlds were simulated: how sure they are is not known"
    )
    st.caption(
        f"People per step on an average day, with {sure}. The {MOST_ROWS:,} largest at most."
    )


def _about(found: CountedFlows, title: str) -> None:
    study = found.study
    st.caption(
        f"{plain(title)}: {study.n_pairs:,} pairs of successive counts of {study.n_days:,} "
        f"{'day' if study.n_days == 1 else 'days'}, {who_learned(study)}. "
        f"{plain(study.identifiability.sentence)}"
    )
    pairs = alike(study.identifiability, found.names)
    if pairs:
        st.caption(pairs)
