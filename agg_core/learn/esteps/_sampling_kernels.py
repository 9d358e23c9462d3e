"""Compiled moves of the sampler: who of a group is who at the next step, and in which state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, prange

__all__ = ["Slots", "sample_links"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Slots(NamedTuple):
    """One slot per person and step, and the states that its observation can come from.

    Slot ``i`` of step t belongs to group k where ``first[k] <= i < first[k + 1]``, at every step:
    what is hidden is which slot of the next step continues it. It shows row ``row[t, i]`` of the
    table ``indptr, states, values`` (CSR), whose last row stands for "not observed": every state,
    all alike.
    """

    first: IntArray
    row: IntArray
    indptr: IntArray
    states: IntArray
    values: FloatArray


@njit(cache=True)
def _next(generator):
    """The next state of a generator (splitmix64), one per group: threads change nothing."""
    return generator + np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def _uniform(generator):
    """A number in [0, 1) from the state of a generator."""
    z = generator
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def _swap_links(transmat, slots, entry, after, before, t, k, n_swaps, generator):
    """Offer pairs of slots to exchange their successors (Metropolis); returns the generator.

    Two people of one group are offered each other's future. The offer is taken with the ratio of
    the chances of the two moves after and before, which leaves the posterior as it is.
    """
    a = slots.first[k]
    size = slots.first[k + 1] - a
    for _ in range(n_swaps):
        generator = _next(generator)
        i = a + int(_uniform(generator) * size)
        generator = _next(generator)
        j = a + int(_uniform(generator) * size)
        u, v = after[t, i], after[t, j]
        xi, xj = slots.states[entry[t, i]], slots.states[entry[t, j]]
        yu, yv = slots.states[entry[t + 1, u]], slots.states[entry[t + 1, v]]
        taken = transmat[xi, yv] * transmat[xj, yu]
        given = transmat[xi, yu] * transmat[xj, yv]
        if taken < given:
            generator = _next(generator)
            if _uniform(generator) * given >= taken:
                continue
        after[t, i], after[t, j] = v, u
        before[t + 1, v], before[t + 1, u] = i, j
    return generator


@njit(cache=True)
def _draw_path(
    startprob, transmats, which, slots, entry, after, before, i, ahead, generator
):  # fmt: skip
    """Draw all states of the person in slot ``i`` of the first step; returns the generator.

    Forward along the links with the chances of the states given what was observed so far, then
    backward with one draw each: an exact draw of the whole path.
    """
    length = slots.row.shape[0]
    at = i
    f0 = f1 = 0
    for t in range(length):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        total = 0.0
        for e in range(e0, e1):
            x = slots.states[e]
            if t == 0:
                w = startprob[x]
            else:
                w = 0.0
                for f in range(f0, f1):
                    w += ahead[t - 1, f - f0] * transmats[which[t - 1], slots.states[f], x]
            w *= slots.values[e]
            ahead[t, e - e0] = w
            total += w
        if not total > 0.0:  # only where products of what stands for zero are none
            return generator
        for e in range(e1 - e0):
            ahead[t, e] /= total
        f0, f1 = e0, e1
        if t < length - 1:
            at = after[t, at]
    future = -1
    for back in range(length):
        t = length - 1 - back
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        total = 0.0
        for e in range(e0, e1):
            if future >= 0:
                ahead[t, e - e0] *= transmats[which[t], slots.states[e], future]
            total += ahead[t, e - e0]
        generator = _next(generator)
        left = _uniform(generator) * total
        e = e0
        while e < e1 - 1 and ahead[t, e - e0] <= left:
            left -= ahead[t, e - e0]
            e += 1
        entry[t, at] = e
        future = slots.states[e]
        if t > 0:
            at = before[t, at]
    return generator


@njit(cache=True)
def _widest(slots):
    """Most states that the observation of any slot can come from."""
    widest = 1
    for t in range(slots.row.shape[0]):
        for i in range(slots.row.shape[1]):
            row = slots.row[t, i]
            widest = max(widest, slots.indptr[row + 1] - slots.indptr[row])
    return widest


@njit(cache=True, parallel=True)
def sample_links(
    startprob, transmats, which, slots, entry, after, before, generators, swaps_each, n_rounds,
    n_counted, n_chunks, possible, with_emission,
):  # fmt: skip
    """Rounds of swaps and path draws in place; counts of the last ``n_counted`` rounds, summed.

    A round offers each slot of each step as many swaps as its group has people, ``swaps_each`` at
    most, then draws all states. Between steps t and t + 1 group k moves by
    ``transmats[which[k, t]]``. Returns, per chunk of groups, start (d,), pairs (H, d, d), entries
    (table entries,; none without ``with_emission``) and the sum of the logarithms of the values of
    the entries drawn; and for every group whether it is left with a move or a start of a chance
    below ``possible``.
    """
    length, d = slots.row.shape[0], startprob.size
    n_groups = slots.first.size - 1
    widest = _widest(slots)
    start = np.zeros((n_chunks, d))
    pairs = np.zeros((n_chunks, len(transmats), d, d))
    shown = np.zeros((n_chunks, slots.states.size if with_emission else 0))
    log_values = np.zeros(n_chunks)
    stuck = np.zeros(n_groups, dtype=np.bool_)
    for c in prange(n_chunks):
        ahead = np.empty((length, widest))
        for k in range(c * n_groups // n_chunks, (c + 1) * n_groups // n_chunks):
            generator = generators[k]
            a, b = slots.first[k], slots.first[k + 1]
            for r in range(n_rounds):
                for t in range(length - 1 if b - a > 1 else 0):
                    generator = _swap_links(
                        transmats[which[k, t]], slots, entry, after, before, t, k,
                        min(swaps_each, b - a) * (b - a), generator,
                    )  # fmt: skip
                for i in range(a, b if widest > 1 else a):
                    generator = _draw_path(
                        startprob, transmats, which[k], slots, entry, after, before, i, ahead,
                        generator,
                    )  # fmt: skip
                if r < n_rounds - n_counted:
                    continue
                for i in range(a, b):
                    start[c, slots.states[entry[0, i]]] += 1.0
                for t in range(length):
                    for i in range(a, b):
                        log_values[c] += np.log(slots.values[entry[t, i]])
                        if with_emission:
                            shown[c, entry[t, i]] += 1.0
                        if t < length - 1:
                            x = slots.states[entry[t, i]]
                            pairs[c, which[k, t], x, slots.states[entry[t + 1, after[t, i]]]] += 1.0
            generators[k] = generator
            for i in range(a, b):
                stuck[k] |= startprob[slots.states[entry[0, i]]] < possible
                for t in range(length - 1):
                    x, y = slots.states[entry[t, i]], slots.states[entry[t + 1, after[t, i]]]
                    stuck[k] |= transmats[which[k, t], x, y] < possible
    return start, pairs, shown, log_values, stuck
