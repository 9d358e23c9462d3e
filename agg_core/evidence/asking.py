"""What people bring to evidence: their lines, areas, counters and other flows, from files.

The names that a file may use are those of a result. Pages and the command line ask here, so that
both read the same file alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.evidence.counters import WITHIN_M, NearestLines, border_lines
from agg_core.evidence.examine import examined_times
from agg_core.evidence.lines import Screenline, screenlines_of
from agg_core.evidence.reference import Reference, of_source, of_table
from agg_core.evidence.sectors import Sectors, sectors_of
from agg_core.io.areas import areas_of
from agg_core.io.counters import CounterTable, KnownLines, read_counters
from agg_core.io.distances import read_distances
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.formats.registry import OneSource
from agg_core.io.formats.vector import VectorFile, read_vector_apart
from agg_core.study.reference import NO_SUCH_DAY
from agg_core.study.result import OUTSIDE_NAME, FlowResult

__all__ = [
    "counters_for",
    "distances_for",
    "lines_for",
    "reference_for",
    "sectors_for",
    "vector_file",
]


def vector_file(path: str | Path) -> VectorFile:
    """Lines or areas of a file on this machine, read in a process with limits.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as fault:
        raise InputError(
            f"{printable(file.name)} could not be read ({fault.strerror}); choose another file.",
            code="file-not-read",
        ) from fault
    return read_vector_apart(content, file.name)


def lines_for(result: FlowResult, found: VectorFile) -> tuple[Screenline, ...]:
    """Screenlines and cordons of a file.

    Raises
    ------
    InputError
        If it holds none, or cells have no place.
    """
    result.states.placed_grid  # noqa: B018  # says that cells have no place
    return screenlines_of(found)


def sectors_for(result: FlowResult, found: VectorFile, name: str | None = None) -> Sectors:
    """Areas of a file as sectors, by a column of names or the one that they suggest.

    Raises
    ------
    InputError
        If it holds none, there is no such column, no area meets a cell, or cells have no place.
    """
    grid = result.states.placed_grid
    return sectors_of(areas_of(found, name), grid)


def counters_for(
    result: FlowResult,
    lines: Sequence[Screenline],
    source: OneSource,
    *,
    filename: str | None = None,
    timezone: str = "UTC",
    slot_minutes: float | None = None,
    within_m: float = WITHIN_M,
) -> tuple[CounterTable, tuple[Screenline, ...]]:
    """A table of counters (see `read_counters`), and the lines that they stand at.

    Those that have a place and no line's name stand at the nearest line within ``within_m``. Where
    there are no lines they stand at borders between two cells, and these are the lines.
    ``timezone`` is that of the clock of the flows, where moments say their own.

    Raises
    ------
    InputError
        If it cannot be read, or is of none of the lines.
    """
    grid = result.states.placed_grid
    every = tuple(lines) or border_lines(grid, result.states.cells)
    directions = {line.name: line.directions(grid) for line in every}
    known = KnownLines(
        directions, examined_times(result), result.step_minutes, timezone, slot_minutes,
        NearestLines(every, grid, within_m), named=bool(lines),
    )  # fmt: skip
    found = read_counters(source, known, filename)
    if lines:
        return found, every
    at = set(found.counters["line"])
    return found, tuple(line for line in every if line.name in at)


def reference_for(
    result: FlowResult, source: OneSource, label: str, *, timezone: str = "UTC"
) -> tuple[Reference, dict[str, int]]:
    """Flows to hold those of a result against, and rows of their table left out, by why.

    ``source`` is a table of flows, or the name of another source of the result. Of a table that
    tells days only those are taken that the result is of, where it has any of them.

    Raises
    ------
    InputError
        If it cannot be read, or does not fit the result.
    """
    if isinstance(source, str) and source in result.sources:
        return of_source(result, source), {}
    known = KnownStates(
        result.states.cells, OUTSIDE_NAME, result.times_of_day, result.step_minutes, timezone
    )
    table = read_flow_table(source, known, by_date=bool(result.days))
    shown = result.chosen_days or result.days
    common = [date for date in table.dates if date in shown]
    if not common:
        table = table.of_all_dates()
        return of_table(result, table, label), dict(table.set_aside)
    # People of some days are divided by the steps of these days, whichever the result shows.
    mine = table.flows["date"].isin([table.dates.index(date) for date in common])
    aside = dict(table.set_aside)
    if not mine.all():
        aside[NO_SUCH_DAY] = int(table.flows.loc[~mine, "rows"].sum())
    kept = replace(table, flows=table.flows.loc[mine]).of_all_dates()
    of_these = result if len(common) == len(shown) else result.of_days(common)
    return of_table(of_these, kept, label), aside


def distances_for(
    result: FlowResult, source: OneSource, filename: str | None = None
) -> npt.NDArray[np.float64]:
    """Kilometres (d, d) between the cells of a result.

    Raises
    ------
    InputError
        If it cannot be read, or a pair has none.
    """
    return read_distances(source, result.states.cells, filename)
