"""Cavity forward-backward: the E-step for groups of a finite number of people.

Tokens are the observations of one step, token u standing for c_u people alike. Given the tokens
of two steps, what is hidden is which of the first continues as which of the second: a perfect
matching, whose sum over all matchings is a permanent. Belief propagation for it (Huang & Jebara,
AISTATS 2009; Chertkov et al., PNAS 2010; Vontobel, IEEE Trans. Inf. Theory 2013) asks each token
"if not v, who else continues u?" and so leaves v out of the sum. With the weights of a token's
states before and after, F_u = l_u P_u and H_v = l_v Q_v, and E_uv = <F_u A, H_v>::

    total_u  = sum_v c_v E_uv / den'_uv       den_uv  = total_u  - e E_uv / den'_uv
    total'_v = sum_u c_u E_uv / den_uv        den'_uv = total'_v - e E_uv / den_uv
    P_v = sum_u c_u (F_u A) / den_uv          P_u = pi at the first step
    Q_u = sum_v c_v (A H_v) / den'_uv         Q_v = 1 at the last step
    odds_uv = E_uv / (den_uv den'_uv)         b_uv = odds_uv / (1 + e odds_uv)

b_uv is the chance that one u continues as one v: c_u c_v b_uv people do, with states
F_u(x) A(x, x') H_v(x') / E_uv. With e = 0 nothing is left out, den_uv is total_u for every v, and
the recursion is collective forward-backward (xi = total total'): the limit of large groups. With
e = 1 it is belief propagation, which errs the other way: for two people it takes the likelier
matching as certain. In between lies fractional belief propagation (Chertkov & Yedidia, JMLR 2013).
Where all E_uv are alike, a change h_uv of log E_uv (rows and columns of h sum to 0) changes the
chances of a uniform random matching of M people by h_uv / (M - 1), while the fixed point has
b (1 - e b) = E / (total total') and b = 1 / M, which gives h_uv / (M - e / (1 - e / M)). Both are
equal for e = M / (M + 1), which is what is left out here.

The fixed points are where this is stationary in the messages::

    log p = sum_t,u c_u log <l_u, P_u Q_u> - sum_t,u,v (c_u c_v / e) log(1 + e odds_uv)
            + log M! - sum_t,u log c_u! + (T - 1) a(M)

It is the log-probability of the counts. The constant a(M) = log M! - M log M - (M^2 / e - M)
log(1 - e / M) makes it exact for one person and for transitions that forget where people were.

Steps that nobody observed are no nodes: who is there is not known of anybody, so people just move
on, and A^2 takes the place of A between the observed steps around one. That is exact. Real-valued
counts need no change (x! is the gamma function), but e is at most c_u and c_v.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py, xlogy

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import whole
from agg_core.learn.esteps._cavity_kernels import Links, Paths, cavity_of_groups
from agg_core.learn.esteps.base import (
    ExpectedCounts,
    Part,
    parts_of,
    runs_of,
    tokens_of,
    unreachable,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["cavity_forward_backward"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def cavity_forward_backward(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: FloatArray | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 200,
    with_emission: bool = False,
    left_out: float | None = None,
    damping: bool = True,
) -> ExpectedCounts:
    """Expected counts of finite groups, by the recursion at the top of this module.

    A sweep goes forward over all edges but the last, then backward over all but the first, and
    renews both messages of an edge twice at each visit. F of the first step and H of the last one
    do not change, so what they reach is found once: with up to three steps observed no sweep has
    products with A. A sequence stops when at every visit of a sweep the matchings that follow from
    either side's messages, E_uv / (den'_uv total_u) and E_uv / (den_uv total'_v), differ by less
    than ``tol`` (L1 distance in shares of the people). After a sweep at which that distance did
    not fall, messages are damped (unless ``damping`` is off): the geometric mean of old and new.
    At M = 1 one sweep is exact. Time per visit is that of U^2 of a token's states and, between the
    first and the last edge, of U products with A on the support; memory is U^2 per edge.

    People per step are exact, and so are the start and the people moving out of a token (rows
    of the transitions at T = 2 sum to ``start``); what arrives agrees with what leaves to about
    ``tol``. The free energy is -log p of the counts; ``left_out`` is e, by default M / (M + 1).
    ``messages`` holds 1 / den' of every pair of tokens.

    Raises
    ------
    InputError
        If ``left_out`` lies outside 0..1; `UnreachableError` if an observation has probability
        zero under ``hmm``.
    """
    if left_out is not None and not 0 <= left_out <= 1:
        raise InputError(
            f"left_out must lie between 0 and 1; it was {left_out}.", code="value-out-of-range"
        )
    tokens = tokens_of(aggregates, likelihoods, aggregates.shares)
    links = _links(aggregates, likelihoods, left_out)
    paths, longest_trail = _paths(hmm, aggregates)
    renewed = np.ones(links.pair_indptr[-1]) if messages is None else messages
    # A sum of moves for every gap there is takes the memory of so many more states.
    width = int(np.ceil(hmm.n_states * np.sqrt(len(paths.ahead))))
    learned = partial(
        _learned, paths, messages is not None, tol, max_sweeps, with_emission, longest_trail + 1,
        damping,
    )  # fmt: skip
    parts = parts_of(tokens, runs_of(aggregates, width**2))
    linked = (_links_of(links, part, tokens.length) for part in parts)
    found = current().map(
        learned, ((part, own, renewed[at]) for part, (own, at) in zip(parts, linked, strict=True))
    )
    *sums, failed = zip(*(sums for sums, _ in found), strict=True)
    starts, moves, ends, emission, log_p, sweeps, unconverged = (
        sum(part[1:], part[0]) for part in sums
    )
    if max(failed) >= 0:
        sequence = next(k for k in failed if k >= 0)
        raise unreachable(hmm, aggregates, tokens, sequence)
    start, transitions = _over_all_steps(hmm, paths, starts, moves, ends)
    log_likelihood = float(log_p) + _log_constant(aggregates, links)
    return ExpectedCounts(
        start=start,
        transitions=transitions,
        emission=emission if with_emission else None,
        free_energy=-log_likelihood - likelihoods.log_scale_of(aggregates),
        messages=np.concatenate([of_part for _, of_part in found]),
        sweeps=float(sweeps) / aggregates.n_sequences,
        n_unconverged=int(unconverged),
    )


def _links_of(links: Links, part: Part, length: int) -> tuple[Links, slice]:
    """The links of a part of the sequences, and which of all messages are theirs."""
    last = part.first + len(part.tokens.sizes)
    pairs = links.pair_indptr[part.first * length : last * length + 1]
    entries = links.entry_indptr[part.here.start : part.here.stop + 1]
    own = Links(
        people=links.people[part.here],
        own=links.own[part.first : last],
        entry_indptr=entries - entries[0],
        pair_indptr=pairs - pairs[0],
    )
    return own, slice(int(pairs[0]), int(pairs[-1]))


def _learned(
    paths: Paths,
    warm: bool,
    tol: float,
    max_sweeps: int,
    with_emission: bool,
    n_ends: int,
    damping: bool,
    given: tuple[Part, Links, FloatArray],
) -> tuple[tuple[Any, ...], FloatArray]:
    """The sums of a part of the groups, from their messages on, and what became of these."""
    part, links, messages = given[0], given[1], given[2].copy()
    *sums, failed = cavity_of_groups(
        part.tokens, links, paths, messages, warm, tol, max_sweeps, with_emission, n_ends, damping
    )
    return (*sums, failed if failed < 0 else part.first + failed), messages


def _links(aggregates: Aggregates, likelihoods: TokenLikelihoods, left_out: float | None) -> Links:
    per_step = np.diff(aggregates.indptr).reshape(-1, aggregates.length)
    pairs = np.zeros_like(per_step)
    following = np.zeros(aggregates.n_sequences, dtype=np.int64)
    for t in range(aggregates.length - 1, -1, -1):
        pairs[:, t] = per_step[:, t] * following
        following = np.where(per_step[:, t] > 0, per_step[:, t], following)
    step = aggregates.step_of_token
    counted = np.bincount(step, aggregates.count, len(aggregates.indptr) - 1)[step]
    sizes = aggregates.sizes
    own = sizes / (sizes + 1) if left_out is None else np.full_like(sizes, left_out)
    return Links(
        people=aggregates.count * (sizes[step // aggregates.length] / counted),
        own=np.minimum(own, sizes),
        entry_indptr=_running(np.diff(likelihoods.indptr)[likelihoods.row]),
        pair_indptr=_running(pairs.ravel()),
    )


def _running(parts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(parts)]).astype(np.int64)


def _paths(hmm: HMM, aggregates: Aggregates) -> tuple[Paths, int]:
    """The chain over the gaps between observed steps, and the longest gap at an end."""
    observed = np.diff(aggregates.indptr).reshape(-1, aggregates.length) > 0
    sequence, step = np.nonzero(observed)
    longest_gap = int(np.diff(step)[np.diff(sequence) == 0].max(initial=1))
    transmat = whole(hmm.transmat)
    starts, powers = [hmm.startprob], [transmat]
    for _ in range(int(observed.argmax(axis=1).max())):
        starts.append(starts[-1] @ transmat)
    for _ in range(longest_gap - 1):
        powers.append(powers[-1] @ transmat)
    ahead = np.stack(powers)
    back = np.ascontiguousarray(ahead.transpose(0, 2, 1))
    return Paths(np.stack(starts), ahead, back), int(observed[:, ::-1].argmax(axis=1).max())


def _over_all_steps(
    hmm: HMM, paths: Paths, starts: FloatArray, moves: FloatArray, ends: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Start and transitions, with those at steps that nobody observed.

    ``starts[g]`` (d,) and ``moves[g - 1]`` (d, d) are people over the chance of the path that led
    there, g steps long; ``ends[g]`` (d,) are people who have g steps to go.
    """
    transmat = whole(hmm.transmat)
    total, pull = np.zeros_like(transmat), np.zeros(hmm.n_states)
    for gap, over_gap in enumerate(moves, 1):
        for before in range(gap):
            after = gap - 1 - before
            part = paths.back[before - 1] @ over_gap if before else over_gap
            total += part @ paths.back[after - 1] if after else part
    for lead in range(len(starts) - 1, 0, -1):
        pull = pull + starts[lead]
        total += np.outer(paths.start[lead - 1], pull)
        pull = transmat @ pull
    people = np.zeros(hmm.n_states)
    for trail in range(len(ends) - 1, 0, -1):
        people = people + ends[trail]
        total += people[:, None]
        people = people @ transmat
    return hmm.startprob * (pull + starts[0]), total * transmat


def _log_constant(aggregates: Aggregates, links: Links) -> float:
    """What the sizes alone add to log p: log M! - sum log c_u!, and a(M) for every edge."""
    sizes, own = aggregates.sizes, links.own
    edges = (np.diff(aggregates.indptr) > 0).reshape(len(sizes), -1).sum(axis=1) - 1
    some = np.where(own > 0, own, 1)
    left = np.where(own > 0, xlog1py(sizes**2 / some - sizes, -own / sizes), -sizes)
    ways = gammaln(sizes + 1)
    per_edge = ways - xlogy(sizes, sizes) - left
    return float(ways.sum() + edges @ per_edge - gammaln(links.people + 1).sum())
