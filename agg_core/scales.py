"""One scale for everything that is compared: the largest values over all times of day of a run."""

from __future__ import annotations

import pandas as pd

from agg_core.flows import cell_totals, flow_differences
from agg_core.study import StudyResult

__all__ = ["difference_scale", "flow_scale", "total_scale"]


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


def _pairs(result: StudyResult, truth: str) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    return [
        (result.table(a.anchor, "estimate"), result.table(a.anchor, truth)) for a in result.anchors
    ]


def _largest(flows: pd.DataFrame, result: StudyResult) -> float:
    """Of the moves that a map can draw: people who stay or cross its border have no arrow."""
    outside = result.settings.grid.make().n_cells
    drawn = flows.loc[
        (flows["origin"] != flows["dest"])
        & (flows["origin"] != outside)
        & (flows["dest"] != outside),
        "count",
    ]
    return float(drawn.max()) if len(drawn) else 0.0
