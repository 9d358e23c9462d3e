"""Collective forward-backward: the E-step of the paper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.base.moves import entries, moves_like, whole
from agg_core.learn.esteps._kernels import NearMoves, cfb_of_groups
from agg_core.learn.esteps._single_kernels import forward_backward_of_people
from agg_core.learn.esteps.base import (
    ExpectedCounts,
    Part,
    compiled_moves,
    parts_of,
    runs_of,
    tokens_of,
    unreachable,
    writeable,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["collective_forward_backward"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FILLED = 0.25
"""From this part of all states that an observation can come from, single people are worked on in
products of matrices over all states; below, each on the few states that there are."""

_Sums = tuple[FloatArray, FloatArray, FloatArray, float, int, int, int]
"""Start, pairs, emission, energy, sweeps, unconverged, and what cannot happen, of a part."""


def collective_forward_backward(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: FloatArray | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 200,
    with_emission: bool = False,
) -> ExpectedCounts:
    """Expected counts by collective forward-backward (Algorithm 1 of the paper).

    With the tokens u of step t, their shares c_u / M and likelihoods l_u(x)::

        gamma_t(x)   = sum_u (c_u / M) l_u(x) / xi_t(u)
        xi_t(u)      = sum_x l_u(x) alpha_t(x) beta_t(x)
        alpha_t+1    = (alpha_t gamma_t) A,            alpha_1 = pi
        beta_t       = A (beta_t+1 gamma_t+1),         beta_T  = 1

    A sweep goes forward, then backward. Sequences stop on their own when the counts that the
    messages imply differ from the observed ones by less than ``tol`` (L1 distance of shares, at
    every step of a sweep). At M = 1 one sweep is exact and this is forward-backward. Each sequence
    is solved on the states that its tokens can come from, which is what a local sensor leaves.

    The free energy is summed over sequences as M_k times the Kullback-Leibler divergence of
    equation 4 per person: the paper's F less the constant M_k log M_k. For continuous
    observations the density of each place takes the part of p(o | x).

    Raises
    ------
    UnreachableError
        If an observation has probability zero under ``hmm``.
    """
    found = aggregates.distinct
    table = replace(likelihoods, row=likelihoods.row[found.tokens])
    of_whole = isinstance(hmm.transmat, np.ndarray)
    if of_whole and found.aggregates.single.all() and _filled(table) > FILLED:
        sums, xi = _people(hmm, found.aggregates, table, with_emission)
    else:
        sums, xi = _groups(hmm, found.aggregates, table, messages, tol, max_sweeps, with_emission)
    start, pairs, emission, energy, sweeps, unconverged, failed = zip(*sums, strict=True)
    moves = hmm.transmat
    if max(failed) >= 0:
        sequence = int(found.sequences[next(k for k in failed if k >= 0)])
        tokens = tokens_of(aggregates, likelihoods, aggregates.shares)
        raise unreachable(hmm, aggregates, tokens, sequence)
    return ExpectedCounts(
        start=sum(start),
        transitions=moves_like(moves, sum(pairs) * entries(moves)),
        emission=sum(emission) if with_emission else None,
        free_energy=float(sum(energy)) - likelihoods.log_scale_of(aggregates),
        messages=xi,
        sweeps=float(sum(sweeps)) / found.aggregates.n_sequences,
        n_unconverged=int(sum(unconverged)),
    )


def _filled(table: TokenLikelihoods) -> float:
    """States that an observation can come from, as a part of all."""
    return len(table.values) / (len(table.indptr) - 1) / table.n_states


def _groups(
    hmm: HMM,
    aggregates: Aggregates,
    table: TokenLikelihoods,
    messages: FloatArray | None,
    tol: float,
    max_sweeps: int,
    with_emission: bool,
) -> tuple[list[_Sums], FloatArray]:
    """The sums of each part of the groups, and xi."""
    tokens = tokens_of(aggregates, table, aggregates.shares)
    xi = np.ones(aggregates.n_tokens) if messages is None else messages
    moves = compiled_moves(hmm.transmat)
    learned = partial(
        _learned_of_groups, np.ascontiguousarray(hmm.startprob), moves, messages is not None, tol,
        max_sweeps, with_emission,
    )  # fmt: skip
    parts = parts_of(tokens, runs_of(aggregates, entries(hmm.transmat).size))
    found = current().map(learned, ((part, xi[part.here]) for part in parts))
    return [sums for sums, _ in found], np.concatenate([of_part for _, of_part in found])


def _learned_of_groups(
    startprob: FloatArray,
    moves: FloatArray | NearMoves,
    warm: bool,
    tol: float,
    max_sweeps: int,
    with_emission: bool,
    given: tuple[Part, FloatArray],
) -> tuple[_Sums, FloatArray]:
    """The sums of a part of the groups, from their xi on, and where that came to."""
    part, xi = given[0], given[1].copy()
    *sums, failed = cfb_of_groups(
        startprob, writeable(moves), part.tokens, xi, warm, tol, max_sweeps, with_emission
    )
    return (*sums, failed if failed < 0 else part.first + failed), xi


def _people(
    hmm: HMM, aggregates: Aggregates, table: TokenLikelihoods, with_emission: bool
) -> tuple[list[_Sums], FloatArray]:
    """The same where groups are single people who may be nearly anywhere."""
    startprob, transmat = (
        np.ascontiguousarray(part) for part in (hmm.startprob, whole(hmm.transmat))
    )
    rows = len(table.indptr) - 1
    row_of_entry = np.repeat(np.arange(rows), np.diff(table.indptr))
    likelihood = np.zeros((rows + 1, table.n_states))
    likelihood[row_of_entry, table.states] = table.values
    likelihood[rows] = 1  # who was not seen may be anywhere
    shown = np.full(len(aggregates.indptr) - 1, rows)
    shown[aggregates.step_of_token] = table.row
    steps = np.ascontiguousarray(shown.reshape(-1, aggregates.length).T)

    entries = row_of_entry, table.states
    learned = partial(
        _learned_of_people, startprob, transmat, likelihood, entries if with_emission else None
    )
    parts = (
        (first, np.ascontiguousarray(steps[:, first:end]), aggregates.sizes[first:end])
        for first, end in runs_of(aggregates, hmm.n_states**2)
    )
    return current().map(learned, parts), np.ones(aggregates.n_tokens)


def _learned_of_people(
    startprob: FloatArray,
    transmat: FloatArray,
    likelihood: FloatArray,
    entries: tuple[IntArray, IntArray] | None,
    given: tuple[int, IntArray, FloatArray],
) -> _Sums:
    """The sums of a part of single people, from number ``first`` on; of emission at ``entries``."""
    first, steps, sizes = given
    start, pairs, emission, energy, failed = forward_backward_of_people(
        startprob, transmat, likelihood, steps, sizes, entries is not None
    )
    if entries is not None:
        emission = emission[entries]
    return start, pairs, emission, energy, len(sizes), 0, failed if failed < 0 else first + failed
