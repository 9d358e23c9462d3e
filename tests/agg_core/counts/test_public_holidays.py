"""Public holidays of places, held against a calendar."""

import pytest

from agg_core.counts.public_holidays import check_place, country_names, is_holiday, part_names
from tests.faults import refused


@pytest.mark.parametrize(
    ("place", "days", "expected"),
    [
        # Golden Week; the fourth of May 2024 was a Saturday, the sixth in place of the fifth.
        ("JP", ["2024-05-02", "2024-05-03", "2024-05-04", "2024-05-06", "2024-05-07"],
         [False, True, True, True, False]),
        # Epiphany is kept in three of the states of Germany.
        ("DE", ["2024-01-06", "2024-10-03"], [False, True]),
        ("DE-BW", ["2024-01-06", "2024-10-03"], [True, True]),
        ("US-NJ", ["2024-07-04", "2024-07-05", "2023-11-23"], [True, False, True]),
        ("JP", [], []),
    ],
)  # fmt: skip
def test_days_are_those_of_the_calendar(place, days, expected):
    assert is_holiday(place, days).tolist() == expected


@pytest.mark.parametrize(
    ("typed", "place"), [("jp", "JP"), (" de_bw ", "DE-BW"), ("de-augsburg", "DE-Augsburg")]
)
def test_places_are_known_however_they_are_written(typed, place):
    assert check_place(typed) == place


@pytest.mark.parametrize("place", ["XX", "", "Germany", "1", "<b>", "J P"])
def test_an_unknown_country_is_refused(place):
    with refused("unknown-country"):
        check_place(place)


@pytest.mark.parametrize("place", ["DE-QQ", "JP-13", "US-Jersey"])
def test_an_unknown_part_is_refused(place):
    with refused("unknown-country-part"):
        check_place(place)


def test_near_names_are_told():
    with refused("unknown-country") as fault:
        check_place("Germany")
    assert "DE (Germany)" in str(fault.value)
    with refused("unknown-country-part") as fault:
        check_place("DE-Bayer")
    assert "BY (Bayern)" in str(fault.value)


def test_countries_and_parts_have_names():
    countries = country_names()
    assert (countries["JP"], countries["US"]) == ("Japan", "United States")
    assert countries["BA"] == "Bosnia and Herzegovina"
    assert list(countries.values()) == sorted(countries.values())
    assert part_names("DE")["BW"] == "Baden-Württemberg"
    assert part_names("US")["NJ"] == "New Jersey"
    assert part_names("JP") == {}
