"""Flows, matrices, maps and parameters as files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from agg_core.exports import EXPORTS, Export, ExportInput, days_in, export_file_name
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult

__all__ = ["exports"]

KEY = "view.export."


@st.fragment
def exports(title: str, result: FlowResult, moment: str, picture: Callable[[], bytes]) -> None:
    """A choice of formats, what opens each, and the file; it is made when it is asked for.

    ``picture`` makes the page of the picture that is shown; every other format holds the whole
    moment.
    """
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
        source, known = ESTIMATE, result.sources
        if chosen.one_source and len(known) > 1:
            source = st.selectbox(
                "Flows", known, format_func=result.source_label, key=f"{KEY}source"
            )
        whole = "the whole day" if moment == WHOLE_DAY else moment
        times = "all times of day" if chosen.of_all_times else whole
        days = days_in(chosen, ExportInput(result, moment, title, source))
        of_days = f", what happened on {', '.join(days)}" if days else ""
        st.caption(f"{chosen.about} Of {times}{of_days}.")
        st.download_button(
            "Make the file", partial(_made, chosen, title, result, moment, source, picture),
            file_name=export_file_name(chosen, moment, days), mime=chosen.mime,
            key="flows.export", icon=":material/download:", type="primary", on_click="ignore",
        )  # fmt: skip


def _made(
    chosen: Export,
    title: str,
    result: FlowResult,
    moment: str,
    source: str,
    picture: Callable[[], bytes],
) -> bytes:
    if chosen.key == "html":
        return picture()
    return chosen.make(ExportInput(result, moment, title, source))
