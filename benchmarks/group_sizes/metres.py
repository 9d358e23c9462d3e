"""Positions whose own noise nobody tells: metres learned, told, or taken for none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.tables.flows import compare_flows
from agg_core.tables.trajectories import Trajectories
from benchmarks.group_sizes.tables import FloatArray, IntArray, Row, Table, attempted
from benchmarks.group_sizes.untold import CITY, LEARNED, TOLD, city_cells, hourly_fixes

__all__ = ["IGNORED", "METRES", "MetresSettings", "measure", "placed"]

IGNORED = "none"
"""Learner of the table that is told that positions are exact."""

N_STEPS = 3
THRESHOLD = 5.0
EDGE = 1e-6
"""Degrees within the border of the grid where those are put whom noise would take across it."""


@dataclass(frozen=True)
class MetresSettings:
    """People of the simulated city in the table untold, anywhere in their cells, by positions.

    The file itself holds noise of so many ``sides`` of a cell; the study adds none.
    """

    told: tuple[str, ...] = (TOLD, LEARNED, IGNORED)
    n_seeds: int = 3
    group_sizes: tuple[int, ...] = (1, 5)
    sides: tuple[float, ...] = (0.0, 0.3)
    people: int = 3_000
    iterations: int = 60


def measure(settings: MetresSettings) -> Iterator[Row]:
    """CPC and total_ratio against the flows of the cells that people were in, and the metres."""
    for sides, size, seed in product(settings.sides, settings.group_sizes, range(settings.n_seeds)):
        cells = city_cells(settings.people, seed, N_STEPS)
        people, truth = placed(cells, sides, seed), _flows(cells)
        for learner in settings.told:
            told = {TOLD: sides * _side(), IGNORED: 0.0}
            given: dict[str, Any] = (
                {} if learner == LEARNED else {"noise": "given", "assumed_m": told[learner]}
            )
            learn = LearnSettings(
                group_size=size, observed="positions", iterations=settings.iterations,
                replicates=0, seed=seed, **given,
            )  # fmt: skip
            study = StudySettings(CITY, WindowSettings(60, N_STEPS), learn)
            case = {"sides": sides, "group_size": size, "seed": seed, "learner": learner}
            yield attempted(case, _figures, people, study, truth)


def placed(cells: IntArray, sides: float, seed: int) -> Trajectories:
    """People who are anywhere in their cells (n, T), seen with noise of so many sides of one."""
    grid, rng = CITY.make(), np.random.default_rng([seed, 98])
    flat = cells.ravel()
    within = rng.uniform(-0.5, 0.5, (len(flat), 2))
    noise = rng.normal(0.0, sides * _side(), (len(flat), 2)) / grid.cell_size_m
    degrees = [(CITY.east - CITY.west) / CITY.cols, (CITY.north - CITY.south) / CITY.rows]
    least = [CITY.west + EDGE, CITY.south + EDGE]
    most = [CITY.east - EDGE, CITY.north - EDGE]
    places = np.clip(grid.centroids[flat] + (within + noise) * degrees, least, most)
    return hourly_fixes(cells, places)


def _side() -> float:
    return float(np.sqrt(np.mean(np.square(CITY.make().cell_size_m))))


def _flows(cells: IntArray) -> FloatArray:
    flows = np.zeros((CITY.rows * CITY.cols,) * 2)
    for now, then in zip(cells.T[:-1], cells.T[1:], strict=True):
        np.add.at(flows, (now, then), 1 / (cells.shape[1] - 1))
    return flows


def _figures(people: Trajectories, study: StudySettings, truth: FloatArray) -> Row:
    *_, result = study_steps(people, study)
    assert isinstance(result, StudyResult)
    assert result.noise is not None
    (only,) = result.by_time
    found = compare_flows(result.matrix(only.time), truth, THRESHOLD)
    return {
        "cpc": found.cpc,
        "total_ratio": found.total_ratio,
        "learned": result.noise.groups / _side(),
        "contradicted": float(bool(result.noise.told)),
        "seconds": result.wall_s,
    }


METRES = Table(
    name="metres",
    title="Noise of positions in the file, in sides of a cell: moves learned against the true ones",
    settings=MetresSettings,
    measure=measure,
    case=("sides", "group_size", "seed"),
    groupings=(("sides", "group_size"),),
    figures=("cpc", "total_ratio", "learned", "contradicted", "seconds"),
)
