"""What a person looks at: kept from page to page, apart from the settings of the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from agg_core.study import SOURCES
from ui.panels import SOURCE_NAMES
from ui.state import Runs, state
from ui.workspace import workspace

__all__ = ["FlowView", "flow_view", "take_finished", "take_finished_run"]


@dataclass(frozen=True)
class FlowView:
    """The time of day, what stands beside the estimate, and which arrows are drawn."""

    anchor: str
    truth: str
    threshold: float
    top_n: int


def flow_view(anchors: Sequence[str], busiest: str, threshold: float) -> FlowView:
    """The controls above the flow maps; they wrap on a narrow window."""
    chosen = st.session_state
    if chosen.get("view.anchor") not in anchors:
        chosen["view.anchor"] = busiest
    chosen.setdefault("view.threshold", threshold)
    chosen.setdefault("view.top", 300)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        anchor = st.segmented_control(
            "Time of day", anchors, required=True, key="view.anchor", width="content"
        )
        truth = st.selectbox(
            "Beside the estimate", SOURCES[1:], format_func=SOURCE_NAMES.__getitem__,
            key="view.truth", width=220,
        )  # fmt: skip
        least = st.number_input(
            "Arrows above (people per step)", min_value=0.0, step=5.0, format="%g",
            key="view.threshold", width=260,
        )  # fmt: skip
        top_n = st.number_input(
            "At most so many arrows", min_value=1, max_value=2000, step=50, key="view.top",
            width=190,
        )  # fmt: skip
    return FlowView(str(anchor), str(truth), float(least), int(top_n))


def take_finished(runs: Runs[Any]) -> bool:
    """Show the last run if it ended well, whether or not anybody watched its end.

    Returns whether it is newly shown; one that failed or was cancelled leaves what was shown.
    """
    run = runs.run
    if run is None or runs.finished == run:
        return False
    job = workspace().jobs.get(run.key)
    if job is None or job.status().state != "done":
        return False
    runs.finished = run
    workspace().keep_only(run.key)
    return True


def take_finished_run() -> None:
    """Show the flows of the last run if it ended well.

    A new study is looked at afresh: its busiest time and its own threshold.
    """
    if take_finished(state().study):
        for key in ("view.anchor", "view.threshold"):
            st.session_state.pop(key, None)
