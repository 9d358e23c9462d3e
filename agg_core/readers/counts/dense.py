"""Rows of counts to a matrix of moments and cells: twins, parts that are added, absent rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.counts import MISSING, PUBLISHED, SUPPRESSED, check_size
from agg_core.errors import InputError
from agg_core.readers.counts.cells import Cells
from agg_core.readers.report import Guess

__all__ = [
    "CountRows",
    "Dense",
    "ManyTwinsError",
    "dense",
    "filled",
    "latest_in_step",
    "on_whole_grid",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
StatusArray = npt.NDArray[np.uint8]
TimeArray = npt.NDArray[np.datetime64]

FEW_TWINS, FEW_SHARE = 10, 0.01
"""So many cells with several counts at a time, and such a share of all, are a slip."""
LEAST_OF_SUPPRESSED = 3
"""Where nothing is below this, and many rows are absent, small counts seem to be withheld."""
MANY_ABSENT = 20
USUAL_BELOW = 10.0
WHOLE_FROM = 0.5
"""Share of a grid's cells from which on all of them are cells of the table."""

ABSENT = {"suppressed": SUPPRESSED, "zero": PUBLISHED, "missing": MISSING}


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

    ``lacking`` (n, c) is how many parts of a sum have no row there and have one at other moments.
    ``repeated`` are rows that say again what another says, ``conflicting`` those that were not
    taken though they, or their twin, say something else.
    """

    times: TimeArray
    counts: FloatArray
    status: StatusArray
    present: BoolArray
    lacking: npt.NDArray[np.uint16]
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
    # A sum with a part that is known is known, as far as it goes.
    np.minimum.at(status, chosen, state)
    counts[status != PUBLISHED] = np.nan
    shape = (len(times), n_cells)
    parts = np.zeros(len(counts), dtype=np.uint16)
    np.add.at(parts, chosen, np.uint16(1))
    parts = parts.reshape(shape)
    lacking = np.where(parts > 0, parts.max(axis=0) - parts, np.uint16(0))
    return Dense(
        times, counts.reshape(shape), status.reshape(shape), parts > 0, lacking,
        repeated, conflicting, guesses,
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


def filled(
    found: Dense, layout: str, absent: str, below: float | None, marked: float
) -> tuple[Dense, float]:
    """The matrix with absent rows as what they are, and the bound of suppressed counts.

    ``below`` is the bound that is stated, ``marked`` the largest that the table's marks tell.
    """
    counts, status = found.counts.copy(), found.status.copy()
    gaps = ~found.present
    guesses = dict(found.guesses)
    meaning = _meaning(found, layout, below) if absent == "auto" else absent
    if gaps.any():
        others = tuple(way for way in ("suppressed", "zero", "missing") if way != meaning)
        note = f"{int(gaps.sum()):,} cells without a row at a moment that has rows"
        guesses["absent"] = Guess(meaning, others, note, "absent")
        status[gaps] = ABSENT[meaning]
        counts[gaps] = 0.0 if meaning == "zero" else np.nan
    if not (status == SUPPRESSED).any():
        return replace(found, counts=counts, status=status, guesses=guesses), 0.0
    bound, told = _bound(found, layout, below, marked)
    guesses["suppressed below"] = told
    return replace(found, counts=counts, status=status, guesses=guesses), bound


def on_whole_grid(
    found: Dense, cells: Cells, *, whole: bool
) -> tuple[Dense, Cells, dict[str, str]]:
    """The matrix with numbered cells in the order of their grid, and what is to be said.

    Cells that no row has are cells of the table, too, if ``whole``, the others are most of the
    grid, and it is known what an absent row means; else the table has the others only.
    """
    if cells.numbering is None:
        return found, cells, {}
    numbering, names = cells.numbering, cells.names
    at = np.array([numbering.index[name] for name in names], dtype=np.int64)
    meaning = found.guesses["absent"].value if "absent" in found.guesses else "missing"
    n_new = numbering.n_cells - len(at)
    if n_new == 0 or not whole or meaning == "missing" or len(at) < WHOLE_FROM * numbering.n_cells:
        order = np.argsort(at, kind="stable")
        n_new, names = 0, [names[i] for i in order]
    else:
        order, names = np.full(numbering.n_cells, len(at)), numbering.all_names()
        order[at] = np.arange(len(at))
        check_size(len(found.times), len(names))
    fill = 0.0 if meaning == "zero" else np.nan
    found = replace(
        found,
        counts=_beside(found.counts, fill)[:, order],
        status=_beside(found.status, ABSENT[meaning])[:, order],
        present=_beside(found.present, False)[:, order],
        lacking=_beside(found.lacking, 0)[:, order],
    )
    said = (
        f"{n_new:,} of {len(names):,} cells of the grid have no row at all; they are taken for "
        f"{meaning}, as other absent ones are."
    )
    return found, replace(cells, names=names), {"grid": said} if n_new else {}


def _beside(values: npt.NDArray[Any], fill: object) -> npt.NDArray[Any]:
    """A matrix with one more column, full of a value."""
    return np.column_stack([values, np.full(len(values), fill, dtype=values.dtype)])


def _meaning(found: Dense, layout: str, below: float | None) -> str:
    """What absent rows seem to mean: zeros are written out, or small counts withheld, or zero."""
    if layout in ("docomo", "mlit", "meta") or (below is not None and below > 0):
        return "suppressed"
    if layout == "gbfs":
        return "missing"
    published = found.counts[found.status == PUBLISHED]
    if len(published) == 0 or (published == 0).any():
        return "missing"
    if published.min() >= LEAST_OF_SUPPRESSED and (~found.present).sum() >= MANY_ABSENT:
        return "suppressed"
    return "zero"


def _bound(found: Dense, layout: str, below: float | None, marked: float) -> tuple[float, Guess]:
    """What suppressed counts are below, and how that is known."""
    option = "suppressed_below"
    if below is not None:
        if below <= 0:
            raise InputError("Suppressed counts need a number above 0 that they are below.")
        return below, Guess(f"{below:g}", option=option)
    if marked > 0:
        return marked, Guess(f"{marked:g}", (), "as the table's marks say", option)
    if layout in ("docomo", "mlit", "meta"):
        return USUAL_BELOW, Guess(f"{USUAL_BELOW:g}", (), "as its publisher states", option)
    positive = found.counts[(found.status == PUBLISHED) & (found.counts > 0)]
    bound = float(positive.min()) if len(positive) else USUAL_BELOW
    note = "the smallest count that is published" if len(positive) else "nothing tells it"
    return bound, Guess(f"{bound:g}", (), f"{note}; state it if it is another", option)
