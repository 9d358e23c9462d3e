"""Rows x columns over an extent in degrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.space.degrees import on_one_side
from agg_core.space.grid import OUTSIDE, Bounds
from agg_core.space.lattice import LatticeGrid

__all__ = ["RectangleGrid", "check_extent"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FINEST_DEGREES = 1e-9
"""Cells below this size are as small as the rounding of degrees."""


def check_extent(
    west: float, south: float, east: float, north: float, *, most_east: float = 180.0
) -> None:
    """Refuse an extent in degrees that is empty, reversed or off the globe.

    An extent may go on beyond 180 degrees, up to ``most_east``, where its cells may.

    Raises
    ------
    InputError
        With what is wrong.
    """
    if not np.isfinite([west, south, east, north]).all():
        raise InputError(
            "The extent must be four finite numbers: west, south, east, north.",
            code="malformed-extent",
        )
    if not (west < east and south < north):
        raise InputError(
            f"The extent is empty: west {west} must be less than east {east}, "
            f"and south {south} less than north {north}.",
            code="empty-extent",
        )
    if west < -180 or west > 180 or east > most_east or south < -90 or north > 90:
        raise InputError(
            "The extent must lie within -180..180 degrees of longitude and -90..90 of latitude.",
            code="extent-out-of-range",
        )


@dataclass(frozen=True)
class RectangleGrid(LatticeGrid):
    """A rectangular grid of rows x cols cells over an extent in degrees (EPSG:4326).

    Cells are numbered row by row from the south-west corner: ``cell = row * cols + col``, with
    row 0 in the south. A cell holds its western and southern border; the last ones hold the
    outer border too. A grid over 180 degrees goes on beyond them (170 to 190), or is given as from
    170 to -170. ``names`` (d,) are what somebody else calls the cells, if anybody does.
    """

    west: float
    south: float
    east: float
    north: float
    rows: int
    cols: int
    names: tuple[str, ...] = ()

    @classmethod
    def over(
        cls, west: float, south: float, east: float, north: float, rows: int, cols: int
    ) -> RectangleGrid:
        """Divide an extent in degrees into equal cells; see `Grid.from_bbox`."""
        _, east = on_one_side(np.empty(0), west, east)
        check_extent(west, south, east, north, most_east=min(west, 180) + 360)
        if rows < 1 or cols < 1 or rows != int(rows) or cols != int(cols):
            raise InputError(
                "A grid needs a whole number of rows and columns, 1 or more of each; it was given "
                f"{rows} x {cols}.",
                code="value-out-of-range",
            )
        return cls(float(west), float(south), float(east), float(north), int(rows), int(cols))

    @property
    def n_cells(self) -> int:
        """Number of cells d."""
        return self.rows * self.cols

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        return self.west, self.south, self.east, self.north

    @cached_property
    def lon_edges(self) -> FloatArray:
        """Borders of the columns, (cols + 1,) degrees."""
        return np.linspace(self.west, self.east, self.cols + 1)

    @cached_property
    def lat_edges(self) -> FloatArray:
        """Borders of the rows from south to north, (rows + 1,) degrees."""
        return np.linspace(self.south, self.north, self.rows + 1)

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Row (d,) and column (d,) of each cell."""
        return np.divmod(np.arange(self.n_cells), self.cols)

    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number."""
        x, _ = on_one_side(np.asarray(lon, dtype=float), self.west, self.east)
        col = _bin(x, self.lon_edges)
        row = _bin(np.asarray(lat, dtype=float), self.lat_edges)
        inside = (col >= 0) & (row >= 0)
        return np.where(inside, row * self.cols + col, OUTSIDE)

    @cached_property
    def labels(self) -> list[str]:
        """Name of each cell: its own, or its row and column, counted from 0 in the south-west."""
        if self.names:
            return list(self.names)
        return [f"row {i // self.cols}, column {i % self.cols}" for i in range(self.n_cells)]

    def _columns(self) -> dict[str, Any]:
        row, col = self.places
        return {"row": row, "col": col}


def _bin(values: FloatArray, edges: FloatArray) -> IntArray:
    """Index of the interval [edge, next edge) of each value, the last one closed; -1 outside.

    The edges are evenly spaced but for rounding, so that a division finds the interval or one
    beside it; a look at its two edges tells which.
    """
    n = len(edges) - 1
    size = (edges[-1] - edges[0]) / n
    inside = (values >= edges[0]) & (values <= edges[-1])
    if size < FINEST_DEGREES:
        index = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
    else:
        # Values that are none, or far away, must not meet the conversion.
        held = np.where(inside, values, edges[0])
        index = ((held - edges[0]) / size).astype(np.int64)
        np.minimum(index, n - 1, out=index)
        index -= held < edges[index]
        index += held >= edges[index + 1]
    index[values == edges[-1]] = n - 1
    index[~inside] = OUTSIDE
    return index
