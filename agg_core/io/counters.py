"""Tables of counters: how many people passed a place, which way, and when.

They are read to be held against the volumes of known lines, so that the names of these, their two
directions and the times of day of the flows are known: rows of others are set aside, with their
number. A counter that has a place instead of a line's name stands at the line that is near it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import PurePath
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.account import Account
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.counts.values import coded
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ROLES as PLACE_ROLES
from agg_core.io.guess.columns import ColumnFinder, number_of
from agg_core.io.guess.times import TimeReader
from agg_core.io.known_tables import (
    DAY_SECONDS,
    NO_DAY,
    SHOWN_NAMES,
    CountedRows,
    DayTimes,
    counted_rows,
    open_table,
    seconds_of,
)
from agg_core.io.source import RawSource, show_names
from agg_core.io.texts import plain

__all__ = [
    "BOTH_WAYS",
    "ROLES",
    "CounterTable",
    "DatedCounters",
    "KnownLines",
    "LinesAtPlaces",
    "read_counters",
    "read_dated_counters",
]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

BOTH_WAYS = "both ways"
"""The direction of a count of both directions together."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "line": (
        *("line", "linename", "screenline", "cordon", "screenlinename", "cordonname", "lineid"),
        *("counter", "countername", "station", "stationname", "site", "sitename", "place", "name"),
        *("location", "link", "gate", "地点", "観測地点"),
    ),
    "direction": (
        *("direction", "dir", "way", "bound", "heading", "directionname", "directionoftravel"),
        *("bearing", "azimuth", "方向", "上下", "進行方向"),
    ),
    "lon": PLACE_ROLES["lon"],
    "lat": PLACE_ROLES["lat"],
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
NO_PLACE = "no place in degrees"
NO_DATE, PART_OF_STEP = "no date", "not counted throughout a step"
_SPOKEN = {
    "line": "line (or counter)", "lon": "lon", "lat": "lat", "direction": "direction",
    "time": "time", "count": "count",
}  # fmt: skip
_NAMED, _PLACED = ("line", "direction", "time", "count"), ("lon", "lat", "time", "count")

MOST_SLOT_MINUTES = 60.0
"""How far apart two times may be that are taken for two slots, one after the other."""

_FIRST, _SECOND = ("forward", "forwards", "1"), ("backward", "backwards", "2")
_IN, _OUT = ("in", "inbound", "inward", "inwards"), ("out", "outbound", "outward", "outwards")
_BOTH = ("both", BOTH_WAYS, "both directions", "total")
_WINDS = ("n", "ne", "e", "se", "s", "sw", "w", "nw")
_EIGHTH, _QUARTER = 45.0, 90.0
ALONG = 1.0
"""Degrees from going along a line at which nobody can say which way it is crossed."""
_WITHOUT_LINES = ", or give the lines first, by whose names counters may stand"
_PARTS = {"north": "n", "south": "s", "east": "e", "west": "w"}


class LinesAtPlaces(Protocol):
    """Which of the known lines stand at places."""

    @property
    def within_m(self) -> float:
        """Metres that a counter may be off its line."""

    def __call__(self, places: FloatArray) -> tuple[IntArray, FloatArray]:
        """Numbers (n,) of lines at places (n, 2) in degrees, -1 for none, and the bearings (n,) in
        degrees in which the first direction of each crosses it there.
        """


@dataclass(frozen=True)
class KnownLines:
    """What a table of counters may name.

    ``directions`` are the two of each line, by its name; ``times`` are labels of times of day of
    the flows, ``minutes`` is how long each lasts, None where that is not known, and ``timezone``
    is that of their clock. ``slot_minutes`` is how long a count lasts, None to tell it by times.
    ``at_places`` finds lines of counters by their place, None where they have none; ``named`` says
    whether lines have names that a table may know.
    """

    directions: Mapping[str, tuple[str, str]]
    times: Sequence[str]
    minutes: float | None = None
    timezone: str = "UTC"
    slot_minutes: float | None = None
    at_places: LinesAtPlaces | None = None
    named: bool = True


@dataclass(frozen=True)
class CounterTable:
    """Counted volumes: columns line, direction, time (a label) and count, in people per hour.

    People per step where the length of a step is not known. A count of both directions together is
    of the direction `BOTH_WAYS`. ``set_aside`` counts rows of the file
    by why they were left out, ``slot_minutes`` is how long each row was taken to last, and
    ``n_days`` how many days have been averaged. Of ``n_places`` counters that have a place and no
    line's name ``n_matched`` stand at a line.
    """

    counters: pd.DataFrame
    set_aside: Mapping[str, int] = field(default_factory=dict)
    slot_minutes: float | None = None
    n_days: int = 1
    n_places: int = 0
    n_matched: int = 0

    @property
    def words(self) -> str:
        """How the counts were taken, for a reader."""
        lasts = "a step" if self.slot_minutes is None else f"{self.slot_minutes:g} minutes"
        days = f", and the mean of {self.n_days:,} days" if self.n_days > 1 else ""
        taken = f"Each count of the counters was taken for {lasts}{days}."
        if not self.n_places:
            return taken
        n_lines = self.counters["line"].nunique()
        return (
            f"{taken} {self.n_matched:,} of {self.n_places:,} places of counters lie at a line or "
            f"border, {n_lines:,} of these in all."
        )


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

    A row with columns lon and lat that names no known line is of the line at its place. Its
    direction may also be a bearing, degrees from north on (of a bare 1 or 2 nobody knows which way
    it is), and winds and bearings count for the direction that crosses the line there in less than
    a quarter turn from them. Without a direction it is a count of both.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, no row names a known line or has a place
        at one, or none is left.
    """
    given = filename or (source if isinstance(source, str | PathLike) else None)
    name = "The table" if given is None else printable(PurePath(given).name)
    return _Reader(open_table(source, name), known, name).table()


@dataclass(frozen=True)
class DatedCounters:
    """Counts of each step of each day: columns line, direction, date, time (a number) and count.

    ``date`` is a local date, days since 1970-01-01, on which the step begins; ``count`` is of all
    people who passed in the step. ``set_aside`` counts rows by why they were left out.
    """

    counters: pd.DataFrame
    set_aside: Mapping[str, int]


def read_dated_counters(
    source: Source, known: KnownLines, filename: str | None = None
) -> DatedCounters:
    """Read what passed at counters in each step of each day; rows as in `read_counters`.

    Counts of slots that are shorter than a step are summed over it, if all of it was counted;
    those of longer slots say nothing of a step.

    Raises
    ------
    InputError
        As `read_counters`, or if there are no dates, or slots are longer than a step.
    """
    given = filename or (source if isinstance(source, str | PathLike) else None)
    name = "The table" if given is None else printable(PurePath(given).name)
    return _Reader(open_table(source, name), known, name, by_date=True).dated()


class _Reader:
    """Reads one table, batch by batch."""

    def __init__(
        self, source: RawSource, known: KnownLines, name: str, *, by_date: bool = False
    ) -> None:
        if known.slot_minutes is not None and not known.slot_minutes > 0:
            raise InputError(
                f"A count was to last {known.slot_minutes:g} minutes; give a number above 0.",
                code="value-out-of-range",
            )
        self._source, self._known, self._name = source, known, name
        self._at = _columns(source, known)
        self._lines, self._directions = list(known.directions), list(known.directions.values())
        self._numbers: dict[str, int] = {}
        for number, label in reversed(list(enumerate(self._lines))):
            for spelt in (_folded(label), label):
                self._numbers[spelt] = number
        self._account = Account()
        self._named = False
        self._places: set[tuple[float, float]] = set()
        self._matched: set[tuple[float, float]] = set()
        times = DayTimes.of(source, self._at["time"], known)
        if times is None:
            raise InputError(
                f"{name} has dates and no times of day, and these flows are of "
                f"{_few(known.times)}; give the time at which each count began.",
                code="times-missing",
            )
        self._times = times
        self._dates: TimeReader | None = None
        if by_date and "date" in self._at:
            self._dates = TimeReader(self._dates_column, known.timezone)

    def _dates_column(self) -> Iterator[pa.ChunkedArray]:
        at = self._at["date"]
        return (plain(rows.columns[at]) for rows in self._source.batches([at]))

    def dated(self) -> DatedCounters:
        """Counts by line, direction, date and time."""
        rows = self._read()
        dated = rows["date"] != NO_DAY
        if not dated.any():
            raise InputError(
                f"{self._name} has no dates, and each count has to be of a step of a day; give the "
                "date of each.",
                code="dates-missing",
            )
        aside = {NO_DATE: int((~dated).sum())} if not dated.all() else {}
        rows = rows.loc[dated]
        slot, step = self._slot_minutes(rows), self._known.minutes
        if slot is not None and step is not None and slot > step:
            raise InputError(
                f"Counts of {self._name} last {slot:g} minutes, and a step of these counts "
                f"{step:g}; give counts that are as short.",
                code="counts-too-long",
            )
        # A step may begin on the day before.
        begins = np.array([seconds_of(time) or 0 for time in self._known.times])[rows["time"]]
        date = rows["date"] - ((rows["start"] >= 0) & (rows["start"] < begins))
        rows = rows.assign(date=date)
        keys = ["line", "way", "date", "time"]
        of_step = rows.groupby(keys).agg(
            count=("count", "sum"), slots=("start", "nunique"), rows=("count", "size")
        )
        if slot is not None and step is not None:
            whole = of_step["slots"] >= round(step / slot)
            if not whole.all():
                aside[PART_OF_STEP] = int(of_step.loc[~whole, "rows"].sum())
            of_step = of_step.loc[whole]
        table = of_step.reset_index()
        counters = pd.DataFrame({
            "line": [self._lines[number] for number in table["line"]],
            "direction": [
                (*self._directions[line], BOTH_WAYS)[way]
                for line, way in zip(table["line"], table["way"], strict=True)
            ],
            "date": table["date"], "time": table["time"], "count": table["count"],
        })  # fmt: skip
        found = {cause: each.count for cause, each in self._account.result().items()}
        return DatedCounters(counters, {**found, **aside})

    def _read(self) -> pd.DataFrame:
        """All rows that can be used; refused where there are none."""
        parts = [self._rows(batch) for batch in counted_rows(self._source, self._at, self._account)]
        rows = pd.concat(parts, ignore_index=True)
        if rows.empty and self._places and not self._matched and not self._named:
            within = 0.0 if self._known.at_places is None else self._known.at_places.within_m
            raise InputError(
                f"None of {len(self._places):,} places of counters in {self._name} lies within "
                f"{within:g} m of a line or border; give degrees, other lines, or a larger "
                "distance.",
                code="counters-elsewhere",
            )
        if rows.empty and not self._named and not self._places:
            raise InputError(
                f"{self._name} names none of the lines, which are called {_few(self._lines)}; "
                "name them so in its column line.",
                code="unknown-lines",
            )
        self._account.need_rows(len(rows))
        return rows

    def table(self) -> CounterTable:
        """Volumes by line, direction and time."""
        rows = self._read()
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
                (*self._directions[line], BOTH_WAYS)[way]
                for line, way in zip(table["line"], table["way"], strict=True)
            ],
            "time": [self._known.times[number] for number in table["time"]],
            "count": table["count"] * per_hour,
        })  # fmt: skip
        aside = {cause: found.count for cause, found in self._account.result().items()}
        return CounterTable(
            counters, aside, slot, max(rows["day"].nunique(), 1), len(self._places),
            len(self._matched),
        )  # fmt: skip

    def _rows(self, batch: CountedRows) -> pd.DataFrame:
        """Line, way, time, day, start, count and date of the rows of a batch that can be used."""
        rows, sieve = batch.rows, batch.sieve
        line, way = self._lines_and_ways(batch)
        sieve.take(NO_LINE, line < 0)
        sieve.take(NO_DIRECTION, way < 0)
        times = self._times.read_fully(rows.columns[self._at["time"]])
        sieve.take(NO_TIME, times.number < 0)
        day = times.day.astype(str)
        if "date" in self._at:
            dates = coded(rows.columns[self._at["date"]])
            day = np.array(dates.texts, dtype=str)[dates.codes]
        date = times.day
        if self._dates is not None:
            utc, _ = self._dates.read(plain(rows.columns[self._at["date"]]))
            local = to_local(utc, self._known.timezone).astype("datetime64[D]")
            date = np.where(np.isnat(local), NO_DAY, local.astype(np.int64))
        kept = sieve.kept
        return pd.DataFrame({
            "line": line[kept], "way": way[kept], "time": times.number[kept], "day": day[kept],
            "start": times.seconds[kept], "count": batch.counts[kept], "date": date[kept],
        })  # fmt: skip

    def _lines_and_ways(self, batch: CountedRows) -> tuple[IntArray, IntArray]:
        """Numbers of the line and the way of each row, -1 for none; rows of no place are sieved."""
        columns, n = batch.rows.columns, batch.rows.n_rows
        line = np.full(n, -1, dtype=np.int64)
        if "line" in self._at:
            line = self._line_of(columns[self._at["line"]])
        self._named = self._named or bool((line >= 0).any())
        named, way = line >= 0, np.full(n, 2, dtype=np.int64)
        if "direction" in self._at:
            way = self._way_of(line, columns[self._at["direction"]])
        find = self._known.at_places
        if find is None or "lon" not in self._at:
            return line, way
        texts = [coded(columns[self._at[role]]) for role in ("lon", "lat")]
        places = np.column_stack([
            np.array([_degrees(text) for text in of.texts])[of.codes] for of in texts
        ])  # fmt: skip
        each, of = np.unique(places, axis=0, return_inverse=True)
        near, bearing = find(each)
        of = of.ravel()
        unknown = ~np.isfinite(places).all(axis=1)
        batch.sieve.take(NO_PLACE, ~named & unknown)
        asked = np.unique(of[~named & ~unknown])
        self._places |= set(map(tuple, each[asked].tolist()))
        self._matched |= set(map(tuple, each[asked[near[asked] >= 0]].tolist()))
        batch.sieve.take(
            f"no line or border within {find.within_m:g} m", ~named & ~unknown & (near[of] < 0)
        )
        rows = np.flatnonzero(~named & (near[of] >= 0))
        line[rows] = near[of][rows]
        way[rows] = self._ways_at(line[rows], bearing[of][rows], columns, rows)
        return line, way

    def _ways_at(
        self,
        line: IntArray,
        bearing: FloatArray,
        columns: Mapping[int, pa.ChunkedArray],
        rows: IntArray,
    ) -> IntArray:
        """The way of rows that stand at a line by their place."""
        if "direction" not in self._at:
            return np.full(len(rows), 2, dtype=np.int64)
        found = coded(columns[self._at["direction"]])
        known: dict[tuple[int, float, int], int] = {}
        ways = []
        for key in zip(line.tolist(), bearing.tolist(), found.codes[rows].tolist(), strict=True):
            if key not in known:
                known[key] = _way_at(found.texts[key[2]], self._directions[key[0]], key[1])
            ways.append(known[key])
        return np.array(ways, dtype=np.int64)

    def _line_of(self, column: pa.ChunkedArray) -> IntArray:
        found = coded(column)
        numbers = [
            self._numbers.get(text, self._numbers.get(_folded(text), -1)) for text in found.texts
        ]
        return np.array(numbers, dtype=np.int64)[found.codes]

    def _way_of(self, line: IntArray, column: pa.ChunkedArray) -> IntArray:
        """0 or 1, for the first or second direction of the line of each row, 2 for both; -1 for
        none.
        """
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


def _columns(source: RawSource, known: KnownLines) -> dict[str, int]:
    """Position of the column of each role.

    Raises
    ------
    InputError
        If one has none; of lines and places one may be missing, and dates.
    """
    found = ColumnFinder(source, ROLES)
    found.look_for("direction", "time", "count", "date")
    if known.named:
        found.look_for("line")
    if known.at_places is not None:
        found.look_for("lon", "lat")
        if not {"lon", "lat"} <= set(found.positions):
            found.drop("lon", "lat")
    by_place = "lon" in found.positions or not known.named
    missing = [
        _SPOKEN[role] for role in (_PLACED if by_place else _NAMED) if role not in found.positions
    ]
    if missing:
        needed = "lon, lat, time and count" if by_place else "line, direction, time and count"
        raise InputError(
            f"A table of counters has columns {needed}, and no {' or '.join(missing)} is found "
            f"among: {show_names(source)}; name them so{_WITHOUT_LINES * (not known.named)}.",
            code="column-not-found",
        )
    return found.positions


def _degrees(text: str) -> float:
    """A coordinate, nan where it is none."""
    number = number_of(text)
    return np.nan if number is None or not np.isfinite(number) else number


def _way_at(text: str, directions: tuple[str, str], bearing: float) -> int:
    """Which of two directions a text names at a place where the first has this bearing.

    2 stands for both, where there is no text, and -1 for none.
    """
    asked = _folded(text)
    if asked in ("", *_BOTH):
        return 2
    if asked in (*_IN, *_OUT):
        return _way(text, directions)
    wind, number = _wind(asked), number_of(asked)
    if wind is None and (number is None or asked in (*_FIRST, *_SECOND)):
        return -1
    towards = _EIGHTH * wind if wind is not None else float(number or 0.0)
    if not np.isfinite(towards):
        return -1
    off = abs((towards - bearing + 180.0) % 360.0 - 180.0)
    return -1 if abs(off - _QUARTER) < ALONG else int(off > _QUARTER)


def _folded(text: str) -> str:
    """A name without differences of case, width and blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _way(text: str, directions: tuple[str, str]) -> int:
    """Which of two directions a text names, 0 or 1; 2 for both and -1 for none."""
    asked, known = _folded(text), [_folded(name) for name in directions]
    if asked in _BOTH:
        return 2
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
