"""Which line a counter stands at that has a place and no line's name.

It is matched to the nearest line, if that is near enough. Where there are no lines, each border
between two cells is one: what passes a counter on it is held against all whose straight way
crosses that border. A counter inside a cell, far from its borders, counts people whose way through
the cell nobody knows, and stands at nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.evidence.lines import Screenline
from agg_core.space.grid import BaseGrid

__all__ = ["WITHIN_M", "NearestLines", "border_lines"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WITHIN_M = 250.0
"""Metres that a counter may be off its line, unless it is said."""

GRAIN = 1e-7
"""Degrees, about a centimetre, that corners of neighbouring cells may be apart."""


class NearestLines:
    """The nearest of some lines to places, and which way its first direction crosses it there.

    Raises
    ------
    InputError
        If the distance is not above 0.
    """

    def __init__(
        self, lines: Sequence[Screenline], grid: BaseGrid, within_m: float = WITHIN_M
    ) -> None:
        import shapely  # noqa: PLC0415

        if not (within_m > 0 and np.isfinite(within_m)):
            raise InputError(
                f"Counters were to be within {within_m:g} m of a line; give a number above 0.",
                code="value-out-of-range",
            )
        self.within_m = within_m
        self._grid = grid
        pieces, of, bearings = [], [], []
        for number, line in enumerate(lines):
            for path in _paths(line, grid):
                along = np.diff(path, axis=0)
                some = np.hypot(*along.T) > 0
                pieces.append(np.stack([path[:-1], path[1:]], axis=1)[some])
                # A quarter turn to the right; inwards is to the left of a ring that is run
                # against the clock.
                east, north = along[some, 1], -along[some, 0]
                turn = 180.0 if line.is_cordon else 0.0
                bearings.append((np.degrees(np.arctan2(east, north)) + turn) % 360)
                of.append(np.full(int(some.sum()), number))
        self._of = np.concatenate(of) if of else np.zeros(0, dtype=np.int64)
        self._bearings = np.concatenate(bearings) if bearings else np.zeros(0)
        shapes = shapely.linestrings(np.concatenate(pieces)) if pieces else []
        self._tree = shapely.STRtree(shapes)

    def __call__(self, places: FloatArray) -> tuple[IntArray, FloatArray]:
        """The number of the line at each place (n, 2) in degrees, -1 where none is near enough.

        And the bearing, degrees from north on, in which its first direction crosses it there. Of
        lines that are as near as each other the first counts.
        """
        import shapely  # noqa: PLC0415

        line = np.full(len(places), -1, dtype=np.int64)
        bearing = np.full(len(places), np.nan)
        known = np.flatnonzero((np.abs(places) <= [180.0, 90.0]).all(axis=1))
        if not (len(known) and len(self._of)):
            return line, bearing
        points = shapely.points(self._grid.to_metres(places[known]))
        at, piece = self._tree.query_nearest(points, max_distance=self.within_m)
        order = np.lexsort((piece, at))
        first, where = np.unique(at[order], return_index=True)
        found = piece[order][where]
        line[known[first]], bearing[known[first]] = self._of[found], self._bearings[found]
        return line, bearing


def _paths(line: Screenline, grid: BaseGrid) -> list[FloatArray]:
    """The pieces of a line, or the rings of a cordon whose inside is to the left, in metres."""
    import shapely  # noqa: PLC0415
    from shapely.geometry.polygon import orient  # noqa: PLC0415

    parts = shapely.get_parts(line.shape)
    if line.is_cordon:
        turned = [orient(part) for part in parts]
        parts = [ring for part in turned for ring in (part.exterior, *part.interiors)]
    return [grid.to_metres(shapely.get_coordinates(part)) for part in parts]


def border_lines(grid: BaseGrid, names: Sequence[str]) -> tuple[Screenline, ...]:
    """The border between each two neighbouring cells as a line, named by both."""
    import shapely  # noqa: PLC0415

    cells = shapely.set_precision(grid.polygons, GRAIN)
    one, other = shapely.STRtree(cells).query(cells, predicate="intersects")
    once = one < other
    one, other = one[once], other[once]
    shared = shapely.intersection(cells[one], cells[other])
    found = []
    for number in np.flatnonzero(shapely.length(shared) > 0):
        parts = [part for part in shapely.get_parts(shared[number]) if part.length > 0]
        lines = [part if part.geom_type == "LineString" else part.boundary for part in parts]
        border = shapely.line_merge(shapely.union_all(lines))
        a, b = (printable(names[int(cells_at[number])], 40) for cells_at in (one, other))
        found.append(Screenline(f"{a} – {b}", border))
    return tuple(found)
