"""Saved runs: results that outlive the session and the server, opened by their id.

A store is a folder with one folder a run: ``about.json`` (what a list shows, with the size and the
digest of every file) and ``result``, as `save_result` writes it. A run is written under a temporary
name and brought to the disk; then, while no other process changes anything, it takes its own name
and is entered into the catalogue (`Catalogue`): the end of that transaction is the moment from
which it is saved. The catalogue is believed; ``about.json`` is its copy, of which a lost one is
made anew, by which runs of earlier versions are taken over, and which is mended when the store is
opened.

Who is killed leaves a folder with a temporary name, and nobody holds its lock: it is cleared away
when the store is opened. Who is killed after the run has its own name leaves a whole run, which is
taken over.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import platformdirs

from agg_core.base.disk import folder_named
from agg_core.base.errors import InputError
from agg_core.evidence.limited import shared as shared_result
from agg_core.evidence.privacy import Limit
from agg_core.store.catalogue import Catalogue
from agg_core.store.codec import load_known_result, load_result, save_result
from agg_core.store.files import FileError, read_file, size_of, to_disk
from agg_core.store.saved_runs import (
    DamagedRun,
    NewerRun,
    SavedRun,
    about_result,
    from_json,
    to_json,
)
from agg_core.study.result import FlowResult

__all__ = ["DAMAGE", "Quota", "RunStore", "default_folder", "unknown_run"]

ABOUT = "about.json"
RESULT = "result"
GONE = "gone"
CANNOT_BE_ASKED = ""
DAMAGED = "run-damaged"
MOST_ABOUT_BYTES = 4_000_000

LONGEST_TITLE = 200
ORPHAN_AGE_S = 3600.0
"""Where the disk knows no locks: no save takes this long, so an older temporary name is left."""

RUN_ID = re.compile(r"[0-9a-f]{32}")
TEMPORARY = re.compile(r"\.([0-9a-f]{32})(\.[0-9a-z]+)?")

DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading ``about.json`` raises when it is cut or altered."""

REFUSALS = (OSError, sqlite3.Error)
"""What the disk refuses."""


def default_folder() -> Path:
    """Where runs are saved: below FLOWS_HOME if it is set, or below the user's data folder."""
    home = os.environ.get("FLOWS_HOME")
    base = folder_named(home) if home else platformdirs.user_data_path("population-flows")
    return base.absolute() / "runs"


@dataclass(frozen=True)
class Quota:
    """How many runs an owner may keep, and how many there may be in all."""

    each: int = 200
    in_all: int = 5_000

    @classmethod
    def of_environment(cls) -> Self:
        """What FLOWS_RUNS_EACH and FLOWS_RUNS_IN_ALL say.

        Raises
        ------
        InputError
            If one of them is no number above 0.
        """
        told = {}
        for name, variable in (("each", "FLOWS_RUNS_EACH"), ("in_all", "FLOWS_RUNS_IN_ALL")):
            text = os.environ.get(variable, "").strip()
            if text and not (text.isdecimal() and text.isascii() and int(text[:18]) > 0):
                raise InputError(
                    f"{variable} is no number of runs: whoever runs the server must set it to a "
                    "whole number above 0.",
                    code="wrong-quota",
                )
            if text:
                told[name] = int(text[:18])
        return cls(**told)


class RunStore:
    """The saved runs of a folder, which need not exist yet; any number of processes may use it.

    Ids are random and of a form that is checked before a path is made of one. Left-overs of
    killed processes are cleared away when the store is opened.

    Parameters
    ----------
    folder
        Where they lie.
    quota
        How many may be saved; what the environment says, if left out.

    Raises
    ------
    InputError
        From every method: if there is no run of that id, it is damaged, or the disk refuses.
    """

    def __init__(self, folder: Path, quota: Quota | None = None) -> None:
        self.folder = folder
        self._quota = quota
        self._catalogue = Catalogue(folder)
        # A folder that cannot be written can perhaps be read.
        with suppress(*REFUSALS, InputError):
            if folder.is_dir():
                self._clear_left_overs()
                self._take_over()
                self._mend_copies()

    @property
    def quota(self) -> Quota:
        """How many runs may be saved."""
        return self._quota or Quota.of_environment()

    def save(self, result: FlowResult | Path, title: str, owner: str | None = None) -> SavedRun:
        """Save a result, or a copy of the folder that holds one, whole or not at all.

        Raises
        ------
        InputError
            Also if the owner has as many runs as the quota allows, or there are as many in all.
        """
        title = _as_title(title)
        with _disk("saved"):
            self._check_quota(owner)
        held = load_result(result) if isinstance(result, Path) else result
        run_id = secrets.token_hex(16)
        with _disk("saved"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial, place = self.folder / f".{run_id}", self.folder / run_id
            with _claimed(partial):
                try:
                    run = _written(partial, run_id, title, held, owner)
                    with self._catalogue.changing() as change:
                        self._check_quota(owner, change)
                        os.replace(partial, place)
                        to_disk(self.folder)
                        self._catalogue.put(change, run_id, owner, to_json(run))
                except BaseException as fault:
                    entered = self._is_entered(run_id)
                    if entered and isinstance(fault, Exception):
                        return run  # the end of the transaction was reached before the fault
                    if entered is False:
                        self._put_away(run_id)
                    raise
        return run

    def load(self, run_id: str) -> FlowResult:
        """Open a run after checking that its files are those that were saved."""
        run = self.about(run_id)
        try:
            return load_known_result(self.folder / run_id / RESULT, run.files)
        except InputError as fault:
            if fault.code != "result-damaged":
                raise
            why = fault.__cause__
            how = str(why) if isinstance(why, FileError) else "its files cannot be read"
            raise _damaged(run.title, how) from fault

    def about(self, run_id: str) -> SavedRun:
        """What is told of a run without opening it."""
        return _read_about(run_id, self._text(run_id))

    def list(self) -> tuple[SavedRun | DamagedRun | NewerRun, ...]:
        """All runs, newest first.

        A run whose files are missing or of another size is listed as damaged; that their content
        is unaltered is checked when it is opened.
        """
        with _disk("listed"):
            entries = self._catalogue.entries()
            ids = {*entries, *self._ids()}
            found = [self._listed(run_id, entries.get(run_id)) for run_id in ids]
        runs = [run for run in found if run is not None]
        return tuple(sorted(runs, key=lambda run: (run.created_utc, run.id), reverse=True))

    def list_of(self, owner: str | None) -> tuple[SavedRun | DamagedRun | NewerRun, ...]:
        """The runs of an owner, newest first; None asks for those that are nobody's own."""
        return tuple(run for run in self.list() if run.owner == owner)

    def owner_of(self, run_id: str) -> str | None:
        """Whose a run is, damaged or not; None if it is nobody's own."""
        return self._rights(run_id)[0]

    def check_open(self, run_id: str, owner: str) -> None:
        """Refuse a run that somebody may not open.

        A run opens for its owner; for others if it is shared, or if it is nobody's own.

        Raises
        ------
        InputError
            The same for a run of somebody else as for one that there is not.
        """
        its_owner, shared = self._rights(run_id)
        if its_owner not in (None, owner) and not shared:
            raise unknown_run()

    def share(self, run_id: str, shared: bool, least_people: int | None = None) -> SavedRun:
        """Let others open a run who have its address, or no longer.

        Flows of fewer than ``least_people`` are withheld from them; as it was, if left out.

        Raises
        ------
        InputError
            Also if there is no such least number of people.
        """
        if least_people is None:
            return self._changed(run_id, shared=shared)
        least = int(Limit(least_people).least_people)
        return self._changed(run_id, shared=shared, least_people=least)

    def load_for(self, run_id: str, owner: str) -> FlowResult:
        """Open a run as somebody may see it: its owner whole, others within its limit.

        Raises
        ------
        InputError
            Also if it may not be opened, as `check_open` has it.
        """
        self.check_open(run_id, owner)
        if self.owner_of(run_id) == owner:
            return self.load(run_id)
        return shared_result(self.load(run_id), self.about(run_id).least_people)

    def rename(self, run_id: str, title: str) -> SavedRun:
        """Give a run another title."""
        return self._changed(run_id, title=_as_title(title))

    def delete(self, run_id: str) -> None:
        """Delete a run, damaged or not; it is gone at once, also if its files take a while.

        One of a later version stays.
        """
        try:
            self.about(run_id)
        except InputError as fault:
            if fault.code != DAMAGED:
                raise
        place, gone = self.folder / run_id, self.folder / f".{run_id}.{GONE}"
        with _disk("deleted"):
            moved = False
            try:
                with self._catalogue.changing() as change:
                    self._catalogue.remove(change, run_id)
                    if os.path.lexists(place):
                        os.replace(place, gone)
                        moved = True
                        to_disk(self.folder)
            except BaseException:
                entered = self._is_entered(run_id)
                if moved and entered:
                    os.replace(gone, place)
                if entered is not False or not moved:
                    raise
            shutil.rmtree(gone, ignore_errors=True)

    # ------------------------------------------------------------------ what is told of a run

    def _text(self, run_id: str) -> str:
        text = self._text_or_none(run_id)
        if text is None:
            raise _damaged(run_id[:8], f"{ABOUT} cannot be read")
        return text

    def _text_or_none(self, run_id: str) -> str | None:
        """What is told of a run: by the catalogue, or else by the copy, None if that is damaged."""
        if not RUN_ID.fullmatch(run_id):
            raise unknown_run()
        with _disk("opened"):
            told = self._catalogue.entry(run_id)
        if told is None:
            try:
                there = (self.folder / run_id).is_dir()
            except OSError:
                there = True  # it cannot be looked at
            if not there:
                raise unknown_run()
            told = self._copy(run_id)
        return told

    def _copy(self, run_id: str) -> str | None:
        try:
            return read_file(self.folder / run_id / ABOUT, MOST_ABOUT_BYTES).decode("utf-8")
        except ValueError:  # no plain file, or no text
            return None

    def _rights(self, run_id: str) -> tuple[str | None, bool]:
        """Owner of a run, as far as anything tells, and whether it is shared."""
        return _rights(self._text_or_none(run_id))

    def _changed(self, run_id: str, **values: Any) -> SavedRun:
        self.about(run_id)
        new: SavedRun | None = None
        with _disk("changed"):
            try:
                with self._catalogue.changing() as change:
                    told = self._catalogue.told(change, run_id)
                    # It may have been deleted since it was looked at.
                    run = _read_about(run_id, self._text(run_id) if told is None else told)
                    new = replace(run, **values)
                    self._catalogue.put(change, run_id, new.owner, to_json(new))
            except REFUSALS:
                if new is None or self._entry(run_id) != to_json(new):
                    raise  # or else the end of the transaction was reached before the fault
            assert new is not None
            self._put_copy(run_id, to_json(new))
        return new

    def _put_copy(self, run_id: str, text: str) -> None:
        """Write ``about.json``; what the disk refuses is mended when the store is opened."""
        partial = self.folder / f".{run_id}.{secrets.token_hex(4)}"
        with suppress(OSError):
            try:
                partial.write_text(text, encoding="utf-8")
                to_disk(partial)
                os.replace(partial, self.folder / run_id / ABOUT)
                to_disk(self.folder / run_id)
            finally:
                partial.unlink(missing_ok=True)

    def _put_away(self, run_id: str) -> None:
        """Delete what was written of a run that is not saved, so that no half of it is seen."""
        partial, place = self.folder / f".{run_id}", self.folder / run_id
        with suppress(OSError):
            os.replace(place, self.folder / f".{run_id}.{GONE}")
        for left in (partial, place, self.folder / f".{run_id}.{GONE}"):
            shutil.rmtree(left, ignore_errors=True)

    def _is_entered(self, run_id: str) -> bool | None:
        """Whether the catalogue has a run; None if it cannot be asked."""
        entry = self._entry(run_id)
        return None if entry == CANNOT_BE_ASKED else entry is not None

    def _entry(self, run_id: str) -> str | None:
        """What the catalogue tells of a run, if it can be asked after a fault."""
        try:
            return self._catalogue.entry(run_id)
        except (*REFUSALS, InputError):
            return CANNOT_BE_ASKED

    # ------------------------------------------------------------------------------ lists

    def _ids(self) -> tuple[str, ...]:
        names = os.listdir(self.folder) if self.folder.is_dir() else ()
        return tuple(name for name in names if RUN_ID.fullmatch(name))

    def _listed(self, run_id: str, told: str | None) -> SavedRun | DamagedRun | NewerRun | None:
        """One line of the list; None for a run that somebody deletes meanwhile."""
        text = self._copy(run_id) if told is None else told
        owner = _rights(text)[0]
        try:
            if text is None:
                raise _damaged(run_id[:8], f"{ABOUT} cannot be read")
            run = _read_about(run_id, text)
            self._check_sizes(run)
        except InputError as fault:
            kind = DamagedRun if fault.code == DAMAGED else NewerRun
            try:
                changed = (self.folder / run_id).stat().st_mtime
            except FileNotFoundError:
                if self._is_entered(run_id):
                    return DamagedRun(run_id, _created(text), str(fault), owner)
                return None
            except OSError:
                changed = 0.0
            return kind(run_id, datetime.fromtimestamp(changed, UTC), str(fault), owner)
        return run

    def _check_sizes(self, run: SavedRun) -> None:
        for name, saved in run.files.items():
            try:
                size_of(self.folder / run.id / RESULT / name, saved)
            except FileError as fault:
                raise _damaged(run.title, f"{name} {fault}") from fault

    def _check_quota(self, owner: str | None, change: sqlite3.Connection | None = None) -> None:
        quota, n_in_all = self.quota, len(self._ids())
        if change is None:
            entries = self._catalogue.entries()
            n_own = sum(_rights(text)[0] == owner for text in entries.values())
        else:
            n_own = self._catalogue.number_of(change, owner)
        if n_own >= quota.each:
            raise InputError(
                f"There are {n_own:,} saved runs of yours, and {quota.each:,} may be kept: delete "
                "some that you no longer need on the page Runs, and save this one there.",
                code="too-many-runs",
            )
        if n_in_all >= quota.in_all:
            raise InputError(
                f"There are {n_in_all:,} saved runs of all people together, and {quota.in_all:,} "
                "may be kept: delete some of yours on the page Runs and save this one there, or "
                "ask whoever runs the server for room.",
                code="too-many-runs-in-all",
            )

    # ----------------------------------------------------------------- when it is opened

    def _clear_left_overs(self) -> None:
        """Delete what killed processes left, and nothing that another process works on."""
        deleted = []
        for name in os.listdir(self.folder):
            temporary = TEMPORARY.fullmatch(name)
            path = self.folder / name
            if temporary is None:
                continue
            if temporary[2] is None:
                _clear_if_left(path)
            elif temporary[2] == f".{GONE}":
                deleted.append((temporary[1], path))
            else:  # what was to become a copy: one that is written now is mended later
                with suppress(OSError):
                    path.unlink()
        if deleted:
            # While nothing is changed: a deletion that has come so far is brought to its end.
            with self._catalogue.changing() as change:
                for run_id, path in deleted:
                    if path.is_dir() and not (self.folder / run_id).exists():
                        self._catalogue.remove(change, run_id)
            for _, path in deleted:
                shutil.rmtree(path, ignore_errors=True)

    def _take_over(self) -> None:
        """Enter runs that are not in the catalogue: of earlier versions, or if it was lost."""
        entries = self._catalogue.entries()
        found = []
        for run_id in self._ids():
            text = None if run_id in entries else self._copy(run_id)
            if text is None:
                continue
            with suppress(InputError):
                run = _read_about(run_id, text)
                if self._is_whole(run):
                    found.append((run, text))
        if found:
            with self._catalogue.changing() as change:
                for run, text in found:
                    new = self._catalogue.told(change, run.id) is None
                    if new and (self.folder / run.id).is_dir():
                        self._catalogue.put(change, run.id, run.owner, text)

    def _is_whole(self, run: SavedRun) -> bool:
        try:
            for name, saved in run.files.items():
                read_file(self.folder / run.id / RESULT / name, saved.bytes, saved)
        except FileError:
            return False
        return True

    def _mend_copies(self) -> None:
        for run_id, text in self._catalogue.entries().items():
            if (self.folder / run_id).is_dir() and self._copy(run_id) != text:
                self._put_copy(run_id, text)


def unknown_run() -> InputError:
    """That there is no such run, or none that may be opened: nobody learns which of both."""
    return InputError(
        "There is no saved run of that address that you may open; it may have been deleted or be "
        "another's, so ask for a new address or learn again.",
        code="unknown-run",
    )


def _damaged(what: str, how: str) -> InputError:
    return InputError(
        f"The saved run {what} is damaged: {how}; delete it and run the learner again.",
        code="run-damaged",
    )


def _read_about(run_id: str, text: str) -> SavedRun:
    """What the text of ``about.json`` tells.

    Raises
    ------
    InputError
        If it was altered, or is of a later version.
    """
    try:
        return from_json(run_id, json.loads(text))
    except DAMAGE as fault:
        if isinstance(fault, InputError):
            raise
        raise _damaged(run_id[:8], f"{ABOUT} cannot be read") from fault


def _rights(text: str | None) -> tuple[str | None, bool]:
    """Owner and sharing that a text tells, also one that is of a later version."""
    with suppress(*DAMAGE):
        told = json.loads(text or "null")
        if isinstance(told, dict) and told.get("owner") is not None:
            return str(told["owner"]), told.get("shared") is True
    return None, False


def _created(text: str | None) -> datetime:
    """When a run was saved, as far as a text tells."""
    with suppress(*DAMAGE):
        return datetime.fromisoformat(json.loads(text or "")["created"]).astimezone(UTC)
    return datetime.fromtimestamp(0, UTC)


def _written(
    partial: Path, run_id: str, title: str, held: FlowResult, owner: str | None
) -> SavedRun:
    """Fill the folder of a run and wait until all of it is on the disk."""
    save_result(held, partial / RESULT)
    run = about_result(run_id, title, held, partial / RESULT, owner)
    (partial / ABOUT).write_text(to_json(run), encoding="utf-8")
    for name in run.files:
        to_disk(partial / RESULT / name)
    for written in (partial / RESULT, partial / ABOUT, partial):
        to_disk(written)
    return run


@contextmanager
def _claimed(partial: Path) -> Iterator[None]:
    """A new folder that is locked as long as this process fills it."""
    while True:
        partial.mkdir(mode=0o700)
        try:
            handle = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # taken for a left-over before it was locked
            continue
        try:
            with suppress(OSError):  # where the disk knows no locks, the age tells
                fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_there(handle, partial):
                continue
            yield
            return
        finally:
            os.close(handle)


def _is_there(handle: int, path: Path) -> bool:
    """Whether a path names what is open."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _clear_if_left(partial: Path) -> None:
    """Delete the folder of a save, unless a process holds its lock."""
    with suppress(OSError):
        handle = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            except OSError:
                if time.time() - os.fstat(handle).st_mtime < ORPHAN_AGE_S:
                    return
            shutil.rmtree(partial, ignore_errors=True)
        finally:
            os.close(handle)


@contextmanager
def _disk(done: str) -> Iterator[None]:
    """What the disk refuses is one sentence."""
    try:
        yield
    except REFUSALS as fault:
        why = (fault.strerror if isinstance(fault, OSError) else None) or fault
        raise InputError(
            f"The saved run could not be {done} ({why}); free space on the disk, or set "
            "FLOWS_HOME to a folder that can be written.",
            code="run-not-written",
        ) from fault


def _as_title(text: str) -> str:
    """One line of text, cut where nobody reads on."""
    title = " ".join(text.split())[:LONGEST_TITLE]
    if not title:
        raise InputError("Give the run a title of at least one letter.", code="title-empty")
    return title
