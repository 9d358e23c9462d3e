"""Two results beside each other, cell by cell: what both have, and how far they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, as_moves, diagonal, entries
from agg_core.space.grid import TOUCHING_DEGREES
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult, States
from agg_core.study.scales import drawn_moves, first_threshold, round_threshold
from agg_core.tables.flows import compare_flows

__all__ = ["Apart", "TwoResults", "two_results"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Apart:
    """How far the moves of two results are apart, over some times of day.

    Attributes
    ----------
    moves : people per step who go to another state, of the one and of the other
    ratio : moves of the one over those of the other; nan where the other has none
    common_part : common part of commuters; 1 where both have the same moves, nan without any
    """

    moves: tuple[float, float]
    ratio: float
    common_part: float


@dataclass(frozen=True)
class TwoResults:
    """Two results of the same cells and steps; `two_results` makes it.

    Attributes
    ----------
    results : the one and the other
    times : times that both have; the mean of the day is the first, where both have it
    n_steps : steps of a time that both tell apart; 0 where they do not
    n_states : states that both have: the outside is one only if it is in both
    days : days that flows of each are sums over; where these differ, all flows are of a mean day
    """

    results: tuple[FlowResult, FlowResult]
    times: tuple[str, ...]
    n_steps: int
    n_states: int
    days: tuple[int, int] = (1, 1)

    @property
    def of_mean_day(self) -> bool:
        """Whether flows were divided by the days that they are sums over."""
        return self.days[0] != self.days[1]

    def _share(self, which: int) -> float:
        """What a flow of the result is multiplied by."""
        return 1.0 / self.days[which] if self.of_mean_day else 1.0

    @property
    def has_outside(self) -> bool:
        """Whether both know who comes from outside of the cells and goes there."""
        return self.n_states > self.results[0].states.n_cells

    @property
    def leaves_outside(self) -> bool:
        """Whether one of them knows the outside and the other does not."""
        return not self.has_outside and any(result.states.has_outside for result in self.results)

    @property
    def first_time(self) -> str:
        """The time that is shown first: the busiest of the one, if both have it."""
        busiest = self.results[0].busiest
        return busiest if busiest in self.times else self.times[0]

    @property
    def first_threshold(self) -> float:
        """The threshold that is shown first: the lower of the two."""
        if not self.of_mean_day:
            return min(first_threshold(result) for result in self.results)
        n_cells = self.results[0].states.n_cells
        return min(
            round_threshold(drawn_moves(self.rows(which, self.first_time), n_cells))
            for which in range(len(self.results))
        )

    def rows(self, which: int, time: str, step: int | None = None) -> pd.DataFrame:
        """`FlowResult.rows` of the estimate of the one (0) or the other (1), in common states.

        Raises
        ------
        InputError
            If the result has no such time or step.
        """
        result = self.results[which]
        rows = result.rows(time, step=step)
        # Without simulated worlds the columns of intervals, if any, hold no numbers.
        columns = rows.columns if result.has_intervals else ["origin", "dest", "count"]
        common = (rows["origin"] < self.n_states) & (rows["dest"] < self.n_states)
        found = rows.loc[common, columns].reset_index(drop=True)
        of_people = [name for name in ("count", "low", "high") if name in found]
        return found.assign(**{name: found[name] * self._share(which) for name in of_people})

    def cell_intervals(
        self, which: int, time: str
    ) -> Mapping[str, tuple[FloatArray, FloatArray]] | None:
        """`FlowResult.cell_intervals` of the one (0) or the other (1).

        None where one knows the outside and the other does not: these sums count it.
        """
        found = None if self.leaves_outside else self.results[which].cell_intervals(time)
        if found is None:
            return None
        share = self._share(which)
        return {name: (share * low, share * high) for name, (low, high) in found.items()}

    def apart(self, times: Sequence[str]) -> Apart:
        """How far moves are apart in the mean of some of `times`.

        Raises
        ------
        InputError
            If no time is given, or a result has no such time.
        """
        if not times:
            raise InputError("Give one time of day or more to compare.", code="nothing-chosen")
        sides = [self._mean(which, times) for which in (0, 1)]
        moves = [float(entries(side).sum() - diagonal(side).sum()) for side in sides]
        figures = compare_flows(sides[0], sides[1])
        return Apart((moves[0], moves[1]), figures.total_ratio, figures.cpc)

    def _mean(self, which: int, times: Sequence[str]) -> AnyMoves:
        n, result = self.n_states, self.results[which]
        tables = [self._share(which) * result.matrix(time, ESTIMATE)[:n, :n] for time in times]
        total = tables[0]
        for table in tables[1:]:
            total = total + table
        return as_moves(total / len(tables))


def two_results(one: FlowResult, other: FlowResult) -> TwoResults:
    """Put two results beside each other, which must be of the same cells, steps and times.

    They may be of two kinds. Cells are the same if they lie at the same places, whatever they are
    called; if they have none, by their names. The mean of the day is among the times only where
    both are the mean of the same times: movement by night and over the day are two things.

    Raises
    ------
    InputError
        If cells or the length of steps differ, or they have no time in common.
    """
    if not _same_cells(one.states, other.states):
        raise InputError(
            f"The runs have other cells, {one.states.n_cells:,} and {other.states.n_cells:,}, so "
            "that their flows cannot be set against each other; learn both on the same grid.",
            code="other-cells",
        )
    if one.step_minutes != other.step_minutes:
        raise InputError(
            f"A step of one run is {_length(one)}, of the other {_length(other)}; learn both with "
            "steps of the same length.",
            code="other-steps",
        )
    times = _times(one, other)
    if not times:
        raise InputError(
            f"The runs have no time of day in common: one has {_listed(one.times_of_day)}, the "
            f"other {_listed(other.times_of_day)}; learn both at the same times.",
            code="no-common-time",
        )
    return TwoResults(
        results=(one, other),
        times=times,
        n_steps=one.n_steps if one.n_steps == other.n_steps else 0,
        n_states=one.states.n_cells + (one.states.has_outside and other.states.has_outside),
        days=(one.days_summed, other.days_summed),
    )


def _length(result: FlowResult) -> str:
    minutes = result.step_minutes
    return "of unknown length" if minutes is None else f"{minutes:g} minutes"


MOST_LISTED = 3


def _listed(times: Sequence[str]) -> str:
    if len(times) > MOST_LISTED:
        return f"{len(times)} times from {times[0]} to {times[-1]}"
    return ", ".join(times) or "none"


def _times(one: FlowResult, other: FlowResult) -> tuple[str, ...]:
    times = tuple(time for time in one.times_of_day if time in other.times_of_day)
    of_day = all(WHOLE_DAY in result.times for result in (one, other))
    same = one.times_of_day == other.times_of_day
    # The only time of day is its own mean.
    return (WHOLE_DAY, *times) if of_day and same and len(times) != 1 else times


def _same_cells(one: States, other: States) -> bool:
    if one.n_cells != other.n_cells:
        return False
    if one.grid is None or other.grid is None:
        return one.grid is other.grid and one.cells == other.cells
    ours, others = (grid.cell_bounds for grid in (one.grid, other.grid))
    return bool(np.allclose(ours, others, rtol=0.0, atol=TOUCHING_DEGREES))
