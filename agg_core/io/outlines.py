"""A person's own outline under the maps, from a vector file: checked, in degrees, and small."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.mending import mended, paths_of, segments_of
from agg_core.io.formats.vector import VectorFile
from agg_core.space.degrees import HALF_ROUND

__all__ = [
    "LEAST_EXTENT",
    "METRES_PER_DEGREE",
    "OUTLINE_PADDING",
    "Outline",
    "areas_of",
    "covers",
    "cut_outline",
    "named_places",
    "names_at",
    "outline_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]
Bounds = tuple[float, float, float, float]

MOST_MEASURED = 20_000
"""Points from which the distance to the drawn lines is measured."""

JSON_BYTES = 150_000
POSITION_BYTES, RING_BYTES, SHAPE_BYTES = 21, 4, 90
MOST_PARTS = JSON_BYTES // (2 * POSITION_BYTES + RING_BYTES)
"""Lines of two points that fit; of more parts the largest are taken before points are dropped."""

DECIMALS = 5
LEAST_EXTENT = 0.01
"""Degrees that a map shows at least."""
METRES_PER_DEGREE = 111_320.0
OUTLINE_PADDING = 0.35
"""Share of the extent about it that has an outline, to pan over."""

FIRST_TOLERANCE_M, NEXT_TOLERANCE = 1.0, 1.4

POINTS = "points"
TINY = "parts too small to see"
AREAS = ("Polygon", "MultiPolygon")
DRAWN = ("LineString", "MultiLineString", *AREAS)


@dataclass(frozen=True)
class Outline:
    """Lines and areas to lay under a map, from one file.

    ``features`` is a GeoJSON FeatureCollection in degrees (EPSG:4326), shapes only, at
    5 decimals; ``bounds`` its west, south, east, north. ``crs`` is what the file's coordinates
    were taken as. ``n_left_out`` counts by cause what is not drawn. ``tolerance_m`` is the
    greatest distance in metres from a point of a kept line or outer border to what is drawn,
    measured at up to 20,000 points; 0 where only the rounding, by about a metre, was needed.
    """

    name: str
    features: dict[str, Any]
    crs: str
    bounds: Bounds
    n_shapes: int
    n_left_out: Mapping[str, int]
    n_points_read: int
    n_points_kept: int
    tolerance_m: float

    def meets(self, bounds: Bounds) -> bool:
        """Whether the boxes of the outline and of west, south, east, north share a place."""
        west, south, east, north = self.bounds
        return west <= bounds[2] and east >= bounds[0] and south <= bounds[3] and north >= bounds[1]


def outline_of(found: VectorFile) -> Outline:
    """Lines and areas of a file that was read, made small.

    Areas that cross themselves are mended. Points are dropped (Visvalingam and Whyatt 1993, shared
    borders alike; Douglas and Peucker 1973 for lines) until about 150 kB of JSON are left.

    Raises
    ------
    InputError
        If there is no line or area, or none that could be drawn.
    """
    shapes, n_points = _lines_and_areas(found.frame.geometry)
    left_out = Counter(found.without_shape) + Counter({POINTS: n_points})
    if not len(shapes):
        raise InputError(
            f"{found.name} holds no line or area to draw ({_counts(left_out)}); choose a file with "
            "polygons or lines.",
            code="nothing-to-draw",
        )
    return _outline(found, shapes, left_out)


def cut_outline(outline: Mapping[str, Any], bounds: Bounds, padding: float) -> dict[str, Any]:
    """The part of a GeoJSON collection within the bounds widened by `padding` of their size.

    Lines and areas only, without properties, at 5 decimals. What crosses the edge is cut there,
    and what lies outside goes. Over 180 degrees longitudes go on, as those of the bounds do.
    """
    import shapely  # noqa: PLC0415
    from shapely.geometry import shape  # noqa: PLC0415

    west, south, east, north = bounds
    # Fixes on one line have an extent without width or height.
    pad_x = padding * max(east - west, LEAST_EXTENT)
    pad_y = padding * max(north - south, LEAST_EXTENT)
    box = west - pad_x, south - pad_y, east + pad_x, north + pad_y
    turns = (0.0, *[360.0] * (east > HALF_ROUND), *[-360.0] * (west < -HALF_ROUND))
    features = []
    for feature in outline["features"]:
        geometry = feature.get("geometry")
        if not geometry or geometry["type"] not in DRAWN or not geometry["coordinates"]:
            continue
        for turn in turns:
            whole = shape(geometry)
            if turn:
                whole = shapely.transform(whole, lambda xy, by=turn: xy + np.array([by, 0.0]))
            low_x, low_y, high_x, high_y = whole.bounds
            if low_x > box[2] or high_x < box[0] or low_y > box[3] or high_y < box[1]:
                continue
            within = low_x >= box[0] and high_x <= box[2] and low_y >= box[1] and high_y <= box[3]
            pieces = shapely.get_parts(whole if within else shapely.clip_by_rect(whole, *box))
            # An area that only touches the edge leaves a line or a point.
            features += _feature(
                pieces[shapely.get_dimensions(pieces) == shapely.get_dimensions(whole)]
            )
    return {"type": "FeatureCollection", "features": features}


def covers(outline: Mapping[str, Any], bounds: Bounds) -> bool:
    """Whether the box about all areas holds the bounds; lines say nothing of land and water."""
    import shapely  # noqa: PLC0415

    areas = [area for area, _ in _areas(outline)]
    if not areas:
        return False
    west, south, east, north = shapely.total_bounds(areas)
    return bool(
        west <= bounds[0] and south <= bounds[1] and east >= bounds[2] and north >= bounds[3]
    )


def names_at(outline: Mapping[str, Any], places: FloatArray) -> list[str]:
    """Name of the area of an outline that each place (n, 2) in degrees lies in; "" where none is.

    Areas have one where their ``name`` is a text.
    """
    import shapely  # noqa: PLC0415

    areas, names = _named_areas(outline)
    found = [""] * len(places)
    if names:
        pairs = shapely.STRtree(areas).query(shapely.points(places), "within")
        # Where areas lie over each other, the first in the outline names the place.
        for place, area in sorted(zip(*pairs, strict=True)):
            found[place] = found[place] or names[area]
    return found


def named_places(outline: Mapping[str, Any]) -> tuple[list[str], FloatArray]:
    """Names of the areas of an outline that have one, and a place within each, (n, 2) degrees."""
    import shapely  # noqa: PLC0415

    areas, names = _named_areas(outline)
    return names, shapely.get_coordinates(shapely.point_on_surface(areas)).reshape(-1, 2)


def _named_areas(outline: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    named = [(area, name) for area, name in _areas(outline) if isinstance(name, str) and name]
    return [area for area, _ in named], [str(name) for _, name in named]


def areas_of(outline: Mapping[str, Any]) -> Shapes:
    """The areas of a GeoJSON collection, valid ones."""
    import shapely  # noqa: PLC0415

    found = [area for area, _ in _areas(outline)]
    parts = shapely.get_parts(np.array(found, dtype=object))
    areas: Shapes = shapely.make_valid(parts, method="structure", keep_collapsed=False)
    return areas


def _areas(outline: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Each area of a GeoJSON collection, and what it gives as its name."""
    from shapely.geometry import shape  # noqa: PLC0415

    for feature in outline["features"]:
        if (feature.get("geometry") or {}).get("type") in AREAS:
            yield shape(feature["geometry"]), (feature.get("properties") or {}).get("name")


def _lines_and_areas(geometries: Iterable[Any]) -> tuple[Shapes, int]:
    """Lines and areas, those of collections one by one, and how many geometries are points."""
    flat = [shape for geometry in geometries if geometry is not None for shape in _flat(geometry)]
    drawn = [shape for shape in flat if shape.geom_type in DRAWN]
    return np.array(drawn, dtype=object), len(flat) - len(drawn)


def _flat(shape: Any) -> Iterator[Any]:
    if shape.geom_type != "GeometryCollection":
        yield shape
        return
    for member in shape.geoms:
        yield from _flat(member)


def _outline(found: VectorFile, shapes: Shapes, unread: Counter[str]) -> Outline:
    """Mend, thin out and write the shapes."""
    import shapely  # noqa: PLC0415

    read, owners = shapely.get_parts(shapes, return_index=True)
    whole, left_out = mended(read)
    parts, of_read = shapely.get_parts(whole, return_index=True)
    owners = owners[of_read]
    thinned, kept = _thinned(parts, owners)
    left_out += unread + Counter({TINY: len(parts) - len(kept)})
    if not len(thinned):
        raise InputError(
            f"{found.name} has nothing left to draw ({_counts(left_out)}); choose a file with "
            "fewer and larger shapes, such as districts in place of buildings.",
            code="nothing-left-to-draw",
        )
    of_a_shape = np.split(thinned, np.flatnonzero(np.diff(owners[kept])) + 1)
    features = [feature for shape in of_a_shape for feature in _feature(shape)]
    drawn = shapely.get_coordinates(thinned)
    (west, south), (east, north) = drawn.min(axis=0).tolist(), drawn.max(axis=0).tolist()
    return Outline(
        name=found.name,
        features={"type": "FeatureCollection", "features": features},
        crs=found.crs,
        bounds=(west, south, east, north),
        n_shapes=len(features),
        n_left_out=MappingProxyType(dict(left_out)),
        n_points_read=len(shapely.get_coordinates(shapes)),
        n_points_kept=len(drawn),
        tolerance_m=_farthest_m(read[np.unique(of_read[kept])], thinned),
    )


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {cause}" for cause, number in left_out.items())


def _thinned(parts: Shapes, owners: IntArray) -> tuple[Shapes, IntArray]:
    """Parts with points dropped until their JSON is small and rounded, and which were kept."""
    import shapely  # noqa: PLC0415

    scale = _metres_per_degree(parts)
    kept = np.arange(len(parts))
    plane = shapely.transform(parts, lambda places: places * scale)
    if len(parts) > MOST_PARTS:
        kept = np.sort(np.argsort(-_sizes_m(plane), kind="stable")[:MOST_PARTS])
        plane = plane[kept]
    tolerance = FIRST_TOLERANCE_M
    while _json_bytes(plane, owners[kept]) > JSON_BYTES:
        plane = _simplified(plane, tolerance)
        seen = _sizes_m(plane) >= tolerance
        plane, kept = plane[seen], kept[seen]
        tolerance *= NEXT_TOLERANCE
    rounded = shapely.transform(plane, lambda places: np.round(places / scale, DECIMALS))
    seen = _sizes_m(rounded) > 0
    return rounded[seen], kept[seen]


def _metres_per_degree(parts: Shapes) -> FloatArray:
    """East-west and north-south; the former where it is greatest, so no distance is belittled."""
    import shapely  # noqa: PLC0415

    lat = shapely.get_coordinates(parts)[:, 1]
    if not len(lat):
        return np.full(2, METRES_PER_DEGREE)
    nearest = max(lat.min(), -lat.max(), 0.0)
    return METRES_PER_DEGREE * np.array([max(math.cos(math.radians(nearest)), 0.01), 1.0])


def _json_bytes(parts: Shapes, owners: IntArray) -> float:
    """About how long the GeoJSON of parts is at 5 decimals."""
    import shapely  # noqa: PLC0415

    n_rings = len(parts) + int(shapely.get_num_interior_rings(parts).sum())
    n_positions = int(shapely.get_num_coordinates(parts).sum())
    n_shapes = len(np.unique(owners))
    return POSITION_BYTES * n_positions + RING_BYTES * n_rings + SHAPE_BYTES * n_shapes


def _simplified(parts: Shapes, tolerance: float) -> Shapes:
    """Parts with fewer points; the border that two areas share stays shared."""
    import shapely  # noqa: PLC0415

    areas = shapely.get_dimensions(parts) == 2
    simpler = parts.copy()
    simpler[areas] = shapely.coverage_simplify(parts[areas], tolerance)
    simpler[~areas] = shapely.simplify(parts[~areas], tolerance, preserve_topology=False)
    for i in np.flatnonzero(shapely.get_num_interior_rings(simpler) > 0):
        outer, *holes = shapely.get_rings(simpler[i])
        wide = [hole for hole in holes if shapely.area(shapely.Polygon(hole)) >= tolerance**2]
        simpler[i] = shapely.Polygon(outer, wide)
    return simpler


def _sizes_m(parts: Shapes) -> FloatArray:
    """Side of the square of an area's size; length of a line."""
    import shapely  # noqa: PLC0415

    areas = shapely.get_dimensions(parts) == 2
    sizes: FloatArray = np.where(areas, np.sqrt(shapely.area(parts)), shapely.length(parts))
    return sizes


def _farthest_m(read: Shapes, drawn: Shapes) -> float:
    """Greatest distance from a point that was read to the drawn lines."""
    import shapely  # noqa: PLC0415

    if shapely.get_num_coordinates(read).sum() == shapely.get_num_coordinates(drawn).sum():
        return 0.0
    scale = _metres_per_degree(read)
    segments = segments_of(paths_of(shapely.transform(drawn, lambda places: places * scale)))
    areas = shapely.get_dimensions(read) == 2
    borders = np.concatenate([shapely.get_exterior_ring(read[areas]), read[~areas]])
    places = np.unique(shapely.get_coordinates(borders), axis=0)
    points = shapely.points(places[:: -(-len(places) // MOST_MEASURED)] * scale)
    nearest = shapely.STRtree(segments).query_nearest(
        points, return_distance=True, all_matches=False
    )
    return float(nearest[1].max())


def _feature(parts: Shapes) -> list[dict[str, Any]]:
    """One feature of all lines or all areas at 5 decimals; none if rounding leaves nothing."""
    coordinates = [found for part in parts if (found := _coordinates(part))]
    if not coordinates:
        return []
    kind = "LineString" if parts[0].geom_type == "LineString" else "Polygon"
    geometry = (
        {"type": kind, "coordinates": coordinates[0]}
        if len(coordinates) == 1
        else {"type": f"Multi{kind}", "coordinates": coordinates}
    )
    return [{"type": "Feature", "properties": {}, "geometry": geometry}]


def _coordinates(part: Any) -> list[Any]:
    if part.geom_type == "LineString":
        return _rounded(part, least=2)
    outer, *holes = (_rounded(ring, least=4) for ring in (part.exterior, *part.interiors))
    return [outer, *filter(None, holes)] if outer else []


def _rounded(path: Any, least: int) -> list[list[float]]:
    """Positions at 5 decimals, those that fall together once; none if fewer than `least`."""
    import shapely  # noqa: PLC0415

    places = np.round(shapely.get_coordinates(path), DECIMALS) + 0.0
    moves = np.append(True, (np.diff(places, axis=0) != 0).any(axis=1))
    distinct: list[list[float]] = places[moves].tolist()
    return distinct if len(distinct) >= least else []
