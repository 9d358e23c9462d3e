"""Which learner, which prior, one matrix or one per hour: what is tried and what wins."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from agg_core.counts import choosing
from agg_core.counts.choosing import (
    DENSE,
    DRAWN,
    Candidate,
    Trial,
    best_trial,
    learn_flows,
    learners_for,
    strength_between,
    strengths_about,
    timed_pairs,
    try_candidates,
    type_gains,
)
from agg_core.counts.held_out import held_out_days, prediction_scores
from agg_core.counts.pairs import pairs_of
from agg_core.counts.rows import Strength
from tests.agg_core.counts import made

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.2, 0.4]])
B = np.array([[0.2, 0.1, 0.7], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
SHAPE = np.full((3, 3), 0.2) + 0.4 * np.eye(3)


def simulated(transmats, n_days, people, seed=0):
    return made.moving_pairs(np.random.default_rng(seed), np.asarray(transmats), n_days, people)


def best_of(pairs, **choices):
    trials = list(try_candidates(pairs, SHAPE, random_state=0, **choices))
    return best_trial(trials, choices.get("time", "auto")).candidate


# ----------------------------------------------------------------------------------- the learners


@pytest.mark.parametrize(
    ("crowd", "learners"),
    [(1, (DRAWN,)), (4, (DRAWN,)), (10, (DRAWN, DENSE)), (30, (DENSE,)), (5000, (DENSE,))],
)
def test_people_per_cell_decide_who_learns(crowd, learners):
    pairs = made.pairs([[crowd, crowd]], [[crowd, crowd]])
    assert learners_for(pairs) == learners


def test_too_many_people_in_all_are_not_drawn():
    few = made.pairs([[4, 4]] * 4, [[4, 4]] * 4)
    assert learners_for(few) == (DRAWN,)
    many = replace(few, before=np.tile(few.before, (100_001, 1)))
    assert learners_for(many) == (DENSE,)


@pytest.mark.parametrize(
    ("people", "learner", "bound"), [(9, DRAWN, 0.15), (3000, DENSE, 0.02)]
)  # fmt: skip
def test_one_chain_is_recovered(people, learner, bound):
    pairs = simulated([A], 200, people)
    assert learners_for(pairs) == (learner,)
    *_, last = learn_flows(pairs, SHAPE, learner, Strength(0.0), random_state=0)
    assert last.transmats.shape == (1, 3, 3)
    assert made.row_error(last.transmats[0], A) < bound


@pytest.mark.parametrize(
    ("people", "learner", "strength", "bound"),
    [(9, DRAWN, Strength(0.0, 30.0, 10.0), 0.15), (3000, DENSE, Strength(0.0, 10.0), 0.45)],
)
def test_chains_by_time_of_day_are_recovered(people, learner, strength, bound):
    """Dense counts have a day time_effects by the hour, which nears A and B, but is neither."""
    pairs = simulated([A, B], 150, people)
    *_, last = learn_flows(pairs, SHAPE, learner, strength, random_state=0)
    *_, one = learn_flows(pairs, SHAPE, learner, Strength(0.0), random_state=0)
    truth = np.stack([A, B])
    assert made.row_error(last.transmats, truth) < bound
    assert made.row_error(one.transmats, truth) > 0.4


def test_it_stops_where_it_stands_still_or_when_told():
    pairs = simulated([A], 40, 3000)
    told = list(learn_flows(pairs, SHAPE, DENSE, Strength(20.0), n_iter=2))
    assert [state.iteration for state in told] == [1, 2]
    states = list(learn_flows(pairs, SHAPE, DENSE, Strength(20.0)))
    assert len(states) < choosing.ITERATIONS[DENSE, False]
    assert states[-1].change < choosing.TOL[DENSE] <= states[-2].change


def test_people_are_drawn_no_longer_than_iterations_allow():
    pairs = simulated([A], 3, 6)
    states = list(learn_flows(pairs, SHAPE, DRAWN, Strength(0.0), random_state=0))
    assert len(states) <= choosing.ITERATIONS[DRAWN, False]
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))


# -------------------------------------------------------------------------------------- the trial


def test_scores_are_of_counts_that_were_kept_aside():
    pairs = simulated([A], 9, 300)
    for trial in try_candidates(pairs, SHAPE, random_state=0):
        score = sum(
            prediction_scores(pairs.take(aside), state.transmats).sum()
            for aside, state in zip(held_out_days(pairs), trial.states, strict=True)
        )
        assert trial.candidate.score == pytest.approx(score / pairs.n_pairs)


def test_kept_counts_are_not_learned_from():
    """Days kept aside are made up anew: what was learned without them stays as it was."""
    pairs = simulated([A], 14, 300)
    (aside,) = held_out_days(pairs)
    other = simulated([B], 14, 300, seed=5)
    mixed = replace(
        pairs, before=np.where(aside[:, None], other.before, pairs.before),
        after=np.where(aside[:, None], other.after, pairs.after),
    )  # fmt: skip
    once, again = (
        next(iter(try_candidates(each, SHAPE, priors=(20.0,), random_state=0)))
        for each in (pairs, mixed)
    )
    np.testing.assert_allclose(once.states[0].transmats, again.states[0].transmats, atol=1e-12)
    assert once.candidate.score > again.candidate.score


def test_priors_are_all_tried_those_given_or_all_but_none():
    pairs = simulated([A], 9, 300)

    def tried(priors):
        trials = try_candidates(pairs, SHAPE, priors=priors, random_state=0)
        return tuple(trial.candidate.strength.prior for trial in trials)

    assert tried(None) == choosing.PRIORS[DENSE]
    assert 0.0 in tried(None)
    assert tried((3.0,)) == (3.0,)
    assert tried(()) == choosing.PRIORS[DENSE][1:]


def test_scores_of_many_people_do_not_hang_on_the_order_of_trials():
    """Each candidate goes as far as the others from the same state, whatever was tried before."""
    pairs = simulated(A[None], 6, 3000)
    orders = [(0.0, 50.0, 1000.0), (1000.0, 0.0, 50.0)]
    found = [
        {trial.candidate.strength.prior: trial.scores for trial in
         try_candidates(pairs, SHAPE, priors=priors, time="one", random_state=0)}
        for priors in orders
    ]  # fmt: skip
    assert found[0].keys() == set(orders[0])
    for prior, scores in found[0].items():
        np.testing.assert_array_equal(scores, found[1][prior])
    assert any(found[0][0.0] != found[0][1000.0])


def test_both_learners_are_tried_in_between():
    trials = try_candidates(simulated([A], 9, 30), SHAPE, priors=(5.0,), random_state=0)
    assert [trial.candidate.learner for trial in trials] == [DRAWN, DENSE]


def test_a_prior_that_hurts_loses():
    """No two rows of the truth have a share of stays or an attraction in common."""
    wild = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.2, 0.8, 0.0]])
    assert best_of(simulated([wild], 100, 2000)).strength.prior == 0


def test_a_prior_that_helps_wins():
    """Few days of people who move as gravity says, in as many cells as days."""
    rng = np.random.default_rng(1)
    place = np.arange(8)
    shape = np.exp(-np.abs(place[:, None] - place[None]) / 1.0)
    shape /= shape.sum(axis=1, keepdims=True)
    truth = 0.5 * np.eye(8) + 0.5 * shape
    pairs = made.moving_pairs(rng, truth[None], 6, 2000)
    trials = try_candidates(pairs, shape, random_state=0)
    scores = {trial.candidate.strength.prior: trial.candidate.score for trial in trials}
    assert max(scores, key=scores.get) >= 20


TILTED = A * np.array([4.0, 1.0, 1.0]) / (A * np.array([4.0, 1.0, 1.0])).sum(axis=1)[:, None]
"""A with four times the chances of going to, and staying in, the first cell."""


@pytest.mark.parametrize(("people", "other"), [(9, B), (3000, TILTED)])
def test_hours_that_differ_get_matrices_of_their_own(people, other):
    assert best_of(simulated([A, other], 40, people)).strength.by_time


@pytest.mark.parametrize("people", [9, 3000])
def test_hours_that_do_not_differ_share_one_matrix(people):
    pairs = simulated([A, A, A, A], 12, people)
    trials = list(try_candidates(pairs, SHAPE, random_state=0))
    assert any(trial.candidate.strength.by_time for trial in trials)
    assert not best_trial(trials).candidate.strength.by_time


@pytest.mark.parametrize(("time", "expected"), [("one", {False}), ("by_time", {False, True})])
def test_times_of_day_as_they_are_asked_for(time, expected):
    trials = try_candidates(
        simulated([A, B], 6, 300), SHAPE, priors=(20.0,), time=time, random_state=0
    )
    assert {trial.candidate.strength.by_time for trial in trials} == expected


def test_one_time_of_day_is_not_tried_by_time():
    trials = try_candidates(
        simulated([A], 6, 300), SHAPE, priors=(20.0,), time="by_time", random_state=0
    )
    assert not any(trial.candidate.strength.by_time for trial in trials)


def test_too_few_people_per_time_of_day_are_tried_by_time_only_if_asked():
    # Two people on three days in three cells at each of two times: two per cell.
    pairs = simulated([A, B], 3, 2)
    for time, expected in (("auto", False), ("by_time", True)):
        trials = try_candidates(pairs, SHAPE, priors=(5.0,), time=time, random_state=0)
        assert any(trial.candidate.strength.by_time for trial in trials) == expected


@pytest.mark.parametrize("people", [6, 300])
def test_the_same_seed_tries_the_same(people):
    pairs = simulated([A], 4, people)
    once, again = (
        [trial.candidate for trial in try_candidates(pairs, SHAPE, random_state=3)]
        for _ in range(2)
    )
    assert once == again


# ------------------------------------------------------------------------------------- the winner


def tried(strength, scores, learner=DRAWN):
    scores = np.asarray(scores, dtype=float)
    return Trial(Candidate(learner, strength, float(scores.mean())), tuple, scores)


DAY, TIMES, OWN = Strength(5.0), Strength(5.0, 30.0), Strength(5.0, 30.0, 200.0)


def test_of_the_same_layers_the_best_score_wins():
    other = Strength(20.0)
    trials = [tried(DAY, [1, 2, 3]), tried(other, [1.1, 2, 3]), tried(Strength(100.0), [0, 2, 3])]
    assert best_trial(trials).candidate.strength == other


def test_a_layer_more_has_to_be_better_by_a_standard_error():
    # Gains 4, 0, 4, 0: mean 2, standard error 2 / sqrt(4) = 1; 4, -3, 4, -3: mean 0.5, error 1.75.
    day = tried(DAY, [1, 1, 1, 1])
    sure, chance = tried(TIMES, [5, 1, 5, 1]), tried(TIMES, [5, -2, 5, -2])
    assert best_trial([day, sure]) is sure
    assert chance.candidate.score > day.candidate.score
    assert best_trial([day, chance]) is day


def test_the_best_of_several_types_of_days_has_to_be_surely_better():
    # Gains of 1 each, but for a standard error of 0.8: enough for one type, too little for two,
    # which takes 1.41 of them, as the upper 0.159 / 2 of a normal number lie above that.
    day = tried(TIMES, [0.0] * 4)
    gains = 1 + 0.8 * 2 * np.array([1, -1, 1, -1])
    weekend = tried(TIMES.with_type(1), gains)
    strike = tried(TIMES.with_type(2), gains - 0.5)
    assert best_trial([day, weekend]) is weekend
    assert best_trial([day, weekend, strike]) is day
    sure = tried(TIMES.with_type(1), 1.2 + gains - 1)
    assert best_trial([day, sure, strike]) is sure
    both = tried(TIMES.with_type(1).with_type(2), gains + 9)
    assert best_trial([day, sure, strike, both]) is both


def test_what_types_of_days_gain_is_on_top_of_those_that_were_taken():
    at = Strength(20.0, hours=10.0)
    trials = [
        trial([0.0, 0.0], prior=20.0),
        trial([1.0, 1.0], prior=20.0, hours=10.0),
        trial([2.0, 4.0], prior=20.0, hours=10.0, own_types=(2,)),
        trial([1.0, 2.0], prior=20.0, hours=10.0, day_types=True),
        trial([2.5, 4.5], prior=20.0, hours=30.0, day_types=True, own_types=(2,)),
        trial([9.0, 9.0], prior=20.0, hours=10.0, day_types=True, learner=DRAWN),
    ]
    found = type_gains(trials, DENSE)
    assert found == {2: (2.0, pytest.approx(1 / np.sqrt(2))), 1: (0.5, 0.0)}
    assert type_gains(trials, DRAWN) == {}
    assert at.with_type(3).with_type(1).apart == (1, 3)
    assert at.with_type(3).n_layers == 3


def test_a_layer_is_held_against_the_last_one_taken():
    day, times = tried(DAY, [1, 1, 1, 1]), tried(TIMES, [5, -2, 5, -2])
    own = tried(OWN, [3, 3, 3, 2])
    assert best_trial([day, times, own]) is own
    assert best_trial([day, times]) is day


def test_with_times_of_day_asked_for_one_matrix_is_no_candidate():
    day, times = tried(DAY, [9, 9]), tried(TIMES, [1, 2])
    assert best_trial([day, times], "by_time") is times
    assert best_trial([day], "by_time") is day


def test_of_two_learners_the_better_one_wins():
    drawn, dense = tried(DAY, [1, 1]), tried(DAY, [1, 1.1], DENSE)
    assert best_trial([drawn, dense]) is dense


# ------------------------------------------------------------------------- between the best ones


def trial(score, *, learner=DENSE, **strength):
    """A trial with these scores of pairs kept aside."""
    scores = np.asarray(score, dtype=float)
    return Trial(Candidate(learner, Strength(**strength), float(scores.mean())), tuple, scores)


def test_a_candidate_that_always_predicts_better_is_taken_as_it_is():
    good, bad = trial([2.0] * 9, prior=100.0), trial([1.0] * 9, prior=5.0)
    assert strength_between([bad, good], good) == Strength(100.0)


def test_strengths_that_predict_alike_are_averaged_by_how_often_each_is_best():
    # Best on one pair of two: each is best in half of the draws, but for ties.
    one = trial([1.0, 0.0] * 50, prior=4.0, hours=10.0)
    other = trial([0.0, 1.0] * 50, prior=100.0, hours=10.0)
    found = strength_between([one, other], one)
    assert found.prior == pytest.approx(20, rel=0.25)
    assert found.hours == 10


def test_candidates_of_other_layers_or_learners_are_left_out():
    best = trial([1.0, 0.0] * 50, prior=4.0, hours=10.0)
    others = [
        trial([0.0, 1.0] * 50, prior=100.0),
        trial([0.0, 1.0] * 50, prior=100.0, hours=10.0, day_types=True),
        trial([0.0, 1.0] * 50, prior=100.0, hours=10.0, own=20.0),
        trial([0.0, 1.0] * 50, prior=100.0, hours=10.0, learner=DRAWN),
    ]
    assert strength_between([best, *others], best) == best.candidate.strength


def test_of_ties_that_predict_alike_the_loosest_is_taken():
    best = trial([1.0, 0.0] * 50, prior=4.0, hours=10.0)
    alike = trial([0.0, 0.9] * 50, prior=4.0, hours=3.0)
    worse = trial([0.9, -0.1] * 50, prior=4.0, hours=1.0)
    tighter = trial([0.0, 1.0] * 50, prior=4.0, hours=30.0)
    assert strength_between([best, tighter], best).hours == 10
    assert strength_between([best, worse, tighter], best).hours == 10
    assert strength_between([best, worse, tighter, alike], best).hours == 3


def test_worlds_learn_with_every_tie_that_predicts_alike_and_a_looser_one():
    best = trial([1.0, 0.0] * 50, prior=4.0, hours=10.0)
    tighter = trial([0.0, 1.0] * 50, prior=4.0, hours=30.0)
    worse = trial([0.9, -0.1] * 50, prior=4.0, hours=100.0)
    drawn = strengths_about([best, tighter, worse], best, 9)
    assert Counter(strength.hours for strength in drawn) == {3.0: 3, 10.0: 3, 30.0: 3}
    # There is no rung below the first one.
    loosest = trial([1.0, 0.0] * 50, prior=4.0, hours=1.0)
    assert {strength.hours for strength in strengths_about([loosest], loosest, 4)} == {1.0}


def test_no_prior_stays_none():
    best = trial([1.0] * 5, prior=0.0)
    assert strength_between([best, trial([0.0] * 5, prior=5.0)], best) == Strength(0.0)


def test_types_of_days_are_told_apart_where_they_differ():
    """Nobody moves on weekends: with types of days the learned flows say so."""
    rng = np.random.default_rng(0)
    days, people = 56, 2000
    stay = np.eye(3)
    table = np.empty((days * 3, 3))
    for day in range(days):
        rows = stay if day % 7 >= 5 else A
        there = rng.multinomial(people, rng.dirichlet(np.ones(3)))
        for hour in range(3):
            table[day * 3 + hour] = there
            there = rng.multinomial(there, rows).sum(axis=0)
    pairs = pairs_of(made.table(table, steps=3, runs=np.repeat(np.arange(days), 3)))
    trials = list(try_candidates(pairs, SHAPE, priors=(20.0,), random_state=0))
    best = best_trial(trials)
    assert best.candidate.strength.day_types
    timed = timed_pairs(pairs, best.candidate.strength)
    *_, last = learn_flows(timed, SHAPE, DENSE, best.candidate.strength, random_state=0)
    assert last.transmats.shape == (6, 3, 3)
    assert made.row_error(last.transmats[:2], A) < 0.1
    assert made.row_error(last.transmats[3:5], stay) < 0.05
