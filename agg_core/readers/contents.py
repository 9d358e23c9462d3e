"""The bytes of a path, an upload or an open file, unpacked when they are gzip, within limits."""

from __future__ import annotations

import gzip
import io
import zlib
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from agg_core.errors import InputError

__all__ = ["GZIP_MAGIC", "MAX_BYTES", "inflate", "read_bytes"]

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 4 << 30
"""Largest content taken in, in bytes, before and after unpacking."""
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 << 20
CHUNK = 1 << 20

Source = str | PathLike[str] | bytes | BinaryIO


def read_bytes(source: Source, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """All bytes of a path, a bytes object or a binary file, unpacked if they are gzip.

    Raises
    ------
    InputError
        If there is no such file, it is empty, larger than ``max_bytes``, or broken gzip.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
    elif isinstance(source, str | PathLike):
        try:
            with Path(source).open("rb") as file:
                data = file.read(max_bytes + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "the name is not valid"
            raise InputError(f"{name} cannot be opened ({reason}); check its path.") from error
    else:
        data = source.read(max_bytes + 1)
        if not isinstance(data, bytes):
            raise InputError(f"{name} was opened as text; open it in binary mode ('rb').")
    if len(data) > max_bytes:
        raise InputError(f"{name} is larger than {max_bytes / 2**30:.3g} GiB; split it.")
    if data.startswith(GZIP_MAGIC):
        data = inflate(data, name, max_bytes)
        if data.startswith(GZIP_MAGIC):
            raise InputError(f"{name} is gzip within gzip; unpack it once.")
    if not data:
        raise InputError(f"{name} is empty; choose a file that holds trajectories.")
    return data


def inflate(packed: bytes, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Unpack gzip (of one or more members) piece by piece.

    Raises
    ------
    InputError
        If it is truncated or damaged, unpacks to more than ``max_bytes``, or to more than
        ``MAX_RATIO`` times its size beyond the first 64 MiB.
    """
    limit = min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * len(packed)))
    pieces: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:
            while piece := unpacked.read(CHUNK):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise InputError(
                        f"{name} unpacks to more than {limit / 2**20:,.0f} MiB; "
                        "unpack and split it."
                    )
    except EOFError as error:
        raise InputError(f"{name} is gzip that breaks off early; make or copy it again.") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is damaged gzip; make or copy it again.") from error
    return b"".join(pieces)
