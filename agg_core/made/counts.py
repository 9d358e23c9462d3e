"""A made-up city whose people are only counted: true moves known, files as publishers make them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError

__all__ = ["CountedCity", "docomo_csv", "mlit_csv", "simulate_city"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ZONE = "Asia/Tokyo"
PARENT = "533945"
"""The mesh cell of 10 km that the city lies in; its cells of 1 km are 10 x 10."""
SIDE = 10
CELL_KM = (0.925, 1.13)
"""Height and width of a cell."""
REACH_KM = 3.0
"""Distance over which a cell's attraction falls to a third (1 / e)."""
CENTRE_KM = 1.5

STAY_AT_NIGHT, TO_WORK, BY_DAY, HOME = 0.01, 0.35, 0.08, 0.30
"""Share of people who move within an hour: at night, in the morning, by day, in the evening."""
CITY_CODES = ("13101", "13102")
NIGHT_HOURS, DAY_HOURS = range(1, 5), range(11, 15)
EVERY_FIFTH = 5


@dataclass(frozen=True)
class CountedCity:
    """People in c cells at n hours: ``counts`` (n, c), and ``moves`` (n - 1, c, c) between them.

    ``moves[t, i, j]`` people were in cell i at t and in cell j at t + 1; rows sum to ``counts[t]``
    and columns to ``counts[t + 1]``. ``transition`` (24, c, c) are the chances by local hour that
    they were drawn from. ``times`` are UTC.
    """

    codes: tuple[str, ...]
    times: pd.DatetimeIndex
    counts: IntArray
    moves: IntArray
    transition: FloatArray

    @property
    def local(self) -> pd.DatetimeIndex:
        """The hours on the clock of the city, without a zone."""
        return self.times.tz_convert(ZONE).tz_localize(None)


def simulate_city(
    rows: int = 8,
    cols: int = 8,
    days: int = 7,
    people: int = 3_000,
    *,
    start: str = "2024-04-01",
    random_state: int | np.random.Generator | None = 0,
) -> CountedCity:
    """Days of people who go to the centre in the morning and outwards in the evening, by the hour.

    Where a person goes depends on the hour and on the cell they are in, on nothing else: people of
    a cell are drawn at random (a Markov chain with a transition matrix per hour).

    Raises
    ------
    InputError
        If the city would be larger than 10 x 10 cells, or smaller than one.
    """
    if not (1 <= rows <= SIDE and 1 <= cols <= SIDE and days >= 1 and people >= 0):
        raise InputError(
            "A city has 1 to 10 rows and columns of cells, a day and some people.",
            code="value-out-of-range",
        )
    rng = np.random.default_rng(random_state)
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"), -1)
    km = np.asarray(places.reshape(-1, 2) * CELL_KM, dtype=np.float64)
    homes, jobs = _attractions(km)
    transition = np.stack([_transition(km, homes, jobs, hour) for hour in range(24)])
    n = 24 * days
    counts = np.empty((n, len(km)), dtype=np.int64)
    moves = np.empty((n - 1, len(km), len(km)), dtype=np.int64)
    counts[0] = rng.multinomial(people, homes)
    for t in range(n - 1):
        moves[t] = rng.multinomial(counts[t], transition[t % 24])
        counts[t + 1] = moves[t].sum(axis=0)
    times = pd.date_range(start, periods=n, freq="h", tz=ZONE).tz_convert("UTC")
    codes = tuple(f"{PARENT}{row}{col}" for row in range(rows) for col in range(cols))
    return CountedCity(codes, times, counts, moves, transition)


def _attractions(km: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Share of homes and of jobs in each cell: jobs in the middle, homes about it."""
    from_centre = np.hypot(*(km - (km.min(axis=0) + km.max(axis=0)) / 2).T)
    jobs = np.exp(-((from_centre / CENTRE_KM) ** 2)) + 0.02
    homes = 0.3 + from_centre / max(float(from_centre.max()), 1.0)
    return homes / homes.sum(), jobs / jobs.sum()


def _transition(km: FloatArray, homes: FloatArray, jobs: FloatArray, hour: int) -> FloatArray:
    """Chances (c, c) from each cell to each other within the hour that begins now."""
    if 6 <= hour < 10:
        moving, towards = TO_WORK, jobs
    elif 10 <= hour < 16:
        moving, towards = BY_DAY, (homes + jobs) / 2
    elif 16 <= hour < 22:
        moving, towards = HOME, homes
    else:
        moving, towards = STAY_AT_NIGHT, homes
    apart = np.hypot(*(km[:, None] - km[None]).transpose(2, 0, 1))
    going = towards * np.exp(-apart / REACH_KM)
    going /= going.sum(axis=1, keepdims=True)
    chances = (1 - moving) * np.eye(len(km)) + moving * going
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def docomo_csv(city: CountedCity, below: int = 10, *, by_gender: bool = False) -> str:
    """The counts as Mobile Spatial Statistics are delivered; those below a number are left out.

    Columns date, time (hhmm), area, residence, age, gender, population; -1 is not broken down.
    ``by_gender`` adds rows of women and men, halves of each count.
    """
    local = city.local
    table = pd.DataFrame(city.counts, columns=pd.Index(city.codes, name="area"))
    table.insert(0, "date", local.strftime("%Y%m%d"))
    table.insert(1, "time", local.strftime("%H%M"))
    long = table.melt(["date", "time"], var_name="area", value_name="population")
    long[["residence", "age", "gender"]] = -1
    if by_gender:
        half = long["population"] // 2
        women = long.assign(gender=2, population=half)
        men = long.assign(gender=1, population=long["population"] - half)
        long = pd.concat([long, men, women])
    kept = long[long["population"] >= below].sort_values(["date", "time", "area"], kind="stable")
    columns = ["date", "time", "area", "residence", "age", "gender", "population"]
    return kept[columns].to_csv(index=False, lineterminator="\n")


def mlit_csv(city: CountedCity, below: int = 10) -> str:
    """Means of a month's nights and days, as the ministry's people-flow data are laid out.

    Columns mesh1kmid, prefcode, citycode, year, month, dayflag (0 holiday, 1 weekday, 2 all),
    timezone (0 day 11-15, 1 night 01-05, 2 all hours), population. Every fifth cell lies in two
    cities and has a row for each; rows below a number are left out.
    """
    local = city.local
    long = pd.DataFrame(city.counts, columns=pd.Index(city.codes)).assign(
        year=local.year,
        month=local.month,
        dayflag=(local.day_of_week < 5).astype(int),
        timezone=np.select(
            [np.isin(local.hour, DAY_HOURS), np.isin(local.hour, NIGHT_HOURS)], [0, 1], -1
        ),
    )
    parts = [
        _means(long, kind, period)
        for kind in (0, 1, 2) for period in (0, 1, 2)
    ]  # fmt: skip
    found = pd.concat([part for part in parts if len(part)], ignore_index=True)
    both = _in_two_cities(found)
    kept = both[both["population"] >= below]
    columns = [
        *("mesh1kmid", "prefcode", "citycode", "year", "month", "dayflag", "timezone"),
        "population",
    ]
    return kept.sort_values(columns[:7])[columns].to_csv(index=False, lineterminator="\n")


def _means(hours: pd.DataFrame, kind: int, period: int) -> pd.DataFrame:
    """Mean count per month and cell over the hours of a kind of day and a period; 2 is all."""
    chosen = hours
    if kind != 2:
        chosen = chosen[chosen["dayflag"] == kind]
    if period != 2:
        chosen = chosen[chosen["timezone"] == period]
    means = chosen.drop(columns=["dayflag", "timezone"]).groupby(["year", "month"]).mean()
    long = means.round().astype(int).reset_index()
    return long.melt(["year", "month"], var_name="mesh1kmid", value_name="population").assign(
        dayflag=kind, timezone=period
    )


def _in_two_cities(table: pd.DataFrame) -> pd.DataFrame:
    """Each row with its city; those of every fifth cell as two, a third and two thirds of it."""
    codes = sorted(table["mesh1kmid"].unique())
    shared = table["mesh1kmid"].isin(codes[::EVERY_FIFTH])
    one = table.assign(prefcode=CITY_CODES[0][:2], citycode=CITY_CODES[0])
    third = table["population"] // 3
    first = one.assign(population=(table["population"] - third).where(shared, one["population"]))
    other = one.assign(citycode=CITY_CODES[1], population=third)[shared]
    return pd.concat([first, other], ignore_index=True)
