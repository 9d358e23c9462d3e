"""The part of the page Evidence that follows a line, a cell, a pair or a sector over the day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.evidence.profiles import Profile, ProfiledKind
from agg_core.exports.tables import csv_bytes
from agg_core.plotting.evidence import day_chart
from agg_core.study.result import FlowResult
from ui import cached
from ui.brought import STAYS, brought
from ui.shell import plain, tell_fault, theme
from ui.state import Run

__all__ = ["shown_profiles", "times_of_day"]

KINDS: dict[ProfiledKind, str] = {
    "line": "A line or cordon", "sector": "A sector", "cell": "A cell", "pair": "Two cells",
}  # fmt: skip
HELD = "evidence.profile"
"""What was followed last: the run, its kind and names."""

HEIGHT_PX = 360
COLUMNS = {
    "direction": "Direction", "time": "Time", "count": "Estimate", "low": "From", "high": "To",
    "corrected": "Corrected", "reference": "Reference",
}  # fmt: skip


def times_of_day(
    run: Run[Any], result: FlowResult, reference: str | None, choose_reference: Callable[[], None]
) -> None:
    """What to follow, its figure over the day with single days, and the table to take away."""
    names = _names(result)
    kinds = [kind for kind in KINDS if len(names[kind]) > (kind == "pair")]
    if st.session_state.get("evidence.profile.kind") not in kinds:
        st.session_state["evidence.profile.kind"] = kinds[0]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        kind: ProfiledKind = st.selectbox(
            "Follow", kinds, format_func=KINDS.__getitem__, key="evidence.profile.kind",
            persist_state=STAYS, width=200,
        )  # fmt: skip
        chosen = _chosen(kind, names[kind])
    with st.expander("Hold it against other flows"):
        choose_reference()
    try:
        found = _found(run, result, reference, kind, chosen)
    except InputError as fault:
        tell_fault(str(fault))
        return
    st.session_state[HELD] = (run.key, kind, chosen)
    _shown(found)


def shown_profiles(run: Run[Any], result: FlowResult, reference: str | None) -> tuple[Profile, ...]:
    """What was followed last of this run, but for lines, which the report has anyway."""
    held = st.session_state.get(HELD)
    if held is None or held[0] != run.key or held[1] == "line":
        return ()
    _, kind, chosen = held
    try:
        return (_found(run, result, reference, kind, chosen),)
    except InputError:
        return ()


def _found(
    run: Run[Any], result: FlowResult, reference: str | None, kind: ProfiledKind, chosen: Any
) -> Profile:
    return cached.profile(
        run.key, result.chosen_days, brought().stamp, reference, kind, tuple(chosen)
    )


def _names(result: FlowResult) -> dict[ProfiledKind, list[str]]:
    """Names of what can be followed, by its kind."""
    own, cells = brought(), list(result.states.cells)
    placed = result.states.grid is not None
    lines = [line.name for line in own.lines] if placed else []
    try:
        sectors = own.sectors(result) if placed or own.areas is None else None
    except InputError:  # told where sectors are given
        sectors = None
    named = [] if sectors is None else list(sectors.names)
    return {"line": lines, "sector": named, "cell": cells, "pair": cells}


def _chosen(kind: ProfiledKind, names: Sequence[str]) -> tuple[str, ...]:
    if kind == "pair":
        first = _one("evidence.profile.pair.one", "From or to", names, names[0])
        return first, _one("evidence.profile.pair.other", "to or from", names, names[1])
    return (_one(f"evidence.profile.{kind}", "Which", names, names[0]),)


def _one(key: str, label: str, names: Sequence[str], first: str) -> str:
    if st.session_state.get(key) not in names:
        st.session_state[key] = first
    return str(st.selectbox(label, names, key=key, persist_state=STAYS, width=280))


def _shown(found: Profile) -> None:
    st.plotly_chart(
        day_chart(found.rows, found.unit, theme(), days=found.days, height_px=HEIGHT_PX),
        theme=None, config={"displayModeBar": False}, key="evidence.profile.chart",
        alt="Flows over the times of day",
    )  # fmt: skip
    days = found.days["day"].nunique()
    if days:
        st.caption(
            f"Thin lines are the {days} days, as estimated; the thick line is their mean, with an "
            "interval that holds what truly moved in nine of ten."
        )
    kept = [name for name in COLUMNS if name in found.rows and found.rows[name].notna().any()]
    named = found.rows[kept].rename(columns=COLUMNS)
    st.dataframe(
        named, hide_index=True, key="evidence.profile.table", width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.1f")
            for name in named.select_dtypes("number").columns
        },
    )  # fmt: skip
    st.download_button(
        "Take the table away", lambda: csv_bytes(found.table), file_name="times-of-day.csv",
        mime="text/csv", key="evidence.profile.csv", icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    st.caption(plain(f"{found.name}, in {found.unit}."))
