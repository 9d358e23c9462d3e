"""Errors and expansion that are planted in counts are found again; exact counts are exact."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.counts import measuring
from agg_core.counts.erring import ErringPairs
from agg_core.counts.measuring import common_unit, measuring_steps
from agg_core.made.counts import simulate_city
from agg_core.study.counts import move_shape
from tests.agg_core.counts import made


def measured(table, **given):
    steps = measuring_steps(
        table, lambda outside: move_shape(table, outside=outside), random_state=0, **given
    )
    told = []
    while True:
        try:
            told.append(next(steps))
        except StopIteration as done:
            return done.value, told


@pytest.fixture(scope="module")
def city():
    return made.city_table(simulate_city(4, 4, days=7, people=1600, random_state=3))


def wrong(table, error, seed=0):
    noise = np.random.default_rng(seed).standard_normal(table.counts.shape)
    return replace(table, counts=np.rint(np.maximum(table.counts * (1 + error * noise), 0)))


@pytest.mark.parametrize(
    ("counts", "unit"),
    [([[10, 20], [30, 50]], 10), ([[3, 5]], 1), ([[0, 0]], 1), ([[1.5, 3]], 1), ([[np.nan, 8]], 8)],
)
def test_the_common_unit_divides_all_counts(counts, unit):
    assert common_unit(np.array(counts, dtype=float)) == unit


def test_counts_with_the_same_sum_throughout_are_exact(city):
    found, told = measured(city)
    assert (found.relative, found.low, found.high, found.expansion) == (0, 0, 0, 1)
    assert found.learned
    assert not told
    assert not isinstance(found.pairs, ErringPairs)


def test_exact_counts_of_a_sample_stand_for_as_many_as_they_are_multiples_of(city):
    found, _ = measured(replace(city, counts=10 * city.counts))
    assert found.expansion == 10
    np.testing.assert_array_equal(found.pairs.before[0], city.counts[0])


@pytest.mark.parametrize("error", [0.04, 0.1])
def test_the_error_is_learned(city, error):
    found, told = measured(wrong(city, error))
    assert isinstance(found.pairs, ErringPairs)
    assert found.relative == pytest.approx(error, rel=0.15)
    assert found.low < found.relative < found.high
    assert found.pairs.error.relative == found.relative
    assert not found.pairs.has_outside
    assert told


def test_a_sample_that_is_scaled_up_and_errs_is_told_from_one_that_is_not(city):
    found, _ = measured(wrong(replace(city, counts=8 * city.counts), 0.04))
    assert found.expansion == pytest.approx(8, rel=0.3)
    assert found.relative == pytest.approx(0.04, rel=0.2)


def test_people_who_come_and_go_are_no_error():
    rng = np.random.default_rng(1)
    city = simulate_city(4, 4, days=7, people=400, random_state=3)
    # Only half of the cells are counted: people of the others are outside.
    table = made.city_table(city)
    half = replace(
        table, counts=table.counts[:, :8], status=table.status[:, :8], cells=table.cells[:8],
        grid=None,
    )  # fmt: skip
    found, _ = measured(half)
    assert found.relative == 0
    assert found.pairs.has_outside
    erring, _ = measured(
        replace(half, counts=np.rint(half.counts * rng.lognormal(0, 0.1, (168, 8))))
    )
    assert erring.pairs.has_outside
    assert erring.relative == pytest.approx(0.1, rel=0.25)


def test_what_is_given_is_taken(city):
    given, _ = measured(wrong(city, 0.05), error=0.2, expansion=3.0)
    assert (given.relative, given.low, given.high, given.expansion) == (0.2, 0.2, 0.2, 3.0)
    assert not given.learned
    exact, told = measured(wrong(city, 0.05), error=0.0)
    assert not isinstance(exact.pairs, ErringPairs)
    assert not told


def test_more_counts_than_can_be_smoothed_are_exact_unless_an_error_is_given(city, monkeypatch):
    monkeypatch.setattr(measuring, "MOST_WORK", 1e3)
    found, _ = measured(wrong(city, 0.05))
    assert found.relative == 0
    assert not found.learned
    with pytest.raises(InputError) as fault:
        measured(wrong(city, 0.05), error=0.05)
    assert fault.value.code == "too-many-for-error"
