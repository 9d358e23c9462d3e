"""Objects within objects, as feeds, trackers and databases write them, as rows of plain names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agg_core.io.guess.columns import ROLES, ends_of, plain_name

__all__ = ["flattened", "points_within", "rows_within"]

DEEPEST = 8
_PLACES = frozenset((*ROLES["lat"], *ROLES["geometry"], *ROLES["place"])) - {"y", "place", "shape"}
_POINT = "Point"


def rows_within(document: Mapping[str, Any]) -> Sequence[Any]:
    """The rows of an object that is none itself: its longest list of objects, at any depth.

    An object whose members are all objects with a place is a list, too, with the names of the
    members as ids. The object itself where it holds no list, or has a place of its own.
    """
    if _has_place(flattened(document)):
        return [document]
    found = max(_lists(document, 0), key=len, default=[])
    return found or [document]


def points_within(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row as plain names and values; as several where its points are a list within it.

    Each of them has what is common to all of the row.
    """
    whole = flattened(row)
    if _has_place(whole):
        return [whole]
    inner = max(
        (each for each in _lists(row, 0) if any(_has_place(flattened(point)) for point in each)),
        key=len, default=None,
    )  # fmt: skip
    if inner is None:
        return [whole]
    return [{**whole, **flattened(point)} for point in inner]


def flattened(value: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """All texts, numbers and truth values of an object; names of inner ones are ``outer.inner``.

    A point of GeoJSON becomes ``lon`` and ``lat``, two numbers in a list one text; what databases
    wrap a value in ({"$date": ...}) is taken off.
    """
    found: dict[str, Any] = {}
    for key, each in value.items():
        name, each = f"{before}{key}", _unwrapped(each)  # noqa: PLW2901  # the value within
        if isinstance(each, Mapping):
            place = _point(each)
            if place is not None:
                found[f"{name}.lon"], found[f"{name}.lat"] = place
            elif depth < DEEPEST:
                found |= flattened(each, f"{name}.", depth + 1)
        elif isinstance(each, list):
            if len(each) == 2 and all(_is_number(number) for number in each):
                found[name] = f"{each[0]}, {each[1]}"
        else:
            found[name] = each
    return found


def _unwrapped(value: Any) -> Any:
    while isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith("$"):
        value = next(iter(value.values()))
    return value


def _point(value: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Longitude and latitude of a point of GeoJSON, or of a feature of one."""
    at = value.get("coordinates")
    if value.get("type") == _POINT and isinstance(at, list) and len(at) >= 2:
        return _unwrapped(at[0]), _unwrapped(at[1])
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_place(flat: Mapping[str, Any]) -> bool:
    return any(end in _PLACES for name in flat for end in (plain_name(name), *ends_of(name)))


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    """Every list of objects within a value, and objects of objects with a place as such lists."""
    if depth > DEEPEST or not isinstance(value, Mapping):
        return
    for each in value.values():
        if isinstance(each, list) and each and all(isinstance(row, Mapping) for row in each):
            yield each
        elif isinstance(each, Mapping):
            members = [(key, row) for key, row in each.items() if isinstance(row, Mapping)]
            if len(members) == len(each) > 1 and all(
                _has_place(flattened(row)) for _, row in members
            ):
                yield [{"id": key, **row} for key, row in members]
            yield from _lists(each, depth + 1)
