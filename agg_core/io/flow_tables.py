"""Tables of flows from one named state to another: origin, dest, count, and perhaps a time of day.

They are read to be held against what was learned, so that the names of the states and the times of
day are known: rows of others are set aside, with their number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from agg_core.base.clock import DAY, to_local
from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.account import Account, Sieve
from agg_core.io.choices import Choices
from agg_core.io.contents import read_content
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.counts.values import coded, read_counts_of
from agg_core.io.formats.omx import open_omx, recognises_omx
from agg_core.io.formats.registry import HEAD_BYTES, Source, open_content, open_source
from agg_core.io.guess.columns import ColumnFinder, plain_name
from agg_core.io.guess.times import TimeReader
from agg_core.io.layouts import ENDS, NO_LAYOUT, STATIONS
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import plain, shown_value
from agg_core.tables.counts import PUBLISHED, SUPPRESSED

__all__ = ["ROLES", "FlowTable", "KnownStates", "read_flow_table"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

ROLES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        *("originname", *STATIONS[0], "origincell", "originid", "originzone", "from", "fromcell"),
        *("fromid", "fromzone", "source", "o", "出発地", "発地"),
    ),
    "dest": (
        *("destname", "destinationname", *STATIONS[1], "destination", "destcell", "destid"),
        *("destzone", "destinationid", "destinationzone", "to", "tocell", "toid", "tozone"),
        *("target", "d", "到着地", "着地"),
    ),
    "origin_number": ("originnumber",),
    "dest_number": ("destnumber",),
    "zones": ("zones",),
    "count": (
        *("count", "flow", "flows", "trips", "movers", "moves", "移動人数", "移動人口"),
        *(name for name in COUNT_ROLES["count"] if name != "count"),
    ),
    "time": (
        *("time", "timeofday", "slot", "timeslot", "hour", "hourofday", "localtime", "hhmm"),
        *("clock", "timestamp", "datetime", *ENDS["time"][0], "departuretime", "時刻", "時間帯"),
        *("日時", "matrix"),
    ),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them.

Numbers count states from 0, of as many ``zones`` as there are, where a file does not name them.
"""

NO_CELL, NO_TIME = "no such cell", "no such time of day"
SHOWN_CELLS = 8
_SPOKEN = {"origin": "origin", "dest": "dest (destination)", "count": "count"}
_CLOCK = re.compile(r"(?:at_)?(\d{1,2})(?:[:_]?(\d{2}))?(?:[:_](\d{2}))?")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{8}")
_HOURS = ("hour", "hourofday", "hhmm", "時間帯")
"""Columns whose bare numbers are hours; elsewhere they may be those of slots, purposes or modes."""
DAY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class KnownStates:
    """What a table of flows may name.

    ``names`` are those of the cells, after which ``outside`` is one state more; ``times`` are
    labels of times of day, none of them where flows are of the whole day; ``minutes`` is how long
    each lasts, None up to the next, and ``timezone`` is that of their clock.
    """

    names: Sequence[str]
    outside: str
    times: Sequence[str] = ()
    minutes: float | None = None
    timezone: str = "UTC"


@dataclass(frozen=True)
class FlowTable:
    """Flows between states by number: columns time, origin, dest, count and rows of the file.

    ``time`` is a number among ``times``, which are empty, and it is 0, where a table has none;
    ``set_aside`` counts rows of the file by why they were left out.
    """

    flows: pd.DataFrame
    times: tuple[str, ...]
    set_aside: Mapping[str, int] = field(default_factory=dict)


def read_flow_table(source: Source, known: KnownStates) -> FlowTable:
    """Read flows between known states; rows of one time, origin and dest are summed.

    A time is one of the labels, or counts for that in which it lies: a clock time, or a moment on
    the local clock, summed over days. Rows are set aside whose count is none or negative, or whose
    ends or time are not known.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, or no row names what is known.
    """
    name = printable(PurePath(source).name if isinstance(source, str | PathLike) else "The table")
    return _Reader(_opened(source, name), known, name).table()


def _opened(source: Source, name: str) -> RawSource:
    """Any table that can be opened, and OMX, which only flows are kept in."""
    choices = Choices(layout=NO_LAYOUT)
    if isinstance(source, pd.DataFrame | Mapping) or (
        isinstance(source, str | PathLike) and Path(source).is_dir()
    ):
        return open_source(source, choices)
    data = read_content(source, name)
    if recognises_omx(data[:HEAD_BYTES]):
        return open_omx(data, name)
    return open_content(data, name, choices)


class _Reader:
    """Reads one table, batch by batch."""

    def __init__(self, source: RawSource, known: KnownStates, name: str) -> None:
        self._source, self._known, self._name = source, known, name
        self._at = _columns(source)
        self._numbers = {
            spelt: number
            for number, label in reversed(list(enumerate((*known.names, known.outside))))
            for spelt in (label, unicodedata.normalize("NFKC", label).strip())
        }
        self._account = Account()
        self._named = False
        self._seen = 0
        self._times: _Times | None = None
        if "time" in self._at:
            self._times = _Times.of(source, self._at["time"], known)

    def table(self) -> FlowTable:
        """Sums by time, origin and dest."""
        sums = pd.DataFrame(columns=["count", "rows"], dtype=np.float64)
        for rows in self._source.batches(list(self._at.values())):
            part = self._sums(rows)
            sums = part if sums.empty else sums.add(part, fill_value=0.0)
        if sums.empty and self._seen and not self._named:
            cells = ", ".join(printable(name) for name in self._known.names[:SHOWN_CELLS])
            more = ", …" if len(self._known.names) > SHOWN_CELLS else ""
            raise InputError(
                f"{self._name} names no cell of these flows as origin or dest; the cells are "
                f"called {cells}{more}.",
                code="unknown-cells",
            )
        self._account.need_rows(len(sums))
        n = len(self._known.names) + 1
        key = sums.index.to_numpy(dtype=np.int64)
        flows = pd.DataFrame({
            "time": key // n**2, "origin": key // n % n, "dest": key % n,
            "count": sums["count"].to_numpy(), "rows": sums["rows"].to_numpy(dtype=np.int64),
        })  # fmt: skip
        aside = {cause: found.count for cause, found in self._account.result().items()}
        return FlowTable(flows, () if self._times is None else tuple(self._known.times), aside)

    def _sums(self, rows: RawRows) -> pd.DataFrame:
        """Count and rows by time, origin and dest in one number, of a batch."""
        first, self._seen = self._seen, self._seen + rows.n_rows
        self._account.follow(first, rows.line_numbers)
        self._account.add_counted(rows.set_aside)
        sieve = Sieve(rows.n_rows, self._account, lambda row: self._example(rows, row), first)
        counted = read_counts_of(coded(rows.columns[self._at["count"]]), "missing")
        sieve.take_all(counted.causes)
        sieve.take("suppressed count", counted.status == SUPPRESSED)
        sieve.take("missing count", counted.status != PUBLISHED)
        ends = [self._states(rows, end) for end in ("origin", "dest")]
        self._named = self._named or any(bool((end >= 0).any()) for end in ends)
        sieve.take(NO_CELL, (ends[0] < 0) | (ends[1] < 0))
        time = np.zeros(rows.n_rows, dtype=np.int64)
        if self._times is not None:
            time = self._times.read(rows.columns[self._at["time"]])
            sieve.take(NO_TIME, time < 0)
        kept, n = sieve.kept, len(self._known.names) + 1
        key = (time[kept] * n + ends[0][kept]) * n + ends[1][kept]
        summed = pd.DataFrame({"count": counted.numbers[kept], "rows": np.ones(kept.sum())})
        return summed.groupby(key).sum()

    def _states(self, rows: RawRows, end: str) -> IntArray:
        """Number of the state at an end of each row, -1 where it is none that is known."""
        numbered = f"{end}_number" in self._at
        found = coded(rows.columns[self._at[f"{end}_number" if numbered else end]])
        if numbered:
            self._check_zones(rows)
            most = len(self._known.names)
            of = {str(number): number for number in range(most + 1)}
        else:
            of = self._numbers
        return np.array([of.get(text, -1) for text in found.texts], dtype=np.int64)[found.codes]

    def _check_zones(self, rows: RawRows) -> None:
        """Numbers mean the same states only where there are as many."""
        cells = len(self._known.names)
        for zones in coded(rows.columns[self._at["zones"]]).texts:
            if zones not in ("", str(cells), str(cells + 1)):
                raise InputError(
                    f"{self._name} has {printable(zones)} zones by their order, and these flows "
                    f"have {cells} cells; give as many in their order, or name them by a mapping.",
                    code="wrong-shape",
                )

    def _example(self, rows: RawRows, row: int) -> str:
        return ", ".join(
            f"{role}={shown_value(rows.columns[at], row)}" for role, at in self._at.items()
        )


def _columns(source: RawSource) -> dict[str, int]:
    """Position of the column of each role.

    Raises
    ------
    InputError
        If an end or the count has none.
    """
    found = ColumnFinder(source, ROLES)
    found.look_for("origin", "dest", "count", "time")
    if not {"origin", "dest"} & found.positions.keys():
        found.look_for("origin_number", "dest_number", "zones")
        if {"origin_number", "dest_number", "zones", "count"} <= found.positions.keys():
            return found.positions
    missing = [spoken for role, spoken in _SPOKEN.items() if role not in found.positions]
    if missing:
        raise InputError(
            f"A table of flows has columns origin, dest and count, and no {' or '.join(missing)} "
            f"is found among: {show_names(source)}; name them so.",
            code="column-not-found",
        )
    return found.positions


class _Times:
    """Numbers of the times of day that values of a column name, or lie in."""

    def __init__(self, source: RawSource, at: int, known: KnownStates) -> None:
        self._source, self._at, self._known = source, at, known
        self._hours = plain_name(source.names[at]) in _HOURS
        self._labels = {label: number for number, label in enumerate(known.times)}
        starts = {start: number for label, number in self._labels.items()
                  if (start := _seconds(label)) is not None}  # fmt: skip
        self._starts = np.array(sorted(starts), dtype=np.int64)
        self._number = np.array([starts[start] for start in sorted(starts)], dtype=np.int64)
        self._moments: TimeReader | None = None

    @classmethod
    def of(cls, source: RawSource, at: int, known: KnownStates) -> _Times | None:
        """What reads the column; None where there are no times of day.

        Raises
        ------
        InputError
            If there are several matrices that are not named by times.
        """
        times = cls(source, at, known)
        of_day = times._of_matrices() if source.names[at] == "matrix" else times._of_rows()
        return times if of_day and known.times else None

    def _of_rows(self) -> bool:
        """Whether the column holds times of day or moments, by its first values; not dates."""
        texts = [row[self._at].strip() for row in self._source.sample if self._at < len(row)]
        firsts = [text for text in texts if text]
        if firsts and all(map(_DATE.fullmatch, firsts)):
            return False
        if self._known.times and 2 * sum(map(self._is_time, firsts)) < len(firsts):
            self._moments = TimeReader(self._column, self._known.timezone)
        return True

    def _of_matrices(self) -> bool:
        """Whether all matrices are of times of day; one alone may be of the whole day."""
        every = {text for part in self._column() for text in coded(part).texts if text}
        if all(map(self._is_time, every)):
            return True
        if len(every) > 1:
            shown = ", ".join(printable(text, 20) for text in sorted(every)[:SHOWN_CELLS])
            raise InputError(
                f"The file holds several matrices ({shown}) that are not named by times of day; "
                "keep the one that is to be compared, or name each by its time, as 08:00.",
                code="several-matrices",
            )
        return False

    def _column(self) -> Iterator[pa.ChunkedArray]:
        return (plain(rows.columns[self._at]) for rows in self._source.batches([self._at]))

    def _is_time(self, text: str) -> bool:
        return text in self._labels or self._clock(text) is not None

    def _clock(self, text: str) -> int | None:
        """Seconds since midnight of a clock time."""
        return None if len(text) < 3 and not self._hours else _seconds(text)

    def read(self, column: pa.ChunkedArray) -> IntArray:
        """The time (n,) of each value, -1 where it lies in none."""
        if self._moments is not None:
            utc, _ = self._moments.read(plain(column))
            local = to_local(utc, self._known.timezone)
            since = (local - local.astype("datetime64[D]")) % DAY
            seconds = np.where(np.isnat(since), -1, since.astype(np.int64) // 1_000_000)
            return self._containing(seconds)
        found = coded(column)
        clocks = [self._clock(text) for text in found.texts]
        seconds = np.array([-1 if clock is None else clock for clock in clocks], dtype=np.int64)
        labelled = np.array([self._labels.get(text, -1) for text in found.texts], dtype=np.int64)
        number = np.where(labelled >= 0, labelled, self._containing(seconds))
        return np.asarray(number[found.codes])

    def _containing(self, seconds: IntArray) -> IntArray:
        """The time that each second of the day lies in; -1 for none."""
        if len(self._starts) == 0:
            return np.full(len(seconds), -1, dtype=np.int64)
        # The last one of a day may go on after midnight.
        at = np.searchsorted(self._starts, seconds, side="right") - 1
        since = (seconds - self._starts[at]) % DAY_SECONDS
        lasts = DAY_SECONDS if self._known.minutes is None else 60 * self._known.minutes
        return np.where((seconds >= 0) & (since < lasts), self._number[at], -1)


def _seconds(text: str) -> int | None:
    """Seconds since midnight of a time of day: 8:05, 08:05:00, 0805, or 8, an hour; else None."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    if hour > 24 or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) % DAY_SECONDS
