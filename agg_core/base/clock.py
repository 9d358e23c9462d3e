"""Clocks: time zones by name, instants to local clock times and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import printable

__all__ = [
    "DAY",
    "LocalReading",
    "check_zone",
    "clock_label",
    "clock_minutes",
    "day_limits",
    "later_on_the_clock",
    "offset_zone",
    "to_local",
    "to_utc",
    "zone_info",
]

MANY = 1_000
"""Times from which a look at the clock of every day pays."""
DAY = np.timedelta64(1, "D").astype("timedelta64[us]")

TimeArray = npt.NDArray[np.datetime64]
BoolArray = npt.NDArray[np.bool_]

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


@dataclass(frozen=True)
class LocalReading:
    """Local clock times read as instants: ``utc`` (n,), NaT where the clock has no single answer.

    ``missing`` (n,) marks times that the clock skips, ``repeated`` (n,) those that it shows twice.
    """

    utc: TimeArray
    missing: BoolArray
    repeated: BoolArray


def offset_zone(minutes: int) -> str:
    """Name of the zone with a constant offset east of Greenwich in minutes: 540 is UTC+09:00."""
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours:02d}:{rest:02d}"


def check_zone(name: str) -> str:
    """The zone's name in the project's spelling: an IANA name, "UTC" or "UTC+09:00".

    Raises
    ------
    InputError
        If no such zone is known.
    """
    text = str(name).strip()
    if text.upper() in {"UTC", "GMT", "Z", "ETC/UTC"}:
        return "UTC"
    if offset := _OFFSET.fullmatch(text):
        sign, hours, minutes = offset.groups()
        total = int(hours) * 60 + int(minutes or 0)
        if total < 24 * 60:
            return offset_zone(-total if sign == "-" else total)
    elif _NAME.fullmatch(text):
        try:
            return ZoneInfo(text).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise InputError(
        f"No time zone is called {text[:60]!r}; use a name such as Asia/Tokyo, or UTC+09:00.",
        code="unknown-time-zone",
    )


def zone_info(name: str) -> tzinfo:
    """The zone as a `datetime.tzinfo`; raises InputError like `check_zone`."""
    checked = check_zone(name)
    if offset := _OFFSET.fullmatch(checked):
        sign, hours, minutes = offset.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-shift if sign == "-" else shift)
    return ZoneInfo(checked)


def to_local(utc: npt.ArrayLike, zone: str) -> TimeArray:
    """Clock times in a zone, (n,) datetime64[us] without zone, of UTC instants (n,)."""
    instants = pd.DatetimeIndex(np.asarray(utc, dtype="datetime64[us]")).tz_localize("UTC")
    return instants.tz_convert(zone_info(zone)).tz_localize(None).to_numpy()


def to_utc(local: npt.ArrayLike, zone: str) -> LocalReading:
    """UTC instants, (n,) datetime64[us], of clock times (n,) in a zone; NaT stays NaT."""
    clock = pd.DatetimeIndex(np.asarray(local, dtype="datetime64[us]"))
    tz = zone_info(zone)
    offset = _steady_offset(clock, tz)
    if offset is not None:
        no = np.zeros(len(clock), dtype=bool)
        return LocalReading(clock.to_numpy() - offset, no, no)
    read = clock.tz_localize(tz, ambiguous="NaT", nonexistent="NaT")
    utc = read.tz_convert("UTC").tz_localize(None).to_numpy()
    unread = np.isnat(utc) & ~np.isnat(clock.to_numpy())
    missing = np.zeros(len(clock), dtype=bool)
    if unread.any():
        first = clock[unread].tz_localize(
            tz, ambiguous=np.ones(unread.sum(), dtype=bool), nonexistent="NaT"
        )
        missing[unread] = np.asarray(first.isna())
    return LocalReading(utc, missing, unread & ~missing)


def _steady_offset(clock: pd.DatetimeIndex, tz: tzinfo) -> np.timedelta64 | None:
    """How far a zone's clock is ahead, if it is the same from two days before to two days after.

    Looked up once a day, which is far less work than for each of many times.
    """
    first, last = clock.min(), clock.max()
    if pd.isna(first) or len(clock) < MANY:
        return None
    days = pd.date_range(first - 2 * DAY, last + 2 * DAY, freq="D", unit="us")
    if len(days) > len(clock):
        return None
    there = days.tz_localize("UTC").tz_convert(tz).tz_localize(None)
    ahead = (there - days).unique()
    return ahead[0].to_timedelta64() if len(ahead) == 1 else None


def clock_minutes(text: str) -> int:
    """Minutes since midnight of a time of day such as 9:00 or 09:00.

    Raises
    ------
    InputError
        If it is none.
    """
    found = _CLOCK.fullmatch(str(text).strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise InputError(
            f"Give a time of day as HH:MM between 00:00 and 23:59, not {str(text)[:40]!r}.",
            code="malformed-clock-time",
        )
    return int(found[1]) * 60 + int(found[2])


def clock_label(seconds: int) -> str:
    """Seconds since midnight as HH:MM, or as HH:MM:SS where they are no whole minutes."""
    label = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{label}:{seconds % 60:02d}" if seconds % 60 else label


def later_on_the_clock(text: str, minutes: float) -> str:
    """The time of day (see `clock_label`) so many minutes after another, past midnight too.

    Raises
    ------
    InputError
        If ``text`` is no time of day.
    """
    return clock_label((clock_minutes(text) * 60 + round(minutes * 60)) % (24 * 3600))


def day_limits(
    first: str | None, last: str | None
) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """Local midnights at which the first day begins and the last one ends.

    Raises
    ------
    InputError
        If one is no date.
    """
    begin, end = _day(first), _day(last)
    return begin, None if end is None else end + DAY


def _day(text: str | None) -> np.datetime64 | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
        raise InputError(
            f"A day must be written as 2024-01-31, not {printable(text)!r}.", code="malformed-date"
        )
    try:
        return np.datetime64(text.strip(), "us")
    except ValueError as error:
        raise InputError(f"There is no day {printable(text)!r}.", code="no-such-date") from error
