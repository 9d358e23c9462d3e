"""A made-up railway: entries and exits of its stations, and who truly went where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["RAILWAY_ZONE", "Railway", "simulate_railway"]

FloatArray = npt.NDArray[np.float64]

RAILWAY_ZONE = "Asia/Tokyo"
FIRST_DAY = "2024-05-13"

STATIONS = (
    ("Harbour", 139.772, 35.622, "Coast", 0.7, 1.6),
    ("Exchange", 139.745, 35.655, "Coast;Hill", 0.5, 3.0),
    ("Old Market", 139.720, 35.690, "Coast", 0.9, 1.8),
    ("Riverside", 139.694, 35.722, "Coast", 1.6, 0.6),
    ("Northgate", 139.664, 35.752, "Coast", 2.2, 0.4),
    ("Upper Mill", 139.628, 35.781, "Coast", 1.8, 0.3),
    ("University", 139.700, 35.640, "Hill", 0.6, 1.5),
    ("Gardens", 139.655, 35.634, "Hill", 1.5, 0.5),
    ("Westfield", 139.606, 35.640, "Hill", 2.0, 0.4),
    ("Hilltop", 139.560, 35.652, "Hill", 1.7, 0.3),
)
"""Name, longitude, latitude, lines, and how many live and how many work there."""

HOURS = 24
PER_KM, OTHER_LINE = -0.06, -0.5
"""What a kilometre and a change of lines take off the logarithm of a pair's weight."""
PACE, ON_FOOT = 1.6, 8.0
"""Minutes per kilometre on the train, and for the ways to it and from it."""
SHAPE_OF_STRAYING = 20.0
"""Of the gamma distribution by which a pair strays from day to day."""

TO_WORK = {6: 1.5, 7: 4.0, 8: 5.0, 9: 2.0, 10: 0.8}
TO_HOME = {16: 1.2, 17: 3.0, 18: 4.0, 19: 2.5, 20: 1.5, 21: 1.2, 22: 0.8}
ALL_DAY = dict.fromkeys(range(7, 23), 0.6)


@dataclass(frozen=True)
class Railway:
    """Entries and exits (D, 24, S) of S stations, and who went where (D, S, S).

    ``stations`` is a table of station, lon, lat and line, ``dates`` are those of the D days.
    """

    stations: pd.DataFrame
    dates: tuple[str, ...]
    entries: FloatArray
    exits: FloatArray
    went: FloatArray

    def table(self) -> pd.DataFrame:
        """Rows of time, station, entries and exits, as an operator delivers them."""
        day, hour, station = np.indices(self.entries.shape).reshape(3, -1)
        time = pd.DatetimeIndex(np.array(self.dates)[day]) + pd.to_timedelta(hour, unit="h")
        return pd.DataFrame({
            "time": time.strftime("%Y-%m-%d %H:%M"),
            "station": self.stations["station"].to_numpy(dtype=object)[station],
            "entries": self.entries.ravel().astype(np.int64),
            "exits": self.exits.ravel().astype(np.int64),
        })  # fmt: skip

    def pairs(self) -> pd.DataFrame:
        """Rows of date, origin, dest and count: who truly went where on each day."""
        day, origin, dest = np.indices(self.went.shape).reshape(3, -1)
        names = self.stations["station"].to_numpy(dtype=object)
        return pd.DataFrame({
            "date": np.array(self.dates)[day], "origin": names[origin], "dest": names[dest],
            "count": self.went.ravel().astype(np.int64),
        })  # fmt: skip


def simulate_railway(
    days: int = 21, trips: float = 60_000.0, random_state: int | np.random.Generator = 0
) -> Railway:
    """Make up ``days`` of a railway of ten stations on two lines, with about so many trips a day.

    People go to work in the morning, home in the evening, and about all day; at weekends half as
    many, and few to work. Pairs stray from day to day on their own.
    """
    rng = np.random.default_rng(random_state)
    stations = pd.DataFrame(
        [each[:4] for each in STATIONS], columns=["station", "lon", "lat", "line"]
    )
    homes, jobs = np.array([each[4:] for each in STATIONS]).T
    dates = pd.date_range(FIRST_DAY, periods=days)
    km = _kilometres(stations)
    reach = np.exp(PER_KM * km + OTHER_LINE * _on_other_line(stations)) * (1 - np.eye(len(km)))
    outward, about = homes[:, None] * jobs * reach, np.outer(homes + jobs, homes + jobs) * reach / 6
    minutes = ON_FOOT + PACE * km
    shape = (days, HOURS, len(km))
    entries, exits = np.zeros(shape), np.zeros(shape)
    went = np.zeros((days, len(km), len(km)))
    usual = np.stack([
        TO_WORK.get(h, 0) * outward + TO_HOME.get(h, 0) * outward.T + ALL_DAY.get(h, 0) * about
        for h in range(HOURS)
    ])  # fmt: skip
    idle = np.stack([2.0 * ALL_DAY.get(hour, 0) * about for hour in range(HOURS)])
    size = trips / usual.sum()
    for day, date in enumerate(dates):
        mean = size * (usual if date.weekday() < 5 else idle + 0.1 * usual)
        strayed = rng.gamma(SHAPE_OF_STRAYING, 1 / SHAPE_OF_STRAYING, km.shape)
        now = rng.poisson(mean * strayed)
        went[day] = now.sum(axis=0)
        entries[day] += now.sum(axis=2)
        # Who enters at any moment of an hour leaves in it, or in the next.
        later = rng.binomial(now, np.minimum(minutes / 60, 1.0))
        exits[day] += (now - later).sum(axis=1)
        exits[day, 1:] += later[:-1].sum(axis=1)
    return Railway(stations, tuple(dates.strftime("%Y-%m-%d")), entries, exits, went)


def _kilometres(stations: pd.DataFrame) -> FloatArray:
    """Straight ones (S, S), on a plane that is true enough for a city."""
    north = stations["lat"].to_numpy() * 111.2
    east = stations["lon"].to_numpy() * 111.2 * np.cos(np.radians(stations["lat"].mean()))
    return np.asarray(np.hypot(north[:, None] - north, east[:, None] - east))


def _on_other_line(stations: pd.DataFrame) -> FloatArray:
    lines = [set(str(of).split(";")) for of in stations["line"]]
    return np.array([[not (one & other) for other in lines] for one in lines], dtype=float)
