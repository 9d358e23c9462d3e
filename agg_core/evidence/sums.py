"""Sums of flows, and how far each may be off: what every figure of evidence is made of.

A figure is a sum of flows, or is worked out from several sums: the mean length of moves from
people and person-kilometres, a share of screenlines within bounds from all of them. Flow tables of
simulated worlds tell how sums err *together*, so that figures have intervals, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import stdtrit

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, at_pairs, ends_of, whole
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.tables.certainty import (
    COMMON,
    LEVEL,
    mean_of_like,
    pooled_squares,
    size_class,
    sum_interval,
)

__all__ = [
    "DRAWS",
    "CellFlows",
    "Sums",
    "cell_flows",
    "hourly",
    "pooled_spread",
    "reference_at",
    "steps_at",
    "steps_of",
    "weights_by",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DRAWS, FEWEST_DRAWS = 1_000, 200
"""Draws that intervals of figures are quantiles of, and those of figures of very many sums."""

NUMBERS, AT_ONCE = 20_000_000, 2_000_000
"""Numbers that are drawn before there are fewer draws, and how many of them at a time."""


@dataclass(frozen=True)
class Sums:
    """Sums of flows, and what they missed in simulated worlds.

    Attributes
    ----------
    estimate : (K,) as estimated
    errors : (B, K) what truly moved minus what was estimated, in each world; None where no worlds
        were simulated
    positive : whether no sum can be below 0, as those of flows
    """

    estimate: FloatArray
    errors: FloatArray | None
    positive: bool = True

    def interval(self, level: float = LEVEL) -> tuple[FloatArray, FloatArray] | None:
        """Ends (K,) of an interval around each, of nine in ten or another level; None without
        worlds.
        """
        if self.errors is None:
            return None
        return sum_interval(self.estimate, self.errors.T, positive=self.positive, level=level)

    def pooled_interval(self, level: float = LEVEL) -> tuple[FloatArray, FloatArray] | None:
        """Ends (K,) of an interval around each, by errors of sums of like size as well.

        Few worlds tell little of one sum, and nothing of one that is right in each of them: usual
        errors of sums of like size count with its own, as many as `COMMON` worlds have. nan where
        an error is. None without worlds.
        """
        if self.errors is None:
            return None
        spread, freedom = pooled_spread(self.errors, self.estimate)
        half = stdtrit(freedom, (1 + level) / 2) * spread
        low, high = self.estimate - half, self.estimate + half
        return (np.maximum(low, 0.0), np.maximum(high, 0.0)) if self.positive else (low, high)

    def figures(self, of: Callable[[FloatArray], FloatArray], *, positive: bool = True) -> Sums:
        """Figures (..., V) of the sums (..., K), which err as those of the sums of worlds do."""
        estimate, errors = of(self.estimate), None
        if self.errors is not None:
            worlds = self.estimate + self.errors
            errors = of(np.maximum(worlds, 0.0) if self.positive else worlds) - estimate
        return Sums(estimate, errors, positive)

    def drawn(self, figures: Callable[[FloatArray], FloatArray] = np.asarray) -> FloatArray | None:
        """Figures (n, ...) of sums that may be true (n, K); None without worlds.

        The sums are drawn from Student's distribution with the mean and the covariances of the
        errors: each alone is distributed as `interval` takes it to be, and they err together as in
        the worlds. Those of one result are drawn alike, whichever are asked for. There are `DRAWS`
        of them, fewer of very many sums, which are made and taken to figures part by part.
        """
        if self.errors is None:
            return None
        worlds, n_sums = self.errors.shape
        n = int(np.clip(NUMBERS // max(n_sums, 1), FEWEST_DRAWS, DRAWS))
        rng = np.random.default_rng(0)
        weights = rng.standard_normal((DRAWS, worlds))[:n]
        weights *= np.sqrt((1 + 1 / worlds) / rng.chisquare(worlds - 1, DRAWS))[:n, None]
        middle = self.errors.mean(axis=0)
        centre, off = self.estimate + middle, self.errors - middle
        found, step = [], max(AT_ONCE // max(n_sums, 1), 1)
        for first in range(0, n, step):
            part = centre + weights[first : first + step] @ off
            found.append(figures(np.maximum(part, 0.0) if self.positive else part))
        return np.concatenate(found)

    def take(self, chosen: Any) -> Sums:
        """Some of the sums, by numbers, a slice or a mask (K,)."""
        errors = None if self.errors is None else self.errors[:, chosen]
        return Sums(self.estimate[chosen], errors, self.positive)

    @classmethod
    def joined(cls, some: Sequence[Sums]) -> Sums:
        """Sums of one result one after the other; without errors where some have none."""
        errors = [one.errors for one in some if one.errors is not None]
        return cls(
            np.concatenate([one.estimate for one in some]),
            np.concatenate(errors, axis=1) if len(errors) == len(some) else None,
            all(one.positive for one in some),
        )


def pooled_spread(
    errors: FloatArray, estimate: FloatArray, chance: FloatArray | float = 0.0
) -> tuple[FloatArray, float]:
    """Spread (K,) of sums by errors (B, K) of their own and of sums of like size, and its freedom.

    ``chance`` (K,) is a variance that is known beside that. nan where an error is.
    """
    worlds, squares = len(errors), (errors**2).sum(axis=0)
    usual = mean_of_like(np.nan_to_num(squares) / worlds, size_class(np.nan_to_num(estimate)))
    return np.sqrt(pooled_squares(squares, usual, worlds) + chance), worlds + COMMON - 1


@dataclass(frozen=True)
class CellFlows:
    """Flows between cells at a time, pair by pair; those from and to the outside are left out.

    Attributes
    ----------
    origin, dest : (P,) numbers of cells; stays are pairs like others
    count : (P,) people, as estimated
    errors : (B, P) errors in simulated worlds; None without worlds
    outside : people who come from outside of the cells or go there, left out
    """

    origin: IntArray
    dest: IntArray
    count: FloatArray
    errors: FloatArray | None
    outside: float

    def summed(self, weights: sparse.sparray | npt.ArrayLike, *, positive: bool = True) -> Sums:
        """Sums by weights (K, P) of each pair."""
        of = weights if sparse.issparse(weights) else np.atleast_2d(np.asarray(weights))
        errors = None if self.errors is None else np.asarray((of @ self.errors.T).T)
        return Sums(np.asarray(of @ self.count), errors, positive)

    def by(self, numbers: IntArray, n: int, values: npt.ArrayLike = 1.0) -> Sums:
        """People by the number (P,) of what their flow belongs to, of n; -1 to nothing.

        ``values`` (P,) are what each counts for, not below 0.
        """
        return self.summed(weights_by(numbers, n, values))

    @property
    def moves(self) -> npt.NDArray[np.bool_]:
        """(P,) whether a pair is a move, not a stay."""
        return np.asarray(self.origin != self.dest)

    @property
    def only_moves(self) -> CellFlows:
        """The same without stays."""
        here = self.moves
        errors = None if self.errors is None else self.errors[:, here]
        return CellFlows(self.origin[here], self.dest[here], self.count[here], errors, self.outside)


def weights_by(numbers: IntArray, n: int, values: npt.ArrayLike = 1.0) -> sparse.csr_array:
    """Weights (n, P) by which pairs are summed by their number (P,); -1 is in no sum.

    ``values`` (P,) are what each counts for.
    """
    here = np.flatnonzero(numbers >= 0)
    each = np.broadcast_to(np.asarray(values, dtype=np.float64), numbers.shape)[here]
    picked = sparse.coo_array((each, (numbers[here], here)), shape=(n, len(numbers)))
    return sparse.csr_array(picked)


def cell_flows(
    result: FlowResult,
    times: Sequence[str],
    source: str = ESTIMATE,
    factor: float = 1.0,
    beside: Sequence[AnyMoves] | None = None,
) -> CellFlows:
    """Flows of a source in the mean of some times, times a factor, over all pairs of cells.

    Errors are known only if they are of every one of the times. With tables ``beside``, be there
    none, pairs are left out of which nobody goes in them, as estimated, or in a world: of many
    cells these are most.

    Raises
    ------
    InputError
        If the result has no such time or source.
    """
    n_cells, share = result.states.n_cells, factor / len(times)
    worlds: dict[str, Any] = {}
    if result.is_sparse:
        n_states = len(result.states.names)
        ends = [ends_of(result.matrix(time, source)) for time in times]
        some = [origin.astype(np.int64) * n_states + dest for origin, dest in ends]
        origin, dest = np.divmod(np.unique(np.concatenate(some)), n_states)
        within = (origin < n_cells) & (dest < n_cells)
        at = origin[within], dest[within]
    elif beside is None:
        at = np.divmod(np.arange(n_cells**2, dtype=np.int64), max(n_cells, 1))
    else:
        found = np.zeros((n_cells, n_cells), dtype=bool)
        for table in (*(result.matrix(time, source) for time in times), *beside):
            found |= whole(table)[:n_cells, :n_cells] != 0
        for time in times:
            drawn = result.draws(time, source)
            for world in () if drawn is None else drawn:
                found |= world[:n_cells, :n_cells] != 0
            if len(times) == 1:  # those of many times are too large to be held together
                worlds[time] = drawn
        origin, dest = np.nonzero(found)
        at = origin, dest
    count, errors, outside = np.zeros(len(at[0])), None, 0.0
    for number, time in enumerate(times):
        table = result.matrix(time, source)
        mean = _at_cells(table, at, n_cells)
        count += share * mean
        outside += share * float(table.sum() - mean.sum())
        drawn = worlds[time] if worlds else result.draws(time, source)
        if drawn is None or (number and errors is None):
            errors = None
            continue
        missed = share * np.stack([_at_cells(world, at, n_cells) - mean for world in drawn])
        errors = missed if errors is None else errors + missed
    return CellFlows(*at, count, errors, outside)


def _at_cells(table: AnyMoves, at: tuple[IntArray, IntArray], n_cells: int) -> FloatArray:
    """Flows (P,) of a table at pairs of cells, of a whole table perhaps all, row by row."""
    if isinstance(table, np.ndarray) and len(at[0]) == n_cells**2:
        return np.asarray(table[:n_cells, :n_cells].ravel(), dtype=np.float64)
    return at_pairs(table, *at)


def hourly(result: FlowResult) -> tuple[float, str]:
    """What people per step are multiplied by to be people per hour of a day, and the unit.

    Where the length of a step is not known they stay people per step.
    """
    days = result.days_summed
    if result.step_minutes is None:
        return 1.0 / days, "people per step"
    return 60.0 / result.step_minutes / days, "people per hour"


def steps_at(result: FlowResult, time: str) -> int:
    """Steps that flows at a time are a mean over: of all days, or of a window.

    Raises
    ------
    InputError
        If the result has no such time, or their number was not kept.
    """
    return result.steps_summed(time) * max(result.n_steps, 1)


def steps_of(result: FlowResult, time: str) -> int | None:
    """The same; None where their number was not kept.

    Raises
    ------
    InputError
        If the result has no such time.
    """
    try:
        return steps_at(result, time)
    except InputError as fault:
        if fault.code != "steps-unknown":
            raise
        return None


def reference_at(
    tables: Mapping[str, AnyMoves], times: Sequence[str], flows: CellFlows, factor: float = 1.0
) -> FloatArray:
    """Reference flows (P,) at the pairs of ``flows``, in the mean of some times."""
    each = [at_pairs(tables[time], flows.origin, flows.dest) for time in times]
    return np.asarray(factor * np.mean(each, axis=0))
