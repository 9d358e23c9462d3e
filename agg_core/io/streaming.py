"""Fixes in batches, in any order and of any number, to people per cell and clock bin.

Memory holds one number for each person and bin: the last fix in it, as (instant, cell). They
lie in tiles of 16 bins x 64 people, made when first touched, so that people who come and go cost
little, and a broken date centuries away costs one tile. Where the tiles reach a stated limit,
their numbers go to a temporary file and the table begins anew; in the end the files are read
back and joined, some people at a time. Every step is exact: a maximum does not mind the order.

The rule is that of `sequences.cell_counts`, whose result this is for the same fixes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from agg_core.base.clock import DAY, to_local, to_utc
from agg_core.base.errors import InputError
from agg_core.tables.sequences import duration_us, step_us_of

if TYPE_CHECKING:
    from agg_core.space.grid import Grid

__all__ = [
    "MAX_TABLE_BYTES",
    "CountProgress",
    "FixBatch",
    "count_cells",
    "count_steps",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CountArray = npt.NDArray[np.int32]

MAX_TABLE_BYTES = 1 << 30
"""Most memory for the table of last fixes before it goes to temporary files."""

MAX_COUNTS = 1 << 27
"""Most (bin, cell) pairs of a result that there is room for."""

_DAY_US = int(DAY.astype(np.int64))
_YEARS = (1900, 2200)
_CLOCK_SAMPLE = np.timedelta64(6, "h")

# A tile holds 16 bins x 64 people; its key is (position of the bin // 16) << 29 | person // 64.
_BIN_BITS, _USER_BITS, _BLOCK_BITS = 4, 6, 29
_TILE = 1 << (_BIN_BITS + _USER_BITS)
_BLOCK_MASK = (1 << _BLOCK_BITS) - 1
# A fix is its instant since a day before its bin, then its cell. It is never 0: that is no fix.
_CELL_BITS = 25
_CELL_MASK = (1 << _CELL_BITS) - 1
# In a temporary file a fix is told by its person, then the position of its bin.
_POSITION_BITS = 34
_POSITION_MASK = (1 << _POSITION_BITS) - 1
_MAX_USERS = 1 << 29
_TILES_AT_ONCE = 1 << 10
_ROWS_AT_ONCE = 1 << 20
_NEVER = -(1 << 62)
# Counts of this many neighbouring keys lie together.
_RUN_BITS = 3
_RUN = 1 << _RUN_BITS

_compiled = njit(cache=True, error_model="numpy")


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
    grid: Grid,
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
        successive fixes no further apart than that count too, in the former's cell; the table
        of last fixes then takes twice the memory.
    max_table_bytes
        Memory beyond which the table of last fixes goes to temporary files in ``scratch``
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
    grid: Grid,
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
    clock = _Clock.of(timezone, step_us_of(step))
    gap_us = 0 if max_gap is None else duration_us(max_gap, "max_gap")
    if grid.n_cells > _CELL_MASK:
        raise InputError(
            f"A grid of {grid.n_cells:,} cells is too fine to count people in; use at most "
            f"{_CELL_MASK:,} cells."
        )
    table = _Table(max_table_bytes, with_first=gap_us > 0)
    tally = _Tally(grid.n_cells + 1)
    rows = n_users = 0
    with ExitStack() as files:
        spills: list[_Spill] = []
        for batch in batches:
            n_users = max(n_users, _check(batch))
            rows += len(batch)
            for _ in table.keep(batch, _cells(grid, batch), clock):
                spills.append(_Spill.of(table, files, scratch))
                table.clear()
            yield CountProgress(rows, n_users, table.n_bytes, sum(s.n_bytes for s in spills))
        if spills and table.n_tiles:
            spills.append(_Spill.of(table, files, scratch))
        for users in _joined(table, spills) if spills else [range(n_users)]:
            tally.add(table, clock, gap_us, users)
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

    @property
    def first_positions(self) -> IntArray:
        """Position of the first bin of each stretch."""
        return (self.starts + self.offsets) // self.step_us + self.shifts


def _offset_at(utc_us: IntArray, timezone: str) -> IntArray:
    return to_local(utc_us.astype("datetime64[us]"), timezone).astype(np.int64) - utc_us


# ------------------------------------------------------------------------------------ batches


def _check(batch: FixBatch) -> int:
    """Number of the last individual in a batch, plus one."""
    lengths = {len(column) for column in (batch.user, batch.time_us, batch.lon, batch.lat)}
    if len(lengths) != 1:
        raise InputError("The columns of a batch of fixes differ in length.")
    if len(batch) == 0:
        return 0
    if batch.user.min() < 0 or batch.user.max() >= _MAX_USERS:
        raise InputError(f"People must be numbered from 0 to {_MAX_USERS - 1:,}.")
    first, end = (np.datetime64(f"{year}-01-01", "us").astype(np.int64) for year in _YEARS)
    if batch.time_us.min() < first or batch.time_us.max() >= end:
        raise InputError(
            f"A fix lies outside the years {_YEARS[0]} to {_YEARS[1] - 1}; set such rows aside."
        )
    return int(batch.user.max()) + 1


def _cells(grid: Grid, batch: FixBatch) -> IntArray:
    """State of each fix, (n,): its cell, or n_cells where it lies in none."""
    lon_edges, lat_edges = getattr(grid, "lon_edges", None), getattr(grid, "lat_edges", None)
    if lon_edges is not None and lat_edges is not None:
        lon, lat = np.asarray(batch.lon, dtype=float), np.asarray(batch.lat, dtype=float)
        blocks: IntArray = _blocks(lon, lat, lon_edges, lat_edges)
        return blocks
    cell = grid.assign(batch.lon, batch.lat)
    return np.where(cell < 0, grid.n_cells, cell)


# ------------------------------------------------------------------------------------ table


class _Table:
    """The last fix of each person in each bin, in tiles found through an open-addressed set.

    ``keys`` and ``tiles`` map the key of a tile to its number, ``last`` holds the fixes of tile
    i at ``i * _TILE``; ``first`` the first instants beside them, where they are wanted.
    """

    def __init__(self, max_bytes: int, *, with_first: bool) -> None:
        self.max_tiles = max(max_bytes // (_TILE * 8 * (1 + with_first)), 16)
        self.last = np.zeros(16 * _TILE, dtype=np.int64)
        self.first = np.zeros(16 * _TILE if with_first else 0, dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget all fixes, but keep the memory."""
        self.keys = np.full(64, -1, dtype=np.int64)
        self.tiles = np.zeros(64, dtype=np.int64)
        self.n_tiles = 0
        self.last[:] = 0
        self.first[:] = 0

    @property
    def n_bytes(self) -> int:
        """Memory taken."""
        return self.last.nbytes + self.first.nbytes + self.keys.nbytes + self.tiles.nbytes

    @property
    def tile_keys(self) -> IntArray:
        """Key of each tile, (n_tiles,)."""
        found = np.flatnonzero(self.keys >= 0)
        keys = np.empty(self.n_tiles, dtype=np.int64)
        keys[self.tiles[found]] = self.keys[found]
        return keys

    def keep(self, batch: FixBatch, cell: IntArray, clock: _Clock) -> Iterator[None]:
        """Take in the fixes of a batch; yields whenever the table is full and must be emptied."""
        user = np.asarray(batch.user, dtype=np.int64)
        time_us = np.asarray(batch.time_us, dtype=np.int64)
        row = 0
        while row < len(user):
            row, self.n_tiles = _keep_last(
                user, time_us, cell, clock.starts, clock.offsets, clock.shifts, clock.step_us,
                self.keys, self.tiles, self.last, self.first, self.n_tiles, row,
            )  # fmt: skip
            if row < len(user) and not self._grow():
                yield

    def join(self, fixes: IntArray) -> None:
        """Take in fixes that a table had held, rows of a `_Spill`."""
        row = 0
        while row < len(fixes):
            row, self.n_tiles = _join_last(
                fixes, self.keys, self.tiles, self.last, self.first, self.n_tiles, row
            )
            if row < len(fixes):
                grown = self._grow()
                assert grown, "people are joined as many at a time as fit"

    def _grow(self) -> bool:
        """Make room for more tiles, if the limit allows it."""
        if self.n_tiles * 2 >= len(self.keys):
            old, numbers = self.keys, self.tiles
            self.keys = np.full(2 * len(old), -1, dtype=np.int64)
            self.tiles = np.zeros(2 * len(old), dtype=np.int64)
            _copy_places(old, numbers, self.keys, self.tiles)
            return True
        room = len(self.last) // _TILE
        if room >= self.max_tiles:
            return False
        room = min(self.max_tiles, room + max(room // 2, 16))
        # In place, where the system can: no two copies of a large table at once.
        self.last.resize(room * _TILE, refcheck=False)
        if len(self.first):
            self.first.resize(room * _TILE, refcheck=False)
        return True


# ------------------------------------------------------------------------------------ files


@dataclass(frozen=True)
class _Spill:
    """The fixes of a table in a temporary file: rows of person and position, fix[, first].

    Rows of a block of people stand together: those of ``blocks[i]`` begin at row ``begins[i]``,
    and the last of ``begins`` is the number of rows.
    """

    file: IO[bytes]
    width: int
    blocks: IntArray
    begins: IntArray
    tile_keys: IntArray

    @classmethod
    def of(cls, table: _Table, files: ExitStack, scratch: Path | None) -> _Spill:
        keys = table.tile_keys
        block = keys & _BLOCK_MASK
        order = np.argsort(block, kind="stable")
        per_tile = np.empty(len(order), dtype=np.int64)
        width = 3 if len(table.first) else 2
        try:
            file = files.enter_context(tempfile.TemporaryFile(dir=scratch))  # noqa: SIM115
            for at in range(0, len(order), _TILES_AT_ONCE):
                part = order[at : at + _TILES_AT_ONCE]
                fixes = np.empty((len(part) * _TILE, width), dtype=np.int64)
                n = _list_fixes(part, keys, table.last, table.first, fixes, per_tile[at:])
                file.write(fixes[:n].data)
            file.flush()
        except OSError as error:
            raise InputError(
                "Temporary files cannot be written "
                f"({error.strerror}); make room for them, or allow more memory."
            ) from error
        blocks, begins = np.unique(block[order], return_index=True)
        rows = np.concatenate([[0], np.cumsum(per_tile)])
        return cls(file, width, blocks, rows[np.append(begins, len(order))], keys)

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return int(self.begins[-1]) * self.width * 8

    def fixes(self, first_block: int, end_block: int) -> Iterator[IntArray]:
        """The rows of some blocks of people, in parts."""
        row, end = self.begins[np.searchsorted(self.blocks, [first_block, end_block])]
        self.file.seek(int(row) * self.width * 8)
        while row < end:
            n = int(min(end - row, _ROWS_AT_ONCE))
            part = np.frombuffer(self.file.read(n * self.width * 8), dtype=np.int64)
            yield part.reshape(n, self.width)
            row += n


def _joined(table: _Table, spills: list[_Spill]) -> Iterator[range]:
    """Fill the table from files with as many people at a time as fit; yields who they are."""
    keys = np.unique(np.concatenate([spill.tile_keys for spill in spills]))
    blocks, n_tiles = np.unique(keys & _BLOCK_MASK, return_counts=True)
    if n_tiles.max() > table.max_tiles:
        raise InputError(
            f"The table of last fixes of {1 << _USER_BITS} people does not fit "
            f"{table.max_tiles * _TILE * 8 >> 20:,} MiB; use a longer step or allow more memory."
        )
    first = 0
    while first < len(blocks):
        fits = np.searchsorted(np.cumsum(n_tiles[first:]), table.max_tiles, "right")
        last = first + int(fits) - 1
        table.clear()
        for spill in spills:
            for part in spill.fixes(int(blocks[first]), int(blocks[last]) + 1):
                table.join(part)
        yield range(int(blocks[first]) << _USER_BITS, (int(blocks[last]) + 1) << _USER_BITS)
        first = last + 1


# ------------------------------------------------------------------------------------ counts


class _Tally:
    """People per (bin, state): runs of counts of 8 neighbouring keys bin * n_states + state.

    ``keys`` is an open-addressed set of key // 8; the run of the one at a place is that row of
    ``counts`` (n_places, 8).
    """

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.keys = np.full(1 << 12, -1, dtype=np.int64)
        self.counts = np.zeros((1 << 12, _RUN), dtype=np.int32)
        self.n = 0

    def add(self, table: _Table, clock: _Clock, gap_us: int, users: range) -> None:
        """Count the people of a table, whose numbers lie in a range, through all its bins."""
        keys = table.tile_keys
        order = np.argsort(keys)
        # Of each person: the bin that they are in (from the first possible one), cell, instant.
        held = np.full(len(users), _NEVER, dtype=np.int64)
        cell, seen = np.zeros(len(users), dtype=np.int64), np.zeros(len(users), dtype=np.int64)
        slot = 0
        while slot < len(order) * _TILE:
            slot, self.n = _count_moves(
                order, keys, table.last, table.first, clock.first_positions, clock.shifts,
                clock.step_us, gap_us, users.start, held, cell, seen, self.n_states,
                self.keys, self.counts, self.n, slot,
            )  # fmt: skip
            if slot < len(order) * _TILE:
                self._grow()
        user = 0
        while user < len(users):
            user, self.n = _count_ends(
                held, cell, clock.shifts[0], self.n_states, self.keys, self.counts, self.n, user
            )
            if user < len(users):
                self._grow()

    def _grow(self) -> None:
        if self.counts.size >= MAX_COUNTS:
            raise InputError(
                "There is no room for counts of so many bins and cells; use a longer step, fewer "
                "cells or a shorter max_gap."
            )
        old, numbers = self.keys, self.counts
        self.keys = np.full(2 * len(old), -1, dtype=np.int64)
        self.counts = np.zeros((2 * len(old), _RUN), dtype=np.int32)
        _copy_places(old, numbers, self.keys, self.counts)

    def table(self, clock: _Clock) -> pd.DataFrame:
        """Columns time, cell, count in order of time and cell."""
        places = np.flatnonzero(self.keys >= 0)
        places = places[np.argsort(self.keys[places])]
        runs = self.counts[places]
        run, offset = np.nonzero(runs)
        count = runs[run, offset].astype(np.int64)
        bins, cell = np.divmod(self.keys[places][run] * _RUN + offset, self.n_states)
        times, place = np.unique(bins, return_inverse=True)
        local = ((times - clock.shifts[0]) * clock.step_us).astype("datetime64[us]")
        exists = ~to_utc(local, clock.timezone).missing[place]
        return pd.DataFrame(
            {
                "time": local[place][exists],
                "cell": cell[exists],
                "count": count[exists],
            }
        )


# ------------------------------------------------------------------------------------ kernels


@_compiled
def _blocks(
    lon: FloatArray, lat: FloatArray, lon_edges: FloatArray, lat_edges: FloatArray
) -> IntArray:
    """Block of each place in a grid of rows x columns; the number of blocks where in none."""
    cols, rows = len(lon_edges) - 1, len(lat_edges) - 1
    per_degree_lon = cols / (lon_edges[cols] - lon_edges[0])
    per_degree_lat = rows / (lat_edges[rows] - lat_edges[0])
    found = np.empty(len(lon), dtype=np.int64)
    for i in range(len(lon)):
        col = _interval(lon[i], lon_edges, per_degree_lon)
        row = _interval(lat[i], lat_edges, per_degree_lat)
        found[i] = row * cols + col if row >= 0 and col >= 0 else rows * cols
    return found


@_compiled
def _interval(value: float, edges: FloatArray, per_unit: float) -> int:
    """The interval [edge, next edge) of a value, the last one closed; -1 outside."""
    n = len(edges) - 1
    if not (edges[0] <= value <= edges[n]):
        return -1
    i = min(int((value - edges[0]) * per_unit), n - 1)
    while i > 0 and value < edges[i]:
        i -= 1
    while i < n - 1 and value >= edges[i + 1]:
        i += 1
    return i


@_compiled
def _seek(keys: IntArray, key: int) -> np.int64:
    """The place of a key in an open-addressed set, or the free one where it belongs."""
    mask = len(keys) - 1
    spread = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(spread >> np.uint64(32)) & mask
    while keys[place] != key and keys[place] != -1:
        place = (place + 1) & mask
    return place


@_compiled
def _copy_places(
    old: IntArray, numbers: IntArray | CountArray, keys: IntArray, values: IntArray | CountArray
) -> None:
    """Enter the keys of a set, and the number of each, into a larger one."""
    for i in range(len(old)):
        if old[i] >= 0:
            place = _seek(keys, old[i])
            keys[place] = old[i]
            values[place] = numbers[i]


@_compiled
def _tile_of(keys: IntArray, tiles: IntArray, key: int, n_tiles: int, most: int) -> int:
    """Number of a tile, ``n_tiles`` if it is made now, -1 if there is no room for it."""
    place = _seek(keys, key)
    if keys[place] == key:
        return int(tiles[place])
    if n_tiles == most:
        return -1
    keys[place] = key
    tiles[place] = n_tiles
    return n_tiles


@_compiled
def _keep_last(
    user: IntArray, time_us: IntArray, cell: IntArray,
    starts: IntArray, offsets: IntArray, shifts: IntArray, step_us: int,
    keys: IntArray, tiles: IntArray, last: IntArray, first: IntArray, n_tiles: int, row: int,
) -> tuple[int, int]:  # fmt: skip
    """Enter fixes from a row on; returns the row before which there was no room, and n_tiles."""
    most = min(len(last) // _TILE, len(keys) // 2)
    with_first = len(first) > 0
    stretch, stretch_begins, stretch_ends = 0, np.int64(0), np.int64(0)
    begins, ends, origin = np.int64(0), np.int64(0), np.int64(0)
    tile_key, tile_bin = np.int64(0), np.int64(0)
    for i in range(row, len(user)):
        t = time_us[i]
        if t < begins or t >= ends:
            if t < stretch_begins or t >= stretch_ends:
                stretch = np.searchsorted(starts, t, side="right") - 1
                stretch_begins = starts[stretch]
                ahead = stretch + 1 < len(starts)
                stretch_ends = starts[stretch + 1] if ahead else np.int64(1 << 62)
            local_bin = (t + offsets[stretch]) // step_us
            origin = local_bin * step_us - _DAY_US
            begins = max(local_bin * step_us - offsets[stretch], stretch_begins)
            ends = min((local_bin + 1) * step_us - offsets[stretch], stretch_ends)
            position = local_bin + shifts[stretch]
            tile_key = (position >> _BIN_BITS) << _BLOCK_BITS
            tile_bin = (position & ((1 << _BIN_BITS) - 1)) << _USER_BITS
        person = user[i]
        tile = _tile_of(keys, tiles, tile_key | (person >> _USER_BITS), n_tiles, most)
        if tile < 0:
            return i, n_tiles
        n_tiles = max(n_tiles, tile + 1)
        slot = tile * _TILE + tile_bin + (person & ((1 << _USER_BITS) - 1))
        instant = t - origin
        if instant >= last[slot] >> _CELL_BITS:
            last[slot] = instant << _CELL_BITS | cell[i]
        if with_first and (first[slot] == 0 or instant < first[slot]):
            first[slot] = instant
    return len(user), n_tiles


@_compiled
def _list_fixes(
    order: IntArray, tile_keys: IntArray, last: IntArray, first: IntArray,
    fixes: IntArray, per_tile: IntArray,
) -> int:  # fmt: skip
    """The fixes of some tiles as rows of (person and position, fix[, first]); how many."""
    n = 0
    for k in range(len(order)):
        before = n
        key = tile_keys[order[k]]
        position = (key >> _BLOCK_BITS) << _BIN_BITS
        person = (key & _BLOCK_MASK) << _USER_BITS
        for at in range(_TILE):
            slot = order[k] * _TILE + at
            if last[slot] != 0:
                who = person + (at & ((1 << _USER_BITS) - 1))
                fixes[n, 0] = who << _POSITION_BITS | (position + (at >> _USER_BITS))
                fixes[n, 1] = last[slot]
                if len(first) > 0:
                    fixes[n, 2] = first[slot]
                n += 1
        per_tile[k] = n - before
    return n


@_compiled
def _join_last(
    fixes: IntArray,
    keys: IntArray, tiles: IntArray, last: IntArray, first: IntArray, n_tiles: int, row: int,
) -> tuple[int, int]:  # fmt: skip
    """Enter rows of `_list_fixes`; returns as `_keep_last` does."""
    most = min(len(last) // _TILE, len(keys) // 2)
    with_first = len(first) > 0
    for i in range(row, len(fixes)):
        person, position = fixes[i, 0] >> _POSITION_BITS, fixes[i, 0] & _POSITION_MASK
        key = (position >> _BIN_BITS) << _BLOCK_BITS | (person >> _USER_BITS)
        tile = _tile_of(keys, tiles, key, n_tiles, most)
        if tile < 0:
            return i, n_tiles
        n_tiles = max(n_tiles, tile + 1)
        slot = tile * _TILE + ((position & ((1 << _BIN_BITS) - 1)) << _USER_BITS)
        slot += person & ((1 << _USER_BITS) - 1)
        if fixes[i, 1] >> _CELL_BITS >= last[slot] >> _CELL_BITS:
            last[slot] = fixes[i, 1]
        if with_first and (first[slot] == 0 or fixes[i, 2] < first[slot]):
            first[slot] = fixes[i, 2]
    return len(fixes), n_tiles


@_compiled
def _count_moves(
    order: IntArray, tile_keys: IntArray, last: IntArray, first: IntArray,
    first_positions: IntArray, shifts: IntArray, step_us: int, gap_us: int,
    first_user: int, held: IntArray, cell: IntArray, seen: IntArray, n_states: int,
    keys: IntArray, counts: CountArray, n: int, slot: int,
) -> tuple[int, int]:  # fmt: skip
    """Count each person's bin when a later one is met; returns the slot without room, and n.

    Tiles come in order of time. Where a clock is put back, people stay in the bin that they had
    reached, as in `sequences`, until the clock has passed it.
    """
    most = len(keys) // 2
    stretch = 0
    for s in range(slot, len(order) * _TILE):
        tile = order[s // _TILE]
        at = s % _TILE
        value = last[tile * _TILE + at]
        if value == 0:
            continue
        key = tile_keys[tile]
        position = ((key >> _BLOCK_BITS) << _BIN_BITS) + (at >> _USER_BITS)
        while stretch + 1 < len(shifts) and position >= first_positions[stretch + 1]:
            stretch += 1
        while position < first_positions[stretch]:
            stretch -= 1
        local_bin = position - shifts[stretch]
        origin = local_bin * step_us - _DAY_US
        person = ((key & _BLOCK_MASK) << _USER_BITS) + (at & ((1 << _USER_BITS) - 1)) - first_user
        reached = max(local_bin, held[person])
        if held[person] != _NEVER and reached > held[person]:
            stay = 1
            if gap_us > 0 and origin + first[tile * _TILE + at] - seen[person] <= gap_us:
                stay = reached - held[person]
            if n + stay > most:
                return s, n
            for k in range(stay):
                bin_key = (held[person] + k + shifts[0]) * n_states + cell[person]
                n += _count_one(keys, counts, bin_key)
        held[person] = reached
        cell[person] = value & _CELL_MASK
        seen[person] = origin + (value >> _CELL_BITS)
    return len(order) * _TILE, n


@_compiled
def _count_ends(
    held: IntArray, cell: IntArray, shift: int, n_states: int,
    keys: IntArray, counts: CountArray, n: int, user: int,
) -> tuple[int, int]:  # fmt: skip
    """Count the bin in which each person was last; returns the person without room, and n."""
    most = len(keys) // 2
    for person in range(user, len(held)):
        if held[person] != _NEVER:
            if n == most:
                return person, n
            n += _count_one(keys, counts, (held[person] + shift) * n_states + cell[person])
    return len(held), n


@_compiled
def _count_one(keys: IntArray, counts: CountArray, key: int) -> int:
    """One person more under a key; 1 if its run is new."""
    run = key >> _RUN_BITS
    place = _seek(keys, run)
    new = keys[place] == -1
    keys[place] = run
    counts[place, key & (_RUN - 1)] += 1
    return 1 if new else 0
