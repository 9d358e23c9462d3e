"""Cell of each row of a table: by its code, its numbers on a grid, its name or its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.io.counts.cells import CellNames, cell_names, named_places, on_a_grid, place_names
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.columns import SIDES
from agg_core.io.counts.files import CountSource
from agg_core.io.counts.layouts import CountColumns
from agg_core.io.counts.numbered import GridHint, by_row_and_column, hint_of
from agg_core.io.counts.values import Coded
from agg_core.io.texts import to_float

__all__ = ["RoleColumns", "cells_of_columns", "cells_of_rows"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RoleColumns:
    """Columns (n,) by their role: ``text`` gives one as codes of its texts."""

    found: CountColumns
    names: tuple[str, ...]
    loaded: Mapping[int, pa.ChunkedArray]
    text: Callable[[str], Coded]

    def has(self, *roles: str) -> bool:
        """Whether there is a column of each of these roles."""
        return {*roles} <= self.found.positions.keys()

    def numbers(self, *roles: str) -> list[FloatArray]:
        """The numbers in the columns of these roles, not a number where there is none."""
        return [to_float(self.loaded[self.found.positions[role]]) for role in roles]


def cells_of_rows(columns: RoleColumns, choices: CountChoices, source: CountSource) -> CellNames:
    """Cell of each row, what kind of cells they are, and where those of a place lie.

    Raises
    ------
    InputError
        If codes have lost digits, or a number is beyond the grid that is stated.
    """
    axes, hint = _axes(columns)
    numbers = None
    if columns.has("row", "col"):
        own = columns.text("cell") if columns.has("cell") else None
        column, numbers = by_row_and_column(columns.text("row"), columns.text("col"), own)
        found = CellNames(column, "names")
    elif columns.has("cell"):
        called = columns.names[columns.found.positions["cell"]]
        found = cell_names(
            columns.text("cell"), called, columns.found.layout, numbered=bool(choices.grid_box)
        )
    else:
        assert axes is not None  # a table without cells has places
        column, places = place_names(*axes)
        return CellNames(column, "names", places=places)
    places = {} if axes is None else named_places(found.column, *axes)
    found = replace(found, places={**source.places, **places})
    return on_a_grid(found, numbers, choices, hint or source.grid)


def cells_of_columns(
    called: list[str], layout: str, choices: CountChoices, source: CountSource
) -> CellNames:
    """The same for cells that columns are called by."""
    column = Coded(np.arange(len(called)), called)
    found = cell_names(column, "mesh", layout, numbered=bool(choices.grid_box))
    return on_a_grid(replace(found, places=source.places), None, choices, source.grid)


def _axes(columns: RoleColumns) -> tuple[tuple[FloatArray, FloatArray] | None, GridHint | None]:
    """Longitude and latitude of each row, or the extent that all rows tell of their grid."""
    if columns.has("lon", "lat"):
        lon, lat = columns.numbers("lon", "lat")
        return (lon, lat), None
    if not columns.has(*SIDES):
        return None, None
    west, south, east, north = columns.numbers(*SIDES)
    known = np.isfinite(west + south + east + north)
    are_boxes = (west < east) & (south < north) & (west >= -180) & (east <= 180)
    are_boxes &= (south >= -90) & (north <= 90)
    if not (known.any() and are_boxes[known].all()):  # streets, say, by where they lead
        return None, None
    of_cells = any(len(np.unique(side[np.isfinite(side)])) > 1 for side in (west, south))
    if of_cells:
        return ((west + east) / 2, (south + north) / 2), None
    sides = (side[known][0] for side in (west, south, east, north))
    return None, hint_of(*sides)
