"""Many people per cell: flows learned from the mean and covariance of the next counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt

from agg_core.counting.pairs import CountPairs
from agg_core.counting.rows import EVEN, LEAST_PULL, Strength, gravity_rows
from agg_core.counting.state import FlowState, apart, begin_rows
from agg_core.inference.descent import lbfgs

__all__ = ["dense_steps", "pooled_log_likelihood"]

FloatArray = npt.NDArray[np.float64]

DITHER = 0.25
"""Variance, in people squared, of the noise that next counts are thought to have besides."""

INNER_STEPS = 25
MEMORY = 100
"""Steps that the descent remembers: matching the totals of each cell is that much steeper than the
rest."""

GRAVITY_FITS = 3
GRAVITY_EVERY = 5
"""Steps of the descent per state; the gravity rows of the prior are fitted so many times anew,
after so many states each, and stand then."""


@dataclass(frozen=True)
class _Sums:
    """Sums over the pairs of a pool: n, y (d,), y y', y z', z z' (d, d); and their time of day."""

    n: float
    y: FloatArray
    yy: FloatArray
    yz: FloatArray
    zz: FloatArray
    slot: int


def _pools(pairs: CountPairs, *, by_time: bool) -> list[_Sums]:
    sums = []
    pool = pairs.slot if by_time else np.zeros_like(pairs.slot)
    for slot in np.unique(pool):
        rows = pool == slot
        y, z = pairs.before[rows], pairs.after[rows]
        sums.append(_Sums(len(y), y.sum(axis=0), y.T @ y, y.T @ z, z.T @ z, int(slot)))
    return sums


def pooled_log_likelihood(sums: _Sums, transmat: FloatArray) -> tuple[float, FloatArray]:
    """Gaussian log-likelihood of the next counts of pooled pairs, and its slope (d, d).

    Given counts y the next ones have mean y A and covariance diag(y A) - sum_i y_i A_i A_i'
    (Gaussian CGM; Liu, Sheldon & Dietterich 2014). Pairs that are pooled share the covariance V of
    their mean y, to which `DITHER` is added. With W = (V + v I)^-1 and S the sum of squared
    residuals::

        -1/2 [ tr(W S) + n v tr W + n log det(V + v I) ]

    As V is linear in y, the expectation of S is n V at the true A whatever the y are: the slope is
    zero there on average, as that of the full likelihood. It costs the same for any number of
    pairs.
    """
    d, own = len(transmat), np.arange(len(transmat))
    moved = sums.yy @ transmat
    cross = transmat.T @ sums.yz
    squares = sums.zz - cross - cross.T + transmat.T @ moved
    weighted = sums.y[:, None] * transmat
    V = -(transmat.T @ weighted) / sums.n
    V[own, own] += weighted.sum(axis=0) / sums.n + DITHER
    W = np.linalg.inv(V)
    W = (W + W.T) / 2
    _, log_det = np.linalg.slogdet(V)
    through = W @ squares @ W
    value = -0.5 * (
        float((W * squares).sum()) + sums.n * (DITHER * float(np.trace(W)) + float(log_det))
    )
    bend = 0.5 * (through + sums.n * (DITHER * (W @ W) - W))
    slope = (sums.yz - moved) @ W
    slope += sums.y[:, None] / sums.n * (bend[own, own][None, :] - 2 * transmat @ bend)
    assert slope.shape == (d, d)
    return value, np.asarray(slope)


def dense_steps(
    pairs: CountPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    start: FloatArray | None = None,
) -> Iterator[FlowState]:
    """The most likely tied transitions by `pooled_log_likelihood`, by L-BFGS, without end.

    The layers are those of `agg_core.counting.rows.tied_rows` but for the last, rows of their own
    at a time of day, which counts of many people tell too little of. ``start`` as in
    `agg_core.counting.drawing.drawn_steps`; zeros of ``shape`` stay zero.
    """
    problem = _Problem.of(pairs, shape, strength, shape if start is None else start)
    x, before = problem.start, problem.transmats(problem.start)
    points = None
    for iteration in count(1):
        if points is None or (
            (iteration - 1) % GRAVITY_EVERY == 0 and iteration <= GRAVITY_FITS * GRAVITY_EVERY
        ):
            problem = problem.with_gravity(x)
            points = lbfgs(problem.objective, x, MEMORY)
            next(points)
        for _ in range(INNER_STEPS):
            x = next(points).x
        found = problem.transmats(x)
        yield FlowState(iteration, found, apart(before, found, pairs))
        before = found


@dataclass(frozen=True)
class _Problem:
    """Minus the log-likelihood and log prior as a function of logits, attractions and staying.

    log A_h(i, j) = theta(i, j) + a_h(j) + s_h [i = j], less what makes rows sum to one. Logits are
    scaled by the roots of the people in their row, so that all weigh alike in the descent.
    """

    pools: tuple[_Sums, ...]
    n_slots: int
    shape: FloatArray
    strength: Strength
    scale: FloatArray
    gravity: FloatArray
    first: FloatArray

    @classmethod
    def of(
        cls, pairs: CountPairs, shape: FloatArray, strength: Strength, start: FloatArray
    ) -> _Problem:
        n_slots = len(pairs.slots) if strength.by_time else 1
        people = pairs.people.sum(axis=0)
        first = begin_rows(start, 1)[0]
        return cls(
            pools=tuple(_pools(pairs, by_time=strength.by_time)),
            n_slots=n_slots,
            shape=shape,
            strength=strength,
            scale=np.sqrt(np.maximum(people, 1.0))[:, None],
            gravity=shape,
            first=np.where(shape > 0, np.maximum(first, 1e-12), 0.0),
        )

    @property
    def support(self) -> npt.NDArray[np.bool_]:
        return self.shape > 0

    @property
    def start(self) -> FloatArray:
        logits = np.log(np.where(self.support, self.first, 1.0)) * self.scale
        tilts = np.zeros(self.n_slots * (len(self.shape) + 1) if self.strength.by_time else 0)
        return np.concatenate([logits[self.support], tilts])

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logits (d, d), attractions (H, d) and staying (H,), the latter zero for one matrix."""
        d, n_logits = len(self.shape), int(self.support.sum())
        logits = np.full(self.shape.shape, -np.inf)
        logits[self.support] = x[:n_logits]
        tilts = x[n_logits:].reshape(-1, d + 1) if self.strength.by_time else np.zeros((1, d + 1))
        return logits / self.scale, tilts[:, :d], tilts[:, d]

    def transmats(self, x: FloatArray) -> FloatArray:
        return np.exp(self.log_rows(x))

    def log_rows(self, x: FloatArray) -> FloatArray:
        logits, attraction, staying = self.parts(x)
        own = np.arange(len(logits))
        rows = logits[None] + attraction[:, None, :]
        rows[:, own, own] += staying[:, None]
        return _log_normalised(rows)

    def with_gravity(self, x: FloatArray) -> _Problem:
        """The prior's gravity rows fitted to the moves that the transitions foretell."""
        transmats = self.transmats(x)
        people = np.zeros((len(transmats), len(self.shape)))
        for pool in self.pools:
            people[pool.slot if self.strength.by_time else 0] += pool.y
        moves = (people[:, :, None] * transmats).sum(axis=0)
        return replace(self, gravity=gravity_rows(moves, self.shape))

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        log_rows = self.log_rows(x)
        rows = np.exp(log_rows)
        value, slopes = 0.0, np.zeros_like(rows)
        for pool in self.pools:
            at = pool.slot if self.strength.by_time else 0
            likely, slope = pooled_log_likelihood(pool, rows[at])
            value -= likely
            slopes[at] -= slope
        by_logit = rows * (slopes - (slopes * rows).sum(axis=2, keepdims=True))
        logits, attraction, staying = self.parts(x)
        day = _log_normalised(logits)
        pull = max(self.strength.prior, LEAST_PULL) * self.gravity
        value -= float((pull * np.where(self.support, day, 0.0)).sum())
        by_day = by_logit.sum(axis=0) - pull + np.exp(day) * pull.sum(axis=1, keepdims=True)
        gradient = (by_day / self.scale)[self.support]
        if not self.strength.by_time:
            return value, gradient
        held = float(self.strength.hours or 0.0) + EVEN
        value += 0.5 * held * float((attraction**2).sum()) + 0.5 * EVEN * float((staying**2).sum())
        own = np.arange(len(day))
        tilts = np.column_stack(
            [by_logit.sum(axis=1) + held * attraction,
             by_logit[:, own, own].sum(axis=1) + EVEN * staying]
        )  # fmt: skip
        return value, np.concatenate([gradient, tilts.ravel()])


def _log_normalised(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
