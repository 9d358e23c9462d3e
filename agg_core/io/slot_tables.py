"""Tables that number slots of time, and the table that says when each begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.columns import ROLES, ColumnFinder, plain_name
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.layouts import Made, derived
from agg_core.io.source import RawSource, show_names
from agg_core.io.texts import as_text

__all__ = ["is_slot_table", "lacks_times", "names_slots", "with_slot_table"]

SLOT_KEYS = frozenset((
    *("slot", "slotid", "slotno", "slotnumber", "timeslot", "timeslotid", "timeslotno", "bin"),
    *("timebin", "binid", "interval", "intervalid", "timeinterval", "period", "periodid"),
    *("timeperiod", "timeid", "timeindex", "timestep", "timestepid", "stepid", "epochid"),
    *("frame", "frameid", "時間帯", "時間帯コード"),
))  # fmt: skip
"""Names of columns that number slots of time, as `plain_name` writes them."""
_STARTS = ("start", "starttime", "from", "begin", "begintime", "startat", "startsat", "time",
           "timestamp", "datetime", "slotstart", "開始", "開始時刻")  # fmt: skip
_ENDS = ("end", "endtime", "to", "until", "endat", "endsat", "stop", "slotend", "終了", "終了時刻")
MOST_SLOTS = 100_000
_NUMBER = re.compile(r"0*(\d+)(?:\.0*)?")


def is_slot_table(source: RawSource) -> bool:
    """Whether rows say when a slot of time begins, and nothing else but perhaps its end."""
    return _parts_of(source) is not None


def names_slots(source: RawSource) -> int | None:
    """Position of the column that numbers slots of time; None for none, or if a time is told."""
    if not source.has_header or is_slot_table(source):
        return None
    plain = [plain_name(name) for name in source.names]
    at = [position for position, name in enumerate(plain) if name in SLOT_KEYS]
    if len(at) != 1 or set(plain) & (frozenset(ROLES["time"]) | {"hour", "minute"}):
        return None
    return at[0]


def lacks_times(source: RawSource, columns: Mapping[str, str | int]) -> bool:
    """Whether rows number slots of time, say where somebody was, and nothing else of when."""
    if names_slots(source) is None or {"time", "date"} & columns.keys():
        return False
    found = ColumnFinder(source, ROLES)
    found.look_for("lon", "lat", "user_id")
    return {"lon", "lat"} <= found.positions.keys()


def with_slot_table(source: RawSource, slots: RawSource, name: str) -> RawSource:
    """The source with a column time: when the slot of a row begins, on its date where it has one.

    A slot that the table lacks has no time, and its rows are counted so. ``name`` is what the
    table of slots is called.

    Raises
    ------
    InputError
        If slots begin at times of day and rows have no date, a slot has two beginnings, or none
        of the first rows' slots is in the table.
    """
    own, parts = names_slots(source), _parts_of(slots)
    assert own is not None  # whoever joins has asked
    assert parts is not None
    begins = _begins(slots, *parts, name)
    clocks = all(not looks_like_time(text) for text in begins.values())
    found = ColumnFinder(source, ROLES)
    found.look_for("date")
    date = found.positions.get("date") if clocks else None
    if clocks and date is None:
        raise InputError(
            f"The slots of {name} begin at times of day, and no column says of which day: "
            f"{show_names(source)}; say which holds the date.",
            "--column date=NAME",
            code="slots-without-day",
        )
    values = [row[own] for row in source.sample if own < len(row) and row[own].strip()]
    if values and not any(_key(value) in begins for value in values):
        raise InputError(
            f"{name} says nothing of the slots of the file, such as {printable(values[0], 30)}; "
            "give the table that numbers them as the file does.",
            "--slots FILE",
            code="slots-unknown",
        )
    whole = list(range(len(source.names)))

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        keys = as_text(columns[own]).to_pylist()
        times: list[str | None] = [begins.get(_key(key or "")) for key in keys]
        if date is not None:
            days = as_text(columns[date]).to_pylist()
            times = [f"{day} {time}" if day and time else None
                     for day, time in zip(days, times, strict=True)]  # fmt: skip
        made = [columns[at] for at in whole if at not in (own, date)]
        return [*made, pa.chunked_array([pa.array(times, pa.string())])], None

    kept = [source.names[at] for at in whole if at not in (own, date)]
    called = f"{printable(source.names[own])} = {printable(slots.names[parts[0]])} of {name}"
    told = Guess(called, (), f"{len(begins):,} slots; a row is where its slot begins")
    joined = derived(
        source, (*kept, "time"), whole, make, guesses={**source.guesses, "slots": told}
    )
    return replace(joined, timezone=source.timezone or slots.timezone)


def _parts_of(source: RawSource) -> tuple[int, int] | None:
    """Positions of the number and the beginning of a table of slots."""
    if not source.has_header or not 2 <= len(source.names) <= 4:
        return None
    plain = [plain_name(name) for name in source.names]
    keys = [at for at, name in enumerate(plain) if name in SLOT_KEYS]
    starts = [at for at, name in enumerate(plain) if name in _STARTS]
    ends = [at for at, name in enumerate(plain) if name in _ENDS]
    known = {*keys, *starts, *ends, *(at for at, name in enumerate(plain) if name == "label")}
    if not (len(keys) == 1 and len(starts) == 1 and len(known) == len(plain)):
        return None
    values = [row[starts[0]] for row in source.sample[:50] if len(row) == len(plain)]
    numbers = [row[keys[0]] for row in source.sample[:50] if len(row) == len(plain)]
    timed = all(looks_like_time(value) or looks_like_clock(value) for value in values)
    if not values or not timed or len(set(numbers)) < len(numbers):
        return None
    return keys[0], starts[0]


def _begins(slots: RawSource, key: int, start: int, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for rows in slots.batches([key, start]):
        if not rows.columns:
            continue
        keys, times = (as_text(rows.columns[at]).to_pylist() for at in (key, start))
        for number, time in zip(map(_key, keys), times, strict=True):
            if not (number and time):
                continue
            if found.setdefault(number, time) != time or len(found) > MOST_SLOTS:
                raise InputError(
                    f"{name} has more than one beginning of the slot {printable(number, 30)}, or "
                    f"more than {MOST_SLOTS:,} slots; give one row for each.",
                    code="slots-twice",
                )
    return found


def _key(text: str) -> str:
    """A number without leading zeros or a fraction of nothing; other names as they are."""
    found = _NUMBER.fullmatch(text.strip())
    return found[1] if found else text.strip()
