"""Collective forward-backward: the E-step of the paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.learn.esteps._kernels import cfb_by_sequence
from agg_core.learn.esteps.base import (
    ExpectedCounts,
    chunks_of,
    impossible_token,
    tokens_of,
    unreachable,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["collective_forward_backward"]

FloatArray = npt.NDArray[np.float64]


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
    tokens = tokens_of(aggregates, likelihoods, aggregates.shares)
    warm = messages is not None
    xi = np.ones(aggregates.n_tokens) if messages is None else messages.copy()
    start, pairs, emission, energy, sweeps, unconverged, failed = cfb_by_sequence(
        np.ascontiguousarray(hmm.startprob), np.ascontiguousarray(hmm.transmat), tokens, xi,
        warm, tol, max_sweeps, with_emission, chunks_of(aggregates, hmm.n_states),
    )  # fmt: skip
    if (failed >= 0).any():
        sequence = int(failed[failed >= 0].min())
        raise unreachable(aggregates, sequence, impossible_token(hmm, tokens, sequence))
    return ExpectedCounts(
        start=start.sum(axis=0),
        transitions=pairs.sum(axis=0) * hmm.transmat,
        emission=emission.sum(axis=0) if with_emission else None,
        free_energy=float(energy.sum()) - likelihoods.log_scale_of(aggregates),
        messages=xi,
        sweeps=float(sweeps.sum()) / aggregates.n_sequences,
        n_unconverged=int(unconverged.sum()),
    )
