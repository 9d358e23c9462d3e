"""How sure flows are: intervals that hold what they should, and worlds as the model has them."""

import numpy as np
import pytest

from agg_core.base.threads import one_thread
from agg_core.counts.certainty import LEVEL, RootErrors, flows_by_slot, replicates
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows
from agg_core.counts.rows import Strength
from tests.agg_core.counts import made

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.2, 0.4]])
SWAP, TURN = np.eye(3)[[1, 0, 2]], np.eye(3)[[1, 2, 0]]
SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)


def errors_of(happened, learned):
    errors = RootErrors(learned.shape)
    for world in happened:
        errors.add(world, learned)
    return errors


# -------------------------------------------------------------------------------------- intervals


def test_flows_are_people_times_chances_summed_over_the_days():
    pairs = made.pairs([[10, 0, 0], [0, 5, 5], [30, 0, 10]], np.ones((3, 3)), slot=[0, 1, 0],
                       n_slots=2)  # fmt: skip
    found = flows_by_slot(pairs, A[None])
    assert found.shape == (2, 3, 3)
    np.testing.assert_allclose(found[0], [[20, 12, 8], [0, 0, 0], [4, 2, 4]])
    np.testing.assert_allclose(found[1], [[0, 0, 0], [0.5, 3, 1.5], [2, 1, 2]])
    by_time = flows_by_slot(pairs, np.stack([A, SWAP]))
    np.testing.assert_allclose(by_time[1], [[0, 0, 0], [5, 0, 0], [0, 0, 5]])


def test_an_interval_by_hand():
    # Errors of the root are -20, -19, ... 20 for flows of which 100 were learned; the 5 % and 95 %
    # quantiles of those 41 numbers are -18 and 18.
    learned = np.full(41, 100.0**2)
    errors = errors_of([(100.0 + np.arange(-20, 21)) ** 2], learned)
    found = errors.interval(learned)
    # A flow's own error counts as one among eleven, the mean square is 140.
    apart = np.sqrt((np.arange(-20, 21) ** 2 + 10 * 140) / (11 * 140))
    np.testing.assert_allclose(found.low, (100 - 18 * apart) ** 2)
    np.testing.assert_allclose(found.high, (100 + 18 * apart) ** 2)
    assert LEVEL == 0.9


def test_errors_are_those_of_flows_of_which_as_much_was_learned():
    """The learner halves all flows; an interval around half of one holds the whole."""
    rng = np.random.default_rng(2)
    truth = rng.lognormal(5, 1, 5000)
    errors = RootErrors(truth.shape)
    for _ in range(4):
        errors.add(truth, truth / 2 * rng.lognormal(0, 0.1, truth.shape))
    found = errors.interval(truth / 2)
    held = (found.low <= truth) & (truth <= found.high)
    assert held.mean() > LEVEL
    assert (found.low > truth / 2).mean() > 0.9


def test_flows_of_like_size_share_their_errors_and_others_do_not():
    learned = np.r_[np.full(50, 100.0), np.full(50, 4.0)]
    errors = errors_of([np.r_[np.full(50, 121.0), np.full(50, 25.0)]], learned)
    found = errors.interval(learned)
    np.testing.assert_allclose(np.sqrt(found.low), np.r_[np.full(50, 11), np.full(50, 5)])
    np.testing.assert_allclose(found.low, found.high)


def test_few_flows_of_a_size_borrow_errors_from_the_sizes_beside():
    # One flow of 64 to 128, and forty of the octave below that err by 3.
    learned = np.r_[100.0, np.full(40, 49.0)]
    errors = errors_of([np.r_[100.0, np.full(40, 100.0)]], learned)
    assert errors.interval(learned).high[0] == pytest.approx(13**2)


def test_a_flow_that_errs_more_than_its_like_has_a_wider_interval():
    rng = np.random.default_rng(3)
    learned = np.full(200, 400.0)
    spread = np.r_[3.0, np.ones(199)]
    worlds = (np.maximum(20 + spread * rng.normal(size=200), 0) ** 2 for _ in range(40))
    found = errors_of(worlds, learned).interval(learned)
    width = np.sqrt(found.high) - np.sqrt(found.low)
    assert width[0] > 2 * np.median(width)


def test_flows_that_may_be_are_spread_as_errors_less_what_is_chance():
    rng = np.random.default_rng(4)
    learned = np.full(4000, 900.0)
    errors = errors_of(((30 + rng.normal(1.0, 2.0, 4000)) ** 2 for _ in range(3)), learned)
    varied = np.sqrt(errors.varied(learned, rng)) - 30
    # The mean square of errors is 1 + 4; a quarter of a person's root is chance.
    assert (varied**2).mean() == pytest.approx(5 - 0.25, rel=0.05)
    only_chance = errors_of([(30 + rng.normal(0, 0.5, 4000)) ** 2], learned)
    assert np.abs(np.sqrt(only_chance.varied(learned, rng)) - 30).mean() < 0.1


def test_no_end_is_negative_and_what_may_be_nothing_is_not_resolved():
    errors = errors_of([[0.0, 81.0], [4.0, 121.0]], np.array([0.5, 100.0]))
    found = errors.interval(np.array([0.5, 100.0]))
    assert found.low[0] == 0
    assert found.resolved.tolist() == [False, True]
    # Resolved: the half-width of the interval is less than the flow.
    assert (found.high[0] - found.low[0]) / 2 > 0.5
    assert (found.high[1] - found.low[1]) / 2 < 100


def test_one_world_of_one_flow_has_no_spread():
    found = errors_of([[36.0]], np.array([25.0])).interval(np.array([25.0]))
    assert found.low == found.high == pytest.approx(36)


def test_errors_of_one_time_of_day_are_among_those_of_all():
    rng = np.random.default_rng(0)
    learned = rng.gamma(2, 20, (2, 3, 3))
    both = errors_of(rng.poisson(learned, (5, 2, 3, 3)).astype(float), learned)
    np.testing.assert_array_equal(
        both.at(1).interval(learned[1]).high, both.interval(learned).high[1]
    )


@pytest.mark.parametrize("n_worlds", [12, 400])
def test_nine_in_ten_of_what_happens_are_in_the_interval(n_worlds):
    """Errors of roots are normal with a bias and a spread that grow with the flow's size."""
    rng = np.random.default_rng(1)
    flows = rng.lognormal(4, 1.5, 20_000)
    size = np.floor(np.log2(flows))
    bias, spread = 0.1 * size, 0.3 + 0.1 * np.abs(size)

    def world():
        return np.maximum(np.sqrt(flows) + rng.normal(bias, spread), 0) ** 2

    errors = errors_of((world() for _ in range(n_worlds)), flows)
    found, happened = errors.interval(flows), world()
    held = (found.low <= happened) & (happened <= found.high)
    for some in (flows > 5, flows > 100):
        assert held[some].mean() == pytest.approx(LEVEL, abs=0.02)


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
    ("people", "learner", "n", "widest"), [(12, DRAWN, 2, 1.5), (6000, DENSE, 5, 0.5)]
)
def test_intervals_hold_the_true_flows(people, learner, n, widest):
    """From counts alone: learned, doubted, and held against who really moved."""
    inside, width = (
        np.concatenate(part) for part in zip(*(held_true(s, people, learner) for s in range(n)),
                                             strict=True)
    )  # fmt: skip
    assert 0.8 <= inside.mean() <= 0.97
    assert np.median(width) < widest
