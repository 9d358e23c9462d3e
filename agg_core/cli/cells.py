"""Options of cells, and the cells that they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agg_core.base.errors import InputError
from agg_core.cli.options import Container, typed
from agg_core.io.areas import read_areas
from agg_core.io.formats.vector import MOST_MEGABYTES
from agg_core.space import AreaGrid
from agg_core.space.grid import BaseGrid, Bounds
from agg_core.space.hexagons import FINEST_RESOLUTION
from agg_core.space.mesh import MESH_SIZES
from agg_core.space.settings import (
    AnyGridSettings,
    GridSettings,
    HexSettings,
    MeshSettings,
    parse_bbox,
    parse_grid_size,
)

__all__ = [
    "add_extent_option",
    "add_grid_options",
    "areas_in",
    "extent_told",
    "extent_words",
    "grid_of",
    "is_suggested",
]


def add_extent_option(parser: Container, more: str = "") -> None:
    """Add the extent; ``more`` is said of it, too."""
    parser.add_argument(
        "--bbox", type=typed(parse_bbox), metavar="W,S,E,N",
        help="extent in degrees; if left out, where nearly all fixes lie, or all areas of "
        "--polygons" + more,
    )  # fmt: skip


def add_grid_options(parser: Container) -> None:
    """Add one option for each kind of cells."""
    cells = parser.add_mutually_exclusive_group()
    cells.add_argument(
        "--grid", type=typed(parse_grid_size), metavar="RxC", help="cells, rows x columns"
    )
    cells.add_argument(
        "--mesh", type=int, choices=list(MESH_SIZES), metavar="LEVEL",
        help="cells of the JIS X 0410 mesh: "
        + ", ".join(f"{level} = {size}" for level, size in MESH_SIZES.items()),
    )  # fmt: skip
    cells.add_argument(
        "--h3", type=int, metavar="RESOLUTION", help=f"cells of H3, 0 to {FINEST_RESOLUTION}"
    )
    cells.add_argument(
        "--polygons", metavar="FILE",
        help="areas as cells: GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf, GeoParquet",
    )  # fmt: skip
    parser.add_argument(
        "--name", metavar="COLUMN", help="column that names the areas; found if left out"
    )
    parser.add_argument(
        "--polygons-crs", metavar="EPSG:CODE", help="coordinate system of the areas, as in the file"
    )


def grid_of(
    chosen: argparse.Namespace, suggested: Callable[[], Bounds]
) -> AnyGridSettings | AreaGrid:
    """Cells of the kind that was asked for; ``suggested`` tells the extent if none is stated.

    Raises
    ------
    InputError
        If there cannot be such cells.
    """
    if chosen.polygons is not None:
        return _areas(chosen)
    if chosen.name or chosen.polygons_crs:
        raise InputError("--name and --polygons-crs go with --polygons FILE.", code="option-unused")
    west, south, east, north = chosen.bbox or suggested()
    if chosen.mesh is not None:
        return MeshSettings(west, south, east, north, chosen.mesh)
    if chosen.h3 is not None:
        return HexSettings(west, south, east, north, chosen.h3)
    return GridSettings(west, south, east, north, *(chosen.grid or ()))


def areas_in(filename: str, name: str | None = None, crs: str | None = None) -> AreaGrid:
    """The areas of a file, by a column of names and in a coordinate system if they are given.

    Raises
    ------
    InputError
        If the file cannot be read or holds no areas.
    """
    path = Path(filename)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_MEGABYTES * 1_000_000 + 1)
    except OSError as fault:
        raise InputError(
            f"{path} cannot be opened ({fault.strerror}); check its path.", code="file-not-opened"
        ) from fault
    return read_areas(content, path.name, crs, name)


def _areas(chosen: argparse.Namespace) -> AreaGrid:
    try:
        grid = areas_in(chosen.polygons, chosen.name, chosen.polygons_crs)
    except InputError as fault:
        option = "--polygons-crs EPSG:CODE" if "crs" in fault.option else fault.option
        raise InputError(str(fault), option, code=fault.code) from fault
    return grid if chosen.bbox is None else grid.within(chosen.bbox)


def is_suggested(chosen: argparse.Namespace) -> bool:
    """Whether the extent is the one that the data suggest."""
    return chosen.bbox is None and chosen.polygons is None


def extent_told(chosen: argparse.Namespace, grid: BaseGrid) -> dict[str, Any]:
    """The extent of the cells, and who chose it."""
    source = "data" if is_suggested(chosen) else "areas" if chosen.bbox is None else "stated"
    return {"extent": list(grid.bounds), "extent_from": source}


def extent_words(bounds: Bounds) -> str:
    """The extent as it can be typed, where the data suggested it."""
    extent = ",".join(f"{side:.10g}" for side in bounds)
    return f"extent {extent} (suggested by the data; --bbox W,S,E,N states another)"
