"""Flows given both counts, against all tables that there are with those margins."""

import itertools
import math

import numpy as np
import pytest

from agg_core.counts import posterior
from agg_core.counts.mixing import split_r_hat
from agg_core.counts.pairs import CountPairs
from agg_core.counts.posterior import FlowChains, gaussian_flows
from tests.faults import refused


def pairs_of_counts(before, after, slot=None, slots=("all",)):
    before, after = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (before, after))
    closed = np.zeros(before.shape, dtype=bool)
    slot = np.zeros(len(before), dtype=np.int64) if slot is None else np.asarray(slot)
    return CountPairs(before, after, slot, slot * 0, slots, False, closed, closed)


def drawn(pairs, transmats, n_draws=40, burn=160, thin=1, n_chains=4, random_state=0):
    """Tables (P, C, R, d, d) of every draw."""
    chains = FlowChains(pairs, transmats, n_chains=n_chains, random_state=random_state)
    d = pairs.n_states
    tables = np.zeros((n_chains, n_draws, pairs.n_pairs, d, d), dtype=np.int32)
    for part in chains.drawn(n_draws, burn=burn, thin=thin):
        numbers = np.arange(part.pairs.start, part.pairs.stop)
        part.add_to(tables[part.chain], numbers)
        mine = tables[part.chain][:, numbers]
        np.testing.assert_array_equal(mine.sum(axis=0), part.sums)
        away = mine.sum(axis=(2, 3)) - np.trace(mine, axis1=2, axis2=3)
        np.testing.assert_array_equal(away.T, part.movers)
    return np.moveaxis(tables, 2, 0)


def movers(tables):
    return tables.sum(axis=(-2, -1)) - np.trace(tables, axis1=-2, axis2=-1)


def rows_with(total, n):
    """All ways to share a total among n cells."""
    for cuts in itertools.combinations(range(total + n - 1), n - 1):
        ends = (-1, *cuts, total + n - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def expected_by_counting(before, after, transmat):
    """Mean and variance of the table, every one weighed by its chance."""
    total, mean, square = 0.0, 0.0, 0.0
    for rows in itertools.product(*(rows_with(n, len(after)) for n in before)):
        table = np.array(rows)
        if (table.sum(axis=0) == after).all():
            weight = math.prod(
                transmat[i][j] ** int(n) / math.factorial(int(n))
                for (i, j), n in np.ndenumerate(table)
            )
            total, mean = total + weight, mean + weight * table
            square = square + weight * table**2
    return mean / total, square / total - (mean / total) ** 2


CASES = {
    "even": ([3, 2, 4], [2, 4, 3], np.full((3, 3), 1 / 3)),
    "mostly stay": ([4, 3, 2], [3, 3, 3], [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]]),
    "an empty cell": ([5, 0, 3], [2, 4, 2], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.4, 0.5]]),
    "moves that cannot be": ([3, 3, 3], [3, 3, 3], [[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]]),
    "four cells": (
        [2, 3, 1, 2], [1, 2, 3, 2],
        [[0.5, 0.2, 0.2, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.2, 0.5, 0.1], [0.1, 0.1, 0.1, 0.7]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_chances_of_all_tables_with_these_margins(case):
    before, after, transmat = CASES[case]
    (tables,) = drawn(
        pairs_of_counts(before, after), np.array(transmat, dtype=float)[None],
        n_chains=8, n_draws=2_000, burn=240, thin=16, random_state=1,
    )  # fmt: skip
    assert (tables.sum(axis=3) == before).all()
    assert (tables.sum(axis=2) == after).all()
    mean, variance = expected_by_counting(before, after, transmat)
    # 16,000 draws that tell as much as 4,000 on their own, five standard errors.
    found = tables.mean(axis=(0, 1))
    np.testing.assert_array_less(np.abs(found - mean), 5 * np.sqrt(variance / 4_000) + 1e-9)
    found = tables.astype(float).var(axis=(0, 1))
    np.testing.assert_allclose(found, variance, rtol=0.15, atol=0.02)
    assert split_r_hat(movers(tables)) < 1.02


def test_each_pair_moves_by_the_transitions_of_its_time():
    stay, go = np.array([[0.99, 0.01], [0.01, 0.99]]), np.array([[0.01, 0.99], [0.99, 0.01]])
    pairs = pairs_of_counts([[5, 5]] * 3, [[5, 5]] * 3, [0, 1, 0], ("08:00", "09:00"))
    first, second, third = drawn(pairs, np.stack([stay, go])).mean(axis=(1, 2))
    assert first[0, 1] < 0.5
    assert second[0, 1] > 4.5
    assert third[0, 1] < 0.5


def test_crowded_cells_mix_whichever_way_a_chain_begins():
    """A ring of 16 cells with 400 people each, of whom a tenth goes on to either side."""
    d = 16
    transmat = 0.8 * np.eye(d) + 0.1 * (np.roll(np.eye(d), 1, 1) + np.roll(np.eye(d), -1, 1))
    rng = np.random.default_rng(3)
    before = np.full(d, 400)
    moved = np.stack([rng.multinomial(400, row) for row in transmat])
    pairs = pairs_of_counts(before, moved.sum(axis=0))
    (tables,) = drawn(pairs, transmat[None], n_draws=400)
    away = movers(moved)
    assert split_r_hat(movers(tables)) < 1.05
    # 1,280 people are expected to move and vary by 32; the counts tell little of how many did.
    assert abs(movers(tables).mean() - away) < 4 * 32
    # Where many people are, the normal stand-in agrees.
    normal = gaussian_flows(before.astype(float), moved.sum(axis=0).astype(float), transmat)
    np.testing.assert_allclose(tables.mean(axis=(0, 1)), normal, atol=3.0)


def test_normal_flows_meet_both_counts():
    rng = np.random.default_rng(0)
    transmat = rng.dirichlet(np.full(5, 3.0), 5)
    before = rng.integers(500, 900, 5).astype(float)
    after = np.stack(
        [rng.multinomial(int(n), row) for n, row in zip(before, transmat, strict=True)]
    ).sum(axis=0)
    flows = gaussian_flows(before, after.astype(float), transmat)
    np.testing.assert_allclose(flows.sum(axis=1), before, rtol=1e-9)
    np.testing.assert_allclose(flows.sum(axis=0), after, rtol=1e-9)


def test_counts_that_are_not_whole_keep_their_people():
    pairs = pairs_of_counts([[2.4, 1.6, 3.0]], [[3.3, 2.7, 1.0]])
    tables = drawn(pairs, np.full((1, 3, 3), 1 / 3))
    assert set(tables.sum(axis=(3, 4)).ravel()) == {7}


def test_the_same_seed_draws_the_same_and_another_does_not():
    pairs = pairs_of_counts([[9, 4, 7]], [[6, 8, 6]])
    first, again, other = (
        drawn(pairs, np.full((1, 3, 3), 1 / 3), random_state=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_chains_go_on_from_where_they_were_in_whatever_portions(monkeypatch):
    pairs = pairs_of_counts([[9, 4, 7], [2, 8, 1]], [[6, 8, 6], [3, 3, 5]])
    transmat = np.array([[[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]])
    whole = drawn(pairs, transmat, n_draws=1, burn=50)
    monkeypatch.setattr(posterior, "PARTS_EACH", 1)
    np.testing.assert_array_equal(drawn(pairs, transmat, n_draws=1, burn=50), whole)
    monkeypatch.setattr(posterior, "MOST_BYTES", 1)
    np.testing.assert_array_equal(drawn(pairs, transmat, n_draws=1, burn=50), whole)
    monkeypatch.setattr(posterior, "PARTS_EACH", 7)
    np.testing.assert_array_equal(drawn(pairs, transmat, n_draws=1, burn=50), whole)
    chains = FlowChains(pairs, transmat, random_state=0)
    first = [part.sums for part in chains.drawn(1)]
    then = [part.sums for part in chains.drawn(1)]
    # Two pairs of four chains each: of one round after the other some people go elsewhere.
    assert len(first) == len(then) == 8
    assert any((a != b).any() for a, b in zip(first, then, strict=True))


@pytest.mark.parametrize("wrong", [{"n_draws": 0}, {"thin": 0}, {"burn": -1}, {"n_chains": 0}])
def test_no_draw_is_no_answer(wrong):
    pairs = pairs_of_counts([[1, 1]], [[1, 1]])
    with refused("value-out-of-range"):
        drawn(pairs, np.full((1, 2, 2), 0.5), **wrong)
