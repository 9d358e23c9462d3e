"""Any trajectory file to one checked table: `read_trajectories`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.errors import InputError
from agg_core.readers.columns import ROLES, find_columns, position_of
from agg_core.readers.contents import read_bytes
from agg_core.readers.delimited import open_delimited
from agg_core.readers.parquet import PARQUET_MAGIC, open_frame, open_parquet
from agg_core.readers.places import as_degrees, check_place_columns, place_causes
from agg_core.readers.report import Guess, ImportReport, SetAside, printable
from agg_core.readers.source import RawRows, RawSource, show_names
from agg_core.readers.times import parse_times
from agg_core.trajectories import Trajectories

__all__ = ["FORMATS", "Choices", "Format", "column_names", "read_trajectories"]

SHOWN_LINES = 5

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_NO_ID = pa.array(["", "nan", "null", "none", "<na>", "\\n"])


@dataclass(frozen=True)
class Choices:
    """What the caller states about a text file; None means: find out."""

    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Format:
    """A kind of file: how its first bytes give it away, and how it is opened."""

    name: str
    recognises: Callable[[bytes], bool]
    open: Callable[[bytes, str, Choices], RawSource]


def _refuse(kind: str, advice: str) -> Callable[[bytes, str, Choices], RawSource]:
    def refuse(_data: bytes, name: str, _choices: Choices) -> RawSource:
        raise InputError(f"{name} is {kind}, which is not read; {advice}.")

    return refuse


def _starts(*magics: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(magics)


FORMATS: tuple[Format, ...] = (
    Format(
        "Parquet",
        lambda head: head.startswith(PARQUET_MAGIC),
        lambda data, name, _: open_parquet(data, name),
    ),
    Format(
        "zip",
        lambda head: head.startswith(b"PK\x03\x04"),
        _refuse("a zip archive or an Excel workbook", "give the table in it as CSV"),
    ),
    Format("XML", _starts(b"<"), _refuse("XML (GPX, KML or HTML)", "convert it to CSV")),
    Format("JSON", _starts(b"{", b"["), _refuse("JSON", "convert it to CSV")),
    Format(
        "delimited text",
        lambda _: True,
        lambda data, name, choices: open_delimited(
            data,
            name,
            header=choices.header,
            separator=choices.separator,
            encoding=choices.encoding,
        ),
    ),
)
"""Kinds of file in the order they are tried; delimited text takes what is left."""


def read_trajectories(
    source: str | PathLike[str] | bytes | BinaryIO | pd.DataFrame,
    *,
    columns: Mapping[str, str | int] | None = None,
    tz: str | None = None,
    where: Mapping[str, str] | None = None,
    header: bool | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    filename: str | None = None,
    time_format: str | None = None,
) -> Trajectories:
    """Read trajectories from a path, bytes, a binary file or a data frame.

    Parameters
    ----------
    columns
        Names (or zero-based positions) of the columns ``user_id``, ``time``, ``lon``, ``lat``;
        those not given are found by name or layout.
    tz
        Zone of times that carry no offset, and of the clock to show: "Asia/Tokyo", "UTC+09:00".
        A Parquet file may name its own under the metadata key "timezone".
    where
        Keep only rows whose column equals the value, as text or as a number.
    header, separator, encoding, time_format
        State what would else be guessed; see `delimited.SEPARATORS` and `times.TIME_FORMATS`.
    filename
        What messages call the file.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, or no row is left.
    """
    name = _name(source, filename)
    if isinstance(source, pd.DataFrame):
        opened = open_frame(source)
    else:
        opened = _open(read_bytes(source, name), name, Choices(header, separator, encoding))
    chosen = find_columns(opened, columns)
    conditions = _conditions(opened, where)
    rows = opened.load([*chosen.positions.values(), *conditions])
    return _assemble(
        opened,
        rows,
        chosen.positions,
        chosen.guesses,
        conditions,
        tz or opened.timezone,
        time_format,
    )


def column_names(source: bytes, *, filename: str | None = None) -> tuple[str, ...]:
    """Columns to choose from: their names, or their positions from 0 where a file names none.

    Raises
    ------
    InputError
        If the file cannot be opened.
    """
    name = _name(source, filename)
    opened = _open(read_bytes(source, name), name, Choices())
    if opened.has_header:
        return tuple(text for text in opened.names if text)
    return tuple(str(i) for i in range(len(opened.names)))


def _open(data: bytes, name: str, choices: Choices) -> RawSource:
    kind = next(kind for kind in FORMATS if kind.recognises(data[:64]))
    return kind.open(data, name, choices)


def _name(source: object, filename: str | None) -> str:
    if filename is None and isinstance(source, str | PathLike):
        filename = PurePath(source).name
    return printable(filename or getattr(source, "name", None) or "The file")


def _conditions(source: RawSource, where: Mapping[str, str] | None) -> dict[int, tuple[str, str]]:
    """Position to (column name, wanted value) of each condition."""
    found = {}
    for column, value in (where or {}).items():
        position = position_of(source, column)
        if position is None:
            raise InputError(
                f"No column is called {printable(column)!r} to select rows by; "
                f"the file has: {show_names(source)}."
            )
        found[position] = (str(column), str(value))
    return found


def _assemble(
    source: RawSource,
    rows: RawRows,
    positions: Mapping[str, int],
    column_guesses: Mapping[str, Guess],
    conditions: Mapping[int, tuple[str, str]],
    tz: str | None,
    time_format: str | None,
) -> Trajectories:
    raw = {role: rows.columns[positions[role]] for role in ROLES}
    sieve = _Sieve(rows.n_rows)
    for position, (column, value) in conditions.items():
        sieve.take(f"not {column}={value}", ~_equals(rows.columns[position], value))
    if not sieve.kept.any():
        raise InputError(
            f"No row is left: {sieve.summary(rows.set_aside)}; choose other rows or another file."
        )
    users = _as_text(raw["user_id"])
    sieve.take("missing user id", _as_mask(pc.is_in(pc.utf8_lower(users), _NO_ID)))
    sieve.take("line break in the user id", _as_mask(pc.match_substring(users, "\n")))
    times = parse_times(raw["time"], tz, time_format)
    for cause, mask in times.causes.items():
        sieve.take(cause, mask)
    lon, lat = as_degrees(raw["lon"], "longitude"), as_degrees(raw["lat"], "latitude")
    check_place_columns(lon.degrees[sieve.kept], lat.degrees[sieve.kept])
    for cause, mask in place_causes(lon, lat).items():
        sieve.take(cause, mask)
    if not sieve.kept.any():
        raise InputError(
            f"No row is left: {sieve.summary(rows.set_aside)}; choose other rows or another file."
        )

    encoded = users.filter(pa.array(sieve.kept)).combine_chunks().dictionary_encode()
    codes = np.full(rows.n_rows, -1, dtype=np.int64)
    codes[sieve.kept] = encoded.indices.to_numpy()
    order = np.flatnonzero(sieve.kept)
    order = order[np.lexsort((times.utc[order], codes[order]))]
    again = (codes[order][1:] == codes[order][:-1]) & (
        times.utc[order][1:] == times.utc[order][:-1]
    )
    duplicate = np.zeros(rows.n_rows, dtype=bool)
    duplicate[order[:-1][again]] = True
    sieve.take("duplicate time", duplicate)
    order = order[np.append(~again, True)]

    table = pd.DataFrame(
        {
            "user_id": encoded.dictionary.take(pa.array(codes[order])).to_pandas().astype("str"),
            "time": pd.DatetimeIndex(times.utc[order]).tz_localize("UTC"),
            "lon": lon.degrees[order],
            "lat": lat.degrees[order],
        }
    )
    set_aside = {**rows.set_aside, **sieve.account(rows, raw)}
    guesses = {**column_guesses, **times.guesses, **lon.guesses, **source.guesses}
    fixes = np.bincount(codes[order])
    report = ImportReport(
        rows_read=rows.n_rows + sum(aside.count for aside in rows.set_aside.values()),
        rows_kept=len(table),
        individuals=len(fixes),
        fixes_per_individual=(int(fixes.min()), float(np.median(fixes)), int(fixes.max())),
        first_utc=table["time"].min(),
        last_utc=table["time"].max(),
        bbox=(
            *(float(table["lon"].min()), float(table["lat"].min())),
            *(float(table["lon"].max()), float(table["lat"].max())),
        ),
        timezone=times.timezone,
        set_aside=set_aside,
        guesses=guesses,
    )
    return Trajectories(table, report, times.timezone)


class _Sieve:
    """Which rows are kept; a row goes out once, for the first cause that takes it."""

    def __init__(self, n_rows: int) -> None:
        self.kept: BoolArray = np.ones(n_rows, dtype=bool)
        self.taken: dict[str, IntArray] = {}

    def take(self, cause: str, mask: BoolArray) -> None:
        fresh = np.flatnonzero(mask & self.kept)
        if len(fresh):
            self.taken[cause] = fresh
            self.kept[fresh] = False

    def summary(self, before: Mapping[str, SetAside]) -> str:
        counts = {cause: aside.count for cause, aside in before.items()}
        counts |= {cause: len(rows) for cause, rows in self.taken.items()}
        return ", ".join(f"{cause} ({count:,})" for cause, count in counts.items()) or "no rows"

    def account(self, rows: RawRows, raw: Mapping[str, pa.ChunkedArray]) -> dict[str, SetAside]:
        found = {}
        for cause, taken in self.taken.items():
            lines = rows.line_numbers(taken[:SHOWN_LINES])
            example = ", ".join(
                f"{role}={_shown(column, int(taken[0]))}" for role, column in raw.items()
            )
            found[printable(cause)] = SetAside(len(taken), tuple(int(i) for i in lines), example)
        return found


def _shown(column: pa.ChunkedArray, row: int) -> str:
    try:
        value = column[row].as_py()
    except (OverflowError, ValueError):  # a stamp beyond what Python can write
        return "out of range"
    return printable("" if value is None else value, 40)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as trimmed text; whole numbers of a float column lose their ".0", null is empty."""
    if pa.types.is_floating(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        text = column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise InputError(f"A column holds {column.type}; give text or numbers.") from error
    return pc.fill_null(pc.utf8_trim_whitespace(text), "")


def _equals(column: pa.ChunkedArray, value: str) -> BoolArray:
    text = _as_text(column)
    same = _as_mask(pc.equal(text, value.strip()))
    try:
        number = float(value)
    except ValueError:
        return same
    numbers = pd.to_numeric(pd.Series(text.to_pandas(), dtype="str"), errors="coerce")
    equal: BoolArray = np.asarray(numbers == number, dtype=bool)
    return same | equal


def _as_mask(values: pa.ChunkedArray) -> BoolArray:
    mask: BoolArray = np.array(pc.fill_null(values, False).to_numpy(), dtype=bool)
    return mask
