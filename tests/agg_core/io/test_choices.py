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
    ("stated", "message"),
    [
        ({"speed": 3}, "No choice of reading is called 'speed'"),
        ({"max_speed": 0.5}, "Fastest must lie between 1 and 100,000 km/h"),
        ({"duplicates": "both"}, "must be one of last, first"),
        ({"time_format": "dmy"}, "Time format must be one of"),
    ],
)
def test_choices_that_make_no_sense(stated, message):
    with pytest.raises(InputError, match=message):
        Choices.of(**stated)


def test_an_alternative_of_nothing():
    with pytest.raises(InputError, match="No choice of reading"):
        Choices().changed("colour", "red")
