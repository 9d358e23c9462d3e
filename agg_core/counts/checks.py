"""Where counts contradict what was learned from them: posterior predictive checks of the flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from agg_core.counts.erring import ErringPairs
from agg_core.counts.held_out import expected_next
from agg_core.counts.pairs import CountPairs
from agg_core.counts.smoothing import innovations

__all__ = ["CODES", "Doubt", "doubts_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

CODES = (
    "event", "time-and-cell", "growth", "movers-stayers", "round-trips", "persistence",
    "more-varied",
)  # fmt: skip
"""What may be doubted, in the order in which it is said."""

REPLICATES = 239
"""Times that the next counts are drawn from what was learned."""

CHANCE = 0.05 / 8
"""Chance with which each check may err, of at most as many."""

FEW, MANY = 4.0, 30.0
"""People per occupied cell up to which the next counts are drawn person by person, and up to which
they are where all can be; else they are normal, with the skewness of their sums."""

LEAST_VARIANCE = 0.5
"""Variance of a next count, people squared, from which on it is looked at where counts are taken
to be near normal; a smaller one is taken for half as much where people are drawn."""

MOST_DRAWN, MOST_KEPT = 6e6, 4e7
"""People, and next counts, that are drawn at most: with more, fewer days are looked at."""

FEWEST_PAIRS = 8
FEWEST_DAYS = 5
"""Days from which on growth is looked for."""
WEEK, WEEKS = 7, 4
"""Days of a week, and weeks from which on weeks are held against each other instead of days."""
NEARLY = 0.9

MOST_EVENTS = 0.05
"""Share of the moments that events are: with more of them something else is wrong."""

ENOUGH_DAYS = 3
"""Days from which on the middle one tells what is usual at a time of day."""

MOST_LAG, FEWEST_SUCCESSIVE = 12, 20

LEAST_MEAN = 0.5
"""Mean of standardised innovations from which on it matters."""
LEAST_CORRELATION = 0.05
FARTHER = 1.5
"""Correlation at a longer lag over that at the first one from which on it tells a round trip."""
LEAST_EXCESS = 1.2
"""Variance over the expected one from which on it matters."""
LEAST_GROWTH = 0.02
"""Change of people over the period, as a share of them, from which on it matters."""

MOST_NAMED = 3


@dataclass(frozen=True)
class Doubt:
    """Something in the counts that what was learned does not explain.

    Attributes
    ----------
    code : one of `CODES`
    sentence : what the counts show, what that means for flows, and what to do
    value : size of what is shown: of an event its squared innovations over those expected, of a
        time and cell the mean innovation in standard deviations, of growth the change over the
        period as a share, a correlation, or a variance over the expected one
    p : chance of as much where people move as was learned, no smaller than draws can tell
    """

    code: str
    sentence: str
    value: float
    p: float


def doubts_of(
    pairs: CountPairs,
    kept: Sequence[tuple[BoolArray, FloatArray]],
    cells: Sequence[str],
    *,
    expansion: float = 1.0,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Doubt, ...]:
    """What the counts show that people who move as was learned would not (Gelman et al. 1996).

    Innovations are next counts minus their mean, over their standard deviation, of pairs that were
    kept aside and by transitions learned without them. Each check is a figure of these, held
    against the same figure of `REPLICATES` sets of next counts that are drawn from the transitions:
    where all checks are right, any is wrong with a chance of 5 % at most. A mean that n pairs were
    learned from is taken to be uncertain by an n-th of the variance. What is too small to matter is
    not said.

    Of counts that err the mean is what all counts before in the run foretell, and the error is part
    of the variance. Suppressed counts, those outside of all cells and those that hardly vary are
    left out.

    Parameters
    ----------
    pairs : all pairs, with times of day as the transitions have them
    kept : masks (P,) of pairs kept aside, and transitions (H or 1, d, d) learned without them
    cells : names of the cells
    expansion : people that each counted one stands for
    """
    found = list(_growth(pairs, len(cells)))
    drawn = _drawn(pairs, kept, len(cells), np.random.default_rng(random_state))
    if drawn is not None:
        found += _of_innovations(drawn, tuple(cells), expansion)
    return tuple(sorted(found, key=lambda doubt: CODES.index(doubt.code)))


@dataclass(frozen=True)
class _Drawn:
    """Innovations u (1 + R, P, d) over ``deviation`` (P, d): those observed, then those drawn.

    They are 0 where ``seen`` (P, d) is False.
    """

    pairs: CountPairs
    u: npt.NDArray[np.float32]
    seen: BoolArray
    deviation: FloatArray

    def without(self, rows: BoolArray) -> _Drawn:
        """The same with some pairs (P,) unseen."""
        return replace(
            self, u=np.where(rows[:, None], np.float32(0), self.u), seen=self.seen & ~rows[:, None]
        )


def _drawn(
    pairs: CountPairs,
    kept: Sequence[tuple[BoolArray, FloatArray]],
    n_cells: int,
    rng: np.random.Generator,
) -> _Drawn | None:
    """Innovations of pairs kept aside, None if there are too few of them."""
    tested = np.any([aside for aside, _ in kept], axis=0)
    people = float(pairs.before[tested].sum()) * REPLICATES
    by_person = pairs.crowd <= (MANY if people <= MOST_DRAWN else FEW)
    by_person &= not isinstance(pairs, ErringPairs)
    tested = _affordable(pairs, tested, by_person=by_person)
    rows = np.flatnonzero(tested)
    if len(rows) < FEWEST_PAIRS:
        return None
    d, least = pairs.n_states, LEAST_VARIANCE / 2 if by_person else LEAST_VARIANCE
    u = np.zeros((1 + REPLICATES, len(rows), d), dtype=np.float32)
    variance = np.zeros((len(rows), d))
    for aside, transmats in kept:
        part = pairs.take(rows[aside[rows]])
        learned = pairs.take(~aside).pairs_per_slot if len(transmats) > 1 else [np.sum(~aside)]
        shift = rng.standard_normal((len(learned), REPLICATES, d)).astype(np.float32)
        at = zip(np.flatnonzero(aside[rows]), part.which(transmats), strict=True)
        steps = _steps(part, transmats, rng, by_person=by_person)
        for (p, which), (far, var, draws) in zip(at, steps, strict=True):
            deviation = np.sqrt(np.maximum(var, least))
            unsure = np.sqrt(var / max(int(learned[which]), 1)) / deviation
            u[0, p], u[1:, p], variance[p] = far / deviation, draws / deviation, var
            u[1:, p] += shift[which] * unsure.astype(np.float32)
    pairs = pairs.take(rows)
    seen = ~(pairs.open_before | pairs.open_after)
    seen[:, n_cells:] = False
    seen &= variance > 0 if by_person else variance >= LEAST_VARIANCE
    deviation = np.sqrt(np.maximum(variance, least))
    u[:, ~seen] = 0.0
    return _Drawn(pairs, u, seen, deviation)


def _steps(
    pairs: CountPairs, transmats: FloatArray, rng: np.random.Generator, *, by_person: bool
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Innovation (d,) of each pair, its variance (d,), and innovations that are drawn (R, d)."""
    if isinstance(pairs, ErringPairs):
        told = innovations(pairs, transmats)
        for far, spread in zip(told.far, told.spread, strict=True):
            yield far, np.diagonal(spread), _normal(spread, rng)
        return
    draws = _person_draws if by_person else _skew_draws
    fars = pairs.after - expected_next(pairs, transmats)
    for which, y, far in zip(pairs.which(transmats), pairs.before, fars, strict=True):
        A = transmats[which]
        yield far, np.maximum(y @ (A * (1 - A)), 0.0), draws(y, A, rng)


def _affordable(pairs: CountPairs, tested: BoolArray, *, by_person: bool) -> BoolArray:
    """Pairs (P,) to look at: those kept aside, or those of days spread over the period."""
    people = pairs.before.sum(axis=1) * REPLICATES / MOST_DRAWN
    cost = pairs.n_states * REPLICATES / MOST_KEPT + (people if by_person else 0.0)
    total = float((cost * tested).sum())
    if total <= 1:
        return tested
    days = np.unique(pairs.day[tested])
    n = max(int(len(days) / total), 1)
    spread = days[np.unique(np.linspace(0, len(days) - 1, n).astype(int))]
    return np.asarray(tested & np.isin(pairs.day, spread))


def _person_draws(y: FloatArray, A: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Next counts minus their mean (R, d), of people (d,) who are drawn one by one."""
    d = len(y)
    people = np.repeat(np.arange(d), np.rint(y).astype(np.int64))
    # Rows one behind the other, so that one search finds the next cells of all.
    ends = np.minimum(np.cumsum(A, axis=1), 1.0)
    ends[:, -1] = 1.0
    row_ends = (ends + np.arange(d)[:, None]).ravel()
    there = np.searchsorted(row_ends, rng.random((REPLICATES, len(people))) + people, side="right")
    there = np.minimum(there - people * d, d - 1) + d * np.arange(REPLICATES)[:, None]
    counts = np.bincount(there.ravel(), minlength=d * REPLICATES).reshape(REPLICATES, d)
    return np.asarray(counts - np.rint(y) @ A)


def _skew_draws(y: FloatArray, A: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The same for many people: normal, and skewed as the sum of so many who come or do not.

    The skewness is the first term of Cornish & Fisher's expansion.
    """
    V = np.diag(y @ A) - (A.T * y) @ A
    var = np.maximum(np.diagonal(V), 1e-9)
    skewness = y @ (A * (1 - A) * (1 - 2 * A)) / var**1.5
    skewness = np.where(var >= LEAST_VARIANCE, skewness, 0.0)
    normal = _normal(V, rng) / np.sqrt(var)
    return np.asarray(np.sqrt(var) * (normal + skewness / 6 * (normal**2 - 1)))


def _normal(V: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Normal draws (R, d) with a covariance that may have no inverse."""
    own = np.diagonal(V)
    root = np.linalg.cholesky(V + np.diag(1e-6 + 1e-9 * own))
    return np.asarray(rng.standard_normal((REPLICATES, len(V))) @ root.T)


def _of_innovations(drawn: _Drawn, cells: tuple[str, ...], expansion: float) -> Iterator[Doubt]:
    doubt, events = _events(drawn, cells, expansion)
    if doubt is not None:
        yield doubt
        drawn = drawn.without(events)
    means, n, left = _by_time(drawn)
    yield from _times_and_cells(drawn, means, n, left, cells, expansion)
    yield from _memory(drawn.pairs, left)
    yield from _variance(left)


def _p(observed: float, drawn: FloatArray) -> float:
    """Chance of at least as much, by rank among what was drawn."""
    return float((1 + np.sum(drawn >= observed)) / (1 + len(drawn)))


def _events(
    drawn: _Drawn, cells: tuple[str, ...], expansion: float
) -> tuple[Doubt | None, BoolArray]:
    """Moments far beyond the others and beyond chance, and which they are (P,).

    What all moments have more of, in the middle or in how they differ, is no event, nor is what a
    time of day has on most days.
    """
    own = drawn.u.copy()
    for slot in range(len(drawn.pairs.slots)):
        at = drawn.pairs.slot == slot
        if at.sum() >= ENOUGH_DAYS:
            own[:, at] -= np.median(own[:, at], axis=1, keepdims=True)
    square = np.einsum("rpc,rpc->rp", own, own).astype(np.float64)
    usual = square[1:].mean(axis=0)
    # What was observed is among those that tell mean and spread, as each that was drawn is.
    z = (square - square.mean(axis=0)) / np.maximum(square.std(axis=0), 1e-9)
    low, middle, high = np.quantile(z, [0.25, 0.5, 0.75], axis=1)
    wide = (high - low) / np.median((high - low)[1:])
    z = (z - np.maximum(middle, 0.0)[:, None]) / np.maximum(wide, 1.0)[:, None]
    most = z.max(axis=1)
    p, beyond = _p(most[0], most[1:]), z[0] > most[1:].max()
    if p > CHANCE or beyond.sum() > max(MOST_EVENTS * len(beyond), 2):
        return None, np.zeros(len(beyond), dtype=bool)
    size = square[0] / np.maximum(usual, 1e-9)
    worst = int(np.argmax(np.where(beyond, size, 0.0)))
    innovation = own[0, worst] * drawn.deviation[worst]
    where = np.argsort(-np.abs(own[0, worst]))[:MOST_NAMED]
    changes = _listed(
        [f"{_more(expansion * innovation[c])} in cell {cells[c]}" for c in where if innovation[c]]
    )
    others = int(beyond.sum()) - 1
    also = f", and {others} other moment{'s are' if others > 1 else ' is'} as far off" * (
        others > 0
    )
    sentence = (
        f"The step that begins {_moment(drawn.pairs, worst)} is far from what is usual then "
        f"({changes}{also}): usual flows do not describe it; look at that day by "
        "itself (--day), or leave it out and learn again."
    )
    return Doubt("event", sentence, float(size[worst]), p), beyond


def _by_time(drawn: _Drawn) -> tuple[npt.NDArray[np.float32], IntArray, npt.NDArray[np.float32]]:
    """Mean innovations (1 + R, H, d) by time of day, their numbers (H, d), and what is left.

    What is left (1 + R, P, d) is scaled to the variance that it has without a mean; where a time
    of day came once only, the mean of the cell is taken off.
    """
    slot, H = drawn.pairs.slot, len(drawn.pairs.slots)
    n = np.stack([drawn.seen[slot == h].sum(axis=0) for h in range(H)]).astype(np.int64)
    means = np.stack([drawn.u[:, slot == h].sum(axis=1) for h in range(H)], axis=1)
    means /= np.maximum(n, 1).astype(np.float32)
    if n.max(initial=0) > 1:
        off, of = means[:, slot], n[slot]
    else:
        of = np.broadcast_to(drawn.seen.sum(axis=0), drawn.seen.shape)
        off = drawn.u.sum(axis=1, keepdims=True) / np.maximum(of, 1).astype(np.float32)
    scale = np.where(drawn.seen & (of > 1), np.sqrt(of / np.maximum(of - 1, 1)), 0.0)
    return means, n, (drawn.u - off) * scale.astype(np.float32)


def _times_and_cells(
    drawn: _Drawn, means: npt.NDArray[np.float32], n: IntArray, left: npt.NDArray[np.float32],
    cells: tuple[str, ...], expansion: float,
) -> Iterator[Doubt]:  # fmt: skip
    """Times of day and cells whose next counts lie on one side of what was learned."""
    spread = np.sqrt(np.maximum((left**2).sum(axis=1) / np.maximum(_rows(left), 1), 1.0))
    size = np.abs(means) * np.sqrt(n) / spread[:, None, :]
    most = size.max(axis=(1, 2)).astype(np.float64)
    beyond = (size[0] > most[1:].max()) & (np.abs(means[0]) >= LEAST_MEAN)
    if not beyond.any():
        return
    slot, cell = np.unravel_index(np.argmax(np.where(beyond, size[0], 0.0)), beyond.shape)
    at = drawn.pairs.slot == slot
    people = float((drawn.u[0, at, cell] * drawn.deviation[at, cell]).sum()) / n[slot, cell]
    others = int(beyond.sum()) - 1
    also = f", and so at {others:,} other times and cells" * (others > 0)
    sentence = (
        f"In the step from {drawn.pairs.slots[slot]} cell {cells[cell]} comes out with "
        f"{_more(expansion * people)} than learned flows lead to, on average over "
        f"{n[slot, cell]:,} days kept aside{also}: flows into and out of it at that time differ "
        "from those shown; learn each time of day by itself, or from more days."
    )
    p = _p(size[0, slot, cell], most[1:])
    yield Doubt("time-and-cell", sentence, float(means[0, slot, cell]), p)


def _memory(pairs: CountPairs, left: npt.NDArray[np.float32]) -> Iterator[Doubt]:
    """Innovations of a cell that hang together, up to `MOST_LAG` steps apart."""
    if pairs.moment is None:
        return
    lags, zs, rs = [], [], []
    for lag in range(1, MOST_LAG + 1):
        later = np.searchsorted(pairs.moment, pairs.moment + lag)
        first = np.flatnonzero(later < pairs.n_pairs)
        first = first[pairs.moment[later[first]] == pairs.moment[first] + lag]
        if len(first) < FEWEST_SUCCESSIVE:
            continue
        a, b = left[:, first], left[:, later[first]]
        products = np.einsum("rpc,rpc->rp", a, b).astype(np.float64)
        total = products.sum(axis=1)
        lags.append(lag)
        zs.append(total / np.sqrt(np.maximum((products**2).sum(axis=1), 1e-12)))
        size = np.sqrt(np.einsum("rpc,rpc->r", a, a) * np.einsum("rpc,rpc->r", b, b))
        rs.append(total[0] / max(float(size[0]), 1e-12))
    if not lags:
        return
    z, r = np.array(zs), np.array(rs)
    # The first lag is a check of its own, the others are one.
    own = 1 if lags[0] == 1 else 0
    least = [z[0, 1:]] * own + [z[own:, 1:].min(axis=0, initial=0.0)] * (len(z) - own)
    p = np.array([_p(-at[0], -drawn) for at, drawn in zip(z, least, strict=True)])
    sure = (p <= CHANCE) & (r <= -LEAST_CORRELATION)
    if own:
        ahead = _p(z[0, 0], z[0, 1:])
        if ahead <= CHANCE and r[0] >= LEAST_CORRELATION:
            yield Doubt("persistence", PERSISTENCE.format(r=r[0]), float(r[0]), ahead)
    k = int(np.argmin(np.where(sure, z[:, 0], np.inf)))
    # What falls off from the first lag on is no trip of a certain length.
    if sure[k] and lags[k] > 1 and not (own and r[k] > FARTHER * r[0]):
        sentence = ROUND_TRIPS.format(r=r[k], lag=lags[k])
        yield Doubt("round-trips", sentence, float(r[k]), float(p[k]))
    elif own and sure[0]:
        yield Doubt("movers-stayers", MOVERS.format(r=r[0]), float(r[0]), float(p[0]))


PERSISTENCE = (
    "Where more people than expected came in a step, fewer than expected leave in the next one "
    "(correlation {r:.2f}): people stay longer than learned flows say, or something besides the "
    "time of day moves many of them at once and is taken for movement of each, so that flows may "
    "be too many; learn from days that are alike, or state the error of the counts (--count-error)."
)
MOVERS = (
    "Where more people than expected came in a step, more than expected leave in the next one "
    "(correlation {r:.2f}): the same people go on moving, or return at once, so that who leaves is "
    "not just anybody, and movement that is undone within a step is not seen; flows are right for "
    "the average person only; count at shorter steps, or take trajectories."
)
ROUND_TRIPS = (
    "Where more people than expected came, more than expected leave {lag} steps later "
    "(correlation {r:.2f}): people return after about that time, which learned flows, that forget "
    "where people came from, do not know; chains of flows are not journeys; take trajectories to "
    "follow people."
)


def _rows(left: npt.NDArray[np.float32]) -> IntArray:
    """Innovations of each cell that are there, (d,)."""
    return np.asarray((left != 0).any(axis=0).sum(axis=0), dtype=np.int64)


def _variance(left: npt.NDArray[np.float32]) -> Iterator[Doubt]:
    """Innovations that vary more than chance lets them."""
    sums = (left**2).sum(axis=(1, 2)).astype(np.float64)
    ratio = float(sums[0] / max(sums[1:].mean(), 1e-12))
    p = _p(sums[0], sums[1:])
    if p > CHANCE or ratio < LEAST_EXCESS:
        return
    sentence = (
        f"Counts change {ratio:.2g} times as much (in variance) as they do if people move one by "
        "one: people move together, days differ, or counts err though they are taken for exact; "
        "flows are less sure than their intervals say, and may be too many; state the error of the "
        "counts (--count-error), or learn from days that are alike."
    )
    yield Doubt("more-varied", sentence, ratio, p)


def _growth(pairs: CountPairs, n_cells: int) -> Iterator[Doubt]:
    """A trend of the people in all cells: the mean change from day to day, or week to week.

    Changes have a mean of 0 under any wandering without a trend, so that days need not be
    independent.
    """
    totals = pairs.before[:, :n_cells].sum(axis=1)
    days = np.unique(pairs.day)
    # Days of which about as many moments were counted can be held against each other.
    number = np.array([np.sum(pairs.day == day) for day in days])
    days = days[number >= NEARLY * number.max()]
    of_day = np.array([totals[pairs.day == day].mean() for day in days])
    if len(of_day) >= WEEK * WEEKS:
        of_day = of_day[: len(of_day) // WEEK * WEEK].reshape(-1, WEEK).mean(axis=1)
    elif len(of_day) < FEWEST_DAYS:
        return
    change = np.diff(of_day)
    share = float(change.sum() / max(of_day.mean(), 1e-9))
    if abs(share) < LEAST_GROWTH:
        return
    error = max(float(change.std(ddof=1)) / np.sqrt(len(change)), 1e-12)
    p = float(2 * stdtr(len(change) - 1, -abs(float(change.mean())) / error))
    if p > CHANCE:
        return
    word = "grow" if share > 0 else "fall"
    sentence = (
        f"People in all cells {word} by {abs(share):.0%} over the {pairs.n_days:,} days: the "
        "change is taken for people who come from outside or for errors of the counts, and flows "
        "of the first and last days differ; learn from a shorter period, or bring the counts to "
        "one sum first if it is coverage that changed."
    )
    yield Doubt("growth", sentence, share, p)


def _moment(pairs: CountPairs, p: int) -> str:
    time = pairs.slots[pairs.slot[p]]
    if pairs.date is None:
        return f"at {time} of day {pairs.day[p] + 1}"
    return f"on {np.datetime64(int(pairs.date[p]), 'D')} at {time}"


def _more(people: float) -> str:
    return f"{abs(people):,.1f} people {'more' if people > 0 else 'fewer'}"


def _listed(parts: Sequence[Any]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
