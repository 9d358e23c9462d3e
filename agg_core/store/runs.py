"""Saved runs: results that outlive the session and the server, opened by their id.

A store is a folder with one folder a run: ``about.json`` (what a list shows, and the size and
XX
counts, `save_counted` writes it; ``kind`` says which, and without it is a study. A run is written
under a temporary name, brought to the disk, and then takes its own name in one step: that is the
moment from which it is saved. No catalogue is kept beside the folders, since the store holds a
few hundred runs at most (`MOST_RUNS`): reading each ``about.json`` takes milliseconds, and there
is nothing that could disagree with the files.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from agg_core.base.errors import InputError
from agg_core.store.codec import load_result, save_result
from agg_core.store.saved_runs import (
    DamagedRun,
    SavedFile,
    SavedRun,
    about_result,
    from_json,
    sha256,
    to_json,
)
from agg_core.study.result import FlowResult

__all__ = ["DAMAGE", "MOST_RUNS", "RunStore", "default_folder"]

ABOUT = "about.json"
RESULT = "result"

MOST_RUNS = 200
"""Runs that a store keeps by itself; one more and the oldest goes."""

LONGEST_TITLE = 200
ORPHAN_AGE_S = 3600.0
"""No save takes as long as this: a temporary name that old was left by a killed process."""

RUN_ID = re.compile(r"[0-9a-f]{32}")
TEMPORARY = re.compile(r"\.[0-9a-f]{32}(\.[0-9a-z]+)?")

DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading ``about.json`` raises when it is cut or altered."""


def default_folder() -> Path:
    """Where runs are saved: below FLOWS_HOME if it is set, or below the user's data folder."""
    home = os.environ.get("FLOWS_HOME")
    base = Path(home).expanduser() if home else platformdirs.user_data_path("population-flows")
    return base.absolute() / "runs"


class RunStore:
    """The saved runs of a folder, which need not exist yet; any number of processes may use it.

    Ids are random and of a form that is checked before a path is made of one. Left-overs of
    killed processes are cleared away when the store is opened.

    Raises
    ------
    InputError
        From every method: if there is no run of that id, it is damaged, or the disk refuses.
    """

    def __init__(self, folder: Path, most_runs: int = MOST_RUNS) -> None:
        self.folder = folder
        self.most_runs = most_runs
        self._clear_orphans()

    def save(self, result: FlowResult | Path, title: str) -> SavedRun:
        """Save a result, or a copy of the folder that holds one, whole or not at all.

        Beyond ``most_runs`` the oldest run is deleted.
        """
        held = load_result(result) if isinstance(result, Path) else result
        run_id = secrets.token_hex(16)
        partial = self.folder / f".{run_id}"
        with _disk("saved"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                partial.mkdir(mode=0o700)
                save_result(held, partial / RESULT)
                run = about_result(run_id, _as_title(title), held, partial / RESULT)
                (partial / ABOUT).write_text(to_json(run), encoding="utf-8")
                for name in run.files:
                    _to_disk(partial / RESULT / name)
                for written in (partial / RESULT, partial / ABOUT, partial):
                    _to_disk(written)
                os.replace(partial, self.folder / run_id)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            _to_disk(self.folder)
        self._delete_oldest(keep=run_id)
        return run

    def load(self, run_id: str) -> FlowResult:
        """Open a run after checking that its files are those that were saved."""
        run = self.about(run_id)
        for name, saved in run.files.items():
            fault = _fault(self.folder / run_id / RESULT / name, saved)
            if fault:
                raise InputError(_damaged(run.title, f"{name} {fault}"), code="run-damaged")
        return load_result(self.folder / run_id / RESULT)

    def about(self, run_id: str) -> SavedRun:
        """What is told of a run without opening it."""
        folder = self._folder(run_id)
        try:
            return from_json(run_id, json.loads((folder / ABOUT).read_text(encoding="utf-8")))
        except DAMAGE as fault:
            if isinstance(fault, InputError):
                raise
            raise InputError(
                _damaged(run_id[:8], f"{ABOUT} cannot be read"), code="run-damaged"
            ) from fault

    def list(self) -> tuple[SavedRun | DamagedRun, ...]:
        """All runs, newest first.

        A run whose files are missing or of another size is listed as damaged; that their content
        is unaltered is checked when it is opened.
        """
        found = [run for run in map(self._listed, self._ids()) if run is not None]
        return tuple(sorted(found, key=lambda run: run.created_utc, reverse=True))

    def rename(self, run_id: str, title: str) -> SavedRun:
        """Give a run another title."""
        run = replace(self.about(run_id), title=_as_title(title))
        partial = self.folder / f".{run_id}.{secrets.token_hex(4)}"
        with _disk("renamed"):
            partial.write_text(to_json(run), encoding="utf-8")
            _to_disk(partial)
            os.replace(partial, self.folder / run_id / ABOUT)
            _to_disk(self.folder / run_id)
        return run

    def delete(self, run_id: str) -> None:
        """Delete a run, damaged or not; it is gone at once, also if its files take a while."""
        folder, gone = self._folder(run_id), self.folder / f".{run_id}.gone"
        with _disk("deleted"):
            os.replace(folder, gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _folder(self, run_id: str) -> Path:
        if not RUN_ID.fullmatch(run_id) or not (self.folder / run_id).is_dir():
            raise InputError(
                "There is no saved run of that address; it may have been deleted, so ask for a "
                "new address or learn again.",
                code="unknown-run",
            )
        return self.folder / run_id

    def _ids(self) -> tuple[str, ...]:
        with _disk("listed"):
            names = os.listdir(self.folder) if self.folder.is_dir() else ()
        return tuple(name for name in names if RUN_ID.fullmatch(name))

    def _listed(self, run_id: str) -> SavedRun | DamagedRun | None:
        """One line of the list; None for a run that somebody deletes meanwhile."""
        folder = self.folder / run_id
        try:
            run = self.about(run_id)
            for name, saved in run.files.items():
                fault = _size_fault(folder / RESULT / name, saved)
                if fault:
                    raise InputError(_damaged(run.title, f"{name} {fault}"), code="run-damaged")
        except InputError as fault:
            with suppress(FileNotFoundError):
                changed = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
                return DamagedRun(run_id, changed, str(fault))
            return None
        return run

    def _delete_oldest(self, keep: str) -> None:
        others = [run.id for run in self.list() if run.id != keep]
        for run_id in others[self.most_runs - 1 :]:
            with suppress(InputError):  # another process was faster
                self.delete(run_id)

    def _clear_orphans(self) -> None:
        with suppress(OSError):  # a folder that cannot be cleared can perhaps be read
            for entry in self.folder.iterdir() if self.folder.is_dir() else ():
                old = time.time() - entry.lstat().st_mtime > ORPHAN_AGE_S
                if old and TEMPORARY.fullmatch(entry.name):
                    if entry.is_dir():
                        shutil.rmtree(entry, ignore_errors=True)
                    else:
                        entry.unlink(missing_ok=True)


@contextmanager
def _disk(done: str) -> Iterator[None]:
    """What the disk refuses is one sentence."""
    try:
        yield
    except OSError as fault:
        raise InputError(
            f"The saved run could not be {done} ({fault.strerror or fault}); free space on the "
            "disk, or set FLOWS_HOME to a folder that can be written.",
            code="run-not-written",
        ) from fault


def _to_disk(path: Path) -> None:
    """Wait until a file or the names in a folder would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _as_title(text: str) -> str:
    """One line of text, cut where nobody reads on."""
    title = " ".join(text.split())[:LONGEST_TITLE]
    if not title:
        raise InputError("Give the run a title of at least one letter.", code="title-empty")
    return title


def _size_fault(path: Path, saved: SavedFile) -> str:
    """What is wrong with a file at a glance, or nothing."""
    try:
        size = path.stat().st_size
    except OSError:
        return "is missing"
    if size == saved.bytes:
        return ""
    return "is cut short" if size < saved.bytes else "has been altered"


def _fault(path: Path, saved: SavedFile) -> str:
    """What is wrong with a file after reading all of it, or nothing."""
    try:
        return _size_fault(path, saved) or (
            "" if sha256(path) == saved.sha256 else "has been altered"
        )
    except OSError:
        return "cannot be read"


def _damaged(what: str, how: str) -> str:
    return f"The saved run {what} is damaged: {how}; delete it and run the learner again."
