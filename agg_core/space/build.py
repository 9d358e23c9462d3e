"""Grids of every kind, built by name."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agg_core.space.areas import AreaGrid
from agg_core.space.grid import BaseGrid, Bounds
from agg_core.space.hexagons import HexGrid
from agg_core.space.mesh import MeshGrid
from agg_core.space.rectangle import RectangleGrid

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = ["Grid"]


class Grid(ABC):  # noqa: B024  # it is built by its methods, each a grid of a kind
    """Cells in degrees (EPSG:4326), numbered 0..d-1, of which none holds a place of another.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=8, cols=10)
    >>> grid.n_cells
    80

    Build one with `from_bbox` (rows x columns), `from_mesh` (Japan's grid square codes),
    `from_h3` or `from_polygons`. Grids of every kind are instances.
    """

    @staticmethod
    def from_bbox(
        west: float, south: float, east: float, north: float, rows: int, cols: int
    ) -> RectangleGrid:
        """Divide an extent in degrees into equal cells; see `RectangleGrid`.

        Raises
        ------
        InputError
            If the extent is empty, reversed or off the globe, or a side has no cell.
        """
        return RectangleGrid.over(west, south, east, north, rows, cols)

    @staticmethod
    def from_mesh(
        level: int | None = None, bounds: Bounds | None = None, *, codes: Iterable[str] = ()
    ) -> MeshGrid:
        """The JIS X 0410 mesh cells of a level (1 to 6) that cover an extent, or those of codes.

        See `MeshGrid`.

        Raises
        ------
        InputError
            If the extent is not where mesh codes are, cells would be too many, or a code is none.
        """
        return MeshGrid.of(level, bounds, codes)

    @staticmethod
    def from_h3(
        resolution: int | None = None, bounds: Bounds | None = None, *, cells: Iterable[str] = ()
    ) -> HexGrid:
        """The H3 cells of a resolution (0 to 15) that cover an extent, or the given ones.

        See `HexGrid`.

        Raises
        ------
        InputError
            If cells would be too many, reach round half the globe, or one is none.
        """
        return HexGrid.of(resolution, bounds, cells)

    @staticmethod
    def from_polygons(areas: gpd.GeoDataFrame, name: str | None = None) -> AreaGrid:
        """People's own areas, such as wards, named by a column; see `AreaGrid`.

        Without ``name`` the column is guessed; ``""`` takes every row for an area of its own.

        Raises
        ------
        InputError
            If there is no area, no such column, or there are too many areas.
        """
        return AreaGrid.of(areas, name)


Grid.register(BaseGrid)  # type: ignore[type-abstract]  # all kinds derive from it
