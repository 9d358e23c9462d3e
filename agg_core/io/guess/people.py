"""Whose rows are: told by whether people could have moved so.

Rows of one time at different places are not one person's, and nobody crosses a country in a
minute. A column of people is believed if those whom it names move as people can; where none is
named, or many are made one, another column that does better is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.columns import ONE_PERSON
from agg_core.space.degrees import great_circle_km

__all__ = [
    "LOOKED_AT",
    "MOST_MERGED",
    "NAMED_APART_M",
    "SWIFT_KMH",
    "Seen",
    "refuse_damaged",
    "who_they_are",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TimeArray = npt.NDArray[np.datetime64]

LOOKED_AT = 20_000
"""Rows that are looked at."""
MOST_MERGED = 0.1
"""Share of rows that may be at the time of another of the same person, and elsewhere."""
APART_M, NAMED_APART_M = 20.0, 1_000.0
"""How far away elsewhere is: of rows that nobody is named for, and of a named person's, whose
receivers may differ."""
SWIFT_KMH = 1_200.0
"""A speed that no person travels at."""
FEW_PEOPLE = 0.5
SHORTER = 0.5
INTERLEAVED = 0.3
"""A column that makes all ways half as long, though people take turns in the file, names them."""

_SCIENTIFIC = r"^[+-]?\d(?:[.,]\d+)?[eE]\+?\d{1,2}$"
_ROUNDED = re.compile(r"[1-9]\d{14}0+")
EXACT = 2**53


@dataclass(frozen=True)
class Seen:
    """Where somebody was and when: instants (n,), degrees (n,), in the order of the file."""

    time: TimeArray
    lon: FloatArray
    lat: FloatArray

    def plausible(self, ids: pa.ChunkedArray | None) -> bool:
        """Whether people of these ids (n,), or one person, could have moved so."""
        merged, swift = self.merits(ids)
        return merged <= MOST_MERGED and swift <= FEW_PEOPLE

    def merits(self, ids: pa.ChunkedArray | None) -> tuple[float, float]:
        """Share of rows that another of the person contradicts; of people who are too swift."""
        person, _ = self._in_order(ids)
        if len(person) == 0:
            return 0.0, 0.0
        user, time, km = person.T
        same = np.diff(user) == 0
        apart_km = (APART_M if ids is None else NAMED_APART_M) / 1000
        hours = np.diff(time) / 3600
        step = km[1:]
        twin = same & (hours <= 0) & (step > apart_km)
        merged = float(twin.sum()) / len(person)
        if ids is not None and twin.sum() < 2:
            merged = 0.0
        moves = same & (hours > 0)
        speed = np.divide(step, hours, out=np.zeros(len(step)), where=hours > 0)
        if not moves.any():
            return merged, 0.0
        by_person = pd.Series(speed[moves] > SWIFT_KMH).groupby(user[1:][moves])
        swift = by_person.mean() > 0.5
        counted = by_person.size() >= 2
        return merged, float(swift[counted].mean()) if counted.any() else 0.0

    def length_km(self, ids: pa.ChunkedArray | None) -> float:
        """How far all people went together."""
        person, _ = self._in_order(ids)
        if len(person) < 2:
            return 0.0
        same = np.diff(person[:, 0]) == 0
        return float(person[1:, 2][same].sum())

    def turns(self, ids: pa.ChunkedArray) -> float:
        """Share of rows in the order of time that are of another person than the one before."""
        codes = _codes(ids)
        order = np.argsort(self.time, kind="stable")
        return float((np.diff(codes[order]) != 0).mean()) if len(codes) > 1 else 0.0

    def _in_order(self, ids: pa.ChunkedArray | None) -> tuple[FloatArray, IntArray]:
        """Person, seconds and way from the row before in km (n, 3), by person and time."""
        codes = np.zeros(len(self.time), np.int64) if ids is None else _codes(ids)
        good = ~np.isnat(self.time) & np.isfinite(self.lon) & np.isfinite(self.lat)
        good &= codes >= 0
        good &= ~((self.lon == 0) & (self.lat == 0)) & (np.abs(self.lat) <= 90)
        good &= np.abs(self.lon) <= 180
        rows = np.flatnonzero(good)
        seconds = (self.time[rows] - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "s")
        order = np.lexsort((rows, seconds, codes[rows]))
        rows = rows[order]
        lon, lat = self.lon[rows], self.lat[rows]
        km = great_circle_km(lon[:-1], lat[:-1], lon[1:], lat[1:])
        way = np.append(0.0, km)[: len(rows)]
        return np.column_stack([codes[rows], seconds[order], way]), rows


def refuse_damaged(ids: pa.ChunkedArray, column: pa.ChunkedArray, called: str) -> None:
    """Refuse ids that a spreadsheet has rounded, so that two people may have become one.

    Raises
    ------
    InputError
        With the column, and what to do.
    """
    filled = ids.filter(pc.not_equal(ids, ""))
    if len(filled) == 0:
        return
    rounded = pc.sum(pc.match_substring_regex(filled, _SCIENTIFIC)).as_py() or 0
    example = ""
    if 10 * rounded >= len(filled):
        hits = filled.filter(pc.match_substring_regex(filled, _SCIENTIFIC))
        example = hits[0].as_py()
    elif pa.types.is_floating(column.type):
        top = pc.max(pc.abs(column)).as_py() or 0
        example = f"{top:.0f}" if top > EXACT else ""
    else:
        every = filled.unique().to_pylist()
        long = [text for text in every if text.isdecimal() and len(text) > 15]
        if len(long) > 1 and all(_ROUNDED.fullmatch(text) for text in long):
            example = long[0]
    if example:
        raise InputError(
            f"The ids in the column {printable(called)} are rounded, such as "
            f"{printable(example, 30)}, as spreadsheets do, so that several people may have become "
            "one; export them again as text, or say that this is the column all the same.",
            f"--column user_id={printable(called)}",
            code="rounded-ids",
        )


def who_they_are(
    seen: Seen,
    person: pa.ChunkedArray | None,
    others: Mapping[int, tuple[str, pa.ChunkedArray]],
    called: str,
) -> tuple[int, Guess] | None:
    """The column that says whose the rows are better than ``person``, the one that was found.

    None if that, or one person, is as good. ``others`` are names and values of the other columns
    by their position; ``called`` is what that of the people is called, if there is one.

    Raises
    ------
    InputError
        If people would be merged and it is not clear which column tells them apart.
    """
    fits = seen.plausible(person)
    found: list[tuple[int, str, float]] = []
    for position, (name, values) in others.items():
        if _may_be_people(values) and seen.plausible(values):
            length = seen.length_km(values)
            if not fits or _explains(seen, person, values, length):
                found.append((position, name, length))
    found = _distinct(found, others)
    if fits and not found:
        return None
    if len(found) == 1 and person is None:
        position, name, _ = found[0]
        note = "no column is named so, but by this one people move as people can"
        left = tuple(printable(n) for p, (n, _) in others.items() if p != position and n)
        shown = printable(name) or f"column {position}"
        return position, Guess(shown, (ONE_PERSON, *left), note, "column user_id")
    if fits or (person is not None and not found and seen.merits(person)[0] <= MOST_MERGED):
        return None  # people who are named may leap: that is said of the whole file
    proposed = ", ".join(printable(name, 40) for _, name, _ in found) or ", ".join(
        printable(name, 40) for name, _ in list(others.values())[:20] if name
    )
    which = f"by the column {printable(called)}" if person is not None else "with no column of ids"
    kept = printable(called) if person is not None else ONE_PERSON
    raise InputError(
        f"Read {which}, people would be at several places at one time, or move faster than anybody "
        f"can; say which column names the person"
        + (f", such as {proposed}" if proposed else "")
        + f", or say {kept} if that is right.",
        "--column user_id=NAME",
        code="people-merged",
    )


def _explains(
    seen: Seen, person: pa.ChunkedArray | None, values: pa.ChunkedArray, length: float
) -> bool:
    """Whether a column tells people apart whom one person's way would jump between."""
    if person is not None:
        return False
    return seen.turns(values) > INTERLEAVED and length < SHORTER * seen.length_km(None)


def _may_be_people(values: pa.ChunkedArray) -> bool:
    """Whether values repeat as ids do: some of them, each of several rows, and no fractions."""
    filled = values.filter(pc.not_equal(values, ""))
    if len(filled) < 0.9 * len(values) or len(filled) < 2:
        return False
    n_different = len(filled.unique())
    if n_different < 2 or 2 * n_different > len(filled):
        return False
    fractions = pc.sum(pc.match_substring_regex(filled, r"^[+-]?\d+[.,]\d*[1-9]\d*$")).as_py() or 0
    return bool(2 * fractions < len(filled))


def _distinct(
    found: list[tuple[int, str, float]], others: Mapping[int, tuple[str, pa.ChunkedArray]]
) -> list[tuple[int, str, float]]:
    """Columns without those that tell the same people apart as one before."""
    kept: list[tuple[int, str, float]] = []
    seen: list[IntArray] = []
    for each in found:
        codes = _codes(others[each[0]][1])
        if not any(np.array_equal(codes, other) for other in seen):
            seen.append(codes)
            kept.append(each)
    return kept


def _codes(ids: pa.ChunkedArray) -> IntArray:
    """Numbers (n,) of ids in order of appearance, -1 where there is none."""
    text = np.asarray(pc.if_else(pc.equal(ids, ""), None, ids).to_pandas(), dtype=object)
    codes, _ = pd.factorize(text)
    return codes.astype(np.int64)
