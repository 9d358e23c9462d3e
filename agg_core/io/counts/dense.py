"""Rows of counts to a matrix of moments and cells: twins, and parts that are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

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


RULES = {"auto": "last", "last": "last", "first": "first", "largest": "max"}
"""How pandas calls what is taken of several counts."""


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
    counts: FloatArray
    status: StatusArray
    row: IntArray

    def take(self, rows: BoolArray | IntArray) -> CountRows:
        """Some of the rows."""
        return CountRows(
            self.time[rows], self.cell[rows], self.detail[rows], self.counts[rows],
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
    """Rows (n,) that are the last of their cell in their step.

    Rows of the very same time are twins, which are judged later.
    """
    keys = [steps.astype(np.int64), rows.cell, rows.detail]
    last = pd.Series(rows.time).groupby(keys).transform("max")
    return np.asarray(rows.time == last.to_numpy(), dtype=bool)


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
    """One row per entry and part: entry, count, status; rows that repeat, rows not taken.

    Of rows of several status those published are taken, else those suppressed.
    """
    part = entry * (int(rows.detail.max(initial=0)) + 1) + rows.detail
    if not pd.Index(part).has_duplicates:
        return entry, rows.counts, rows.status, part[:0], part[:0]
    status = pd.Series(rows.status)
    known = np.flatnonzero(status == status.groupby(part).transform("min"))
    said = pd.Series(rows.counts[known], known).groupby(part[known])
    unlike = said.nunique() > 1
    several = np.asarray(unlike.reindex(part), dtype=bool)
    if duplicates == "auto" and _too_many(unlike.to_numpy()):
        raise ManyTwinsError(int(unlike.sum()), len(unlike), rows.row[several])
    values = said.sum(min_count=1) if duplicates == "sum" else said.agg(RULES[duplicates])
    best = known[~pd.Index(part[known]).duplicated(keep="last")]
    others = np.ones(len(part), dtype=bool)
    others[best] = False
    return (
        entry[best], np.asarray(values.reindex(part[best])), rows.status[best],
        np.flatnonzero(others & ~several), np.flatnonzero(others & several),
    )  # fmt: skip


def _too_many(unlike: BoolArray) -> bool:
    """Whether twins that say different things are no slip."""
    n_twins = int(unlike.sum())
    return n_twins > FEW_TWINS and n_twins > FEW_SHARE * len(unlike)
