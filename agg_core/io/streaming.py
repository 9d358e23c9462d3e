"""Fixes in batches, in any order and of any number, to people per cell and clock bin.

Of each person and bin only the first and the last fix are kept, which is all that the rule of
`sequences.cell_counts` looks at. Beyond a stated memory they go to temporary files; in the end
they are read back some people at a time, and counted as `sequences` counts them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.tables.sequences import (
    count_table,
    duration_us,
    people_present,
    states_of,
    step_us_of,
    summed_people,
)

if TYPE_CHECKING:
    from agg_core.space.grid import BaseGrid

__all__ = [
    "MAX_TABLE_BYTES",
    "CountProgress",
    "FixBatch",
    "count_cells",
    "count_steps",
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
_CLOCK_SAMPLE = np.timedelta64(6, "h")

# Fixes are rows of three numbers: person and position of the bin, instant, state.
_KEY, _TIME, _STATE = range(3)
_ROW_BYTES = 24
_POSITION_BITS = 34
_MAX_USERS = 1 << 29
# A sort takes about as much again as what is sorted, twice.
_SHARE_TO_SORT = 3


@dataclass(frozen=True)
class FixBatch:
    """Some fixes, in any order.

    ``user`` (n,) numbers the individuals from 0 over all batches, ``time_us`` (n,) are
    microseconds since 1970 in UTC, ``lon`` and ``lat`` (n,) degrees.
    """

    user: IntArray
    time_us: IntArray
    lon: FloatArray
    lat: FloatArray

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True)
class CountProgress:
    """How far counting is: rows read, people met, bytes held in memory and in temporary files."""

    rows: int
    people: int
    table_bytes: int
    spilled_bytes: int


def count_cells(
    batches: Iterable[FixBatch],
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
    batches: Iterable[FixBatch],
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
    clock = _Clock.of(timezone, step_us_of(step))
    tally = _Tally(grid.n_cells + 1)
    rows = n_users = 0
    with ExitStack() as files:
        kept = _Kept(files, scratch, max_table_bytes, with_first=gap_us > 0)
        for batch in batches:
            n_users = max(n_users, _check(batch))
            rows += len(batch)
            kept.add(_fixes(batch, grid, clock))
            yield CountProgress(rows, n_users, kept.n_bytes, kept.spilled_bytes)
        for fixes in kept.people(n_users):
            tally.add(fixes, clock, gap_us)
    yield tally.table(clock)


# ------------------------------------------------------------------------------------ clock


@dataclass(frozen=True)
class _Clock:
    """A local clock as stretches of constant offset, and bins on it that never go back.

    Stretch s begins at the instant ``starts[s]`` (UTC, us) and adds ``offsets[s]`` to it. The
    bin of a local time, counted since 1970, has the position ``bin + shifts[s]`` from 0 on: in
    order of the instants even where a clock is put back and repeats its bins.
    """

    timezone: str
    step_us: int
    starts: IntArray
    offsets: IntArray
    shifts: IntArray

    @classmethod
    def of(cls, timezone: str, step_us: int) -> _Clock:
        first, end = (np.datetime64(f"{year}-01-01", "us") for year in _YEARS)
        sampled = np.append(np.arange(first, end, _CLOCK_SAMPLE), end).astype(np.int64)
        offset = _offset_at(sampled, timezone)
        at = np.flatnonzero(np.diff(offset))
        before, after = sampled[at], sampled[at + 1]
        while (after - before > 1).any():
            middle = (before + after) // 2
            unmoved = _offset_at(middle, timezone) == offset[at]
            before, after = np.where(unmoved, middle, before), np.where(unmoved, after, middle)
        starts = np.concatenate([sampled[:1], after])
        offsets = np.concatenate([offset[:1], offset[at + 1]])
        first_bins = (starts + offsets) // step_us
        last_bins = (starts[1:] - 1 + offsets[:-1]) // step_us
        back = np.where(first_bins[1:] < last_bins, last_bins + 1 - first_bins[1:], 0)
        shifts = np.concatenate([[0], np.cumsum(back)]) - first_bins[0]
        return cls(timezone, step_us, starts, offsets, shifts)

    def positions(self, utc_us: IntArray) -> IntArray:
        """Position of the bin of each instant, (n,)."""
        stretch = np.searchsorted(self.starts, utc_us, side="right") - 1
        return (utc_us + self.offsets[stretch]) // self.step_us + self.shifts[stretch]

    def bins(self, positions: IntArray) -> IntArray:
        """Bin on the clock, counted since 1970, at each position, (n,)."""
        firsts = (self.starts + self.offsets) // self.step_us + self.shifts
        return positions - self.shifts[np.searchsorted(firsts, positions, side="right") - 1]


def _offset_at(utc_us: IntArray, timezone: str) -> IntArray:
    return to_local(utc_us.astype("datetime64[us]"), timezone).astype(np.int64) - utc_us


# ------------------------------------------------------------------------------------ fixes


def _check(batch: FixBatch) -> int:
    """Number of the last individual in a batch, plus one."""
    lengths = {len(column) for column in (batch.user, batch.time_us, batch.lon, batch.lat)}
    if len(lengths) != 1:
        raise InputError("The columns of a batch of fixes differ in length.", code="lengths-differ")
    if len(batch) == 0:
        return 0
    if batch.user.min() < 0 or batch.user.max() >= _MAX_USERS:
        raise InputError(
            f"People must be numbered from 0 to {_MAX_USERS - 1:,}.", code="user-out-of-range"
        )
    first, end = (np.datetime64(f"{year}-01-01", "us").astype(np.int64) for year in _YEARS)
    if batch.time_us.min() < first or batch.time_us.max() >= end:
        raise InputError(
            f"A fix lies outside the years {_YEARS[0]} to {_YEARS[1] - 1}; set such rows aside.",
            code="time-out-of-range",
        )
    return int(batch.user.max()) + 1


def _fixes(batch: FixBatch, grid: BaseGrid, clock: _Clock) -> IntArray:
    """A batch as rows of three numbers, (n, 3)."""
    time_us = np.asarray(batch.time_us, dtype=np.int64)
    fixes = np.empty((len(batch), 3), dtype=np.int64)
    fixes[:, _KEY] = np.asarray(batch.user, dtype=np.int64) << _POSITION_BITS
    fixes[:, _KEY] |= clock.positions(time_us)
    fixes[:, _TIME] = time_us
    fixes[:, _STATE] = states_of(grid, batch.lon, batch.lat)
    return fixes


def _last_of_bins(fixes: IntArray, *, with_first: bool) -> IntArray:
    """The last fix, and the first, of each person and bin, in order; of twins the later row."""
    key, time_us = (np.ascontiguousarray(fixes[:, column]) for column in (_KEY, _TIME))
    order = np.argsort(key, kind="stable")
    border = np.diff(key[order]) != 0
    # Logs come in order of time, and then one sort will do.
    if not (border | (np.diff(time_us[order]) >= 0)).all():
        order = np.lexsort((time_us, key))
    kept = np.ones(len(fixes), dtype=bool)
    kept[:-1] = border
    if with_first:
        kept[1:] |= border
        kept[:1] = True
    return fixes.take(order[kept], axis=0)


class _Kept:
    """The fixes that are kept, in memory and in temporary files of fixes in order."""

    def __init__(
        self, files: ExitStack, scratch: Path | None, max_bytes: int, *, with_first: bool
    ) -> None:
        self.files, self.scratch = files, scratch
        self.max_rows = max_bytes // _SHARE_TO_SORT // _ROW_BYTES
        self.with_first = with_first
        self.parts: list[IntArray] = []
        self.spilled: list[IntArray] = []

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
        self.parts.append(_last_of_bins(fixes, with_first=self.with_first))
        if sum(map(len, self.parts)) > self.max_rows:
            self._join()
            if len(self.parts[0]) > self.max_rows // 2:
                self.spilled.append(self._written(self.parts.pop()))

    def people(self, n_users: int) -> Iterator[IntArray]:
        """All fixes in order of person and time, of some people at a time."""
        runs = [run for run in (*self.spilled, *self.parts) if len(run)]
        if not runs:
            return
        per_user = np.zeros(n_users, dtype=np.int64)
        for run in runs:
            for at in range(0, len(run), ROWS_AT_ONCE):
                user = run[at : at + ROWS_AT_ONCE, _KEY] >> _POSITION_BITS
                found = np.bincount(user - user[0])
                per_user[user[0] : user[0] + len(found)] += found
        part = np.cumsum(per_user) // ROWS_AT_ONCE
        firsts = np.flatnonzero(np.diff(part, prepend=-1))
        ends = np.append(firsts[1:], n_users) << _POSITION_BITS
        places = [np.searchsorted(run[:, _KEY], ends) for run in runs]
        begins = [0] * len(runs)
        for at in range(len(ends)):
            stops = [int(place[at]) for place in places]
            fixes = [run[b:e] for run, b, e in zip(runs, begins, stops, strict=True)]
            yield _last_of_bins(np.concatenate(fixes), with_first=self.with_first)
            begins = stops

    def _join(self) -> None:
        """Make one of the parts in memory."""
        if len(self.parts) > 1:
            self.parts = [_last_of_bins(np.concatenate(self.parts), with_first=self.with_first)]

    def _written(self, fixes: IntArray) -> IntArray:
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
        return np.memmap(file, dtype=np.int64, mode="r", shape=fixes.shape)


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
        user, position = np.divmod(fixes[:, _KEY], 1 << _POSITION_BITS)
        self.parts.append(
            people_present(
                user, clock.bins(position), fixes[:, _STATE], fixes[:, _TIME], self.n_states, gap_us
            )
        )
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
