"""What gates counted: people who passed a place one way while they went from cell to cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.learn.gravity import normalised

__all__ = [
    "NO_GATES",
    "CrossingCounts",
    "GateCells",
    "MeanCrossings",
    "conditional_flows",
    "each_passing",
    "met_by_gates",
    "posterior_passing",
    "varied_by_gates",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LEAST = 1.0
"""People whose variance a count has at least, so that a gate that nobody passed is not exact."""

STEPS, FARTHEST = 12, 1.0
"""Steps to the factors of gates, and how far a logarithm of these goes in one of them."""

SMALLEST = 1e-10
"""Part of the largest eigenvalue below which nothing is known: sums of next counts are fixed."""


class Pairs(Protocol):
    """What is asked of pairs of counts (`agg_core.counts.pairs.CountPairs`)."""

    @property
    def before(self) -> FloatArray:
        """People at the first moment of each, (P, d)."""

    @property
    def after(self) -> FloatArray:
        """And at the next one."""

    @property
    def crossings(self) -> CrossingCounts | None:
        """What gates counted within them."""

    def which(self, transmats: FloatArray) -> IntArray:
        """The matrix that people of each pair move by."""


@dataclass(frozen=True)
class CrossingCounts:
    """Counts of G gates within P pairs of moments, and how far they err.

    A count c of a gate is the sum of the moves that pass it, and an error with the variance
    e + (s e)^2, e being the mean of its counts at that time of day: the people who pass it are
    counted one by one, and a share s by which each count is wrong. By e rather than by c, as counts
    that are small by chance would weigh more. An error that all counts of a gate share, or all of
    those at one time of day, is ``bias`` (or ``bias_then``), a share too: n counts with it tell no
    more together than one of them, so that it is in the variance of each n times.

    Attributes
    ----------
    moves : (G, d * d) how often whoever goes from one state to another passes each gate, the origin
        times d plus the dest
    counts : (P, G) people, not a number where a gate did not count
    slot : (P,) time of day of each pair
    relative : (G,) the share s
    bias, bias_then : (G,) and (H, G)
    rough : how roughly transitions foretell who passes a gate at a time of day, as a share
    """

    moves: sparse.csr_array
    counts: FloatArray
    slot: IntArray
    relative: FloatArray
    bias: FloatArray
    bias_then: FloatArray
    rough: float = 0.0

    @classmethod
    def of(
        cls,
        moves: sparse.csr_array,
        counts: FloatArray,
        slot: IntArray,
        relative: FloatArray,
        n_slots: int,
    ) -> CrossingCounts:
        """Counts that share no error, at so many times of day."""
        none = np.zeros(counts.shape[1])
        return cls(moves, counts, slot, relative, none, np.zeros((n_slots, len(none))))

    @property
    def n_gates(self) -> int:
        """Gates G."""
        return int(self.moves.shape[0])

    @property
    def n_states(self) -> int:
        """Cells, and outside if there is one, d."""
        return math.isqrt(self.moves.shape[1])

    @cached_property
    def seen(self) -> BoolArray:
        """Whether each gate counted within each pair, (P, G)."""
        return np.isfinite(self.counts)

    def by_slot(self, values: FloatArray) -> FloatArray:
        """Sums (H, G) over times of day of values (P, G), where gates counted."""
        sums = np.zeros(self.bias_then.shape)
        np.add.at(sums, self.slot, np.where(self.seen, values, 0.0))
        return sums

    @cached_property
    def level(self) -> FloatArray:
        """Mean of a gate's counts at the time of day of each pair, (P, G)."""
        n = self.by_slot(np.ones(self.counts.shape))
        mean = self.by_slot(self.counts) / np.maximum(n, 1.0)
        return np.maximum(mean[self.slot], LEAST)

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of the error of each count, (P, G); infinite where there is none."""
        square = self.relative**2 + self.bias**2 * np.maximum(self.seen.sum(axis=0), 1)
        n = self.by_slot(np.ones(self.counts.shape))
        square = square + (self.bias_then**2 * n)[self.slot]
        return np.where(self.seen, self.level + square * self.level**2, np.inf)

    @cached_property
    def precision(self) -> FloatArray:
        """One over the variance, (P, G)."""
        return 1 / self.variance

    @cached_property
    def cells(self) -> GateCells:
        """Gates by the moves that pass them."""
        return GateCells.of(self.moves)

    def take(self, rows: npt.NDArray[np.intp]) -> CrossingCounts:
        """Those of some pairs, by their numbers."""
        return replace(self, counts=self.counts[rows], slot=self.slot[rows])

    def without(self, pair: IntArray, origin: IntArray, dest: IntArray) -> CrossingCounts:
        """Counts of all but some people, who are known to have moved so within their pairs (n,)."""
        of_pair = sparse.csr_array(
            (np.ones(len(pair)), (np.arange(len(pair)), pair)), shape=(len(pair), len(self.counts))
        )
        passed = self.moves[:, origin * self.n_states + dest] @ of_pair
        return replace(self, counts=np.maximum(self.counts - passed.toarray().T, 0.0))

    def passed(self, flows: npt.NDArray[np.number]) -> FloatArray:
        """People of flows (d, d) who pass each gate, (G,)."""
        return np.asarray(self.moves @ np.asarray(flows, dtype=np.float64).ravel())

    def counted(self, passed: FloatArray, rng: np.random.Generator) -> CrossingCounts:
        """What the gates would count where so many people pass them within each pair, (P, G)."""
        wrong = 1 + self.relative * rng.standard_normal(self.counts.shape)
        wrong = wrong + self.bias * rng.standard_normal(self.n_gates)
        then = self.bias_then * rng.standard_normal(self.bias_then.shape)
        wrong = np.maximum(wrong + then[self.slot], 0.0)
        return replace(
            self, counts=np.where(self.seen, rng.poisson(wrong * passed), np.nan).astype(np.float64)
        )


@dataclass(frozen=True)
class GateCells:
    """Gates by the moves that pass them, for compiled draws.

    Those of a move from i to j are the entries ``starts[i * d + j]`` to the next start of ``gate``,
    and ``times`` how often each is passed.
    """

    starts: IntArray
    gate: IntArray
    times: FloatArray

    @classmethod
    def of(cls, moves: sparse.csr_array) -> GateCells:
        """Those of moves (G, d * d)."""
        turned = sparse.csr_array(moves.T)
        return cls(
            turned.indptr.astype(np.int64), turned.indices.astype(np.int64),
            turned.data.astype(np.float64),
        )  # fmt: skip


NO_GATES = GateCells(
    np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
)
"""What stands for them where there are none."""


@dataclass(frozen=True)
class Passing:
    """Mean and covariance of people who pass gates, given people y and transitions A.

    ``share`` (G, d) of the people of each state pass each gate, as often as they do; ``with_next``
    (G, d) is the covariance with the next counts, ``spread`` (G, G) that of gates.
    """

    share: FloatArray
    with_next: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, moves: sparse.csr_array, people: FloatArray, transmat: FloatArray) -> Passing:
        """Those of gates with ``moves`` (G, d * d)."""
        n, d = moves.shape[0], len(people)
        entries = sparse.coo_array(moves)
        gate, (origin, dest) = entries.coords[0], np.divmod(entries.coords[1], d)
        passing = entries.data * transmat[origin, dest]
        going = people[origin] * passing
        share: FloatArray = (
            np.bincount(gate * d + origin, passing, n * d).reshape(n, d).astype(float)
        )
        arriving = np.bincount(gate * d + dest, going, n * d).reshape(n, d)
        weighed = sparse.csr_array((going, (gate, entries.coords[1])), shape=moves.shape)
        together = (weighed @ moves.T).toarray()
        leaving = share * people
        with_next = np.asarray(arriving - leaving @ transmat)
        return cls(share, with_next, np.asarray(together - leaving @ share.T))


def conditional_flows(
    before: FloatArray, after: FloatArray, transmat: FloatArray, gates: CrossingCounts, pair: int
) -> FloatArray:
    """Expected flows (d, d) of one pair given both counts and what gates counted within it.

    As in `agg_core.counts.posterior.gaussian_flows`, flows are normal given the counts before; the
    counts after and those of the gates, with their error, are sums of them, and all are observed
    together. Flows may be below nobody.
    """
    here = np.flatnonzero(gates.seen[pair])
    moves = gates.moves[here]
    told = Passing.of(moves, before, transmat)
    d = len(before)
    of_next = np.diag(before @ transmat) - transmat.T @ (before[:, None] * transmat)
    spread = np.block([[of_next, told.with_next.T], [told.with_next, told.spread]])
    own = np.arange(d, len(spread))
    spread[own, own] += gates.variance[pair, here]
    far = np.concatenate(
        [after - before @ transmat, gates.counts[pair, here] - told.share @ before]
    )
    u = np.linalg.pinv(spread, rcond=SMALLEST, hermitian=True) @ far
    pull = u[:d] + (moves.T @ u[d:]).reshape(d, d)
    mean = (transmat * pull).sum(axis=1, keepdims=True)
    return np.asarray(before[:, None] * transmat * (1 + pull - mean))


@dataclass(frozen=True)
class MeanCrossings:
    """Sums of what gates counted at K times of day, to be held against mean crossings.

    ``people`` (K, G, d) are those of the pairs within which a gate counted, ``counts`` (K, G) what
    it did, ``precision`` (K, G) one over the variance of that, which is that of its error and of
    who moves, taken for a Poisson number: 0 where it counted nothing.
    """

    moves: sparse.csr_array
    people: FloatArray
    counts: FloatArray
    precision: FloatArray

    @classmethod
    def of(
        cls, gates: CrossingCounts, people: FloatArray, slot: IntArray, slots: IntArray
    ) -> MeanCrossings:
        """Of ``people`` (P, d) before each pair, at the times of day ``slots`` (K,) of theirs."""
        seen = gates.seen
        both = [_summed(slot == at, seen, people) for at in slots]
        counts = np.where(seen, gates.counts, 0.0)
        variance = np.where(seen, gates.variance + gates.level, 0.0)
        of_slot = np.stack([slot == at for at in slots]).astype(np.float64)
        total = of_slot @ variance
        return cls(
            gates.moves, np.stack(both), of_slot @ counts,
            np.divide(1.0, total, out=np.zeros_like(total), where=total > 0),
        )  # fmt: skip

    def log_likelihood(self, transmats: FloatArray) -> tuple[float, FloatArray]:
        """That of sums of counts where people move by (K, d, d), and its slope (K, d, d)."""
        value, slope = 0.0, np.empty_like(transmats)
        for at, (people, A) in enumerate(zip(self.people, transmats, strict=True)):
            far = self.counts[at] - (people * _shares(self.moves, A)).sum(axis=1)
            pull = self.precision[at] * far
            value -= 0.5 * float(pull @ far)
            slope[at] = _slope(self.moves, pull[:, None] * people)
        return value, slope


def met_by_gates(pairs: Pairs, transmats: FloatArray) -> FloatArray:
    """Transitions (H, d, d) or (1, d, d) by which as many pass each gate as counts make likely.

    What rows, gravity and times of day have in common leaves gates no room of their own. So the
    moves that pass a gate at a time of day get a factor more, by which their chances are as likely
    as what was counted makes them; its logarithm is normal, with the standard deviation by which
    transitions miss gates, `CrossingCounts.rough`, about that by which all counts of the gate make
    it pass more or fewer: what transitions miss of a gate throughout would else be missed at each
    time a little. Found by a few steps of Gauss and Newton.
    """
    gates = pairs.crossings
    if gates is None or not gates.rough:
        return transmats
    which = pairs.which(transmats)
    told = MeanCrossings.of(gates, pairs.before, which, np.arange(len(transmats)))
    mean = np.stack([
        (people * _shares(gates.moves, A)).sum(axis=1)
        for people, A in zip(told.people, transmats, strict=True)
    ])  # fmt: skip
    known = told.precision > 0
    total = np.maximum(np.where(known, mean, 0.0).sum(axis=0), LEAST)
    ratio = np.maximum(told.counts.sum(axis=0), LEAST) / total
    variance = np.divide(1.0, told.precision, out=np.zeros_like(mean), where=known).sum(axis=0)
    sure = gates.rough**2 / (gates.rough**2 + variance / total**2)
    middle = np.clip(sure * np.log(ratio), -FARTHEST, FARTHEST)
    return np.stack([_tilted(A, told, at, gates.rough, middle) for at, A in enumerate(transmats)])


def varied_by_gates(pairs: Pairs, transmats: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Transitions near these, with factors of moves past gates as they may be elsewhere.

    They are those that `met_by_gates` looks for, drawn by chance: a world whose people move just as
    was learned would be foretold better than the real one.
    """
    gates = pairs.crossings
    if gates is None or not gates.rough:
        return transmats
    logs = gates.rough * rng.standard_normal((len(transmats), gates.n_gates))
    weights = np.exp(logs @ gates.moves).reshape(transmats.shape)
    return np.asarray(normalised(transmats * weights))


def _tilted(
    transmat: FloatArray, told: MeanCrossings, at: int, rough: float, middle: FloatArray
) -> FloatArray:
    """A matrix (d, d) with factors for moves that pass gates, at the time of day number ``at``.

    ``middle`` (G,) is about which their logarithms are normal.
    """
    known = np.flatnonzero(told.precision[at] > 0)
    moves = told.moves[known]
    people, counts = told.people[at, known], told.counts[at, known]
    precision = told.precision[at, known]
    if not len(known):
        return transmat
    middle = middle[known]
    logs = middle.copy()
    rows = normalised(transmat * np.exp((moves.T @ logs).reshape(transmat.shape)))
    for _ in range(STEPS):
        slopes = np.stack([
            Passing.of(moves, each, rows).spread[g] for g, each in enumerate(people)
        ])  # fmt: skip
        far = counts - (people * _shares(moves, rows)).sum(axis=1)
        bend = slopes.T @ (precision[:, None] * slopes) + np.eye(len(known)) / rough**2
        pull = slopes.T @ (precision * far) - (logs - middle) / rough**2
        step = np.linalg.solve(bend, pull)
        logs = logs + np.clip(step, -FARTHEST, FARTHEST)
        weights = np.exp((moves.T @ logs).reshape(transmat.shape))
        rows = normalised(transmat * weights)
    return rows


def _summed(rows: BoolArray, seen: BoolArray, people: FloatArray) -> FloatArray:
    """People (G, d) of the rows in which each gate counted."""
    return np.asarray(seen[rows].T.astype(np.float64) @ people[rows])


def _shares(moves: sparse.csr_array, transmat: FloatArray) -> FloatArray:
    """Of the people of each state, how many pass each gate, (G, d)."""
    n, d = moves.shape[0], len(transmat)
    entries = sparse.coo_array(moves)
    origin, dest = np.divmod(entries.coords[1], d)
    passing = entries.data * transmat[origin, dest]
    found = np.bincount(entries.coords[0] * d + origin, passing, n * d).astype(np.float64)
    return found.reshape(n, d)


def _slope(moves: sparse.csr_array, pull: FloatArray) -> FloatArray:
    """Sums (d, d) over gates of ``pull`` (G, d) by origin times how often a move passes each."""
    d = pull.shape[1]
    entries = sparse.coo_array(moves)
    origin = entries.coords[1] // d
    given = entries.data * pull[entries.coords[0], origin]
    return np.bincount(entries.coords[1], given, d * d).astype(np.float64).reshape(d, d)


def posterior_passing(
    before: FloatArray, after: FloatArray, transmat: FloatArray, moves: sparse.csr_array
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (G,) of who passes gates within a pair, given both of its counts."""
    told = Passing.of(moves, before, transmat)
    of_next = np.diag(before @ transmat) - transmat.T @ (before[:, None] * transmat)
    gain = told.with_next @ np.linalg.pinv(of_next, rcond=SMALLEST, hermitian=True)
    mean = told.share @ before + gain @ (after - before @ transmat)
    variance = np.diagonal(told.spread) - (gain * told.with_next).sum(axis=1)
    return np.maximum(mean, 0.0), np.maximum(variance, 0.0)


def each_passing(
    pairs: Pairs, transmats: FloatArray, moves: sparse.csr_array
) -> tuple[FloatArray, FloatArray]:
    """`posterior_passing` of all pairs, with transitions (H, d, d) or (1, d, d): each (P, G)."""
    which = pairs.which(transmats)
    found = [
        posterior_passing(y, z, transmats[at], moves)
        for y, z, at in zip(pairs.before, pairs.after, which, strict=True)
    ]
    mean, variance = (np.stack(part) for part in zip(*found, strict=True))
    return mean, variance
