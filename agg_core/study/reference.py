"""Learned flows held against known ones: an origin-destination table that somebody else has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from agg_core.base.moves import at_pairs
from agg_core.io.flow_tables import NO_CELL, NO_TIME, FlowTable
from agg_core.study.result import WHOLE_DAY, FlowResult
from agg_core.tables.certainty import sum_interval
from agg_core.tables.flows import common_part, flow_differences, ratio

__all__ = [
    "FROM",
    "NO_SUCH_DAY",
    "PEOPLE_OF_A_DAY",
    "SLACK",
    "ReferenceComparison",
    "compare_by_day",
    "compare_reference",
]

FROM = 5.0
"""People above which flows of the reference are asked whether their interval holds them."""

PEOPLE_OF_A_DAY = 50.0
"""People above which pairs of a day are asked whether their interval holds them."""

SLACK = 0.5
"""Whole people: an interval holds a number if it comes within half a person of it."""

STAY = "stay: origin is dest"
NO_SUCH_DAY = "no such day"
ENDS = ["origin", "dest"]


@dataclass(frozen=True)
class ReferenceComparison:
    """How learned moves (origin not dest) meet those of a reference; nan without a meaning.

    Attributes
    ----------
    cpc : common part of commuters of the moves, summed over the times of day
    cpc_by_time : the same over moves at each time; nan where the reference has no times
    total_ratio : people who moved as learned, over those of the reference
    coverage_90 : share of the flows of the reference above `FROM` people, over the whole day or at
        each time where it has times, that the 90 % interval holds; nan without intervals
    n_flows : how many flows of the reference that are
    n_people : people who moved, of the reference
    n_times : times of day of the result at which the reference has moves; None where it has no
        times
    set_aside : rows of the reference by why they are not compared
    by_day : cpc of each day that both have, where flows were held against it day by day; then
        cpc and cpc_by_time are means over these days, and the others are of all of them
    """

    cpc: float
    cpc_by_time: float
    total_ratio: float
    coverage_90: float
    n_flows: int
    n_times: int | None = None
    set_aside: Mapping[str, int] = field(default_factory=dict)
    by_day: Mapping[str, float] = field(default_factory=dict)
    n_people: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: nan becomes None."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def compare_by_day(
    result: FlowResult, reference: FlowTable, least: float = FROM
) -> ReferenceComparison:
    """Hold what happened on each day against a table of flows of these days.

    Intervals are asked of flows of more than ``least`` people on a day. A table without days is
    held against all of them together, as is one of which no day is kept here.

    Raises
    ------
    InputError
        As `compare_reference`.
    """
    common = [date for date in reference.dates if date in result.days]
    if not common:
        return compare_reference(result, reference.of_all_dates(), least)
    found = {
        date: compare_reference(result.of_days([date]), reference.of_date(date), least)
        for date in common
    }
    every = list(found.values())
    n_flows = sum(day.n_flows for day in every)
    held = [day.coverage_90 * day.n_flows for day in every if day.n_flows]
    set_aside: dict[str, int] = dict(reference.set_aside)
    for day in every:
        for cause, n in day.set_aside.items():
            set_aside[cause] = set_aside.get(cause, 0) + n - reference.set_aside.get(cause, 0)
    other = reference.flows["date"].isin(
        [number for number, date in enumerate(reference.dates) if date not in common]
    )
    if other.any():
        set_aside[NO_SUCH_DAY] = int(reference.flows.loc[other, "rows"].sum())
    estimated = sum(day.total_ratio * day.n_people for day in every)
    return ReferenceComparison(
        cpc=float(np.mean([day.cpc for day in every])),
        cpc_by_time=float(np.mean([day.cpc_by_time for day in every])),
        total_ratio=ratio(estimated, sum(day.n_people for day in every)),
        coverage_90=ratio(sum(held), n_flows),
        n_flows=n_flows,
        n_times=max((day.n_times or 0 for day in every), default=0) if reference.times else None,
        set_aside=set_aside,
        by_day={date: day.cpc for date, day in found.items()},
        n_people=sum(day.n_people for day in every),
    )


def compare_reference(
    result: FlowResult, reference: FlowTable, least: float = FROM
) -> ReferenceComparison:
    """Hold a result against a table of flows over the states that `FlowResult.states` has.

    Flows from counts are people per step on an average day: times the steps that were learned from
    they are people who moved over the period, as those of a reference are. Flows of people are
    taken as their tables show them: people per step from a time on, summed over the days. A move
    that the reference lacks is one that nobody made; moves from and to the outside are compared
    only if it has some.

    Raises
    ------
    InputError
        If the result was saved without its numbers of steps.
    """
    flows, n_cells = reference.flows, result.states.n_cells
    beyond = (flows[ENDS] >= n_cells).any(axis=1)
    causes = {STAY: flows["origin"] == flows["dest"]}
    if not result.states.has_outside:
        causes = {NO_CELL: beyond, **causes}
    if reference.times:
        has_flows = np.isin(np.array(reference.times, dtype=object), result.times_of_day)
        causes = {NO_TIME: ~pd.Series(has_flows[flows["time"]], flows.index), **causes}
    set_aside = dict(reference.set_aside)
    kept = pd.Series(True, flows.index)
    for cause, out in causes.items():
        n_out = int(flows.loc[kept & out, "rows"].sum())
        if n_out:
            set_aside[cause] = set_aside.get(cause, 0) + n_out
        kept &= ~out
    truth = flows.loc[kept]
    states = n_cells + bool(beyond[kept].any())
    estimate = _all_moves(result, states)
    whole = truth.groupby(ENDS, as_index=False)[["count"]].sum()
    e, t = _sides(estimate, whole)
    pairs, by_time = [(estimate, whole)], math.nan
    if reference.times:
        pairs = [
            (_moves(result, time, states), truth.loc[truth["time"] == reference.times.index(time)])
            for time in result.times_of_day
        ]
        sides = [_sides(*pair) for pair in pairs]
        by_time = common_part(*(np.concatenate(side) for side in zip(*sides, strict=True)))
    large = [(moves, known.loc[known["count"] > least]) for moves, known in pairs]
    n_flows = sum(len(known) for _, known in large)
    known = result.has_intervals and all("low" in moves for moves, _ in large)
    held = sum(_held(*pair) for pair in large) if known else math.nan
    return ReferenceComparison(
        cpc=common_part(e, t),
        cpc_by_time=by_time,
        total_ratio=ratio(e.sum(), t.sum()),
        coverage_90=ratio(held, n_flows),
        n_flows=n_flows,
        n_times=truth["time"].nunique() if reference.times else None,
        set_aside=set_aside,
        n_people=float(t.sum()),
    )


def _all_moves(result: FlowResult, states: int) -> pd.DataFrame:
    """Moves over all times of day, with ends of intervals where these are known of sums."""
    if WHOLE_DAY in result.times:
        return _moves(result, WHOLE_DAY, states)
    times = result.times_of_day
    if len(times) == 1:
        return _moves(result, times[0], states)
    every = pd.concat([_moves(result, time, states)[[*ENDS, "count"]] for time in times])
    moves = every.groupby(ENDS, as_index=False).sum()
    draws = {time: result.draws(time) for time in result.times_of_draws}
    if draws.keys() != set(times):
        return moves
    at = moves["origin"].to_numpy(), moves["dest"].to_numpy()
    errors = np.zeros(())
    for time in times:
        steps, drawn = result.steps_summed(time), draws[time]
        assert drawn is not None, "they are there at these times"
        mean = at_pairs(result.matrix(time), *at)
        errors = errors + steps * np.stack([at_pairs(table, *at) - mean for table in drawn])
    low, high = sum_interval(moves["count"], errors.T)
    return moves.assign(low=low, high=high)


def _moves(result: FlowResult, time: str, states: int) -> pd.DataFrame:
    """Moves of a time among the first states: people over the period, with ends of intervals."""
    rows = result.rows(time)
    among = (rows[ENDS] < states).all(axis=1) & (rows["origin"] != rows["dest"])
    values = [name for name in ("count", "low", "high") if name in rows]
    moves = rows.loc[among, [*ENDS, *values]].reset_index(drop=True)
    moves[values] *= result.steps_summed(time)
    return moves


def _sides(estimate: pd.DataFrame, truth: pd.DataFrame) -> tuple[Any, Any]:
    """The same moves (n,) as estimated and in truth."""
    both = flow_differences(estimate, truth)
    return both["estimate"].to_numpy(), both["truth"].to_numpy()


def _held(estimate: pd.DataFrame, truth: pd.DataFrame) -> int:
    """How many flows lie in their interval; a flow that is not listed is nobody."""
    ends = truth[[*ENDS, "count"]].merge(estimate[[*ENDS, "low", "high"]], on=ENDS, how="left")
    low, high = ends["low"].fillna(0.0) - SLACK, ends["high"].fillna(0.0) + SLACK
    return int(((low <= ends["count"]) & (ends["count"] <= high)).sum())
