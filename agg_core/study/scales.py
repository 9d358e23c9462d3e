"""One scale for everything that is compared, over all times of day of a run; where arrows begin."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from agg_core.base.kept import kept_with
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.study.settings import CountLearnSettings, LearnSettings
from agg_core.tables.flows import cell_totals, flow_differences

__all__ = [
    "drawn_moves",
    "first_difference_threshold",
    "first_threshold",
    "flow_scale",
    "largest_move",
    "round_threshold",
    "total_scale",
]

HALF_A_PERSON = 0.5
"""Below it an estimate holds traces of people everywhere."""

FIRST_ARROWS = 120
"""Arrows of a first picture, about: enough to see a whole city, few enough to read."""


def flow_scale(result: FlowResult, truth: str = ESTIMATE) -> float:
    """Most people in one flow between two cells, of the estimate or the truth, at any time."""
    n_cells = result.states.n_cells
    return max(largest_move(table, n_cells) for table in _tables(result, truth)) or 1.0


def total_scale(result: FlowResult, truth: str, column: str) -> float:
    """Largest size of a total of `agg_core.tables.flows.cell_totals`, in either, at any time."""
    n_cells = result.states.n_cells
    return max(
        float(cell_totals(table, n_cells)[column].abs().max()) for table in _tables(result, truth)
    ) or 1.0  # fmt: skip


@kept_with
def first_threshold(result: FlowResult) -> float:
    """The threshold that was set, if some flow of the busiest time exceeds it; else a round one.

    Settings as they are at first set none. A round one is 1, 2 or 5 times a power of ten, which
    about `FIRST_ARROWS` flows exceed; half a person at least where flows are larger.
    """
    asked = result.threshold
    counts = drawn_moves(result.rows(result.busiest), result.states.n_cells)
    most = counts.max() if len(counts) else 0.0
    set_by_somebody = asked not in (LearnSettings().threshold, CountLearnSettings().threshold)
    if most == 0 or (set_by_somebody and most > asked):
        return asked
    return round_threshold(counts)


@kept_with
def first_difference_threshold(result: FlowResult, truth: str) -> float:
    """A round threshold that about as many flows miss or exceed the truth by."""
    return round_threshold(
        drawn_moves(_differences(result, result.busiest, truth), result.states.n_cells)
    )


def round_threshold(counts: pd.Series[float]) -> float:
    """A round threshold that about `FIRST_ARROWS` of these flows exceed."""
    counts = counts.loc[counts > 0]
    if counts.empty:
        return HALF_A_PERSON
    largest = counts.nlargest(FIRST_ARROWS + 1)
    least = float(largest.iloc[-1]) if len(largest) > FIRST_ARROWS else float(largest.iloc[-1]) / 2
    power = 10.0 ** math.floor(math.log10(least))
    round_ones = [step * power for step in (1.0, 2.0, 5.0, 10.0)]
    below = max(each for each in round_ones if each <= least)
    above = min(each for each in round_ones if each > least)

    def aside(threshold: float) -> float:
        n = int((counts > threshold).sum())
        return abs(math.log(n / min(FIRST_ARROWS, len(counts)))) if n else math.inf

    found = min((below, above), key=aside)
    return max(found, HALF_A_PERSON) if largest.iloc[0] > HALF_A_PERSON else found


def _tables(result: FlowResult, truth: str) -> Iterator[pd.DataFrame]:
    sources = dict.fromkeys((ESTIMATE, truth))
    # One at a time: a table of every flow between many cells is large.
    return (result.rows(time, source) for time in result.times for source in sources)


def _differences(result: FlowResult, time: str, truth: str) -> pd.DataFrame:
    return flow_differences(result.rows(time), result.rows(time, truth))


def largest_move(flows: pd.DataFrame, n_cells: int) -> float:
    """Most people in one of the moves that a map can draw; 0 where there is none."""
    drawn = drawn_moves(flows, n_cells)
    return float(drawn.max()) if len(drawn) else 0.0


def drawn_moves(flows: pd.DataFrame, n_cells: int) -> pd.Series[float]:
    """Counts of moves that a map can draw: who stays or crosses its border has no arrow."""
    return flows.loc[
        (flows["origin"] != flows["dest"])
        & (flows["origin"] != n_cells)
        & (flows["dest"] != n_cells),
        "count",
    ]
