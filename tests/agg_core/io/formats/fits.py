"""FIT files, made byte by byte as the protocol has them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["EPOCH_UNIX", "NO_PLACE", "compressed", "definition", "fit", "record", "semicircles"]

EPOCH_UNIX = 631_065_600
"""1989-12-31 in seconds since 1970."""
NO_PLACE = 0x7FFFFFFF
RECORD = 20
FIELDS = ((253, 4, 0x86), (0, 4, 0x85), (1, 4, 0x85))


def semicircles(degrees: float) -> int:
    return round(degrees * 2**31 / 180)


def definition(
    message: int = RECORD, fields: Iterable[tuple[int, int, int]] = FIELDS, *, local: int = 0,
    endian: str = "<",
) -> bytes:  # fmt: skip
    """A message that defines what follows: number, and number, size and type of each field."""
    own = list(fields)
    head = struct.pack("BBB", 0x40 | local, 0, endian == ">") + struct.pack(endian + "H", message)
    return head + bytes([len(own)]) + b"".join(map(bytes, own))


def record(time: int, lat: int, lon: int, *, local: int = 0, endian: str = "<") -> bytes:
    return bytes([local]) + struct.pack(endian + "Iii", time, lat, lon)


def compressed(offset: int, lat: int, lon: int, *, local: int = 1) -> bytes:
    """A record whose header has the last five bits of the time."""
    return bytes([0x80 | local << 5 | offset]) + struct.pack("<ii", lat, lon)


def fit(*messages: bytes) -> bytes:
    body = b"".join(messages)
    head = struct.pack("<BBHI4s", 14, 0x20, 2132, len(body), b".FIT")
    whole = head + struct.pack("<H", _crc(head)) + body
    return whole + struct.pack("<H", _crc(whole))


def _crc(content: bytes) -> int:
    crc = 0
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc
