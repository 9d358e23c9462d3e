"""A column of times to UTC instants: one format for the whole column, vectorised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.clock import check_zone, offset_zone, to_utc
from agg_core.errors import InputError
from agg_core.readers.report import Guess, printable

__all__ = ["TIME_FORMATS", "ParsedTimes", "looks_like_time", "parse_times"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]

YEAR_FIRST = "year-month-day"
DAY_FIRST = "day/month/year"
MONTH_FIRST = "month/day/year"
COMPACT = "yearmonthday without separators"
EPOCH = {"seconds": 10**6, "milliseconds": 10**3, "microseconds": 1, "nanoseconds": 0}
TIME_FORMATS = (YEAR_FIRST, DAY_FIRST, MONTH_FIRST, COMPACT, *(f"epoch {unit}" for unit in EPOCH))
"""What `time_format` may be."""

_CLOCK = (
    r"(?:(?:T|\s+)(?P<h>\d{1,2}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
_OFFSET = r"\s*(?P<zone>Z|z|UTC|GMT|(?P<sign>[+-])(?P<oh>\d{2}):?(?P<om>\d{2})?)?$"
_PATTERNS = {
    YEAR_FIRST: r"^(?P<y>\d{4})[-/.](?P<a>\d{1,2})[-/.](?P<b>\d{1,2})" + _CLOCK + _OFFSET,
    DAY_FIRST: r"^(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})" + _CLOCK + _OFFSET,
    COMPACT: r"^(?P<y>(?:19|20)\d{2})(?P<a>0[1-9]|1[0-2])(?P<b>[0-3]\d)[T ]?"
    r"(?P<h>[0-2]\d)(?P<mi>[0-5]\d)(?P<s>[0-5]\d)?(?P<f>)(?P<half>)" + _OFFSET,
}
_NUMBER = r"^[+-]?\d+(?:\.\d*)?$"
_SAMPLE = 5000
_MISSING = pa.array(["", "nan", "nat", "null", "none", "\\n"])
_HOURS = 48  # a service day may run on past midnight: 25:10 is 01:10 of the next day
_YEARS = (1900, 2200)  # a stamp beyond them is a broken clock, and would break every time axis
_EARLIEST_EPOCH_SECONDS = 10**8  # 1973; smaller numbers are slots, serials or clock times


@dataclass(frozen=True)
class ParsedTimes:
    """Instants (n,) datetime64[us] in UTC, NaT where there is none, and why there is none.

    ``causes`` maps a cause to a mask (n,); ``timezone`` is the zone of the clock to show.
    """

    utc: TimeArray
    causes: Mapping[str, BoolArray]
    timezone: str
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def looks_like_time(text: str) -> bool:
    """Whether one value is a date with a clock time in a known form (epoch numbers are not)."""
    value = pa.array([text.strip()])
    known = any(pc.match_substring_regex(value, p)[0].as_py() for p in _PATTERNS.values())
    return known and ":" in text


def parse_times(
    column: pa.ChunkedArray, tz: str | None = None, time_format: str | None = None
) -> ParsedTimes:
    """Read a column of timestamps, dates, epoch numbers or text, (n,).

    Times with an offset are instants already; those without take ``tz`` (UTC when it is None).
    ``time_format`` (one of `TIME_FORMATS`) settles what the column leaves open.

    Raises
    ------
    InputError
        If the zone or format is unknown, or no value can be read.
    """
    if tz is not None:
        tz = check_zone(tz)
    if time_format is not None and time_format not in TIME_FORMATS:
        raise InputError(
            f"No time format is called {printable(time_format)!r}; "
            f"use one of: {', '.join(TIME_FORMATS)}."
        )
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _typed(column, tz)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        missing = _mask(pc.is_null(column, nan_is_null=True))
        return _epoch(column, missing, tz, time_format)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(f"The time column holds {kind}; give text, timestamps or epoch numbers.")
    return _text(column, tz, time_format)


def _text(column: pa.ChunkedArray, tz: str | None, time_format: str | None) -> ParsedTimes:
    text = pc.fill_null(pc.utf8_trim_whitespace(column), "")
    missing = _mask(pc.is_in(pc.utf8_lower(text), _MISSING))
    present = text.filter(pa.array(~missing))
    if len(present) == 0:
        raise InputError("The time column is empty; choose another column for time.")
    family = _family(present.slice(0, _SAMPLE), time_format)
    if family == "epoch":
        numeric = _mask(pc.match_substring_regex(text, _NUMBER))
        whole = pc.if_else(pa.array(numeric), text, None)
        try:
            numbers = whole.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = whole.cast(pa.float64())
        return _epoch(numbers, missing, tz, time_format)
    return _calendar(text, missing, family, tz, time_format)


def _family(sample: pa.ChunkedArray, time_format: str | None) -> str:
    """Which kind of writing most of the sample follows."""
    if time_format is not None:
        if time_format.startswith("epoch"):
            return "epoch"
        return DAY_FIRST if time_format == MONTH_FIRST else time_format
    patterns = {**_PATTERNS, "epoch": _NUMBER}
    hits = {
        name: pc.sum(pc.match_substring_regex(sample, pattern)).as_py()
        for name, pattern in patterns.items()
    }
    best = max(hits, key=lambda name: hits[name] + (name == COMPACT) * 0.5)
    if hits[best] == 0:
        raise InputError(
            f"The time column holds {printable(sample[0].as_py())!r}, which is no time that can be "
            "read; write it as YYYY-MM-DD HH:MM:SS, ISO 8601 or Unix seconds, "
            "or choose another column."
        )
    return best


def _calendar(
    text: pa.ChunkedArray, missing: BoolArray, family: str, tz: str | None, time_format: str | None
) -> ParsedTimes:
    fields = _Fields(text, _PATTERNS[family])
    if family == DAY_FIRST:
        local, guess = _day_or_month_first(fields, text, time_format)
    else:
        local, guess = fields.clock_times(fields["a"], fields["b"]), Guess(family)
    has_offset = fields.filled("zone")
    offset = np.where(fields.filled("sign"), fields["oh"] * 60 + fields["om"], 0)
    offset = np.where(fields.equals("sign", "-"), -offset, offset)
    wrong = ~missing & (np.isnat(local) | (np.abs(offset) >= 24 * 60))
    local[wrong] = np.datetime64("NaT")
    stated = has_offset & ~np.isnat(local)
    utc = local - offset.astype("timedelta64[m]")
    timezone, zone_guess = _zone(stated, ~has_offset & ~np.isnat(local), offset, tz)
    causes = {"missing time": missing, "unreadable time": wrong}
    naive = ~has_offset
    if naive.any():
        reading = to_utc(local[naive], tz or "UTC")
        utc[naive] = reading.utc
        causes |= _clock_causes(naive, reading.missing, reading.repeated, tz or "UTC")
    return ParsedTimes(utc, causes, timezone, {"time format": guess, "time zone": zone_guess})


def _day_or_month_first(
    fields: _Fields, text: pa.ChunkedArray, time_format: str | None
) -> tuple[TimeArray, Guess]:
    """The reading under which more dates exist; dots mean day first, a 12-hour clock month."""
    readings = {
        DAY_FIRST: fields.clock_times(fields["b"], fields["a"]),
        MONTH_FIRST: fields.clock_times(fields["a"], fields["b"]),
    }
    if time_format in readings:
        return readings[time_format], Guess(time_format)
    days, months = (int((~np.isnat(times)).sum()) for times in readings.values())
    if days != months:
        chosen = DAY_FIRST if days > months else MONTH_FIRST
        return readings[chosen], Guess(chosen)
    dotted = pc.any(pc.match_substring(text.slice(0, _SAMPLE), ".", ignore_case=False)).as_py()
    chosen = MONTH_FIRST if fields.filled("half").any() and not dotted else DAY_FIRST
    other = MONTH_FIRST if chosen == DAY_FIRST else DAY_FIRST
    note = "every date can be read both ways; state time_format to settle it"
    return readings[chosen], Guess(chosen, (other,), note)


class _Fields:
    """The named parts of each text, as integers or masks (n,)."""

    def __init__(self, text: pa.ChunkedArray, pattern: str) -> None:
        parts = pc.extract_regex(text, pattern).combine_chunks()
        if isinstance(parts, pa.ChunkedArray):
            parts = pa.concat_arrays(parts.chunks)
        self.matched = _mask(pc.is_valid(parts))
        self._parts = {name: pc.struct_field(parts, name) for name in parts.type.names}

    def __getitem__(self, name: str) -> IntArray:
        part = self._parts[name]
        digits = pc.if_else(pc.equal(part, ""), None, part)
        return _ints(digits.cast(pa.int32()))

    def filled(self, name: str) -> BoolArray:
        return _mask(pc.greater(pc.binary_length(self._parts[name]), 0))

    def equals(self, name: str, value: str) -> BoolArray:
        return _mask(pc.equal(pc.utf8_lower(self._parts[name]), value))

    def microseconds(self) -> IntArray:
        six = pc.utf8_slice_codeunits(pc.utf8_rpad(self._parts["f"], 6, "0"), 0, 6)
        return _ints(six.cast(pa.int32()))

    def clock_times(self, month: IntArray, day: IntArray) -> TimeArray:
        """Date and time of each row without zone, NaT where no such date or time exists."""
        hour, minute, second = self["h"], self["mi"], self["s"]
        half_day = self.filled("half")
        afternoon = self.equals("half", "pm") | self.equals("half", "p.m.")
        valid = self.matched & (month >= 1) & (month <= 12) & (day >= 1)
        valid &= (hour < _HOURS) & (minute < 60) & (second <= 60)
        valid &= ~half_day | ((hour >= 1) & (hour <= 12))
        hour = np.where(half_day, hour % 12 + 12 * afternoon, hour)
        months = np.where(valid, (self["y"] - 1970) * 12 + month - 1, 0)
        first = months.astype("datetime64[M]").astype("datetime64[D]")
        next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]")
        valid &= (self["y"] >= _YEARS[0]) & (self["y"] < _YEARS[1])
        date = first + (day - 1).astype("timedelta64[D]")
        valid &= date < next_first
        clock = ((hour * 60 + minute) * 60 + second) * 10**6 + self.microseconds()
        times: TimeArray = date.astype("datetime64[us]") + clock.astype("timedelta64[us]")
        times[~valid] = np.datetime64("NaT")
        return times


def _zone(
    stated: BoolArray, naive: BoolArray, offset: IntArray, tz: str | None
) -> tuple[str, Guess]:
    """The zone of the clock to show, and how it was found."""
    found = [offset_zone(int(minutes)) for minutes in np.unique(offset[stated])]
    if not found:
        return _naive_zone(tz)
    mixed = f"times without an offset ({int(naive.sum()):,}) are read in {tz or 'UTC'}"
    note = mixed if naive.any() else ""
    if tz is not None:
        return tz, Guess(tz, tuple(zone for zone in found if zone != tz), note)
    if len(found) == 1 and not naive.any():
        return found[0], Guess(found[0])
    return "UTC", Guess("UTC", tuple(zone for zone in found if zone != "UTC"), note)


def _naive_zone(tz: str | None) -> tuple[str, Guess]:
    if tz is not None:
        return tz, Guess(tz)
    note = "the zone was not stated; state it, such as Asia/Tokyo, if these are local times"
    return "UTC", Guess("UTC", (), note)


def _clock_causes(
    rows: BoolArray, missing: BoolArray, repeated: BoolArray, zone: str
) -> dict[str, BoolArray]:
    """Masks over all n rows for the clock's skipped and repeated hours."""
    causes = {}
    for cause, found in (
        (f"time skipped by the clock of {zone}", missing),
        (f"time shown twice by the clock of {zone}", repeated),
    ):
        mask = np.zeros(len(rows), dtype=bool)
        mask[rows] = found
        causes[cause] = mask
    return causes


def _typed(column: pa.ChunkedArray, tz: str | None) -> ParsedTimes:
    """Timestamps or dates of a typed file."""
    missing = _mask(pc.is_null(column))
    if missing.all():
        raise InputError("The time column is empty; choose another column for time.")
    stored_zone = getattr(column.type, "tz", None)
    try:
        in_us = column.cast(pa.timestamp("us"), safe=False)
    except pa.ArrowInvalid as error:
        raise InputError("The time column holds times beyond any calendar.") from error
    times = in_us.to_numpy().astype("datetime64[us]")
    broken = ~missing & ~_in_years(times)
    times = np.where(broken, np.datetime64("NaT"), times)
    causes = {"missing time": missing, "unreadable time": broken}
    if stored_zone is not None:
        try:
            stored_zone = check_zone(stored_zone)
        except InputError:
            stored_zone = "UTC"
        zone = tz or stored_zone
        other = (stored_zone,) if stored_zone != zone else ()
        return ParsedTimes(times, causes, zone, {"time zone": Guess(zone, other)})
    reading = to_utc(times, tz or "UTC")
    everything = np.ones(len(times), dtype=bool)
    causes |= _clock_causes(everything, reading.missing, reading.repeated, tz or "UTC")
    zone, guess = _naive_zone(tz)
    return ParsedTimes(reading.utc, causes, zone, {"time zone": guess})


def _epoch(
    numbers: pa.ChunkedArray, missing: BoolArray, tz: str | None, time_format: str | None
) -> ParsedTimes:
    """Seconds, milli-, micro- or nanoseconds since 1970 by the size of the middle value."""
    valid = _mask(pc.is_valid(numbers))
    values = pc.fill_null(numbers, 0).to_numpy()
    valid &= np.isfinite(values)
    if not valid.any():
        raise InputError("The time column is empty; choose another column for time.")
    middle = float(np.median(np.abs(values[valid])))
    if time_format is not None and time_format.startswith("epoch"):
        unit = time_format.removeprefix("epoch ")
    elif middle < _EARLIEST_EPOCH_SECONDS:
        raise InputError(
            f"The time column holds numbers such as {values[valid][0]:g}, too small for Unix time; "
            "give dates, or choose another column."
        )
    else:
        limits = {"seconds": 1e11, "milliseconds": 1e14, "microseconds": 1e17}
        unit = next((name for name, top in limits.items() if middle < top), "nanoseconds")
    factor = EPOCH[unit]
    reach = 9e18 / max(factor, 1)
    readable = valid & (np.abs(values.astype(float)) < reach)
    values = np.where(readable, values, 0)
    if factor == 0:
        us = values.astype(np.int64) // 1000
    elif np.issubdtype(values.dtype, np.integer):
        us = values.astype(np.int64) * factor
    else:
        us = np.round(values * factor).astype(np.int64)
    utc = us.astype("datetime64[us]")
    readable &= _in_years(utc)
    utc[~readable] = np.datetime64("NaT")
    zone = tz or "UTC"
    note = "" if tz else "Unix time has no zone of its own; state one to see a local clock"
    guesses = {"time format": Guess(f"epoch {unit}"), "time zone": Guess(zone, (), note)}
    causes = {"missing time": missing, "unreadable time": ~readable & ~missing}
    return ParsedTimes(utc, causes, zone, guesses)


def _in_years(times: TimeArray) -> BoolArray:
    first, end = (np.datetime64(f"{year}-01-01", "us") for year in _YEARS)
    return (times >= first) & (times < end)


def _mask(values: pa.Array | pa.ChunkedArray) -> BoolArray:
    filled = pc.fill_null(values, False)
    if isinstance(filled, pa.ChunkedArray):
        return np.asarray(filled.to_numpy(), dtype=bool)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)


def _ints(values: pa.Array) -> IntArray:
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
