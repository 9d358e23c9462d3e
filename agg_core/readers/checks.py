"""What only a look at all fixes together can tell: their order, twins, leaps, wrong clocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.readers.choices import Choices
from agg_core.readers.fixes import Account, Fixes
from agg_core.readers.report import Guess, printable

__all__ = ["in_order", "tidy"]

EARTH_M = 6_371_008.8
SWIFT_KMH = 1_200.0
"""A speed that no person travels at: moves above it are mentioned."""
APART = np.timedelta64(366, "D")
FAR_APART = np.timedelta64(5 * 366, "D")
"""Fixes that many years from the bulk of a file come from a wrong clock."""
MOST_RUNS = 2_000

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def tidy(
    fixes: Fixes, user_ids: list[str], choices: Choices, account: Account
) -> tuple[Fixes, dict[str, Guess]]:
    """The fixes in order of individual and time, without twins, leaps and wrong clocks.

    Of a person's fixes at one time one is kept. With ``max_speed`` the largest set of a person's
    unbroken runs is kept in which each can be reached from the one before; without it, moves
    faster than 1,200 km/h are only mentioned.
    """

    def put_aside(cause: str, out: BoolArray) -> Fixes:
        account.add(
            cause, np.sort(fixes.row[out]), lambda: _example(fixes, int(np.argmax(out)), user_ids)
        )
        return fixes.take(~out)

    guesses: dict[str, Guess] = {}
    fixes = in_order(fixes)
    far = _far_in_time(fixes)
    if far.any() and choices.time_outliers == "set aside":
        fixes = put_aside("time years away from all others", far)
        guesses["clocks"] = Guess(
            "fixes years away from all others set aside", ("keep",), "", "time_outliers"
        )
    elif far.any():
        note = f"{int(far.sum()):,} fixes are years away from all others"
        guesses["clocks"] = Guess("all fixes", ("set aside",), note, "time_outliers")
    twins = _twins(fixes, choices.duplicates)
    if twins.any():
        fixes = put_aside("duplicate time", twins)
        other = "first" if choices.duplicates == "last" else "last"
        guesses["duplicates"] = Guess(choices.duplicates, (other,), "", "duplicates")
    if choices.max_speed is not None:
        fixes = put_aside(
            f"faster than {choices.max_speed:g} km/h", _leaps(fixes, choices.max_speed)
        )
    swift = _speeds_kmh(fixes) > SWIFT_KMH
    if swift.any():
        note = f"moves faster than {SWIFT_KMH:,g} km/h: {int(swift.sum()):,}"
        guesses["speed"] = Guess("no limit", (), note, "max_speed")
    return fixes, guesses


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


def _far_in_time(fixes: Fixes) -> BoolArray:
    """Fixes more than five years from the bulk of the file, with nothing but gaps between."""
    if len(fixes) == 0 or fixes.time.max() - fixes.time.min() < FAR_APART:
        return np.zeros(len(fixes), dtype=bool)
    times = np.sort(fixes.time)
    borders = np.flatnonzero(np.diff(times) > APART) + 1
    starts = np.concatenate([[0], borders])
    sizes = np.diff(np.append(starts, len(times)))
    bulk = int(np.argmax(sizes))
    first, last = times[starts[bulk]], times[starts[bulk] + sizes[bulk] - 1]
    return np.asarray((fixes.time < first - FAR_APART) | (fixes.time > last + FAR_APART))


def _speeds_kmh(fixes: Fixes) -> FloatArray:
    """Speed from each fix to the next of the same individual (n - 1,); NaN between individuals."""
    return _speed_kmh(fixes, np.arange(len(fixes) - 1), np.arange(1, len(fixes)))


def _speed_kmh(fixes: Fixes, a: IntArray, b: IntArray) -> FloatArray:
    hours = (fixes.time[b] - fixes.time[a]) / np.timedelta64(1, "h")
    lon, lat = np.radians(fixes.lon), np.radians(fixes.lat)
    chord = (
        np.sin((lat[b] - lat[a]) / 2) ** 2
        + np.cos(lat[a]) * np.cos(lat[b]) * np.sin((lon[b] - lon[a]) / 2) ** 2
    )
    km = 2 * EARTH_M / 1000 * np.arcsin(np.sqrt(np.minimum(chord, 1)))
    speed = np.divide(km, hours, out=np.full(len(km), np.nan), where=hours > 0)
    return np.where(fixes.user[a] == fixes.user[b], speed, np.nan)


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
