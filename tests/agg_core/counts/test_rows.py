"""Tied transitions: a gravity model by likelihood, scaled_effects by arrivals, layers by hand."""

import numpy as np
import pytest
from scipy import optimize

from agg_core.counts import rows
from agg_core.counts.rows import Strength, tied_rows
from agg_core.learn.gravity import gravity_rows
from tests.agg_core.bent_line import D, decaying_shape, uneven_moves


@pytest.fixture
def shape():
    return decaying_shape()


@pytest.fixture
def moves():
    return uneven_moves()


# ------------------------------------------------------------------------------ times of day


def moves_of(people, transmats):
    """Expected moves (H, d, d) of people (H, d)."""
    return people[:, :, None] * transmats


def settled(moves, shape, strength, rounds=400):
    """The layers when M-steps on the same moves change nothing any more."""
    tied = None
    for _ in range(rounds):
        tied = tied_rows(moves, shape, strength, tied)
    return tied


def day_and_times(rng, n_slots=3):
    """Transitions of which leaving and destinations change by factors of a time of day."""
    away = ~np.eye(D, dtype=bool)
    going = rng.dirichlet(np.ones(D), D) * away
    odds, pace = rng.gamma(3, 0.2, D), rng.gamma(3, 0.3, n_slots)
    attraction = rng.gamma(3, 0.3, (n_slots, D))
    going = going * attraction[:, None, :]
    going /= going.sum(axis=2, keepdims=True)
    share = odds * pace[:, None] / (1 + odds * pace[:, None])
    return going * share[:, :, None] + (1 - share)[:, :, None] * np.eye(D)


def likeliest_layers(moves, gravity, pull, held):
    """Destinations (H, d, d) and odds (H, d) that maximise the penalised likelihood, by BFGS."""
    n_slots, d, _ = moves.shape
    away = ~np.eye(d, dtype=bool)

    def layers(x):
        logits, scaled_effects, odds, pace = np.split(x, np.cumsum([d * d, n_slots * d, d]))
        scaled_effects = scaled_effects.reshape(n_slots, d)
        going = np.where(away, np.exp(logits.reshape(d, d)), 0.0)
        effects = going * np.exp(scaled_effects)[:, None, :]
        normalised = [part / part.sum(axis=-1, keepdims=True) for part in (going, effects)]
        return *normalised, scaled_effects, odds, odds + pace[:, None]

    def loss(x):
        going, effects, scaled_effects, odds, odds_then = layers(x)
        leavers = (moves * away).sum(axis=2)
        stays = np.trace(gravity) / d
        value = (moves * away * np.log(np.where(away, effects, 1.0))).sum()
        value += pull * (gravity * away * np.log(np.where(away, going, 1.0))).sum()
        value += held * (scaled_effects - np.exp(scaled_effects)).sum()
        value += (leavers * odds_then - moves.sum(axis=2) * np.log1p(np.exp(odds_then))).sum()
        value += pull * ((1 - stays) * odds - np.log1p(np.exp(odds))).sum()
        return -value + 1e-9 * (x**2).sum()

    x = optimize.minimize(loss, np.zeros(d * d + n_slots * d + d + n_slots), tol=1e-7).x
    _, effects, _, _, odds_then = layers(x)
    return effects, np.exp(odds_then)


def test_layers_settle_where_they_are_most_likely(shape, monkeypatch):
    gravity = np.where(np.eye(D, dtype=bool), 0.6, 0.1)
    monkeypatch.setattr(rows, "gravity_rows", lambda *_: gravity)
    moves = np.random.default_rng(2).gamma(1.0, 20, (2, D, D))
    tied = settled(moves, shape, Strength(15.0, 8.0))
    going, odds = likeliest_layers(moves, gravity, 15.0, 8.0)
    found = tied.going * tied.attraction[:, None, :]
    np.testing.assert_allclose(found / found.sum(axis=2, keepdims=True), going, atol=2e-4)
    np.testing.assert_allclose(tied.leaving * tied.pace[:, None], odds, rtol=2e-3)


def test_times_of_day_are_recovered_from_many_moves(shape):
    rng = np.random.default_rng(3)
    truth = day_and_times(rng)
    moves = moves_of(rng.integers(500, 5000, (3, D)) * 100.0, truth)
    tied = settled(moves, shape, Strength(0.0, 0.0))
    np.testing.assert_allclose(tied.transmats, truth, atol=1e-3)


def test_the_first_step_is_near_the_last(shape):
    rng = np.random.default_rng(3)
    moves = moves_of(rng.integers(500, 5000, (3, D)) * 1.0, day_and_times(rng))
    first = tied_rows(moves, shape, Strength(20.0, 10.0)).transmats
    last = settled(moves, shape, Strength(20.0, 10.0)).transmats
    assert np.abs(first - last).max() < 0.02


def test_a_cell_that_draws_people_does_not_hold_its_own(shape):
    """Where only destinations differ by time, the shares who leave are alike at all times."""
    going = np.full((D, D), 0.25) * ~np.eye(D, dtype=bool) * np.array([5.0, 1, 1, 1, 1])
    drawn = going / going.sum(axis=1, keepdims=True)
    even = np.full((D, D), 0.25) * ~np.eye(D, dtype=bool)
    truth = 0.8 * np.eye(D) + 0.2 * np.stack([drawn, even])
    found = settled(moves_of(np.full((2, D), 4e4), truth), shape, Strength(0.0, 1.0)).transmats
    np.testing.assert_allclose(found[:, range(D), range(D)], 0.8, atol=1e-3)
    np.testing.assert_allclose(found, truth, atol=2e-3)


def test_strength_holds_times_of_day_together(shape):
    moves = np.random.default_rng(5).gamma(0.5, 40, (2, D, D))
    apart = []
    for hours in (0.0, 30.0, 300.0, 1e9):
        tied = settled(moves, shape, Strength(5.0, hours), 100)
        going = tied.transmats * ~np.eye(D, dtype=bool)
        going /= going.sum(axis=2, keepdims=True)
        apart.append(np.abs(going[0] - going[1]).sum())
    assert apart[0] > apart[1] > apart[2] > apart[3]
    assert apart[3] < 1e-4


def test_all_leave_more_at_a_busy_time_however_tightly_held(shape):
    moves = moves_of(np.full((2, D), 1e4), np.stack([shape, 0.5 * (shape + np.eye(D))]))
    found = settled(moves, shape, Strength(0.0, 1e9), 100).transmats
    stays = np.trace(found * moves.sum(axis=2)[:, :, None], axis1=1, axis2=2)
    np.testing.assert_allclose(stays, np.trace(moves, axis1=1, axis2=2), rtol=1e-3)


def test_shares_who_leave_borrow_people_from_the_odds_of_the_time(shape):
    moves = np.random.default_rng(6).gamma(0.5, 40, (2, D, D))
    tied = tied_rows(moves, shape, Strength(5.0, 30.0))
    people = moves.sum(axis=2)
    leavers = people - moves[:, range(D), range(D)]
    odds = tied.leaving * tied.pace[:, None]
    expected = (leavers + 30 * odds / (1 + odds)) / (people + 30)
    np.testing.assert_allclose(1 - tied.transmats[:, range(D), range(D)], expected)


def test_nobody_stays_where_nobody_can(shape):
    shape[2, 2] = 0
    moves = np.random.default_rng(7).gamma(0.5, 40, (2, D, D))
    moves[:, 2, 2] = 0
    found = tied_rows(moves, shape, Strength(5.0, 30.0)).transmats
    np.testing.assert_allclose(found[:, 2, 2], 0, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=2), 1)


# ----------------------------------------------------------------------------------------- layers


def test_strength_says_whether_times_of_day_differ():
    assert not Strength(5.0).by_time
    assert Strength(5.0, 0.0).by_time


def test_one_matrix_borrows_people_from_gravity(moves, shape):
    by_hour = np.stack([moves, 2 * moves])
    pooled = 3 * moves
    borrowed = pooled + 20 * gravity_rows(pooled, shape)
    expected = borrowed / borrowed.sum(axis=1, keepdims=True)
    found = tied_rows(by_hour, shape, Strength(20.0)).transmats
    assert found.shape == (1, D, D)
    np.testing.assert_allclose(found[0], expected)


def test_without_a_prior_rows_are_shares_of_the_moves(moves, shape):
    found = tied_rows(1e4 * moves[None], shape, Strength(0.0)).transmats[0]
    np.testing.assert_allclose(found, moves / moves.sum(axis=1, keepdims=True), atol=1e-5)


def test_without_a_prior_no_move_is_lost_for_good(shape):
    moves = 10 * np.eye(D)[None]
    found = tied_rows(moves, shape, Strength(0.0)).transmats[0]
    assert (found > 0).all()
    assert np.diagonal(found).min() > 0.97


def test_a_strong_prior_is_gravity(moves, shape):
    found = tied_rows(moves[None], shape, Strength(1e9)).transmats[0]
    np.testing.assert_allclose(found, gravity_rows(moves, shape), atol=1e-5)


def test_rows_of_their_own_borrow_people_from_the_tilted_day(shape):
    moves = np.random.default_rng(7).gamma(0.5, 40, (2, D, D))
    effects = tied_rows(moves, shape, Strength(5.0, 30.0)).transmats
    borrowed = moves + 50 * effects
    expected = borrowed / borrowed.sum(axis=2, keepdims=True)
    found = tied_rows(moves, shape, Strength(5.0, 30.0, 50.0)).transmats
    np.testing.assert_allclose(found, expected)
    assert np.abs(found - effects).max() > 0.01


def test_an_empty_row_moves_by_gravity(moves, shape):
    moves[2] = 0
    found = tied_rows(moves[None], shape, Strength(0.0)).transmats[0]
    np.testing.assert_allclose(found[2], gravity_rows(moves, shape)[2])
