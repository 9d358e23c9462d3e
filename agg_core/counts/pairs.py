"""Pairs of successive counts: what flows are learned from where nobody was followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.remembered import later
from agg_core.counts.filling import fill, shared_sums, sums_by
from agg_core.tables.counts import MISSING, SUPPRESSED, CountTable

if TYPE_CHECKING:  # what stands beside counts is loaded with it
    from agg_core.counts.crossings import CrossingCounts
    from agg_core.counts.old_trips import OldTrips
    from agg_core.counts.panel import Panel

__all__ = [
    "DAY_TYPES",
    "FEWEST_DAYS",
    "WEEKEND",
    "CountPairs",
    "Moments",
    "moments_of",
    "over_day_types",
    "pairs_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


DAY_TYPES = ("weekday", "weekend")
"""Types of days where nobody says more; weekends are Saturdays and Sundays."""

WEEKEND = 1
"""The number of weekends among types of days, and the first one that may be told apart."""

FEWEST_DAYS = 3
"""Days of each type from which on types can be told apart: more than one weekend."""

SATURDAY = 5


@dataclass(frozen=True)
class CountPairs:
    """Counts of a moment and of the next one, P times, over d cells (the last may be outside).

    Given the first counts of a pair the second ones depend on nothing earlier, if counts carry no
    noise: people of a cell are all alike, so that pairs hold all that the counts tell of moves.

    Attributes
    ----------
    before, after : (P, d) people; both sum to the same in each pair
    slot : (P,) time of day at which a pair begins, an index into ``slots``
    day : (P,) local day, or run, that a pair belongs to, numbered from 0
    slots : labels of the times of day
    has_outside : whether the last state is outside of all cells
    open_before, open_after : (P, d) whether a count was suppressed and is filled in here
    n_left_out : pairs that one moment was missing of
    day_type : (P,) what the day is on which a pair begins: the sum of 2^(k - 1) over the types k
        of ``day_types`` that it may count as, so that it is 0 on a weekday and 1 on a Saturday or
        Sunday; None if that is not known
    date : (P,) local date at which a pair begins, days since 1970-01-01; None if that is not known
    moment : (P,) number of the first moment of a pair, in ascending order: the pair after it has
        the next one, if nothing lies between them; None if that is not known
    day_types : names of the types of days, the first of which is that of all other days
    crossings : what gates counted within the pairs; None without gates
    panel : moves of a few of these people that are known, None without
    old_trips : trips of an old matrix between the states, None without
    """

    before: FloatArray
    after: FloatArray
    slot: IntArray
    day: IntArray
    slots: tuple[str, ...]
    has_outside: bool
    open_before: BoolArray
    open_after: BoolArray
    n_left_out: int = 0
    day_type: IntArray | None = None
    date: IntArray | None = None
    moment: IntArray | None = None
    day_types: tuple[str, ...] = later(DAY_TYPES)
    crossings: CrossingCounts | None = later(None)  # noqa: RUF009  # it gives a field
    panel: Panel | None = later(None)  # noqa: RUF009  # a field
    old_trips: OldTrips | None = later(None)  # noqa: RUF009  # a field

    @property
    def n_pairs(self) -> int:
        """Number of pairs P."""
        return len(self.before)

    @property
    def n_states(self) -> int:
        """Cells, and outside if there is one, d."""
        return int(self.before.shape[1])

    @property
    def n_days(self) -> int:
        """Days, or runs, that pairs come from."""
        return len(np.unique(self.day))

    @property
    def n_filled(self) -> int:
        """Suppressed counts that were filled in."""
        return int(self.open_before.sum() + self.open_after.sum())

    @property
    def people(self) -> FloatArray:
        """People at the beginning of the pairs of each time of day, summed, (H, d)."""
        return sums_by(self.slot, len(self.slots), self.before)

    @property
    def pairs_per_slot(self) -> IntArray:
        """Pairs of each time of day, (H,)."""
        return np.bincount(self.slot, minlength=len(self.slots)).astype(np.int64)

    def which(self, transmats: FloatArray) -> IntArray:
        """The matrix (P,) that people of each pair move by, of (H, d, d) or (1, d, d)."""
        return self.slot if len(transmats) > 1 else np.zeros_like(self.slot)

    @property
    def crowd(self) -> float:
        """People per occupied cell."""
        return float(self.before.sum() / max(np.count_nonzero(self.before), 1))

    def take(self, chosen: npt.ArrayLike) -> CountPairs:
        """Some of the pairs, by mask or number."""
        rows = np.arange(self.n_pairs)[np.asarray(chosen)]
        parts = (
            "before", "after", "slot", "day", "open_before", "open_after", "day_type", "date",
            "moment",
        )  # fmt: skip
        given = {part: getattr(self, part) for part in parts}
        panel = None if self.panel is None else self.panel.take(rows, self.n_pairs)
        crossings = None if self.crossings is None else self.crossings.take(rows)
        taken: dict[str, Any] = {part: v[rows] for part, v in given.items() if v is not None}
        return replace(self, panel=panel, crossings=crossings, **taken)

    def type_numbers(self, apart: Sequence[int]) -> IntArray:
        """Which (P,) of the types ``apart``, from 1, each day counts as; 0 where it is of none.

        A day that may count as several counts as the last of them.
        """
        assert self.day_type is not None
        numbers = np.zeros(self.n_pairs, dtype=np.int64)
        for number, kind in enumerate(sorted(apart), start=1):
            numbers[self.day_type >> (kind - 1) & 1 == 1] = number
        return numbers

    def can_be_apart(self, apart: Sequence[int]) -> bool:
        """Whether there are `FEWEST_DAYS` of each of the types ``apart``, and of other days."""
        if self.day_type is None:
            return False
        numbers = self.type_numbers(apart)
        days = [len(np.unique(self.day[numbers == number])) for number in range(len(apart) + 1)]
        return min(days) >= FEWEST_DAYS

    @property
    def types_apart(self) -> tuple[int, ...]:
        """Types of days that can be told apart all together, each taken if it still can be."""
        apart: tuple[int, ...] = ()
        for kind in range(WEEKEND, len(self.day_types)):
            if self.can_be_apart((*apart, kind)):
                apart = (*apart, kind)
        return apart

    @property
    def has_day_types(self) -> bool:
        """Whether some types of days can be told apart."""
        return bool(self.types_apart)

    def by_day_type(self, apart: Sequence[int] = (WEEKEND,)) -> CountPairs:
        """The same pairs with times of day of their own for other days and each type ``apart``.

        ``apart`` are numbers of ``day_types``, from 1.
        """
        kinds = sorted(apart)
        others = self.day_types[0] if WEEKEND in kinds else "other day"
        names = (others, *(self.day_types[kind] for kind in kinds))
        slots = tuple(f"{slot} {name}" for name in names for slot in self.slots)
        return replace(
            self, slot=self.slot + len(self.slots) * self.type_numbers(kinds), slots=slots
        )


def over_day_types(values: FloatArray, n_slots: int) -> FloatArray:
    """Sums (H, ...) over types of days of values by `CountPairs.by_day_type`, or of one type."""
    return np.asarray(values.reshape(-1, n_slots, *values.shape[1:]).sum(axis=0))


@dataclass(frozen=True)
class Moments:
    """Counts of the moments of a table, suppressed ones filled, and which of them make pairs.

    Attributes
    ----------
    known : (n,) whether no count of a moment is missing
    first : (P,) moments that are known and followed by one that is
    counts : (n, d) people, with what is expected of suppressed counts (see
        `agg_core.counts.filling.fill`), 0 where a count is missing
    hidden : (n, d) whether a count is suppressed
    day : (n,) local day within its run, numbered from 0
    day_type : (n,) 0 on a weekday, 1 on a Saturday or Sunday
    date : (n,) local date, days since 1970-01-01
    """

    known: BoolArray
    first: IntArray
    counts: FloatArray
    hidden: BoolArray
    day: IntArray
    day_type: IntArray
    date: IntArray


def moments_of(table: CountTable) -> Moments:
    """The moments of a table, and those that a pair begins with.

    Raises
    ------
    InputError
        If no two successive moments are known.
    """
    known = ~(table.status == MISSING).any(axis=1)
    follows = (np.diff(table.sequence) == 0) & known[:-1] & known[1:]
    first = np.flatnonzero(follows)
    if len(first) == 0:
        raise InputError(
            "No two successive moments have all their counts, so that nothing moves; load more "
            "moments, or choose how absent counts are to be taken.",
            code="no-successive-moments",
        )
    hidden = table.status == SUPPRESSED
    counts = np.where(np.isnan(table.counts), 0.0, table.counts)
    filled = fill(counts, hidden, known, table.slot, len(table.slots), table.suppressed_below)
    local = table.times.tz_convert(table.timezone)
    day_type = (np.asarray(local.day_of_week) >= SATURDAY).astype(np.int64)
    date = local.tz_localize(None).to_numpy().astype("datetime64[D]").astype(np.int64)
    return Moments(known, first, filled, hidden, _days(table), day_type, date)


def pairs_of(table: CountTable) -> CountPairs:
    """The pairs of successive moments of a table, its counts taken to be exact.

    Suppressed counts are filled with what is expected of them, within their bounds (see
    `agg_core.counts.filling.fill`), and so that the people of a day stay the same in number
    where that can be. Where it cannot, people come and go: one more state, outside, takes those
    that are not there, so that each moment of a day has as many people as its fullest one. Pairs
    that have a missing count are left out and counted.

    Raises
    ------
    InputError
        If no two successive moments are known.
    """
    moments = moments_of(table)
    first, hidden, day = moments.first, moments.hidden, moments.day
    filled, outside = shared_sums(
        moments.counts, hidden, moments.known, day, table.suppressed_below
    )
    if outside.any():
        filled = np.column_stack([filled, outside])
        hidden = np.column_stack([hidden, np.zeros(len(hidden), dtype=bool)])
    within = np.diff(table.sequence) == 0
    before, after = filled[first], filled[first + 1]
    if outside.any():
        _meet_outside(before, after)
    level = np.isclose(before.sum(axis=1), after.sum(axis=1), rtol=1e-6, atol=1e-6)
    pairs = CountPairs(
        before=before,
        after=after,
        slot=table.slot[first],
        day=day[first],
        slots=table.slots,
        has_outside=bool(outside.any()),
        open_before=hidden[first],
        open_after=hidden[first + 1],
        n_left_out=int(within.sum() - level.sum()),
        day_type=moments.day_type[first],
        date=moments.date[first],
        moment=first,
    )
    return pairs.take(level)


def _meet_outside(before: FloatArray, after: FloatArray) -> None:
    """Give both moments of a pair as many people, by those outside: days may differ."""
    more = before.sum(axis=1) - after.sum(axis=1)
    after[:, -1] += np.maximum(more, 0.0)
    before[:, -1] += np.maximum(-more, 0.0)


def _days(table: CountTable) -> IntArray:
    """Local day of every moment within its run, numbered from 0."""
    local = table.times.tz_convert(table.timezone).normalize().asi8
    _, number = np.unique(
        np.stack([local, table.sequence.astype(local.dtype)], axis=1), axis=0, return_inverse=True
    )
    return np.asarray(number, dtype=np.int64).ravel()
