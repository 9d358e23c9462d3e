"""Sheets of workbooks (.xlsx, .xlsm, .xlsb, .xls, .ods), their cells read by calamine.

calamine keeps a sheet as the whole rectangle about its cells, and asks for so much memory at once:
it runs in a process with limits (`agg_core.io.apart`). It is given archives whose entries were
checked and packed anew. It tells neither an error nor a formula without result from an empty cell,
and takes whole numbers for floating ones of 64 bits: in .xlsx such cells are made texts before.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.archives import ZIP_MAGIC, Archive, Entry, check_archive
from agg_core.io.contents import Data

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

__all__ = [
    "ODS",
    "OLE_MAGIC",
    "Cells",
    "Kind",
    "Merge",
    "Sheet",
    "Workbook",
    "kind_of",
    "open_workbook",
]

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How .xls and workbooks with a password begin."""
ODS = b"mimetypeapplication/vnd.oasis.opendocument."
"""What OpenDocument files hold near their beginning."""

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""The greatest sheet that Excel makes."""
MAX_MERGES = 200_000
MAX_CELL_CHARACTERS = 1 << 20
MAX_LOADED_CHARACTERS = 1 << 29
CHUNK_CELLS = 1 << 18
"""So many cells are Python's objects at a time."""

_ERROR, _NO_RESULT = "\ue000", "\ue001"
"""Texts, for private use, that errors and formulas without result are respelled as."""
_ERROR_WORD = r"^#(?:N/A|GETTING_DATA|[A-Z/0]+[!?])$"
_SIGNS = (b't="e"', b"t='e'", b"f>", b"<f ", b":f ", b"<f/", b":f/")
"""One of them is in a sheet with errors or formulas."""
_LONG_VALUE = re.compile(rb"v>-?\d{16,}<")
_CELL = re.compile(
    rb"<((?:[\w.-]+:)?)c(\s[^<>]*)?>(\s*<\1f(?:\s[^<>]*)?(?:/>|>[^<]*</\1f>))?"
    rb"(?:\s*<\1v\s*/>|\s*<\1v(?:\s[^<>]*)?>([^<]*)</\1v>)?\s*</\1c>"
)
_TYPE = re.compile(rb"\st=[\"'](\w*)[\"']")
_LONG = re.compile(rb"-?\d{16,}")
_ROW = re.compile(rb"<(?:[\w.-]+:)?row\s(?:[^<>]*?\s)?r=[\"'](\d+)[\"']")
_NO_COLUMN = re.compile(rb" r=[\"'][A-Za-z]{4,}\d")
_LINK = re.compile(rb"<(?:[\w.-]+:)?Relationship\s[^<>]*>")
_ATTRIBUTE = re.compile(rb"\b(Type|Target)=[\"']([^\"']*)")
_FROM_1904 = re.compile(rb"date1904=[\"'](?:1|true|on)[\"']", re.IGNORECASE)
_FROM_1904_XLSB = re.compile(rb"\x99\x01.(.)", re.DOTALL)
"""BrtWbProp ([MS-XLSB] 2.4.822): its lowest bit."""
_FROM_1904_XLS = b"\x22\x00\x02\x00\x01\x00\x0e\x00\x02\x00"
"""Date1904 ([MS-XLS] 2.4.77) before CalcPrecision, as 2.1.7.20.1 has them."""
_XLS_STREAMS = tuple(name.encode("utf-16-le") for name in ("Book\0", "book\0", "BOOK\0"))
"""How the names of the streams end that hold the sheets of .xls."""
_LARGEST_EXACT = 2.0**53
_ESCAPED_BREAK = "_x000[9ADad]_"
_OTHER_OFFICE = {"word/": "a Word document", "ppt/": "a PowerPoint presentation"}

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
KindArray = npt.NDArray[np.uint8]


class Kind(IntEnum):
    """What a cell holds."""

    BLANK = 0
    NUMBER = 1
    DATE = 2
    DURATION = 3
    TEXT = 4
    FLAG = 5
    FAULT = 6
    UNCALCULATED = 7


_KINDS: dict[type, Kind] = {
    str: Kind.TEXT, float: Kind.NUMBER, int: Kind.NUMBER, bool: Kind.FLAG,
    dt.datetime: Kind.DATE, dt.date: Kind.DATE, dt.time: Kind.DURATION,
    dt.timedelta: Kind.DURATION,
}  # fmt: skip


class Merge(NamedTuple):
    """A block of merged cells: first and last column and row, from 1."""

    first_column: int
    first_row: int
    last_column: int
    last_row: int


@dataclass(frozen=True)
class Cells:
    """Cells of a column (n,): kinds; numbers, dates in ms since 1970, durations in ms; texts.

    Numbers are among the texts too, dates and durations are not.
    """

    kinds: KindArray
    numbers: FloatArray
    texts: pa.Array

    def between(self, start: int, end: int | None = None) -> Cells:
        """The cells from one row to before another."""
        texts = self.texts.slice(start, None if end is None else end - start)
        return Cells(self.kinds[start:end], self.numbers[start:end], texts)

    def kept(self, rows: npt.NDArray[np.bool_]) -> Cells:
        """The cells of some rows."""
        return Cells(self.kinds[rows], self.numbers[rows], self.texts.filter(pa.array(rows)))


@dataclass(frozen=True)
class Sheet:
    """A worksheet: its rows that are not blank, by number, and columns from ``first_column`` on."""

    title: str
    lines: IntArray
    first_column: int
    columns: tuple[Cells, ...]
    merges: tuple[Merge, ...]


@dataclass(frozen=True)
class Workbook:
    """An opened workbook; ``from_1904`` tells which day its bare numbers count from."""

    name: str
    titles: tuple[str, ...]
    from_1904: bool
    _book: CalamineWorkbook

    def sheet(self, title: str) -> Sheet:
        """Read a worksheet.

        Raises
        ------
        InputError
            If it is damaged, leads beyond the bounds of a sheet or merges too many cells.
        """
        with _no_fault_of_calamine(self.name):
            found = self._book.get_sheet_by_name(title)
            blocks = found.merged_cell_ranges or []
        if len(blocks) > MAX_MERGES:
            raise InputError(
                f"{self.name} merges more than {MAX_MERGES:,} cells; unmerge them.",
                code="too-many-merges",
            )
        merges = (Merge(c + 1, r + 1, cc + 1, rr + 1) for (r, c), (rr, cc) in blocks)
        if found.start is None or found.end is None:
            return Sheet(title, np.empty(0, np.int64), 1, (), ())
        if found.end[0] >= MAX_ROWS or found.end[1] >= MAX_COLUMNS:
            raise _damaged(self.name, "a cell lies beyond the greatest sheet")
        lines, columns = _columns(found.iter_rows(), found.width, self.name)
        return Sheet(title, lines, found.start[1] + 1, columns, tuple(sorted(merges)))


def kind_of(data: Data, name: str) -> str:
    """What kind of workbook it is: xls, ods, or one of the zip archives (xlsx).

    Raises
    ------
    InputError
        If it is another kind of file or protected by a password.
    """
    head = data[:200]
    if head.startswith(OLE_MAGIC):
        if data.find("EncryptedPackage".encode("utf-16-le")) >= 0:
            raise _protected(name)
        if all(data.find(stream) < 0 for stream in _XLS_STREAMS):
            raise InputError(
                f"{name} is an old Office file but no workbook (.xls); give a workbook or CSV.",
                code="unsupported-office-format",
            )
        return "xls"
    if not head.startswith(ZIP_MAGIC):
        raise InputError(
            f"{name} is no workbook; give .xlsx, .xlsb, .xls, .ods or CSV.", code="not-a-workbook"
        )
    at = head.find(ODS)
    if at >= 0 and not head[at + len(ODS) :].startswith(b"spreadsheet"):
        raise InputError(
            f"{name} is an OpenDocument file but no workbook (.ods); give a workbook or CSV.",
            code="unsupported-office-format",
        )
    return "ods" if at >= 0 else "xlsx"


def open_workbook(data: Data, name: str, folder: Path) -> Workbook:
    """Open a workbook by way of a file in a folder of ours.

    Raises
    ------
    InputError
        If it is no workbook, damaged, protected, has no sheet, or is a decompression bomb.
    """
    from python_calamine import CalamineWorkbook, SheetTypeEnum  # noqa: PLC0415

    kind = kind_of(data, name)
    if kind == "xls":
        path, from_1904 = folder / "book.xls", data.find(_FROM_1904_XLS) >= 0
        path.write_bytes(data)
    else:
        path, from_1904 = _packed_anew(check_archive(data, name, nested=True), kind, folder)
    with _no_fault_of_calamine(name):
        book = CalamineWorkbook.from_path(path)
        titles = tuple(
            about.name for about in book.sheets_metadata if about.typ == SheetTypeEnum.WorkSheet
        )
    if not titles:
        raise InputError(
            f"{name} has no worksheet; choose a workbook that holds a table.", code="no-worksheet"
        )
    return Workbook(name, titles, from_1904, book)


def _packed_anew(archive: Archive, kind: str, folder: Path) -> tuple[Path, bool]:
    """A file of the checked entries as calamine has to see them, and whether days are from 1904."""
    parts = {entry.name.replace("\\", "/").casefold(): entry for entry in archive.entries}
    kind, names = (kind, {}) if kind == "ods" else _usual_names(archive, parts)
    path, from_1904 = folder / f"book.{kind}", False
    with zipfile.ZipFile(path, "w") as packed:
        for part, entry in parts.items():
            name = names.get(part, entry.name.replace("\\", "/"))
            if part not in names and part in map(str.casefold, names.values()):
                continue  # nothing leads to it, and another part has its name now
            content = b"".join(archive.pieces(entry))
            if part.endswith((".xml", ".rels")) and b"<!DOCTYPE" in content:
                raise InputError(
                    f"{archive.name} holds XML with a DOCTYPE, which is not read; save it anew.",
                    code="xml-doctype",
                )
            if name == "xl/workbook.xml":
                from_1904 = _FROM_1904.search(content) is not None
            elif name == "xl/workbook.bin":
                stated = _FROM_1904_XLSB.search(content[:400])
                from_1904 = stated is not None and stated[1][0] & 1 == 1
            elif kind == "xlsx" and b"sheetData" in content:
                content = _respelled(content, archive.name)
            packed.writestr(zipfile.ZipInfo(name), content)
    return path, from_1904


def _usual_names(archive: Archive, parts: Mapping[str, Entry]) -> tuple[str, dict[str, str]]:
    """Whether a package is xlsx or xlsb, and the usual names of parts that calamine asks for."""
    main = _links(archive, parts, "").get("officeDocument", "xl/workbook.xml")
    for place, what in _OTHER_OFFICE.items():
        if main.startswith(place):
            raise InputError(
                f"{archive.name} is {what}; give the table in it as .xlsx or CSV.",
                code="unsupported-office-format",
            )
    if main not in parts:
        raise InputError(
            f"{archive.name} is no workbook (it has no {printable(main)}); give .xlsx or CSV.",
            code="not-a-workbook",
        )
    ending = "bin" if main.endswith(".bin") else "xml"
    links, (place, file) = _links(archive, parts, main), posixpath.split(main)
    names = {
        main: f"xl/workbook.{ending}",
        f"{place}/_rels/{file}.rels": f"xl/_rels/workbook.{ending}.rels",
    }
    for kind in ("sharedStrings", "styles"):
        if kind in links:
            names[links[kind]] = f"xl/{kind}.{ending}"
    return "xlsb" if ending == "bin" else "xlsx", names


def _links(archive: Archive, parts: Mapping[str, Entry], part: str) -> dict[str, str]:
    """Names of the parts that a part leads to, by their kind."""
    folder, file = posixpath.split(part)
    entry = parts.get(posixpath.join(folder, "_rels", f"{file}.rels"))
    found = {}
    for link in _LINK.findall(b"".join(archive.pieces(entry)) if entry else b""):
        told = {key: value.decode(errors="replace") for key, value in _ATTRIBUTE.findall(link)}
        target = told.get(b"Target", "").replace("\\", "/").casefold()
        path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        found[told.get(b"Type", "").rpartition("/")[2]] = path
    return found


def _respelled(content: bytes, name: str) -> bytes:
    """A sheet's XML whose errors, formulas without result and long whole numbers are texts."""
    numbers = np.array([int(row[:18]) for row in _ROW.findall(content)], dtype=np.int64)
    if len(numbers) and (numbers.max() > MAX_ROWS or (np.diff(numbers) <= 0).any()):
        raise _damaged(name, "its rows are out of order")
    if _NO_COLUMN.search(content):
        raise _damaged(name, "a cell lies beyond the greatest sheet")
    if any(sign in content for sign in _SIGNS) or _LONG_VALUE.search(content):
        return _CELL.sub(_respelled_cell, content)
    return content


def _respelled_cell(cell: re.Match[bytes]) -> bytes:
    prefix, attributes, formula, value = cell.groups()
    stated = _TYPE.search(attributes or b"")
    kind = stated[1] if stated else b"n"
    if kind == b"e":
        value = _ERROR.encode()
    elif kind == b"n" and formula and not value:
        value = _NO_RESULT.encode()
    elif kind != b"n" or not value or not _LONG.fullmatch(value):
        return cell[0]
    attributes = _TYPE.sub(b"", attributes or b"")
    return b'<%bc%b t="str"><%bv>%b</%bv></%bc>' % (
        prefix, attributes, prefix, value, prefix, prefix,
    )  # fmt: skip


@contextmanager
def _no_fault_of_calamine(name: str) -> Iterator[None]:
    """Whatever calamine raises, panics of Rust too, is one sentence."""
    from python_calamine import PasswordError  # noqa: PLC0415

    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except PasswordError as fault:
        raise _protected(name) from fault
    except BaseException as fault:  # a panic is no Exception
        raise _damaged(name, printable(fault, 80)) from fault


def _protected(name: str) -> InputError:
    return InputError(
        f"{name} is protected by a password; save it without one.", code="password-protected"
    )


def _damaged(name: str, what: str) -> InputError:
    return InputError(
        f"{name} is a damaged workbook ({what}); open it in Excel and save it anew.",
        code="damaged-workbook",
    )


# Values of calamine to columns


def _columns(
    rows: Iterator[list[Any]], width: int, name: str
) -> tuple[IntArray, tuple[Cells, ...]]:
    """Numbers of the rows that are not blank, from 1, and their cells by column."""
    chunks: list[list[Cells]] = [[] for _ in range(width)]
    lines, characters, start = [np.empty(0, np.int64)], 0, 1
    while chunk := list(islice(rows, max(1, CHUNK_CELLS // width))):
        # One column below the other: a sheet may be much wider than long.
        cells = _cells(list(chain.from_iterable(zip(*chunk, strict=True))), name)
        written = cells.texts.filter(pa.array(cells.kinds == Kind.TEXT))
        characters += pc.sum(pc.utf8_length(written)).as_py() or 0
        if characters > MAX_LOADED_CHARACTERS:
            raise InputError(
                f"{name} unpacks to too much text; save it as CSV, in parts.", code="too-much-text"
            )
        filled = (cells.kinds.reshape(width, -1) > 0).any(axis=0)
        lines.append(start + np.flatnonzero(filled))
        start += len(chunk)
        cells = cells if filled.all() else cells.kept(np.tile(filled, width))
        n = len(lines[-1])
        for column, taken in enumerate(chunks):
            taken.append(cells.between(column * n, (column + 1) * n))
    return np.concatenate(lines), tuple(_joined(taken) for taken in chunks)


def _cells(values: Sequence[Any], name: str) -> Cells:
    """Cells of a column from Python's values; texts without blanks around them."""
    kinds = np.fromiter(map(_KINDS.__getitem__, map(type, values)), np.uint8, len(values))
    numbers = np.full(len(values), np.nan)
    for kind, read in _NUMBERS.items():
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            numbers[chosen] = read([values[i] for i in chosen.tolist()])
    if (kinds == Kind.TEXT).all():
        texts = pa.array(values, pa.large_string())
    else:
        spoken = (value if type(value) is str else None for value in values)
        texts = pa.array(list(spoken), pa.large_string())
    if (pc.max(pc.utf8_length(texts)).as_py() or 0) > MAX_CELL_CHARACTERS:
        raise _damaged(name, "a cell holds too much text")
    texts = _clean(texts)
    is_text = kinds == Kind.TEXT
    if is_text.any():
        for kind, mask in (
            (Kind.BLANK, pc.equal(texts, "")),
            (Kind.UNCALCULATED, pc.equal(texts, _NO_RESULT)),
            (
                Kind.FAULT,
                pc.or_(pc.equal(texts, _ERROR), pc.match_substring_regex(texts, _ERROR_WORD)),
            ),
        ):
            kinds[np.asarray(pc.fill_null(mask, False))] = kind
        texts = pc.if_else(pa.array(kinds == Kind.BLANK), None, texts)
    flags = np.flatnonzero(kinds == Kind.FLAG)
    if len(flags):
        words = pa.array([str(values[i]).upper() for i in flags.tolist()], pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(kinds == Kind.FLAG), words)
    numeric = kinds == Kind.NUMBER
    if numeric.any():
        texts = pc.replace_with_mask(texts, pa.array(numeric), _number_texts(numbers[numeric]))
    return Cells(kinds, numbers, texts)


def _number_texts(numbers: FloatArray) -> pa.Array:
    """Numbers as people write them: whole ones without a point, others in their shortest form."""
    whole = (numbers == np.floor(numbers)) & (np.abs(numbers) <= _LARGEST_EXACT)
    integers = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.large_string())
    shortest = pa.array(numbers).cast(pa.large_string())
    return pc.if_else(pa.array(whole), integers, shortest)


def _clean(texts: pa.Array) -> pa.Array:
    """Texts without blanks around them; tabs and line breaks within become blanks."""
    if pc.any(pc.match_substring_regex(texts, rf"[\t\n]|{_ESCAPED_BREAK}")).as_py():
        texts = pc.replace_substring_regex(texts, _ESCAPED_BREAK, " ")
        texts = pc.replace_substring_regex(texts, r"\s*[\t\n]\s*", " ")
    return pc.utf8_trim_whitespace(texts)


def _dates(values: Sequence[dt.date]) -> FloatArray:
    return np.array(values, dtype="datetime64[ms]").astype(np.int64).astype(np.float64)


def _durations(values: Sequence[dt.time | dt.timedelta]) -> FloatArray:
    spans = [
        value
        if isinstance(value, dt.timedelta)
        else dt.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second,
            microseconds=value.microsecond,
        )
        for value in values
    ]  # fmt: skip
    return np.array(spans, dtype="timedelta64[ms]").astype(np.int64).astype(np.float64)


_NUMBERS = {
    Kind.NUMBER: lambda values: np.array(values, dtype=np.float64),
    Kind.DATE: _dates,
    Kind.DURATION: _durations,
}


def _joined(chunks: Sequence[Cells]) -> Cells:
    if len(chunks) == 1:
        return chunks[0]
    return Cells(
        np.concatenate([np.empty(0, np.uint8), *(cells.kinds for cells in chunks)]),
        np.concatenate([np.empty(0), *(cells.numbers for cells in chunks)]),
        pa.chunked_array([cells.texts for cells in chunks], pa.large_string()).combine_chunks(),
    )
