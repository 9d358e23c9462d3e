"""Pieces of the page Evidence: what flows come to over lines, areas and lengths, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.evidence.asking import distances_for, reference_for
from agg_core.evidence.changes import Changes
from agg_core.evidence.examine import Evidence
from agg_core.evidence.limited import SharedResult
from agg_core.evidence.presets import PRESETS, Preset, own_preset
from agg_core.evidence.privacy import Limit
from agg_core.evidence.profiles import Profile
from agg_core.exports.report import ABOUT_CRITERIA, report_page
from agg_core.plotting.evidence import day_chart, length_chart, xy_chart
from agg_core.study.result import WHOLE_DAY, FlowResult
from ui import cached
from ui.brought import (
    STAYS,
    brought,
    counters_of,
    line_inputs,
    reading_inputs,
    sector_inputs,
    table_input,
    tell_faults,
    timezone_input,
)
from ui.changes import shown_changes, what_changed
from ui.counts_data import NO_PLACES
from ui.drawing import map_of_lines
from ui.exports import who_is_found
from ui.flow_figures import tell_limit
from ui.profiles import shown_profiles, times_of_day
from ui.shell import beside, plain, tell_fault, theme
from ui.state import Run
from ui.views import held_view

__all__ = ["show"]

STATIC = {"displayModeBar": False}
FEW = 10
PARTS = (
    "Screenlines", "Sectors", "Times of day", "Lengths and trip ends", "Checks", "What changed",
    "Report",
)  # fmt: skip
COLUMNS = {
    "line": "Line", "direction": "Direction", "time": "Time", "count": "Estimate", "low": "From",
    "high": "To", "corrected": "Corrected", "reference": "Reference", "counted": "Counted",
    "geh": "GEH", "sqv": "SQV", "place": "Place", "origin": "Origin",
    "dest": "Destination", "value": "Value", "figure": "Figure",
}  # fmt: skip
OWN = "own"
FIGURES = {
    "mean_km": "mean length, km", "sd_km": "spread of lengths, km",
    "share_within": "share who stay in their cell", "coincidence": "coincidence ratio",
}  # fmt: skip
ENDS = {"in": "come from", "out": "go to"}


def show(run: Run[Any]) -> None:
    """All evidence for a run: one part at a time, each with intervals."""
    days = held_view(cached.result(run.key)).days
    result = cached.result_of(run.key, days)
    about = f"{run.title} · {result.basis}"
    about += f" · what happened on {result.days_words}" if result.chosen_days else ""
    st.caption(plain(about))
    tell_limit(result)
    is_shared = isinstance(result, SharedResult)
    parts = [part for part in PARTS if part != "Report" or not is_shared]
    _held("evidence.part", parts, parts[0])
    part = st.segmented_control(
        "Part", parts, default=PARTS[0], required=True, key="evidence.part", persist_state=STAYS,
        label_visibility="collapsed",
    )  # fmt: skip
    tell_faults()
    if part == "What changed":
        what_changed(run, result)
        return
    if part == "Screenlines":
        _lines(run, result)
    elif part == "Sectors":
        _sectors(run, result)
    elif part == "Times of day":
        times_of_day(run, result, _reference(result), lambda: _reference_input(result))
    elif part == "Checks":
        _checks(run, result)
    elif part == "Report":
        _report(run, result)
    else:
        _lengths(run, result)
    if part != "Report" and result.truths and not is_shared:
        st.caption(
            "Of these tables nothing is withheld. The page Flows limits files before they are "
            "given away."
        )
        time = st.session_state.get("evidence.time", held_view(result).time)
        at = time if time in result.times else result.busiest
        who_is_found(result, at, Limit(0), "evidence.found")


# What all parts have in common


def _evidence(run: Run[Any], result: FlowResult) -> Evidence | None:
    """All that was asked of the run; a fault is told, and what was brought stays."""
    try:
        return _examined(run, result)[0]
    except InputError as fault:
        tell_fault(str(fault))
        return None


def _examined(run: Run[Any], result: FlowResult) -> tuple[Evidence, tuple[str, ...]]:
    return cached.evidence(
        run.key, result.chosen_days, brought().stamp, _preset_key(), _own_values(),
        _reference(result), _slot_minutes(),
    )  # fmt: skip


def _held(key: str, options: Sequence[Any], first: Any) -> None:
    """Let a control begin with ``first``, also where what was chosen is no option any more."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = first


def _time(result: FlowResult, evidence: Evidence) -> str:
    """The time that is looked at."""
    first = held_view(result).time
    _held("evidence.time", evidence.times, first if first in evidence.times else result.busiest)
    return str(
        st.selectbox("Time", evidence.times, key="evidence.time", persist_state=STAYS, width=200)
    )


def _table(rows: pd.DataFrame, columns: Sequence[str], key: str, digits: int = 1) -> None:
    """A table, which can be taken away as CSV; columns that nothing is known of are left out."""
    kept = [name for name in columns if rows[name].notna().any() or name in ("count", "value")]
    named = rows[kept].rename(columns=COLUMNS)
    numbers = named.select_dtypes("number").columns
    st.dataframe(
        named, hide_index=True, key=key, width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format=f"%.{2 if name == 'SQV' else digits}f")
            for name in numbers
        },
    )  # fmt: skip


def _people(value: float) -> str:
    return f"{value:,.1f}" if abs(value) < FEW else f"{value:,.0f}"


def _sure(row: Any, name: str = "count") -> str:
    """A figure with its interval, for a sentence."""
    if pd.isna(row["low"]):
        return f"{_people(row[name])} (how sure is not known)"
    more = "" if pd.isna(row["corrected"]) else f", corrected {_people(row['corrected'])}"
    return f"{_people(row[name])}{more} ({_people(row['low'])} to {_people(row['high'])})"


def _notes(evidence: Evidence, *more: str) -> None:
    for note in (*evidence.notes, *more):
        st.caption(plain(note))


# Parts


def _lines(run: Run[Any], result: FlowResult) -> None:
    if result.states.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
        return
    line_inputs(result, held_view(cached.result(run.key)).cells)
    own = brought()
    if not own.lines and "counters" not in own.tables:
        st.info(
            "How many cross the river, or come into the centre? Add a line or a cordon above; all "
            "flows across it are summed, by direction and time, with an interval around each sum.",
            icon=":material/info:",
        )
        map_of_lines(result, own.lines)
        return
    evidence = _evidence(run, result)
    if evidence is None:
        return
    time = _time(result, evidence)
    rows = evidence.volumes.loc[evidence.volumes["time"] == time]
    for name, some in rows.groupby("line", sort=False):
        ways = " and ".join(f"{_sure(row)} {row['direction']}" for row in some.to_dict("records"))
        st.markdown(plain(f"{name}, {time}: {ways}, {evidence.unit}."))
    figures, on_map = beside([3, 2], gap="large")
    with figures:
        names = list(dict.fromkeys(evidence.volumes["line"]))
        _held("evidence.line", names, names[0])
        shown = names[0]
        if len(names) > 1:
            shown = st.selectbox("Over the day", names, key="evidence.line", persist_state=STAYS)
        of_day = evidence.volumes.loc[
            (evidence.volumes["line"] == shown) & (evidence.volumes["time"] != WHOLE_DAY)
        ]
        by_day = evidence.by_day.loc[evidence.by_day["line"] == shown]
        st.plotly_chart(
            day_chart(of_day, evidence.unit, theme(), days=by_day), theme=None, config=STATIC,
            key="evidence.volumes.chart", alt="Volumes across the line over the day",
        )  # fmt: skip
    with on_map:
        map_of_lines(result, evidence.lines)
    every = st.toggle("All times", key="evidence.lines.all", persist_state=STAYS)
    _table(
        evidence.volumes if every else rows,
        [
            "line",
            "direction",
            "time",
            "count",
            "low",
            "high",
            "corrected",
            "reference",
            "counted",
            "geh",
            "sqv",
        ],
        "evidence.volumes",
    )
    st.caption(
        "A flow crosses a line where the straight way from the middle of its cell to that of the "
        "other does. Of a cordon, who passes through comes in and goes out. Intervals hold what "
        "truly moved in nine of ten; where one lies beside its estimate, its middle is the "
        "corrected figure."
    )
    _notes(evidence)


def _sectors(run: Run[Any], result: FlowResult) -> None:
    if result.states.grid is not None:
        sector_inputs(result)
    evidence = _evidence(run, result)
    if evidence is None:
        return
    flows = evidence.sector_flows
    has_sectors = not flows.empty
    names = list(dict.fromkeys(flows["origin"])) if has_sectors else list(result.states.cells)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        time = _time(result, evidence)
        _held("evidence.place", names, _first_place(evidence, time, names))
        place = st.selectbox(
            "Where do people of this place", names, key="evidence.place", persist_state=STAYS,
            width=280,
        )  # fmt: skip
        end = st.segmented_control(
            "Way", list(ENDS), default="in", required=True, format_func=ENDS.__getitem__,
            key="evidence.end", persist_state=STAYS, label_visibility="collapsed",
        )  # fmt: skip
    if has_sectors:
        here, other = ("dest", "origin") if end == "in" else ("origin", "dest")
        rows = flows.loc[(flows["time"] == time) & (flows[here] == place)]
        rows = rows.rename(columns={other: "place"}).sort_values("count", ascending=False)
        rows = rows.loc[rows["count"] > 0]
    else:
        rows = cached.flows_of_place(
            run.key, result.chosen_days, time, names.index(place), "out" if end == "out" else "in"
        ).assign(reference=float("nan"))
    if len(rows):
        first = rows.iloc[0]
        st.markdown(plain(
            f"{time}: most who {'come to' if end == 'in' else 'leave'} {place} "
            f"{ENDS[str(end)]} {first['place']}: {_sure(first)} {evidence.unit}."
        ))  # fmt: skip
        _table(
            rows,
            ["place", "count", "low", "high", "corrected", "reference"],
            "evidence.place.table",
        )
    else:
        st.markdown(plain(f"{time}: nobody, as estimated."))
    if has_sectors:
        st.markdown("**From each sector to each**")
        at = flows.loc[flows["time"] == time]
        by_origin = at.pivot(index="origin", columns="dest", values="count")
        wide = by_origin.reindex(index=names, columns=names)
        st.dataframe(
            wide, key="evidence.od", width="stretch",
            column_config={
                name: st.column_config.NumberColumn(format="%.1f") for name in wide.columns
            },
        )  # fmt: skip
        every = st.toggle("All times", key="evidence.sectors.all", persist_state=STAYS)
        _table(
            flows if every else at,
            ["origin", "dest", "time", "count", "low", "high", "corrected", "reference"],
            "evidence.od.rows",
        )  # fmt: skip
        st.caption(f"Moves from cell to cell, {evidence.unit}, by the sectors of both ends.")
    else:
        st.caption("Each cell stands for itself until sectors are given.")
    _notes(evidence)


def _first_place(evidence: Evidence, time: str, names: Sequence[str]) -> str:
    """The cell that most people come to, or the first sector."""
    ends = evidence.trip_ends
    rows = ends.loc[(ends["time"] == time) & (ends["end"] == "in")].nlargest(1, "count")
    largest = "".join(map(str, rows["place"]))
    return largest if largest in names else names[0]


def _lengths(run: Run[Any], result: FlowResult) -> None:
    with st.expander("Hold them against other flows"):
        _reference_input(result)
        table_input(
            "distances", "Distances between cells, in km",
            "OMX with one matrix, a square table, or origin, dest and km. Straight ones are taken "
            "without it.",
            lambda read: distances_for(result, read[1], read[0]),
        )  # fmt: skip
    evidence = _evidence(run, result)
    if evidence is None:
        return
    time = _time(result, evidence)
    bins = evidence.histogram.loc[evidence.histogram["time"] == time]
    if len(bins):
        figures = evidence.lengths.loc[evidence.lengths["time"] == time]
        st.plotly_chart(
            length_chart(bins, evidence.unit, theme()), theme=None, config=STATIC,
            key="evidence.lengths.chart", alt="Moves by their length",
        )  # fmt: skip
        named = figures.assign(figure=figures["figure"].map(FIGURES))
        _table(
            named,
            ["figure", "value", "low", "high", "corrected", "reference"],
            "evidence.lengths",
            3,
        )
    st.markdown("**People who leave each cell, and who come to it**")
    ends = evidence.trip_ends.loc[evidence.trip_ends["time"] == time]
    ends = ends.sort_values("count", ascending=False, kind="stable").assign(
        direction=lambda rows: rows["end"].map({"out": "leave", "in": "come"})
    )
    _table(
        ends,
        ["place", "direction", "count", "low", "high", "corrected", "reference"],
        "evidence.ends",
    )
    _notes(evidence)


# Checks


def _reference_options(result: FlowResult) -> dict[str, str]:
    return {
        "": "nothing",
        **{source: result.source_label(source) for source in result.references},
        "file": "a table of flows",
    }


def _reference(result: FlowResult) -> str | None:
    chosen = st.session_state.get("evidence.reference") or None
    return chosen if chosen in _reference_options(result) else None


def _reference_input(result: FlowResult) -> None:
    options = _reference_options(result)
    _held("evidence.reference", list(options), "")
    st.selectbox(
        "Held against", list(options), format_func=options.__getitem__, key="evidence.reference",
        persist_state=STAYS, width=320,
    )  # fmt: skip
    if st.session_state["evidence.reference"] == "file":
        table_input(
            "reference", "Table of flows",
            "Columns origin, dest and count, perhaps time, with the names of these cells; or OMX.",
            lambda read: reference_for(result, read[1], read[0], timezone=brought().timezone),
        )  # fmt: skip
        timezone_input("reference")


def _slot_minutes() -> float | None:
    minutes = st.session_state.get("evidence.slot")
    return None if not minutes else float(minutes)


def _preset_key() -> str | None:
    chosen = st.session_state.get("evidence.preset")
    return chosen if chosen in (*PRESETS, OWN) else next(iter(PRESETS))


def _own_values() -> tuple[float, float, float]:
    held = st.session_state
    return (
        float(held.get("evidence.own.lines", 10.0)) / 100, float(held.get("evidence.own.geh", 5.0)),
        float(held.get("evidence.own.share", 85.0)) / 100,
    )  # fmt: skip


def _preset() -> Preset:
    key = str(_preset_key())
    if key != OWN:
        return PRESETS[key]
    lines, of_geh, share = _own_values()
    return own_preset(screenlines=lines, counters_geh=of_geh, share=share)


def _checks(run: Run[Any], result: FlowResult) -> None:
    labels = {**{key: preset.label for key, preset in PRESETS.items()}, OWN: "Own values"}
    _held("evidence.preset", list(labels), next(iter(labels)))
    left, right = beside([1, 1], gap="large")
    with left:
        st.selectbox(
            "Criteria", list(labels), format_func=labels.__getitem__, key="evidence.preset",
            persist_state=STAYS, width=320,
        )  # fmt: skip
        if st.session_state["evidence.preset"] == OWN:
            _own_inputs()
        _reference_input(result)
    with right:
        _counter_input(result)
    evidence = _evidence(run, result)
    if evidence is None:
        return
    preset = _preset()
    if evidence.verdicts:
        st.dataframe(
            pd.DataFrame([
                {
                    "Answer": verdict.answer, "Criterion": verdict.criterion.words,
                    "Values": verdict.n, "Met as estimated": verdict.met,
                    "Within": None if verdict.criterion.is_fit else verdict.share,
                }
                for verdict in evidence.verdicts
            ]),
            hide_index=True, key="evidence.verdicts", width="stretch",
            column_config={"Within": st.column_config.NumberColumn(format="percent")},
        )  # fmt: skip
    else:
        st.info(
            "Nothing was counted that could be checked: choose flows to hold these against, or "
            "add lines and what was counted at them.",
            icon=":material/info:",
        )
    if evidence.not_asked:
        st.caption(plain(f"Not asked, since nothing was counted: {'; '.join(evidence.not_asked)}."))
    st.caption(plain(f"Source: {preset.source}."))
    st.warning(ABOUT_CRITERIA, icon=":material/rule:")
    _fits(result, evidence)
    with st.expander("What an interval and an answer mean"):
        st.markdown(result.about_intervals)
    if _reference(result) == "file":
        _day_by_day(run, result)
    _notes(evidence, *_examined(run, result)[1])


def _day_by_day(run: Run[Any], result: FlowResult) -> None:
    """How the flows of each day meet those of a reference that tells days."""
    if result.chosen_days or not result.days or "reference" not in brought().tables:
        return
    found = cached.by_day(run.key, brought().stamp)
    if found is None or not found.by_day:
        return
    st.markdown("**Day by day**")
    with st.container(horizontal=True, gap="large"):
        for label, value, about in (
            ("Common part", found.cpc, "Share of trips that both have (CPC), mean of the days."),
            ("Total movement", found.total_ratio, "Trips as learned over those of the reference."),
            (
                "Within intervals", found.coverage_90,
                "Share of larger flows of the reference that the 90 % interval of that day holds.",
            ),
        ):  # fmt: skip
            st.metric(label, f"{value:.3f}" if value == value else "–", help=about, width=170)  # noqa: PLR0124
    st.dataframe(
        pd.DataFrame({"Day": list(found.by_day), "Common part": list(found.by_day.values())}),
        hide_index=True, key="evidence.days", width="stretch",
        column_config={"Common part": st.column_config.NumberColumn(format="%.3f")},
    )  # fmt: skip


def _own_inputs() -> None:
    held = st.session_state
    for key, label, first, most in (
        ("lines", "Screenlines within, %", 10.0, 100.0), ("geh", "GEH below", 5.0, 100.0),
        ("share", "at this share of counters, %", 85.0, 100.0),
    ):  # fmt: skip
        held.setdefault(f"evidence.own.{key}", first)
        st.number_input(
            label, 0.1, most, step=1.0, key=f"evidence.own.{key}", persist_state=STAYS, width=320
        )


def _counter_input(result: FlowResult) -> None:
    if result.states.grid is None:
        return
    table_input(
        "counters", "What was counted at the lines",
        "Columns line, direction, time and count, as CSV, Excel or Parquet; lines by their names "
        "here, directions as in, out, north, E and the like. Or lon and lat in place of the line, "
        "and directions as bearings in degrees, or none for both ways together.",
        lambda read: counters_of(result, read, _slot_minutes()),
    )  # fmt: skip
    where = (
        "Counters with lon and lat stand at the nearest line."
        if brought().lines
        else "There are no lines yet: each counter needs lon and lat, and stands at the nearest "
        "border between two cells. It is held against all whose straight way crosses that border, "
        "so that counters have to cover the roads over it. With lines of your own, added under "
        "Screenlines, counters are matched to these."
    )
    st.caption(where)
    with st.expander("How the counters are read"):
        st.number_input(
            "Minutes that a count lasts", 0, 1440, key="evidence.slot", persist_state=STAYS,
            width=320,
            help="0: told by how far apart the times are, else as long as a step of the flows.",
        )  # fmt: skip
        reading_inputs()


def _fits(result: FlowResult, evidence: Evidence) -> None:
    if evidence.fits.empty:
        return
    st.markdown("**How well they fit**")
    words = {"slope": "slope", "intercept": "intercept", "r2": "R²", "rmse": "RMSE",
             "percent_rmse": "RMSE, %"}  # fmt: skip
    st.dataframe(
        pd.DataFrame([
            {
                "Of": fit["of"], "Values": fit["n"], "Figure": label, "Value": fit[name],
                "From": fit[f"{name}_low"], "To": fit[f"{name}_high"],
                "Corrected": fit[f"{name}_corrected"],
            }
            for fit in evidence.fits.to_dict("records") for name, label in words.items()
        ]),
        hide_index=True, key="evidence.fits", width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in ("Value", "From", "To", "Corrected")
        },
    )  # fmt: skip
    time = _time(result, evidence)
    rows = evidence.trip_ends.loc[
        (evidence.trip_ends["time"] == time) & evidence.trip_ends["reference"].notna()
    ]
    if len(rows):
        named = [f"{row['place']} {row['end']}" for row in rows.to_dict("records")]
        st.plotly_chart(
            xy_chart(rows.rename(columns={"reference": "counted"}), named, evidence.unit, theme()),
            theme=None, config=STATIC, key="evidence.xy",
            alt="Trip ends as estimated against those counted",
        )  # fmt: skip


# Report


def _report(run: Run[Any], result: FlowResult) -> None:
    st.markdown(
        "One page that opens in any browser without a network and prints to PDF: data, method, "
        "settings, all figures with their intervals, the checks and their source, and what speaks "
        "against these flows."
    )
    st.session_state.setdefault("evidence.title", run.title)
    title = st.text_input("Title", key="evidence.title", persist_state=STAYS, width=480)
    changes = shown_changes(run)
    if changes is None:
        st.caption("What changed is in it once it has been looked at, and so are times of day.")
    try:
        evidence, said = _examined(run, result)
    except InputError as fault:
        tell_fault(str(fault))
        return
    followed = shown_profiles(run, result, _reference(result))
    st.download_button(
        "Make the report",
        partial(_made, result, evidence, title, changes, _preset(), said, followed),
        file_name="evidence.html", mime="text/html", key="evidence.report", type="primary",
        icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    _notes(evidence, *said)


def _made(
    result: FlowResult,
    evidence: Evidence,
    title: str,
    changes: Changes | None,
    preset: Preset,
    said: Sequence[str],
    profiles: Sequence[Profile],
) -> bytes:
    made = f"{datetime.now():%Y-%m-%d}"
    return report_page(
        result, evidence, title, changes, profiles=profiles, preset=preset, notes=said, made=made
    )
