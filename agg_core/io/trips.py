"""Trips of nobody in particular: counted by where and when they begin and where they end."""

from __future__ import annotations

from collections.abc import Iterator
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
from agg_core.io.fixes import conditions_of, equals
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.guess.columns import position_named
from agg_core.io.guess.times import TimeReader
from agg_core.io.layouts import ENDS, NO_LAYOUT, STATIONS
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import to_float

__all__ = ["TRIP_CHOICES", "TripCounts", "count_trips"]

AXES = ("lon", "lat")
DECIMALS = 5

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
    opened = open_source(source, _of_file(choices))
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
        lambda: (rows.columns[start] for rows in opened.batches([start])),
        choices.tz or opened.timezone, choices.time_format,
    )  # fmt: skip
    wanted = [start, *(p for p in (*stations, *axes.values()) if p is not None), *conditions]
    parts, n_rows = list[pd.DataFrame](), 0
    for rows in _batches(opened, wanted):
        part = _ends(rows, start, stations, axes if placed else {}, times)
        n_rows += len(part)
        parts.append(part[_selected(rows, conditions)])
    trips = pd.concat(parts, ignore_index=True)
    known = trips.dropna(subset=["time", "origin", "dest"])
    local = to_local(known["time"].to_numpy(), times.timezone)
    known = known.assign(time=pd.DatetimeIndex(local).floor(every))
    places = [column for column in known.columns if column.endswith(AXES)]
    table = known.groupby(["time", "origin", "dest"], as_index=False, sort=True).agg(
        count=("time", "size"), **{column: (column, "median") for column in places}
    )
    left_out, not_selected = len(trips) - len(known), n_rows - len(trips)
    return TripCounts(table, len(trips), left_out, not_selected, times.timezone)


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


def _batches(source: RawSource, wanted: list[int]) -> Iterator[RawRows]:
    return (rows for rows in source.batches(wanted) if rows.n_rows)


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
