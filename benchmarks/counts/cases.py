"""Counts whose true flows are known: real people, real bikes, simulated cities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.made.counts import CountedCity, simulate_city
from agg_core.space.settings import AnyGridSettings, GridSettings, MeshSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import PUBLISHED, SUPPRESSED, CountTable
from benchmarks.group_sizes.bikes import read_bikes
from benchmarks.group_sizes.tables import real_data

__all__ = ["CASES", "Case", "blanks_as_zero", "city", "miscounted", "scaled_up", "suppressed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

TOKYO_BOX = (139.68, 35.65, 139.80, 35.75)
TOKYO_SIDE = 20
CITY_SIDE = 10
CITY_BOX = (139.6, 35.6, 139.71, 35.69)
STAYING, OWN_TASTE = 0.8, 0.5


@dataclass(frozen=True)
class Case:
    """A table of counts and the moves (H, d, d) that really were, summed over days.

    ``by_pair`` (T - 1, d, d) are those of each pair of successive moments, where they are known.
    """

    table: CountTable
    moves: FloatArray
    by_pair: FloatArray | None = None


def _table(
    counts: npt.NDArray[np.number],
    times: pd.DatetimeIndex,
    run: IntArray,
    zone: str,
    grid: AnyGridSettings | None,
) -> CountTable:
    labels = pd.Index(times.tz_convert(zone).strftime("%H:%M"))
    slots = np.sort(labels.unique())
    return CountTable(
        times=times,
        sequence=run,
        slot=np.searchsorted(slots, labels).astype(np.int64),
        slots=tuple(slots),
        cells=tuple(map(str, range(counts.shape[1]))),
        counts=counts.astype(np.float64),
        status=np.full(counts.shape, PUBLISHED, dtype=np.uint8),
        suppressed_below=0.0,
        timezone=zone,
        grid=grid,
        report=CountReport(len(counts), len(counts)),
    )


def tokyo(side: int, *, everybody: bool = False, one_day: bool = False) -> Case:
    """People flow of Tokyo on side x side cells: those seen all day, or all who come and go.

    There are six days, or the one of them on which most people were followed.
    """
    people = pd.read_csv(real_data("tokyo_people_flow") / "tokyo_1000users_20min.csv")
    if not everybody:
        people = people.loc[people["full_day"] == 1]
    cell = TOKYO_SIDE // side
    cell = (people["row"] // cell * side + people["col"] // cell).to_numpy()
    # Fixes lie a little after the full twenty minutes that they stand for.
    when = pd.to_datetime(people["time"], utc=True).dt.floor("20min")
    if one_day:
        day = people["user_id"].groupby(when.dt.floor("D")).nunique().idxmax()
        chosen = (when.dt.floor("D") == day).to_numpy()
        people, cell, when = people.loc[chosen], cell[chosen], when[chosen]
    times = pd.DatetimeIndex(np.sort(when.unique()))
    counts = np.zeros((len(times), side * side))
    np.add.at(counts, (times.get_indexer(when), cell), 1)
    run = np.concatenate([[0], np.cumsum(np.diff(times) > pd.Timedelta("20min"))]).astype(np.int64)
    table = _table(counts, times, run, "Asia/Tokyo", GridSettings(*TOKYO_BOX, side, side))
    moved = pd.DataFrame({"user": people["user_id"], "time": when, "cell": cell})
    moved = moved.sort_values(["user", "time"])
    after = moved.shift(-1)
    same = (moved["user"] == after["user"]) & (
        after["time"] - moved["time"] == pd.Timedelta("20min")
    )
    by_pair = np.zeros((len(times) - 1, side * side, side * side))
    at = moved.loc[same]
    number = times.get_indexer(at["time"])
    np.add.at(by_pair, (number, at["cell"], after.loc[same, "cell"].astype(int)), 1)
    return _by_slot(table, by_pair)


def _by_slot(table: CountTable, by_pair: FloatArray) -> Case:
    """A case of known moves of each pair of moments."""
    moves = np.zeros((len(table.slots), *by_pair.shape[1:]))
    np.add.at(moves, table.slot[:-1], by_pair)
    return Case(table, moves, by_pair)


def bikes() -> Case:
    """Bikes of Jersey City by the hour; the state of those on a trip has no place."""
    read = read_bikes(real_data("jersey_city_bikes"))
    times = read.hours.tz_localize("UTC")
    table = _table(read.counts, times, np.zeros(len(times), dtype=np.int64), "UTC", None)
    return _by_slot(table, read.moves)


def bike_zones(side: int = 3) -> Case:
    """The same bikes in side x side zones of as many stations each, and on a trip."""
    folder, case = real_data("jersey_city_bikes"), bikes()
    counted = pd.read_csv(folder / "derived_counts_hour_station.csv")
    numbers = np.sort(counted["station"].unique())
    places = pd.read_csv(folder / "derived_stations.csv").set_index("station").reindex(numbers)
    band = _ranked(places["lon"], side)
    zone = band * side + places.groupby(band)["lat"].transform(_ranked, side)
    zone = zone.where(places["lon"].notna(), side**2).astype(int).to_numpy()
    into = np.eye(side**2 + 1)[zone]
    assert case.by_pair is not None
    moves, by_pair = into.T @ case.moves @ into, into.T @ case.by_pair @ into
    table = case.table
    zones = _table(table.counts @ into, table.times, table.sequence, "UTC", None)
    return Case(zones, moves, by_pair)


def _ranked(values: pd.Series[float], n: int) -> pd.Series[float]:
    """Parts 0 to n - 1 of as many values each, from the lowest to the highest."""
    rank = values.rank(method="first")
    return np.ceil(rank * n / max(float(rank.max()), 1.0)) - 1


def commuters(made: CountedCity | None = None) -> Case:
    """The project's simulated city: 8 x 8 cells, a week by the hour, 3,000 people."""
    made = made or simulate_city(random_state=0)
    run = np.zeros(len(made.times), dtype=np.int64)
    table = _table(made.counts, made.times, run, "Asia/Tokyo", MeshSettings(codes=made.codes))
    return _by_slot(table, made.moves)


def city(population: int, *, by_hour: bool = False, days: int = 30, seed: int = 0) -> Case:
    """100 cells of one kilometre, half-hour steps, moves to the eight neighbours.

    Neighbours attract by a weight of their own and fall with distance, each pair of cells has a
    taste besides, and a fifth of the people move in a step. With ``by_hour`` attraction and
    movement change through the day: to the centre in the morning, outwards in the evening.
    """
    rng = np.random.default_rng(seed)
    n, steps = CITY_SIDE**2, 48
    row, col = np.divmod(np.arange(n), CITY_SIDE)
    apart = np.hypot(row[:, None] - row, col[:, None] - col)
    homes = np.exp(rng.normal(0, 0.8, n))
    jobs = np.exp(rng.normal(0, 1.0, n) - ((row - 4.5) ** 2 + (col - 4.5) ** 2) / 12) + 0.02
    taste, stay = np.exp(rng.normal(0, OWN_TASTE, (n, n))), rng.normal(0, 0.2, n)
    transmats = []
    for step in range(steps if by_hour else 1):
        hour = step / 2
        morning = np.exp(-((hour - 8.5) ** 2) / 4) if by_hour else 0.5
        evening = np.exp(-((hour - 18) ** 2) / 6) if by_hour else 0.5
        weight = morning * jobs / jobs.mean() + evening * homes / homes.mean() + 0.15
        moving = 0.02 + 0.25 * max(morning, evening) if by_hour else 1 - STAYING
        going = weight * np.exp(-apart / 1.5) * taste * ((apart > 0) & (apart < 1.5))
        going /= going.sum(axis=1, keepdims=True)
        staying = np.clip(1 - moving * np.exp(stay), 0.05, 1.0)
        transmats.append(np.diag(staying) + (1 - staying)[:, None] * going)
    counts = np.empty((days, steps, n), dtype=np.int64)
    by_pair = np.zeros((days, steps, n, n))
    counts[:, 0] = rng.multinomial(population, homes / homes.sum(), size=days)
    for step in range(steps - 1):
        splits = rng.multinomial(counts[:, step], transmats[step % len(transmats)])
        by_pair[:, step], counts[:, step + 1] = splits, splits.sum(axis=1)
    times = pd.date_range("2024-04-01", periods=days * steps, freq="30min", tz="UTC")
    # Days are drawn one by one: nobody walks across midnight.
    run = np.repeat(np.arange(days), steps)
    grid = GridSettings(*CITY_BOX, CITY_SIDE, CITY_SIDE)
    table = _table(counts.reshape(-1, n), times, run, "UTC", grid)
    return _by_slot(table, by_pair.reshape(-1, n, n)[:-1])


CASES: dict[str, Callable[[], Case]] = {
    "tokyo 5x5": lambda: tokyo(5),
    "tokyo 5x5, one day": lambda: tokyo(5, one_day=True),
    "tokyo 10x10": lambda: tokyo(10),
    "tokyo 20x20": lambda: tokyo(20),
    "tokyo 10x10, come and go": lambda: tokyo(10, everybody=True),
    "bikes": bikes,
    "bike zones": bike_zones,
    "commuters": commuters,
    "city of 10,000": lambda: city(10_000),
}
"""Cases by name."""


def miscounted(table: CountTable, error: float, rng: np.random.Generator) -> CountTable:
    """The table with counts that err by a share of themselves, whole numbers."""
    wrong = table.counts * (1 + error * rng.standard_normal(table.counts.shape))
    return replace(table, counts=np.rint(np.maximum(wrong, 0.0))) if error else table


def scaled_up(case: Case, share: int, rng: np.random.Generator) -> CountTable:
    """The counts of one in ``share`` people, who are followed from beginning to end, times that.

    Of those who go from a cell each is as likely to be one of them.
    """
    assert case.by_pair is not None, "who is followed has to be known pair by pair"
    counts = np.empty(case.table.counts.shape)
    there = rng.binomial(case.table.counts[0].astype(np.int64), 1 / share)
    counts[0] = there
    for p, moves in enumerate(np.rint(case.by_pair).astype(np.int64)):
        going = [
            rng.multivariate_hypergeometric(row, min(int(n), int(row.sum())))
            for row, n in zip(moves, there, strict=True)
        ]
        there = np.sum(going, axis=0)
        counts[p + 1] = there
    return replace(case.table, counts=counts * share)


def suppressed(table: CountTable, below: float) -> CountTable:
    """The table as an operator gives it who suppresses counts below a number, zeros too."""
    status = np.where(table.counts < below, SUPPRESSED, PUBLISHED).astype(np.uint8)
    counts = np.where(status == SUPPRESSED, np.nan, table.counts)
    return replace(table, counts=counts, status=status, suppressed_below=below)


def blanks_as_zero(table: CountTable) -> CountTable:
    """What becomes of it where what is suppressed is taken for zero."""
    counts = np.where(table.status == SUPPRESSED, 0.0, table.counts)
    status = np.full_like(table.status, PUBLISHED)
    return replace(table, counts=counts, status=status, suppressed_below=0.0)
