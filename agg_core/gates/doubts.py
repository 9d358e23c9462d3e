"""How sure flows of days are: the same days by other patterns that may be as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from agg_core.counts.days import SpreadMaker
from agg_core.gates.balance import Trips, balanced
from agg_core.gates.days import ServiceDays
from agg_core.tables.certainty import size_class
from agg_core.tables.ensemble import (
    ENTRIES,
    KEYS_BY_DAY,
    OF_DAY,
    EnsembleParts,
    columns_of,
    thinned,
)

__all__ = ["DaysDoubted", "flows_of_days", "redrawn"]

FloatArray = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]

QUICK_SWEEPS, QUICK_TOLERANCE = 30, 1e-4
GRAIN = 0.5
"""People below which an error of a pair on a day is kept as none or as so many."""


def flows_of_days(
    days: ServiceDays,
    chances: Sequence[FloatArray],
    which: IntArray,
    *,
    by_exit: bool,
    start: FloatArray | None = None,
) -> Iterator[tuple[Trips, FloatArray]]:
    """Trips of each day by its pattern, and flows (H, S, S) by time of day.

    Each of the patterns ``chances`` is (P, L, S, S) or (L, S, S); ``which`` (D,) is that of a day.
    ``start`` (D, H, S) are factors of exits for a pattern near this one: then fewer sweeps do.
    """
    for day in range(days.n_days):
        quick = {} if start is None else {
            "start": start[day], "sweeps": QUICK_SWEEPS, "tolerance": QUICK_TOLERANCE,
        }  # fmt: skip
        trips = balanced(
            chances[which[day]], days.entries[day], days.exits[day], period=days.period, **quick
        )
        flows = trips.by_exit() if by_exit else trips.by_entry()
        at_time = np.empty_like(flows)
        at_time[days.slot] = flows
        yield trips, at_time


def redrawn(
    days: ServiceDays,
    chances: Sequence[FloatArray],
    which: IntArray,
    leave: FloatArray,
    rng: np.random.Generator,
    *,
    by_exit: bool,
) -> Iterator[FloatArray]:
    """People (H, S, S) who go between stations on each day, by other patterns and by chance."""
    for _, flows in flows_of_days(days, chances, which, by_exit=by_exit, start=leave):
        yield rng.poisson(flows).astype(np.float64)


class DaysDoubted(SpreadMaker):
    """Errors of flows of some days, by the size of what was estimated (see `Spread`).

    What was missed of each pair over each day is kept as a whole table, too, if there is room.
    """

    def __init__(self, n_days: int, n_states: int, of: str, rng: np.random.Generator) -> None:
        self.of, self.rng, self.total = of, rng, n_days
        super().__init__(n_days)
        self.parts = EnsembleParts(columns_of([of], KEYS_BY_DAY), n_states, most=ENTRIES)
        self.stays = np.eye(n_states, dtype=bool)

    def add(self, moved: AnyFloats, estimate: AnyFloats) -> None:
        """Take in who moved on each day (D, H, d, d), and what was estimated of it."""
        self.worlds += 1
        for number, n_days in enumerate(self.n_days):
            chosen = self.rng.choice(self.total, n_days, replace=False)
            there, told = (each[chosen].sum(axis=0, dtype=np.float64) for each in (moved, estimate))
            for level, (happened, found) in enumerate(
                ((there, told), (there.sum(axis=0), told.sum(axis=0)))
            ):
                some = found > 0
                error = np.sqrt(happened) - np.sqrt(found)
                size = size_class(found)
                stays = np.broadcast_to(self.stays, found.shape)
                for kind in range(2):
                    mine = some & (stays == bool(kind))
                    self.sized[level, kind, number].add(error[mine], size[mine])
        missed = (moved - estimate).sum(axis=1, dtype=np.float64)
        thin = thinned(missed, np.full(missed.shape, GRAIN))
        day, origin, dest = np.nonzero(thin)
        self.parts.take({
            "slot": np.full(len(day), OF_DAY), "day": day, "origin": origin, "dest": dest,
            self.of: thin[day, origin, dest],
        })  # fmt: skip
