"""Soft counts: by hand, and against counts that are wrong by chance while nobody moves more."""

import numpy as np
import pytest

from agg_core.counts.choosing import DENSE, DRAWN, learn_flows
from agg_core.counts.rows import Strength
from agg_core.counts.softening import softened
from tests.agg_core.counts import made

A = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)


def test_a_count_moves_towards_what_was_expected():
    pairs = made.pairs([[100, 0, 0]], [[50, 50, 0]])
    rows = np.array([[[0.8, 0.1, 0.1], [0, 1, 0], [0, 0, 1]]])
    # 80, 10 and 10 are expected: roots of 50 x 80, 50 x 10 and 0 x 10, scaled to 100 people.
    roots = np.sqrt([4000.0, 500.0, 0.0])
    found = softened(pairs, rows, 0.5)
    np.testing.assert_allclose(found.after, [100 * roots / roots.sum()])
    np.testing.assert_array_equal(found.before, pairs.before)


def test_trusted_counts_stay_and_mistrusted_ones_are_what_was_expected():
    pairs = made.moving_pairs(np.random.default_rng(0), A[None], 5, 300)
    assert softened(pairs, A[None], 1.0) is pairs
    np.testing.assert_allclose(softened(pairs, A[None], 0.0).after, pairs.before @ A)


def test_each_time_of_day_expects_by_its_own_transitions():
    pairs = made.pairs([[10, 0], [10, 0]], [[5, 5], [5, 5]], slot=[0, 1])
    stay, go = np.eye(2), np.eye(2)[::-1]
    found = softened(pairs, np.stack([stay, go]), 0.0)
    np.testing.assert_allclose(found.after, [[10, 0], [0, 10]], atol=1e-6)


@pytest.mark.parametrize(
    ("learner", "people", "error", "trust"), [(DENSE, 1000, 0.02, 0.7), (DRAWN, 12, 0.15, 0.7)]
)
def test_errors_of_counting_are_not_taken_for_people_who_move(learner, people, error, trust):
    """Counts scaled by chance look like movement; soft ones make less of it, near the truth."""
    rng = np.random.default_rng(1)
    before = np.full((60, 3), people)
    after = np.stack([rng.multinomial(people, row, size=60) for row in A]).sum(axis=0)
    wrong = after * rng.lognormal(0, error, after.shape)
    wrong *= after.sum(axis=1, keepdims=True) / wrong.sum(axis=1, keepdims=True)

    def movement(counts, trust):
        pairs = made.pairs(before, counts)
        *_, last = learn_flows(pairs, SHAPE, learner, Strength(0.0), trust=trust, random_state=0)
        return 1 - np.diagonal(last.transmats[0]).mean()

    truth = movement(after, 1.0)
    hard, soft = movement(wrong, 1.0), movement(wrong, trust)
    assert hard > 1.3 * truth
    assert abs(soft - truth) < 0.5 * (hard - truth)


def test_iterations_are_numbered_on_through_the_rounds():
    pairs = made.moving_pairs(np.random.default_rng(2), A[None], 4, 300)
    states = list(learn_flows(pairs, SHAPE, DENSE, Strength(5.0), n_iter=2, trust=0.5))
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))
    assert len(states) > 2
