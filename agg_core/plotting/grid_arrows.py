"""Arrows of a flow table on a grid, in metres: for figures, which nobody zooms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.plotting.arrows import FlowSelection, arrow_rings, arrow_widths, select_flows
from agg_core.plotting.deck import typical_side_m
from agg_core.space.grid import BaseGrid

__all__ = ["LEAST_SHADED", "arrow_half_widths_m", "drawn_flows", "flow_rings"]

FloatArray = npt.NDArray[np.float64]

MAX_HALF_WIDTH = 0.115
MIN_HALF_WIDTH = 0.03
MAX_INSET = 0.24
LEAST_SHADED = 0.5
"""An estimate leaves traces of people everywhere; less than half a person is not shaded."""


def drawn_flows(
    grid: BaseGrid, flows: pd.DataFrame, threshold: float, top_n: int | None = 300
) -> FlowSelection:
    """The flows that a figure draws, and what it leaves out."""
    return select_flows(flows, threshold, top_n, n_cells=grid.n_cells)


def arrow_half_widths_m(grid: BaseGrid) -> tuple[float, float]:
    """Least and greatest half width of an arrow on this grid's maps, in metres."""
    unit = typical_side_m(grid)
    return MIN_HALF_WIDTH * unit, MAX_HALF_WIDTH * unit


def flow_rings(
    grid: BaseGrid, chosen: pd.DataFrame, size: FloatArray, vmax: float
) -> tuple[FloatArray, FloatArray]:
    """Outlines (n, 8, 2) of arrows in degrees, and their half widths (n,) in metres."""
    centres = grid.centroids_m
    half = arrow_widths(size, vmax, *arrow_half_widths_m(grid))
    rings_m = arrow_rings(
        centres[chosen["origin"].to_numpy(dtype=np.int64)],
        centres[chosen["dest"].to_numpy(dtype=np.int64)],
        half,
        max_inset=MAX_INSET * typical_side_m(grid),
    )
    return grid.to_degrees(rings_m.reshape(-1, 2)).reshape(rings_m.shape), half
