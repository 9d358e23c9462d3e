"""Parameters of an address: written, read, and refused."""

import re
from dataclasses import dataclass

import pytest

from ui.view_params import (
    Param,
    choice,
    numbers,
    people,
    place,
    read,
    shade,
    switch,
    whole,
    written,
)

PARAMS = {"n": whole("number", 2, lambda end: end), "colour": choice("colour", lambda _: ("red",))}


@dataclass
class View:
    number: int | None
    colour: str


def test_a_view_is_written_and_read_by_the_names_of_its_parameters() -> None:
    assert written(View(3, "red"), PARAMS) == {"n": "3", "colour": "red"}
    assert read({"n": "3", "x": "1"}, PARAMS, 4) == ({"number": 3}, ())
    assert read({"n": "4", "colour": "red"}, PARAMS, 4) == ({"colour": "red"}, ("n",))
    assert read({}, PARAMS, 4) == ({}, ())


@pytest.mark.parametrize(
    ("param", "value", "text"),
    [
        (whole("x", 0, lambda _: 9), None, ""),
        (whole("x", 0, lambda _: 9), 8, "8"),
        (people("x"), 0.25, "0.25"),
        (numbers("x", lambda _: 9), (), ""),
        (numbers("x", lambda _: 9), (3, 8), "3,8"),
        (place("x"), None, ""),
        (place("x"), (139.5, -35.25, 9.5), "139.50000,-35.25000,9.50"),
        (switch("x"), True, "1"),
        (switch("x"), False, "0"),
        (shade("x", ("change",)), None, "none"),
        (shade("x", ("change",)), "change", "change"),
    ],
)
def test_a_value_comes_back(param: Param, value: object, text: str) -> None:
    assert param.write(value) == text
    assert param.read(text, None) == value


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (whole("x", 0, lambda _: 9), "9"),
        (whole("x", 1, lambda _: 9), "0"),
        (whole("x", 1, lambda _: 9, optional=False), " "),
        (people("x"), "-0.1"),
        (people("x"), "nan"),
        (numbers("x", lambda _: 9), "3,9"),
        (place("x"), "0,0,-1"),
        (switch("x"), "2"),
        (shade("x", ("change",)), "None"),
        (choice("x", lambda _: ("red",)), "Red"),
    ],
)
def test_what_cannot_be_followed_is_refused(param: Param, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        param.read(text, None)


def test_a_text_that_is_too_long_is_not_looked_at():
    looked: list[str] = []

    def look(text: str, _: object) -> str:
        looked.append(text)
        return text

    params = {"short": Param("short", str, look), "long": Param("long", str, look, longest=300)}
    address = {"short": "x" * 201, "long": "y" * 300}
    assert read(address, params, None) == ({"long": "y" * 300}, ("short",))
    assert looked == ["y" * 300]
