"""A person's own areas, such as wards, from a vector file to a grid."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from agg_core.io.formats.vector import VectorFile, read_vector
from agg_core.space.areas import NO_GEOMETRY, AreaGrid

__all__ = ["areas_of", "read_areas"]


def read_areas(
    content: bytes, filename: str, crs: str | None = None, name: str | None = None
) -> AreaGrid:
    """Areas of a vector file as a grid; see `read_vector` and `Grid.from_polygons`.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no area or too many.
    """
    return areas_of(read_vector(content, filename, crs), name)


def areas_of(found: VectorFile, name: str | None = None) -> AreaGrid:
    """Areas of a file that was read as a grid; see `Grid.from_polygons`.

    Raises
    ------
    InputError
        If it holds no area or too many, or no such column.
    """
    grid = AreaGrid.of(found.frame, name)
    assert grid.report is not None
    n_missing = int(found.frame.geometry.isna().sum())
    left_out = Counter(grid.report.left_out) - Counter({NO_GEOMETRY: n_missing})
    left_out += Counter(found.without_shape)
    report = replace(
        grid.report, left_out=dict(left_out), crs=found.crs, guesses=dict(found.guesses)
    )
    return replace(grid, report=report)
