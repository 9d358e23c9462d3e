"""How a view, a value of one's choices, is written in an address and read back."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Param",
    "Params",
    "choice",
    "numbers",
    "people",
    "place",
    "read",
    "several",
    "shade",
    "switch",
    "whole",
    "written",
]


@dataclass(frozen=True)
class Param:
    """A parameter of an address, for an attribute of a view.

    ``read`` takes its text and the result that is shown; it raises ValueError if that cannot
    follow it. A text of more than ``longest`` characters is not looked at.
    """

    attribute: str
    write: Callable[[Any], str]
    read: Callable[[str, Any], Any]
    longest: int = 200


MANY = 100_000
"""Characters that all cells of a large grid, or all days of some years, may take."""

Params = Mapping[str, Param]
"""All parameters of a view by their names in the address."""


def written(view: Any, params: Params) -> dict[str, str]:
    """A view as texts of an address."""
    return {name: param.write(getattr(view, param.attribute)) for name, param in params.items()}


def read(
    address: Mapping[str, str], params: Params, result: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Attributes that an address gives, and the names of what the result cannot follow."""
    chosen: dict[str, Any] = {}
    refused = []
    for name, param in params.items():
        if name in address:
            try:
                if len(address[name]) > param.longest:
                    raise ValueError(name)
                chosen[param.attribute] = param.read(address[name], result)
            except ValueError:
                refused.append(name)
    return chosen, tuple(refused)


def choice(attribute: str, allowed: Callable[[Any], Container[str]]) -> Param:
    """One of some texts."""

    def read(text: str, result: Any) -> str:
        if text not in allowed(result):
            raise ValueError(text)
        return text

    return Param(attribute, lambda text: "" if text is None else str(text), read)


def several(attribute: str, allowed: Callable[[Any], Container[str]]) -> Param:
    """Some texts, each once, or none."""

    def read(text: str, result: Any) -> tuple[str, ...]:
        chosen = dict.fromkeys(filter(None, text.split(",")))
        known = allowed(result)
        for each in chosen:
            if each not in known:
                raise ValueError(each)
        return tuple(chosen)

    return Param(attribute, ",".join, read, longest=MANY)


def whole(attribute: str, least: int, end: Callable[[Any], int], *, optional: bool = True) -> Param:
    """A number from ``least`` to before ``end``, or nothing where that is possible."""

    def read(text: str, result: Any) -> int | None:
        if text == "" and optional:
            return None
        number = int(text)
        if not least <= number < end(result):
            raise ValueError(text)
        return number

    return Param(attribute, lambda number: "" if number is None else str(number), read)


def numbers(attribute: str, end: Callable[[Any], int]) -> Param:
    """Some numbers from 0 to before ``end``, each once, or none."""

    def read(text: str, result: Any) -> tuple[int, ...]:
        chosen = tuple(dict.fromkeys(int(each) for each in filter(None, text.split(","))))
        if not all(0 <= number < end(result) for number in chosen):
            raise ValueError(text)
        return chosen

    return Param(
        attribute, lambda numbers: ",".join(str(int(n)) for n in numbers), read, longest=MANY
    )


def place(attribute: str) -> Param:
    """Longitude, latitude and zoom of a map, or nothing."""

    def write(camera: tuple[float, float, float] | None) -> str:
        return "" if camera is None else "{:.5f},{:.5f},{:.2f}".format(*camera)

    def read(text: str, _: Any) -> tuple[float, float, float] | None:
        if text == "":
            return None
        lon, lat, zoom = (float(part) for part in text.split(","))
        if not (abs(lon) <= 180 and abs(lat) <= 90 and 0 <= zoom <= 25):
            raise ValueError(text)
        return lon, lat, zoom

    return Param(attribute, write, read)


def people(attribute: str) -> Param:
    """A number of people."""

    def read(text: str, _: Any) -> float:
        number = float(text)
        if not 0 <= number < 1e12:
            raise ValueError(text)
        return number

    return Param(attribute, "{:.12g}".format, read)


def switch(attribute: str) -> Param:
    """On or off."""

    def read(text: str, _: Any) -> bool:
        if text not in ("0", "1"):
            raise ValueError(text)
        return text == "1"

    return Param(attribute, lambda on: str(int(on)), read)


def shade(attribute: str, shades: Container[str]) -> Param:
    """What the shade of a cell stands for, or none."""

    def read(text: str, _: Any) -> str | None:
        if text != "none" and text not in shades:
            raise ValueError(text)
        return None if text == "none" else text

    return Param(attribute, lambda shade: str(shade or "none"), read)
