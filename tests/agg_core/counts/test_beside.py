"""What is known beside counts, as learners take it: likelihoods, weights, and no weight at all."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.relay import last_of
from agg_core.counts.beside import Evidence, evidence_beside
from agg_core.counts.choosing import (
    DENSE,
    DRAWN,
    Candidate,
    Trial,
    Weighed,
    learn_flows,
    weigh_beside,
)
from agg_core.counts.dense import Problem
from agg_core.counts.old_trips import OldTrips
from agg_core.counts.panel import panel_of
from agg_core.counts.rows import Strength
from tests.agg_core.counts.test_panel import CHAIN, followed

SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)


def two_times(seed=0, n_people=300, n_moments=21, n_panel=30):
    """Pairs of two times of day in turn, with a panel of their people and an old matrix."""
    states, pairs = followed(np.random.default_rng(seed), CHAIN, n_people, n_moments)
    pairs = replace(
        pairs, slot=np.arange(pairs.n_pairs) % 2, day=np.arange(pairs.n_pairs) // 2,
        slots=("00:00", "12:00"),
    )  # fmt: skip
    trips = OldTrips.of(np.array([[[9.0, 4, 1], [2, 0, 5], [3, 3, 0]]]))
    return replace(pairs, panel=panel_of(states[:, :n_panel], pairs.moment), old_trips=trips)


def numeric_slope(value, at, step=1e-6):
    slope = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        moved = [at.copy(), at.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        slope[place] = (value(moved[0]) - value(moved[1])) / (2 * step)
    return slope


def rows_of(rng, n):
    return rng.dirichlet(np.ones(3) * 2, size=(n, 3))


@pytest.mark.parametrize(("times", "n"), [(1, 1), (1, 2), (2, 2), (2, 4), (2, 1)])
def test_the_slope_of_trips_is_that_of_finite_differences(times, n) -> None:
    rng = np.random.default_rng(times + n)
    trips = OldTrips.of(rng.uniform(1, 9, size=(times, 3, 3)))
    people, rows = rng.uniform(10, 90, size=(n, 3)), rows_of(rng, n)
    _, slope = trips.log_likelihood(rows, people)
    numeric = numeric_slope(lambda at: trips.log_likelihood(at, people)[0], rows)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-6)


def test_trips_of_a_day_are_a_mixture_of_its_times() -> None:
    trips = OldTrips.of(np.array([[[0.0, 3, 1], [1, 0, 1], [1, 1, 0]]]))
    rows = np.stack([CHAIN, np.array([[0.2, 0.2, 0.6], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])])
    people = np.array([[10.0, 5, 5], [30.0, 5, 5]])
    # Of the first cell 2 and 6 go to the second, 1 and 18 to the third.
    q = np.array([[0, 8, 19], [1, 0, 1], [3, 1, 0]])
    scaled = np.array([[0, 3, 1], [1, 0, 1], [1, 1, 0]]) * 3 / 8
    chances = q / q.sum(axis=1, keepdims=True)
    right = sum(scaled[i, j] * np.log(chances[i, j]) for i in range(3) for j in range(3) if i != j)
    assert trips.log_likelihood(rows, people)[0] == pytest.approx(right)
    leaving = people[:, :, None] * rows
    shared = trips.shared(leaving)
    np.testing.assert_allclose(shared.sum(axis=0), trips.trips[0])
    assert shared[0, 0, 1] / shared[1, 0, 1] == pytest.approx(2 / 6)


def test_trips_leave_the_share_who_go_as_it_is() -> None:
    trips = OldTrips.of(np.array([[[0.0, 3, 1], [1, 0, 1], [1, 1, 0]]]))
    beside = Evidence(None, trips, np.array([[10.0, 5, 5]]), 50.0)
    added = beside.expected(CHAIN[None], 100 * CHAIN[None])[0]
    stays = np.diagonal(added) / added.sum(axis=1)
    np.testing.assert_allclose(stays, np.diagonal(CHAIN))
    assert added[0, 1] / added[0, 2] == pytest.approx(3)


@pytest.mark.parametrize("strength", [Strength(20.0), Strength(20.0, hours=10.0)])
@pytest.mark.parametrize(("panel", "matrix"), [(1.0, 0.0), (0.0, 30.0), (0.5, 30.0)])
def test_the_slope_of_the_dense_problem_is_that_of_finite_differences(
    strength, panel, matrix
) -> None:
    problem = Problem.of(two_times(), SHAPE, replace(strength, panel=panel, matrix=matrix))
    x = problem.start + np.random.default_rng(5).normal(0, 1, len(problem.start))
    _, slope = problem.objective(x)
    numeric = numeric_slope(lambda at: problem.objective(at)[0], x, step=1e-5)
    np.testing.assert_allclose(slope, numeric, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
@pytest.mark.parametrize("hours", [None, 10.0])
def test_evidence_of_no_weight_is_no_evidence(learner, hours) -> None:
    pairs = two_times(n_moments=9)
    bare = replace(pairs, panel=None, old_trips=None)
    found = [
        last_of(
            learn_flows(each, SHAPE, learner, Strength(20.0, hours), n_iter=2, random_state=3)
        ).transmats
        for each in (pairs, bare)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
def test_a_panel_of_everybody_gives_the_rows_of_its_moves(learner) -> None:
    states, pairs = followed(np.random.default_rng(4), CHAIN, 200, 40)
    pairs = replace(pairs, panel=panel_of(states, pairs.moment))
    moves = pairs.panel.moves(pairs.slot, 1, 3)[0]
    steps = learn_flows(pairs, SHAPE, learner, Strength(0.0, panel=1.0), random_state=0)
    found = last_of(steps).transmats[0]
    np.testing.assert_allclose(found, moves / moves.sum(axis=1, keepdims=True), atol=2e-3)


@pytest.mark.parametrize("learner", [DRAWN, DENSE])
def test_much_of_a_matrix_makes_those_who_leave_go_as_it_says(learner) -> None:
    pairs = replace(two_times(), panel=None)
    told = []
    for weight in (0.0, 1e5):
        strength = Strength(20.0, matrix=weight)
        steps = learn_flows(pairs, SHAPE, learner, strength, random_state=0)
        told.append(last_of(steps).transmats[0])
    going = told[1] * (1 - np.eye(3))
    going /= going.sum(axis=1, keepdims=True)
    trips = pairs.old_trips.trips[0]
    np.testing.assert_allclose(going, trips / trips.sum(axis=1, keepdims=True), atol=0.03)
    # How many leave stays what counts say.
    np.testing.assert_allclose(np.diagonal(told[1]), np.diagonal(told[0]), atol=0.12)


def test_others_are_learned_from_without_the_panel() -> None:
    pairs = two_times()
    others, beside = evidence_beside(pairs, Strength(20.0, hours=10.0, panel=0.5))
    before, _ = pairs.panel.at_ends(pairs.n_pairs, 3)
    np.testing.assert_array_equal(others.before, pairs.before - before)
    assert beside.trips is None
    np.testing.assert_allclose(
        beside.moves, 0.5 * pairs.panel.moves(pairs.slot, 2, 3, weighed=True)
    )


def begun(pairs, learner=DENSE):
    """A trial of counts alone to go on from."""
    strength = Strength(20.0)
    bare = replace(pairs, panel=None, old_trips=None)
    state = last_of(learn_flows(bare, SHAPE, learner, strength, n_iter=3, random_state=0))
    return Trial(Candidate(learner, strength, 0.0), lambda: (state,) * 3, np.zeros(pairs.n_pairs))


def weighed(pairs, shape=SHAPE, first=None):
    """The trial that is taken, and all that was tried."""
    taken = []

    def steps():
        taken.append((yield from weigh_beside(pairs, shape, first or begun(pairs))))

    tried = list(steps())
    return taken[0], tried


def test_a_panel_counts_for_one_unless_its_people_say_otherwise() -> None:
    taken, tried = weighed(replace(two_times(), old_trips=None))
    assert taken.candidate.strength.panel == 1
    assert taken.candidate.strength.matrix == 0
    assert {each.weight for each in tried if isinstance(each, Weighed)} > {0.0, 1.0}


def test_another_weight_has_to_be_surely_better() -> None:
    rng = np.random.default_rng(0)
    zeros = Weighed(1.0, np.zeros(12))
    assert Weighed(0.3, 1 + 0.1 * rng.normal(size=12)).surely_better(zeros)
    assert not Weighed(0.3, 0.1 + rng.normal(size=12)).surely_better(zeros)
    assert not Weighed(0.3, np.ones(2)).surely_better(Weighed(1.0, np.zeros(2)))


def test_a_matrix_that_misleads_counts_for_nothing() -> None:
    wrong = OldTrips.of(np.array([[[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]]))
    pairs = replace(two_times(n_people=3000, n_moments=60), panel=None, old_trips=wrong)
    assert weighed(pairs)[0].candidate.strength.matrix == 0


def test_a_matrix_that_is_right_is_taken_where_counts_tell_little() -> None:
    rng = np.random.default_rng(8)
    d = 8
    chain = 0.7 * np.eye(d) + 0.3 * rng.dirichlet(np.full(d, 0.3), d)
    _, pairs = followed(rng, chain, 4000, 40)
    shape = np.full((d, d), 0.3 / (d - 1))
    np.fill_diagonal(shape, 0.7)
    right = OldTrips.of(chain[None] * 1e6)
    pairs = replace(pairs, old_trips=right)
    bare, strength = replace(pairs, old_trips=None), Strength(100.0)
    state = last_of(learn_flows(bare, shape, DENSE, strength, n_iter=5))
    first = Trial(
        Candidate(DENSE, strength, 0.0), lambda: (state,) * 3, np.zeros(pairs.n_pairs)
    )  # fmt: skip
    assert weighed(pairs, shape, first)[0].candidate.strength.matrix > 0
