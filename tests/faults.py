"""What tests of faults share: the error that is expected, by its code, and a disk that refuses."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

from agg_core.base.errors import InputError

__all__ = ["Refusing", "disk_refuses", "refused"]


@contextmanager
def refused(
    code: str, *told: str, kind: type[InputError] = InputError
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """An error of this code is raised within; its sentence carries each name or value ``told``."""
    with pytest.raises(kind) as fault:
        yield fault
    assert fault.value.code == code, str(fault.value)
    for part in told:
        assert part in str(fault.value), str(fault.value)


# ---------------------------------------------------------------- a disk that refuses

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime", "os.link", "os.symlink",
           "os.truncate")  # fmt: skip
NEED_ROOM = ("os.mkdir", "os.symlink")
LOOKS = ("os.listdir", "os.scandir")


@dataclass
class Refusing:
    """A folder of which the system refuses steps: a file that is opened, a name that is changed.

    With ENOSPC those that need room, with EROFS all that change anything, with EACCES also to look
    into it. Of those that it would refuse it does so from the ``nth`` on, or the ``nth`` alone if
    it is to pass. Which they were is told in ``refused``.
    """

    folder: str
    number: int
    nth: int = 1
    passes: bool = False
    n_steps: int = 0
    refused: list[str] = field(default_factory=list)

    def look(self, event: str, path: Any, flags: int) -> None:
        """Raise what the system would."""
        if not isinstance(path, str | bytes | os.PathLike):
            return
        name = os.path.abspath(os.fsdecode(path))
        if name != self.folder and not name.startswith(f"{self.folder}/"):
            return
        if not self._concerns(event, name, flags):
            return
        self.n_steps += 1
        if self.n_steps == self.nth or (self.n_steps > self.nth and not self.passes):
            self.refused.append(f"{event} {os.path.basename(name)}")
            raise OSError(self.number, os.strerror(self.number), name)

    def _concerns(self, event: str, name: str, flags: int) -> bool:
        if self.number == errno.ENOSPC:
            # A file that is there can be opened, and so a lock of it taken.
            new = event == "open" and flags & WRITING and (
                flags & (os.O_TRUNC | os.O_APPEND) or not os.path.exists(name)
            )  # fmt: skip
            return bool(new) or (event in NEED_ROOM and not os.path.lexists(name))
        if event == "os.mkdir" and os.path.lexists(name):
            return False  # that it is there is told first
        if event in CHANGES or (event == "open" and flags & WRITING):
            return True
        return self.number == errno.EACCES and event in ("open", *LOOKS)


_refusing: list[Refusing] = []


def _hear(event: str, given: tuple[Any, ...]) -> None:
    """Python tells of each step before it does it; whoever hears may raise in its place."""
    if not _refusing or event not in ("open", *CHANGES, *LOOKS):
        return
    flags = given[2] if event == "open" else 0
    for disk in _refusing:
        disk.look(event, given[0], flags or 0)


sys.addaudithook(_hear)  # it cannot be taken away again


_begin_writing = pq.ParquetWriter.__init__


def _writes(writer: pq.ParquetWriter, where: Any, *given: Any, **others: Any) -> None:
    """Arrow writes by itself, without a word to Python."""
    for disk in _refusing:
        disk.look("open", where, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    _begin_writing(writer, where, *given, **others)


class _Connection(sqlite3.Connection):
    """SQLite, too."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        for disk in _refusing:
            (row,) = super().execute("PRAGMA database_list").fetchall()
            full = disk.number == errno.ENOSPC
            changes = ("COMMIT", "INSERT", "CREATE") if full else ("BEGIN", "INSERT", "CREATE")
            if statement.lstrip().startswith(changes):
                try:
                    disk.look("open", row[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                except OSError as fault:
                    why = "database or disk is full" if full else "attempt to write a readonly file"
                    raise sqlite3.OperationalError(why) from fault
        return super().execute(statement, *values)


@contextmanager
def disk_refuses(
    folder: Path, number: int = errno.ENOSPC, nth: int = 1, *, passes: bool = False
) -> Iterator[Refusing]:
    """Have the system refuse what this process does below a folder; see `Refusing`.

    It is refused to whoever runs the tests, root included, and to no process that is started.
    """
    disk = Refusing(os.path.abspath(folder), number, nth, passes)
    connect = sqlite3.connect

    def connected(path: Any, *given: Any, **others: Any) -> sqlite3.Connection:
        if not os.path.exists(path):
            try:
                disk.look("open", path, os.O_RDWR | os.O_CREAT)
            except OSError as fault:
                raise sqlite3.OperationalError("unable to open database file") from fault
        return connect(path, *given, factory=_Connection, **others)

    with (
        mock.patch.object(pq.ParquetWriter, "__init__", _writes),
        mock.patch.object(sqlite3, "connect", connected),
    ):
        _refusing.append(disk)
        try:
            yield disk
        finally:
            _refusing.remove(disk)
