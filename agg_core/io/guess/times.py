"""A column of times to UTC instants: one format for the whole column, vectorised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.clock import check_zone, offset_zone, to_utc
from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.texts import as_mask, is_missing, is_text, trimmed

__all__ = [
    "DATE_ORDERS",
    "TIME_FORMATS",
    "ParsedTimes",
    "TimeReader",
    "looks_like_clock",
    "looks_like_time",
    "parse_times",
]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]
Columns = Callable[[], Iterable[pa.ChunkedArray]]

YEAR_FIRST = "year-month-day"
DAY_FIRST = "day/month/year"
MONTH_FIRST = "month/day/year"
COMPACT = "yearmonthday without separators"
NAMED = "month by name"
KANJI = "year, month and day by their Japanese signs"
SERIAL = "days since 1900, as Excel counts"
EPOCH = {"seconds": 10**6, "milliseconds": 10**3, "microseconds": 1, "nanoseconds": 0}
GARMIN, GPS = (
    "seconds since 1989-12-31, as Garmin counts",
    "seconds since 1980-01-06, as GPS counts",
)
OTHER_ZERO = {GARMIN: 631_065_600, GPS: 315_964_800}
"""Clocks that count seconds from another moment, in Unix seconds. GPS has no leap seconds, of
which none is taken off here."""
TIME_FORMATS = (
    *(YEAR_FIRST, DAY_FIRST, MONTH_FIRST, COMPACT, NAMED, KANJI, SERIAL),
    *(f"epoch {unit}" for unit in EPOCH),
    *OTHER_ZERO,
)
"""What `time_format` may be."""
DATE_ORDERS = {"year": YEAR_FIRST, "day": DAY_FIRST, "month": MONTH_FIRST}
"""What comes first in a date, and the time format that says so."""

_CLOCK = (
    r"(?:(?:T|,?\s+)(?P<h>\d{1,2}):?(?P<mi>\d{2})(?::?(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
_OFFSET = r"\s*(?P<zone>Z|z|UTC|GMT|(?P<sign>[+-])(?P<oh>\d{2}):?(?P<om>\d{2})?)?$"
_PATTERNS = {
    YEAR_FIRST: r"^(?P<y>\d{4})[-/.](?P<a>\d{1,2})[-/.](?P<b>\d{1,2})" + _CLOCK + _OFFSET,
    DAY_FIRST: r"^(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4}|\d{2})" + _CLOCK + _OFFSET,
    # Alone, a date may have gone through a column of numbers: 20240501.0.
    COMPACT: r"^(?P<y>(?:19|20)\d{2})(?P<a>0[1-9]|1[0-2])(?P<b>[0-3]\d)"
    r"(?:\.0+|[T ]?(?P<h>[0-2]\d):?(?P<mi>[0-5]\d):?(?P<s>[0-5]\d)?)?(?P<f>)(?P<half>)" + _OFFSET,
}
_WEEKDAY = r"(?i)^(?:[a-z]{2,9}\.?,?\s+)?"
_MONTH = r"([a-zäû]{3,9})\.?"
_NAMED_PATTERNS = (
    # As C writes it: Tue Apr 03 18:00:09 +0000 2012.
    (
        _WEEKDAY + _MONTH + r"\s+(\d{1,2})\s+(\d{1,2}:\d{2}(?::\d{2})?)"
        r"\s*([+-]\d{2}:?\d{2}|UTC|GMT)?\s+(\d{4})$",
        r"\5-\1-\2 \3\4",
    ),
    (
        _WEEKDAY + r"(\d{1,2})(?:st|nd|rd|th|\.)?[\s-]+" + _MONTH + r",?[\s-]+(\d{4})(.*)$",
        r"\3-\2-\1\4",
    ),
    (
        _WEEKDAY + _MONTH + r"\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(.*)$",
        r"\3-\1-\2\4",
    ),
)
_MONTHS = (
    *("jan", "feb", "mar|mär|mrz", "apr", "may|mai", "jun", "jul", "aug", "sep", "oct|okt"),
    *("nov", "dec|dez"),
)
_KANJI_PATTERN = r"^\d{4}年\d{1,2}月\d{1,2}日"
_KANJI_STEPS = (
    (r"[年月]", "-"),
    (r"日\s*", " "),
    (r"午前\s*(\S+)", r"\1 AM"),
    (r"午後\s*(\S+)", r"\1 PM"),
    (r"時( |$)", r":00\1"),
    (r"[時分]([\d])", r":\1"),
    (r"[分秒]", ""),
    (r":(\d)(:|$| )", r":0\1\2"),
    (r":(\d)(:|$| )", r":0\1\2"),
)
_NUMBER = r"^[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?$"
_SCIENTIFIC = re.compile(r"[+-]?\d(?:\.(\d*))?[eE]\+?(\d{1,2})")
_COARSEST_S = 60.0
"""A rounding of numbers by more seconds than that has lost the time of day."""
_ZONE_NAME = r"\s*\[(?P<name>[A-Za-z][A-Za-z0-9_+/-]{1,40})\]$"
_INITIALS = {
    **{"JST": "+09:00", "KST": "+09:00", "CET": "+01:00", "CEST": "+02:00", "EET": "+02:00"},
    **{"EEST": "+03:00", "WET": "+00:00", "WEST": "+01:00", "MSK": "+03:00", "EST": "-05:00"},
    **{"EDT": "-04:00", "CDT": "-05:00", "MST": "-07:00", "MDT": "-06:00", "PST": "-08:00"},
    **{"PDT": "-07:00", "AKST": "-09:00", "AKDT": "-08:00", "HST": "-10:00", "AEST": "+10:00"},
    **{"AEDT": "+11:00", "NZST": "+12:00", "NZDT": "+13:00", "SGT": "+08:00", "HKT": "+08:00"},
}
"""Initials of zones that mean one offset everywhere."""
_ZONE_INITIALS = rf"\s+(?P<name>{'|'.join(_INITIALS)})$"
_CLOCK_ALONE = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp]\.?[Mm]\.?)?|\d{4}|\d{6}")
_SAMPLE = 5000
_HOURS = 48  # a service day may run on past midnight: 25:10 is 01:10 of the next day
_YEARS = (1900, 2200)  # a stamp beyond them is a broken clock, and would break every time axis
_CENTURY_ENDS = 70  # years of two digits: 69 is 2069, 70 is 1970
_EARLIEST_EPOCH_SECONDS = 10**8  # 1973; smaller numbers are slots, serials or clock times
_LATEST_GARMIN = 1.3e9  # 2031 as Garmin counts, 2011 as Unix does
_SERIALS = (18_264.0, 73_051.0)  # 1950 to 2100
_SERIAL_ZERO = np.datetime64("1899-12-30", "us")


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
    patterns = (*_PATTERNS.values(), _KANJI_PATTERN, *(named for named, _ in _NAMED_PATTERNS))
    known = any(pc.match_substring_regex(value, p)[0].as_py() for p in patterns)
    return known and (":" in text or "時" in text)


def looks_like_clock(text: str) -> bool:
    """Whether a value is a time of day without a date: 8:05, 08:05:00 PM, 0805."""
    return bool(_CLOCK_ALONE.fullmatch(text.strip()))


def parse_times(
    column: pa.ChunkedArray, tz: str | None = None, time_format: str | None = None
) -> ParsedTimes:
    """Read a whole column of timestamps, dates, epoch numbers or text, (n,); see `TimeReader`."""
    reader = TimeReader(lambda: [column], tz, time_format)
    utc, causes = reader.read(column)
    return ParsedTimes(utc, causes, reader.timezone, reader.guesses)


class TimeReader:
    """Times of one column, read batch by batch and all in one form.

    Times with an offset are instants already; those without take ``tz`` (UTC when it is None).
    ``time_format`` (one of `TIME_FORMATS`) settles what the column leaves open; else the form is
    that of the first values, and the order of day and month the one in which more of the whole
    column exists. ``columns`` gives the batches of the column from the first, each time that it is
    called; only an open order needs them all.

    ``timezone`` and ``guesses`` tell of the batches read so far. ``like_fit`` says that the file is
    written as activity trackers of the FIT format count, whose seconds begin in 1989.

    Raises
    ------
    InputError
        If the zone or format is unknown, or no value can be read.
    """

    def __init__(
        self,
        columns: Columns,
        tz: str | None = None,
        time_format: str | None = None,
        *,
        like_fit: bool = False,
    ) -> None:
        self.tz = None if tz is None else check_zone(tz)
        if time_format is not None and time_format not in TIME_FORMATS:
            raise InputError(
                f"No time format is called {printable(time_format)!r}; "
                f"use one of: {', '.join(TIME_FORMATS)}.",
                code="unknown-time-format",
            )
        self._offsets: set[int] = set()
        self._naive = 0
        self._stored_zone: str | None = None
        self._said_zone: str | None = None
        self._named_zones = False
        first = _first_filled(columns)
        kind = first.type
        self._typed = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        self._is_text = is_text(first)
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if self._typed:
            self.family, self._format = "", Guess("timestamps")
            return
        if not (self._is_text or numeric):
            raise InputError(
                f"The time column holds {kind}; give text, timestamps or numbers.",
                code="unusable-column-type",
            )
        self._named_zones = self._is_text and _names_zones(trimmed(first))
        if self._named_zones:
            columns = self._without_zones(columns)
            first = _first_filled(columns)
        text = trimmed(first) if self._is_text else None
        present = None if text is None else text.filter(pc.invert(is_missing(text)))
        if present is not None:
            family = _family(present.slice(0, _SAMPLE), time_format)
        else:
            family = "number"
        if family == "number":
            numbers = _numbers(present.slice(0, _SAMPLE) if present is not None else first)
            if present is not None:
                _refuse_rounded(present.slice(0, _SAMPLE))
            family, self._format = _unit(numbers, time_format, like_fit)
        elif family == DAY_FIRST:
            family, self._format = _date_order(columns, time_format)
        else:
            self._format = Guess(family, option="time_format")
        self.family = family

    def read(self, column: pa.ChunkedArray) -> tuple[TimeArray, dict[str, BoolArray]]:
        """Instants (n,) datetime64[us] in UTC of a batch, NaT where there is none, and why."""
        if self._typed:
            return self._read_typed(column)
        if self._named_zones:
            column = self._without_zone(column)
        if self.family == YEAR_FIRST and self._is_text:
            fast = self._cast(column)
            if fast is not None:
                return fast
        if not self._is_text:
            missing = as_mask(pc.is_null(column, nan_is_null=True))
            return self._read_numbers(column, missing)
        text = trimmed(column)
        missing = as_mask(is_missing(text))
        if self.family == SERIAL or self.family.startswith("epoch") or self.family in OTHER_ZERO:
            numeric = pc.match_substring_regex(text, _NUMBER)
            return self._read_numbers(_to_numbers(pc.if_else(numeric, text, None)), missing)
        return self._read_calendar(text, missing)

    def peek(self, column: pa.ChunkedArray) -> TimeArray:
        """Instants (n,) of a batch that will be read once more, of which nothing is noted."""
        before = set(self._offsets), self._naive, self._stored_zone
        utc, _ = self.read(column)
        self._offsets, self._naive, self._stored_zone = before
        return utc

    def _without_zones(self, columns: Columns) -> Columns:
        return lambda: (self._without_zone(column) for column in columns())

    def _without_zone(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Texts without the name of a zone at their end; initials as the offset that they mean.

        Raises
        ------
        InputError
            If no offset is there and several zones are named, or one that does not exist.
        """
        text = trimmed(column)
        named = pc.struct_field(pc.extract_regex(text, _ZONE_NAME), "name")
        bare = pc.replace_substring_regex(text, _ZONE_NAME, "")
        names = pc.unique(named.drop_null()).to_pylist()
        if names:
            open_names = pc.unique(
                named.filter(
                    pc.invert(pc.match_substring_regex(bare, r"(?:[Zz]|[+-]\d{2}:?\d{2})$"))
                ).drop_null()
            ).to_pylist()
            if open_names and self.tz is None:
                if len(names) > 1:
                    raise InputError(
                        f"The times name several zones ({', '.join(map(printable, names[:4]))}) "
                        "and no offset; state one, or write them with their offsets.",
                        "--tz ZONE", code="several-zones",
                    )  # fmt: skip
                self.tz = check_zone(names[0])
            elif len(names) == 1 and self.tz is None:
                self._said_zone = check_zone(names[0])
        for initials, offset in _INITIALS.items():
            if pc.any(pc.match_substring_regex(bare, rf"\s{initials}$")).as_py():
                bare = pc.replace_substring_regex(bare, rf"\s+{initials}$", offset)
        return bare

    @property
    def is_typed(self) -> bool:
        """Whether the column holds dates or timestamps, which need no guess."""
        return bool(self._typed)

    @property
    def timezone(self) -> str:
        """The zone of the clock to show."""
        return self._zone()[0]

    @property
    def guesses(self) -> dict[str, Guess]:
        """What was taken for the form of the times and their zone."""
        zone = {"time zone": self._zone()[1]}
        return zone if self._typed else {"time format": self._format, **zone}

    def _zone(self) -> tuple[str, Guess]:
        found = [offset_zone(minutes) for minutes in sorted(self._offsets)]
        tz = self.tz
        if self._stored_zone is not None:
            zone = tz or self._stored_zone
            other = (self._stored_zone,) if self._stored_zone != zone else ()
            return zone, Guess(zone, other, option="tz")
        tz = tz or self._said_zone
        if self.family.startswith("epoch") or self.family in OTHER_ZERO:
            note = "" if tz else "Unix time has no zone of its own; state one to see a local clock"
            return tz or "UTC", Guess(tz or "UTC", (), note, "tz")
        if not found:
            note = "the zone was not stated; state it, such as Asia/Tokyo, if these are local times"
            return tz or "UTC", Guess(tz or "UTC", (), "" if tz else note, "tz")
        mixed = f"times without an offset ({self._naive:,}) are read in {tz or 'UTC'}"
        note = mixed if self._naive else ""
        if tz is not None:
            return tz, Guess(tz, tuple(zone for zone in found if zone != tz), note, "tz")
        if len(found) == 1 and not self._naive:
            return found[0], Guess(found[0], option="tz")
        return "UTC", Guess("UTC", tuple(zone for zone in found if zone != "UTC"), note, "tz")

    # ------------------------------------------------------------------ dates and clock times

    def _read_calendar(
        self, text: pa.ChunkedArray, missing: BoolArray
    ) -> tuple[TimeArray, dict[str, BoolArray]]:
        fast = self._read_iso(text, missing) if self.family == YEAR_FIRST else None
        if fast is not None:
            return fast
        local, fields = _clock_times(text, self.family)
        has_offset = fields.filled("zone")
        offset = np.where(fields.filled("sign"), fields["oh"] * 60 + fields["om"], 0)
        offset = np.where(fields.equals("sign", "-"), -offset, offset)
        wrong = ~missing & (np.isnat(local) | (np.abs(offset) >= 24 * 60))
        local[wrong] = np.datetime64("NaT")
        read = ~np.isnat(local)
        utc = local - offset.astype("timedelta64[m]")
        self._offsets |= set(np.unique(offset[has_offset & read]).tolist())
        return self._settle(utc, missing, wrong, ~has_offset & read)

    def _cast(self, column: pa.ChunkedArray) -> tuple[TimeArray, dict[str, BoolArray]] | None:
        """A column of plain ISO times without offset, by Arrow at once."""
        try:
            read = column.cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            return None
        if read.null_count or len(read) == 0:
            return None
        utc = read.to_numpy().astype("datetime64[us]")
        if not (_in_years(utc[[utc.argmin(), utc.argmax()]])).all():
            return None
        none = np.zeros(len(utc), dtype=bool)
        return self._settle(utc, none, none, ~none)

    def _read_iso(
        self, text: pa.ChunkedArray, missing: BoolArray
    ) -> tuple[TimeArray, dict[str, BoolArray]] | None:
        """The batch by Arrow's own parser, ten times as fast, where it understands every value."""
        present = pc.if_else(pa.array(missing), None, text)
        offsets: set[int] = set()
        kind = pa.timestamp("us")
        ends = pc.utf8_slice_codeunits(present, -6, None).combine_chunks()
        if len(ends) and pc.all(pc.ends_with(ends, "Z")).as_py():
            present, offsets = pc.utf8_slice_codeunits(present, 0, -1), {0}
        elif len(ends) and pc.all(pc.match_substring_regex(ends, r"^[+-]\d\d:\d\d$")).as_py():
            kind = pa.timestamp("us", "UTC")
            offsets = {_minutes(end) for end in pc.unique(ends).to_pylist() if end}
        try:
            if pc.any(pc.match_substring(present.slice(0, _SAMPLE), "/")).as_py():
                present = pc.replace_substring(present, "/", "-")
            read = present.cast(kind).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            return None
        utc = read.to_numpy().astype("datetime64[us]")
        wrong = ~missing & ~_in_years(utc)
        utc = np.where(wrong | missing, np.datetime64("NaT"), utc)
        self._offsets |= offsets
        naive = np.zeros(len(utc), dtype=bool) if offsets else ~np.isnat(utc)
        return self._settle(utc, missing, wrong, naive)

    def _settle(
        self, utc: TimeArray, missing: BoolArray, wrong: BoolArray, naive: BoolArray
    ) -> tuple[TimeArray, dict[str, BoolArray]]:
        """Read the times without an offset on the clock of the zone."""
        zone = self.tz or "UTC"
        self._naive += int(naive.sum())
        causes = {"missing time": missing, "unreadable time": wrong}
        if naive.any() and zone != "UTC":
            reading = to_utc(utc[naive], zone)
            utc[naive] = reading.utc
            causes |= _clock_causes(naive, reading.missing, reading.repeated, zone)
        return utc, causes

    def _read_typed(self, column: pa.ChunkedArray) -> tuple[TimeArray, dict[str, BoolArray]]:
        """Timestamps or dates of a typed file."""
        missing = as_mask(pc.is_null(column))
        try:
            in_us = column.cast(pa.timestamp("us"), safe=False)
        except pa.ArrowInvalid as error:
            raise InputError(
                "The time column holds times beyond any calendar.", code="times-beyond-calendar"
            ) from error
        times = in_us.to_numpy().astype("datetime64[us]")
        broken = ~missing & ~_in_years(times)
        times = np.where(broken, np.datetime64("NaT"), times)
        stored = getattr(column.type, "tz", None)
        if stored is not None:
            try:
                self._stored_zone = check_zone(stored)
            except InputError:
                self._stored_zone = "UTC"
            return times, {"missing time": missing, "unreadable time": broken}
        return self._settle(times, missing, broken, ~np.isnat(times))

    # ------------------------------------------------------------------------------- numbers

    def _read_numbers(
        self, numbers: pa.ChunkedArray, missing: BoolArray
    ) -> tuple[TimeArray, dict[str, BoolArray]]:
        """Seconds, milli-, micro- or nanoseconds since 1970, or days since 1900."""
        values = pc.fill_null(numbers, 0).to_numpy()
        valid = as_mask(pc.is_valid(numbers)) & np.isfinite(values)
        if self.family == SERIAL:
            fits = valid & (values >= 0) & (values < 200_000)
            # A serial carries no more than some milliseconds exactly.
            ms = np.round(np.where(fits, values, 0).astype(float) * 86_400_000).astype(np.int64)
            utc = _SERIAL_ZERO + ms.astype("timedelta64[ms]")
        else:
            zero = OTHER_ZERO.get(self.family, 0)
            factor = 10**6 if zero else EPOCH[self.family.removeprefix("epoch ")]
            values = values + zero
            fits = valid & (np.abs(values.astype(float)) < 9e18 / max(factor, 1))
            utc = _since_1970(np.where(fits, values, 0), factor)
        fits &= _in_years(utc)
        utc[~fits] = np.datetime64("NaT")
        wrong = ~fits & ~missing
        if self.family == SERIAL:
            return self._settle(utc, missing, wrong, ~np.isnat(utc))
        return utc, {"missing time": missing, "unreadable time": wrong}


def _first_filled(columns: Columns) -> pa.ChunkedArray:
    """The first batch that holds any value."""
    for column in columns():
        if is_text(column):
            empty = bool(pc.all(is_missing(trimmed(column))).as_py())
        else:
            empty = bool(pc.all(pc.is_null(column, nan_is_null=True)).as_py())
        if len(column) and not empty:
            return column
    raise InputError(
        "The time column is empty; choose another column for time.", code="empty-time-column"
    )


def _family(sample: pa.ChunkedArray, time_format: str | None) -> str:
    """Which kind of writing most of the sample follows."""
    if time_format is not None:
        if _counts(time_format):
            return "number"
        short = time_format == YEAR_FIRST and _hits(sample, _PATTERNS[DAY_FIRST])
        return DAY_FIRST if time_format == MONTH_FIRST or short else time_format
    hits = {name: _hits(sample, pattern) for name, pattern in _PATTERNS.items()}
    hits["number"] = _hits(sample, _NUMBER)
    if not any(hits.values()):
        hits[KANJI] = _hits(sample, _KANJI_PATTERN)
        hits[NAMED] = sum(_hits(sample, pattern) for pattern, _ in _NAMED_PATTERNS)
    best = max(hits, key=lambda name: hits[name] + (name == COMPACT) * 0.5)
    if hits[best] == 0:
        raise InputError(
            f"The time column holds {printable(sample[0].as_py())!r}, which is no time that can be "
            "read; write it as YYYY-MM-DD HH:MM:SS, ISO 8601 or Unix seconds, "
            "or choose another column.",
            code="unreadable-times",
        )
    return best


def _counts(time_format: str) -> bool:
    """Whether a format of times is that of numbers."""
    return time_format.startswith("epoch") or time_format == SERIAL or time_format in OTHER_ZERO


def _names_zones(text: pa.ChunkedArray) -> bool:
    """Whether texts end with the name or the initials of a zone."""
    sample = text.slice(0, _SAMPLE)
    return any(_hits(sample, pattern.replace("?P<name>", "")) for pattern in
               (_ZONE_NAME, _ZONE_INITIALS))  # fmt: skip


def _refuse_rounded(sample: pa.ChunkedArray) -> None:
    """Refuse numbers in powers of ten that have lost the time of day.

    Raises
    ------
    InputError
        With an example.
    """
    for text in sample.to_pylist():
        found = _SCIENTIFIC.fullmatch(text)
        if not found:
            return
        digits, power = len((found[1] or "").rstrip("0")), int(found[2])
        per_second = 10.0 ** (3 * max((power - 9) // 3, 0))
        if 10.0 ** (power - digits) / per_second <= _COARSEST_S:
            return
    if len(sample):
        raise InputError(
            f"The times, such as {printable(sample[0].as_py())}, are rounded to few digits, as "
            "spreadsheets do; export them again as text.",
            code="rounded-times",
        )


def _hits(sample: pa.ChunkedArray, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(sample, pattern), min_count=0).as_py() or 0)


def _date_order(columns: Columns, time_format: str | None) -> tuple[str, Guess]:
    """The order of day and month in which more of all dates exist, and lie in the past.

    Where both do alike, dots mean day first and a 12-hour clock month first.
    """
    orders = (DAY_FIRST, MONTH_FIRST, YEAR_FIRST)
    if time_format in orders:
        return _two_digit_family(time_format), Guess(time_format, option="time_format")
    counts = dict.fromkeys(orders, 0)
    tomorrow = np.datetime64("now", "us") + np.timedelta64(1, "D")
    dotted = half_day = False
    for column in columns():
        fields = _Fields(trimmed(column), _PATTERNS[DAY_FIRST])
        for order in orders:
            times = fields.in_order(order)
            counts[order] += int((~np.isnat(times)).sum() + (times <= tomorrow).sum())
        dotted |= bool(pc.any(pc.match_substring(column.slice(0, _SAMPLE), ".")).as_py())
        half_day |= bool(fields.filled("half").any())
    chosen = MONTH_FIRST if half_day and not dotted else DAY_FIRST
    best = max(counts.values())
    if counts[chosen] < best:
        chosen = next(order for order in orders if counts[order] == best)
    others = tuple(o for o in orders if o != chosen and counts[o] == best)
    note = "every date can be read both ways; say which it is" if others else ""
    return _two_digit_family(chosen), Guess(chosen, others, note, "time_format")


def _two_digit_family(order: str) -> str:
    return "two digits, year first" if order == YEAR_FIRST else order


def _clock_times(text: pa.ChunkedArray, family: str) -> tuple[TimeArray, _Fields]:
    """Date and time of each row without zone, and its parts."""
    if family in (NAMED, KANJI):
        text = _named_to_numbers(text) if family == NAMED else _kanji_to_numbers(text)
        family = YEAR_FIRST
    if family in (DAY_FIRST, MONTH_FIRST, "two digits, year first"):
        fields = _Fields(text, _PATTERNS[DAY_FIRST])
        order = YEAR_FIRST if family == "two digits, year first" else family
        return fields.in_order(order), fields
    fields = _Fields(text, _PATTERNS[family])
    return fields.clock_times(fields["y"], fields["a"], fields["b"]), fields


def _named_to_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    for pattern, numbers in _NAMED_PATTERNS:
        text = pc.replace_substring_regex(text, pattern, numbers)
    for month, names in enumerate(_MONTHS, 1):
        named = rf"(?i)^(\d{{4}})-(?:{names})[a-zäû]*-"
        text = pc.replace_substring_regex(text, named, rf"\1-{month:02d}-")
    return text


def _kanji_to_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    for pattern, numbers in _KANJI_STEPS:
        text = pc.replace_substring_regex(text, pattern, numbers)
    return pc.utf8_trim_whitespace(text)


def _to_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:
        return text.cast(pa.float64())


def _numbers(sample: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Values of a sample as numbers, those that are none left out."""
    if is_text(sample):
        sample = _to_numbers(sample.filter(pc.match_substring_regex(sample, _NUMBER)))
    values = np.asarray(pc.drop_null(sample).to_numpy(), dtype=float)
    return np.asarray(values[np.isfinite(values)])


def _unit(
    values: npt.NDArray[np.float64], time_format: str | None, like_fit: bool = False
) -> tuple[str, Guess]:
    """What the numbers count, by the size of the middle one."""
    if time_format is not None and _counts(time_format):
        return time_format, Guess(time_format, option="time_format")
    if len(values) == 0:
        raise InputError(
            "The time column is empty; choose another column for time.", code="empty-time-column"
        )
    middle = float(np.median(np.abs(values)))
    if _SERIALS[0] <= middle < _SERIALS[1]:
        return SERIAL, Guess(SERIAL, option="time_format")
    if middle < _EARLIEST_EPOCH_SECONDS:
        raise InputError(
            f"The time column holds numbers such as {values[0]:g}, too small for Unix time; "
            "give dates, or choose another column.",
            code="numbers-not-times",
        )
    if like_fit and middle < _LATEST_GARMIN:
        note = "as the places are written as FIT writes them"
        return GARMIN, Guess(GARMIN, ("epoch seconds",), note, "time_format")
    limits = {"seconds": 1e11, "milliseconds": 1e14, "microseconds": 1e17}
    unit = next((name for name, top in limits.items() if middle < top), "nanoseconds")
    return f"epoch {unit}", Guess(f"epoch {unit}", option="time_format")


def _since_1970(values: npt.NDArray[np.generic], factor: int) -> TimeArray:
    """Instants of numbers times ``factor`` microseconds; nanoseconds where it is 0."""
    if factor == 0:
        us = values.astype(np.int64) // 1000
    elif np.issubdtype(values.dtype, np.integer):
        us = values.astype(np.int64) * factor
    else:
        us = np.round(values.astype(float) * factor).astype(np.int64)
    return us.astype("datetime64[us]")


def _minutes(offset: str) -> int:
    minutes = int(offset[1:3]) * 60 + int(offset[4:6])
    return -minutes if offset[0] == "-" else minutes


class _Fields:
    """The named parts of each text, as integers or masks (n,)."""

    def __init__(self, text: pa.ChunkedArray, pattern: str) -> None:
        parts = pc.extract_regex(text, pattern).combine_chunks()
        if isinstance(parts, pa.ChunkedArray):
            parts = pa.concat_arrays(parts.chunks)
        self.matched = as_mask(pc.is_valid(parts))
        self._parts = {name: pc.struct_field(parts, name) for name in parts.type.names}

    def __getitem__(self, name: str) -> IntArray:
        part = self._parts[name]
        digits = pc.if_else(pc.equal(part, ""), None, part)
        return _ints(digits.cast(pa.int32()))

    def filled(self, name: str) -> BoolArray:
        return as_mask(pc.greater(pc.binary_length(self._parts[name]), 0))

    def equals(self, name: str, value: str) -> BoolArray:
        return as_mask(pc.equal(pc.utf8_lower(self._parts[name]), value))

    def microseconds(self) -> IntArray:
        six = pc.utf8_slice_codeunits(pc.utf8_rpad(self._parts["f"], 6, "0"), 0, 6)
        return _ints(six.cast(pa.int32()))

    def in_order(self, order: str) -> TimeArray:
        """`clock_times` of dates whose year is written last or, with two digits, perhaps first."""
        first, second, last = self["a"], self["b"], self["y"]
        if order == YEAR_FIRST:
            return self.clock_times(_full_year(first), second, np.where(last < 100, last, 0))
        month, day = (second, first) if order == DAY_FIRST else (first, second)
        return self.clock_times(_full_year(last), month, day)

    def clock_times(self, year: IntArray, month: IntArray, day: IntArray) -> TimeArray:
        """Date and time of each row without zone, NaT where no such date or time exists."""
        hour, minute, second = self["h"], self["mi"], self["s"]
        half_day = self.filled("half")
        afternoon = self.equals("half", "pm") | self.equals("half", "p.m.")
        valid = self.matched & (month >= 1) & (month <= 12) & (day >= 1)
        valid &= (hour < _HOURS) & (minute < 60) & (second <= 60)
        valid &= ~half_day | ((hour >= 1) & (hour <= 12))
        hour = np.where(half_day, hour % 12 + 12 * afternoon, hour)
        months = np.where(valid, (year - 1970) * 12 + month - 1, 0)
        first = months.astype("datetime64[M]").astype("datetime64[D]")
        next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]")
        valid &= (year >= _YEARS[0]) & (year < _YEARS[1])
        date = first + (day - 1).astype("timedelta64[D]")
        valid &= date < next_first
        clock = ((hour * 60 + minute) * 60 + second) * 10**6 + self.microseconds()
        times: TimeArray = date.astype("datetime64[us]") + clock.astype("timedelta64[us]")
        times[~valid] = np.datetime64("NaT")
        return times


def _full_year(year: IntArray) -> IntArray:
    century = np.where(year < _CENTURY_ENDS, 2000, 1900)
    return np.where(year < 100, year + century, year)


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


def _in_years(times: TimeArray) -> BoolArray:
    first, end = (np.datetime64(f"{year}-01-01", "us") for year in _YEARS)
    return (times >= first) & (times < end)


def _ints(values: pa.Array) -> IntArray:
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
