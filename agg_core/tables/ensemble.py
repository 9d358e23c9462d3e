"""An ensemble of flow tables: errors of whole worlds, from which any sum has an interval.

Intervals of single flows do not add up, as flows err together: whoever did not go to one cell went
to another. What was missed in a simulated world is missed as one table, so that the error of a sum
there is the sum of its errors, and errors of the same sum in all worlds tell how far it may be off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.moves import (
    AnyMoves,
    ends_of,
    entries,
    places_of,
)

__all__ = [
    "ENTRIES",
    "KEYS",
    "KEYS_BY_DAY",
    "Ensemble",
    "EnsembleMaker",
    "EnsembleParts",
    "columns_of",
    "thinned",
    "told_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

KEYS: Mapping[str, type[np.generic]] = {
    "draw": np.int16, "slot": np.int32, "origin": np.int32, "dest": np.int32
}  # fmt: skip
"""First columns of the table of an ensemble; ``slot`` is `OF_DAY` where sums over all times alone
were kept."""

KEYS_BY_DAY: Mapping[str, type[np.generic]] = {**KEYS, "day": np.int16}
"""The same of an ensemble whose days are kept apart; ``day`` is a number from 0."""

OF_DAY = -1

ENTRIES = 5_000_000
"""Rows of the table, 14 bytes and 4 of each estimate, above which errors summed over times of day
alone are kept; where these are more, too, nothing is."""

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
    table : one row per draw, slot, origin and dest that errs, with its error of each estimate by
        name, in people, summed over the days (see `columns_of`), or one of each day
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

    def of_days(self, days: IntArray) -> Ensemble:
        """The errors of some days, by their numbers, together; those of them all are days apart."""
        rows = self.table.loc[self.table["day"].isin(days)]
        return replace(self, table=rows.drop(columns="day").reset_index(drop=True))

    def errors(self, of: str, slot: int | None = None, like: AnyMoves | None = None) -> FloatArray:
        """Errors (B, d, d) of an estimate at a time of day, or (None) summed over all of them.

        Of a sparse table of flows they may be ``like`` its entries, (B, n).

        What was estimated plus a draw's errors is a flow table that may have been. Single entries
        of it can be below 0 where the estimate lies below what worlds had there: they are left, as
        without them sums would be too large.
        """
        rows = self.table if slot is None else self.table.loc[self.table["slot"] == slot]
        draw, origin, dest = (rows[n].to_numpy(np.int64) for n in ("draw", "origin", "dest"))
        people, d = rows[of].to_numpy(np.float64), self.n_states
        if like is None:
            at, shape = origin * d + dest, (d, d)
        else:
            at, shape = places_of(like, origin, dest), entries(like).shape
            draw, at, people = draw[at >= 0], at[at >= 0], people[at >= 0]
        size = int(np.prod(shape))
        found = np.bincount(draw * size + at, people, self.draws * size)
        return np.asarray(found.reshape(self.draws, *shape))


def told_of(ensemble: Ensemble | None) -> dict[str, float] | None:
    """Figures of an ensemble: how many worlds ``draws``, and how many megabytes ``mb`` it takes."""
    if ensemble is None:
        return None
    return {"draws": ensemble.draws, "mb": round(ensemble.megabytes, 1)}


def thinned(errors: FloatArray, grain: FloatArray | float, begun: float = 0.0) -> FloatArray:
    """Errors (...) of which those below a grain (...) are 0 or a whole grain, and sums stay right.

    What is left over of one entry is carried to the next, in the order of the array, so that a sum
    of neighbours, a row or a whole time of day, is off by a grain at most however many they are.
    ``begun`` is the part of a grain that is carried to the first one.
    """
    small = np.abs(errors) < grain
    units = np.divide(errors, grain, out=np.zeros_like(errors), where=small)
    steps = np.diff(np.rint(begun + np.cumsum(units.ravel())), prepend=0.0).reshape(errors.shape)
    return np.asarray(np.where(small, steps * grain, errors))


class EnsembleParts:
    """Takes errors of worlds in, one after the other, and keeps what makes an `Ensemble`.

    ``columns`` are those of its table. Above ``most`` rows errors are summed over times of day, of
    each day where days are apart; where these are more, too, nothing is kept.
    """

    def __init__(
        self, columns: Mapping[str, type[np.generic]], n_states: int, *, most: int = ENTRIES
    ) -> None:
        self.columns, self.n_states, self.most = columns, n_states, most
        self.draws = 0
        self.parts: list[pd.DataFrame] | None = []
        self.of_day = False

    def take(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Take in the errors of a world: all columns but draw, by their names."""
        self.draws += 1
        if self.parts is None:
            return
        draw = np.full(len(values["origin"]), self.draws - 1)
        told = {**values, "draw": draw}
        part = pd.DataFrame({name: told[name].astype(kind) for name, kind in self.columns.items()})
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
            nothing = {name: np.zeros(0, dtype=kind) for name, kind in self.columns.items()}
            return Ensemble(0, self.n_states, pd.DataFrame(nothing))
        return Ensemble(self.draws, self.n_states, pd.concat(self.parts, ignore_index=True))


class EnsembleMaker:
    """Takes worlds in, one after the other, and makes an `Ensemble` of what is missed in them.

    ``steps`` (H,) are those that flows of each time of day are sums over, ``estimates`` the names
    of what worlds have errors of. Flows are the entries of tables that are ``like`` one, if that is
    given.
    """

    def __init__(
        self,
        steps: IntArray,
        n_states: int,
        estimates: Sequence[str],
        *,
        like: AnyMoves | None = None,
        most: int = ENTRIES,
    ) -> None:
        self.like = like
        shape = (n_states, n_states) if like is None else entries(like).shape
        each = GRAIN * steps.astype(np.float64).reshape(-1, *[1] * len(shape))
        self.grain = each * np.ones((1, *shape))
        self.parts = EnsembleParts(columns_of(estimates), n_states, most=most)

    def add(self, moved: FloatArray, estimates: Mapping[str, FloatArray]) -> None:
        """Take in a world: who moved there (H, d, d), and each estimate of it by its name.

        Of sparse tables all are (H, n).
        """
        thin = {of: thinned(moved - flows, self.grain) for of, flows in estimates.items()}
        at = np.nonzero(np.any([errors != 0 for errors in thin.values()], axis=0))
        ends = dict(zip(("slot", "origin", "dest"), at, strict=False))
        if self.like is not None and not isinstance(self.like, np.ndarray):
            origin, dest = ends_of(self.like)
            ends |= {"origin": origin[at[1]], "dest": dest[at[1]]}
        self.parts.take({**ends, **{of: errors[at] for of, errors in thin.items()}})

    def made(self) -> Ensemble | None:
        """The ensemble, without draws where errors are too many; None below two worlds."""
        return self.parts.made()


def columns_of(
    estimates: Sequence[str], keys: Mapping[str, type[np.generic]] = KEYS
) -> dict[str, type[np.generic]]:
    """Columns of the table of an ensemble of these estimates, with their types."""
    return {**keys, **dict.fromkeys(estimates, np.float32)}


def _of_the_day(table: pd.DataFrame) -> pd.DataFrame:
    """The same summed over times of day."""
    keys = [name for name in table if name in KEYS_BY_DAY]
    summed = table.assign(slot=np.int32(OF_DAY)).groupby(keys, as_index=False)
    kinds = dict(table.dtypes)
    return summed.sum().astype(kinds)
