"""Compiled inner loops of the collective forward-backward recursion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, prange

__all__ = ["Tokens", "cfb_by_sequence"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Tokens(NamedTuple):
    """Aggregates and the likelihoods of their tokens, as the compiled code takes them.

    Tokens of sequence k at step t: ``indptr[k * length + t] : indptr[k * length + t + 1]``.
    Token i has ``share[i]`` of its group's people, and p(token | state) in row ``row[i]`` of the
    CSR table ``table_indptr, table_states, table_values``.
    """

    indptr: IntArray
    share: FloatArray
    sizes: FloatArray
    row: IntArray
    table_indptr: IntArray
    table_states: IntArray
    table_values: FloatArray
    length: int
    n_states: int


@njit(cache=True, error_model="numpy")
def _mark_support(tokens, at, seen, support):
    """Write the states that the tokens of one step can come from; return how many."""
    first, last = tokens.indptr[at], tokens.indptr[at + 1]
    if first == last:  # nobody looked: every state is possible
        for x in range(tokens.n_states):
            support[x] = x
        return tokens.n_states
    n = 0
    for i in range(first, last):
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            x = tokens.table_states[e]
            if seen[x] != at:
                seen[x] = at
                support[n] = x
                n += 1
    return n


@njit(cache=True, error_model="numpy")
def _expectation(tokens, i, alpha, beta):
    """xi of token i: sum over states of p(token | x) alpha(x) beta(x)."""
    value = 0.0
    for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
        x = tokens.table_states[e]
        value += tokens.table_values[e] * alpha[x] * beta[x]
    return value


@njit(cache=True, error_model="numpy")
def _renew_xi(tokens, at, alpha, beta, xi, ratio):
    """Bring xi of one step up to date; return how far the counts were from being met.

    That is the L1 distance between the shares that the messages implied for the tokens and the
    observed ones. It is infinite when a token cannot be explained by any state.
    """
    first, last = tokens.indptr[at], tokens.indptr[at + 1]
    scale = 0.0
    for i in range(first, last):
        value = _expectation(tokens, i, alpha, beta)
        if not value > 0.0:
            return np.inf
        ratio[i - first] = value / xi[i]
        scale += tokens.share[i] * ratio[i - first]
        xi[i] = value
    residual = 0.0
    for i in range(first, last):
        residual += tokens.share[i] * abs(ratio[i - first] / scale - 1.0)
    return residual


@njit(cache=True, error_model="numpy")
def _gamma_of(tokens, at, xi, gamma, support, n):
    """gamma of one step: sum over tokens u of (c_u / M) l_u(x) / xi(u); 1 where nobody looked."""
    first, last = tokens.indptr[at], tokens.indptr[at + 1]
    for s in range(n):
        gamma[support[s]] = 1.0 if first == last else 0.0
    for i in range(first, last):
        weight = tokens.share[i] / xi[i]
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            gamma[tokens.table_states[e]] += weight * tokens.table_values[e]


@njit(cache=True, error_model="numpy")
def _forward(transmat, alpha, gamma, support, n, next_alpha, next_support, m):
    """alpha of the next step, made to sum to 1; returns what it summed to."""
    for j in range(m):
        next_alpha[next_support[j]] = 0.0
    for s in range(n):
        x = support[s]
        weight = alpha[x] * gamma[x]
        if weight != 0.0:
            for j in range(m):
                y = next_support[j]
                next_alpha[y] += weight * transmat[x, y]
    total = 0.0
    for j in range(m):
        total += next_alpha[next_support[j]]
    if total > 0.0:
        for j in range(m):
            next_alpha[next_support[j]] /= total
    return total


@njit(cache=True, error_model="numpy")
def _backward(transmat, next_beta, next_gamma, next_support, m, beta, support, n, pull):
    """beta of the step before, made to average 1 over its support."""
    for j in range(m):
        y = next_support[j]
        pull[y] = next_beta[y] * next_gamma[y]
    total = 0.0
    for s in range(n):
        x = support[s]
        value = 0.0
        for j in range(m):
            y = next_support[j]
            value += transmat[x, y] * pull[y]
        beta[x] = value
        total += value
    if total > 0.0:
        for s in range(n):
            beta[support[s]] *= n / total


@njit(cache=True, error_model="numpy")
def _sweep(tokens, k, transmat, xi, alpha, beta, gamma, support, n_support, pull, ratio):
    """One forward and one backward pass; the largest residual of any step."""
    worst = 0.0
    last = tokens.length - 1
    for t in range(last):
        at = k * tokens.length + t
        worst = max(worst, _renew_xi(tokens, at, alpha[t], beta[t], xi, ratio))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, at, xi, gamma[t], support[t], n_support[t])
        _forward(
            transmat, alpha[t], gamma[t], support[t], n_support[t],
            alpha[t + 1], support[t + 1], n_support[t + 1],
        )  # fmt: skip
    for t in range(last, min(last, 1) - 1, -1):
        at = k * tokens.length + t
        worst = max(worst, _renew_xi(tokens, at, alpha[t], beta[t], xi, ratio))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, at, xi, gamma[t], support[t], n_support[t])
        if t > 0:
            _backward(
                transmat, beta[t], gamma[t], support[t], n_support[t],
                beta[t - 1], support[t - 1], n_support[t - 1], pull,
            )  # fmt: skip
    return worst


@njit(cache=True, error_model="numpy")
def _collect(
    tokens, k, transmat, alpha, beta, gamma, support, n_support, pull, start, pairs, emission
):
    """Add the expected counts of one sequence, gamma held still; return log Z (nan: impossible).

    The forward pass is made again with the final gamma, so that all marginals agree exactly.
    ``pairs`` is without the factor transmat, which the caller multiplies once for all.
    """
    size = tokens.sizes[k]
    log_z, scale = 0.0, 1.0
    for t in range(tokens.length):
        total = 0.0
        for s in range(n_support[t]):
            x = support[t, s]
            pull[x] = beta[t, x] * gamma[t, x]
            total += alpha[t, x] * pull[x]
        if not total > 0.0:
            return np.nan
        if t == 0:
            for s in range(n_support[t]):
                x = support[t, s]
                start[x] += size * alpha[t, x] * pull[x] / total
        else:
            before = support[t - 1]
            for s in range(n_support[t - 1]):
                x = before[s]
                weight = size * alpha[t - 1, x] * gamma[t - 1, x] / scale / total
                if weight != 0.0:
                    for j in range(n_support[t]):
                        y = support[t, j]
                        pairs[x, y] += weight * pull[y]
        if emission.size:
            at = k * tokens.length + t
            for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
                per_person = tokens.share[i] * size / _expectation(tokens, i, alpha[t], beta[t])
                row = tokens.row[i]
                for e in range(tokens.table_indptr[row], tokens.table_indptr[row + 1]):
                    x = tokens.table_states[e]
                    emission[e] += per_person * tokens.table_values[e] * alpha[t, x] * beta[t, x]
        if t < tokens.length - 1:
            scale = _forward(
                transmat, alpha[t], gamma[t], support[t], n_support[t],
                alpha[t + 1], support[t + 1], n_support[t + 1],
            )  # fmt: skip
            log_z += np.log(scale) if scale > 0.0 else np.nan
    ending = 0.0
    for s in range(n_support[tokens.length - 1]):
        x = support[tokens.length - 1, s]
        ending += alpha[tokens.length - 1, x] * gamma[tokens.length - 1, x]
    return log_z + np.log(ending)


@njit(cache=True, error_model="numpy")
def _entropy(tokens, k, xi):
    """sum over tokens of share * log(share / xi): what the observed shares add to F."""
    total = 0.0
    for i in range(tokens.indptr[k * tokens.length], tokens.indptr[(k + 1) * tokens.length]):
        total += tokens.share[i] * (np.log(tokens.share[i]) - np.log(xi[i]))
    return total


@njit(cache=True, error_model="numpy", parallel=True)
def cfb_by_sequence(
    startprob, transmat, tokens, xi, warm, tol, max_sweeps, with_emission, n_chunks
):
    """Collective forward-backward of every sequence on its own support.

    ``xi`` (one value per token) is the state of the iteration and is renewed in place. Chunks of
    sequences have their own sums, added in order by the caller: the result does not depend on
    the number of threads. ``failed`` holds, per chunk, the first sequence that cannot happen.
    """
    d, length = tokens.n_states, tokens.length
    n_sequences = tokens.sizes.size
    start = np.zeros((n_chunks, d))
    pairs = np.zeros((n_chunks, d, d))
    emission = np.zeros((n_chunks, tokens.table_values.size if with_emission else 0))
    energy = np.zeros(n_chunks)
    sweeps = np.zeros(n_chunks)
    unconverged = np.zeros(n_chunks, dtype=np.int64)
    failed = np.full(n_chunks, -1, dtype=np.int64)
    most_tokens = np.max(np.diff(tokens.indptr))
    for c in prange(n_chunks):
        alpha = np.zeros((length, d))
        beta = np.zeros((length, d))
        gamma = np.zeros((length, d))
        pull = np.zeros(d)
        support = np.empty((length, d), dtype=np.int64)
        n_support = np.empty(length, dtype=np.int64)
        seen = np.full(d, -1, dtype=np.int64)
        ratio = np.empty(most_tokens)
        for k in range(c * n_sequences // n_chunks, (c + 1) * n_sequences // n_chunks):
            # One token a step (M = 1): its likelihood is the message, nothing is left to iterate.
            certain = True
            for t in range(length):
                at = k * length + t
                n_support[t] = _mark_support(tokens, at, seen, support[t])
                certain = certain and tokens.indptr[at + 1] - tokens.indptr[at] <= 1
                for s in range(n_support[t]):
                    beta[t, support[t, s]] = 1.0
            for s in range(n_support[0]):
                alpha[0, support[0, s]] = startprob[support[0, s]]
            if certain:
                xi[tokens.indptr[k * length] : tokens.indptr[(k + 1) * length]] = 1.0
            if certain or warm:
                for t in range(length - 1, -1, -1):
                    at = k * length + t
                    _gamma_of(tokens, at, xi, gamma[t], support[t], n_support[t])
                    if t > 0:
                        _backward(
                            transmat, beta[t], gamma[t], support[t], n_support[t],
                            beta[t - 1], support[t - 1], n_support[t - 1], pull,
                        )  # fmt: skip
            worst = 0.0 if certain else 1.0
            done = 0
            while done < max_sweeps and tol < worst < np.inf:
                worst = _sweep(
                    tokens, k, transmat, xi, alpha, beta, gamma, support, n_support, pull, ratio
                )
                done += 1
            sweeps[c] += max(done, 1)
            unconverged[c] += worst > tol
            log_z = np.nan
            if worst < np.inf:
                log_z = _collect(
                    tokens, k, transmat, alpha, beta, gamma, support, n_support, pull,
                    start[c], pairs[c], emission[c],
                )  # fmt: skip
            if not np.isfinite(log_z):
                failed[c] = k
                break
            energy[c] += tokens.sizes[k] * (_entropy(tokens, k, xi) - log_z)
    return start, pairs, emission, energy, sweeps, unconverged, failed
