"""Collective forward-backward: the E-step of the paper.

One recursion (equations 5a-5d of the paper), two ways to run it. On sequences whose tokens reach
few states, as sensor noise over a city does, each sequence is solved on its own support; where the
support is wide, a block of sequences is solved together by matrix products. Both give the same
numbers; the one with less work is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.aggregates import Aggregates
from agg_core.emissions import TokenLikelihoods
from agg_core.inference import _kernels
from agg_core.inference.base import ExpectedCounts, unreachable
from agg_core.parameters import HMM

__all__ = ["collective_forward_backward"]

FloatArray = npt.NDArray[np.float64]

PRODUCT_GAIN = 12.0
"""How much more arithmetic a second a matrix product does than the loop over supports."""

BLOCK_VALUES = 500_000
"""Sequences x states of one block of matrix products: about 4 MB a message."""


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
    every step of a sweep). At M = 1 one sweep is exact and this is forward-backward.

    The free energy is summed over sequences as M_k times the Kullback-Leibler divergence of
    equation 4 per person: the paper's F less the constant M_k log M_k.

    Raises
    ------
    UnreachableError
        If an observation has probability zero under ``hmm``.
    """
    tokens = _kernels.Tokens(
        indptr=aggregates.indptr,
        share=aggregates.count
        / np.repeat(
            np.repeat(aggregates.sizes, aggregates.length), np.diff(aggregates.indptr)
        ),
        sizes=aggregates.sizes,
        row=likelihoods.row,
        table_indptr=likelihoods.indptr,
        table_states=likelihoods.states,
        table_values=likelihoods.values,
        length=aggregates.length,
        n_states=likelihoods.n_states,
    )
    warm = messages is not None
    xi = np.ones(aggregates.n_tokens) if messages is None else messages.copy()
    by_support = float(_kernels.pair_work(tokens).sum())
    by_product = hmm.n_states**2 * (aggregates.length - 1) * aggregates.n_sequences
    solve = _by_sequence if by_support * PRODUCT_GAIN <= by_product else _by_block
    sums = solve(hmm, tokens, xi, _Control(warm, tol, max_sweeps, with_emission))
    if sums.failed >= 0:
        raise unreachable(aggregates, _impossible_token(hmm, tokens, sums.failed))
    return ExpectedCounts(
        start=sums.start,
        transitions=sums.pairs * hmm.transmat,
        emission=sums.emission if with_emission else None,
        free_energy=sums.energy,
        messages=xi,
        sweeps=sums.sweeps / aggregates.n_sequences,
        n_unconverged=sums.unconverged,
    )


@dataclass(frozen=True)
class _Control:
    warm: bool
    tol: float
    max_sweeps: int
    with_emission: bool


@dataclass
class _Sums:
    """Sums over sequences; ``pairs`` lacks the factor transmat, ``failed`` names a sequence."""

    start: FloatArray
    pairs: FloatArray
    emission: FloatArray
    energy: float = 0.0
    sweeps: float = 0.0
    unconverged: int = 0
    failed: int = -1


def _by_sequence(hmm: HMM, tokens: _kernels.Tokens, xi: FloatArray, control: _Control) -> _Sums:
    n_chunks = int(np.clip(2e8 // (8 * hmm.n_states**2), 1, 8))
    start, pairs, emission, energy, sweeps, unconverged, failed = _kernels.cfb_by_sequence(
        hmm.startprob, hmm.transmat, tokens, xi, control.warm, control.tol, control.max_sweeps,
        control.with_emission, min(n_chunks, len(tokens.sizes)),
    )  # fmt: skip
    return _Sums(
        start=start.sum(axis=0),
        pairs=pairs.sum(axis=0),
        emission=emission.sum(axis=0),
        energy=float(energy.sum()),
        sweeps=float(sweeps.sum()),
        unconverged=int(unconverged.sum()),
        failed=int(failed[failed >= 0].min(initial=len(tokens.sizes))) if (failed >= 0).any() else -1,
    )


def _by_block(hmm: HMM, tokens: _kernels.Tokens, xi: FloatArray, control: _Control) -> _Sums:
    d = hmm.n_states
    sums = _Sums(
        np.zeros(d),
        np.zeros((d, d)),
        np.zeros(tokens.table_values.size if control.with_emission else 0),
    )
    size = max(1, BLOCK_VALUES // d)
    for first in range(0, len(tokens.sizes), size):
        block = np.arange(first, min(first + size, len(tokens.sizes)))
        _solve_block(hmm, tokens, xi, control, block, sums)
        if sums.failed < 0:
            _collect_block(hmm, tokens, xi, block, sums)
        if sums.failed >= 0:
            break
    return sums


class _Messages:
    """alpha, beta and gamma (T, n, d) of the sequences in ``active``, and the moves between them."""

    def __init__(
        self, hmm: HMM, tokens: _kernels.Tokens, xi: FloatArray, active: npt.NDArray[np.int64]
    ) -> None:
        shape = (tokens.length, len(active), hmm.n_states)
        self.hmm, self.tokens, self.xi, self.active = hmm, tokens, xi, active
        self.alpha = np.empty(shape)
        self.alpha[0] = hmm.startprob
        self.beta = np.ones(shape)
        self.gamma = np.empty(shape)
        self.residual = np.zeros(len(active))
        self.scale = np.ones(shape[:2])

    def renew_gamma(self, t: int, *, renew: bool) -> None:
        _kernels.update_gamma(
            self.tokens, self.active, t, self.alpha[t], self.beta[t], self.xi, self.gamma[t],
            self.residual, renew,
        )  # fmt: skip

    def forward(self, t: int) -> None:
        after = self.alpha[t + 1]
        np.matmul(self.alpha[t] * self.gamma[t], self.hmm.transmat, out=after)
        self.scale[t] = after.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            after /= self.scale[t][:, None]

    def backward(self, t: int) -> None:
        before = self.beta[t - 1]
        np.matmul(self.beta[t] * self.gamma[t], self.hmm.transmat.T, out=before)
        with np.errstate(divide="ignore", invalid="ignore"):
            before /= before.mean(axis=1, keepdims=True)

    def backward_all(self) -> None:
        for t in range(self.tokens.length - 1, -1, -1):
            self.renew_gamma(t, renew=False)
            if t > 0:
                self.backward(t)

    def sweep(self) -> None:
        self.residual[:] = 0.0
        last = self.tokens.length - 1
        for t in range(last):
            self.renew_gamma(t, renew=True)
            self.forward(t)
        for t in range(last, min(last, 1) - 1, -1):
            self.renew_gamma(t, renew=True)
            if t > 0:
                self.backward(t)

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        self.active = self.active[which]
        self.alpha, self.beta = self.alpha[:, which], self.beta[:, which]
        self.gamma, self.scale = self.gamma[:, which], self.scale[:, which]
        self.residual = self.residual[which]


def _solve_block(
    hmm: HMM,
    tokens: _kernels.Tokens,
    xi: FloatArray,
    control: _Control,
    block: npt.NDArray[np.int64],
    sums: _Sums,
) -> None:
    """Sweep until the xi of every sequence in the block stand still."""
    most = np.diff(tokens.indptr).reshape(-1, tokens.length)[block].max(axis=1)
    certain = most <= 1
    for k in block[certain]:
        xi[tokens.indptr[k * tokens.length] : tokens.indptr[(k + 1) * tokens.length]] = 1.0
    sums.sweeps += float(certain.sum())
    messages = _Messages(hmm, tokens, xi, block[~certain])
    if control.warm:
        messages.backward_all()
    for _ in range(control.max_sweeps):
        if not len(messages.active):
            return
        messages.sweep()
        sums.sweeps += len(messages.active)
        if np.isinf(messages.residual).any():
            sums.failed = int(messages.active[np.isinf(messages.residual)][0])
            return
        going = messages.residual > control.tol
        # Copying the rest costs about a tenth of a sweep, so wait until enough have finished.
        if going.sum() < 0.8 * len(going):
            messages.keep(going)
    sums.unconverged += int((messages.residual > control.tol).sum())


def _collect_block(
    hmm: HMM,
    tokens: _kernels.Tokens,
    xi: FloatArray,
    block: npt.NDArray[np.int64],
    sums: _Sums,
) -> None:
    """Add the expected counts of a block, gamma held still, so that all marginals agree."""
    messages = _Messages(hmm, tokens, xi, block)
    messages.backward_all()
    size = tokens.sizes[block][:, None]
    log_z = np.zeros(len(block))
    for t in range(tokens.length):
        alpha, pull = messages.alpha[t], messages.beta[t] * messages.gamma[t]
        total = np.einsum("kx,kx->k", alpha, pull)[:, None]
        if not (total > 0).all():
            sums.failed = int(block[~(total[:, 0] > 0)][0])
            return
        if t == 0:
            sums.start += (size * alpha * pull / total).sum(axis=0)
        else:
            push = messages.alpha[t - 1] * messages.gamma[t - 1]
            push *= size / (messages.scale[t - 1][:, None] * total)
            sums.pairs += push.T @ pull
        if sums.emission.size:
            _kernels.token_counts(tokens, block[0], alpha, messages.beta[t], t, sums.emission)
        if t < tokens.length - 1:
            messages.forward(t)
            log_z += np.log(messages.scale[t])
    log_z += np.log(np.einsum("kx,kx->k", messages.alpha[-1], messages.gamma[-1]))
    mine = slice(
        tokens.indptr[block[0] * tokens.length], tokens.indptr[(block[-1] + 1) * tokens.length]
    )
    share, owner = tokens.share[mine], tokens.sizes[block]
    per_token = share * (np.log(share) - np.log(xi[mine]))
    tokens_of = np.diff(tokens.indptr).reshape(-1, tokens.length)[block].sum(axis=1)
    sums.energy += float((np.repeat(owner, tokens_of) * per_token).sum() - (owner * log_z).sum())


def _impossible_token(hmm: HMM, tokens: _kernels.Tokens, k: int) -> int:
    """First token of sequence k that no state reachable from the steps before can explain."""
    reach = hmm.startprob > 0
    for t in range(tokens.length):
        at = k * tokens.length + t
        first, last = int(tokens.indptr[at]), int(tokens.indptr[at + 1])
        shown = np.zeros_like(reach)
        for i in range(first, last):
            entries = slice(
                tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]
            )
            states = tokens.table_states[entries]
            if not reach[states].any():
                return i
            shown[states] = True
        here = reach & shown if last > first else reach
        reach = (hmm.transmat[here] > 0).any(axis=0)
    return int(tokens.indptr[k * tokens.length])
