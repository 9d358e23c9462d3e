"""Columns that say where something begins and where it ends: of tables of trips and movements."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agg_core.io.guess.columns import number_of
from agg_core.io.guess.times import looks_like_clock, looks_like_time

__all__ = ["end_columns", "is_square", "words_of"]

_PAIRS = (
    *(("origin", "dest"), ("origin", "destination"), ("orig", "dest"), ("origen", "destino")),
    *(("origine", "destination"), ("origem", "destino"), ("from", "to"), ("start", "end")),
    *(("start", "stop"), ("source", "target"), ("src", "dst"), ("home", "work"), ("h", "w")),
    *(("residence", "workplace"), ("residence", "work"), ("pickup", "dropoff"), ("pu", "do")),
    *(("departure", "arrival"), ("dep", "arr"), ("o", "d"), ("i", "j"), ("von", "nach")),
    *(("start", "ziel"), ("de", "a"), ("depart", "arrivee"), ("boarding", "alighting")),
    *(("entry", "exit"), ("発地", "着地"), ("出発地", "到着地"), ("出発", "到着"), ("発", "着")),
    *(("living", "working"), ("first", "last"), ("begin", "end"), ("sending", "receiving")),
    *(("居住地", "勤務地"), ("常住地", "従業地"), ("居住地", "滞在地")),
)
"""Words for both ends; names that differ by such a pair alone are those of the two ends."""
_COUNTS_OF = ("count", "counts", "flow", "flows", "volume", "entries", "exits", "total", "n")
_JOINTS = re.compile(r"[^0-9a-z\u3040-\u9fff]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SAMPLE_ROWS = 50


def words_of(name: str) -> list[str]:
    """The words of a column name in lower case: originZone and origin_zone have two."""
    whole = unicodedata.normalize("NFKC", name)
    parts = _JOINTS.split(_CAMEL.sub(" ", whole).casefold())
    return [part for part in parts if part]


def end_columns(names: Sequence[str], sample: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """Positions of the columns that name the place at which a row begins and ends; None for none.

    Columns whose values are times or numbers with fractions are no such places.
    """
    words = [words_of(name) for name in names]
    for first, second in _PAIRS:
        for a, own in enumerate(words):
            if first not in own or set(own) & set(_COUNTS_OF):
                continue
            other = [second if word == first else word for word in own]
            if other not in words:
                continue
            b = words.index(other)
            if a != b and _are_places(sample, a) and _are_places(sample, b):
                return a, b
    return None


def is_square(names: Sequence[str], sample: Sequence[Sequence[str]]) -> bool:
    """Whether a table is a matrix: a row and a column for each place, named in the first column."""
    if len(names) < 4 or not sample:
        return False
    heads = [name.strip() for name in names[1:]]
    rows = [row[0].strip() for row in sample if row]
    if len(set(rows)) < 3 or not set(rows[: len(heads)]) <= set(heads):
        return False
    return all(
        number_of(value) is not None or not value.strip()
        for row in sample[:SAMPLE_ROWS] for value in row[1:]
    )  # fmt: skip


def _are_places(sample: Sequence[Sequence[str]], at: int) -> bool:
    values = [row[at].strip() for row in sample[:SAMPLE_ROWS] if at < len(row) and row[at].strip()]
    if not values:
        return True
    strange = sum(
        looks_like_time(value) or (":" in value and looks_like_clock(value)) or _is_fraction(value)
        for value in values
    )
    return 2 * strange < len(values)


def _is_fraction(value: str) -> bool:
    number = number_of(value)
    return number is not None and number % 1 != 0
