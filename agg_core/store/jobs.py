"""Long work as a process of its own, known by the files in its folder.

A page starts a job, then only reads: the work goes on while the person changes the page, and a
cancelled or killed job leaves nothing half-written. A job is of a kind (`STUDY`, `COUNTS`,
`EXPERIMENT`, `TEACHING`), which says what runs and how its result is saved. The folder holds
``settings.json``, ``progress.json``, ``log.txt`` with what went wrong unforeseen, and at the end
``result/`` or ``fault.json``; where there is data to learn from also ``input.parquet``, perhaps
``remembered.json`` of an earlier result, and that of a study ``history.csv``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import pandas as pd

from agg_core.base.engine import LOCAL, use_engine
from agg_core.base.errors import InputError
from agg_core.base.processes import (
    PROGRESS,
    Process,
    State,
    leaving_faults,
    start_program,
    write_json,
)
from agg_core.lab.experiments import LabProgress, LabResult, LabSettings, lab_steps
from agg_core.lab.teaching import TeachingProgress, TeachingResult, TeachingSettings, teaching_steps
from agg_core.store.codec import (
    REMEMBERED_FILE,
    remembered_of,
    save_lab,
    save_result,
    save_teaching,
)
from agg_core.study.counts import CountProgress, CountStudy, count_study_steps
from agg_core.study.people import Progress, StudyResult, study_steps
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.tables.counts import open_counts
from agg_core.tables.trajectories import Trajectories, read_canonical, write_canonical

__all__ = [
    "COUNTS",
    "EXPERIMENT",
    "KINDS",
    "STUDY",
    "TEACHING",
    "Job",
    "JobStatus",
    "Kind",
    "main",
    "start_job",
]

INPUT = "input.parquet"
SETTINGS = "settings.json"
HISTORY = "history.csv"
LOG = "log.txt"
RESULT = "result"

PACE_S = 3.0
"""Seconds of work before its pace says anything."""

UNEXPECTED = (
    "The work stopped unexpectedly, perhaps for want of memory; try fewer blocks, states or people."
)


def _unexpected() -> InputError:
    return InputError(UNEXPECTED, code="work-stopped")


class StepOfWork(Protocol):
    """What a job reports on its way: fields of a dataclass, and the share of all work done."""

    @property
    def share(self) -> float: ...


class JobSettings(Protocol):
    """Settings that are written for the process and read there."""

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, values: dict[str, Any], /) -> Self: ...


Settings = TypeVar("Settings", bound=JobSettings)
Step = TypeVar("Step", bound=StepOfWork)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Kind(Generic[Settings, Step, Result]):
    """A kind of job: what it is called, its settings and steps, what runs, how it is saved.

    ``steps`` takes the settings and the job's folder and yields steps, and the result at the end;
    ``history`` makes a line of ``history.csv`` of a step.
    """

    name: str
    settings: type[Settings]
    step: type[Step]
    steps: Callable[[Settings, Path], Iterator[Step | Result]]
    save: Callable[[Result, Path], None]
    history: Callable[[Step], str] | None = None

    def run(self, folder: Path) -> None:
        """Do the work of a job folder, in the process that asks, and leave its files.

        Raises
        ------
        InputError
            If the settings or the input cannot be used.
        """
        values = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        for step in self.steps(self.settings.from_dict(values), folder):
            if isinstance(step, self.step):
                if self.history is not None:
                    with (folder / HISTORY).open("a", encoding="utf-8") as history:
                        history.write(self.history(step))
                write_json(folder / PROGRESS, asdict(step))  # type: ignore[call-overload]  # a dataclass
            else:
                self.save(step, folder / RESULT)  # type: ignore[arg-type]  # the only other


def _study_steps(settings: StudySettings, folder: Path) -> Iterator[Progress | StudyResult]:
    return study_steps(read_canonical(folder / INPUT), settings, remembered_of(folder))


def _count_steps(
    settings: CountLearnSettings, folder: Path
) -> Iterator[CountProgress | CountStudy]:
    return count_study_steps(open_counts(folder / INPUT), settings, remembered_of(folder))


def _energy_line(step: Progress) -> str:
    if step.stage != "learning":
        return ""
    energy = step.free_energy / step.people
    return f"{step.time},{step.source},{step.iteration},{energy:.9g}\n"


STUDY = Kind("study", StudySettings, Progress, _study_steps, save_result, _energy_line)
COUNTS = Kind("counts", CountLearnSettings, CountProgress, _count_steps, save_result)
EXPERIMENT: Kind[LabSettings, LabProgress, LabResult] = Kind(
    "experiment", LabSettings, LabProgress, lambda settings, _: lab_steps(settings), save_lab
)
TEACHING: Kind[TeachingSettings, TeachingProgress, TeachingResult] = Kind(
    "teaching", TeachingSettings, TeachingProgress,
    lambda settings, _: teaching_steps(settings), save_teaching,
)  # fmt: skip

KINDS: dict[str, Kind[Any, Any, Any]] = {
    kind.name: kind for kind in (STUDY, COUNTS, EXPERIMENT, TEACHING)
}
"""Every kind of job by its name."""


@dataclass(frozen=True)
class JobStatus(Generic[Step]):
    """What can be said of a job now; ``progress`` is None until the first step is done.

    ``message`` and ``code`` say why a job failed, as an `InputError` does; else they are empty.
    """

    state: State
    progress: Step | None
    message: str
    elapsed_s: float
    remaining_s: float | None
    """Seconds to go at most, at the pace since the first step; None until it is known."""
    code: str = ""


class Job(Process, Generic[Step]):
    """A process at work and its folder."""

    def __init__(
        self, kind: Kind[Any, Step, Any], folder: Path, process: subprocess.Popen[bytes]
    ) -> None:
        super().__init__(process, folder, RESULT, _unexpected())
        self.kind = kind
        self._began = time.monotonic()
        self._ended: float | None = None
        self._paced: tuple[float, float] | None = None

    @property
    def result_folder(self) -> Path:
        """Where the result lies once the job is done."""
        return self.folder / RESULT

    def status(self) -> JobStatus[Step]:
        """Read the files: never blocks."""
        if self._process.poll() is not None and self._ended is None:
            self._ended = time.monotonic()
        elapsed = (self._ended or time.monotonic()) - self._began
        state, told = self.state, self.left(PROGRESS)  # the progress of an ended job is its last
        progress = None if told is None else self.kind.step(**told)
        remaining = self._remaining(progress, elapsed)
        if state == "failed":
            message, code = str(self.fault), self.fault.code
            return JobStatus(state, progress, message, elapsed, remaining, code)
        return JobStatus(state, progress, "", elapsed, remaining)

    def _remaining(self, progress: Step | None, elapsed: float) -> float | None:
        """Gridding and compiling come before the first step and do not come again."""
        if progress is None:
            return None
        if self._paced is None:
            self._paced = elapsed, progress.share
        since, share = elapsed - self._paced[0], progress.share - self._paced[1]
        return since * (1 - progress.share) / share if since > PACE_S and share > 0 else None

    def history(self) -> pd.DataFrame:
        """Free energy per person of every iteration so far: time, source, iteration, energy.

        Empty for a job that is no study.
        """
        path = self.folder / HISTORY
        columns = ["time", "source", "iteration", "energy"]
        if not path.exists():
            return pd.DataFrame(columns=columns)
        return pd.read_csv(path, names=columns, on_bad_lines="skip").dropna()


def start_job(
    kind: Kind[Settings, Step, Any],
    settings: Settings,
    folder: Path,
    data: Trajectories | Path | None = None,
    like: Path | None = None,
    engine: str = LOCAL,
) -> Job[Step]:
    """Begin work in a new process; ``folder`` must not exist yet.

    ``data`` is what is learned from: trajectories for a study, for counts a file that
    `write_counts` wrote, of which the job keeps a copy. What trials of the result in the folder
    ``like`` found is not tried again. The ``engine`` that does it is no part of the settings: the
    result is the same with any.
    """
    folder.mkdir(mode=0o700)
    if like is not None and (like / REMEMBERED_FILE).exists():
        shutil.copyfile(like / REMEMBERED_FILE, folder / REMEMBERED_FILE)
    if isinstance(data, Path):
        shutil.copyfile(data, folder / INPUT)
    elif data is not None:
        write_canonical(data, folder / INPUT)
    write_json(folder / SETTINGS, settings.to_dict())
    process = start_program("agg_core.store.jobs", kind.name, str(folder), engine, log=folder / LOG)
    return Job(kind, folder, process)


def main(kind: Kind[Any, Any, Any], folder: Path, engine: str = LOCAL) -> None:
    """What the process does: the work of a job folder, or why it could not be done."""
    with leaving_faults(folder, _unexpected()), use_engine(engine):
        kind.run(folder)


if __name__ == "__main__":
    main(KINDS[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
