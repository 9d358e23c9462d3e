"""From rows of a file to fixes: who, when and where, batch by batch; and what is set aside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, SetAside, printable
from agg_core.io.choices import Choices
from agg_core.io.guess.columns import PLACES, ColumnChoice, find_columns, position_of
from agg_core.io.guess.places import PlaceReader
from agg_core.io.guess.times import TimeReader
from agg_core.io.source import RawRows, RawSource, show_names
from agg_core.io.texts import as_mask, is_text

__all__ = ["Account", "FixReader", "Fixes", "conditions_of", "equals"]

SHOWN_LINES = 5
POOR_M = 500.0
"""Accuracy in metres beyond which fixes are mentioned."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]

_NO_ID = pa.array(["", "nan", "null", "none", "<na>", "\\n"])


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

    def take(self, which: IntArray | BoolArray) -> Fixes:
        """The fixes at these indices, or where a mask says so."""
        return Fixes(
            self.user[which], self.time[which], self.lon[which], self.lat[which], self.row[which]
        )

    @classmethod
    def joined(cls, parts: list[Fixes]) -> Fixes:
        """All fixes of all parts, one part after the other."""
        return cls(
            np.concatenate([part.user for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.lon for part in parts]),
            np.concatenate([part.lat for part in parts]),
            np.concatenate([part.row for part in parts]),
        )


@dataclass
class _Cause:
    count: int = 0
    lines: list[int] = field(default_factory=list)
    example: str = ""


class Account:
    """How many rows were set aside for what, their first lines, and one example each."""

    def __init__(self) -> None:
        self._causes: dict[str, _Cause] = {}
        self._line_numbers: list[tuple[int, Callable[[IntArray], IntArray]]] = []

    def follow(self, first_row: int, line_numbers: Callable[[IntArray], IntArray]) -> None:
        """From this row of the file on, lines are numbered so."""
        self._line_numbers.append((first_row, line_numbers))

    def add(self, cause: str, rows: IntArray, example: Callable[[], str]) -> None:
        """Rows of the file go out for a cause."""
        if len(rows) == 0:
            return
        found = self._causes.setdefault(printable(cause), _Cause())
        if len(found.lines) < SHOWN_LINES:
            lines = [self._line_of(int(row)) for row in rows[: 2 * SHOWN_LINES]]
            found.lines = list(dict.fromkeys([*found.lines, *lines]))[:SHOWN_LINES]
        found.example = found.example or example()
        found.count += len(rows)

    def add_counted(self, set_aside: Mapping[str, SetAside]) -> None:
        """What a format's reader has set aside itself."""
        for cause, aside in set_aside.items():
            found = self._causes.setdefault(cause, _Cause())
            found.lines = [*found.lines, *aside.lines][:SHOWN_LINES]
            found.example = found.example or aside.example
            found.count += aside.count

    def result(self) -> dict[str, SetAside]:
        """The account so far."""
        return {
            cause: SetAside(found.count, tuple(found.lines), found.example)
            for cause, found in self._causes.items()
        }

    def summary(self) -> str:
        """The causes and their counts in a sentence."""
        causes = (f"{cause} ({found.count:,})" for cause, found in self._causes.items())
        return ", ".join(causes) or "no rows"

    def need_rows(self, n_left: int) -> None:
        """Raise InputError if no row was left."""
        if n_left == 0:
            raise InputError(
                f"No row is left: {self.summary()}; choose other rows or another file.",
                code="no-rows-left",
            )

    def _line_of(self, row: int) -> int:
        numbers = next(f for first, f in reversed(self._line_numbers) if first <= row)
        return int(numbers(np.array([row]))[0])


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
        self._codes: dict[str, int] = {}
        self.account = Account()
        self.rows_read = self._rows_seen = 0
        self.share = 0.0
        places = {role: at for role, at in self._columns.positions.items() if role in PLACES}
        self._places_at = places
        self._times = TimeReader(
            self._every_time, choices.tz or self._columns.timezone or source.timezone,
            choices.time_format,
        )  # fmt: skip
        first = next(iter(source.batches(self._positions)))
        self._places = PlaceReader(
            {role: _plain(first.columns[at]) for role, at in places.items()},
            None if source.in_degrees else choices.crs,
            choices.swap_axes,
        )

    @property
    def user_ids(self) -> list[str]:
        """Ids of the individuals seen so far, by their number."""
        return list(self._codes)

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
        return {**found, **self._source.guesses}

    def batches(self) -> Iterator[Fixes]:
        """The fixes of one batch after another."""
        for rows in self._source.batches(self._positions):
            fixes = self._read(rows)
            self.rows_read += rows.n_rows + sum(a.count for a in rows.set_aside.values())
            self.share = rows.share
            yield fixes

    @property
    def _positions(self) -> list[int]:
        return [*self._columns.positions.values(), *self._conditions]

    def _every_time(self) -> Iterator[pa.ChunkedArray]:
        positions = [
            self._columns.positions[role]
            for role in ("date", "time")
            if role in self._columns.positions
        ]
        for rows in self._source.batches(positions):
            yield self._time_column(rows)

    def _time_column(self, rows: RawRows) -> pa.ChunkedArray:
        """Times of a batch; a date and a clock time in two columns put together."""
        at = self._columns.positions
        time = _plain(rows.columns[at["time"]])
        if "date" not in at:
            return time
        date, clock = (_as_text(rows.columns[at[role]]) for role in ("date", "time"))
        both = pc.binary_join_element_wise(date, clock, pa.scalar(" ", pa.large_string()))
        known = pc.and_(pc.not_equal(date, ""), pc.not_equal(clock, ""))
        return pc.if_else(known, both, "")

    def _read(self, rows: RawRows) -> Fixes:
        first_row = self._rows_seen
        self._rows_seen += rows.n_rows
        self.account.follow(first_row, rows.line_numbers)
        self.account.add_counted(rows.set_aside)
        sieve = _Sieve(rows, self._columns.positions, first_row, self.account)
        for position, (column, value) in self._conditions.items():
            sieve.take(f"not {column}={value}", ~equals(rows.columns[position], value))
        people = _People.of(self._user_column(rows))
        for cause, mask in people.causes.items():
            sieve.take(cause, mask)
        utc, causes = self._times.read(self._time_column(rows))
        for cause, mask in causes.items():
            sieve.take(cause, mask)
        places = self._places.read(
            {role: _plain(rows.columns[at]) for role, at in self._places_at.items()}
        )
        for cause, mask in places.causes.items():
            sieve.take(cause, mask)
        if "accuracy" in self._columns.positions:
            self._judge(rows.columns[self._columns.positions["accuracy"]], sieve)
        kept = np.flatnonzero(sieve.kept)
        user = self._number(people, kept)
        if len(kept) == rows.n_rows:
            return Fixes(user, utc, places.lon, places.lat, kept + first_row)
        return Fixes(user, utc[kept], places.lon[kept], places.lat[kept], kept + first_row)

    def _judge(self, column: pa.ChunkedArray, sieve: _Sieve) -> None:
        """Set aside what is too inaccurate, where a limit is stated; count what is poor."""
        accuracy = _as_numbers(column)
        if self._max_accuracy is not None:
            limit = self._max_accuracy
            sieve.take(f"less accurate than {limit:g} m", accuracy > limit)
        self._poor += int((accuracy[sieve.kept] > POOR_M).sum())

    def _user_column(self, rows: RawRows) -> pa.ChunkedArray:
        at = self._columns.positions.get("user_id")
        if at is None:
            return pa.chunked_array([pa.repeat(pa.scalar("1", pa.large_string()), rows.n_rows)])
        return rows.columns[at]

    def _number(self, people: _People, kept: IntArray) -> IntArray:
        """Numbers of the individuals of the rows that are kept, new ones after those known."""
        codes = self._codes
        of_rows = people.indices if len(kept) == len(people.indices) else people.indices[kept]
        present = np.zeros(len(people.ids), dtype=bool)
        present[of_rows] = True
        numbers = np.full(len(people.ids), -1, dtype=np.int64)
        met = [user for user, here in zip(people.ids, present.tolist(), strict=True) if here]
        numbers[present] = [codes.setdefault(user, len(codes)) for user in met]
        return numbers[of_rows]


@dataclass(frozen=True)
class _People:
    """Whose the rows of a batch are: ids in order of appearance, and the index of each row's."""

    ids: list[str]
    indices: IntArray
    causes: Mapping[str, BoolArray]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _People:
        """Ids are looked at once each, not once a row."""
        if not pa.types.is_dictionary(column.type):
            column = (column if is_text(column) else _as_text(column)).dictionary_encode()
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        ids = _as_text(pa.chunked_array([array.dictionary]))
        ids = pa.chunked_array([*ids.chunks, pa.array([""], ids.type)])  # the last is nobody's
        indices = pc.fill_null(array.indices.cast(pa.int64()), len(ids) - 1).to_numpy()
        causes = {}
        for cause, wrong in (
            ("missing user id", as_mask(pc.is_in(pc.utf8_lower(ids), _NO_ID))),
            ("line break in the user id", as_mask(pc.match_substring(ids, "\n"))),
        ):
            if wrong[:-1].any() or array.null_count:
                causes[cause] = wrong[indices]
        return cls(ids.to_pylist(), np.asarray(indices), causes)


class _Sieve:
    """Which rows of a batch are kept; a row goes out once, for the first cause that takes it."""

    def __init__(
        self, rows: RawRows, positions: Mapping[str, int], first_row: int, account: Account
    ) -> None:
        self.kept: BoolArray = np.ones(rows.n_rows, dtype=bool)
        self._rows, self._positions = rows, positions
        self._first_row, self._account = first_row, account

    def take(self, cause: str, mask: BoolArray) -> None:
        fresh = np.flatnonzero(mask & self.kept)
        if len(fresh):
            self.kept[fresh] = False
            self._account.add(cause, fresh + self._first_row, lambda: self._example(int(fresh[0])))

    def _example(self, row: int) -> str:
        return ", ".join(
            f"{role}={_shown(self._rows.columns[at], row)}" for role, at in self._positions.items()
        )


def conditions_of(
    source: RawSource, where: tuple[tuple[str, str], ...]
) -> dict[int, tuple[str, str]]:
    """Position to (column name, wanted value) of each condition.

    Raises
    ------
    InputError
        If there is no such column.
    """
    found = {}
    for column, value in where:
        position = position_of(source, column)
        if position is None:
            raise InputError(
                f"No column is called {printable(column)!r} to select rows by; "
                f"the file has: {show_names(source)}.",
                code="unknown-column",
            )
        found[position] = (column, value)
    return found


def _shown(column: pa.ChunkedArray, row: int) -> str:
    try:
        value = column[row].as_py()
    except (OverflowError, ValueError):  # a stamp beyond what Python can write
        return "out of range"
    return printable("" if value is None else value, 40)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as trimmed text; whole numbers of a float column lose their ".0", null is empty."""
    column = _plain(column)
    if pa.types.is_floating(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        text = column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise InputError(
            f"A column holds {column.type}; give text or numbers.", code="unusable-column-type"
        ) from error
    return pc.fill_null(pc.utf8_trim_whitespace(text), "")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose values may be kept in a dictionary, without one."""
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def _as_numbers(column: pa.ChunkedArray) -> FloatArray:
    """Numbers (n,), NaN where there is none."""
    text = _as_text(column).to_pandas()
    return np.asarray(pd.to_numeric(pd.Series(text, dtype="str"), errors="coerce"), dtype=float)


def equals(column: pa.ChunkedArray, value: str) -> BoolArray:
    """Whether each value of a column (n,) is the wanted one, as text or as a number."""
    same = as_mask(pc.equal(_as_text(column), value.strip()))
    try:
        number = float(value)
    except ValueError:
        return same
    equal: BoolArray = _as_numbers(column) == number
    return same | equal
