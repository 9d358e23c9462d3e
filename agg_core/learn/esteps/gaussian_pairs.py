"""Learning from successive counts of many people: a Gaussian likelihood for pairs of steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import sparse

from agg_core.base.checkpoints import Course
from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import whole
from agg_core.learn.esteps.base import unexplained
from agg_core.learn.esteps.descent import Steps, lbfgs
from agg_core.learn.esteps.pairs import (
    FEWEST_PEOPLE,
    PairsState,
    known_emission,
    state_shares,
    symbol_table,
)
from agg_core.learn.table import PRIOR
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM

__all__ = ["DITHER", "INNER_STEPS", "gaussian_pairs_steps"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

DITHER = 0.25
"""Variance, in people squared, of the noise that next counts are thought to have besides."""

INNER_STEPS = 5
"""Steps of L-BFGS per state that the generator gives: many people per cell need hundreds."""

LEAST_CHANCE = 1e-300

N_CHUNKS = 4
"""Chunks of pairs sum their gradients on their own."""

SHARE_STEPS = 100
SHARE_TOL = 1e-5
"""The shares of states of a group: at most so many EM steps, largest L1 change per step."""

SURE = 3.0
"""Standard errors by which groups must differ more than by chance to get shares of their own."""


def gaussian_pairs_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    prior: float = PRIOR,
    begin: HMM | None = None,
    course: Course | None = None,
) -> Iterator[PairsState]:
    """Gaussian likelihood of successive counts for startprob and transmat, without end.

    Given the counts y of a step, the next counts z of a group are sums of independent people, so
    near normal where cells hold many (Liu, Sheldon & Dietterich 2014, Gaussian CGM)::

        P = R A B,   m = y P,   V = diag(m) - sum_o y_o P_o P_o'

    R_t(o, x) = pi_t(x) B(x, o) / (pi_t B)(o) is the chance of state x for a person who showed
    symbol o, and B the known emission; without noise P is A. Mean and covariance are exact at
    every size of group. V is singular along 1 and nearly so where few people move, so z is
    thought to carry noise of variance v = `DITHER` besides. Averaged over that noise the
    log-likelihood of a pair is, with W = (V + v I)^-1 and r = z - m::

        -1/2 [r' W r + v tr W + log det(V + v I)]  +  constants

    The term v tr W pays for the ridge v: the expected slope is zero at the true A however small
    the groups are, where a bare ridge would take part of the variance for itself, and the sum
    stays finite where V vanishes. The slope of P is, with u = W r and K = W - v W W::

        y_o [u_j + u_j^2 / 2 - u_j (P_o . u) - K_jj / 2 + (K P_o)_j]

    A maximises the sum over pairs, by L-BFGS, five steps a state, over the logits of the moves
    that hmm.transmat allows: zeros of it and of startprob stay zero. ``prior`` people per row,
    spread as the start spreads them, keep rows off the border; with ``begin`` the descent leaves
    from there, and they are spread all the same. Pairs share steps but each is
    conditional on its first one: a composite likelihood, consistent as the number of groups grows
    if R_t is, not fully efficient with noise, as earlier counts tell of the present state too.
    pi_t are the most likely shares of states behind the pooled counts of a step. Groups that
    differ by more than chance (a Dirichlet-multinomial whose concentration the counts give) get
    shares of their own, drawn towards the pooled ones. Startprob is pi_1.

    The objective is minus the log-likelihood, summed over pairs, and minus the logarithm of the
    prior. A pair with an unobserved step is left out. Counts are shares times the group's size.
    What a ``course`` stood at is gone on from.

    Raises
    ------
    InputError
        If the emission is not categorical, its symbols do not fit, ``prior`` is negative or
        ``fixed`` names no part; `UnreachableError` if an observation cannot happen.
    """
    if not (np.isfinite(prior) and prior >= 0):
        raise InputError(
            f"The prior must be a number of people of 0 or more; it was {prior}.",
            code="value-out-of-range",
        )
    emission = known_emission(hmm, fixed)
    table = symbol_table(aggregates, hmm)
    probs = state_shares(aggregates, hmm, table, keep_start="startprob" in fixed)
    problem = _Problem.of(aggregates, hmm, emission, table, probs, prior)
    n_empty = int((~problem.busy).sum()) if aggregates.length > 1 else 0
    steps, transmat, done, reached = Steps(), whole(hmm.transmat), 0, None
    if course is not None and course.stood is not None:
        done, reached, kept, transmat = course.stood
        steps = Steps.of(kept)
    points = lbfgs(
        problem.objective, problem.logits(hmm if begin is None else begin), steps, reached=reached
    )
    point = next(points)

    def stands() -> tuple[Any, ...]:
        return iteration, point, steps.kept, transmat

    for iteration in count(done + 1):
        before = transmat
        if "transmat" not in fixed:
            for _ in range(INNER_STEPS):
                point = next(points)
            transmat = problem.transmat(point.x)
        change = problem.mean_over_people(np.abs(transmat - before).sum(axis=1))
        if course is not None:
            course.note(stands)
        yield PairsState(iteration, probs[0], transmat, point.value, change, n_empty)


# ------------------------------------------------------------- the objective and its gradient


class _Pairs(NamedTuple):
    """What the compiled code takes.

    Tokens of step s, counted through all sequences: ``indptr[s] : indptr[s + 1]``. Token i has
    ``people[i]`` with ``symbol[i]``, whose chances of states are entries
    ``state_indptr[i] : state_indptr[i + 1]`` of ``state`` and ``state_chance``. Pairs begin at the
    steps ``first``. From state x the symbols ``column[row_indptr[x] : row_indptr[x + 1]]`` can
    come next.
    """

    indptr: IntArray
    symbol: IntArray
    people: FloatArray
    first: IntArray
    state_indptr: IntArray
    state: IntArray
    state_chance: FloatArray
    row_indptr: IntArray
    column: IntArray
    n_symbols: int


@dataclass(frozen=True)
class _Problem:
    """The objective as a function of the logits of the moves that the start allows.

    Logits are scaled by the root of their row's people, so that rows weigh alike in the descent.
    ``people`` (d,) are expected at the start of a pair.
    """

    pairs: _Pairs
    before: FloatArray
    emission: FloatArray
    people: FloatArray
    prior: float

    @classmethod
    def of(
        cls,
        aggregates: Aggregates,
        hmm: HMM,
        emission: FloatArray,
        table: Any,
        probs: FloatArray,
        prior: float,
    ) -> _Problem:
        counts = _counts(aggregates)
        chances = _state_chances(aggregates, table, _shares_of_groups(counts, table, probs))
        seen = np.diff(aggregates.indptr).reshape(-1, aggregates.length) > 0
        k, t = np.nonzero(seen[:, :-1] & seen[:, 1:])
        first = k * aggregates.length + t
        allowed, shown = ((part > 0).astype(np.float64) for part in (whole(hmm.transmat), emission))
        reach = sparse.csr_array(allowed @ shown)
        starts = np.zeros(len(aggregates.indptr) - 1)
        starts[first] = 1.0
        pairs = _Pairs(
            indptr=aggregates.indptr,
            symbol=aggregates.symbol,
            people=counts.data,
            first=first,
            state_indptr=chances.indptr.astype(np.int64),
            state=chances.indices.astype(np.int64),
            state_chance=chances.data,
            row_indptr=reach.indptr.astype(np.int64),
            column=reach.indices.astype(np.int64),
            n_symbols=aggregates.n_symbols,
        )
        _check_reach(aggregates, first, counts, chances, reach)
        people = (counts.data * starts[aggregates.step_of_token]) @ chances
        return cls(pairs, whole(hmm.transmat), emission, np.asarray(people), prior)

    @cached_property
    def busy(self) -> BoolArray:
        """Rows (d,) that someone starts from."""
        return self.people > FEWEST_PEOPLE

    @cached_property
    def support(self) -> BoolArray:
        return self.before > 0

    @cached_property
    def scale(self) -> FloatArray:
        return np.asarray(np.sqrt(np.where(self.busy, self.people, 1.0))[:, None])

    def logits(self, hmm: HMM) -> FloatArray:
        """Where the descent is at these transitions; what they have lost is next to impossible."""
        chances = np.maximum(whole(hmm.transmat), LEAST_CHANCE)
        logits = np.log(chances, where=self.support, out=np.zeros_like(chances))
        return np.asarray((logits * self.scale)[self.support])

    def log_rows(self, x: FloatArray) -> FloatArray:
        logits = np.full(self.before.shape, -np.inf)
        logits[self.support] = x
        logits /= self.scale
        logits -= logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def transmat(self, x: FloatArray) -> FloatArray:
        return np.where(self.busy[:, None], np.exp(self.log_rows(x)), self.before)

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood and log prior, and the gradient."""
        log_rows = self.log_rows(x)
        rows = np.exp(log_rows)
        value, slope = self.minus_log_likelihood(rows)
        prior = np.where(self.busy[:, None], self.prior * self.before, 0.0)
        value -= float(np.vdot(prior[self.support], log_rows[self.support]))
        by_logit = rows * (slope - (slope * rows).sum(axis=1, keepdims=True))
        by_logit -= prior - rows * prior.sum(axis=1, keepdims=True)
        by_logit[~self.busy] = 0.0
        return value, (by_logit / self.scale)[self.support]

    def minus_log_likelihood(self, transmat: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its slope (d, d) as if every entry were free."""
        row = np.repeat(np.arange(len(transmat)), np.diff(self.pairs.row_indptr))
        predicted = (transmat @ self.emission)[row, self.pairs.column]
        parts = current().map(partial(_part_of_sum, self.pairs, predicted), range(N_CHUNKS))
        values, slopes = zip(*parts, strict=True)
        by_predicted = np.zeros(self.emission.shape)
        by_predicted[row, self.pairs.column] = sum(slopes[1:], slopes[0])
        return float(sum(values)), by_predicted @ self.emission.T

    def mean_over_people(self, values: FloatArray) -> float:
        total = self.people.sum()
        return float(values @ self.people / total) if total else 0.0


def _counts(aggregates: Aggregates) -> Any:
    """People per symbol, a sparse array (K T, S): shares times the size of the group."""
    people = aggregates.shares * aggregates.sizes[aggregates.step_of_token // aggregates.length]
    shape = (len(aggregates.indptr) - 1, aggregates.n_symbols)
    return sparse.csr_array((people, aggregates.symbol, aggregates.indptr), shape=shape)


def _check_reach(
    aggregates: Aggregates, first: IntArray, counts: Any, chances: Any, reach: Any
) -> None:
    """Raise `UnreachableError` if nobody of a step can show a symbol of the next."""
    by_step = sparse.csr_array(
        (np.ones(len(aggregates.symbol)), np.arange(len(aggregates.symbol)), aggregates.indptr)
    )
    possible = (by_step[first] @ (chances @ reach)) > 0
    seen = counts[first + 1] > 0
    pair, symbol = (seen > possible).nonzero()
    if len(pair):
        step = first[pair[0]] + 1
        tokens = np.arange(aggregates.indptr[step], aggregates.indptr[step + 1])
        token = int(tokens[aggregates.symbol[tokens] == symbol[0]][0])
        raise unexplained(aggregates, aggregates.locate(token)[0], token)


# ------------------------------------------------------------- who is in which state


def _state_chances(aggregates: Aggregates, table: Any, shares: FloatArray) -> Any:
    """p(x | symbol) of every token, a sparse array (U, d); shares are (T, d) or (K T, d)."""
    chances = sparse.csr_array(table[aggregates.symbol])
    token = np.repeat(np.arange(aggregates.n_tokens), np.diff(chances.indptr))
    step = aggregates.step_of_token[token] % len(shares)
    chances.data = chances.data * shares[step, chances.indices]
    chances.data /= np.bincount(token, chances.data, minlength=aggregates.n_tokens)[token]
    chances.eliminate_zeros()
    return chances


def _shares_of_groups(counts: Any, table: Any, probs: FloatArray) -> FloatArray:
    """pi of every step (T, d), or of every group and step (K T, d) where groups differ.

    Those of a group are the most likely ones behind its counts if they come from a Dirichlet
    around the pooled ``probs`` (T, d) (so many people more, shared out like the pooled ones).
    """
    if (np.diff(table.indptr) <= 1).all():
        return probs
    concentration = _concentration(counts, (table @ probs.T).T)
    if not np.isfinite(concentration):
        return probs
    people = counts.toarray()
    pooled = np.tile(probs, (len(people) // len(probs), 1))
    shares = pooled
    for _ in range(SHARE_STEPS):
        fitted = shares @ table.T
        ratio = np.divide(people, fitted, where=fitted > 0, out=np.zeros_like(fitted))
        before, shares = shares, shares * (ratio @ table) + concentration * pooled
        total = shares.sum(axis=1, keepdims=True)
        shares = np.divide(shares, total, where=total > 0, out=np.zeros_like(shares))
        if np.abs(shares - before).sum(axis=1).max() < SHARE_TOL:
            break
    return shares


def _concentration(counts: Any, shares: FloatArray) -> float:
    """Of the Dirichlet from which groups draw their shares of symbols, by moments.

    The squared distance of the counts (K T, S) of M people from M times the pooled ``shares``
    (T, S), over M, is on average 1 + (M - 1) / (concentration + 1) times 1 - sum of squared
    shares. Infinite if groups differ by no more than chance.
    """
    size = counts.sum(axis=1)
    seen = size > 0
    expected = np.tile(shares, (counts.shape[0] // len(shares), 1))
    # Distances without a dense array of counts: one person per group has many groups.
    squares = (expected**2).sum(axis=1)
    distance = (counts**2).sum(axis=1) - 2 * size * (counts * expected).sum(axis=1)
    distance = distance[seen] / size[seen] + (size * squares)[seen]
    by_chance = 1 - squares[seen]
    variance = 2 * (squares - 2 * (expected**3).sum(axis=1) + squares**2)[seen]
    excess = float((distance - by_chance).sum())
    if excess <= SURE * np.sqrt(variance.sum()):
        return np.inf
    return max(float(by_chance @ (size[seen] - 1)) / excess - 1.0, 0.0)


# ------------------------------------------------------------- compiled loops over pairs


_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@_compiled
def _factorise(V: FloatArray) -> float:
    """Overwrite the upper triangle of V with U, U' U = V; return log det V."""
    n = len(V)
    log_det = 0.0
    for k in range(n):
        pivot = np.sqrt(V[k, k])
        log_det += 2 * np.log(pivot)
        for j in range(k, n):
            V[k, j] /= pivot
        for i in range(k + 1, n):
            factor = V[k, i]
            if factor != 0.0:
                for j in range(i, n):
                    V[i, j] -= factor * V[k, j]
    return log_det


@_compiled
def _inverse(U: FloatArray) -> FloatArray:
    """The inverse of U' U, as X' X with X the inverse of U'.

    Loops and not LAPACK: its own threads would fight with those over the pairs.
    """
    n = len(U)
    X = np.zeros((n, n))
    for i in range(n):
        X[i, i] = 1.0
        for k in range(i):
            factor = U[k, i]
            if factor != 0.0:
                for j in range(k + 1):
                    X[i, j] -= factor * X[k, j]
        for j in range(i + 1):
            X[i, j] /= U[i, i]
    W = np.zeros((n, n))
    for k in range(n):
        for i in range(k + 1):
            factor = X[k, i]
            for j in range(i + 1):
                W[i, j] += factor * X[k, j]
    for i in range(n):
        for j in range(i):
            W[j, i] = W[i, j]
    return W


@_compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@_compiled
def _find_cells(pairs: _Pairs, at: int, place: IntArray, cells: IntArray) -> int:
    """Number the symbols that can follow the step ``at``; return how many there are."""
    n = 0
    for g in range(pairs.state_indptr[pairs.indptr[at]], pairs.state_indptr[pairs.indptr[at + 1]]):
        x = pairs.state[g]
        for e in range(pairs.row_indptr[x], pairs.row_indptr[x + 1]):
            cell = pairs.column[e]
            if place[cell] < 0:
                place[cell] = n
                cells[n] = cell
                n += 1
    return n


@_compiled
def _find_chances(
    pairs: _Pairs,
    i: int,
    predicted: FloatArray,
    place: IntArray,
    chance: FloatArray,
    ways: IntArray,
) -> int:
    """Chances of the next symbol for token i; write where they are to ``ways``, return how many."""
    n = 0
    for g in range(pairs.state_indptr[i], pairs.state_indptr[i + 1]):
        x = pairs.state[g]
        for e in range(pairs.row_indptr[x], pairs.row_indptr[x + 1]):
            j = place[pairs.column[e]]
            share = pairs.state_chance[g] * predicted[e]
            if chance[j] == 0.0 and share > 0.0:
                ways[n] = j
                n += 1
            chance[j] += share
    return n


@_compiled
def _remove_people(
    people: float, chance: FloatArray, ways: IntArray, residual: FloatArray, V: FloatArray
) -> None:
    """Subtract the mean of people's next counts from the residual, add their covariance to V."""
    for j in ways:
        share = people * chance[j]
        residual[j] -= share
        V[j, j] += share
        for m in ways:
            V[j, m] -= share * chance[m]


@_compiled
def _pulls(
    chance: FloatArray, ways: IntArray, W: FloatArray, dither: float, n_pulls: int
) -> FloatArray:
    """K times the chances, K = W - dither W W."""
    through = np.zeros(n_pulls)
    for j in ways:
        for m in range(n_pulls):
            through[m] += chance[j] * W[j, m]
    pull = np.empty(n_pulls)
    for j in range(n_pulls):
        pull[j] = through[j] - dither * _dot(W[j], through)
    return pull


@_compiled
def _one_pair(
    pairs: _Pairs,
    at: int,
    predicted: FloatArray,
    dither: float,
    place: IntArray,
    cells: IntArray,
    slopes: FloatArray,
) -> float:
    """Minus the log-likelihood of the pair at step ``at``; its slopes are added to ``slopes``.

    ``place`` (S,) is -1 throughout, before and after; in between it tells where in ``cells``,
    those that can be reached, a symbol is.
    """
    begin, end = pairs.indptr[at], pairs.indptr[at + 1]
    n = _find_cells(pairs, at, place, cells)
    chance = np.zeros((end - begin, n))
    way = np.empty((end - begin, n), dtype=np.int64)
    n_ways = np.empty(end - begin, dtype=np.int64)
    residual = np.zeros(n)
    V = dither * np.eye(n)
    for i in range(pairs.indptr[at + 1], pairs.indptr[at + 2]):
        residual[place[pairs.symbol[i]]] += pairs.people[i]
    for k in range(end - begin):
        n_ways[k] = _find_chances(pairs, begin + k, predicted, place, chance[k], way[k])
        _remove_people(pairs.people[begin + k], chance[k], way[k, : n_ways[k]], residual, V)
    value: float = _factorise(V) - np.log(dither) - 1.0 + (n - 1) * np.log(2 * np.pi)
    W = _inverse(V)
    u = np.empty(n)
    bend = np.empty(n)
    for j in range(n):
        u[j] = _dot(W[j], residual)
        bend[j] = u[j] + 0.5 * (u[j] * u[j] - W[j, j] + dither * _dot(W[j], W[j]))
        value += u[j] * residual[j] + dither * W[j, j]
    for k in range(end - begin):
        pull = _pulls(chance[k], way[k, : n_ways[k]], W, dither, n)
        mean_u = _dot(chance[k], u)
        i = begin + k
        for g in range(pairs.state_indptr[i], pairs.state_indptr[i + 1]):
            x = pairs.state[g]
            weight = pairs.people[i] * pairs.state_chance[g]
            for e in range(pairs.row_indptr[x], pairs.row_indptr[x + 1]):
                j = place[pairs.column[e]]
                slopes[e] -= weight * (bend[j] - u[j] * mean_u + pull[j])
    for j in range(n):
        place[cells[j]] = -1
    return 0.5 * value


def _part_of_sum(pairs: _Pairs, predicted: FloatArray, part: int) -> tuple[float, FloatArray]:
    """One of the parts that the sum over pairs is made of."""
    found: tuple[float, FloatArray] = _sum_over_pairs(pairs, predicted, DITHER, part, N_CHUNKS)
    return found


@_compiled
def _sum_over_pairs(
    pairs: _Pairs, predicted: FloatArray, dither: float, part: int, n_parts: int
) -> tuple[float, FloatArray]:
    """Minus the log-likelihood and its slopes by ``predicted``, states' next symbols, of a part."""
    value, slopes = 0.0, np.zeros(len(predicted))
    place = np.full(pairs.n_symbols, -1, dtype=np.int64)
    cells = np.empty(pairs.n_symbols, dtype=np.int64)
    n_pairs = len(pairs.first)
    for p in range(n_pairs * part // n_parts, n_pairs * (part + 1) // n_parts):
        value += _one_pair(pairs, pairs.first[p], predicted, dither, place, cells, slopes)
    return value, slopes
