"""Which numbers can be longitude and latitude in degrees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = ["are_degrees", "check_degrees"]

FloatArray = npt.NDArray[np.float64]


def are_degrees(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each place (n, 2) can be a longitude and a latitude, (n,)."""
    return (np.abs(places[:, 0]) <= 180) & (np.abs(places[:, 1]) <= 90)


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
            "comes first: exchange them."
        )
    raise InputError(
        f"The coordinates of {name}, such as {x:.9g}, {y:.9g}, are no longitude and latitude; name "
        'their system (in GeoJSON in its member "crs", such as "urn:ogc:def:crs:EPSG::6677"), or '
        "convert it by ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 out.geojson FILE.",
        "--crs EPSG:CODE",
    )
