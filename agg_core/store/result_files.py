"""The files of one result: sealed by digests when they are written, checked before they are read.

``result.json`` holds size and digest of every file beside it (``files``) and a digest of all that
it says itself (``digest``). Results of earlier versions have neither and are read without.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agg_core.base.processes import write_json
from agg_core.store.files import FileError, SavedFile, read_file, sha256, size_of
from agg_core.store.sizes import Room, check_npz, check_parquet

__all__ = [
    "ARRAYS_FILE",
    "RESULT_FILE",
    "ResultFiles",
    "write_arrays",
    "write_result",
    "write_table",
]

RESULT_FILE = "result.json"
ARRAYS_FILE = "parameters.npz"
SEALS = ("files", "digest")

MOST_RESULT_BYTES = 32_000_000
MOST_JSON_BYTES = 64_000_000
MOST_FILE_BYTES = max(1 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
LEAST_ROOM = 512_000_000
"""Bytes that the files of any result may take when they are unpacked."""
UNPACKED_PER_BYTE = 100
"""And how many a byte of a file may take beyond: tables of moves have many zeros."""


class ResultFiles:
    """A folder of a result, whose files are read once each and only as they were written.

    ``known`` are digests that somebody else keeps, which must be met as well.

    Raises
    ------
    FileError
        From every method, with the name of the file: if one is missing, damaged, no plain file, or
        would take far more memory than it should.
    """

    def __init__(self, folder: Path, known: Mapping[str, SavedFile] | None = None) -> None:
        self.folder = folder
        self._known, self._is_sealed = dict(known or {}), False
        self._read: dict[str, bytes] = {}
        about = json.loads(self._content(RESULT_FILE, MOST_RESULT_BYTES))
        if not isinstance(about, dict):
            raise TypeError(about)
        if any(name in about for name in SEALS):
            self._unseal(about)
        self.about: dict[str, Any] = about
        self.room = Room(self._least_room())

    def has(self, name: str) -> bool:
        """Whether the result has a file, which one of an earlier version may lack."""
        return name in self._known if self._is_sealed else os.path.lexists(self.folder / name)

    def json(self, name: str) -> Any:
        """What a file of JSON says."""
        return json.loads(self._content(name, MOST_JSON_BYTES))

    def table(self, name: str) -> pd.DataFrame:
        """A table, once its headers have told that there is room for it."""
        content = self._content(name, MOST_FILE_BYTES)
        with _naming(name):
            check_parquet(content, self.room)
        return pd.read_parquet(io.BytesIO(content))

    @contextmanager
    def arrays(self) -> Iterator[Any]:
        """The arrays, by their names."""
        content = self._content(ARRAYS_FILE, MOST_FILE_BYTES)
        with _naming(ARRAYS_FILE):
            check_npz(content, self.room)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            yield arrays

    def check(self) -> None:
        """Read all files whose digests are known, before anything is made of one of them."""
        for name in sorted(self._known):
            if name != RESULT_FILE:  # which was the first that was read
                self._read[name] = self._content(name, MOST_FILE_BYTES)

    def _content(self, name: str, most_bytes: int) -> bytes:
        if self._is_sealed and name not in self._known:
            raise FileError(f"{name} is not one of its files")
        with _naming(name):
            content = self._read.pop(name, None)
            if content is None:
                content = read_file(self.folder / name, most_bytes, self._known.get(name))
            if len(content) > most_bytes:
                raise FileError("is larger than it may be")
        return content

    def _unseal(self, about: dict[str, Any]) -> None:
        """Take the digests out of what ``result.json`` says, which must be as it was written."""
        digest, listed = (about.pop(name, None) for name in reversed(SEALS))
        if digest != _digest(about, listed):
            raise FileError(f"{RESULT_FILE} has been altered")
        own = {
            str(name): SavedFile(str(file["sha256"]), int(file["bytes"]))
            for name, file in listed.items()
        }
        for name, file in own.items():
            if os.path.basename(name) != name or self._known.setdefault(name, file) != file:
                raise FileError(f"{RESULT_FILE} has been altered")
        self._is_sealed = True

    def _least_room(self) -> int:
        total = 0
        with os.scandir(self.folder) as entries:
            for entry in entries:
                total += entry.stat(follow_symlinks=False).st_size
        return max(LEAST_ROOM, UNPACKED_PER_BYTE * total)


def write_result(partial: Path, about: Mapping[str, Any]) -> None:
    """Write ``result.json`` beside all other files of a result, and the digests with it."""
    listed = {
        path.name: asdict(SavedFile(sha256(path), size_of(path)))
        for path in sorted(partial.iterdir())
    }
    values = json.loads(json.dumps(about))
    write_json(
        partial / RESULT_FILE, {**values, "files": listed, "digest": _digest(values, listed)}
    )


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table; by an open file, since a folder may have a name that is no text."""
    with path.open("wb") as file:
        table.to_parquet(file, index=False)


def write_arrays(arrays: Mapping[str, Any], path: Path) -> None:
    """Write arrays by their names, packed."""
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """What is wrong begins with the name of the file."""
    try:
        yield
    except FileError as fault:
        raise FileError(f"{name} {fault}") from fault


def _digest(about: Mapping[str, Any], listed: Any) -> str:
    text = json.dumps([about, listed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
