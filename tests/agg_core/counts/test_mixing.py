"""Whether chains have mixed, and what draws are worth, against what is known in closed form."""

import math

import numpy as np
import pytest

from agg_core.counts import mixing
from agg_core.counts.mixing import effective_sizes, split_r_hat, split_r_hats


def autoregressive(rng, rho, n_chains, n_draws, n=1):
    """Stationary chains of which each value is rho times the one before and chance."""
    values = np.empty((n, n_chains, n_draws))
    values[..., 0] = rng.normal(size=(n, n_chains))
    for t in range(1, n_draws):
        noise = rng.normal(size=(n, n_chains))
        values[..., t] = rho * values[..., t - 1] + math.sqrt(1 - rho**2) * noise
    return values


def test_r_hat_is_one_for_one_distribution_and_large_for_two():
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(4, 200))
    assert split_r_hat(alike) == pytest.approx(1.0, abs=0.02)
    assert split_r_hat(alike + np.arange(4)[:, None]) > 1.3
    assert split_r_hat(np.ones((4, 10))) == 1.0
    assert math.isnan(split_r_hat(np.ones((4, 3))))
    # By hand: halves (0, 2) and (4, 6): within 2, between 8, n = 2: sqrt((1 + 8) / 2).
    assert split_r_hat(np.array([[0.0, 2.0, 4.0, 6.0]])) == pytest.approx(math.sqrt(4.5))


def test_r_hat_of_several_is_that_of_their_sums():
    # Halves (0, 2) and (4, 6): within 2, between 8; halves (0, 2) twice: within 2, between 0.
    apart, alike = [[0.0, 2.0, 4.0, 6.0]], [[0.0, 2.0, 0.0, 2.0]]
    both = np.array([apart, alike])
    assert split_r_hat(both) == pytest.approx(math.sqrt((2 + 8) / 4))
    np.testing.assert_allclose(split_r_hats(both), [math.sqrt(4.5), math.sqrt(0.5)])
    rng = np.random.default_rng(0)
    assert split_r_hat(rng.normal(size=(72, 4, 40))) == pytest.approx(1.0, abs=0.01)


def test_r_hat_of_each_whatever_does_not_vary(monkeypatch):
    apart = np.repeat([[0], [1]], 8, axis=1)
    values = np.array([[np.zeros((2, 8)), apart], [np.tile([0, 1], (2, 4)), np.ones((2, 8))]])
    found = split_r_hats(values)
    assert found[0].tolist() == [1.0, math.inf]
    # Halves of 0, 1, 0, 1 all alike: sqrt(3 / 4).
    np.testing.assert_allclose(found[1], [math.sqrt(0.75), 1.0])
    monkeypatch.setattr(mixing, "AT_ONCE", 1)
    np.testing.assert_array_equal(split_r_hats(values), found)
    assert np.isnan(split_r_hats(values[..., :3])).all()
    assert split_r_hats(values[:0]).shape == (0, 2)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.4])
def test_effective_sizes_of_autoregressive_chains(rho):
    """N draws of such a chain tell the mean as well as N (1 - rho) / (1 + rho) do."""
    n = 4 * 2_000
    found = effective_sizes(autoregressive(np.random.default_rng(1), rho, 4, 2_000, n=20))
    assert found.shape == (20,)
    assert found.mean() == pytest.approx(n * (1 - rho) / (1 + rho), rel=0.1)


def test_effective_sizes_tell_how_far_means_are_off():
    """The variance of means of many chains is that of a draw over the effective size."""
    values = autoregressive(np.random.default_rng(2), 0.7, 4, 160, n=600)
    found = effective_sizes(values)
    of_means = values.mean(axis=(1, 2)).var()
    assert 1 / of_means == pytest.approx(np.median(found), rel=0.15)


def test_chains_that_have_not_met_are_worth_little():
    apart = autoregressive(np.random.default_rng(3), 0.0, 4, 400) + 5 * np.arange(4)[:, None]
    assert effective_sizes(apart)[0] < 15
    # What never varies is known; of three draws nothing is, of negative ones not more than N log N.
    assert effective_sizes(np.ones((4, 40))) == 160
    assert np.isnan(effective_sizes(np.ones((4, 3))))
    turns = np.tile([0.0, 1.0], (4, 20))
    assert effective_sizes(turns) == pytest.approx(160 * math.log10(160))


def test_effective_size_by_hand():
    # The formula of Vehtari et al. (2021) written out for one chain of two halves of four draws.
    halves = np.array([[0.0, 1.0, 1.0, 0.0], [2.0, 1.0, 1.0, 2.0]])
    apart = halves - halves.mean(axis=1, keepdims=True)
    lagged = [np.mean([(a[: 4 - t] * a[t:]).sum() / 4 for a in apart]) for t in range(4)]
    within, whole = lagged[0] * 4 / 3, lagged[0] + 0.5
    rho = [1.0, *(1 - (within - lag) / whole for lag in lagged[1:])]
    first, second = rho[0] + rho[1], rho[2] + rho[3]
    times = 2 * (first + (min(first, second) if second > 0 else 0)) - 1
    assert effective_sizes(halves.reshape(1, 8)) == pytest.approx(8 / times)
