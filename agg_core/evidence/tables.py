"""Rows of tables of evidence: sums with the ends of their intervals and what stands beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.evidence.sums import Sums

__all__ = ["corrected", "records", "rows_of"]

ROUNDING = 1e-9
"""Part of a figure by which it may be off its interval and lie in it."""


def rows_of(
    sums: Sums, reference: npt.NDArray[np.float64] | None = None, **columns: Any
) -> pd.DataFrame:
    """A row of each sum (K,): its columns, count, low, high, corrected and reference.

    nan where one is not known, and corrected where nothing is to be (see `corrected`).
    """
    nothing = np.full(len(sums.estimate), np.nan)
    low, high = sums.interval() or (nothing, nothing)
    return pd.DataFrame(
        {
            **columns, "count": sums.estimate, "low": low, "high": high,
            "corrected": corrected(sums.estimate, low, high),
            "reference": nothing if reference is None else reference,
        }
    )  # fmt: skip


def corrected(
    estimate: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """The middle of an interval that does not hold its estimate (...), nan of one that does.

    In simulated worlds what was estimated was then off to one side each time: the middle is the
    estimate without what it was off there in the mean.

    >>> from agg_core.evidence.tables import corrected
    >>> corrected([7.5, 7.0], [6.0, 6.0], [7.0, 8.0]).tolist()
    [6.5, nan]
    """
    value, least, most = (np.asarray(of, dtype=np.float64) for of in (estimate, low, high))
    slack = ROUNDING * np.maximum(np.abs(value), 1.0)
    beside = (value < least - slack) | (value > most + slack)
    return np.where(beside, (least + most) / 2, np.nan)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows in plain JSON types, with None for what is no finite number."""
    return [
        {
            str(name): None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]
