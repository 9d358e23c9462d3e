"""Transitions by time of day, tied: what rows, places and hours have in common stands once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agg_core.base.remembered import later
from agg_core.counts.pairs import WEEKEND
from agg_core.learn.gravity import gravity_rows, normalised

__all__ = ["Strength", "Tied", "joined", "tied_rows"]

FloatArray = npt.NDArray[np.float64]

LEAST_PULL = 0.05
"""People that pull each row at least: a move that was not drawn for a while must not be lost."""

FIRST_STEPS, STEPS = 20, 3
"""Rounds of proportional scaling from the beginning, and from where an M-step left the layers."""

LEAST_SHARE = 1e-9
EVEN = 1.0
"""People who stay and who leave besides, so that neither is ruled out at a time of day."""


@dataclass(frozen=True)
class Strength:
    """How strongly transitions are tied together, in people.

    Attributes
    ----------
    prior : people more in each row, who move as gravity predicts (see
        `agg_core.learn.gravity.gravity_rows`); 0 for none
    hours : people who pull each cell's attraction, and the share who leave it, at a time of day
        towards those of the whole day; None for one transition matrix at all times
    own : people who pull a row at a time of day towards the day's row with
        the effects of that time; None: nothing else
    day_types : whether times of day differ between weekdays and weekends
    own_types : numbers of other types of days, of `CountPairs.day_types`, that times of day differ
        on
    panel : what a move of a panel counts for, in moves of others; 0 where it is no evidence of them
    matrix : people of each row, on average, who leave it as an old matrix says
    """

    prior: float
    hours: float | None = None
    own: float | None = None
    day_types: bool = False
    own_types: tuple[int, ...] = later(())
    panel: float = later(0.0)
    matrix: float = later(0.0)

    @property
    def by_time(self) -> bool:
        """Whether there is a matrix for every time of day."""
        return self.hours is not None

    @property
    def n_layers(self) -> int:
        """Layers that are learned: rows of the day, times of it, types of days, rows of a time."""
        return 1 + (self.hours is not None) + len(self.apart) + (self.own is not None)

    @property
    def apart(self) -> tuple[int, ...]:
        """Numbers of the types of days that are told apart from others, in order."""
        return (*(WEEKEND,) * self.day_types, *self.own_types)

    def with_type(self, kind: int) -> Strength:
        """The same with one type of days more apart, by its number."""
        if kind == WEEKEND:
            return replace(self, day_types=True)
        return replace(self, own_types=tuple(sorted({*self.own_types, kind})))


@dataclass(frozen=True)
class Tied:
    """What rows have in common; H is 1 where all times of day share one matrix.

    Attributes
    ----------
    going : (d, d) chances of destinations of those who leave, the diagonal is 0
    leaving : (d,) odds of leaving each cell
    attraction : (H, d) factor by which a destination draws more at a time of day
    pace : (H,) factor of the odds of leaving at a time of day
    transmats : (H, d, d) transitions
    """

    going: FloatArray
    leaving: FloatArray
    attraction: FloatArray
    pace: FloatArray
    transmats: FloatArray


def tied_rows(
    moves: FloatArray, shape: FloatArray, strength: Strength, before: Tied | None = None
) -> Tied:
    """The M-step: transitions from expected moves (H, d, d), tied as ``strength`` says.

    Three layers, each pulled towards the one before it by so many people::

        gravity        share of leavers, attraction of the destination, decay with distance
        one day        odds of leaving l(i), destinations D(i, j) of those who leave
        time of day    odds l(i) c_h, destinations D(i, j) a_h(j), normalised; then shares of
                       leavers of its own, and a row of its own

    so that what few people were seen to do borrows from what many did (empirical Bayes). Leaving
    and destinations are apart, as a cell that draws people does not hold its own by that.
    ``shape`` (d, d) falls with distance. The layers of a day are fitted by proportional scaling,
    a few steps from where ``before`` left them.
    """
    pooled = moves.sum(axis=0)
    pull = max(strength.prior, LEAST_PULL)
    if strength.hours is None:
        return _without_time_effects(pooled, shape, pull, 1)
    tied = _without_time_effects(pooled, shape, pull, len(moves)) if before is None else before
    seen = _Seen.of(moves, pooled)
    for _ in range(FIRST_STEPS if before is None else STEPS):
        tied = _scaled(tied, seen, shape, pull, strength.hours)
    transmats = _with_time_effects(tied, seen, strength.hours)
    if strength.own is not None:
        transmats = normalised(moves + strength.own * transmats)
    return replace(tied, transmats=transmats)


@dataclass(frozen=True)
class _Seen:
    """Sums of expected moves (H, d, d), which are all that scaling looks at.

    ``people``, ``leavers`` and ``arrivals`` (H, d) begin in each cell, leave it and come to it;
    ``moved`` (d, d) go elsewhere at any time.
    """

    people: FloatArray
    leavers: FloatArray
    arrivals: FloatArray
    moved: FloatArray

    @classmethod
    def of(cls, moves: FloatArray, pooled: FloatArray) -> _Seen:
        """Those of moves, whose sum over times is ``pooled`` (d, d)."""
        own = np.arange(len(pooled))
        people, stays = moves.sum(axis=2), moves[:, own, own]
        moved = pooled.copy()
        moved[own, own] = 0.0
        return cls(people, people - stays, moves.sum(axis=1) - stays, moved)


def _apart(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Destinations of those who leave (d, d), and odds of leaving (d,), of rows."""
    going = rows * ~np.eye(len(rows), dtype=bool)
    leave = going.sum(axis=1)
    return normalised(going), leave / np.maximum(1 - leave, LEAST_SHARE)


def _without_time_effects(pooled: FloatArray, shape: FloatArray, pull: float, n_slots: int) -> Tied:
    """Rows of the moves of a whole day (d, d) pulled to gravity, which no time of day changes."""
    day = normalised(pooled + pull * gravity_rows(pooled, shape))
    going, leaving = _apart(day)
    return Tied(going, leaving, np.ones((n_slots, len(day))), np.ones(n_slots), day[None])


def _scaled(tied: Tied, seen: _Seen, shape: FloatArray, pull: float, hours: float) -> Tied:
    """A round of proportional scaling: what times change, then what they have in common."""
    day = joined(tied.going, tied.leaving / (1 + tied.leaving))
    prior = pull * gravity_rows(seen.people.sum(axis=0)[:, None] * day, shape)
    going, attraction = _scaled_destinations(tied, seen, prior, max(hours, LEAST_PULL))
    leaving, pace = _scaled_leaving(tied, seen, prior)
    return replace(tied, going=going, leaving=leaving, attraction=attraction, pace=pace)


def _scaled_destinations(
    tied: Tied, seen: _Seen, prior: FloatArray, held: float
) -> tuple[FloatArray, FloatArray]:
    """Destinations of the day, and attractions of times, nearer to the moves.

    ``prior`` (d, d) are moves more on the day, ``held`` people more who come to each cell at each
    time as on the day (the mode under a gamma prior). Destinations of a time differ from those of
    the day by a factor of each origin and one of each destination: sums over them are products of
    small matrices, and no table (H, d, d) is written out.
    """
    weighed = _per_weight(seen.leavers, tied.going, tied.attraction)
    attraction = (seen.arrivals + held) / (weighed @ tied.going + held)
    elsewhere = prior.copy()
    np.fill_diagonal(elsewhere, 0.0)
    weighed = _per_weight(seen.leavers, tied.going, attraction)
    expected = tied.going * (weighed.T @ attraction + elsewhere.sum(axis=1)[:, None])
    ratio = np.divide(
        seen.moved + elsewhere, expected, out=np.zeros_like(expected), where=expected > 0
    )
    return normalised(tied.going * ratio), attraction


def _per_weight(leavers: FloatArray, going: FloatArray, attraction: FloatArray) -> FloatArray:
    """Leavers (H, d) over the sum of what ``attraction`` (H, d) makes of their destinations."""
    total = attraction @ going.T
    return np.divide(leavers, total, out=np.zeros_like(leavers), where=total > 0)


def _scaled_leaving(tied: Tied, seen: _Seen, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Odds of leaving on the day, and paces of times, nearer to the moves."""
    people, leavers = seen.people, seen.leavers
    odds = tied.leaving * tied.pace[:, None]
    gone, left = (people * odds / (1 + odds)).sum(axis=1), leavers.sum(axis=1)
    kept, stayed = people.sum(axis=1) - gone, people.sum(axis=1) - left
    pace = tied.pace * (left + EVEN) / (gone + EVEN) * (kept + EVEN) / (stayed + EVEN)
    odds = tied.leaving * pace[:, None]
    share, pulled = tied.leaving / (1 + tied.leaving), prior.sum(axis=1)
    gone = (people * odds / (1 + odds)).sum(axis=0) + pulled * share
    left = leavers.sum(axis=0) + pulled - np.diagonal(prior)
    everybody = people.sum(axis=0) + pulled
    return tied.leaving * _ratio(left, gone) * _ratio(everybody - gone, everybody - left), pace


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(a, LEAST_SHARE) / np.maximum(b, LEAST_SHARE))


def _with_time_effects(tied: Tied, seen: _Seen, hours: float) -> FloatArray:
    """Rows of each time of day (H, d, d): a share of leavers of its own, held by ``hours``."""
    held = max(hours, LEAST_PULL)
    odds = tied.leaving * tied.pace[:, None]
    share = (seen.leavers + held * odds / (1 + odds)) / (seen.people + held)
    return joined(normalised(tied.going * tied.attraction[:, None, :]), share)


def joined(going: FloatArray, share: FloatArray) -> FloatArray:
    """Rows of which ``share`` (..., d) leave, by ``going`` (..., d, d)."""
    rows = going * share[..., None]
    own = np.arange(going.shape[-1])
    rows[..., own, own] = 1 - share
    return rows
