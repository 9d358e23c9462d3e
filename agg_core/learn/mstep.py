"""The M-step: what is counted of people, the pull of a prior, and the parameters from both."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.moves import AnyMoves, at_origin, entries, moves_like, origin_sums
from agg_core.learn.esteps.base import ExpectedCounts
from agg_core.learn.gravity import gravity_rows
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = [
    "PARTS",
    "ROUNDING",
    "Pull",
    "Statistics",
    "check_parts",
    "distance",
    "maximised",
    "remaining",
]

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-13
"""Steps shorter than this are what sums of double precision differ by."""

PARTS = ("startprob", "transmat", "emission")
"""Parts of the model that can be held fixed."""


@dataclass(frozen=True)
class Statistics:
    """What an M-step needs, a sum over people: sums of these belong to the data together.

    Attributes
    ----------
    start : (d,) people in each state at the first step
    transitions : (d, d) moves, summed over the T - 1 steps
    emission : (d, p) statistics of the emission, or None if it is not learned
    """

    start: FloatArray
    transitions: AnyMoves
    emission: FloatArray | None = None

    @classmethod
    def of(
        cls, expected: ExpectedCounts, hmm: HMM, aggregates: Aggregates, table: TokenLikelihoods
    ) -> Self:
        """Those of an E-step that was made under ``hmm``."""
        emission = None
        if expected.emission is not None:
            emission = hmm.emission.statistics(aggregates, table, expected.emission)
        return cls(expected.start, expected.transitions, emission)

    def __add__(self, other: Statistics) -> Statistics:
        emission = None
        if self.emission is not None and other.emission is not None:
            emission = self.emission + other.emission
        people = entries(self.transitions) + entries(other.transitions)
        return Statistics(self.start + other.start, moves_like(self.transitions, people), emission)

    def __mul__(self, factor: float) -> Statistics:
        return Statistics(
            self.start * factor,
            moves_like(self.transitions, entries(self.transitions) * factor),
            None if self.emission is None else self.emission * factor,
        )

    def __sub__(self, other: Statistics) -> Statistics:
        return self + other * -1.0

    def towards(self, other: Statistics, share: float) -> Statistics:
        """This share of the way to others."""
        return self * (1 - share) + other * share


@dataclass(frozen=True)
class Pull:
    """A prior on transitions: ``strength`` people more in each row, moving as gravity predicts.

    Gravity is learned from all rows together (see `agg_core.learn.gravity.gravity_rows`): the share
    of people who stay, how much each state attracts those who move, and how steeply their chances
    fall along ``shape``. This is empirical Bayes: a row that few people were seen in borrows from
    the others, a row of many goes its own way.

    Attributes
    ----------
    shape : (d, d) chances of moves; zeros stay zero
    strength : people, 0 for no pull
    """

    shape: AnyMoves
    strength: float

    def pseudo_counts(self, transitions: AnyMoves) -> FloatArray:
        """People to add to the entries of the expected moves (d, d)."""
        return self.strength * entries(gravity_rows(transitions, self.shape))


def check_parts(fixed: Collection[str]) -> None:
    """Raise if ``fixed`` names no part of the model."""
    unknown = set(fixed) - set(PARTS)
    if unknown:
        raise InputError(
            f"fixed names {sorted(unknown)}, which is no part of the model; use any of {PARTS}.",
            code="unknown-part",
        )


def maximised(
    statistics: Statistics, hmm: HMM, *, fixed: Collection[str] = (), pull: Pull | None = None
) -> HMM:
    """The parameters that make the statistics most likely (Proposition 1 of the paper).

    The parts in ``fixed`` stay, and so do rows that nobody is expected in.
    """
    startprob, transmat, emission = hmm.startprob, hmm.transmat, hmm.emission
    if "startprob" not in fixed and statistics.start.any():
        startprob = statistics.start / statistics.start.sum()
    moves = statistics.transitions
    counts = entries(moves)
    if "transmat" not in fixed and counts.any():
        if pull is not None and pull.strength > 0:
            counts = counts + pull.pseudo_counts(moves)
        people = at_origin(moves, origin_sums(moves_like(moves, counts)))
        learned = counts / np.where(people > 0, people, 1.0)
        transmat = moves_like(transmat, np.where(people > 0, learned, entries(transmat)))
    if statistics.emission is not None and "emission" not in fixed:
        emission = emission.from_statistics(statistics.emission)
    return HMM(startprob, transmat, emission)


def distance(before: HMM, after: HMM, row_people: FloatArray) -> float:
    """How far apart two models are: the largest of three L1 distances.

    That of startprob, of the rows of transmat averaged over the people (d,) in them, both 0 to 2,
    and of the emission (see `Emission.distance`).
    """
    apart = [float(np.abs(after.startprob - before.startprob).sum())]
    people = row_people.sum()
    if people > 0:
        moved = np.abs(entries(after.transmat) - entries(before.transmat))
        rows = origin_sums(moves_like(after.transmat, moved))
        apart.append(float(rows @ row_people / people))
    if after.emission is not before.emission:
        apart.append(before.emission.distance(after.emission))
    return max(apart)


def remaining(first: float, second: float) -> float:
    """How far it is to where the steps of an iteration lead, from the last two of them.

    That is second + second q + second q^2 + ... with q = second / first; where steps do not grow
    shorter nothing can be said, and it is 2, the largest distance, or the step if that is longer.
    A step that is all rounding is the last.
    """
    if second < ROUNDING:
        return second
    farthest = max(2.0, second)
    if second >= first or not np.isfinite(first):
        return farthest if second > 0 else 0.0
    return min(second / (1 - second / first), farthest)
