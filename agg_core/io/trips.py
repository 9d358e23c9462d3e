"""Trips of nobody in particular: counted by where and when they begin and where they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import to_local
from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.base.report import Guess
from agg_core.io.account import Account, Sieve
from agg_core.io.choices import Choices, Stated
from agg_core.io.fixes import conditions_needed, conditions_of, equals
from agg_core.io.flow_tables import ROLES as FLOW_ROLES
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import ColumnFinder
from agg_core.io.guess.ends import end_columns
from agg_core.io.guess.times import TimeReader
from agg_core.io.layouts import ENDS, NO_LAYOUT, STATIONS
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import as_text, of_no_one, plain, shown_value, to_float
from agg_core.space.degrees import are_known
from agg_core.tables.table_report import TableReport

__all__ = ["TRIP_CHOICES", "TRIP_ROLES", "TripCounts", "count_trips"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]

AXES = ("lon", "lat")
DECIMALS = 5
MINUTE = pd.Timedelta(minutes=1)
WHOLE_MINUTES_SINCE = np.datetime64("1972-01-07")
"""Since then every clock is whole minutes from UTC."""

TRIP_CHOICES = (*options_of(Stated), "places_key")
"""Choices of reading that trips have a use for, besides the rows to keep and the columns."""
_PLACED = ("origin_lon", "origin_lat", "dest_lon", "dest_lat")
TRIP_ROLES: Mapping[str, tuple[str, ...]] = {
    "start": ENDS["time"][0], "end": ENDS["time"][1],
    "origin": tuple(dict.fromkeys((*STATIONS[0], *FLOW_ROLES["origin"]))),
    "dest": tuple(dict.fromkeys((*STATIONS[1], *FLOW_ROLES["dest"]))),
    "origin_lon": ENDS["lon"][0], "origin_lat": ENDS["lat"][0],
    "dest_lon": ENDS["lon"][1], "dest_lat": ENDS["lat"][1],
    "time": (*PERSON_ROLES["time"], *PERSON_ROLES["date"]),
}  # fmt: skip
"""Spellings of the columns of trips: when they begin and end, and where, by name or place."""


@dataclass(frozen=True)
class TripCounts:
    """An origin-destination table and the account of the trips that it was made of.

    ``table`` has columns time (start of the step on the local clock), origin, dest, count and,
    where the file knows them, origin_lon, origin_lat, dest_lon, dest_lat (degrees). ``left_out``
    counts trips whose time or an end is missing, ``not_selected`` those that ``where`` does not
    keep, which are not among ``trips``. ``report`` tells every row of the file.
    """

    table: pd.DataFrame
    trips: int
    left_out: int
    not_selected: int
    timezone: str
    report: TableReport


def count_trips(
    source: Source, choices: Choices | None = None, step: str | pd.Timedelta = "1h"
) -> TripCounts:
    """Count trips by step of time, origin and dest; places are stations, or else positions.

    Columns are found by name, or stated (see `TRIP_ROLES`). A trip whose end has no name and lies
    at 0, 0 or beyond the degrees has no such end.

    Raises
    ------
    InputError
        If the file cannot be read, holds no trips, the step is no duration, or ``choices`` state
        what trips have no use for (see `TRIP_CHOICES`).
    """
    choices = choices or Choices()
    opened = open_source(source, _of_file(choices), of_people=False)
    conditions = conditions_of(opened, choices.where)
    at, guesses = _columns(opened, dict(choices.columns))
    every, start = _duration(step), at["start"]
    times = TimeReader(
        lambda: (rows.columns[start] for rows in opened.batches([start]) if rows.columns),
        choices.tz or opened.timezone, choices.time_format,
    )  # fmt: skip
    account, tally = Account(), _TripTally(every)
    n_rows = n_selected = seen = 0
    for rows in opened.needing(conditions_needed(conditions)).batches([*at.values(), *conditions]):
        n_rows += rows.n_rows + sum(aside.count for aside in rows.set_aside.values())
        account.follow(seen, rows.line_numbers)
        account.add_counted(rows.set_aside)
        if not rows.columns or not rows.n_rows:
            continue

        def example(row: int, rows: RawRows = rows) -> str:
            return ", ".join(
                f"{role}={shown_value(rows.columns[i], row)}" for role, i in at.items()
            )

        sieve = Sieve(rows.n_rows, account, example, seen)
        seen += rows.n_rows
        for position, (column, value) in conditions.items():
            sieve.take(f"not {column}={value}", ~equals(rows.columns[position], value))
        n_selected += int(sieve.kept.sum())
        utc, causes = times.read(plain(rows.columns[start]))
        sieve.take_all(causes)
        part = _ends(rows, at, utc)
        for end in ("origin", "dest"):
            sieve.take(f"no {end}", part[end].isna().to_numpy())
        tally.add(part[sieve.kept])
    known = tally.known
    local = to_local(known["time"].to_numpy(), times.timezone)
    known = known.assign(time=pd.DatetimeIndex(local).floor(every))
    table, kept = _table(known), tally.n_known
    report = TableReport(
        n_rows, kept, account.result(), {**guesses, **times.guesses, **opened.guesses},
        {"trips": kept, "pairs": len(table[["origin", "dest"]].drop_duplicates()),
         "places": len(set(table["origin"]) | set(table["dest"])), "timezone": times.timezone},
    )  # fmt: skip
    return TripCounts(
        table, n_selected, n_selected - kept, n_rows - n_selected, times.timezone, report
    )


def _columns(
    source: RawSource, stated: Mapping[str, str | int]
) -> tuple[dict[str, int], dict[str, Guess]]:
    """Positions of the columns of trips by role, of `TRIP_ROLES`, and what was guessed."""
    found = ColumnFinder(source, TRIP_ROLES, stated)
    found.look_for("start", "end", *_PLACED)
    found.look_for("origin", "dest")
    at = found.positions
    if not {"origin", "dest"} <= at.keys() and source.has_header:
        pair = end_columns(source.names, source.sample)
        if pair is not None and not set(pair) & set(at.values()):
            for role, position in zip(("origin", "dest"), pair, strict=True):
                found.take(role, position)
    if not set(_PLACED) <= at.keys():
        found.drop(*set(_PLACED) - found.stated.keys())
    if "start" not in at:
        found.look_for("time")
        if "time" in at:
            found.rename("time", "start")
    placed = set(_PLACED) <= at.keys()
    if "start" not in at or not (placed or {"origin", "dest"} <= at.keys()):
        raise InputError(
            "No trips are found: a file of trips has a start time and a station, zone or position "
            f"of both ends; this one has: {show_names(source)}; say which columns they are.",
            "--column start=NAME --column origin=NAME --column dest=NAME",
            code="no-trips-found",
        )
    at.pop("end", None)
    return at, found.guesses


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
        for name in options_of(Choices)
        if name not in TRIP_CHOICES and getattr(choices, name) != getattr(left_open, name)
    ]
    if unused:
        raise InputError(
            f"Trips have no use for {', '.join(unused)}; leave that out.", code="option-unused"
        )
    return replace(choices, where=(), columns=(), layout=NO_LAYOUT)


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


def _ends(rows: RawRows, at: Mapping[str, int], utc: TimeArray) -> pd.DataFrame:
    """Start and both ends of each trip; an end without a name is called by its position."""
    made: dict[str, object] = {"time": utc}
    for name in ("origin", "dest"):
        place = {
            axis: to_float(rows.columns[at[f"{name}_{axis}"]])
            for axis in AXES if f"{name}_{axis}" in at
        }  # fmt: skip
        if place:
            lon, lat = place["lon"], place["lat"]
            off = ~are_known(np.column_stack([lon, lat]))
            place = {axis: np.where(off, np.nan, values) for axis, values in place.items()}
        made |= {f"{name}_{axis}": values for axis, values in place.items()}
        if name in at:
            text = as_text(rows.columns[at[name]])
            named = text.to_pandas().astype("str").mask(of_no_one(text), np.nan)
        else:
            x, y = (pd.Series(place[axis]).round(DECIMALS) for axis in AXES)
            named = (y.astype("str") + " " + x.astype("str")).where(x.notna() & y.notna())
        made[name] = named
    return pd.DataFrame(made)
