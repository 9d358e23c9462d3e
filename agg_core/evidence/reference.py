"""What flows are held against: flows that were counted, or that somebody else has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, table_of_pairs
from agg_core.io.flow_tables import FlowTable
from agg_core.study.beside import two_results
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult

__all__ = ["Reference", "of_result", "of_source", "of_table"]


@dataclass(frozen=True)
class Reference:
    """Flows that others are held against.

    Attributes
    ----------
    label : where they come from, in a few words
    tables : by time, people per step from each state to each (S, S), in the unit of the result
        that they stand beside
    """

    label: str
    tables: Mapping[str, AnyMoves]


def of_source(result: FlowResult, source: str) -> Reference:
    """Another source of the same result, such as the people who were followed.

    Raises
    ------
    InputError
        If the result has no such source.
    """
    tables = {time: result.matrix(time, source) for time in result.times}
    return Reference(result.source_label(source), tables)


def of_table(result: FlowResult, table: FlowTable, label: str) -> Reference:
    """A table of flows, people who moved over the whole period, by time of day or over the day.

    Raises
    ------
    InputError
        If it has no times of day and the result has several and no mean of the day.
    """
    n_states = len(result.states.names)
    flows = table.flows.loc[(table.flows[["origin", "dest"]] < n_states).all(axis=1)]
    tables: dict[str, AnyMoves] = {}
    if table.times:
        for number, time in enumerate(table.times):
            if time in result.times_of_day:
                rows = flows.loc[flows["time"] == number]
                tables[time] = _table(rows, n_states, result.steps_summed(time), result)
    if WHOLE_DAY in result.times:
        tables[WHOLE_DAY] = _table(flows, n_states, result.steps_summed(WHOLE_DAY), result)
    elif not tables and len(result.times_of_day) == 1:
        time = result.times_of_day[0]
        tables[time] = _table(flows, n_states, result.steps_summed(time), result)
    if not tables:
        raise InputError(
            "The reference has no times of day, and these flows are of several; add a column time "
            f"with {', '.join(result.times_of_day[:3])} and so on.",
            code="times-missing",
        )
    return Reference(label, tables)


def of_result(result: FlowResult, other: FlowResult, label: str) -> Reference:
    """The estimate of another result of the same cells and steps, at the times that both have.

    Raises
    ------
    InputError
        If cells or the length of steps differ, or they have no time in common.
    """
    both = two_results(result, other)
    n_states, share = len(result.states.names), result.days_summed / other.days_summed
    tables: dict[str, AnyMoves] = {}
    for time in both.times:
        rows = other.rows(time, ESTIMATE)
        common = (rows[["origin", "dest"]] < both.n_states).all(axis=1)
        tables[time] = _table(rows.loc[common], n_states, 1 / share, result)
    return Reference(label, tables)


def _table(rows: pd.DataFrame, n_states: int, over: float, result: FlowResult) -> AnyMoves:
    """Rows of origin, dest and count as a table like those of the result, divided by ``over``."""
    origin, dest = rows["origin"].to_numpy(np.int64), rows["dest"].to_numpy(np.int64)
    people = rows["count"].to_numpy(np.float64) / over
    if result.is_sparse:
        return table_of_pairs(origin, dest, people, n_states)
    counts = np.bincount(origin * n_states + dest, people, n_states**2)
    return np.asarray(counts.reshape(n_states, n_states))
