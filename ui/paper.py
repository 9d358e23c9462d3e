"""The figure for slides: times of day below each other, the estimate beside the truth."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from agg_core.plotting.flow_map import source_heading
from agg_core.plotting.lab import standalone_html
from agg_core.plotting.paper import MOST_ROWS, PaperRow, camera, paper_figure
from agg_core.plotting.theme import DARK, LIGHT
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.study.settings import StudySettings
from ui import cached
from ui.state import Run

__all__ = ["paper"]

FORMATS = {"png": "PNG", "svg": "SVG"}


@st.fragment
def paper(
    run: Run[StudySettings], truth: str, threshold: float, top_n: int, days: tuple[str, ...] = ()
) -> None:
    """An expander with the figure of a finished run; it is drawn only while it is open."""
    opened = st.expander(
        "Figure for slides", icon=":material/slideshow:", key="paper.open", on_change="rerun"
    )
    with opened:
        if opened.open:
            _choose_and_draw(run, truth, threshold, top_n, days)


def _choose_and_draw(
    run: Run[StudySettings], truth: str, threshold: float, top_n: int, days: tuple[str, ...]
) -> None:
    result = cached.result_of(run.key, days)
    times, file_format, dark = _looks(result.times)
    if not times:
        st.info("Choose at least one time of day.", icon=":material/info:")
        return
    theme = DARK if dark else LIGHT
    titles = (source_heading(result, ESTIMATE), source_heading(result, truth))
    figure = paper_figure(
        _rows(run.key, result, times, truth, threshold, days), result.states.placed_grid,
        vmax=cached.flow_scale(run.key, truth, days), threshold=threshold, top_n=top_n,
        shade_vmax=cached.total_scale(run.key, truth, "people", days), outline=cached.outline(),
        ground=cached.ground(result.states.placed_grid.bounds), theme=theme,
        source=_source(run.title, result, threshold, top_n),
        titles=titles,
    )  # fmt: skip
    st.plotly_chart(
        figure, width="content", theme=None, key="paper.figure",
        config=camera(figure, file_format),
        alt=f"Flows at {', '.join(times)}: {' and '.join(titles)}",
    )  # fmt: skip
    st.caption(
        f"The camera above the figure saves it as {FORMATS[file_format]}. CPC is the common part "
        "of movement, 1 is perfect; movement × 1 is as much movement as in the truth."
    )
    st.download_button(
        "The figure (HTML, opens without a network)",
        lambda: standalone_html(figure, html.escape(run.title), theme), key="paper.html",
        file_name="flows.html", mime="text/html", icon=":material/download:", on_click="ignore",
    )  # fmt: skip


def _looks(times: Sequence[str]) -> tuple[list[str], str, bool]:
    """Which times of day, what the camera saves, and whether on a dark ground."""
    chosen = st.session_state
    before = chosen.get("view.paper.times", times)
    # Another run may have none of the times that were chosen; a person may want none yet.
    kept = [time for time in before if time in times] or (times if before else [])
    chosen["view.paper.times"] = list(kept[:MOST_ROWS])
    chosen.setdefault("view.paper.format", "png")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        shown = st.multiselect(
            "Times of day", times, max_selections=MOST_ROWS, key="view.paper.times", width=420
        )
        file_format = st.segmented_control(
            "The camera on the figure saves", list(FORMATS), format_func=FORMATS.__getitem__,
            required=True, key="view.paper.format",
        )  # fmt: skip
        dark = st.toggle("Dark", key="view.paper.dark", help="For slides on a dark ground.")
    return sorted(shown, key=list(times).index), str(file_format), dark


def _rows(
    run_key: str,
    result: FlowResult,
    times: Sequence[str],
    truth: str,
    threshold: float,
    days: tuple[str, ...],
) -> list[PaperRow]:
    rows = []
    for time in times:
        figures = cached.comparison(run_key, time, truth, threshold, days)
        estimate, true = (result.table(time, source) for source in ("estimate", truth))
        rows.append(PaperRow(time, estimate, true, figures.cpc, figures.total_ratio))
    return rows


def _source(title: str, result: FlowResult, threshold: float, top_n: int) -> str:
    """Where the flows come from and what an arrow is, as the line under the figure."""
    return (
        f"{title}: {result.basis}. Arrows: flows above {threshold:g} people per "
        f"{result.step_name}, at most {top_n:,} on a map; width and colour on one scale."
    )
