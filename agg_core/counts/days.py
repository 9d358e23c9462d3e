"""Flows of single days: who went where between two counts, day by day, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.counts.pair_tables import PairFlows
from agg_core.counts.pairs import CountPairs
from agg_core.tables.certainty import SizedErrors, size_class

__all__ = ["COLUMNS", "DayErrors", "DayFlows", "Spread", "flows_by_day"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

COLUMNS: Mapping[str, type[np.generic]] = {
    "day": np.int32, "slot": np.int16, "origin": np.int32, "dest": np.int32, "count": np.float32,
}  # fmt: skip
"""Columns of the table of flows by day; ``day`` is a number of `DayFlows.dates`."""

OF_TIME, OF_DAY = 0, 1
"""Whether a flow is of one time of day or of all."""


@dataclass(frozen=True)
class Spread:
    """Ends of intervals around roots of flows that were summed over some days.

    ``n_days`` (K,) are numbers of days, in order; ``ends`` (2, 2, K, sizes, 2) lie below and above
    the root of a flow at a time of day, or of the whole day, of people who move, or who stay, by
    its size (see `agg_core.tables.certainty.size_class`).
    """

    n_days: IntArray
    ends: FloatArray

    def interval(
        self, totals: FloatArray, stays: npt.NDArray[np.bool_], n_days: int, level: int
    ) -> tuple[FloatArray, FloatArray]:
        """Ends (2, n) of an interval of nine in ten around flows (n,), sums over so many days.

        ``stays`` (n,) are those of people who stay. Numbers of days between those that are known
        have what lies between the ends of these.
        """
        at = np.interp(np.log(n_days), np.log(self.n_days), np.arange(len(self.n_days)))
        below, above = self.ends[level, :, int(at)], self.ends[level, :, int(np.ceil(at))]
        ends = (below + (at - int(at)) * (above - below))[stays.astype(int), size_class(totals)]
        low, high = (np.maximum(np.sqrt(totals) + end, 0.0) ** 2 for end in ends.T)
        return low, high


@dataclass(frozen=True)
class DayFlows:
    """What happened on each day that was counted.

    Attributes
    ----------
    dates : days that are kept, as YYYY-MM-DD in local time, in order; none where all of them have
        too many flows
    steps : (D, H) steps of each day and time of day
    n_states : states d
    table : one row per day, slot, origin and dest, with people summed over the steps of that day
        and time (see `COLUMNS`); entries below a grain are 0 or a grain, so that sums stay right
    spread : how far flows of some days may be off, None where no world was simulated
    """

    dates: tuple[str, ...]
    steps: IntArray
    n_states: int
    table: pd.DataFrame
    spread: Spread | None = None

    def numbers(self, days: Sequence[str]) -> IntArray:
        """Numbers of days, in order and each once.

        Raises
        ------
        InputError
            If no day is given, or one that is not kept.
        """
        if not days:
            raise InputError(
                f"Choose a day at least; days are {self.range_words}.", code="day-missing"
            )
        unknown = [day for day in days if day not in self.dates]
        if unknown:
            raise InputError(
                f"There are no flows of {unknown[0]}; days are {self.range_words}.",
                code="unknown-day",
            )
        return np.array(sorted({self.dates.index(day) for day in days}), dtype=np.int64)

    @property
    def range_words(self) -> str:
        """The first and the last day in words."""
        if not self.dates:
            return "not kept apart"
        if len(self.dates) == 1:
            return f"{self.dates[0]} alone"
        return f"{self.dates[0]} to {self.dates[-1]}, {len(self.dates)} of them"

    def summed(self, days: IntArray, *, by_time: bool) -> pd.DataFrame:
        """Slot (where ``by_time``), origin, dest and people, summed over days by their numbers.

        With the columns low and high, NaN where no world was simulated.
        """
        rows = self.table.loc[self.table["day"].isin(days)]
        names = [*["slot"] * by_time, "origin", "dest"]
        key = np.zeros(len(rows), dtype=np.int64)
        for name in names:
            key = key * self.n_states + rows[name].to_numpy(np.int64)
        keys, group = np.unique(key, return_inverse=True)
        people = rows["count"].to_numpy(np.float64)
        total = np.bincount(group, people, len(keys)).astype(np.float64)
        d = self.n_states
        parts = {"slot": keys // d**2, "origin": keys // d % d, "dest": keys % d}
        found = pd.DataFrame({name: parts[name] for name in names} | {"count": total})
        low = high = np.full(len(found), np.nan)
        if self.spread is not None:
            level = OF_TIME if by_time else OF_DAY
            stays = parts["origin"] == parts["dest"]
            low, high = self.spread.interval(total, stays, len(days), level)
        return found.assign(low=low, high=high)


def flows_by_day(
    pairs: CountPairs, found: PairFlows | None, n_slots: int, expansion: float
) -> DayFlows | None:
    """What happened by day, of flows of all pairs; None where dates of pairs are not known.

    Times of day are numbers of `CountPairs.slot` modulo ``n_slots``. Without flows of pairs, which
    were too many, there are no days.
    """
    if pairs.date is None:
        return None
    dates, day = np.unique(pairs.date, return_inverse=True)
    slot, d = pairs.slot % n_slots, pairs.n_states
    if found is None:
        none = pd.DataFrame({name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()})
        return DayFlows((), np.zeros((0, n_slots), dtype=np.int64), d, none)
    steps = np.zeros((len(dates), n_slots), dtype=np.int64)
    np.add.at(steps, (day, slot), 1)
    keys, total = found.summed(day * n_slots + slot)
    values = {
        "day": keys // d**2 // n_slots, "slot": keys // d**2 % n_slots,
        "origin": keys // d % d, "dest": keys % d, "count": expansion * total,
    }  # fmt: skip
    table = pd.DataFrame({name: values[name].astype(kind) for name, kind in COLUMNS.items()})
    named = tuple(str(date) for date in dates.astype("datetime64[D]"))
    return DayFlows(named, steps, d, table)


class DayErrors:
    """Errors of flows of some days in simulated worlds, kept by the size of what was estimated.

    Those of people who stay are kept apart: a flow of as many who move errs otherwise.

    Of each world as many days as `Spread.n_days` has are taken at random, and what happened on them
    is held against what was estimated of it, at each time of day and over the day. An error is the
    root of the one minus that of the other (see `agg_core.tables.certainty.RootErrors`).
    """

    def __init__(
        self, pairs: CountPairs, n_slots: int, random_state: int | np.random.Generator | None = None
    ) -> None:
        assert pairs.date is not None
        _, self.day = np.unique(pairs.date, return_inverse=True)
        self.slot = pairs.slot % n_slots
        self.rng = np.random.default_rng(random_state)
        n_days = int(self.day.max()) + 1
        self.n_days = np.unique([*(2 ** np.arange(int(np.log2(n_days)) + 1)), n_days])
        self.worlds = 0
        self.sized = {
            at: SizedErrors() for at in product(range(2), range(2), range(len(self.n_days)))
        }

    def add(self, moved: PairFlows, told: PairFlows) -> None:
        """Take in a world: who moved there within each pair, and what was estimated of it."""
        self.worlds += 1
        for number, n_days in enumerate(self.n_days):
            chosen = self.rng.choice(int(self.day.max()) + 1, n_days, replace=False)
            mine = np.isin(self.day, chosen)
            for level, slot in ((OF_TIME, self.slot), (OF_DAY, 0 * self.slot)):
                group = np.where(mine, slot, -1)
                keys, estimate = told.summed(group)
                at, there = moved.summed(group)
                happened = np.zeros(len(keys))
                place = np.searchsorted(keys, at)
                known = (place < len(keys)) & (keys[np.minimum(place, len(keys) - 1)] == at)
                happened[place[known]] = there[known]
                error, size = np.sqrt(happened) - np.sqrt(estimate), size_class(estimate)
                at = keys % told.n_states**2
                stays = at // told.n_states == at % told.n_states
                for kind in range(2):
                    of_kind = stays == bool(kind)
                    self.sized[level, kind, number].add(error[of_kind], size[of_kind])

    def made(self) -> Spread | None:
        """Ends of intervals by size; None where no world was taken in."""
        if not self.worlds:
            return None
        ends = {at: errors.ends().T for at, errors in self.sized.items()}
        shape = (2, 2, len(self.n_days))
        of_all = np.array([ends[at] for at in np.ndindex(*shape)])
        return Spread(self.n_days.astype(np.int64), of_all.reshape(*shape, *of_all.shape[1:]))
