"""What of areas lies in which cells, by area."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.space.areas import AreaGrid
from agg_core.space.grid import BaseGrid

__all__ = ["shares_in_cells"]


def shares_in_cells(areas: AreaGrid, grid: BaseGrid) -> sparse.csr_array:
    """The share of each area that lies in each cell, a sparse table (Z, c).

    Rows sum to one, or to less where an area reaches beyond the cells.

    Raises
    ------
    InputError
        If no area meets a cell.
    """
    import shapely  # noqa: PLC0415

    cells = grid.polygons_m
    shapes = np.asarray(shapely.transform(areas.polygons, grid.to_metres), dtype=object)
    area, cell = shapely.STRtree(cells).query(shapes, predicate="intersects")
    shared = shapely.area(shapely.intersection(shapes[area], cells[cell]))
    size = np.maximum(shapely.area(shapes), 1e-9)
    if not (shared > 0).any():
        raise InputError(
            "None of the areas meets a cell of the counts; choose areas of the same place.",
            code="areas-elsewhere",
        )
    found = sparse.csr_array((shared / size[area], (area, cell)), shape=(len(shapes), grid.n_cells))
    found.sum_duplicates()
    # Cells that touch may share a little by the way their borders are drawn.
    total = np.maximum(np.asarray(found.sum(axis=1)).ravel(), 1.0)
    found.data /= np.repeat(total, np.diff(found.indptr))
    return found
