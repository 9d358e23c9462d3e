"""A gravity model of transitions: what all rows of moves have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.learn._gravity_kernels import balanced

__all__ = ["gravity_rows", "normalised"]

FloatArray = npt.NDArray[np.float64]

GRAVITY_STEPS = 12
STEEPEST = 10.0
"""Largest power that the fall of a shape is raised to."""

EVEN = 1.0
"""People of average taste who go to every state besides, so that none repels altogether."""


def gravity_rows(moves: FloatArray, shape: FloatArray) -> FloatArray:
    """Rows (d, d) of stay share, attraction and decay that make moves (d, d) most likely.

    p(i, i) = s,  p(i, j) proportional to a_j shape(i, j)^g,  a Poisson gravity model with
    production constraints: s in closed form from rows that can both stay and move, a by
    proportional scaling, g by Newton's method within 0 and ``STEEPEST``. From a shape that falls
    with distance g is the steepness of the distance decay; from one that says nothing g falls to 0.
    Zeros of the shape stay zero.
    """
    d = len(shape)
    away = (shape > 0) & ~np.eye(d, dtype=bool)
    leavers, arrivals = (moves * away).sum(axis=1), (moves * away).sum(axis=0)
    # Scaled rows: powers of chances alone would underflow.
    largest = np.where(away, shape, 0.0).max(axis=1, keepdims=True)
    relative = np.where(away, shape / np.where(largest > 0, largest, 1.0), 1.0)
    log_shape = np.log(np.maximum(relative, np.finfo(np.float64).tiny))
    attraction, decay = np.ones(d), 1.0
    seen = float((moves * away * log_shape).sum())
    for _ in range(GRAVITY_STEPS):
        far = np.exp(decay * log_shape) * away
        foreseen, spread = balanced(far, log_shape, leavers, arrivals, EVEN, attraction)
        if spread > 0:
            decay = min(max(decay + (seen - foreseen) / spread, 0.0), STEEPEST)
    rows = normalised(np.exp(decay * log_shape) * away * attraction)
    possible, moving = np.diagonal(shape) > 0, away.any(axis=1)
    free = possible & moving
    # Half a person more stays and half a person more goes: neither is ever ruled out.
    stay = (np.diagonal(moves)[free].sum() + 0.5) / (moves[free].sum() + 1.0)
    leave = np.where(possible, 1 - stay, 1.0) * moving
    return np.asarray(rows * leave[:, None] + np.diag(np.where(free, stay, possible)))


def normalised(rows: FloatArray) -> FloatArray:
    """Rows (..., d) that sum to 1, or to 0 where all of one is 0."""
    total = rows.sum(axis=-1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))
