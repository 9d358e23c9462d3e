"""Columns as people write them: text, numbers and words for nothing, brought to one form."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import printable

__all__ = [
    "NOTHING",
    "NUMBER",
    "as_mask",
    "as_text",
    "is_missing",
    "is_text",
    "of_no_one",
    "plain",
    "shown_value",
    "to_float",
    "trimmed",
    "written",
]

_NO_ID = ("", "nan", "null", "none", "<na>", "\\n")
NOTHING = frozenset((*_NO_ID, "nat", "na", "n/a", "n.a.", "#n/a", "missing"))
"""Words for nothing, in lower case. Those that a person may be called by are no such ids."""

NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without the dictionary, or the views, that its values may be kept in."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_string()) if column.type == pa.string_view() else column


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a plain column holds text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as trimmed text; whole numbers of a float column lose their ".0", null is empty.

    Raises
    ------
    InputError
        If they cannot be written as text.
    """
    column = plain(column)
    if pa.types.is_floating(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        text = column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise InputError(
            f"A column holds {column.type}; give text or numbers.", code="unusable-column-type"
        ) from error
    return pc.fill_null(pc.utf8_trim_whitespace(text), "")


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without blanks around, full-width forms as usual ones; empty where there is none."""
    text = pc.fill_null(column, "")
    if not pc.all(pc.string_is_ascii(text), min_count=0).as_py():
        text = pc.utf8_normalize(text, "NFKC")
    return pc.utf8_trim_whitespace(text)


def is_missing(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which of trimmed texts say that there is nothing."""
    return pc.is_in(pc.utf8_lower(text), pa.array(sorted(NOTHING), text.type))


def of_no_one(ids: pa.ChunkedArray) -> BoolArray:
    """Which of trimmed ids name nobody, (n,)."""
    return as_mask(pc.is_in(pc.utf8_lower(ids), pa.array(_NO_ID, ids.type)))


def to_float(column: pa.ChunkedArray) -> FloatArray:
    """Numbers (n,) of numbers or of text, NaN where there is none."""
    column = plain(column)
    if is_text(column):
        try:
            column = column.cast(pa.float64())
        except pa.ArrowInvalid:
            column = trimmed(column)
            numeric = pc.match_substring_regex(column, f"(?i)^(?:{NUMBER}|[+-]?inf(?:inity)?)$")
            column = pc.if_else(numeric, column, None)
    return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy())


def as_mask(values: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Truth values (n,), False where there is none."""
    return np.asarray(pc.fill_null(values, False), dtype=bool)


def written(value: pa.Scalar) -> str:
    """A value as text, empty where there is none."""
    try:
        return str(value.as_py()) if value.is_valid else ""
    except (OverflowError, ValueError):  # a stamp beyond what Python can write
        return "out of range"


def shown_value(column: pa.ChunkedArray, row: int) -> str:
    """The value of a row as text that is safe to show."""
    return printable(written(column[row]), 40)
