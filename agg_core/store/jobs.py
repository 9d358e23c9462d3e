"""Long work as a process of its own, known by the files in its folder.

A page starts a job, then only reads: the work goes on while the person changes the page, when the
browser is closed, and when the server ends. A job is of a kind (`STUDY`, `COUNTS`, `GATES`,
`SWEEP`, `EXPERIMENT`, `TEACHING`), which says what runs and how its result is saved.

What is known of a job is read from its folder, by any process: ``about.json`` says what it is,
``settings.json`` what is asked for, ``input.parquet`` holds the data to learn from, with
``matrix.parquet`` an old matrix beside entries and exits, and ``remembered.json`` what trials of
an earlier result found. ``queued.json`` is there while it waits for its turn, ``started.json``
since it began, and ``lock`` is locked as long as its process lives.
On its way it writes ``progress.json``, ``pace.json``, a study also ``history.csv``, and
``log.txt`` with what went wrong unforeseen; it ends with ``result/``, ``fault.json`` or
``cancelled``, and then the data are deleted. A job that has begun, has no end, and whose lock is
free was interrupted: its process died, and it can be resumed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import pandas as pd

from agg_core.base import locks
from agg_core.base.checkpoints import use_checkpoints
from agg_core.base.engine import LOCAL
from agg_core.base.errors import InputError
from agg_core.base.processes import FAULT, PROGRESS, left_fault, start_program, write_json
from agg_core.base.threads import give_way
from agg_core.io.kept_flows import open_flow_table
from agg_core.lab.experiments import LabProgress, LabResult, LabSettings, lab_steps
from agg_core.lab.teaching import TeachingProgress, TeachingResult, TeachingSettings, teaching_steps
from agg_core.store.codec import (
    REMEMBERED_FILE,
    remembered_of,
    save_lab,
    save_result,
    save_sweep,
    save_teaching,
)
from agg_core.study.counts import CountProgress, CountStudy, count_study_steps
from agg_core.study.gates import GateProgress, GateStudy, gate_study_steps
from agg_core.study.lasting import Lasting
from agg_core.study.people import Progress, StudyResult, study_steps
from agg_core.study.settings import CountLearnSettings, GateLearnSettings, StudySettings
from agg_core.study.sweeps import Sweep, SweepProgress, SweepResult, sweep_steps
from agg_core.tables.counts import open_counts
from agg_core.tables.gates import open_gates
from agg_core.tables.trajectories import Trajectories, read_canonical, write_canonical

__all__ = [
    "AT_WORK",
    "COUNTS",
    "EXPERIMENT",
    "GATES",
    "KINDS",
    "QUEUED",
    "STUDY",
    "SWEEP",
    "TEACHING",
    "About",
    "Job",
    "JobState",
    "JobStatus",
    "Kind",
    "prepare_job",
    "start_job",
    "unexpected",
]

ABOUT = "about.json"
INPUT = "input.parquet"
MATRIX = "matrix.parquet"
"""Trips of an old matrix, if there is one."""
SETTINGS = "settings.json"
QUEUED = "queued.json"
"""Since when a job waits for its turn."""
STARTED = "started.json"
LOCK = "lock"
CANCELLED = "cancelled"
HISTORY = "history.csv"
PACE = "pace.json"
CHECKPOINT = "checkpoint"
"""From where the learner goes on when it was interrupted; without it, it begins anew."""
LOG = "log.txt"
MADE = "made"
"""A whole result that is not kept elsewhere yet."""
RESULT = "result"
SAVED = "saved.json"
"""Under which id the result is kept elsewhere."""

FORMAT = 1
MOST_BYTES = 1_000_000
"""No file of ours that tells of a job is as large."""

PROGRAM = "agg_core.store.job_process"
NICENESS = 10
"""How far pages go before jobs where both want a core."""

JobState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]

AT_WORK: tuple[JobState, ...] = ("queued", "running")
"""States that end by themselves."""

PACE_S = 3.0
"""Seconds of work before its pace says anything."""

UNEXPECTED = (
    "The work stopped unexpectedly, perhaps for want of memory; try fewer blocks, states or people."
)


def unexpected() -> InputError:
    """That work ended for a reason that nobody foresaw."""
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

    def run(self, folder: Path, keep: Callable[[Path], None] | None = None) -> None:
        """Do the work of a job folder, in the process that asks, and leave its files.

        ``keep`` is given the whole result before the job is done. What a process that was
        interrupted had made already is not made again.

        Raises
        ------
        InputError
            If the settings or the input cannot be used.
        """
        made = folder / MADE
        if not made.exists():
            self._make(folder, made)
        if keep is not None:
            keep(made)
        os.replace(made, folder / RESULT)

    def _make(self, folder: Path, made: Path) -> None:
        values = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        stale = (PACE,) if (folder / CHECKPOINT).exists() else (PACE, PROGRESS, HISTORY)
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        is_first = True
        for step in self.steps(self.settings.from_dict(values), folder):
            if isinstance(step, self.step):
                with suppress(
                    OSError
                ):  # a disk without room for what is told does not end the work
                    self._tell(folder, step, is_first)
                    is_first = False
            else:
                self.save(step, made)  # type: ignore[arg-type]  # the only other

    def _tell(self, folder: Path, step: Step, is_first: bool) -> None:
        """Leave a step for whoever looks."""
        if self.history is not None:
            with (folder / HISTORY).open("a", encoding="utf-8") as history:
                history.write(self.history(step))
        write_json(folder / PROGRESS, asdict(step))  # type: ignore[call-overload]  # a dataclass
        if is_first:
            # What comes before the first step, gridding and compiling, does not come again.
            write_json(folder / PACE, {"at": time.time(), "share": step.share})


def _study_steps(settings: StudySettings, folder: Path) -> Iterator[Progress | StudyResult]:
    with use_checkpoints(folder / CHECKPOINT):
        yield from study_steps(read_canonical(folder / INPUT), settings, remembered_of(folder))


def _count_steps(
    settings: CountLearnSettings, folder: Path
) -> Iterator[CountProgress | CountStudy]:
    with use_checkpoints(folder / CHECKPOINT):
        yield from count_study_steps(open_counts(folder / INPUT), settings, remembered_of(folder))


def _gate_steps(settings: GateLearnSettings, folder: Path) -> Iterator[GateProgress | GateStudy]:
    old = folder / MATRIX
    matrix = open_flow_table(old) if old.exists() else None
    yield from gate_study_steps(open_gates(folder / INPUT), settings, matrix)


def _sweep_steps(sweep: Sweep, folder: Path) -> Iterator[SweepProgress | SweepResult]:
    given = folder / INPUT
    with use_checkpoints(folder / CHECKPOINT):
        data = open_counts(given) if sweep.of_counts else read_canonical(given)
        yield from sweep_steps(data, sweep)


def _lab_steps(settings: LabSettings, folder: Path) -> Iterator[LabProgress | LabResult]:
    with use_checkpoints(folder / CHECKPOINT):
        yield from lab_steps(settings)


def _teaching_steps(
    settings: TeachingSettings, folder: Path
) -> Iterator[TeachingProgress | TeachingResult]:
    with use_checkpoints(folder / CHECKPOINT):
        yield from teaching_steps(settings)


def _energy_line(step: Progress) -> str:
    if step.stage != "learning":
        return ""
    energy = step.free_energy / step.people
    return f"{step.time},{step.source},{step.iteration},{energy:.9g}\n"


STUDY = Kind("study", StudySettings, Progress, _study_steps, save_result, _energy_line)
COUNTS = Kind("counts", CountLearnSettings, CountProgress, _count_steps, save_result)
GATES = Kind("gates", GateLearnSettings, GateProgress, _gate_steps, save_result)
SWEEP = Kind("sweep", Sweep, SweepProgress, _sweep_steps, save_sweep)
EXPERIMENT: Kind[LabSettings, LabProgress, LabResult] = Kind(
    "experiment", LabSettings, LabProgress, _lab_steps, save_lab
)
TEACHING: Kind[TeachingSettings, TeachingProgress, TeachingResult] = Kind(
    "teaching", TeachingSettings, TeachingProgress,
    _teaching_steps, save_teaching,
)  # fmt: skip

KINDS: dict[str, Kind[Any, Any, Any]] = {
    kind.name: kind for kind in (STUDY, COUNTS, GATES, SWEEP, EXPERIMENT, TEACHING)
}
"""Every kind of job by its name."""


@dataclass(frozen=True)
class JobStatus(Generic[Step]):
    """What can be said of a job now; ``progress`` is None until the first step is done.

    ``message`` and ``code`` say why a job failed, as an `InputError` does; else they are empty.
    ``elapsed_s`` are seconds of work, in all processes that had a part of it.
    """

    state: JobState
    progress: Step | None
    message: str
    elapsed_s: float
    remaining_s: float | None
    """Seconds to go at most, at the pace since the first step; None until it is known."""
    code: str = ""


@dataclass(frozen=True)
class About:
    """What a job is, said once before it begins.

    ``title`` names its data or experiment, ``owner`` is whoever asked for it, empty for nobody in
    particular, ``created`` when, in seconds since 1970. Of two that wait the one of higher
    ``priority`` is first. ``megabytes`` and ``lasting`` are what it is told to take, None where
    that is not known. What is ``kept`` goes on to the saved runs, or to the results of the Lab,
    when it is done; of a sweep it stays in the folder.
    """

    kind: str
    title: str = ""
    owner: str = ""
    created: float = 0.0
    engine: str = LOCAL
    priority: int = 0
    megabytes: float | None = None
    lasting: Lasting | None = None
    kept: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read back what `to_dict` gave.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it was altered, or is of another format.
        """
        if values["format"] != FORMAT or values["kind"] not in KINDS:
            raise ValueError(values["kind"])
        told, most = values["lasting"], values["megabytes"]
        return cls(
            kind=values["kind"],
            title=str(values["title"]),
            owner=str(values["owner"]),
            created=float(values["created"]),
            engine=str(values["engine"]),
            priority=int(values["priority"]),
            megabytes=None if most is None else float(most),
            lasting=None if told is None else Lasting(float(told["low_s"]), float(told["high_s"])),
            kept=bool(values["kept"]),
        )


_children: list[subprocess.Popen[bytes]] = []
"""Processes that this one started: unless asked for their end, the system keeps a rest of each."""


def _ask_for_ends() -> None:
    _children[:] = [child for child in _children if child.poll() is None]


class Job(Generic[Step]):
    """A job as its folder tells it; any number of processes may look at one.

    Raises
    ------
    InputError
        If the folder is damaged, or is none of a job.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.about = About.from_dict(_read(folder / ABOUT))
        except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as fault:
            raise InputError(
                f"The work in the folder {folder.name[:40]!r} is damaged: its {ABOUT} cannot be "
                "read; remove the folder.",
                code="job-damaged",
            ) from fault
        self.kind: Kind[Any, Step, Any] = KINDS[self.about.kind]

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def result_folder(self) -> Path:
        """Where the result lies once the job is done."""
        return self.folder / RESULT

    @cached_property
    def settings(self) -> Any:
        """What it was asked for.

        Raises
        ------
        InputError
            If that cannot be read.
        """
        try:
            return self.kind.settings.from_dict(_read(self.folder / SETTINGS))
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            raise InputError(
                "The settings of this work cannot be read; remove it and begin anew.",
                code="job-damaged",
            ) from fault

    @property
    def saved(self) -> str | None:
        """The id under which its result is kept elsewhere, if it is."""
        found = self._left(SAVED)
        return found["id"] if isinstance(found, dict) and isinstance(found.get("id"), str) else None

    # How it is

    @property
    def state(self) -> JobState:
        """How it is now; never blocks."""
        ended = self._ended()
        if ended is not None:
            return ended
        if locks.is_held(self.folder / LOCK):
            return "running"
        if (self.folder / QUEUED).exists():
            return "queued"
        # It may have ended between the two looks.
        return self._ended() or "interrupted"

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed or was cancelled."""
        return self._ended() is not None

    def _ended(self) -> JobState | None:
        for name, state in ENDS.items():
            if (self.folder / name).exists():
                return state
        return None

    @property
    def holds_its_place(self) -> bool:
        """Whether its process lives, though it may have written its end already."""
        return locks.is_held(self.folder / LOCK)

    @property
    def queued_at(self) -> float:
        """Since when it waits, in seconds since 1970."""
        return _number(self._left(QUEUED), "at")

    @property
    def starts(self) -> int:
        """How many processes have worked on it."""
        return int(_number(self._left(STARTED), "starts"))

    @property
    def pid(self) -> int | None:
        """The number of the last process that worked on it."""
        return int(_number(self._left(STARTED), "pid")) or None

    def status(self) -> JobStatus[Step]:
        """Read the files: never blocks."""
        _ask_for_ends()
        state, progress = self.state, None
        told = self._left(PROGRESS)
        with suppress(TypeError):
            progress = None if told is None else self.kind.step(**told)
        elapsed = self._elapsed(state)
        remaining = self._remaining(progress) if state == "running" else None
        if state == "failed":
            fault = left_fault(self.folder, unexpected())
            return JobStatus(state, progress, str(fault), elapsed, None, fault.code)
        return JobStatus(state, progress, "", elapsed, remaining)

    def _elapsed(self, state: JobState) -> float:
        """Seconds of work: to now, to its end, or to the last sign of one that was interrupted."""
        started = self._left(STARTED)
        before = _number(started, "before_s")
        if started is None or state == "queued":
            return before
        end = time.time() if state == "running" else self._last_sign()
        return before + max(end - _number(started, "at"), 0.0)

    def _last_sign(self) -> float:
        for name in (*ENDS, PROGRESS, STARTED):
            with suppress(OSError):
                return (self.folder / name).stat().st_mtime
        return 0.0

    def _remaining(self, progress: Step | None) -> float | None:
        """By the pace since the first step of the process that works."""
        began = self._left(PACE)
        if progress is None or began is None:
            return None
        since = time.time() - _number(began, "at")
        share = progress.share - _number(began, "share")
        return since * (1 - progress.share) / share if since > PACE_S and share > 0 else None

    def history(self) -> pd.DataFrame:
        """Free energy per person of every iteration so far: time, source, iteration, energy.

        Empty for a job that is no study.
        """
        path = self.folder / HISTORY
        columns = ["time", "source", "iteration", "energy"]
        if not path.exists():
            return pd.DataFrame(columns=columns)
        return (
            pd.read_csv(path, names=columns, on_bad_lines="skip")
            .dropna()
            .drop_duplicates(columns[:-1], keep="last")
        )

    def _left(self, name: str) -> Any:
        try:
            return _read(self.folder / name)
        except (OSError, ValueError, RecursionError):
            return None

    # What is done with it

    def queue(self) -> None:
        """Let it wait for its turn, anew if it was interrupted."""
        write_json(self.folder / QUEUED, {"at": time.time()})

    def start(self) -> None:
        """Begin, or go on with, the work in a new process, which outlives this one.

        Whoever calls makes sure that no other does so at the same time. The lock is taken here and
        given to the process, so that there is no moment at which a job that begins looks dead.
        """
        lock = locks.take(self.folder / LOCK)
        try:
            before = self._elapsed("interrupted") if self._left(STARTED) else 0.0
            begun = {"at": time.time(), "before_s": before, "starts": self.starts + 1, "pid": 0}
            write_json(self.folder / STARTED, begun)
            (self.folder / QUEUED).unlink(missing_ok=True)
            child = start_program(
                PROGRAM, str(self.folder), log=self.folder / LOG, stdin=lock, outlives=True
            )
            _children.append(child)
            # Its imports alone take seconds. What is refused now it asks for itself, and waits.
            give_way(NICENESS, child.pid, tries=1)
            write_json(self.folder / STARTED, {**begun, "pid": child.pid})
        finally:
            os.close(lock)

    def wait(self) -> None:
        """Wait until its process has ended."""
        locks.is_held(self.folder / LOCK, wait=True)
        for child in [child for child in _children if child.pid == self.pid]:
            child.wait()
        _ask_for_ends()

    def cancel(self) -> None:
        """Stop it for good; one that has ended stays as it is."""
        try:
            if not self.has_ended:
                (self.folder / CANCELLED).touch(0o600)
        finally:  # where the disk has no room for the mark, it ends all the same
            self._kill()
        self.forget_data()

    def forget_data(self) -> None:
        """Delete the data of one that has ended, and what tells of them: nobody goes on with it."""
        if self.has_ended:
            with suppress(OSError):
                for name in (INPUT, MATRIX):
                    (self.folder / name).unlink(missing_ok=True)
            shutil.rmtree(self.folder / CHECKPOINT, ignore_errors=True)

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> None:
        """End its process and all that this one started, if it lives.

        The number of a process that has ended may be another's by now. One that holds the lock
        lives, so that the number, taken before the lock is looked at, is its own.
        """
        pid = self.pid
        if pid is None or pid == os.getpid() or not self.holds_its_place:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        self.wait()


ENDS: dict[str, JobState] = {RESULT: "done", CANCELLED: "cancelled", FAULT: "failed"}
"""The end that each file tells; of several the first holds."""


def _read(path: Path) -> Any:
    """JSON of an ordinary file that is not too large."""
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_BYTES:
        raise ValueError(path.name)
    return json.loads(path.read_text(encoding="utf-8"))


def _number(values: Any, name: str) -> float:
    """A number of a file that may be missing or altered."""
    found = values.get(name) if isinstance(values, dict) else None
    return float(found) if isinstance(found, int | float) else 0.0


def prepare_job(
    settings: Settings,
    folder: Path,
    about: About,
    data: Trajectories | Path | None = None,
    like: Path | None = None,
    matrix: Path | None = None,
) -> None:
    """Write the folder of a job, which must not exist yet, with all that its process needs.

    ``data`` is what is learned from: trajectories, or of counts a file that `write_counts` wrote,
    of gates one that `write_gates` wrote; of these, and of an old ``matrix`` that
    `write_flow_table` wrote, the job keeps a copy. What trials of the result in the folder
    ``like`` found is not tried again. Who does the work is no part of the settings: the result is
    the same with any engine.
    """
    folder.mkdir(mode=0o700)
    if like is not None and (like / REMEMBERED_FILE).exists():
        shutil.copyfile(like / REMEMBERED_FILE, folder / REMEMBERED_FILE)
    if matrix is not None:
        shutil.copyfile(matrix, folder / MATRIX)
    if isinstance(data, Path):
        shutil.copyfile(data, folder / INPUT)
    elif data is not None:
        write_canonical(data, folder / INPUT)
    write_json(folder / SETTINGS, settings.to_dict())
    write_json(folder / ABOUT, about.to_dict())


def start_job(
    kind: Kind[Settings, Step, Any],
    settings: Settings,
    folder: Path,
    data: Trajectories | Path | None = None,
    like: Path | None = None,
    engine: str = LOCAL,
) -> Job[Step]:
    """Begin work in a new process at once, in a folder of its own: see `prepare_job`.

    Its result stays in the folder; `agg_core.store.job_store.JobStore` is for work that waits for
    its turn and is kept.
    """
    prepare_job(settings, folder, About(kind.name, created=time.time(), engine=engine), data, like)
    job: Job[Step] = Job(folder)
    job.start()
    return job
