"""How a file was read: figures, doubts with a button each, and the form to change all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import available_timezones

import pandas as pd
import streamlit as st

from agg_core.base.clock import zone_info
from agg_core.base.errors import InputError
from agg_core.base.options import Option, options_of
from agg_core.io import Choices, Guess, ImportReport, Reading
from agg_core.io.counts.choices import CountChoices
from agg_core.io.sandbox import Kind
from agg_core.io.trips import TRIP_CHOICES
from agg_core.space.settings import parse_bbox
from agg_core.tables.count_report import CountReport
from agg_core.tables.table_report import TableReport
from ui.loading import read_as, reread, take_read
from ui.shell import plain, tell_fault
from ui.state import state
from ui.workspace import workspace

__all__ = ["details", "doubts", "fault", "reading_choices", "report", "set_aside", "watch"]

ROLES = {
    **{"user_id": "Person", "time": "Time", "lon": "Longitude", "lat": "Latitude"},
    **{"date": "Date", "place": "Position", "geometry": "Geometry", "accuracy": "Accuracy"},
}
COUNT_ROLES = {
    **{"time": "Time", "date": "Date", "clock": "Time of day", "cell": "Cell"},
    **{"lon": "Longitude", "lat": "Latitude", "count": "Count"},
    **{"row": "Row number", "col": "Column number"},
}
GATE_ROLES = {
    **{"time": "Time", "date": "Date", "clock": "Time of day", "cell": "Station"},
    **{"entries": "Entries", "exits": "Exits", "count": "Count"},
}
TRIP_ROLES = {
    **{"start": "Start time", "end": "End time", "origin": "Origin", "dest": "Destination"},
    **{"origin_lon": "Origin longitude", "origin_lat": "Origin latitude"},
    **{"dest_lon": "Destination longitude", "dest_lat": "Destination latitude"},
}
MOST_BUTTONS = 3
HEADER = {True: "first row", False: "no header"}
FIRST = ("tz", "time_format", "crs", "swap_axes", "max_speed", "max_accuracy")
"""Choices that many need; the others come after."""
TRIP_FIRST = ("tz", "time_format", "places_key")
GATE_FIRST = ("tz", "absent", "first_day", "last_day")
COUNT_FIRST = (
    *("tz", "absent", "suppressed_below", "duplicates"),
    *("grid_box", "grid_rows", "grid_cols", "grid_corner", "coarser"),
)


def report(found: ImportReport) -> None:
    """What a file held: figures, what was set aside, what was guessed."""
    tiles = st.columns(4)
    tiles[0].metric("People", f"{found.individuals:,}")
    tiles[1].metric("Fixes kept", f"{found.rows_kept:,}", help=f"of {found.rows_read:,} rows read")
    tiles[2].metric("Rows set aside", f"{found.rows_read - found.rows_kept:,}")
    tiles[3].metric("Fixes per person", f"{found.fixes_per_individual[1]:g}", help="median")
    west, south, east, north = found.bbox
    zone = zone_info(found.timezone)
    first, last = found.first_utc.tz_convert(zone), found.last_utc.tz_convert(zone)
    st.caption(
        f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, clock of {plain(found.timezone)} · "
        f"west {west:.4f}°, south {south:.4f}°, east {east:.4f}°, north {north:.4f}°"
    )
    set_aside(found)
    doubts(found)
    details(found)


def set_aside(found: ImportReport | CountReport | TableReport) -> None:
    """Rows that were not used, by why."""
    if found.set_aside:
        rows = [
            {
                "Why": cause,
                "Rows": aside.count,
                "First lines": ", ".join(map(str, aside.lines)),
                "Example": aside.example,
            }
            for cause, aside in found.set_aside.items()
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")


def details(found: ImportReport | CountReport | TableReport) -> None:
    """All that was guessed."""
    with st.expander("How the file was read"):
        rows = [
            {
                "What": _named(name),
                "Taken as": g.value,
                "Could be": ", ".join(g.alternatives),
                "Note": g.note,
            }
            for name, g in found.guesses.items()
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")


def doubts(found: ImportReport | CountReport | TableReport) -> None:
    """Each guess that may well be wrong, with a button for each other reading."""
    for name, guess in found.guesses.items():
        if guess.note:
            taken = f"{_named(name)} taken as {guess.value}: {guess.note}."
            by_hand = state().tried is not None
            if guess.option and not guess.alternatives and by_hand:
                taken += " Change it under Read it differently."
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(f":material/help: {plain(taken)}", width="content")
                if by_hand:
                    _others(name, guess)


def _others(name: str, guess: Guess) -> None:
    """Buttons that read the file again by another reading."""
    for other in guess.alternatives[:MOST_BUTTONS] if guess.option else ():
        st.button(
            f"Read as {plain(other)}", key=f"doubt.{name}.{other}", type="tertiary",
            on_click=_change, args=(guess.option, other),
        )  # fmt: skip


def _change(option: str, value: str) -> None:
    # The form must show what is chosen now, not what it held before.
    for key in [key for key in st.session_state if str(key).startswith("reading.")]:
        del st.session_state[key]
    reread((state().tried or Choices()).changed(option, value))


def fault() -> None:
    """Why the last file could not be read, and the button that mends it, if there is one."""
    now = state()
    if now.fault is None:
        return
    tell_fault(now.fault)
    if now.remedy is not None:
        option, value = now.remedy
        label = "Swap the axes" if option == "swap_axes" else f"Read as {plain(value)}"
        st.button(
            label, key="reading.remedy", icon=":material/healing:", on_click=_change,
            args=now.remedy,
        )  # fmt: skip


def watch() -> None:
    """How far the reading of a large file is, with cancel; opens it when it has ended."""
    reading = workspace().reading
    if reading is None or not state().reading:
        return
    if reading.state != "running":
        take_read()
        return

    @st.fragment(run_every=1.0)
    def show(reading: Reading) -> None:
        if reading.state != "running":
            st.rerun()
        step = reading.progress
        rows = "Opening the file …" if step is None else f"{step.rows:,} rows read …"
        st.progress(0.0 if step is None else min(step.share, 1.0), rows)
        if st.button("Cancel", icon=":material/stop_circle:", key="reading.cancel"):
            reading.cancel()
            st.rerun()

    show(reading)


def _named(role: str) -> str:
    """What was guessed, as the choices of reading call it."""
    return f"{ROLES[role]} column" if role in ROLES else role.capitalize()


def reading_choices() -> None:
    """Change how the last upload is read: columns, zone, rows and all else."""
    tried, reading = state().tried, workspace().reading
    if tried is None or reading is None or reading.state == "running":
        return
    with st.expander("Read it differently", expanded=state().fault is not None):
        _form(tried, reading.columns, reading.examples)
        _other_kind(tried)


def _other_kind(tried: Choices | CountChoices) -> None:
    """What a file holds is told by its content, which may err."""
    now = _kind_tried(tried)
    with st.container(horizontal=True, gap="small"):
        for kind, (key, label) in OTHER_KINDS.items():
            if kind != now:
                st.button(
                    f"Read as {label} instead", key=f"reading.as_{key}", type="tertiary",
                    icon=":material/swap_horiz:", on_click=read_as, args=(kind,),
                )  # fmt: skip


OTHER_KINDS: Mapping[Kind, tuple[str, str]] = {
    "trajectories": ("tracks", "tracks of people"),
    "counts": ("counts", "counts per cell"),
    "gates": ("gates", "entries and exits"),
    "trips": ("trips", "single trips"),
}


def _kind_tried(tried: Choices | CountChoices) -> Kind:
    """What the last files were read as."""
    reading = workspace().reading
    taken = None if reading is None else reading.kind
    if isinstance(tried, CountChoices):
        return "gates" if taken == "gates" else "counts"
    return "trips" if taken == "trips" else "trajectories"


FORMS: Mapping[Kind, tuple[Mapping[str, str], Sequence[str]]] = {
    "trajectories": (ROLES, FIRST),
    "counts": (COUNT_ROLES, COUNT_FIRST),
    "gates": (GATE_ROLES, GATE_FIRST),
    "trips": (TRIP_ROLES, TRIP_FIRST),
}
"""Roles of columns, and choices that many need, of each kind."""


def _form(
    tried: Choices | CountChoices, columns: tuple[str, ...], examples: tuple[str, ...]
) -> None:
    kind = _kind_tried(tried)
    roles, first = FORMS[kind]
    with st.form("reading", border=False, enter_to_submit=False):
        st.caption("Say which column holds what; what is left open is found by its name.")
        shown = {
            column: f"{column}: {plain(value)}"
            for column, value in zip(columns, examples, strict=False)
        }
        picked = _columns(columns, tried, roles, shown)
        places = st.columns(4, vertical_alignment="bottom")
        column = places[0].selectbox(
            "Keep only rows where", columns, placeholder="any column", key="reading.where",
            index=columns.index(tried.where[0][0]) if tried.where else None,
        )  # fmt: skip
        value = places[1].text_input(
            "equals", value=tried.where[0][1] if tried.where else "", key="reading.value"
        )
        options = {
            name: option
            for name, option in options_of(tried).items()
            if kind != "trips" or name in TRIP_CHOICES
        }
        stated = _widgets({name: options[name] for name in first}, tried)
        with st.expander("More"):
            stated |= _widgets({n: o for n, o in options.items() if n not in first}, tried)
        if st.form_submit_button("Read again", icon=":material/refresh:"):
            where = {column: value} if column and value else None
            try:
                choices = type(tried).of(picked, where, **_extents(stated, tried))
            except InputError as fault:
                tell_fault(str(fault))
                return
            reread(choices)
            st.rerun()


def _extents(stated: dict[str, Any], tried: Choices | CountChoices) -> dict[str, Any]:
    """What was stated, with the sides of an extent as numbers."""
    typed = {name for name in stated if isinstance(getattr(tried, name), tuple)}
    sides = {name: parse_bbox(stated[name]) if stated[name] else () for name in typed}
    return stated | sides


def _columns(
    columns: tuple[str, ...],
    tried: Choices | CountChoices,
    roles: Mapping[str, str],
    shown: Mapping[str, str],
) -> dict[str, str | int]:
    chosen = dict(tried.columns)
    places = st.columns(4)
    picked = {
        role: places[i % 4].selectbox(
            f"{label} column", columns, placeholder="found by name", key=f"reading.{role}",
            format_func=lambda column: shown.get(column, column),
            index=columns.index(str(chosen[role])) if str(chosen.get(role)) in columns else None,
        )
        for i, (role, label) in enumerate(roles.items())
    }  # fmt: skip
    return {role: column for role, column in picked.items() if column is not None}


def _widgets(options: dict[str, Option], tried: Choices | CountChoices) -> dict[str, Any]:
    """A widget for each choice, as many in a row as fit."""
    stated = {}
    names = list(options)
    for row in range(0, len(names), 4):
        places = st.columns(4, vertical_alignment="bottom")
        for place, name in zip(places, names[row : row + 4], strict=False):
            with place:
                stated[name] = _widget(name, options[name], getattr(tried, name))
    return stated


def _widget(name: str, option: Option, value: Any) -> Any:
    label = f"{option.label} ({option.unit})" if option.unit else option.label
    key = f"reading.{name}"
    if name == "tz":
        zones = sorted(available_timezones())
        return st.selectbox(
            label, zones, placeholder="as in the file, else UTC", key=key, help=option.help,
            index=zones.index(value) if value in zones else None,
        )  # fmt: skip
    if name == "header":
        return st.selectbox(
            label, list(HEADER), format_func=HEADER.__getitem__, placeholder="found out", key=key,
            index=None if value is None else list(HEADER).index(value), help=option.help,
        )  # fmt: skip
    if isinstance(value, bool):
        return st.checkbox(label, value, key=key, help=option.help)
    if option.choices:
        labels = dict(zip(option.choices, option.choice_labels or option.choices, strict=True))
        return st.selectbox(
            label, option.choices, format_func=labels.__getitem__, placeholder="found out",
            index=None if value is None else option.choices.index(value), key=key,
            help=option.help,
        )  # fmt: skip
    is_extent = isinstance(value, tuple)
    if option.unit and not is_extent:
        return st.number_input(
            label, float(option.least or 0), option.most and float(option.most),
            None if value is None else float(value),
            option.step and float(option.step),
            key=key, help=option.help, format="%g",
            placeholder="no limit" if name.startswith("max_") else "found out",
        )  # fmt: skip
    shown = ", ".join(map(str, value)) if is_extent else value or ""
    hint = "west, south, east, north" if is_extent else "found out"
    return st.text_input(label, shown, key=key, help=option.help, placeholder=hint) or None
