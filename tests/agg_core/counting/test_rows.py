"""Tied transitions: a gravity model by likelihood, tilts by arrivals, layers by hand."""

import numpy as np
import pytest
from scipy import optimize

from agg_core.counting import rows
from agg_core.counting.rows import Strength, gravity_rows, tied_rows, tilted_rows

D = 5


@pytest.fixture
def shape():
    """Chances that fall with the distance along a bent line of five cells."""
    place = np.array([[0.0, 0.0], [1.0, 0.3], [2.2, 0.0], [3.0, 1.0], [4.5, 0.2]])
    shape = np.exp(-np.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1)))
    np.fill_diagonal(shape, 2.0)
    return shape / shape.sum(axis=1, keepdims=True)


@pytest.fixture
def moves():
    rng = np.random.default_rng(6)
    return rng.poisson(rng.gamma(0.7, 40, (D, D))).astype(float)


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
    monkeypatch.setattr(rows, "GRAVITY_STEPS", 300)
    np.testing.assert_allclose(gravity_rows(moves, shape), expected, atol=1e-4)


def test_gravity_gives_back_what_made_the_moves(shape, monkeypatch):
    monkeypatch.setattr(rows, "GRAVITY_STEPS", 200)
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


# ------------------------------------------------------------------------------------------ tilts


def moves_of(people, transmats):
    """Expected moves (H, d, d) of people (H, d)."""
    return people[:, :, None] * transmats


def test_tilts_reproduce_arrivals_and_stays(shape, monkeypatch):
    monkeypatch.setattr(rows, "TILT_STEPS", 3000)
    rng = np.random.default_rng(2)
    moves = rng.gamma(1.0, 200, (3, D, D))
    found = tilted_rows(shape, moves, strength=0.0)
    foretold = moves_of(moves.sum(axis=2), found)
    np.testing.assert_allclose(foretold.sum(axis=1), moves.sum(axis=1), rtol=1e-3)
    np.testing.assert_allclose(
        np.trace(foretold, axis1=1, axis2=2), np.trace(moves, axis1=1, axis2=2), rtol=1e-3
    )
    np.testing.assert_allclose(found.sum(axis=2), 1)


def test_tilts_differ_from_the_day_by_one_factor_per_destination_and_one_for_staying(shape):
    moves = np.random.default_rng(3).gamma(1.0, 200, (2, D, D))
    factor = tilted_rows(shape, moves, strength=0.0) / shape
    away = [(i, j) for i in range(D) for j in range(D) if i != j]
    for h in range(2):
        # Ratios of factors of two destinations are the same for each third origin.
        for j, k in ((0, 1), (2, 4)):
            origins = [i for i in range(D) if (i, j) in away and (i, k) in away]
            ratio = factor[h, origins, j] / factor[h, origins, k]
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_moves_by_the_day_are_not_tilted(shape):
    people = np.random.default_rng(4).integers(50, 500, (3, D)).astype(float)
    found = tilted_rows(shape, moves_of(people, shape), strength=10.0)
    np.testing.assert_allclose(found, np.broadcast_to(shape, (3, D, D)), rtol=1e-9)


def test_strength_holds_destinations_back_and_staying_not(shape):
    moves = np.random.default_rng(5).gamma(0.5, 40, (2, D, D))
    away = ~np.eye(D, dtype=bool)

    def shares(chances):
        return chances * away / (chances * away).sum(axis=-1, keepdims=True)

    found = [tilted_rows(shape, moves, strength) for strength in (0.0, 30.0, 300.0, 1e9)]
    apart = [np.abs(shares(tilted) - shares(shape)).sum() for tilted in found]
    assert apart[0] > apart[1] > apart[2] > apart[3]
    assert apart[3] < 1e-4
    foretold = moves_of(moves.sum(axis=2), found[3])
    stays = np.trace(moves, axis1=1, axis2=2)
    np.testing.assert_allclose(np.trace(foretold, axis1=1, axis2=2), stays, rtol=0.02)


# ----------------------------------------------------------------------------------------- layers


def test_strength_says_whether_times_of_day_differ():
    assert not Strength(5.0).by_time
    assert Strength(5.0, 0.0).by_time


def test_one_matrix_borrows_people_from_gravity(moves, shape):
    by_hour = np.stack([moves, 2 * moves])
    pooled = 3 * moves
    borrowed = pooled + 20 * gravity_rows(pooled, shape)
    expected = borrowed / borrowed.sum(axis=1, keepdims=True)
    found = tied_rows(by_hour, shape, Strength(20.0))
    assert found.shape == (1, D, D)
    np.testing.assert_allclose(found[0], expected)


def test_without_a_prior_rows_are_shares_of_the_moves(moves, shape):
    found = tied_rows(1e4 * moves[None], shape, Strength(0.0))[0]
    np.testing.assert_allclose(found, moves / moves.sum(axis=1, keepdims=True), atol=1e-5)


def test_without_a_prior_no_move_is_lost_for_good(shape):
    moves = 10 * np.eye(D)[None]
    found = tied_rows(moves, shape, Strength(0.0))[0]
    assert (found > 0).all()
    assert np.diagonal(found).min() > 0.97


def test_a_strong_prior_is_gravity(moves, shape):
    found = tied_rows(moves[None], shape, Strength(1e9))[0]
    np.testing.assert_allclose(found, gravity_rows(moves, shape), atol=1e-5)


def test_rows_of_their_own_borrow_people_from_the_tilted_day(shape):
    moves = np.random.default_rng(7).gamma(0.5, 40, (2, D, D))
    tilted = tied_rows(moves, shape, Strength(5.0, 30.0))
    borrowed = moves + 50 * tilted
    expected = borrowed / borrowed.sum(axis=2, keepdims=True)
    found = tied_rows(moves, shape, Strength(5.0, 30.0, 50.0))
    np.testing.assert_allclose(found, expected)
    assert np.abs(found - tilted).max() > 0.01


def test_the_tilted_day_is_that_of_all_times(moves, shape):
    by_hour = np.stack([moves, moves.T])
    day = tied_rows(by_hour, shape, Strength(5.0))[0]
    np.testing.assert_allclose(
        tied_rows(by_hour, shape, Strength(5.0, 30.0)), tilted_rows(day, by_hour, 30.0)
    )


def test_an_empty_row_moves_by_gravity(moves, shape):
    moves[2] = 0
    found = tied_rows(moves[None], shape, Strength(0.0))[0]
    np.testing.assert_allclose(found[2], gravity_rows(moves, shape)[2])
