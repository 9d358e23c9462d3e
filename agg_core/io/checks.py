"""What only a look at all fixes together can tell: their order, twins, leaps, wrong clocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.account import Account
from agg_core.io.choices import Choices
from agg_core.io.fixes import Fixes
from agg_core.io.guess.people import MOST_MERGED, NAMED_APART_M, SWIFT_KMH
from agg_core.space.degrees import great_circle_km

__all__ = ["OF_TRACKS", "Tidy", "in_order", "unset_clocks", "usual_span"]

APART = np.timedelta64(366, "D")
FAR_APART = np.timedelta64(5 * 366, "D")
"""Fixes that many years from the bulk of a file come from a wrong clock."""
LEAST_ELSEWHERE = 3
UNSET = (
    ("1970-01-01", "1971-12-31", "a clock that was not set, or seconds taken for milliseconds"),
    ("1980-01-01", "1980-01-31", "a receiver that had not found its satellites yet"),
    ("1999-08-21", "1999-08-23", "a receiver whose weeks have begun anew"),
    ("2000-01-01", "2000-01-03", "a clock that was not set"),
)
"""Days on which clocks stand that are wrong, and why."""
PAUSE = np.timedelta64(1, "D")
MOST_RUNS = 2_000

OF_TRACKS = ("max_speed", "duplicates", "time_outliers")
"""Choices that only somebody who sees all fixes of a person, or of the file, can honour."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Span = tuple[np.datetime64, np.datetime64]


class Tidy:
    """Brings fixes in order of individual and time, without twins, leaps and wrong clocks.

    Of a person's fixes at one time one is kept. With ``max_speed`` the largest set of a person's
    unbroken runs is kept in which each can be reached from the one before; without it, moves
    faster than 1,200 km/h are only mentioned. It may be called with some people at a time, of
    each all fixes; ``usual`` is what `usual_span` says of the whole file; ``asks_whose`` that
    nobody has said whose the fixes are.
    """

    def __init__(
        self,
        user_ids: list[str],
        choices: Choices,
        account: Account,
        usual: Span | None,
        *,
        asks_whose: bool = False,
    ) -> None:
        self._user_ids, self._choices, self._account = user_ids, choices, account
        self._usual = usual
        self._n_swift = self._n_far = self._n_twins = self._n_pauses = 0
        self._n_seen = self._n_elsewhere = 0
        self._asks_whose = asks_whose

    def __call__(self, fixes: Fixes) -> Fixes:
        """The fixes that are kept, in order; the others go to the account."""
        choices = self._choices
        fixes = in_order(fixes)
        if self._usual is not None:
            far = (fixes.time < self._usual[0]) | (fixes.time > self._usual[1])
            self._n_far += int(far.sum())
            if choices.time_outliers == "set aside":
                fixes = self._without(fixes, far, "time years away from all others")
        twins = _twins(fixes, choices.duplicates)
        self._n_twins += int(twins.sum())
        self._n_seen += len(fixes)
        self._n_elsewhere += _elsewhere(fixes)
        fixes = self._without(fixes, twins, "duplicate time")
        if choices.max_speed is not None:
            leaps = _leaps(fixes, choices.max_speed)
            fixes = self._without(fixes, leaps, f"faster than {choices.max_speed:g} km/h")
        same = np.diff(fixes.user) == 0
        self._n_pauses += int((same & (np.diff(fixes.time) > PAUSE)).sum())
        self._n_swift += int((_speeds_kmh(fixes) > SWIFT_KMH).sum())
        return fixes

    def refuse_merged(self) -> None:
        """Refuse people who were at several places at one time, unless somebody said they are one.

        Raises
        ------
        InputError
            If that is so of more than a tenth of the fixes, or of most people.
        """
        if not self._asks_whose or self._n_elsewhere < LEAST_ELSEWHERE:
            return
        if self._n_elsewhere > MOST_MERGED * self._n_seen:
            raise InputError(
                f"{self._n_elsewhere:,} of {self._n_seen:,} fixes are at the time of another of "
                "the same person, and far from it, so that several people are taken for one; say "
                "which column names the person.",
                "--column user_id=NAME",
                code="people-merged",
            )

    @property
    def guesses(self) -> dict[str, Guess]:
        """What was decided or noticed so far."""
        found: dict[str, Guess] = {}
        if self._n_far and self._choices.time_outliers == "set aside":
            value = "fixes years away from all others set aside"
            found["clocks"] = Guess(value, ("keep",), "", "time_outliers")
        elif self._n_far:
            note = f"fixes years away from all others: {self._n_far:,}"
            found["clocks"] = Guess("all fixes", ("set aside",), note, "time_outliers")
        if self._n_twins:
            kept = self._choices.duplicates
            other = "first" if kept == "last" else "last"
            found["duplicates"] = Guess(kept, (other,), "", "duplicates")
        if self._n_pauses:
            found["gaps"] = Guess(f"pauses longer than a day: {self._n_pauses:,}")
        if self._n_swift:
            note = f"moves faster than {SWIFT_KMH:,g} km/h: {self._n_swift:,}"
            found["speed"] = Guess("no limit", (), note, "max_speed")
        return found

    def _without(self, fixes: Fixes, out: BoolArray, cause: str) -> Fixes:
        if not out.any():
            return fixes
        self._account.add(
            cause,
            np.sort(fixes.row[out]),
            lambda: _example(fixes, int(np.argmax(out)), self._user_ids),
        )
        return fixes.take(~out)


def unset_clocks(fixes_per_day: Mapping[np.datetime64, int]) -> dict[str, Guess]:
    """What to say of days on which clocks stand that nobody has set."""
    total = sum(fixes_per_day.values())
    for first, last, why in UNSET:
        begin, end = np.datetime64(first), np.datetime64(last)
        n = sum(count for day, count in fixes_per_day.items() if begin <= day <= end)
        if n and 2 * n >= total:
            return {"clock": Guess(f"days from {first}", (), f"{n:,} fixes lie there: {why}")}
    return {}


def _elsewhere(fixes: Fixes) -> int:
    """Fixes in order at the time of the one before of the same person, a kilometre away."""
    if len(fixes) < 2:
        return 0
    same = (np.diff(fixes.user) == 0) & (np.diff(fixes.time) == np.timedelta64(0, "us"))
    at = np.flatnonzero(same)
    if not len(at):
        return 0
    return int((_way_km(fixes, at, at + 1) > NAMED_APART_M / 1000).sum())


def usual_span(fixes_per_day: Mapping[np.datetime64, int]) -> Span | None:
    """First and last instant that are no more than five years from the bulk of a file.

    The bulk are the days with most fixes among those with no gap of a year between. None if
    nothing lies so far away.
    """
    days = np.array(sorted(fixes_per_day), dtype="datetime64[D]")
    if len(days) == 0 or days[-1] - days[0] < FAR_APART:
        return None
    counts = np.array([fixes_per_day[day] for day in days])
    starts = np.concatenate([[0], np.flatnonzero(np.diff(days) > APART) + 1])
    bulk = int(np.argmax(np.add.reduceat(counts, starts)))
    end = [*starts[1:], len(days)][bulk] - 1
    return (
        (days[starts[bulk]] - FAR_APART).astype("datetime64[us]"),
        (days[end] + FAR_APART).astype("datetime64[us]"),
    )


def in_order(fixes: Fixes) -> Fixes:
    """By individual, time, and row of the file."""
    step = np.diff(fixes.user)
    later = np.diff(fixes.time) >= np.timedelta64(0, "us")
    if ((step > 0) | ((step == 0) & later)).all():
        return fixes
    return fixes.take(np.lexsort((fixes.row, fixes.time, fixes.user)))


def _twins(fixes: Fixes, kept: str) -> BoolArray:
    """Fixes of an individual at the time of another, later or earlier in the file, that is kept."""
    same = (np.diff(fixes.user) == 0) & (np.diff(fixes.time) == np.timedelta64(0, "us"))
    ends = [same, [False]] if kept == "last" else [[False], same]
    return np.concatenate(ends).astype(bool)


def _speeds_kmh(fixes: Fixes) -> FloatArray:
    """Speed from each fix to the next of the same individual (n - 1,); NaN between individuals."""
    return _speed_kmh(fixes, np.arange(len(fixes) - 1), np.arange(1, len(fixes)))


def _speed_kmh(fixes: Fixes, a: IntArray, b: IntArray) -> FloatArray:
    hours = (fixes.time[b] - fixes.time[a]) / np.timedelta64(1, "h")
    km = _way_km(fixes, a, b)
    speed = np.divide(km, hours, out=np.full(len(km), np.nan), where=hours > 0)
    return np.where(fixes.user[a] == fixes.user[b], speed, np.nan)


def _way_km(fixes: Fixes, a: IntArray, b: IntArray) -> FloatArray:
    return great_circle_km(fixes.lon[a], fixes.lat[a], fixes.lon[b], fixes.lat[b])


def _leaps(fixes: Fixes, limit_kmh: float) -> BoolArray:
    """Fixes outside the largest set that a person can pass through at the speed limit."""
    out = np.zeros(len(fixes), dtype=bool)
    fast = _speeds_kmh(fixes) > limit_kmh
    if not fast.any():
        return out
    users = np.unique(fixes.user[:-1][fast])
    begins = np.searchsorted(fixes.user, users, side="left")
    ends = np.searchsorted(fixes.user, users, side="right")
    for begin, end in zip(begins, ends, strict=True):
        breaks = np.flatnonzero(fast[begin : end - 1]) + begin + 1
        runs = [(int(s), int(e)) for s, e in zip([begin, *breaks], [*breaks, end], strict=True)]
        for start, stop in _unreachable(fixes, runs, limit_kmh):
            out[start:stop] = True
    return out


def _unreachable(
    fixes: Fixes, runs: list[tuple[int, int]], limit_kmh: float
) -> list[tuple[int, int]]:
    """Runs outside the chain with the most fixes; each run looks back at most so far."""
    firsts = np.array([start for start, _ in runs])
    lasts = np.array([stop - 1 for _, stop in runs])
    best = (lasts - firsts + 1).astype(np.int64)
    before = np.full(len(runs), -1)
    for i in range(1, len(runs)):
        back = np.arange(max(0, i - MOST_RUNS), i)
        reached = back[_speed_kmh(fixes, lasts[back], np.full(len(back), firsts[i])) <= limit_kmh]
        if len(reached):
            before[i] = reached[np.argmax(best[reached])]
            best[i] += best[before[i]]
    kept = set()
    at = int(np.argmax(best))
    while at >= 0:
        kept.add(at)
        at = int(before[at])
    return [run for i, run in enumerate(runs) if i not in kept]


def _example(fixes: Fixes, i: int, user_ids: list[str]) -> str:
    return (
        f"user_id={printable(user_ids[int(fixes.user[i])], 40)}, time={str(fixes.time[i])[:19]}, "
        f"lon={fixes.lon[i]:.6f}, lat={fixes.lat[i]:.6f}"
    )
