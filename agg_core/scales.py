"""One scale for everything that is compared, over all times of day of a run; where arrows begin."""

from __future__ import annotations

import math

import pandas as pd

from agg_core.flows import cell_totals, flow_differences
from agg_core.study import StudyResult

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
"""Arrows of a first picture, about, where the threshold of the study leaves none."""


def flow_scale(result: StudyResult, truth: str) -> float:
    """Most people in one flow between two blocks, of the estimate or the truth, at any time."""
    return max(
        (_largest(table, result) for pair in _pairs(result, truth) for table in pair), default=0.0
    ) or 1.0  # fmt: skip


def difference_scale(result: StudyResult, truth: str) -> float:
    """Largest difference of a flow between estimate and truth, at any time."""
    return max(
        (_largest(flow_differences(*pair), result) for pair in _pairs(result, truth)), default=0.0
    ) or 1.0  # fmt: skip


def total_scale(result: StudyResult, truth: str, column: str) -> float:
    """Largest size of a total of `agg_core.flows.cell_totals`, in either, at any time."""
    n_cells = result.settings.grid.make().n_cells
    return max(
        float(cell_totals(table, n_cells)[column].abs().max())
        for pair in _pairs(result, truth)
        for table in pair
    ) or 1.0  # fmt: skip


def first_threshold(result: StudyResult) -> float:
    """The threshold of the study; if no flow of the busiest time exceeds it, one that leaves some.

    That is 1, 2 or 5 times a power of ten, so that some forty flows of the estimate exceed it, or
    all that hold half a person.
    """
    asked = result.settings.learn.threshold
    counts = _drawn(result.table(result.busiest, "estimate"), result)
    return _leaving_some(counts) if 0 < counts.max() <= asked else asked


def first_difference_threshold(result: StudyResult, truth: str) -> float:
    """A round threshold that some forty flows miss or exceed the truth by, at the busiest time."""
    differences = flow_differences(*(result.table(result.busiest, s) for s in ("estimate", truth)))
    return _leaving_some(_drawn(differences, result))


def _leaving_some(counts: pd.Series[float]) -> float:
    counts = counts.loc[counts > 0].nlargest(FIRST_ARROWS + 1)
    if counts.empty:
        return HALF_A_PERSON
    least = float(counts.iloc[-1]) if len(counts) > FIRST_ARROWS else float(counts.iloc[-1]) / 2
    power = 10.0 ** math.floor(math.log10(least))
    found = next(step * power for step in (5.0, 2.0, 1.0) if step * power <= least)
    return max(found, HALF_A_PERSON) if counts.iloc[0] > HALF_A_PERSON else found


def _pairs(result: StudyResult, truth: str) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    return [
        (result.table(a.anchor, "estimate"), result.table(a.anchor, truth)) for a in result.anchors
    ]


def _largest(flows: pd.DataFrame, result: StudyResult) -> float:
    drawn = _drawn(flows, result)
    return float(drawn.max()) if len(drawn) else 0.0


def _drawn(flows: pd.DataFrame, result: StudyResult) -> pd.Series[float]:
    """Counts of moves that a map can draw: who stays or crosses its border has no arrow."""
    outside = result.settings.grid.make().n_cells
    return flows.loc[
        (flows["origin"] != flows["dest"])
        & (flows["origin"] != outside)
        & (flows["dest"] != outside),
        "count",
    ]
