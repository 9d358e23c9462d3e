"""Compiled moves of the sampler: who of a group is who at the next step, and in which state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["Slots", "sample_links"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


PATHS = 0.1
"""Share of the rounds in which whole paths are drawn."""

FEW = 64


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


@njit(cache=True, nogil=True)
def _next(generator):
    """The next state of a generator (splitmix64), one per group: threads change nothing."""
    return generator + np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _uniform(generator):
    """A number in [0, 1) from the state of a generator."""
    z = generator
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


class Desk(NamedTuple):
    """Room for the exchanges of one group between two steps.

    The slots of the next step lie in ``members``, state by state: those in the c-th state that
    there is begin at ``first[c]``. ``nth_after`` (d,) is that c of each state, ``nth`` (people,)
    which of the states that there are a slot of this step is in, and ``running`` (states, states)
    the chances of all slots of the next step, from each state here, summed from state to state.
    """

    first: IntArray
    members: IntArray
    states_after: IntArray
    nth_after: IntArray
    nth_here: IntArray
    nth: IntArray
    running: FloatArray


@njit(cache=True, nogil=True)
def _sort_slots(slots, entry, t, a, size, desk):
    """Sort the slots of the next step by their states; returns how many states there are."""
    n = 0
    for i in range(size):
        y = slots.states[entry[t + 1, a + i]]
        if desk.nth_after[y] < 0:
            desk.nth_after[y], desk.states_after[n], desk.first[n] = n, y, 0
            n += 1
        desk.first[desk.nth_after[y]] += 1
    end = 0
    for c in range(n):
        end += desk.first[c]
        desk.first[c] = end
    desk.first[n] = end
    for i in range(size):
        c = desk.nth_after[slots.states[entry[t + 1, a + i]]]
        desk.first[c] -= 1
        desk.members[desk.first[c]] = a + i
    return n


@njit(cache=True, nogil=True)
def _find_chances(transmat, slots, entry, t, a, size, n, desk):
    """The chances of the slots of the next step from each state that somebody is in."""
    n_here = 0
    for i in range(size):
        x = slots.states[entry[t, a + i]]
        if desk.nth_here[x] < 0:
            desk.nth_here[x] = n_here
            line, running, total = transmat[x], desk.running[n_here], 0.0
            for c in range(n):
                total += (desk.first[c + 1] - desk.first[c]) * line[desk.states_after[c]]
                running[c] = total
            n_here += 1
        desk.nth[i] = desk.nth_here[x]
    for i in range(size):
        desk.nth_here[slots.states[entry[t, a + i]]] = -1
    for c in range(n):
        desk.nth_after[desk.states_after[c]] = -1


@njit(cache=True, nogil=True)
def _place_of(running, n, wanted):
    """The first place at which a running sum of n numbers exceeds what is wanted, or the last."""
    if n <= FEW:  # counting is faster than a search whose every turn is a guess
        place = 0
        for c in range(n - 1):
            place += running[c] <= wanted
        return place
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if running[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _swap_links(
    transmat, slots, entry, after, before, t, k, n_swaps, generator, desk
):  # fmt: skip
    """Offer people the futures of others, in proportion to their chances; returns the generator.

    Person i draws a slot v of the next step by A(x_i, y_v), and exchanges futures with j, whom v
    follows; i and j come to each other's futures also by j's drawing that of i. The offer is taken
    with Metropolis' and Hastings' ratio, which leaves the posterior as it is::

        A(x_i, y_v) A(x_j, y_u) (A(x_i, y_u) / Z_i + A(x_j, y_v) / Z_j)
        / [A(x_i, y_u) A(x_j, y_v) (A(x_i, y_v) / Z_i + A(x_j, y_u) / Z_j)]

    with Z_i the sum of A(x_i, y) over all slots, which an exchange does not change.
    """
    a = slots.first[k]
    size = slots.first[k + 1] - a
    n = _sort_slots(slots, entry, t, a, size, desk)
    _find_chances(transmat, slots, entry, t, a, size, n, desk)
    for _ in range(n_swaps):
        generator = _next(generator)
        i = a + int(_uniform(generator) * size)
        mine = desk.running[desk.nth[i - a]]
        generator = _next(generator)
        wanted = _uniform(generator) * mine[n - 1]
        c = _place_of(mine, n, wanted)
        # Where within the state the draw fell says which of its slots.
        low = mine[c - 1] if c > 0 else 0.0
        held = desk.first[c + 1] - desk.first[c]
        v = desk.members[
            desk.first[c] + min(int((wanted - low) / (mine[c] - low) * held), held - 1)
        ]
        u, j = after[t, i], before[t + 1, v]
        if u == v:
            continue
        xi, xj = slots.states[entry[t, i]], slots.states[entry[t, j]]
        yu, yv = slots.states[entry[t + 1, u]], slots.states[entry[t + 1, v]]
        if xi != xj and yu != yv:
            iu, jv, iv, ju = transmat[xi, yu], transmat[xj, yv], transmat[xi, yv], transmat[xj, yu]
            zi, zj = mine[n - 1], desk.running[desk.nth[j - a], n - 1]
            ratio = (1.0 / (jv * zi) + 1.0 / (iu * zj)) / (1.0 / (ju * zi) + 1.0 / (iv * zj))
            if ratio < 1.0:
                generator = _next(generator)
                if _uniform(generator) >= ratio:
                    continue
        after[t, i], after[t, j] = v, u
        before[t + 1, v], before[t + 1, u] = i, j
    return generator


@njit(cache=True, nogil=True)
def _filter_path(startprob, transmats, which, slots, after, i, ahead):
    """Chances of the states of a person at each step given what they showed up to it.

    Returns the slot of the last step, or -1 where products of what stands for zero are none.
    """
    length, at = slots.row.shape[0], i
    f0 = f1 = 0
    for t in range(length):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        if t == 0:
            for e in range(e0, e1):
                ahead[0, e - e0] = startprob[slots.states[e]]
        else:
            for e in range(e1 - e0):
                ahead[t, e] = 0.0
            for f in range(f0, f1):
                weight, line = ahead[t - 1, f - f0], transmats[which[t - 1], slots.states[f]]
                for e in range(e0, e1):
                    ahead[t, e - e0] += weight * line[slots.states[e]]
        total = 0.0
        for e in range(e0, e1):
            ahead[t, e - e0] *= slots.values[e]
            total += ahead[t, e - e0]
        if not total > 0.0:
            return -1
        for e in range(e1 - e0):
            ahead[t, e] /= total
        f0, f1 = e0, e1
        if t < length - 1:
            at = after[t, at]
    return at


@njit(cache=True, nogil=True)
def _draw_path(
    startprob, transmats, which, slots, entry, after, before, i, ahead, generator
):  # fmt: skip
    """Draw all states of the person in slot ``i`` of the first step; returns the generator.

    Forward along the links with the chances of the states given what was observed so far, then
    backward with one draw each: an exact draw of the whole path.
    """
    at = _filter_path(startprob, transmats, which, slots, after, i, ahead)
    future = -1
    for t in range(slots.row.shape[0] - 1 if at >= 0 else -1, -1, -1):
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


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_states(
    startprob, transmats, transposed, which, slots, entry, after, i, running, generator
):  # fmt: skip
    """Draw each state of the person in slot ``i`` of the first step given those beside it.

    ``transposed`` is ``transmats`` with rows and columns exchanged. Returns the generator. Where a
    sensor tells the cell up to its neighbours, this mixes as a draw of the path does, for less.
    """
    length, at, before = slots.row.shape[0], i, -1
    for t in range(length):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        n = e1 - e0
        if n > 1:
            line = startprob if t == 0 else transmats[which[t - 1], before]
            total = 0.0
            if t < length - 1:
                to = transposed[which[t], slots.states[entry[t + 1, after[t, at]]]]
                for e in range(n):
                    x = slots.states[e0 + e]
                    total += slots.values[e0 + e] * line[x] * to[x]
                    running[e] = total
            else:
                for e in range(n):
                    total += slots.values[e0 + e] * line[slots.states[e0 + e]]
                    running[e] = total
            if total > 0.0:
                generator = _next(generator)
                wanted, drawn = _uniform(generator) * total, 0
                for e in range(n - 1):
                    drawn += running[e] <= wanted
                entry[t, at] = e0 + drawn
        before = slots.states[entry[t, at]]
        if t < length - 1:
            at = after[t, at]
    return generator


@njit(cache=True, nogil=True)
def _widest(slots):
    """Most states that the observation of any slot can come from."""
    widest = 1
    for t in range(slots.row.shape[0]):
        for i in range(slots.row.shape[1]):
            row = slots.row[t, i]
            widest = max(widest, slots.indptr[row + 1] - slots.indptr[row])
    return widest


@njit(cache=True, nogil=True)
def _count(which, slots, entry, after, a, b, start, pairs, shown):
    """Add the people of one group by start, move and, if asked for, table entry."""
    length = slots.row.shape[0]
    for i in range(a, b):
        start[slots.states[entry[0, i]]] += 1.0
    for t in range(length - 1):
        for i in range(a, b):
            x, y = slots.states[entry[t, i]], slots.states[entry[t + 1, after[t, i]]]
            pairs[which[t], x, y] += 1.0
    for t in range(length if shown.size else 0):
        for i in range(a, b):
            shown[entry[t, i]] += 1.0


@njit(cache=True, nogil=True)
def _is_stuck(startprob, transmats, which, slots, entry, after, a, b, possible):
    """Whether somebody of a group starts or moves with a chance below ``possible``."""
    for i in range(a, b):
        if startprob[slots.states[entry[0, i]]] < possible:
            return True
        for t in range(slots.row.shape[0] - 1):
            x, y = slots.states[entry[t, i]], slots.states[entry[t + 1, after[t, i]]]
            if transmats[which[t], x, y] < possible:
                return True
    return False


@njit(cache=True, nogil=True)
def sample_links(
    startprob, transmats, transposed, which, slots, entry, after, before, generators, swaps_each,
    n_rounds, n_counted, possible, with_emission,
):  # fmt: skip
    """Rounds of swaps and draws of states in place; counts of the last ``n_counted``, summed.

    A round offers each slot of each step as many swaps as its group has people, ``swaps_each`` at
    most, then draws all states: those of whole paths in one round of ten, at random, otherwise
    each given those beside it. Between steps t and t + 1 group k moves by
    ``transmats[which[k, t]]``. Returns start (d,), pairs (H, d, d), entries (table entries,; none
    without ``with_emission``) and the sum of the logarithms of the values of the entries drawn; and
    for every group whether it is left with a move or a start of a chance below ``possible``.
    """
    length, d = slots.row.shape[0], startprob.size
    n_groups = slots.first.size - 1
    widest, largest = _widest(slots), np.max(np.diff(slots.first))
    logs = np.log(slots.values)
    start = np.zeros(d)
    pairs = np.zeros((len(transmats), d, d))
    shown = np.zeros(slots.states.size if with_emission else 0)
    log_values = 0.0
    stuck = np.zeros(n_groups, dtype=np.bool_)
    ahead = np.empty((length, widest))
    most_states = min(largest, d)
    desk = Desk(
        np.empty(largest + 1, dtype=np.int64), np.empty(largest, dtype=np.int64),
        np.empty(largest, dtype=np.int64), np.full(d, -1), np.full(d, -1),
        np.empty(largest, dtype=np.int64), np.empty((most_states, most_states)),
    )  # fmt: skip
    for k in range(n_groups):
        generator = generators[k]
        a, b = slots.first[k], slots.first[k + 1]
        for r in range(n_rounds):
            for t in range(length - 1 if b - a > 1 else 0):
                generator = _swap_links(
                    transmats[which[k, t]], slots, entry, after, before, t, k,
                    min(swaps_each, b - a) * (b - a), generator, desk,
                )  # fmt: skip
            generator = _next(generator)
            paths = _uniform(generator) < PATHS
            for i in range(a, b if widest > 1 else a):
                if paths:
                    generator = _draw_path(
                        startprob, transmats, which[k], slots, entry, after, before, i, ahead,
                        generator,
                    )  # fmt: skip
                else:
                    generator = _draw_states(
                        startprob, transmats, transposed, which[k], slots, entry, after, i,
                        ahead[0], generator,
                    )  # fmt: skip
            if r >= n_rounds - n_counted:
                _count(which[k], slots, entry, after, a, b, start, pairs, shown)
                for t in range(length):
                    for i in range(a, b):
                        log_values += logs[entry[t, i]]
        generators[k] = generator
        stuck[k] = _is_stuck(startprob, transmats, which[k], slots, entry, after, a, b, possible)
    return start, pairs, shown, log_values, stuck
