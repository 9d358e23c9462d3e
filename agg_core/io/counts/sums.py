"""Counts that are sums of parts, some of which are suppressed: what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.counts.cells import Cells
from agg_core.io.counts.dense import Dense
from agg_core.tables.counts import (
    ESTIMATED,
    MISSING,
    PUBLISHED,
    SUPPRESSED,
    check_size,
    expected_of_hidden,
)

__all__ = ["Parts", "Sums", "on_whole_grid", "parts_of", "summed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
StatusArray = npt.NDArray[np.uint8]

LEAST_OF_SUPPRESSED = 3
"""Where nothing is below this, and many rows are absent, small counts seem to be suppressed."""
MANY_ABSENT = 20
USUAL_BELOW = 10.0
"""What operators suppress counts below, where a table does not tell it.

Of Meta's population maps so by those who used them (COVID-19 mobility project of the Technical
University of Denmark, "Population density maps": counts of fewer than 10 active users are not
given); nothing of Meta's own was found that states it.
"""

WHOLE_FROM = 0.5
"""Share of a grid's cells from which on all of them are cells of the table."""

ABSENT = {"suppressed": SUPPRESSED, "zero": PUBLISHED, "missing": MISSING}


@dataclass(frozen=True)
class Parts:
    """Sums of n moments and c cells by what is known of their parts, each (n, c).

    ``known`` is the sum of the parts that are known, ``n_known`` their number, ``n_hidden`` that
    of the suppressed ones, ``n_unknown`` of those that nobody measured. Each suppressed part is at
    least 0 and less than ``below``; ``expected`` is what to expect of one.
    """

    known: FloatArray
    n_known: IntArray
    n_hidden: IntArray
    n_unknown: IntArray
    below: float
    expected: float

    def taken(self, cells: IntArray, n_cells: int) -> Parts:
        """Sums by new cells: ``cells`` (c,) are the new cell, below ``n_cells``, of each."""

        def added(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            total = np.zeros((n_cells, len(values)), dtype=values.dtype)
            np.add.at(total, cells, values.T)
            return np.ascontiguousarray(total.T)

        return replace(
            self,
            known=added(self.known),
            n_known=added(self.n_known),
            n_hidden=added(self.n_hidden),
            n_unknown=added(self.n_unknown),
        )

    def beside(self, order: IntArray, status: int) -> Parts:
        """These and one more cell that holds nobody, or of which ``status`` is all, in an order."""

        def more(values: npt.NDArray[Any], fill: int) -> npt.NDArray[Any]:
            return np.column_stack([values, np.full(len(values), fill, values.dtype)])[:, order]

        return replace(
            self,
            known=more(self.known, 0),
            n_known=more(self.n_known, status == PUBLISHED),
            n_hidden=more(self.n_hidden, status == SUPPRESSED),
            n_unknown=more(self.n_unknown, status == MISSING),
        )


@dataclass(frozen=True)
class Sums:
    """Counts and status (n, c) as a table has them, and ``below`` that suppressed ones are less.

    ``least`` and ``most`` (n, c) are the bounds of each, not a number where nothing is known.
    """

    counts: FloatArray
    status: StatusArray
    below: float
    least: FloatArray
    most: FloatArray


def parts_of(
    found: Dense, layout: str, absent: str, below: float | None, marked: float
) -> tuple[Parts, dict[str, Guess]]:
    """What is known of the parts of each count, with absent rows as what they are.

    ``below`` is the bound that is stated, ``marked`` the largest that the table's marks tell.
    """
    meaning = _meaning(found, layout, below) if absent == "auto" else absent
    gaps = np.where(found.present, found.lacking, 1).astype(np.int64)
    guesses = {}
    if gaps.any():
        others = tuple(way for way in ("suppressed", "zero", "missing") if way != meaning)
        guesses["absent"] = Guess(meaning, others, _absent(found), "absent")
    hidden = found.hidden + gaps * (meaning == "suppressed")
    bound = 0.0
    if hidden.any():
        bound, guesses["suppressed below"] = _bound(found, layout, below, marked)
    n_all = found.present * (found.n_parts + found.lacking) + ~found.present
    unknown = found.unknown + gaps * (meaning == "missing")
    known = np.where(found.status == PUBLISHED, np.nan_to_num(found.counts), 0.0)
    expected = expected_of_hidden(found.seen, int(hidden.sum()), bound)
    n_known = (n_all - hidden - unknown).astype(np.int64)
    return Parts(known, n_known, hidden, unknown, bound, expected), guesses


def _absent(found: Dense) -> str:
    gaps, short = int((~found.present).sum()), int((found.lacking > 0).sum())
    notes = []
    if gaps:
        notes.append(f"{gaps:,} cells without a row at a moment that has rows")
    if short:
        notes.append(f"{short:,} sums without a row for some of their parts")
    return " and ".join(notes)


def summed(parts: Parts) -> Sums:
    """Counts and status of sums.

    One of whose parts nobody measured is missing. One of known parts is published. One with no
    known part is suppressed, below as many times the bound of a part as such sums commonly have
    parts. All others are estimated: the known parts and what is expected of the suppressed ones.
    """
    hidden, measured = parts.n_hidden > 0, parts.n_unknown == 0
    nothing = hidden & measured & (parts.n_known == 0)
    usual = int(np.bincount(parts.n_hidden[nothing]).argmax()) if nothing.any() else 1
    suppressed = nothing & (parts.n_hidden <= usual)
    status = np.full(hidden.shape, PUBLISHED, dtype=np.uint8)
    status[hidden] = ESTIMATED
    status[suppressed] = SUPPRESSED
    status[~measured] = MISSING
    expected = parts.n_hidden * parts.expected
    if (parts.known == np.floor(parts.known)).all():
        expected = np.rint(expected)
    counts = np.where(suppressed | ~measured, np.nan, parts.known + expected)
    below = usual * parts.below if suppressed.any() else 0.0
    least = np.where(measured, parts.known, np.nan)
    return Sums(counts, status, below, least, least + parts.n_hidden * parts.below)


def on_whole_grid(
    parts: Parts, cells: Cells, absent: str, *, whole: bool
) -> tuple[Parts, Cells, dict[str, str]]:
    """Numbered cells in the order of their grid, and what is to be said.

    Cells that no row has are cells of the table, too, if ``whole``, the others are most of the
    grid, and absent rows are suppressed or zero; else the table has the others only.
    """
    if cells.numbering is None:
        return parts, cells, {}
    numbering, names = cells.numbering, cells.names
    at = np.array([numbering.index[name] for name in names], dtype=np.int64)
    n_new = numbering.n_cells - len(at)
    few = len(at) < WHOLE_FROM * numbering.n_cells
    if n_new == 0 or few or not whole or absent not in ("zero", "suppressed"):
        order = np.argsort(at, kind="stable")
        names = [names[i] for i in order]
        return parts.beside(order, MISSING), replace(cells, names=names), {}
    check_size(len(parts.known), numbering.n_cells)
    order = np.full(numbering.n_cells, len(at))
    order[at] = np.arange(len(at))
    said = (
        f"{n_new:,} of {numbering.n_cells:,} cells of the grid have no row at all; they are taken "
        f"for {absent}, as other absent ones are."
    )
    parts = parts.beside(order, ABSENT[absent])
    named = numbering.in_full()
    return parts, replace(cells, names=list(named.index), numbering=named), {"grid": said}


def _meaning(found: Dense, layout: str, below: float | None) -> str:
    """What absent rows seem to mean: zeros are written out, or small counts suppressed, or zero."""
    if layout in ("docomo", "mlit", "meta") or (below is not None and below > 0):
        return "suppressed"
    if layout == "gbfs":
        return "missing"
    if len(found.seen) == 0 or (found.seen == 0).any():
        return "missing"
    if found.seen.min() >= LEAST_OF_SUPPRESSED and (~found.present).sum() >= MANY_ABSENT:
        return "suppressed"
    return "zero"


def _bound(found: Dense, layout: str, below: float | None, marked: float) -> tuple[float, Guess]:
    """What suppressed counts are below, and how that is known."""
    option = "suppressed_below"
    if below is not None:
        if below <= 0:
            raise InputError(
                "Suppressed counts need a number above 0 that they are below.",
                code="suppressed-without-bound",
            )
        return below, Guess(f"{below:g}", option=option)
    if marked > 0:
        return marked, Guess(f"{marked:g}", (), "as the table's marks say", option)
    if layout in USUAL_OF:
        return USUAL_BELOW, Guess(f"{USUAL_BELOW:g}", (), USUAL_OF[layout], option)
    positive = found.seen[found.seen > 0]
    bound = float(positive.min()) if len(positive) else USUAL_BELOW
    note = "the smallest count that is published" if len(positive) else "nothing tells it"
    return bound, Guess(f"{bound:g}", (), f"{note}; state it if it is another", option)


USUAL_OF: Mapping[str, str] = {
    "docomo": "as its publisher states",
    "mlit": "as its publisher states",
    "meta": "as those who use these maps say; state it if it is another",
}
"""Layouts with the usual bound, and who says so."""
