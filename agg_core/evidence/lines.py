"""Screenlines and cordons: which flows cross a line on the map, and which way.

A flow goes straight from the middle of its origin to that of its dest. Where a line is not closed
the flow is counted if it ends up on the other side: a way that crosses a winding line to and fro
is not. A cordon is an area: flows in and out of it are those that end on its other side, and a way
that passes through it counts both as in and as out, as counters on its border would see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.formats.vector import VectorFile
from agg_core.space.grid import BaseGrid

__all__ = [
    "Crossings",
    "Screenline",
    "cordon_around",
    "cordon_through",
    "crossings",
    "line_between",
    "line_through",
    "screenlines_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Place = tuple[float, float]
"""A longitude and a latitude."""

AREA = 2
"""Dimensions of an area."""

AT_ONCE = 2_000_000
"""Pairs of ways and pieces of a line that are looked at together."""

MOST_LINES, MOST_POINTS = 200, 100_000

WINDS = (
    "northbound", "north-eastbound", "eastbound", "south-eastbound",
    "southbound", "south-westbound", "westbound", "north-westbound",
)  # fmt: skip
"""Directions that a line is crossed in, from that to the north on, clockwise."""

NAMES = ("name", "label", "screenline", "cordon", "line", "id")


@dataclass(frozen=True)
class Screenline:
    """A line (or several pieces of one) or an area, by its name.

    ``shape`` is a shapely LineString or MultiLineString, or for a cordon a Polygon or
    MultiPolygon, in degrees (EPSG:4326).
    """

    name: str
    shape: Any

    @property
    def is_cordon(self) -> bool:
        """Whether it is an area."""
        return self.shape.geom_type in ("Polygon", "MultiPolygon")

    def directions(self, grid: BaseGrid) -> tuple[str, str]:
        """What the two ways across it are called: of a cordon in and out, else by the compass.

        The first is from left to right of whoever goes along the line as it was drawn.
        """
        if self.is_cordon:
            return "in", "out"
        paths = _paths(self.shape, grid)
        along = sum((path[-1] - path[0] for path in paths), np.zeros(2))
        if not np.hypot(*along) > 0:  # a ring
            return "inwards", "outwards"
        east, north = float(along[1]), -float(along[0])  # a quarter turn to the right
        wind = round(float(np.degrees(np.arctan2(east, north))) / 45) % 8
        return WINDS[wind], WINDS[(wind + 4) % 8]

    def crossed(self, grid: BaseGrid, origin: IntArray, dest: IntArray) -> tuple[BoolArray, ...]:
        """Whether flows from each origin (P,) to dest (P,) cross it, for each of `directions`."""
        middles = grid.centroids_m
        start, end = middles[origin], middles[dest]
        if not self.is_cordon:
            net = sum(
                (crossings(path, start, end) for path in _paths(self.shape, grid)),
                np.zeros(len(origin), dtype=np.int64),
            )
            return net > 0, net < 0
        inside = self.holds(grid)
        starts, ends = inside[origin], inside[dest]
        through = ~starts & ~ends & (origin != dest)
        through[through] = self._passed(grid, start[through], end[through])
        return (~starts & ends) | through, (starts & ~ends) | through

    def holds(self, grid: BaseGrid) -> BoolArray:
        """Whether the middle of each cell (d,) lies in the area."""
        import shapely  # noqa: PLC0415

        x, y = grid.centroids.T
        return np.asarray(shapely.intersects_xy(self.shape, x, y))

    def _passed(self, grid: BaseGrid, start: FloatArray, end: FloatArray) -> BoolArray:
        """Whether ways between places outside (n, 2) pass through the inside of the area."""
        import shapely  # noqa: PLC0415

        if not len(start):
            return np.zeros(0, dtype=bool)
        area = shapely.transform(self.shape, grid.to_metres)
        shapely.prepare(area)
        ways = shapely.linestrings(np.stack([start, end], axis=1))
        near = shapely.intersects(area, ways)
        near[near] = ~shapely.touches(area, ways[near])
        return np.asarray(near)


class Crossings:
    """Which flows cross some lines, looked at once for each pair of cells."""

    def __init__(self, lines: Sequence[Screenline], grid: BaseGrid) -> None:
        self._lines, self._grid = lines, grid
        self._keys: IntArray = np.zeros(0, dtype=np.int64)
        self._packed = [np.zeros((2, 0), dtype=np.uint8) for _ in lines]

    def of(self, number: int, origin: IntArray, dest: IntArray) -> BoolArray:
        """Whether flows (P,) cross the line of that number, by `Screenline.directions`, (2, P)."""
        keys = np.asarray(origin * self._grid.n_cells + dest, dtype=np.int64)
        if np.array_equal(keys, self._keys):
            return self._known(number)
        if not np.isin(keys, self._keys, assume_unique=True).all():
            self._look_at(keys)
        return np.asarray(self._known(number)[:, np.searchsorted(self._keys, keys)])

    def _known(self, number: int) -> BoolArray:
        bits = np.unpackbits(self._packed[number], axis=1, count=len(self._keys))
        return np.asarray(bits, dtype=bool)

    def _look_at(self, keys: IntArray) -> None:
        """Take in further pairs."""
        fresh = np.setdiff1d(keys, self._keys)
        origin, dest = np.divmod(fresh, self._grid.n_cells)
        every = np.concatenate([self._keys, fresh])
        order = np.argsort(every)
        self._packed = [
            np.packbits(
                np.concatenate(
                    [self._known(number), np.stack(line.crossed(self._grid, origin, dest))], axis=1
                )[:, order],
                axis=1,
            )
            for number, line in enumerate(self._lines)
        ]
        self._keys = every[order]


def _paths(shape: Any, grid: BaseGrid) -> list[FloatArray]:
    """The pieces of a line as places (k, 2) in metres."""
    import shapely  # noqa: PLC0415

    parts = shapely.get_parts(shape)
    return [grid.to_metres(shapely.get_coordinates(part)) for part in parts]


def crossings(path: FloatArray, start: FloatArray, end: FloatArray) -> IntArray:
    """How often each straight way crosses a line from left to right, less the other way round.

    ``path`` (k, 2) are the points of the line, ``start`` and ``end`` (n, 2) those of the ways, all
    on one plane. A place on the line belongs to its left, so that every way is on one side at each
    end, and a corner that a way goes through is crossed once.
    """
    net = np.zeros(len(start), dtype=np.int64)
    before, after = path[:-1], path[1:]
    step = max(AT_ONCE // max(len(before), 1), 1)
    for first in range(0, len(start), step):
        here = slice(first, first + step)
        a, b = start[here, None], end[here, None]
        starts_left, ends_left = _is_left(before, after, a), _is_left(before, after, b)
        from_left, to_left = _is_left(a, b, before), _is_left(a, b, after)
        across = (starts_left != ends_left) & (from_left != to_left)
        net[here] = (across * np.where(starts_left, 1, -1)).sum(axis=1)
    return net


def _is_left(a: FloatArray, b: FloatArray, place: FloatArray) -> BoolArray:
    """Whether places (..., 2) lie to the left of the ways from a to b, or on them."""
    x, y = b[..., 0] - a[..., 0], b[..., 1] - a[..., 1]
    turn = x * (place[..., 1] - a[..., 1]) - y * (place[..., 0] - a[..., 0])
    return np.asarray(turn >= 0)


def cordon_around(name: str, grid: BaseGrid, cells: Sequence[int]) -> Screenline:
    """The cordon around some cells, by their numbers.

    Raises
    ------
    InputError
        If there are none, or one does not exist.
    """
    import shapely  # noqa: PLC0415

    if not len(cells):
        raise InputError("A cordon goes around cells; choose one or more.", code="no-cells-chosen")
    wrong = [cell for cell in cells if not 0 <= cell < grid.n_cells]
    if wrong:
        raise InputError(
            f"There is no cell {wrong[0]}; cells go from 0 to {grid.n_cells - 1}.",
            code="unknown-cell",
        )
    return Screenline(name, shapely.union_all(grid.polygons[list(cells)]))


def line_between(name: str, start: Place, end: Place) -> Screenline:
    """The straight screenline from one place to another, each a longitude and a latitude.

    Raises
    ------
    InputError
        If they are the same place, or one is none on earth.
    """
    return line_through(name, [start, end])


def line_through(name: str, places: Sequence[Place]) -> Screenline:
    """The screenline through two places or more, each a longitude and a latitude.

    Raises
    ------
    InputError
        If they are fewer than two that differ, or one is none on earth.
    """
    import shapely  # noqa: PLC0415

    if len(set(places)) < 2 or not _on_earth(places):  # both ends
        raise InputError(
            "A line goes from one place to another; give two that differ, with longitudes of -180 "
            "to 180 and latitudes of -90 to 90 degrees.",
            code="no-line",
        )
    return Screenline(name, shapely.LineString(places))


def cordon_through(name: str, places: Sequence[Place]) -> Screenline:
    """The cordon whose border goes through three places or more and back to the first.

    Where the border crosses itself, all that it goes around is inside.

    Raises
    ------
    InputError
        If there is nothing within them, or one is none on earth.
    """
    import shapely  # noqa: PLC0415

    inside = shapely.Polygon()
    if len(set(places)) > 2 and _on_earth(places):  # a triangle
        parts = shapely.get_parts(shapely.make_valid(shapely.Polygon(places)))
        inside = shapely.union_all([part for part in parts if shapely.get_dimensions(part) == AREA])
    if inside.is_empty:
        raise InputError(
            "A cordon goes around an area; give three places or more that do not lie on one line, "
            "with longitudes of -180 to 180 and latitudes of -90 to 90 degrees.",
            code="no-area",
        )
    return Screenline(name, inside)


def _on_earth(places: Sequence[Place]) -> bool:
    return all(abs(lon) <= 180 and abs(lat) <= 90 for lon, lat in places)


def screenlines_of(found: VectorFile) -> tuple[Screenline, ...]:
    """Each feature of a vector file as a screenline, or as a cordon if it is an area.

    Names are those of the column name, label or the like, else numbers from 1. Points are left out.

    Raises
    ------
    InputError
        If no feature is a line or an area, or there are too many.
    """
    import shapely  # noqa: PLC0415

    shapes = np.array(found.frame.geometry.values, dtype=object)
    lines = [
        number
        for number, shape in enumerate(shapes)
        if shape is not None and not shape.is_empty and shapely.get_dimensions(shape) in (1, 2)
        if shape.geom_type != "GeometryCollection"
    ]
    if not lines:
        raise InputError(
            f"{found.name} holds no line and no area; draw screenlines as lines and cordons as "
            "areas.",
            code="no-screenlines",
        )
    n_points = int(shapely.get_num_coordinates(shapes[lines]).sum())
    if len(lines) > MOST_LINES or n_points > MOST_POINTS:
        raise InputError(
            f"{found.name} holds {len(lines):,} lines and areas with {n_points:,} points; give up "
            f"to {MOST_LINES} with {MOST_POINTS:,} points.",
            code="too-many-screenlines",
        )
    names = _names(found, lines)
    return tuple(
        Screenline(name, shapely.make_valid(shape) if shapely.get_dimensions(shape) == 2 else shape)
        for name, shape in zip(names, shapes[lines], strict=True)
    )


def _names(found: VectorFile, lines: Sequence[int]) -> list[str]:
    """A name for each of some features, no two alike."""
    columns = {str(name).lower(): name for name in found.frame.columns}
    named = next((columns[name] for name in NAMES if name in columns), None)
    names: list[str] = []
    for number, row in enumerate(lines, start=1):
        value = None if named is None else found.frame[named].iloc[row]
        name = printable(" ".join(str(value).split()), 80) if isinstance(value, str) else ""
        name = name or (f"{value}" if isinstance(value, int | np.integer) else f"line {number}")
        while name in names:
            name = f"{name} ({number})"
        names.append(name)
    return names
