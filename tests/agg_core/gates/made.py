"""Made-up railways: stations on two lines, and people whose trips are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.float64]

STATIONS = ("a", "b", "c", "d", "e", "f", "g", "h")
LINES = ("red", "red", "red", "red", "blue", "blue", "blue", "blue")
LON = np.array([139.00, 139.05, 139.10, 139.15, 139.02, 139.06, 139.11, 139.17])
LAT = np.array([35.0, 35.0, 35.0, 35.0, 35.06, 35.06, 35.06, 35.06])


def places() -> pd.DataFrame:
    """A table of the stations."""
    return pd.DataFrame({"station": STATIONS, "lon": LON, "lat": LAT, "line": LINES})


def trips(
    n_days: int = 21, people: float = 400.0, seed: int = 0, line: float = -1.2
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Entries and exits (D, 24, S), and who went where (D, S, S).

    How many go from station to station strays from day to day on its own for each pair; one in
    three leaves an hour after having entered.
    """
    rng = np.random.default_rng(seed)
    n = len(STATIONS)
    apart = np.array(LINES)[:, None] != np.array(LINES)[None]
    size = rng.uniform(0.5, 2.0, n)
    mean = people * size[:, None] * size * np.exp(line * apart) * (1 - np.eye(n))
    shape = np.zeros(24)
    shape[6:22] = rng.uniform(0.5, 2.0, 16)
    shape /= shape.sum()
    entries, exits = np.zeros((n_days, 24, n)), np.zeros((n_days, 24, n))
    went = np.zeros((n_days, n, n))
    for day in range(n_days):
        for hour in range(6, 22):
            strayed = rng.gamma(20.0, 1 / 20.0, (n, n))
            now = rng.poisson(mean * shape[hour] * strayed)
            later = rng.binomial(now, 1 / 3)
            entries[day, hour] += now.sum(axis=1)
            exits[day, hour] += (now - later).sum(axis=0)
            exits[day, hour + 1] += later.sum(axis=0)
            went[day] += now
    return entries, exits, went


def long_table(counts: FloatArray, first: str = "2024-05-06") -> pd.DataFrame:
    """Counts (D, 24, S) as rows of date, hour, station and count."""
    day, hour, station = np.indices(counts.shape).reshape(3, -1)
    dates = pd.Timestamp(first) + pd.to_timedelta(day, unit="D")
    return pd.DataFrame({
        "date": dates.strftime("%Y-%m-%d"), "hour": hour,
        "station": np.array(STATIONS, dtype=object)[station], "count": counts.ravel(),
    })  # fmt: skip


def pair_table(went: FloatArray, first: str = "2024-05-06") -> pd.DataFrame:
    """Who went where (D, S, S) as rows of date, origin, dest and count."""
    day, origin, dest = np.indices(went.shape).reshape(3, -1)
    dates = pd.Timestamp(first) + pd.to_timedelta(day, unit="D")
    names = np.array(STATIONS, dtype=object)
    return pd.DataFrame({
        "date": dates.strftime("%Y-%m-%d"), "origin": names[origin], "dest": names[dest],
        "count": went.ravel(),
    })  # fmt: skip
