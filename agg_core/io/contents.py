"""The content of a path, an upload or an open file, unpacked when it is gzip, within limits.

What is large is not loaded but mapped from its file; what is unpacked and large from a nameless
temporary one.
"""

from __future__ import annotations

import gzip
import io
import mmap
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, BinaryIO

from agg_core.base.errors import InputError

__all__ = ["GZIP_MAGIC", "MAX_BYTES", "Data", "inflate", "read_content", "spooled"]

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 64 << 30
"""Largest content taken in, in bytes, before and after unpacking."""
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 << 20
MAPPED_BYTES = 64 << 20
"""From this size on content is mapped rather than loaded."""
CHUNK = 1 << 20

Data = bytes | mmap.mmap
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
        if data[:2] == GZIP_MAGIC:
            raise InputError(
                f"{name} is gzip within gzip; unpack it once.", code="gzip-within-gzip"
            )
    if not len(data):
        raise InputError(
            f"{name} is empty; choose a file that holds trajectories.", code="empty-file"
        )
    return data


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


def inflate(packed: Data, name: str, max_bytes: int = MAX_BYTES) -> Data:
    """Unpack gzip (of one or more members) piece by piece.

    Raises
    ------
    InputError
        If it is truncated or damaged, unpacks to more than ``max_bytes``, or to more than
        ``MAX_RATIO`` times its size beyond the first 64 MiB.
    """
    limit = min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * len(packed)))
    try:
        return spooled(_unzipped(packed, name, limit))
    except EOFError as error:
        raise InputError(
            f"{name} is gzip that breaks off early; make or copy it again.", code="breaks-off-early"
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{name} is damaged gzip; make or copy it again.", code="damaged-gzip"
        ) from error


def _unzipped(packed: Data, name: str, limit: int) -> Iterator[bytes]:
    size = 0
    with gzip.GzipFile(fileobj=_as_file(packed)) as pieces:
        while piece := pieces.read(CHUNK):
            size += len(piece)
            if size > limit:
                raise InputError(
                    f"{name} unpacks to more than {limit / 2**20:,.0f} MiB; unpack and split it.",
                    code="unpacks-too-large",
                )
            yield piece


def spooled(pieces: Iterable[bytes]) -> Data:
    """The pieces as one content: in memory, or mapped from a nameless file where it is large."""
    with tempfile.SpooledTemporaryFile(MAPPED_BYTES) as unpacked:
        for piece in pieces:
            unpacked.write(piece)
        if unpacked.tell() < MAPPED_BYTES:
            unpacked.seek(0)
            return unpacked.read()
        unpacked.flush()
        return mmap.mmap(unpacked.fileno(), 0, access=mmap.ACCESS_READ)


def _as_file(packed: Data) -> IO[bytes]:
    return packed if isinstance(packed, mmap.mmap) else io.BytesIO(packed)  # type: ignore[return-value]
