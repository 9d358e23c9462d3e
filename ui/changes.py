"""The part of the page Evidence that says what changed between days, times or runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.evidence.changes import DISCOVERIES, Changes
from agg_core.store.saved_runs import SavedRun
from agg_core.store.shipped_runs import SHIPPED_RUNS
from agg_core.study.result import FlowResult
from ui import cached, saved
from ui.brought import STAYS, brought
from ui.shell import plain, tell_fault
from ui.state import Run

__all__ = ["shown_changes", "what_changed"]

KINDS = {"times": "Times of day", "days": "Days", "runs": "Runs"}
HELD = "evidence.changes"
"""What was compared last: the run, and what `cached.changes` was asked."""

MOST_SHOWN = 10

Asked = tuple[str, tuple[str, ...], str, tuple[str, ...], tuple[str, ...], str, float]
"""What `cached.changes` is asked, but for what was brought."""


def what_changed(run: Run[Any], result: FlowResult) -> None:
    """Two sides to choose, and which flows differ beyond chance."""
    whole = cached.result(run.key)
    others = _others(run)
    kinds = [
        kind for kind, some in (
            ("times", len(whole.times_of_day) > 1), ("days", len(whole.days) > 1),
            ("runs", bool(others)),
        ) if some
    ]  # fmt: skip
    if not kinds:
        st.info(
            "These flows are of one time and one day, and there is no other run to set beside "
            "them.",
            icon=":material/info:",
        )
        return
    if st.session_state.get("evidence.kind") not in kinds:
        st.session_state["evidence.kind"] = kinds[0]
    kind = st.segmented_control(
        "Between", kinds, required=True, format_func=KINDS.__getitem__, key="evidence.kind",
        persist_state=STAYS,
    )  # fmt: skip
    choose = {"times": _times, "days": _days}.get(str(kind))
    sides = _runs(whole, others) if choose is None else choose(whole)
    level = st.slider(
        "Share of what is called changed that may be chance, %", 1, 50, round(100 * DISCOVERIES),
        key="evidence.level", persist_state=STAYS, width=420,
    )  # fmt: skip
    days = result.chosen_days if kind == "times" else ()
    asked = (run.key, days, str(kind), *sides, level / 100)
    try:
        found = _found(asked)
    except InputError as fault:
        tell_fault(str(fault))
        return
    st.session_state[HELD] = asked
    _told(found, result)


def shown_changes(run: Run[Any]) -> Changes | None:
    """What was compared last of this run, with the lines and sectors as they are now."""
    asked = st.session_state.get(HELD)
    if asked is None or asked[0] != run.key:
        return None
    try:
        return _found(asked)
    except InputError:
        return None


def _found(asked: Asked) -> Changes:
    """The answer, with the lines and sectors as they are now."""
    key, days, kind, before, after, time, level = asked
    return cached.changes(key, days, kind, before, after, time, level, brought().stamp)


def _told(found: Changes, result: FlowResult) -> None:
    st.markdown(f"**{plain(found.sentence)}**")
    names = list(result.states.names)
    flows = found.flows.assign(
        origin=[names[number] for number in found.flows["origin"]],
        dest=[names[number] for number in found.flows["dest"]],
    )
    grew = flows.loc[flows["difference"] > 0].nlargest(MOST_SHOWN, "difference")
    shrank = flows.loc[flows["difference"] < 0].nsmallest(MOST_SHOWN, "difference")
    if found.volumes.size:
        st.markdown("**Across lines**")
        _table(found.volumes, ["line", "direction"], found, "volumes")
    if found.sector_flows.size:
        st.markdown("**Between sectors**")
        _table(found.sector_flows, ["origin", "dest"], found, "sectors")
    if len(flows):
        st.markdown(f"**The {len(grew)} flows that grew most**")
        _table(grew, ["origin", "dest"], found, "grew")
        st.markdown(f"**The {len(shrank)} flows that shrank most**")
        _table(shrank, ["origin", "dest"], found, "shrank")
        with st.expander(f"All {len(flows):,} flows of ten people or more, the most certain first"):
            _table(flows, ["origin", "dest"], found, "flows")
    else:
        st.caption("No single flow has ten people or more: sums of them tell more, as below.")
    with st.expander("Who leaves each cell, and who comes to it", expanded=not len(flows)):
        _table(found.trip_ends, ["place", "end"], found, "ends")
    st.caption(
        f"In {found.unit}. From and to are the ends of an interval of nine in ten around the "
        "difference of what people tend to do: how far each side may be off, and chance."
    )


def _table(rows: pd.DataFrame, keys: Sequence[str], found: Changes, key: str) -> None:
    before, after = found.labels
    if before == after:
        before, after = f"{before}, before", f"{after}, after"
    words = {
        "line": "Line", "direction": "Direction", "origin": "Origin", "dest": "Destination",
        "place": "Place", "end": "End", "before": before, "after": after,
        "difference": "Difference", "low": "From", "high": "To", "changed": "Changed",
    }  # fmt: skip
    columns = [*keys, "before", "after", "difference", "low", "high", "changed"]
    named = rows[columns].rename(columns=words)
    st.dataframe(
        named, hide_index=True, key=f"evidence.changes.{key}", width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.1f")
            for name in named.select_dtypes("number").columns
        },
    )  # fmt: skip


# Sides


Side = tuple[str, ...]
Sides = tuple[Side, Side, str]
"""Times, days, or the other run, of both sides; and the time that days or runs are compared at."""


def _pair(
    key: str,
    labels: tuple[str, str],
    options: Sequence[str],
    first: tuple[str, str],
    words: Callable[[str], str] = str,
) -> list[Side]:
    """Two choices of several beside each other."""
    found: list[Side] = []
    with st.container(horizontal=True, gap="small"):
        for side, label, begin in zip(("before", "after"), labels, first, strict=True):
            name = f"evidence.{key}.{side}"
            held = st.session_state.get(name)
            if held is None or not set(held) <= set(options):
                st.session_state[name] = [begin]
            found.append(
                tuple(
                    st.multiselect(
                        label, options, key=name, persist_state=STAYS, width=340, format_func=words
                    )
                )
            )
    return found


def _times(result: FlowResult) -> Sides:
    times = result.times_of_day
    at = times.index("08:00") if "08:00" in times[:-1] else 0
    before, after = _pair("times", ("From", "To"), times, (times[at], times[at + 1]))
    return before, after, ""


def _days(result: FlowResult) -> Sides:
    days = list(result.days)
    weekdays = [pd.Timestamp(day).day_of_week for day in days]
    one = weekdays.index(1) if 1 in weekdays else 0
    other = weekdays.index(6) if 6 in weekdays else len(days) - 1
    if one == other:
        one, other = 0, len(days) - 1
    _types_of_days(result)
    before, after = _pair("days", ("Days", "Other days"), days, (days[one], days[other]), _day)
    return before, after, _at(result)


def _types_of_days(result: FlowResult) -> None:
    """Ways to take all days of a type for one of the sides, where days are of several types."""
    by_type = result.days_by_type
    if len(by_type) < 2:
        return
    for side, label in (("before", "Days"), ("after", "Other days")):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(f"{label}: all of", width="content")
            for number, (name, some) in enumerate(by_type.items()):
                st.button(
                    plain(f"{name} ({len(some):,})"), key=f"evidence.days.{side}.type.{number}",
                    type="tertiary", on_click=_take_type, args=(side, some),
                )  # fmt: skip


def _take_type(side: str, days: Sequence[str]) -> None:
    """Callback: these days are one side, and none of them is on the other one."""
    other = f"evidence.days.{'after' if side == 'before' else 'before'}"
    st.session_state[f"evidence.days.{side}"] = list(days)
    st.session_state[other] = [d for d in st.session_state.get(other, ()) if d not in days]


def _day(day: str) -> str:
    return f"{day} {pd.Timestamp(day):%a}"


def _at(result: FlowResult) -> str:
    if st.session_state.get("evidence.changes.time") not in result.times:
        st.session_state["evidence.changes.time"] = result.busiest
    return str(
        st.selectbox(
            "Time", result.times, key="evidence.changes.time", persist_state=STAYS, width=200
        )
    )


def _others(run: Run[Any]) -> dict[str, str]:
    """Titles of the runs that this one can be set beside, by their ids."""
    shipped = {key: found.title for key, found in SHIPPED_RUNS.items()}
    kept = {found.id: found.title for found in saved.listed() if isinstance(found, SavedRun)}
    return {
        run_id: title for run_id, title in {**kept, **shipped}.items()
        if run_id not in (run.key, run.saved)
    }  # fmt: skip


def _runs(result: FlowResult, others: dict[str, str]) -> Sides:
    if st.session_state.get("evidence.other") not in others:
        st.session_state["evidence.other"] = next(iter(others))
    other = st.selectbox(
        "Other run", list(others), format_func=others.__getitem__, key="evidence.other",
        persist_state=STAYS, width=420,
    )  # fmt: skip
    return (str(other),), (others[str(other)],), _at(result)
