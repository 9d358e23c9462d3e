"""Delimited text: encoding, separator and header found by content, columns loaded as text.

PyArrow's CSV reader does the work: it loads only the columns asked for, as text, at some 100 MB
a second on one core, and hands over rows of a wrong width instead of failing (pandas' C engine
pads short rows in silence and names long ones only in a warning). One thread, because only then
does it say where those rows stand.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from agg_core.errors import InputError
from agg_core.readers.columns import is_number, knows_name
from agg_core.readers.report import Guess, SetAside, printable
from agg_core.readers.source import RawRows, RawSource
from agg_core.readers.times import looks_like_time

__all__ = ["SEPARATORS", "open_delimited"]

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
HEAD_BYTES = 1 << 18
HEAD_ROWS = 200
MAX_COLUMNS = 10_000
BLOCK_BYTES = 1 << 22
SHOWN_LINES = 5

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Dialect:
    """How the text is cut: one-character separator, columns, header row or none."""

    separator: str
    width: int
    header: bool


def open_delimited(
    data: bytes,
    name: str,
    *,
    header: bool | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> RawSource:
    """Open delimited text; ``header``, ``separator`` and ``encoding`` are guessed when None.

    Raises
    ------
    InputError
        If the content is no text table, holds no row, or the choices do not fit it.
    """
    text, encoding_guess = _to_utf8(data, name, encoding)
    body = text.lstrip(b"\r\n")
    blank_lines = _count_breaks(text[: len(text) - len(body)])
    head = _head(body, name)
    dialect = _dialect(head, name, header, separator)
    records = _records(head, dialect.separator)
    names = [cell.strip() for cell in records[0]] if dialect.header else []
    names = (names + [""] * dialect.width)[: dialect.width]
    sample = [row for row in records[int(dialect.header) :] if len(row) == dialect.width]
    if not sample:
        raise InputError(f"{name} has a header but no rows; choose a file that holds trajectories.")
    others = tuple(word for char, word in SEPARATORS.items() if char != dialect.separator)
    guesses = {
        "separator": Guess(
            SEPARATORS.get(dialect.separator, dialect.separator), () if separator else others
        ),
        "encoding": encoding_guess,
        "header": Guess(
            *(("first row", ("no header",)) if dialect.header else ("no header", ("first row",)))
        ),
    }

    def load(positions: Sequence[int]) -> RawRows:
        return _load(body, name, dialect, positions, blank_lines)

    return RawSource(tuple(names), dialect.header, sample, load, guesses)


def _to_utf8(data: bytes, name: str, encoding: str | None) -> tuple[bytes, Guess]:
    """The text as UTF-8 without byte order mark, and the encoding it was in."""
    if encoding is not None:
        try:
            return data.decode(encoding).lstrip("\ufeff").encode("utf-8"), Guess(encoding)
        except LookupError as error:
            raise InputError(
                f"No encoding is called {printable(encoding)!r}; use utf-8, cp932 or latin-1."
            ) from error
        except UnicodeError as error:
            raise InputError(f"{name} is not written in {encoding}; choose another one.") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _to_utf8(data, name, "utf-16")
    _refuse_binary(data, name)
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    if data.isascii():
        return data, Guess("utf-8")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return data, Guess("utf-8")
    if _looks_japanese(data):
        try:
            return data.decode("cp932").encode("utf-8"), Guess("cp932", ("latin-1",))
        except UnicodeDecodeError:
            pass
    return data.decode("latin-1").encode("utf-8"), Guess("latin-1", ("cp932",))


def _refuse_binary(data: bytes, name: str) -> None:
    head = np.frombuffer(data[:HEAD_BYTES], dtype=np.uint8)
    control = (head < 32) & ~np.isin(head, (9, 10, 12, 13))
    if (head == 0).any() or control.mean() > 0.1:
        raise InputError(
            f"{name} is not a text table but binary data of an unknown kind; "
            "give CSV, TSV or Parquet."
        )


def _looks_japanese(data: bytes) -> bool:
    """Whether bytes above ASCII come in runs, as in CP932, rather than singly, as in latin-1."""
    high = np.frombuffer(data[: 16 * HEAD_BYTES], dtype=np.uint8) >= 128
    beside = np.zeros_like(high)
    beside[1:] |= high[:-1]
    beside[:-1] |= high[1:]
    return bool(high.any() and (high & beside).sum() * 2 >= high.sum())


def _head(body: bytes, name: str) -> str:
    """The first whole lines as text."""
    head = body[:HEAD_BYTES]
    if len(body) > HEAD_BYTES:
        cut = max(head.rfind(b"\n"), head.rfind(b"\r"))
        if cut < 0:
            raise InputError(f"{name} has no line breaks, so it is not a text table.")
        head = head[: cut + 1]
    if not head.strip():
        raise InputError(f"{name} is empty; choose a file that holds trajectories.")
    return head.decode("utf-8", errors="replace")


def _records(head: str, separator: str) -> list[list[str]]:
    """The first records, blank lines left out."""
    found: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(head, newline=""), delimiter=separator):
            if row:
                found.append(row)
            if len(found) > HEAD_ROWS:
                break
    except csv.Error:
        return found
    return found


def _dialect(head: str, name: str, header: bool | None, separator: str | None) -> _Dialect:
    if separator is not None:
        words = {word: char for char, word in SEPARATORS.items()}
        separator = words.get(separator, {"\\t": "\t"}.get(separator, separator))
        if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
            raise InputError(
                f"The separator must be one character or one of {', '.join(words)}; "
                f"it was given {printable(separator)!r}."
            )
    best: tuple[float, int] = (-1.0, 0)
    chosen = separator or ","
    for candidate in (separator,) if separator else SEPARATORS:
        widths = [len(row) for row in _records(head, candidate)]
        width, count = Counter(widths[1:] or widths).most_common(1)[0] if widths else (0, 0)
        steadiness = count / max(len(widths[1:]), 1) + 0.5 * (widths[:1] == [width])
        score = (steadiness if width > 1 else 0.0, width)
        if score > best:
            best, chosen = score, candidate
    width = best[1]
    if width < 2:
        raise InputError(
            f"{name} is not a table with columns set apart by comma, tab, semicolon or pipe."
        )
    if width > MAX_COLUMNS:
        raise InputError(f"{name} has {width:,} columns; at most {MAX_COLUMNS:,} are read.")
    records = _records(head, chosen)
    return _Dialect(chosen, width, _has_header(records) if header is None else header)


def _has_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: known names, or no value where later rows have some."""
    first = [cell.strip() for cell in records[0]]
    if any(_is_value(cell) for cell in first):
        return False
    if any(knows_name(cell) for cell in first):
        return True
    return len(records) == 1 or any(_is_value(cell) for cell in records[1])


def _is_value(cell: str) -> bool:
    return is_number(cell) or looks_like_time(cell)


def _load(
    body: bytes, name: str, dialect: _Dialect, positions: Sequence[int], blank_lines: int
) -> RawRows:
    labels = [f"c{i}" for i in range(dialect.width)]
    wanted = {i: labels[i] for i in dict.fromkeys(positions)}
    quoted = b'"' in body
    misfits = _Misfits()
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(body),
            read_options=pa_csv.ReadOptions(
                column_names=labels, use_threads=False, block_size=BLOCK_BYTES
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.separator,
                newlines_in_values=quoted,
                invalid_row_handler=misfits.note,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()),
                include_columns=list(wanted.values()),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{name} cannot be cut into rows and columns; check its quotes and its separator."
        ) from error
    if dialect.header:
        if misfits.records[:1] == [1]:
            misfits.forget_first()
        else:
            table = table.slice(1)
    finder = _LineFinder(body, blank_lines, int(dialect.header), tuple(misfits.records), len(table))
    set_aside = {}
    if misfits.records:
        lines = finder.of_records(np.array(misfits.records[:SHOWN_LINES], dtype=np.int64) - 1)
        set_aside["wrong number of columns"] = SetAside(
            len(misfits.records), tuple(int(line) for line in lines), printable(misfits.texts[0])
        )
    columns = {i: table.column(label) for i, label in wanted.items()}
    return RawRows(columns, len(table), finder.of_rows, set_aside)


class _Misfits:
    """Rows whose number of columns is not the table's: record numbers from 1, first texts."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.texts: list[str] = []

    def note(self, row: pa_csv.InvalidRow) -> str:
        self.records.append(row.number)
        if len(self.texts) <= SHOWN_LINES:
            self.texts.append(row.text[:200])
        return "skip"

    def forget_first(self) -> None:
        del self.records[0], self.texts[0]


@dataclass(frozen=True)
class _LineFinder:
    """Line numbers of rows, worked out only when some row has to be named."""

    body: bytes
    blank_lines: int
    header_rows: int
    misfit_records: tuple[int, ...]
    n_rows: int

    def of_rows(self, rows: IntArray) -> IntArray:
        """Line numbers, from 1, of the loaded rows with these indices."""
        total = self.n_rows + self.header_rows + len(self.misfit_records)
        fitting = np.ones(total, dtype=bool)
        fitting[: self.header_rows] = False
        fitting[np.array(self.misfit_records, dtype=np.int64) - 1] = False
        return self.of_records(np.flatnonzero(fitting)[rows])

    def of_records(self, records: IntArray) -> IntArray:
        """Line numbers, from 1, of the records with these indices (blank lines are no records)."""
        starts = self._record_lines
        expected = self.n_rows + self.header_rows + len(self.misfit_records)
        if len(starts) < expected:  # quotes that open nothing: count a line a record
            return records + 1 + self.blank_lines
        return starts[records] + 1 + self.blank_lines

    @cached_property
    def _record_lines(self) -> IntArray:
        """Line (from 0) on which each record of the body begins."""
        content = np.frombuffer(self.body, dtype=np.uint8)
        breaks = np.flatnonzero(content == 10)
        if len(breaks) == 0:
            breaks = np.flatnonzero(content == 13)
        starts = np.concatenate([[0], breaks + 1])
        starts = starts[starts < len(content)]
        blank = np.isin(content[starts], (10, 13))
        inside = np.zeros(len(starts), dtype=bool)
        if b'"' in self.body:
            quotes = np.flatnonzero(content == 34)
            inside = np.searchsorted(quotes, starts) % 2 == 1
        return np.flatnonzero(~blank & ~inside)


def _count_breaks(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")
