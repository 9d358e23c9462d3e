"""JSON piece by piece: the long lists of a document one element at a time, within limits.

Values are read by the standard library; what is found here is where the elements of a list begin
and end. ijson would do that too, but with yajl (3.6) an integer of more than 4,300 digits ends the
process, 20 kB of brackets take a gigabyte, and NaN, integers beyond 64 bits and the record
separators of GeoJSON sequences, which exports hold, are refused.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import re
from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.archives import Data, as_file
from agg_core.io.points import TextColumn, spread

__all__ = ["SparseColumns", "as_number", "as_text", "head_text", "json_pieces"]

MOST_NAMES = 2_000
"""Different names of properties in one file."""
LONGEST_VALUE = 256
"""Characters of a property: longer ones are prose, and would be repeated with every point."""

IntArray = npt.NDArray[np.int64]

WINDOW = 1 << 22
"""Characters that are read at once."""
LONGEST_WORD = 16
"""A value that is cut off by the end of a window has its end or its fault so near to it."""

MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SPACE = re.compile(r"[ \t\r\n\x1e]*")
_DECODER = json.JSONDecoder()


def head_text(head: bytes) -> str:
    """The beginning of a file as text from its first bracket on; empty where it is no JSON.

    Bytes are looked at before letters: in other encodings a letter may hold that of a bracket.
    """
    if not head.startswith(MARKS) and not head.lstrip(b" \t\r\n\x1e").startswith((b"{", b"[")):
        return ""
    text = head.decode(_encoding(head), errors="ignore").lstrip(" \t\r\n\x1e")
    return text if text.startswith(("{", "[")) else ""


def _encoding(head: bytes) -> str:
    """UTF-16 where its mark says so, else UTF-8, with its mark or without."""
    return "utf-16" if head.startswith(MARKS[1:]) else "utf-8-sig"


def json_pieces(
    data: Data, name: str, lists: Collection[str] = (), window: int = WINDOW
) -> Iterator[tuple[str | None, Any]]:
    """The documents of a file, which may stand one after the other, in pieces (key, value).

    ``lists`` are keys of an outermost object whose lists come one element at a time, as
    (key, element); elements of an outermost list come as ("", element), and each document at its
    end as (None, what is left of it). Of the text no more than a piece and a ``window`` of
    characters is held.

    Raises
    ------
    InputError
        If the file is no JSON in UTF-8 (or UTF-16 with its mark), breaks off, or is nested too
        deep.
    """
    reader = _Pieces(data, frozenset(lists), window)
    try:
        yield from reader.documents()
    except UnicodeError as error:
        raise InputError(
            f"{name} is JSON that is not written in UTF-8; save it as UTF-8.", code="wrong-encoding"
        ) from error
    except json.JSONDecodeError as error:
        after = error.doc[error.pos : error.pos + 30]
        if not after.strip() or error.msg.startswith("Unterminated string"):
            raise InputError(
                f"{name} breaks off early; export or copy it again.", code="breaks-off-early"
            ) from error
        line = reader.lines_before + error.lineno
        raise InputError(
            f"{name} cannot be read as JSON (line {line:,}, at {printable(after, 20)!r}); "
            "export or copy it again.",
            code="malformed-json",
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{name} is nested too deep; export it again.", code="nested-too-deep"
        ) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name} holds a number of thousands of digits; mend it.", code="number-too-long"
        ) from error


class _Pieces:
    """A place in a file, a stretch of its text from there on, and what can be read of it."""

    def __init__(self, data: Data, lists: frozenset[str], window: int) -> None:
        self._file = io.TextIOWrapper(as_file(data), _encoding(data[:2]), newline="")
        self._lists, self._window = lists, window
        self._text, self._at = "", 0
        self.lines_before = 0

    def documents(self) -> Iterator[tuple[str | None, Any]]:
        """All pieces of the file."""
        while mark := self._peek():
            if mark == "{":
                yield from self._members()
            elif mark == "[":
                yield from self._elements("")
                yield None, []
            else:
                yield None, self._value()

    def _members(self) -> Iterator[tuple[str | None, Any]]:
        rest: dict[str, Any] = {}
        self._take("{")
        while self._peek() != "}":
            if self._peek() != '"':
                raise self._fault("a name")
            key = self._value()
            self._take(":")
            if key in self._lists and self._peek() == "[":
                yield from self._elements(key)
                rest[key] = []
            else:
                rest[key] = self._value()
            self._go_on("}")
        self._take("}")
        yield None, rest

    def _elements(self, key: str) -> Iterator[tuple[str, Any]]:
        self._take("[")
        while self._peek() != "]":
            yield key, self._value()
            self._go_on("]")
        self._take("]")

    def _value(self) -> Any:
        """The value that begins here; more of the file is read until it has its end."""
        self._peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos > len(self._text) - LONGEST_WORD
                if (cut or error.msg.startswith("Unterminated string")) and self._more():
                    continue
                raise
            # A number may go on: "0" with ".5" of the next window.
            if end + LONGEST_WORD < len(self._text) or not self._more():
                self._at = end
                return found

    def _go_on(self, end: str) -> None:
        """Past the comma before a further member, which must follow."""
        if self._peek() != end:
            self._take(",")
            if self._peek() == end:
                raise self._fault("a value")

    def _peek(self) -> str:
        """The next character that is no space, empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _take(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._fault(mark)
        self._at += 1

    def _fault(self, expected: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(f"Expecting {expected}", self._text, self._at)

    def _more(self) -> bool:
        """Read on, at least as much as there is already; whether there was more."""
        further = self._file.read(max(self._window, len(self._text) - self._at))
        if not further:
            return False
        self.lines_before += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + further, 0
        return True


def as_number(value: object) -> float:
    """A JSON number as a float; not a number (NaN) for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_text(value: object) -> str | None:
    """A JSON text, number or truth value as text; None for anything else.

    Whole numbers are written without a point.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return None


class SparseColumns:
    """Texts of objects by the name of a property, kept only where they are."""

    def __init__(self, name: str) -> None:
        self._file = name
        self._columns: dict[str, tuple[array[int], TextColumn]] = {}
        self.n_too_long = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the properties, in the order in which they came up."""
        return tuple(self._columns)

    def add(self, row: int, properties: Mapping[str, object]) -> None:
        """Keep the texts, numbers and truth values of an object."""
        for key, value in properties.items():
            text = as_text(value)
            if text is None:
                continue
            if len(text) > LONGEST_VALUE or len(key) > LONGEST_VALUE:
                self.n_too_long += 1
                continue
            rows, texts = self._columns.get(key) or self._new(key)
            rows.append(row)
            texts.append(text)

    def column(self, key: str, rows: IntArray) -> pa.ChunkedArray:
        """The texts of a property for these objects, null where they lack it."""
        held, texts = self._columns[key]
        values = texts.finish()
        filled = np.array(held, dtype=np.int64)
        if np.array_equal(filled, rows):
            return values
        where = np.full(max(int(rows.max(initial=-1)), int(filled.max(initial=-1))) + 1, -1)
        where[filled] = np.arange(len(filled))
        return spread(values, where[rows])

    def guesses(self) -> dict[str, Guess]:
        """What was left out."""
        if self.n_too_long == 0:
            return {}
        note = f"{self.n_too_long:,} of more than {LONGEST_VALUE} characters are left out"
        return {"properties": Guess("short texts and numbers", (), note)}

    def _new(self, key: str) -> tuple[array[int], TextColumn]:
        if len(self._columns) >= MOST_NAMES:
            raise InputError(
                f"{self._file} names more than {MOST_NAMES:,} different properties, so it is no "
                "table of points; export it again with a few.",
                code="too-many-names",
            )
        column = self._columns[key] = (array("q"), TextColumn())
        return column
