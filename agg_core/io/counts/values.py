"""Columns of a table of counts as codes and few different texts, and the counts among them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.report import Guess, printable
from agg_core.io.texts import NOTHING, as_text, trimmed
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED

__all__ = [
    "Coded",
    "Counted",
    "bare_date",
    "coded",
    "is_count",
    "paired",
    "read_counts_of",
    "stacked",
    "without_zeros",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
StatusArray = npt.NDArray[np.uint8]

MOST_PEOPLE = 1e12
"""A count above it is no count, and would spoil every sum."""

_SUPPRESSED_WORDS = frozenset(
    (*("*", "**", "***", "x", "xx", "c", "s"), *("suppressed", "confidential", "masked"),
     *("秘匿", "非公表"))
)  # fmt: skip
_DASHES = frozenset("-–—−‐ー")
_BELOW = re.compile(
    r"(?:<|(?:less|fewer) than|under|below)\s*(?P<below>\d+(?:\.\d+)?)"
    r"|(?:<=|≤|up to)\s*(?P<upto>\d+)|(?P<kanji>\d+)\s*(?:人)?未満"
)
_MIDNIGHT = re.compile(r"(\d{4}[-/]\d{1,2}[-/]\d{1,2})[ T]0{1,2}:00(?::00(?:\.0*)?)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BARE = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d{1,3})?")


Read = tuple[float, int, str, float]
"""Number, status, cause if it is no count, and the bound that a mark of suppression tells."""


@dataclass(frozen=True)
class Coded:
    """A column (n,) as indices into its different texts; the text is empty where there is none."""

    codes: IntArray
    texts: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def changed(self, change: Callable[[str], str]) -> Coded:
        """The column with each text changed."""
        return Coded(self.codes, [change(text) for text in self.texts])

    def where(self, holds: Callable[[str], bool]) -> BoolArray:
        """The rows (n,) of whose text something holds."""
        return np.array([holds(text) for text in self.texts], dtype=bool)[self.codes]

    def take(self, rows: BoolArray | IntArray) -> Coded:
        """Some of the rows, with the texts that they have."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Coded(codes.astype(np.int64), [self.texts[i] for i in present])


def coded(column: pa.ChunkedArray) -> Coded:
    """A column of any type as text: whole numbers without a point, blanks around left out."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks != 1 else array.chunk(0)
    values = array.dictionary
    if pa.types.is_floating(values.type):
        words = [_number_text(value) for value in values.to_pylist()]
    else:
        words = trimmed(as_text(pa.chunked_array([values]))).to_pylist()
    indices = pc.fill_null(array.indices.cast(pa.int64()), len(words)).to_numpy(
        zero_copy_only=False
    )
    # Blanks around made texts differ that are one.
    again, texts = pd.factorize(np.array([*words, ""], dtype=object))
    return Coded(again[indices].astype(np.int64), [str(text) for text in texts])


def stacked(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Columns one below the other, as text where their types differ."""
    if len({column.type for column in columns}) <= 1:
        chunks = [chunk for column in columns for chunk in column.chunks]
        return pa.chunked_array(chunks, columns[0].type)
    words = [coded(column) for column in columns]
    return pa.chunked_array(
        [pa.array([word.texts[i] for i in word.codes], pa.large_string()) for word in words]
    )


def paired(first: Coded, second: Coded, join: str = " ") -> Coded:
    """Two columns as one of their texts put together; empty where either is."""
    both = first.codes * len(second.texts) + second.codes
    present, codes = np.unique(both, return_inverse=True)
    pairs = [divmod(int(key), len(second.texts)) for key in present]
    texts = [(first.texts[a], second.texts[b]) for a, b in pairs]
    joined = [f"{a}{join}{b}" if a and b else "" for a, b in texts]
    return Coded(codes.astype(np.int64), joined)


def without_zeros(text: str) -> str:
    """A whole number that was written as 533946.0, as such."""
    head, point, rest = text.partition(".")
    return head if point and head.isdigit() and not rest.strip("0") else text


def bare_date(text: str) -> str:
    """A date without the midnight that typed files give it."""
    found = _MIDNIGHT.fullmatch(text)
    return found[1] if found else without_zeros(text)


def _number_text(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


@dataclass(frozen=True)
class Counted:
    """Counts (n,), NaN unless published, their status (n,), and why a row is none (n,) by cause.

    ``below`` is the largest bound that the marks of suppressed ones tell; 0 if none does.
    """

    numbers: FloatArray
    status: StatusArray
    causes: Mapping[str, BoolArray]
    below: float = 0.0
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def read_counts_of(column: Coded, dash: str = "missing") -> Counted:
    """The counts that a column holds: numbers, marks of suppressed ones, words for nothing.

    ``dash`` says what a dash means. Rows with a cause are missing.
    """
    style = _comma_style(column.texts)
    read = [_read(text, style, dash) for text in column.texts]
    values = np.array([value for value, _, _, _ in read], dtype=np.float64)
    status = np.array([state for _, state, _, _ in read], dtype=np.uint8)
    why = np.array([cause for _, _, cause, _ in read], dtype=object)
    causes = {
        str(cause): (why == cause)[column.codes] for cause in dict.fromkeys(why.tolist()) if cause
    }
    guesses = {}
    if style == "decimal":
        guesses["decimal mark"] = Guess("comma")
    marks = [text for text, (_, state, _, _) in zip(column.texts, read, strict=True)
             if state == SUPPRESSED]  # fmt: skip
    if marks:
        shown = ", ".join(printable(mark, 20) for mark in marks[:4])
        guesses["suppressed counts"] = Guess(f"suppressed, where the table says {shown}")
    if _DASHES & set(column.texts):
        others = tuple(way for way in ("suppressed", "zero", "missing") if way != dash)
        guesses["dash"] = Guess(dash, others, option="dash")
    below = max((bound for _, _, _, bound in read), default=0.0)
    return Counted(values[column.codes], status[column.codes], causes, below, guesses)


def _comma_style(texts: list[str]) -> str:
    """Whether commas group thousands or mark decimals, the same in the whole column."""
    with_comma = [text for text in texts if "," in text and _looks_numeric(text)]
    if not with_comma:
        return "none"
    grouped = all(_GROUPED.fullmatch(text) for text in with_comma)
    return "grouped" if grouped else "decimal"


def _looks_numeric(text: str) -> bool:
    return bool(_BARE.fullmatch(text) or _GROUPED.fullmatch(text))


def is_count(text: str) -> bool:
    """Whether a text is a number, a mark of a suppressed count, or a word for none."""
    return not _read(text.strip(), "none", "missing")[2]


def _read(text: str, style: str, dash: str) -> Read:
    """What one text says."""
    low = text.casefold()
    bound = _BELOW.fullmatch(low)
    if low in _SUPPRESSED_WORDS or bound:
        return np.nan, SUPPRESSED, "", _bound_of(bound) if bound else 0.0
    if low in _DASHES:
        return (0.0, PUBLISHED, "", 0.0) if dash == "zero" else (np.nan, _STATES[dash], "", 0.0)
    number = None if low in NOTHING else _number(text, style)
    cause = "" if low in NOTHING else _why_none(number)
    if number is None or cause:
        return np.nan, MISSING, cause, 0.0
    return number, PUBLISHED, "", 0.0


def _why_none(number: float | None) -> str:
    """Why a number is no count of people; empty if it is one."""
    if number is None:
        return "count is no number"
    if number < 0:
        return "negative count"
    return "count beyond all people" if number > MOST_PEOPLE else ""


_STATES = {"missing": MISSING, "suppressed": SUPPRESSED}


def _bound_of(found: re.Match[str]) -> float:
    if upto := found["upto"]:
        return min(float(upto), MOST_PEOPLE) + 1
    return min(float(found["below"] or found["kanji"]), MOST_PEOPLE)


def _number(text: str, style: str) -> float | None:
    if not _looks_numeric(text):
        return None
    plain = text.replace(",", "") if style == "grouped" else text.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return None
