"""What of areas lies in which cells, by area."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.space.areas import AreaGrid
from agg_core.space.grid import BaseGrid

__all__ = ["Meeting", "meeting", "shares_in_cells"]

Shapes = npt.NDArray[np.object_]
IntArray = npt.NDArray[np.int64]


class Meeting(NamedTuple):
    """Areas and cells in metres, and which of both meet: their numbers, (n,) each."""

    areas: Shapes
    cells: Shapes
    area: IntArray
    cell: IntArray

    @property
    def shared_m2(self) -> npt.NDArray[np.float64]:
        """What each two share, (n,)."""
        import shapely  # noqa: PLC0415

        both = shapely.intersection(self.areas[self.area], self.cells[self.cell])
        return np.asarray(shapely.area(both))


def meeting(areas: AreaGrid, grid: BaseGrid) -> Meeting:
    """Which areas meet which cells of a grid."""
    import shapely  # noqa: PLC0415

    cells = grid.polygons_m
    shapes = np.asarray(shapely.transform(areas.polygons, grid.to_metres), dtype=object)
    area, cell = shapely.STRtree(cells).query(shapes, predicate="intersects")
    return Meeting(shapes, cells, area, cell)


def shares_in_cells(areas: AreaGrid, grid: BaseGrid) -> sparse.csr_array:
    """The share of each area that lies in each cell, a sparse table (Z, c).

    Rows sum to one, or to less where an area reaches beyond the cells.

    Raises
    ------
    InputError
        If no area meets a cell.
    """
    import shapely  # noqa: PLC0415

    both = meeting(areas, grid)
    shapes, _, area, cell = both
    shared = both.shared_m2
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
