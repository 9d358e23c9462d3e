"""Every compiled kernel made ready once, by learning from a tiny city with each learner.

Kernels are compiled when they are first called, which takes up to a minute, and kept beside their
source, or in the folder that NUMBA_CACHE_DIR names. What is called here is the work of jobs, with
settings of few iterations, so that a kernel meets the types that a job will give it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from agg_core.base.errors import UnreachableError
from agg_core.base.processes import write_json
from agg_core.base.warmth import n_kernels_kept, record_warm
from agg_core.io import read_trajectories
from agg_core.io.counts import read_counts
from agg_core.learn.estimator import AggregateHMM
from agg_core.learn.table import AUTO, LEARNERS, PAPERS
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import HMM
from agg_core.space.settings import GridSettings
from agg_core.store.jobs import COUNTS, INPUT, SETTINGS, STUDY, Kind
from agg_core.study.settings import (
    CountLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
)
from agg_core.tables.counts import write_counts
from agg_core.tables.trajectories import write_canonical

__all__ = ["tiny_work", "warm"]

N_PEOPLE, N_SIDE, N_HOURS = 60, 3, 48
GROUP_SIZE, ITERATIONS, WORLDS = 5, 3, 2
REACH_M = 100_000.0
PEOPLE_PER_CELL = (2.0, 100.0)
"""So few that who went where is drawn, so many that counts are near normal."""


@dataclass(frozen=True)
class _Work:
    """A job on tiny data: its kind, its settings, and the data by the writer of its file."""

    name: str
    kind: Kind[Any, Any, Any]
    settings: Any
    data: Any

    def run(self, folder: Path) -> None:
        """Do it as the process of a job does, in a folder that does not exist yet."""
        folder.mkdir()
        if self.kind is COUNTS:
            write_counts(self.data, folder / INPUT)
        else:
            write_canonical(self.data, folder / INPUT)
        write_json(folder / SETTINGS, self.settings.to_dict())
        self.kind.run(folder)


@dataclass(frozen=True)
class _Refused:
    """Learning from somebody who makes a move that cannot be, of which a kernel finds the step."""

    name: str
    as_sparse: bool

    def run(self, folder: Path) -> None:
        """Learn until it is refused; leaves the folder empty."""
        folder.mkdir()
        stays = np.eye(2)
        start = HMM.categorical(
            np.full(2, 0.5), sparse.csr_array(stays) if self.as_sparse else stays, stays
        )
        moved = aggregate(np.array([[0, 1]]), 1, 2)
        try:
            AggregateHMM(2, inference=PAPERS, init=start, fixed=("emission",)).fit(moved)
        except UnreachableError:
            return
        raise AssertionError("nobody can have moved")


def warm() -> int:
    """Compile and keep every kernel; returns how many are kept.

    Raises
    ------
    InputError
        If they cannot be kept.
    """
    with tempfile.TemporaryDirectory(prefix="flows-warm-") as scratch:
        for number, work in enumerate(tiny_work()):
            work.run(Path(scratch) / str(number))
    record_warm(_cache_folders())
    return n_kernels_kept()


def tiny_work() -> Iterator[_Work | _Refused]:
    """Jobs that together call every kernel with the types that jobs of the pages give it."""
    people = read_trajectories(_fixes())
    grid = GridSettings(139.0, 35.0, 139.3, 35.3, N_SIDE, N_SIDE)
    window = WindowSettings(step_minutes=60, length=3, times=("08:00",))
    shared = LearnSettings(
        group_size=GROUP_SIZE, iterations=ITERATIONS, replicates=0, threshold=1.0, sigma_m=500.0
    )
    given = replace(shared, noise="given", strength="given")

    def study(name: str, learn: LearnSettings) -> _Work:
        return _Work(name, STUDY, StudySettings(grid, window, learn), people)

    yield study("best", replace(shared, replicates=WORLDS))
    yield study("best, positions", replace(shared, observed="positions"))
    for row in LEARNERS.own.values():
        if row.name == AUTO or not row.groups:
            continue
        for observed in ("cells", "positions"):
            if observed == "cells" or "positions" in row.observes:
                chosen = replace(given, inference=row.name, observed=observed)
                yield study(f"{row.name}, {observed}", chosen)
        if row.near:
            near = replace(shared, inference=row.name, replicates=WORLDS, reach_m=REACH_M)
            yield study(f"{row.name}, within a reach", near)
        if row.calibrated:
            yield study(f"{row.name}, calibrated", replace(given, inference=row.name, calibrate=1))
    for as_sparse in (False, True):
        yield _Refused(f"refused, {'sparse' if as_sparse else 'whole'}", as_sparse)
    settings = CountLearnSettings(replicates=WORLDS)
    for mean in PEOPLE_PER_CELL:
        table = read_counts(_counts(mean))
        yield _Work(f"counts of {mean:g} people", COUNTS, settings, table)
    within = replace(settings, reach_m=REACH_M)
    yield _Work("counts within a reach", COUNTS, within, table)


# ------------------------------------------------------------------------------- tiny data


def _walks(n_people: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Cells of people at each hour, (n_people, N_HOURS): half of the time they stay."""
    rng = np.random.default_rng(0)
    cells = rng.integers(N_SIDE**2, size=(n_people, N_HOURS))
    for hour in range(1, N_HOURS):
        stays = rng.random(n_people) < 0.5
        cells[stays, hour] = cells[stays, hour - 1]
    return cells


def _fixes() -> pd.DataFrame:
    """A fix for each person and hour, in UTC."""
    cells = _walks(N_PEOPLE)
    person, hour = (axis.ravel() for axis in np.indices(cells.shape))
    row, col = np.divmod(cells.ravel(), N_SIDE)
    return pd.DataFrame(
        {
            "user_id": [f"p{number}" for number in person],
            "time": pd.Timestamp("2024-05-01T00:10Z") + pd.to_timedelta(hour, unit="h"),
            "lon": 139.05 + 0.1 * col,
            "lat": 35.05 + 0.1 * row,
        }
    )


def _counts(people_per_cell: float) -> pd.DataFrame:
    """People in each cell of a named grid at each hour, so many in the mean."""
    cells = _walks(round(people_per_cell * N_SIDE**2))
    present = np.stack([(cells == cell).sum(axis=0) for cell in range(N_SIDE**2)], axis=1)
    hour, cell = (axis.ravel() for axis in np.indices(present.shape))
    row, col = np.divmod(cell, N_SIDE)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2024-05-01T00:00Z") + pd.to_timedelta(hour, unit="h"),
            "cell": [f"c{number}" for number in cell],
            "lon": 139.05 + 0.1 * col,
            "lat": 35.05 + 0.1 * row,
            "count": present.ravel(),
        }
    )


def _cache_folders() -> set[str]:
    """Folders in which kernels of the modules that are loaded are kept."""
    from numba.core.dispatcher import Dispatcher  # noqa: PLC0415

    modules = [module for name, module in sys.modules.items() if name.startswith("agg_core.")]
    return {
        str(kernel.stats.cache_path)
        for module in modules
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher) and kernel.stats.cache_path
    }
