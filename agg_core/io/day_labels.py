"""Tables of days that somebody names: a date and a label, such as strike or school holiday.

A row may be of several days: from its date to the date in a column of ends, both among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import PurePath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.counts.day_types import Labels, check_labels
from agg_core.io.counts.unfolded import headed
from agg_core.io.counts.values import coded
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ColumnFinder, plain_name
from agg_core.io.guess.times import DATE_ORDERS, parse_times
from agg_core.io.known_tables import open_table
from agg_core.io.source import RawSource, show_names
from agg_core.io.texts import is_text

__all__ = ["ROLES", "read_day_labels"]

DateArray = npt.NDArray[np.datetime64]

ROLES: Mapping[str, tuple[str, ...]] = {
    "date": (
        *("date", "day", "localdate", "calendardate", "dt", "ds", "yyyymmdd", "datum", "tag"),
        *("fecha", "data", "jour", "日付", "年月日", "time", "timestamp", "datetime"),
        *("start", "startdate", "begin", "begindate", "from", "fromdate", "firstday", "first"),
        *("von", "beginn", "startdatum", "debut", "inicio", "inizio", "開始日", "開始"),
    ),
    "end": (
        *("end", "enddate", "until", "untildate", "to", "todate", "lastday", "last", "through"),
        *("bis", "ende", "enddatum", "fin", "fine", "終了日", "終了"),
    ),
    "label": (
        *("label", "daylabel", "daytype", "typeofday", "type", "kind", "category", "event"),
        *("holiday", "reason", "name", "title", "description", "art", "bezeichnung", "ferien"),
        *("feiertag", "ereignis", "tipo", "evento", "種別", "区分", "名称"),
    ),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""

MOST_DAYS = 3_660
"""Days that a row may be of: ten years."""

_ORDER_OPEN = re.compile(r"\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})(?!\d).*")
"""Dates of numbers that do not begin with a year of four digits."""
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|\d{8}|\d{4}年.*|.*\d{1,2}.*[A-Za-z]{3}.*\d{4}.*"
)


def read_day_labels(source: Source, filename: str | None = None) -> Labels:
    """Local dates, YYYY-MM-DD, with a label each, in order, of a table of any format.

    Columns are found by their names, or by what they hold where there are two; a row without a
    label is of a day like others. With a column of ends a row is of all days from its date to its
    end, or of one day where it has no end. Dates may be written in any way that can be read in one
    way alone; with dots the day comes first.

    Raises
    ------
    InputError
        If the file cannot be read, has no columns of dates and labels, holds dates that are none or
        may be read in two ways or ends before their dates, or labels that cannot be kept (see
        `agg_core.counts.day_types.check_labels`).
    """
    given = filename or (source if isinstance(source, str | PathLike) else None)
    name = "The table" if given is None else printable(PurePath(given).name)
    table = _with_names(open_table(source, name))
    at = _columns(table)
    found: list[tuple[str, str]] = []
    batches = list(table.batches(list(at.values())))
    if not batches:
        raise InputError(f"{name} has no rows; give dates and labels.", code="table-empty")
    ends = [role for role in ("date", "end") if role in at]
    # One order of day and month is that of both columns.
    columns = [rows.columns[at[role]] for role in ends for rows in batches]
    dates = _dates(pa.chunked_array([chunk for each in columns for chunk in each.chunks]), name)
    first, last = np.split(dates, 2) if len(ends) > 1 else (dates, dates)
    _check_ends(columns[len(batches) :], last, name)
    row = 0
    for rows in batches:
        labels = coded(rows.columns[at["label"]])
        texts = [" ".join(text.split()) for text in labels.texts]
        for code in labels.codes:
            if texts[code]:
                days = _days(first[row], last[row], texts[code], name)
                found += [(day, texts[code]) for day in days]
            row += 1
    if not found:
        raise InputError(f"{name} labels no day; give dates and labels.", code="table-empty")
    return check_labels(found)


def _check_ends(columns: list[pa.ChunkedArray], last: DateArray, name: str) -> None:
    """Refuse an end that is something, and no date."""
    row = 0
    for column in columns:
        ends = coded(column)
        for code in ends.codes:
            if np.isnat(last[row]) and ends.texts[code].strip():
                raise InputError(
                    f"{name} has an end {printable(ends.texts[code])!r} that is no date; write "
                    "dates as 2024-05-01.",
                    code="day-label-without-end",
                )
            row += 1


def _days(first: np.datetime64, last: np.datetime64, label: str, name: str) -> list[str]:
    """All days from the first to the last; the first alone where there is no last.

    Raises
    ------
    InputError
        If there is no first day, or the last is before it or very long after it.
    """
    if np.isnat(first):
        raise InputError(
            f"{name} has the label {printable(label)!r} without a date that can be read; write "
            "dates as 2024-05-01.",
            code="day-label-without-date",
        )
    n_days = 1 if np.isnat(last) else int((last - first) / np.timedelta64(1, "D")) + 1
    if not 1 <= n_days <= MOST_DAYS:
        raise InputError(
            f"{name} has the label {printable(label)!r} from {first} to {last}; give an end that "
            f"is not before its date, and {MOST_DAYS:,} days at most.",
            code="day-label-without-end",
        )
    return [str(day) for day in first + np.arange(n_days)]


def _with_names(table: RawSource) -> RawSource:
    """The table with its first row as names, if these are spellings that were not told as such."""
    first = table.sample[0] if table.sample and not table.has_header else ()
    known = {spelling for spellings in ROLES.values() for spelling in spellings}
    return headed(table) if any(plain_name(text) in known for text in first) else table


def _columns(table: RawSource) -> dict[str, int]:
    """Position of the columns of dates and of labels.

    Raises
    ------
    InputError
        If one is not found.
    """
    finder = ColumnFinder(table, ROLES)
    finder.look_for("date", "end", "label")
    if "date" not in finder.positions:
        dated = [at for at in finder.rest() if _are_dates(finder.values(at))]
        if len(dated) == 1:
            finder.take("date", dated[0])
    rest = finder.rest()
    if "label" not in finder.positions and "date" in finder.positions and len(rest) == 1:
        finder.take("label", rest[0])
    missing = [role for role in ("date", "label") if role not in finder.positions]
    if missing:
        raise InputError(
            f"A table of labelled days has columns date and label, and no {' or '.join(missing)} "
            f"is found among: {show_names(table)}; name them so.",
            code="column-not-found",
        )
    return finder.positions


def _are_dates(values: list[str]) -> bool:
    return bool(values) and all(_ORDER_OPEN.fullmatch(v) or _DATE.fullmatch(v) for v in values)


def _dates(column: pa.ChunkedArray, name: str) -> DateArray:
    """Local dates (n,), NaT where there is none.

    Raises
    ------
    InputError
        If they may be read in two ways.
    """
    texts = [text for text in coded(column).texts if text.strip()] if is_text(column) else []
    if not any(_ORDER_OPEN.fullmatch(text.strip()) for text in texts):
        return _read(column, None)
    if all("." in text for text in texts):
        return _read(column, DATE_ORDERS["day"])
    several = [_read(column, order) for order in DATE_ORDERS.values()]
    most = max(int((~np.isnat(dates)).sum()) for dates in several)
    several = [dates for dates in several if (~np.isnat(dates)).sum() == most]
    if any(not np.array_equal(dates, several[0], equal_nan=True) for dates in several):
        raise InputError(
            f"{name} has dates such as {printable(texts[0])!r}, all of which can be read with the "
            "day first and with the month first; write them as 2024-05-01.",
            code="ambiguous-dates",
        )
    return several[0]


def _read(column: pa.ChunkedArray, order: str | None) -> DateArray:
    read = parse_times(column, None, order)
    local = to_local(read.utc, read.timezone)
    return np.asarray(local.astype("datetime64[D]"))
