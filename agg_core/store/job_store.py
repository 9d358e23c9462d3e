"""The jobs of a server: who may begin when, who waits, and what becomes of those that ended.

A store is a folder with one folder a job (see `agg_core.store.jobs`), beside the saved runs. Any
number of servers may use it at once, and none need run: whoever ends, cancels or looks starts what
waits, so that a queue goes on though nobody watches it. Nothing is held in memory that the files do
not tell.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agg_core.base import locks
from agg_core.base.disk import is_folder
from agg_core.base.engine import LOCAL
from agg_core.base.errors import InputError
from agg_core.base.memory import machine_bytes
from agg_core.base.serving import longest_job_s
from agg_core.store.jobs import AT_WORK, QUEUED, About, Job, Kind, prepare_job
from agg_core.store.runs import default_folder
from agg_core.study.lasting import Lasting
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "KEPT_S",
    "MOST_OF_OWNER",
    "MOST_RUNNING",
    "MOST_STARTS",
    "MOST_WAITING",
    "SAVED_KEPT_S",
    "DamagedJob",
    "JobStore",
    "jobs_folder",
    "unknown_job",
]

MOST_RUNNING = 4
"""Jobs at once, of all owners."""
MOST_OF_OWNER = 1
"""Jobs of a kind that an owner has running at once."""
MOST_WAITING = 20
"""Jobs that wait for their turn, of all owners."""
MOST_STARTS = 2
"""Processes that begin a job by themselves: one that died as often is gone on with by hand alone,
since the work itself may be what kills them."""

SAVED_KEPT_S = 24 * 3600.0
"""How long a job whose result is kept elsewhere has its folder after it was last looked at."""
KEPT_S = 14 * 24 * 3600.0
"""The same of any other that does not run or wait."""
LEFT_OVER_S = 3600.0
"""A folder that began to be written so long ago was left by a process that ended meanwhile."""

JOB_ID = re.compile(r"[0-9a-f]{32}")
LOCK = ".lock"


@dataclass(frozen=True)
class DamagedJob:
    """A folder among the jobs that cannot be read as one, by its name, and why."""

    id: str
    fault: str


def jobs_folder() -> Path:
    """Where the jobs of this machine are: beside its saved runs."""
    return default_folder().with_name("jobs")


class JobStore:
    """The jobs of a folder, which need not exist yet.

    Ids are 32 random hexadecimal digits, of a form that is checked before a path is made of one:
    whoever knows the id of a job may look at it, cancel it and go on with it.
    """

    def __init__(
        self,
        folder: Path,
        most_running: int = MOST_RUNNING,
        most_of_owner: int = MOST_OF_OWNER,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.folder = folder
        self.most_running = most_running
        self.most_of_owner = most_of_owner
        self.most_waiting = most_waiting

    # One job

    def add(
        self,
        kind: Kind[Any, Any, Any],
        settings: Any,
        *,
        title: str,
        owner: str,
        data: Trajectories | Path | None = None,
        like: Path | None = None,
        engine: str = LOCAL,
        priority: int = 0,
        megabytes: float | None = None,
        lasting: Lasting | None = None,
        matrix: Path | None = None,
    ) -> Job[Any]:
        """Take in work, which begins at once or waits for its turn; see `prepare_job` and `About`.

        Raises
        ------
        InputError
            If it would take more memory than this machine has, or longer than work may take here,
            as many wait as may, or the disk refuses.
        """
        _check_memory(megabytes)
        _check_time(lasting)
        about = About(
            kind=kind.name, title=title, owner=owner, created=time.time(), engine=engine,
            priority=priority, megabytes=megabytes, lasting=lasting, kept=True,
        )  # fmt: skip
        job_id = secrets.token_hex(16)
        partial = self.folder / f".{job_id}"
        with self._alone():
            self._check_room(about)
        try:
            with _disk():
                prepare_job(settings, partial, about, data, like, matrix)
                Job[Any](partial).queue()
            with self._alone(), _disk():
                self._check_room(about)  # writing large data takes a while
                os.replace(partial, self.folder / job_id)
                self._start_added(job_id)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return Job(self.folder / job_id)

    def _start_added(self, job_id: str) -> None:
        """Start what may begin; a job that was just taken in and could not is not taken in."""
        try:
            self._start_waiting()
        except InputError:
            added = Job[Any](self.folder / job_id)
            if added.state in AT_WORK and not (added.folder / QUEUED).exists():
                return  # it is another that could not
            added.remove()
            raise

    def job(self, job_id: str) -> Job[Any]:
        """A job by its id.

        Raises
        ------
        InputError
            If there is none of that id, or its folder is damaged.
        """
        if not JOB_ID.fullmatch(job_id) or not _is_plain_folder(self.folder / job_id):
            raise unknown_job()
        return Job(self.folder / job_id)

    def find(self, job_id: str) -> Job[Any] | None:
        """The same; None if there is none, or it is damaged."""
        try:
            return self.job(job_id)
        except InputError:
            return None

    def look(self, job_id: str) -> None:
        """Note that somebody looks at a job, and start what waits if it may begin now.

        A disk that refuses keeps nobody from looking.

        Raises
        ------
        InputError
            As `job`.
        """
        with suppress(OSError):
            os.utime(self.job(job_id).folder)
        with suppress(InputError):
            self.start_waiting()

    def cancel(self, job_id: str) -> None:
        """Stop a job for good, and start the one that waits for its place."""
        with self._alone("cancelled"):
            with _disk("cancelled"):
                self.job(job_id).cancel()
            self._start_waiting()

    def resume(self, job_id: str) -> None:
        """Go on with a job that was interrupted, when it is its turn; any other stays as it is."""
        with self._alone():
            job = self.job(job_id)
            if job.state == "interrupted":
                with _disk():
                    job.queue()
            self._start_waiting()

    def remove(self, job_id: str) -> None:
        """Stop a job and delete its folder."""
        with self._alone("removed"):
            job = self.job(job_id)
            gone = self.folder / f".{job_id}.gone"
            with _disk("removed"):
                job.cancel()
            with suppress(OSError):
                os.replace(job.folder, gone)
                shutil.rmtree(gone, ignore_errors=True)
            self._start_waiting()

    def remove_of_run(self, run_id: str, keep: Collection[str] = ()) -> None:
        """Delete the jobs whose result is kept as this run, but for those to ``keep``.

        They hold a copy of it, which is to go with it.
        """
        for job in self._jobs():
            if job.saved == run_id and job.id not in keep:
                with suppress(InputError):  # somebody else was faster
                    self.remove(job.id)

    # All jobs

    def all(self, owner: str | None = None) -> tuple[Job[Any] | DamagedJob, ...]:
        """All jobs, or those of an owner, newest first; then what cannot be read as a job."""
        found: list[Job[Any]] = []
        damaged: list[DamagedJob] = []
        for entry in self._entries():
            try:
                job = self.job(entry.name)
            except InputError as fault:
                damaged.append(DamagedJob(entry.name, str(fault)))
                continue
            if owner is None or job.about.owner == owner:
                found.append(job)
        found.sort(key=lambda job: job.about.created, reverse=True)
        return (*found, *(damaged if owner is None else ()))

    def _jobs(self) -> list[Job[Any]]:
        return [job for job in self.all() if isinstance(job, Job)]

    def _entries(self) -> list[Path]:
        try:
            return [entry for entry in self.folder.iterdir() if not entry.name.startswith(".")]
        except OSError:
            return []

    def ahead(self, job_id: str) -> int:
        """How many wait before a job that waits."""
        waiting = [job.id for job in _in_turn(self._jobs())]
        return waiting.index(job_id) if job_id in waiting else 0

    def start_waiting(self) -> None:
        """Start every job that waits and may begin now, in their turn."""
        if any(os.path.exists(entry / QUEUED) for entry in self._entries()):
            with self._alone():
                self._start_waiting()

    def go_on(self) -> None:
        """Let what was interrupted go on, unless it was as often as `MOST_STARTS`.

        For a server that begins: what a machine that went down took with it then goes on.
        """
        with self._alone():
            for job in self._jobs():
                if job.state == "interrupted" and job.starts < MOST_STARTS:
                    with _disk():
                        job.queue()
            self._start_waiting()

    def clean(self) -> None:
        """Delete what ended and was not looked at for long, and left-overs of killed processes.

        What runs or waits is never deleted.
        """
        now = time.time()
        with self._alone():
            for job in self._jobs():
                kept_s = KEPT_S if job.saved is None else SAVED_KEPT_S
                with suppress(OSError):
                    unseen_s = now - job.folder.stat().st_mtime
                    if unseen_s > kept_s and job.state not in AT_WORK and not job.holds_its_place:
                        shutil.rmtree(job.folder, ignore_errors=True)
            with suppress(OSError):
                for entry in self.folder.glob(".*"):
                    if entry.is_dir() and now - entry.lstat().st_mtime > LEFT_OVER_S:
                        shutil.rmtree(entry, ignore_errors=True)

    # With the lock of the store held

    @contextmanager
    def _alone(self, done: str = "begun") -> Iterator[None]:
        """Nobody else starts, ends or takes in a job meanwhile; ``done`` is for the sentence."""
        with _disk(done):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = locks.take(self.folder / LOCK)
        try:
            yield
        finally:
            os.close(lock)

    def _start_waiting(self) -> None:
        jobs = self._jobs()
        running = [job for job in jobs if job.holds_its_place]
        of_owner = Counter((job.about.owner, job.kind.name) for job in running)
        megabytes = sum(job.about.megabytes or 0.0 for job in running)
        for job in _in_turn(jobs):
            about, whose = job.about, (job.about.owner, job.kind.name)
            if len(running) >= self.most_running:
                return
            if of_owner[whose] >= self.most_of_owner:
                continue
            if running and megabytes + (about.megabytes or 0.0) > machine_bytes() / 1e6:
                return  # or those that take little would keep it waiting for ever
            with _disk():
                job.start()
            running.append(job)
            of_owner[whose] += 1
            megabytes += about.megabytes or 0.0

    def _check_room(self, about: About) -> None:
        jobs = self._jobs()
        running = [job for job in jobs if job.holds_its_place]
        of_owner = sum(
            (job.about.owner, job.kind.name) == (about.owner, about.kind) for job in running
        )
        waiting = len(_in_turn(jobs))
        begins = len(running) < self.most_running and of_owner < self.most_of_owner
        if waiting >= self.most_waiting and not (begins and not waiting):
            raise InputError(
                f"{len(running)} jobs run on this server and {waiting} wait, as many as may "
                f"({self.most_running} and {self.most_waiting}); try again when one has ended.",
                code="queue-full",
            )


def _in_turn(jobs: list[Job[Any]]) -> list[Job[Any]]:
    """Those that wait, the next one first."""
    waiting = [job for job in jobs if job.state == "queued"]
    return sorted(waiting, key=lambda job: (-job.about.priority, job.queued_at, job.id))


def _check_memory(megabytes: float | None) -> None:
    most = machine_bytes() / 1e6
    if megabytes is not None and megabytes > most:
        raise InputError(
            f"This would take about {megabytes / 1000:,.1f} GB of memory and the machine has "
            f"{most / 1000:,.1f} GB; take fewer cells, a farthest move in a step, or fewer people.",
            code="work-too-large",
        )


def _check_time(lasting: Lasting | None) -> None:
    longest = longest_job_s(os.environ)
    if lasting is not None and longest is not None and lasting.low_s > longest:
        raise InputError(
            f"This would take about {lasting.words}, and work on this server may take "
            f"{longest / 3600:g} h; take fewer cells, simulated worlds, iterations or people, or "
            "learn on a machine of your own.",
            code="work-too-long",
        )


def _is_plain_folder(path: Path) -> bool:
    return is_folder(path) and not path.is_symlink()


@contextmanager
def _disk(done: str = "begun") -> Iterator[None]:
    """What the disk or the system refuses is one sentence."""
    try:
        yield
    except OSError as fault:
        sentence = (
            f"The work could not be {done} ({fault.strerror or fault}); free space on the disk, or "
            "set FLOWS_HOME to a folder that can be written."
        )
        if done == "begun":
            raise InputError(sentence, code="job-not-begun") from fault
        raise InputError(sentence, code="job-not-changed") from fault


def unknown_job() -> InputError:
    """That there is no such work, or none that may be shown: nobody learns which of both."""
    return InputError(
        "This server has no such work any more; if it was finished, its flows are among the saved "
        "runs, and else it can be begun anew.",
        code="unknown-job",
    )
