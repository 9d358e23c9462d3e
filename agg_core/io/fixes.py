"""From rows of a file to fixes: who, when and where, batch by batch; and what is set aside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.clock import DAY, day_limits, to_local, to_utc
from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.account import Account, Sieve
from agg_core.io.choices import Choices
from agg_core.io.guess.columns import PLACES, TIME_PARTS, ColumnChoice, column_at, find_columns
from agg_core.io.guess.flags import are_off, flags_of
from agg_core.io.guess.people import LOOKED_AT, Seen, refuse_damaged, who_they_are
from agg_core.io.guess.places import Hints, PlaceReader, utm_zone
from agg_core.io.guess.time_parts import put_together
from agg_core.io.guess.times import TimeReader
from agg_core.io.source import Needed, RawRows, RawSource
from agg_core.io.texts import (
    as_mask,
    as_text,
    is_text,
    of_no_one,
    plain,
    shown_value,
    to_float,
)
from agg_core.space.degrees import on_one_side

__all__ = ["FixReader", "Fixes", "conditions_needed", "conditions_of", "equals"]

POOR_M = 500.0
"""Accuracy in metres beyond which fixes are mentioned."""
FEW = 8
"""Ids to look up that are fewer than an eighth of those known are looked up one by one."""
NOT_WITHIN = "outside the extent to read"

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]


@dataclass(frozen=True)
class Fixes:
    """Fixes in any order: individual (n,), UTC (n,) datetime64[us], degrees, row of the file."""

    user: IntArray
    time: TimeArray
    lon: FloatArray
    lat: FloatArray
    row: IntArray

    def __len__(self) -> int:
        return len(self.user)

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns in their order."""
        return self.user, self.time, self.lon, self.lat, self.row

    def take(self, which: IntArray | BoolArray) -> Fixes:
        """The fixes at these indices, or where a mask says so."""
        return Fixes(*(column[which] for column in self.columns))

    @classmethod
    def joined(cls, parts: list[Fixes]) -> Fixes:
        """All fixes of all parts, one part after the other."""
        return cls(*map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))


class FixReader:
    """Reads a source batch by batch into `Fixes`; ``user_ids``, account and guesses grow with it.

    Raises
    ------
    InputError
        If a column is not found, or its values cannot be what it is said to hold.
    """

    def __init__(self, source: RawSource, choices: Choices) -> None:
        self._source = source
        self._columns: ColumnChoice = find_columns(source, dict(choices.columns))
        self._conditions = conditions_of(source, choices.where)
        self._max_accuracy = choices.max_accuracy
        self._poor = 0
        self._flags_at: dict[int, str] = {}
        self._known = _Known()
        self.account = Account()
        self.rows_read = self._rows_seen = 0
        self.share = 0.0
        places = {role: at for role, at in self._columns.positions.items() if role in PLACES}
        self._places_at = places
        self._within = choices.within
        self._days = _Days(*day_limits(choices.first_day, choices.last_day))
        self._time_roles = [
            role for role in ("date", "time", *TIME_PARTS) if role in self._columns.positions
        ]
        first = next(rows for rows in source.batches(self._positions) if rows.columns)
        self._places = PlaceReader(
            {role: plain(first.columns[at]) for role, at in places.items()},
            None if source.in_degrees else choices.crs,
            choices.swap_axes,
            choices.place_unit,
            _hints(source, places),
        )
        self._times = TimeReader(
            self._every_time, choices.tz or self._columns.timezone or source.timezone,
            choices.time_format, like_fit=self._places.are_semicircles,
        )  # fmt: skip
        self._stored_zone = None
        if self._time_roles == ["time"]:
            stored = first.columns[self._columns.positions["time"]]
            self._stored_zone = getattr(stored.type, "tz", None)
        if self._stored_zone is not None:
            self._times.read(self._time_column(first).slice(0, 0))  # tells the clock to show
        self.asks_whose = not (self._columns.is_stated or source.is_of_one)
        self._check_people(first)
        self._flags_at = flags_of(source, self._columns.positions.values())
        self._invalid: Counter[str] = Counter()

    def _check_people(self, first: RawRows) -> None:
        """Whose the first rows are, where the file does not say it, or says it wrongly.

        Raises
        ------
        InputError
            If nobody can be told from them, or several people would be made one.
        """
        if not self.asks_whose or not first.n_rows:
            return
        at = self._columns.positions
        n = min(first.n_rows, LOOKED_AT)
        head = {position: column.slice(0, n) for position, column in first.columns.items()}
        rows = replace(first, columns=head, n_rows=n)
        person = None if "user_id" not in at else as_text(rows.columns[at["user_id"]])
        if person is not None:
            refuse_damaged(person, rows.columns[at["user_id"]], self._columns.called("user_id"))
        utc = self._times.peek(self._time_column(rows))
        places = self._places.read({role: plain(rows.columns[i]) for role, i in
                                    self._places_at.items()})  # fmt: skip
        seen = Seen(utc, places.lon, places.lat)
        if person is not None and seen.plausible(person):
            return
        others = self._other_columns(n)
        found = who_they_are(seen, person, others, self._columns.called("user_id"))
        if found is not None:
            position, guess = found
            self._columns = self._columns.with_person(position, guess)

    def _other_columns(self, n: int) -> dict[int, tuple[str, pa.ChunkedArray]]:
        """Name and first values of each column that has no role."""
        source, taken = self._source, set(self._columns.positions.values())
        rest = [i for i in range(len(source.names)) if i not in taken]
        if not rest:
            return {}
        rows = next((rows for rows in source.batches(rest) if rows.columns), None)
        if rows is None:
            return {}
        found = {}
        for i in rest:
            try:
                values = as_text(rows.columns[i].slice(0, n))
            except InputError:
                continue
            found[i] = (source.names[i] if source.has_header else str(i), values)
        return found

    @property
    def user_ids(self) -> list[str]:
        """Ids of the individuals seen so far, by their number."""
        return self._known.ids

    @property
    def timezone(self) -> str:
        """The zone of the clock to show."""
        return self._times.timezone

    @property
    def guesses(self) -> dict[str, Guess]:
        """Every choice that was made, after the last batch."""
        found = {**self._columns.guesses, **self._times.guesses, **self._places.guesses}
        if self._poor:
            note = f"accuracy worse than {POOR_M:g} m in {self._poor:,} of the fixes kept"
            found["accuracy"] = Guess("all fixes", (), note, "max_accuracy")
        for name, n in self._invalid.items():
            note = f"{n:,} of the fixes kept are marked as not valid; keep the others by {name}=1"
            found[f"column {name}"] = Guess("all fixes", (), note)
        return {**found, **self._source.guesses}

    def batches(self) -> Iterator[Fixes]:
        """The fixes of one batch after another."""
        for rows in self._source.needing(self._needed()).batches(self._positions):
            self.rows_read += rows.n_rows + sum(a.count for a in rows.set_aside.values())
            self.share = rows.share
            if rows.columns:
                yield self._read(rows)
            else:  # rows that were passed over
                self.account.add_counted(rows.set_aside)

    def _needed(self) -> list[Needed]:
        """What rows must fulfil, so that whoever holds them may pass over others."""
        return [*conditions_needed(self._conditions), *self._days_needed(), *self._places_needed()]

    def _days_needed(self) -> Iterator[Needed]:
        """The same of the days to read: of stored instants, or of a date beside a clock time."""
        at = self._columns.positions
        for cause, begin, end in self._days.causes:
            if "date" in at:
                yield Needed(at["date"], cause, self._days.holds)
            elif self._times.is_typed and self._time_roles == ["time"]:
                least, most = begin, end
                if self._stored_zone is not None:
                    least = None if begin is None else _instant(begin, self.timezone, -DAY)
                    most = None if end is None else _instant(end, self.timezone, DAY)
                yield Needed(at["time"], cause, least=least, most=most, below=True)

    def _places_needed(self) -> Iterator[Needed]:
        """The same of the extent to read."""
        if self._within and self._places.as_stored and {"lon", "lat"} <= self._places_at.keys():
            west, south, east, north = self._within
            _, goes_on = on_one_side(np.empty(0), west, east)
            sides = [("lon", west, east)] if goes_on <= 180 else []
            for axis, low, high in (*sides, ("lat", south, north)):
                yield Needed(self._places_at[axis], NOT_WITHIN, least=low, most=high)

    @property
    def _positions(self) -> list[int]:
        return [*self._columns.positions.values(), *self._conditions, *self._flags_at]

    def _every_time(self) -> Iterator[pa.ChunkedArray]:
        positions = [self._columns.positions[role] for role in self._time_roles]
        for rows in self._source.batches(positions):
            if rows.columns:
                yield self._time_column(rows)

    def _time_column(self, rows: RawRows) -> pa.ChunkedArray:
        """Times of a batch; what stands in several columns put together."""
        at = self._columns.positions
        if self._time_roles == ["time"]:
            return plain(rows.columns[at["time"]])
        parts = {role: as_text(rows.columns[at[role]]) for role in self._time_roles}
        return put_together(parts)

    def _read(self, rows: RawRows) -> Fixes:
        first_row = self._rows_seen
        self._rows_seen += rows.n_rows
        self.account.follow(first_row, rows.line_numbers)
        self.account.add_counted(rows.set_aside)
        sieve = Sieve(rows.n_rows, self.account, lambda row: self._example(rows, row), first_row)
        for position, (column, value) in self._conditions.items():
            sieve.take(f"not {column}={value}", ~equals(rows.columns[position], value))
        utc, no_time = self._times.read(self._time_column(rows))
        sieve.take_all(self._days.beyond(utc, self.timezone))
        places = self._places.read(
            {role: plain(rows.columns[at]) for role, at in self._places_at.items()}
        )
        if self._within:
            sieve.take(NOT_WITHIN, _beyond(places.lon, places.lat, self._within))
        people = _People.of(self._user_column(rows))
        for causes in (people.causes, no_time, places.causes):
            sieve.take_all(causes)
        if "accuracy" in self._columns.positions:
            self._judge(rows.columns[self._columns.positions["accuracy"]], sieve)
        for position, name in self._flags_at.items():
            wrong = are_off(rows.columns[position]) & sieve.kept
            if wrong.any():
                self._invalid[name] += int(wrong.sum())
        kept = np.flatnonzero(sieve.kept)
        user = self._number(people, kept)
        which = slice(None) if len(kept) == rows.n_rows else kept
        return Fixes(user, utc[which], places.lon[which], places.lat[which], kept + first_row)

    def _judge(self, column: pa.ChunkedArray, sieve: Sieve) -> None:
        """Set aside what is too inaccurate, where a limit is stated; count what is poor."""
        accuracy = to_float(as_text(column))
        if self._max_accuracy is not None:
            limit = self._max_accuracy
            sieve.take(f"less accurate than {limit:g} m", accuracy > limit)
        self._poor += int((accuracy[sieve.kept] > POOR_M).sum())

    def _example(self, rows: RawRows, row: int) -> str:
        return ", ".join(
            f"{role}={shown_value(rows.columns[at], row)}"
            for role, at in self._columns.positions.items()
        )

    def _user_column(self, rows: RawRows) -> pa.ChunkedArray:
        at = self._columns.positions.get("user_id")
        if at is None:
            return pa.chunked_array([pa.repeat(pa.scalar("1", pa.large_string()), rows.n_rows)])
        return rows.columns[at]

    def _number(self, people: _People, kept: IntArray) -> IntArray:
        """Numbers of the individuals of the rows that are kept, new ones after those known."""
        of_rows = people.indices if len(kept) == len(people.indices) else people.indices[kept]
        present = np.zeros(len(people.ids), dtype=bool)
        present[of_rows] = True
        met = people.ids.filter(pa.array(present))
        numbers = np.full(len(people.ids), -1, dtype=np.int64)
        numbers[present] = self._known.numbers(met)
        return numbers[of_rows]


class _Known:
    """Ids of the individuals met, by their number.

    Arrow looks up many at once at the price of a look at all that are known, a dictionary few at
    the price of each: both are kept, and the one that is behind learns from the other when it is
    needed.
    """

    def __init__(self) -> None:
        self._array = pa.array([], pa.large_string())
        self._codes: dict[str, int] = {}

    @property
    def ids(self) -> list[str]:
        """All, in the order in which they were met."""
        self._fill_codes()
        return list(self._codes)

    def numbers(self, ids: pa.Array) -> IntArray:
        """Their numbers (n,); new ones come after those that are known."""
        if len(ids) * FEW < max(len(self._array), len(self._codes)) or len(ids) < FEW:
            self._fill_codes()
            codes = self._codes
            found = [codes.setdefault(each, len(codes)) for each in ids.to_pylist()]
            return np.array(found, dtype=np.int64)
        if len(self._array) < len(self._codes):
            more = pa.array(islice(self._codes, len(self._array), None), pa.large_string())
            self._array = pa.concat_arrays([self._array, more])
        new = pc.unique(ids.filter(pc.invert(pc.is_in(ids, value_set=self._array))))
        if len(new):
            self._array = pa.concat_arrays([self._array, new])
        return np.asarray(pc.index_in(ids, value_set=self._array), dtype=np.int64)

    def _fill_codes(self) -> None:
        for each in self._array[len(self._codes) :].to_pylist():
            self._codes[each] = len(self._codes)


@dataclass(frozen=True)
class _People:
    """Whose the rows of a batch are: ids in order of appearance, and the index of each row's."""

    ids: pa.Array
    indices: IntArray
    causes: Mapping[str, BoolArray]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _People:
        """Ids are looked at once each, not once a row."""
        if not pa.types.is_dictionary(column.type):
            column = (column if is_text(column) else as_text(column)).dictionary_encode()
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        ids = as_text(pa.chunked_array([array.dictionary]))
        # The last is nobody's.
        ids = pa.chunked_array([*ids.chunks, pa.array([""], ids.type)]).combine_chunks()
        indices = pc.fill_null(array.indices.cast(pa.int64()), len(ids) - 1).to_numpy()
        causes = {}
        for cause, wrong in (
            ("missing user id", of_no_one(ids)),
            ("line break in the user id", as_mask(pc.match_substring(ids, "\n"))),
        ):
            if wrong[:-1].any() or array.null_count:
                causes[cause] = wrong[indices]
        return cls(ids, np.asarray(indices), causes)


@dataclass(frozen=True)
class _Days:
    """The days to read: the midnight at which they begin and that at which they end, if stated."""

    begin: np.datetime64 | None
    end: np.datetime64 | None

    @property
    def causes(self) -> list[tuple[str, np.datetime64 | None, np.datetime64 | None]]:
        """Why a row is set aside, with the limits that it misses then."""
        before = [("before the first day", self.begin, None)] if self.begin is not None else []
        after = [("after the last day", None, self.end)] if self.end is not None else []
        return [*before, *after]

    def beyond(self, utc: TimeArray, zone: str) -> dict[str, BoolArray]:
        """Which instants (n,) are of other days on the clock of a zone, by why."""
        if not self.causes:
            return {}
        local = to_local(utc, zone)
        found = {}
        for cause, begin, end in self.causes:
            found[cause] = local < begin if begin is not None else local >= np.datetime64(end)
        return found

    def holds(self, dates: pa.ChunkedArray) -> BoolArray:
        """Whether a time on each of these days can be read.

        Its clock may run on to the next day, and be that of another zone than the one shown.
        """
        text = as_text(dates).to_pylist()
        return np.array([self._meets(each) for each in text], dtype=bool)

    def _meets(self, text: str) -> bool:
        if not _ISO_DAY.fullmatch(text):
            return True
        try:
            day = np.datetime64(text, "us")
        except ValueError:
            return True
        after = self.end is not None and day >= self.end + DAY
        return not after and (self.begin is None or day + 2 * DAY > self.begin)


def _instant(local: np.datetime64, zone: str, away: np.timedelta64) -> np.datetime64:
    """The instant of a midnight in UTC; so much away where the clock has none or two of it."""
    read = to_utc(np.array([local]), zone)
    if read.missing[0] or read.repeated[0]:
        return local + away
    return np.datetime64(read.utc[0], "us")


def _beyond(lon: FloatArray, lat: FloatArray, within: tuple[float, ...]) -> BoolArray:
    """Which places (n,) lie outside of an extent; those that are none do not."""
    west, south, east, north = within
    lon, east = on_one_side(lon, west, east)
    return (lon < west) | (lon > east) | (lat < south) | (lat > north)


def _hints(source: RawSource, places: Mapping[str, int]) -> Hints:
    """What the names of the columns say of the way in which places are written."""
    names = {role: source.names[at] for role, at in places.items()} if source.has_header else {}
    return Hints.of(names, utm_zone(source))


def conditions_needed(conditions: Mapping[int, tuple[str, str]]) -> list[Needed]:
    """What `conditions_of` asks for, as a source may be told."""
    return [
        Needed(position, printable(f"not {column}={value}"), partial(equals, value=value), *limits)
        for position, (column, value) in conditions.items()
        for limits in [_number_limits(value)]
    ]


def _number_limits(value: str) -> tuple[float | None, float | None]:
    try:
        number = float(value)
    except ValueError:
        return None, None
    return (None, None) if np.isnan(number) else (number, number)


def conditions_of(
    source: RawSource, where: tuple[tuple[str, str], ...]
) -> dict[int, tuple[str, str]]:
    """Position to (column name, wanted value) of each condition.

    Raises
    ------
    InputError
        If there is no such column.
    """
    use = " to select rows by"
    return {column_at(source, column, use): (column, value) for column, value in where}


def equals(column: pa.ChunkedArray, value: str) -> BoolArray:
    """Whether each value of a column (n,) is the wanted one, as text or as a number."""
    same = as_mask(pc.equal(as_text(column), value.strip()))
    try:
        number = float(value)
    except ValueError:
        return same
    equal: BoolArray = to_float(as_text(column)) == number
    return same | equal
