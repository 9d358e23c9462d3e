"""What only a look at all counts together can tell: totals, gaps, cells that are never known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agg_core.base.clock import DAY, to_local
from agg_core.base.report import printable
from agg_core.io.counts.moments import Runs
from agg_core.io.counts.sums import Sums
from agg_core.tables.counts import ESTIMATED, MISSING, PUBLISHED, SUPPRESSED

__all__ = ["remarks_on"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
TimeArray = npt.NDArray[np.datetime64]

BALANCED = 0.5
ROUNDING = 1e-3
"""People, and share of a total, by which totals may differ and still be called equal."""


def remarks_on(
    times: TimeArray, found: Sums, runs: Runs, cells: Sequence[str], zone: str
) -> dict[str, str]:
    """Sentences by what they are about."""
    said = {
        "cells": _never_published(found, cells),
        "kinds": _kinds(found),
        "totals": _totals(times, found, runs, zone),
        "steps": _steps(times, runs, zone),
        "clock": _clock_changes(times, runs, zone),
    }
    return {about: text for about, text in said.items() if text}


def _never_published(found: Sums, cells: Sequence[str]) -> str:
    never = np.flatnonzero(~(found.status == PUBLISHED).any(axis=0))
    if len(never) == 0:
        return ""
    some = ", ".join(printable(cells[i], 30) for i in never[:5])
    more = ", …" if len(never) > 5 else ""
    return f"{len(never):,} of {len(cells):,} cells are never published: {some}{more}."


def _kinds(found: Sums) -> str:
    n = found.status.size
    zero = int((found.counts == 0).sum())
    published, suppressed, missing, estimated = (
        int((found.status == s).sum()) for s in (PUBLISHED, SUPPRESSED, MISSING, ESTIMATED)
    )
    if published == n:
        return ""
    parts = [f"{published:,} are published ({zero:,} of them zero)"]
    if suppressed:
        parts.append(f"{suppressed:,} are suppressed, being below {found.below:g}")
    if missing:
        parts.append(f"{missing:,} were not measured")
    if estimated:
        parts.append(f"{estimated:,} are sums of which a part is suppressed")
    return f"Of {n:,} counts {', '.join(parts[:-1])} and {parts[-1]}.{_estimated(found)}"


def _estimated(found: Sums) -> str:
    """How far sums of which a part is suppressed can be from what they are taken for."""
    rows = found.status == ESTIMATED
    if not rows.any():
        return ""
    least, taken, most = (side[rows].sum() for side in (found.least, found.counts, found.most))
    return (
        f" These sums hold {least:,.0f} people that are published and are taken to hold "
        f"{taken:,.0f}, {most:,.0f} at most."
    )


class _Spread(NamedTuple):
    """How far totals of a run are apart, how much of it nothing explains, and when they are."""

    unexplained: float
    apart: float
    largest: float
    most_at: int
    least_at: int


def _totals(times: TimeArray, found: Sums, runs: Runs, zone: str) -> str:
    """The run whose totals differ most, and how much of it suppressed counts can explain."""
    spreads = [_spread(found, rows) for rows in _runs(times, runs, zone) if len(rows) > 1]
    if not spreads:
        return ""
    worst = max(spreads)
    if worst.apart <= max(BALANCED, ROUNDING * worst.largest):
        return "The published counts of a day add up to the same total at every moment."
    text = (
        f"Within a day the published counts add up to totals that differ by up to "
        f"{worst.apart:,.0f} ({worst.apart / worst.largest:.1%}): most at "
        f"{_when(times[worst.most_at], zone)}, fewest at "
        f"{_when(times[worst.least_at], zone)}; "
    )
    if not (found.most > found.least).any():
        return (
            text + "nothing is suppressed, so that these people come and go, or were not counted."
        )
    if worst.unexplained <= BALANCED:
        return text + "the counts that are suppressed can explain all of it."
    return text + (
        f"suppressed counts can explain {worst.apart - worst.unexplained:,.0f} of these, and "
        f"{worst.unexplained:,.0f} people at least come and go, or were not counted."
    )


def _spread(found: Sums, rows: IntArray) -> _Spread:
    """Totals of the cells that were measured at every moment of a run."""
    known = (found.status[rows] != MISSING).all(axis=0)
    low, high = (side[rows][:, known].sum(axis=1) for side in (found.least, found.most))
    most, least = int(low.argmax()), int(low.argmin())
    return _Spread(
        max(float(low.max() - high.min()), 0.0), float(low[most] - low[least]), float(low[most]),
        int(rows[most]), int(rows[least]),
    )  # fmt: skip


def _runs(times: TimeArray, runs: Runs, zone: str) -> list[IntArray]:
    """Moments of each run, and of each local day of it."""
    days = to_local(times, zone).astype("datetime64[D]").astype(np.int64)
    breaks = (np.diff(runs.sequence) != 0) | (np.diff(days) != 0)
    return np.split(np.arange(len(times)), np.flatnonzero(breaks) + 1)


def _when(time: np.datetime64, zone: str) -> str:
    local = to_local(np.array([time]), zone)[0]
    return str(np.datetime_as_string(local, unit="m")).replace("T", " ")


def _steps(times: TimeArray, runs: Runs, zone: str) -> str:
    n_runs = int(runs.sequence[-1]) + 1
    n = len(times)
    step = duration(runs.step)
    moments = "moment" if n == 1 else "moments"
    if n_runs == 1:
        return f"{n:,} {moments}, one every {step}, without a gap."
    single = int((np.bincount(runs.sequence) == 1).sum())
    alone = f"; of {single:,} runs one moment is all, so that no move is seen" if single else ""
    lacking = _without_row(times, runs, zone)
    gaps = f"; {lacking:,} moments of these days have no row" if lacking else ""
    return f"{n:,} {moments} in {n_runs:,} unbroken runs of steps of {step}{gaps}{alone}."


def _without_row(times: TimeArray, runs: Runs, zone: str) -> int:
    """Moments without a row between others of the same local day."""
    days = to_local(times, zone).astype("datetime64[D]")
    apart = np.diff(times)[(np.diff(runs.sequence) > 0) & (days[1:] == days[:-1])]
    return int(np.maximum(np.ceil(apart / runs.step) - 1, 0).sum())


def duration(step: np.timedelta64) -> str:
    """A length of time in words."""
    seconds = int(step / np.timedelta64(1, "s"))
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            number = seconds // size
            return f"{number:,} {unit}{'s' if number > 1 else ''}"
    return f"{step / np.timedelta64(1, 's'):g} seconds"


def _clock_changes(times: TimeArray, runs: Runs, zone: str) -> str:
    """Local days within the data on which the clock of the zone is put on or back."""
    local = to_local(times, zone)
    ahead = local - times
    at = np.flatnonzero(np.diff(ahead) != 0)
    if runs.step >= DAY or len(at) == 0:
        return ""
    changed = [str(day) for day in np.unique(local[at + 1].astype("datetime64[D]"))]
    more = ", …" if len(changed) > 3 else ""
    return (
        f"The clock of {zone} is changed on {', '.join(changed[:3])}{more}: an hour of the day "
        "lacks there or comes twice; rows of a clock time that comes twice are set aside."
    )
