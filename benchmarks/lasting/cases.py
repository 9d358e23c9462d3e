"""Studies whose time is measured: data of several kinds and sizes, and settings at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.io import read_trajectories
from agg_core.made.counts import simulate_city
from agg_core.made.samples import SAMPLES, sample_path
from agg_core.space.settings import GridSettings
from agg_core.study.settings import (
    CountLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
)
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories
from benchmarks.counts import cases
from benchmarks.counts.cases import miscounted
from benchmarks.group_sizes.untold import CITY, city_cells, hourly_fixes, tokyo_people

__all__ = ["COUNTS", "PEOPLE", "Planned", "counts_of", "people_of", "planned", "settings_of"]

COMMUTERS = SAMPLES["tokyo_commuters"]
TOKYO = GridSettings(139.68, 35.65, 139.80, 35.75, 10, 10)

PEOPLE = ("tokyo commuters", "commuters, days", "city", "tokyo people")
"""Data of people: the sample, the same people on several days, a simulated city, real people."""

COUNTS = ("made city", "city of neighbours", "tokyo", "bike zones")
"""Data of counts: a city that commutes by the hour, one whose people go to the eight neighbours,
real people of Tokyo, real bikes."""


@dataclass(frozen=True)
class Planned:
    """A study to be timed: ``kind`` is "people" or "counts", ``data`` are sizes by name."""

    kind: str
    data: dict[str, Any]
    settings: dict[str, Any]


def planned(random_state: int) -> Iterator[Planned]:
    """Studies, of counts every third, without end."""
    rng = np.random.default_rng(random_state)
    while True:
        yield _of_people(rng)
        yield _of_people(rng)
        yield _of_counts(rng)


def _of_people(rng: np.random.Generator) -> Planned:
    name = str(rng.choice(PEOPLE, p=[0.35, 0.2, 0.3, 0.15]))
    people = _log_uniform(rng, 80, 2_500 if name != "tokyo people" else 900)
    data: dict[str, Any] = {"name": name, "people": people, "seed": int(rng.integers(1000))}
    side = int(
        rng.choice([3, 4, 6, 8, 10, 12, 15, 20], p=[0.15, 0.2, *[0.15] * 3, 0.1, 0.06, 0.04])
    )
    length = int(rng.choice([2, 3, 4, 6, 9, 12], p=[0.1, 0.35, 0.2, 0.15, 0.1, 0.1]))
    if name == "commuters, days":
        data["days"] = int(rng.integers(2, 8))
    if name == "city":
        data["hours"] = 12
    minutes, times = 30, [["08:00"], ["08:00", "14:00"], ["02:00", "08:00", "14:00", "20:00"], []]
    if name == "city":
        minutes, times = 60, [["10:00"], ["10:00", "12:00"], []]
    if name == "tokyo people":
        minutes = 20
        times = [*times, []]
    at = times[int(rng.integers(len(times)))]
    if not at:
        # Windows of all day are many a person.
        data["people"] = max(people // 4, 60)
    learn: dict[str, Any] = {
        "group_size": min(int(rng.choice([1, 2, 5, 10, 20, 50, 100, 400])), people // 4),
        "replicates": int(rng.choice([0, 2, 4, 8], p=[0.2, 0.2, 0.5, 0.1])),
        "seed": int(rng.integers(1000)),
    }
    draw = rng.random(6)
    if draw[0] < 0.2:
        learn |= {"noise": "given", "assumed": 0.05}
    if draw[2] < 0.15:
        learn |= {"misclassify": 0.0}
    if draw[3] < 0.2:
        learn |= {"iterations": int(rng.choice([10, 30, 150]))}
    if draw[4] < 0.3:
        others = ("cfb", "cavity", "sampling", "gaussian_pairs", "least_squares", "nlbp", "prox")
        learn |= {"inference": str(rng.choice(others))}
    if draw[5] < 0.12:
        learn = {name: learn[name] for name in ("group_size", "replicates", "seed")}
        learn |= {"observed": "positions", "sigma_m": float(rng.choice([0.0, 300.0]))}
    if draw[1] < 0.2 and learn.get("inference", "auto") in (
        "auto", "cavity", "sampling", "gaussian_pairs"
    ):  # fmt: skip
        learn |= {"strength": "given", "prior": 10.0}
    settings = {"side": side, "minutes": minutes, "length": length, "times": at, "learn": learn}
    return Planned("people", data, settings)


def _of_counts(rng: np.random.Generator) -> Planned:
    name = str(rng.choice(COUNTS, p=[0.5, 0.2, 0.2, 0.1]))
    data: dict[str, Any] = {"name": name, "seed": int(rng.integers(1000))}
    data["days"] = _log_uniform(rng, 1, 12)
    data["error"] = float(rng.choice([0.0, 0.03, 0.1], p=[0.65, 0.2, 0.15]))
    if name == "made city":
        data["side"] = int(
            rng.choice([2, 3, 4, 5, 6, 7, 8], p=[0.25, 0.25, 0.2, 0.15, 0.09, 0.03, 0.03])
        )
        data["people"] = _log_uniform(rng, 50, 100_000)
    elif name == "city of neighbours":
        data["side"] = int(rng.choice([2, 3, 4, 5, 7], p=[0.25, 0.25, 0.25, 0.2, 0.05]))
        data["people"] = _log_uniform(rng, 200, 200_000)
        data["days"] = min(data["days"], 6)
    elif name == "tokyo":
        data["side"] = int(rng.choice([2, 4, 5]))
        data["days"] = min(data["days"], 6)
    else:
        data["side"] = int(rng.choice([2, 3, 4]))
    learn: dict[str, Any] = {
        "replicates": int(rng.choice([0, 2, 4, 12], p=[0.2, 0.2, 0.3, 0.3])),
        "seed": int(rng.integers(1000)),
    }
    draw = rng.random(3)
    if draw[0] < 0.2:
        learn |= {"strength": "given", "prior": 20.0}
    if draw[1] < 0.3:
        learn |= {"time": str(rng.choice(["one", "by_time"]))}
    if draw[2] < 0.25:
        learn |= {"count_error": float(rng.choice([0.0, 0.05]))}
    return Planned("counts", data, {"learn": learn})


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> int:
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def settings_of(plan: Planned) -> StudySettings | CountLearnSettings:
    """The settings of a study."""
    given = plan.settings
    if plan.kind == "counts":
        return CountLearnSettings(**given["learn"])
    box = {"city": CITY, "tokyo people": TOKYO}.get(plan.data["name"])
    bounds = COMMUTERS.bounds if box is None else box.bounds
    grid = GridSettings(*bounds, given["side"], given["side"])
    times = tuple(given["times"])
    window = WindowSettings(given["minutes"], given["length"], times)
    return StudySettings(grid, window, LearnSettings(**given["learn"]))


def people_of(plan: Planned) -> Trajectories:
    """The people of a study."""
    data = plan.data
    rng = np.random.default_rng([data["seed"], 1])
    if data["name"] == "city":
        cells = city_cells(data["people"], data["seed"], data["hours"])
        return hourly_fixes(cells, CITY.make().centroids[cells.ravel()])
    read = _commuters() if "commuters" in data["name"] else _tokyo()
    of_row = read.user_codes
    n = int(of_row.max()) + 1
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.permutation(n)[: data["people"]]] = True
    table = read.table.loc[chosen[of_row]].reset_index(drop=True)
    if "days" in data:
        day = rng.integers(data["days"], size=n)[of_row[chosen[of_row]]]
        table["time"] = table["time"] + pd.to_timedelta(day, unit="D")
    return replace(read, table=table)


@cache
def _commuters() -> Trajectories:
    return read_trajectories(sample_path(COMMUTERS.key), tz=COMMUTERS.timezone)


@cache
def _tokyo() -> Trajectories:
    return tokyo_people()


def counts_of(plan: Planned) -> CountTable:
    """The counts of a study."""
    data = plan.data
    side, days = data["side"], data["days"]
    if data["name"] == "made city":
        made = simulate_city(side, side, days, data["people"], random_state=data["seed"])
        table = cases.commuters(made).table
    elif data["name"] == "city of neighbours":
        table = cases.city(data["people"], days=days, seed=data["seed"]).table
        # Cells of a corner of it; people come and go there, unless it is told to be all of them.
        row, col = np.divmod(np.arange(cases.CITY_SIDE**2), cases.CITY_SIDE)
        table = _of_cells(table, np.flatnonzero((row < side) & (col < side)))
    elif data["name"] == "tokyo":
        table = _of_days(_tokyo_counts(side), days)
    else:
        table = _of_days(_zones(side), days)
    return miscounted(table, data["error"], np.random.default_rng([data["seed"], 2]))


@cache
def _tokyo_counts(side: int) -> CountTable:
    return cases.tokyo(side).table


@cache
def _zones(side: int) -> CountTable:
    return cases.bike_zones(side).table


def _of_cells(table: CountTable, cells: npt.NDArray[np.int64]) -> CountTable:
    return replace(
        table, counts=table.counts[:, cells], status=table.status[:, cells],
        cells=tuple(table.cells[cell] for cell in cells), grid=None,
    )  # fmt: skip


def _of_days(table: CountTable, days: int) -> CountTable:
    number = pd.factorize(table.times.tz_convert(table.timezone).normalize())[0]
    kept = number < days
    return replace(
        table, times=table.times[kept], sequence=table.sequence[kept], slot=table.slot[kept],
        counts=table.counts[kept], status=table.status[kept],
    )  # fmt: skip
