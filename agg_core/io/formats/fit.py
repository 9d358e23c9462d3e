"""FIT, the binary of sports watches and bicycle computers: where and when its records tell it.

Places are in semicircles (2^31 of them are 180 degrees), times in seconds since the last day of
1989, UTC. One file may hold several activities, one after another; all are of one person.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install
from agg_core.base.report import Guess
from agg_core.io.contents import Data
from agg_core.io.points import PointTable
from agg_core.io.source import RawSource

__all__ = ["MOST_MEGABYTES", "MOST_MESSAGES", "open_fit", "recognises_fit"]

MOST_MEGABYTES = 50
MOST_MESSAGES = 500_000
"""Six days of records a second apart; more would keep whoever waits for them for too long."""

ONE = "1"
RECORD = 20
TIMESTAMP, LATITUDE, LONGITUDE = 253, 0, 1
"""Numbers of the message and of its fields in the profile of FIT."""
EPOCH = np.datetime64("1989-12-31T00:00:00", "s")
LEAST_TIME = 0x10000000
"""Smaller times count from when the device was switched on."""
SEMICIRCLE = 180 / 2**31


def recognises_fit(head: bytes) -> bool:
    """Whether a file that begins so is FIT."""
    return head[8:12] == b".FIT"


def open_fit(data: Data, name: str) -> RawSource:
    """Open the records of a FIT file as the fixes of one person; each record counts as a row.

    Records without a place, or whose time is none of the calendar, are left out and counted. What
    comes before damage is read, and the damage is counted, as nobody knows how much it hides.

    Raises
    ------
    InputError
        If it is too large, its reader is not installed, or no record has a place and a time.
    """
    if len(data) > MOST_MEGABYTES * 1_000_000:
        raise InputError(
            f"{name} is larger than {MOST_MEGABYTES} MB; give its activities "
            "as files of their own.",
            code="file-too-large",
        )
    if find_spec("fitdecode") is None:
        raise InputError(str(how_to_install("fitdecode")), code="package-missing")
    table, n_records, activities, is_whole = PointTable(), 0, 0, True
    try:
        for frame in _frames(bytes(data), name):
            kind = type(frame).__name__
            if kind == "FitHeader":
                activities += 1
            elif kind == "FitCRC":
                is_whole &= bool(frame.matched)
            elif kind == "FitDataMessage" and frame.global_mesg_num == RECORD:
                n_records += 1
                _add(table, n_records, frame)
    except InputError:
        raise
    except Exception as damage:  # over damaged bytes the library raises whatever Python does
        table.left_out.note(
            "damaged from here on, perhaps several records", [n_records + 1], str(damage)[:60]
        )
    if table.n_times == 0:
        raise InputError(
            f"{name} is FIT, and none of its {n_records:,} records has a place and a time; choose "
            "an activity that was recorded with satellites.",
            code="no-points",
        )
    guesses = {"people": Guess("one person", (), "a watch is of one person")}
    if activities > 1:
        guesses["activities"] = Guess(f"{activities:,}, one after another")
    if not is_whole:
        guesses["checksum"] = Guess("does not hold", (), "some records may be damaged")
    return table.to_source(guesses)


def _frames(data: bytes, name: str) -> Iterator[Any]:
    """Headers, data and checksums; no more than may be read."""
    from fitdecode import FitReader  # noqa: PLC0415
    from fitdecode.reader import CrcCheck, ErrorHandling  # noqa: PLC0415

    with FitReader(
        io.BytesIO(data), processor=None, check_crc=CrcCheck.READONLY,
        error_handling=ErrorHandling.IGNORE,
    ) as reader:  # fmt: skip
        for number, frame in enumerate(reader):
            if number >= MOST_MESSAGES:
                raise InputError(
                    f"{name} has more than {MOST_MESSAGES:,} messages; give its activities as "
                    "files of their own.",
                    code="file-too-large",
                )
            yield frame


def _add(table: PointTable, number: int, record: Any) -> None:
    values = {field.def_num: field.raw_value for field in record.fields if _is_own(field)}
    time, lat, lon = (values.get(at) for at in (TIMESTAMP, LATITUDE, LONGITUDE))
    if not (isinstance(lat, int) and isinstance(lon, int)):
        table.left_out.note("record without a place", [number])
    elif not isinstance(time, int):
        table.left_out.note("record without a time", [number])
    elif time < LEAST_TIME:
        table.left_out.note("time since the device was switched on", [number], str(time))
    else:
        moment = f"{EPOCH + np.timedelta64(time, 's')}Z"
        table.add(number, ONE, moment, lon * SEMICIRCLE, lat * SEMICIRCLE)


def _is_own(field: Any) -> bool:
    """Whether a field is of FIT's own profile, and not put in by the maker of an app.

    The time that a header carries in few bits has no definition.
    """
    if field.field_def is None:
        return field.parent_field is None
    return not field.field_def.is_dev
