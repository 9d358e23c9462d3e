"""How many people there were, given all counts of a run, where counts err: a Kalman smoother."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.counts.erring import ErringPairs, Run
from agg_core.counts.pairs import CountPairs

__all__ = ["FEWEST", "Innovations", "Smoothed", "expected_people", "innovations", "smoothed"]

FloatArray = npt.NDArray[np.float64]

FEWEST = 0.01
"""People for whom the variance of moves and of errors is taken at least."""


@dataclass(frozen=True)
class Smoothed:
    """People before and after each pair as all counts of its run tell them.

    ``before``, ``after`` (P, d) are means, ``of_before``, ``of_after`` (P, d, d) covariances and
    ``cross`` (P, d, d) the covariance of people before with people after. ``scores`` (P,) are log
    densities of each next count given all counts before it. ``slope`` and ``information`` are the
    first derivative of their sum by the squared relative error, and minus the second as expected.
    """

    before: FloatArray
    after: FloatArray
    of_before: FloatArray
    of_after: FloatArray
    cross: FloatArray
    scores: FloatArray
    slope: float
    information: float


def smoothed(
    pairs: ErringPairs, transmats: FloatArray, people: tuple[FloatArray, FloatArray] | None = None
) -> Smoothed:
    """Means and covariances of people given all counts, with transitions (H or 1, d, d).

    People x of a moment become x A on average at the next, with the covariance of multinomial rows,
    diag(x A) - A' diag(x) A; counts are x and an error with the variance of ``pairs.error``. Both
    variances are taken at the means ``people`` (before, after), which are those of an earlier turn
    or, without, the counts. Filter and smoother are those of Durbin & Koopman (2012, 4.3-4.5),
    which need no inverse of the covariance of people: as people are neither lost nor found, it has
    none. The first counts of a run are where its filter begins.
    """
    d, P = pairs.n_states, pairs.n_pairs
    before, after = people or (pairs.before, pairs.after)
    found = Smoothed(
        np.empty((P, d)), np.empty((P, d)), np.empty((P, d, d)), np.empty((P, d, d)),
        np.empty((P, d, d)), np.empty(P), 0.0, 0.0,
    )  # fmt: skip
    slope = information = 0.0
    which = pairs.which(transmats)
    for run in pairs.runs():
        size = np.maximum(np.vstack([before[run.pairs], after[run.pairs[-1:]]]), FEWEST)
        variance = pairs.error.variance(size) + run.spread
        filtered = _filter(run, transmats[which[run.pairs]], size, variance)
        mean, covariance, cross = _smooth(filtered)
        at = run.pairs
        found.before[at], found.after[at] = mean[:-1], mean[1:]
        found.of_before[at], found.of_after[at] = covariance[:-1], covariance[1:]
        found.cross[at], found.scores[at] = cross, filtered.scores
        told, sure = _of_error(run, mean, covariance, pairs.error.slope(size), variance)
        slope, information = slope + told, information + sure
    return Smoothed(**{**vars(found), "slope": slope, "information": information})


def expected_people(pairs: CountPairs, transmats: FloatArray) -> FloatArray:
    """People before each pair (P, d): the counts, or where these err what all of a run tell."""
    if not isinstance(pairs, ErringPairs):
        return pairs.before
    return np.maximum(smoothed(pairs, transmats).before, 0.0)


@dataclass(frozen=True)
class Innovations:
    """Next counts minus what all counts before them in a run foretell.

    ``far`` (P, d) are the innovations and ``spread`` (P, d, d) their covariances; where nobody
    counts both are 0. Those of different pairs are independent where people move by the transitions
    and counts err as told.
    """

    far: FloatArray
    spread: FloatArray


def innovations(pairs: ErringPairs, transmats: FloatArray) -> Innovations:
    """One-step-ahead innovations of counts that err, with transitions (H or 1, d, d)."""
    d, P = pairs.n_states, pairs.n_pairs
    found = Innovations(np.zeros((P, d)), np.zeros((P, d, d)))
    which = pairs.which(transmats)
    for run in pairs.runs():
        size = np.maximum(run.counts, FEWEST)
        variance = pairs.error.variance(size) + run.spread
        filtered = _filter(run, transmats[which[run.pairs]], size, variance)
        for t, p in enumerate(run.pairs, start=1):
            seen = np.isfinite(variance[t])
            found.far[p, seen] = (run.counts[t] - filtered.mean[t])[seen]
            both = np.ix_(seen, seen)
            found.spread[p][both] = filtered.covariance[t][both] + np.diag(variance[t, seen])
    return found


@dataclass(frozen=True)
class _Filtered:
    """Predicted means (n, d) and covariances (n, d, d), and what counts add to them.

    ``weights`` (n, d, d) are the inverse covariances of innovations, zero where nothing was
    counted, ``pulls`` (n, d) these times the innovations.
    """

    rows: FloatArray
    mean: FloatArray
    covariance: FloatArray
    weights: FloatArray
    pulls: FloatArray
    scores: FloatArray


def _filter(run: Run, rows: FloatArray, size: FloatArray, variance: FloatArray) -> _Filtered:
    n, d = run.counts.shape
    own = np.arange(d)
    mean, covariance = np.empty((n, d)), np.empty((n, d, d))
    weights, pulls, scores = np.zeros((n, d, d)), np.zeros((n, d)), np.empty(n - 1)
    mean[0], covariance[0] = run.counts[0], _beginning(variance[0])
    for t in range(1, n):
        A = rows[t - 1]
        known = covariance[t - 1] - covariance[t - 1] @ weights[t - 1] @ covariance[t - 1]
        mean[t] = (mean[t - 1] + covariance[t - 1] @ pulls[t - 1]) @ A
        spread = A.T @ known @ A - (A.T * size[t - 1]) @ A
        spread[own, own] += size[t - 1] @ A
        covariance[t] = (spread + spread.T) / 2
        seen = np.flatnonzero(np.isfinite(variance[t]))
        innovation = run.counts[t, seen] - mean[t, seen]
        of_counts = covariance[t][np.ix_(seen, seen)] + np.diag(variance[t, seen])
        inverse = np.linalg.inv(of_counts)
        weights[t][np.ix_(seen, seen)] = (inverse + inverse.T) / 2
        pulls[t, seen] = inverse @ innovation
        _, log_det = np.linalg.slogdet(of_counts)
        far = float(innovation @ pulls[t, seen])
        scores[t - 1] = -0.5 * (far + log_det + len(seen) * np.log(2 * np.pi))
    return _Filtered(rows, mean, covariance, weights, pulls, scores)


def _beginning(variance: FloatArray) -> FloatArray:
    """Covariance of people at the first moment: those nobody counts are who is missing."""
    counted = np.isfinite(variance)
    covariance = np.diag(np.where(counted, variance, 0.0))
    for hidden in np.flatnonzero(~counted):
        covariance[hidden] = covariance[:, hidden] = -np.where(counted, variance, 0.0)
        covariance[hidden, hidden] = variance[counted].sum()
    return covariance


def _smooth(filtered: _Filtered) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means (n, d), covariances (n, d, d) and those of successive moments (n - 1, d, d)."""
    n, d = filtered.mean.shape
    mean, covariance = np.empty((n, d)), np.empty((n, d, d))
    cross = np.empty((n - 1, d, d))
    pull, weight = filtered.pulls[-1], filtered.weights[-1]
    for t in range(n - 1, -1, -1):
        P = filtered.covariance[t]
        if t < n - 1:
            onward = filtered.rows[t].T @ (np.eye(d) - P @ filtered.weights[t])
            passed = P @ onward.T
            cross[t] = passed - passed @ weight @ filtered.covariance[t + 1]
            pull = filtered.pulls[t] + onward.T @ pull
            weight = filtered.weights[t] + onward.T @ weight @ onward
        mean[t] = filtered.mean[t] + P @ pull
        covariance[t] = P - P @ weight @ P
    return mean, covariance, cross


def _of_error(
    run: Run, mean: FloatArray, covariance: FloatArray, by_square: FloatArray, variance: FloatArray
) -> tuple[float, float]:
    """Slope and information of the log density by the squared relative error.

    With u the smoothed error over its variance r, D what is known of that,
    (r - variance given the counts) / r^2, and g (n, d) the derivative ``by_square`` of r, the slope
    is half the sum of g (u^2 - D) and the information half the sum of (g D)^2, errors of cells
    being told apart.
    """
    seen = np.isfinite(variance[1:])
    r = np.where(seen, variance[1:], 1.0)
    left = np.diagonal(covariance[1:], axis1=1, axis2=2)
    told = np.where(seen, np.maximum(r - left, 0.0) / r**2, 0.0)
    square = by_square[1:]
    far = np.where(seen, (run.counts[1:] - mean[1:]) / r, 0.0)
    slope = 0.5 * float((square * (far**2 - told)).sum())
    return slope, 0.5 * float(((square * told) ** 2).sum())
