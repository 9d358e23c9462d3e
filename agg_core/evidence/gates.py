"""Which moves pass gates that stand at lines, and what these counted beside a table of counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.evidence.lines import Screenline
from agg_core.space.grid import BaseGrid

__all__ = ["passing"]

FloatArray = npt.NDArray[np.float64]


def passing(line: Screenline, grid: BaseGrid) -> tuple[FloatArray, FloatArray]:
    """How often moves pass a line in each of its directions, (c + 1, c + 1) each.

    The last state is outside of all c cells: those who come from there into a cordon pass it, of
    a line nobody knows.
    """
    c = grid.n_cells
    origin, dest = np.divmod(np.arange(c * c), c)
    found = []
    for crossed in line.crossed(grid, origin, dest):
        table = np.zeros((c + 1, c + 1))
        table[:c, :c] = crossed.reshape(c, c)
        found.append(table)
    if line.is_cordon:
        inside = line.holds(grid)
        found[0][c, :c], found[1][:c, c] = inside, inside
    return found[0], found[1]
