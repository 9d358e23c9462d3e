"""Rows of tables of evidence: sums with the ends of their intervals and what stands beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.evidence.sums import Sums

__all__ = ["records", "rows_of"]


def rows_of(
    sums: Sums, reference: npt.NDArray[np.float64] | None = None, **columns: Any
) -> pd.DataFrame:
    """A row of each sum (K,): its columns, count, low, high and reference, nan where not known."""
    nothing = np.full(len(sums.estimate), np.nan)
    low, high = sums.interval() or (nothing, nothing)
    beside = nothing if reference is None else reference
    return pd.DataFrame(
        {**columns, "count": sums.estimate, "low": low, "high": high, "reference": beside}
    )


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows in plain JSON types, with None for what is no finite number."""
    return [
        {
            str(name): None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]
