import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.gates.lags import ACCESS_MINUTES, lag_weights, travel_minutes


def test_by_hand() -> None:
    # Of people who enter evenly over an hour and travel 18 minutes, 30 % leave in the next.
    weights = lag_weights(np.array([[18.0]]), 60.0)
    assert weights[:, 0, 0] == pytest.approx([0.7, 0.3])
    assert lag_weights(np.array([[75.0]]), 60.0)[:, 0, 0] == pytest.approx([0.0, 0.75, 0.25])


def test_by_simulation() -> None:
    rng = np.random.default_rng(0)
    minutes, step = 37.0, 15.0
    arrives = (rng.uniform(0, step, 200_000) + minutes) // step
    share = np.bincount(arrives.astype(int), minlength=4) / len(arrives)
    assert lag_weights(np.array([[minutes]]), step)[:, 0, 0] == pytest.approx(share, abs=0.005)


def test_every_pair_arrives() -> None:
    minutes = np.random.default_rng(1).uniform(0, 200, (5, 5))
    assert lag_weights(minutes, 30.0).sum(axis=0) == pytest.approx(1.0)


def test_travel_time() -> None:
    assert travel_minutes(np.array([10.0]), 2.0)[0] == ACCESS_MINUTES + 20.0


def test_too_long() -> None:
    with pytest.raises(InputError) as fault:
        lag_weights(np.array([[5000.0]]), 60.0)
    assert fault.value.code == "trips-too-long"
