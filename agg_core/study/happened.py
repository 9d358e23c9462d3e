"""What happened, day by day: results whose flows are of days that were counted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.counts.days import DayFlows
from agg_core.counts.mixing import SETTLED
from agg_core.counts.posterior import Mixing
from agg_core.study.result import WHOLE_DAY, FlowResult, days_not_kept
from agg_core.tables.certainty import RootErrors
from agg_core.tables.ensemble import Ensemble

__all__ = [
    "HAPPENED",
    "LEAST_FLOW",
    "MOST_R_HAT",
    "DoubtedFlows",
    "HappenedFlows",
    "HappenedResult",
]

HAPPENED = "happened"
"""What worlds call their errors of what happened."""

DAY_MINUTES = 24 * 60

FloatArray = npt.NDArray[np.float64]


LEAST_FLOW = 0.005
"""People per step, at the upper end of the interval, below which a flow is not listed."""

MOST_R_HAT = 100.0
"""What stands for an R-hat without an end, which JSON has no number for."""


class Tables(Protocol):
    """Flows by time of day and over the day, people per step."""

    @property
    def flows(self) -> pd.DataFrame: ...

    @property
    def day_flows(self) -> pd.DataFrame: ...


@dataclass(frozen=True)
class HappenedFlows:
    """What happened on the days that were counted, given the counts before and after each step.

    ``flows`` and ``day_flows`` are tables like those of `CountStudy`; where what happened was drawn
    they also have the split R-hat of each flow, ``rhat``, and its effective sample size ``n_eff``,
    unless there are too many flows to keep their draws (see `agg_core.counts.posterior.Mixing`).
    ``r_hat`` says how far the draws are from having mixed (1: they have; None: not known), the
    worst of moves above the threshold and of all who move; ``n_eff`` is the smallest effective
    sample size of these, None if not known, ``method`` how flows were found, "drawn" or "normal"
    (see `agg_core.counts.posterior.happened_flows`). ``by_day`` has the flows of each day, None in
    runs that were saved without them.
    """

    flows: pd.DataFrame
    day_flows: pd.DataFrame
    r_hat: float | None
    method: str
    n_eff: float | None = None
    by_day: DayFlows | None = None

    @property
    def settled(self) -> bool:
        """Whether draws have mixed, as far as that is known."""
        return self.r_hat is None or self.r_hat <= SETTLED


class HappenedResult(FlowResult):
    """Flows per step on an average day, by times of day, of which those of single days are kept.

    What each kind keeps them in is told by fields: ``slots`` are labels of times of day, ``steps``
    (H,) how many of each were learned from, ``happened`` the flows, ``chosen_days`` the days that
    were chosen.
    """

    if TYPE_CHECKING:

        @property
        def slots(self) -> tuple[str, ...]:
            """Labels of times of day."""

        @property
        def steps(self) -> tuple[int, ...] | None:
            """Steps that were learned from at each time of day."""

        @property
        def happened(self) -> HappenedFlows | None:
            """What happened."""

    chosen_days: tuple[str, ...] = ()

    @property
    @abstractmethod
    def _timed(self) -> pd.DataFrame:
        """The table whose slots are the times of day."""

    @property
    @abstractmethod
    def _worlds(self) -> int:
        """Worlds that tell how sure flows are."""

    @abstractmethod
    def _tables(self, source: str) -> Tables:
        """The flows of a source."""

    @abstractmethod
    def _as_happened(self, source: str) -> bool:
        """Whether the flows of a source are what happened."""

    @property
    def step_name(self) -> str:
        """What a flow is per: "hour", "30 minutes", or "step" where its length is not known."""
        if self.step_minutes is None:
            return "step"
        for length, unit in ((DAY_MINUTES, "day"), (60, "hour")):
            number, rest = divmod(self.step_minutes, length)
            if number and not rest:
                return unit if number == 1 else f"{number:g} {unit}s"
        return "minute" if self.step_minutes == 1 else f"{self.step_minutes:g} minutes"

    @property
    def times_of_day(self) -> tuple[str, ...]:
        """The slots that have flows."""
        rows = np.bincount(self._timed["slot"].to_numpy(dtype=np.int64))
        steps = self.steps if self.chosen_days else None
        return tuple(
            self.slots[slot] for slot in np.flatnonzero(rows) if steps is None or steps[slot]
        )

    @property
    def days(self) -> tuple[str, ...]:
        """Days that what happened is kept of."""
        return () if self._by_day is None else self._by_day.dates

    def of_days(self, days: Sequence[str]) -> Self:
        """The same whose estimate and steps are of some `days` (see `FlowResult.of_days`)."""
        kept = self._by_day
        if self.happened is None or kept is None or not kept.dates:
            raise days_not_kept(
                "This run was saved without what happened on single days; learn again."
                if kept is None
                else None
            )
        numbers = kept.numbers(days)
        steps = kept.steps[numbers].sum(axis=0)
        flows, day_flows = (
            _of_some_days(kept.summed(numbers, by_time=by_time), steps) for by_time in (True, False)
        )
        return replace(  # type: ignore[type-var]  # every kind is a dataclass
            self,
            happened=replace(self.happened, flows=flows, day_flows=day_flows),
            steps=tuple(steps.tolist()),
            chosen_days=tuple(kept.dates[number] for number in numbers),
        )

    @property
    def times(self) -> tuple[str, ...]:
        """The whole day, then the slots that have flows."""
        return (WHOLE_DAY, *self.times_of_day)

    @property
    def busiest(self) -> str:
        """The whole day."""
        return WHOLE_DAY

    @property
    def threshold(self) -> float:
        """People per step above which a flow was to be an arrow."""
        return float(self.settings.threshold)

    @property
    def has_intervals(self) -> bool:
        """Whether worlds were simulated."""
        kept = self._by_day
        told = not self.chosen_days or (kept is not None and kept.spread is not None)
        return bool(self._worlds) and told

    def steps_summed(self, time: str) -> int:
        """Steps that were learned from at a time, or all: times them, flows are of the period."""
        self.check(time)
        if self.steps is None:
            raise InputError(
                "This run was saved without its numbers of steps, so that its flows have no sum; "
                "learn again.",
                code="steps-unknown",
            )
        slot = self._slot(time)
        return sum(self.steps) if slot is None else self.steps[slot]

    def _rows(self, time: str, source: str, step: int | None, least: float) -> pd.DataFrame:  # noqa: ARG002
        tables = self._tables(source)
        if time == WHOLE_DAY:
            rows = tables.day_flows
        else:
            mine = tables.flows["slot"] == self.slots.index(time)
            rows = tables.flows.loc[mine].drop(columns="slot").reset_index(drop=True)
        return rows if least <= 0 else rows.loc[rows["count"] >= least].reset_index(drop=True)

    @property
    def _by_day(self) -> DayFlows | None:
        return None if self.happened is None else self.happened.by_day

    @cached_property
    def _chosen(self) -> Ensemble | None:
        """The errors of what happened on the chosen days."""
        kept = self._by_day
        if kept is None or kept.errors is None:
            return None
        return kept.errors.of_days(kept.numbers(self.chosen_days))

    def _ensemble(self, source: str) -> Ensemble | None:
        of_days = self.chosen_days and self._as_happened(source)
        return self._chosen if of_days else self.ensemble

    def _steps_erring(self, time: str, source: str) -> int:
        kept = self._by_day
        if not self.chosen_days or self._as_happened(source) or kept is None:
            return self.steps_summed(time)
        # What is usual is that of all days.
        slot = self._slot(time)
        return int(kept.steps.sum() if slot is None else kept.steps[:, slot].sum())

    def _slot(self, time: str) -> int | None:
        return None if time == WHOLE_DAY else self.slots.index(time)


def _of_some_days(totals: pd.DataFrame, steps: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Flows per step, a mean over the ``steps`` (H,) of some days, from their sums."""
    by_time = "slot" in totals
    per = steps[totals["slot"]] if by_time else int(steps.sum())
    found = totals.assign(**{name: totals[name] / per for name in ("count", "low", "high")})
    resolved = ~((found["high"] - found["low"]) / 2 >= found["count"])
    names = ["origin", "dest", "count", "low", "high", "resolved", *["slot"] * by_time]
    return found.assign(resolved=resolved)[names]


class DoubtedFlows:
    """Flows (H, d, d) summed over the days, and what worlds tell of their errors.

    How draws of them have mixed is told with them, if that is known.
    """

    def __init__(self, totals: FloatArray, mixing: Mixing | None = None) -> None:
        self.totals = totals
        self.mixing = mixing or Mixing(None, None)
        self.by_slot, self.of_day = RootErrors(totals.shape), RootErrors(totals.shape[1:])

    def add(self, moved: FloatArray, estimate: FloatArray) -> None:
        """Take in a world: who moved there, and what was estimated of it."""
        self.by_slot.add(moved, estimate)
        self.of_day.add(moved.sum(axis=0), estimate.sum(axis=0))

    def tables(self, steps: npt.NDArray[np.int64]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Flows per step by time of day, of which each has so many ``steps``, and of the day."""
        by_time = self.mixing.by_time
        flows = [
            _listed(
                self.totals[slot], self.by_slot, slot, int(steps[slot]),
                None if by_time is None else by_time[:, slot],
            ).assign(slot=slot)
            for slot in map(int, np.flatnonzero(steps))
        ]  # fmt: skip
        of_day = _listed(
            self.totals.sum(axis=0), self.of_day, None, int(steps.sum()), self.mixing.of_day
        )
        return pd.concat(flows, ignore_index=True), of_day


def _listed(
    totals: FloatArray,
    errors: RootErrors,
    slot: int | None,
    steps: int,
    mixing: FloatArray | None = None,
) -> pd.DataFrame:
    """Flows per step as rows, those worth listing, from sums over ``steps`` steps."""
    low = high = np.full(totals.shape, np.nan)
    resolved = np.ones(totals.shape, dtype=bool)
    if errors.n:
        interval = errors.interval(totals) if slot is None else errors.at(slot).interval(totals)
        low, high, resolved = interval.low / steps, interval.high / steps, interval.resolved
    count = totals / steps
    origin, dest = np.nonzero(np.fmax(count, high) >= LEAST_FLOW)
    at = (origin, dest)
    columns = {
        "origin": origin, "dest": dest, "count": count[at], "low": low[at], "high": high[at],
        "resolved": resolved[at],
    }  # fmt: skip
    if mixing is not None:
        columns |= {"rhat": np.minimum(mixing[0][at], MOST_R_HAT), "n_eff": mixing[1][at]}
    return pd.DataFrame(columns)
