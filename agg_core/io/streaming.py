"""Fixes in batches, in any order and of any number, to people per cell and clock bin.

Of each person and bin only the first and the last fix are kept, which is all that the rule of
`sequences.cell_counts` looks at. Beyond a stated memory they go to temporary files; in the end
they are read back some people at a time, and counted as `sequences` counts them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import check_zone, to_local
from agg_core.base.errors import InputError
from agg_core.base.report import SetAside
from agg_core.io.choices import Choices
from agg_core.io.fixes import Fixes, FixReader
from agg_core.io.formats.registry import Source, open_source
from agg_core.tables.sequences import (
    Sequences,
    count_table,
    duration_us,
    people_present,
    sequences_of_people,
    states_of,
    step_us_of,
    summed_people,
)

if TYPE_CHECKING:
    from agg_core.space.grid import BaseGrid

__all__ = [
    "MAX_TABLE_BYTES",
    "CountProgress",
    "ReadSequences",
    "count_cells",
    "count_steps",
    "read_sequences",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_TABLE_BYTES = 1 << 30
"""Most memory for the fixes that are kept before they go to temporary files."""

MAX_COUNTS = 1 << 27
"""Most (bin, cell) pairs of a result that there is room for."""

ROWS_AT_ONCE = 1 << 18
"""Fixes of as many people as are counted at once: a long gap to bridge makes many bins of each."""

MIN_JOINED = 1 << 20
"""Counts of single people's parts that are worth a sort."""

_YEARS = (1900, 2200)

# Fixes are rows of three numbers: person, instant, state.
_USER, _TIME, _STATE = range(3)
_ROW_BYTES = 24
_MAX_USERS = 1 << 29
_HALF_BITS, _LOW_HALF = 16, 0xFFFF
# A sort takes about as much again as what is sorted, four times: a copy, the order, and the columns
# that it looks at in both orders.
_SHARE_TO_SORT = 5


@dataclass(frozen=True)
class CountProgress:
    """How far counting is: rows read, people met, bytes held in memory and in temporary files."""

    rows: int
    people: int
    table_bytes: int
    spilled_bytes: int


def count_cells(
    batches: Iterable[Fixes],
    grid: BaseGrid,
    step: str | pd.Timedelta = "30min",
    timezone: str = "UTC",
    max_gap: str | pd.Timedelta | None = None,
    *,
    max_table_bytes: int = MAX_TABLE_BYTES,
    scratch: Path | None = None,
) -> pd.DataFrame:
    """People present in each cell in each bin of the local clock, from batches of fixes.

    Parameters
    ----------
    step
        Length of a bin; it must divide a day evenly.
    max_gap
        None counts a person only in bins with a fix. With a duration, the bins between two
        successive fixes no further apart than that count too, in the former's cell.
    max_table_bytes
        Memory beyond which the fixes that are kept go to temporary files in ``scratch``
        (the system's own folder when None), which are gone when counting ends.

    Returns columns time (start of the bin on the local clock), cell (n_cells is outside) and
    count, without the empty ones: what `sequences.cell_counts` gives for the same fixes and
    ``max_gap``. Of two fixes at one instant the later row counts.

    Raises
    ------
    InputError
        If a setting does not fit, a batch is malformed, or the result would be too large.
    """
    *_, counts = count_steps(
        batches, grid, step, timezone, max_gap, max_table_bytes=max_table_bytes, scratch=scratch
    )
    assert isinstance(counts, pd.DataFrame)
    return counts


def count_steps(
    batches: Iterable[Fixes],
    grid: BaseGrid,
    step: str | pd.Timedelta = "30min",
    timezone: str = "UTC",
    max_gap: str | pd.Timedelta | None = None,
    *,
    max_table_bytes: int = MAX_TABLE_BYTES,
    scratch: Path | None = None,
) -> Iterator[CountProgress | pd.DataFrame]:
    """`count_cells` as a stream: a `CountProgress` after every batch, and the table at the end.

    Whoever stops iterating stops the work; temporary files are gone then, too.
    """
    gap_us = 0 if max_gap is None else duration_us(max_gap, "max_gap")
    clock = _Clock(check_zone(timezone), step_us_of(step))
    tally = _Tally(grid.n_cells + 1)
    rows = n_users = 0
    with ExitStack() as files:
        kept = _Kept(files, scratch, max_table_bytes, clock, with_first=gap_us > 0)
        for batch in batches:
            n_users = max(n_users, _check(batch))
            rows += len(batch)
            kept.add(_fixes(batch, grid))
            yield CountProgress(rows, n_users, kept.n_bytes, kept.spilled_bytes)
        for fixes in kept.people(n_users):
            tally.add(fixes, clock, gap_us)
    yield tally.table(clock)


@dataclass(frozen=True)
class ReadSequences:
    """Sequences of a source, the rows that were read, and those set aside, by cause."""

    sequences: Sequences
    rows_read: int
    set_aside: Mapping[str, SetAside]


def read_sequences(
    source: Source,
    grid: BaseGrid,
    step: str | pd.Timedelta = "30min",
    length: int = 3,
    start: str | Sequence[str] | None = None,
    max_gap: str | pd.Timedelta | None = None,
    choices: Choices | None = None,
    *,
    max_table_bytes: int = MAX_TABLE_BYTES,
    scratch: Path | None = None,
) -> ReadSequences:
    """`sequences.to_sequences` of a file or folder of any size, of which no table is held.

    ``step`` to ``max_gap`` are those of `to_sequences`, ``max_table_bytes`` and ``scratch`` those
    of `count_cells`. Of two fixes at one instant the later row counts, and nothing that is judged
    by whole tracks (speed, years without fixes) is set aside.

    Raises
    ------
    InputError
        If the source cannot be read, a setting does not fit, or no window is left.
    """
    choices = choices or Choices()
    step_us = step_us_of(step)
    reader = FixReader(open_source(source, choices), choices)
    batches = reader.batches()
    n_rows = 0
    with ExitStack() as files:
        kept: _Kept | None = None
        for batch in batches:
            _check(batch)
            if kept is None:  # the first batch tells the zone of the clock
                clock = _Clock(reader.timezone, step_us)
                # Within a bin all fixes matter where a gap can break a track there.
                short = max_gap is not None and duration_us(max_gap, "max_gap") < step_us
                kept = _Kept(
                    files, scratch, max_table_bytes, clock, with_first=True, with_all=short
                )
            n_rows += len(batch)
            kept.add(_fixes(batch, grid))
        reader.account.need_rows(n_rows)
        assert kept is not None
        parts = (
            (user, clock.bins(time_us), state, time_us)
            for user, time_us, state in (part.T for part in kept.people(len(reader.user_ids)))
        )
        sequences = sequences_of_people(
            parts, reader.user_ids, grid.n_cells, step, length, start, max_gap, reader.timezone
        )
    return ReadSequences(sequences, reader.rows_read, reader.account.result())


# ------------------------------------------------------------------------------------ clock


@dataclass(frozen=True)
class _Clock:
    """The clock of a zone, cut into bins of so many microseconds."""

    timezone: str
    step_us: int

    def local_us(self, utc_us: IntArray) -> IntArray:
        """Clock times (n,) of instants (n,), in microseconds since 1970 on the clock."""
        return to_local(utc_us.astype("datetime64[us]"), self.timezone).astype(np.int64)

    def bins(self, utc_us: IntArray) -> IntArray:
        """Bin on the clock of each instant, counted since 1970, (n,)."""
        return self.local_us(utc_us) // self.step_us


# ------------------------------------------------------------------------------------ fixes


def _check(batch: Fixes) -> int:
    """Number of the last individual in a batch, plus one."""
    lengths = {len(column) for column in batch.columns}
    if len(lengths) != 1:
        raise InputError("The columns of a batch of fixes differ in length.", code="lengths-differ")
    if len(batch) == 0:
        return 0
    if batch.user.min() < 0 or batch.user.max() >= _MAX_USERS:
        raise InputError(
            f"People must be numbered from 0 to {_MAX_USERS - 1:,}.", code="user-out-of-range"
        )
    first, end = (np.datetime64(f"{year}-01-01", "us") for year in _YEARS)
    if not (batch.time.min() >= first and batch.time.max() < end):
        raise InputError(
            f"A fix lies outside the years {_YEARS[0]} to {_YEARS[1] - 1}; set such rows aside.",
            code="time-out-of-range",
        )
    return int(batch.user.max()) + 1


def _fixes(batch: Fixes, grid: BaseGrid) -> IntArray:
    """A batch as rows of three numbers, (n, 3)."""
    time_us = batch.time.astype("datetime64[us]")
    columns = (batch.user, time_us, states_of(grid, batch.lon, batch.lat))
    return np.column_stack([np.asarray(column, dtype=np.int64) for column in columns])


def _last_of_bins(
    fixes: IntArray, clock: _Clock, *, with_first: bool, with_all: bool = False
) -> IntArray:
    """The last fix, and the first, of each person and bin, in order; of twins the later row.

    The two bins of a clock time that comes twice are two.
    """
    user, time_us = (np.ascontiguousarray(fixes[:, column]) for column in (_USER, _TIME))
    order = _order_of(user)
    # Logs come in order of time, and then one sort will do.
    by_user, by_time = user[order], time_us[order]
    if not ((by_user[1:] != by_user[:-1]) | (by_time[1:] >= by_time[:-1])).all():
        order = np.lexsort((time_us, user))
        by_user, by_time = user[order], time_us[order]
    user, time_us = by_user, by_time
    if with_all:
        twin = (np.diff(user) == 0) & (np.diff(time_us) == 0)
        every: IntArray = fixes.take(order[np.append(~twin, True)], axis=0)
        return every
    local_us = clock.local_us(time_us)
    border = user[1:] != user[:-1]
    for number in (local_us // clock.step_us, local_us - time_us):
        border |= number[1:] != number[:-1]
    kept = np.ones(len(fixes), dtype=bool)
    kept[:-1] = border
    if with_first:
        kept[1:] |= border
        kept[:1] = True
    return fixes.take(order[kept], axis=0)


def _order_of(user: IntArray) -> IntArray:
    """What puts people's numbers (n,), from 0 on, in order; those of one person stay as they are.

    Of 16 bits a stable sort counts values, which takes a fifth of the time that a sort by
    comparison takes; the lower half is sorted first, then the upper one, if there is one.
    """
    order = np.argsort((user & _LOW_HALF).astype(np.uint16), kind="stable")
    upper = user >> _HALF_BITS
    if upper.any():
        order = order[np.argsort(upper[order].astype(np.uint16), kind="stable")]
    return order


class _Kept:
    """The fixes that are kept, in memory and in temporary files of fixes in order."""

    def __init__(
        self, files: ExitStack, scratch: Path | None, max_bytes: int, clock: _Clock, *,
        with_first: bool, with_all: bool = False,
    ) -> None:  # fmt: skip
        self.files, self.scratch = files, scratch
        self.max_rows = max_bytes // _SHARE_TO_SORT // _ROW_BYTES
        self.clock, self.with_first, self.with_all = clock, with_first, with_all
        self.parts: list[IntArray] = []
        self.spilled: list[_Spilled] = []

    @property
    def n_bytes(self) -> int:
        """Memory taken."""
        return sum(part.nbytes for part in self.parts)

    @property
    def spilled_bytes(self) -> int:
        """Size of the files."""
        return sum(run.nbytes for run in self.spilled)

    def add(self, fixes: IntArray) -> None:
        """Take in the fixes of a batch."""
        self.parts.append(self._thinned([fixes]))
        if sum(map(len, self.parts)) > self.max_rows:
            self._join()
            if len(self.parts[0]) > self.max_rows // 2:
                self.spilled.append(self._written(self.parts.pop()))

    def people(self, n_users: int) -> Iterator[IntArray]:
        """All fixes in order of person and time, of some people at a time."""
        runs = [run for run in (*self.spilled, *map(_InMemory, self.parts)) if len(run)]
        if not runs:
            return
        per_user = np.zeros(n_users, dtype=np.int64)
        for run in runs:
            per_user += run.per_user(n_users)
        part = np.cumsum(per_user) // ROWS_AT_ONCE
        firsts = np.flatnonzero(np.diff(part, prepend=-1))
        ends = np.append(firsts[1:], n_users)
        # Rows of a file are in order of people: those of some end where their number ends.
        places = [np.cumsum(run.per_user(n_users))[ends - 1] for run in runs]
        begins = [0] * len(runs)
        for at in range(len(ends)):
            stops = [int(place[at]) for place in places]
            found = [run.rows(b, e) for run, b, e in zip(runs, begins, stops, strict=True)]
            yield self._thinned(found)
            begins = stops

    def _join(self) -> None:
        """Make one of the parts in memory."""
        if len(self.parts) > 1:
            self.parts = [self._thinned(self.parts)]

    def _thinned(self, parts: list[IntArray]) -> IntArray:
        return _last_of_bins(
            np.concatenate(parts), self.clock, with_first=self.with_first, with_all=self.with_all
        )

    def _written(self, fixes: IntArray) -> _Spilled:
        """The same rows, in a temporary file."""
        try:
            file = self.files.enter_context(tempfile.TemporaryFile(dir=self.scratch))  # noqa: SIM115
            file.write(fixes.data)
            file.flush()
        except OSError as error:
            raise InputError(
                "Temporary files cannot be written "
                f"({error.strerror}); make room for them, or allow more memory.",
                code="file-not-written",
            ) from error
        return _Spilled(file, len(fixes))


class _InMemory:
    """Fixes in order of person and time, in memory."""

    def __init__(self, fixes: IntArray) -> None:
        self._fixes = fixes

    def __len__(self) -> int:
        return len(self._fixes)

    def rows(self, begin: int, end: int) -> IntArray:
        """The rows from one to before another, (n, 3)."""
        return self._fixes[begin:end]

    def per_user(self, n_users: int) -> IntArray:
        """Number of fixes of each person, (n_users,)."""
        found = np.zeros(n_users, dtype=np.int64)
        for at in range(0, len(self), ROWS_AT_ONCE):
            user = self.rows(at, min(at + ROWS_AT_ONCE, len(self)))[:, _USER]
            counts = np.bincount(user - user[0])
            found[user[0] : user[0] + len(counts)] += counts
        return found


class _Spilled(_InMemory):
    """The same in a temporary file, of which no more is in memory than the rows asked for.

    A mapped file would be: its pages count as memory in use until others need it.
    """

    def __init__(self, file: IO[bytes], n_rows: int) -> None:
        super().__init__(np.empty((0, 3), dtype=np.int64))
        self._file, self._n_rows = file, n_rows

    def __len__(self) -> int:
        return self._n_rows

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self._n_rows * _ROW_BYTES

    def rows(self, begin: int, end: int) -> IntArray:
        """The rows from one to before another, (n, 3), read from the file."""
        self._file.seek(begin * _ROW_BYTES)
        return np.fromfile(self._file, np.int64, 3 * (end - begin)).reshape(-1, 3)


# ------------------------------------------------------------------------------------ counts


class _Tally:
    """People per key bin * n_states + state: ``keys`` in order, ``counts`` of each."""

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.keys = self.counts = np.empty(0, dtype=np.int64)
        self.parts: list[tuple[IntArray, IntArray]] = []

    def add(self, fixes: IntArray, clock: _Clock, gap_us: int) -> None:
        """Count people, of whom all fixes that are kept are there, through their bins."""
        if len(fixes) == 0:
            return
        user, time_us, state = fixes.T
        bins = clock.bins(time_us)
        self.parts.append(people_present(user, bins, state, time_us, self.n_states, gap_us))
        if sum(len(keys) for keys, _ in self.parts) > max(len(self.keys), MIN_JOINED):
            self._join()

    def table(self, clock: _Clock) -> pd.DataFrame:
        """Columns time, cell, count in order of time and cell."""
        self._join()
        return count_table(self.keys, self.counts, self.n_states, clock.step_us, clock.timezone)

    def _join(self) -> None:
        """Add what was counted of people since the last time."""
        self.keys, self.counts = summed_people([(self.keys, self.counts), *self.parts])
        self.parts = []
        if len(self.keys) > MAX_COUNTS:
            raise InputError(
                "There is no room for counts of so many bins and cells; use a longer step, fewer "
                "cells or a shorter max_gap.",
                code="table-too-large",
            )
