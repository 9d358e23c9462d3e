"""The content of a path, an upload or an open file, unpacked when it is gzip.

What is large is not loaded but mapped from its file.
"""

from __future__ import annotations

import mmap
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from agg_core.base.errors import InputError
from agg_core.io.archives import GZIP_MAGIC, MAPPED_BYTES, Data, inflate

__all__ = ["MAX_BYTES", "Data", "content_bytes", "read_content"]

MAX_BYTES = 64 << 30
"""Largest content taken in, in bytes, before and after unpacking."""

Source = str | PathLike[str] | bytes | BinaryIO


def read_content(source: Source, name: str, max_bytes: int = MAX_BYTES) -> Data:
    """The content of a path, a bytes object or a binary file, unpacked if it is gzip.

    Raises
    ------
    InputError
        If there is no such file, it is empty, larger than ``max_bytes``, or broken gzip.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data: Data = bytes(source)
    elif isinstance(source, str | PathLike):
        data = _of_path(Path(source), name, max_bytes)
    else:
        data = source.read()
        if not isinstance(data, bytes):
            raise InputError(
                f"{name} was opened as text; open it in binary mode ('rb').", code="opened-as-text"
            )
    if len(data) > max_bytes:
        raise InputError(
            f"{name} is larger than {max_bytes / 2**30:.3g} GiB; split it.", code="file-too-large"
        )
    if data[:2] == GZIP_MAGIC:
        data = inflate(data, name, max_bytes)
    if not len(data):
        raise InputError(
            f"{name} is empty; choose a file that holds trajectories.", code="empty-file"
        )
    return data


def content_bytes(source: bytes | Path) -> int:
    """Bytes of some content, of a file, or of all files of a folder; what cannot be read has 0."""
    if isinstance(source, bytes):
        return len(source)
    try:
        files = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
        return sum(path.stat().st_size for path in files)
    except OSError:  # opening it says why
        return 0


def _of_path(path: Path, name: str, max_bytes: int) -> Data:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if MAPPED_BYTES <= size <= max_bytes:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if size > max_bytes:
                raise InputError(
                    f"{name} is larger than {max_bytes / 2**30:.3g} GiB; split it.",
                    code="file-too-large",
                )
            return file.read()
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise InputError(
            f"{name} cannot be opened ({reason}); check its path.", code="file-not-opened"
        ) from error
