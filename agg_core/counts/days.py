"""Flows of single days: who went where between two counts, day by day, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.counts.pair_tables import GRAIN, PairFlows
from agg_core.counts.pairs import CountPairs
from agg_core.tables.certainty import SizedErrors, size_class
from agg_core.tables.ensemble import KEYS_BY_DAY, Ensemble, EnsembleParts, columns_of, thinned

__all__ = ["COLUMNS", "DayErrors", "DayFlows", "Spread", "SpreadMaker", "day_flows", "flows_by_day"]

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
    errors : errors of whole flow tables of each day in simulated worlds, which give sums of chosen
        days an interval; None with fewer than two worlds, and in runs that were saved without it
    """

    dates: tuple[str, ...]
    steps: IntArray
    n_states: int
    table: pd.DataFrame
    spread: Spread | None = None
    errors: Ensemble | None = None

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
    slot = pairs.slot % n_slots
    steps = np.zeros((len(dates), n_slots), dtype=np.int64)
    np.add.at(steps, (day, slot), 1)
    named = tuple(str(date) for date in dates.astype("datetime64[D]"))
    return day_flows(named, steps, day, slot, found, pairs.n_states, expansion)


def day_flows(
    dates: tuple[str, ...],
    steps: IntArray,
    day: IntArray,
    slot: IntArray,
    found: PairFlows | None,
    n_states: int,
    expansion: float = 1.0,
) -> DayFlows:
    """What happened by day, of flows of pairs of which each is of a day and a slot, (P,) numbers.

    ``steps`` (D, H) are those of each day and time. No days are kept without flows of pairs.
    """
    n_slots, d = steps.shape[1], n_states
    if found is None:
        none = pd.DataFrame({name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()})
        return DayFlows((), steps[:0], d, none)
    keys, total = found.summed(day * n_slots + slot)
    values = {
        "day": keys // d**2 // n_slots, "slot": keys // d**2 % n_slots,
        "origin": keys // d % d, "dest": keys % d, "count": expansion * total,
    }  # fmt: skip
    table = pd.DataFrame({name: values[name].astype(kind) for name, kind in COLUMNS.items()})
    return DayFlows(dates, steps, d, table)


class SpreadMaker:
    """Takes in errors of flows of some days of D by their size, and makes a `Spread` of them.

    ``sized`` are those at a time of day or over the day, of who moves or stays, by the position of
    a number of days in ``n_days``.
    """

    def __init__(self, n_days: int) -> None:
        self.n_days = np.unique([*(2 ** np.arange(int(np.log2(n_days)) + 1)), n_days])
        self.worlds = 0
        self.sized = {
            at: SizedErrors() for at in product(range(2), range(2), range(len(self.n_days)))
        }

    def made(self) -> Spread | None:
        """Ends of intervals by size; None where no world was taken in."""
        if not self.worlds:
            return None
        ends = {at: errors.ends().T for at, errors in self.sized.items()}
        shape = (2, 2, len(self.n_days))
        of_all = np.array([ends[at] for at in np.ndindex(*shape)])
        return Spread(self.n_days.astype(np.int64), of_all.reshape(*shape, *of_all.shape[1:]))


class DayErrors(SpreadMaker):
    """Errors of flows of some days in simulated worlds, kept by the size of what was estimated.

    Those of people who stay are kept apart: a flow of as many who move errs otherwise.

    Of each world as many days as `Spread.n_days` has are taken at random, and what happened on them
    is held against what was estimated of it, at each time of day and over the day. An error is the
    root of the one minus that of the other (see `agg_core.tables.certainty.RootErrors`).

    What was missed on each day of a world is kept as a whole flow table, too, by the name ``of`` of
    the estimate: worlds have transitions of their own, so that days of the same one err together.

    Flows are of pairs of counts, or of other things, of which each has a number of its ``day`` and
    one of its ``slot``, (P,), the latter below ``n_slots``.
    """

    def __init__(
        self,
        day: IntArray,
        slot: IntArray,
        n_slots: int,
        n_states: int,
        of: str,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.day, self.slot, self.n_slots, self.of = day, slot, n_slots, of
        self.tables = EnsembleParts(columns_of([of], KEYS_BY_DAY), n_states)
        self.rng = np.random.default_rng(random_state)
        super().__init__(int(self.day.max()) + 1)

    @classmethod
    def of_pairs(
        cls,
        pairs: CountPairs,
        n_slots: int,
        of: str,
        random_state: int | np.random.Generator | None = None,
    ) -> DayErrors:
        """Those of pairs of counts, whose times of day are numbers of slots modulo ``n_slots``."""
        assert pairs.date is not None
        _, day = np.unique(pairs.date, return_inverse=True)
        return cls(day, pairs.slot % n_slots, n_slots, pairs.n_states, of, random_state)

    def add(self, moved: PairFlows, told: PairFlows) -> None:
        """Take in a world: who moved there within each pair, and what was estimated of it."""
        self.worlds += 1
        self.tables.take(self._missed(moved, told))
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

    def _missed(self, moved: PairFlows, told: PairFlows) -> dict[str, npt.NDArray[np.generic]]:
        """Who moved less what was estimated, on each day and at each time, as rows of a table."""
        group = self.day * self.n_slots + self.slot
        (there, people), (at, estimate) = moved.summed(group), told.summed(group)
        keys, number = np.unique(np.concatenate([there, at]), return_inverse=True)
        missed = np.bincount(number, np.concatenate([people, -estimate]), len(keys))
        error = thinned(missed.astype(np.float64), GRAIN)
        keys, error = keys[error != 0], error[error != 0]
        d = told.n_states
        return {
            "day": keys // d**2 // self.n_slots, "slot": keys // d**2 % self.n_slots,
            "origin": keys // d % d, "dest": keys % d, self.of: error,
        }  # fmt: skip

    def on(self, by_day: DayFlows) -> DayFlows:
        """The same days with how far flows, and sums of them, may be off."""
        return replace(by_day, spread=self.made(), errors=self.tables.made())
