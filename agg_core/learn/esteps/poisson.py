"""E-steps that take the counts for Poisson readings: the baselines of the paper's Fig. 7.

Group k has M_k people, mu holds the local marginals of its chain (nodes mu_t, pairs mu_t,t+1) and
lambda_t(o) = M_k sum_x C(x, o) mu_t(x) is the expected reading of symbol o. All three E-steps
minimise the same convex free energy, summed over the groups::

    F_k = sum_t sum_o [lambda_t(o) - y_t(o) log lambda_t(o)] + M_k KL(mu || p_theta)

over the marginals that agree with each other; t runs over the steps that somebody observed. C is
the emission, or the identity if the readings are of the states themselves. The least rate that the
logarithm is taken of is 1e-9 of M_k max_x C(x, o) over the states x that can be reached; below, its
tangent goes on: F stays convex and finite, and the optimum is far above. A step whose readings are
all 0 counts as not observed, which is the same to all but a constant of F, M_k. The minimum solves
mu = Orc(-g(mu)) with

    g_t(x)   = -sum_o C(x, o) y_t(o) / lambda_t(o)     (the gradient of the first sum, per person)
    Orc(psi) = marginals of p_theta(x_1, ..., x_T) prod_t exp(psi_t(x_t)), by forward-backward

The problem per person depends on y / M alone, so the sweeps needed do not grow with M.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import states_after, whole
from agg_core.learn.esteps._kernels import Tokens
from agg_core.learn.esteps._poisson_kernels import (
    BETHE_RDA,
    NLBP,
    NLBP_LINE_SEARCH,
    PROX,
    Chain,
    poisson_of_groups,
)
from agg_core.learn.esteps.base import (
    ExpectedCounts,
    NoiseMap,
    Part,
    parts_of,
    runs_of,
    tokens_of,
    unexplained,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["bethe_rda", "nlbp", "prox"]

FloatArray = npt.NDArray[np.float64]

FLOOR = 1e-9

Step = Literal["fixed", "line_search"]
STEPS: tuple[Step, ...] = get_args(Step)


def nlbp(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: FloatArray | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 500,
    with_emission: bool = False,
    noise_map: NoiseMap = "emission",
    step: Step = "fixed",
) -> ExpectedCounts:
    """Expected counts by non-linear belief propagation (Sun, Sheldon & Kumar, ICML 2015).

    mu <- (1 - w) mu + w Orc(-g(mu)), with w = 0.08, which nothing guarantees to converge, or w by
    a line search, with which F never rises. A sequence stops when no step's mu moved by ``tol``
    (L1). With the fixed step the counts are those of Orc(-g(mu)), with the line search of mu.

    Raises
    ------
    InputError
        If ``with_emission`` is set, the observations are places, or ``noise_map`` is "identity"
        and symbols are not as many as states; `UnreachableError` if a symbol that was read can
        never be shown.
    """
    if step not in STEPS:
        raise InputError(
            f"step must be one of {', '.join(STEPS)}; it was {step!r}.", code="not-a-choice"
        )
    method = NLBP_LINE_SEARCH if step == "line_search" else NLBP
    return _minimise(
        method, hmm, aggregates, likelihoods, messages, tol, max_sweeps, with_emission, noise_map
    )


def bethe_rda(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: FloatArray | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 500,
    with_emission: bool = False,
    noise_map: NoiseMap = "emission",
) -> ExpectedCounts:
    """Expected counts by regularised dual averaging (Bethe-RDA; Vilnis et al., UAI 2015).

    mu = Orc(-[n / (n + 5)] times the mean of the n gradients so far). It always converges, but F
    comes near its minimum as 1 / n^2, and gradients from a bad start are long remembered: expect
    the limit of sweeps. A sequence stops as in `nlbp`, whose errors it raises; as each sweep moves
    mu by 1 / n of the way, what is left may be n times ``tol``. Gradients of earlier calls, with
    their messages, weigh no more than ``max_sweeps`` new ones.
    """
    return _minimise(
        BETHE_RDA, hmm, aggregates, likelihoods, messages, tol, max_sweeps, with_emission, noise_map
    )


def prox(
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    *,
    messages: FloatArray | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 500,
    with_emission: bool = False,
    noise_map: NoiseMap = "emission",
) -> ExpectedCounts:
    """Expected counts by mirror descent, a proximal method (Prox; Singh, Haasler et al. 2020).

    psi <- (1 - r) psi - r g(mu), mu = Orc(psi). The step r grows by 1.1 where F falls, and is
    halved, and the move undone, where it could rise: F never rises. Moves undone are counted as
    sweeps. A sequence stops as in `nlbp`, whose errors it raises.
    """
    return _minimise(
        PROX, hmm, aggregates, likelihoods, messages, tol, max_sweeps, with_emission, noise_map
    )


def _minimise(
    method: int,
    hmm: HMM,
    aggregates: Aggregates,
    likelihoods: TokenLikelihoods,
    messages: FloatArray | None,
    tol: float,
    max_sweeps: int,
    with_emission: bool,
    noise_map: NoiseMap,
) -> ExpectedCounts:
    _check_task(aggregates, with_emission)
    table = _identity(hmm, aggregates) if noise_map == "identity" else likelihoods
    sequence = aggregates.step_of_token // aggregates.length
    tokens = tokens_of(aggregates, table, aggregates.count / aggregates.sizes[sequence])
    messages = _no_messages(hmm, aggregates) if messages is None else messages
    floors = _floors(hmm, aggregates, tokens)
    parts = parts_of(tokens, runs_of(aggregates, hmm.n_states**2))
    found = current().map(
        partial(_learned, _chain(hmm), method, tol, max_sweeps),
        (
            (part, floors[part.here], messages[part.first : part.first + len(part.tokens.sizes)])
            for part in parts
        ),
    )
    start, pairs, energy, sweeps, unconverged = (
        sum(part[1:], part[0]) for part in zip(*(sums for sums, _ in found), strict=True)
    )
    return ExpectedCounts(
        start=start,
        transitions=pairs,
        emission=None,
        free_energy=float(energy),
        messages=np.concatenate([of_part for _, of_part in found]),
        sweeps=float(sweeps) / aggregates.n_sequences,
        n_unconverged=int(unconverged),
    )


def _no_messages(hmm: HMM, aggregates: Aggregates) -> FloatArray:
    """States of the iteration (K, T d) and its memory beside them, at the beginning."""
    return np.zeros((aggregates.n_sequences, aggregates.length * hmm.n_states + 1))


def _learned(
    chain: Chain,
    method: int,
    tol: float,
    max_sweeps: int,
    given: tuple[Part, FloatArray, FloatArray],
) -> tuple[tuple[Any, ...], FloatArray]:
    """The sums of a part of the groups, from their messages on, and what became of these."""
    part, floors, messages = given
    shape = len(messages), part.tokens.length, part.tokens.n_states
    states, memories = messages[:, :-1].reshape(shape).copy(), messages[:, -1].copy()
    sums = poisson_of_groups(chain, part.tokens, floors, method, states, memories, tol, max_sweeps)
    return sums, np.column_stack([states.reshape(len(states), -1), memories])


def _check_task(aggregates: Aggregates, with_emission: bool) -> None:
    if with_emission:
        raise InputError(
            "Learners with Poisson noise learn startprob and transmat only; fix the emission.",
            code="emission-not-fixed",
        )
    if aggregates.points is not None:
        raise InputError(
            "Learners with Poisson noise need counts of symbols; these observations are places: "
            "use cfb, or count them on a grid.",
            code="symbols-needed",
        )


def _identity(hmm: HMM, aggregates: Aggregates) -> TokenLikelihoods:
    """Symbol o counts the people in state o."""
    d = hmm.n_states
    if aggregates.n_symbols != d:
        raise InputError(
            f"Counts of the states themselves need as many symbols as states; there are "
            f"{aggregates.n_symbols} symbols and {d} states: use the emission as noise map.",
            code="symbols-unlike-states",
        )
    return TokenLikelihoods(
        indptr=np.arange(d + 1, dtype=np.int64),
        states=np.arange(d, dtype=np.int64),
        values=np.ones(d),
        row=aggregates.symbol,
        n_states=d,
    )


def _chain(hmm: HMM) -> Chain:
    with np.errstate(divide="ignore"):
        return Chain(
            np.ascontiguousarray(hmm.startprob),
            np.ascontiguousarray(whole(hmm.transmat)),
            np.log(hmm.startprob),
            np.ascontiguousarray(np.log(whole(hmm.transmat))),
        )


def _floors(hmm: HMM, aggregates: Aggregates, tokens: Tokens) -> FloatArray:
    """Least lambda / M of each token that its logarithm is taken of.

    A token must have a state that the chain can be in at its step. That is enough: Poisson noise
    lets any two steps disagree, so that no other conflict is final.
    """
    row_of_entry = np.repeat(np.arange(len(tokens.table_indptr) - 1), np.diff(tokens.table_indptr))
    step = aggregates.step_of_token % aggregates.length
    largest = np.zeros(aggregates.n_tokens)
    reach: npt.NDArray[np.bool_] = hmm.startprob > 0
    for t in range(aggregates.length):
        by_row = np.zeros(len(tokens.table_indptr) - 1)
        np.maximum.at(by_row, row_of_entry, tokens.table_values * reach[tokens.table_states])
        here = step == t
        largest[here] = by_row[tokens.row[here]]
        reach = states_after(hmm.transmat, reach)
    if not largest.all():
        token = int(np.argmin(largest))
        raise unexplained(aggregates, aggregates.locate(token)[0], token)
    return FLOOR * largest
