"""A person's own outline under the maps, from GeoJSON: checked, in degrees, and small."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.errors import InputError
from agg_core.readers.report import printable

__all__ = ["MOST_MEGABYTES", "Outline", "cut_outline", "read_outline"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]
Bounds = tuple[float, float, float, float]

MOST_MEGABYTES = 50
"""The largest file that is read."""

MOST_BRACKETS = 4_000_000
"""Lists and objects in a file: each costs far more memory than its two characters."""

MOST_NESTED = 8
"""Geometry collections within each other."""

MOST_CHECKED = 20_000
"""Points of one area, and of all that cross themselves together; more are thinned out evenly.

Far more than are drawn, and few enough to look for crossings in a fraction of a second.
"""

LEAST_ROUND_AN_AREA = 100

MOST_CROSSINGS = 5_000
"""Crossings that are mended: the work grows by them, up to the square of the points."""

CROSSINGS_AT_ONCE = 100
MOST_MEASURED = 20_000
"""Points from which the distance to the drawn lines is measured."""

JSON_BYTES = 150_000
POSITION_BYTES, RING_BYTES, SHAPE_BYTES = 21, 4, 90
MOST_PARTS = JSON_BYTES // (2 * POSITION_BYTES + RING_BYTES)
"""Lines of two points that fit; of more parts the largest are taken before points are dropped."""

DECIMALS = 5
METRES_PER_DEGREE = 111_320.0
FIRST_TOLERANCE_M, NEXT_TOLERANCE = 1.0, 1.4

NO_GEOMETRY = "without geometry"
POINTS = "points"
UNKNOWN = "of an unknown type"
BROKEN = "with broken coordinates"
DEEP = "nested too deep"
FLAT = "without size"
TANGLED = "crossing themselves too often"
TINY = "parts too small to see"

HOW_TO_CONVERT = (
    "save it as GeoJSON, in QGIS by Export, Save Features As, "
    "or by ogr2ogr -t_srs EPSG:4326 outline.geojson FILE"
)
SIGNATURES = {
    b"PK\x03\x04": "a zip archive, such as a packed shapefile or KMZ; unpack it and",
    b"\x1f\x8b": "packed by gzip; unpack it and, unless it is GeoJSON,",
    b"\x00\x00\x27\x0a": "a shapefile;",
    b"SQLite format 3\x00": "a GeoPackage or another SQLite file;",
    b"PAR1": "a Parquet file;",
    b"fgb": "a FlatGeobuf file;",
    b"<": "XML, such as KML or GML;",
}
EPSG_NAME = re.compile(
    r"(?:urn:ogc:def:crs:EPSG:[\d.]*:|EPSG:|https?://www\.opengis\.net/def/crs/EPSG/[\d.]+/)"
    r"(\d{4,6})",
    re.IGNORECASE,
)
CRS84_NAME = re.compile(
    r"(?:urn:ogc:def:crs:OGC:[\d.]*:|OGC:|https?://www\.opengis\.net/def/crs/OGC/[\d.]+/)CRS84",
    re.IGNORECASE,
)


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


def read_outline(content: bytes, filename: str) -> Outline:
    """Read GeoJSON lines and areas; the file is parsed as JSON and by nothing else.

    A FeatureCollection, a Feature or a bare geometry. The older "crs" member is heeded where it
    names an EPSG code; without it the coordinates are degrees of WGS84 (RFC 7946). Areas that
    cross themselves are mended. Points are dropped (Visvalingam and Whyatt 1993, shared borders
    alike; Douglas and Peucker 1973 for lines) until about 150 kB of JSON are left.

    Raises
    ------
    InputError
        If it is too large, of another format, broken, outside of degrees or of the CRS that it
        names, or holds no line or area.
    """
    name = printable(filename)
    document = _parse(content, name)
    crs = _crs_of(document, name)
    found = _Found()
    for geometry in _geometries(document, name):
        found.take(geometry)
    if not found.shapes:
        raise InputError(
            f"{name} holds no line or area to draw ({_counts(found.left_out) or 'it is empty'}); "
            "choose a GeoJSON file with polygons or lines."
        )
    shapes = _in_degrees(np.array(found.shapes, dtype=object), crs, name)
    return _outline(name, crs, found, shapes)


def cut_outline(outline: Mapping[str, Any], bounds: Bounds, padding: float) -> dict[str, Any]:
    """The part of a GeoJSON collection within the bounds widened by `padding` of their size.

    Lines and areas only, without properties, at 5 decimals. What crosses the edge is cut there,
    and what lies outside goes.
    """
    import shapely  # noqa: PLC0415
    from shapely.geometry import shape  # noqa: PLC0415

    west, south, east, north = bounds
    pad_x, pad_y = padding * (east - west), padding * (north - south)
    box = west - pad_x, south - pad_y, east + pad_x, north + pad_y
    features = []
    for feature in outline["features"]:
        geometry = feature.get("geometry")
        if not geometry or geometry["type"] not in BUILDERS or not geometry["coordinates"]:
            continue
        whole = shape(geometry)
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


def _parse(content: bytes, name: str) -> dict[str, Any]:
    if len(content) > MOST_MEGABYTES * 1_000_000:
        raise InputError(
            f"{name} holds {len(content) / 1e6:,.0f} MB and at most {MOST_MEGABYTES} are read; "
            "simplify it first, as by ogr2ogr -simplify or at mapshaper.org."
        )
    for signature, what in SIGNATURES.items():
        if content.lstrip()[:16].startswith(signature) or content.startswith(signature):
            raise InputError(f"{name} is {what} {HOW_TO_CONVERT}.")
    if b"\0" in content:
        raise InputError(f"{name} is no text, so no GeoJSON; {HOW_TO_CONVERT}.")
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:
        raise InputError(
            f"{name} holds more than {MOST_BRACKETS / 1e6:g} million places and objects; simplify "
            "it first, as by ogr2ogr -simplify or at mapshaper.org."
        )
    try:
        # Integers of any length become floats, and NaN is found where it matters: in a position.
        document = json.loads(content.decode("utf-8-sig"), parse_int=float, parse_constant=float)
    except (ValueError, RecursionError) as fault:
        where = f" (line {fault.lineno})" if isinstance(fault, json.JSONDecodeError) else ""
        raise InputError(
            f"{name} cannot be read as JSON{where}; choose a GeoJSON file in UTF-8."
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"{name} is JSON but not GeoJSON: it has no type; {HOW_TO_CONVERT}.")
    return document


def _crs_of(document: Mapping[str, Any], name: str) -> str:
    """Code of the CRS that the file names. Only codes: other texts could make PROJ open files."""
    member = document.get("crs")
    if member is None:
        return "EPSG:4326"
    properties = member.get("properties") if isinstance(member, dict) else None
    stated = properties.get("name") if isinstance(properties, dict) else None
    if isinstance(stated, str) and CRS84_NAME.fullmatch(stated):
        return "EPSG:4326"
    code = EPSG_NAME.fullmatch(stated) if isinstance(stated, str) else None
    if code is None:
        raise InputError(
            f"{name} states a coordinate system that is not understood "
            f"({printable(stated or member)}); state an EPSG code such as "
            "urn:ogc:def:crs:EPSG::6677, or convert by ogr2ogr -t_srs EPSG:4326 "
            "outline.geojson FILE."
        )
    return f"EPSG:{code[1]}"


def _geometries(document: Mapping[str, Any], name: str) -> Iterable[Any]:
    """Every geometry of a document, None for a feature that has none."""
    kind = document.get("type")
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        for feature in document["features"]:
            yield feature.get("geometry") if isinstance(feature, dict) else None
    elif kind == "Feature":
        yield document.get("geometry")
    elif isinstance(kind, str) and kind in (*BUILDERS, "Point", "MultiPoint", COLLECTION):
        yield document
    else:
        raise InputError(
            f"{name} is JSON but not GeoJSON (its type is {printable(kind)!r}); {HOW_TO_CONVERT}."
        )


class _Found:
    """Shapes of a file so far, as shapely geometries, and what was left out."""

    def __init__(self) -> None:
        self.shapes: list[Any] = []
        self.left_out: Counter[str] = Counter()

    def take(self, geometry: Any, depth: int = 0) -> None:
        """Add a geometry, or count why not."""
        if not isinstance(geometry, dict):
            self.left_out[NO_GEOMETRY] += 1
            return
        kind, members = str(geometry.get("type")), geometry.get("geometries")
        if kind == COLLECTION and isinstance(members, list):
            if depth == MOST_NESTED:
                self.left_out[DEEP] += 1
                return
            for member in members:
                self.take(member, depth + 1)
        elif kind in BUILDERS:
            self._build(BUILDERS[kind], geometry.get("coordinates"))
        else:
            self.left_out[POINTS if kind in ("Point", "MultiPoint") else UNKNOWN] += 1

    def _build(self, builder: Callable[[Any], Any], coordinates: Any) -> None:
        from shapely.errors import ShapelyError  # noqa: PLC0415

        if coordinates in (None, []):
            self.left_out[NO_GEOMETRY] += 1
            return
        try:
            self.shapes.append(builder(coordinates))
        except (ValueError, ShapelyError):
            self.left_out[BROKEN] += 1


def _places(coordinates: Any) -> FloatArray:
    """Longitudes and latitudes (n, 2) of a list of positions; heights are left behind."""
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        raise ValueError("no list of positions")
    for position in coordinates:
        if not (isinstance(position, list) and len(position) >= 2):
            raise ValueError("no position")
        if type(position[0]) is not float or type(position[1]) is not float:
            raise ValueError("no number")
    places = np.array([position[:2] for position in coordinates], dtype=float)
    if not np.isfinite(places).all():
        raise ValueError("no finite number")
    return places


def _line(coordinates: Any) -> Any:
    import shapely  # noqa: PLC0415

    return shapely.LineString(_places(coordinates))


def _polygon(rings: Any) -> Any:
    import shapely  # noqa: PLC0415

    outer, *holes = [_places(ring) for ring in _listed(rings)]
    return shapely.Polygon(outer, holes)


def _lines(lines: Any) -> Any:
    import shapely  # noqa: PLC0415

    return shapely.MultiLineString([_line(line) for line in _listed(lines)])


def _polygons(polygons: Any) -> Any:
    import shapely  # noqa: PLC0415

    return shapely.MultiPolygon([_polygon(polygon) for polygon in _listed(polygons)])


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError("no list")
    return value


COLLECTION = "GeometryCollection"
BUILDERS: Mapping[str, Callable[[Any], Any]] = {
    "LineString": _line,
    "MultiLineString": _lines,
    "Polygon": _polygon,
    "MultiPolygon": _polygons,
}


def _in_degrees(shapes: Shapes, crs: str, name: str) -> Shapes:
    """Shapes in longitude and latitude of WGS84."""
    import shapely  # noqa: PLC0415

    if crs == "EPSG:4326":
        _check_degrees(shapely.get_coordinates(shapes), name)
        return shapes
    from pyproj import CRS, Transformer  # noqa: PLC0415
    from pyproj.exceptions import ProjError  # noqa: PLC0415

    places = shapely.get_coordinates(shapes)
    try:
        stated = CRS.from_epsg(int(crs[5:]))
        if not (stated.is_geographic or stated.is_projected):
            raise ProjError("neither longitude and latitude nor a map's x and y")
        to_degrees = Transformer.from_crs(stated, "EPSG:4326", always_xy=True)
        moved = np.column_stack(to_degrees.transform(places[:, 0], places[:, 1]))
    except ProjError:
        raise InputError(
            f"{name} states {crs}, from which no way leads to degrees; convert it by "
            "ogr2ogr -t_srs EPSG:4326 outline.geojson FILE."
        ) from None
    outside = ~_are_degrees(moved)
    if outside.any():
        x, y = places[outside][0]
        raise InputError(
            f"{name} states {crs}, but its coordinates, such as {x:.9g}, {y:.9g}, lie outside of "
            'that; state the right EPSG code in the member "crs".'
        )
    in_degrees: Shapes = shapely.set_coordinates(shapes.copy(), moved)
    return in_degrees


def _are_degrees(places: FloatArray) -> npt.NDArray[np.bool_]:
    return (np.abs(places[:, 0]) <= 180) & (np.abs(places[:, 1]) <= 90)


def _check_degrees(places: FloatArray, name: str) -> None:
    outside = ~_are_degrees(places)
    if not outside.any():
        return
    x, y = places[outside][0]
    if np.abs(places[:, 0]).max() <= 90 and np.abs(places[:, 1]).max() <= 180:
        raise InputError(
            f"Longitude and latitude of {name} look swapped ({x:.9g}, {y:.9g}); GeoJSON has the "
            "longitude first: exchange them."
        )
    raise InputError(
        f"The coordinates of {name}, such as {x:.9g}, {y:.9g}, are no longitude and latitude; name "
        'their system in its member "crs" (such as "urn:ogc:def:crs:EPSG::6677"), or convert it '
        "by ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 outline.geojson FILE."
    )


def _outline(name: str, crs: str, found: _Found, shapes: Shapes) -> Outline:
    """Mend, thin out and write the shapes."""
    import shapely  # noqa: PLC0415

    read, owners = shapely.get_parts(shapes, return_index=True)
    mended, left_out = _mended(read)
    parts, of_read = shapely.get_parts(mended, return_index=True)
    owners = owners[of_read]
    thinned, kept = _thinned(parts, owners)
    left_out += found.left_out + Counter({TINY: len(parts) - len(kept)})
    if not len(thinned):
        raise InputError(
            f"{name} has nothing left to draw ({_counts(left_out)}); choose a file with fewer and "
            "larger shapes, such as districts in place of buildings."
        )
    of_a_shape = np.split(thinned, np.flatnonzero(np.diff(owners[kept])) + 1)
    features = [feature for shape in of_a_shape for feature in _feature(shape)]
    drawn = shapely.get_coordinates(thinned)
    (west, south), (east, north) = drawn.min(axis=0).tolist(), drawn.max(axis=0).tolist()
    return Outline(
        name=name,
        features={"type": "FeatureCollection", "features": features},
        crs=crs,
        bounds=(west, south, east, north),
        n_shapes=len(features),
        n_left_out=MappingProxyType(dict(left_out)),
        n_points_read=len(shapely.get_coordinates(shapes)),
        n_points_kept=len(drawn),
        tolerance_m=_farthest_m(read[np.unique(of_read[kept])], thinned),
    )


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {cause}" for cause, number in left_out.items())


def _mended(parts: Shapes) -> tuple[Shapes, Counter[str]]:
    """Parts of which none crosses itself, None for what could not be mended, and how many."""
    import shapely  # noqa: PLC0415

    mended, left_out, crossings = parts.copy(), Counter[str](), 0
    n_points = shapely.get_num_coordinates(parts)
    for i in np.flatnonzero((n_points > MOST_CHECKED) & (shapely.get_dimensions(parts) == 2)):
        mended[i] = _every(-(-int(n_points[i]) // MOST_CHECKED), parts[i])
    broken = np.flatnonzero(~shapely.is_valid(mended))
    step = -(-int(shapely.get_num_coordinates(mended[broken]).sum()) // MOST_CHECKED)
    for i in broken:
        few, mended[i] = _every(step, mended[i]), None
        found = _crossings(few, MOST_CROSSINGS - crossings)
        if crossings + found >= MOST_CROSSINGS:
            left_out[TANGLED] += 1
            continue
        crossings += found
        simple = shapely.make_valid(few, method="structure", keep_collapsed=False)
        if simple.is_empty:
            left_out[FLAT] += 1
        else:
            mended[i] = simple
    return mended, +left_out


def _every(step: int, part: Any) -> Any:
    """An area with every step-th point, more of a short border; a line becomes an empty area."""
    import shapely  # noqa: PLC0415

    if part.geom_type != "Polygon":
        return shapely.Polygon()
    outer, *holes = [shapely.get_coordinates(ring)[:-1] for ring in shapely.get_rings(part)]
    few = [hole[::step] for hole in holes]
    outer_step = min(step, max(len(outer) // LEAST_ROUND_AN_AREA, 1))
    return shapely.Polygon(outer[::outer_step], [hole for hole in few if len(hole) >= 3])


def _crossings(shape: Any, most: int) -> int:
    """Pairs of segments that meet elsewhere than one after the other, counted up to `most`."""
    import shapely  # noqa: PLC0415

    segments = _segments(_paths(np.array([shape], dtype=object)))
    tree, pairs = shapely.STRtree(segments), 0
    for start in range(0, len(segments), CROSSINGS_AT_ONCE):
        some = segments[start : start + CROSSINGS_AT_ONCE]
        # Every segment meets itself and the two beside it.
        pairs += max(tree.query(some, predicate="intersects").shape[1] - 3 * len(some), 0)
        if pairs >= 2 * most:
            return most
    return pairs // 2


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
    segments = _segments(_paths(shapely.transform(drawn, lambda places: places * scale)))
    areas = shapely.get_dimensions(read) == 2
    borders = np.concatenate([shapely.get_exterior_ring(read[areas]), read[~areas]])
    places = np.unique(shapely.get_coordinates(borders), axis=0)
    points = shapely.points(places[:: -(-len(places) // MOST_MEASURED)] * scale)
    nearest = shapely.STRtree(segments).query_nearest(
        points, return_distance=True, all_matches=False
    )
    return float(nearest[1].max())


def _paths(parts: Shapes) -> Shapes:
    """Rings of areas, and lines."""
    import shapely  # noqa: PLC0415

    parts = shapely.get_parts(parts)
    areas = shapely.get_dimensions(parts) == 2
    return np.concatenate([shapely.get_rings(parts[areas]), parts[~areas]])


def _segments(paths: Shapes) -> Shapes:
    import shapely  # noqa: PLC0415

    places, owner = shapely.get_coordinates(paths, return_index=True)
    joined = owner[:-1] == owner[1:]
    ends = np.stack([places[:-1][joined], places[1:][joined]], axis=1)
    segments: Shapes = shapely.linestrings(ends)
    return segments


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
