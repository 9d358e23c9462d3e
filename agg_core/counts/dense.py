"""Many people per cell: flows learned from the mean and covariance of the next counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from agg_core.base.checkpoints import Course
from agg_core.counts._pair_kernels import moves_of_layers, slopes_of_layers
from agg_core.counts.beside import Evidence, evidence_beside
from agg_core.counts.blocks import Pools, pools_log_likelihood, pools_of
from agg_core.counts.crossings import MeanCrossings
from agg_core.counts.inverse import inverse_and_log_det
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import EVEN, LEAST_PULL, Strength
from agg_core.counts.state import FlowState, apart
from agg_core.learn.esteps.descent import Steps, lbfgs
from agg_core.learn.esteps.gaussian_pairs import DITHER
from agg_core.learn.gravity import normalised

__all__ = ["MEMORY", "Problem", "Scaled", "Sums", "dense_steps", "pooled", "pooled_log_likelihood"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

INNER_STEPS = 25
MEMORY = 30
"""Steps that the descent remembers: with more it comes hardly nearer to its end in as many steps,
and what they cost grows with them."""

LEAVERS, ODDS = 0.2, 0.16
"""Of a person of the prior: the share who leaves, and what that tells of the odds of leaving,
p (1 - p)."""


@dataclass(frozen=True)
class Sums:
    """Sums over the pairs of each of G pools: n (G,), y (G, d), y y', y z', z z' (G, d, d).

    ``slot`` (G,) is the time of day of each; without the first axis they are those of one pool.
    """

    n: FloatArray
    y: FloatArray
    yy: FloatArray
    yz: FloatArray
    zz: FloatArray
    slot: IntArray


def pooled(pairs: CountPairs, *, by_time: bool) -> Sums:
    """Sums over all pairs, or over those of each time of day."""
    pool = pairs.slot if by_time else np.zeros_like(pairs.slot)
    slots = np.unique(pool)
    parts = [(pairs.before[pool == slot], pairs.after[pool == slot]) for slot in slots]
    return Sums(
        n=np.array([float(len(y)) for y, _ in parts]),
        y=np.stack([y.sum(axis=0) for y, _ in parts]),
        yy=np.stack([y.T @ y for y, _ in parts]),
        yz=np.stack([y.T @ z for y, z in parts]),
        zz=np.stack([z.T @ z for _, z in parts]),
        slot=slots.astype(np.int64),
    )


def pooled_log_likelihood(sums: Sums, transmat: FloatArray) -> tuple[float, FloatArray]:
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
    W, log_det = inverse_and_log_det(V)
    by_pool = (W * squares).sum(axis=(-1, -2))
    by_pool += sums.n * (DITHER * W[..., own, own].sum(axis=-1) + log_det)
    bend = 0.5 * (W @ squares @ W + n * (DITHER * (W @ np.swapaxes(W, -1, -2)) - W))
    slope = (sums.yz - moved) @ W
    slope += y / n * (bend[..., own, own][..., None, :] - 2 * transmat @ bend)
    return -0.5 * float(np.sum(by_pool)), np.asarray(slope)


def dense_steps(
    pairs: CountPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    start: FloatArray | None = None,
    course: Course | None = None,
) -> Iterator[FlowState]:
    """The most likely tied transitions by `pooled_log_likelihood`, by L-BFGS, without end.

    The layers are those of `agg_core.counts.rows.tied_rows` but for the last, rows of their own
    at a time of day, which counts of many people tell too little of. ``shape`` (d, d) falls with
    distance; its zeros stay zero. ``start`` are logits of a fit that this one goes on from; what a
    ``course`` stood at is gone on from as if it had not stopped.
    """
    problem = Problem.of(pairs, shape, strength)
    done, reached, steps = 0, None, Steps(MEMORY)
    if course is not None and course.stood is not None:
        done, reached, kept = course.stood
        steps = Steps.of(kept)
    points = lbfgs(problem.objective, problem.begun(start), steps, reached=reached)
    point = next(points)
    before = problem.transmats(point.x)

    def stands() -> tuple[Any, ...]:
        return iteration, point, steps.kept

    for iteration in count(done + 1):
        for _ in range(INNER_STEPS):
            point = next(points)
        found = problem.transmats(point.x)
        if course is not None:
            course.note(stands)
        yield FlowState(iteration, found, apart(before, found, pairs), problem.unscaled(point.x))
        before = found


def mean_crossings(
    pairs: CountPairs, people: FloatArray, slots: IntArray, *, by_time: bool
) -> MeanCrossings | None:
    """What gates counted at each of ``slots``, of ``people`` (P, d) before each pair."""
    if pairs.crossings is None:
        return None
    slot = pairs.slot if by_time else np.zeros_like(pairs.slot)
    return MeanCrossings.of(pairs.crossings, people, slot, slots)


@dataclass(frozen=True)
class _Parts:
    """Logits of the layers: of gravity, what rows of the day add, and what times of day add.

    ``gravity`` and ``rows`` (d, d) are of destinations; ``leave`` is of leaving anywhere, to which
    ``leaving`` (d,) adds, infinite where nobody may stay and minus that where nobody may leave.
    ``attraction`` (H, d), ``pace`` (H,) and ``leaving_then`` (H, d) are zero for one matrix.
    """

    gravity: FloatArray
    rows: FloatArray
    leave: float
    leaving: FloatArray
    attraction: FloatArray
    pace: FloatArray
    leaving_then: FloatArray


class Scaled:
    """How far a step of the descent reaches in each layer, by the people who tell of it.

    ``people`` (H, d) are at each time of day, or of all, ``scale`` (d,) roots of those in each row.
    """

    people: FloatArray
    strength: Strength
    scale: FloatArray

    @property
    def n_slots(self) -> int:
        """Times of day that have transitions of their own, or one."""
        return len(self.people)

    @cached_property
    def whole(self) -> float:
        """Scale of what all rows share."""
        return float(np.sqrt((self.scale**2).sum()))

    @property
    def held(self) -> float:
        """People who hold what a time of day changes to nothing."""
        return float(self.strength.hours or 0.0) + EVEN

    @cached_property
    def effect_scale(self) -> FloatArray:
        """Scale of attractions, of leaving and of the pace of each time of day, (H, 2 d + 1)."""
        people = self.people
        tells = [LEAVERS * people, ODDS * people, ODDS * people.sum(axis=1, keepdims=True)]
        return np.sqrt(np.column_stack(tells) + self.held)


@dataclass(frozen=True)
class Problem(Scaled):
    """Minus the log-likelihood and log prior as a function of logits of the layers.

    For destinations log D_h(i, j) = g log shape(i, j) + b(j) + r(i, j) + a_h(j), less what makes
    them sum to one, and for the share who leave logit L_h(i) = l + l(i) + c_h + l_h(i). What rows
    add to gravity costs as many people as ``prior`` says (times the Kullback-Leibler divergence of
    gravity from the rows of the day), and gravity is learned together with them: alternating the
    two stands still far from the best. Logits of rows are scaled by the roots of the people in
    them, so that all weigh alike in the descent; ``people`` (H, d) and ``scale`` (d,) keep that as
    it is where the sums change from turn to turn.
    """

    pools: Sums | Pools
    people: FloatArray
    shape: FloatArray
    strength: Strength
    scale: FloatArray
    gates: MeanCrossings | None = None
    beside: Evidence | None = None

    @classmethod
    def of(cls, pairs: CountPairs, shape: FloatArray, strength: Strength) -> Problem:
        """The problem of pairs whose counts are exact, or are taken for that."""
        pairs, beside = evidence_beside(pairs, strength)
        n_slots = len(pairs.slots) if strength.by_time else 1
        pools: Sums | Pools = pools_of(pairs, by_time=strength.by_time)
        # Sums of squares cost the same for any number of pairs.
        if pools.n.max() > pairs.n_states:
            pools = pooled(pairs, by_time=strength.by_time)
        people = np.zeros((n_slots, pairs.n_states))
        people[pools.slot] = pools.y
        return cls(
            pools=pools,
            people=people,
            shape=shape,
            strength=strength,
            scale=np.sqrt(np.maximum(pairs.people.sum(axis=0), 1.0)),
            gates=mean_crossings(pairs, pairs.before, pools.slot, by_time=strength.by_time),
            beside=beside,
        )

    @cached_property
    def away(self) -> npt.NDArray[np.bool_]:
        """Moves from a cell to another that may be."""
        return np.asarray((self.shape > 0) & ~np.eye(len(self.shape), dtype=bool))

    @cached_property
    def free(self) -> npt.NDArray[np.bool_]:
        """Cells whose people may both stay and leave."""
        return np.asarray((np.diagonal(self.shape) > 0) & self.away.any(axis=1))

    @cached_property
    def log_shape(self) -> FloatArray:
        """Logarithms of the chances of moves to begin with, 0 where there are none."""
        return np.log(np.where(self.away, self.shape, 1.0))

    @cached_property
    def widths(self) -> list[int]:
        """Ends of parts of a point: decay, attractions, leave, rows, leaving; then of times."""
        d = len(self.shape)
        return [int(n) for n in np.cumsum([1, d, 1, self.away.sum(), self.free.sum()])]

    @property
    def start(self) -> FloatArray:
        """Logits to begin with: gravity by the shape alone, and nothing added to it."""
        stays = np.diagonal(self.shape)[self.free]
        stay = float(stays.mean()) if len(stays) else 0.5
        n_effects = self.n_slots * (2 * len(self.shape) + 1) if self.strength.by_time else 0
        x = np.zeros(self.widths[-1] + n_effects)
        x[0], x[self.widths[1]] = self.whole, self.whole * np.log((1 - stay) / stay)
        return x

    @cached_property
    def scales(self) -> FloatArray:
        """What each logit is multiplied by for the descent."""
        d, by_row = len(self.shape), np.broadcast_to(self.scale[:, None], self.shape.shape)
        parts = [np.full(1, self.whole), self.scale, np.full(1, self.whole)]
        parts += [by_row[self.away], self.scale[self.free]]
        if self.strength.by_time:
            parts.append(self.effect_scale.reshape(self.n_slots * (2 * d + 1)))
        return np.concatenate(parts)

    def unscaled(self, x: FloatArray) -> FloatArray:
        """Logits of a point of the descent, which mean the same in every problem."""
        return x / self.scales

    def begun(self, logits: FloatArray | None) -> FloatArray:
        """The point of the descent for logits of another problem; `start` without.

        What that one had no layer for is 0 here; types of days all begin with what it had for all.
        """
        if logits is None:
            return self.start
        shared, effects = logits[: self.widths[-1]], np.zeros((0, 2 * len(self.shape) + 1))
        if self.strength.by_time:
            effects = logits[self.widths[-1] :].reshape(-1, effects.shape[1])
            times = self.n_slots // max(len(effects), 1)
            known = 0 < len(effects) <= self.n_slots
            effects = np.tile(effects, (times, 1)) if known else np.zeros(self.effect_scale.shape)
        return np.concatenate([shared, effects.ravel()]) * self.scales

    def parts(self, x: FloatArray) -> _Parts:
        """What logits say of each layer."""
        d, away, free, whole = len(self.shape), self.away, self.free, self.whole
        decay, attraction, leave, rows, leaving, scaled_effects = np.split(x, self.widths)
        gravity, added = np.full((d, d), -np.inf), np.zeros((d, d))
        by_distance = decay[0] / whole * self.log_shape + attraction / self.scale
        gravity[away] = by_distance[away]
        added[away] = rows
        apart = np.where(away.any(axis=1), np.inf, -np.inf)
        apart[free] = leaving / self.scale[free]
        effects = np.zeros((1, 2 * d + 1))
        if self.strength.by_time:
            effects = scaled_effects.reshape(-1, 2 * d + 1) / self.effect_scale
        return _Parts(
            gravity, added / self.scale[:, None], float(leave[0]) / whole, apart,
            effects[:, :d], effects[:, -1], effects[:, d:-1],
        )  # fmt: skip

    def layers(self, parts: _Parts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Destinations of those who leave (H, d, d), the share of them (H, d), and transitions."""
        then = parts.attraction
        draw = np.exp(then - then.max(axis=1, keepdims=True))
        share = expit(parts.leave + parts.leaving + parts.pace[:, None] + parts.leaving_then)
        going, transmats = moves_of_layers(_weights(parts.gravity + parts.rows), draw, share)
        return going, share, transmats

    def transmats(self, x: FloatArray) -> FloatArray:
        """Transitions (H, d, d), or (1, d, d), of logits."""
        return self.layers(self.parts(x))[2]

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood and log prior of logits, and its slope."""
        parts = self.parts(x)
        going, share, transmats = self.layers(parts)
        slots = self.pools.slot
        likely, slope = self._likelihood(transmats if self.is_whole else transmats[slots])
        if self.beside is not None:
            more, by_chance = self.beside.log_likelihood(transmats)
            likely += more
            slots, slope = self._of_all_times(slope, by_chance)
        of_moves, of_draws, of_leaving = slopes_of_layers(going, share, slots, slope)
        prior, by_gravity, by_row, by_own = self._prior(parts)
        by_gravity -= of_moves
        by_row -= of_moves
        by_leave = -float(of_leaving[:, self.free].sum())
        by_own -= of_leaving.sum(axis=0)
        value = prior - likely
        gradient = [
            [(by_gravity * self.log_shape).sum() / self.whole],
            by_gravity.sum(axis=0) / self.scale,
            [by_leave / self.whole],
            (by_row / self.scale[:, None])[self.away],
            (by_own / self.scale)[self.free],
        ]
        d = len(self.shape)
        if self.strength.by_time:
            effects = np.column_stack([parts.attraction, parts.leaving_then, parts.pace])
            weight = np.r_[np.full(2 * d, self.held), EVEN]
            value += 0.5 * float((weight * effects**2).sum())
            slopes_of_effects = np.column_stack([of_draws, of_leaving, of_leaving.sum(axis=1)])
            gradient.append(((weight * effects - slopes_of_effects) / self.effect_scale).ravel())
        # What all rows share is held so weakly that only what no count tells is decided by it.
        common = x[: self.widths[0] + d]
        ends = np.r_[x[0] / self.whole - 1, x[1 : d + 1] / self.scale]
        value += 0.5 * EVEN * float((ends**2).sum())
        flat = np.concatenate([np.asarray(part) for part in gradient])
        flat[: len(common)] += EVEN * ends / np.r_[self.whole, self.scale]
        return value, flat

    def _of_all_times(
        self, of_pools: FloatArray, of_times: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Slopes of the pools and of all times of day, added; what times these are of."""
        found = of_times.copy()
        found[self.pools.slot] += of_pools
        return np.arange(self.n_slots), found

    @cached_property
    def is_whole(self) -> bool:
        """Whether the pools are those of all times of day, in their order."""
        return np.array_equal(self.pools.slot, np.arange(self.n_slots))

    def _likelihood(self, transmats: FloatArray) -> tuple[float, FloatArray]:
        """The log-likelihood of transitions (G, d, d) of the pools, and its slope."""
        if isinstance(self.pools, Pools):
            likely, slope = pools_log_likelihood(self.pools, transmats)
        else:
            likely, slope = pooled_log_likelihood(self.pools, transmats)
        if self.gates is not None:
            more, bend = self.gates.log_likelihood(transmats)
            likely, slope = likely + more, slope + bend
        return likely, slope

    def _prior(self, parts: _Parts) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """What the day's rows cost, and its slopes.

        They are those in logits of gravity's destinations and in what rows add (d, d), and in what
        cells add to the logit of leaving (d,).
        """
        pull = max(self.strength.prior, LEAST_PULL)
        gravity, rows = _softmax(parts.gravity), _softmax(parts.gravity + parts.rows)
        mean = (gravity * parts.rows).sum(axis=1)
        top = parts.rows.max(axis=1)
        weights = (gravity * np.exp(parts.rows - top[:, None])).sum(axis=1)
        log_weights = np.log(np.where(weights > 0, weights, 1.0)) + top
        far = np.where(self.away.any(axis=1), log_weights - mean, 0)
        by_row = LEAVERS * pull * (rows - gravity)
        by_gravity = by_row - LEAVERS * pull * gravity * (parts.rows - mean[:, None])
        own = np.where(self.free, parts.leaving, 0.0)
        value = pull * (LEAVERS * float(far.sum()) + 0.5 * ODDS * float((own**2).sum()))
        return value, by_gravity, by_row, pull * ODDS * own


def _softmax(logits: FloatArray) -> FloatArray:
    """Chances by row; a row that may go nowhere is zero."""
    return normalised(_weights(logits))


def _weights(logits: FloatArray) -> FloatArray:
    """Chances by row but for a factor of each."""
    top = logits.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(logits - np.where(np.isfinite(top), top, 0.0)))
