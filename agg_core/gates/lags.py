"""How long trips take: in which step somebody leaves who entered in another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = ["MOST_LAGS", "lag_weights", "travel_minutes"]

FloatArray = npt.NDArray[np.float64]

MOST_LAGS = 24
"""Steps that a trip may take at most."""

ACCESS_MINUTES = 8.0
"""Minutes from a gate to the train, of waiting, and from the train to a gate."""


def travel_minutes(km: FloatArray, minutes_per_km: float) -> FloatArray:
    """Minutes (S, S) from gate to gate over so many kilometres (S, S)."""
    return np.asarray(ACCESS_MINUTES + minutes_per_km * km)


def lag_weights(minutes: FloatArray, step_minutes: float) -> FloatArray:
    """Chances (L, S, S) to leave l steps after the step of entry, where trips take ``minutes``.

    People enter evenly over a step: who travels 0.3 steps leaves in the same step with a chance of
    0.7, and in the next with 0.3. Each pair's chances add up to 1.

    Raises
    ------
    InputError
        If a trip would take more than `MOST_LAGS` steps.
    """
    steps = np.asarray(minutes, dtype=np.float64) / step_minutes
    n_lags = int(np.ceil(steps.max())) + 1 if steps.size else 1
    if n_lags > MOST_LAGS:
        raise InputError(
            f"The longest trip would take {steps.max():.0f} steps of {step_minutes:g} minutes; "
            f"counts of longer steps suit such distances ({MOST_LAGS} steps at most).",
            code="trips-too-long",
        )
    lags = np.arange(n_lags).reshape(-1, *[1] * steps.ndim)
    return np.asarray(np.clip(1 - np.abs(steps - lags), 0.0, 1.0))
