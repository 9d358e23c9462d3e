"""Compiled inner loops of the E-steps for Poisson readings: three roads to one optimum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["BETHE_RDA", "NLBP", "NLBP_LINE_SEARCH", "PROX", "Chain", "poisson_of_groups"]

FloatArray = npt.NDArray[np.float64]

NLBP, NLBP_LINE_SEARCH, BETHE_RDA, PROX = range(4)

NLBP_STEP = 0.08
RDA_DELAY = 5.0
FIRST_PROX_STEP = 0.5
PROX_GROWTH = 1.1
HALVINGS, SHORTEST_STEP = 8, 1e-12
"""A line search bisects to 1 / 256, and on while it has found no step at all."""

FAINTEST = -600.0
"""Below this log weight of all paths, paths lost to underflow (e^-708) could matter."""


class Chain(NamedTuple):
    """Start and transitions, and their logarithms (-inf where they are zero)."""

    startprob: FloatArray
    transmat: FloatArray
    log_start: FloatArray
    log_trans: FloatArray


class Scratch(NamedTuple):
    """Room for one sequence: arrays (T, d), and pairs (T - 1, d, d) for the line search alone.

    ``node`` are the marginals where the iteration stands, ``found`` those that the oracle gives
    for the log weights ``psi``; ``leaving`` is a row (d,).
    """

    psi: FloatArray
    node: FloatArray
    found: FloatArray
    gradient: FloatArray
    next_gradient: FloatArray
    weight: FloatArray
    ahead: FloatArray
    back: FloatArray
    pair: FloatArray
    found_pair: FloatArray
    leaving: FloatArray


# ---------------------------------------------------------------- marginals of a weighted chain


@njit(cache=True, nogil=True, error_model="numpy")
def _oracle(chain, room):
    """Node marginals of p(x_1..x_T) prod_t exp(psi_t(x_t)) into ``found``.

    Returns the log of the sum over all paths, and whether messages were left as logarithms.
    Messages are scaled, not logarithms. As no factor is above 1, what underflow can lose is at
    most e^-708 of the largest sum there could be; where that may matter, logarithms take over.
    """
    log_sum, tops = _ahead(chain, room)
    if log_sum > FAINTEST:
        _back(chain, room)
        return log_sum + tops, False
    return _log_oracle(chain, room), True


@njit(cache=True, nogil=True, error_model="numpy")
def _ahead(chain, room):
    """Forward messages, each made to sum to 1, with weights of 1 or less.

    Returns the log of the sum over all paths, at most 0, and of what the weights lack.
    """
    length, d = room.psi.shape
    log_sum, tops = 0.0, 0.0
    for x in range(d):
        room.ahead[0, x] = chain.startprob[x]
    for t in range(length):
        top, total = -np.inf, 0.0
        for x in range(d):
            top = max(top, room.psi[t, x])
        for x in range(d):
            room.weight[t, x] = np.exp(room.psi[t, x] - top)
            total += room.ahead[t, x] * room.weight[t, x]
        log_sum += np.log(total)
        tops += top
        if t < length - 1 and total > 0.0:
            for y in range(d):
                room.ahead[t + 1, y] = 0.0
            for x in range(d):
                mass = room.ahead[t, x] * room.weight[t, x] / total
                if mass != 0.0:
                    for y in range(d):
                        room.ahead[t + 1, y] += mass * chain.transmat[x, y]
    return log_sum, tops


@njit(cache=True, nogil=True, error_model="numpy")
def _back(chain, room):
    """Backward messages, the largest entry of each made 1, and the node marginals."""
    length, d = room.psi.shape
    for t in range(length - 1, -1, -1):
        largest, total = 0.0, 0.0
        for x in range(d):
            value = 1.0
            if t < length - 1:
                value = 0.0
                for y in range(d):
                    value += chain.transmat[x, y] * room.weight[t + 1, y] * room.back[t + 1, y]
            room.back[t, x] = value
            largest = max(largest, value)
        for x in range(d):
            room.back[t, x] /= largest
            room.found[t, x] = room.ahead[t, x] * room.weight[t, x] * room.back[t, x]
            total += room.found[t, x]
        for x in range(d):
            room.found[t, x] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def _log_oracle(chain, room):
    """As `_oracle` in logarithms, which nothing can overflow; the log of the sum over all paths."""
    length, d = room.psi.shape
    for x in range(d):
        room.ahead[0, x] = chain.log_start[x]
        room.back[length - 1, x] = 0.0
    for t in range(length - 1):
        for y in range(d):
            top = -np.inf
            for x in range(d):
                top = max(top, room.ahead[t, x] + room.psi[t, x] + chain.log_trans[x, y])
            total = 0.0
            if top > -np.inf:
                for x in range(d):
                    here = room.ahead[t, x] + room.psi[t, x]
                    total += np.exp(here + chain.log_trans[x, y] - top)
            room.ahead[t + 1, y] = top + np.log(total) if total > 0.0 else -np.inf
    for t in range(length - 2, -1, -1):
        for x in range(d):
            top = -np.inf
            for y in range(d):
                top = max(top, chain.log_trans[x, y] + room.psi[t + 1, y] + room.back[t + 1, y])
            total = 0.0
            for y in range(d):
                there = room.psi[t + 1, y] + room.back[t + 1, y]
                total += np.exp(chain.log_trans[x, y] + there - top)
            room.back[t, x] = top + np.log(total)
    log_z = 0.0
    for t in range(length):
        top, total = -np.inf, 0.0
        for x in range(d):
            top = max(top, room.ahead[t, x] + room.psi[t, x] + room.back[t, x])
        for x in range(d):
            room.found[t, x] = np.exp(room.ahead[t, x] + room.psi[t, x] + room.back[t, x] - top)
            total += room.found[t, x]
        for x in range(d):
            room.found[t, x] /= total
        log_z = top + np.log(total)
    return log_z


@njit(cache=True, nogil=True, error_model="numpy")
def _add_pairs(chain, room, t, scale, in_logs, pairs):
    """After `_oracle`: add ``scale`` times the pair marginals of steps t, t + 1."""
    d = room.psi.shape[1]
    for x in range(d):
        if room.found[t, x] == 0.0:
            continue
        top, total = -np.inf, 0.0
        if in_logs:
            for y in range(d):
                top = max(top, chain.log_trans[x, y] + room.psi[t + 1, y] + room.back[t + 1, y])
        for y in range(d):
            if in_logs:
                there = room.psi[t + 1, y] + room.back[t + 1, y]
                room.leaving[y] = np.exp(chain.log_trans[x, y] + there - top)
            else:
                there = room.weight[t + 1, y] * room.back[t + 1, y]
                room.leaving[y] = chain.transmat[x, y] * there
            total += room.leaving[y]
        for y in range(d):
            pairs[x, y] += scale * room.found[t, x] * room.leaving[y] / total


# ---------------------------------------------------------------- how well readings are met


@njit(cache=True, nogil=True, error_model="numpy")
def _share_of(tokens, i, node):
    """Share of the people that the marginals of its step let show token i: lambda / M."""
    value = 0.0
    for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
        value += tokens.table_values[e] * node[tokens.table_states[e]]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _misfit(tokens, floor, k, node):
    """sum over steps and symbols of (lambda - y log lambda) / M."""
    total = 0.0
    log_size = np.log(tokens.sizes[k])
    for t in range(tokens.length):
        at = k * tokens.length + t
        first, last = tokens.indptr[at], tokens.indptr[at + 1]
        if last > first:
            total += 1.0  # all symbols together: lambda sums to M
        for i in range(first, last):
            share, least = _share_of(tokens, i, node[t]), floor[i]
            log_share = np.log(share) if share >= least else np.log(least) + share / least - 1.0
            total -= tokens.share[i] * (log_size + log_share)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient(tokens, floor, k, node, gradient):
    """Gradient of `_misfit` by the node marginals, less a constant that no oracle sees."""
    for t in range(tokens.length):
        for x in range(tokens.n_states):
            gradient[t, x] = 0.0
        at = k * tokens.length + t
        for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
            row = tokens.row[i]
            slope = tokens.share[i] / max(_share_of(tokens, i, node[t]), floor[i])
            for e in range(tokens.table_indptr[row], tokens.table_indptr[row + 1]):
                gradient[t, tokens.table_states[e]] -= slope * tokens.table_values[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _distance(one, other):
    """Largest L1 distance between the marginals of any step."""
    worst = 0.0
    for t in range(one.shape[0]):
        total = 0.0
        for x in range(one.shape[1]):
            total += abs(one[t, x] - other[t, x])
        worst = max(worst, total)
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _settled(psi, gradient, found):
    """Whether psi = -gradient, its value at the optimum, to within 1 where it matters.

    Where a state's weight is e^-100 of what it will be, marginals stand still and prove nothing.
    """
    for t in range(psi.shape[0]):
        mean, least = 0.0, np.inf
        for x in range(psi.shape[1]):
            off = psi[t, x] + gradient[t, x]
            mean += found[t, x] * off
            least = min(least, off)
        if mean - least > 1.0:
            return False
    return True


# ---------------------------------------------------------------- the three roads

# Each move takes what the oracle found for ``psi``, renews ``psi``, and returns how far the
# marginals moved (on the first call, when there is nothing to compare with: infinitely far) and
# the number that it remembers. ``state`` (T, d) and this number are what a later call goes on
# from; a number of zero starts anew, from the marginals of the chain itself.


@njit(cache=True, nogil=True, error_model="numpy")
def _mix(out, a, one, b, other):
    """out <- a one + b other, arrays (T, d)."""
    for t in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[t, x] = a * one[t, x] + b * other[t, x]


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(out, one):
    _mix(out, 1.0, one, 0.0, one)


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(method, tokens, floor, k, room, state, memory, max_sweeps):
    """Set the first log weights; return the number remembered, as it counts in this call."""
    if method == BETHE_RDA:
        memory = min(memory, float(max_sweeps))
        _mix(room.psi, -memory / (memory + RDA_DELAY), state, 0.0, state)
    elif method == PROX or memory == 0.0:
        _copy(room.psi, state)
    else:
        _copy(room.node, state)
        _gradient(tokens, floor, k, room.node, room.gradient)
        _mix(room.psi, -1.0, room.gradient, 0.0, room.gradient)
    return memory


@njit(cache=True, nogil=True, error_model="numpy")
def _move_nlbp(tokens, floor, k, room, state, memory):
    """mu <- (1 - w) mu + w Orc(-g(mu)); the state is mu."""
    change = np.inf
    step = NLBP_STEP if memory > 0.0 else 1.0
    if memory > 0.0:
        change = step * _distance(room.found, room.node)
    _mix(room.node, 1.0 - step, room.node, step, room.found)
    _gradient(tokens, floor, k, room.node, room.gradient)
    _mix(room.psi, -1.0, room.gradient, 0.0, room.gradient)
    _copy(state, room.node)
    return change, 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _slope(chain, tokens, floor, k, room, step):
    """Derivative of F / M along the segment from node and pair to what the oracle found."""
    length, d = room.node.shape
    total = 0.0
    for t in range(length):
        at = k * tokens.length + t
        for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
            here = _share_of(tokens, i, room.node[t])
            move = _share_of(tokens, i, room.found[t]) - here
            total -= tokens.share[i] * move / max(here + step * move, floor[i])
        for x in range(d):
            node_move = room.found[t, x] - room.node[t, x]
            node = room.node[t, x] + step * node_move
            if not node > 0.0:
                continue
            log_node = np.log(node)
            if t == 0:
                total += node_move * (log_node - chain.log_start[x])
            if t == length - 1:
                continue
            for y in range(d):
                move = room.found_pair[t, x, y] - room.pair[t, x, y]
                pair = room.pair[t, x, y] + step * move
                if pair > 0.0:
                    total += move * (np.log(pair) - log_node - chain.log_trans[x, y])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _step_before_minimum(chain, tokens, floor, k, room):
    """A step along the segment that does not pass the minimum of the convex F, by bisection."""
    low, high, halvings = 0.0, 1.0, 0
    while halvings < HALVINGS or (low == 0.0 and high > SHORTEST_STEP):
        middle = (low + high) / 2
        if _slope(chain, tokens, floor, k, room, middle) <= 0.0:
            low = middle
        else:
            high = middle
        halvings += 1
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _move_nlbp_line_search(chain, tokens, floor, k, room, state, first):
    """As `_move_nlbp`, w by a line search: F, of nodes and pairs, never rises."""
    change, step = np.inf, 1.0
    if not first:
        step = _step_before_minimum(chain, tokens, floor, k, room)
        change = step * _distance(room.found, room.node)
    _mix(room.node, 1.0 - step, room.node, step, room.found)
    for t in range(room.pair.shape[0]):
        _mix(room.pair[t], 1.0 - step, room.pair[t], step, room.found_pair[t])
    _gradient(tokens, floor, k, room.node, room.gradient)
    _mix(room.psi, -1.0, room.gradient, 0.0, room.gradient)
    _copy(state, room.node)
    return change, 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _move_rda(tokens, floor, k, room, state, memory, first):
    """mu = Orc(-[n / (n + b)] mean of the n gradients so far); the state is the mean, and n."""
    change = np.inf if first else _distance(room.found, room.node)
    _copy(room.node, room.found)
    _gradient(tokens, floor, k, room.node, room.gradient)
    if not _settled(room.psi, room.gradient, room.found):
        change = np.inf
    n = memory + 1.0
    _mix(state, 1.0 - 1.0 / n, state, 1.0 / n, room.gradient)
    _mix(room.psi, -n / (n + RDA_DELAY), state, 0.0, state)
    return change, n


@njit(cache=True, nogil=True, error_model="numpy")
def _move_prox(tokens, floor, k, room, state, memory, change, first):
    """psi <- (1 - r) psi - r g(mu), mu = Orc(psi); the state is psi, and r.

    As F is convex, it has not risen if it still falls, or is level, on the way from the old
    marginals into the new: <g(new) + psi(new), new - old> <= 0. Unlike a comparison of two values
    of F this is good to the last digit. Otherwise r is halved and psi is tried again.
    """
    step = memory if memory > 0.0 else FIRST_PROX_STEP
    _gradient(tokens, floor, k, room.found, room.next_gradient)
    rising = 0.0
    if not first:
        for t in range(room.psi.shape[0]):
            for x in range(room.psi.shape[1]):
                pull = room.next_gradient[t, x] + room.psi[t, x]
                rising += pull * (room.found[t, x] - room.node[t, x])
    if rising > 0.0:
        step /= 2
    else:
        if not first:
            change = _distance(room.found, room.node)
            if not _settled(room.psi, room.next_gradient, room.found):
                change = np.inf
            step = min(PROX_GROWTH * step, 1.0)
        _copy(state, room.psi)
        _copy(room.node, room.found)
        _copy(room.gradient, room.next_gradient)
    _mix(room.psi, 1.0 - step, state, -step, room.gradient)
    return change, step


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(method, chain, tokens, floor, k, room, state, memory, tol, max_sweeps):
    """Move until the marginals stand still; sweeps done, last change, number remembered.

    Leaves in ``psi`` the log weights of the result (of the line search: in node and pair).
    """
    memory = _begin(method, tokens, floor, k, room, state, memory, max_sweeps)
    sweeps, change = 0, np.inf
    while sweeps < max_sweeps and change > tol:
        in_logs = _oracle(chain, room)[1]
        if method == NLBP_LINE_SEARCH:
            for t in range(tokens.length - 1):
                _mix(room.found_pair[t], 0.0, room.pair[t], 0.0, room.pair[t])
                _add_pairs(chain, room, t, 1.0, in_logs, room.found_pair[t])
            change, memory = _move_nlbp_line_search(
                chain, tokens, floor, k, room, state, sweeps == 0
            )
        elif method == NLBP:
            change, memory = _move_nlbp(tokens, floor, k, room, state, memory)
        elif method == BETHE_RDA:
            change, memory = _move_rda(tokens, floor, k, room, state, memory, sweeps == 0)
        else:
            change, memory = _move_prox(tokens, floor, k, room, state, memory, change, sweeps == 0)
        sweeps += 1
    if method == PROX:
        _copy(room.psi, state)
    return sweeps, change, memory


# ---------------------------------------------------------------- all sequences


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(chain, tokens, floor, k, room, start, pairs):
    """Add the people of one sequence in the marginals of ``psi``; return its F."""
    size = tokens.sizes[k]
    log_z, in_logs = _oracle(chain, room)
    divergence = -log_z
    for t in range(tokens.length):
        for x in range(tokens.n_states):
            divergence += room.psi[t, x] * room.found[t, x]
        if t < tokens.length - 1:
            _add_pairs(chain, room, t, size, in_logs, pairs)
    for x in range(tokens.n_states):
        start[x] += size * room.found[0, x]
    return size * (_misfit(tokens, floor, k, room.found) + divergence)


@njit(cache=True, nogil=True, error_model="numpy")
def _collect_mixture(chain, tokens, floor, k, room, start, pairs):
    """As `_collect`, for the mixed marginals of the line search."""
    size = tokens.sizes[k]
    divergence = 0.0
    for x in range(tokens.n_states):
        start[x] += size * room.node[0, x]
        if room.node[0, x] > 0.0:
            divergence += room.node[0, x] * (np.log(room.node[0, x]) - chain.log_start[x])
    for t in range(tokens.length - 1):
        for x in range(tokens.n_states):
            for y in range(tokens.n_states):
                pair = room.pair[t, x, y]
                if pair > 0.0:
                    surprise = np.log(pair / room.node[t, x]) - chain.log_trans[x, y]
                    divergence += pair * surprise
                    pairs[x, y] += size * pair
    return size * (_misfit(tokens, floor, k, room.node) + divergence)


@njit(cache=True, nogil=True, error_model="numpy")
def poisson_of_groups(chain, tokens, floor, method, states, memories, tol, max_sweeps):
    """Optimum of every sequence by one of the methods.

    ``tokens.share`` are the readings over the people of the group, ``floor`` the least rate of
    each token, per person, that its logarithm is taken of; ``states`` (K, T, d) and
    ``memories`` (K,) are what the iterations go on from and are renewed in place. Returns start
    (d,), pairs (d, d), the energy, sweeps, and sequences that reached the limit of them.
    """
    d, length = tokens.n_states, tokens.length
    start, pairs = np.zeros(d), np.zeros((d, d))
    energy, sweeps, unconverged = 0.0, 0, 0
    flat = np.zeros((8, length, d))
    pair = np.zeros((2, length - 1 if method == NLBP_LINE_SEARCH else 0, d, d))
    room = Scratch(
        flat[0], flat[1], flat[2], flat[3], flat[4], flat[5], flat[6], flat[7],
        pair[0], pair[1], np.zeros(d),
    )  # fmt: skip
    for k in range(tokens.sizes.size):
        done, change, memories[k] = _solve(
            method, chain, tokens, floor, k, room, states[k], memories[k], tol, max_sweeps
        )
        if method == NLBP_LINE_SEARCH:
            energy += _collect_mixture(chain, tokens, floor, k, room, start, pairs)
        else:
            energy += _collect(chain, tokens, floor, k, room, start, pairs)
        sweeps += done
        unconverged += change > tol
    return start, pairs, energy, sweeps, unconverged
