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
from agg_core.inference.gaussian_pairs import DITHER

__all__ = ["dense_steps", "pooled_log_likelihood"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

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
    """Sums over the pairs of each of G pools: n (G,), y (G, d), y y', y z', z z' (G, d, d).

    ``slot`` (G,) is the time of day of each; without the first axis they are those of one pool.
    """

    n: FloatArray
    y: FloatArray
    yy: FloatArray
    yz: FloatArray
    zz: FloatArray
    slot: IntArray


def _pooled(pairs: CountPairs, *, by_time: bool) -> _Sums:
    pool = pairs.slot if by_time else np.zeros_like(pairs.slot)
    slots = np.unique(pool)
    parts = [(pairs.before[pool == slot], pairs.after[pool == slot]) for slot in slots]
    return _Sums(
        n=np.array([float(len(y)) for y, _ in parts]),
        y=np.stack([y.sum(axis=0) for y, _ in parts]),
        yy=np.stack([y.T @ y for y, _ in parts]),
        yz=np.stack([y.T @ z for y, z in parts]),
        zz=np.stack([z.T @ z for _, z in parts]),
        slot=slots.astype(np.int64),
    )


def pooled_log_likelihood(sums: _Sums, transmat: FloatArray) -> tuple[float, FloatArray]:
    """Gaussian log-likelihood of the next counts of pooled pairs, and its slope (G, d, d).

    Given counts y the next ones have mean y A and covariance diag(y A) - sum_i y_i A_i A_i'
    (Gaussian CGM; Liu, Sheldon & Dietterich 2014). Pairs that are pooled share the covariance V of
    their mean y, to which `DITHER` is added. With W = (V + v I)^-1 and S the sum of squared
    residuals::

        -1/2 [ tr(W S) + n v tr W + n log det(V + v I) ]

    As V is linear in y, the expectation of S is n V at the true A whatever the y are: the slope is
    zero there on average, as that of the full likelihood. It costs the same for any number of
    pairs. ``transmat`` is (G, d, d), one matrix per pool, or (d, d) for sums of one.
    """
    own, n = np.arange(transmat.shape[-1]), np.asarray(sums.n)[..., None, None]
    turned, y = np.swapaxes(transmat, -1, -2), sums.y[..., :, None]
    moved = sums.yy @ transmat
    cross = turned @ sums.yz
    squares = sums.zz - cross - np.swapaxes(cross, -1, -2) + turned @ moved
    weighted = y * transmat
    V = -(turned @ weighted) / n
    V[..., own, own] += weighted.sum(axis=-2) / n[..., 0] + DITHER
    W = np.linalg.inv(V)
    W = (W + np.swapaxes(W, -1, -2)) / 2
    _, log_det = np.linalg.slogdet(V)
    by_pool = (W * squares).sum(axis=(-1, -2))
    by_pool += sums.n * (DITHER * W[..., own, own].sum(axis=-1) + log_det)
    bend = 0.5 * (W @ squares @ W + n * (DITHER * (W @ W) - W))
    slope = (sums.yz - moved) @ W
    slope += y / n * (bend[..., own, own][..., None, :] - 2 * transmat @ bend)
    return -0.5 * float(np.sum(by_pool)), np.asarray(slope)


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

    pools: _Sums
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
            pools=_pooled(pairs, by_time=strength.by_time),
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
        moves = (self.pools.y[:, :, None] * transmats[self.pools.slot]).sum(axis=0)
        return replace(self, gravity=gravity_rows(moves, self.shape))

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        log_rows = self.log_rows(x)
        rows = np.exp(log_rows)
        likely, slope = pooled_log_likelihood(self.pools, rows[self.pools.slot])
        value, slopes = -likely, np.zeros_like(rows)
        slopes[self.pools.slot] = -slope
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
