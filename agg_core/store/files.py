"""Files of saved results, read with care: plain ones, of no more than a size, known by digests."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileError", "SavedFile", "read_file", "sha256", "size_of", "to_disk"]


@dataclass(frozen=True)
class SavedFile:
    """By what a file of a result is known again."""

    sha256: str
    bytes: int


class FileError(ValueError):
    """What is wrong with a file, as the end of a sentence that begins with its name."""


def sha256(path: Path) -> str:
    """Digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: Path, known: SavedFile | None = None) -> int:
    """Bytes of a plain file, which are those that are known.

    Raises
    ------
    FileError
        If it is missing, a link, a pipe, a device or a folder, or of another size.
    """
    try:
        told = path.lstat()
    except FileNotFoundError:
        raise FileError("is missing") from None
    except OSError as fault:
        raise FileError("cannot be read") from fault
    _check_plain(told)
    if known is not None and told.st_size != known.bytes:
        raise FileError("is cut short" if told.st_size < known.bytes else "has been altered")
    return told.st_size


def read_file(path: Path, most_bytes: int, known: SavedFile | None = None) -> bytes:
    """All of a plain file, which is what is known of it.

    What lies under the name is looked at before it is opened and again when it is open: a pipe is
    never waited for, and no link is followed.

    Raises
    ------
    FileError
        If it is missing, no plain file, larger than it may be, or not as it is known.
    """
    size_of(path, known)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            told = os.fstat(file.fileno())
            _check_plain(told)
            if told.st_size > most_bytes:
                raise FileError(f"is larger than the {most_bytes / 1e6:,.0f} MB that it may be")
            content = file.read(told.st_size)
    except OSError as fault:
        raise FileError("cannot be read") from fault
    if known is not None and (
        len(content) != known.bytes or hashlib.sha256(content).hexdigest() != known.sha256
    ):
        raise FileError("has been altered")
    return content


def _check_plain(told: os.stat_result) -> None:
    if not stat.S_ISREG(told.st_mode):
        raise FileError("is no plain file but a link, a pipe, a device or a folder")


def to_disk(path: Path) -> None:
    """Wait until a file or the names in a folder would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
