"""Flows, matrices, maps and parameters as files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import streamlit as st

from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import LEAST_PEOPLE, Limit
from agg_core.exports import EXPORTS, Export, ExportInput, days_in, export_file_name
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult

__all__ = ["Picture", "exports"]

KEY = "view.export."

STAYS: Literal["session"] = "session"
"""The limit stays what was chosen where a format shows none."""

Picture = Callable[[FlowResult | None], bytes]
"""Makes the page of the picture that is shown, or the same of a limited result."""


@st.fragment
def exports(title: str, result: FlowResult, moment: str, picture: Picture) -> None:
    """A choice of formats, what opens each, and the file; it is made when it is asked for.

    ``picture`` makes the page of the picture that is shown; every other format holds the whole
    moment. Of people who were followed flows of few are withheld unless one chooses otherwise.
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
        known = result.sources_of_draws if chosen.of_draws else result.sources
        source = ESTIMATE
        if chosen.one_source and len(known) > 1:
            source = st.selectbox(
                "Flows", known, format_func=result.source_label, key=f"{KEY}source"
            )
        least = _least(result, chosen)
        whole = "the whole day" if moment == WHOLE_DAY else moment
        times = "all times of day" if chosen.of_all_times else whole
        days = days_in(chosen, ExportInput(result, moment, title, source))
        of_days = f", what happened on {', '.join(days)}" if days else ""
        st.caption(f"{chosen.about} Of {times}{of_days}.")
        st.download_button(
            "Make the file", partial(_made, chosen, title, result, moment, source, least, picture),
            file_name=export_file_name(chosen, moment, days, least or None), mime=chosen.mime,
            key="flows.export", icon=":material/download:", type="primary", on_click="ignore",
        )  # fmt: skip


def _least(result: FlowResult, chosen: Export) -> int:
    """People per step below which flows are withheld from the file; 0 for nothing."""
    key = f"{KEY}least"
    if not chosen.limitable:
        st.caption("It holds what was learned of everybody: flows of few people are in it, too.")
        return 0
    st.session_state.setdefault(key, LEAST_PEOPLE if result.truths else 0)
    return int(
        st.number_input(
            "Withhold flows of fewer people per step than", 0, 1_000_000, step=1, key=key,
            persist_state=STAYS,
            help="Before a file is given away: flows of few people may tell where one of them "
            "went. Those are left out, and others from which they could be worked out. 0 leaves "
            "out nothing.",
        )
    )  # fmt: skip


def _made(
    chosen: Export,
    title: str,
    result: FlowResult,
    moment: str,
    source: str,
    least: int,
    picture: Picture,
) -> bytes:
    shown = limited(result, Limit(least))
    if chosen.key == "html":
        return picture(shown if least else None)
    return chosen.make(ExportInput(shown, moment, title, source))
