"""Learning from successive counts: the next counts of a group regressed on its present ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.checkpoints import Course
from agg_core.base.errors import InputError
from agg_core.base.moves import states_after, whole
from agg_core.learn.esteps.base import unexplained
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM

__all__ = [
    "FEWEST_PEOPLE",
    "PairsState",
    "known_emission",
    "least_squares",
    "least_squares_steps",
    "state_shares",
    "symbol_table",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

INNER_STEPS = 10
"""Gradient steps per state that the generator gives."""

FIRST_STEPS = 100
FIRST_TOL = 1e-7
"""The first fit only gives weights: at most so many steps, relative fall of its objective."""

RIDGE = 0.1
"""Part of the multinomial covariance that is added to the estimated one."""

EM_STEPS = 5000
EM_TOL = 1e-10
"""The shares of states behind the shares of symbols: at most so many steps, L1 change per step."""

FEWEST_PEOPLE = 1e-6
"""A state with fewer people than this over all groups and steps teaches its row nothing."""


@dataclass(frozen=True)
class PairsState:
    """One iteration of a learner from pairs of successive counts.

    Attributes
    ----------
    iteration : 1 for the first
    startprob : (d,) estimated at once, the same in every iteration
    transmat : (d, d) after this iteration
    objective : what the learner minimises; it never rises. Of least squares the squared distance
        of the next shares from the predicted, in units of its covariance, mean over pairs of
        steps: near the number of symbols for a good model
    change : L1 change of the rows of transmat in this iteration, averaged over people, 0 to 2
    n_empty : rows of transmat that no one starts from; they keep their old value
    """

    iteration: int
    startprob: FloatArray
    transmat: FloatArray
    objective: float
    change: float
    n_empty: int


def least_squares_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    course: Course | None = None,
) -> Iterator[PairsState]:
    """Conditional least squares for startprob and transmat, the emission known, without end.

    Whatever the size M_k of a group, its shares s_t of symbols predict the next ones
    (Kalbfleisch, Lawless & Vollmer 1983; Bernstein & Sheldon 2016)::

        E[s_t+1 | s_t] = s_t R_t A B,   R_t(o, x) = pi_t(x) B(x, o) / (pi_t B)(o)

    pi_t are the shares of states that make the pooled counts of step t most likely, pi_1 is
    startprob, and A minimises over rows on the simplex::

        sum_k,t M_k e V^-1 e^T,   e = s_t+1 - s_t R_t A B

    M_k and V are the efficient weights: shares of M_k people vary by V / M_k, where V is the
    covariance of one person's next symbol given the present one. A first fit, with the pooled
    shares of symbols on the diagonal for V, gives the V of the second; any weights are consistent.
    Shares keep their mean: groups of one size have covariances that leave A open up to the same
    addition to all rows.

    Means of pairs of steps are all that is used, so a d that is large for the number of groups
    fits noise. A pair with an unobserved step is left out; zeros of the starting transmat and
    startprob stay zero. A is found by accelerated projected gradient, ten steps per iteration. What
    a ``course`` stood at is gone on from.

    Raises
    ------
    InputError
        If the emission is not categorical, its symbols do not fit, or ``fixed`` names no part;
        `UnreachableError` if an observation cannot happen.
    """
    emission = known_emission(hmm, fixed)
    table = symbol_table(aggregates, hmm)
    probs = state_shares(aggregates, hmm, table, keep_start="startprob" in fixed)
    moments = _Moments.of(aggregates, table, probs)
    transmat = whole(hmm.transmat)
    support = transmat > 0
    if "transmat" not in fixed:
        first = _weighted(moments, emission, support, moments.multinomial_covariance())
        transmat = _first_fit(first, transmat)
    covariance = moments.covariance_given(transmat, emission)
    problem = _weighted(moments, emission, support, covariance)
    descent = _Descent.at(problem, transmat[problem.busy])
    n_empty = int((~problem.busy).sum()) if aggregates.length > 1 else 0
    before, done = whole(hmm.transmat), 0
    if course is not None and course.stood is not None:
        done, descent, transmat = course.stood
        before = transmat

    def stands() -> tuple[Any, ...]:
        return iteration, descent, transmat

    for iteration in count(done + 1):
        if "transmat" not in fixed:
            for _ in range(INNER_STEPS):
                descent = descent.step(problem)
            transmat = transmat.copy()
            transmat[problem.busy] = descent.rows
        moved = np.abs(transmat - before).sum(axis=1)[problem.busy]
        change = problem.mean_over_people(moved)
        if course is not None:
            course.note(stands)
        yield PairsState(iteration, probs[0], transmat, descent.objective, change, n_empty)
        before = transmat


def least_squares(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    n_iter: int = 200,
    tol: float = 1e-7,
) -> tuple[FloatArray, FloatArray]:
    """Startprob (d,) and transmat (d, d) of `least_squares_steps` when transmat stands still.

    It stops when the change is below ``tol`` or after ``n_iter`` iterations.
    """
    startprob, transmat = hmm.startprob, whole(hmm.transmat)
    for state in islice(least_squares_steps(aggregates, hmm, fixed=fixed), n_iter):
        startprob, transmat = state.startprob, state.transmat
        if state.change < tol:
            break
    return startprob, transmat


# ------------------------------------------------------- the regression as a quadratic problem


@dataclass(frozen=True)
class _Problem:
    """The objective const - 2 <A, target> + <A, gram A metric> over the rows that have people.

    ``busy`` (d,) marks those rows, b of them; gram (b, b), target and support (b, d),
    metric (d, d). People times ``curvature`` (d,) bounds gram x metric from above.
    """

    busy: BoolArray
    support: BoolArray
    people: FloatArray
    gram: FloatArray
    target: FloatArray
    metric: FloatArray
    curvature: FloatArray
    constant: float

    def gram_times(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.gram @ rows @ self.metric)

    def objective(self, rows: FloatArray, product: FloatArray) -> float:
        return self.constant + float(np.vdot(rows, product - 2 * self.target))

    def mean_over_people(self, values: FloatArray) -> float:
        return float(values @ self.people / self.people.sum()) if values.size else 0.0


def _weighted(
    moments: _Moments, emission: FloatArray, support: BoolArray, covariance: FloatArray
) -> _Problem:
    """The problem that weighs errors by the inverse covariance (S, S) of one person's symbol."""
    weight = np.linalg.inv(covariance) / max(moments.n_pairs, 1)
    metric = emission @ weight @ emission.T
    diagonal = np.diag(metric)
    top = float(np.linalg.eigvalsh(metric / np.sqrt(np.outer(diagonal, diagonal)))[-1])
    busy = moments.people > FEWEST_PEOPLE
    return _Problem(
        busy=busy,
        support=support[busy],
        people=moments.people[busy],
        gram=moments.gram[np.ix_(busy, busy)],
        target=moments.cross[busy] @ weight @ emission.T,
        metric=metric,
        # A hair more, so that rounding does not make a bound of a bound that is met.
        curvature=diagonal * top * (1 + 1e-9),
        constant=float(np.vdot(moments.next_gram, weight)),
    )


def known_emission(hmm: HMM, fixed: Collection[str]) -> FloatArray:
    """The emission (d, S) that a learner of pairs takes as it is.

    Raises
    ------
    InputError
        If it is not categorical or ``fixed`` names no part of the model.
    """
    unknown = set(fixed) - {"startprob", "transmat", "emission"}
    if unknown:
        raise InputError(
            f"fixed names {sorted(unknown)}, which is no part of the model; use any of "
            "startprob, transmat and emission.",
            code="unknown-part",
        )
    if not isinstance(hmm.emission, CategoricalEmission):
        raise InputError(
            "This learner works on counts of symbols, not on continuous observations; use a "
            "categorical emission or another learner.",
            code="symbols-needed",
        )
    return whole(hmm.emission.emissionprob)


def symbol_table(aggregates: Aggregates, hmm: HMM) -> Any:
    """p(o | x) as a sparse array (S, d)."""
    found = hmm.emission.likelihoods(aggregates)
    return sparse.csr_array(
        (found.values, found.states, found.indptr), shape=(aggregates.n_symbols, hmm.n_states)
    )


@dataclass(frozen=True)
class _Moments:
    """Sums over pairs of steps, a group weighing M_k, with Z = s_t R_t the expected shares.

    gram (d, d) of Z' Z, cross (d, S) of Z' s_t+1, next_gram (S, S) of s_t+1' s_t+1,
    within (d, d) of R_t' diag(s_t) R_t; next_people (S,) are counted at the end of a pair.
    """

    gram: FloatArray
    cross: FloatArray
    next_gram: FloatArray
    within: FloatArray
    next_people: FloatArray
    n_pairs: int

    @property
    def people(self) -> FloatArray:
        """Expected people (d,) at the start of a pair."""
        return np.asarray(self.within.sum(axis=1))

    @classmethod
    def of(cls, aggregates: Aggregates, table: Any, probs: FloatArray) -> _Moments:
        n_symbols, d = table.shape
        gram, cross, within = np.zeros((d, d)), np.zeros((d, n_symbols)), np.zeros((d, d))
        next_gram, next_people = np.zeros((n_symbols, n_symbols)), np.zeros(n_symbols)
        n_pairs = 0
        seen = np.diff(aggregates.indptr).reshape(-1, aggregates.length) > 0
        root = np.sqrt(aggregates.sizes)
        counts = _by_step(aggregates, root)
        for t in range(aggregates.length - 1):
            both = np.flatnonzero(seen[:, t] & seen[:, t + 1])
            now = counts[both * aggregates.length + t]
            following = counts[both * aggregates.length + t + 1]
            posterior = _posterior(table, probs[t])
            gram += posterior.T @ (now.T @ now).toarray() @ posterior
            cross += posterior.T @ (now.T @ following).toarray()
            within += (posterior.T @ sparse.diags_array(now.T @ root[both]) @ posterior).toarray()
            next_gram += (following.T @ following).toarray()
            next_people += following.T @ root[both]
            n_pairs += len(both)
        return cls(gram, cross, next_gram, within, next_people, n_pairs)

    def multinomial_covariance(self) -> FloatArray:
        """diag(q), q the pooled shares of symbols at the end of a pair, (S, S).

        Half a person more per symbol gives those that nobody showed a finite weight too.
        """
        people = self.next_people + 0.5
        return np.diag(people / people.sum())

    def covariance_given(self, transmat: FloatArray, emission: FloatArray) -> FloatArray:
        """Mean covariance (S, S) of a person's next symbol given the present one, under A.

        A tenth of diag(q) is added: where hardly anybody moves it is close to singular.
        """
        predicted = transmat @ emission
        spread = np.diag(self.people @ predicted) - predicted.T @ self.within @ predicted
        return np.asarray(
            spread / max(self.people.sum(), 1.0) + RIDGE * self.multinomial_covariance()
        )


def _by_step(aggregates: Aggregates, scale: FloatArray) -> Any:
    """The shares of symbols times a number per group, as a sparse array (K T, S)."""
    values = aggregates.shares * scale[aggregates.step_of_token // aggregates.length]
    return sparse.csr_array(
        (values, aggregates.symbol, aggregates.indptr),
        shape=(len(aggregates.indptr) - 1, aggregates.n_symbols),
    )


# --------------------------------------------------- who is in which state, from pooled counts


def state_shares(aggregates: Aggregates, hmm: HMM, table: Any, *, keep_start: bool) -> FloatArray:
    """pi_t (T, d), the most likely shares of states behind the pooled counts of each step.

    A step that nobody observed keeps startprob if it is the first, and has zeros later; with
    ``keep_start`` the first step keeps it anyway.

    Raises
    ------
    UnreachableError
        If a symbol was seen at a step when no reachable state can show it.
    """
    reach = _reachable(aggregates, hmm, table)
    step = aggregates.step_of_token % aggregates.length
    people = np.zeros((aggregates.length, aggregates.n_symbols))
    sizes = aggregates.sizes[aggregates.step_of_token // aggregates.length]
    np.add.at(people, (step, aggregates.symbol), aggregates.shares * sizes)
    counted = people.sum(axis=1) > 0
    probs = np.zeros(reach.shape)
    pooled = people[counted] / people[counted].sum(axis=1, keepdims=True)
    probs[counted] = _mixture_weights(pooled, table, reach[counted])
    if keep_start or not counted[0]:
        probs[0] = hmm.startprob
    return probs


def _reachable(aggregates: Aggregates, hmm: HMM, table: Any) -> BoolArray:
    """States (T, d) that zeros of startprob and transmat leave at each step.

    Raises
    ------
    UnreachableError
        If a symbol was seen at a step when no such state can show it.
    """
    reach = np.empty((aggregates.length, hmm.n_states), dtype=bool)
    reach[0] = hmm.startprob > 0
    for t in range(1, aggregates.length):
        reach[t] = states_after(hmm.transmat, reach[t - 1])
    possible = (table @ reach.T.astype(np.float64)) > 0
    step = aggregates.step_of_token % aggregates.length
    dead = np.flatnonzero(~possible[aggregates.symbol, step])
    if dead.size:
        raise unexplained(aggregates, aggregates.locate(int(dead[0]))[0], int(dead[0]))
    return reach


def _mixture_weights(shares: FloatArray, table: Any, support: BoolArray) -> FloatArray:
    """EM for the weights (n, d) of known distributions that make shares (n, S) most likely."""
    weights = support / support.sum(axis=1, keepdims=True)
    for _ in range(EM_STEPS):
        fitted = (table @ weights.T).T
        ratio = np.divide(shares, fitted, out=np.zeros_like(shares), where=shares > 0)
        previous, weights = weights, weights * (ratio @ table)
        if np.abs(weights - previous).sum(axis=1).max() < EM_TOL:
            break
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _posterior(table: Any, probs: FloatArray) -> Any:
    """p_t(x | o), a sparse array (S, d); a symbol that no one can show has a row of zeros."""
    evidence = table @ probs
    scale = np.divide(1.0, evidence, out=np.zeros_like(evidence), where=evidence > 0)
    return sparse.diags_array(scale) @ table @ sparse.diags_array(probs)


# ------------------------------------------------------------------- accelerated descent


@dataclass(frozen=True)
class _Descent:
    """Where the accelerated projected gradient is (FISTA, restarted when it would rise).

    gram x rows x metric is kept for this point and the one before: it is linear, so the point
    between them, from which the next step leaves, needs no product of its own.
    """

    rows: FloatArray
    product: FloatArray
    objective: float
    rows_before: FloatArray
    product_before: FloatArray
    pace: float

    @classmethod
    def at(cls, problem: _Problem, rows: FloatArray) -> _Descent:
        product = problem.gram_times(rows)
        return cls(rows, product, problem.objective(rows, product), rows, product, 1.0)

    def step(self, problem: _Problem) -> _Descent:
        pace = (1 + np.sqrt(1 + 4 * self.pace**2)) / 2
        reached = self._leap(problem, (self.pace - 1) / pace, pace)
        if reached.objective > self.objective:
            reached = self._leap(problem, 0.0, 1.0)
        # Without momentum only rounding can make it rise: the bottom is reached.
        return reached if reached.objective <= self.objective else self

    def _leap(self, problem: _Problem, momentum: float, pace: float) -> _Descent:
        rows = self.rows + momentum * (self.rows - self.rows_before)
        product = self.product + momentum * (self.product - self.product_before)
        scale = problem.people[:, None] * problem.curvature
        rows = _onto_simplex(
            rows - (product - problem.target) / scale, problem.curvature, problem.support
        )
        product = problem.gram_times(rows)
        # The difference itself: between two objectives it drowns in rounding near the bottom.
        rise = np.vdot(rows - self.rows, product + self.product - 2 * problem.target)
        return _Descent(rows, product, self.objective + float(rise), self.rows, self.product, pace)


def _first_fit(problem: _Problem, transmat: FloatArray) -> FloatArray:
    """The transmat (d, d) of a problem, roughly."""
    descent = _Descent.at(problem, transmat[problem.busy])
    for _ in range(FIRST_STEPS):
        before, descent = descent, descent.step(problem)
        if before.objective - descent.objective <= FIRST_TOL * descent.objective:
            break
    fitted = transmat.copy()
    fitted[problem.busy] = descent.rows
    return fitted


def _onto_simplex(points: FloatArray, weights: FloatArray, support: BoolArray) -> FloatArray:
    """The nearest distribution on its support for each row, with column j weighing weights[j].

    The nearest is max(point - tau / weight, 0), with tau such that it sums to 1.
    """
    inverse = 1 / weights
    order = np.argsort(np.where(support, -points * weights, np.inf), axis=1)
    inside = np.take_along_axis(support, order, axis=1)
    sorted_points = np.where(inside, np.take_along_axis(points, order, axis=1), 0.0)
    sorted_inverse = np.where(inside, inverse[order], 0.0)
    tau = (np.cumsum(sorted_points, axis=1) - 1) / np.cumsum(sorted_inverse, axis=1)
    n_positive = (inside & (sorted_points > tau * sorted_inverse)).sum(axis=1)
    last = np.take_along_axis(tau, n_positive[:, None] - 1, axis=1)
    nearest = np.where(support, np.maximum(points - last * inverse, 0.0), 0.0)
    return np.asarray(nearest / nearest.sum(axis=1, keepdims=True))
