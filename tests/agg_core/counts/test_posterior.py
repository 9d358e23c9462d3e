"""Flows given both counts, against all tables that there are with those margins."""

import itertools
import math

import numpy as np
import pytest

from agg_core.counts.pairs import CountPairs
from agg_core.counts.posterior import gaussian_flows, posterior_draws, split_r_hat
from tests.faults import refused


def pairs_of_counts(before, after, slot=None, slots=("all",)):
    before, after = (np.atleast_2d(np.asarray(part, dtype=float)) for part in (before, after))
    closed = np.zeros(before.shape, dtype=bool)
    slot = np.zeros(len(before), dtype=np.int64) if slot is None else np.asarray(slot)
    return CountPairs(before, after, slot, slot * 0, slots, False, closed, closed)


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
    (drawn,) = posterior_draws(
        pairs_of_counts(before, after), np.array(transmat, dtype=float)[None],
        n_chains=8, n_draws=2_000, burn=30, thin=2, random_state=1,
    )  # fmt: skip
    assert (drawn.tables.sum(axis=3) == before).all()
    assert (drawn.tables.sum(axis=2) == after).all()
    mean, variance = expected_by_counting(before, after, transmat)
    # 16,000 draws that tell as much as 4,000 on their own, five standard errors.
    np.testing.assert_array_less(np.abs(drawn.mean - mean), 5 * np.sqrt(variance / 4_000) + 1e-9)
    found = drawn.tables.astype(float).var(axis=(0, 1))
    np.testing.assert_allclose(found, variance, rtol=0.15, atol=0.02)
    assert split_r_hat(drawn.movers) < 1.02


def test_each_pair_moves_by_the_transitions_of_its_time():
    stay, go = np.array([[0.99, 0.01], [0.01, 0.99]]), np.array([[0.01, 0.99], [0.99, 0.01]])
    pairs = pairs_of_counts([[5, 5]] * 3, [[5, 5]] * 3, [0, 1, 0], ("08:00", "09:00"))
    first, second, third = posterior_draws(pairs, np.stack([stay, go]), random_state=0)
    assert [drawn.pair for drawn in (first, second, third)] == [0, 1, 2]
    assert first.mean[0, 1] < 0.5
    assert second.mean[0, 1] > 4.5
    assert third.mean[0, 1] < 0.5


def test_crowded_cells_mix_whichever_way_a_chain_begins():
    """A ring of 16 cells with 400 people each, of whom a tenth goes on to either side."""
    d = 16
    transmat = 0.8 * np.eye(d) + 0.1 * (np.roll(np.eye(d), 1, 1) + np.roll(np.eye(d), -1, 1))
    rng = np.random.default_rng(3)
    before = np.full(d, 400)
    moved = np.stack([rng.multinomial(400, row) for row in transmat])
    pairs = pairs_of_counts(before, moved.sum(axis=0))
    (drawn,) = posterior_draws(pairs, transmat[None], n_draws=50, random_state=0)
    away = moved.sum() - np.trace(moved)
    assert split_r_hat(drawn.movers) < 1.05
    # 1,280 people are expected to move and vary by 32; the counts tell little of how many did.
    assert abs(drawn.movers.mean() - away) < 4 * 32
    # Where many people are, the normal stand-in agrees.
    normal = gaussian_flows(before.astype(float), moved.sum(axis=0).astype(float), transmat)
    np.testing.assert_allclose(drawn.mean, normal, atol=3.0)


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
    (drawn,) = posterior_draws(pairs, np.full((1, 3, 3), 1 / 3), random_state=0)
    assert set(drawn.tables.sum(axis=(2, 3)).ravel()) == {7}


def test_the_same_seed_draws_the_same_and_another_does_not():
    pairs = pairs_of_counts([[9, 4, 7]], [[6, 8, 6]])
    first, again, other = (
        next(posterior_draws(pairs, np.full((1, 3, 3), 1 / 3), random_state=seed)).tables
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("wrong", [{"n_chains": 0}, {"n_draws": 0}, {"thin": 0}, {"burn": -1}])
def test_no_draw_is_no_answer(wrong):
    pairs = pairs_of_counts([[1, 1]], [[1, 1]])
    with refused("value-out-of-range"):
        next(posterior_draws(pairs, np.full((1, 2, 2), 0.5), **wrong))


def test_r_hat_is_one_for_one_distribution_and_large_for_two():
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(4, 200))
    assert split_r_hat(alike) == pytest.approx(1.0, abs=0.02)
    assert split_r_hat(alike + np.arange(4)[:, None]) > 1.3
    assert split_r_hat(np.ones((4, 10))) == 1.0
    assert math.isnan(split_r_hat(np.ones((4, 3))))
    # By hand: halves (0, 2) and (4, 6): within 2, between 8, n = 2: sqrt((1 + 8) / 2).
    assert split_r_hat(np.array([[0.0, 2.0, 4.0, 6.0]])) == pytest.approx(math.sqrt(4.5))
