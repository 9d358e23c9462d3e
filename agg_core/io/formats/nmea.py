"""Sentences of receivers (NMEA 0183): where and when, as RMC and GGA tell it.

RMC has the date, the time and the place; GGA has no date, and is read where a file holds an RMC
before it, of whose day it then is, if no RMC is of the same time.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.contents import Data
from agg_core.io.points import PointTable
from agg_core.io.source import RawSource

__all__ = ["open_nmea", "recognises_nmea"]

_SENTENCE = re.compile(rb"\$[A-Z]{2}(?:RMC|GGA|GLL|GSA|GSV|VTG|ZDA|GNS),")
_READ = re.compile(r"\$([A-Z]{2})(RMC|GGA),([^*\r\n]*)(?:\*([0-9A-Fa-f]{2}))?")
ONE = "1"
LEAST_FIELDS = {"RMC": 9, "GGA": 6}


def recognises_nmea(head: bytes) -> bool:
    """Whether a file that begins so holds sentences of a receiver."""
    return len(_SENTENCE.findall(head)) >= 2 or bool(_SENTENCE.match(head.lstrip()))


def open_nmea(data: Data, name: str) -> RawSource:
    """Open sentences of a receiver as the fixes of one person; each sentence counts as a row.

    Sentences without a place, that are marked as void, damaged (by their checksum), or of another
    kind are left out and counted.

    Raises
    ------
    InputError
        If none has a place and a time.
    """
    table = PointTable("valid")
    date, last = "", ""
    text = io.TextIOWrapper(io.BytesIO(bytes(data)), encoding="ascii", errors="replace")
    for number, line in enumerate((each for each in text if each.strip()), 1):
        found = _READ.search(line)
        if found is None:
            table.left_out.note("sentence without a place", [number], line.strip()[:60])
            continue
        kind, fields = found[2], found[3].split(",")
        if not _is_whole(line, found) or len(fields) < LEAST_FIELDS[kind]:
            table.left_out.note("damaged sentence", [number], line.strip()[:60])
            continue
        clock = fields[0]
        if kind == "RMC":
            date = fields[8] or date
            void, place = fields[1].upper() == "V", fields[2:6]
        else:
            void, place = fields[5] == "0", fields[1:5]
        time = _moment(date, clock)
        if kind == "GGA" and (not date or time == last):
            cause = "place that another sentence tells" if date else "sentence without a date"
            table.left_out.note(cause, [number], line.strip()[:60])
            continue
        if void or not all(place):
            table.left_out.note("sentence that is marked as void", [number], line.strip()[:60])
            continue
        last = time
        table.add(number, ONE, time, _degrees(place[2:]), _degrees(place[:2]), "1")
    if table.n_times == 0:
        raise InputError(
            f"{name} holds sentences of a receiver, none of which has a date, a time and a place; "
            "record RMC sentences, too.",
            code="no-points",
        )
    guesses = {"people": Guess("one person", (), "a receiver is of one person")}
    return table.to_source(guesses)


def _is_whole(line: str, found: re.Match[str]) -> bool:
    """Whether the checksum of a sentence holds, if it has one."""
    if found[4] is None:
        return True
    total = 0
    for letter in line[found.start() + 1 : found.end() - 3]:
        total ^= ord(letter)
    return total == int(found[4], 16)


def _moment(date: str, clock: str) -> str:
    """ddmmyy and hhmmss as an instant; as they are where they are none."""
    if not (re.fullmatch(r"\d{6}", date) and re.fullmatch(r"\d{6}(?:\.\d+)?", clock)):
        return f"{date} {clock}"
    century = "19" if int(date[4:]) >= 80 else "20"
    day = f"{century}{date[4:]}-{date[2:4]}-{date[:2]}"
    return f"{day}T{clock[:2]}:{clock[2:4]}:{clock[4:6]}Z"


def _degrees(place: Sequence[str]) -> float:
    """Degrees of ddmm.mmmm and a side of the world."""
    try:
        number = float(place[0])
    except ValueError:
        return float("nan")
    degrees = number // 100 + number % 100 / 60
    return -degrees if place[1].upper() in ("S", "W") else degrees
