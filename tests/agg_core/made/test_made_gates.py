"""The made-up railway."""

import numpy as np

from agg_core.made.gates import STATIONS, simulate_railway
from agg_core.made.samples import gate_sample


def test_everybody_who_enters_leaves_and_pairs_are_theirs() -> None:
    made = simulate_railway(8, random_state=3)
    assert made.entries.shape == (8, 24, len(STATIONS))
    np.testing.assert_array_equal(made.entries.sum(axis=1), made.went.sum(axis=2))
    np.testing.assert_array_equal(made.exits.sum(axis=1), made.went.sum(axis=1))
    again = simulate_railway(8, random_state=3)
    np.testing.assert_array_equal(made.entries, again.entries)
    a_day = made.entries.sum(axis=(1, 2))
    assert a_day[5] < 0.7 * a_day[0]  # a Saturday


def test_the_sample_is_that_railway_with_places() -> None:
    found, made = gate_sample(), simulate_railway()
    assert found.n_entered == made.entries.sum()
    assert found.n_left == made.exits.sum()
    assert set(found.stations) == {each[0] for each in STATIONS}
    assert found.places is not None
    assert found.timezone == "Asia/Tokyo"
