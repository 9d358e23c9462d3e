"""Japan's grid squares (JIS X 0410, chiiki mesh): cells with published codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.space.grid import Bounds
from agg_core.space.lattice import LatticeGrid
from agg_core.space.limits import too_many
from agg_core.space.rectangle import check_extent

__all__ = ["JAPAN", "MESH_SIZES", "MeshGrid", "level_of_code"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MESH_SIZES = {1: "80 km", 2: "10 km", 3: "1 km", 4: "500 m", 5: "250 m", 6: "125 m"}
"""Levels of the mesh, from the first to the eighth of a third, and the side of a cell about."""

JAPAN: Bounds = (122.0, 20.0, 154.0, 46.0)
"""Where mesh codes are in use."""

CODED: Bounds = (100.0, 7.0, 180.0, 66.0)
"""Where places have a code at all."""

DIGITS = {4: 1, 6: 2, 8: 3, 9: 4, 10: 5, 11: 6}
PER_DEGREE = {1: 1, 2: 8, 3: 80, 4: 160, 5: 320, 6: 640}
"""Columns of cells in a degree of longitude; in one of latitude there are half as many again."""

ON_A_LINE = 1e-9
"""Share of a cell within which a border of the extent is taken to be on a line of the mesh."""


def level_of_code(code: str) -> int | None:
    """Level (1 to 6) of a code of 4, 6, 8, 9, 10 or 11 digits; None for other text."""
    digits = code.isascii() and code.isdigit()
    return DIGITS.get(len(code)) if digits else None


@dataclass(frozen=True)
class MeshGrid(LatticeGrid):
    """Mesh cells of one level, by their codes as text.

    Those that cover an extent are numbered row by row from the south-west, given ones in the order
    given. A cell holds its western and southern border, as the standard has it: a place on the
    northern or eastern border of the outermost cells is outside.
    """

    level: int
    codes: tuple[str, ...]

    @classmethod
    def of(cls, level: int | None, bounds: Bounds | None, codes: Iterable[str]) -> MeshGrid:
        """The cells of codes, or those of a level that cover an extent; see `Grid.from_mesh`."""
        given = tuple(dict.fromkeys(str(code) for code in codes))
        if given:
            return cls(_common_level(given, level), given)
        if level is None or bounds is None:
            raise InputError("A mesh needs a level and an extent, or codes.", code="no-cells-given")
        return cls(level, _covering(level, bounds))

    @cached_property
    def _lines(self) -> tuple[IntArray, IntArray]:
        """Row (d,) and column (d,) of each cell, counted from 0 N and 100 E."""
        from jismesh.utils import to_meshpoint  # type: ignore[import-untyped]  # noqa: PLC0415

        # The package cannot take fewer than two.
        codes = np.array([*self.codes, self.codes[0]], dtype=np.int64)
        south, west = (np.asarray(side, dtype=float)[:-1] for side in to_meshpoint(codes, 0, 0))
        per_degree = PER_DEGREE[self.level]
        row = np.rint(south * 1.5 * per_degree).astype(np.int64)
        return row, np.rint((west - 100) * per_degree).astype(np.int64)

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Row (d,) and column (d,) of each cell, counted from the southernmost and westernmost."""
        row, col = self._lines
        return row - row.min(), col - col.min()

    @cached_property
    def lon_edges(self) -> FloatArray:
        """Borders of the columns, degrees."""
        col = self._lines[1]
        return 100 + np.arange(col.min(), col.max() + 2) / PER_DEGREE[self.level]

    @cached_property
    def lat_edges(self) -> FloatArray:
        """Borders of the rows from south to north, degrees."""
        row = self._lines[0]
        return 2 * np.arange(row.min(), row.max() + 2) / (3 * PER_DEGREE[self.level])

    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number."""
        x, y = np.asarray(lon, dtype=float), np.asarray(lat, dtype=float)
        col = np.searchsorted(self.lon_edges, x, side="right").astype(np.int64) - 1
        row = np.searchsorted(self.lat_edges, y, side="right").astype(np.int64) - 1
        return self.cell_at(row, col)

    @property
    def labels(self) -> list[str]:
        """Code of each cell."""
        return list(self.codes)

    def _columns(self) -> dict[str, Any]:
        return {"mesh": self.labels}


def _common_level(codes: tuple[str, ...], level: int | None) -> int:
    levels = {level_of_code(code): code for code in codes}
    if None in levels:
        raise InputError(
            f"{levels[None][:20]!r} is no mesh code of 4, 6, 8, 9, 10 or 11 digits; give codes as "
            "text, with all their digits.",
            code="not-mesh-code",
        )
    (found, *others) = (each for each in levels if each is not None)
    if others or level not in (None, found):
        raise InputError(
            "The mesh codes are of several levels; give cells of one size.",
            code="cell-sizes-differ",
        )
    too_many(len(codes), "give fewer codes")
    _check_codes(codes, found)
    return found


def _check_codes(codes: tuple[str, ...], level: int) -> None:
    """Refuse codes with digits that stand for no cell, such as 8 or 9 at a second level."""
    wrong = next((code for code in codes if code[0] == "0"), None)
    if wrong is None:
        again = _codes(*MeshGrid(level, codes)._lines, level)
        pairs = zip(codes, again, strict=True)
        wrong = next((code for code, back in pairs if code != back), None)
    if wrong is not None:
        raise InputError(
            f"{wrong!r} is no mesh code: no cell of that level has these digits.",
            code="not-mesh-code",
        )


def _covering(level: int, bounds: Bounds) -> tuple[str, ...]:
    if level not in MESH_SIZES:
        raise InputError(f"The mesh has levels 1 to 6, not {level}.", code="value-out-of-range")
    check_extent(*bounds)
    west, south, east, north = bounds
    if west < CODED[0] or south < CODED[1] or east > CODED[2] or north > CODED[3]:
        raise InputError(
            "Mesh codes stand for places in and about Japan, between 100 and 180 E and between 7 "
            "and 66 N; the extent reaches beyond: choose rows x columns or H3.",
            code="outside-mesh",
        )
    per_degree = PER_DEGREE[level]
    first_col, last_col = _spanned((west - 100) * per_degree, (east - 100) * per_degree)
    first_row, last_row = _spanned(south * 1.5 * per_degree, north * 1.5 * per_degree)
    n = (last_row - first_row) * (last_col - first_col)
    too_many(n, "choose a coarser level of the mesh or a smaller extent")
    rows, cols = np.meshgrid(
        np.arange(first_row, last_row), np.arange(first_col, last_col), indexing="ij"
    )
    return _codes(rows.ravel(), cols.ravel(), level)


def _spanned(low: float, high: float) -> tuple[int, int]:
    """First line and the one after the last of what lies between two borders."""
    first, stop = int(np.floor(low + ON_A_LINE)), int(np.ceil(high - ON_A_LINE))
    return first, max(stop, first + 1)


def _codes(row: IntArray, col: IntArray, level: int) -> tuple[str, ...]:
    """Codes of cells by their lines: the code of the place in their middle."""
    from jismesh.utils import to_meshcode  # noqa: PLC0415

    per_degree = PER_DEGREE[level]
    # The package cannot take fewer than two.
    lat = (np.append(row, row[0]) + 0.5) / (1.5 * per_degree)
    lon = 100 + (np.append(col, col[0]) + 0.5) / per_degree
    return tuple(str(code) for code in np.asarray(to_meshcode(lat, lon, level))[:-1].tolist())
