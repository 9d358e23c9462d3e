"""A time that stands in several columns: year, month, day, hour, or a date and a clock time."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["put_together"]

DATE = ("year", "month", "day")
CLOCK = ("hour", "minute", "second")


def put_together(parts: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """Times as one text (n,) of texts (n,) by role; empty where a part is.

    The date is a column of its own ("date") or year, month and day; the clock time one ("time") or
    hour, minute and second, of which what is not there is nothing. Numbers such as 8.0 are whole.
    """
    texts = {role: _bare(text) for role, text in parts.items()}
    date = texts["date"] if "date" in texts else _joined([texts[role] for role in DATE], "-")
    if "time" in texts:
        clock = texts["time"]
    else:
        given = [texts[role] for role in CLOCK if role in texts]
        if not given:
            return date
        whole = [_padded(text) for text in given]
        while len(whole) < len(CLOCK):
            whole.append(pc.if_else(pc.equal(whole[0], ""), _text(""), _text("00")))
        clock = _joined(whole, ":")
    return _joined([date, clock], " ")


def _bare(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(text, r"^(\d+)\.0*$", r"\1")


def _padded(text: pa.ChunkedArray) -> pa.ChunkedArray:
    long = pc.utf8_lpad(text, 2, "0")
    return pc.if_else(pc.equal(text, ""), _text(""), long)


def _joined(texts: list[pa.ChunkedArray], between: str) -> pa.ChunkedArray:
    """Texts one after the other, empty where any is."""
    whole = pc.binary_join_element_wise(*texts, _text(between))
    filled = pc.not_equal(texts[0], "")
    for text in texts[1:]:
        filled = pc.and_(filled, pc.not_equal(text, ""))
    return pc.if_else(filled, whole, _text(""))


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())
