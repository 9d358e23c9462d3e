import json

import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices


def test_choices_go_to_json_and_back():
    made = Choices.of({"time": 2, "lon": "x"}, {"day": "1"}, tz="Asia/Tokyo", max_speed=300.0)
    assert Choices.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert made.by_hand
    assert not Choices().by_hand


@pytest.mark.parametrize(
    ("option", "value", "field", "found"),
    [
        ("swap_axes", "swapped", "swap_axes", True),
        ("swap_axes", "as named", "swap_axes", False),
        ("header", "no header", "header", False),
        ("flip_y", "from the north", "flip_y", True),
        ("time_format", "month/day/year", "time_format", "month/day/year"),
        ("column lon", "x", "columns", (("lat", "y"), ("lon", "x"))),
    ],
)
def test_an_alternative_of_a_guess_becomes_a_choice(option, value, field, found):
    before = Choices.of({"lon": "z", "lat": "y"})
    assert getattr(before.changed(option, value), field) == found


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        ({"speed": 3}, "unknown-option"),
        ({"max_speed": 0.5}, "value-out-of-range"),
        ({"duplicates": "both"}, "not-a-choice"),
        ({"time_format": "dmy"}, "not-a-choice"),
    ],
)
def test_choices_that_make_no_sense(stated, code):
    with pytest.raises(InputError) as told:
        Choices.of(**stated)
    assert told.value.code == code


def test_an_alternative_of_nothing():
    with pytest.raises(InputError) as told:
        Choices().changed("colour", "red")
    assert told.value.code == "unknown-option"
