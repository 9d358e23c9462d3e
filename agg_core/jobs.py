"""The learner as a process of its own, known by the files in its folder.

A page starts a job, then only reads: the work goes on while the person changes the page, and a
cancelled or killed job leaves nothing half-written. The folder holds ``input.parquet``,
``settings.json``, ``progress.json``, ``history.csv``, ``log.txt`` with what went wrong unforeseen,
and at the end ``result/`` or ``error.txt``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from agg_core.errors import InputError
from agg_core.runs import save_result, write_json
from agg_core.settings import StudySettings
from agg_core.study import Progress, StudyResult, study_steps
from agg_core.trajectories import Trajectories, read_canonical, write_canonical

__all__ = ["Job", "JobState", "JobStatus", "main", "start_job"]

JobState = Literal["running", "done", "failed", "cancelled"]

INPUT = "input.parquet"
SETTINGS = "settings.json"
PROGRESS = "progress.json"
HISTORY = "history.csv"
ERROR = "error.txt"
CANCELLED = "cancelled"
LOG = "log.txt"
RESULT = "result"

PACE_S = 3.0
"""Seconds of work before its pace says anything."""

UNEXPECTED = (
    "The learner stopped unexpectedly, perhaps for want of memory; try fewer blocks or people."
)


@dataclass(frozen=True)
class JobStatus:
    """What can be said of a job now; ``progress`` is None until the first iteration is done."""

    state: JobState
    progress: Progress | None
    message: str
    elapsed_s: float
    remaining_s: float | None
    """Seconds to go at most, at the pace since the first iteration; None until it is known."""


class Job:
    """A learner process and its folder."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._process = process
        self._began = time.monotonic()
        self._ended: float | None = None
        self._paced: tuple[float, float] | None = None

    @property
    def result_folder(self) -> Path:
        """Where the result lies once the job is done."""
        return self.folder / RESULT

    def status(self) -> JobStatus:
        """Read the files: never blocks."""
        running = self._process.poll() is None
        if not running and self._ended is None:
            self._ended = time.monotonic()
        elapsed = (self._ended or time.monotonic()) - self._began
        progress = _read_progress(self.folder / PROGRESS)
        state: JobState = "running"
        message = ""
        if self.result_folder.exists():
            state = "done"
        elif (self.folder / CANCELLED).exists():
            state = "cancelled"
        elif (self.folder / ERROR).exists():
            state, message = "failed", (self.folder / ERROR).read_text(encoding="utf-8")
        elif not running:
            state, message = "failed", UNEXPECTED
        return JobStatus(state, progress, message, elapsed, self._remaining(progress, elapsed))

    def _remaining(self, progress: Progress | None, elapsed: float) -> float | None:
        """Gridding and compiling come before the first iteration and do not come again."""
        if progress is None:
            return None
        if self._paced is None:
            self._paced = elapsed, progress.share
        since, share = elapsed - self._paced[0], progress.share - self._paced[1]
        return since * (1 - progress.share) / share if since > PACE_S and share > 0 else None

    def history(self) -> pd.DataFrame:
        """Free energy per person of every iteration so far: anchor, source, iteration, energy."""
        path = self.folder / HISTORY
        columns = ["anchor", "source", "iteration", "energy"]
        if not path.exists():
            return pd.DataFrame(columns=columns)
        return pd.read_csv(path, names=columns, on_bad_lines="skip").dropna()

    def cancel(self) -> None:
        """Stop the work; a job that has ended stays as it is."""
        if self._process.poll() is None:
            (self.folder / CANCELLED).touch()
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """Stop the work and delete the folder."""
        self.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_job(trajectories: Trajectories, settings: StudySettings, folder: Path) -> Job:
    """Begin a study in a new process; ``folder`` must not exist yet."""
    folder.mkdir(mode=0o700)
    write_canonical(trajectories, folder / INPUT)
    write_json(folder / SETTINGS, settings.to_dict())
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # our own module and a folder that we named
            [sys.executable, "-m", "agg_core.jobs", str(folder)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    return Job(folder, process)


def main(folder: Path) -> None:
    """What the process does: run the study of a job folder and leave its files."""
    try:
        settings = StudySettings.from_dict(
            json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        )
        with (folder / HISTORY).open("w", encoding="utf-8", buffering=1) as history:
            for step in study_steps(read_canonical(folder / INPUT), settings):
                if isinstance(step, StudyResult):
                    save_result(step, folder / RESULT)
                else:
                    energy = step.free_energy / step.people
                    history.write(f"{step.anchor},{step.source},{step.iteration},{energy:.9g}\n")
                    write_json(folder / PROGRESS, asdict(step))
    except InputError as fault:
        (folder / ERROR).write_text(str(fault), encoding="utf-8")
    except MemoryError:
        (folder / ERROR).write_text(UNEXPECTED, encoding="utf-8")


def _read_progress(path: Path) -> Progress | None:
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
