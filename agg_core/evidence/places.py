"""Where people of one place come from, and where they go."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.evidence.sums import Sums, cell_flows, hourly
from agg_core.evidence.tables import rows_of
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = ["End", "flows_of_place"]

End = Literal["in", "out"]
"""Whether people come into a place or go out of it."""


def flows_of_place(
    result: FlowResult, time: str, cell: int, end: End, source: str = ESTIMATE
) -> pd.DataFrame:
    """Other ends of moves into or out of a cell: place, count, low, high, corrected.

    The largest are first. Counts are people per hour, or per step where the length of a step is not
    known; low and high are the ends of intervals of nine in ten, nan without simulated worlds, and
    corrected is the middle of one that does not hold its count. Only places that somebody comes
    from or goes to, as estimated, have a row.

    Raises
    ------
    InputError
        If there is no such time, source or cell.
    """
    if not 0 <= cell < result.states.n_cells:
        raise InputError(
            f"There is no cell {cell}; cells go from 0 to {result.states.n_cells - 1}.",
            code="unknown-cell",
        )
    flows = cell_flows(result, [time], source, hourly(result)[0], ())
    here, other = (flows.dest, flows.origin) if end == "in" else (flows.origin, flows.dest)
    picked = np.flatnonzero((here == cell) & flows.moves & (flows.count > 0))
    errors = None if flows.errors is None else flows.errors[:, picked]
    sums = Sums(flows.count[picked], errors)
    names = np.array(result.states.cells, dtype=object)
    table = rows_of(sums, place=names[other[picked]]).drop(columns="reference")
    return table.sort_values("count", ascending=False, kind="stable", ignore_index=True)
