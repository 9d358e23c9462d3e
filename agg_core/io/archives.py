"""What is packed, unpacked within one set of limits: gzip, and zip archives.

A zip is looked at before anything of it is unpacked: entries, claimed sizes, names, nesting. What
unpacks to much is mapped from a nameless temporary file.
"""

from __future__ import annotations

import gzip
import mmap
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import printable

__all__ = [
    "GZIP_MAGIC",
    "MAPPED_BYTES",
    "MAX_RATIO",
    "ZIP_MAGIC",
    "Archive",
    "Data",
    "Entry",
    "as_file",
    "check_archive",
    "inflate",
    "most_unpacked",
    "names_in_head",
]

Data = bytes | mmap.mmap

ZIP_MAGIC, GZIP_MAGIC = b"PK\x03\x04", b"\x1f\x8b"
ARCHIVE_MAGICS = (
    *(ZIP_MAGIC, b"PK\x05\x06", GZIP_MAGIC, b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"),
    *(b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"),
)
"""How zip, gzip, 7z, rar, bzip2, xz and zstd begin."""

MAX_ENTRIES = 10_000
MAX_INFLATED_BYTES = 1 << 30
"""Most bytes that all entries of one archive may unpack to."""
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 << 20
MAPPED_BYTES = 64 << 20
"""From this size on content is mapped rather than loaded."""
PIECE = 1 << 16

_CENTRAL_MAGIC = b"PK\x01\x02"
_ENCRYPTED, _UTF8 = 0x1, 0x800
_READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SYSTEM_FILES = (".ds_store", "thumbs.db", "desktop.ini")
_DRIVE = re.compile(r"^[A-Za-z]:")
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError),
    OverflowError,  # an entry beyond the last place that a file can have
)


def as_file(data: Data) -> BinaryIO:
    """Content as a file, of which nothing is copied that is not read."""
    file: BinaryIO = pa.BufferReader(data)
    return file


def most_unpacked(packed_bytes: int, max_bytes: int | None = None) -> int:
    """Bytes that so many may unpack to: `MAX_RATIO` times as many beyond the first 64 MiB."""
    most = max(RATIO_FREE_BYTES, MAX_RATIO * packed_bytes)
    return most if max_bytes is None else min(most, max_bytes)


def _too_large(name: str, limit: int) -> InputError:
    return InputError(
        f"{name} unpacks to more than {limit / 2**20:,.0f} MiB; unpack and split it.",
        code="unpacks-too-large",
    )


def inflate(packed: Data, name: str, max_bytes: int | None = None) -> Data:
    """Unpack gzip (of one or more members) piece by piece.

    Raises
    ------
    InputError
        If it is truncated or damaged, packed twice, or unpacks to more than ``max_bytes`` or than
        `most_unpacked` allows.
    """
    try:
        data = _spooled(_unzipped(packed, name, most_unpacked(len(packed), max_bytes)))
    except EOFError as error:
        raise InputError(
            f"{name} is gzip that breaks off early; make or copy it again.", code="breaks-off-early"
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{name} is damaged gzip; make or copy it again.", code="damaged-gzip"
        ) from error
    if data[:2] == GZIP_MAGIC:
        raise InputError(f"{name} is gzip within gzip; unpack it once.", code="gzip-within-gzip")
    return data


def _unzipped(packed: Data, name: str, limit: int) -> Iterator[bytes]:
    size = 0
    with gzip.GzipFile(fileobj=as_file(packed)) as pieces:
        while piece := pieces.read(PIECE):
            size += len(piece)
            if size > limit:
                raise _too_large(name, limit)
            yield piece


def _spooled(pieces: Iterable[bytes]) -> Data:
    """The pieces as one content: in memory, or mapped from a nameless file where it is large."""
    with tempfile.SpooledTemporaryFile(MAPPED_BYTES) as unpacked:
        for piece in pieces:
            unpacked.write(piece)
        if unpacked.tell() < MAPPED_BYTES:
            unpacked.seek(0)
            return unpacked.read()
        unpacked.flush()
        return mmap.mmap(unpacked.fileno(), 0, access=mmap.ACCESS_READ)


@dataclass(frozen=True)
class Entry:
    """A file within an archive: its name as text, never to be used as a path, and its bytes."""

    name: str
    size: int
    info: zipfile.ZipInfo = field(repr=False)


@dataclass(frozen=True)
class Archive:
    """A checked archive: its files in their order, folders and system files left out.

    ``unread`` are files by name that cannot be read, with why, where some others can.
    """

    name: str
    entries: tuple[Entry, ...]
    _zip: zipfile.ZipFile = field(repr=False)
    unread: tuple[tuple[str, InputError], ...] = ()

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
        return _spooled(self.pieces(entry))

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
    in_part: bool = False,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_INFLATED_BYTES,
) -> Archive:
    """Open a zip archive after a look at its directory; nothing is unpacked yet.

    ``nested`` allows archives within it, for callers that never open them; ``any_names`` allows
    names that lead out of it, for callers that never make them paths. ``in_part`` keeps files that
    cannot be read (protected, packed otherwise, damaged, links, archives) as ``unread``, if others
    can.

    Raises
    ------
    InputError
        If it is damaged, protected by a password, holds no file, more than ``max_entries``, names
        that lead out of it, links or archives, or unpacks to more than ``max_bytes`` or than
        `most_unpacked` allows.
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
        opened = zipfile.ZipFile(as_file(data))
    except _DAMAGES as error:
        raise InputError(
            f"{name} is a damaged archive; make or copy it again.", code="damaged-archive"
        ) from error
    limit = most_unpacked(len(data), max_bytes)
    if sum(info.file_size for info in opened.infolist()) > limit:
        raise _too_large(name, limit)
    unread: dict[str, InputError] = {}
    for info in opened.infolist():
        _check_name(info, name, any_names)
        try:
            _check_entry(info, name)
        except InputError as fault:
            if not in_part:
                raise
            unread[_readable_name(info)] = fault
    entries = tuple(
        Entry(_readable_name(info), info.file_size, info)
        for info in opened.infolist()
        if not _is_clutter(info) and _readable_name(info) not in unread
    )
    if not entries and unread:
        raise next(iter(unread.values()))
    if not entries:
        raise InputError(
            f"{name} is an archive without any file; choose another one.", code="empty-archive"
        )
    archive = Archive(name, entries, opened)
    if nested:
        return archive
    for entry in entries:
        try:
            _refuse_nested(archive, entry)
        except InputError as fault:
            if not in_part:
                raise
            unread[entry.name] = fault
    kept = tuple(entry for entry in entries if entry.name not in unread)
    if not kept:
        raise next(iter(unread.values()))
    return Archive(name, kept, opened, tuple(unread.items()))


def _occurrences(data: Data, word: bytes) -> int:
    number, at = 0, data.find(word)
    while at >= 0:
        number, at = number + 1, data.find(word, at + len(word))
    return number


def names_in_head(head: bytes) -> Iterator[str]:
    """Names of the entries that begin within the first bytes of an archive, to tell its kind."""
    at = head.find(ZIP_MAGIC)
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        yield head[at + 30 : at + 30 + length].decode("latin-1").replace("\\", "/")
        at = head.find(ZIP_MAGIC, at + 30)


def _check_name(info: zipfile.ZipInfo, name: str, any_names: bool) -> None:
    shown = printable(_readable_name(info))
    path = info.filename.replace("\\", "/")
    leads_out = path.startswith("/") or ".." in path.split("/") or _DRIVE.match(path)
    if leads_out and not any_names:
        raise InputError(
            f"{name} holds a file whose name leads out of the archive ({shown}); pack it again.",
            code="path-leads-out",
        )


def _check_entry(info: zipfile.ZipInfo, name: str) -> None:
    shown = printable(_readable_name(info))
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


def _refuse_nested(archive: Archive, entry: Entry) -> None:
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
