"""The learner of flows from counts as a process of its own, and its result in files."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from agg_core.counting.identify import Identifiability
from agg_core.counting.study import CountProgress, CountStudy, count_study_steps
from agg_core.counts import open_counts
from agg_core.errors import InputError
from agg_core.flows import cell_totals
from agg_core.jobs import Job, Kind, launch, main
from agg_core.runs import write_json
from agg_core.settings import CountLearnSettings, StudySettings

__all__ = [
    "COUNTS",
    "CountJobSettings",
    "CountStep",
    "CountedFlows",
    "load_counted",
    "save_counted",
    "start_counting",
]

INPUT = "counts.parquet"
FIRST_ARROWS = 40
"""Arrows of a first picture, about, where the threshold of the settings leaves none."""
TABLES = ("flows", "day_flows", "candidates", "held_out")
ARRAYS = ("transmats", "people")
NAMES = ("slots", "cells")
PLAIN = (
    *("has_outside", "learner", "choice", "n_pairs", "n_days", "n_left_out", "n_filled"),
    "wall_s",
)


@dataclass(frozen=True)
class CountJobSettings:
    """Settings of the learner, as a job writes and reads them."""

    learn: CountLearnSettings

    def to_dict(self) -> dict[str, Any]:
        """In plain JSON types."""
        return asdict(self.learn)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        return cls(CountLearnSettings(**values))


@dataclass(frozen=True)
class CountStep:
    """How far the learner is: what it does, in words, and the share of all work done."""

    stage: str
    message: str
    share: float


@dataclass(frozen=True)
class CountedFlows:
    """What was learned from counts, as the page of flows shows it."""

    study: CountStudy

    @property
    def names(self) -> tuple[str, ...]:
        """Names by the number of a state; the last is outside, if there is such a state."""
        cells = self.study.cells
        return (*cells, "outside") if self.study.has_outside else cells

    @property
    def slots(self) -> tuple[int, ...]:
        """Times of day, as indices into those of the study, at which a step begins."""
        return tuple(int(slot) for slot in np.unique(self.study.flows["slot"]))

    def table(self, slot: int | None) -> pd.DataFrame:
        """Origin, dest, count, low, high, resolved at a time of day, or over the whole day."""
        return self.study.rows(slot)

    @property
    def first_threshold(self) -> float:
        """The threshold of the settings; where no flow of the whole day exceeds it, a lower one."""
        asked = self.study.settings.threshold
        counts = self._arrows(None).nlargest(FIRST_ARROWS)
        if counts.empty or counts.iloc[0] > asked or counts.iloc[-1] <= 0:
            return asked
        least = float(counts.iloc[-1])
        size = 10.0 ** math.floor(math.log10(least))
        return math.floor(least / size) * size

    @property
    def flow_scale(self) -> float:
        """Most people in one flow between two cells at any time."""
        largest = (self._arrows(slot).to_numpy().max(initial=0.0) for slot in (None, *self.slots))
        return max(largest) or 1.0

    def total_scale(self, column: str) -> float:
        """Largest size of a total of `agg_core.flows.cell_totals` at any time."""
        n = self.study.n_cells
        tables = (self.table(slot) for slot in (None, *self.slots))
        return max(float(cell_totals(table, n)[column].abs().max()) for table in tables) or 1.0

    def _arrows(self, slot: int | None) -> pd.Series[float]:
        """Counts of the flows that have an arrow: moves between two cells."""
        flows, n = self.table(slot), self.study.n_cells
        inside = (flows["origin"] < n) & (flows["dest"] < n)
        return flows.loc[inside & (flows["origin"] != flows["dest"]), "count"]


def _steps(settings: CountJobSettings, folder: Path) -> Iterator[CountStep | CountedFlows]:
    table = open_counts(folder / INPUT)
    for step in count_study_steps(table, settings.learn):
        if isinstance(step, CountProgress):
            yield CountStep(step.stage, step.message, step.done)
        else:
            yield CountedFlows(step)


def save_counted(found: CountedFlows, folder: Path) -> None:
    """Write what was learned into a new folder, which is there when all is written."""
    study, partial = found.study, folder.with_name(f".{folder.name}")
    partial.mkdir()
    for name in TABLES:
        getattr(study, name).to_parquet(partial / f"{name}.parquet", index=False)
    arrays = {name: getattr(study, name) for name in ARRAYS}
    np.savez_compressed(partial / "arrays.npz", **arrays)
    grid = None if study.grid is None else StudySettings(grid=study.grid).to_dict()
    about = {name: getattr(study, name) for name in (*PLAIN, *NAMES)} | {
        "settings": asdict(study.settings),
        "grid": grid,
        "identifiability": asdict(study.identifiability),
    }
    # Numbers of numpy become plain ones.
    write_json(partial / "study.json", json.loads(json.dumps(about, default=lambda n: n.item())))
    partial.rename(folder)


def load_counted(folder: Path) -> CountedFlows:
    """Read what `save_counted` wrote.

    Raises
    ------
    InputError
        If a file is missing or damaged.
    """
    try:
        about = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        tables: dict[str, Any] = {
            name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES
        }
        with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in ARRAYS}
        lists: dict[str, Any] = {name: tuple(about[name]) for name in NAMES}
        grid, known = about["grid"], about["identifiability"]
        study = CountStudy(
            settings=CountLearnSettings(**about["settings"]),
            grid=None if grid is None else StudySettings.from_dict(grid).grid,
            identifiability=Identifiability(**known | {"alike": tuple(map(tuple, known["alike"]))}),
            **{name: about[name] for name in PLAIN},
            **lists,
            **tables,
            **arrays,
        )
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as fault:
        raise InputError(
            "What was learned from the counts cannot be read; run the learner again."
        ) from fault
    return CountedFlows(study)


COUNTS: Kind[CountJobSettings, CountStep, CountedFlows] = Kind(
    "counts", CountJobSettings, CountStep, _steps, save_counted
)


def start_counting(settings: CountJobSettings, folder: Path, counts: Path) -> Job[CountStep]:
    """Begin to learn from a file of counts in a new process; ``folder`` must not exist yet."""
    folder.mkdir(mode=0o700)
    # A copy: the session may open other data before the process has read it.
    shutil.copyfile(counts, folder / INPUT)
    return launch(COUNTS, settings, folder, "ui.counts_job")


if __name__ == "__main__":
    main(COUNTS, Path(sys.argv[1]))
