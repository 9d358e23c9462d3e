"""Trips of nobody in particular: counted by where and when they begin and where they end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.io.choices import Choices, Stated
from agg_core.io.fixes import conditions_needed, conditions_of, equals
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.guess.columns import position_named
from agg_core.io.guess.times import TimeReader
from agg_core.io.layouts import ENDS, NO_LAYOUT, STATIONS
from agg_core.io.source import RawRows, show_names
from agg_core.io.texts import to_float

__all__ = ["TRIP_CHOICES", "TripCounts", "count_trips"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

AXES = ("lon", "lat")
DECIMALS = 5
MINUTE = pd.Timedelta(minutes=1)
WHOLE_MINUTES_SINCE = np.datetime64("1972-01-07")
"""Since then every clock is whole minutes from UTC."""

TRIP_CHOICES = tuple(options_of(Stated))
"""Choices of reading that trips have a use for, besides the rows to keep."""


class TripCounts:
    """An origin-destination table and what was left out of it.

    ``table`` has columns time (start of the step on the local clock), origin, dest, count and,
    where the file knows them, origin_lon, origin_lat, dest_lon, dest_lat (degrees). ``left_out``
    counts trips whose time or an end is missing, ``not_selected`` those that ``where`` does not
    keep, which are not among ``trips``.
    """

    def __init__(
        self, table: pd.DataFrame, trips: int, left_out: int, not_selected: int, timezone: str
    ) -> None:
        self.table, self.trips, self.left_out = table, trips, left_out
        self.not_selected, self.timezone = not_selected, timezone


def count_trips(
    source: Source, choices: Choices | None = None, step: str | pd.Timedelta = "1h"
) -> TripCounts:
    """Count trips by step of time, origin and dest; places are stations, or else positions.

    Raises
    ------
    InputError
        If the file cannot be read, holds no trips, the step is no duration, or ``choices`` state
        what trips have no use for (see `TRIP_CHOICES`).
    """
    choices = choices or Choices()
    opened = open_source(source, _of_file(choices), of_people=False)
    conditions = conditions_of(opened, choices.where)
    start = position_named(opened, ENDS["time"][0])
    stations = [position_named(opened, names) for names in STATIONS]
    axes = {(end, axis): position_named(opened, ENDS[axis][end]) for end in (0, 1) for axis in AXES}
    placed = None not in axes.values()
    if start is None or (None in stations and not placed):
        raise InputError(
            "No trips are found: a file of trips has a start time and a station, zone or position "
            f"of both ends; this one has: {show_names(opened)}.",
            code="no-trips-found",
        )
    every = _duration(step)
    times = TimeReader(
        lambda: (rows.columns[start] for rows in opened.batches([start]) if rows.columns),
        choices.tz or opened.timezone, choices.time_format,
    )  # fmt: skip
    wanted = [start, *(p for p in (*stations, *axes.values()) if p is not None), *conditions]
    tally, n_rows, n_trips = _TripTally(every), 0, 0
    for rows in opened.needing(conditions_needed(conditions)).batches(wanted):
        n_rows += rows.n_rows
        if not rows.columns:  # rows that were passed over
            n_rows += sum(aside.count for aside in rows.set_aside.values())
        elif rows.n_rows:
            part = _ends(rows, start, stations, axes if placed else {}, times)
            part = part[_selected(rows, conditions)]
            n_trips += len(part)
            tally.add(part)
    known = tally.known
    local = to_local(known["time"].to_numpy(), times.timezone)
    known = known.assign(time=pd.DatetimeIndex(local).floor(every))
    left_out, not_selected = n_trips - tally.n_known, n_rows - n_trips
    return TripCounts(_table(known), n_trips, left_out, not_selected, times.timezone)


class _TripTally:
    """Trips that are alike in all that is told of them, counted batch by batch."""

    def __init__(self, step: pd.Timedelta) -> None:
        self.n_known = 0
        self._in_minutes = step % MINUTE == pd.Timedelta(0)
        self._parts: list[pd.DataFrame] = []

    def add(self, trips: pd.DataFrame) -> None:
        """Take in the trips of a batch that have a time and both ends."""
        known = trips.dropna(subset=["time", "origin", "dest"])
        self.n_known += len(known)
        time = known["time"].to_numpy()
        if self._in_minutes and len(time) and time.min() >= WHOLE_MINUTES_SINCE:
            time = time.astype("datetime64[m]").astype("datetime64[us]")
        self._parts.append(known.assign(time=time, trips=1))
        if len(self._parts) > 1 and sum(map(len, self._parts[1:])) > len(self._parts[0]):
            self._join()

    @property
    def known(self) -> pd.DataFrame:
        """Columns time (UTC), origin, dest, their places, and trips: how many."""
        if not self._parts:  # all rows were passed over
            none = {name: pd.Series(dtype="str") for name in ("origin", "dest")}
            return pd.DataFrame({"time": np.array([], "datetime64[us]"), **none, "trips": 0})
        self._join()
        return self._parts[0]

    def _join(self) -> None:
        every = pd.concat(self._parts, ignore_index=True)
        alike = [column for column in every.columns if column != "trips"]
        groups = every.groupby(alike, sort=False, dropna=False)
        joined: pd.DataFrame = groups.agg(trips=("trips", "sum")).reset_index()
        self._parts = [joined]


def _table(known: pd.DataFrame) -> pd.DataFrame:
    """Trips by time, origin and dest, and the median place of each end."""
    by = ["time", "origin", "dest"]
    groups = known.groupby(by, sort=True)
    table = groups["trips"].sum().rename("count").reset_index()
    number = groups.ngroup().to_numpy().astype(np.int64)
    for column in (name for name in known.columns if name.endswith(AXES)):
        values = known[column].to_numpy()
        table[column] = _medians(number, values, known["trips"].to_numpy(), len(table))
    return table


def _medians(number: IntArray, values: FloatArray, trips: IntArray, n: int) -> FloatArray:
    """Median of the values of each of n groups, (n,), a value standing for so many trips."""
    there = ~np.isnan(values)
    order = np.lexsort((values[there], number[there]))
    number, values, trips = number[there][order], values[there][order], trips[there][order]
    ends = np.cumsum(trips)
    totals = np.bincount(number, trips, n).astype(np.int64)
    begins = np.cumsum(totals) - totals
    middles = np.full((2, n), np.nan)
    filled = totals > 0
    for middle, rank in zip(middles, ((totals - 1) // 2, totals // 2), strict=True):
        at = np.searchsorted(ends, (begins + rank)[filled], side="right")
        middle[filled] = values[at]
    return np.asarray(middles.mean(axis=0))


def _of_file(choices: Choices) -> Choices:
    """How the file is opened; what is stated beyond that and cannot be honoured is refused."""
    left_open = Choices()
    unused = [
        name
        for name in ("columns", *options_of(Choices))
        if name not in TRIP_CHOICES and getattr(choices, name) != getattr(left_open, name)
    ]
    if unused:
        raise InputError(
            f"Trips have no use for {', '.join(unused)}; leave that out.", code="option-unused"
        )
    return replace(choices, where=(), layout=NO_LAYOUT)


def _selected(rows: RawRows, conditions: dict[int, tuple[str, str]]) -> npt.NDArray[np.bool_]:
    """Whether each row meets all conditions, (n,)."""
    kept = np.ones(rows.n_rows, dtype=bool)
    for position, (_, value) in conditions.items():
        kept &= equals(rows.columns[position], value)
    return kept


def _duration(step: str | pd.Timedelta) -> pd.Timedelta:
    try:
        duration = pd.Timedelta(step)
    except ValueError as error:
        raise InputError(
            f"{str(step)[:40]!r} is no duration; write it like 30min.", code="malformed-duration"
        ) from error
    if not pd.Timedelta(0) < duration <= pd.Timedelta(days=7):
        raise InputError(
            "The step must be longer than nothing, and seven days at most.",
            code="value-out-of-range",
        )
    return duration


def _ends(
    rows: RawRows,
    start: int,
    stations: list[int | None],
    axes: dict[tuple[int, str], int | None],
    times: TimeReader,
) -> pd.DataFrame:
    """Start and both ends of each trip; an end without a name is called by its position."""
    utc, _ = times.read(rows.columns[start])
    made: dict[str, object] = {"time": utc}
    for end, name in enumerate(("origin", "dest")):
        at = {axis: axes.get((end, axis)) for axis in AXES}
        place = {axis: to_float(rows.columns[p]) for axis, p in at.items() if p is not None}
        made |= {f"{name}_{axis}": values for axis, values in place.items()}
        station = stations[end]
        if station is not None:
            text = pc.utf8_trim_whitespace(rows.columns[station].cast(pa.string()))
            named = text.to_pandas().astype("str").replace("", np.nan)
        else:
            lon, lat = (pd.Series(place[axis]).round(DECIMALS) for axis in AXES)
            named = (lat.astype("str") + " " + lon.astype("str")).where(lon.notna() & lat.notna())
        made[name] = named
    return pd.DataFrame(made)
