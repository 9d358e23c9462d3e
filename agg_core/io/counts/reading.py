"""An opened table of counts, read step by step: rows, moments, cells, matrix, report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from agg_core.base.clock import check_zone, day_limits, to_local
from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.account import Sieve
from agg_core.io.counts.cells import CellNames, Cells, to_grid
from agg_core.io.counts.choices import COARSER, CountChoices
from agg_core.io.counts.coarser import coarser_cells, suggest_merging
from agg_core.io.counts.columns import find_count_columns
from agg_core.io.counts.dense import CountRows, Dense, ManyTwinsError, dense, latest_in_step
from agg_core.io.counts.doctor import remarks_on
from agg_core.io.counts.files import CountSource
from agg_core.io.counts.located import RoleColumns, cells_of_columns, cells_of_rows
from agg_core.io.counts.moments import (
    Moments,
    clock_moments,
    nice_step,
    period_moments,
    runs_of,
    stepped,
)
from agg_core.io.counts.options import keep_one_breakdown, rows_where
from agg_core.io.counts.sums import Parts, Sums, on_whole_grid, parts_of, summed
from agg_core.io.counts.unfolded import TRANSPOSED
from agg_core.io.counts.values import Coded, Counted, coded, paired, read_counts_of
from agg_core.io.fixes import conditions_of
from agg_core.io.texts import shown_value
from agg_core.space.limits import too_many
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import CountTable, check_size

__all__ = ["CountReader"]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MOST_KINDS = 200
"""Different values of a column that tells kinds of rows apart."""

NO_PLACE = "missing position"
IN_UTC = ("meta",)
"""Layouts whose times are UTC, whatever clock is to be shown."""


class CountReader:
    """Reads an opened table into a `CountTable`.

    Raises
    ------
    InputError
        If a column is not found, or its values cannot be what it is said to hold.
    """

    def __init__(self, source: CountSource, choices: CountChoices) -> None:
        self._source, self._choices = source, choices
        first = source.first
        self._names = first.names if first.has_header else ("",) * len(first.names)
        layout = None if choices.layout == TRANSPOSED else choices.layout
        self._found = find_count_columns(first, dict(choices.columns), layout)
        conditions = conditions_of(first, choices.where)
        self._where = [(at, name, value) for at, (name, value) in conditions.items()]
        found, where = self._found, [at for at, _, _ in self._where]
        every = [*found.positions.values(), *found.options, *found.parts, *found.wide, *where]
        self._loaded = source.load(list(dict.fromkeys(every)))
        self._sieve = Sieve(self._loaded.n_rows, self._loaded.account, self._example)
        self._coded: dict[int, Coded] = {}
        self._guesses: dict[str, Guess] = {**found.guesses, **source.guesses}
        self._remarks: dict[str, str] = {}
        self._marked = 0.0

    def table(self) -> CountTable:
        """The table of what the file holds."""
        for at, name, value in self._where:
            wanted = rows_where(self._loaded.columns[at], name, value)
            self._sieve.take(f"not {printable(name)}={printable(value)}", ~wanted)
        moments = self._moments()
        rows, cells = self._wide(moments) if self._found.wide else self._long(moments)
        rows, cells = self._placed(rows, cells)
        if len(rows.time) == 0:
            raise InputError(
                f"No count is left: {self._loaded.account.summary()}; choose other rows or "
                "columns.",
                code="no-rows-left",
            )
        rows = self._by_step(rows)
        found = self._dense(rows, len(cells.names))
        for cause, twins in (
            ("row that says again what another says", found.repeated),
            ("other count of the same cell and time", found.conflicting),
        ):
            self._sieve.take(cause, self._gone(rows, twins))
        parts, said = parts_of(
            found, self._found.layout, self._choices.absent, self._choices.suppressed_below,
            self._marked,
        )  # fmt: skip
        self._guesses |= {**found.guesses, **said}
        parts, cells = self._merged(parts, cells)
        too_many(len(cells.names), "choose an extent (bbox) with fewer, or merge them (coarser)")
        return self._finish(found.times, summed(parts), moments, cells)

    def _merged(self, parts: Parts, cells: Cells) -> tuple[Parts, Cells]:
        """Numbered cells on their grid, and cells as large as they are wanted."""
        absent = self._guesses["absent"].value if "absent" in self._guesses else ""
        whole = not self._choices.bbox
        parts, cells, remarks = on_whole_grid(parts, cells, absent, whole=whole)
        self._remarks |= remarks
        levels = COARSER.index(self._choices.coarser)
        if levels == 0:
            self._guesses |= suggest_merging(cells)
            return parts, cells
        cells, group, said = coarser_cells(cells, levels)
        self._guesses |= said
        return parts.taken(group, len(cells.names)), cells

    def _dense(self, rows: CountRows, n_cells: int) -> Dense:
        """The matrix; where twins are many, the column that tells them apart is named."""
        try:
            return dense(rows, n_cells, self._choices.duplicates)
        except ManyTwinsError as found:
            among = self._telling_apart(found.rows)
            raise ManyTwinsError(found.n_twins, found.n, found.rows, among) from found

    def _telling_apart(self, rows: IntArray) -> str:
        """The unused column with fewest values of which twins have different ones; or none."""
        unused = [at for at in range(len(self._names))
                  if at not in self._loaded.columns and self._names[at]]  # fmt: skip
        columns = self._source.load(unused).columns if unused else {}
        found = []
        for at, column in columns.items():
            n_values = len(coded(column.take(pa.array(rows))).take(np.arange(len(rows))).texts)
            if 1 < n_values <= MOST_KINDS:
                found.append((n_values, printable(self._names[at], 40)))
        return min(found)[1] if found else ""

    # ------------------------------------------------------------------------------ columns

    def _column(self, at: int) -> Coded:
        if at not in self._coded:
            self._coded[at] = coded(self._loaded.columns[at])
        return self._coded[at]

    def _example(self, row: int) -> str:
        columns = list(self._loaded.columns.values())[:8]
        return printable(", ".join(shown_value(column, row) for column in columns), 120)

    def _role(self, role: str) -> Coded:
        return self._column(self._found.positions[role])

    def _gone(self, rows: CountRows, out: BoolArray | IntArray) -> BoolArray:
        """Rows of the file of whose counts some go out and none is left."""
        left = np.ones(len(rows.row), dtype=bool)
        left[out] = False
        gone = np.zeros(self._loaded.n_rows, dtype=bool)
        gone[rows.row[out]] = True
        gone[rows.row[left]] = False
        return gone

    # ------------------------------------------------------------------------------ moments

    def _moments(self) -> Moments:
        """Instants of the rows; those without one go out, as do those outside of the days."""
        choices, found = self._choices, self._found
        zone = choices.tz or found.timezone or self._source.first.timezone
        if "period" in found.positions:
            roles = ("year", "month", "dayflag", "period")
            columns = {role: self._role(role) for role in roles}
            moments, totals = period_moments(columns, zone or "Asia/Tokyo")
            self._sieve.take("total over kinds of day or periods", totals)
        else:
            columns = {
                role: self._role(role)
                for role in ("time", "date", "clock") if role in found.positions
            }  # fmt: skip
            moments = clock_moments(
                columns, self._typed_time(), found.clock,
                "UTC" if found.layout in IN_UTC else zone, choices,
            )  # fmt: skip
            if found.layout in IN_UTC:
                shown = check_zone(self._choices.tz or "UTC")
                clock = Guess(shown, (), "the times of the file are UTC", "tz")
                told = {**moments.guesses, "time zone": clock}
                moments = replace(moments, timezone=shown, guesses=told)
        self._sieve.take_all(moments.causes)
        self._guesses |= moments.guesses
        first, end = day_limits(choices.first_day, choices.last_day)
        if first is not None or end is not None:
            local = to_local(moments.utc, moments.timezone)
            if first is not None:
                self._sieve.take("before the first day", local < first)
            if end is not None:
                self._sieve.take("after the last day", local >= end)
        return moments

    def _typed_time(self) -> pa.ChunkedArray | None:
        """The column of times, where its file holds instants rather than text."""
        at = self._found.positions.get("time")
        if at is None:
            return None
        column = self._loaded.columns[at]
        kind = column.type
        return column if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else None

    def _by_step(self, rows: CountRows) -> CountRows:
        """One moment per step, where a step is stated or snapshots come unevenly."""
        minutes, nearest = self._choices.step_minutes, False
        if minutes is None and self._found.layout == "gbfs":
            minutes, nearest = nice_step(np.unique(rows.time)), True
            if minutes is not None:
                note = "snapshots come unevenly; each counts for the step that it is nearest to"
                self._guesses["step"] = Guess(f"{minutes:g} minutes", (), note, "step_minutes")
        if minutes is None:
            return rows
        steps = stepped(rows.time, minutes, nearest=nearest)
        last = latest_in_step(rows, steps)
        self._sieve.take("earlier in the same step", self._gone(rows, ~last))
        return replace(rows, time=steps).take(last)

    # --------------------------------------------------------------------------------- rows

    def _long(self, moments: Moments) -> tuple[CountRows, Cells]:
        """A row per moment and cell."""
        named = self._cells_of_rows()
        cell = named.column
        empty = cell.where(lambda text: not text)
        at_degrees = not {"cell", "row"} & self._found.positions.keys()
        self._sieve.take(NO_PLACE if at_degrees else "missing cell", empty)
        options = {self._names[at]: self._column(at) for at in self._found.options
                   if at not in {w for w, _, _ in self._where}}  # fmt: skip
        use, detail, said = keep_one_breakdown(options, self._sieve.kept, moments.utc)
        self._guesses |= said
        self._sieve.take("row of another breakdown", ~use)
        for at in self._found.parts:
            both = paired(Coded(detail, [str(i) for i in range(detail.max(initial=0) + 1)]),
                          self._column(at).changed(lambda text: text or "-"))  # fmt: skip
            detail = both.codes
        counted = self._counts(self._role("count"))
        rows = np.flatnonzero(self._sieve.kept)
        self._sieve.take_all(counted.causes)
        kept = cell.take(rows)
        names = _in_order(kept.texts)
        number = {name: i for i, name in enumerate(names)}
        index = np.array([number[text] for text in kept.texts], dtype=np.int64)[kept.codes]
        found = CountRows(
            moments.utc[rows], index, detail[rows], counted.numbers[rows], counted.status[rows],
            rows,
        )  # fmt: skip
        return found, Cells(names, named.kind, named.places, named.numbering)

    def _cells_of_rows(self) -> CellNames:
        """Cell of each row; rows of what is no cell go out."""
        columns = RoleColumns(self._found, self._names, self._loaded.columns, self._role)
        found = cells_of_rows(columns, self._choices, self._source)
        self._guesses |= found.guesses
        why = np.array([found.strange.get(text, "") for text in found.column.texts], dtype=object)
        for cause in dict.fromkeys(found.strange.values()):
            self._sieve.take(cause, (why == cause)[found.column.codes])
        return found

    def _wide(self, moments: Moments) -> tuple[CountRows, Cells]:
        """A row per moment, a column per cell."""
        rows = np.flatnonzero(self._sieve.kept)
        called = [self._names[at].strip() or f"column {at}" for at in self._found.wide]
        named = cells_of_columns(called, self._found.layout, self._choices, self._source)
        self._guesses |= named.guesses
        pairs = list(zip(self._found.wide, named.column.texts, strict=True))
        wide, names = (
            [at for at, name in pairs if name not in named.strange],
            [name for _, name in pairs if name not in named.strange],
        )
        check_size(len(rows), len(wide))
        if len(set(names)) < len(names):
            raise InputError(
                "Two columns of cells have one name; rename one.", code="duplicate-cell-name"
            )
        parts = [self._counts(self._column(at)) for at in wide]
        self._remarks |= _unread(parts, rows)
        c = len(wide)
        found = CountRows(
            np.repeat(moments.utc[rows], c), np.tile(np.arange(c), len(rows)),
            np.zeros(len(rows) * c, dtype=np.int64),
            np.column_stack([part.numbers[rows] for part in parts]).ravel(),
            np.column_stack([part.status[rows] for part in parts]).ravel(), np.repeat(rows, c),
        )  # fmt: skip
        return found, Cells(names, named.kind, named.places, named.numbering)

    def _counts(self, column: Coded) -> Counted:
        counted = read_counts_of(column, self._choices.dash)
        self._marked = max(self._marked, counted.below)
        self._guesses |= counted.guesses
        return counted

    # -------------------------------------------------------------------------------- places

    def _placed(self, rows: CountRows, cells: Cells) -> tuple[CountRows, Cells]:
        """Rows of cells within the extent; those without a place go where most have one."""
        inside, said = cells.kept(self._choices.placeless, self._choices.bbox)
        self._guesses |= said
        if inside.all():
            return rows, cells
        out = ~inside[rows.cell]
        self._sieve.take("cell without a place, or outside of the extent", self._gone(rows, out))
        number = np.cumsum(inside) - 1
        rows = replace(rows, cell=number[rows.cell]).take(~out)
        names = [name for name, here in zip(cells.names, inside, strict=True) if here]
        return rows, replace(cells, names=names)

    # -------------------------------------------------------------------------------- result

    def _finish(
        self, times: npt.NDArray[np.datetime64], sums: Sums, moments: Moments, cells: Cells
    ) -> CountTable:
        runs = runs_of(times, moments)
        loaded = self._loaded
        report = CountReport(
            rows_read=loaded.n_rows + loaded.n_unsplit,
            rows_used=int(self._sieve.kept.sum()),
            layout=self._found.title,
            set_aside=loaded.account.result(),
            guesses=self._guesses,
            remarks={
                **self._remarks,
                **remarks_on(times, sums, runs, cells.names, moments.timezone),
            },
        )
        return CountTable(
            times=pd.DatetimeIndex(times).tz_localize("UTC"),
            sequence=runs.sequence, slot=runs.slot, slots=runs.slots, cells=tuple(cells.names),
            counts=sums.counts, status=sums.status, suppressed_below=sums.below,
            timezone=moments.timezone, grid=to_grid(cells),
            report=report,
        )  # fmt: skip


def _unread(parts: list[Counted], rows: IntArray) -> dict[str, str]:
    """What is wrong with single counts of rows that have others which are used."""
    numbers: Counter[str] = Counter()
    for part in parts:
        numbers.update({cause: int(mask[rows].sum()) for cause, mask in part.causes.items()})
    found = [f"{cause} ({number:,})" for cause, number in numbers.items() if number]
    return {"unread": f"Taken for missing: {', '.join(found)}."} if found else {}


def _in_order(names: list[str]) -> list[str]:
    """Names in order: as whole numbers if all are, but for codes with zeros in front."""
    whole = all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in names)
    return sorted(names, key=int) if whole else sorted(names)
