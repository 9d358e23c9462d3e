"""Counts that err: what the error is, and pairs of such counts in unbroken runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from agg_core.counts.pairs import CountPairs, moments_of
from agg_core.tables.counts import CountTable

__all__ = ["CountError", "ErringPairs", "Run", "erring_pairs"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEAST_VARIANCE = 1e-2
"""Variance of an exact count, people squared: too small to matter, large enough to divide by."""

ROUNDED_SD, REACH = 1.0, 8.0
"""Standard deviation, in steps, above which rounding adds a twelfth to within 1e-7, and how many of
them numbers lie apart at most."""

TINY = 1e-3
"""A standard deviation, in steps, of which nothing is left by rounding."""


@dataclass(frozen=True)
class CountError:
    """How far counts are from the people who were there.

    ``relative`` is the standard deviation of the error over the people of a cell; ``step`` what
    counts are rounded to, in people, 0 if they are not.
    """

    relative: float
    step: float

    @property
    def keeps_whole(self) -> bool:
        """Whether an exact count stays as it is when it is rounded: whole people, whole counts."""
        return self.step > 0 and bool(np.isclose(1 / self.step, np.rint(1 / self.step)))

    def variance(self, people: FloatArray) -> FloatArray:
        """Variance of the error of counts of so many people, people squared.

        Rounding adds that of a number anywhere between two steps; to whole counts of whole people
        it adds nothing, but takes away errors that are smaller than half a step.
        """
        if not self.keeps_whole:
            of_rounding = max(self.step**2 / 12, LEAST_VARIANCE)
            return np.asarray((self.relative * people) ** 2 + of_rounding)
        return self.step**2 * _of_rounded(self.relative * people / self.step)[0] + LEAST_VARIANCE

    def slope(self, people: FloatArray) -> FloatArray:
        """Derivative of the variance by the squared relative error, people squared."""
        if not self.keeps_whole:
            return np.square(people)
        return np.square(people) * _of_rounded(self.relative * people / self.step)[1]


def _of_rounded(sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of normal numbers that are rounded to whole ones, and its derivative by sd squared.

    The variance is the sum over k of (2 k - 1) P(|number| > k - 1/2).
    """
    variance, slope = np.square(sd) + 1 / 12, np.ones_like(sd)
    low = sd < ROUNDED_SD
    bounds = np.arange(0.5, REACH * ROUNDED_SD)
    by = np.maximum(sd[low], TINY)[:, None]
    far, weights = bounds / by, 4 * bounds
    variance[low] = ndtr(-far) @ weights
    slope[low] = (np.exp(-(far**2) / 2) / np.sqrt(2 * np.pi) * far / (2 * by**2)) @ weights
    return variance, slope


@dataclass(frozen=True)
class Run:
    """Moments that follow each other without a gap: n of them, with n - 1 pairs.

    ``pairs`` (n - 1,) are numbers of pairs, ``counts`` (n, d) what was counted at each moment,
    ``spread`` (n, d) its variance besides the error of counting, infinite if nothing is known.
    """

    pairs: IntArray
    counts: FloatArray
    spread: FloatArray


@dataclass(frozen=True, kw_only=True)
class ErringPairs(CountPairs):
    """Pairs of counts that err, so that the counts of a whole run tell of each of its moments.

    Both counts of a pair need not have the same sum here. What is outside of all cells was not
    counted: it stands for those who are missing from the fullest moment, and its spread is
    infinite.

    Attributes
    ----------
    moment : (P,) number of the first moment of a pair
    spread_before, spread_after : (P, d) variances besides the error of counting, people squared
    error : the error of counting
    """

    moment: IntArray
    spread_before: FloatArray
    spread_after: FloatArray
    error: CountError

    @property
    def n_filled(self) -> int:
        """Suppressed counts that were filled in; nobody counts what is outside."""
        hidden = self.open_before & np.isfinite(self.spread_before)
        return int(hidden.sum() + (self.open_after & np.isfinite(self.spread_after)).sum())

    def take(self, chosen: npt.ArrayLike) -> ErringPairs:
        """Some of the pairs, by mask or number."""
        rows = np.arange(self.n_pairs)[np.asarray(chosen)]
        of_pairs = ("spread_before", "spread_after")
        own = {name: getattr(self, name)[rows] for name in of_pairs}
        taken = super().take(chosen)
        assert isinstance(taken, ErringPairs)
        return replace(taken, **own)

    def in_units(self, people: float) -> ErringPairs:
        """The same counts where one stands for so many people."""
        parts = {name: getattr(self, name) / people for name in ("before", "after")}
        spreads = ("spread_before", "spread_after")
        parts |= {name: getattr(self, name) / people**2 for name in spreads}
        error = replace(self.error, step=self.error.step / people)
        return replace(self, **parts, error=error)

    def runs(self) -> list[Run]:
        """The unbroken runs."""
        breaks = np.flatnonzero(np.diff(self.moment) != 1) + 1
        return [
            Run(
                pairs,
                np.vstack([self.before[pairs], self.after[pairs[-1:]]]),
                np.vstack([self.spread_before[pairs], self.spread_after[pairs[-1:]]]),
            )
            for pairs in np.split(np.arange(self.n_pairs), breaks)
            if len(pairs)
        ]


def erring_pairs(table: CountTable, error: CountError, *, outside: bool) -> ErringPairs:
    """The pairs of successive moments of a table whose counts err.

    A suppressed count is what is expected of it, with the variance of a number that may lie
    anywhere below the limit. With ``outside`` people come and go: one more state, of which no count
    is known, holds those who are missing from the fullest moment of a run.

    Raises
    ------
    InputError
        If no two successive moments are known.
    """
    moments = moments_of(table)
    first, counts, hidden = moments.first, moments.counts, moments.hidden
    spread = np.where(hidden, table.suppressed_below**2 / 12, 0.0)
    if outside:
        people = counts.sum(axis=1)
        most = np.zeros(int(table.sequence.max()) + 1)
        np.maximum.at(most, table.sequence[moments.known], people[moments.known])
        missing = np.maximum(most[table.sequence] - people, 0.0)
        counts = np.column_stack([counts, missing])
        spread = np.column_stack([spread, np.full(len(people), np.inf)])
        hidden = np.column_stack([hidden, np.ones(len(people), dtype=bool)])
    return ErringPairs(
        before=counts[first],
        after=counts[first + 1],
        slot=table.slot[first],
        day=moments.day[first],
        slots=table.slots,
        has_outside=outside,
        open_before=hidden[first],
        open_after=hidden[first + 1],
        n_left_out=int((np.diff(table.sequence) == 0).sum()) - len(first),
        day_type=moments.day_type[first],
        date=moments.date[first],
        moment=first,
        spread_before=spread[first],
        spread_after=spread[first + 1],
        error=error,
    )
