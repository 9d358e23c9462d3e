"""The known place that is nearest to a point, to tell people where their data would lie."""

from __future__ import annotations

import numpy as np

from agg_core.base.errors import InputError
from agg_core.io.ground import world

__all__ = ["nearest_place"]

KM_PER_DEGREE = 111.2
NEAR_KM = 30.0
"""Of places that are nearer the largest is told, which people know."""


def nearest_place(lon: float, lat: float) -> str:
    """How far from which known place a point in degrees lies, in words; empty where none is known.

    Places are those of the shipped map of the world: larger towns.
    """
    try:
        known = world()
    except InputError:  # installed without the map
        return ""
    east = (known.where[:, 0] - lon + 180) % 360 - 180
    km = KM_PER_DEGREE * np.hypot(east * np.cos(np.radians(lat)), known.where[:, 1] - lat)
    near = np.flatnonzero(km <= max(NEAR_KM, 2 * km.min()))
    at = int(near[np.argmax(known.people[near])])
    return f"{km[at]:,.0f} km from {known.names[at]}"
