"""Who goes where, as a pattern: learned from how entries and exits stray from day to day.

Sums of entries and exits do not tell pairs: any pattern can be scaled to them. But if more people
than usual enter at one station, more than usual leave where they go. Covariances of that kind fix
flows in a network (Vardi 1996; Cao, Davis, Vander Wiel & Yu 2000). Levels of entries and exits are
met exactly by every pattern that is tried, so that nothing but what strays from them tells.

The weight of a pair is exp(decay * km + line * (another line) + effect), the last the same in both
directions, as people come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from agg_core.gates.balance import balanced
from agg_core.gates.days import ServiceDays
from agg_core.gates.lags import lag_weights, travel_minutes

__all__ = [
    "FEWEST_DAYS",
    "PACES",
    "Features",
    "Pattern",
    "features_of",
    "learn_pattern",
    "learn_pattern_steps",
    "unlearned",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEWEST_DAYS = 3
"""Days of a kind from which on it is told what is usual on them."""

PACES = (1.2, 2.0, 3.0, 6.0, 12.0)
"""Minutes per kilometre that are tried: from fast trains to people who walk."""

SEVERAL = re.compile("[;/|,]")
"""What stands between the lines of a station that is of several."""

SAME_STATION = -2.0
"""Logarithm of the weight of leaving where one entered: hardly anybody does. It is not learned, as
entries and exits of one station stray together for other reasons."""

CLIP = 3.0
"""Standard deviations beyond which what strays counts in proportion (Huber 1964)."""

ADJOINT_SWEEPS, MOST_ITERATIONS = 40, 80
CHI2_MEDIAN = 0.455
"""Median of a chi-squared variable of one degree of freedom."""

ALMOST_NONE = 1e-3
"""People by which levels may be missed: they are met, but a factor that would be endless is not."""

OF_PERIOD = 0.7
"""How far pairs stray in a period of the day on its own, as a part of how far they do all day."""

RIDGE = 0.05
"""Inverse variance of decay (per 10 km) and of lines before anything is seen."""


@dataclass(frozen=True)
class Features:
    """What may make pairs of stations exchange more or fewer people.

    ``names`` (F,) and ``values`` (F, S, S); ``km`` (S, S), None where stations have no place.
    """

    names: tuple[str, ...]
    values: FloatArray
    km: FloatArray | None = None
    base: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    """Logarithm (S, S) of the pattern that these change."""

    @property
    def n_stations(self) -> int:
        """Number of stations."""
        return int(self.base.shape[0])


@dataclass(frozen=True)
class Pattern:
    """A pattern that was learned, and how sure it is.

    Attributes
    ----------
    features : what it is made of
    weights : (F,) of the features
    weights_cov : (F, F) their covariance
    effects : (S, S) logarithms that pairs have beside, symmetric
    effects_sd : (S, S) their standard deviations
    minutes_per_km : pace of trips, None without distances
    excess : how many times more the pairs' scores vary than independent counts would let them
    learned : whether days told it; else it is what was thought before
    spread : standard deviation of logarithms by which pairs are thought to stray
    """

    features: Features
    weights: FloatArray
    weights_cov: FloatArray
    effects: FloatArray
    effects_sd: FloatArray
    minutes_per_km: float | None
    excess: float
    learned: bool
    spread: float

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms (S, S) of the weights of pairs."""
        return _log_weights(self.features, self.weights, self.effects)

    def chances(self, step_minutes: float, log_weights: FloatArray | None = None) -> FloatArray:
        """Weights (L, S, S) of pairs by lag, in steps of so many minutes.

        Or (P, L, S, S) of logarithms (P, S, S).
        """
        logs = self.log_weights if log_weights is None else log_weights
        return self.with_lags(np.exp(logs - logs.max()), step_minutes)

    def with_lags(self, weights: FloatArray, step_minutes: float) -> FloatArray:
        """Weights (..., L, S, S) by lag of pairs (..., S, S) in steps of so many minutes."""
        lags = _lags(self.features, self.minutes_per_km, step_minutes)
        return np.asarray(weights[..., None, :, :] * lags)

    def draw(self, rng: np.random.Generator, n_periods: int) -> FloatArray:
        """Logarithms (P, S, S) as they may be as well.

        Pairs stray from the pattern all day, and a part `OF_PERIOD` as far in each period on its
        own; both together are as far as `effects_sd` says of a whole day.
        """
        weights = self.weights
        if len(weights):
            weights = rng.multivariate_normal(weights, self.weights_cov, method="cholesky")
        d = len(self.effects)
        all_day = np.triu(rng.standard_normal((d, d)), 1)
        rest = np.sqrt(max(1 - OF_PERIOD**2 / n_periods, 0.0))
        effects = self.effects + rest * self.effects_sd * (all_day + all_day.T)
        of_period = OF_PERIOD * self.spread * rng.standard_normal((n_periods, d, d))
        own = of_period * _pairs_apart(d)
        return np.asarray(_log_weights(self.features, weights, effects) + own)


def _log_weights(features: Features, weights: FloatArray, effects: FloatArray) -> FloatArray:
    return np.asarray(features.base + np.tensordot(weights, features.values, axes=1) + effects)


def _lags(features: Features, pace: float | None, step_minutes: float) -> FloatArray:
    n = features.n_stations
    km = np.zeros((n, n)) if features.km is None else features.km
    return lag_weights(travel_minutes(km, pace or 0.0), step_minutes)


def features_of(km: FloatArray | None, lines: Sequence[str], n_stations: int) -> Features:
    """Distance, in 10 km, and whether stations are of other lines, as far as they are known."""
    names, values = [], []
    if km is not None:
        names.append("distance")
        values.append(km / 10)
    if len(set(lines)) > 1:
        of = [{part.strip() for part in SEVERAL.split(each)} for each in lines]
        names.append("line")
        values.append(np.array([[float(not (one & two)) for two in of] for one in of]))
    base = SAME_STATION * np.eye(n_stations)
    found = np.array(values, dtype=np.float64).reshape(-1, n_stations, n_stations)
    return Features(tuple(names), found, km, base)


def unlearned(features: Features, spread: float) -> Pattern:
    """What is thought of a pattern before anything is seen: pairs are alike, give or take."""
    n, d = len(features.names), features.n_stations
    return Pattern(
        features, np.zeros(n), np.zeros((n, n)), np.zeros((d, d)), _pairs_apart(d) * spread,
        None if features.km is None else 2.0, 1.0, learned=False, spread=spread,
    )  # fmt: skip


def _pairs_apart(n: int) -> FloatArray:
    return 1.0 - np.eye(n)


@dataclass
class _Kind:
    """Days of one kind: usual entries and exits (H, S), and how those of k days stray from them."""

    entries: FloatArray
    exits: FloatArray
    strayed_in: FloatArray
    strayed_out: FloatArray
    variance: FloatArray
    leave: FloatArray | None = None


class _Straying:
    """How well a pattern tells exits that stray by entries that stray, and its gradient."""

    def __init__(
        self, days: ServiceDays, kind: IntArray, features: Features, pace: float | None
    ) -> None:
        self.features = features
        self.lags = _lags(features, pace, days.step_minutes)
        self.kinds = [
            _kind_of(days, kind == each, self._first())
            for each in np.unique(kind)
            if (kind == each).sum() >= FEWEST_DAYS
        ]
        self.upper = np.triu_indices(features.n_stations, 1)

    def _first(self) -> FloatArray:
        return np.asarray(np.exp(self.features.base) * self.lags)

    def loss(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Half the sum of squares, of those beyond `CLIP` less, and its gradient (S, S)."""
        chances = np.exp(log_weights - log_weights.max()) * self.lags
        total, gradient = 0.0, np.zeros_like(log_weights)
        for kind in self.kinds:
            more, slope = _loss_of(kind, chances)
            total += more
            gradient += slope
        return total, gradient

    def information(self, log_weights: FloatArray) -> FloatArray:
        """Diagonal of the information on the logarithm of each pair, (S, S), in both directions."""
        chances = np.exp(log_weights - log_weights.max()) * self.lags
        found = np.zeros_like(log_weights)
        for kind in self.kinds:
            trips = balanced(
                chances, kind.entries, kind.exits, start=kind.leave, people=ALMOST_NONE
            )
            part = _share(kind.strayed_in, kind.entries) * trips.enter
            n_steps = len(kind.entries)
            for lag, chance in enumerate(chances):
                power = (part[:, : n_steps - lag] ** 2).sum(axis=0)
                weight = trips.leave[lag:] ** 2 / kind.variance[lag:]
                found += (power.T @ weight) * chance**2
        return found + found.T


def _share(values: FloatArray, of: FloatArray) -> FloatArray:
    return np.divide(values, of, out=np.zeros_like(values), where=of > 0)


def _kind_of(days: ServiceDays, mine: npt.NDArray[np.bool_], chances: FloatArray) -> _Kind:
    is_open = days.is_open[mine][:, None, :]
    n_open = np.maximum(is_open.sum(axis=0), 1)
    entries, exits = (
        (side[mine] * is_open).sum(axis=0) / n_open for side in (days.entries, days.exits)
    )
    exits = exits * entries.sum() / max(exits.sum(), 1e-300)
    strayed = []
    for side, usual in ((days.entries[mine], entries), (days.exits[mine], exits)):
        expected = usual[None] * is_open
        whole = expected.sum(axis=2, keepdims=True)
        # How many people pass in all says nothing of who goes where.
        busier = np.divide(
            side.sum(axis=2, keepdims=True), whole, out=np.ones_like(whole), where=whole > 0
        )
        strayed.append((side - busier * expected) * is_open)
    variance = (strayed[1] ** 2).mean(axis=0) + exits + 1.0
    # Levels that trips can make: where few people pass, the counts of a step need not be.
    usual = balanced(chances, entries, exits)
    return _Kind(usual.entries(), usual.exits(), strayed[0], strayed[1], variance)


def _loss_of(kind: _Kind, chances: FloatArray) -> tuple[float, FloatArray]:
    trips = balanced(chances, kind.entries, kind.exits, start=kind.leave, people=ALMOST_NONE)
    kind.leave = trips.leave
    n_steps, n_lags = len(kind.entries), len(chances)
    part = _share(kind.strayed_in, kind.entries) * trips.enter
    came = np.zeros_like(kind.strayed_out)
    for lag, chance in enumerate(chances):
        came[:, lag:] += part[:, : n_steps - lag] @ chance
    sd = np.sqrt(kind.variance)
    off = (kind.strayed_out - came * trips.leave) / sd
    large = np.abs(off) > CLIP
    loss = np.where(large, CLIP * np.abs(off) - CLIP**2 / 2, off**2 / 2).sum()
    slope = -np.clip(off, -CLIP, CLIP) / sd * trips.leave
    # Of the logarithm of each number of trips, then of the pattern with both sums held.
    gradient = np.zeros(chances.shape[1:])
    by_entry, by_exit = np.zeros_like(kind.entries), np.zeros_like(kind.exits)
    for lag, chance in enumerate(chances):
        of_pairs = np.einsum("khi,khj->hij", part[:, : n_steps - lag], slope[:, lag:]) * chance
        gradient += of_pairs.sum(axis=0)
        by_entry[: n_steps - lag] += of_pairs.sum(axis=2)
        by_exit[lag:] += of_pairs.sum(axis=1)
    rows, cols = _held(trips.enter, trips.leave, chances, by_entry, by_exit)
    for lag in range(n_lags):
        at = np.minimum(np.arange(n_steps) + lag, n_steps - 1)
        enter, leave = trips.enter, trips.leave[at]
        gradient -= chances[lag] * ((rows * enter).T @ leave + enter.T @ (cols * trips.leave)[at])
    return float(loss), gradient


def _held(
    enter: FloatArray,
    leave: FloatArray,
    chances: FloatArray,
    by_entry: FloatArray,
    by_exit: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What sums that are held take of a gradient: effects of entries and of exits, (H, S) each."""
    n_steps = len(enter)
    later = [np.minimum(np.arange(n_steps) + lag, n_steps - 1) for lag in range(len(chances))]

    def reached(values: FloatArray) -> FloatArray:
        return np.asarray(
            enter * sum(values[at] @ chance.T for at, chance in zip(later, chances, strict=True))
        )

    def sent(values: FloatArray) -> FloatArray:
        total = np.zeros_like(values)
        for at, chance in zip(later, chances, strict=True):
            np.add.at(total, at, values @ chance)
        return leave * total

    entries, exits = reached(leave), sent(enter)
    rows, cols = np.zeros_like(enter), np.zeros_like(leave)
    for _ in range(ADJOINT_SWEEPS):
        rows = _share(by_entry - reached(cols * leave), entries)
        found = _share(by_exit - sent(rows * enter), exits)
        change = np.abs(found - cols).max()
        cols = found
        if change <= 1e-6 * max(np.abs(cols).max(), 1e-300):
            break
    return rows, cols


def learn_pattern(
    days: ServiceDays,
    kind: IntArray,
    features: Features,
    *,
    spread: float,
    pace: float | None = None,
) -> Pattern:
    """The last of `learn_pattern_steps`."""
    *_, found = learn_pattern_steps(days, kind, features, spread=spread, pace=pace)
    assert isinstance(found, Pattern)
    return found


def learn_pattern_steps(
    days: ServiceDays,
    kind: IntArray,
    features: Features,
    *,
    spread: float,
    pace: float | None = None,
) -> Iterator[str | Pattern]:
    """The pattern of who goes where; yields a message for each step of the work.

    Steps are hours at least. Paces of trips are tried unless one is given; then weights of the
    features are learned, and last effects of pairs, which are thought to have the standard
    deviation ``spread`` (of a logarithm). What strays is not independent: pairs' scores vary
    ``excess`` times as much as they would by chance, and by so much the evidence is tempered, of
    the effects as of the weights.
    """
    days = days.by_hour()
    if np.bincount(kind).max(initial=0) < FEWEST_DAYS:
        yield unlearned(features, spread)
        return
    tried: list[tuple[float, float | None, _Straying, FloatArray]] = []
    paces = (pace,) if pace is not None or features.km is None else PACES
    for each in paces:
        # What a pace explains rises up to the best one and falls behind it.
        if len(tried) > 1 and tried[-1][0] > tried[-2][0]:
            break
        yield "how who goes where hangs on distance" + (
            "" if each is None else f", {each:g} minutes a km"
        )
        straying = _Straying(days, kind, features, each)
        weights, loss = _fitted(straying)
        tried.append((loss, each, straying, weights))
    _, pace, straying, weights = min(tried, key=lambda found: found[0])
    d = features.n_stations
    none = np.zeros((d, d))
    logs = _log_weights(features, weights, none)
    yield "how far single pairs stray from that"
    information = straying.information(logs)
    _, slope = straying.loss(logs)
    of_pair = (slope + slope.T)[straying.upper]
    known = information[straying.upper]
    told = known > 1e-6 * known.max(initial=0.0)
    scores = of_pair[told] ** 2 / known[told]
    excess = max(float(np.median(scores)) / CHI2_MEDIAN, 1.0) if told.any() else 1.0
    effects = _pair_effects(straying, logs, excess / spread**2)
    sd = np.sqrt(excess / (information + excess / spread**2)) * _pairs_apart(d)
    covariance = np.asarray(excess * np.linalg.inv(_curvature(straying, weights)), dtype=np.float64)
    yield Pattern(
        features, weights, covariance, effects, sd, pace, excess, learned=True, spread=spread
    )


def _fitted(straying: _Straying) -> tuple[FloatArray, float]:
    features = straying.features
    none = np.zeros((features.n_stations,) * 2)

    def of(weights: FloatArray) -> tuple[float, FloatArray]:
        loss, slope = straying.loss(_log_weights(features, weights, none))
        gradient = np.tensordot(features.values, slope, axes=2) + RIDGE * weights
        return loss + RIDGE * float(weights @ weights) / 2, gradient

    start = np.zeros(len(features.names))
    if not len(start):
        return start, straying.loss(features.base)[0]
    found = minimize(of, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_ITERATIONS})
    return np.asarray(found.x), float(found.fun)


def _curvature(straying: _Straying, weights: FloatArray) -> FloatArray:
    """Second derivatives (F, F) of the loss by the weights, by differences."""
    features, n = straying.features, len(weights)
    none = np.zeros((features.n_stations,) * 2)

    def slope(at: FloatArray) -> FloatArray:
        _, found = straying.loss(_log_weights(features, at, none))
        return np.tensordot(features.values, found, axes=2) + RIDGE * at

    if not n:
        return np.zeros((0, 0))
    step = 1e-2
    rows = [
        (slope(weights + step * unit) - slope(weights - step * unit)) / (2 * step)
        for unit in np.eye(n)
    ]
    found = (np.stack(rows) + np.stack(rows).T) / 2
    values, vectors = np.linalg.eigh(found)
    return np.asarray(vectors @ np.diag(np.maximum(values, RIDGE)) @ vectors.T)


def _pair_effects(straying: _Straying, logs: FloatArray, weight: float) -> FloatArray:
    upper, d = straying.upper, len(logs)

    def whole(values: FloatArray) -> FloatArray:
        effects = np.zeros((d, d))
        effects[upper] = values
        return effects + effects.T

    def of(values: FloatArray) -> tuple[float, FloatArray]:
        loss, slope = straying.loss(logs + whole(values))
        return loss + weight * float(values @ values) / 2, (slope + slope.T)[
            upper
        ] + weight * values

    start = np.zeros(len(upper[0]))
    found = minimize(of, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_ITERATIONS})
    return whole(np.asarray(found.x))
