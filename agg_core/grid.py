"""Places to cells: one assignment and one geometry for every kind of grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agg_core.errors import InputError

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = ["OUTSIDE", "Grid"]

OUTSIDE = -1
"""What `Grid.assign` gives to a place that lies in no cell."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """A rectangular grid of rows x cols blocks over an extent in degrees (EPSG:4326).

    Cells are numbered row by row from the south-west corner: ``cell = row * cols + col``, with
    row 0 in the south. Build one with `Grid.from_bbox`.
    """

    west: float
    south: float
    east: float
    north: float
    rows: int
    cols: int

    @classmethod
    def from_bbox(
        cls, west: float, south: float, east: float, north: float, rows: int, cols: int
    ) -> Grid:
        """Divide an extent in degrees into equal blocks.

        Raises
        ------
        InputError
            If the extent is empty, reversed or off the globe, or a side has no block.
        """
        extent = np.array([west, south, east, north], dtype=float)
        if not np.isfinite(extent).all():
            raise InputError("The extent must be four finite numbers: west, south, east, north.")
        if not (west < east and south < north):
            raise InputError(
                f"The extent is empty: west {west} must be less than east {east}, "
                f"and south {south} less than north {north}."
            )
        if west < -180 or east > 180 or south < -90 or north > 90:
            raise InputError(
                "The extent must lie within -180..180 degrees of longitude and -90..90 of latitude."
            )
        if rows < 1 or cols < 1 or rows != int(rows) or cols != int(cols):
            raise InputError(
                "A grid needs a whole number of rows and columns, 1 or more of each; it was given "
                f"{rows} x {cols}."
            )
        return cls(float(west), float(south), float(east), float(north), int(rows), int(cols))

    @property
    def n_cells(self) -> int:
        """Number of cells d."""
        return self.rows * self.cols

    @property
    def bounds(self) -> tuple[float, float, float, float]:
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

    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number.

        A block holds its western and southern border; the last ones hold the outer border too.
        """
        col = _bin(np.asarray(lon, dtype=float), self.lon_edges)
        row = _bin(np.asarray(lat, dtype=float), self.lat_edges)
        inside = (col >= 0) & (row >= 0)
        return np.where(inside, row * self.cols + col, OUTSIDE)

    @cached_property
    def labels(self) -> list[str]:
        """Name of each cell: its row and column, counted from 0 in the south-west."""
        return [f"row {i // self.cols}, column {i % self.cols}" for i in range(self.n_cells)]

    @cached_property
    def centroids(self) -> FloatArray:
        """Middle of each cell, (d, 2) as longitude, latitude in degrees."""
        lon = (self.lon_edges[:-1] + self.lon_edges[1:]) / 2
        lat = (self.lat_edges[:-1] + self.lat_edges[1:]) / 2
        return np.column_stack([np.tile(lon, self.rows), np.repeat(lat, self.cols)])

    @cached_property
    def centroids_m(self) -> FloatArray:
        """Middle of each cell in metres east and north of the extent's middle, (d, 2).

        An azimuthal equidistant plane about the middle of the extent on the WGS84 ellipsoid: true
        to a few metres in a thousand over a metropolitan area.
        """
        return self.to_metres(self.centroids)

    def to_metres(self, lonlat: npt.ArrayLike) -> FloatArray:
        """Degrees (n, 2) to metres east and north of the extent's middle (n, 2)."""
        places = np.asarray(lonlat, dtype=float)
        x, y = self._plane.transform(places[:, 0], places[:, 1])
        return np.column_stack([x, y])

    def to_degrees(self, metres: npt.ArrayLike) -> FloatArray:
        """Metres from the extent's middle (n, 2) back to degrees (n, 2)."""
        places = np.asarray(metres, dtype=float)
        lon, lat = self._plane.transform(places[:, 0], places[:, 1], direction="INVERSE")
        return np.column_stack([lon, lat])

    @cached_property
    def _plane(self):  # type: ignore[no-untyped-def]  # pyproj is imported where it is used
        from pyproj import Transformer  # noqa: PLC0415

        lon, lat = (self.west + self.east) / 2, (self.south + self.north) / 2
        plane = f"+proj=aeqd +lon_0={lon} +lat_0={lat} +datum=WGS84 +units=m"
        return Transformer.from_crs("EPSG:4326", plane, always_xy=True)

    @cached_property
    def block_size_m(self) -> tuple[float, float]:
        """Width and height of the middle block in metres on the WGS84 ellipsoid."""
        from pyproj import Geod  # noqa: PLC0415

        geod = Geod(ellps="WGS84")
        lon, lat = (self.west + self.east) / 2, (self.south + self.north) / 2
        half_lon = (self.east - self.west) / self.cols / 2
        half_lat = (self.north - self.south) / self.rows / 2
        width = geod.inv(lon - half_lon, lat, lon + half_lon, lat)[2]
        height = geod.inv(lon, lat - half_lat, lon, lat + half_lat)[2]
        return float(width), float(height)

    @cached_property
    def neighbours(self) -> tuple[IntArray, ...]:
        """For each cell the cells that touch it by a side or a corner: at most 8, in order."""
        row, col = np.divmod(np.arange(self.n_cells), self.cols)
        found = []
        for r, c in zip(row, col, strict=True):
            near = [
                rr * self.cols + cc
                for rr in range(max(r - 1, 0), min(r + 2, self.rows))
                for cc in range(max(c - 1, 0), min(c + 2, self.cols))
                if (rr, cc) != (r, c)
            ]
            found.append(np.array(near, dtype=np.int64))
        return tuple(found)

    def rings(self) -> FloatArray:
        """Outline of each cell, (d, 5, 2) degrees, closed and counter-clockwise."""
        row, col = np.divmod(np.arange(self.n_cells), self.cols)
        west, east = self.lon_edges[col], self.lon_edges[col + 1]
        south, north = self.lat_edges[row], self.lat_edges[row + 1]
        lon = np.column_stack([west, east, east, west, west])
        lat = np.column_stack([south, south, north, north, south])
        return np.stack([lon, lat], axis=-1)

    def to_geodataframe(self) -> gpd.GeoDataFrame:
        """The cells as polygons in EPSG:4326, with columns cell, row, col, geometry."""
        import geopandas as gpd  # noqa: PLC0415
        import shapely  # noqa: PLC0415

        cell = np.arange(self.n_cells)
        row, col = np.divmod(cell, self.cols)
        return gpd.GeoDataFrame(
            {"cell": cell, "row": row, "col": col},
            geometry=shapely.polygons(self.rings()),
            crs="EPSG:4326",
        )


def _bin(values: FloatArray, edges: FloatArray) -> IntArray:
    """Index of the interval [edge, next edge) of each value, the last one closed; -1 outside."""
    index = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
    index[values == edges[-1]] = len(edges) - 2
    index[~((values >= edges[0]) & (values <= edges[-1]))] = OUTSIDE
    return index
