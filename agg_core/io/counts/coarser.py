"""Cells merged to larger ones: mesh, H3, tiles of the web map, and numbered cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.counts.cells import Cells
from agg_core.io.counts.choices import COARSER
from agg_core.io.counts.numbered import Numbering
from agg_core.space.mesh import level_of_code

__all__ = ["coarser_cells", "suggest_merging"]

IntArray = npt.NDArray[np.int64]

CODE_LENGTHS = (4, 6, 8, 9, 10, 11)
"""Digits of codes of the mesh by level; a code begins with that of the cell it lies in."""
MANY_CELLS = 1_000
COARSEST_ZOOM = 1
NO_HIERARCHY = (
    "Only cells of the mesh, of H3, tiles, and cells numbered on a grid can be merged; these have "
    "but names."
)


def coarser_cells(cells: Cells, levels: int) -> tuple[Cells, IntArray, dict[str, Guess]]:
    """The cells so many levels larger, which of them each cell lies in (c,), and what is said.

    Mesh, H3 and tiles by their own levels, cells numbered on a grid by blocks of 2 x 2.

    Raises
    ------
    InputError
        If there are not so many levels, or the cells have no larger ones.
    """
    if cells.numbering is not None:
        merged, parents = _blocks(cells, cells.numbering, levels)
    else:
        parents = _parents(cells.names, cells.kind, levels)
        merged = replace(cells, names=sorted(set(parents)), places={})
    number = {name: i for i, name in enumerate(merged.names)}
    group = np.array([number[parent] for parent in parents], dtype=np.int64)
    n_parts = np.bincount(group)
    note = f"{len(cells.names):,} cells of the file are {len(merged.names):,} larger ones"
    short = int((n_parts < n_parts.max()).sum())
    if short:
        note += f", of which {short:,} have fewer than {n_parts.max():,} in the file"
    said = Guess(COARSER[levels], (COARSER[0],), note, "coarser")
    return merged, group, {"merged cells": said}


def suggest_merging(cells: Cells) -> dict[str, Guess]:
    """What to say of very many cells that could be merged."""
    can = cells.numbering is not None or cells.kind != "names"
    if len(cells.names) <= MANY_CELLS or not can:
        return {}
    note = f"{len(cells.names):,} cells are slow to learn from and hold few people each"
    return {"merged cells": Guess(COARSER[0], (COARSER[1], COARSER[2]), note, "coarser")}


def _parents(names: Sequence[str], kind: str, levels: int) -> list[str]:
    if kind == "mesh":
        level = (level_of_code(names[0]) or 1) - levels
        _check(level, 1, levels)
        return [name[: CODE_LENGTHS[level - 1]] for name in names]
    if kind == "h3":
        import h3  # type: ignore[import-untyped]  # noqa: PLC0415

        resolution = min(h3.get_resolution(name) for name in names) - levels
        _check(resolution, 0, levels)
        return [h3.cell_to_parent(name, resolution) for name in names]
    if kind == "tiles":
        _check(len(names[0]) - levels, COARSEST_ZOOM, levels)
        return [name[:-levels] for name in names]
    raise InputError(NO_HIERARCHY, code="no-cell-hierarchy")


def _check(level: int, least: int, levels: int) -> None:
    if level < least:
        most = levels - (least - level)
        raise InputError(
            f"The cells can be merged by {most} levels at most, not by {levels}; choose fewer.",
            code="too-many-levels",
        )


def _blocks(cells: Cells, grid: Numbering, levels: int) -> tuple[Cells, list[str]]:
    """Blocks of cells from the south-west; those in the north and east may reach beyond."""
    side = 2**levels
    rows, cols = -(-grid.rows // side), -(-grid.cols // side)
    west, south, east, north = grid.box
    wide, high = (east - west) / grid.cols * side, (north - south) / grid.rows * side
    at = [divmod(grid.index[name], grid.cols) for name in cells.names]
    index = [row // side * cols + col // side for row, col in at]
    box = (west, south, west + wide * cols, south + high * rows)
    if rows * cols == 1 or box[2] > 180 or box[3] > 90:
        raise InputError(
            "The grid cannot be merged so far; choose fewer levels.", code="too-many-levels"
        )
    names = {each: f"row {each // cols}, column {each % cols}" for each in sorted(set(index))}
    merged = Numbering(
        box, rows, cols, from_north=False, first=0, by_row=True,
        index={name: each for each, name in names.items()},
    )  # fmt: skip
    parents = [names[each] for each in index]
    return Cells(list(names.values()), cells.kind, merged.places(), merged), parents
