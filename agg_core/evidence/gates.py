"""Gates beside a table of counts: which moves pass them, and what they counted when.

A gate stands at a screenline, at the border of two cells, or between two cells by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.evidence.asking import vector_file
from agg_core.evidence.counters import WITHIN_M, NearestLines, border_lines
from agg_core.evidence.lines import Screenline, screenlines_of
from agg_core.io.counters import BOTH_WAYS, KnownLines, read_dated_counters
from agg_core.io.flow_tables import ROLES as FLOW_ROLES
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import plain_name
from agg_core.io.known_tables import open_table
from agg_core.space.grid import BaseGrid
from agg_core.study.result import OUTSIDE_NAME
from agg_core.tables.counts import CountTable
from agg_core.tables.crossings import CrossingTable

__all__ = ["GateFile", "passing"]

FloatArray = npt.NDArray[np.float64]

NO_MOMENT = "no step of the counts begins then"


@dataclass(frozen=True)
class GateFile:
    """A table of what gates counted, to learn flows from beside counts of people.

    >>> import agg_core
    >>> gates = agg_core.GateFile("gates.csv", lines="lines.geojson", error=0.05)
    >>> gates.error
    0.05

    Either it has columns line, direction, time and count, or lon and lat for the line, as tables of
    counters have, or origin, dest, time and count, each origin and dest being the names of cells.
    Times have dates, or there is a column of these.

    Attributes
    ----------
    source : the table, or a file of any format
    lines : screenlines and cordons, or a file of these; without, counters with a place stand at the
        border of two cells
    error : standard deviation of the error of a count over the count, besides that people are
        counted one by one; None to learn it gate by gate
    within_m : metres that a counter with a place may be off its line
    """

    source: Source
    lines: str | Path | Sequence[Screenline] | None = None
    error: float | None = None
    within_m: float = WITHIN_M

    def beside(self, table: CountTable) -> CrossingTable:
        """What the gates counted in the steps of a table of counts.

        Raises
        ------
        InputError
            If the file cannot be read, names nothing that is known, or no count is of a step of
            the table.
        """
        if not table.has_dates:
            raise InputError(
                "Gates are matched to counts by date and time, and these counts are means over "
                "months; leave the gates out.",
                code="dates-missing",
            )
        if self.lines is None and _names_cells(self.source):
            return self._between_cells(table)
        return self._at_lines(table)

    def _between_cells(self, table: CountTable) -> CrossingTable:
        minutes = table.step.total_seconds() / 60
        known = KnownStates(table.cells, OUTSIDE_NAME, table.slots, minutes, table.timezone)
        found = read_flow_table(self.source, known, by_date=True)
        if not found.dates or not found.times:
            raise InputError(
                "The table of gates has no dates and times of day, and each count has to be of a "
                "step of a day; give these.",
                code="dates-missing",
            )
        n = table.n_cells + 1
        flows = found.flows
        days = np.array(found.dates, dtype="datetime64[D]").astype(np.int64)
        rows = pd.DataFrame({
            "gate": flows["origin"] * n + flows["dest"], "date": days[flows["date"].to_numpy()],
            "time": flows["time"], "count": flows["count"],
        })  # fmt: skip
        each = np.unique(rows["gate"])
        names = (*table.cells, OUTSIDE_NAME)
        gates = [(f"{names[at // n]} – {names[at % n]}", f"to {names[at % n]}") for at in each]
        moves = sparse.csr_array(
            (np.ones(len(each)), (np.arange(len(each)), each)), shape=(len(each), n * n)
        )
        rows["gate"] = np.searchsorted(each, rows["gate"])
        return self._made(table, gates, moves, rows, dict(found.set_aside))

    def _at_lines(self, table: CountTable) -> CrossingTable:
        if table.grid is None:
            raise InputError(
                "Gates at lines and places need cells with places, which these have not; give a "
                "table of origin and dest, or counts of cells with coordinates.",
                code="cells-without-place",
            )
        grid = table.grid.make()
        lines = self._lines()
        every = lines or border_lines(grid, table.cells)
        known = KnownLines(
            {line.name: line.directions(grid) for line in every}, table.slots,
            table.step.total_seconds() / 60, table.timezone, None,
            NearestLines(every, grid, self.within_m), named=bool(lines),
        )  # fmt: skip
        found = read_dated_counters(self.source, known)
        counters = found.counters
        keys = list(zip(counters["line"], counters["direction"], strict=True))
        gates = list(dict.fromkeys(keys))
        numbers = {key: number for number, key in enumerate(gates)}
        of = {line.name: line for line in every}
        tables = []
        for name, direction in gates:
            first, second = passing(of[name], grid)
            both = {known.directions[name][0]: first, known.directions[name][1]: second}
            both[BOTH_WAYS] = first + second
            tables.append(sparse.csr_array(both[direction].reshape(1, -1)))
        rows = counters[["date", "time", "count"]].assign(gate=[numbers[key] for key in keys])
        moves = sparse.csr_array(sparse.vstack(tables))
        return self._made(table, gates, moves, rows, dict(found.set_aside))

    def _lines(self) -> tuple[Screenline, ...]:
        if self.lines is None:
            return ()
        if isinstance(self.lines, str | Path):
            return screenlines_of(vector_file(self.lines))
        return tuple(self.lines)

    def _made(
        self,
        table: CountTable,
        gates: Sequence[tuple[str, str]],
        moves: sparse.csr_array,
        rows: pd.DataFrame,
        aside: dict[str, int],
    ) -> CrossingTable:
        """Counts at the moments of a table, of rows with a gate, a date and a time by number."""
        local = table.times.tz_convert(table.timezone).tz_localize(None)
        dates = local.to_numpy().astype("datetime64[D]").astype(np.int64)
        n_slots = len(table.slots)
        begins = np.append(np.diff(table.sequence) == 0, [False])
        # A time that the clock shows twice is the first one.
        at = {
            int(key): moment
            for moment, key in reversed(list(enumerate(dates * n_slots + table.slot)))
            if begins[moment]
        }
        moment = np.array(
            [at.get(int(key), -1) for key in rows["date"] * n_slots + rows["time"]], dtype=np.int64
        )
        known = moment >= 0
        if not known.all():
            aside[NO_MOMENT] = int((~known).sum())
        counts = np.full((table.n_moments, len(gates)), np.nan)
        counts[moment[known], rows["gate"].to_numpy()[known]] = rows["count"].to_numpy()[known]
        # Moves of those who stay pass nothing, and some lines nobody passes.
        passed = np.flatnonzero(np.diff(moves.indptr))
        if not len(passed):
            raise InputError(
                "No move between two cells passes a gate; give lines between cells, or smaller "
                "cells.",
                code="no-gate-counts",
            )
        lost = int(np.isfinite(counts).sum() - np.isfinite(counts[:, passed]).sum())
        if lost:
            aside["no move between cells passes the gate"] = lost
        names, ways = zip(*(gates[g] for g in passed.tolist()), strict=True)
        return CrossingTable(names, ways, moves[passed], counts[:, passed], aside, self.error)


def _names_cells(source: Source) -> bool:
    """Whether a table has columns of an origin and a dest."""
    names = {plain_name(name) for name in open_table(source, "The table").names}
    return all(names & set(FLOW_ROLES[end]) for end in ("origin", "dest"))


def passing(line: Screenline, grid: BaseGrid) -> tuple[FloatArray, FloatArray]:
    """How often moves pass a line in each of its directions, (c + 1, c + 1) each.

    The last state is outside of all c cells: those who come from there into a cordon pass it, of
    a line nobody knows.
    """
    c = grid.n_cells
    origin, dest = np.divmod(np.arange(c * c), c)
    found = []
    for crossed in line.crossed(grid, origin, dest):
        table = np.zeros((c + 1, c + 1))
        table[:c, :c] = crossed.reshape(c, c)
        found.append(table)
    if line.is_cordon:
        inside = line.holds(grid)
        found[0][c, :c], found[1][:c, c] = inside, inside
    return found[0], found[1]
