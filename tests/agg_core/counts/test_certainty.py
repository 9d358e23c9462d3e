"""How sure flows from counts are: worlds as the model has them, and intervals from them."""

import numpy as np
import pytest

from agg_core.base.threads import one_thread
from agg_core.counts.certainty import flows_by_slot, replicates
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows
from agg_core.counts.rows import Strength
from agg_core.tables.certainty import RootErrors
from tests.agg_core.counts import made

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.2, 0.4]])
SWAP, TURN = np.eye(3)[[1, 0, 2]], np.eye(3)[[1, 2, 0]]
SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)


def test_flows_are_people_times_chances_summed_over_the_days():
    pairs = made.pairs([[10, 0, 0], [0, 5, 5], [30, 0, 10]], np.ones((3, 3)), slot=[0, 1, 0],
                       n_slots=2)  # fmt: skip
    found = flows_by_slot(pairs, A[None])
    assert found.shape == (2, 3, 3)
    np.testing.assert_allclose(found[0], [[20, 12, 8], [0, 0, 0], [4, 2, 4]])
    np.testing.assert_allclose(found[1], [[0, 0, 0], [0.5, 3, 1.5], [2, 1, 2]])
    by_time = flows_by_slot(pairs, np.stack([A, SWAP]))
    np.testing.assert_allclose(by_time[1], [[0, 0, 0], [5, 0, 0], [0, 0, 5]])


# ----------------------------------------------------------------------------------------- worlds


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
def test_in_every_world_the_same_people_move(learner):
    pairs = made.moving_pairs(np.random.default_rng(2), np.stack([A, SWAP]), 5, 12)
    worlds = replicates(
        pairs, SHAPE, np.stack([A, SWAP]), learner, Strength(5.0, 30.0), 2, random_state=0
    )
    for happened, learned, _ in worlds:
        assert happened.shape == learned.shape == (2, 3, 3)
        np.testing.assert_array_equal(happened.sum(axis=2), pairs.people)
        np.testing.assert_allclose(learned.sum(axis=2), pairs.people)
        np.testing.assert_array_equal(happened, np.floor(happened))


def test_people_of_a_time_move_by_its_matrix():
    pairs = made.moving_pairs(np.random.default_rng(3), np.stack([A, A]), 4, 12)
    worlds = replicates(
        pairs, SHAPE, np.stack([SWAP, TURN]), DENSE, Strength(5.0, 30.0), 1, random_state=0
    )
    happened, *_ = next(worlds)
    np.testing.assert_array_equal(happened[0], pairs.people[0][:, None] * SWAP)
    np.testing.assert_array_equal(happened[1], pairs.people[1][:, None] * TURN)


def test_one_matrix_moves_people_at_all_times():
    pairs = made.moving_pairs(np.random.default_rng(4), np.stack([A, A]), 4, 12)
    happened, *_ = next(
        replicates(pairs, SHAPE, TURN[None], DENSE, Strength(5.0), 1, random_state=0)
    )  # fmt: skip
    np.testing.assert_array_equal(happened, pairs.people[:, :, None] * TURN)


def test_worlds_are_as_the_model_says_on_average():
    pairs = made.moving_pairs(np.random.default_rng(5), A[None], 20, 40)
    worlds = replicates(pairs, SHAPE, A[None], DENSE, Strength(5.0), 40, random_state=0)
    happened = np.array([world for world, *_ in worlds])
    expected = flows_by_slot(pairs, A[None])
    noise = np.sqrt(expected * (1 - A) / 40)
    np.testing.assert_array_less(np.abs(happened.mean(axis=0) - expected), 4.5 * noise)


def test_what_is_learned_comes_from_the_world_not_from_the_real_next_counts():
    """The real people swapped cells; in the worlds they turn, and that is what is learned."""
    pairs = made.moving_pairs(np.random.default_rng(6), SWAP[None], 40, 3000)
    happened, learned, _ = next(
        replicates(pairs, SHAPE, TURN[None], DENSE, Strength(0.0), 1, random_state=0)
    )
    assert made.common_part(learned, happened) > 0.95


def test_the_same_seed_makes_the_same_worlds():
    pairs = made.moving_pairs(np.random.default_rng(7), A[None], 4, 12)
    once, again = (
        next(replicates(pairs, SHAPE, A[None], DRAWN, Strength(5.0), 1, random_state=1))
        for _ in range(2)
    )
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_as_many_worlds_as_asked_for_in_the_order_of_any_number_of_threads(learner, n):
    """More worlds do not change those before them, and one thread makes the same as several."""
    pairs = made.moving_pairs(np.random.default_rng(7), A[None], 4, 12)

    def worlds(n):
        return list(
            replicates(
                pairs, SHAPE, A[None], learner, Strength(5.0), n, expansion=3.0, random_state=1
            )
        )

    found = worlds(n)
    assert len(found) == n
    with one_thread():
        np.testing.assert_array_equal(found, worlds(n))
    if n:
        np.testing.assert_array_equal(found[0][1:], worlds(9)[0][1:])


def held_true(seed, people, learner, n_worlds=8, d=6):
    """Which flows above 5 have the people who really moved in their interval, and its widths."""
    rng = np.random.default_rng(seed)
    truth = 0.4 * np.eye(d) + 0.6 * rng.dirichlet(np.ones(d), d)
    before = np.stack([rng.multinomial(people, rng.dirichlet(np.ones(d))) for _ in range(60)])
    moves = np.stack([rng.multinomial(y, truth) for y in before])
    pairs = made.pairs(before, moves.sum(axis=1))
    shape = 0.08 + 0.52 * np.eye(d)
    *_, last = learn_flows(pairs, shape, learner, Strength(0.0), random_state=0)
    flows = flows_by_slot(pairs, last.transmats)
    errors = RootErrors(flows.shape)
    worlds = replicates(
        pairs, shape, last.transmats, learner, Strength(0.0), n_worlds, random_state=0
    )
    for happened, learned, _ in worlds:
        errors.add(happened, learned)
    found, happened = errors.interval(flows), moves.sum(axis=0)[None]
    some = happened > 5
    inside = (found.low <= happened) & (happened <= found.high)
    return inside[some], ((found.high - found.low) / np.maximum(happened, 1))[some]


@pytest.mark.parametrize(
    ("people", "learner", "n", "widest"), [(12, DRAWN, 6, 1.5), (6000, DENSE, 5, 0.5)]
)
def test_intervals_hold_the_true_flows(people, learner, n, widest):
    """From counts alone: learned, doubted, and held against who really moved."""
    inside, width = (
        np.concatenate(part) for part in zip(*(held_true(s, people, learner) for s in range(n)),
                                             strict=True)
    )  # fmt: skip
    assert 0.8 <= inside.mean() <= 0.97
    assert np.median(width) < widest
