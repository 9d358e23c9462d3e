"""One scale for everything that is compared, over all times of day of a run; where arrows begin."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.tables.flows import cell_totals, flow_differences

__all__ = [
    "difference_scale",
    "first_difference_threshold",
    "first_threshold",
    "flow_scale",
    "total_scale",
]

HALF_A_PERSON = 0.5
"""Below it an estimate holds traces of people everywhere."""

FIRST_ARROWS = 40
"""Arrows of a first picture, about, where the threshold of the settings leaves none."""


def flow_scale(result: FlowResult, truth: str = ESTIMATE) -> float:
    """Most people in one flow between two cells, of the estimate or the truth, at any time."""
    return max((_largest(table, result) for table in _tables(result, truth)), default=0.0) or 1.0


def difference_scale(result: FlowResult, truth: str) -> float:
    """Largest difference of a flow between estimate and truth, at any time."""
    return max(
        (_largest(_differences(result, time, truth), result) for time in result.times),
        default=0.0,
    ) or 1.0  # fmt: skip


def total_scale(result: FlowResult, truth: str, column: str) -> float:
    """Largest size of a total of `agg_core.tables.flows.cell_totals`, in either, at any time."""
    n_cells = result.states.n_cells
    return max(
        float(cell_totals(table, n_cells)[column].abs().max()) for table in _tables(result, truth)
    ) or 1.0  # fmt: skip


def first_threshold(result: FlowResult) -> float:
    """The threshold asked for; if no flow of the busiest time exceeds it, one that leaves some.

    That is 1, 2 or 5 times a power of ten, so that some forty flows of the estimate exceed it, or
    all that hold half a person.
    """
    asked = result.threshold
    counts = _drawn(result.rows(result.busiest), result)
    return _leaving_some(counts) if 0 < counts.max() <= asked else asked


def first_difference_threshold(result: FlowResult, truth: str) -> float:
    """A round threshold that some forty flows miss or exceed the truth by, at the busiest time."""
    return _leaving_some(_drawn(_differences(result, result.busiest, truth), result))


def _leaving_some(counts: pd.Series[float]) -> float:
    counts = counts.loc[counts > 0].nlargest(FIRST_ARROWS + 1)
    if counts.empty:
        return HALF_A_PERSON
    least = float(counts.iloc[-1]) if len(counts) > FIRST_ARROWS else float(counts.iloc[-1]) / 2
    power = 10.0 ** math.floor(math.log10(least))
    found = next(step * power for step in (5.0, 2.0, 1.0) if step * power <= least)
    return max(found, HALF_A_PERSON) if counts.iloc[0] > HALF_A_PERSON else found


def _tables(result: FlowResult, truth: str) -> Iterator[pd.DataFrame]:
    sources = dict.fromkeys((ESTIMATE, truth))
    # One at a time: a table of every flow between many cells is large.
    return (result.rows(time, source) for time in result.times for source in sources)


def _differences(result: FlowResult, time: str, truth: str) -> pd.DataFrame:
    return flow_differences(result.rows(time), result.rows(time, truth))


def _largest(flows: pd.DataFrame, result: FlowResult) -> float:
    drawn = _drawn(flows, result)
    return float(drawn.max()) if len(drawn) else 0.0


def _drawn(flows: pd.DataFrame, result: FlowResult) -> pd.Series[float]:
    """Counts of moves that a map can draw: who stays or crosses its border has no arrow."""
    outside = result.states.n_cells
    return flows.loc[
        (flows["origin"] != flows["dest"])
        & (flows["origin"] != outside)
        & (flows["dest"] != outside),
        "count",
    ]
