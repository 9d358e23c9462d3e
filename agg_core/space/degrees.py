"""Longitude and latitude in degrees, and codes of the systems that lead to them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = ["DEGREES", "are_degrees", "are_known", "check_degrees", "epsg_of", "to_degrees"]

DEGREES = "EPSG:4326"

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


def are_degrees(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each place (n, 2) can be a longitude and a latitude, (n,)."""
    return (np.abs(places[:, 0]) <= 180) & (np.abs(places[:, 1]) <= 90)


def are_known(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Which places (n, 2) are degrees, and not 0, 0, which is written where nothing is known."""
    return are_degrees(places) & ~(places == 0).all(axis=1)


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
