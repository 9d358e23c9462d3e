"""Zip archives, checked before anything is unpacked: entries, claimed sizes, names, nesting."""

from __future__ import annotations

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.contents import Data, spooled

__all__ = [
    "ARCHIVE_MAGICS",
    "MAX_ENTRIES",
    "MAX_INFLATED_BYTES",
    "ZIP_MAGIC",
    "Archive",
    "Entry",
    "check_archive",
    "names_in_head",
]

ZIP_MAGIC = b"PK\x03\x04"
ARCHIVE_MAGICS = (
    *(ZIP_MAGIC, b"PK\x05\x06", b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"),
    *(b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"),
)
"""How zip, gzip, 7z, rar, bzip2, xz and zstd begin."""

MAX_ENTRIES = 10_000
MAX_INFLATED_BYTES = 1 << 30
"""Most bytes that all entries of one archive may unpack to."""
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 << 20
PIECE = 1 << 16

_CENTRAL_MAGIC = b"PK\x01\x02"
_ENCRYPTED, _UTF8 = 0x1, 0x800
_READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SYSTEM_FILES = (".ds_store", "thumbs.db", "desktop.ini")
_DRIVE = re.compile(r"^[A-Za-z]:")
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


@dataclass(frozen=True)
class Entry:
    """A file within an archive: its name as text, never to be used as a path, and its bytes."""

    name: str
    size: int
    info: zipfile.ZipInfo = field(repr=False)


@dataclass(frozen=True)
class Archive:
    """A checked archive: its files in their order, folders and system files left out."""

    name: str
    entries: tuple[Entry, ...]
    _zip: zipfile.ZipFile = field(repr=False)

    def find(self, name: str) -> Entry | None:
        """The entry of this name, None if there is none."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def pieces(self, entry: Entry, size: int = PIECE) -> Iterator[bytes]:
        """Unpack an entry piece by piece, never beyond the size that was checked.

        Raises
        ------
        InputError
            If the entry is damaged or longer than it claims.
        """
        seen = 0
        try:
            with self._zip.open(entry.info) as file:
                while piece := file.read(size):
                    seen += len(piece)
                    if seen > entry.size:
                        raise self._damaged(entry)
                    yield piece
        except InputError:
            raise
        except _DAMAGES as error:
            raise self._damaged(entry) from error

    def read(self, entry: Entry) -> Data:
        """The content of an entry, mapped from a file where it is large.

        Raises
        ------
        InputError
            If the entry is damaged or longer than it claims.
        """
        return spooled(self.pieces(entry))

    def _damaged(self, entry: Entry) -> InputError:
        return InputError(
            f"{self.name} is a damaged archive ({printable(entry.name)} cannot be unpacked); "
            "make or copy it again.",
            code="damaged-archive",
        )


def check_archive(
    data: Data,
    name: str,
    *,
    nested: bool = False,
    any_names: bool = False,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_INFLATED_BYTES,
) -> Archive:
    """Open a zip archive after a look at its directory; nothing is unpacked yet.

    ``nested`` allows archives within it, for callers that never open them; ``any_names`` allows
    names that lead out of it, for callers that never make them paths.

    Raises
    ------
    InputError
        If it is damaged, protected by a password, holds no file, more than ``max_entries``, names
        that lead out of it, links or archives, or unpacks to more than ``max_bytes`` or to more
        than ``MAX_RATIO`` times its size beyond the first 64 MiB.
    """
    if len(data) > max_bytes:
        raise InputError(
            f"{name} is larger than {max_bytes / 2**20:,.0f} MiB; split it.",
            code="archive-too-large",
        )
    # Each entry costs memory as soon as the directory is read, so they are counted before.
    if _occurrences(data, _CENTRAL_MAGIC) > max_entries:
        raise InputError(
            f"{name} holds more than {max_entries:,} files; put fewer into one archive.",
            code="too-many-files",
        )
    try:
        opened = zipfile.ZipFile(_File(data))
    except _DAMAGES as error:
        raise InputError(
            f"{name} is a damaged archive; make or copy it again.", code="damaged-archive"
        ) from error
    _check_sizes(opened.infolist(), len(data), name, max_bytes)
    for info in opened.infolist():
        _check_entry(info, name, any_names)
    entries = tuple(
        Entry(_readable_name(info), info.file_size, info)
        for info in opened.infolist()
        if not _is_clutter(info)
    )
    if not entries:
        raise InputError(
            f"{name} is an archive without any file; choose another one.", code="empty-archive"
        )
    archive = Archive(name, entries, opened)
    if not nested:
        _refuse_nested(archive)
    return archive


def _occurrences(data: Data, word: bytes) -> int:
    number, at = 0, data.find(word)
    while at >= 0:
        number, at = number + 1, data.find(word, at + len(word))
    return number


class _File(io.RawIOBase):
    """Content as a file, of which nothing is loaded that is not read."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if begin + offset < 0:
            raise ValueError("nothing lies before the beginning")
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def names_in_head(head: bytes) -> Iterator[str]:
    """Names of the entries that begin within the first bytes of an archive, to tell its kind."""
    at = head.find(ZIP_MAGIC)
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        yield head[at + 30 : at + 30 + length].decode("latin-1").replace("\\", "/")
        at = head.find(ZIP_MAGIC, at + 30)


def _check_sizes(
    infos: list[zipfile.ZipInfo], packed_bytes: int, name: str, max_bytes: int
) -> None:
    limit = min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * packed_bytes))
    if sum(info.file_size for info in infos) > limit:
        raise InputError(
            f"{name} unpacks to more than {limit / 2**20:,.0f} MiB; unpack and split it.",
            code="unpacks-too-large",
        )


def _check_entry(info: zipfile.ZipInfo, name: str, any_names: bool) -> None:
    shown = printable(_readable_name(info))
    path = info.filename.replace("\\", "/")
    leads_out = path.startswith("/") or ".." in path.split("/") or _DRIVE.match(path)
    if leads_out and not any_names:
        raise InputError(
            f"{name} holds a file whose name leads out of the archive ({shown}); pack it again.",
            code="path-leads-out",
        )
    if info.flag_bits & _ENCRYPTED:
        raise InputError(
            f"{name} is protected by a password; unpack it first.", code="password-protected"
        )
    if info.compress_type not in _READ_METHODS:
        raise InputError(
            f"{name} is packed in a way that is not read ({shown}); pack it as a plain zip.",
            code="unknown-compression",
        )
    if stat.S_ISLNK(info.external_attr >> 16):
        raise InputError(
            f"{name} holds a link ({shown}) in place of a file; pack the file itself.",
            code="link-in-archive",
        )


def _refuse_nested(archive: Archive) -> None:
    for entry in archive.entries:
        first = next(archive.pieces(entry, size=8), b"")
        if first.startswith(ARCHIVE_MAGICS):
            raise InputError(
                f"{archive.name} holds another archive ({printable(entry.name)}); "
                "unpack that one first.",
                code="archive-in-archive",
            )


def _is_clutter(info: zipfile.ZipInfo) -> bool:
    """Whether it is a folder, or a file that a system leaves beside the data."""
    parts = info.filename.lower().split("/")
    return (
        not info.filename or info.is_dir() or parts[0] == "__macosx" or parts[-1] in _SYSTEM_FILES
    )


def _readable_name(info: zipfile.ZipInfo) -> str:
    """The name in its likely encoding: archives made in Japan hold CP932 without saying so."""
    if info.flag_bits & _UTF8 or info.filename.isascii():
        return info.filename
    raw = info.filename.encode("cp437", errors="replace")
    for encoding in ("utf-8", "cp932"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return info.filename
