"""What one person's session holds on the server: their data and their learner, nobody else's."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path
from threading import Lock

import streamlit as st

from agg_core.errors import InputError
from agg_core.jobs import Job, start_job
from agg_core.settings import StudySettings
from agg_core.trajectories import Trajectories

__all__ = ["Workspace", "workspace"]

MOST_RUNNING = 4
"""Learners at once on the server; one more is refused with a sentence, not queued in silence."""


class Workspace:
    """Data sets and jobs of a session, by ids that cannot be guessed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="flows-"))
        self.datasets: dict[str, Trajectories] = {}
        self.upload: tuple[str, bytes] | None = None
        """Name and content of the file that was tried last."""
        self.jobs: dict[str, Job] = {}

    def keep(self, trajectories: Trajectories) -> str:
        """Take in a data set in place of the one before; returns its id."""
        key = secrets.token_hex(8)
        self.datasets = {key: trajectories}
        return key

    def start(self, dataset: str, settings: StudySettings) -> str:
        """Start the learner; returns the job's id.

        Raises
        ------
        InputError
            If this session or the server has as many learners running as it may.
        """
        for job in self.jobs.values():
            if job.status().state == "running":
                raise InputError("A learner is running already; wait for it or cancel it first.")
        key = secrets.token_hex(8)
        with _running_lock():
            running = _running()
            running[:] = [job for job in running if job.status().state == "running"]
            if len(running) >= MOST_RUNNING:
                raise InputError(
                    "The server is busy with other people's learners; try again in a minute."
                )
            job = start_job(self.datasets[dataset], settings, self.folder / key)
            running.append(job)
        self.jobs[key] = job
        return key

    def keep_only(self, job: str) -> None:
        """Delete all other jobs and their files: nobody will look at them again."""
        for key in set(self.jobs) - {job}:
            self.jobs.pop(key).remove()

    def close(self) -> None:
        """Stop what runs and delete every file."""
        for job in self.jobs.values():
            job.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


@st.cache_resource(scope="session", show_spinner=False, on_release=Workspace.close)
def workspace() -> Workspace:
    """The workspace of the session that asks."""
    return Workspace()


@st.cache_resource(show_spinner=False)
def _running() -> list[Job]:
    return []


@st.cache_resource(show_spinner=False)
def _running_lock() -> Lock:
    return Lock()
