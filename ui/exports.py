"""Flows, matrices, maps and parameters as files."""

from __future__ import annotations

from functools import partial

import streamlit as st

from agg_core.exports import EXPORTS, Export, ExportInput, export_file_name
from agg_core.exports.page import html_page
from agg_core.settings import StudySettings
from agg_core.study import SOURCES, StudyResult
from ui.flow_view import FlowView
from ui.panels import SOURCE_NAMES
from ui.scene import map_size_px, scene
from ui.state import Run

__all__ = ["exports"]

KEY = "view.export."


@st.fragment
def exports(run: Run[StudySettings], result: StudyResult, view: FlowView) -> None:
    """A choice of formats, what opens each, and the file; it is made when it is asked for."""
    with st.popover("Download", icon=":material/download:", key="flows.download"):
        offered = {key: export for key, export in EXPORTS.items() if export.available(result)}
        if st.session_state.get(f"{KEY}format") not in offered:
            st.session_state[f"{KEY}format"] = next(iter(offered))
        chosen = offered[
            st.selectbox(
                "Format", list(offered), format_func=lambda key: offered[key].label,
                key=f"{KEY}format",
            )
        ]  # fmt: skip
        source = "estimate"
        if chosen.one_source:
            source = st.selectbox(
                "Flows", SOURCES, format_func=SOURCE_NAMES.__getitem__, key=f"{KEY}source"
            )
        times = "all times of day" if chosen.of_all_times else view.anchor
        st.caption(f"{chosen.about} Of {times}.")
        st.download_button(
            "Make the file", partial(_made, chosen, run, result, view, source),
            file_name=export_file_name(chosen, view.anchor), mime=chosen.mime,
            key="flows.export", icon=":material/download:", type="primary", on_click="ignore",
        )  # fmt: skip


def _made(
    chosen: Export, run: Run[StudySettings], result: StudyResult, view: FlowView, source: str
) -> bytes:
    """The page is that of the picture shown; every other format holds the whole moment."""
    if chosen.key == "html":
        size = map_size_px(result.settings.grid.make().bounds, 2)
        return html_page(
            result, view.anchor, run.title, truth=view.truth, threshold=view.threshold,
            top_n=view.top_n, scene=scene(size),
        )  # fmt: skip
    return chosen.make(ExportInput(result, view.anchor, run.title, source))
