"""What gates contradict: simulated gates that are right, doubled, turned round, or impossible."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from agg_core.counts.contradictions import ALL_DAY, Foretold, believed
from agg_core.counts.crossings import CrossingCounts, each_passing
from agg_core.counts.worlds import simulated_world
from tests.agg_core.counts import made

D, DAYS, SLOTS = 6, 8, 4
ROWS = np.full((D, D), 0.04) + np.diag(np.full(D, 0.76))
INSIDE = np.array([0, 0, 0, 1, 1, 1])


def passes():
    """Two ways over a line that divides all cells, and four single moves."""
    tables = np.zeros((6, D, D))
    tables[0] = (INSIDE[:, None] == 0) & (INSIDE == 1)
    tables[1] = tables[0].T
    for number, (i, j) in enumerate([(0, 1), (1, 2), (3, 4), (5, 3)], start=2):
        tables[number, i, j] = 1
    return sparse.csr_array(tables.reshape(6, -1))


NAMES = [("line", "east"), ("line", "west"), *((f"move {n}", "there") for n in range(4))]


@pytest.fixture(scope="module")
def city():
    """Pairs, gates with an error of 5 %, and what the true chances foretell."""
    rng = np.random.default_rng(3)
    n = DAYS * SLOTS
    before = np.tile([900.0, 800, 700, 900, 800, 700], (n, 1))
    slot = np.tile(np.arange(SLOTS), DAYS)
    pairs = made.pairs(before, before, slot=slot, n_slots=SLOTS)
    blank = CrossingCounts.of(passes(), np.zeros((n, 6)), slot, np.full(6, 0.05), SLOTS)
    _, world = simulated_world(replace(pairs, crossings=blank), before, ROWS[None], rng)
    mean, variance = each_passing(world, ROWS[None], passes())
    return world, world.crossings, Foretold(mean, variance, 0.05, 0.1)


def named(found):
    return {(each.code, each.gate, each.time) for each in found}


def test_gates_that_are_right_contradict_nothing(city):
    pairs, gates, told = city
    found, contradictions = believed(gates, told, pairs, NAMES)
    assert contradictions == ()
    assert not found.bias.any()
    assert not found.bias_then.any()
    assert (found.relative[:2] < 0.15).all()  # of a few people chance hides it
    assert believed(gates, told, pairs, NAMES, error=0.2)[0].relative.tolist() == [0.2] * 6


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_gate_that_counts_twice_or_half_as_many_is_named_and_hardly_believed(city, factor):
    pairs, gates, told = city
    counts = gates.counts.copy()
    counts[:, 3] *= factor
    found, contradictions = believed(replace(gates, counts=counts), told, pairs, NAMES)
    assert ("flows", "move 1", ALL_DAY) in named(contradictions)
    assert {each.gate for each in contradictions} == {"move 1"}
    first = contradictions[0]
    assert first.counted / first.expected == pytest.approx(factor, rel=0.15)
    assert first.z * np.log(factor) > 0
    assert np.flatnonzero(found.bias).tolist() == [3]
    # All its counts together tell no more than one that is wrong by so much.
    information = (found.level[:, 3] ** 2 * found.precision[:, 3]).sum()
    off = abs(first.counted - first.expected) / first.counted
    assert information < 1 / off**2
    assert information > 0.5 / off**2


def test_a_line_across_all_cells_is_held_against_the_change_on_its_sides(city):
    pairs, gates, told = city
    counts = gates.counts.copy()
    rows = gates.slot == 2
    counts[rows, 0] += 60
    wrong = replace(gates, counts=counts)
    found, contradictions = believed(wrong, told, pairs, NAMES)
    (change,) = [each for each in contradictions if each.code == "change"]
    assert (change.gate, change.direction, change.time) == ("line", "east - west", "02:00")
    inside = (pairs.after - pairs.before) @ INSIDE
    assert change.expected == pytest.approx(inside[rows].mean())
    assert change.counted == pytest.approx((counts[rows, 0] - counts[rows, 1]).mean())
    spread = (found.variance * (found.bias_then[gates.slot] == 0))[:, :2]
    assert np.flatnonzero(spread.sum(axis=1) == 0).tolist() == np.flatnonzero(rows).tolist()


def test_more_than_there_are_cannot_pass(city):
    pairs, gates, told = city
    counts = gates.counts.copy()
    counts[gates.slot == 1, 2] = 3_000
    _, contradictions = believed(replace(gates, counts=counts), told, pairs, NAMES)
    most = {each.time: each for each in contradictions if each.code == "people"}
    assert most.keys() == {"01:00"}
    assert most["01:00"].expected <= 900
    assert most["01:00"].counted == 3_000


def test_gates_without_days_enough_are_taken_to_err_by_a_guess(city):
    pairs, gates, told = city
    first = np.arange(SLOTS)
    few = Foretold(told.mean[first], told.variance[first], told.rough, told.rough_then)
    found, _ = believed(gates.take(first), few, pairs.take(first), NAMES)
    assert found.relative.tolist() == [0.1] * 6


def test_the_error_of_a_gate_is_learned_from_how_its_counts_scatter(city):
    pairs, gates, told = city
    rng = np.random.default_rng(0)
    counts = gates.counts.copy()
    counts[:, 0] *= np.maximum(1 + 0.3 * rng.standard_normal(len(counts)), 0)
    found, _ = believed(replace(gates, counts=counts), told, pairs, NAMES)
    assert 0.2 < found.relative[0] < 0.4
    assert found.relative[1] < 0.15
