"""What one person's session holds on the server: their data and their jobs, nobody else's."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any

import streamlit as st

from agg_core.base.engine import LOCAL
from agg_core.base.errors import InputError
from agg_core.io import Choices, Reading, start_reading
from agg_core.io.counts.choices import CountChoices
from agg_core.io.formats.vector import VectorFile
from agg_core.io.outlines import Outline
from agg_core.io.sandbox import Kind as FileKind
from agg_core.space import AreaGrid
from agg_core.store.jobs import COUNTS, STUDY, Job, Kind, start_job
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.tables.counts import CountTable, write_counts
from agg_core.tables.trajectories import Trajectories

__all__ = ["Workspace", "workspace"]

MOST_RUNNING = 4
"""Jobs at once on the server; one more is refused with a sentence, not queued in silence."""

NAMES = {
    "study": "A learner",
    "counts": "A learner",
    "experiment": "An experiment",
    "teaching": "This view's learner",
}


class Workspace:
    """Data sets and jobs of a session, by ids that cannot be guessed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="flows-"))
        self.datasets: dict[str, Trajectories] = {}
        self.counts: dict[str, Path] = {}
        """Files that `write_counts` wrote."""
        self.uploads: dict[str, bytes | Path] = {}
        """Name and content, or path on this machine, of the files that were tried last."""
        self.reading: Reading | None = None
        """The process that reads them, or has read them."""
        self.jobs: dict[str, Job[Any]] = {}
        self.outlines: dict[str, Outline] = {}
        self.areas_upload: tuple[str, bytes] | None = None
        """Name and content of the file of areas that was tried last."""
        self.areas: tuple[VectorFile, AreaGrid] | None = None
        """The last such file that could be read, and all areas of it."""

    def keep(self, trajectories: Trajectories) -> str:
        """Take in a data set in place of the one before; returns its id."""
        self._forget_data()
        key = secrets.token_hex(8)
        self.datasets = {key: trajectories}
        return key

    def keep_counts(self, table: CountTable) -> str:
        """Take in counts in place of the data set before; returns their id."""
        self._forget_data()
        key = secrets.token_hex(8)
        self.counts = {key: self.folder / f"{key}.parquet"}
        write_counts(table, self.counts[key])
        return key

    def _forget_data(self) -> None:
        for file in self.counts.values():
            file.unlink(missing_ok=True)
        self.datasets, self.counts = {}, {}

    def read(self, choices: Choices | CountChoices, kind: FileKind) -> Reading:
        """Read the uploads in a process of its own, in place of the one before."""
        if self.reading is not None:
            self.reading.remove()
        folder = self.folder / secrets.token_hex(8)
        self.reading = start_reading(self.uploads, choices, folder, kind=kind)
        return self.reading

    def start(self, dataset: str, settings: StudySettings, engine: str = LOCAL) -> str:
        """Start the learner on a data set; see `work`."""
        return self.work(STUDY, settings, self.datasets[dataset], engine)

    def start_counts(self, dataset: str, settings: CountLearnSettings, engine: str = LOCAL) -> str:
        """Start the learner on counts; see `work`."""
        return self.work(COUNTS, settings, self.counts[dataset], engine)

    def work(
        self,
        kind: Kind[Any, Any, Any],
        settings: Any,
        data: Trajectories | Path | None = None,
        engine: str = LOCAL,
    ) -> str:
        """Start a job, done by an engine; returns its id.

        It goes on from what trials of the last one of its kind found that is done.

        Raises
        ------
        InputError
            If this session has one of its kind running, or the server as many as it may.
        """
        for job in self.jobs.values():
            if job.kind.name == kind.name and job.status().state == "running":
                raise InputError(
                    f"{NAMES[kind.name]} is running already; wait for it or cancel it first.",
                    code="job-running",
                )
        key = secrets.token_hex(8)
        with _running_lock():
            running = _running()
            running[:] = [job for job in running if job.status().state == "running"]
            if len(running) >= MOST_RUNNING:
                raise InputError(
                    "The server has as many jobs running as it may; try again in a minute.",
                    code="server-busy",
                )
            job = start_job(
                kind, settings, self.folder / key, data, self._last_result(kind), engine
            )
            running.append(job)
        self.jobs[key] = job
        return key

    def _last_result(self, kind: Kind[Any, Any, Any]) -> Path | None:
        """The folder of the last result of a kind that this session has."""
        done = [
            job.result_folder
            for job in self.jobs.values()
            if job.kind.name == kind.name and job.status().state == "done"
        ]
        return done[-1] if done else None

    def keep_only(self, job: str) -> None:
        """Delete all others of its kind and their files: nobody will look at them again."""
        for key, other in list(self.jobs.items()):
            if key != job and other.kind.name == self.jobs[job].kind.name:
                self.jobs.pop(key).remove()

    def keep_outline(self, outline: Outline) -> str:
        """Take in an outline in place of the one before; returns its id."""
        key = secrets.token_hex(8)
        self.outlines = {key: outline}
        return key

    def close(self) -> None:
        """Stop what runs and delete every file."""
        for job in self.jobs.values():
            job.cancel()
        if self.reading is not None:
            self.reading.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


@st.cache_resource(scope="session", show_spinner=False, on_release=Workspace.close)
def workspace() -> Workspace:
    """The workspace of the session that asks."""
    return Workspace()


@st.cache_resource(show_spinner=False)
def _running() -> list[Job[Any]]:
    return []


@st.cache_resource(show_spinner=False)
def _running_lock() -> Lock:
    return Lock()
