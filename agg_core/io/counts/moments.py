"""Times of a table of counts: instants, times of day, and unbroken runs one step apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.clock import DAY, check_zone, clock_label, clock_minutes, to_local, to_utc
from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.values import Coded, bare_date, paired, without_zeros
from agg_core.io.guess.times import ParsedTimes, parse_times

__all__ = [
    "Moments",
    "Runs",
    "clock_moments",
    "nice_step",
    "period_moments",
    "runs_of",
    "stepped",
]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]

NIGHT, DAYTIME = ("night 01:00-05:00", 1), ("day 11:00-15:00", 11)
PERIOD_STEP = np.timedelta64(10, "h").astype("timedelta64[us]")
_PERIODS = {"1": NIGHT, "0": DAYTIME}
"""Labels of the periods of the MLIT data and the hours in which they begin."""
_KINDS = {"1": ("weekday", 1), "0": ("holiday", 6)}
"""Kinds of day of the MLIT data, and the day of the week that stands for each."""

NICE_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440)
EVEN = 0.9
"""Share of spacings that are the same where moments are even."""


@dataclass(frozen=True)
class Moments(ParsedTimes):
    """Times of rows, and the label of each time of day.

    ``slots`` are labels by local minute of the day where the table names its periods itself;
    ``step`` is how far they are apart where it does, None to find out.
    """

    slots: Mapping[int, str] = field(default_factory=dict)
    step: np.timedelta64 | None = None


@dataclass(frozen=True)
class Runs:
    """Of n moments in order: the number of the unbroken run of each, its slot, and the labels."""

    sequence: IntArray
    slot: IntArray
    slots: tuple[str, ...]
    step: np.timedelta64


def clock_moments(
    columns: Mapping[str, Coded],
    typed: pa.ChunkedArray | None,
    clock: str,
    zone: str | None,
    choices: CountChoices,
) -> Moments:
    """Instants of a column of times, or of one of dates and one of clock times, hours or slots.

    ``typed`` is the column of times where its file gives it as such.

    Raises
    ------
    InputError
        If no value can be read.
    """
    if "time" in columns:
        column = columns["time"]
        slots: dict[int, str] = {}
        told: dict[str, Guess] = {}
    else:
        times, slots, told = _clock_texts(columns["clock"], clock, choices)
        column = paired(columns["date"].changed(bare_date), times)
    whole = pa.chunked_array([column.texts], pa.large_string()) if typed is None else typed
    read = parse_times(whole, zone, choices.time_format)
    utc, causes = read.utc, read.causes
    if typed is None:
        utc, causes = utc[column.codes], {why: mask[column.codes] for why, mask in causes.items()}
    return Moments(utc, causes, read.timezone, {**told, **read.guesses}, slots)


def _clock_texts(
    column: Coded, kind: str, choices: CountChoices
) -> tuple[Coded, dict[int, str], dict[str, Guess]]:
    """Clock times as hh:mm, whatever they were written as."""
    if kind == "slots":
        return _slot_texts(column, choices)
    told = {}
    if kind in ("hours", "hhmm"):
        words = {"hours": "hours of the day", "hhmm": "hhmm, zeros in front may be lost"}
        told["clock"] = Guess(words[kind])
    return column.changed(lambda text: _clock_text(without_zeros(text), kind)), {}, told


def _clock_text(text: str, kind: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        return text
    if kind == "hours":
        return f"{int(text):02d}:00"
    padded = text.zfill(6 if len(text) > 4 else 4)
    return f"{padded[:2]}:{padded[2:4]}"


def _slot_texts(
    column: Coded, choices: CountChoices
) -> tuple[Coded, dict[int, str], dict[str, Guess]]:
    """Slots are an order: clock times for them are stated, or stand for it."""
    numbers = [int(t) if t.isascii() and t.isdigit() and len(t) < 5 else None
               for t in map(without_zeros, column.texts)]  # fmt: skip
    last = max((number for number in numbers if number is not None), default=0)
    first = clock_minutes(choices.first_slot or "00:00")
    length = choices.slot_minutes or _slot_length(last, first)
    minutes = [None if n is None else round(first + n * length) for n in numbers]
    texts = ["" if m is None else clock_label(60 * m) for m in minutes]
    labels = {m % 1440: f"slot {n}" for m, n in zip(minutes, numbers, strict=True) if m is not None}
    if choices.first_slot is not None and choices.slot_minutes is not None:
        return Coded(column.codes, texts), {}, {}
    note = "slots are an order; say when slot 0 begins (first_slot) and how long one is"
    value = f"slots of {length:g} minutes from {clock_label(60 * first)}"
    told = {"slots": Guess(value, (), note, "slot_minutes")}
    return Coded(column.codes, texts), labels, told


def _slot_length(last: int, first: int) -> float:
    """The longest usual length with which a day holds all slots."""
    for length in (60, 30, 20, 15, 10, 5, 2, 1):
        if first + (last + 1) * length <= 1440:
            return length
    raise InputError(
        f"Slots are numbered up to {last:,}, more than a day has; "
        "say how long one is (slot_minutes), or give times.",
        code="slots-beyond-day",
    )


def period_moments(columns: Mapping[str, Coded], zone: str) -> tuple[Moments, BoolArray]:
    """Instants that stand for the periods of the MLIT data, and the rows that are totals (n,).

    A month has two kinds of day, a day a night and a daytime. Both kinds and both periods
    together are totals, which are left out unless there is nothing else.

    Raises
    ------
    InputError
        If no row is of a month, a kind of day and a period.
    """
    kinds, periods = (columns[role].changed(without_zeros) for role in ("dayflag", "period"))
    totals = _is_total(kinds, _KINDS) | _is_total(periods, _PERIODS)
    all_days, all_hours = not _any(kinds, _KINDS), not _any(periods, _PERIODS)
    known_kinds = {"2": ("all days", 1)} if all_days else _KINDS
    known_periods = {"2": ("whole day", 0)} if all_hours else _PERIODS
    months = paired(columns["year"], columns["month"], "-")
    key = paired(paired(months, kinds), periods)
    local = np.array([_stand_in(text, known_kinds, known_periods) for text in key.texts],
                     dtype="datetime64[us]")  # fmt: skip
    reading = to_utc(local, check_zone(zone))
    utc = reading.utc[key.codes]
    slots = {hour * 60: label for label, hour in known_periods.values()}
    note = "the first Tuesday stands for the weekdays of a month, the first Sunday for holidays"
    told = {"dates": Guess("months and kinds of day", (), note)}
    unread = np.isnat(utc) & ~totals
    found = Moments(utc, {"unreadable period": unread}, zone, told, slots, PERIOD_STEP)
    return found, totals


def _any(column: Coded, known: Mapping[str, object]) -> bool:
    return bool(set(column.texts) & set(known))


def _is_total(column: Coded, known: Mapping[str, object]) -> BoolArray:
    """Rows of a total over the others, where there are others."""
    if not _any(column, known):
        return np.zeros(len(column), dtype=bool)
    return column.where(lambda text: text == "2")


def _stand_in(
    text: str, kinds: Mapping[str, tuple[str, int]], periods: Mapping[str, tuple[str, int]]
) -> np.datetime64:
    """The local time that stands for "year-month kind period"; NaT if there is none such."""
    parts = re.fullmatch(r"(\d{4})(?:\.0)?-0?(\d{1,2})(?:\.0)? (\d) (\d)", text)
    if not parts or parts[3] not in kinds or parts[4] not in periods:
        return np.datetime64("NaT")
    year, month = int(parts[1]), int(parts[2])
    if not (1 <= month <= 12 and 1900 <= year < 2200):
        return np.datetime64("NaT")
    first = np.datetime64(f"{year:04d}-{month:02d}-01")
    weekday = int((first.astype(np.int64) + 3) % 7)
    date = first + (kinds[parts[3]][1] - weekday) % 7
    begin: np.datetime64 = date.astype("datetime64[us]") + np.timedelta64(periods[parts[4]][1], "h")
    return begin


def stepped(utc: TimeArray, minutes: float, *, nearest: bool = False) -> TimeArray:
    """Instants (n,) put back to the beginning of their step, or to the nearest one."""
    step = np.int64(round(minutes * 60e6))
    us = utc.astype("datetime64[us]").astype(np.int64) + (step // 2 if nearest else 0)
    return (us // step * step).astype("datetime64[us]")


def nice_step(times: TimeArray) -> float | None:
    """The usual step in minutes nearest to the spacing of uneven moments; None if they are even."""
    spacings, numbers = np.unique(np.diff(times), return_counts=True)
    if len(spacings) == 0 or numbers.max() > EVEN * numbers.sum():
        return None
    minutes = float(np.median(np.diff(times)) / np.timedelta64(1, "m"))
    return float(min(NICE_MINUTES, key=lambda nice: abs(np.log(nice / max(minutes, 1e-3)))))


def runs_of(times: TimeArray, found: Moments) -> Runs:
    """Runs and times of day of moments (n,) in order, each once.

    The step is the commonest spacing; steps of whole days are those of the local clock.
    """
    local, labels = to_local(times, found.timezone), found.slots
    step, apart = _step(np.diff(times), np.diff(local), found.step)
    sequence = np.concatenate([[0], np.cumsum(apart)]).astype(np.int64)
    minutes = (local - local.astype("datetime64[D]")).astype("timedelta64[s]").astype(np.int64)
    present, slot = np.unique(minutes, return_inverse=True)
    slots = tuple(_label(int(second), labels) for second in present)
    return Runs(sequence, slot.astype(np.int64), slots, step)


def _step(
    utc: npt.NDArray[np.timedelta64],
    local: npt.NDArray[np.timedelta64],
    stated: np.timedelta64 | None,
) -> tuple[np.timedelta64, BoolArray]:
    """The commonest spacing, unless it is stated, and which spacings are another."""
    if len(utc) == 0:
        return np.timedelta64(1, "h"), np.zeros(0, dtype=bool)
    spacings, numbers = np.unique(utc, return_counts=True)
    step = spacings[numbers.argmax()] if stated is None else stated
    apart = utc != step
    if step % DAY == np.timedelta64(0):
        apart &= local != step
    return step, apart


def _label(second: int, labels: Mapping[int, str]) -> str:
    if second % 60 == 0 and second // 60 in labels:
        return labels[second // 60]
    return clock_label(second)
