"""Counts kept aside: which, how far they are from what was predicted, and the score of that."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from agg_core.counts import held_out
from agg_core.counts.held_out import gravity_prediction, held_out_days, predict, prediction_scores
from tests.agg_core import tiny
from tests.agg_core.counts import made
from tests.faults import refused

A = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
B = np.array([[0.9, 0.1, 0.0], [0.3, 0.4, 0.3], [0.0, 0.2, 0.8]])


def days(n_days, per_day):
    """Pairs of so many days; what they count does not matter."""
    n = n_days * per_day
    return made.pairs(np.ones((n, 2)), np.ones((n, 2)), day=np.repeat(np.arange(n_days), per_day))


def log_density(y, z, transmat):
    """Of a normal vector with the mean and covariance of multinomial moves, and noise besides."""
    V = held_out.DITHER * np.eye(len(y))
    for people, row in zip(y, transmat, strict=True):
        V += people * (np.diag(row) - np.outer(row, row))
    return multivariate_normal.logpdf(z, y @ transmat, V)


# ------------------------------------------------------------------------------------- which days


@pytest.mark.parametrize("n_days", [3, 4, 12])
def test_few_days_are_kept_aside_each_once_and_whole(n_days):
    pairs = days(n_days, 5)
    folds = held_out_days(pairs)
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sum(folds, axis=0), 1)
    for fold in folds:
        by_day = fold.reshape(n_days, 5)
        np.testing.assert_array_equal(by_day, by_day[:, :1].repeat(5, axis=1))


def test_one_of_four_of_many_days_is_kept_aside():
    (aside,) = held_out_days(days(14, 3))
    assert np.flatnonzero(aside.reshape(14, 3).all(axis=1)).tolist() == [2, 6, 10]
    assert aside.sum() == 9


def test_numbers_of_days_do_not_matter():
    pairs = made.pairs(np.ones((3, 2)), np.ones((3, 2)), day=[70, 71, 90])
    assert [np.flatnonzero(fold).tolist() for fold in held_out_days(pairs)] == [[0], [1], [2]]


def test_of_one_day_single_pairs_are_kept_aside():
    folds = held_out_days(days(1, 7))
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sum(folds, axis=0), 1)
    assert all(0 < fold.sum() < 7 for fold in folds)
    (aside,) = held_out_days(days(2, 20))
    assert aside.sum() == 10


def test_of_two_pairs_each_is_kept_aside():
    assert [fold.tolist() for fold in held_out_days(days(1, 2))] == [[True, False], [False, True]]


def test_one_pair_leaves_nothing_to_learn_from():
    with refused("too-few-moments") as caught:
        held_out_days(days(1, 1))
    assert tiny.is_one_sentence(str(caught.value))


# -------------------------------------------------------------------------------------- predictions


def test_score_is_the_log_density_of_a_normal_vector_but_for_a_constant():
    pairs = made.moving_pairs(np.random.default_rng(0), A[None], 6, 40)
    densities = [
        log_density(y, z, A) for y, z in zip(pairs.before, pairs.after, strict=True)
    ]  # fmt: skip
    expected = sum(densities) + 6 * 1.5 * np.log(2 * np.pi)
    assert prediction_scores(pairs, A[None]).sum() == pytest.approx(expected)


def test_score_by_time_of_day_takes_the_matrix_of_the_time():
    pairs = made.moving_pairs(np.random.default_rng(1), np.stack([A, B]), 4, 25)
    expected = 8 * 1.5 * np.log(2 * np.pi) + sum(
        log_density(y, z, (A, B)[slot])
        for y, z, slot in zip(pairs.before, pairs.after, pairs.slot, strict=True)
    )
    assert prediction_scores(pairs, np.stack([A, B])).sum() == pytest.approx(expected)
    assert predict(pairs, np.stack([A, B])).score == pytest.approx(expected / 8)


def test_score_stands_empty_cells_and_moves_without_chance():
    pairs = made.pairs([[0, 9, 0]], [[9, 0, 0]])
    swap = np.eye(3)[[1, 0, 2]]
    # Nothing is left to chance: noise of variance 1/4 in three cells, and no residual.
    assert prediction_scores(pairs, swap[None]).sum() == pytest.approx(-1.5 * np.log(0.25))


@pytest.mark.parametrize("people", [3, 300])
def test_the_truth_scores_best_on_average(people):
    rng = np.random.default_rng(2)
    pairs = made.moving_pairs(rng, A[None], 400, people)
    best = prediction_scores(pairs, A[None]).sum()
    for other in (B, np.full((3, 3), 1 / 3), 0.8 * A + 0.2 * np.eye(3), 0.8 * A + 0.2 / 3):
        assert prediction_scores(pairs, other[None]).sum() < best


def test_errors_by_hand():
    pairs = made.pairs([[10, 0], [0, 10]], [[6, 4], [2, 8]])
    half = np.full((1, 2, 2), 0.5)
    learned = predict(pairs, half)
    # Predicted are fives: 1, 1 and 3, 3 off.
    assert (learned.method, learned.mae) == ("learned", 2)
    assert learned.rmse == pytest.approx(np.sqrt(5))
    stays = predict(pairs, None, "persistence")
    assert (stays.method, stays.mae) == ("persistence", 3)
    assert stays.rmse == pytest.approx(np.sqrt(10))
    assert np.isnan(stays.score)


def test_suppressed_counts_are_no_errors():
    pairs = made.pairs([[10, 0], [0, 10]], [[6, 4], [2, 8]], hidden=[[0, 1], [0, 0]])
    stays = predict(pairs, None)
    assert stays.mae == pytest.approx((4 + 2 + 2) / 3)
    assert stays.rmse == pytest.approx(np.sqrt((16 + 4 + 4) / 3))
    hidden = made.pairs([[10, 0]], [[6, 4]], hidden=[[1, 1]])
    assert predict(hidden, None).mae == 0


# ---------------------------------------------------------------------------------------- gravity


def test_gravity_finds_the_share_of_those_who_stay():
    rng = np.random.default_rng(3)
    place = np.array([0.0, 1.0, 2.5, 3.5, 6.0, 7.0])
    shape = np.exp(-np.abs(place[:, None] - place[None]))
    shape /= shape.sum(axis=1, keepdims=True)
    attraction = np.array([3.0, 1.0, 5.0, 1.0, 2.0, 4.0])
    true = shape**1.5 * attraction * ~np.eye(6, dtype=bool)
    true = 0.7 * np.eye(6) + 0.3 * true / true.sum(axis=1, keepdims=True)
    before = np.stack([rng.multinomial(6000, rng.dirichlet(3 * np.ones(6))) for _ in range(60)])
    after = np.stack([rng.multinomial(y, true).sum(axis=0) for y in before])
    found = gravity_prediction(made.pairs(before, after), shape)
    assert found.shape == (1, 6, 6)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    assert found[0, 0, 0] == pytest.approx(0.7, abs=0.03)
    np.testing.assert_allclose(np.diagonal(found[0]), found[0, 0, 0])


def test_gravity_is_people_times_distance_decay():
    pairs = made.moving_pairs(np.random.default_rng(4), A[None], 30, 500)
    shape = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    found = gravity_prediction(pairs, shape)[0]
    people = pairs.after.mean(axis=0)
    # One decay g explains the odds of all three rows.
    odds = np.array(
        [found[0, 1] / found[0, 2], found[1, 0] / found[1, 2], found[2, 0] / found[2, 1]]
    )
    crowd = np.array([people[1] / people[2], people[0] / people[2], people[0] / people[1]])
    near = np.array([0.3 / 0.2, 0.3 / 0.2, 0.2 / 0.3])
    decay = np.log(odds / crowd) / np.log(near)
    np.testing.assert_allclose(decay, decay[0], rtol=1e-6)
    assert decay[0] >= 0


def test_gravity_of_one_cell_stays():
    pairs = made.pairs([[5], [6]], [[5], [6]])
    assert gravity_prediction(pairs, np.ones((1, 1))).tolist() == [[[1.0]]]


def test_gravity_keeps_zeros_of_the_shape():
    pairs = made.moving_pairs(np.random.default_rng(5), A[None], 10, 100)
    shape = np.array([[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0.0, 0.0, 1.0]])
    found = gravity_prediction(pairs, shape)[0]
    assert found[0, 2] == 0
    np.testing.assert_allclose(found[2], [0, 0, 1])
