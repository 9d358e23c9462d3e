"""Columns of text as people write them: blanks, full-width forms, words for nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_mask", "is_missing", "is_text", "trimmed"]

_MISSING = pa.array(["", "nan", "nat", "null", "none", "\\n"])

BoolArray = npt.NDArray[np.bool_]


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without blanks around, full-width forms as usual ones; empty where there is none."""
    text = pc.fill_null(column, "")
    if not pc.all(pc.string_is_ascii(text), min_count=0).as_py():
        text = pc.utf8_normalize(text, "NFKC")
    return pc.utf8_trim_whitespace(text)


def is_missing(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which of trimmed texts say that there is nothing."""
    return pc.is_in(pc.utf8_lower(text), _MISSING)


def as_mask(values: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Truth values (n,), False where there is none."""
    filled = pc.fill_null(values, False)
    if isinstance(filled, pa.ChunkedArray):
        return np.asarray(filled.to_numpy(), dtype=bool)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)
