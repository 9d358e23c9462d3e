"""What all tables that are read to stand beside known flows have in common.

How they are opened, which of their rows hold a count, and which time of day of the flows a value
of their column of times names, or lies in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

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
from agg_core.io.counts.values import coded, read_counts_of
from agg_core.io.formats.omx import open_omx, recognises_omx
from agg_core.io.formats.registry import HEAD_BYTES, Source, open_content, open_source
from agg_core.io.guess.columns import plain_name
from agg_core.io.guess.times import TimeReader
from agg_core.io.layouts import NO_LAYOUT
from agg_core.io.source import RawRows, RawSource
from agg_core.io.texts import plain, shown_value
from agg_core.tables.counts import PUBLISHED, SUPPRESSED

__all__ = [
    "DAY_SECONDS",
    "NO_DAY",
    "SHOWN_NAMES",
    "CountedRows",
    "DayTimes",
    "KnownTimes",
    "ReadTimes",
    "counted_rows",
    "open_table",
    "seconds_of",
]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SHOWN_NAMES = 8
_CLOCK = re.compile(r"(?:at_)?(\d{1,2})(?:[:_]?(\d{2}))?(?:[:_](\d{2}))?")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{8}")
_HOURS = ("hour", "hourofday", "hhmm", "時間帯")
"""Columns whose bare numbers are hours; elsewhere they may be those of slots, purposes or modes."""
DAY_SECONDS = 24 * 3600

NO_DAY = np.iinfo(np.int64).min
"""The day of a value that has none, such as a clock time."""


class KnownTimes(Protocol):
    """Times of day that flows are known at.

    ``times`` are labels, none of them where flows are of the whole day; ``minutes`` is how long
    each lasts, None up to the next, and ``timezone`` is that of their clock.
    """

    @property
    def times(self) -> Sequence[str]:
        """Labels of times of day."""

    @property
    def minutes(self) -> float | None:
        """How long each lasts; None up to the next."""

    @property
    def timezone(self) -> str:
        """The zone of their clock."""


def open_table(source: Source, name: str) -> RawSource:
    """Open any table that can be opened, and OMX, which only flows are kept in.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    choices = Choices(layout=NO_LAYOUT)
    if isinstance(source, pd.DataFrame | Mapping) or (
        isinstance(source, str | PathLike) and Path(source).is_dir()
    ):
        return open_source(source, choices, of_people=False)
    data = read_content(source, name)
    if recognises_omx(data[:HEAD_BYTES]):
        return open_omx(data, name)
    return open_content(data, name, choices)


@dataclass(frozen=True)
class CountedRows:
    """A batch of rows: all of it, their counts (n,), and which are kept so far."""

    rows: RawRows
    counts: FloatArray
    sieve: Sieve


def counted_rows(
    source: RawSource, at: Mapping[str, int], account: Account
) -> Iterator[CountedRows]:
    """The rows of a table, batch by batch; those without a count are taken out.

    ``at`` is the position of the column of each role, the count among them; ``account`` is told
    why rows go out.
    """
    seen = 0
    for rows in source.batches(list(at.values())):
        account.follow(seen, rows.line_numbers)
        account.add_counted(rows.set_aside)

        def example(row: int, rows: RawRows = rows) -> str:
            return ", ".join(
                f"{role}={shown_value(rows.columns[i], row)}" for role, i in at.items()
            )

        sieve = Sieve(rows.n_rows, account, example, seen)
        counted = read_counts_of(coded(rows.columns[at["count"]]), "missing")
        sieve.take_all(counted.causes)
        sieve.take("suppressed count", counted.status == SUPPRESSED)
        sieve.take("missing count", counted.status != PUBLISHED)
        seen += rows.n_rows
        yield CountedRows(rows, counted.numbers, sieve)


@dataclass(frozen=True)
class ReadTimes:
    """What values of a column of times (n,) say.

    ``number`` is the time among those known, -1 for none; ``seconds`` since midnight, -1 where a
    value is none; ``day`` since 1970, `NO_DAY` where it has none.
    """

    number: IntArray
    seconds: IntArray
    day: IntArray


class DayTimes:
    """Numbers of the times of day that values of a column name, or lie in."""

    def __init__(self, source: RawSource, at: int, known: KnownTimes) -> None:
        self._source, self._at, self._known = source, at, known
        self._hours = plain_name(source.names[at]) in _HOURS
        self._labels = {label: number for number, label in enumerate(known.times)}
        starts = {start: number for label, number in self._labels.items()
                  if (start := seconds_of(label)) is not None}  # fmt: skip
        self._starts = np.array(sorted(starts), dtype=np.int64)
        self._number = np.array([starts[start] for start in sorted(starts)], dtype=np.int64)
        self._moments: TimeReader | None = None

    @classmethod
    def of(cls, source: RawSource, at: int, known: KnownTimes) -> DayTimes | None:
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
            shown = ", ".join(printable(text, 20) for text in sorted(every)[:SHOWN_NAMES])
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
        return None if len(text) < 3 and not self._hours else seconds_of(text)

    def read(self, column: pa.ChunkedArray) -> IntArray:
        """The time (n,) of each value, -1 where it lies in none."""
        return self.read_fully(column).number

    def read_fully(self, column: pa.ChunkedArray) -> ReadTimes:
        """The time of each value, and when in which day it is."""
        if self._moments is not None:
            utc, _ = self._moments.read(plain(column))
            local = to_local(utc, self._known.timezone)
            day = local.astype("datetime64[D]")
            seconds = np.where(np.isnat(local), -1, ((local - day) % DAY).astype(np.int64) // 10**6)
            day_number = np.where(np.isnat(local), NO_DAY, day.astype(np.int64))
            return ReadTimes(self._containing(seconds), seconds, day_number)
        found = coded(column)
        clocks = [self._clock(text) for text in found.texts]
        seconds = np.array([-1 if clock is None else clock for clock in clocks], dtype=np.int64)
        labelled = np.array([self._labels.get(text, -1) for text in found.texts], dtype=np.int64)
        number = np.where(labelled >= 0, labelled, self._containing(seconds))
        return ReadTimes(
            np.asarray(number[found.codes]), np.asarray(seconds[found.codes]),
            np.full(len(found.codes), NO_DAY),
        )  # fmt: skip

    def _containing(self, seconds: IntArray) -> IntArray:
        """The time that each second of the day lies in; -1 for none."""
        if len(self._starts) == 0:
            return np.full(len(seconds), -1, dtype=np.int64)
        # The last one of a day may go on after midnight.
        at = np.searchsorted(self._starts, seconds, side="right") - 1
        since = (seconds - self._starts[at]) % DAY_SECONDS
        lasts = DAY_SECONDS if self._known.minutes is None else 60 * self._known.minutes
        return np.where((seconds >= 0) & (since < lasts), self._number[at], -1)


def seconds_of(text: str) -> int | None:
    """Seconds since midnight of a time of day: 8:05, 08:05:00, 0805, or 8, an hour; else None."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    if hour > 24 or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) % DAY_SECONDS
