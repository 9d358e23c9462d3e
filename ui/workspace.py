"""What one person's session holds on the server: their data and their jobs, nobody else's.

Nothing of it lies in a cache of Streamlit: any browser may ask for those to be cleared, and a
connection that is lost clears those of its session. A session's data are dropped some minutes after
the session has gone; its jobs are not, since they are known by their folders alone.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from agg_core.base import locks
from agg_core.base.disk import asking_disk, is_folder
from agg_core.base.engine import LOCAL
from agg_core.base.errors import InputError
from agg_core.base.memory import tidy_up
from agg_core.io import Choices, Reading, start_reading
from agg_core.io.counts.choices import CountChoices
from agg_core.io.flow_tables import FlowTable
from agg_core.io.formats.vector import VectorFile
from agg_core.io.kept_flows import write_flow_table
from agg_core.io.outlines import Outline
from agg_core.io.sandbox import Content
from agg_core.io.sandbox import Kind as FileKind
from agg_core.space import AreaGrid
from agg_core.store.job_store import JobStore, jobs_folder
from agg_core.store.jobs import AT_WORK, Job, Kind
from agg_core.study.lasting import Lasting
from agg_core.tables.counts import CountTable, write_counts
from agg_core.tables.gates import GateTable, write_gates
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "KEPT_S",
    "Workspace",
    "clear_left_overs",
    "forget",
    "held_by",
    "job",
    "jobs",
    "sweep",
    "workspace",
]

NAMES = {
    "study": "A learner",
    "counts": "A learner",
    "gates": "A learner",
    "sweep": "A comparison",
    "experiment": "An experiment",
    "teaching": "This view's learner",
}

PREFIX = "population-flows-"
LOCK = ".lock"
"""A file in the folder of a session, locked as long as its server lives."""

KEPT_S = 300.0
"""How long the data of a session are kept that is not connected: Streamlit lets a browser whose
connection was lost come back to its session for two minutes."""
SWEEP_S = 60.0


class Workspace:
    """Data sets of a session, by ids that cannot be guessed, and the jobs that it follows."""

    def __init__(self) -> None:
        self._made: tuple[Path, int] | None = None
        self.datasets: dict[str, Trajectories] = {}
        self.counts: dict[str, Path] = {}
        """Files that `write_counts` wrote."""
        self.gates: dict[str, Path] = {}
        """Files that `write_gates` wrote."""
        self.matrix: tuple[str, Path] | None = None
        """The old matrix that goes with entries and exits: its name, and what
        `write_flow_table` wrote."""
        self.uploads: dict[str, Content] = {}
        """Name and content, or path on this machine, of the files that were tried last."""
        self.beside: dict[str, dict[str, Content]] = {}
        """Files of the same kind that go with those where they hold entries, by what they hold."""
        self.before: dict[str, Content] = {}
        """The files that were tried before those."""
        self.reading: Reading | None = None
        """The process that reads them, or has read them."""
        self.followed: list[str] = []
        """Ids of the jobs that this session began, or found again by their address."""
        self.outlines: dict[str, Outline] = {}
        self.areas_upload: tuple[str, bytes] | None = None
        """Name and content of the file of areas that was tried last."""
        self.areas: tuple[VectorFile, AreaGrid] | None = None
        """The last such file that could be read, and all areas of it."""
        self.held: dict[str, Any] = {}
        """What else belongs to the session, by the name of what it is."""

    @property
    def folder(self) -> Path:
        """Where its files lie, made when the first is kept; locked as long as the server lives.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        if self._made is None:
            with asking_disk():
                folder = Path(tempfile.mkdtemp(prefix=PREFIX))
                try:
                    self._made = folder, locks.take(folder / LOCK)
                except OSError:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
        return self._made[0]

    def keep(self, trajectories: Trajectories) -> str:
        """Take in a data set in place of the one before; returns its id."""
        self._forget_data()
        key = secrets.token_hex(8)
        self.datasets = {key: trajectories}
        return key

    def keep_counts(self, table: CountTable) -> str:
        """Take in counts in place of the data set before; returns their id.

        Raises
        ------
        InputError
            If the disk refuses; the data set before stays.
        """
        key, kept = self._written(lambda path: write_counts(table, path))
        self._forget_data()
        self.counts = {key: kept}
        return key

    def keep_gates(self, table: GateTable) -> str:
        """Take in entries and exits in place of the data set before; returns their id.

        Raises
        ------
        InputError
            If the disk refuses; the data set before stays.
        """
        key, kept = self._written(lambda path: write_gates(table, path))
        self._forget_data()
        self.gates = {key: kept}
        return key

    def keep_matrix(self, name: str, table: FlowTable) -> None:
        """Take in an old matrix that goes with the entries and exits.

        Raises
        ------
        InputError
            If the disk refuses; the one before stays.
        """
        _, kept = self._written(lambda path: write_flow_table(table, path))
        self.drop_matrix()
        self.matrix = name, kept

    def drop_matrix(self) -> None:
        """Leave the old matrix out."""
        if self.matrix is not None:
            _delete(self.matrix[1])
        self.matrix = None

    def _written(self, write: Callable[[Path], None]) -> tuple[str, Path]:
        """A new id and the file of that name in the folder, written whole or not at all."""
        key = secrets.token_hex(8)
        kept = self.folder / f"{key}.parquet"
        try:
            with asking_disk():
                write(kept)
        except InputError:
            _delete(kept)
            raise
        return key, kept

    def _forget_data(self) -> None:
        for file in (*self.counts.values(), *self.gates.values()):
            _delete(file)
        self.datasets, self.counts, self.gates = {}, {}, {}
        self.drop_matrix()  # it is of the stations of other data

    def read(self, choices: Choices | CountChoices, kind: FileKind) -> Reading:
        """Read the uploads in a process of its own, in place of the one before.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        if self.reading is not None:
            self.reading.remove()
            self.reading = None
        folder = self.folder / secrets.token_hex(8)
        try:
            with asking_disk():
                self.reading = start_reading(
                    self.uploads, choices, folder, kind=kind, beside=self.beside
                )
        except InputError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self.reading

    def work(
        self,
        kind: Kind[Any, Any, Any],
        settings: Any,
        title: str,
        owner: str,
        data: Trajectories | Path | None = None,
        engine: str = LOCAL,
        megabytes: float | None = None,
        lasting: Lasting | None = None,
        matrix: Path | None = None,
    ) -> str:
        """Let a job of an owner begin, or wait for its turn; returns its id.

        It goes on from what trials of the last one of its kind found that is done.

        Raises
        ------
        InputError
            If this session has just that at work, or the server cannot take it in.
        """
        for other in self.jobs_of(kind):
            if other.state in AT_WORK and (other.about.title, other.settings) == (title, settings):
                raise InputError(
                    f"{NAMES[kind.name]} is running already with these settings; wait for it, "
                    "cancel it, or change the settings.",
                    code="job-running",
                )
        begun = jobs().add(
            kind, settings, title=title, owner=owner, data=data, like=self._last_result(kind),
            engine=engine, megabytes=megabytes, lasting=lasting, matrix=matrix,
        )  # fmt: skip
        self.follow(begun.id)
        return begun.id

    def follow(self, job_id: str) -> None:
        """Count a job among those of this session, as the last of them."""
        self.followed = [*(other for other in self.followed if other != job_id), job_id]

    def jobs_of(self, kind: Kind[Any, Any, Any]) -> list[Job[Any]]:
        """The jobs of a kind that this session follows, the last one last."""
        found = (job(job_id) for job_id in self.followed)
        return [each for each in found if each is not None and each.kind is kind]

    def _last_result(self, kind: Kind[Any, Any, Any]) -> Path | None:
        """The folder of the last result of a kind that this session has."""
        done = [each.result_folder for each in self.jobs_of(kind) if each.state == "done"]
        return done[-1] if done else None

    def keep_only(self, job_id: str) -> None:
        """Delete others of its kind that have ended, unless their result is nowhere else."""
        shown = job(job_id)
        for other in self.jobs_of(shown.kind) if shown is not None else ():
            unsaved = other.state == "done" and other.saved is None
            if other.id != job_id and other.has_ended:
                if not unsaved:
                    with suppress(InputError):  # what the disk does not let go is cleaned later
                        jobs().remove(other.id)
                self.followed.remove(other.id)

    def keep_outline(self, outline: Outline) -> str:
        """Take in an outline in place of the one before; returns its id."""
        key = secrets.token_hex(8)
        self.outlines = {key: outline}
        return key

    def close(self) -> None:
        """Stop reading and delete every file; jobs go on."""
        if self.reading is not None:
            self.reading.cancel()
        if self._made is not None:
            folder, lock = self._made
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            self._made = None


def _delete(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


# ---------------------------------------------------------------- sessions

_lock = threading.Lock()
_workspaces: dict[str, Workspace] = {}
_seen: dict[str, float] = {}
"""When each session was last known to be connected, by a clock that only goes forward."""
_sweeping = threading.Event()


def workspace() -> Workspace:
    """The workspace of the session that asks."""
    context = get_script_run_ctx()
    session = "" if context is None else context.session_id
    with _lock:
        _seen[session] = time.monotonic()
        if session not in _workspaces:
            _workspaces[session] = Workspace()
        found = _workspaces[session]
    _sweep_from_now_on()
    return found


def forget(session: str) -> None:
    """Drop what a session holds."""
    with _lock:
        held = _workspaces.pop(session, None)
        _seen.pop(session, None)
    if held is not None:
        held.close()


def held_by(session: str) -> dict[str, Any]:
    """What else a session holds, by the name of what it is; nothing of one that is not known."""
    with _lock:
        found = _workspaces.get(session)
    return {} if found is None else found.held


def clear_left_overs() -> None:
    """Delete what servers left that were killed: folders whose lock nobody holds."""
    try:
        folders = list(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
    except OSError:  # there is no such place, or it is full
        return
    for folder in folders:
        with suppress(OSError):
            ours = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if ours and (folder / LOCK).is_file() and not locks.is_held(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def sweep(now: float) -> None:
    """Drop what sessions hold that have not been connected for `KEPT_S` seconds."""
    connected = runtime.get_instance().is_active_session if runtime.exists() else None
    with _lock:
        for session in _seen:
            if connected is None or connected(session):
                _seen[session] = now
        gone = [session for session, seen in _seen.items() if now - seen > KEPT_S]
    for session in gone:
        forget(session)


def _sweep_from_now_on() -> None:
    """Look every minute who has gone: nobody else need come for their memory to be free again.

    Nor for a job that waits to begin when the one before it died without starting it.
    """
    with _lock:
        if _sweeping.is_set():
            return
        _sweeping.set()
    atexit.register(_close_all)
    clear_left_overs()

    def look() -> None:
        while True:
            if runtime.exists():  # pages that are tested have no server
                with suppress(InputError):
                    jobs().start_waiting()
            time.sleep(SWEEP_S)
            sweep(time.monotonic())
            tidy_up()

    threading.Thread(target=look, name="sweep of sessions", daemon=True).start()


def _close_all() -> None:
    for session in list(_workspaces):
        forget(session)


# ---------------------------------------------------------------- jobs

_opened: set[Path] = set()


def jobs() -> JobStore:
    """The jobs of this machine. At its first look a server goes on with what was interrupted."""
    store = JobStore(jobs_folder())
    with _lock:
        is_first = store.folder not in _opened
        _opened.add(store.folder)
    if is_first and is_folder(store.folder):
        with suppress(InputError):  # a folder that cannot be written can perhaps be read
            store.clean()
            store.go_on()
    return store


def job(job_id: str) -> Job[Any] | None:
    """A job by its id; None if there is none any more."""
    return jobs().find(job_id)
