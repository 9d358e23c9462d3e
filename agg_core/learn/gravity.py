"""A gravity model of transitions: what all rows of moves have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.base.moves import (
    Moves,
    at_dest,
    at_origin,
    dest_sums,
    diagonal,
    entries,
    most_of_origin,
    moves_like,
    normalised_rows,
    origin_sums,
    own,
)
from agg_core.learn._gravity_kernels import balanced, balanced_near

__all__ = ["gravity_rows", "normalised"]

FloatArray = npt.NDArray[np.float64]

GRAVITY_STEPS = 12
STEEPEST = 10.0
"""Largest power that the fall of a shape is raised to."""

EVEN = 1.0
"""People of average taste who go to every state besides, so that none repels altogether."""


def gravity_rows(moves: Moves, shape: Moves) -> Moves:
    """Rows (d, d) of stay share, attraction and decay that make moves (d, d) most likely.

    p(i, i) = s,  p(i, j) proportional to a_j shape(i, j)^g,  a Poisson gravity model with
    production constraints: s in closed form from rows that can both stay and move, a by
    proportional scaling, g by Newton's method within 0 and ``STEEPEST``. From a shape that falls
    with distance g is the steepness of the distance decay; from one that says nothing g falls to 0.
    Zeros of the shape stay zero. A sparse shape and moves have one pattern.
    """
    d, chances = shape.shape[0], entries(shape)
    staying = own(shape)
    away = (chances > 0) & ~staying
    leavers_to = moves_like(shape, entries(moves) * away)
    leavers, arrivals = origin_sums(leavers_to), dest_sums(leavers_to)
    # Scaled rows: powers of chances alone would underflow.
    largest = most_of_origin(moves_like(shape, np.where(away, chances, 0.0)))
    scale = at_origin(shape, np.where(largest > 0, largest, 1.0))
    relative = np.where(away, chances / scale, 1.0)
    log_shape = np.log(np.maximum(relative, np.finfo(np.float64).tiny))
    attraction, decay = np.ones(d), 1.0
    seen = float((entries(leavers_to) * log_shape).sum())
    for _ in range(GRAVITY_STEPS):
        far = np.exp(decay * log_shape) * away
        if isinstance(shape, np.ndarray):
            found = balanced(far, log_shape, leavers, arrivals, EVEN, attraction)
        else:
            found = balanced_near(
                shape.indptr, shape.indices, far, log_shape, leavers, arrivals, EVEN, attraction
            )
        foreseen, spread = found
        if spread > 0:
            decay = min(max(decay + (seen - foreseen) / spread, 0.0), STEEPEST)
    going = np.exp(decay * log_shape) * away * at_dest(shape, attraction)
    rows = normalised_rows(moves_like(shape, going))
    n_away = origin_sums(moves_like(shape, away.astype(np.float64)))
    possible, moving = diagonal(shape) > 0, n_away > 0
    free = possible & moving
    # Half a person more stays and half a person more goes: neither is ever ruled out.
    stay = (diagonal(moves)[free].sum() + 0.5) / (origin_sums(moves)[free].sum() + 1.0)
    leave = np.where(possible, 1 - stay, 1.0) * moving
    stays = np.where(free, stay, possible)
    found_rows = entries(rows) * at_origin(shape, leave)
    return moves_like(shape, found_rows + staying * at_origin(shape, stays))


def normalised(rows: FloatArray) -> FloatArray:
    """Rows (..., d) that sum to 1, or to 0 where all of one is 0."""
    total = rows.sum(axis=-1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))
