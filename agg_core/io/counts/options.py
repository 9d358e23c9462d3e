"""Rows that break counts down by age, gender or home: one breakdown is taken, never several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.counts.values import Coded, coded, without_zeros
from agg_core.io.fixes import equals

__all__ = ["keep_one_breakdown", "rows_where"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_ALL = frozenset(("-1", "all", "total", "計", "総数", "合計", "全体", "全て", "both", "", "*"))
"""How a column says that a row is not broken down by it."""


def rows_where(column: pa.ChunkedArray, name: str, value: str) -> BoolArray:
    """Rows (n,) whose column has the value, as text or as a number.

    Raises
    ------
    InputError
        If no row has.
    """
    found = equals(column, value)
    if not found.any():
        some = ", ".join(printable(text, 20) for text in coded(column).texts[:10] if text)
        raise InputError(
            f"No row has {printable(value, 20)} in the column {printable(name, 40)}; it holds "
            f"{some}.",
            code="value-not-found",
        )
    return found


def keep_one_breakdown(
    columns: Mapping[str, Coded], kept: BoolArray, moments: npt.NDArray[np.datetime64]
) -> tuple[BoolArray, IntArray, dict[str, Guess]]:
    """Rows (n,) to use of those kept, what tells apart those to be added (n,), and what was said.

    Rows that are not broken down at all, if there are any; else one complete breakdown, that by
    the fewest columns, whose parts are to be added.
    """
    n = len(kept)
    detail = np.zeros(n, dtype=np.int64)
    if not columns or not kept.any():
        return np.ones(n, dtype=bool), detail, {}
    broken = np.column_stack([_is_broken(column) for column in columns.values()])
    patterns, number = np.unique(broken, axis=0, return_inverse=True)
    number = number.reshape(-1)
    chosen = _choose(patterns, number[kept])
    use = number == chosen
    names = [printable(name, 40) for name in columns]
    by = [name for name, is_broken in zip(names, patterns[chosen], strict=True) if is_broken]
    for name, column in columns.items():
        if printable(name, 40) in by:
            detail = detail * len(column.texts) + column.codes
    _, detail = np.unique(detail, return_inverse=True)
    return use, detail.reshape(-1).astype(np.int64), _said(patterns, number, chosen, names, by,
                                                           kept, moments)  # fmt: skip


def _is_broken(column: Coded) -> BoolArray:
    return column.where(lambda text: without_zeros(text).casefold() not in _ALL)


def _choose(patterns: BoolArray, number: IntArray) -> int:
    """The pattern by the fewest columns, of these the one with most rows."""
    rows = np.bincount(number, minlength=len(patterns))
    order = sorted(
        (int(patterns[i].sum()), -int(rows[i]), i) for i in range(len(patterns)) if rows[i]
    )
    return order[0][2]


def _said(
    patterns: BoolArray,
    number: IntArray,
    chosen: int,
    names: Sequence[str],
    by: Sequence[str],
    kept: BoolArray,
    moments: npt.NDArray[np.datetime64],
) -> dict[str, Guess]:
    others = [i for i in np.unique(number[kept]) if i != chosen]
    if not by and not others:
        return {}
    left = len(np.setdiff1d(moments[kept], moments[kept & (number == chosen)]))
    notes = []
    if by:
        notes.append(f"the parts by {' and '.join(by)} are added, and lack those suppressed")
    if others:
        ways = [
            " and ".join(name for name, b in zip(names, patterns[i], strict=True) if b) or "nothing"
            for i in others
        ]
        notes.append(f"rows broken down by {'; by '.join(ways)} are left out, so nobody is "
                     "counted twice")  # fmt: skip
    if left:
        notes.append(f"{left:,} moments have rows of those only and are left out")
    value = f"sum over {' and '.join(by)}" if by else "rows that are not broken down"
    return {"breakdown": Guess(value, (), "; ".join(notes), "where")}
