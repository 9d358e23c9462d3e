"""Cells of H3, the hexagonal index of the globe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.space.degrees import HALF_ROUND, going_on, on_one_side, shapes_going_on
from agg_core.space.grid import OUTSIDE, BaseGrid, Bounds, Shapes
from agg_core.space.limits import too_many
from agg_core.space.rectangle import check_extent

__all__ = ["FINEST_RESOLUTION", "HexGrid"]

IntArray = npt.NDArray[np.int64]

FINEST_RESOLUTION = 15
BULGE = 0.1
"""Share of the bounds by which arcs may leave the box about the corners of cells."""


@dataclass(frozen=True)
class HexGrid(BaseGrid):
    """H3 cells of one resolution, by their indices as text.

    A place on a border belongs to the cell that H3 itself gives for it, always the same one.
    """

    resolution: int
    cells: tuple[str, ...]

    @classmethod
    def of(cls, resolution: int | None, bounds: Bounds | None, cells: Iterable[str]) -> HexGrid:
        """The given cells, or those that cover an extent; see `Grid.from_h3`."""
        given = tuple(dict.fromkeys(str(cell).lower() for cell in cells))
        if given:
            grid = cls(_common_resolution(given, resolution), given)
        elif resolution is None or bounds is None:
            raise InputError(
                "An H3 grid needs a resolution and an extent, or cells.", code="no-cells-given"
            )
        else:
            grid = cls(resolution, _covering(resolution, bounds))
        west, _, east, _ = grid.bounds
        if east - west > HALF_ROUND:
            raise InputError(
                "The H3 cells reach over more than half of the globe; choose rows x columns, or "
                "fewer cells.",
                code="extent-too-wide",
            )
        return grid

    @property
    def n_cells(self) -> int:
        """Number of cells d."""
        return len(self.cells)

    @cached_property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        import shapely  # noqa: PLC0415

        west, south, east, north = shapely.total_bounds(self.polygons).tolist()
        return west, south, east, north

    @property
    def labels(self) -> list[str]:
        """H3 index of each cell."""
        return list(self.cells)

    @cached_property
    def polygons(self) -> Shapes:
        """Shape of each cell in degrees, (d,) shapely polygons."""
        import h3  # type: ignore[import-untyped]  # noqa: PLC0415
        import shapely  # noqa: PLC0415

        shapes = [
            shapely.Polygon(np.column_stack([going_on(ring[:, 1]), ring[:, 0]]))
            for ring in (np.array(h3.cell_to_boundary(cell)) for cell in self.cells)
        ]
        return shapes_going_on(np.array(shapes, dtype=object))

    @cached_property
    def _by_index(self) -> tuple[npt.NDArray[np.uint64], IntArray]:
        """H3 indices as numbers in order, and the cells that have them."""
        import h3  # noqa: PLC0415

        index = np.array([h3.str_to_int(cell) for cell in self.cells], dtype=np.uint64)
        order = np.argsort(index)
        return index[order], order

    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number."""
        from h3.api.basic_int import latlng_to_cell  # type: ignore[import-untyped]  # noqa: PLC0415

        x, y = np.asarray(lon, dtype=float), np.asarray(lat, dtype=float)
        west, south, east, north = self.bounds
        x, _ = on_one_side(x, west - BULGE * (east - west), east + BULGE * (east - west))
        wide, high = BULGE * (east - west), BULGE * (north - south)
        near = (x >= west - wide) & (x <= east + wide) & (y >= south - high) & (y <= north + high)
        near &= np.abs(y) <= 90
        cell = np.full(len(x), OUTSIDE, dtype=np.int64)
        index, cells = self._by_index
        places = zip(y[near].tolist(), x[near].tolist(), strict=True)
        wanted = np.array([latlng_to_cell(*at, self.resolution) for at in places], dtype=np.uint64)
        found = np.minimum(np.searchsorted(index, wanted), len(index) - 1)
        cell[near] = np.where(index[found] == wanted, cells[found], OUTSIDE)
        return cell

    def _columns(self) -> dict[str, Any]:
        return {"h3": self.labels}


def _common_resolution(cells: tuple[str, ...], resolution: int | None) -> int:
    import h3  # noqa: PLC0415

    too_many(len(cells), "give fewer cells")
    wrong = next((cell for cell in cells if not h3.is_valid_cell(cell)), None)
    if wrong is not None:
        raise InputError(
            f"{wrong[:20]!r} is no H3 cell; give indices such as 872f5aad8ffffff.",
            code="not-h3-cell",
        )
    found, *others = {int(h3.get_resolution(cell)) for cell in cells}
    if others or resolution not in (None, found):
        raise InputError(
            "The H3 cells are of several resolutions; give cells of one.", code="cell-sizes-differ"
        )
    return found


def _covering(resolution: int, bounds: Bounds) -> tuple[str, ...]:
    import h3  # noqa: PLC0415
    from pyproj import Geod  # noqa: PLC0415

    if not 0 <= resolution <= FINEST_RESOLUTION:
        raise InputError(
            f"H3 has resolutions 0 to {FINEST_RESOLUTION}, not {resolution}.",
            code="value-out-of-range",
        )
    west, south, east, north = bounds
    _, east = on_one_side(np.empty(0), west, east)
    check_extent(west, south, east, north, most_east=min(west, 180) + 360)
    if east - west >= HALF_ROUND:
        raise InputError(
            "An H3 grid must be narrower than 180 degrees of longitude.", code="extent-too-wide"
        )
    lon, lat = [west, east, east, west], [south, south, north, north]
    size_m2 = abs(Geod(ellps="WGS84").polygon_area_perimeter(lon, lat)[0])
    what_to_do = "choose a coarser resolution or a smaller extent"
    # Cells shrink to half the mean size in places.
    too_many(int(size_m2 / h3.average_hexagon_area(resolution, unit="m^2") / 2), what_to_do)
    sides = [(west, min(east, 180.0)), (-180.0, east - 360)][: 1 + (east > 180)]
    found: set[str] = set()
    for left, right in sides:
        if left < right:
            ring = list(zip(lat, (left, right, right, left), strict=True))
            box = h3.LatLngPoly(ring)
            found |= set(h3.h3shape_to_cells_experimental(box, resolution, contain="overlap"))
    too_many(len(found), what_to_do)
    return tuple(sorted(found))
