"""Delimited text: encoding, separator and header found by content, columns loaded as text.

PyArrow's CSV reader does the work: it loads only the columns asked for, as text, at some 100 MB
a second on one core, and hands over rows of a wrong width instead of failing (pandas' C engine
pads short rows in silence and names long ones only in a warning). One thread, because only then
does it say where those rows stand. Block by block, so that a file may be larger than memory.
"""

from __future__ import annotations

import codecs
import csv
import io
import mmap
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from agg_core.base.errors import InputError
from agg_core.base.report import SHOWN_LINES, Guess, SetAside, printable
from agg_core.io.contents import Data
from agg_core.io.guess.columns import is_number, knows_name
from agg_core.io.guess.times import looks_like_time
from agg_core.io.source import RawRows, RawSource

__all__ = ["SEPARATORS", "open_delimited"]

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
HEAD_BYTES = 1 << 18
HEAD_ROWS = 200
MAX_COLUMNS = 10_000
BLOCK_BYTES = 1 << 25
PIECE_BYTES = 1 << 22
MOST_PREAMBLE = 20

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Dialect:
    """How the text is cut: one-character separator, columns, header row or none."""

    separator: str
    width: int
    header: bool
    preamble: int
    """Records above the table."""
    table_line: int
    """Lines above the table."""
    table_byte: int


def open_delimited(
    data: Data,
    name: str,
    *,
    header: bool | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> RawSource:
    """Open delimited text; ``header``, ``separator`` and ``encoding`` are guessed when None.

    Lines above the table (a title, comments, what a device says of itself) are passed over.

    Raises
    ------
    InputError
        If the content is no text table, holds no row, or the choices do not fit it.
    """
    text, encoding_guess = _to_utf8(data, name, encoding)
    head = _head(text, name)
    dialect = _dialect(head, name, header, separator)
    records = _records(head, dialect.separator)[dialect.preamble :]
    names = [cell.strip() for cell in records[0]] if dialect.header else []
    names[:1] = [name.lstrip("# ") or name for name in names[:1]]
    names = (names + [""] * dialect.width)[: dialect.width]
    sample = [row for row in records[int(dialect.header) :] if len(row) == dialect.width]
    if not sample:
        raise InputError(
            f"{name} has a header but no rows; choose a file that holds trajectories.",
            code="no-rows",
        )
    others = tuple(word for char, word in SEPARATORS.items() if char != dialect.separator)
    guesses = {
        "separator": Guess(
            SEPARATORS.get(dialect.separator, dialect.separator), () if separator else others,
            option="separator",
        ),
        "encoding": encoding_guess,
        "header": Guess(
            *(("first row", ("no header",)) if dialect.header else ("no header", ("first row",))),
            option="header",
        ),
    }  # fmt: skip
    if dialect.preamble:
        lines = "line" if dialect.table_line == 1 else "lines"
        guesses["table"] = Guess(f"after {dialect.table_line} {lines} that are none of its rows")

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        return _stream(text, name, dialect, positions)

    return RawSource(tuple(names), dialect.header, sample, guesses=guesses, stream=stream)


@dataclass(frozen=True)
class _Text:
    """UTF-8 text from a byte on (after a byte order mark), mapped or loaded."""

    data: Data
    start: int = 0

    def __len__(self) -> int:
        return len(self.data) - self.start

    def piece(self, begin: int, end: int) -> bytes:
        return self.data[self.start + begin : self.start + end]

    def pieces(self) -> Iterator[bytes]:
        for begin in range(0, len(self), PIECE_BYTES):
            yield self.piece(begin, begin + PIECE_BYTES)
            self.let_go()

    def let_go(self) -> None:
        """Pages of a mapped file that have been read count as memory until they are let go."""
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED)

    @cached_property
    def has_quotes(self) -> bool:
        return any(b'"' in piece for piece in self.pieces())

    def buffer(self, begin: int) -> pa.Buffer:
        return pa.py_buffer(self.data).slice(self.start + begin)


def _to_utf8(data: Data, name: str, encoding: str | None) -> tuple[_Text, Guess]:
    """The text as UTF-8 without byte order mark, and the encoding it was in."""
    if encoding is not None:
        try:
            decoded = bytes(data).decode(encoding).lstrip("\ufeff").encode("utf-8")
        except LookupError as error:
            raise InputError(
                f"No encoding is called {printable(encoding)!r}; use utf-8, cp932 or latin-1.",
                code="unknown-encoding",
            ) from error
        except UnicodeError as error:
            raise InputError(
                f"{name} is not written in {encoding}; choose another one.", code="wrong-encoding"
            ) from error
        return _Text(decoded), Guess(encoding, option="encoding")
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return _to_utf8(data, name, "utf-16")
    _refuse_binary(data, name)
    text = _Text(data, len(codecs.BOM_UTF8) if data[:3] == codecs.BOM_UTF8 else 0)
    if _is_utf8(text):
        return text, Guess("utf-8", option="encoding")
    whole = bytes(data)
    if _looks_japanese(whole):
        try:
            decoded = whole.decode("cp932").encode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return _Text(decoded), Guess("cp932", ("latin-1",), option="encoding")
    decoded = whole.decode("latin-1").encode("utf-8")
    return _Text(decoded), Guess("latin-1", ("cp932",), option="encoding")


def _is_utf8(text: _Text) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in text.pieces():
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_binary(data: Data, name: str) -> None:
    head = np.frombuffer(data[:HEAD_BYTES], dtype=np.uint8)
    control = (head < 32) & ~np.isin(head, (9, 10, 12, 13))
    if (head == 0).any() or control.mean() > 0.1:
        raise InputError(
            f"{name} is not a text table but binary data of an unknown kind; "
            "give CSV, TSV, Excel or Parquet.",
            code="binary-data",
        )


def _looks_japanese(data: bytes) -> bool:
    """Whether bytes above ASCII come in runs, as in CP932, rather than singly, as in latin-1."""
    high = np.frombuffer(data[: 16 * HEAD_BYTES], dtype=np.uint8) >= 128
    beside = np.zeros_like(high)
    beside[1:] |= high[:-1]
    beside[:-1] |= high[1:]
    return bool(high.any() and (high & beside).sum() * 2 >= high.sum())


def _head(text: _Text, name: str) -> str:
    """The first whole lines as text."""
    head = text.piece(0, HEAD_BYTES)
    if len(text) > HEAD_BYTES:
        cut = max(head.rfind(b"\n"), head.rfind(b"\r"))
        if cut < 0:
            raise InputError(
                f"{name} has no line break in its first {HEAD_BYTES >> 10} kB, so it is not a "
                "text table.",
                code="no-line-break",
            )
        head = head[: cut + 1]
    if not head.strip():
        raise InputError(
            f"{name} is empty; choose a file that holds trajectories.", code="empty-file"
        )
    return head.decode("utf-8", errors="replace")


def _records(head: str, separator: str) -> list[list[str]]:
    """The first records, blank lines left out."""
    return [record for _, record in _numbered_records(head, separator)]


def _numbered_records(head: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first records and the number of lines before each, blank lines left out."""
    found: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
    before = 0
    try:
        for record in reader:
            if record:
                found.append((before, record))
            before = reader.line_num
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
                f"it was given {printable(separator)!r}.",
                code="unknown-separator",
            )
    best = max(
        (_cut(head, candidate) for candidate in ((separator,) if separator else SEPARATORS)),
        key=lambda cut: (cut.steadiness, cut.width),
    )
    if best.width < 2:
        raise InputError(
            f"{name} is not a table with columns set apart by comma, tab, semicolon or pipe.",
            code="not-a-table",
        )
    if best.width > MAX_COLUMNS:
        raise InputError(
            f"{name} has {best.width:,} columns; at most {MAX_COLUMNS:,} are read.",
            code="too-many-columns",
        )
    table = best.records[best.preamble :]
    named = _has_header([record for _, record in table]) if header is None else header
    return _Dialect(
        best.separator,
        best.width,
        named,
        best.preamble,
        table[0][0],
        _line_start(head, table[0][0]),
    )


@dataclass(frozen=True)
class _Cut:
    """The first records cut by one separator, and how much they look like a table."""

    separator: str
    records: list[tuple[int, list[str]]]
    width: int
    preamble: int
    steadiness: float


def _cut(head: str, separator: str) -> _Cut:
    records = _numbered_records(head, separator)
    widths = [len(record) for _, record in records]
    wide = [width for width in widths if width > 1]
    if not wide:
        return _Cut(separator, records, min(len(widths), 1), 0, 0.0)
    width = Counter(reversed(wide[1:] or wide)).most_common(1)[0][0]
    preamble = 0
    while preamble < min(MOST_PREAMBLE, len(records) - 1) and not _starts_table(
        records[preamble][1], width
    ):
        preamble += 1
    if widths[preamble] != width:  # a header with a name more or less than the rows have values
        preamble = 0
    rows = widths[preamble + 1 :] or widths[preamble:]
    steady = rows.count(width) / len(rows) + 0.5 * (widths[0] == width) + 0.25 * (preamble > 0)
    return _Cut(separator, records, width, preamble, steady)


def _starts_table(record: Sequence[str], width: int) -> bool:
    """Whether a record may be the first of a table; a title has one cell, or others empty."""
    filled = sum(bool(cell.strip()) for cell in record)
    remark = record[0].startswith("#") and not (width > 2 and sum(map(knows_name, record)) > 1)
    return len(record) == width and (filled > 1 or width == 2) and not remark


def _line_start(head: str, lines: int) -> int:
    """The byte at which a line begins, by the number of lines before it."""
    if lines == 0:
        return 0
    return len("".join(io.StringIO(head, newline="").readlines()[:lines]).encode("utf-8"))


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


def _stream(
    text: _Text, name: str, dialect: _Dialect, positions: Sequence[int]
) -> Iterator[RawRows]:
    labels = [f"c{i}" for i in range(dialect.width)]
    wanted = {i: labels[i] for i in dict.fromkeys(positions)}
    misfits = _Misfits(dialect)
    finder = _LineFinder(text, dialect, misfits)
    broken = InputError(
        f"{name} cannot be cut into rows and columns; check its quotes and its separator.",
        code="damaged-table",
    )
    buffer = text.buffer(dialect.table_byte)
    try:
        reader = pa_csv.open_csv(
            pa.BufferReader(buffer),
            read_options=pa_csv.ReadOptions(
                column_names=labels, use_threads=False, block_size=BLOCK_BYTES
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.separator,
                newlines_in_values=text.has_quotes,
                invalid_row_handler=misfits.note,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()),
                include_columns=list(wanted.values()),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise broken from error
    n_rows, blocks = 0, 0
    skip = int(dialect.header)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        except pa.ArrowInvalid as error:
            raise broken from error
        blocks += 1
        if skip and misfits.drop_header():
            skip = 0
        if skip and batch.num_rows:
            batch, skip = batch.slice(1), 0
        columns = {i: pa.chunked_array([batch.column(label)]) for i, label in wanted.items()}
        n_rows += batch.num_rows
        share = min(1.0, blocks * BLOCK_BYTES / max(buffer.size, 1))
        yield RawRows(columns, batch.num_rows, finder.of_rows, share=share)
        text.let_go()
    misfits.drop_header()
    empty = {i: pa.chunked_array([], pa.string()) for i in wanted}
    yield RawRows(empty, 0, finder.of_rows, misfits.set_aside(finder))


class _Misfits:
    """Records whose number of columns is not the table's: numbers from 0, first texts."""

    def __init__(self, dialect: _Dialect) -> None:
        self.records: list[int] = []
        self._texts: list[str] = []
        self._header = dialect.header

    def note(self, row: pa_csv.InvalidRow) -> str:
        self.records.append(row.number - 1)
        if len(self._texts) <= SHOWN_LINES:
            self._texts.append(row.text[:200])
        return "skip"

    def drop_header(self) -> bool:
        """Whether the header itself has another width than the table; it is no row then."""
        if self._header and self.records[:1] == [0]:
            del self.records[0], self._texts[0]
            self._header = False
            return True
        return False

    def set_aside(self, finder: _LineFinder) -> dict[str, SetAside]:
        if not self.records:
            return {}
        lines = finder.of_records(np.array(self.records[:SHOWN_LINES], dtype=np.int64))
        cause = "wrong number of columns"
        return {
            cause: SetAside(
                len(self.records), tuple(int(line) for line in lines), printable(self._texts[0])
            )
        }


class _LineFinder:
    """Line numbers of rows, worked out only when some row has to be named, piece by piece."""

    def __init__(self, text: _Text, dialect: _Dialect, misfits: _Misfits) -> None:
        self._text, self._dialect, self._misfits = text, dialect, misfits
        self._break = 10 if b"\n" in text.piece(0, HEAD_BYTES) else 13
        self._known = [_Before(0, 0, 0, True)]

    def of_rows(self, rows: IntArray) -> IntArray:
        """Line numbers, from 1, of the loaded rows with these indices."""
        header = int(self._dialect.header)
        misfits = np.array(self._misfits.records, dtype=np.int64)
        rows_before = misfits - np.arange(len(misfits)) - header
        return self.of_records(rows + header + np.searchsorted(rows_before, rows, side="right"))

    def of_records(self, records: IntArray) -> IntArray:
        """Line numbers, from 1, of the records with these indices (blank lines are no records)."""
        return np.array([self._line(int(record)) for record in records]) + self._dialect.table_line

    def _line(self, record: int) -> int:
        while self._known[-1].records <= record:
            at = len(self._known) - 1
            _, after = self._scan(at, self._known[-1])
            if after is None:  # quotes that open nothing: count a line a record
                return record + 1
            self._known.append(after)
        at = bisect_right(self._known, record, key=lambda before: before.records) - 1
        lines, _ = self._scan(at, self._known[at])
        return int(lines[record - self._known[at].records]) + 1

    def _scan(self, piece: int, before: _Before) -> tuple[IntArray, _Before | None]:
        """Lines (from 0) on which records begin within a piece, and what lies before the next."""
        begin = self._dialect.table_byte + piece * PIECE_BYTES
        content = np.frombuffer(self._text.piece(begin, begin + PIECE_BYTES), dtype=np.uint8)
        if len(content) == 0:
            return np.empty(0, dtype=np.int64), None
        starts = np.flatnonzero(content == self._break) + 1
        n_breaks = len(starts)
        lines = before.lines + 1 + np.arange(n_breaks)
        if before.at_line_start:
            starts, lines = np.append(0, starts), np.append(before.lines, lines)
        within = starts < len(content)
        ends_line = not within.all()
        starts, lines = starts[within], lines[within]
        quotes = np.flatnonzero(content == 34) if self._text.has_quotes else np.empty(0)
        inside = (before.quotes + np.searchsorted(quotes, starts)) % 2 == 1
        found = lines[~np.isin(content[starts], (10, 13)) & ~inside]
        return found, _Before(
            before.records + len(found), before.lines + n_breaks, before.quotes + len(quotes),
            ends_line,
        )  # fmt: skip


@dataclass(frozen=True)
class _Before:
    """What lies before a piece of text: records begun, lines, quotes; and whether a line ends."""

    records: int
    lines: int
    quotes: int
    at_line_start: bool
