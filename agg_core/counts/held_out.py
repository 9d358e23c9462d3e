"""Counts kept aside: how well the next counts are predicted by what was learned from the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.counts.erring import ErringPairs
from agg_core.counts.pairs import CountPairs
from agg_core.counts.smoothing import smoothed
from agg_core.learn.esteps.gaussian_pairs import DITHER

__all__ = [
    "Prediction",
    "expected_next",
    "gravity_prediction",
    "held_out_days",
    "predict",
    "prediction_scores",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FEW_DAYS = 12
FOLDS = 3
SHARE = 4
"""With so few days each of `FOLDS` parts of them is kept aside in turn, else one of `SHARE`."""


@dataclass(frozen=True)
class Prediction:
    """How far the next counts are from what was predicted.

    Attributes
    ----------
    method : "learned", "persistence" (everybody stays), or "gravity"
    mae, rmse : people per cell; mean absolute and root mean squared error
    score : Dawid-Sebastiani score per pair, in nats: the larger the better; NaN where a method
        tells no covariance
    """

    method: str
    mae: float
    rmse: float
    score: float


def held_out_days(pairs: CountPairs) -> tuple[BoolArray, ...]:
    """Which pairs (P,) to keep aside, in turn: days spread over the period, or single pairs.

    Where there are fewer days than parts, pairs take the place of days.

    Raises
    ------
    InputError
        If there is one pair only.
    """
    if pairs.n_pairs < 2:
        raise InputError(
            "Two successive moments leave none to check what is learned from them; load a third "
            "one at least.",
            code="too-few-moments",
        )
    place = np.unique(pairs.day, return_inverse=True)[1]
    n = int(place.max()) + 1
    if n < FOLDS:
        place, n = np.arange(pairs.n_pairs), pairs.n_pairs
    if n > FEW_DAYS:
        return (np.asarray(place % SHARE == SHARE // 2),)
    folds = (np.asarray(place % FOLDS == fold) for fold in range(FOLDS))
    return tuple(fold for fold in folds if fold.any() and not fold.all())


def predict(pairs: CountPairs, transmats: FloatArray | None, method: str = "learned") -> Prediction:
    """Errors of the mean of the next counts; without transitions everybody stays."""
    mean = pairs.before if transmats is None else expected_next(pairs, transmats)
    error = np.where(pairs.open_after, 0.0, pairs.after - mean)
    n = max(int((~pairs.open_after).sum()), 1)
    return Prediction(
        method=method,
        mae=float(np.abs(error).sum() / n),
        rmse=float(np.sqrt((error**2).sum() / n)),
        score=np.nan if transmats is None else float(prediction_scores(pairs, transmats).mean()),
    )


def prediction_scores(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """Dawid-Sebastiani score of the next counts of each pair (P,); the larger the better.

    It is -1/2 [log det V + r' V^-1 r] with mean and covariance of the next counts as in
    `agg_core.counts.dense.pooled_log_likelihood`, each pair with its own: a proper score
    (Dawid & Sebastiani 1999), for few people as for many, as these two moments are exact.
    Of counts that err it is the log density of the next counts given all before them in a run.
    """
    if isinstance(pairs, ErringPairs):
        return smoothed(pairs, transmats).scores
    from scipy.linalg import solve_triangular  # noqa: PLC0415

    scores, own = np.empty(pairs.n_pairs), np.arange(pairs.n_states)
    residuals = pairs.after - expected_next(pairs, transmats)
    which = pairs.which(transmats)
    for p, (y, residual) in enumerate(zip(pairs.before, residuals, strict=True)):
        here = y > 0
        A = transmats[which[p]][here]
        V = -(A.T * y[here]) @ A
        V[own, own] += y[here] @ A + DITHER
        root = np.linalg.cholesky(V)
        whitened = solve_triangular(root, residual, lower=True, check_finite=False)
        scores[p] = -0.5 * float(whitened @ whitened) - np.log(np.diagonal(root)).sum()
    return scores


def expected_next(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """The mean of the next counts (P, d), given the first ones and transitions."""
    if len(transmats) == 1:
        return np.asarray(pairs.before @ transmats[0])
    return np.asarray(np.matmul(pairs.before[:, None, :], transmats[pairs.slot])[:, 0])


def gravity_prediction(pairs: CountPairs, shape: FloatArray) -> FloatArray:
    """A plain gravity model, (1, d, d): one share of stays, attraction by people, one decay.

    p(i, i) = s,  p(i, j) proportional to n_j shape(i, j)^g with n_j the mean people of a cell: the
    model without counts of moves. s and g are those of the best `prediction_scores` on the pairs.
    """
    from scipy.optimize import fmin  # noqa: PLC0415

    d = pairs.n_states
    away = (shape > 0) & ~np.eye(d, dtype=bool)
    people = pairs.after.mean(axis=0) + 1e-9
    log_shape = np.log(np.where(away, shape, 1.0))
    sample = pairs.take(np.unique(np.linspace(0, pairs.n_pairs - 1, 60).astype(int)))

    def rows(x: FloatArray) -> FloatArray:
        stay = 1 / (1 + np.exp(-x[0]))
        weights = np.where(away, np.exp(np.clip(x[1], 0, 20) * log_shape), 0.0) * people
        moves = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        leave = np.where(away.any(axis=1), 1 - stay, 0.0)
        return np.asarray((moves * leave[:, None] + np.diag(1 - leave))[None])

    def loss(x: FloatArray) -> float:
        return -float(prediction_scores(sample, rows(x)).sum())

    best = fmin(loss, np.array([1.0, 1.0]), xtol=0.02, ftol=0.1, maxfun=60, disp=False)
    return rows(np.asarray(best))
