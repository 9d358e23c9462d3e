"""Land, water, borders and names of the whole world for a map, from a shipped file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.shipped import shipped
from agg_core.io.outlines import (
    LEAST_EXTENT,
    METRES_PER_DEGREE,
    OUTLINE_PADDING,
    areas_of,
    cut_outline,
)

__all__ = ["ATTRIBUTION", "World", "ground_near", "world"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]
Bounds = tuple[float, float, float, float]

ATTRIBUTION = "Made with Natural Earth; place names from GeoNames (CC BY 4.0)"
"""What a picture of the ground is made of, in words."""

KINDS = ("land", "region", "border")

UNITS = 10_000.0
"""Of the file's coordinates, to a degree."""

RUNGS = (0.0, *(0.004 * 2.0**n for n in range(8)))
"""Degrees by which lines of the file's shapes are moved, the finest first."""

PADDINGS = (1.0, 5.0, 25.0, 125.0, 625.0, 3125.0, 15625.0)
"""Shares of the extent, to each side of it, at which the ground grows coarser; beyond them is the
rest of the world."""

FINENESS = (4000.0, 2000.0, 400.0)
"""What share of all that is within a box, or the extent, a line about it may be moved by at first:
of the innermost box, the next, and those beyond."""

MOST_POSITIONS = 3000
MOST_OF_THE_WORLD = 7500
"""Positions of shapes in a box, and in the last one; where there are more, they are coarser."""

MOST_PLACES = (110, 60)
"""Of the innermost box and of each that is wider: the largest."""

LARGEST_LAT = 85.05
"""Where maps in Web Mercator end."""

COARSEST_REGIONS = 0.02
"""Degrees of tolerance above which borders within countries are left out."""

APART_M = 1000.0
"""Half the width of strips that two coasts of the same land, drawn at different scales, enclose."""


@dataclass(frozen=True)
class Paths:
    """Areas or lines of one kind, at several tolerances.

    places : longitude and latitude of all positions, (n, 2)
    starts : where each line or ring begins, and the end, (k + 1,)
    shape : the number of the shape that each belongs to, (k,); the first ring of one is the outer
    rung : of how many of the coarser shapes each position is part, (n,)
    closed : whether they are areas
    """

    places: FloatArray
    starts: IntArray
    shape: IntArray
    rung: npt.NDArray[np.uint8]
    closed: bool

    def at(self, rung: int) -> tuple[Shapes, Any]:
        """The shapes at a rung of `RUNGS`, with an index of where they are."""
        import shapely  # noqa: PLC0415

        kept = self.rung >= rung
        counts = np.add.reduceat(kept, self.starts[:-1], dtype=np.int64)
        left = counts >= (4 if self.closed else 2)
        chosen = self.places[kept & np.repeat(left, np.diff(self.starts))]
        ends = np.concatenate([[0], np.cumsum(counts[left])])
        if self.closed:
            firsts = np.flatnonzero(np.diff(self.shape[left], prepend=-1, append=-1))
            kind = shapely.GeometryType.POLYGON
            shapes: Shapes = shapely.from_ragged_array(kind, chosen, (ends, firsts))
        else:
            kind = shapely.GeometryType.LINESTRING
            shapes = shapely.from_ragged_array(kind, chosen, (ends,))
        return shapes, shapely.STRtree(shapes)


class World:
    """All that a ground can show, in degrees.

    kinds : areas of land, without lakes; borders between countries; borders within them
    names, people : of places, the most populous first
    where : longitude and latitude of the places, (n, 2)
    """

    def __init__(
        self, kinds: Mapping[str, Paths], names: Sequence[str], people: IntArray, where: FloatArray
    ) -> None:
        self.kinds, self.names, self.people, self.where = kinds, names, people, where
        self._made: dict[tuple[str, int], tuple[Shapes, Any]] = {}

    def at(self, kind: str, rung: int) -> tuple[Shapes, Any]:
        """Shapes of a kind at a rung and their index, made once."""
        key = kind, rung
        if key not in self._made:
            self._made[key] = self.kinds[kind].at(rung)
        return self._made[key]


@cache
def world() -> World:
    """The shipped ground, read once.

    Raises
    ------
    InputError
        If its file is missing.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(shipped("data/ground.parquet"))
    east, north, rung = (table[name].combine_chunks() for name in ("east", "north", "rung"))
    starts = np.asarray(east.offsets).astype(np.int64)
    # Each position is kept as its way from the one before.
    ways = [np.cumsum(np.asarray(side.values), dtype=np.int64) for side in (east, north)]
    places, rungs = np.column_stack(ways) / UNITS, np.asarray(rung.values)
    kind = np.asarray(table["kind"].combine_chunks().cast("string"))
    shape = table["shape"].to_numpy().astype(np.int64)

    def rows(name: str) -> Paths:
        first, last = np.flatnonzero(kind == name)[[0, -1]]
        ends = starts[first : last + 2]
        part = slice(ends[0], ends[-1])
        closed = name == "land"
        return Paths(places[part], ends - ends[0], shape[first : last + 1], rungs[part], closed)

    named = table.filter(kind == "place")
    return World(
        {name: rows(name) for name in KINDS},
        named["name"].to_pylist(), named["population"].to_numpy(), rows("place").places,
    )  # fmt: skip


def ground_near(
    bounds: Bounds, outline: Mapping[str, Any] | None = None, *, of: World | None = None
) -> dict[str, Any]:
    """Land, borders and places of the world as seen from an extent: fine near it, coarse far away.

    A GeoJSON FeatureCollection in degrees whose features have a ``kind``: ``land``, ``border``
    (between countries), ``region`` (borders within them) and ``place`` (with ``name`` and
    ``population``, the largest first). It reaches around the whole world: half of it lies to each
    side of the extent, so longitudes may pass 180 degrees. About 250 kB of JSON at most.

    Parameters
    ----------
    bounds : west, south, east, north of the extent in degrees.
    outline : areas that are drawn upon it, known better, as far as `cut_outline` leaves them: land
        that only lines their coast, because its own is coarser, is left out, so that their sea
        stays sea.
    of : the world, by default the shipped one (Natural Earth 1:10m, GeoNames).

    Raises
    ------
    InputError
        If the bounds are none, or the shipped file is missing.
    """
    west, south, east, north = bounds
    if not (-90 <= south <= north <= 90 and -360 <= west <= east <= 360):  # not a number, too
        raise InputError(
            f"The extent {west}, {south}, {east}, {north} is none; give west, south, east and "
            "north in degrees, each pair in order.",
            code="bounds-out-of-order",
        )
    found = world() if of is None else of
    boxes = list(_boxes(bounds))
    shapes = _shapes(found, boxes, max(east - west, north - south, LEAST_EXTENT))
    if outline is not None:
        shapes["land"] = _giving_way(
            shapes["land"], areas_of(cut_outline(outline, bounds, OUTLINE_PADDING))
        )
    features = [_feature(kind, parts) for kind, parts in shapes.items() if len(parts)]
    return {"type": "FeatureCollection", "features": [*features, *_places(found, boxes)]}


def _boxes(bounds: Bounds) -> Iterator[Bounds]:
    """Boxes about the extent, each within the next; the last holds the world."""
    west, south, east, north = bounds
    middle = (west + east) / 2
    wide, high = (max(size, LEAST_EXTENT) for size in (east - west, north - south))
    for padding in PADDINGS:
        box = (
            max(_floor(west - padding * wide), middle - 180),
            max(_floor(south - padding * high), -LARGEST_LAT),
            min(-_floor(-east - padding * wide), middle + 180),
            min(-_floor(-north - padding * high), LARGEST_LAT),
        )
        if box[2] - box[0] >= 180:
            break
        yield box
    yield middle - 180, -LARGEST_LAT, middle + 180, LARGEST_LAT


def _floor(degrees: float) -> float:
    """To hundredths, so that boxes have the same edges at any number of decimals."""
    return math.floor(degrees * 100) / 100


def _shapes(of: World, boxes: Sequence[Bounds], extent: float) -> dict[str, Shapes]:
    """Shapes by kind, those of each box as coarse as there is room for."""
    found: dict[str, list[Shapes]] = {kind: [] for kind in KINDS}
    inner = None
    for i, box in enumerate(boxes):
        tolerance = extent / FINENESS[min(i, len(FINENESS) - 1)]
        most = MOST_OF_THE_WORLD if box is boxes[-1] else MOST_POSITIONS
        for rung in range(_rung(tolerance), len(RUNGS)):
            parts = {
                kind: list(_seen(*of.at(kind, rung), box, inner))
                for kind in KINDS
                if kind != "region" or RUNGS[rung] <= COARSEST_REGIONS
            }
            if sum(map(_n_positions, chain.from_iterable(parts.values()))) <= most:
                break
        for kind, those in parts.items():
            found[kind] += those
        inner, extent = box, max(box[2] - box[0], box[3] - box[1])
    none = np.array([], dtype=object)
    return {kind: np.concatenate([*parts, none]) for kind, parts in found.items()}


def _rung(tolerance: float) -> int:
    """The coarsest within a tolerance, or the finest."""
    return int(np.searchsorted(RUNGS, tolerance, side="right")) - 1


def _seen(shapes: Shapes, tree: Any, box: Bounds, inner: Bounds | None) -> Iterator[Shapes]:
    """Parts of shapes within a box and out of another."""
    import shapely  # noqa: PLC0415

    for turn in (-360.0, 0.0, 360.0):
        there = (box[0] - turn, box[1], box[2] - turn, box[3])
        near = shapes[np.sort(tree.query(shapely.box(*there)))]
        if not len(near):
            continue
        near = shapely.transform(near, _turned(turn))
        whole = _within(near, box) if inner is None else _within(near, box) & ~_meets(near, inner)
        yield near[whole]
        cut = near[~whole]
        for strip in _strips(box, inner):
            parts = shapely.get_parts(shapely.clip_by_rect(cut[_meets(cut, strip)], *strip))
            # An area that only touches the edge leaves a line or a point.
            yield parts[shapely.get_dimensions(parts) == shapely.get_dimensions(near[0])]


def _within(shapes: Shapes, box: Bounds) -> npt.NDArray[np.bool_]:
    """Whether the box holds each shape."""
    import shapely  # noqa: PLC0415

    west, south, east, north = shapely.bounds(shapes).T
    held: npt.NDArray[np.bool_] = (
        (west >= box[0]) & (south >= box[1]) & (east <= box[2]) & (north <= box[3])
    )
    return held


def _meets(shapes: Shapes, box: Bounds) -> npt.NDArray[np.bool_]:
    """Whether the box about each shape meets another box."""
    import shapely  # noqa: PLC0415

    west, south, east, north = shapely.bounds(shapes).T
    met: npt.NDArray[np.bool_] = (
        (west <= box[2]) & (south <= box[3]) & (east >= box[0]) & (north >= box[1])
    )
    return met


def _turned(turn: float) -> Callable[[FloatArray], FloatArray]:
    return lambda places: places + np.array([turn, 0.0])


def _strips(box: Bounds, inner: Bounds | None) -> list[Bounds]:
    """A box less another within it, as boxes."""
    if inner is None:
        return [box]
    strips = [
        (box[0], box[1], inner[0], box[3]),
        (inner[0], box[1], inner[2], inner[1]),
        (inner[0], inner[3], inner[2], box[3]),
        (inner[2], box[1], box[2], box[3]),
    ]
    return [strip for strip in strips if strip[0] < strip[2] and strip[1] < strip[3]]


def _n_positions(parts: Shapes) -> int:
    import shapely  # noqa: PLC0415

    return int(shapely.get_num_coordinates(parts).sum())


def _giving_way(land: Shapes, areas: Shapes) -> Shapes:
    """Land less the areas, and less the strips that it has only because its coast is coarser."""
    import shapely  # noqa: PLC0415

    if not len(areas) or not len(land):
        return land
    scale = np.array([math.cos(math.radians(shapely.total_bounds(areas)[[1, 3]].mean())), 1.0])
    width = APART_M / METRES_PER_DEGREE
    known = shapely.union_all(shapely.transform(areas, lambda places: places * scale))
    about = known.buffer(2 * width, quad_segs=2)
    whole = shapely.transform(land, lambda places: places * scale)
    meets = shapely.intersects(whole, about)
    # A ring with few positions left may cross itself.
    near = shapely.make_valid(whole[meets], method="structure", keep_collapsed=False)
    rest = shapely.difference(shapely.union_all(near), known)
    broad = rest.buffer(-width, quad_segs=2).buffer(3 * width, quad_segs=2)
    kept = shapely.difference(rest, shapely.difference(about, broad))
    parts = shapely.get_parts(kept)
    parts = parts[shapely.get_dimensions(parts) == 2]
    return np.concatenate([land[~meets], shapely.transform(parts, lambda places: places / scale)])


def _feature(kind: str, parts: Shapes) -> dict[str, Any]:
    """All parts of a kind as one feature at four decimals."""
    import shapely  # noqa: PLC0415

    several = shapely.multipolygons if kind == "land" else shapely.multilinestrings
    whole = shapely.transform(several(parts), lambda places: np.round(places, 4) + 0.0)
    geometry = json.loads(shapely.to_geojson(whole))
    return {"type": "Feature", "properties": {"kind": kind}, "geometry": geometry}


def _places(of: World, boxes: Iterable[Bounds]) -> list[dict[str, Any]]:
    """The largest places of each box, the largest first."""
    chosen: dict[int, list[float]] = {}
    for i, (west, south, east, north) in enumerate(boxes):
        lon, lat = of.where[:, 0], of.where[:, 1]
        turned = (lon - west) % 360 + west
        inside = (turned <= east) & (lat >= south) & (lat <= north)
        for place in np.flatnonzero(inside)[: MOST_PLACES[min(i, 1)]].tolist():
            chosen[place] = [round(float(turned[place]), 4), round(float(lat[place]), 4)]
    return [
        {
            "type": "Feature",
            "properties": {
                "kind": "place", "name": of.names[place], "population": int(of.people[place]),
            },
            "geometry": {"type": "Point", "coordinates": chosen[place]},
        }
        for place in sorted(chosen)
    ]  # fmt: skip
