"""Gravity: against a general optimiser, what made the moves, and rows that cannot do all."""

import numpy as np
import pytest
from scipy import optimize

from agg_core.learn import gravity
from agg_core.learn.gravity import gravity_rows
from tests.agg_core.bent_line import D, decaying_shape, uneven_moves


@pytest.fixture
def shape():
    return decaying_shape()


@pytest.fixture
def moves():
    return uneven_moves()


def gravity_by_likelihood(moves, shape):
    """Rows of the most likely production-constrained gravity model, by a general optimiser."""
    away = ~np.eye(len(shape), dtype=bool)

    def chances(x):
        weight = np.where(away, np.exp(np.concatenate([[0.0], x[1:]]) + x[0] * np.log(shape)), 0.0)
        return weight / weight.sum(axis=1, keepdims=True)

    def loss(x):
        return -(moves[away] * np.log(chances(x)[away])).sum()

    best = optimize.minimize(loss, np.r_[1.0, np.zeros(len(shape) - 1)], tol=1e-10)
    stay = (np.trace(moves) + 0.5) / (moves.sum() + 1)
    return (1 - stay) * chances(best.x) + stay * np.eye(len(shape))


def test_gravity_is_the_most_likely_one(moves, shape, monkeypatch):
    expected = gravity_by_likelihood(moves, shape)
    assert np.abs(gravity_rows(moves, shape) - expected).max() < 0.02
    monkeypatch.setattr(gravity, "GRAVITY_STEPS", 300)
    np.testing.assert_allclose(gravity_rows(moves, shape), expected, atol=1e-4)


def test_gravity_gives_back_what_made_the_moves(shape, monkeypatch):
    monkeypatch.setattr(gravity, "GRAVITY_STEPS", 200)
    attraction, decay, stay = np.array([1.0, 3.0, 0.5, 2.0, 1.0]), 1.7, 0.4
    weight = shape**decay * attraction * ~np.eye(D, dtype=bool)
    true = (1 - stay) * weight / weight.sum(axis=1, keepdims=True) + stay * np.eye(D)
    people = np.array([9e5, 5e5, 7e5, 3e5, 8e5])
    np.testing.assert_allclose(gravity_rows(people[:, None] * true, shape), true, atol=1e-5)


def test_who_prefers_to_go_far_goes_anywhere_but_not_farther(shape):
    """The decay is not negative: destinations are shared out alike from every origin."""
    weight = shape**-1.0 * ~np.eye(D, dtype=bool)
    found = gravity_rows(1e4 * weight / weight.sum(axis=1, keepdims=True), shape)
    for j, k in ((0, 1), (2, 4), (3, 1)):
        origins = [i for i in range(D) if i not in (j, k)]
        np.testing.assert_allclose(np.ptp(found[origins, j] / found[origins, k]), 0, atol=1e-9)


def test_gravity_of_no_moves_is_proper(shape):
    found = gravity_rows(np.zeros((D, D)), shape)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(np.diagonal(found), 0.5)
    assert (found > 0).all()


def test_gravity_keeps_zeros_of_the_shape(moves, shape):
    shape[1, 3] = shape[4, 0] = 0
    found = gravity_rows(moves, shape)
    assert found[1, 3] == found[4, 0] == 0
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_where_nobody_can_stay_everybody_leaves(moves, shape):
    shape[2, 2] = 0
    found = gravity_rows(moves, shape)
    assert found[2, 2] == 0
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_one_cell_stays_where_it_is():
    assert gravity_rows(np.array([[7.0]]), np.ones((1, 1))).tolist() == [[1.0]]
