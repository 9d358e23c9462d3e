"""Flows that may be published: the same result, with those of few people withheld everywhere.

Maps, tables and files ask a `FlowResult`, and get one that has no more to tell: rows of few people
are not there, and sums, which are made of rows, are those of what is shown. The mean over a day
and its times, or that over a window and its steps, are published side by side: where a number could
be worked out from the others, or from how many people there are, further ones are withheld with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, ends_of, entries, moves_like
from agg_core.evidence.privacy import WITHHELD, Limit, rounded, withhold, withhold_parts
from agg_core.study.result import (
    ESTIMATE,
    WHOLE_DAY,
    Arrays,
    FlowResult,
    States,
    days_not_kept,
)

__all__ = ["LimitedResult", "SharedResult", "limited", "shared"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Shown = tuple[str, int | None]
"""A table that is published: its time, and its step or None for the mean of steps."""


def limited(result: FlowResult, limit: Limit) -> FlowResult:
    """The same result within a limit; as it is where that withholds and rounds nothing.

    What of a shared result is withheld stays so, whatever the limit: two ways to withhold, side by
    side, could tell what each of them hides. It can be rounded.
    """
    if isinstance(result, SharedResult):
        return replace(result, limit=replace(limit, least_people=result.limit.least_people),
                       with_gaps=True)  # fmt: skip
    return LimitedResult(result, limit) if limit.words else result


def shared(result: FlowResult, least_people: float) -> FlowResult:
    """A result as those see it whom its owner shares it with; as it is where that is 0.

    Raises
    ------
    InputError
        If there is no such least number of people.
    """
    limit = Limit(least_people)
    return SharedResult(result, limit) if limit.words else result


@dataclass(frozen=True)
class _Withheld:
    """Flows of a source by origin * S + dest, and those that are withheld in each table."""

    keys: IntArray
    hidden: Mapping[Shown, BoolArray]
    with_nobody: bool

    def of(self, shown: Shown, keys: IntArray) -> BoolArray:
        """Whether flows are withheld; those of nobody are where those of few people are."""
        found = np.full(len(keys), self.with_nobody)
        if not len(self.keys):
            return found
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[place] == keys
        found[known] = self.hidden[shown][place[known]]
        return found


@dataclass(frozen=True)
class LimitedResult(FlowResult):
    """A result of which `base` has all flows, and this one those that ``limit`` lets be published.

    What was learned, and draws of flows, cannot be limited and are not told. People per step below
    the least number on a mean day are withheld: of `rows` and `values` they are left out, where
    another number of the same row is shown they are `WITHHELD`, as in matrices.
    """

    base: FlowResult
    limit: Limit
    _found: dict[str, _Withheld] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    kind = "limited"

    @property
    def settings(self) -> Any:
        """Those of the result."""
        return self.base.settings

    @property
    def learner(self) -> str:
        """That of the result."""
        return self.base.learner

    @property
    def wall_s(self) -> float:
        """Seconds that the learning took."""
        return self.base.wall_s

    @property
    def step_minutes(self) -> float | None:
        """Minutes of a step; None where they are not known."""
        return self.base.step_minutes

    @cached_property
    def states(self) -> States:
        """Cells and outside."""
        return self.base.states

    @property
    def times_of_day(self) -> tuple[str, ...]:
        """Times of day that have flows of their own, in order."""
        return self.base.times_of_day

    @property
    def times(self) -> tuple[str, ...]:
        """All times that have flows."""
        return self.base.times

    @property
    def busiest(self) -> str:
        """The time that is shown before anybody chooses one."""
        return self.base.busiest

    @property
    def sources(self) -> tuple[str, ...]:
        """Where flows come from."""
        return self.base.sources

    @property
    def truths(self) -> tuple[str, ...]:
        """Sources that the estimate is measured by."""
        return self.base.truths

    @property
    def threshold(self) -> float:
        """People per step above which a flow was to be an arrow."""
        return self.base.threshold

    @property
    def step_name(self) -> str:
        """What a flow is per, in words."""
        return self.base.step_name

    @property
    def n_steps(self) -> int:
        """Steps from a time on that `rows` can tell apart."""
        return self.base.n_steps

    def steps_summed(self, time: str) -> int:
        """Steps whose people make up those of the period."""
        return self.base.steps_summed(time)

    @property
    def days_summed(self) -> int:
        """Days that a flow is the sum over."""
        return self.base.days_summed

    @property
    def is_sparse(self) -> bool:
        """Whether matrices are sparse tables."""
        return self.base.is_sparse

    @property
    def has_intervals(self) -> bool:
        """Whether flows of the estimate have intervals."""
        return self.base.has_intervals

    @property
    def days(self) -> tuple[str, ...]:
        """Days that `of_days` has flows of."""
        return self.base.days

    @property
    def days_by_type(self) -> Mapping[str, tuple[str, ...]]:
        """The days of each type of days."""
        return self.base.days_by_type

    @property
    def chosen_days(self) -> tuple[str, ...]:
        """The days that the estimate is of."""
        return self.base.chosen_days

    def of_days(self, days: Sequence[str]) -> FlowResult:
        """The same of some days, within the same limit."""
        return LimitedResult(self.base.of_days(days), self.limit)

    @property
    def limit_words(self) -> str:
        """What was done, as a sentence."""
        return self.limit.words

    @property
    def least_people(self) -> float | None:
        """The least number of people of a flow that is shown."""
        return self.limit.least_people

    @property
    def basis(self) -> str:
        """What was learned from, and how."""
        return self.base.basis

    @property
    def evidence(self) -> str:
        """What the flows rest on, and how they were limited."""
        return f"{self.base.evidence} {self.limit_words}"

    def source_words(self, source: str) -> str:
        """Where the flows of a source come from."""
        return self.base.source_words(source)

    def source_label(self, source: str) -> str:
        """The same as a heading."""
        return self.base.source_label(source)

    def source_name(self, source: str) -> str:
        """The same in a word or two."""
        return self.base.source_name(source)

    # ------------------------------------------------------------------------------ what is shown

    def _rows(self, time: str, source: str, step: int | None, least: float) -> pd.DataFrame:
        rows = self._limited_rows(time, source, step)
        return rows if least <= 0 else rows.loc[rows["count"] >= least].reset_index(drop=True)

    def _limited_rows(self, time: str, source: str, step: int | None) -> pd.DataFrame:
        rows = self.base.rows(time, source, step)
        hidden = self._withheld(source).of((time, step), self._keys(rows))
        numbers = [name for name in ("count", "low", "high") if name in rows]
        if self.limit.base:
            place = self.sources.index(source), self.times.index(time), (step or 0) + 1
            chance = np.random.default_rng([self.limit.seed, *place]).random(len(rows))
            columns = {
                name: rounded(rows[name].to_numpy(dtype=np.float64), self.limit, chance)
                for name in numbers
            }
            rows = rows.assign(**columns)
        return rows.loc[~hidden].reset_index(drop=True)

    def matrix(
        self, time: str, source: str = ESTIMATE, step: int | None = None, column: str = "count"
    ) -> AnyMoves:
        """A column of `rows` from each state to each, (S, S); `WITHHELD` where it is not shown.

        A sparse table where `is_sparse`, with the entries of all flows, withheld or not.
        """
        rows = self.rows(time, source, step)
        like = self.base.matrix(time, source, step)
        n = len(self.states.names)
        every = np.arange(n * n) if isinstance(like, np.ndarray) else _keys_of(*ends_of(like), n)
        shown = rows.set_index(self._keys(rows))[column].astype(np.float64)
        values: FloatArray = np.array(shown.reindex(every), dtype=np.float64)
        nobody = ~self._withheld(source).of((time, step), every) & np.isnan(values)
        values[nobody] = 0.0
        return moves_like(like, values.reshape(entries(like).shape))

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Columns of `values` that hold people per step."""
        return self.base.value_columns

    def values(self, time: str) -> pd.DataFrame:
        """Origin, dest and all that is shown of each flow of a time.

        `WITHHELD` where another number of the flow is shown.
        """
        values = self.base.values(time)
        keys = self._keys(values)
        shown = np.zeros(len(values), dtype=bool)
        told = {source: self._limited_rows(time, source, None) for source in self.sources}
        columns: dict[str, Any] = {}
        for name in values.columns.drop(["origin", "dest", "difference"], errors="ignore"):
            source, column = self._column(str(name))
            rows = told[source]
            of = rows.set_index(self._keys(rows))[column].reindex(keys)
            hidden = self._withheld(source).of((time, None), keys)
            if column == "resolved":
                columns[str(name)] = of.eq(True).to_numpy()
                continue
            lacks = np.where(hidden, WITHHELD, 0.0)
            found = of.to_numpy(dtype=np.float64)
            columns[str(name)] = np.where(np.isnan(found), lacks, found)
            if column == "count":
                shown |= columns[str(name)] > 0
        values = values.assign(**columns)
        if "difference" in values:
            values["difference"] = values[ESTIMATE] - values["single"]
        return values.loc[shown].reset_index(drop=True)

    def matrices(self, time: str) -> Mapping[str, AnyMoves]:
        """Each of `value_columns` as a matrix."""
        found = {}
        for name in self.value_columns:
            source, column = self._column(name)
            found[name] = self.matrix(time, source, column=column)
        return found

    def observed(self, time: str) -> FloatArray | None:
        """People observed in each state at each step, (T, S); `WITHHELD` where there are few."""
        counts = self.base.observed(time)
        if counts is None:
            return None
        least = self.limit.least_people * self.days_summed
        # How many people there are at each step is told elsewhere.
        table = np.asarray(withhold(counts, least, totals=True).table)
        table = np.where(counts < least, WITHHELD, table)
        chance = np.random.default_rng([self.limit.seed, self.times.index(time)])
        return rounded(table, self.limit, chance.random(table.shape))

    def parameters(self) -> Arrays:
        """Refused.

        Raises
        ------
        InputError
            Always.
        """
        self._refuse()

    def parameter_tables(self) -> Mapping[str, pd.DataFrame]:
        """Refused.

        Raises
        ------
        InputError
            Always.
        """
        self._refuse()

    def summary(self) -> dict[str, Any]:
        """Refused.

        Raises
        ------
        InputError
            Always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            "What was learned of everybody cannot be limited to flows of many people; take the "
            "flows, or publish it without a limit.",
            code="cannot-be-limited",
        )

    # ----------------------------------------------------------------------------- what is not

    def _withheld(self, source: str) -> _Withheld:
        if source not in self._found:
            self._found[source] = self._find(source)
        return self._found[source]

    def _find(self, source: str) -> _Withheld:
        """Which flows of a source are withheld, in all tables that show them together."""
        steps = range(self.n_steps) if self.n_steps > 1 else range(0)
        tables: list[Shown] = [(time, None) for time in self.times]
        families: list[tuple[int, list[int]]] = []
        if WHOLE_DAY in self.times and len(self.times) > 1:
            day = self.times.index(WHOLE_DAY)
            families.append((day, [k for k in range(len(self.times)) if k != day]))
        for number, time in enumerate(self.times):
            if time != WHOLE_DAY and len(steps):
                families.append((number, [len(tables) + k for k in steps]))
                tables += [(time, step) for step in steps]
        rows = [self.base.rows(time, source, step) for time, step in tables]
        some = [self._keys(table) for table in rows]
        keys = np.unique(np.concatenate(some))
        values = np.zeros((len(tables), len(keys)))
        for number, (table, of) in enumerate(zip(rows, some, strict=True)):
            values[number, np.searchsorted(keys, of)] = table["count"].to_numpy()
        least = self.limit.least_people * self.days_summed
        # How many people there are is told with any result.
        hidden = withhold_parts(values, families, least, totals=True)
        found = dict(zip(tables, hidden, strict=True))
        if self.n_steps == 1:  # the only step is the mean
            found |= {(time, 0): found[time, None] for time in self.times}
        return _Withheld(keys, found, with_nobody=least > 0)

    def _keys(self, rows: pd.DataFrame) -> IntArray:
        return _keys_of(rows["origin"], rows["dest"], len(self.states.names))

    def _column(self, name: str) -> tuple[str, str]:
        """The source of a column of `values`, and its column of `rows`."""
        for source in self.sources:
            if name == source:
                return source, "count"
            if name.startswith(f"{source}_"):
                return source, name.removeprefix(f"{source}_")
        return ESTIMATE, name


@dataclass(frozen=True)
class SharedResult(LimitedResult):
    """A result of which others may see what a limit leaves, and ask anything of that.

    Single days are not kept apart: any days could be chosen, and the flows of some days taken from
    those of some more tell the flows of one. Matrices are sums like others, with nobody where flows
    are withheld; ``with_gaps`` they are those of a limited result, as files have them.
    """

    with_gaps: bool = False

    kind = "shared"

    @property
    def days(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def days_by_type(self) -> Mapping[str, tuple[str, ...]]:
        """None."""
        return {}

    def of_days(self, days: Sequence[str]) -> FlowResult:  # noqa: ARG002  # the same for all
        """Refused.

        Raises
        ------
        InputError
            Always.
        """
        raise days_not_kept(
            "Flows of few people are withheld from this run, and those of single days could be "
            "worked out from each other; leave the day out."
        )

    def matrix(
        self, time: str, source: str = ESTIMATE, step: int | None = None, column: str = "count"
    ) -> AnyMoves:
        """A column of `rows` from each state to each, (S, S), 0 where it is not shown."""
        found = super().matrix(time, source, step, column)
        return found if self.with_gaps else moves_like(found, np.nan_to_num(entries(found)))


def _keys_of(origin: npt.ArrayLike, dest: npt.ArrayLike, n: int) -> IntArray:
    return np.asarray(origin, dtype=np.int64) * n + np.asarray(dest, dtype=np.int64)
