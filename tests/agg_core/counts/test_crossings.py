"""What gates counted, against sums over all tables and against one large normal distribution."""

from dataclasses import replace
from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad, minimize_scalar

from agg_core.counts.crossings import (
    CrossingCounts,
    MeanCrossings,
    conditional_flows,
    met_by_gates,
)
from agg_core.counts.dense import Problem
from agg_core.counts.posterior import FlowChains, gaussian_flows, happened_flows
from agg_core.counts.rows import Strength
from agg_core.counts.worlds import simulated_world
from tests.agg_core.counts import made

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.2, 0.4]])
B = np.array([[0.2, 0.1, 0.7], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
SHAPE = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
PASSES = np.zeros((2, 3, 3))
PASSES[0, 0, 1] = PASSES[0, 0, 2] = 1  # out of the first cell
PASSES[1, 1, 2], PASSES[1, 2, 1] = 1, 2  # both ways, and one of them passes twice
MOVES = sparse.csr_array(PASSES.reshape(2, 9))


def gates(counts, slot=None, relative=0.1, moves=MOVES):
    counts = np.asarray(counts, dtype=float)
    slot = np.zeros(len(counts), dtype=np.int64) if slot is None else np.asarray(slot)
    return CrossingCounts.of(moves, counts, slot, np.full(counts.shape[1], relative), 2)


def with_gates(before, after, counts, slot=None):
    slot = [0] * len(before) if slot is None else slot
    n_slots = int(np.max(slot)) + 1
    pairs = made.pairs(before, after, slot=slot, n_slots=n_slots)
    return replace(pairs, crossings=gates(counts, pairs.slot))


def tables(before, after):
    """All tables of whole people with both margins."""
    rows = [[row for row in product(range(n + 1), repeat=3) if sum(row) == n] for n in before]
    every = (np.array(table) for table in product(*rows))
    return [table for table in every if (table.sum(axis=0) == after).all()]


def exact_flows(before, after, transmat, passes, counts, variance):
    """Flows expected given both counts and what gates counted: each table with its chance."""
    total, flows = 0.0, np.zeros((3, 3))
    for table in tables(before, after):
        chance = np.prod(
            [a**n / factorial(n) for a, n in zip(transmat.flat, table.flat, strict=True)]
        )
        far = (passes * table).sum(axis=(1, 2)) - counts
        chance *= np.exp(-0.5 * np.nansum(far**2 / variance))
        total, flows = total + chance, flows + chance * table
    return flows / total


@pytest.mark.parametrize("counts", [[0.0, 6.0], [4.0, 0.0], [np.nan, 5.0]])
def test_draws_expect_what_the_sum_over_all_tables_expects(counts):
    before, after = [3, 1, 2], [2, 2, 2]
    pairs = with_gates([before], [after], [counts])
    variance = pairs.crossings.variance[0]
    expected = exact_flows(before, after, A, PASSES, np.array(counts), variance)
    chains = FlowChains(pairs, A[None], n_chains=2, per_chain=1, random_state=0)
    found = chains.summed(30_000, burn=20)[0]
    np.testing.assert_allclose(found, expected, atol=0.03)
    # Without the gates it is something else, so that the test can tell.
    bare = exact_flows(before, after, A, PASSES, np.full(2, np.nan), np.ones(2))
    assert np.abs(bare - expected).max() > 0.15


def test_each_pair_has_gates_of_its_own():
    before, after = [[3, 1, 2], [2, 2, 2]], [[2, 2, 2], [3, 1, 2]]
    counts = np.array([[0.0, 6.0], [5.0, np.nan]])
    pairs = with_gates(before, after, counts, slot=[1, 0])
    chains = FlowChains(pairs, np.stack([B, A]), n_chains=1, per_chain=1, random_state=0)
    found = chains.summed(30_000, burn=20)
    for p, (slot, rows) in enumerate([(1, A), (0, B)]):
        expected = exact_flows(
            before[p], after[p], rows, PASSES, counts[p], pairs.crossings.variance[p]
        )
        np.testing.assert_allclose(found[slot], expected, atol=0.03)


def normal(before, after, transmat, counts, variance):
    """Flows given their sums, by conditioning the whole of them at once."""
    d = len(before)
    mean = (before[:, None] * transmat).ravel()
    cov = np.zeros((d * d, d * d))
    for i in range(d):
        part = slice(i * d, (i + 1) * d)
        cov[part, part] = before[i] * (np.diag(transmat[i]) - np.outer(transmat[i], transmat[i]))
    columns = np.tile(np.eye(d), (1, d))
    H = np.vstack([columns, PASSES.reshape(2, -1)])
    noise = np.diag(np.r_[np.zeros(d), variance])
    gain = cov @ H.T @ np.linalg.pinv(H @ cov @ H.T + noise, rcond=1e-10)
    return (mean + gain @ (np.r_[after, counts] - H @ mean)).reshape(d, d)


def test_normal_flows_are_those_of_the_whole_distribution():
    before, after = np.array([300.0, 200, 400]), np.array([330.0, 260, 310])
    counted = gates([[180.0, 190.0]])
    found = conditional_flows(before, after, A, counted, 0)
    expected = normal(before, after, A, counted.counts[0], counted.variance[0])
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=0), after)
    np.testing.assert_allclose(found.sum(axis=1), before)


def test_flows_that_happened_take_gates_in_where_they_counted():
    before, after = np.array([[3000.0, 2000, 4000]] * 2), np.array([[3300.0, 2600, 3100]] * 2)
    counts = np.array([[1300.0, np.nan], [np.nan, np.nan]])
    pairs = with_gates(before, after, counts, slot=[0, 1])
    pairs = replace(pairs, before=100 * before, after=100 * after)
    pairs = replace(pairs, crossings=gates(100 * counts, pairs.slot, relative=0.001))
    found = happened_flows(pairs, np.stack([A, A]))
    assert found.method == "normal"
    pulled = conditional_flows(pairs.before[0], pairs.after[0], A, pairs.crossings, 0)
    np.testing.assert_allclose(found.flows[0], pulled, rtol=1e-9)
    alone = gaussian_flows(pairs.before[0], pairs.after[0], A)
    assert (pulled * PASSES[0]).sum() < (alone * PASSES[0]).sum() - 1_000
    np.testing.assert_allclose(
        found.flows[1], gaussian_flows(pairs.before[1], pairs.after[1], A), rtol=1e-9
    )


def test_the_slope_of_mean_crossings_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    people = rng.uniform(50, 100, (4, 3))
    counts = np.array([[30.0, np.nan], [40, 50], [35, 45], [20, 60]])
    slot = np.array([0, 1, 0, 1])
    told = MeanCrossings.of(gates(counts, slot), people, slot, np.array([0, 1]))

    def value(x):
        return told.log_likelihood(x.reshape(2, 3, 3))[0]

    def slope(x):
        return told.log_likelihood(x.reshape(2, 3, 3))[1].ravel()

    start = np.stack([A, B])
    assert check_grad(value, slope, start.ravel()) < 1e-4
    # By hand: mean crossings of the first gate at the first time.
    mean = ((people[0] + people[2]) @ (A * PASSES[0])).sum()
    assert told.counts[0, 0] == 65
    variance = 2 * 32.5 + 2 * 32.5 + 2 * (0.1 * 32.5) ** 2
    np.testing.assert_allclose(told.precision[0, 0], 1 / variance)
    alone = MeanCrossings(MOVES[[0]], told.people[:, :1], told.counts[:, :1], told.precision[:, :1])
    np.testing.assert_allclose(
        alone.log_likelihood(np.stack([A, A]))[0] - alone.log_likelihood(np.stack([B, A]))[0],
        -0.5 * (65 - mean) ** 2 / variance
        + 0.5 * (65 - ((people[0] + people[2]) @ (B * PASSES[0])).sum()) ** 2 / variance,
    )


def test_the_objective_of_learning_has_the_slope_that_it_says():
    rng = np.random.default_rng(0)
    pairs = made.moving_pairs(rng, np.stack([A, B]), 4, 60)
    counts = rng.poisson(20, (pairs.n_pairs, 2)).astype(float)
    counts[0] = np.nan
    pairs = replace(pairs, crossings=gates(counts, pairs.slot))
    for strength in (Strength(10.0), Strength(10.0, 20.0)):
        problem = Problem.of(pairs, SHAPE, strength)
        x = problem.start + 0.1 * rng.standard_normal(len(problem.start))

        def part(at, number, problem=problem):
            return problem.objective(at)[number]

        far = check_grad(lambda at, of=part: of(at, 0), lambda at, of=part: of(at, 1), x)
        assert far < 2e-3 * np.linalg.norm(problem.objective(x)[1])


def test_worlds_count_who_passes():
    n = 400
    before = np.tile([300.0, 200, 400], (n, 1))
    pairs = with_gates(before, before, np.tile([240.0, np.nan], (n, 1)))
    moved, world = simulated_world(pairs, before, A[None], np.random.default_rng(0))
    passed = 300 * 0.5
    told = world.crossings
    assert np.isnan(told.counts[:, 1]).all()
    np.testing.assert_allclose(told.counts[:, 0].mean(), passed, rtol=0.02)
    # Who moves, who is counted, and the error.
    spread = 300 * 0.25 + passed + (0.1 * passed) ** 2
    np.testing.assert_allclose(told.counts[:, 0].var(), spread, rtol=0.2)
    bare, _ = simulated_world(
        replace(pairs, crossings=None), before, A[None], np.random.default_rng(0)
    )
    np.testing.assert_array_equal(bare, moved)


def test_an_error_that_counts_share_leaves_them_worth_one():
    counted = gates(np.full((4, 2), 100.0), relative=0.0)
    np.testing.assert_allclose(counted.variance, 100)
    shared = replace(counted, bias=np.array([0.5, 0.0]))
    np.testing.assert_allclose(shared.variance[:, 0], 100 + 4 * 50**2)
    np.testing.assert_allclose(shared.variance[:, 1], 100)
    then = replace(counted, bias_then=np.array([[0.0, 1.0], [0, 0]]))
    np.testing.assert_allclose(then.variance[:, 1], 100 + 4 * 100**2)


def test_pairs_take_their_gates_along():
    pairs = with_gates(np.eye(3) * 4, np.eye(3) * 4, [[1.0, 2.0], [3, 4], [5, np.nan]])
    np.testing.assert_array_equal(pairs.take([2, 0]).crossings.counts, [[5, np.nan], [1, 2]])
    assert pairs.take([True, False, False]).crossings.n_gates == 2


def test_moves_past_a_gate_get_the_factor_that_is_most_likely():
    before = np.tile([300.0, 200, 400], (4, 1))
    pairs = with_gates(before, before, np.tile([220.0, np.nan], (4, 1)))
    rough = 0.3
    pairs = replace(pairs, crossings=replace(pairs.crossings, rough=rough))
    found = met_by_gates(pairs, A[None])[0]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(found[1:], A[1:])  # nobody passes it from there

    variance = 4 * (220 + (0.1 * 220) ** 2 + 220)
    middle = np.log(880 / 600) * rough**2 / (rough**2 + variance / 600**2)

    def loss(log):
        share = 0.5 * np.exp(log) / (0.5 * np.exp(log) + 0.5)
        return (880 - 1200 * share) ** 2 / variance / 2 + ((log - middle) / rough) ** 2 / 2

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x
    np.testing.assert_allclose(np.log(found[0, 1] / found[0, 0] / 0.6), best, rtol=1e-5)


def test_gates_that_are_foretold_exactly_change_no_chances():
    pairs = with_gates([[3, 1, 2]], [[2, 2, 2]], [[1.0, 2.0]])
    np.testing.assert_array_equal(met_by_gates(pairs, A[None]), A[None])


def test_people_who_are_known_are_taken_from_what_gates_counted():
    moves = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 2, 0]], dtype=float))  # 0 to 1; 1 to 0
    counts = np.array([[5.0, 6.0], [np.nan, 1.0]])
    every = CrossingCounts.of(moves, counts, np.zeros(2, dtype=np.int64), np.zeros(2), 1)
    pair, origin, dest = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]])
    # One of each pair goes each way; whoever goes from 1 to 0 passes the second gate twice.
    left = every.without(pair, origin, dest)
    np.testing.assert_array_equal(left.counts, [[4, 4], [np.nan, 0]])
