"""Longitude and latitude in degrees, and codes of the systems that lead to them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = [
    "DEGREES", "EARTH_KM", "HALF_ROUND", "are_degrees", "are_known", "check_degrees", "epsg_of",
    "going_on", "great_circle_km", "on_one_side", "shapes_going_on", "to_degrees",
]  # fmt: skip

DEGREES = "EPSG:4326"
EARTH_KM = 6371.0088
"""Mean radius of the earth."""

EPSG_NAME = re.compile(
    r"(?:urn:ogc:def:crs:EPSG:[\d.]*:|EPSG:|https?://www\.opengis\.net/def/crs/EPSG/[\d.]+/)?"
    r"(\d{4,6})",
    re.IGNORECASE,
)
CRS84_NAME = re.compile(
    r"(?:urn:ogc:def:crs:OGC:[\d.]*:|OGC:|https?://www\.opengis\.net/def/crs/OGC/[\d.]+/)CRS84",
    re.IGNORECASE,
)

FloatArray = npt.NDArray[np.float64]
Shapes = npt.NDArray[np.object_]

HALF_ROUND = 180.0
"""Degrees of longitude: what is wider is nearer the other way round the globe."""


def are_degrees(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each place (n, 2) can be a longitude and a latitude, (n,)."""
    return (np.abs(places[:, 0]) <= 180) & (np.abs(places[:, 1]) <= 90)


def great_circle_km(
    lon: npt.ArrayLike, lat: npt.ArrayLike, other_lon: npt.ArrayLike, other_lat: npt.ArrayLike
) -> FloatArray:
    """Straight ways on a sphere in kilometres between places in degrees; arrays are broadcast."""
    x, y, other_x, other_y = (np.radians(axis) for axis in (lon, lat, other_lon, other_lat))
    half = np.sin((other_y - y) / 2) ** 2
    half = half + np.cos(y) * np.cos(other_y) * np.sin((other_x - x) / 2) ** 2
    return np.asarray(2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0))))


def are_known(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Which places (n, 2) are degrees, and not 0, 0, which is written where nothing is known."""
    return np.asarray(are_degrees(places) & ~(places == 0).all(axis=1))


def on_one_side(lon: FloatArray, west: float, east: float) -> tuple[FloatArray, float]:
    """Longitudes (n,) and the eastern border of an extent, those beyond 180 degrees going on.

    An extent over 180 degrees goes on, too (170 to 190), or is given as from 170 to -170.
    """
    if 180 < west - east <= 360:
        east += 360
    return (np.where(lon < west, lon + 360, lon) if east > 180 else lon), east


def going_on(lon: FloatArray) -> FloatArray:
    """Longitudes (n,), those in the west of the world plus 360 where all are nearer so.

    Places about 180 degrees are far apart in degrees and near each other on the ground.
    """
    if len(lon) == 0 or not np.nanmax(lon) - np.nanmin(lon) > HALF_ROUND:
        return lon
    across = np.where(lon < 0, lon + 360, lon)
    return across if np.nanmax(across) - np.nanmin(across) < HALF_ROUND else lon


def shapes_going_on(shapes: Shapes) -> Shapes:
    """Shapes (d,) in degrees of which those on the other side of 180 degrees go on beyond it.

    A shape that is cut there is one again; shapes that are no nearer so stay as they are.
    """
    import shapely  # noqa: PLC0415

    west, _, east, _ = shapely.total_bounds(shapes)
    if not east - west > HALF_ROUND:
        return shapes
    parts, owner = shapely.get_parts(shapes, return_index=True)
    first, _, last, _ = shapely.bounds(parts).T
    moved = last <= 0
    ends = np.concatenate([first + 360 * moved, last + 360 * moved])
    if not np.nanmax(ends) - np.nanmin(ends) < HALF_ROUND:
        return shapes
    parts[moved] = shapely.transform(parts[moved], lambda xy: xy + np.array([360.0, 0.0]))
    joined = [shapely.union_all(parts[owner == i]) for i in range(len(shapes))]
    return np.array(joined, dtype=object)


def check_degrees(places: FloatArray, name: str) -> None:
    """Refuse places (n, 2) that are no longitude and latitude; ``name`` is whose they are.

    Raises
    ------
    InputError
        With one of them, and how to state their system.
    """
    outside = ~are_degrees(places)
    if not outside.any():
        return
    x, y = places[outside][0]
    if np.abs(places[:, 0]).max() <= 90 and np.abs(places[:, 1]).max() <= 180:
        raise InputError(
            f"Longitude and latitude of {name} look swapped ({x:.9g}, {y:.9g}); the longitude "
            "comes first: exchange them.",
            code="coordinates-swapped",
        )
    raise InputError(
        f"The coordinates of {name}, such as {x:.9g}, {y:.9g}, are no longitude and latitude; name "
        'their system (in GeoJSON in its member "crs", such as "urn:ogc:def:crs:EPSG::6677"), or '
        "convert it by ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 out.geojson FILE.",
        "--crs EPSG:CODE",
        code="not-degrees",
    )


def epsg_of(text: str) -> str | None:
    """``EPSG:n`` of a code, a URN or a URL (CRS84 is EPSG:4326); None for any other text.

    Only codes: other texts could make PROJ open files.
    """
    if CRS84_NAME.fullmatch(text):
        return DEGREES
    found = EPSG_NAME.fullmatch(text)
    return f"EPSG:{found[1]}" if found else None


def to_degrees(crs: Any) -> Any:
    """The pyproj Transformer to longitude and latitude of WGS84, from ``EPSG:n`` or a pyproj CRS.

    Raises
    ------
    pyproj.exceptions.ProjError
        If there is no such system, or no way from it.
    """
    from pyproj import CRS, Transformer  # noqa: PLC0415
    from pyproj.exceptions import ProjError  # noqa: PLC0415

    system = CRS.from_epsg(int(crs[5:])) if isinstance(crs, str) else crs
    if not (system.is_geographic or system.is_projected):
        raise ProjError("neither longitude and latitude nor a map's x and y")
    return Transformer.from_crs(system, DEGREES, always_xy=True)
