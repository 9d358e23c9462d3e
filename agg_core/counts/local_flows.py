"""Transitions within a reach at work: what counts they lead to, and what happened between two."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import LOCAL, use_engine
from agg_core.counts.held_out import Prediction
from agg_core.counts.local import MovePattern, Nearby
from agg_core.counts.pair_tables import MOST_ENTRIES, PairFlows, PairTables
from agg_core.counts.pairs import CountPairs
from agg_core.learn.esteps.gaussian_pairs import DITHER

__all__ = [
    "local_gravity",
    "local_happened",
    "local_prediction",
    "local_scores",
    "moved_as",
    "of_people",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ALMOST_ALL = 0.999

MOST_ROUNDS, ENOUGH = 400, 1e-5
"""Rounds of conjugate gradients at most, and the part of the residuals that may be left."""

LEAST_SPREAD = 1e-9
"""Variance of a next count below which it is certain."""

SAMPLE = 60
"""Pairs that a gravity model is fitted to."""


def of_people(pattern: MovePattern, people: FloatArray, moves: FloatArray) -> FloatArray:
    """Flows (H, n + d) of people (H, d) by chances (H, n + d) or (1, n + d)."""
    return np.concatenate([people[:, pattern.origin], people], axis=1) * moves


def local_scores(pairs: CountPairs, near: Nearby, moves: FloatArray) -> FloatArray:
    """Scores (P,) as of `agg_core.counts.held_out.prediction_scores`, sums over the blocks."""
    return _told(pairs, near, moves)[1]


def local_prediction(
    pairs: CountPairs, near: Nearby, moves: FloatArray | None, method: str = "learned"
) -> Prediction:
    """Errors of the mean of the next counts of cells in blocks; without chances everybody stays."""
    cells, score = near.cells, np.full(pairs.n_pairs, np.nan)
    mean = pairs.before
    if moves is not None:
        mean, score = _told(pairs, near, moves)
    missed = np.where(pairs.open_after, 0.0, pairs.after - mean)[:, cells]
    n = max(int((~pairs.open_after[:, cells]).sum()), 1)
    return Prediction(
        method=method,
        mae=float(np.abs(missed).sum() / n),
        rmse=float(np.sqrt((missed**2).sum() / n)),
        score=float(score.mean()),
    )


def _told(pairs: CountPairs, near: Nearby, moves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of the next counts (P, d), of cells in blocks alone, and scores (P,)."""
    mean, scores = pairs.before.copy(), np.zeros(pairs.n_pairs)
    which = pairs.which(moves)
    for block in near.blocks:
        tables, own = block.table(moves), np.arange(len(block.cells))
        y, z = pairs.before[:, block.origins], pairs.after[:, block.cells]
        for slot in np.unique(which):
            mine = np.flatnonzero(which == slot)
            A = tables[slot]
            expected = y[mine] @ A
            rooted = np.sqrt(y[mine])[..., None] * A
            V = -(np.swapaxes(rooted, -1, -2) @ rooted)
            V[:, own, own] += expected + DITHER
            roots = np.linalg.cholesky(V)
            whitened = np.linalg.solve(roots, (z[mine] - expected)[..., None])[..., 0]
            mean[np.ix_(mine, block.cells)] = expected
            scores[mine] -= 0.5 * (whitened**2).sum(axis=1)
            scores[mine] -= np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return mean, scores


def local_gravity(pairs: CountPairs, near: Nearby) -> FloatArray:
    """The model of `agg_core.counts.held_out.gravity_prediction` within a reach, (1, n + d)."""
    from scipy.optimize import fmin  # noqa: PLC0415

    of = near.pattern
    people = pairs.after.mean(axis=0) + 1e-9
    sample = pairs.take(np.unique(np.linspace(0, pairs.n_pairs - 1, SAMPLE).astype(int)))

    def rows(x: FloatArray) -> FloatArray:
        leave = np.where(of.leads, 1 / (1 + np.exp(x[0])), 0.0)
        weights = np.exp(np.clip(x[1], 0, 20) * of.log_shape) * people[of.dest]
        total = np.maximum(of.by_row(weights), 1e-300)
        return np.concatenate([weights * (leave / total)[of.origin], 1 - leave])[None]

    def loss(x: FloatArray) -> float:
        return -float(local_scores(sample, near, rows(x)).sum())

    best = fmin(loss, np.array([1.0, 1.0]), xtol=0.02, ftol=0.1, maxfun=60, disp=False)
    return rows(np.asarray(best))


def moved_as(pattern: MovePattern, moves: FloatArray, factor: float) -> FloatArray:
    """Chances by which so many times as many people move, to the same places."""
    n = pattern.n_moves
    leave = 1 - moves[:, n:]
    more = np.minimum(leave * factor, np.maximum(leave, ALMOST_ALL))
    ratio = np.divide(more, leave, out=np.ones_like(leave), where=leave > 0)
    return np.concatenate([moves[:, :n] * ratio[:, pattern.origin], 1 - more], axis=1)


def local_happened(
    pairs: CountPairs, pattern: MovePattern, moves: FloatArray, *, keep_pairs: bool = False
) -> tuple[FloatArray, PairFlows | None]:
    """What happened in the pairs of each time of day (H, n + d), summed, flows taken for normal.

    They are those of `agg_core.counts.posterior.gaussian_flows`. What residuals are weighed by is
    found without its inverse, by conjugate gradients: neither it nor the covariance is written out.
    With ``keep_pairs`` flows of single pairs are kept, too, unless they are too many.
    """
    kept = None
    if keep_pairs and pairs.n_pairs * moves.shape[1] <= MOST_ENTRIES:
        kept = PairTables(pattern.n_states)
    slots = [np.flatnonzero(pairs.slot == slot) for slot in range(len(pairs.slots))]
    with use_engine(LOCAL) as engine:
        found = engine.map(partial(_happened_at, pairs, pattern, moves, kept is not None), slots)
    flows = np.stack([total for total, _ in found])
    if kept is None:
        return flows, None
    for mine, (_, each) in zip(slots, found, strict=True):
        for number, one in zip(mine.tolist(), each, strict=True):
            kept.add(number, pattern.table(one))
    return flows, kept.made()


def _happened_at(
    pairs: CountPairs,
    pattern: MovePattern,
    moves: FloatArray,
    apart: bool,  # given by position to a partial
    mine: IntArray,
) -> tuple[FloatArray, list[FloatArray]]:
    """The sum of some pairs at the same time of day, and, if they are kept ``apart``, each."""
    n = pattern.n_moves
    total, each = np.zeros(moves.shape[1]), []
    if not len(mine):
        return total, []
    chances = moves[pairs.which(moves)[mine[0]]]
    A = pattern.table(chances)
    turned = A.T.tocsr()
    y, z = pairs.before[mine].T, pairs.after[mine].T
    expected = turned @ y

    def spread(u: FloatArray) -> FloatArray:
        return np.asarray(expected * u - turned @ (y * (A @ u)))

    own = turned.multiply(turned) @ y
    u = _solved(spread, z - expected, expected - own)
    mean = A @ u
    for people, up, down in zip(y.T, u.T, mean.T, strict=True):
        flows = np.concatenate(
            [
                people[pattern.origin]
                * chances[:n]
                * (1 + up[pattern.dest] - down[pattern.origin]),
                people * chances[n:] * (1 + up - down),
            ]
        )
        np.maximum(flows, 0.0, out=flows)
        there = pattern.by_row(flows[:n]) + flows[n:]
        scale = np.divide(people, there, out=np.zeros_like(there), where=there > 0)
        flows *= np.concatenate([scale[pattern.origin], scale])
        total += flows
        if apart:
            each.append(flows)
    return total, each


def _solved(
    spread: Callable[[FloatArray], FloatArray], right: FloatArray, diagonal: FloatArray
) -> FloatArray:
    """Solutions (d, P) of P systems by conjugate gradients, weighed by the ``diagonal`` (d, P).

    Where everybody stays among the same cells, their covariance has no inverse; residuals add up to
    nobody there, and what solves them is known but for a constant, which flows do not hang on.
    """
    certain = diagonal <= LEAST_SPREAD
    weight = np.where(certain, 0.0, 1 / np.where(certain, 1.0, diagonal))
    found, left = np.zeros_like(right), np.where(certain, 0.0, right)
    weighed = weight * left
    way, size = weighed, (left * weighed).sum(axis=0)
    enough = ENOUGH**2 * size
    for _ in range(MOST_ROUNDS):
        going = size > enough
        if not going.any():
            break
        ahead = np.where(certain, 0.0, spread(way))
        bend = (way * ahead).sum(axis=0)
        step = np.where(going & (bend > 0), size / np.where(bend > 0, bend, 1.0), 0.0)
        found = found + step * way
        left = left - step * ahead
        weighed = weight * left
        before, size = size, (left * weighed).sum(axis=0)
        way = weighed + np.where(before > 0, size / np.where(before > 0, before, 1.0), 0.0) * way
    return found
