"""The catalogue of saved runs: a SQLite file beside their folders, with what is told of each.

What it says is believed; the ``about.json`` in the folder of a run is a copy, of which a lost
catalogue is made anew. Each entry is sealed by a digest: one that was altered counts as none.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from agg_core.base.errors import InputError
from agg_core.store.files import FileError, size_of

__all__ = ["Catalogue"]

CATALOGUE = "catalogue.sqlite"
VERSION = 1
BUSY_S = 20.0
"""How long one process waits for the change of another, which is short."""

NO_CATALOGUE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, owner TEXT, about TEXT NOT NULL, seal TEXT NOT NULL
)
"""


class Catalogue:
    """The entries of a folder of runs; any number of processes may use it.

    Raises
    ------
    InputError
        From every method: if a later version wrote it.
    sqlite3.Error, OSError
        If the disk refuses, or another process is busy for long.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CATALOGUE

    def entries(self) -> dict[str, str]:
        """What is told of each run, as its ``about.json`` has it, by their ids."""
        return {run_id: about for run_id, about, seal in self._read() if seal == _seal(about)}

    def entry(self, run_id: str) -> str | None:
        """What is told of a run; None if it is not in the catalogue."""
        found = self._read("WHERE id = ?", run_id)
        return next((about for _, about, seal in found if seal == _seal(about)), None)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One change, whole or not at all, while every other process waits."""
        try:
            connection = self._begun()
        except sqlite3.DatabaseError as fault:
            if not _is_none(fault):
                raise
            self._set_aside()
            connection = self._begun()
        with closing(connection):
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # it may have rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    @staticmethod
    def put(change: sqlite3.Connection, run_id: str, owner: str | None, about: str) -> None:
        """Enter a run, or what is told of it now."""
        change.execute(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", (run_id, owner, about, _seal(about))
        )

    @staticmethod
    def told(change: sqlite3.Connection, run_id: str) -> str | None:
        """What is told of a run while it is being changed."""
        rows = change.execute("SELECT about, seal FROM runs WHERE id = ?", (run_id,))
        # What was altered may be no text.
        texts = ((str(about), seal) for about, seal in rows)
        return next((about for about, seal in texts if seal == _seal(about)), None)

    @staticmethod
    def remove(change: sqlite3.Connection, run_id: str) -> None:
        """Take a run out."""
        change.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    @staticmethod
    def number_of(change: sqlite3.Connection, owner: str | None) -> int:
        """How many runs an owner has; None asks for those that are nobody's own."""
        found = change.execute("SELECT count(*) FROM runs WHERE owner IS ?", (owner,)).fetchone()
        return int(found[0])

    def _begun(self) -> sqlite3.Connection:
        connection = self._connected()
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            # As FULL, and the end of the journal is on the disk as well: what was acknowledged
            # stays so after a power cut.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            if self._version(connection) == 0:
                connection.execute(TABLE)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _read(self, where: str = "", *values: str) -> list[tuple[str, str, str]]:
        if not os.path.lexists(self.path):
            return []
        try:
            with closing(self._connected()) as connection:
                if self._version(connection) == 0:
                    return []
                asked = f"SELECT id, about, seal FROM runs {where}"  # noqa: S608  # words of ours
                return [(str(a), str(b), str(c)) for a, b, c in connection.execute(asked, values)]
        except sqlite3.DatabaseError as fault:
            if not _is_none(fault):
                raise
            return []  # the copies tell; the next change makes the catalogue anew

    def _connected(self) -> sqlite3.Connection:
        if os.path.lexists(self.path):
            try:
                size_of(self.path)
            except FileError as fault:
                raise OSError(f"{CATALOGUE} {fault}") from fault
        return sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)

    @staticmethod
    def _version(connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise InputError(
                f"The catalogue of the saved runs is of format {version}, and this version reads "
                f"{VERSION}: use the version that wrote it.",
                code="other-format-version",
            )
        return version

    def _set_aside(self) -> None:
        """Give what is no catalogue any more another name, once, whoever finds it."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            try:
                self._begun().close()
            except sqlite3.DatabaseError as fault:
                if not _is_none(fault):
                    raise
                os.replace(self.path, f"{self.path}.damaged.{secrets.token_hex(4)}")
        finally:
            os.close(folder)


def _is_none(fault: sqlite3.DatabaseError) -> bool:
    return getattr(fault, "sqlite_errorcode", None) in NO_CATALOGUE


def _seal(about: str) -> str:
    return hashlib.sha256(about.encode()).hexdigest()
