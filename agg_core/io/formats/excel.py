"""Workbooks: the sheet, header row and columns of the table found, cells as text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install
from agg_core.base.report import Guess, printable
from agg_core.io.apart import CONTENT, guess_of, reading_apart
from agg_core.io.archives import ZIP_MAGIC, names_in_head
from agg_core.io.contents import Data
from agg_core.io.formats.workbooks import (
    ODS,
    OLE_MAGIC,
    Cells,
    Kind,
    Merge,
    Sheet,
    Workbook,
    kind_of,
    open_workbook,
)
from agg_core.io.guess.columns import ROLES, is_number, plain_name
from agg_core.io.guess.times import looks_like_time, parse_times
from agg_core.io.source import RawRows, RawSource

__all__ = ["leave", "open_excel", "recognises_excel"]

SAMPLE_ROWS = 50
HEAD_ROWS = 250
HEAD_CELLS = 200_000
HEADER_WITHIN = 50
ROWS_BELOW = 20
CELLS_LOOKED_AT = 200
ROLES_OF_A_HEADER = 2
MAX_FILLED = 4 << 20

READER, RESULT = "agg_core.io.formats.excel:leave", "table.arrow"
LINES = "lines"

_WORKBOOK_PARTS = ("xl/", "[content_types].xml", "_rels/", "docprops/", "customxml/")
_DAY_MS = 86_400_000
_FIRST_DAY = {False: -25_569, True: -24_107}
"""1899-12-30 and 1904-01-01 in days since 1970."""
_DAYS_BETWEEN = 1462
_LAST_SERIAL = 2_958_466
"""The day after 9999-12-31, counted from 1900."""
_SERIALS = (18_264, 73_051)
"""The first days of 1950 and 2100, counted from 1900."""
_FIRST_UNIX_TIME = 1e8
"""Numbers from here on may be seconds since 1970."""
_YEAR_FIRST = r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[T ]"
_WITH_OFFSET = r"(?i)(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$"

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_VALUELESS = {
    Kind.FAULT: "with an error such as #N/A",
    Kind.FLAG: "TRUE or FALSE",
    Kind.UNCALCULATED: "with a formula that was never calculated",
}


class _Cell(NamedTuple):
    kind: Kind
    text: str


@dataclass(frozen=True)
class _Row:
    """A row of the sheet by its number, and its cells that are not blank by column."""

    number: int
    cells: Mapping[int, _Cell]


@dataclass(frozen=True)
class _Table:
    """Where a sheet's table lies: its columns from 1, names, header row (0: none), first row."""

    sheet: Sheet
    header_row: int
    first_row: int
    columns: tuple[int, ...]
    names: tuple[str, ...]
    n_parts: int


@dataclass
class _Account:
    """What happened to the cells of a column, or of several."""

    valueless: Counter[Kind] = field(default_factory=Counter)
    serials: int = 0
    text_dates: Guess | None = None

    def told(self) -> dict[str, Any]:
        """In words of JSON."""
        dates = self.text_dates and asdict(self.text_dates)
        return {"valueless": dict(self.valueless), "serials": self.serials, "text_dates": dates}

    @classmethod
    def of_told(cls, told: Mapping[str, Any]) -> _Account:
        """What `told` made."""
        valueless = Counter({Kind(int(kind)): n for kind, n in told["valueless"].items()})
        dates = told["text_dates"] and guess_of(told["text_dates"])
        return cls(valueless, told["serials"], dates)

    @classmethod
    def of_all(cls, accounts: Iterable[_Account]) -> _Account:
        """The account of several columns."""
        whole = cls()
        for other in accounts:
            whole.valueless.update(other.valueless)
            whole.serials += other.serials
            whole.text_dates = whole.text_dates or other.text_dates
        return whole

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


def recognises_excel(head: bytes) -> bool:
    """Whether a file is a workbook (of any kind, also those that are refused by name)."""
    if head.startswith(OLE_MAGIC):
        return True
    if not head.startswith(ZIP_MAGIC):
        return False
    return ODS in head[:200] or any(
        name.lower().startswith(_WORKBOOK_PARTS) for name in names_in_head(head)
    )


def open_excel(
    data: Data, name: str, *, sheet: str | None = None, header_row: int | None = None
) -> RawSource:
    """Open a workbook's table; all cells become text, times as YYYY-MM-DD HH:MM:SS.

    ``sheet`` is a title or a position from 1; otherwise the sheet is taken whose header tells most
    of who, when and where, and of those the one with the most rows. ``header_row`` is a row number
    of the sheet, 0 for none. A merged block of cells holds its value in every row (.xlsx and
    .xls). Serial numbers among the dates of a column, or under a name that spells time, become
    dates. Cells without a value (errors, single TRUE or FALSE, formulas without result) are null;
    once columns are loaded, the source's guess "cells without a value" counts them; errors and
    formulas without result cannot be told from empty cells where the workbook is no .xlsx.

    The workbook is read by a process of its own, unless this one has limits already.

    Raises
    ------
    InputError
        If it is another kind of file, damaged, protected, has no such sheet, no table, or needs
        more memory or time than a file of its size may take.
    """
    kind_of(data, name)
    if find_spec("python_calamine") is None:
        raise InputError(str(how_to_install("python_calamine")), code="package-missing")
    with reading_apart(READER, data, name, sheet=sheet, header_row=header_row) as (folder, about):
        table = pa.ipc.open_file(pa.memory_map(str(folder / RESULT))).read_all()
    guesses = {what: guess_of(told) for what, told in about["guesses"].items()}
    accounts = tuple(map(_Account.of_told, about["accounts"]))
    asked: set[int] = set()
    lines = table[LINES].to_numpy()

    def load(positions: Sequence[int]) -> RawRows:
        asked.update(positions)
        guesses.update(_Account.of_all(accounts[at] for at in sorted(asked)).guesses())
        columns = {at: table[str(at)] for at in positions}
        return RawRows(columns, len(lines), lambda rows: lines[rows])

    head = table.drop_columns(LINES).slice(0, SAMPLE_ROWS)
    sample = [
        [text or "" for text in row]
        for row in zip(*(column.to_pylist() for column in head.columns), strict=True)
    ]
    return RawSource(tuple(about["names"]), about["header_row"] > 0, sample, load, guesses)


def leave(folder: Path, name: str, *, sheet: str | None, header_row: int | None) -> dict[str, Any]:
    """What the process does: leave the table in the folder as text, and tell what was found.

    Columns are named by position; `LINES` are the numbers of the rows.
    """
    workbook = open_workbook((folder / CONTENT).read_bytes(), name, folder)
    table, others = _chosen(workbook, sheet, header_row)
    texts, accounts = _texts(table, workbook)
    with pa.ipc.new_file(str(folder / RESULT), texts.schema) as writer:
        writer.write_table(texts)
    guesses = _guesses(workbook, table, () if sheet else others)
    return {
        "header_row": table.header_row,
        "names": table.names,
        "guesses": {what: asdict(guess) for what, guess in guesses.items()},
        "accounts": [account.told() for account in accounts],
    }


def _chosen(
    workbook: Workbook, sheet: str | None, header_row: int | None
) -> tuple[_Table, list[str]]:
    """The table that is taken, and the titles of other sheets that hold one."""
    titles = workbook.titles if sheet is None else (_named_sheet(workbook, sheet),)
    table, others = None, []
    for title in titles:
        found = _find_table(workbook.sheet(title), header_row)
        if found is None:
            continue
        others.append(title)
        if table is None or _rank(found) > _rank(table):
            table = found
    if table is None:
        where = f"sheet {printable(titles[0])}" if sheet else "any of its sheets"
        under = f" under row {header_row}" if header_row else ""
        raise InputError(
            f"{workbook.name} holds no table of two or more columns in {where}{under}; choose "
            "another file.",
            code="no-table-found",
        )
    others.remove(table.sheet.title)
    return table, others


def _rank(table: _Table) -> tuple[int, int]:
    return table.n_parts, len(table.sheet.lines)


def _named_sheet(workbook: Workbook, wanted: str) -> str:
    titles = workbook.titles
    plain = [title.strip().casefold() for title in titles]
    if wanted in titles:
        return wanted
    if wanted.strip().casefold() in plain:
        return titles[plain.index(wanted.strip().casefold())]
    position = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 else 0
    if 1 <= position <= len(titles):
        return titles[position - 1]
    shown = ", ".join(printable(title, 40) for title in titles[:20])
    raise InputError(
        f"No sheet of {workbook.name} is called {printable(wanted)!r}; it has: {shown}.",
        "--sheet NAME",
        code="unknown-sheet",
    )


def _guesses(workbook: Workbook, table: _Table, others: Sequence[str]) -> dict[str, Guess]:
    shown = tuple(printable(title) for title in others[:20])
    row = f"row {table.header_row}" if table.header_row else "no header"
    found = {
        "sheet": Guess(printable(table.sheet.title), shown, option="sheet"),
        "header row": Guess(row),
    }
    if workbook.from_1904:
        found["date system"] = Guess("1904", note="the workbook counts days from 1904")
    return found


# Finding the table


def _find_table(sheet: Sheet, header_row: int | None) -> _Table | None:
    """The table of a sheet, None if it has none."""
    rows = _head_rows(sheet)
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
        first_row=below[0].number,
        columns=tuple(columns),
        names=tuple(named.get(column, "") for column in columns),
        n_parts=_parts_named(named.values()),
    )


def _head_rows(sheet: Sheet) -> list[_Row]:
    """The first rows that are not blank, with merged cells filled in."""
    n = min(HEAD_ROWS, len(sheet.lines), 2 + HEAD_CELLS // max(1, len(sheet.columns)))
    rows: list[tuple[int, dict[int, _Cell]]] = [(int(line), {}) for line in sheet.lines[:n]]
    for column, cells in enumerate(sheet.columns, sheet.first_column):
        texts = cells.texts.slice(0, n).to_pylist()
        for i in np.flatnonzero(cells.kinds[:n]).tolist():
            kind = Kind(cells.kinds[i])
            rows[i][1][column] = _Cell(kind, texts[i] or _name_of(kind, cells.numbers[i]))
    _fill_head(rows, sheet.merges)
    return [_Row(number, cells) for number, cells in rows]


def _name_of(kind: Kind, number: float) -> str:
    """A date or time as the name of a column."""
    write = {Kind.DATE: _date_texts, Kind.DURATION: _clock_texts}
    return str(write[kind](np.array([number]))[0]) if kind in write else ""


def _fill_head(rows: Sequence[tuple[int, dict[int, _Cell]]], merges: Sequence[Merge]) -> None:
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


def _texts(table: _Table, workbook: Workbook) -> tuple[pa.Table, tuple[_Account, ...]]:
    """The cells of a table as text, with the numbers of its rows, and what happened to them."""
    sheet = table.sheet
    start = int(np.searchsorted(sheet.lines, table.first_row))
    lines = sheet.lines[start:]
    blocks: dict[int, list[Merge]] = {}
    for merge in sheet.merges:
        blocks.setdefault(merge.first_column, []).append(merge)
    columns, accounts, filled = {LINES: pa.array(lines)}, [], 0
    for position, (column, name) in enumerate(zip(table.columns, table.names, strict=True)):
        accounts.append(_Account())
        cells = sheet.columns[column - sheet.first_column].between(start)
        text = _as_text(cells, _role_of(name), workbook.from_1904, accounts[-1])
        if column in blocks:
            index = np.where(cells.kinds > 0, np.arange(len(lines)), -1)
            filled += _fill_merged(index, lines, blocks[column])
            text = text.take(pa.array(index, mask=index < 0))
        if filled >= MAX_FILLED:
            raise InputError(
                f"{workbook.name} merges too many cells; unmerge them.", code="too-many-merges"
            )
        columns[str(position)] = text
    return pa.table(columns), tuple(accounts)


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


def _as_text(cells: Cells, role: str | None, from_1904: bool, account: _Account) -> pa.Array:
    """The cells of a column as text, null where they have no value."""
    text, kinds, numbers = cells.texts, cells.kinds, cells.numbers
    bare = _time_serials(text, kinds, numbers, role, from_1904)
    present = set(np.unique(kinds).tolist()) - {Kind.BLANK}
    if present == {Kind.FLAG} or (present <= {Kind.TEXT, Kind.NUMBER} and not bare.any()):
        return text
    account.serials += int(bare.sum())
    kinds = np.where(_are_no_dates(kinds, numbers), Kind.FAULT, kinds)
    numbers = np.where(bare, np.rint((numbers + _FIRST_DAY[from_1904]) * _DAY_MS), numbers)
    is_date = (kinds == Kind.DATE) | bare
    written: tuple[tuple[BoolArray, Callable[[FloatArray], pa.Array]], ...] = (
        (is_date, _date_texts),
        (kinds == Kind.DURATION, _clock_texts),
    )
    for mask, write in written:
        if mask.any():
            text = pc.replace_with_mask(
                text, pa.array(mask), write(numbers[mask]).cast(pa.large_string())
            )
    if is_date.any():
        text = _with_text_dates(text, kinds == Kind.TEXT, account)
    account.valueless.update(+Counter({kind: int((kinds == kind).sum()) for kind in _VALUELESS}))
    return pc.if_else(pa.array(np.isin(kinds, list(_VALUELESS))), None, text)


def _are_no_dates(kinds: npt.NDArray[np.uint8], numbers: FloatArray) -> BoolArray:
    """Which cells of a column of dates lie beyond the calendar.

    calamine hands over midnight for days before the first, a number for those after the last.
    """
    dates = numbers[kinds == Kind.DATE]
    if not len(dates) or dates.min() < 0:
        return np.zeros(len(kinds), dtype=bool)
    early = (kinds == Kind.DURATION) & (numbers == 0)
    late = (kinds == Kind.NUMBER) & (numbers >= _LAST_SERIAL - _DAYS_BETWEEN)
    return np.asarray(early | (late & (numbers < _FIRST_UNIX_TIME)))


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
    return pc.replace_with_mask(
        text, pa.array(others), pc.if_else(pa.array(read), instants, written)
    )


def _time_serials(
    text: pa.Array,
    kinds: npt.NDArray[np.uint8],
    numbers: FloatArray,
    role: str | None,
    from_1904: bool,
) -> BoolArray:
    """Which bare numbers of a column are dates that lost their format."""
    numeric = kinds == Kind.NUMBER
    first, last = (day - _DAYS_BETWEEN * from_1904 for day in _SERIALS)
    fitting: BoolArray = numeric & (numbers >= first) & (numbers < last)
    if not fitting.any() or role not in (None, "time", "date"):
        return np.zeros(len(kinds), dtype=bool)
    texts = text.filter(pa.array(kinds == Kind.TEXT))
    dated = (kinds == Kind.DATE).any() or bool(
        pc.any(pc.match_substring_regex(texts, _YEAR_FIRST)).as_py()
    )
    if dated or (role is not None and fitting.sum() == numeric.sum()):
        return fitting
    return np.zeros(len(kinds), dtype=bool)


def _date_texts(ms: FloatArray) -> pa.Array:
    """Milliseconds since 1970 as dates, with times unless all are midnight."""
    instants = ms.astype(np.int64).astype("datetime64[ms]")
    if (ms % _DAY_MS == 0).all():
        return pa.array(instants.astype("datetime64[D]")).cast(pa.string())
    fine = pa.array(instants).cast(pa.string())
    whole = pa.array(instants.astype("datetime64[s]")).cast(pa.string())
    return pc.if_else(pa.array(ms % 1000 == 0), whole, fine)


def _clock_texts(ms: FloatArray) -> pa.Array:
    """Milliseconds as hours, minutes and seconds; hours run on beyond 24."""
    parts = np.abs(ms).astype(np.int64)
    sign = np.where(ms < 0, "-", "")
    return pa.array(
        [
            f"{mark}{part // 3_600_000:02d}:{part // 60_000 % 60:02d}:{part // 1000 % 60:02d}"
            + (f".{part % 1000:03d}" if part % 1000 else "")
            for mark, part in zip(sign.tolist(), parts.tolist(), strict=True)
        ],
        pa.string(),
    )
