"""Days of service: entries and exits day by day, from one quiet night to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.clock import clock_label
from agg_core.base.errors import InputError
from agg_core.tables.gates import GateTable

__all__ = ["ServiceDays", "kinds_of_days", "passing_as", "service_days"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

DAY_MINUTES = 24 * 60
LEAST_KNOWN = 0.8
"""Share of a usual day's people that the steps which were counted have; days below are left out."""
LEAST_STEPS = 0.5
"""Share of the steps of a day that something must be counted in: gates may be shut at night."""
CLOSED_BELOW = 0.02
"""Share of its usual people below which a station is taken as closed on a day."""


PERIODS = 6
"""Periods of a day in which pairs stray on their own."""

FEWEST_OF_KIND, MUCH_NEARER = 3, 0.8
"""Days that a kind needs for others to be taken as like them, and the part of the distance to its
own kind at which a day is."""


@dataclass(frozen=True)
class ServiceDays:
    """Entries and exits of D days of H steps, of S stations.

    Attributes
    ----------
    dates : local date on which each day began
    entries, exits : (D, H, S) people; of each day both add up to the same
    slot : (H,) number of the time of day of each step, in order of the day of service
    slots : labels of the times of day
    is_open : (D, S) whether a station was open
    step_minutes : length of a step
    n_filled : counts that were missing and are those of usual days
    left_out : days that too little was counted of
    never_left : people who entered and did not leave, (D,), negative where more left
    """

    dates: tuple[str, ...]
    entries: FloatArray
    exits: FloatArray
    slot: IntArray
    slots: tuple[str, ...]
    is_open: BoolArray
    step_minutes: float
    n_filled: int
    left_out: tuple[str, ...]
    never_left: FloatArray

    @property
    def n_days(self) -> int:
        """Number of days D."""
        return len(self.dates)

    @property
    def n_stations(self) -> int:
        """Number of stations S."""
        return int(self.entries.shape[2])

    @property
    def period(self) -> IntArray:
        """Period (H,) of each step: `PERIODS` of a day, of about as many people each."""
        passed = self.entries.sum(axis=(0, 2))
        before = np.cumsum(passed) - passed / 2
        share = before / max(float(passed.sum()), 1e-300)
        return np.asarray(np.minimum((share * PERIODS).astype(np.int64), PERIODS - 1))

    def by_hour(self) -> ServiceDays:
        """The same in steps of an hour at least, where more of them make one."""
        several = int(60 // self.step_minutes) if 60 % self.step_minutes == 0 else 1
        n_steps = self.entries.shape[1]
        if several <= 1 or n_steps % several:
            return self
        shape = (self.n_days, n_steps // several, several, self.n_stations)
        return replace(
            self,
            entries=self.entries.reshape(shape).sum(axis=2),
            exits=self.exits.reshape(shape).sum(axis=2),
            slot=self.slot[::several],
            step_minutes=self.step_minutes * several,
        )


def service_days(table: GateTable) -> ServiceDays:
    """Days of a table, each from the quietest time of the night to the next such time.

    Who enters in the last hour of a day leaves after midnight: days are cut where fewest people
    pass. Of each day entries and exits are scaled to the larger sum of the two, as everybody who
    enters leaves somewhere. Counts that are missing become those of the other days of the same
    kind; a day of which too much is missing is left out.

    Raises
    ------
    InputError
        If steps are longer than an hour or do not divide it, or no day is whole.
    """
    minutes = table.step_minutes
    if minutes > 60 or 60 % minutes:
        raise InputError(
            f"Entries and exits are needed by the hour or finer; these are of steps of {minutes:g} "
            "minutes.",
            code="steps-too-long",
        )
    n_steps = round(DAY_MINUTES / minutes)
    local = table.local_times
    moment = (local - local[0].normalize()) // np.timedelta64(round(minutes * 60), "s")
    at = np.asarray(moment, dtype=np.int64)
    n_dates = int(at.max()) // n_steps + 2
    sides = []
    for side in (table.entries, table.exits):
        whole = np.full((n_dates * n_steps, table.n_stations), np.nan)
        # An hour that a clock is set back by has two moments of one name.
        order = np.argsort(at, kind="stable")
        unique, first = np.unique(at[order], return_index=True)
        whole[unique] = np.add.reduceat(side.counts[order], first, axis=0)
        sides.append(whole)
    passed = np.nansum(np.stack(sides), axis=(0, 2)).reshape(n_dates, n_steps).sum(axis=0)
    cut = _quietest(passed)
    entries, exits = (
        np.concatenate([side[cut:], np.full((cut, table.n_stations), np.nan)]).reshape(
            n_dates, n_steps, -1
        )
        for side in sides
    )
    start = local[0].normalize()
    dates = tuple(str((start + np.timedelta64(d, "D")).date()) for d in range(n_dates))
    return _whole_days(dates, entries, exits, cut, minutes)


def _quietest(passed: FloatArray) -> int:
    """The step (of a day) at the end of the longest run of steps as quiet as any, at night."""
    quiet = passed <= passed.min()
    ends = [
        step for step in range(len(passed)) if quiet[step] and not quiet[(step + 1) % len(quiet)]
    ]
    if not ends:
        return 0

    def length(end: int) -> int:
        n = 0
        while n < len(quiet) and quiet[(end - n) % len(quiet)]:
            n += 1
        return n

    best = max(ends, key=length)
    return (best + 1 - (length(best) + 1) // 2) % len(passed)


def _whole_days(
    dates: tuple[str, ...],
    entries: FloatArray,
    exits: FloatArray,
    cut: int,
    minutes: float,
) -> ServiceDays:
    kind = kinds_of_days(dates)
    n_steps = entries.shape[1]
    usual = [_usual(side, kind) for side in (entries, exits)]
    unknown = [np.isnan(side) for side in (entries, exits)]
    missed = sum(
        np.where(gone, mean, 0.0).sum(axis=(1, 2))
        for gone, mean in zip(unknown, usual, strict=True)
    )
    both = sum(mean.sum(axis=(1, 2)) for mean in usual)
    counted = np.asarray(~np.stack(unknown).all(axis=(0, 3)), dtype=np.bool_)
    some = counted.any(axis=1)
    whole = counted.mean(axis=1) >= LEAST_STEPS
    kept = whole & (np.asarray(missed) <= (1 - LEAST_KNOWN) * np.asarray(both))
    kept &= np.asarray(both) > 0
    if not kept.any():
        raise InputError(
            "No day was counted from morning to night at the gates; give one whole day at least.",
            code="no-whole-day",
        )
    entered, left = (
        np.where(gone, mean, side)[kept]
        for side, gone, mean in zip((entries, exits), unknown, usual, strict=True)
    )
    sums = np.stack([entered.sum(axis=(1, 2)), left.sum(axis=(1, 2))])
    scale = sums.max(axis=0) / np.maximum(sums, 1e-300)
    never = sums[0] - sums[1]
    entered, left = (
        side * factor[:, None, None] for side, factor in zip((entered, left), scale, strict=True)
    )
    passed = entered.sum(axis=1) + left.sum(axis=1)
    typical = _median(passed)
    clock = (np.arange(n_steps) + cut) % n_steps
    chosen = np.flatnonzero(kept)
    return ServiceDays(
        dates=tuple(dates[d] for d in chosen),
        entries=entered,
        exits=left,
        slot=clock.astype(np.int64),
        slots=tuple(clock_label(round(60 * step * minutes)) for step in range(n_steps)),
        is_open=passed > CLOSED_BELOW * typical,
        step_minutes=minutes,
        n_filled=int(
            sum(
                (gone[kept] & (mean[kept] > 0)).sum()
                for gone, mean in zip(unknown, usual, strict=True)
            )
        ),
        left_out=tuple(dates[d] for d in np.flatnonzero(some & ~kept)),
        never_left=never,
    )


def _median(passed: FloatArray) -> FloatArray:
    """Median people (S,) of the days on which anybody passed a station."""
    found = np.zeros(passed.shape[1])
    for station, days in enumerate(passed.T):
        if (days > 0).any():
            found[station] = np.median(days[days > 0])
    return found


def kinds_of_days(dates: tuple[str, ...], named: Mapping[str, str] | None = None) -> IntArray:
    """Kind (D,) of each day: 0 for Monday to Friday, 1 for Saturday, 2 for Sunday.

    Days that are ``named`` have a kind for each name, after these.
    """
    days = np.array(dates, dtype="datetime64[D]")
    weekday = (days.astype(np.int64) + 3) % 7
    kind = np.maximum(weekday - 4, 0)
    names = sorted(set((named or {}).values()))
    for position, date in enumerate(dates):
        if named and date in named:
            kind[position] = 3 + names.index(named[date])
    return kind.astype(np.int64)


def passing_as(days: ServiceDays, kind: IntArray) -> IntArray:
    """Kinds (D,) by what days are like: a holiday among weekdays is of the kind of Sundays.

    A day is of another kind if where and when people pass is much nearer to the mean of that kind
    than to the mean of the others of its own. Kinds need `FEWEST_OF_KIND` days to be met.
    """
    passed = np.stack([days.entries, days.exits], axis=1).reshape(days.n_days, -1)
    shape = passed / np.maximum(passed.sum(axis=1, keepdims=True), 1e-300)
    numbers = [int(each) for each in np.unique(kind) if (kind == each).sum() >= FEWEST_OF_KIND]
    found = kind.copy()
    for day in range(days.n_days):
        away = {}
        for each in numbers:
            others = np.flatnonzero((kind == each) & (np.arange(days.n_days) != day))
            away[each] = float(np.abs(shape[day] - shape[others].mean(axis=0)).sum())
        if not away:
            continue
        nearest = min(away, key=lambda each: away[each])
        if away[nearest] < MUCH_NEARER * away.get(int(kind[day]), np.inf):
            found[day] = nearest
    return found


def _usual(side: FloatArray, kind: IntArray) -> FloatArray:
    """What is usual at each day's steps and stations: means over days of its kind, or over all."""
    known = ~np.isnan(side)
    people = np.where(known, side, 0.0)
    of_all = people.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    usual = np.empty_like(side)
    for each in np.unique(kind):
        mine = kind == each
        n = known[mine].sum(axis=0)
        mean = people[mine].sum(axis=0) / np.maximum(n, 1)
        usual[mine] = np.where(n > 0, mean, of_all)
    return usual
