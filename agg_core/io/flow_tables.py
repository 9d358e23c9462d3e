"""Tables of flows from one named state to another: origin, dest, count, and perhaps a time of day.

They are read to be held against what was learned, so that the names of the states and the times of
day are known: rows of others are set aside, with their number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import PurePath

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
from agg_core.io.guess.columns import ColumnFinder
from agg_core.io.guess.times import TimeReader
from agg_core.io.known_tables import (
    SHOWN_NAMES,
    CountedRows,
    DayTimes,
    counted_rows,
    open_table,
)
from agg_core.io.layouts import ENDS, STATIONS
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import plain

__all__ = ["ROLES", "FlowTable", "KnownStates", "read_flow_table"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

ROLES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        *("originname", *STATIONS[0], "origincell", "originid", "originzone", "from", "fromcell"),
        *("fromid", "fromzone", "source", "o", "出発地", "発地", "originstation", "fromstation"),
        *("entrystation", "boardingstation"),
    ),
    "dest": (
        *("destname", "destinationname", *STATIONS[1], "destination", "destcell", "destid"),
        *("destzone", "destinationid", "destinationzone", "to", "tocell", "toid", "tozone"),
        *("target", "d", "到着地", "着地", "deststation", "destinationstation", "tostation"),
        *("exitstation", "alightingstation"),
    ),
    "origin_number": ("originnumber",),
    "dest_number": ("destnumber",),
    "zones": ("zones",),
    "count": (
        *("count", "flow", "flows", "trips", "movers", "moves", "移動人数", "移動人口"),
        *("ridership", "journeys", "passengers", "riders"),
        *(name for name in COUNT_ROLES["count"] if name != "count"),
    ),
    "time": (
        *("time", "timeofday", "slot", "timeslot", "hour", "hourofday", "localtime", "hhmm"),
        *("clock", "timestamp", "datetime", *ENDS["time"][0], "departuretime", "時刻", "時間帯"),
        *("日時", "matrix"),
    ),
    "date": ("date", "day", "日付", "年月日", "yyyymmdd", "servicedate", "tripdate"),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them.

Numbers count states from 0, of as many ``zones`` as there are, where a file does not name them.
"""

NO_CELL, NO_TIME, NO_DAY_OF_ROW = "no such cell", "no such time of day", "no date"
NO_DATE = 0
"""The day of rows that have none: nobody counted trips on the first of January 1970."""
_SPOKEN = {"origin": "origin", "dest": "dest (destination)", "count": "count"}


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
    ``set_aside`` counts rows of the file by why they were left out. Where days were asked for,
    ``date`` is a number among ``dates``, YYYY-MM-DD on the local clock; they are empty where a
    table has none.
    """

    flows: pd.DataFrame
    times: tuple[str, ...]
    set_aside: Mapping[str, int] = field(default_factory=dict)
    dates: tuple[str, ...] = ()

    def of_date(self, date: str) -> FlowTable:
        """The flows of one of ``dates``."""
        mine = self.flows["date"] == self.dates.index(date)
        return replace(
            self, flows=self.flows.loc[mine].drop(columns="date").reset_index(drop=True), dates=()
        )

    def of_all_dates(self) -> FlowTable:
        """The same, summed over dates."""
        if not self.dates:
            return self
        return _summed(replace(self, flows=self.flows.drop(columns="date"), dates=()))


def read_flow_table(source: Source, known: KnownStates, *, by_date: bool = False) -> FlowTable:
    """Read flows between known states; rows of one time, origin and dest are summed.

    With ``by_date`` days are kept apart where the table tells them.

    A time is one of the labels, or counts for that in which it lies: a clock time, or a moment on
    the local clock, summed over days. Rows are set aside whose count is none or negative, or whose
    ends or time are not known.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, or no row names what is known.
    """
    name = printable(PurePath(source).name if isinstance(source, str | PathLike) else "The table")
    return _Reader(open_table(source, name), known, name, by_date=by_date).table()


class _Reader:
    """Reads one table, batch by batch."""

    def __init__(self, source: RawSource, known: KnownStates, name: str, *, by_date: bool) -> None:
        self._source, self._known, self._name = source, known, name
        self._at = _columns(source, by_date=by_date)
        self._by_date = by_date
        self._dates: TimeReader | None = None
        if "date" in self._at:
            self._dates = TimeReader(self._dates_column, known.timezone)
        self._numbers = {
            spelt: number
            for number, label in reversed(list(enumerate((*known.names, known.outside))))
            for spelt in (label, unicodedata.normalize("NFKC", label).strip())
        }
        self._account = Account()
        self._named = False
        self._seen = 0
        self._times: DayTimes | None = None
        if "time" in self._at:
            self._times = DayTimes.of(source, self._at["time"], known)

    def table(self) -> FlowTable:
        """Sums by time, origin and dest."""
        sums = pd.DataFrame(columns=["count", "rows"], dtype=np.float64)
        for batch in counted_rows(self._source, self._at, self._account):
            part = self._sums(batch)
            sums = part if sums.empty else sums.add(part, fill_value=0.0)
        if sums.empty and self._seen and not self._named:
            cells = ", ".join(printable(name) for name in self._known.names[:SHOWN_NAMES])
            more = ", …" if len(self._known.names) > SHOWN_NAMES else ""
            raise InputError(
                f"{self._name} names no cell of these flows as origin or dest; the cells are "
                f"called {cells}{more}.",
                code="unknown-cells",
            )
        self._account.need_rows(len(sums))
        n, n_times = len(self._known.names) + 1, max(len(self._known.times), 1)
        key = sums.index.to_numpy(dtype=np.int64)
        flows = pd.DataFrame({
            "time": key // n**2 % n_times, "origin": key // n % n, "dest": key % n,
            "count": sums["count"].to_numpy(), "rows": sums["rows"].to_numpy(dtype=np.int64),
        })  # fmt: skip
        aside = {cause: found.count for cause, found in self._account.result().items()}
        dates: tuple[str, ...] = ()
        days, number = np.unique(key // n**2 // n_times, return_inverse=True)
        if self._by_date and (days != NO_DATE).all():
            dates = tuple(str(day) for day in days.astype("datetime64[D]"))
            flows["date"] = number
        times = () if self._times is None else tuple(self._known.times)
        found = FlowTable(flows, times, aside, dates)
        return found if dates or not self._by_date else _summed(found)

    def _sums(self, batch: CountedRows) -> pd.DataFrame:
        """Count and rows by time, origin and dest in one number, of a batch."""
        rows, sieve = batch.rows, batch.sieve
        self._seen += rows.n_rows
        ends = [self._states(rows, end) for end in ("origin", "dest")]
        self._named = self._named or any(bool((end >= 0).any()) for end in ends)
        sieve.take(NO_CELL, (ends[0] < 0) | (ends[1] < 0))
        time = np.zeros(rows.n_rows, dtype=np.int64)
        day = np.full(rows.n_rows, NO_DATE, dtype=np.int64)
        if self._times is not None:
            read = self._times.read_fully(rows.columns[self._at["time"]])
            time = read.number
            sieve.take(NO_TIME, time < 0)
            if self._by_date:
                day = np.where(read.day >= 0, read.day, day)
        if self._dates is not None:
            utc, _ = self._dates.read(plain(rows.columns[self._at["date"]]))
            local = to_local(utc, self._known.timezone).astype("datetime64[D]")
            sieve.take(NO_DAY_OF_ROW, np.isnat(local))
            day = np.where(np.isnat(local), NO_DATE, local.astype(np.int64))
        kept, n = sieve.kept, len(self._known.names) + 1
        time = time + day * max(len(self._known.times), 1)
        key = (time[kept] * n + ends[0][kept]) * n + ends[1][kept]
        summed = pd.DataFrame({"count": batch.counts[kept], "rows": np.ones(kept.sum())})
        return summed.groupby(key).sum()

    def _dates_column(self) -> Iterator[pa.ChunkedArray]:
        at = self._at["date"]
        return (plain(rows.columns[at]) for rows in self._source.batches([at]))

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


def _summed(table: FlowTable) -> FlowTable:
    """The same with one row for each time, origin and dest."""
    ends = ["time", "origin", "dest"]
    return replace(table, flows=table.flows.groupby(ends, as_index=False).sum())


def _columns(source: RawSource, *, by_date: bool) -> dict[str, int]:
    """Position of the column of each role.

    Raises
    ------
    InputError
        If an end or the count has none.
    """
    found = ColumnFinder(source, ROLES)
    found.look_for("origin", "dest", "count", "time", *["date"] * by_date)
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
