"""Compiled inner loops of the collective forward-backward recursion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from agg_core.learn.esteps._kinds import by_kind

__all__ = ["NearBlock", "NearMoves", "Tokens", "cfb_of_groups", "first_impossible"]

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


class NearMoves(NamedTuple):
    """Transitions between some pairs of states alone (CSR).

    Those from x lead to ``dest[indptr[x] : indptr[x + 1]]``, in order, by ``chance`` of the same.
    """

    indptr: IntArray
    dest: IntArray
    chance: FloatArray


class NearBlock(NamedTuple):
    """Such transitions between the supports of the steps of one sequence.

    Those from the s-th state of step t, ``first[t, s] : first[t, s + 1]``, lead to the states
    ``at`` of the next step's support by ``chance``, and are the entries ``entry`` of all moves.
    """

    first: IntArray
    at: npt.NDArray[np.uint32]
    entry: npt.NDArray[np.uint32]
    chance: FloatArray


class Room(NamedTuple):
    """One sequence on its own support; the s-th state of step t is ``states[t, s]``.

    ``alpha``, ``beta``, ``gamma`` (T, d) lie on the support, which is ``n[t]`` states wide, and
    ``whole[t]`` where these are all states in their order. The i-th token of the sequence has the
    likelihoods ``value[first[i] : first[i + 1]]`` of the states ``at[first[i] : first[i + 1]]`` of
    its step's support. The transitions from the support of step t to the next, row by row, begin at
    ``block_first[t]`` of their block; where both supports are whole that is -1, and the transitions
    are taken as they are.
    """

    states: IntArray
    n: IntArray
    whole: npt.NDArray[np.bool_]
    alpha: FloatArray
    beta: FloatArray
    gamma: FloatArray
    first: IntArray
    at: npt.NDArray[np.uint32]
    value: FloatArray
    block_first: IntArray
    weight: FloatArray
    ratio: FloatArray


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _mark_support(tokens, k, t, entry, seen, place, room):
    """Note the states that the tokens of a step can come from.

    ``entry`` likelihoods were noted of the steps before; returns that with those of this one.
    ``seen`` of its states is the number of the step, and ``place`` where they are in its support.
    """
    base, at = tokens.indptr[k * tokens.length], k * tokens.length + t
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
    room.whole[t] = whole
    return entry


# What differs between whole transitions and those of near states.


def _no_block_of_whole(_moves, _length, _d):
    """Room for the transitions between supports."""
    return np.empty(0)


def _no_block_of_near(_moves, length, d):
    return NearBlock(
        np.empty((length, d + 1), dtype=np.int64), np.empty(0, dtype=np.uint32),
        np.empty(0, dtype=np.uint32), np.empty(0),
    )  # fmt: skip


_no_block = by_kind(_no_block_of_whole, _no_block_of_near)


def _no_pairs_of_whole(moves):
    """Expected moves, none yet: (d, d), or one of each of near moves."""
    return np.zeros(moves.shape)


def _no_pairs_of_near(moves):
    return np.zeros(moves.dest.size)


_no_pairs = by_kind(_no_pairs_of_whole, _no_pairs_of_near)


def _gather_whole(moves, room, block, t, used, _seen, _place, _mark):
    """Copy the transitions from the support of step t to the next, which has just been marked.

    Every sweep then reads them as they lie. ``used`` of the block is filled; returns what is then,
    and the block, a larger one if need be.
    """
    n, m = room.n[t], room.n[t + 1]
    if room.whole[t] and room.whole[t + 1]:
        room.block_first[t] = -1
        return used, block
    if used + n * m > block.size:
        grown = np.empty(2 * (used + n * m))
        grown[:used] = block[:used]
        block = grown
    room.block_first[t] = used
    for s in range(n):
        line = moves[room.states[t, s]]
        for j in range(m):
            block[used + j] = line[room.states[t + 1, j]]
        used += m
    return used, block


def _gather_near(moves, room, block, t, used, seen, place, mark):
    most = used
    for s in range(room.n[t]):
        x = room.states[t, s]
        most += moves.indptr[x + 1] - moves.indptr[x]
    if most > block.at.size:
        grown = NearBlock(
            block.first, np.empty(2 * most, dtype=np.uint32), np.empty(2 * most, dtype=np.uint32),
            np.empty(2 * most),
        )  # fmt: skip
        grown.at[:used], grown.entry[:used] = block.at[:used], block.entry[:used]
        grown.chance[:used] = block.chance[:used]
        block = grown
    for s in range(room.n[t]):
        x = room.states[t, s]
        block.first[t, s] = used
        for e in range(moves.indptr[x], moves.indptr[x + 1]):
            y = moves.dest[e]
            if room.whole[t + 1] or seen[y] == mark:
                block.at[used] = y if room.whole[t + 1] else place[y]
                block.entry[used], block.chance[used] = e, moves.chance[e]
                used += 1
        block.first[t, s + 1] = used
    return used, block


_gather = by_kind(_gather_whole, _gather_near)


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
def _moves_between(room, moves, block, t):
    """The transitions (n, m) from the support of step t to the next."""
    n, m, first = room.n[t], room.n[t + 1], room.block_first[t]
    if first < 0:
        return moves
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


def _forward_whole(moves, room, block, t):
    """alpha of the step after t; returns what it summed to before it was made to sum to 1."""
    for s in range(room.n[t]):
        room.weight[s] = room.alpha[t, s] * room.gamma[t, s]
    return _pushed(room.weight, _moves_between(room, moves, block, t), room.alpha[t + 1])


def _forward_near(_moves, room, block, t):
    out, m = room.alpha[t + 1], room.n[t + 1]
    for j in range(m):
        out[j] = 0.0
    for s in range(room.n[t]):
        weight = room.alpha[t, s] * room.gamma[t, s]
        if weight != 0.0:
            for e in range(block.first[t, s], block.first[t, s + 1]):
                out[block.at[e]] += weight * block.chance[e]
    total = 0.0
    for j in range(m):
        total += out[j]
    if total > 0.0:
        for j in range(m):
            out[j] /= total
    return total


_forward = by_kind(_forward_whole, _forward_near)


def _backward_whole(moves, room, block, t):
    """beta of the step before t."""
    for j in range(room.n[t]):
        room.weight[j] = room.beta[t, j] * room.gamma[t, j]
    _pulled(_moves_between(room, moves, block, t - 1), room.weight, room.beta[t - 1])


def _backward_near(_moves, room, block, t):
    for j in range(room.n[t]):
        room.weight[j] = room.beta[t, j] * room.gamma[t, j]
    out, n, total = room.beta[t - 1], room.n[t - 1], 0.0
    for s in range(n):
        value = 0.0
        for e in range(block.first[t - 1, s], block.first[t - 1, s + 1]):
            value += block.chance[e] * room.weight[block.at[e]]
        out[s] = value
        total += value
    if total > 0.0:
        for s in range(n):
            out[s] *= n / total


_backward = by_kind(_backward_whole, _backward_near)


def _add_whole_pairs(_moves, room, _block, t, factor, pairs):
    """Add the expected moves from step t to the next, without the factor of their chance.

    ``room.weight`` is beta times gamma of the next step.
    """
    for s in range(room.n[t]):
        weight = factor * room.alpha[t, s] * room.gamma[t, s]
        if weight != 0.0:
            line = pairs[room.states[t, s]]
            for j in range(room.n[t + 1]):
                line[room.states[t + 1, j]] += weight * room.weight[j]


def _add_near_pairs(_moves, room, block, t, factor, pairs):
    for s in range(room.n[t]):
        weight = factor * room.alpha[t, s] * room.gamma[t, s]
        if weight != 0.0:
            for e in range(block.first[t, s], block.first[t, s + 1]):
                pairs[block.entry[e]] += weight * room.weight[block.at[e]]


_add_pairs = by_kind(_add_whole_pairs, _add_near_pairs)


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(tokens, k, moves, xi, room, block):
    """One forward and one backward pass; the largest residual of any step."""
    worst = 0.0
    last = tokens.length - 1
    for t in range(last):
        worst = max(worst, _renew_xi(tokens, k, t, xi, room))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, k, t, xi, room)
        _forward(moves, room, block, t)
    for t in range(last, min(last, 1) - 1, -1):
        worst = max(worst, _renew_xi(tokens, k, t, xi, room))
        if worst == np.inf:
            return worst
        _gamma_of(tokens, k, t, xi, room)
        if t > 0:
            _backward(moves, room, block, t)
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
def _collect(tokens, k, moves, room, block, start, pairs, emission):
    """Add the expected counts of one sequence, gamma held still; return log Z (nan: impossible).

    The forward pass is made again with the final gamma, so that all marginals agree exactly.
    ``pairs`` is without the factor of transitions, which the caller multiplies once for all.
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
            _add_pairs(moves, room, block, t - 1, size / scale / total, pairs)
        if emission.size:
            _add_emission(tokens, k, t, room, emission)
        if t < tokens.length - 1:
            scale = _forward(moves, room, block, t)
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
def cfb_of_groups(startprob, moves, tokens, xi, warm, tol, max_sweeps, with_emission):
    """Collective forward-backward of every sequence on its own support.

    ``moves`` are the transitions, an array (d, d), which must be writeable though it is only read,
    or `NearMoves`. ``xi`` (one value per token) is the state of the iteration and is renewed in
    place. Returns start (d,), pairs, (d, d) or one of each of near moves, without the factor of
    their chance, emission (table entries,; none without ``with_emission``), the energy, sweeps,
    sequences that reached the limit of them, and the first sequence that cannot happen or -1.
    """
    d, length = tokens.n_states, tokens.length
    start, pairs = np.zeros(d), _no_pairs(moves)
    emission = np.zeros(tokens.table_values.size if with_emission else 0)
    energy, sweeps, unconverged = 0.0, 0, 0
    most_tokens, most_entries = _most(tokens)
    room = Room(
        np.empty((length, d), dtype=np.int64), np.empty(length, dtype=np.int64),
        np.empty(length, dtype=np.bool_),
        np.zeros((length, d)), np.zeros((length, d)), np.zeros((length, d)),
        np.empty(most_tokens + 1, dtype=np.int64), np.empty(most_entries, dtype=np.uint32),
        np.empty(most_entries), np.empty(length, dtype=np.int64), np.zeros(d),
        np.empty(most_tokens),
    )  # fmt: skip
    seen, place = np.full(d, -1, dtype=np.int64), np.empty(d, dtype=np.int64)
    block = _no_block(moves, length, d)
    for k in range(tokens.sizes.size):
        entry = used = 0
        for t in range(length):
            entry = _mark_support(tokens, k, t, entry, seen, place, room)
            if t > 0:
                mark = k * length + t
                used, block = _gather(moves, room, block, t - 1, used, seen, place, mark)
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
                    _backward(moves, room, block, t)
        worst, done = 0.0 if certain else 1.0, 0
        while done < max_sweeps and tol < worst < np.inf:
            worst = _sweep(tokens, k, moves, xi, room, block)
            done += 1
        sweeps += max(done, 1)
        unconverged += worst > tol
        log_z = np.nan
        if worst < np.inf:
            log_z = _collect(tokens, k, moves, room, block, start, pairs, emission)
        if not np.isfinite(log_z):
            return start, pairs, emission, energy, sweeps, unconverged, k
        energy += tokens.sizes[k] * (_entropy(tokens, k, xi) - log_z)
    return start, pairs, emission, energy, sweeps, unconverged, -1


def _come_from_whole(moves, x, reach):
    """Note the states that somebody in state x may move to."""
    line = moves[x]
    for y in range(line.size):
        reach[y] = reach[y] or line[y] > 0.0


def _come_from_near(moves, x, reach):
    for e in range(moves.indptr[x], moves.indptr[x + 1]):
        reach[moves.dest[e]] = reach[moves.dest[e]] or moves.chance[e] > 0.0


_come_from = by_kind(_come_from_whole, _come_from_near)


@njit(cache=True, nogil=True, error_model="numpy")
def first_impossible(moves, startprob, tokens, k):
    """First token of a sequence that no state reachable from the steps before explains, or -1."""
    reach = startprob > 0.0
    shown = np.empty(tokens.n_states, dtype=np.bool_)
    for t in range(tokens.length):
        at = k * tokens.length + t
        first, last = tokens.indptr[at], tokens.indptr[at + 1]
        shown[:] = first == last
        for i in range(first, last):
            explained = False
            row = tokens.row[i]
            for e in range(tokens.table_indptr[row], tokens.table_indptr[row + 1]):
                shown[tokens.table_states[e]] = True
                explained = explained or reach[tokens.table_states[e]]
            if not explained:
                return i
        shown &= reach
        reach[:] = False
        for x in range(tokens.n_states):
            if shown[x]:
                _come_from(moves, x, reach)
    return -1
