"""Stations on a map, and entries and exits by day."""

import json

import pytest

from agg_core.base.errors import InputError
from agg_core.plotting.gates import days_chart, stations_deck

BOX = (139.0, 35.0, 140.0, 36.0)


def test_areas_are_as_people_and_small_ones_lie_on_top() -> None:
    places = [[139.2, 35.2], [139.5, 35.5], [139.8, 35.8]]
    deck = json.loads(stations_deck("abc", places, [100, 400, 0], BOX).to_json())
    layer = next(each for each in deck["layers"] if each["id"] == "stations")
    radius = [each["radius"] for each in layer["data"]]
    assert radius == sorted(radius, reverse=True)
    assert radius[0] == pytest.approx(2 * radius[1])
    assert radius[2] > 0
    assert [each["at"] for each in layer["data"]] == [places[1], places[0], places[2]]


def test_a_bar_for_each_way_and_day() -> None:
    figure = days_chart(["2024-05-01", "2024-05-02"], [1, 2], [2, 1])
    assert [bar.name for bar in figure.data] == ["Entries", "Exits"]
    assert [list(bar.y) for bar in figure.data] == [[1, 2], [2, 1]]


def test_lengths_must_agree() -> None:
    for call in (
        lambda: stations_deck("ab", [[139.2, 35.2]], [1, 2], BOX),
        lambda: days_chart(["2024-05-01"], [1, 2], [1]),
    ):
        with pytest.raises(InputError) as fault:
            call()
        assert fault.value.code == "lengths-differ"
