"""Published tables of counts whose columns nobody should have to describe: told by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agg_core.base.report import Guess, printable

__all__ = ["OPTIONS", "PUBLISHED_LAYOUTS", "CountColumns"]

Names = Sequence[str]

OPTIONS = (
    "residence",
    "age",
    "gender",
    "sex",
    "居住地",
    "年代",
    "年齢",
    "性別",
    "国籍",
    "nationality",
)
"""Columns that break counts down."""
_DOCOMO = {"date", "time", "area", "population"}
_DOCOMO_SPOKEN = {"日付": "date", "時間帯": "time", "エリア": "area", "人口": "population"}
_MLIT = {"mesh1kmid", "year", "month", "dayflag", "timezone", "population"}
_META = ("ncrisis", "nbaseline")


@dataclass(frozen=True)
class CountColumns:
    """How a table is laid out and the position of each role's column.

    ``options`` break counts down (age, gender); rows that differ in ``parts`` are added; ``wide``
    are the columns of cells of a table with a row per time. ``clock`` says how the column of that
    role is written: "hhmm", "hours", "slots" or "clock".
    """

    layout: str
    title: str
    positions: Mapping[str, int]
    options: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()
    timezone: str | None = None
    clock: str = ""
    guesses: Mapping[str, Guess] = field(default_factory=dict)


def _is_docomo(plain: Names) -> bool:
    spoken = {_DOCOMO_SPOKEN.get(name, name) for name in plain}
    return spoken >= _DOCOMO and bool(set(plain) & set(OPTIONS))


def _docomo(_: Names, plain: Names) -> CountColumns:
    spoken = [_DOCOMO_SPOKEN.get(name, name) for name in plain]
    at = {"date": "date", "clock": "time", "cell": "area", "count": "population"}
    options = tuple(i for i, name in enumerate(plain) if name in OPTIONS)
    return CountColumns(
        "docomo", "Mobile Spatial Statistics",
        {role: spoken.index(name) for role, name in at.items()}, options,
        timezone="Asia/Tokyo", clock="hhmm",
    )  # fmt: skip


def _is_mlit(plain: Names) -> bool:
    return set(plain) >= _MLIT


def _mlit(_: Names, plain: Names) -> CountColumns:
    at = {"cell": "mesh1kmid", "period": "timezone", "count": "population"}
    at |= {name: name for name in ("year", "month", "dayflag")}
    parts = tuple(i for i, name in enumerate(plain) if name in ("prefcode", "citycode"))
    return CountColumns(
        "mlit", "MLIT people-flow open data",
        {role: plain.index(name) for role, name in at.items()}, parts=parts,
        timezone="Asia/Tokyo",
    )  # fmt: skip


def _is_meta(plain: Names) -> bool:
    return "quadkey" in plain and "datetime" in plain and bool(set(plain) & set(_META))


def _meta(names: Names, plain: Names) -> CountColumns:
    there = [name for name in _META if name in plain]
    at = {"cell": "quadkey", "time": "datetime", "count": there[0]}
    at |= {axis: axis for axis in ("lon", "lat") if {"lon", "lat"} <= set(plain)}
    others = tuple(printable(names[plain.index(name)]) for name in there[1:])
    count = Guess(printable(names[plain.index(there[0])]), others, option="column count")
    return CountColumns(
        "meta", "Meta population maps",
        {role: plain.index(name) for role, name in at.items()}, timezone="UTC",
        guesses={"count": count},
    )  # fmt: skip


PUBLISHED_LAYOUTS: Mapping[
    str, tuple[Callable[[Names], bool], Callable[[Names, Names], CountColumns]]
] = {
    "docomo": (_is_docomo, _docomo),
    "mlit": (_is_mlit, _mlit),
    "meta": (_is_meta, _meta),
}
"""Of each layout whether a table's names, written plainly, are its, and what its columns are."""
