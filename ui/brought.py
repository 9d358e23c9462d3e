"""What a person brings to the page Evidence: lines, areas, counters, other flows, distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import available_timezones

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.evidence.asking import (
    counters_for,
    distances_for,
    lines_for,
    reference_for,
    sectors_for,
)
from agg_core.evidence.counters import WITHIN_M
from agg_core.evidence.examine import Asked
from agg_core.evidence.lines import Screenline, cordon_around, line_between
from agg_core.evidence.presets import Preset
from agg_core.evidence.sectors import Sectors, merged_cells
from agg_core.io.counters import CounterTable
from agg_core.io.formats.vector import FILE_ENDINGS, MOST_MEGABYTES, VectorFile, read_vector_apart
from agg_core.study.result import FlowResult
from ui.shell import plain, tell_fault
from ui.workspace import workspace

__all__ = [
    "STAYS",
    "Brought",
    "add_lines",
    "asked",
    "brought",
    "counters_of",
    "line_inputs",
    "reading_inputs",
    "sector_inputs",
    "table_input",
    "tell_faults",
    "timezone_input",
    "trying",
]

STAYS: Any = "session"
"""Controls keep what was chosen while they are not shown."""

TABLES = ("csv", "tsv", "txt", "xlsx", "xls", "parquet", "json", "zip", "gz", "omx")
MOST_TABLE_MEGABYTES = 200

FAULT = "evidence.fault"
"""Why the last thing that was brought could not be used, by what it was."""

Upload = tuple[str, bytes]
"""Name and content of a file."""


@dataclass
class Brought:
    """Of one session; ``stamp`` is another after every change."""

    lines: list[Screenline] = field(default_factory=list)
    areas: VectorFile | None = None
    groups: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Sectors by name and the names of their cells, where there is no file of areas."""
    tables: dict[str, Upload] = field(default_factory=dict)
    """Files of counters, of the reference, and of distances, by these words."""
    timezone: str = "UTC"
    """The zone of the clock of the flows, where tables have moments of another."""
    within_m: float = WITHIN_M
    """Metres that a counter with a place may be off its line."""
    stamp: int = 0

    def sectors(self, result: FlowResult) -> Sectors | None:
        """Areas of the file, or else those that were put together of the cells of this result."""
        if self.areas is not None:
            return sectors_for(result, self.areas)
        cells = list(result.states.cells)
        groups = [
            (name, [cells.index(cell) for cell in some]) for name, some in self.groups
            if set(some) <= set(cells)
        ]  # fmt: skip
        return merged_cells(groups, len(cells)) if groups else None


def brought() -> Brought:
    """What this session has brought."""
    found: Brought = workspace().held.setdefault("brought", Brought())
    return found


def asked(
    result: FlowResult,
    *,
    preset: Preset | None = None,
    reference: str | None = None,
    slot_minutes: float | None = None,
) -> tuple[Asked, tuple[str, ...]]:
    """All that is examined of a result, and sentences on how the files were taken.

    ``reference`` is another source of the result, or "file".

    Raises
    ------
    InputError
        If something that was brought does not fit this result.
    """
    own, said = brought(), []
    counters, lines = None, tuple(own.lines)
    if "counters" in own.tables and result.states.grid is not None:
        read, lines = counters_of(result, own.tables["counters"], slot_minutes)
        counters = read.counters
        said.append(read.words)
        said += _left_out("counters", read.set_aside)
    beside = None
    if reference == "file" and "reference" in own.tables:
        name, content = own.tables["reference"]
        beside, aside = reference_for(result, content, printable(name), timezone=own.timezone)
        said += _left_out("reference", aside)
    elif reference in result.sources:
        beside, _ = reference_for(result, reference, "")
    km = None
    if "distances" in own.tables:
        name, content = own.tables["distances"]
        km = distances_for(result, content, name)
    found = Asked(
        lines=lines, sectors=own.sectors(result), counters=counters, reference=beside,
        preset=preset, km=km,
    )  # fmt: skip
    return found, tuple(said)


def counters_of(
    result: FlowResult, upload: Upload, slot_minutes: float | None
) -> tuple[CounterTable, tuple[Screenline, ...]]:
    """A file of counters and the lines that they stand at, read as the session has chosen.

    Raises
    ------
    InputError
        If it does not fit.
    """
    own, (name, content) = brought(), upload
    return counters_for(
        result, own.lines, content, filename=name, timezone=own.timezone,
        slot_minutes=slot_minutes, within_m=own.within_m,
    )  # fmt: skip


def _left_out(name: str, causes: Any) -> list[str]:
    if not causes:
        return []
    shown = ", ".join(f"{cause} ({count:,})" for cause, count in causes.items())
    return [f"Rows of the {name} that were left out: {shown}."]


# Faults


def tell_faults() -> None:
    """Say why what was brought last could not be used; what was there before stays."""
    fault = st.session_state.get(FAULT)
    if fault is not None:
        tell_fault(fault)


def trying(change: Callable[[], None]) -> None:
    """Do a change of what was brought, whole or not at all."""
    st.session_state[FAULT] = None
    try:
        change()
    except InputError as fault:
        st.session_state[FAULT] = str(fault)
        return
    brought().stamp += 1


# Files


def table_input(what: str, label: str, about: str, fits: Callable[[Upload], object]) -> None:
    """An upload of a table, which is kept if it ``fits``, and a way to leave it out again."""
    own, key = brought(), f"evidence.{what}"

    def take() -> None:
        upload = st.session_state.get(f"{key}.file")
        if upload is None:
            return

        def keep() -> None:
            read = (upload.name, upload.getvalue())
            fits(read)
            own.tables[what] = read

        trying(keep)

    st.file_uploader(
        label, TABLES, key=f"{key}.file", on_change=take, help=about,
        max_upload_size=MOST_TABLE_MEGABYTES,
    )  # fmt: skip
    if what in own.tables:
        name = printable(own.tables[what][0])

        def forget() -> None:
            del own.tables[what]
            own.stamp += 1

        st.button(
            plain(f"Leave out {name}"), key=f"{key}.drop", icon=":material/close:",
            type="tertiary", on_click=forget,
        )  # fmt: skip


def reading_inputs() -> None:
    """How far counters may be off their lines, and the zone of their times."""
    own = brought()

    def near() -> None:
        own.within_m = float(st.session_state["evidence.within"] or WITHIN_M)
        own.stamp += 1

    st.session_state.setdefault("evidence.within", own.within_m)
    st.number_input(
        "Metres that a counter may be off its line", 1.0, 100_000.0, step=50.0,
        key="evidence.within", persist_state=STAYS, width=320, on_change=near,
        help="Of counters that have lon and lat and no line's name. Those that are farther are "
        "left out, and how many is told.",
    )  # fmt: skip
    timezone_input("counters")


def timezone_input(what: str) -> None:
    """The zone of the clock of the flows, one for all tables, beside a table of theirs."""
    own, key = brought(), f"evidence.{what}.zone"

    def change() -> None:
        own.timezone = str(st.session_state[key] or "UTC")
        own.stamp += 1

    zones = sorted(available_timezones())
    st.session_state[key] = own.timezone if own.timezone in zones else "UTC"
    st.selectbox(
        "Zone of the clock of the flows", zones, key=key, width=320, on_change=change,
        help="Where a table has moments with a zone of their own, such as 2024-05-01T08:00Z: they "
        "are put on this clock. Times without a zone are on it already.",
    )  # fmt: skip


def _vector_upload(what: str, label: str, about: str, take: Callable[[VectorFile], None]) -> None:
    key = f"evidence.{what}.file"

    def read() -> None:
        upload = st.session_state.get(key)
        if upload is None:
            return

        def keep() -> None:
            with st.spinner("Reading the file …"):
                crs = st.session_state.get("evidence.crs") or None
                take(read_vector_apart(upload.getvalue(), upload.name, crs))

        trying(keep)

    st.file_uploader(
        label, FILE_ENDINGS, key=key, on_change=read, max_upload_size=MOST_MEGABYTES, help=about
    )


# Lines


def line_inputs(result: FlowResult, chosen: Sequence[int]) -> None:
    """Lines from a file, between two places, and cordons around cells; and those there are.

    ``chosen`` are the cells that are chosen on the map of the page Flows.
    """
    own = brought()
    with st.expander("Lines and cordons", expanded=not own.lines):
        between, around, file = st.tabs(["A straight line", "Around cells", "From a file"])
        with between:
            _straight(result, chosen)
        with around:
            _cordon(result, chosen)
        with file:
            _vector_upload(
                "lines", "Screenlines as lines, cordons as areas",
                "GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf or GeoParquet, with a column "
                "name. The file stays in this session.",
                lambda found: add_lines(*lines_for(result, found)),
            )  # fmt: skip
            st.text_input(
                "Coordinate system", key="evidence.crs", placeholder="as the file says", width=240,
                persist_state=STAYS, help="EPSG code, such as EPSG:6677, where the file says none.",
            )  # fmt: skip
    if own.lines:
        with st.container(horizontal=True, gap="small"):
            for number, line in enumerate(own.lines):
                st.button(
                    plain(printable(line.name, 40)), key=f"evidence.drop.{number}",
                    icon=":material/close:", help="Leave this line out", on_click=_drop,
                    args=(number,),
                )  # fmt: skip


def add_lines(*lines: Screenline) -> None:
    """Take in lines; one of a name that there is takes its place."""
    own, names = brought(), {line.name for line in lines}
    own.lines = [*(line for line in own.lines if line.name not in names), *lines]


def _drop(number: int) -> None:
    del brought().lines[number]
    brought().stamp += 1


PLACES = ("lon1", "lat1", "lon2", "lat2")


def _take_two(result: FlowResult, chosen: Sequence[int]) -> None:
    """Callback: the line goes from the middle of one chosen cell to that of another."""
    places = result.states.placed_grid.centroids[list(chosen)].ravel()
    for name, value in zip(PLACES, places.tolist(), strict=True):
        st.session_state[f"evidence.{name}"] = round(value, 4)


def _straight(result: FlowResult, chosen: Sequence[int]) -> None:
    west, south, east, north = result.states.placed_grid.bounds
    middle = (west + east) / 2
    first = {"lon1": middle, "lat1": south, "lon2": middle, "lat2": north}
    labels = {
        "lon1": "From longitude", "lat1": "From latitude", "lon2": "To longitude",
        "lat2": "To latitude",
    }  # fmt: skip
    values = {}
    for name, place in zip(labels, st.columns(4), strict=True):
        key, most = f"evidence.{name}", 180.0 if name.startswith("lon") else 90.0
        st.session_state.setdefault(key, round(first[name], 4))
        values[name] = place.number_input(
            labels[name], -most, most, step=0.01, format="%.4f", key=key, persist_state=STAYS
        )
    name = st.text_input("Name", "river", key="evidence.line.name", width=240, persist_state=STAYS)

    def add() -> None:
        start, end = (values["lon1"], values["lat1"]), (values["lon2"], values["lat2"])
        add_lines(line_between(printable(name.strip()) or "line", start, end))

    with st.container(horizontal=True, gap="small"):
        st.button(
            "Add the line", key="evidence.line.add", icon=":material/add:", on_click=trying,
            args=(add,),
        )  # fmt: skip
        if len(chosen) == len(PLACES) // 2:
            st.button(
                "From one chosen cell to the other", key="evidence.line.cells", type="tertiary",
                icon=":material/polyline:", on_click=_take_two, args=(result, chosen),
            )  # fmt: skip
    st.caption(
        "It begins as the middle of the map from south to north. Two cells that are chosen on the "
        "map of the page Flows can be its ends."
    )


def _cells(key: str, label: str, result: FlowResult, first: Sequence[str] = ()) -> list[str]:
    """A choice of cells by their names."""
    options = list(result.states.cells)
    held = st.session_state.get(key)
    if held is None:
        st.session_state[key] = [cell for cell in first if cell in options]
    elif not set(held) <= set(options):
        st.session_state[key] = [cell for cell in held if cell in options]
    return st.multiselect(label, options, key=key, persist_state=STAYS)


def _cordon(result: FlowResult, chosen: Sequence[int]) -> None:
    cells = result.states.cells
    on_map = [cells[number] for number in chosen if number < len(cells)]
    some = _cells("evidence.cordon.cells", "Cells inside", result, on_map)
    st.caption("Cells that are chosen on the map of the page Flows are taken first.")
    name = st.text_input(
        "Name", "centre", key="evidence.cordon.name", width=240, persist_state=STAYS
    )

    def add() -> None:
        numbers = [cells.index(cell) for cell in some]
        label = printable(name.strip()) or "cordon"
        add_lines(cordon_around(label, result.states.placed_grid, numbers))

    st.button(
        "Add the cordon", key="evidence.cordon.add", icon=":material/add:", on_click=trying,
        args=(add,),
    )  # fmt: skip


# Sectors


def sector_inputs(result: FlowResult) -> None:
    """Sectors from a file of areas, or put together of cells; and those there are."""
    own = brought()
    with st.expander("Sectors", expanded=own.areas is None and not own.groups):
        file, together = st.tabs(["From a file", "Of cells"])
        with file:
            _vector_upload(
                "areas", "Wards, zones or other areas",
                "GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf or GeoParquet. A cell that "
                "lies in several areas is split between them by area.",
                lambda found: _take_areas(result, found),
            )  # fmt: skip
        with together:
            some = _cells("evidence.sector.cells", "Cells of the sector", result)
            name = st.text_input(
                "Name", "my ward", key="evidence.sector.name", width=240, persist_state=STAYS
            )

            def add() -> None:
                _add_sector(result, printable(name.strip()) or "sector", tuple(some))

            st.button(
                "Add the sector", key="evidence.sector.add", icon=":material/add:",
                on_click=trying, args=(add,),
            )  # fmt: skip
    if own.areas is not None or own.groups:
        names = [name for name, _ in own.groups]
        words = printable(own.areas.name) if own.areas is not None else ", ".join(names)
        st.button(
            plain(f"Leave out {words}"), key="evidence.sectors.drop", icon=":material/close:",
            type="tertiary", on_click=trying, args=(_forget_sectors,),
        )  # fmt: skip


def _take_areas(result: FlowResult, found: VectorFile) -> None:
    sectors_for(result, found)
    brought().areas = found


def _add_sector(result: FlowResult, name: str, some: tuple[str, ...]) -> None:
    if not some:
        raise InputError("A sector has cells; choose one or more.", code="no-cells-chosen")
    own, cells = brought(), list(result.states.cells)
    groups = [*(group for group in own.groups if group[0] != name), (name, some)]
    merged_cells([(of, [cells.index(cell) for cell in some]) for of, some in groups], len(cells))
    own.groups, own.areas = groups, None


def _forget_sectors() -> None:
    brought().areas, brought().groups = None, []
