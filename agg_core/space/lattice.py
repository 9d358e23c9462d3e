"""Cells between lines of equal longitude and latitude: all by arithmetic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agg_core.space.grid import OUTSIDE, BaseGrid, Bounds, Shapes
from agg_core.space.integrals import interval_noise

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["LatticeGrid"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NEVER = 1e-12
"""Chances in one direction that are left out, far below what any use of them tells."""


class LatticeGrid(BaseGrid):
    """Cells of equal width and height in degrees, each in a row and a column of a lattice."""

    @property
    @abstractmethod
    def lon_edges(self) -> FloatArray:
        """Borders of the columns from west to east, (columns + 1,) degrees."""

    @property
    @abstractmethod
    def lat_edges(self) -> FloatArray:
        """Borders of the rows from south to north, (rows + 1,) degrees."""

    @property
    @abstractmethod
    def places(self) -> tuple[IntArray, IntArray]:
        """Row (d,), from 0 in the south, and column (d,), from 0 in the west, of each cell."""

    @property
    def n_cells(self) -> int:
        """Number of cells d."""
        return len(self.places[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the lattice."""
        return len(self.lat_edges) - 1, len(self.lon_edges) - 1

    @property
    def is_full(self) -> bool:
        """Whether every place of the lattice is a cell."""
        return self.n_cells == self.shape[0] * self.shape[1]

    @property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        lon, lat = self.lon_edges, self.lat_edges
        return float(lon[0]), float(lat[0]), float(lon[-1]), float(lat[-1])

    @cached_property
    def _cell_at(self) -> tuple[IntArray, IntArray]:
        """Places of the lattice that are cells, as row * columns + column in order; the cells."""
        row, col = self.places
        at = row * self.shape[1] + col
        order = np.argsort(at)
        return at[order], order

    def cell_at(self, row: IntArray, col: IntArray) -> IntArray:
        """Cell at places of the lattice (n,); `OUTSIDE` for none."""
        rows, cols = self.shape
        inside = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
        wanted, (at, cells) = row * cols + col, self._cell_at
        found = np.minimum(np.searchsorted(at, wanted), len(at) - 1)
        return np.where(inside & (at[found] == wanted), cells[found], OUTSIDE)

    @cached_property
    def centroids(self) -> FloatArray:
        """Middle of each cell, (d, 2) as longitude, latitude in degrees."""
        row, col = self.places
        lon = (self.lon_edges[:-1] + self.lon_edges[1:]) / 2
        lat = (self.lat_edges[:-1] + self.lat_edges[1:]) / 2
        return np.column_stack([lon[col], lat[row]])

    @cached_property
    def cell_size_m(self) -> tuple[float, float]:
        """Width and height of the middle cell in metres on the WGS84 ellipsoid."""
        from pyproj import Geod  # noqa: PLC0415

        geod = Geod(ellps="WGS84")
        west, south, east, north = self.bounds
        lon, lat = (west + east) / 2, (south + north) / 2
        half_lon = (east - west) / self.shape[1] / 2
        half_lat = (north - south) / self.shape[0] / 2
        width = geod.inv(lon - half_lon, lat, lon + half_lon, lat)[2]
        height = geod.inv(lon, lat - half_lat, lon, lat + half_lat)[2]
        return float(width), float(height)

    @cached_property
    def extent_m(self) -> tuple[float, float]:
        """Width and height in metres of the bounds, as so many middle cells."""
        width_m, height_m = self.cell_size_m
        return width_m * self.shape[1], height_m * self.shape[0]

    @cached_property
    def cell_bounds(self) -> FloatArray:
        """West, south, east, north of each cell in degrees, (d, 4)."""
        (row, col), lon, lat = self.places, self.lon_edges, self.lat_edges
        return np.column_stack([lon[col], lat[row], lon[col + 1], lat[row + 1]])

    @cached_property
    def neighbours(self) -> tuple[IntArray, ...]:
        """For each cell the cells that touch it by a side or a corner: at most 8, in order."""
        row, col = self.places
        steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
        around = np.stack([self.cell_at(row + r, col + c) for r, c in steps], axis=1)
        return tuple(np.sort(cells[cells >= 0]) for cells in around)

    @cached_property
    def border_distance_m(self) -> FloatArray:
        """Distance from the middle of each cell to where the cells end, (d,)."""
        if not self.is_full:
            return super().border_distance_m
        (row, col), (rows, cols) = self.places, self.shape
        width_m, height_m = self.cell_size_m
        across = (np.minimum(col, cols - 1 - col) + 0.5) * width_m
        along = (np.minimum(row, rows - 1 - row) + 0.5) * height_m
        return np.minimum(across, along)

    @cached_property
    def moments_m(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d, 2) and covariance (d, 2, 2) of a place anywhere in each cell: side^2 / 12."""
        covariance = np.diag(np.square(self.cell_size_m) / 12)
        return self.centroids_m, np.broadcast_to(covariance, (self.n_cells, 2, 2))

    def noise(self, sigma_m: float) -> sparse.csr_array:
        """Chance that a place anywhere in a cell, moved by N(0, sigma_m) each way, is in another.

        Exact for cells of the middle cell's size, (d, d), sparse; what would leave the grid is
        spread over the cells in proportion.
        """
        from scipy import sparse  # noqa: PLC0415

        from agg_core.base.moves import normalised_rows  # noqa: PLC0415

        (rows, cols), (row, col) = self.shape, self.places
        width_m, height_m = self.cell_size_m
        by_row = interval_noise(rows, sigma_m / height_m)
        by_col = interval_noise(cols, sigma_m / width_m)
        for along in (by_row, by_col):
            along[along < NEVER] = 0.0
        all_cells = sparse.csr_array(sparse.kron(by_row, by_col, format="csr"))
        here = row * cols + col
        chance = sparse.csr_array(all_cells[here][:, here])
        chance.sort_indices()
        return chance if self.is_full else normalised_rows(chance)

    def pieces(self) -> Iterator[tuple[int, list[FloatArray]]]:
        """The cells for drawing: the cell, and its one ring (5, 2) in degrees."""
        return ((cell, [ring]) for cell, ring in enumerate(self.rings()))

    def rings(self) -> FloatArray:
        """Outline of each cell, (d, 5, 2) degrees, closed and counter-clockwise."""
        west, south, east, north = self.cell_bounds.T
        lon = np.column_stack([west, east, east, west, west])
        lat = np.column_stack([south, south, north, north, south])
        return np.stack([lon, lat], axis=-1)

    @cached_property
    def polygons(self) -> Shapes:
        """Shape of each cell in degrees, (d,) shapely polygons."""
        import shapely  # noqa: PLC0415

        return np.asarray(shapely.polygons(self.rings()), dtype=object)
