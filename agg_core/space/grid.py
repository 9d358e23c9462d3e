"""Places to cells: one assignment and one geometry for every kind of grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agg_core.space.degrees import HALF_ROUND

if TYPE_CHECKING:
    import geopandas as gpd
    from scipy import sparse


__all__ = ["OUTSIDE", "BaseGrid", "Bounds"]

OUTSIDE = -1
"""What `BaseGrid.assign` gives to a place that lies in no cell."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]
Bounds = tuple[float, float, float, float]
"""West, south, east, north in degrees."""

TOUCHING_DEGREES = 1e-6
"""Cells this near to each other touch: borders drawn one by one leave gaps of centimetres."""


class BaseGrid(ABC):
    """Cells in degrees (EPSG:4326), numbered 0..d-1, of which none holds a place of another.

    What is common to all kinds; `agg_core.space.build.Grid` builds one.
    """

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells d."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """Name of each cell, (d,)."""

    @property
    @abstractmethod
    def polygons(self) -> Shapes:
        """Shape of each cell in degrees, (d,) shapely polygons or multipolygons."""

    @abstractmethod
    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number."""

    def _columns(self) -> dict[str, Any]:
        """Columns of `to_geodataframe` beside cell and geometry."""
        return {"label": self.labels}

    # Places

    @cached_property
    def centroids(self) -> FloatArray:
        """A place inside of each cell, its middle where that lies inside, (d, 2) in degrees."""
        import shapely  # noqa: PLC0415

        middles = shapely.centroid(self.polygons)
        inside = shapely.contains_properly(self.polygons, middles)
        places = np.where(inside, middles, shapely.point_on_surface(self.polygons))
        return np.asarray(shapely.get_coordinates(places), dtype=np.float64)

    @cached_property
    def centroids_m(self) -> FloatArray:
        """`centroids` in metres east and north of the middle of the bounds, (d, 2).

        An azimuthal equidistant plane about the middle of the bounds on the WGS84 ellipsoid: true
        to a few metres in a thousand over a metropolitan area.
        """
        return self.to_metres(self.centroids)

    def to_metres(self, lonlat: npt.ArrayLike) -> FloatArray:
        """Degrees (n, 2) to metres east and north of the middle of the bounds (n, 2)."""
        places = np.asarray(lonlat, dtype=float)
        x, y = self._plane.transform(places[:, 0], places[:, 1])
        return np.column_stack([x, y])

    def to_degrees(self, metres: npt.ArrayLike) -> FloatArray:
        """Metres from the middle of the bounds (n, 2) back to degrees (n, 2)."""
        places = np.asarray(metres, dtype=float)
        lon, lat = self._plane.transform(places[:, 0], places[:, 1], direction="INVERSE")
        west, _, east, _ = self.bounds
        if east > HALF_ROUND:  # those beyond 180 degrees go on, as the cells do
            lon = np.where(lon < (west + east) / 2 - HALF_ROUND, lon + 360, lon)
        return np.column_stack([lon, lat])

    @cached_property
    def _plane(self):  # type: ignore[no-untyped-def]  # pyproj is imported where it is used
        from pyproj import Transformer  # noqa: PLC0415

        west, south, east, north = self.bounds
        lon, lat = (west + east) / 2, (south + north) / 2
        plane = f"+proj=aeqd +lon_0={lon} +lat_0={lat} +datum=WGS84 +units=m"
        return Transformer.from_crs("EPSG:4326", plane, always_xy=True)

    # Sizes

    @cached_property
    def areas_m2(self) -> FloatArray:
        """Size of each cell in square metres, (d,), on an equal-area plane."""
        import shapely  # noqa: PLC0415
        from pyproj import Transformer  # noqa: PLC0415

        west, south, east, north = self.bounds
        plane = f"+proj=laea +lon_0={(west + east) / 2} +lat_0={(south + north) / 2} +datum=WGS84"
        to_plane = Transformer.from_crs("EPSG:4326", plane, always_xy=True)
        flat = shapely.transform(
            self.polygons, lambda p: np.column_stack(to_plane.transform(p[:, 0], p[:, 1]))
        )
        return np.asarray(shapely.area(flat), dtype=np.float64)

    @property
    def cell_size_m(self) -> tuple[float, float]:
        """Width and height in metres of a typical cell: the square of the median size."""
        side = float(np.sqrt(np.median(self.areas_m2)))
        return side, side

    @cached_property
    def extent_m(self) -> tuple[float, float]:
        """Width and height in metres of the bounds, along their southern and western sides."""
        west, south, east, north = self.bounds
        corners = self.to_metres([[west, south], [east, south], [west, north]])
        width, height = np.hypot(*(corners[1:] - corners[0]).T).tolist()
        return width, height

    @cached_property
    def cell_bounds(self) -> FloatArray:
        """West, south, east, north of each cell in degrees, (d, 4)."""
        import shapely  # noqa: PLC0415

        return np.asarray(shapely.bounds(self.polygons), dtype=np.float64)

    # Shapes

    @cached_property
    def polygons_m(self) -> Shapes:
        """`polygons` in metres from the middle of the bounds, (d,)."""
        import shapely  # noqa: PLC0415

        return np.asarray(shapely.transform(self.polygons, self.to_metres), dtype=object)

    @property
    def drawn_polygons(self) -> Shapes:
        """`polygons` as they are drawn, (d,): with fewer points, where they have very many."""
        return self.polygons

    def pieces(self) -> Iterator[tuple[int, list[FloatArray]]]:
        """Connected parts of the cells for drawing: the cell, and rings (k, 2) in degrees.

        Of each part the outer ring comes first, counter-clockwise and closed, then its holes.
        """
        import shapely  # noqa: PLC0415

        parts, cells = shapely.get_parts(self.drawn_polygons, return_index=True)
        parts = shapely.orient_polygons(parts)
        rings, owners = shapely.get_rings(parts, return_index=True)
        places, of_ring = shapely.get_coordinates(rings, return_index=True)
        paths = np.split(places, np.flatnonzero(np.diff(of_ring)) + 1)
        starts = np.searchsorted(owners, np.arange(len(parts) + 1))
        for part, cell in enumerate(cells.tolist()):
            yield cell, paths[starts[part] : starts[part + 1]]

    def to_geodataframe(self) -> gpd.GeoDataFrame:
        """The cells as polygons in EPSG:4326: cell, what names it in this kind of grid, geometry.

        Columns row, col of rows x columns, mesh of a mesh, h3 of H3, area of own areas.
        """
        import geopandas as gpd  # noqa: PLC0415

        columns = {"cell": np.arange(self.n_cells), **self._columns()}
        return gpd.GeoDataFrame(columns, geometry=self.polygons, crs="EPSG:4326")

    # Relations

    @cached_property
    def neighbours(self) -> tuple[IntArray, ...]:
        """For each cell the cells that touch it by a side or a corner, in order."""
        import shapely  # noqa: PLC0415

        tree = shapely.STRtree(self.polygons)
        one, other = tree.query(self.polygons, predicate="dwithin", distance=TOUCHING_DEGREES)
        pairs = np.unique(np.column_stack([one, other])[one != other], axis=0)
        starts = np.searchsorted(pairs[:, 0], np.arange(1, self.n_cells))
        return tuple(np.split(pairs[:, 1].astype(np.int64), starts))

    @cached_property
    def border_distance_m(self) -> FloatArray:
        """Distance from each of `centroids_m` to where the cells end, (d,)."""
        import shapely  # noqa: PLC0415

        border = shapely.boundary(shapely.union_all(self.polygons_m))
        return np.asarray(shapely.distance(shapely.points(self.centroids_m), border))

    @cached_property
    def moments_m(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d, 2) and covariance (d, 2, 2) in metres of a place anywhere in each cell."""
        from agg_core.space.integrals import moments  # noqa: PLC0415

        return moments(self.polygons_m)

    def noise(self, sigma_m: float) -> sparse.csr_array:
        """Chance that a place anywhere in a cell, moved by N(0, sigma_m) each way, is in another.

        (d, d), sparse, rows sum to 1: what would leave the grid is spread over the cells in
        proportion.
        """
        from agg_core.space.integrals import area_noise  # noqa: PLC0415

        return area_noise(self.polygons_m, sigma_m)
