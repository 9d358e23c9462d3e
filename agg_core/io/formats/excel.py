"""Excel workbooks: the sheet, header row and columns of the table found, cells as text."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.archives import ZIP_MAGIC, names_in_head
from agg_core.io.contents import Data
from agg_core.io.formats.xlsx import Cell, Kind, Merge, Sheet, Survey, Workbook, open_workbook
from agg_core.io.guess.columns import ROLES, is_number, plain_name
from agg_core.io.guess.times import looks_like_time, parse_times
from agg_core.io.source import RawRows, RawSource

__all__ = ["OLE_MAGIC", "open_excel", "recognises_excel"]

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How .xls and workbooks with a password begin."""

SAMPLE_ROWS = 50
HEAD_ROWS = 250
HEAD_CELLS = 200_000
HEADER_WITHIN = 50
ROWS_BELOW = 20
CELLS_LOOKED_AT = 200
CONVERTED_COLUMNS = 256
FEW_COLUMNS = 32
"""So many are read in one go, whichever are asked for."""
ROLES_OF_A_HEADER = 2
CHUNK_CELLS = 1 << 16
MAX_LOADED_CHARACTERS = 1 << 29
MAX_FILLED = 4 << 20
SHOWN = 5

_WORKBOOK_PARTS = ("xl/", "[content_types].xml", "_rels/", "docprops/", "customxml/")
_ODS = b"mimetypeapplication/vnd.oasis.opendocument"
_DAY_MS = 86_400_000
_DAYS_FROM_1900 = np.datetime64("1899-12-30", "ms")
_DAYS_FROM_1904 = np.datetime64("1904-01-01", "ms")
_DAYS_BETWEEN = 1462
_LAST_SERIAL = 2_958_466
"""The day after 9999-12-31, counted from 1900."""
_SERIALS = (18_264, 73_051)
"""The first days of 1950 and 2100, counted from 1900."""
_LEAP_DAY_1900 = 60
"""Excel's 29 February 1900, which never was: days before it count from one day later."""
_WHOLE = r"^-?\d+$"
_NUMBER = r"^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?$"
_YEAR_FIRST = r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[T ]"
_WITH_OFFSET = r"(?i)(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$"
_LARGEST_EXACT = 1e15

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_VALUELESS = {
    Kind.FAULT: "with an error such as #N/A",
    Kind.FLAG: "TRUE or FALSE",
    Kind.UNCALCULATED: "with a formula that was never calculated",
}


@dataclass(frozen=True)
class _Table:
    """Where a sheet's table lies: its columns from 1, names, and header row (0: none)."""

    sheet: Sheet
    header_row: int
    columns: tuple[int, ...]
    names: tuple[str, ...]
    n_parts: int
    head: tuple[_Row, ...]
    survey: Survey


@dataclass
class _Account:
    """What happened to the cells of the loaded columns."""

    valueless: Counter[Kind] = field(default_factory=Counter)
    serials: int = 0
    text_dates: Guess | None = None

    def add(self, other: _Account) -> None:
        """Take up the account of another column."""
        self.valueless.update(other.valueless)
        self.serials += other.serials
        self.text_dates = self.text_dates or other.text_dates

    def guesses(self) -> dict[str, Guess]:
        """What a person should know of it."""
        found = {}
        if self.valueless:
            parts = [f"{n:,} {_VALUELESS[kind]}" for kind, n in sorted(self.valueless.items())]
            count = f"{self.valueless.total():,}"
            found["cells without a value"] = Guess(count, (), ", ".join(parts))
        if self.serials:
            note = f"{self.serials:,} bare numbers are taken for days since the workbook's first"
            found["serial numbers"] = Guess("dates", ("numbers",), note)
        if self.text_dates:
            found["dates written as text"] = self.text_dates
        return found


@dataclass(frozen=True)
class _Row:
    """A row of the sheet by its number, and its cells by column."""

    number: int
    cells: Mapping[int, Cell]


def recognises_excel(head: bytes) -> bool:
    """Whether a file is a workbook (of any kind, also those that are refused by name)."""
    if head.startswith(OLE_MAGIC):
        return True
    if not head.startswith(ZIP_MAGIC):
        return False
    return _ODS in head[:200] or any(
        name.lower().startswith(_WORKBOOK_PARTS) for name in names_in_head(head)
    )


def open_excel(
    data: Data, name: str, *, sheet: str | None = None, header_row: int | None = None
) -> RawSource:
    """Open a workbook's table; all cells become text, times as YYYY-MM-DD HH:MM:SS.

    ``sheet`` is a title or a position from 1; otherwise the sheet is taken whose header tells most
    of who, when and where, and of those the one with the most rows. ``header_row`` is a row number
    of the sheet, 0 for none. A merged block of cells holds its value in every row. Serial numbers
    among the dates of a column, or under a name that spells time, become dates. Cells without a
    value (errors, single TRUE or FALSE, formulas without result) are null; once columns are loaded,
    the source's guess "cells without a value" counts them.

    Raises
    ------
    InputError
        If it is another kind of file, damaged, protected, has no such sheet, or no table.
    """
    _refuse_other_kinds(data, name)
    workbook = open_workbook(data, name)
    candidates = workbook.sheets if sheet is None else (_named_sheet(workbook, sheet),)
    found = [_find_table(workbook, candidate, header_row) for candidate in candidates]
    tables = [table for table in found if table is not None]
    if not tables:
        where = f"sheet {printable(candidates[0].title)}" if sheet else "any of its sheets"
        under = f" under row {header_row}" if header_row else ""
        raise InputError(
            f"{name} holds no table of two or more columns in {where}{under}; choose another file.",
            code="no-table-found",
        )
    table = max(tables, key=lambda each: (each.n_parts, each.survey.n_rows))
    guesses = _guesses(workbook, table, tables, sheet)
    sample = _Loader(workbook, table).sample()
    loader = _Loader(workbook, table)

    def load(positions: Sequence[int]) -> RawRows:
        rows = loader.load([table.columns[position] for position in positions])
        guesses.update(loader.guesses())
        columns = {at: loader.texts[table.columns[at]] for at in positions}
        return RawRows(columns, rows, loader.line_numbers)

    return RawSource(table.names, table.header_row > 0, sample, load, guesses)


def _refuse_other_kinds(data: Data, name: str) -> None:
    head = data[:200]
    if head.startswith(OLE_MAGIC):
        if data.find("EncryptedPackage".encode("utf-16-le")) >= 0:
            raise InputError(
                f"{name} is protected by a password; save it without one.",
                code="password-protected",
            )
        raise InputError(
            f"{name} is an old Excel workbook (.xls) or another old Office file; save it as .xlsx "
            "or CSV.",
            code="unsupported-office-format",
        )
    if _ODS in head:
        raise InputError(
            f"{name} is an OpenDocument file (.ods); save it as .xlsx or CSV.",
            code="unsupported-office-format",
        )
    if not head.startswith(ZIP_MAGIC):
        raise InputError(f"{name} is no Excel workbook; give .xlsx or CSV.", code="not-a-workbook")


def _named_sheet(workbook: Workbook, wanted: str) -> Sheet:
    titles = [sheet.title for sheet in workbook.sheets]
    plain = [title.strip().casefold() for title in titles]
    if wanted in titles:
        return workbook.sheets[titles.index(wanted)]
    if wanted.strip().casefold() in plain:
        return workbook.sheets[plain.index(wanted.strip().casefold())]
    position = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 else 0
    if 1 <= position <= len(titles):
        return workbook.sheets[position - 1]
    shown = ", ".join(printable(title, 40) for title in titles[:20])
    raise InputError(
        f"No sheet of {workbook.name} is called {printable(wanted)!r}; it has: {shown}.",
        "--sheet NAME",
        code="unknown-sheet",
    )


def _guesses(
    workbook: Workbook, table: _Table, tables: Sequence[_Table], sheet: str | None
) -> dict[str, Guess]:
    others = tuple(printable(other.sheet.title) for other in tables if other is not table)
    title = printable(table.sheet.title)
    row = f"row {table.header_row}" if table.header_row else "no header"
    found = {
        "sheet": Guess(title, () if sheet else others[:20], option="sheet"),
        "header row": Guess(row),
    }
    if workbook.from_1904:
        found["date system"] = Guess("1904", note="the workbook counts days from 1904")
    return found


# Finding the table


def _find_table(workbook: Workbook, sheet: Sheet, header_row: int | None) -> _Table | None:
    """The table of a sheet, None if it has none."""
    survey = workbook.survey(sheet)
    rows = _head_rows(workbook, sheet, survey.merges)
    if header_row is None:
        header = _header_of(rows)
    else:
        header = next((row for row in rows if row.number == header_row), None)
        if header is None and header_row != 0:
            return None
    below = rows[rows.index(header) + 1 :] if header else _block(rows)
    named = {column: cell.text for column, cell in header.cells.items()} if header else {}
    columns = sorted(set(named).union(*(row.cells for row in below)))
    if len(columns) < 2 or not below:
        return None
    return _Table(
        sheet=sheet,
        header_row=header.number if header else 0,
        columns=tuple(columns),
        names=tuple(named.get(column, "") for column in columns),
        n_parts=_parts_named(named.values()),
        head=tuple(below),
        survey=survey,
    )


def _head_rows(workbook: Workbook, sheet: Sheet, merges: Sequence[Merge]) -> list[_Row]:
    """The first rows that are not blank, with merged cells filled in."""
    rows, n_cells = [], 0
    for number, cells in workbook.rows(sheet):
        if cells:
            rows.append((number, {cell.column: cell for cell in cells}))
            n_cells += len(cells)
        if len(rows) >= HEAD_ROWS or n_cells > HEAD_CELLS:
            break
    _fill_head(rows, merges)
    return [_Row(number, cells) for number, cells in rows]


def _fill_head(rows: Sequence[tuple[int, dict[int, Cell]]], merges: Sequence[Merge]) -> None:
    """Give the rows below the first of a merged block its cell."""
    numbers = [number for number, _ in rows]
    for merge in merges:
        first = bisect_left(numbers, merge.first_row)
        if first == len(numbers) or numbers[first] != merge.first_row:
            continue
        value = rows[first][1].get(merge.first_column)
        if value is not None:
            for _, cells in rows[first + 1 : bisect_right(numbers, merge.last_row)]:
                cells.setdefault(merge.first_column, value)


def _header_of(rows: Sequence[_Row]) -> _Row | None:
    """The row that names the most roles, else the first row of texts as wide as those below."""
    within = rows[:HEADER_WITHIN]
    roles = [
        len({_role_of(cell.text) for cell in row.cells.values() if cell.kind is Kind.TEXT} - {None})
        for row in within
    ]
    if roles and max(roles) >= ROLES_OF_A_HEADER:
        return within[roles.index(max(roles))]
    all_names = [_all_names(row) for row in rows[: HEADER_WITHIN + ROWS_BELOW]]
    for i, row in enumerate(within[:-1]):
        below = rows[i + 1 : i + 1 + ROWS_BELOW]
        width = float(np.median([len(other.cells) for other in below]))
        valued = not all(all_names[i + 1 : i + 1 + ROWS_BELOW])
        if all_names[i] and valued and len(row.cells) >= max(2.0, width):
            return row
    return None


def _all_names(row: _Row) -> bool:
    """Whether all cells of a row could name columns."""
    return all(
        cell.kind is Kind.TEXT and not is_number(cell.text) and not looks_like_time(cell.text)
        for cell in islice(row.cells.values(), CELLS_LOOKED_AT)
    )


def _block(rows: Sequence[_Row]) -> Sequence[_Row]:
    """Rows from the first that is as wide as most: titles above a table without header go."""
    if not rows:
        return rows
    width = float(np.median([len(row.cells) for row in rows]))
    start = next(i for i, row in enumerate(rows) if len(row.cells) >= width)
    return rows[start:]


def _parts_named(names: Iterable[str]) -> int:
    """How many of who, when and where the names tell."""
    roles = {_role_of(name) for name in names}
    where = bool(roles & {"geometry", "place"}) or {"lon", "lat"} <= roles
    return ("user_id" in roles) + bool(roles & {"time", "date"}) + where


def _role_of(name: str) -> str | None:
    """The role that a column name spells, None if it is none of the known spellings."""
    if len(name) > 40:
        return None
    plain = plain_name(name)
    return next((role for role, spellings in ROLES.items() if plain in spellings), None)


# Loading


@dataclass
class _Gathered:
    """The cells of one column: indices of their rows, kinds and texts, packed now and then."""

    rows: array[int] = field(default_factory=lambda: array("i"))
    kinds: bytearray = field(default_factory=bytearray)
    texts: list[str] = field(default_factory=list)
    chunks: list[pa.Array] = field(default_factory=list)

    def pack(self) -> int:
        """Move the texts into Arrow's memory; returns how many characters they have."""
        size = sum(map(len, self.texts))
        if size > MAX_LOADED_CHARACTERS:
            return size
        self.chunks.append(pa.array(_encodable(self.texts), pa.large_string()))
        self.texts = []
        return size


def _encodable(texts: list[str]) -> list[str]:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return [text.encode(errors="replace").decode() for text in texts]
    return texts


class _Loader:
    """Columns of a table as text, kept once they are read: each reading takes the whole sheet."""

    def __init__(self, workbook: Workbook, table: _Table) -> None:
        self._workbook, self._table = workbook, table
        self._names = dict(zip(table.columns, table.names, strict=True))
        self._blocks: dict[int, list[Merge]] = {}
        for merge in table.survey.merges:
            self._blocks.setdefault(merge.first_column, []).append(merge)
        self._accounts: dict[int, _Account] = {}
        self._asked: set[int] = set()
        self._lines: IntArray = np.empty(0, dtype=np.int64)
        self.texts: dict[int, pa.ChunkedArray] = {}

    def sample(self) -> list[list[str]]:
        """The first rows; in very wide tables the cells of most columns as they are stored."""
        head, columns = self._table.head, self._table.columns
        few = [
            column
            for i, column in enumerate(columns)
            if i < CONVERTED_COLUMNS or _role_of(self._names[column])
        ]
        self._read(((row.number, list(row.cells.values())) for row in head), few)
        found = {column: self.texts[column].to_pylist() for column in few}
        rows = []
        for i, row in enumerate(head[:SAMPLE_ROWS]):
            stored = {column: cell.text for column, cell in row.cells.items()}
            stored |= {column: texts[i] or "" for column, texts in found.items()}
            rows.append([stored.get(column, "") for column in columns])
        return rows

    def load(self, columns: Sequence[int]) -> int:
        """Read what is not known yet of these columns; returns the number of rows."""
        self._asked.update(columns)
        unknown = [column for column in dict.fromkeys(columns) if column not in self.texts]
        if unknown or not len(self._lines):
            known = self._table.columns
            at_once = known if len(known) <= FEW_COLUMNS else unknown
            first = self._table.head[0].number
            rows = self._workbook.rows(self._table.sheet)
            self._read(((n, cells) for n, cells in rows if n >= first and cells), at_once)
        return len(self._lines)

    def line_numbers(self, rows: IntArray) -> IntArray:
        """Row numbers of the sheet."""
        return self._lines[rows]

    def guesses(self) -> dict[str, Guess]:
        """What a person should know of the cells of the columns asked for."""
        whole = _Account()
        for column in sorted(self._asked):
            whole.add(self._accounts[column])
        return whole.guesses()

    def _read(self, rows: Iterable[tuple[int, Iterable[Cell]]], columns: Sequence[int]) -> None:
        numbers: array[int] = array("i")
        gathered = {column: _Gathered() for column in columns}
        name = self._workbook.name
        _gather(rows, gathered, numbers, name)
        self._lines = np.array(numbers, dtype=np.int64)
        filled = 0
        for column, cells in gathered.items():
            index = np.full(len(self._lines), -1, dtype=np.int64)
            index[np.array(cells.rows, dtype=np.int64)] = np.arange(len(cells.rows))
            filled += _fill_merged(index, self._lines, self._blocks.get(column, ()))
            if filled >= MAX_FILLED:
                raise InputError(
                    f"{name} merges too many cells; unmerge them.", code="too-many-merges"
                )
            account = self._accounts[column] = _Account()
            role = _role_of(self._names[column])
            text = _as_text(cells, role, self._workbook.from_1904, account)
            self.texts[column] = pa.chunked_array([text.take(pa.array(index, mask=index < 0))])


def _gather(
    rows: Iterable[tuple[int, Iterable[Cell]]],
    gathered: Mapping[int, _Gathered],
    numbers: array[int],
    name: str,
) -> None:
    characters = 0
    for number, cells in rows:
        index = len(numbers)
        numbers.append(number)
        for column, kind, text in cells:
            taken = gathered.get(column)
            if taken is None:
                continue
            taken.rows.append(index)
            taken.kinds.append(kind)
            taken.texts.append(text)
            if len(taken.texts) >= CHUNK_CELLS:
                characters += taken.pack()
                if characters > MAX_LOADED_CHARACTERS:
                    raise InputError(
                        f"{name} unpacks to too much text; save it as CSV, in parts.",
                        code="too-much-text",
                    )
    if characters + sum(cells.pack() for cells in gathered.values()) > MAX_LOADED_CHARACTERS:
        raise InputError(
            f"{name} unpacks to too much text; save it as CSV, in parts.", code="too-much-text"
        )


def _fill_merged(index: IntArray, lines: IntArray, blocks: Sequence[Merge]) -> int:
    """Give the rows below the first of a merged block its cell; returns how many were given."""
    filled = 0
    firsts = np.searchsorted(lines, [block.first_row for block in blocks])
    lasts = np.searchsorted(lines, [block.last_row for block in blocks], side="right")
    for block, first, last in zip(blocks, firsts, lasts, strict=True):
        if last - first > 1 and lines[first] == block.first_row and filled < MAX_FILLED:
            rest = index[first + 1 : last]
            rest[rest < 0] = index[first]
            filled += len(rest)
    return filled


# Cells to text


def _as_text(cells: _Gathered, role: str | None, from_1904: bool, account: _Account) -> pa.Array:
    """The cells of a column as text, null where they have no value."""
    text = pa.chunked_array(cells.chunks, pa.large_string()).combine_chunks()
    kinds = np.frombuffer(bytes(cells.kinds), dtype=np.uint8)
    if len(kinds) == 0 or (kinds == Kind.TEXT).all() or (kinds == Kind.FLAG).all():
        return text
    numeric = kinds <= Kind.DURATION
    numbers = _floats(text, numeric)
    kinds = np.where(numeric & np.isnan(numbers), Kind.FAULT, kinds)
    serials = np.where(kinds == Kind.NUMBER, numbers, np.nan)
    bare = _time_serials(text, kinds, serials, role, from_1904)
    account.serials += int(bare.sum())
    is_date = (kinds == Kind.DATE) | bare
    limit = _LAST_SERIAL - _DAYS_BETWEEN * from_1904
    kinds = np.where(is_date & ~((numbers >= 0) & (numbers < limit)), Kind.FAULT, kinds)
    kinds = np.where((kinds == Kind.DURATION) & (np.abs(numbers) >= limit), Kind.FAULT, kinds)
    is_date &= kinds != Kind.FAULT
    written = (
        (is_date, lambda chosen: _date_texts(numbers[chosen], from_1904)),
        (kinds == Kind.DURATION, lambda chosen: _clock_texts(numbers[chosen])),
        (
            (kinds == Kind.NUMBER) & ~is_date,
            lambda chosen: _number_texts(text.filter(pa.array(chosen)), numbers[chosen]),
        ),
    )
    for mask, write in written:
        text = _replaced(text, mask, write)
    if is_date.any():
        text = _with_text_dates(text, kinds == Kind.TEXT, account)
    account.valueless.update(+Counter({kind: int((kinds == kind).sum()) for kind in _VALUELESS}))
    return pc.if_else(pa.array(np.isin(kinds, list(_VALUELESS))), None, text)


def _with_text_dates(text: pa.Array, is_text: BoolArray, account: _Account) -> pa.Array:
    """Dates that stand as text among true ones, in the same writing as these."""
    known = pc.or_(
        pc.match_substring_regex(text, _YEAR_FIRST), pc.match_substring_regex(text, _WITH_OFFSET)
    )
    others = is_text & ~np.asarray(known, dtype=bool)
    if not others.any():
        return text
    written = text.filter(pa.array(others))
    try:
        times = parse_times(pa.chunked_array([written]))
    except InputError:
        return text
    read = ~np.isnat(times.utc)
    if times.guesses["time format"].alternatives:
        account.text_dates = times.guesses["time format"]
    instants = pa.array(times.utc.astype("datetime64[s]")).cast(pa.large_string())
    return _replaced(text, others, lambda _: pc.if_else(pa.array(read), instants, written))


def _replaced(text: pa.Array, mask: BoolArray, write: Callable[[BoolArray], pa.Array]) -> pa.Array:
    """Texts with those under the mask written anew."""
    if not mask.any():
        return text
    new = write(mask).cast(pa.large_string())
    return pc.replace_with_mask(text, pa.array(mask), new)


def _floats(text: pa.Array, numeric: BoolArray) -> FloatArray:
    """Numbers as stored (n,), NaN in other cells and where a number is none."""
    chosen = pc.if_else(pa.array(numeric), text, None)
    try:
        numbers = chosen.cast(pa.float64())
    except pa.ArrowInvalid:
        valid = pc.match_substring_regex(chosen, _NUMBER)
        numbers = pc.if_else(valid, chosen, None).cast(pa.float64())
    return np.asarray(pc.fill_null(numbers, np.nan), dtype=np.float64)


def _time_serials(
    text: pa.Array,
    kinds: npt.NDArray[np.uint8],
    serials: FloatArray,
    role: str | None,
    from_1904: bool,
) -> BoolArray:
    """Which bare numbers of a column are dates that lost their format."""
    numbers = ~np.isnan(serials)
    first, last = (day - _DAYS_BETWEEN * from_1904 for day in _SERIALS)
    fitting = numbers & (serials >= first) & (serials < last)
    if not fitting.any() or role not in (None, "time", "date"):
        return np.zeros(len(kinds), dtype=bool)
    texts = text.filter(pa.array(kinds == Kind.TEXT))
    dated = (kinds == Kind.DATE).any() or bool(
        pc.any(pc.match_substring_regex(texts, _YEAR_FIRST)).as_py()
    )
    if dated or (role is not None and fitting.sum() == numbers.sum()):
        return fitting
    return np.zeros(len(kinds), dtype=bool)


def _date_texts(serials: FloatArray, from_1904: bool) -> pa.Array:
    """Days since the workbook's first day as dates; those within day 0 are times of day."""
    ms = np.rint(serials * _DAY_MS).astype(np.int64)
    if from_1904:
        instants = _DAYS_FROM_1904 + ms.astype("timedelta64[ms]")
    else:
        late = (serials < _LEAP_DAY_1900) * _DAY_MS
        instants = _DAYS_FROM_1900 + (ms + late).astype("timedelta64[ms]")
    if len(ms) and (ms % _DAY_MS == 0).all() and (ms > 0).all():
        return pa.array(instants.astype("datetime64[D]")).cast(pa.string())
    fine = pa.array(instants).cast(pa.string())
    whole = pa.array(instants.astype("datetime64[s]")).cast(pa.string())
    dates = pc.if_else(pa.array(ms % 1000 == 0), whole, fine)
    return pc.if_else(pa.array(ms < _DAY_MS), _clock_texts(serials), dates)


def _clock_texts(days: FloatArray) -> pa.Array:
    """Parts of a day as hours, minutes and seconds; hours run on beyond 24."""
    ms = np.rint(np.abs(days) * _DAY_MS).astype(np.int64)
    sign = np.where(days < 0, "-", "")
    return pa.array(
        [
            f"{mark}{part // 3_600_000:02d}:{part // 60_000 % 60:02d}:{part // 1000 % 60:02d}"
            + (f".{part % 1000:03d}" if part % 1000 else "")
            for mark, part in zip(sign.tolist(), ms.tolist(), strict=True)
        ],
        pa.string(),
    )


def _number_texts(text: pa.Array, numbers: FloatArray) -> pa.Array:
    """Numbers as people write them: whole ones without a point, others in their shortest form."""
    whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < _LARGEST_EXACT)
    integers = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.large_string())
    shortest = pa.array(numbers).cast(pa.large_string())
    written = pc.if_else(pa.array(whole), integers, shortest)
    return pc.if_else(pc.match_substring_regex(text, _WHOLE), text, written)
