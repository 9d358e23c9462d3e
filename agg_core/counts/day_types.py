"""Types of days that somebody names: public holidays of a place, and labels of their own."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.counts.pairs import DAY_TYPES, FEWEST_DAYS, CountPairs
from agg_core.counts.public_holidays import is_holiday
from agg_core.tables.counts import CountTable

__all__ = ["HOLIDAY", "DaysNamed", "Labels", "TypedDays", "check_labels", "joined_sentences"]

IntArray = npt.NDArray[np.int64]
Pairs = TypeVar("Pairs", bound=CountPairs)
Labels = tuple[tuple[str, str], ...]

HOLIDAY = "holiday"
WEEKDAY_NAME, WEEKEND_NAME = DAY_TYPES

MOST_LABELS = 12
"""Different labels at most: each may have times of day of its own."""

LONGEST_LABEL = 40
SATURDAY_FROM_THURSDAY = 2
"""Days from the first of January 1970, a Thursday, to the first Saturday."""


def check_labels(labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> Labels:
    """Labels of days as they are kept: a date, YYYY-MM-DD, and a label each, in order of dates.

    Raises
    ------
    InputError
        If a date is none, has two labels, or labels are empty, too long or too many.
    """
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    found: dict[str, str] = {}
    for date, given in pairs:
        day, label = _day(date), " ".join(str(given).split())
        if not label or len(label) > LONGEST_LABEL or not label.isprintable():
            raise InputError(
                f"The label of {day} is {printable(label)!r}; give each day a word or a few, of "
                f"{LONGEST_LABEL} letters at most.",
                code="day-label-unusable",
            )
        if label.casefold() in (*DAY_TYPES, HOLIDAY):
            label = label.casefold()
        if found.setdefault(day, label) != label:
            raise InputError(
                f"{day} is labelled {printable(found[day])!r} and {printable(label)!r}; give each "
                "day one label.",
                code="day-labels-conflict",
            )
    several = set(found.values()) - {*DAY_TYPES, HOLIDAY}
    if len(several) > MOST_LABELS:
        raise InputError(
            f"There are {len(several):,} different labels of days; give {MOST_LABELS} at most.",
            code="too-many-day-labels",
        )
    return tuple(sorted(found.items()))


def _day(date: str) -> str:
    text = str(date).strip()
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(
            f"{printable(text)!r} is no date of a labelled day; write it as 2024-05-01.",
            code="day-label-without-date",
        ) from None


@dataclass(frozen=True)
class TypedDays:
    """Types of days of counts, and what became of names that too few days have.

    Attributes
    ----------
    names : types in order, weekdays and weekends first
    dates : local dates, YYYY-MM-DD, of each type; a date is of the last type that it may count as
    joined : names that too few days have, and how many; these days count as what they would be
        without that name, holidays as days of weekends
    """

    names: tuple[str, ...]
    dates: tuple[tuple[str, ...], ...]
    joined: tuple[tuple[str, int], ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is to be said of names that too few days have."""
        return joined_sentences(self.joined)


def joined_sentences(joined: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """What is to be said of names that too few days have, of which the numbers are given."""
    told = []
    for name, n_days in joined:
        days = "1 day is" if n_days == 1 else f"{n_days:,} days are"
        otherwise = "days of weekends" if name == HOLIDAY else "what they are without that label"
        told.append(
            f"{name}: {days} too few for a type of their own, which takes {FEWEST_DAYS}; counted "
            f"as {otherwise}." if n_days else f"No day that was counted is called {name}."
        )  # fmt: skip
    return tuple(told)


@dataclass(frozen=True)
class DaysNamed:
    """Which days are of a type of their own: holidays of a place, and days with a label.

    ``holidays`` is a place (see `agg_core.counts.public_holidays.check_place`), None for none;
    ``labels`` are dates, YYYY-MM-DD on the local clock, with a label each, which counts before all
    else. A label may also be one of the other types: weekday, weekend or holiday.
    """

    holidays: str | None = None
    labels: Labels = ()

    @property
    def is_asked(self) -> bool:
        """Whether any day is named."""
        return self.holidays is not None or bool(self.labels)

    def check(self, table: CountTable) -> None:
        """Refuse counts whose dates are not known, if days are named.

        Raises
        ------
        InputError
            Since dates of such a table stand for others.
        """
        if self.is_asked and not table.has_dates:
            raise InputError(
                "These counts are means over the days of months, so that no single date is known; "
                "leave out holidays and labels of days, or load counts with dates.",
                code="dates-unknown",
            )

    def on(self, pairs: Pairs) -> Pairs:
        """Pairs with the types of days that are named; the same if none is."""
        if not self.is_asked or pairs.date is None:
            return pairs
        dates, at = np.unique(pairs.date, return_inverse=True)
        names, bits, _ = self._typed(dates)
        return replace(pairs, day_type=bits[at], day_types=names)

    def told(self, pairs: CountPairs) -> TypedDays | None:
        """Types of the days of pairs; None where their dates are not known."""
        if pairs.date is None:
            return None
        dates = np.unique(pairs.date)
        names, bits, joined = self._typed(dates)
        number = np.zeros(len(dates), dtype=np.int64)
        for kind in range(1, len(names)):
            number[bits >> (kind - 1) & 1 == 1] = kind
        shown = np.array(_texts(dates))
        of_type = (tuple(shown[number == kind].tolist()) for kind in range(len(names)))
        return TypedDays(names, tuple(of_type), joined)

    def _typed(
        self, dates: IntArray
    ) -> tuple[tuple[str, ...], IntArray, tuple[tuple[str, int], ...]]:
        """Names of types, what dates (n,) are as in `CountPairs.day_type`, and names of too few."""
        texts = _texts(dates)
        labels = dict(self.labels)
        label = np.array([labels.get(text, "") for text in texts], dtype=object)
        weekend = (dates - SATURDAY_FROM_THURSDAY) % 7 < 2
        holiday = np.zeros(len(dates), dtype=bool)
        if self.holidays is not None:
            holiday = is_holiday(self.holidays, texts)
        holiday = (holiday & ~np.isin(label, DAY_TYPES)) | (label == HOLIDAY)
        weekend = ((weekend | holiday) & (label != WEEKDAY_NAME)) | (label == WEEKEND_NAME)
        own = sorted({*labels.values()} - {*DAY_TYPES, HOLIDAY})
        n_days = {name: int((label == name).sum()) for name in own}
        kept = [name for name in own if n_days[name] >= FEWEST_DAYS]
        joined = [(name, n) for name, n in n_days.items() if n < FEWEST_DAYS]
        bits, names = weekend.astype(np.int64), [*DAY_TYPES]
        holiday_asked = self.holidays is not None or HOLIDAY in labels.values()
        if holiday_asked:
            n_holidays = int((holiday & ~np.isin(label, kept)).sum())
            if n_holidays >= FEWEST_DAYS:
                bits[holiday] += 1 << (len(names) - 1)
                names.append(HOLIDAY)
            else:
                joined.insert(0, (HOLIDAY, n_holidays))
        for name in kept:
            bits[label == name] += 1 << (len(names) - 1)
            names.append(name)
        return tuple(names), bits, tuple(joined)


def _texts(dates: IntArray) -> list[str]:
    return [str(date) for date in dates.astype("datetime64[D]")]
