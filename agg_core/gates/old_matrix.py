"""An old matrix of trips as what is thought before: of last week, of a survey, of last year.

Rows of the matrix, by period of the day and kind of day, are shrunk towards what is less fine:
first towards what entries and exits alone tell, then periods towards all day, then kinds of days
towards all days. How strongly is learned: each level is a Dirichlet distribution around the one
above it, whose weight in people makes the counted rows likeliest (Dirichlet-multinomial; Minka
2000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from agg_core.base.errors import InputError

__all__ = ["OldMatrix", "Seeds", "dirichlet_weight", "seeds_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEAST_DAYS = 2
LEAST_WEIGHT, MOST_WEIGHT = 1.0, 1e7
"""People that a level may count for."""


@dataclass(frozen=True)
class OldMatrix:
    """Trips of an old matrix.

    ``trips`` (G, S, S) are those of each of G groups, such as times of a day; ``day``, ``kind`` and
    ``period`` (G,) say of which day, kind of day and period of the day a group is, -1 where the
    matrix does not tell.
    """

    trips: FloatArray
    day: IntArray
    kind: IntArray
    period: IntArray


@dataclass(frozen=True)
class Seeds:
    """Chances of where people go, by kind of day and period, with how much each counts for.

    Attributes
    ----------
    chances : (K, P, S, S) of each row's dests, those of kinds that the matrix lacks as of all days
    weights : people that each level counts for: ``gates`` (what entries and exits tell beside the
        matrix), ``day`` (all day beside a period), ``days`` (all days beside a kind) and ``other``
        (the matrix beside a time of another day)
    known : (S, S) pairs of stations that both have trips in the matrix
    """

    chances: FloatArray
    weights: dict[str, float]
    known: npt.NDArray[np.bool_]

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Chances (K, P, S, S) as they may be on another day.

        Rows are as far from these as rows of other days are; of stations that the matrix does not
        know, as far as its rows are from what the gates tell.
        """
        far = self.weights["gates"]
        weight = np.where(self.known, max(self.weights["other"], far), far)
        drawn = rng.standard_gamma(np.maximum(weight * self.chances, 1e-6))
        return np.asarray(drawn / np.maximum(drawn.sum(axis=-1, keepdims=True), 1e-300))


def dirichlet_weight(counts: FloatArray, chances: FloatArray) -> float:
    """People that chances (R, S) count for as what rows of counts (R, S) are drawn around.

    The maximum of the Dirichlet-multinomial likelihood; rows of nobody tell nothing.
    """
    some = counts.sum(axis=1) > 0
    n, p = counts[some], np.maximum(chances[some], 1e-9)
    total = n.sum(axis=1)

    def loss(log_weight: float) -> float:
        weight = float(np.exp(log_weight))
        rows = gammaln(weight) - gammaln(weight + total)
        entries = gammaln(n + weight * p) - gammaln(weight * p)
        return -float(rows.sum() + entries.sum())

    ends = np.log(LEAST_WEIGHT), np.log(MOST_WEIGHT)
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-2})
    return float(np.exp(found.x))


def _shrunk(counts: FloatArray, towards: FloatArray, weight: float) -> FloatArray:
    """Chances (..., S, S) of rows of counts with so many people more, moving as others do."""
    more = counts + weight * towards
    return np.asarray(more / np.maximum(more.sum(axis=-1, keepdims=True), 1e-300))


def _rows(values: FloatArray) -> FloatArray:
    return values.reshape(-1, values.shape[-1])


def seeds_of(old: OldMatrix, told: FloatArray, n_kinds: int, n_periods: int) -> Seeds:
    """Chances by kind of day and period from an old matrix and what gates tell, (S, S) trips.

    Raises
    ------
    InputError
        If the matrix holds no trip between the stations.
    """
    if not old.trips.sum() > 0:
        raise InputError(
            "The old matrix holds no trip between these stations; give origin, dest and count by "
            "their names.",
            code="matrix-without-trips",
        )
    n = told.shape[0]
    flat = told + 1e-9 * (1 - np.eye(n)) + 1e-12
    gates = flat / flat.sum(axis=1, keepdims=True)
    whole = old.trips.sum(axis=0)
    weights = {"gates": dirichlet_weight(whole, gates)}
    of_all = _shrunk(whole, gates, weights["gates"])
    of_period = np.repeat(of_all[None], n_periods, axis=0)
    if (old.period >= 0).all():
        trips = np.stack([old.trips[old.period == p].sum(axis=0) for p in range(n_periods)])
        weights["day"] = dirichlet_weight(_rows(trips), _rows(of_period))
        of_period = _shrunk(trips, of_period, weights["day"])
    chances = np.repeat(of_period[None], n_kinds, axis=0)
    if (old.kind >= 0).all() and len(np.unique(old.kind)) > 1:
        trips = np.zeros_like(chances)
        for group, kind in enumerate(old.kind):
            periods = [old.period[group]] if old.period[group] >= 0 else range(n_periods)
            for period in periods:
                trips[kind, period] += old.trips[group] / len(periods)
        weights["days"] = dirichlet_weight(_rows(trips), _rows(chances))
        chances = _shrunk(trips, chances, weights["days"])
    weights["other"] = _other_days(old, of_period, min(weights.values()))
    passed = (whole.sum(axis=0) > 0) & (whole.sum(axis=1) > 0)
    return Seeds(chances, weights, passed[:, None] & passed)


def _other_days(old: OldMatrix, chances: FloatArray, otherwise: float) -> float:
    """People that half of the days count for beside single days of the other half.

    ``otherwise`` where days are not known, or but one is.
    """
    days = np.unique(old.day)
    if (old.day < 0).any() or len(days) < LEAST_DAYS:
        return otherwise
    n_periods = len(chances)
    period = np.maximum(old.period, 0)
    half = np.isin(old.day, days[::2])
    trips = np.stack([old.trips[half & (period == p)].sum(axis=0) for p in range(n_periods)])
    weight = dirichlet_weight(_rows(trips), _rows(chances))
    told = _shrunk(trips, chances, weight)
    return dirichlet_weight(_rows(old.trips[~half]), _rows(told[period[~half]]))
