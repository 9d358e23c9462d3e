"""Tables of counters: how many people passed a place, which way, and when.

They are read to be held against the volumes of known lines, so that the names of these, their two
directions and the times of day of the flows are known: rows of others are set aside, with their
number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import PurePath

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.account import Account
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.counts.values import coded
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ColumnFinder
from agg_core.io.known_tables import (
    DAY_SECONDS,
    SHOWN_NAMES,
    CountedRows,
    DayTimes,
    counted_rows,
    open_table,
    seconds_of,
)
from agg_core.io.source import RawSource, show_names

__all__ = ["ROLES", "CounterTable", "KnownLines", "read_counters"]

IntArray = npt.NDArray[np.int64]

ROLES: Mapping[str, tuple[str, ...]] = {
    "line": (
        *("line", "linename", "screenline", "cordon", "screenlinename", "cordonname", "lineid"),
        *("counter", "countername", "station", "stationname", "site", "sitename", "place", "name"),
        *("location", "link", "gate", "地点", "観測地点"),
    ),
    "direction": (
        *("direction", "dir", "way", "bound", "heading", "directionname", "directionoftravel"),
        *("方向", "上下", "進行方向"),
    ),
    "date": ("date", "day", "観測日", "日付", "年月日", "yyyymmdd"),
    "time": (
        *("time", "timeofday", "slot", "timeslot", "hour", "hourofday", "localtime", "hhmm"),
        *("clock", "timestamp", "datetime", "start", "starttime", "begin", "from", "時刻"),
        *("時間帯", "日時"),
    ),
    "count": tuple(COUNT_ROLES["count"]),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""

NO_LINE, NO_DIRECTION, NO_TIME = "no such line", "no such direction", "no such time of day"
_SPOKEN = {
    "line": "line (or counter)", "direction": "direction", "time": "time", "count": "count",
}  # fmt: skip

MOST_SLOT_MINUTES = 60.0
"""How far apart two times may be that are taken for two slots, one after the other."""

_FIRST, _SECOND = ("forward", "forwards", "1"), ("backward", "backwards", "2")
_IN, _OUT = ("in", "inbound", "inward", "inwards"), ("out", "outbound", "outward", "outwards")
_WINDS = ("n", "ne", "e", "se", "s", "sw", "w", "nw")
_PARTS = {"north": "n", "south": "s", "east": "e", "west": "w"}


@dataclass(frozen=True)
class KnownLines:
    """What a table of counters may name.

    ``directions`` are the two of each line, by its name; ``times`` are labels of times of day of
    the flows, ``minutes`` is how long each lasts, None where that is not known, and ``timezone``
    is that of their clock. ``slot_minutes`` is how long a count lasts, None to tell it by times.
    """

    directions: Mapping[str, tuple[str, str]]
    times: Sequence[str]
    minutes: float | None = None
    timezone: str = "UTC"
    slot_minutes: float | None = None


@dataclass(frozen=True)
class CounterTable:
    """Counted volumes: columns line, direction, time (a label) and count, in people per hour.

    People per step where the length of a step is not known. ``set_aside`` counts rows of the file
    by why they were left out, ``slot_minutes`` is how long each row was taken to last, and
    ``n_days`` how many days have been averaged.
    """

    counters: pd.DataFrame
    set_aside: Mapping[str, int] = field(default_factory=dict)
    slot_minutes: float | None = None
    n_days: int = 1

    @property
    def words(self) -> str:
        """How the counts were taken, for a reader."""
        lasts = "a step" if self.slot_minutes is None else f"{self.slot_minutes:g} minutes"
        days = f", and the mean of {self.n_days:,} days" if self.n_days > 1 else ""
        return f"Each count of the counters was taken for {lasts}{days}."


def read_counters(source: Source, known: KnownLines, filename: str | None = None) -> CounterTable:
    """Read what passed at counters, for `examine.Asked`; several of a line and way are summed.

    A count is what passed in the slot that begins at its time: a label of the flows, a clock time,
    or a moment on the local clock, of which days are averaged, as they are over a column of dates.
    A slot lasts as ``known`` says, else as long as the nearest two times of a day are apart, if
    that is an hour or less, else an hour, as traffic is counted, or a step of the flows if that is
    longer. A time of the flows has the mean
    over slots that begin within it, made hourly; a slot longer than that stands for the time that
    it begins in. A label that is no clock time, as the whole day, is taken to last 24 hours.

    Directions are those of the lines, or forward and backward, in and out, or winds as words or
    initials, of which each counts for the direction that it is nearer to.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, or no row names a known line or is left.
    """
    given = filename or (source if isinstance(source, str | PathLike) else None)
    name = "The table" if given is None else printable(PurePath(given).name)
    return _Reader(open_table(source, name), known, name).table()


class _Reader:
    """Reads one table, batch by batch."""

    def __init__(self, source: RawSource, known: KnownLines, name: str) -> None:
        if known.slot_minutes is not None and not known.slot_minutes > 0:
            raise InputError(
                f"A count was to last {known.slot_minutes:g} minutes; give a number above 0.",
                code="value-out-of-range",
            )
        self._source, self._known, self._name = source, known, name
        self._at = _columns(source)
        self._lines, self._directions = list(known.directions), list(known.directions.values())
        self._numbers: dict[str, int] = {}
        for number, label in reversed(list(enumerate(self._lines))):
            for spelt in (_folded(label), label):
                self._numbers[spelt] = number
        self._account = Account()
        self._named = False
        times = DayTimes.of(source, self._at["time"], known)
        if times is None:
            raise InputError(
                f"{name} has dates and no times of day, and these flows are of "
                f"{_few(known.times)}; give the time at which each count began.",
                code="times-missing",
            )
        self._times = times

    def table(self) -> CounterTable:
        """Volumes by line, direction and time."""
        parts = [self._rows(batch) for batch in counted_rows(self._source, self._at, self._account)]
        rows = pd.concat(parts, ignore_index=True)
        if rows.empty and not self._named:
            raise InputError(
                f"{self._name} names none of the lines, which are called {_few(self._lines)}; "
                "name them so in its column line.",
                code="unknown-lines",
            )
        self._account.need_rows(len(rows))
        slot = self._slot_minutes(rows)
        keys = ["line", "way", "time"]
        slots = rows[[*keys, "day", "start"]].drop_duplicates().groupby(keys).size()
        volumes = rows.groupby(keys)["count"].sum() / slots
        table = volumes.rename("count").reset_index()
        clock = np.array([seconds_of(time) is not None for time in self._known.times])
        lasts = np.full(len(table), DAY_SECONDS / 60.0)
        if slot is not None:
            lasts[clock[table["time"]]] = slot
        per_hour = 1.0 if self._known.minutes is None else 60.0 / lasts
        counters = pd.DataFrame({
            "line": [self._lines[number] for number in table["line"]],
            "direction": [
                self._directions[line][way]
                for line, way in zip(table["line"], table["way"], strict=True)
            ],
            "time": [self._known.times[number] for number in table["time"]],
            "count": table["count"] * per_hour,
        })  # fmt: skip
        aside = {cause: found.count for cause, found in self._account.result().items()}
        return CounterTable(counters, aside, slot, max(rows["day"].nunique(), 1))

    def _rows(self, batch: CountedRows) -> pd.DataFrame:
        """Line, way, time, day, start and count of the rows of a batch that can be used."""
        rows, sieve = batch.rows, batch.sieve
        line = self._line_of(rows.columns[self._at["line"]])
        self._named = self._named or bool((line >= 0).any())
        sieve.take(NO_LINE, line < 0)
        way = self._way_of(line, rows.columns[self._at["direction"]])
        sieve.take(NO_DIRECTION, way < 0)
        times = self._times.read_fully(rows.columns[self._at["time"]])
        sieve.take(NO_TIME, times.number < 0)
        day = times.day.astype(str)
        if "date" in self._at:
            dates = coded(rows.columns[self._at["date"]])
            day = np.array(dates.texts, dtype=str)[dates.codes]
        kept = sieve.kept
        return pd.DataFrame({
            "line": line[kept], "way": way[kept], "time": times.number[kept], "day": day[kept],
            "start": times.seconds[kept], "count": batch.counts[kept],
        })  # fmt: skip

    def _line_of(self, column: pa.ChunkedArray) -> IntArray:
        found = coded(column)
        numbers = [
            self._numbers.get(text, self._numbers.get(_folded(text), -1)) for text in found.texts
        ]
        return np.array(numbers, dtype=np.int64)[found.codes]

    def _way_of(self, line: IntArray, column: pa.ChunkedArray) -> IntArray:
        """0 or 1, for the first or second direction of the line of each row; -1 for none."""
        found = coded(column)
        pairs = line * len(found.texts) + found.codes
        of = np.full(len(line), -1, dtype=np.int64)
        known = np.flatnonzero(line >= 0)
        each, at = np.unique(pairs[known], return_inverse=True)
        ways = [
            _way(found.texts[pair % len(found.texts)], self._directions[pair // len(found.texts)])
            for pair in each.tolist()
        ]
        of[known] = np.array(ways, dtype=np.int64)[at]
        return of

    def _slot_minutes(self, rows: pd.DataFrame) -> float | None:
        """How long a count lasts: as is said, or by how far apart the nearest two times are."""
        if self._known.slot_minutes is not None:
            return self._known.slot_minutes
        starts = np.unique(rows["start"].to_numpy(np.int64))
        apart = np.diff(starts[starts >= 0]) / 60.0
        near = apart[apart <= MOST_SLOT_MINUTES]
        if near.size or self._known.minutes is None:
            return float(near.min()) if near.size else None
        return max(self._known.minutes, MOST_SLOT_MINUTES)


def _columns(source: RawSource) -> dict[str, int]:
    """Position of the column of each role.

    Raises
    ------
    InputError
        If one has none; only dates may be missing.
    """
    found = ColumnFinder(source, ROLES)
    found.look_for("line", "direction", "time", "count", "date")
    missing = [spoken for role, spoken in _SPOKEN.items() if role not in found.positions]
    if missing:
        raise InputError(
            f"A table of counters has columns line, direction, time and count, and no "
            f"{' or '.join(missing)} is found among: {show_names(source)}; name them so.",
            code="column-not-found",
        )
    return found.positions


def _folded(text: str) -> str:
    """A name without differences of case, width and blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _way(text: str, directions: tuple[str, str]) -> int:
    """Which of two directions a text names, 0 or 1; -1 for none."""
    asked, known = _folded(text), [_folded(name) for name in directions]
    if asked in known:
        return known.index(asked)
    if asked in (*_FIRST, *_SECOND):
        return int(asked in _SECOND)
    for words in (_IN, _OUT):
        if asked in words:
            return next((number for number, name in enumerate(known) if name in words), -1)
    return _nearer(_wind(asked), [_wind(name) for name in known])


def _wind(text: str) -> int | None:
    """Eighths of a turn from north, clockwise, of words such as NE or north-eastbound."""
    word = re.sub(r"[^a-z]", "", text).removeprefix("to").removesuffix("bound")
    for name, initial in _PARTS.items():
        word = word.replace(name, initial)
    word = word.removesuffix("b") if len(word) > 1 else word
    return _WINDS.index(word) if word in _WINDS else None


def _nearer(asked: int | None, known: Sequence[int | None]) -> int:
    if asked is None or None in known:
        return -1
    apart = [min((asked - wind) % 8, (wind - asked) % 8) for wind in known if wind is not None]
    return -1 if apart[0] == apart[1] else int(np.argmin(apart))


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name, 40) for name in names[:SHOWN_NAMES])
    return shown + (", …" if len(names) > SHOWN_NAMES else "")
