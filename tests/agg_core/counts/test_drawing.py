"""The learner for few people against the sum over all tables of moves that fit the counts."""

from itertools import islice

import numpy as np
import pytest

from agg_core.counts.drawing import drawn_steps
from agg_core.counts.posterior import FlowChains
from agg_core.counts.rows import Strength, tied_rows
from agg_core.learn.esteps.sampling import sampled_moves
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission
from tests.agg_core import oracles
from tests.agg_core.counts import made

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.2, 0.4]])
B = np.array([[0.2, 0.1, 0.7], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
SHAPE = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])


def exact_moves(before, after, transmat):
    """Moves (d, d) expected of a pair: all tables with its sums, each with its chance."""
    first, second = (tuple(int(n) for n in counts) for counts in (before, after))
    return oracles._tables([first], [second], transmat)[1][0, 0]


def sampled(histograms, transmats, which, seed=0):
    """Moves (H, d, d) by the sampler, a mean over copies of the groups and rounds."""
    copies, n = 200, np.shape(histograms)[2]
    people = Aggregates.from_dense(np.tile(histograms, (copies, 1, 1)))
    table = CategoricalEmission(np.eye(n)).likelihoods(people)
    moves = sampled_moves(
        np.full(n, 1 / n), transmats, np.tile(which, (copies, 1)), people, table,
        max_sweeps=200, seed=seed,
    ).moves  # fmt: skip
    return moves / copies


# --------------------------------------------------------------------------------- the E-step


def test_expected_moves_by_hand():
    # One person each in two cells changes places, or both stay: chances .8 x .6 and .2 x .4.
    moves = exact_moves([1, 1], [1, 1], np.array([[0.8, 0.2], [0.4, 0.6]]))
    stay = 0.48 / 0.56
    np.testing.assert_allclose(moves, [[stay, 1 - stay], [1 - stay, stay]])
    found = sampled([[[1, 1], [1, 1]]], np.array([[[0.8, 0.2], [0.4, 0.6]]]), [[0]])
    np.testing.assert_allclose(found[0], moves, atol=0.01)


def test_each_pair_moves_by_the_matrix_of_its_time():
    first, second = ([3, 1, 2], [2, 2, 2]), ([0, 4, 2], [1, 2, 3])
    found = sampled([first, second], np.stack([A, B]), [[1], [0]])
    np.testing.assert_allclose(found[1], exact_moves(*first, B), atol=0.03)
    np.testing.assert_allclose(found[0], exact_moves(*second, A), atol=0.03)
    # The other way round is something else, so that the test can tell.
    assert np.abs(exact_moves(*first, A) - exact_moves(*first, B)).max() > 0.3


def test_moves_by_one_matrix_are_added_up():
    first, second = ([3, 1, 2], [2, 2, 2]), ([0, 4, 2], [1, 2, 3])
    found = sampled([first, second], np.stack([A, B]), [[1], [1]])
    expected = exact_moves(*first, B) + exact_moves(*second, B)
    np.testing.assert_allclose(found[1], expected, atol=0.04)
    np.testing.assert_array_equal(found[0], 0)


def test_a_group_changes_its_matrix_from_step_to_step():
    steps = [[3, 1, 2], [2, 2, 2], [1, 1, 4]]
    found = sampled([steps], np.stack([A, B]), [[0, 1]])
    np.testing.assert_allclose(found[0], exact_moves(steps[0], steps[1], A), atol=0.03)
    np.testing.assert_allclose(found[1], exact_moves(steps[1], steps[2], B), atol=0.03)


def test_chains_expect_what_the_sum_over_all_tables_expects():
    first, second = ([3, 1, 2], [2, 2, 2]), ([0, 4, 2], [1, 2, 3])
    before, after = (np.array([first[at], second[at]], dtype=float) for at in (0, 1))
    pairs = made.pairs(before, after, slot=[1, 0])
    chains = FlowChains(pairs, np.stack([B, A]), n_chains=2, per_chain=1, random_state=0)
    chains.summed(1, burn=20)
    chains.moved_by(np.stack([A, B]))
    found = chains.summed(20_000, burn=20)
    np.testing.assert_allclose(found[1], exact_moves(*first, B), atol=0.03)
    np.testing.assert_allclose(found[0], exact_moves(*second, A), atol=0.03)


# ------------------------------------------------------------------------------------ the learner


def exact_rows(pairs, strength, n=300):
    """EM with the sum over all tables, until it stands still."""
    by_time = strength.by_time
    rows, tied = np.repeat(SHAPE[None], len(pairs.slots) if by_time else 1, axis=0), None
    for _ in range(n):
        moves = np.zeros_like(rows)
        for y, z, slot in zip(pairs.before, pairs.after, pairs.slot, strict=True):
            at = slot if by_time else 0
            moves[at] += exact_moves(y, z, rows[at])
        tied = tied_rows(moves, SHAPE, strength, tied)
        rows = tied.transmats
    return rows


def last_of(pairs, strength, n=40, random_state=0, **choices):
    steps = drawn_steps(pairs, SHAPE, strength, random_state=random_state, **choices)
    *_, last = islice(steps, n)
    return last


@pytest.mark.parametrize("strength", [Strength(10.0), Strength(10.0, 20.0), Strength(5, 20.0, 5.0)])
def test_it_learns_what_exact_em_learns(strength):
    pairs = made.moving_pairs(np.random.default_rng(1), np.stack([A, B]), 10, 4)
    expected = exact_rows(pairs, strength, n=60)
    # Forty people: a mean over seeds, as one fit of so few is far from the limit by chance.
    fits = [last_of(pairs, strength, 60, random_state=seed).transmats for seed in range(4)]
    found = np.mean(fits, axis=0)
    assert found.shape == expected.shape
    assert np.abs(expected - SHAPE).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=0.04)


def test_one_matrix_is_recovered_from_few_people_and_many_days():
    pairs = made.moving_pairs(np.random.default_rng(2), A[None], 400, 6)
    last = last_of(pairs, Strength(0.0))
    assert last.transmats.shape == (1, 3, 3)
    assert made.row_error(last.transmats[0], A) < 0.12
    assert made.row_error(SHAPE, A) > 0.25
    assert last.change < 0.02


def test_times_of_day_are_recovered():
    pairs = made.moving_pairs(np.random.default_rng(3), np.stack([A, B]), 300, 6)
    found = last_of(pairs, Strength(0.0, 10.0, 10.0)).transmats
    assert made.row_error(found[0], A) < 0.15
    assert made.row_error(found[1], B) < 0.15
    assert made.row_error(A, B) > 0.8


def test_states_are_numbered_and_proper():
    pairs = made.moving_pairs(np.random.default_rng(4), np.stack([A, B]), 5, 6)
    states = list(islice(drawn_steps(pairs, SHAPE, Strength(5.0, 30.0), random_state=1), 3))
    assert [state.iteration for state in states] == [1, 2, 3]
    for state in states:
        np.testing.assert_allclose(state.transmats.sum(axis=2), 1)
        assert 0 <= state.change <= 2


def test_the_same_seed_learns_the_same():
    pairs = made.moving_pairs(np.random.default_rng(5), A[None], 10, 6)
    once, again = (last_of(pairs, Strength(5.0), 3).transmats for _ in range(2))
    np.testing.assert_array_equal(once, again)
    *_, other = islice(drawn_steps(pairs, SHAPE, Strength(5.0), random_state=9), 3)
    assert np.abs(other.transmats - once).max() > 0


def test_a_start_is_where_it_begins():
    pairs = made.moving_pairs(np.random.default_rng(6), A[None], 200, 6)
    end = last_of(pairs, Strength(5.0), 30).transmats
    begun, cold = (last_of(pairs, Strength(5.0), 1, start=start) for start in (end, None))
    assert made.row_error(begun.transmats, end) < made.row_error(cold.transmats, end)


def test_parts_of_people_are_rounded_to_as_many_at_both_ends():
    whole = made.pairs([[2, 1, 1]] * 9, [[1, 2, 1]] * 9)
    parts = made.pairs([[2.2, 0.9, 0.9]] * 9, [[1.3, 1.6, 1.1]] * 9)
    np.testing.assert_array_equal(
        last_of(parts, Strength(5.0), 2).transmats, last_of(whole, Strength(5.0), 2).transmats
    )


def test_a_day_when_nobody_was_there_changes_nothing():
    pairs = made.moving_pairs(np.random.default_rng(7), A[None], 10, 6)
    empty = np.zeros((1, 3))
    more = made.pairs(np.vstack([pairs.before, empty]), np.vstack([pairs.after, empty]))
    np.testing.assert_allclose(
        last_of(more, Strength(5.0), 20).transmats, last_of(pairs, Strength(5.0), 20).transmats,
        atol=0.05,
    )  # fmt: skip
