"""Flows learned from counts: one map, how sure each arrow is, and the table behind it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from agg_core.exports.page import html_page
from agg_core.exports.tables import placed_grid
from agg_core.plotting.arrows import FlowSelection
from agg_core.plotting.charts import arrow_legend, difference_legend, heat_legend
from agg_core.plotting.deck import Scene
from agg_core.plotting.flow_maps import (
    SHADES,
    arrow_half_widths_px,
    drawn_flows,
    flow_deck,
)
from agg_core.plotting.theme import SHADE_ALPHA
from agg_core.space.grid import Grid
from agg_core.study.counts import CountStudy
from agg_core.study.results import cell_names
from ui import cached
from ui.address import params_of, set_address, take_away, tell_note
from ui.counts_data import NO_PLACES
from ui.counts_learn import alike, who_learned
from ui.counts_view import CountsView, moments_shown
from ui.flow_view import DIRECTIONS, MOST_ARROWS
from ui.flows import DIRECTION_LABELS, LEGEND_ALT, SHADE_LABELS, cell_clicked
from ui.panels import STATIC
from ui.scene import basemap_choice, map_size_px, scene
from ui.shell import plain, theme
from ui.state import Run
from ui.views import COUNTS_KEY, held_counts_view, hold

__all__ = ["show"]

MAP = "counts.map"
MOST_ROWS = 1_000
NOT_RESOLVED = "faded: not resolved"
LEGEND_PX = 420


def show(run: Run[Any]) -> None:
    """The map of flows at a time of day, or over the whole day, and its table."""
    found = cached.counted(run.key)
    grid = None if found.grid is None else found.grid.make()
    hold(held_counts_view(found))
    view = _controls(found, grid)
    tell_note(view)
    params = params_of(run, view.to_params(found))
    set_address(params)
    flows = cached.counted_table(run.key, view.time)
    if view.resolved:
        flows = flows.loc[flows["resolved"]]
    if grid is None:
        st.info(NO_PLACES, icon=":material/info:")
    else:
        _map(run.key, found, grid, flows, view)
    take_away(run, found, view.time, params, partial(_page, run, found, view))
    _table(found, flows, view)
    _about(found, run.title)


# -------------------------------------------------------------------------------- controls


def _controls(found: CountStudy, grid: Grid | None) -> CountsView:
    moments = moments_shown(found)
    if len(moments) > 1:
        st.select_slider(
            f"Time of day at which a step begins, {moments[1]} to {moments[-1]}", moments,
            key=f"{COUNTS_KEY}time",
        )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _choose_flows(found)
        if grid is not None:
            _choose_shade()
        with st.popover("More", icon=":material/tune:", key="counts.more"):
            st.toggle(
                "Only flows that are resolved", key=f"{COUNTS_KEY}resolved",
                help="Leaves out flows whose interval is too wide to say that people move so.",
            )  # fmt: skip
            if grid is not None:
                basemap_choice()
    return held_counts_view(found)


def _choose_flows(found: CountStudy) -> None:
    cells, names = range(found.n_cells), cell_names(found)
    whole = st.session_state[f"{COUNTS_KEY}cell"] is None
    st.number_input(
        "Arrows above" if whole else "Cell's arrows above", min_value=0.0, step=1.0, format="%g",
        width=170, help=f"People per {found.step_name}.",
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


def _choose_shade() -> None:
    st.selectbox(
        "Shade", SHADES, format_func=SHADE_LABELS.__getitem__, width=180, index=None,
        key=f"{COUNTS_KEY}shade", placeholder="none", help="What the shade of a cell stands for.",
    )  # fmt: skip


# ------------------------------------------------------------------------------ map, table


def _page(run: Run[Any], found: CountStudy, view: CountsView) -> bytes:
    size = map_size_px(placed_grid(found).bounds)
    return html_page(
        found, view.time, run.title, threshold=view.threshold, top_n=view.top_n,
        resolved_only=view.resolved, scene=scene(size),
    )  # fmt: skip


def _map(run: str, found: CountStudy, grid: Grid, flows: pd.DataFrame, view: CountsView) -> None:
    size, per = map_size_px(grid.bounds), found.step_name
    top, shade_top = cached.counted_flow_scale(run), None
    if view.shade is not None:
        shade_top = cached.counted_total_scale(run, view.shade)
    deck = flow_deck(
        grid, flows, vmax=top, threshold=view.least, top_n=view.top_n, scene=scene(size),
        shade=view.shade, shade_vmax=shade_top, selected=view.cell, direction=view.direction,
    )  # fmt: skip
    st.pydeck_chart(
        deck, height=size[1], key=MAP, alt="Map of flows learned from counts",
        on_select=partial(cell_clicked, MAP, f"{COUNTS_KEY}cell"),
    )  # fmt: skip
    drawn = drawn_flows(
        grid, flows, view.least, view.top_n, selected=view.cell, direction=view.direction
    )
    if drawn.n_above == 0:
        st.caption(
            f"No flow exceeds {view.least:g} people per {per}: lower the threshold to see "
            f"arrows. {drawn.total_moves:,.0f} people move{_ways(view)} per {per}."
        )
    else:
        st.caption(
            f"{_arrows_said(drawn)}, {drawn.share_shown:.0%} of the {drawn.total_moves:,.0f} "
            f"people who move{_ways(view)} per {per} on an average day.{_faded_said(drawn)}"
        )
    if drawn.outside_count >= 0.5:
        st.caption(
            f"{drawn.outside_count:,.0f} people per {per} come from outside or go there, not drawn."
        )
    _legends(per, grid, view, top, shade_top, scene(size))


def _arrows_said(drawn: FlowSelection) -> str:
    some = f" of {drawn.n_above:,}" if drawn.n_shown < drawn.n_above else ""
    return (
        f"{drawn.n_shown:,}{some} {'arrow' if drawn.n_above == 1 else 'arrows'} above the threshold"
    )


def _ways(view: CountsView) -> str:
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


def _legends(
    per: str, grid: Grid, view: CountsView, top: float, shade_top: float | None, drawn_in: Scene
) -> None:
    with st.container(horizontal=True, gap="large"):
        figure = arrow_legend(
            top, view.least, theme(), half_widths_px=arrow_half_widths_px(grid, drawn_in),
            title=f"People per {per}", width_px=LEGEND_PX, faded=NOT_RESOLVED,
        )  # fmt: skip
        st.plotly_chart(figure, width="content", config=STATIC, key="counts.legend", alt=LEGEND_ALT)
        if view.shade is not None and shade_top is not None:
            title = f"Shade of a cell: {SHADE_LABELS[view.shade]}, people per {per}"
            legend = difference_legend if view.shade == "change" else heat_legend
            figure = legend(shade_top, theme(), title=title, alpha=SHADE_ALPHA)
            st.plotly_chart(figure, width="content", config=STATIC, key="counts.shades", alt=title)


def _table(found: CountStudy, flows: pd.DataFrame, view: CountsView) -> None:
    """The flows as numbers, the largest first, with their intervals."""
    names = dict(enumerate(cell_names(found)))
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
        if found.settings.replicates
        else "no intervals, since no worlds were simulated: how sure they are is not known"
    )
    st.caption(
        f"People per {found.step_name} on an average day, with {sure}. "
        f"The {MOST_ROWS:,} largest at most."
    )


def _about(study: CountStudy, title: str) -> None:
    st.caption(
        f"{plain(title)}: {study.n_pairs:,} pairs of successive counts of {study.n_days:,} "
        f"{'day' if study.n_days == 1 else 'days'}, {who_learned(study)}. "
        f"{plain(study.identifiability.sentence)}"
    )
    pairs = alike(study.identifiability, study.cells)
    if pairs:
        st.caption(pairs)
