"""Rows of counts to a matrix of moments and cells: twins, and parts that are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED, check_size

__all__ = [
    "CountRows",
    "Dense",
    "ManyTwinsError",
    "dense",
    "latest_in_step",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
StatusArray = npt.NDArray[np.uint8]
PartArray = npt.NDArray[np.uint32]
TimeArray = npt.NDArray[np.datetime64]

FEW_TWINS, FEW_SHARE = 10, 0.01
"""So many cells with several counts at a time, and such a share of all, are a slip."""


class ManyTwinsError(InputError):
    """Cells with several different counts at one time, too many to be a slip.

    ``rows`` are the rows of the file that disagree; ``among`` a column that tells them apart.
    """

    def __init__(self, n_twins: int, n: int, rows: IntArray, among: str = "") -> None:
        kinds = f"the column {among} tells them apart: " if among else ""
        super().__init__(
            f"{n_twins:,} of {n:,} cells have several different counts at one time; {kinds}keep "
            "one kind of row (where), or say which count is taken (duplicates: last, first, sum "
            "or largest).",
            f"--where={among}=VALUE" if among else "--duplicates=sum",
            code="conflicting-counts",
        )
        self.n_twins, self.n, self.rows = n_twins, n, rows


@dataclass(frozen=True)
class CountRows:
    """Rows (n,): instant, cell as an index into names, what tells parts apart, count, status.

    ``row`` is the row of the file that each is of.
    """

    time: TimeArray
    cell: IntArray
    detail: IntArray
    values: FloatArray
    status: StatusArray
    row: IntArray

    def take(self, rows: BoolArray | IntArray) -> CountRows:
        """Some of the rows."""
        return CountRows(
            self.time[rows], self.cell[rows], self.detail[rows], self.values[rows],
            self.status[rows], self.row[rows],
        )  # fmt: skip


@dataclass(frozen=True)
class Dense:
    """Moments (n,) in order, counts and status (n, c), and which entries have a row (n, c).

    Counts are the sums of the parts that are known. ``n_parts`` (n, c) is how many parts have a
    row, ``hidden`` how many are suppressed, ``unknown`` how many were not measured, and ``lacking``
    how many have no row there and have one at other moments. ``seen`` are the known parts, one by
    one. ``repeated`` are rows that say again what another says, ``conflicting`` those that were not
    taken though they, or their twin, say something else.
    """

    times: TimeArray
    counts: FloatArray
    status: StatusArray
    present: BoolArray
    lacking: PartArray
    n_parts: PartArray
    hidden: PartArray
    unknown: PartArray
    seen: FloatArray
    repeated: IntArray
    conflicting: IntArray
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def latest_in_step(rows: CountRows, steps: TimeArray) -> BoolArray:
    """Rows (n,) that are the last of their cell in their step."""
    order = np.lexsort((rows.time, rows.detail, rows.cell, steps.astype(np.int64)))
    keys = [steps[order].astype(np.int64), rows.cell[order], rows.detail[order]]
    ends = np.ones(len(order), dtype=bool)
    ends[:-1] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    # Rows of the very same time are twins, which are judged later.
    final = np.maximum.reduceat(rows.time[order], _starts(ends)) if len(order) else rows.time
    group = np.concatenate([[0], np.cumsum(ends)[:-1]]).astype(np.int64)
    last = np.zeros(len(order), dtype=bool)
    last[order] = rows.time[order] == final[group]
    return last


def _starts(ends: BoolArray) -> IntArray:
    return np.concatenate([[0], np.flatnonzero(ends)[:-1] + 1]).astype(np.int64)


def dense(rows: CountRows, n_cells: int, duplicates: str) -> Dense:
    """Moments by cells; of twins one is taken, parts are added.

    Raises
    ------
    InputError
        If the table would be too large, or twins are many and nobody said which to take.
    """
    times, moment = np.unique(rows.time, return_inverse=True)
    check_size(len(times), n_cells)
    entry = moment.reshape(-1).astype(np.int64) * n_cells + rows.cell
    chosen, value, state, repeated, conflicting = _one_each(rows, entry, duplicates)
    guesses = {}
    n_twins = len(np.unique(entry[conflicting]))
    if len(conflicting):
        rule = "last" if duplicates == "auto" else duplicates
        others = tuple(way for way in ("last", "first", "sum", "largest") if way != rule)
        note = f"{n_twins:,} cells have several counts at one time"
        guesses["duplicates"] = Guess(rule, others, note, "duplicates")
    if duplicates == "sum":
        repeated = conflicting = repeated[:0]
    counts = np.zeros(len(times) * n_cells)
    status = np.full(len(counts), MISSING, dtype=np.uint8)
    published = state == PUBLISHED
    np.add.at(counts, chosen[published], value[published])
    np.minimum.at(status, chosen, state)
    counts[status != PUBLISHED] = np.nan
    shape = (len(times), n_cells)

    def number_of(some: IntArray) -> PartArray:
        parts = np.zeros(len(counts), dtype=np.uint32)
        np.add.at(parts, some, np.uint32(1))
        return parts.reshape(shape)

    parts = number_of(chosen)
    lacking = np.where(parts > 0, parts.max(axis=0) - parts, np.uint32(0))
    return Dense(
        times, counts.reshape(shape), status.reshape(shape), parts > 0, lacking, parts,
        number_of(chosen[state == SUPPRESSED]), number_of(chosen[state == MISSING]),
        value[published], repeated, conflicting, guesses,
    )  # fmt: skip


def _one_each(
    rows: CountRows, entry: IntArray, duplicates: str
) -> tuple[IntArray, FloatArray, StatusArray, IntArray, IntArray]:
    """One row per entry and part: entry, count, status; rows that repeat, rows not taken."""
    full = entry * (int(rows.detail.max(initial=0)) + 1) + rows.detail
    # Missing before suppressed before published, then as they came.
    order = np.lexsort((np.arange(len(full)), -rows.status.astype(np.int64), full))
    first = np.ones(len(full), dtype=bool)
    first[1:] = np.diff(full[order]) > 0
    starts = np.flatnonzero(first)
    ends = np.concatenate([starts[1:], [len(full)]]) - 1
    if len(starts) == len(full):
        return entry, rows.values, rows.status, full[:0], full[:0]
    group = np.cumsum(first) - 1
    best = order[ends]
    known = rows.status[order] == rows.status[best][group]
    same = known & ~_differs(rows.values[order], rows.values[best][group])
    unlike = np.zeros(len(starts), dtype=bool)
    np.logical_or.at(unlike, group[known & ~same], True)
    if duplicates == "auto" and _too_many(unlike):
        raise ManyTwinsError(int(unlike.sum()), len(unlike), rows.row[order[unlike[group]]])
    values = _settled(rows.values[order], known, group, starts, best, rows, duplicates)
    taken = np.zeros(len(full), dtype=bool)
    taken[ends] = True
    others = ~taken
    conflicting = order[others & unlike[group]]
    repeated = order[others & ~unlike[group]]
    return entry[best], values, rows.status[best], np.sort(repeated), np.sort(conflicting)


def _differs(one: FloatArray, other: FloatArray) -> BoolArray:
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _too_many(unlike: BoolArray) -> bool:
    """Whether twins that say different things are no slip."""
    n_twins = int(unlike.sum())
    return n_twins > FEW_TWINS and n_twins > FEW_SHARE * len(unlike)


def _settled(
    ordered: FloatArray,
    known: BoolArray,
    group: IntArray,
    starts: IntArray,
    best: IntArray,
    rows: CountRows,
    duplicates: str,
) -> FloatArray:
    """The count of each group of twins, by the rule."""
    if duplicates == "sum":
        return np.where(
            rows.status[best] == PUBLISHED,
            np.add.reduceat(np.where(known, np.nan_to_num(ordered), 0.0), starts), np.nan,
        )  # fmt: skip
    if duplicates == "largest":
        largest = np.fmax.reduceat(np.where(known, ordered, np.nan), starts)
        return np.asarray(largest, dtype=np.float64)
    if duplicates == "first":
        at = np.full(len(starts), len(ordered), dtype=np.int64)
        np.minimum.at(at, group[known], np.flatnonzero(known))
        return ordered[at]
    return rows.values[best]
