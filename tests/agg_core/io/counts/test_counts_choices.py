"""What may be said of a file of counts."""

import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import CountChoices


def test_alternatives_in_words_and_numbers_become_values():
    choices = CountChoices()
    assert choices.changed("header", "no header").header is False
    assert choices.changed("suppressed_below", "10").suppressed_below == 10
    assert choices.changed("column count", "n").columns == (("count", "n"),)
    with pytest.raises(InputError) as told:
        choices.changed("step_minutes", "soon")
    assert told.value.code == "not-a-number"


def test_choices_come_back_from_json_types():
    choices = CountChoices.of({"cell": 0}, {"gender": "-1"}, bbox=(1.0, 2.0, 3.0, 4.0))
    assert CountChoices.from_dict(choices.to_dict()) == choices
    assert CountChoices.from_dict({"bbox": [1, 2, 3, 4]}).bbox == (1, 2, 3, 4)
