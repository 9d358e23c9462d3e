"""Counts on the pages Data and Grid: what the file holds, and its cells."""

from __future__ import annotations

import numpy as np
import streamlit as st

from agg_core.plotting.charts import heat_legend, totals_chart
from agg_core.plotting.maps import heat_deck
from agg_core.space.settings import grid_words
from agg_core.study.heat import counted_profile, mean_counts
from agg_core.tables.counts import CountTable
from ui import cached
from ui.heat import heat_over_the_day, places
from ui.learning import ways_on
from ui.outlines import outline_choice
from ui.panels import STATIC
from ui.reading import details, doubts, set_aside
from ui.scene import map_size_px, scene
from ui.shell import go_on, plain, theme
from ui.state import Dataset

__all__ = ["NO_PLACES", "cells_of", "data_of"]

NO_PLACES = (
    "The names of the cells say nothing about where they are, so there is no map. Flows can be "
    "learned all the same, and are shown as a table. For maps give the codes of a mesh, H3 cells "
    "or quadkeys as cells, add their longitude and latitude as two columns, or, where cells are "
    "numbered on a grid, say its extent under Read it differently on the page Data."
)
"""Said wherever cells without a place have no map."""


def data_of(opened: Dataset) -> None:
    """What is in a file of counts, as its doctor sees it."""
    table = cached.counts(opened.key)
    st.header(f"What is in {plain(opened.title)}", anchor=False)
    ways_on(opened)
    _figures(table)
    st.markdown("\n".join(f"- {plain(said)}" for said in table.report.remarks.values()))
    set_aside(table.report)
    doubts(table.report)
    details(table.report)
    if table.grid is not None:
        outline_choice(table.grid.make().bounds)
    _totals(table)
    if table.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
    else:
        _mean_map(table)


def _figures(table: CountTable) -> None:
    zeros = int((table.counts == 0).sum())
    below = f"below {table.suppressed_below:g}" if table.n_suppressed else ""
    tiles = st.columns(6 if table.n_estimated else 5)
    tiles[0].metric("Cells", f"{table.n_cells:,}")
    tiles[1].metric("Moments", f"{table.n_moments:,}")
    tiles[2].metric("Published", f"{table.n_published:,}", help=f"of them zero: {zeros:,}")
    tiles[3].metric("Suppressed", f"{table.n_suppressed:,}", help=f"Counts {below}, not zero.")
    tiles[4].metric("Not measured", f"{table.n_missing:,}", help="Nothing is known of these.")
    if table.n_estimated:
        tiles[5].metric(
            "Estimated", f"{table.n_estimated:,}",
            help="Sums of which some parts are suppressed: the published parts, and what is to be "
            "expected of the others.",
        )  # fmt: skip
    local = table.times.tz_convert(table.timezone)
    report = table.report
    st.caption(
        f"Counts per cell, taken for {plain(report.layout)}: {report.rows_used:,} of "
        f"{report.rows_read:,} rows used · {local[0]:%Y-%m-%d %H:%M} to {local[-1]:%Y-%m-%d %H:%M}"
        f", clock of {plain(table.timezone)} · {plain(_cell_words(table))}"
    )


def _cell_words(table: CountTable) -> str:
    return "cells without a place" if table.grid is None else grid_words(table.grid)


def _totals(table: CountTable) -> None:
    local = table.times.tz_convert(table.timezone).strftime("%Y-%m-%dT%H:%M:%S").tolist()
    st.plotly_chart(
        totals_chart(local, table.totals, table.sequence, theme()), theme=None, config=STATIC,
        key="counts.totals", alt="People published in all cells together, at each moment",
    )  # fmt: skip


def _mean_map(table: CountTable) -> None:
    assert table.grid is not None
    grid = table.grid.make()
    means = mean_counts(table)
    largest = max(float(means.max(initial=0.0)), 1.0)
    size = map_size_px(grid.bounds)
    st.pydeck_chart(
        heat_deck(grid, means, vmax=largest, scene=scene(grid.bounds, size)), height=size[1],
        key="data.map", alt="Mean count per cell on a map",
    )  # fmt: skip
    st.plotly_chart(
        heat_legend(largest, theme(), title="People per cell"), width="content", config=STATIC,
        key="data.legend", alt="Colours of the map: from no people in a cell to the most",
    )  # fmt: skip
    st.caption(_mean_words(table))


def _mean_words(table: CountTable) -> str:
    """What the means are of."""
    if not table.n_suppressed:
        return "Mean over the moments at which a cell was measured."
    return (
        "Mean over the moments at which a cell was measured; a suppressed count is taken for what "
        "is expected of it, as the published ones alone would make too many people."
    )


def cells_of(opened: Dataset) -> None:
    """The cells are those of the file: how many of what kind, and their people over the day."""
    table = cached.counts(opened.key)
    st.caption(
        "Counts come with their cells and steps, so there is nothing to choose here; cells of your "
        "own file can be merged under Read it differently on the page Data. A flow is how many "
        "people go from one cell to another within a step."
    )
    if table.grid is None:
        st.header("Cells", anchor=False)
        _cell_facts(table)
        st.info(NO_PLACES, icon=":material/info:")
        go_on("pages/3_Learn.py", "Next: learn")
        return
    at = places()
    with at.extent:
        st.header("Cells", anchor=False)
        _cell_facts(table)
    with at.time:
        go_on("pages/3_Learn.py", "Next: learn")
    with at.maps:
        heat_over_the_day(table.grid.make(), counted_profile(table))
        st.caption(_mean_words(table))


def _cell_facts(table: CountTable) -> None:
    st.markdown(f"**{table.n_cells:,} cells**: {plain(_cell_words(table))}.")
    minutes = table.step.total_seconds() / 60
    times = "time" if len(table.slots) == 1 else "times"
    st.markdown(f"**{len(table.slots):,} {times} of day**, one step taking {minutes:g} minutes.")
    never = int(np.isnan(table.counts).all(axis=0).sum())
    if never:
        st.caption(f"{never:,} of them are never published; what is learned there is a guess.")
