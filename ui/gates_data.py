"""Entries and exits on the pages Data and Grid: what the files hold, and the stations."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.gates.days import ServiceDays
from agg_core.plotting.gates import days_chart, stations_deck
from agg_core.tables.gates import GateTable
from ui import cached
from ui.brought import TABLES
from ui.learning import ways_on
from ui.loading import leave_out_beside, take_beside
from ui.outlines import outline_choice
from ui.panels import STATIC
from ui.reading import details, doubts, set_aside
from ui.scene import map_size_px, scene
from ui.shell import go_on, plain, theme
from ui.state import Dataset, state
from ui.workspace import workspace

__all__ = ["data_of", "files_beside", "stations_of"]

NO_PLACES = (
    "Nothing says yet where the stations are, so there is no map, and distance can tell nothing of "
    "who goes where. Add a table of stations above."
)
SHOWN_NAMES = 8
EVEN = 0.0005
"""Share of people up to which entries and exits are said to be as many."""

BESIDE = {
    "exits": (
        "Exits",
        "If the file above has only those who enter: a table of the same layout of those who "
        "leave.",
    ),
    "places": (
        "Stations",
        "A table of station, lon, lat and perhaps line; a station of several lines has a row for "
        "each, or names with a semicolon between.",
    ),
    "distances": (
        "Distances on the way",
        "Kilometres that people go between stations: origin, dest and km, a square table, or OMX. "
        "Straight ones are taken without it.",
    ),
}  # fmt: skip


def files_beside() -> None:
    """Uploads that go with a file of entries and exits, if that is what was tried last."""
    own = workspace()
    if own.reading is None or own.reading.kind != "gates" or state().tried is None:
        return
    with st.expander("Exits, stations and distances", expanded=_lacks_files()):
        for (part, (label, about)), place in zip(BESIDE.items(), st.columns(3), strict=True):
            with place:
                st.file_uploader(
                    label, TABLES, key=f"gates.{part}", help=about,
                    on_change=partial(take_beside, part),
                )  # fmt: skip
                for name in own.beside.get(part, ()):
                    st.button(
                        plain(f"Leave out {printable(name)}"), key=f"gates.{part}.drop",
                        icon=":material/close:", type="tertiary",
                        on_click=partial(leave_out_beside, part),
                    )  # fmt: skip


def _lacks_files() -> bool:
    now = state()
    if now.fault is not None or now.dataset is None or now.dataset.kind != "gates":
        return True
    return cached.gates(now.dataset.key).places is None


def data_of(opened: Dataset) -> None:
    """What is in files of entries and exits: figures, balances, days, stations."""
    table = cached.gates(opened.key)
    st.header(f"What is in {plain(opened.title)}", anchor=False)
    ways_on(opened)
    days = _days(opened)
    _figures(table, days)
    said = [*table.notes, *_balances(table, days)]
    st.markdown("\n".join(f"- {plain(each)}" for each in said))
    sides = {"Entries": table.entries.report, "Exits": table.exits.report}
    if sides["Entries"].set_aside == sides["Exits"].set_aside:
        set_aside(sides["Entries"])
    else:
        for name, report in sides.items():
            if report.set_aside:
                st.markdown(f"**{name}**")
                set_aside(report)
    doubts(table.entries.report)
    details(table.entries.report)
    if days is not None:
        st.plotly_chart(
            days_chart(
                days.dates, days.entries.sum(axis=(1, 2)), days.exits.sum(axis=(1, 2)), theme()
            ),
            theme=None, config=STATIC, key="gates.days",
            alt="Entries and exits of all stations on each day",
        )  # fmt: skip
        st.caption(
            "By day of service, from one quiet night to the next; counts that are missing are as "
            "usual, and of each day the smaller sum is scaled to the larger."
        )
    _map(table)


def _days(opened: Dataset) -> ServiceDays | None:
    """Days of service; None, and why, where there are none to learn from."""
    try:
        return cached.gate_days(opened.key)
    except InputError as fault:
        st.warning(plain(str(fault)), icon=":material/warning:")
        return None


def _figures(table: GateTable, days: ServiceDays | None) -> None:
    tiles = st.columns(5)
    tiles[0].metric("Stations", f"{table.n_stations:,}")
    tiles[1].metric(
        "Days", "–" if days is None else f"{days.n_days:,}",
        help="Days of service that can be learned from.",
    )  # fmt: skip
    tiles[2].metric("Entries", f"{table.n_entered:,.0f}")
    tiles[3].metric("Exits", f"{table.n_left:,.0f}")
    tiles[4].metric(
        "Filled", "–" if days is None else f"{days.n_filled:,}",
        help="Counts that are missing on these days, and are taken to be as usual.",
    )  # fmt: skip
    local = table.local_times
    rows = [side.report for side in (table.entries, table.exits)]
    read = " and ".join(f"{each.rows_used:,} of {each.rows_read:,}" for each in rows)
    lines = f" · {_n_lines(table):,} lines" if table.lines else ""
    st.caption(
        f"Rows used of those read, for entries and for exits: {read} · "
        f"{local[0]:%Y-%m-%d %H:%M} to {local[-1]:%Y-%m-%d %H:%M}, clock of "
        f"{plain(table.timezone)} · steps of {table.step_minutes:g} minutes{lines}"
    )


def _n_lines(table: GateTable) -> int:
    return len({line for of in table.lines for line in of.split(";")} - {""})


def _balances(table: GateTable, days: ServiceDays | None) -> list[str]:
    """Who never leaves, days that are left out, and stations that were closed, as sentences."""
    share = (table.n_entered - table.n_left) / max(table.n_entered, 1.0)
    if abs(share) <= EVEN:
        said = ["As many people leave as enter."]
    elif share > 0:
        said = [f"{share:.2%} of those who enter are not seen to leave."]
    else:
        said = [f"{-share:.2%} more people leave than are seen to enter."]
    if days is None:
        return said
    if days.left_out:
        said.append(
            f"Days that are left out, as much of them is missing: {_listed(days.left_out)}."
        )
    closed = (~days.is_open).sum(axis=0)
    shut = [
        f"{printable(name)} ({number:,} {'day' if number == 1 else 'days'})"
        for name, number in zip(table.stations, closed.tolist(), strict=True) if number
    ]  # fmt: skip
    if shut:
        said.append(f"Stations that were closed on some days: {_listed(shut)}.")
    return said


def _listed(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _map(table: GateTable) -> None:
    if table.places is None or table.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
        return
    bounds = table.grid.make().bounds
    outline_choice(bounds)
    size = map_size_px(bounds)
    st.pydeck_chart(
        stations_deck(
            table.stations, table.places, _a_day(table), bounds, scene=scene(bounds, size)
        ),
        height=size[1], key="data.map", alt="Stations on a map, as large as their entries",
    )  # fmt: skip
    st.caption("The area of a circle is how many people enter there in the mean over a day.")


def _a_day(table: GateTable) -> npt.NDArray[np.float64]:
    """People who enter each station on a day, (S,)."""
    dates = len(table.local_times.normalize().unique())
    return np.asarray(np.nansum(table.entries.counts, axis=0) / max(dates, 1))


def stations_of(opened: Dataset) -> None:
    """The page Grid: stations are the cells."""
    table = cached.gates(opened.key)
    st.caption(
        "Entries and exits come with their stations and steps, so there is nothing to choose here. "
        "A flow is how many people enter at one station and leave at another."
    )
    st.header("Stations", anchor=False)
    times = "time" if len(table.entries.slots) == 1 else "times"
    st.markdown(
        f"**{table.n_stations:,} stations**, **{len(table.entries.slots):,} {times} of day**, one "
        f"step taking {table.step_minutes:g} minutes."
    )
    go_on("pages/3_Learn.py", "Next: learn")
    _map(table)
