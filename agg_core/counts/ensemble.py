"""An ensemble of flow tables: errors of whole worlds, from which any sum has an interval.

Intervals of single flows do not add up, as flows err together: whoever did not go to one cell went
to another. What was missed in a simulated world is missed as one table, so that the error of a sum
there is the sum of its errors, and errors of the same sum in all worlds tell how far it may be off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from agg_core.counts.certainty import LEVEL

__all__ = [
    "COLUMNS",
    "ENTRIES",
    "HAPPENED",
    "USUAL",
    "Ensemble",
    "EnsembleMaker",
    "sum_interval",
    "thinned",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

HAPPENED, USUAL = "happened", "usual"
"""The two estimates that worlds have errors of: what happened between two counts, and what is
usual, learned chances of moves times the people there."""

COLUMNS: Mapping[str, type[np.generic]] = {
    "draw": np.int16, "slot": np.int32, "origin": np.int32, "dest": np.int32,
    HAPPENED: np.float32, USUAL: np.float32,
}  # fmt: skip
"""Columns of the table of an ensemble; ``slot`` is `OF_DAY` where days alone were kept."""

OF_DAY = -1

ENTRIES = 5_000_000
"""Rows of the table, 22 bytes each, above which errors of the whole day alone are kept; where these
are more, too, nothing is."""

LEAST_DRAWS = 2
"""Worlds of which errors have a spread."""

GRAIN = 0.005
"""People per step of which errors below it are kept as multiples, so that most are none."""


@dataclass(frozen=True)
class Ensemble:
    """Errors of flows in simulated worlds: who moved there minus what was estimated of it.

    Attributes
    ----------
    draws : number of worlds B; 0 where errors were too many to keep (see `ENTRIES`)
    n_states : states d
    table : one row per draw, slot, origin and dest that errs, with its error of what `HAPPENED` and
        of what is usual (`USUAL`), in people, summed over the days (see `COLUMNS`)
    """

    draws: int
    n_states: int
    table: pd.DataFrame

    @property
    def of_day_only(self) -> bool:
        """Whether times of day were not kept apart."""
        return bool((self.table["slot"] == OF_DAY).any())

    def tells(self, slot: int | None = None) -> bool:
        """Whether it has errors of a time of day, or (None) of the whole day."""
        return self.draws > 0 and (slot is None or not self.of_day_only)

    @property
    def megabytes(self) -> float:
        """Memory that the table takes."""
        return float(self.table.memory_usage(index=False).sum() / 1e6)

    def errors(self, of: str, slot: int | None = None) -> FloatArray:
        """Errors (B, d, d) of an estimate at a time of day, or (None) summed over all of them.

        What was estimated plus a draw's errors is a flow table that may have been. Single entries
        of it can be below 0 where the estimate lies below what worlds had there: they are left, as
        without them sums would be too large.
        """
        rows = self.table if slot is None else self.table.loc[self.table["slot"] == slot]
        draw, origin, dest = (rows[n].to_numpy(np.int64) for n in ("draw", "origin", "dest"))
        d = self.n_states
        at = (draw * d + origin) * d + dest
        found = np.bincount(at, rows[of].to_numpy(np.float64), self.draws * d * d)
        return np.asarray(found.reshape(self.draws, d, d))


def sum_interval(
    sums: npt.ArrayLike, errors: npt.ArrayLike, *, positive: bool = True
) -> tuple[FloatArray, FloatArray]:
    """An interval of `LEVEL` around sums (...) of flows, whose errors in B worlds are (..., B).

    That of a next world: the mean of the errors, which is what the learner misses on average, and
    t s sqrt(1 + 1/B) on either side of it, s being their standard deviation and t the quantile of
    Student's distribution of B - 1 degrees of freedom. The ends are 0 at the least where weights
    of the sum are ``positive`` (not negative).
    """
    centre, missed = np.asarray(sums, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    n = missed.shape[-1]
    reach = stdtrit(n - 1, (1 + LEVEL) / 2) * np.sqrt(1 + 1 / n)
    middle, half = centre + missed.mean(axis=-1), reach * missed.std(axis=-1, ddof=1)
    low, high = middle - half, middle + half
    if positive:
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return low, high


def thinned(errors: FloatArray, grain: FloatArray) -> FloatArray:
    """Errors (...) of which those below a grain (...) are 0 or a whole grain, and sums stay right.

    What is left over of one entry is carried to the next, in the order of the array, so that a sum
    of neighbours, a row or a whole time of day, is off by a grain at most however many they are.
    """
    small = np.abs(errors) < grain
    units = np.divide(errors, grain, out=np.zeros_like(errors), where=small & (grain > 0))
    steps = np.diff(np.rint(np.cumsum(units.ravel())), prepend=0.0).reshape(errors.shape)
    return np.asarray(np.where(small, steps * grain, errors))


class EnsembleMaker:
    """Takes worlds in, one after the other, and keeps what makes an `Ensemble`.

    ``steps`` (H,) are those that flows of each time of day are sums over.
    """

    def __init__(self, steps: IntArray, n_states: int, *, most: int = ENTRIES) -> None:
        self.grain = GRAIN * steps[:, None, None] * np.ones((1, n_states, n_states))
        self.n_states, self.most = n_states, most
        self.draws = 0
        self.parts: list[pd.DataFrame] | None = []
        self.of_day = False

    def add(self, moved: FloatArray, happened: FloatArray, usual: FloatArray) -> None:
        """Take in a world: who moved there (H, d, d), and both estimates of it."""
        self.draws += 1
        if self.parts is None:
            return
        errors = {HAPPENED: moved - happened, USUAL: moved - usual}
        thin = {of: thinned(error, self.grain) for of, error in errors.items()}
        at = np.nonzero((thin[HAPPENED] != 0) | (thin[USUAL] != 0))
        values: dict[str, npt.NDArray[np.generic]]
        values = dict(zip(("slot", "origin", "dest"), at, strict=True))
        values |= {"draw": np.full(len(at[0]), self.draws - 1)}
        values |= {of: error[at] for of, error in thin.items()}
        part = pd.DataFrame({name: values[name].astype(kind) for name, kind in COLUMNS.items()})
        self.parts.append(_of_the_day(part) if self.of_day else part)
        if self._full and not self.of_day:
            self.of_day = True
            self.parts = [_of_the_day(each) for each in self.parts]
        if self._full:
            self.parts = None

    @property
    def _full(self) -> bool:
        return self.parts is not None and sum(map(len, self.parts)) > self.most

    def made(self) -> Ensemble | None:
        """The ensemble, without draws where errors are too many; None below two worlds."""
        if self.draws < LEAST_DRAWS:
            return None
        if self.parts is None:
            return Ensemble(0, self.n_states, _no_rows())
        return Ensemble(self.draws, self.n_states, pd.concat(self.parts, ignore_index=True))


def _no_rows() -> pd.DataFrame:
    return pd.DataFrame({name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()})


def _of_the_day(table: pd.DataFrame) -> pd.DataFrame:
    """The same summed over times of day."""
    summed = table.assign(slot=np.int32(OF_DAY)).groupby(
        ["draw", "slot", "origin", "dest"], as_index=False
    )
    return summed[[HAPPENED, USUAL]].sum().astype(dict(COLUMNS))
