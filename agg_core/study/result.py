"""Flows that were learned, whatever from: the one result that all which comes after learning knows.

Maps, tables, files for other programs, saved runs and comparisons ask a `FlowResult`. A new kind of
data gives one more class of it and needs no change anywhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    as_moves,
    at_pairs,
    dest_sums,
    ends_of,
    entries,
    moves_like,
    origin_sums,
    table_of_pairs,
    whole,
)
from agg_core.space.grid import BaseGrid
from agg_core.tables.certainty import sum_interval
from agg_core.tables.ensemble import Ensemble
from agg_core.tables.flows import with_places

__all__ = [
    "ESTIMATE",
    "OUTSIDE_NAME",
    "WHOLE_DAY",
    "FlowResult",
    "States",
    "apart",
    "around",
    "days_not_kept",
]

FloatArray = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[np.generic]]

ESTIMATE = "estimate"
"""The source that every result has: what was learned."""

MOST_NAMED = 3
"""Days that are named one by one."""

OUTSIDE_NAME = "outside"
"""Name of the state of people who are in no cell."""

WHOLE_DAY = "whole day"
"""The time that stands for the mean step of a day, where a result has that."""


def days_not_kept(why_none: str | None) -> InputError:
    """Why single days cannot be chosen: ``why_none`` are kept, or (None) they are too many."""
    why = why_none or (
        "The flows of single days are too many to be kept; leave the day out, or learn from fewer "
        "days or larger cells."
    )
    return InputError(why, code="days-not-kept")


@dataclass(frozen=True)
class States:
    """What people are in: cells, and the outside where there is one, which is the last.

    ``cells`` are names, ``grid`` is None where cells have no place.
    """

    cells: tuple[str, ...]
    grid: BaseGrid | None
    has_outside: bool

    @property
    def n_cells(self) -> int:
        """Number of cells, the outside not among them."""
        return len(self.cells)

    @property
    def names(self) -> list[str]:
        """Name of each state, (S,)."""
        return [*self.cells, *[OUTSIDE_NAME] * self.has_outside]

    @property
    def placed_grid(self) -> BaseGrid:
        """The cells with their places.

        Raises
        ------
        InputError
            If cells have no place.
        """
        if self.grid is None:
            raise InputError(
                "These cells have no place on a map; choose a table or a matrix instead.",
                code="cells-without-place",
            )
        return self.grid


ABOUT_INTERVALS = (
    "An interval (from – to) is meant to hold what truly moved in nine of ten such figures. It "
    "comes from simulated worlds: flows like those learned are drawn, counted as the true ones "
    "were, and learned again, and what the learner misses there it is taken to miss here. Where "
    "it misses to one side in all of them, the interval lies beside the estimate, and its middle "
    "is given as the corrected figure. It knows nothing of counts that were taken wrongly, of "
    "people who were never counted, or of a city that does not move as the learner supposes. A "
    "criterion passes where nearly all that may be true meets it, fails where nothing does, and "
    "cannot be told else."
)
"""What an interval and a verdict mean here."""


class FlowResult(ABC):
    """Learned flows in people per step, by time of day and source.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = pd.date_range("2024-05-01", periods=48, freq="h", tz="UTC")
    >>> counts = pd.DataFrame(
    ...     {"time": hours.repeat(2), "cell": ["a", "b"] * 48, "count": [30, 20, 25, 25] * 24}
    ... )
    >>> result = agg_core.learn_flows(counts, replicates=0, time="one")
    >>> result.busiest, result.states.names
    ('whole day', ['a', 'b'])
    >>> round(result.matrix("whole day").sum())  # people, those who stay among them
    50

    A source is where flows come from: `ESTIMATE` is what was learned, others stand beside it, such
    as the fit to single people. A time is a label of `times`. Each kind of result also has
    ``settings``, ``learner``, ``wall_s`` (seconds that learning took) and ``step_minutes``.
    """

    kind: ClassVar[str]
    """Name of the kind of result, which saved runs keep."""

    ensemble: Ensemble | None = None
    """Errors of whole flow tables in simulated worlds, a field of those kinds that have some."""

    remembered: Mapping[str, Any] = MappingProxyType({})
    """What trials found, by all that it depends on (see `agg_core.base.remembered`)."""

    if TYPE_CHECKING:
        # Fields or properties of each kind: an attribute here would be the default of a field.
        @property
        def settings(self) -> Any:
            """What was asked for, with ``to_dict``."""

        @property
        def learner(self) -> str:
            """Who learned, as settings name it."""

        @property
        def wall_s(self) -> float:
            """Seconds that the learning took."""

        @property
        def step_minutes(self) -> float | None:
            """Minutes of a step; None where they are not known."""

    @property
    @abstractmethod
    def states(self) -> States:
        """Cells and outside."""

    @property
    @abstractmethod
    def times_of_day(self) -> tuple[str, ...]:
        """Times of day that have flows of their own, in order."""

    @property
    def times(self) -> tuple[str, ...]:
        """All times that have flows: `times_of_day`, after `WHOLE_DAY` where there is one."""
        return self.times_of_day

    @property
    @abstractmethod
    def busiest(self) -> str:
        """The time that is shown before anybody chooses one."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where flows come from; the estimate is the first."""
        return (ESTIMATE,)

    @property
    def references(self) -> tuple[str, ...]:
        """The sources that stand beside the estimate."""
        return self.sources[1:]

    @property
    def truths(self) -> tuple[str, ...]:
        """Those of `references` that the estimate is measured by, where people were followed."""
        return ()

    @property
    @abstractmethod
    def threshold(self) -> float:
        """People per step above which a flow was to be an arrow."""

    @property
    @abstractmethod
    def step_name(self) -> str:
        """What a flow is per, in words."""

    @property
    def n_steps(self) -> int:
        """Steps from a time on that `rows` can tell apart; 0 where it knows their mean alone."""
        return 0

    def steps_summed(self, time: str) -> int:
        """Steps whose people, each as many as a flow of `rows` says, make up those of the period.

        1 where flows are sums over the period already, as those of people are over all days.

        Raises
        ------
        InputError
            If there is no such time, or the number was not kept.
        """
        self.check(time)
        return 1

    @property
    def days_summed(self) -> int:
        """Days that a flow is the sum over; 1 where it is of one day, or of a mean day."""
        return 1

    @property
    def is_sparse(self) -> bool:
        """Whether matrices are sparse tables of the moves within a reach alone."""
        return False

    @property
    def has_intervals(self) -> bool:
        """Whether flows of the estimate have the columns low, high and resolved in numbers."""
        return False

    @property
    def limit_words(self) -> str:
        """What was withheld before these flows were published; empty where nothing was."""
        return ""

    @property
    def least_people(self) -> float | None:
        """People per step below which flows are withheld; None where none are."""
        return None

    @property
    def days(self) -> tuple[str, ...]:
        """Days, as YYYY-MM-DD, that `of_days` has flows of; none where they are not kept apart."""
        return ()

    @property
    def days_by_type(self) -> Mapping[str, tuple[str, ...]]:
        """The `days` of each type of days, such as weekend; none where types are not known."""
        return {}

    @property
    def chosen_days(self) -> tuple[str, ...]:
        """The days that the estimate is of; none where it is of all that was learned from."""
        return ()

    @property
    def sources_of_days(self) -> tuple[str, ...]:
        """Sources whose flows are of the chosen days: the estimate, and what it is measured by."""
        return (ESTIMATE, *self.truths) if self.chosen_days else ()

    @property
    def about_intervals(self) -> str:
        """What an interval and a verdict mean, and what they do not know, for a reader."""
        return ABOUT_INTERVALS

    @property
    def days_words(self) -> str:
        """The days that were chosen: up to three of them, or their number."""
        days = self.chosen_days
        if len(days) > MOST_NAMED:
            return f"{len(days)} days from {days[0]} to {days[-1]}"
        return " and ".join(filter(None, [", ".join(days[:-1]), *days[-1:]]))

    @property
    def no_sums(self) -> str:
        """What is said where flows of chosen days have intervals and their sums have none."""
        known = not self.chosen_days or not self.has_intervals or self.times_of_draws
        return "" if known else "; sums of chosen days have no interval"

    def _on_days(self, source: str) -> str:
        return f" on {self.days_words}" if source in self.sources_of_days else ""

    def of_days(self, days: Sequence[str]) -> FlowResult:
        """The same whose estimate is what happened on some of `days`, per step of these.

        Sources that are not `sources_of_days` stay as they are. Flows and sums of them have
        intervals where simulated worlds tell how far those of chosen days are off.

        Raises
        ------
        InputError
            If no day is given, there is none of that date, or days are not kept apart.
        """
        raise InputError(
            "These flows are not kept by day; leave the day out."
            if not days
            else f"These flows are not kept by day, so that there are none of {days[0]} alone; "
            "leave the day out.",
            code="days-not-kept",
        )

    def interval(
        self, time: str, source: str, weights: npt.ArrayLike | sparse.csr_array
    ) -> tuple[FloatArray, FloatArray] | None:
        """Ends of an interval of nine in ten around sums of flows; None where none is known.

        ``weights`` (..., S, S) of each flow, or masks, are those of one sum or of several; people
        who go into a cell are 1 in its column but for the diagonal; those of one sum may be sparse.
        Ends have the leading shape (see `agg_core.tables.certainty.sum_interval`).

        Raises
        ------
        InputError
            If the result has no such time or source, or weights are not those of all flows.
        """
        of, n = as_moves(weights), len(self.states.names)
        if of.shape[-2:] != (n, n) or not np.isfinite(entries(of)).all():
            raise InputError(
                f"Weights of shape {of.shape} do not fit; give finite ones of every flow, (..., "
                f"{n}, {n}), the outside among the states.",
                code="wrong-shape",
            )
        errors = self._errors(time, source)
        if errors is None:
            return None
        flows = self.matrix(time, source)
        if not self.is_sparse:
            return around(whole(of), flows, errors)
        ends = ends_of(flows)
        each = of[..., *ends] if isinstance(of, np.ndarray) else at_pairs(of, *ends)
        return around(each, flows, errors)

    def cell_intervals(
        self, time: str, source: str = ESTIMATE
    ) -> Mapping[str, tuple[FloatArray, FloatArray]] | None:
        """Ends (S,) of intervals of nine in ten of all who come into each state, and of who leave.

        By name: incoming and outgoing, as `agg_core.tables.flows.cell_totals` has them. None where
        none are known.

        Raises
        ------
        InputError
            If the result has no such time or source.
        """
        errors = self._errors(time, source)
        if errors is None:
            return None
        flows = self.matrix(time, source)
        away = apart(flows)
        sums = {"incoming": dest_sums, "outgoing": origin_sums}
        return {
            name: sum_interval(
                summed(moves_like(flows, entries(flows) * away)),
                np.stack([summed(moves_like(flows, error * away)) for error in errors], axis=-1),
            )
            for name, summed in sums.items()
        }

    @property
    def times_of_draws(self) -> tuple[str, ...]:
        """Times that `draws` has tables of: those of day, or `WHOLE_DAY` alone, or none."""
        kept = self._ensemble(ESTIMATE)
        if kept is None or not kept.tells():
            return ()
        if kept.of_day_only:
            return tuple(time for time in self.times if time == WHOLE_DAY)
        return self.times_of_day

    @property
    def sources_of_draws(self) -> tuple[str, ...]:
        """Sources that `draws` has tables of."""
        some = self.sources if self.times_of_draws else ()
        return tuple(source for source in some if self._erring(source) is not None)

    def draws(self, time: str, source: str = ESTIMATE) -> FloatArray | tuple[AnyMoves, ...] | None:
        """Flow tables that may have been, people per step, (B, S, S); None where none are kept.

        Where matrices are sparse they are B sparse tables.

        Each is the estimate with the errors of a simulated world, so that sums of it are as far
        off as there. Single flows can be below 0: cut off there, sums would be too large.

        Raises
        ------
        InputError
            If the result has no such time or source.
        """
        errors = self._errors(time, source)
        if errors is None:
            return None
        flows = self.matrix(time, source)
        drawn = np.asarray(entries(flows) + errors)
        if isinstance(flows, np.ndarray):
            return drawn
        return tuple(moves_like(flows, draw) for draw in drawn)

    def _erring(self, source: str) -> str | None:  # noqa: ARG002  # for those who have some
        """What the ensemble calls the estimate behind a source; None where it has no errors."""
        return None

    def _ensemble(self, source: str) -> Ensemble | None:  # noqa: ARG002  # for those of days
        """The errors of a source in simulated worlds."""
        return self.ensemble

    def _steps_erring(self, time: str, source: str) -> int:  # noqa: ARG002  # for those of days
        """Steps that the errors of a source at a time are sums over."""
        return self.steps_summed(time)

    def _slot(self, time: str) -> int | None:
        """The number of a time of day in the ensemble; None stands for all of them together."""
        return None if time == WHOLE_DAY else self.times_of_day.index(time)

    def _errors(self, time: str, source: str) -> FloatArray | None:
        """Errors of people per step in each world; None where none are kept.

        (B, S, S), or (B, n) of the entries of a sparse `matrix`.
        """
        self.check(time, source)
        kept, of, slot = self._ensemble(source), self._erring(source), self._slot(time)
        if kept is None or of is None or not kept.tells(slot):
            return None
        like = self.matrix(time, source) if self.is_sparse else None
        return kept.errors(of, slot, like) / self._steps_erring(time, source)

    @property
    @abstractmethod
    def basis(self) -> str:
        """What was learned from, and how, in a few words."""

    @property
    @abstractmethod
    def evidence(self) -> str:
        """What the flows rest on, as sentences for a reader who has only a file."""

    @abstractmethod
    def source_words(self, source: str) -> str:
        """Where the flows of a source come from, for a reader who has only a file."""

    @abstractmethod
    def source_label(self, source: str) -> str:
        """The same as a heading, or one of several to choose from."""

    @abstractmethod
    def source_name(self, source: str) -> str:
        """The same in a word or two."""

    @abstractmethod
    def _rows(self, time: str, source: str, step: int | None, least: float) -> pd.DataFrame:
        """What `rows` gives of a time and a source that exist."""

    def rows(
        self, time: str, source: str = ESTIMATE, step: int | None = None, least: float = 0.0
    ) -> pd.DataFrame:
        """Origin, dest and count, people per step, of the flows of ``least`` people or more.

        A mean over the steps from a time on, or those of one ``step`` from 0. An estimate with
        intervals also has low, high and resolved. Stays are rows like others; the outside is state
        ``states.n_cells``. Rows are ordered by origin and dest.

        Raises
        ------
        InputError
            If the result has no such time, source or step.
        """
        self.check(time, source)
        if step is not None and step not in range(self.n_steps):
            known = f"choose one of 0 to {self.n_steps - 1}" if self.n_steps else "leave it out"
            raise InputError(f"There is no step {step}; {known}.", code="unknown-step")
        return self._rows(time, source, step, least)

    def table(
        self, time: str, source: str = ESTIMATE, step: int | None = None, least: float = 0.0
    ) -> pd.DataFrame:
        """`rows`, largest first, with the places of both ends in degrees where cells have some."""
        rows, grid = self.rows(time, source, step, least), self.states.grid
        if grid is not None:
            return with_places(rows, grid)
        return rows.sort_values("count", ascending=False, kind="stable", ignore_index=True)

    def matrix(
        self, time: str, source: str = ESTIMATE, step: int | None = None, column: str = "count"
    ) -> AnyMoves:
        """A column of `rows` from each state to each, (S, S); 0 where there is no row.

        A sparse table where `is_sparse`.
        """
        rows, n_states = self.rows(time, source, step), len(self.states.names)
        if self.is_sparse:
            return table_of_pairs(rows["origin"], rows["dest"], rows[column], n_states)
        matrix = np.zeros((n_states, n_states))
        matrix[rows["origin"], rows["dest"]] = rows[column]
        return matrix

    @property
    @abstractmethod
    def value_columns(self) -> tuple[str, ...]:
        """Columns of `values` that hold people per step; the estimate is the first."""

    @abstractmethod
    def values(self, time: str) -> pd.DataFrame:
        """Origin, dest and all that is known of each flow of a time, by origin and dest."""

    @abstractmethod
    def matrices(self, time: str) -> Mapping[str, AnyMoves]:
        """Each of `value_columns` as a matrix (S, S)."""

    @abstractmethod
    def parameters(self) -> Arrays:
        """All that was learned, and the settings as JSON, as arrays of numbers and text."""

    @abstractmethod
    def parameter_tables(self) -> Mapping[str, pd.DataFrame]:
        """All that was learned, as tables by name."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """The figures of the result, ready for JSON; None where a figure has no meaning."""

    def observed(self, time: str) -> FloatArray | None:  # noqa: ARG002  # for those who have some
        """People observed in each state at each step from a time on, (T, S); None if not kept."""
        return None

    def check(self, time: str, source: str = ESTIMATE) -> None:
        """Refuse a time or a source that the result does not have.

        Raises
        ------
        InputError
            With those that it has.
        """
        if time not in self.times:
            raise InputError(
                f"There are no flows at {time}; choose one of {', '.join(self.times)}.",
                code="unknown-time",
            )
        if source not in self.sources:
            raise InputError(
                f"Flows come from {', '.join(self.sources)}, not from {source}.",
                code="unknown-source",
            )


def apart(flows: AnyMoves) -> FloatArray:
    """1 for entries of a table that are moves and 0 for stays, shaped as its entries."""
    if isinstance(flows, np.ndarray):
        return np.asarray(1.0 - np.eye(len(flows)))
    origin, dest = ends_of(flows)
    return np.asarray(origin != dest, dtype=np.float64)


def around(
    weights: FloatArray, flows: AnyMoves, errors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval around sums by weights (..., S, S) of flows that err by (B, S, S).

    Of sparse flows weights (..., n) and errors (B, n) are those of their entries.
    """
    people = entries(flows)
    axes = list(range(-people.ndim, 0))
    sums = np.tensordot(weights, people, axes=people.ndim)
    missed = np.tensordot(weights, errors, axes=(axes, [1 + people.ndim + axis for axis in axes]))
    return sum_interval(sums, missed, positive=bool((weights >= 0).all()))
