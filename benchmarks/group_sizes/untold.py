"""What is not told: the weight of the prior and the noise of fixes, left to the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from agg_core.io import read_trajectories
from agg_core.made.counts import simulate_city
from agg_core.space.settings import GridSettings
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.tables.trajectories import Trajectories
from benchmarks.group_sizes.tables import (
    FloatArray,
    IntArray,
    Row,
    Table,
    attempted,
    real_data,
)
from benchmarks.group_sizes.tokyo import TokyoSettings

__all__ = [
    "LEARNED",
    "TOLD",
    "UNTOLD",
    "UntoldSettings",
    "city_cells",
    "city_people",
    "hourly_fixes",
    "measure",
    "study_of",
    "tokyo_people",
    "walked",
]

CITY = GridSettings(139.62, 35.66, 139.72, 35.73, 8, 8)
TOLD, LEARNED = "told", "auto"
"""Learners of the table: the noise as it was made, and everything left to the data."""


@dataclass(frozen=True)
class UntoldSettings:
    """Fixes of ``people`` are misplaced with chance ``misclassify``; each seed draws anew.

    ``cases`` are the simulated city of 64 cells in its morning, with so many ``people``, and Tokyo
    as in the table tokyo.
    """

    learners: tuple[str, ...] = (TOLD, LEARNED)
    cases: tuple[str, ...] = ("city", "tokyo")
    n_seeds: int = 5
    group_sizes: tuple[int, ...] = (1, 20, 100)
    misclassify: tuple[float, ...] = (0.0, 0.05, 0.15)
    people: int = 6_000
    iterations: int = 60


def measure(settings: UntoldSettings) -> Iterator[Row]:
    """CPC and total_ratio against the flows counted before the noise, and what was learned."""
    for case in settings.cases:
        tokyo = tokyo_people() if case == "tokyo" else None
        for noise, size, seed in product(
            settings.misclassify, settings.group_sizes, range(settings.n_seeds)
        ):
            people = tokyo or city_people(settings.people, seed)
            for learner in settings.learners:
                study = study_of(settings, case, noise, size, seed, learned=learner == LEARNED)
                yield attempted(
                    {
                        "case": case, "misclassify": noise, "group_size": size, "seed": seed,
                        "learner": learner,
                    },
                    _figures, people, study,
                )  # fmt: skip


def tokyo_people() -> Trajectories:
    """People of Tokyo who were seen all day."""
    path = real_data("tokyo_people_flow/tokyo_1000users_20min.csv")
    return read_trajectories(path, where={"full_day": "1"})


def city_cells(n: int, seed: int, length: int = 3) -> IntArray:
    """Cells (n, length) of people who go through the simulated city by its morning's chances."""
    city = simulate_city(8, 8, days=1, people=1)
    rng = np.random.default_rng([seed, 99])
    at = np.full(64, 1 / 64)
    for hour in range(8):
        at = at @ city.transition[hour]
    first = rng.choice(64, n, p=at / at.sum())
    return walked(first, [city.transition[7 + t] for t in range(1, length)], rng)


def walked(first: IntArray, chances: Sequence[FloatArray], rng: np.random.Generator) -> IntArray:
    """Cells (n, T) of people who are in ``first`` (n,) and go by chances (d, d) of each step."""
    cells: IntArray = np.empty((len(first), len(chances) + 1), dtype=np.int64)
    cells[:, 0] = first
    for t, moves in enumerate(chances, start=1):
        running = np.cumsum(moves, axis=1)[cells[:, t - 1]]
        draw = rng.random(len(first))[:, None] * running[:, -1:]
        cells[:, t] = (draw >= running).sum(axis=1)
    return cells


def city_people(n: int, seed: int) -> Trajectories:
    """The same people with a fix an hour, in the middle of their cells."""
    cells = city_cells(n, seed)
    return hourly_fixes(cells, CITY.make().centroids[cells.ravel()])


def hourly_fixes(cells: IntArray, places: FloatArray) -> Trajectories:
    """People in cells (n, T) with a fix an hour at places (n T, 2) in degrees, person by person."""
    person, hour = (index.ravel() for index in np.indices(cells.shape))
    return read_trajectories(
        pd.DataFrame(
            {
                "user_id": person,
                # Windows of three hours begin at midnight, in UTC and in Tokyo.
                "time": pd.Timestamp("2024-04-01T09:30Z") + pd.to_timedelta(hour, unit="h"),
                "lon": places[:, 0],
                "lat": places[:, 1],
            }
        )
    )


def study_of(
    settings: UntoldSettings, case: str, noise: float, size: int, seed: int, *, learned: bool
) -> StudySettings:
    """The study of a case, which is told the noise or has it ``learned``."""
    given = {} if learned else {"noise": "given", "assumed": noise}
    learn = LearnSettings(
        group_size=size,
        misclassify=noise,
        iterations=settings.iterations,
        replicates=0,
        seed=seed,
        **given,
    )
    if case == "city":
        return StudySettings(CITY, WindowSettings(60, 3), learn)
    tokyo = TokyoSettings().study(size, noise, seed)
    return StudySettings(tokyo.grid, tokyo.window, learn)


def _figures(people: Trajectories, study: StudySettings) -> Row:
    *_, result = study_steps(people, study)
    assert isinstance(result, StudyResult)
    assert result.noise is not None
    fit = result.by_time[0].estimate
    return {
        "cpc": result.vs_counted.cpc,
        "total_ratio": result.vs_counted.total_ratio,
        "share": result.noise.groups,
        "prior": float("nan") if fit.prior is None else fit.prior,
        "seconds": result.wall_s,
    }


UNTOLD = Table(
    name="untold",
    title="Weight of the prior and noise left to the data: moves learned against the moves counted",
    settings=UntoldSettings,
    measure=measure,
    case=("case", "misclassify", "group_size", "seed"),
    groupings=(("case", "misclassify", "group_size"),),
    figures=("cpc", "total_ratio", "share", "prior", "seconds"),
)
