"""What npz and Parquet files would take once they are unpacked, told by their headers alone.

A file of kilobytes may tell of gigabytes: each header is read before anything is unpacked, and what
the headers say must agree with each other, since a reader sets aside what one of them says.
"""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np

from agg_core.store.files import FileError

__all__ = ["Room", "check_npz", "check_parquet"]

KINDS = "fiub"
"""Kinds of numbers that arrays hold."""

MOST_COLUMNS = 64
WIDTH = 8
"""Bytes of a number or of the place of a text in memory, at most."""

PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
ENCODINGS = (PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY)
"""Of pages of Parquet: others that we never write can make much of a little."""

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
FIELDS = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}
"""Kinds of pages, and which field of a page's header says more of each."""


@dataclass
class Room:
    """Bytes that the files of a result may take in memory, together, of which some are taken.

    ``elements`` is how many numbers one array may hold, ``rows`` how long one table may be; None
    where nothing tells.
    """

    bytes: int
    elements: int | None = None
    rows: int | None = None

    def take(self, number: int) -> None:
        """Take some of it.

        Raises
        ------
        FileError
            If there is not as much left.
        """
        if number < 0 or number > self.bytes:
            raise FileError("would take more memory than such a result has")
        self.bytes -= number


def check_npz(content: bytes, room: Room) -> None:
    """Refuse arrays that would take more than there is room for.

    Raises
    ------
    FileError
        If they would, or are no arrays of numbers.
    OSError, ValueError, BadZipFile, NotImplementedError
        If it is no such file.
    """
    with ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise FileError("is packed in a way that results are not")
            room.take(member.file_size)
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                if version == (1, 0):
                    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                elif version == (2, 0):
                    shape, _, dtype = np.lib.format.read_array_header_2_0(file)
                else:
                    raise FileError("holds arrays of a kind that results have not")
                begins = file.tell()
            if dtype.kind not in KINDS or min(shape, default=0) < 0:
                raise FileError("holds arrays of a kind that results have not")
            elements = math.prod(shape)
            if begins + elements * dtype.itemsize != member.file_size:
                raise FileError("holds arrays of another size than they say")
            if room.elements is not None and elements > room.elements:
                raise FileError("holds a larger array than such a result has")


def check_parquet(content: bytes, room: Room) -> None:
    """Refuse a table that would take more than there is room for.

    Raises
    ------
    FileError
        If it would, or has columns or pages of a kind that tables of results have not.
    OSError, ValueError
        If it is no such file.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    file = pq.ParquetFile(pa.BufferReader(content))
    about, schema = file.metadata, file.schema_arrow
    if about.num_columns > MOST_COLUMNS or about.num_columns != len(schema):
        raise FileError("holds more columns than tables of results have")
    texts = [field.name for field in schema if _is_text(field.type)]
    for field in schema:
        plain = pa.types.is_primitive(field.type) or pa.types.is_null(field.type)
        if not plain and field.name not in texts:
            raise FileError("holds columns of a kind that tables of results have not")
    if room.rows is not None and about.num_rows > room.rows:
        raise FileError("holds a longer table than such a result has")
    room.take(about.num_rows * about.num_columns * WIDTH)
    rows = 0
    for group in map(about.row_group, range(about.num_row_groups)):
        rows += group.num_rows
        for i in range(group.num_columns):
            column = group.column(i)
            if column.num_values != group.num_rows:
                raise FileError("holds columns of another length than it says")
            _check_pages(content, column, room)
    if rows != about.num_rows:
        raise FileError("holds more rows than it says")
    if texts:
        room.take(_text_bytes(content, texts))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text_bytes(content: bytes, columns: list[str]) -> int:
    """Bytes of all texts of columns: one of a megabyte may stand in every row."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    # Read so, each text is held once.
    table = pq.ParquetFile(pa.BufferReader(content), read_dictionary=columns).read(columns)
    total = 0
    for name in columns:
        for chunk in table.column(name).chunks:
            if not pa.types.is_dictionary(chunk.type):
                total += chunk.nbytes
                continue
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
            total += pc.sum(lengths).as_py() or 0
    return total


def _check_pages(content: bytes, column: Any, room: Room) -> None:
    """Walk over the pages of a column by their headers, none of which is unpacked."""
    begins = [
        at for at in (column.dictionary_page_offset, column.data_page_offset)
        if at is not None and at > 0
    ]  # fmt: skip
    at = min(begins)
    end = at + column.total_compressed_size
    if end > len(content):
        raise FileError("is cut short")
    n_values = 0
    while at < end and n_values < column.num_values:
        page, at = _struct(content, at)
        kind, unpacked, packed = page.get(1), page.get(2), page.get(3)
        if not (isinstance(unpacked, int) and isinstance(packed, int) and packed >= 0):
            raise FileError("holds pages that say no size")
        room.take(unpacked)
        at += packed
        more = page.get(FIELDS.get(kind, 0)) if isinstance(kind, int) else None
        if not isinstance(more, dict):
            raise FileError("holds pages of a kind that tables of results have not")
        if kind == DICTIONARY_PAGE:
            encoding = more.get(2)
        else:
            n_values += int(more.get(1, 0))
            encoding = more.get(2 if kind == DATA_PAGE else 4)
        if encoding not in ENCODINGS:
            raise FileError("holds pages of a kind that tables of results have not")
    if n_values != column.num_values:
        raise FileError("holds columns of another length than it says")


# ------------------------------------------------- Thrift's compact protocol, as far as headers go

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
DEEPEST = 8


def _struct(content: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by their numbers, and where it ends."""
    found: dict[int, Any] = {}
    number = 0
    if depth > DEEPEST:
        raise FileError("holds pages whose headers cannot be read")
    while True:
        head = _byte(content, at)
        at += 1
        kind, step = head & 15, head >> 4
        if kind == STOP:
            return found, at
        if step:
            number += step
        else:
            number, at = _number(content, at)
        if kind in (TRUE, FALSE):
            found[number] = kind == TRUE
        else:
            found[number], at = _value(content, at, kind, depth)


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == BYTE:
        return _byte(content, at), at + 1
    if kind in (I16, I32, I64):
        return _number(content, at)
    if kind == DOUBLE:
        return struct.unpack_from("<d", content, at)[0], at + 8
    if kind == BINARY:
        length, at = _varint(content, at)
        return None, at + length
    if kind == STRUCT:
        return _struct(content, at, depth + 1)
    raise FileError("holds pages whose headers cannot be read")


def _byte(content: bytes, at: int) -> int:
    if at >= len(content):
        raise FileError("is cut short")
    return content[at]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(10):
        byte = _byte(content, at + i)
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, at + i + 1
    raise FileError("holds pages whose headers cannot be read")


def _number(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at
