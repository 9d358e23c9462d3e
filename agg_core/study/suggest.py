"""First settings for a file that nobody has looked at yet."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.space.grid import Bounds
from agg_core.space.hexagons import FINEST_RESOLUTION
from agg_core.space.mesh import PER_DEGREE
from agg_core.space.settings import GridSettings
from agg_core.study.settings import WindowSettings
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "PlaceSample",
    "suggest_extent",
    "suggest_grid",
    "suggest_level",
    "suggest_resolution",
    "suggest_window",
]

FloatArray = npt.NDArray[np.float64]

MOST_PLACES = 1 << 20
"""Places from which an extent is told; of more an even part is kept."""

STEPS_MINUTES = (5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)
PAPER_TIMES = ("02:00", "08:00", "14:00", "20:00")
FITTING_CELLS = 224
"""So many, as 14 x 16, show a metropolis and are learned in minutes."""

KM_PER_DEGREE = 111.32
FULL_BINS = 0.5
"""A time of day is suggested when its windows have this share of the busiest hour's fixes."""


def suggest_grid(trajectories: Trajectories, rows: int = 14, cols: int = 16) -> GridSettings:
    """The extent of `suggest_extent` for the fixes, and cells."""
    lon, lat = (trajectories.table[name].to_numpy(dtype=float) for name in ("lon", "lat"))
    return GridSettings(*suggest_extent(lon, lat), rows, cols)


def suggest_extent(lon: FloatArray, lat: FloatArray) -> Bounds:
    """An extent in degrees that holds 98 % of places (n,) in each direction, rounded outwards.

    Over 180 degrees it goes on beyond them, where that makes it narrower.
    """
    west, east = _robust_range(lon, 180.0)
    if east - west > 180:
        across = _robust_range(np.where(lon < 0, lon + 360, lon), 360.0)
        if across[1] - across[0] < 180 < across[1]:
            west, east = across
    south, north = _robust_range(lat, 90.0)
    return west, south, east, north


class PlaceSample:
    """Every place that is added, or every second, fourth ... of all, so that memory is bounded.

    ``lon`` and ``lat`` are degrees.
    """

    def __init__(self) -> None:
        self.lon, self.lat = np.empty(0), np.empty(0)
        self._every, self._seen = 1, 0

    def add(self, lon: FloatArray, lat: FloatArray) -> None:
        """Take in more places (n,)."""
        first = -self._seen % self._every
        self._seen += len(lon)
        self.lon = np.append(self.lon, lon[first :: self._every])
        self.lat = np.append(self.lat, lat[first :: self._every])
        while len(self.lon) > MOST_PLACES:
            self.lon, self.lat = self.lon[::2], self.lat[::2]
            self._every *= 2


def suggest_level(bounds: Bounds) -> int:
    """Level of the JIS mesh whose cells over an extent come nearest to `FITTING_CELLS`."""
    west, south, east, north = bounds
    cells = {
        level: np.ceil((east - west) * n) * np.ceil((north - south) * 1.5 * n)
        for level, n in PER_DEGREE.items()
    }
    return min(cells, key=lambda level: abs(np.log(cells[level] / FITTING_CELLS)))


def suggest_resolution(bounds: Bounds) -> int:
    """Resolution of H3 whose cells over an extent come nearest to `FITTING_CELLS`."""
    import h3  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    west, south, east, north = bounds
    width = (east - west) * np.cos(np.radians((south + north) / 2))
    size_km2 = width * (north - south) * KM_PER_DEGREE**2
    cells = {
        resolution: size_km2 / h3.average_hexagon_area(resolution, unit="km^2")
        for resolution in range(FINEST_RESOLUTION + 1)
    }
    return min(cells, key=lambda resolution: abs(np.log(cells[resolution] / FITTING_CELLS)))


def _robust_range(values: FloatArray, limit: float) -> tuple[float, float]:
    low, high = np.quantile(values, [0.01, 0.99])
    margin = max((high - low) * 0.05, 0.002)
    digits = int(np.clip(np.ceil(-np.log10(margin)), 1, 4))
    low, high = (
        np.floor((low - margin) * 10**digits) / 10**digits,
        np.ceil((high + margin) * 10**digits) / 10**digits,
    )
    return round(float(max(low, -limit)), digits), round(float(min(high, limit)), digits)


def suggest_window(trajectories: Trajectories) -> WindowSettings:
    """A step that most people have a fix in, and the paper's times of day where there is data."""
    users, times = trajectories.user_codes, trajectories.time_utc
    gap_s = np.diff(times.astype("datetime64[s]").astype(np.int64))[np.diff(users) == 0]
    typical = float(np.median(gap_s)) / 60 if gap_s.size else 30.0
    # A fix a minute late must not empty its step: 20:54 after the hour still is "every 20 min".
    step = next((s for s in STEPS_MINUTES if s >= 0.95 * typical), STEPS_MINUTES[-1])
    hour = trajectories.time_local.astype("datetime64[h]").astype(np.int64) % 24
    per_hour = np.bincount(hour, minlength=24)
    full = tuple(at for at in PAPER_TIMES if per_hour[int(at[:2])] >= FULL_BINS * per_hour.max())
    return WindowSettings(step_minutes=step, times=full if 60 % step == 0 else ())
