"""Compiled inner loops of the collective forward-backward recursion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["Tokens", "cfb_of_groups"]

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


class Room(NamedTuple):
    """One sequence on its own support; the s-th state of step t is ``states[t, s]``.

    ``alpha``, ``beta``, ``gamma`` (T, d) lie on the support, which is ``n[t]`` states wide. The
    i-th token of the sequence has the likelihoods ``value[first[i] : first[i + 1]]`` of the states
    ``at[first[i] : first[i + 1]]`` of its step's support. The transitions from the support of step
    t to the next, row by row, begin at ``block_first[t]`` of their block; where both supports are
    all states in their order that is -1, and the transitions are taken as they are.
    """

    states: IntArray
    n: IntArray
    alpha: FloatArray
    beta: FloatArray
    gamma: FloatArray
    first: IntArray
    at: npt.NDArray[np.uint32]
    value: FloatArray
    block_first: IntArray
    weight: FloatArray
    ratio: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_support(tokens, k, seen, place, room):
    """Note the states that the tokens of each step can come from; returns the size of blocks."""
    entry, size, whole_before = 0, 0, False
    base = tokens.indptr[k * tokens.length]
    for t in range(tokens.length):
        at = k * tokens.length + t
        first, last = tokens.indptr[at], tokens.indptr[at + 1]
        n = 0
        for i in range(first, last):
            row = tokens.row[i]
            room.first[i - base] = entry
            for e in range(tokens.table_indptr[row], tokens.table_indptr[row + 1]):
                x = tokens.table_states[e]
                if seen[x] != at:
                    seen[x], place[x] = at, n
                    room.states[t, n] = x
                    n += 1
                room.at[entry], room.value[entry] = place[x], tokens.table_values[e]
                entry += 1
            room.first[i - base + 1] = entry
        if first == last:  # nobody looked: every state is possible
            n = tokens.n_states
            for x in range(n):
                room.states[t, x] = x
        room.n[t] = n
        whole = n == tokens.n_states
        for x in range(n if whole else 0):
            whole = whole and room.states[t, x] == x
        if t > 0:
            room.block_first[t - 1] = -1 if whole and whole_before else size
            size += 0 if whole and whole_before else room.n[t - 1] * n
        whole_before = whole
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(transmat, room, block):
    """Copy the transitions between the supports, which every sweep then reads as they lie."""
    at = 0
    for t in range(room.n.size - 1):
        if room.block_first[t] < 0:
            continue
        for s in range(room.n[t]):
            line = transmat[room.states[t, s]]
            for j in range(room.n[t + 1]):
                block[at + j] = line[room.states[t + 1, j]]
            at += room.n[t + 1]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pushed(weight, moves, out):
    """``out`` (m,) = ``weight`` (n,) times ``moves`` (n, m), made to sum to 1.

    Returns what it summed to. Four rows at a time: ``out`` is read and written a quarter as often.
    """
    n, m = moves.shape
    whole = n - n % 4
    for j in range(m):
        out[j] = 0.0
    for s in range(0, whole, 4):
        a, b, c, d = weight[s], weight[s + 1], weight[s + 2], weight[s + 3]
        for j in range(m):
            out[j] += (
                a * moves[s, j] + b * moves[s + 1, j] + c * moves[s + 2, j] + d * moves[s + 3, j]
            )
    for s in range(whole, n):
        for j in range(m):
            out[j] += weight[s] * moves[s, j]
    total = 0.0
    for j in range(m):
        total += out[j]
    if total > 0.0:
        factor = 1.0 / total
        for j in range(m):
            out[j] *= factor
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pulled(moves, weight, out):
    """``out`` (n,) = ``moves`` (n, m) times ``weight`` (m,), made to average 1."""
    n, m = moves.shape
    whole = n - n % 4
    total = 0.0
    for s in range(0, whole, 4):
        a = b = c = d = 0.0
        for j in range(m):
            a += moves[s, j] * weight[j]
            b += moves[s + 1, j] * weight[j]
            c += moves[s + 2, j] * weight[j]
            d += moves[s + 3, j] * weight[j]
        out[s], out[s + 1], out[s + 2], out[s + 3] = a, b, c, d
        total += a + b + c + d
    for s in range(whole, n):
        a = 0.0
        for j in range(m):
            a += moves[s, j] * weight[j]
        out[s] = a
        total += a
    if total > 0.0:
        factor = n / total
        for s in range(n):
            out[s] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def _moves_between(room, transmat, block, t):
    """The transitions (n, m) from the support of step t to the next."""
    n, m, first = room.n[t], room.n[t + 1], room.block_first[t]
    if first < 0:
        return transmat
    return block[first : first + n * m].reshape(n, m)


@njit(cache=True, nogil=True, error_model="numpy")
def _renew_xi(tokens, k, t, xi, room):
    """Bring xi of one step up to date; return how far the counts were from being met.

    xi of token i is the sum over states of p(token | x) alpha(x) beta(x). What is returned is the
    L1 distance between the shares that the messages implied for the tokens and the observed ones.
    It is infinite when a token cannot be explained by any state.
    """
    at, base = k * tokens.length + t, tokens.indptr[k * tokens.length]
    first, last = tokens.indptr[at], tokens.indptr[at + 1]
    both = room.weight
    for s in range(room.n[t]):
        both[s] = room.alpha[t, s] * room.beta[t, s]
    scale = 0.0
    for i in range(first, last):
        value = 0.0
        for e in range(room.first[i - base], room.first[i - base + 1]):
            value += room.value[e] * both[room.at[e]]
        if not value > 0.0:
            return np.inf
        room.ratio[i - first] = value / xi[i]
        scale += tokens.share[i] * room.ratio[i - first]
        xi[i] = value
    residual, even = 0.0, 1.0 / scale
    for i in range(first, last):
        residual += tokens.share[i] * abs(room.ratio[i - first] * even - 1.0)
    return residual


@njit(cache=True, nogil=True, error_model="numpy")
def _gamma_of(tokens, k, t, xi, room):
    """gamma of one step: sum over tokens u of (c_u / M) l_u(x) / xi(u); 1 where nobody looked."""
    at, base = k * tokens.length + t, tokens.indptr[k * tokens.length]
    first, last = tokens.indptr[at], tokens.indptr[at + 1]
    gamma = room.gamma[t]
    for s in range(room.n[t]):
        gamma[s] = 1.0 if first == last else 0.0
    for i in range(first, last):
        weight = tokens.share[i] / xi[i]
        for e in range(room.first[i - base], room.first[i - base + 1]):
            gamma[room.at[e]] += weight * room.value[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(room, transmat, block, t):
    """alpha of the step after t; returns what it summed to before it was made to sum to 1."""
    for s in range(room.n[t]):
        room.weight[s] = room.alpha[t, s] * room.gamma[t, s]
    return _pushed(room.weight, _moves_between(room, transmat, block, t), room.alpha[t + 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(room, transmat, block, t):
    """beta of the step before t."""
    for j in range(room.n[t]):
        room.weight[j] = room.beta[t, j] * room.gamma[t, j]
    _pulled(_moves_between(room, transmat, block, t - 1), room.weight, room.beta[t - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(tokens, k, transmat, xi, room, block):
    """One forward and one backward pass; the largest residual of any step."""
    worst = 0.0
    last = tokens.length - 1
    for t in range(last):
        worst = max(worst, _renew_xi(tokens, k, t, xi, room))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, k, t, xi, room)
        _forward(room, transmat, block, t)
    for t in range(last, min(last, 1) - 1, -1):
        worst = max(worst, _renew_xi(tokens, k, t, xi, room))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, k, t, xi, room)
        if t > 0:
            _backward(room, transmat, block, t)
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _add_emission(tokens, k, t, room, emission):
    """Add the people of one step, by the entry of the table that they show."""
    at, base = k * tokens.length + t, tokens.indptr[k * tokens.length]
    both = room.weight
    for s in range(room.n[t]):
        both[s] = room.alpha[t, s] * room.beta[t, s]
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        first, last = room.first[i - base], room.first[i - base + 1]
        value = 0.0
        for e in range(first, last):
            value += room.value[e] * both[room.at[e]]
        per_person = tokens.share[i] * tokens.sizes[k] / value
        shown = tokens.table_indptr[tokens.row[i]]
        for e in range(first, last):
            emission[shown + e - first] += per_person * room.value[e] * both[room.at[e]]


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(tokens, k, transmat, room, block, start, pairs, emission):
    """Add the expected counts of one sequence, gamma held still; return log Z (nan: impossible).

    The forward pass is made again with the final gamma, so that all marginals agree exactly.
    ``pairs`` is without the factor transmat, which the caller multiplies once for all.
    """
    size = tokens.sizes[k]
    log_z, scale = 0.0, 1.0
    pull = room.weight
    for t in range(tokens.length):
        n, total = room.n[t], 0.0
        for s in range(n):
            pull[s] = room.beta[t, s] * room.gamma[t, s]
            total += room.alpha[t, s] * pull[s]
        if not total > 0.0:
            return np.nan
        if t == 0:
            for s in range(n):
                start[room.states[0, s]] += size * room.alpha[0, s] * pull[s] / total
        else:
            for s in range(room.n[t - 1]):
                weight = size * room.alpha[t - 1, s] * room.gamma[t - 1, s] / scale / total
                if weight != 0.0:
                    line = pairs[room.states[t - 1, s]]
                    for j in range(n):
                        line[room.states[t, j]] += weight * pull[j]
        if emission.size:
            _add_emission(tokens, k, t, room, emission)
        if t < tokens.length - 1:
            scale = _forward(room, transmat, block, t)
            log_z += np.log(scale) if scale > 0.0 else np.nan
    ending, last = 0.0, tokens.length - 1
    for s in range(room.n[last]):
        ending += room.alpha[last, s] * room.gamma[last, s]
    return log_z + np.log(ending)


@njit(cache=True, nogil=True, error_model="numpy")
def _entropy(tokens, k, xi):
    """sum over tokens of share * log(share / xi): what the observed shares add to F."""
    total = 0.0
    for i in range(tokens.indptr[k * tokens.length], tokens.indptr[(k + 1) * tokens.length]):
        total += tokens.share[i] * (np.log(tokens.share[i]) - np.log(xi[i]))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _most(tokens):
    """Tokens of a sequence, and entries of their likelihoods together, at most."""
    most_tokens, most_entries = 0, 0
    for k in range(tokens.sizes.size):
        first, last = tokens.indptr[k * tokens.length], tokens.indptr[(k + 1) * tokens.length]
        most_tokens, entries = max(most_tokens, last - first), 0
        for i in range(first, last):
            entries += tokens.table_indptr[tokens.row[i] + 1] - tokens.table_indptr[tokens.row[i]]
        most_entries = max(most_entries, entries)
    return most_tokens, most_entries


@njit(cache=True, nogil=True, error_model="numpy")
def cfb_of_groups(startprob, transmat, tokens, xi, warm, tol, max_sweeps, with_emission):
    """Collective forward-backward of every sequence on its own support.

    ``xi`` (one value per token) is the state of the iteration and is renewed in place;
    ``transmat`` must be writeable, though it is only read. Returns start (d,), pairs (d, d) without
    the factor transmat, emission (table entries,; none without ``with_emission``), the energy,
    sweeps, sequences that reached the limit of them, and the first sequence that cannot happen or
    -1.
    """
    d, length = tokens.n_states, tokens.length
    start, pairs = np.zeros(d), np.zeros((d, d))
    emission = np.zeros(tokens.table_values.size if with_emission else 0)
    energy, sweeps, unconverged = 0.0, 0, 0
    most_tokens, most_entries = _most(tokens)
    room = Room(
        np.empty((length, d), dtype=np.int64), np.empty(length, dtype=np.int64),
        np.zeros((length, d)), np.zeros((length, d)), np.zeros((length, d)),
        np.empty(most_tokens + 1, dtype=np.int64), np.empty(most_entries, dtype=np.uint32),
        np.empty(most_entries), np.empty(length, dtype=np.int64), np.zeros(d),
        np.empty(most_tokens),
    )  # fmt: skip
    seen, place = np.full(d, -1, dtype=np.int64), np.empty(d, dtype=np.int64)
    block = np.empty(0)
    for k in range(tokens.sizes.size):
        size = _mark_support(tokens, k, seen, place, room)
        if size > block.size:
            block = np.empty(2 * size)
        _gather(transmat, room, block)
        # One token a step (M = 1): its likelihood is the message, nothing is left to iterate.
        certain = True
        for t in range(length):
            at = k * length + t
            certain = certain and tokens.indptr[at + 1] - tokens.indptr[at] <= 1
            for s in range(room.n[t]):
                room.beta[t, s] = 1.0
        for s in range(room.n[0]):
            room.alpha[0, s] = startprob[room.states[0, s]]
        if certain:
            xi[tokens.indptr[k * length] : tokens.indptr[(k + 1) * length]] = 1.0
        if certain or warm:
            for t in range(length - 1, -1, -1):
                _gamma_of(tokens, k, t, xi, room)
                if t > 0:
                    _backward(room, transmat, block, t)
        worst, done = 0.0 if certain else 1.0, 0
        while done < max_sweeps and tol < worst < np.inf:
            worst = _sweep(tokens, k, transmat, xi, room, block)
            done += 1
        sweeps += max(done, 1)
        unconverged += worst > tol
        log_z = np.nan
        if worst < np.inf:
            log_z = _collect(tokens, k, transmat, room, block, start, pairs, emission)
        if not np.isfinite(log_z):
            return start, pairs, emission, energy, sweeps, unconverged, k
        energy += tokens.sizes[k] * (_entropy(tokens, k, xi) - log_z)
    return start, pairs, emission, energy, sweeps, unconverged, -1
