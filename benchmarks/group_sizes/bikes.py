"""Bikes of Jersey City: hourly counts of 43 stations, with the true moves behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from benchmarks.group_sizes.consistency import staying
from benchmarks.group_sizes.learners import DEFAULT_LEARNERS, Learner, ready
from benchmarks.group_sizes.tables import (
    FloatArray,
    IntArray,
    Row,
    Table,
    attempted,
    flow_figures,
    real_data,
)

__all__ = ["BANDS", "BIKES", "Band", "BikeSettings", "Bikes", "banded", "measure", "read_bikes"]


@dataclass(frozen=True)
class Band:
    """Counts at the full hours from ``first`` to ``last`` of a day make one sequence."""

    first: int
    last: int
    weekdays_only: bool


BANDS = {
    "all hours": Band(0, 23, weekdays_only=False),
    "weekdays 07-10": Band(7, 10, weekdays_only=True),
    "weekdays 10-16": Band(10, 16, weekdays_only=True),
    "weekdays 16-20": Band(16, 20, weekdays_only=True),
}
"""Times of day that have a model of their own."""


@dataclass(frozen=True)
class BikeSettings:
    """All bikes are one group; learning starts from one chance to stay and all moves alike."""

    learners: tuple[str, ...] = DEFAULT_LEARNERS
    bands: tuple[str, ...] = tuple(BANDS)
    start_stay: float = 0.6
    iterations: int = 200


@dataclass(frozen=True)
class Bikes:
    """``counts`` (H + 1, d) at full hours, and ``moves`` (H, d, d) from each hour to the next.

    ``hours`` (H + 1,) are the local times, without gaps. One state is "on a trip".
    """

    hours: pd.DatetimeIndex
    counts: IntArray
    moves: IntArray


def read_bikes(folder: Path) -> Bikes:
    """The counts and true moves in a folder.

    Raises
    ------
    InputError
        If the moves of an hour do not fit the counts.
    """
    counted = pd.read_csv(folder / "derived_counts_hour_station.csv", parse_dates=["hour"])
    moved = pd.read_csv(folder / "derived_true_moves_hour_from_to.csv", parse_dates=["hour"])
    hours = pd.date_range(counted["hour"].min(), counted["hour"].max(), freq="h")
    stations = np.sort(counted["station"].unique())
    counts = np.zeros((len(hours), len(stations)), dtype=np.int64)
    at = hours.get_indexer(pd.Index(counted["hour"])), np.searchsorted(stations, counted["station"])
    counts[at] = counted["bikes"]
    moves = np.zeros((len(hours) - 1, len(stations), len(stations)), dtype=np.int64)
    ends = (np.searchsorted(stations, moved[name]) for name in ("from", "to"))
    moves[hours.get_indexer(pd.Index(moved["hour"])), *ends] = moved["bikes"]
    if (moves.sum(axis=2) != counts[:-1]).any() or (moves.sum(axis=1) != counts[1:]).any():
        raise InputError("The moves of the bikes do not fit their counts; get the data anew.")
    return Bikes(hours, counts, moves)


def banded(bikes: Bikes, band: Band) -> tuple[IntArray, IntArray]:
    """Counts (K, T, d), a sequence a day, and the moves (d, d) made in the same hours."""
    begins = bikes.hours.hour == band.first
    if band.weekdays_only:
        begins &= bikes.hours.day_of_week < 5
    first = np.flatnonzero(begins)
    steps = band.last - band.first
    first = first[first + steps < len(bikes.hours)]
    counts = bikes.counts[first[:, None] + np.arange(steps + 1)]
    return counts, bikes.moves[first[:, None] + np.arange(steps)].sum(axis=(0, 1))


def measure(settings: BikeSettings) -> Iterator[Row]:
    """Moves that what was learned makes of the counts, against the true ones of the same hours."""
    unknown = set(settings.bands) - set(BANDS)
    if unknown:
        raise InputError(f"There is no band {sorted(unknown)}; choose from {list(BANDS)}.")
    bikes = read_bikes(real_data("jersey_city_bikes"))
    learners = ready(settings.learners)
    for name in settings.bands:
        counts, moves = banded(bikes, BANDS[name])
        for learner in learners:
            yield attempted(
                {"band": name, "learner": learner.label}, _figures, learner, counts, moves, settings
            )


def _figures(learner: Learner, counts: IntArray, moves: IntArray, settings: BikeSettings) -> Row:
    d = counts.shape[2]
    start = HMM.categorical(np.full(d, 1 / d), staying(d, settings.start_stay), np.eye(d))
    fitted = learner.fit(Aggregates.from_dense(counts), start, settings.iterations)
    # The counts are known without noise, so only where they went is left to the model.
    origins: FloatArray = counts[:, :-1].sum(axis=(0, 1)).astype(np.float64)
    flows = origins[:, None] * fitted.hmm.transmat
    return {
        "true_moves": float(moves.sum() - np.trace(moves)),
        **flow_figures(flows, moves),
        **fitted.course(),
    }


BIKES = Table(
    name="bikes",
    title="Bikes of Jersey City, hourly, one group: flows from the counts against the true moves",
    settings=BikeSettings,
    measure=measure,
    case=("band",),
    groupings=(("band",),),
    figures=(
        "true_moves", "cpc", "cpc_with_stays", "total_ratio", "iterations", "converged", "seconds",
    ),
)  # fmt: skip
