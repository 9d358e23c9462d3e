"""Transitions by time of day, tied: what rows, places and hours have in common stands once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Strength", "gravity_rows", "tied_rows", "tilted_rows"]

FloatArray = npt.NDArray[np.float64]

LEAST_PULL = 0.05
"""People that pull each row at least: a move that was not drawn for a while must not be lost."""

GRAVITY_STEPS = 12
TILT_STEPS = 5
STEEPEST = 10.0
EVEN = 1.0
"""People of average taste who go to every cell besides, so that no cell repels altogether."""


@dataclass(frozen=True)
class Strength:
    """How strongly transitions are tied together, in people.

    Attributes
    ----------
    prior : people more in each row, who move as gravity foretells (see `gravity_rows`); 0 for none
    hours : people who pull each cell's attraction at a time of day towards that of the whole day;
        None for one transition matrix at all times
    own : people who pull a row at a time of day towards the day's tilted row; None: nothing else
    """

    prior: float
    hours: float | None = None
    own: float | None = None

    @property
    def by_time(self) -> bool:
        """Whether there is a matrix for every time of day."""
        return self.hours is not None


def tied_rows(moves: FloatArray, shape: FloatArray, strength: Strength) -> FloatArray:
    """The M-step: transitions (H, d, d), or (1, d, d) if all times share one, from expected moves.

    Three layers, each pulled towards the one before it by as many people as ``strength`` says::

        gravity        stay share, attraction of the destination, decay with distance
        one day        A(i, j), a row for every origin
        time of day    A(i, j) a_h(j) s_h^[i = j], normalised; then a row of its own

    so that what few people were seen to do borrows from what many did (empirical Bayes).
    ``moves`` (H, d, d) are expected at each time of day; ``shape`` (d, d) falls with distance.
    """
    pooled = moves.sum(axis=0)
    pulled = pooled + max(strength.prior, LEAST_PULL) * gravity_rows(pooled, shape)
    day = _normalised(pulled)
    if strength.hours is None:
        return day[None]
    tilted = tilted_rows(day, moves, strength.hours)
    if strength.own is None:
        return tilted
    return _normalised(moves + strength.own * tilted)


def gravity_rows(moves: FloatArray, shape: FloatArray) -> FloatArray:
    """Rows (d, d) of stay share, attraction and decay that make moves (d, d) most likely.

    p(i, i) = s,  p(i, j) proportional to a_j shape(i, j)^g,  a Poisson gravity model with
    production constraints: s in closed form, a by proportional scaling, g by Newton's method.
    """
    d = len(shape)
    away = (shape > 0) & ~np.eye(d, dtype=bool)
    leavers, arrivals = (moves * away).sum(axis=1), (moves * away).sum(axis=0)
    log_shape = np.log(np.where(away, shape, 1.0))
    attraction, decay = np.ones(d), 1.0
    seen = float((moves * away * log_shape).sum())
    for _ in range(GRAVITY_STEPS):
        far = np.where(away, np.exp(decay * log_shape), 0.0)
        for _ in range(2):
            rows = _normalised(far * attraction)
            attraction = attraction * (arrivals + EVEN) / (leavers @ rows + EVEN)
        rows = _normalised(far * attraction)
        mean = (rows * log_shape).sum(axis=1)
        spread = float(leavers @ ((rows * log_shape**2).sum(axis=1) - mean**2))
        if spread > 0:
            decay = float(np.clip(decay + (seen - leavers @ mean) / spread, 0.0, STEEPEST))
    rows = _normalised(np.where(away, np.exp(decay * log_shape), 0.0) * attraction)
    stays, possible = np.trace(moves), np.diagonal(shape) > 0
    stay = (stays + 0.5) / (moves.sum() + 1.0)
    leave = np.where(possible, 1 - stay, 1.0) * away.any(axis=1)
    return np.asarray(rows * leave[:, None] + np.diag(1 - leave))


def tilted_rows(day: FloatArray, moves: FloatArray, strength: float) -> FloatArray:
    """The rows of a day (d, d) tilted to each time of day: attractions and staying of its own.

    A_h(i, j) is proportional to A(i, j) a_h(j), and s_h where people stay. Without ``strength``
    the factors give each cell as many arrivals as ``moves`` (H, d, d) has at h, by proportional
    scaling; so many people more who come as on the whole day draw a_h towards 1 (the mode under a
    gamma prior).
    """
    n_slots, d, _ = moves.shape
    people, arrivals = moves.sum(axis=2), moves.sum(axis=1)
    stays, own = np.trace(moves, axis1=1, axis2=2), np.arange(d)
    attraction, staying = np.ones((n_slots, d)), np.ones(n_slots)
    held = max(strength, LEAST_PULL)

    def rows() -> FloatArray:
        tilted = day * attraction[:, None, :]
        tilted[:, own, own] *= staying[:, None]
        return _normalised(tilted)

    for _ in range(TILT_STEPS):
        foretold = np.matmul(people[:, None, :], rows())[:, 0]
        exposed = foretold / attraction
        attraction = (arrivals + held) / (exposed + held)
        kept = (people * rows()[:, own, own]).sum(axis=1)
        gone, left = people.sum(axis=1) - kept, people.sum(axis=1) - stays
        staying *= (stays + EVEN) / (kept + EVEN) * (gone + EVEN) / (left + EVEN)
    return rows()


def _normalised(rows: FloatArray) -> FloatArray:
    total = rows.sum(axis=-1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))
