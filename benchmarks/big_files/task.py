"""What both sides do: people per cell and half hour, and how the answers are compared."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.space.build import Grid
from agg_core.space.grid import BaseGrid

__all__ = ["CELLS_A_SIDE", "STEP_MINUTES", "Counts", "the_grid"]

IntArray = npt.NDArray[np.int64]

CELLS_A_SIDE = 50
STEP_MINUTES = 30


@dataclass(frozen=True)
class Counts:
    """People in each cell in each bin, as three columns: bin since 1970, cell, count."""

    bin: IntArray
    cell: IntArray
    count: IntArray

    def checksum(self) -> str:
        """Twelve digits that tell two answers apart, whatever the order of their rows."""
        order = np.lexsort((self.cell, self.bin))
        columns = np.stack([self.bin[order], self.cell[order], self.count[order]])
        return hashlib.sha256(columns.astype("<i8").tobytes()).hexdigest()[:12]


def the_grid(bounds: tuple[float, float, float, float]) -> BaseGrid:
    """The cells over an extent; the one number beyond them is the outside."""
    return Grid.from_bbox(*bounds, CELLS_A_SIDE, CELLS_A_SIDE)
