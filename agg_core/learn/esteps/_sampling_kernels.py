"""Compiled moves of the sampler: who of a group is who at the next step, and in which state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from agg_core.learn.esteps._kinds import by_kind

__all__ = ["IMPOSSIBLE", "NearTables", "Slots", "sample_links"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


PATHS = 0.1
"""Share of the rounds in which whole paths are drawn."""

FEW = 64

IMPOSSIBLE = 1e-60
"""Stands for a chance of zero while links are drawn, so that a chain can leave what cannot be."""


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


class NearTables(NamedTuple):
    """H tables of transitions between some pairs of states alone (CSR), of one pattern.

    Those from x lead to ``dest[indptr[x] : indptr[x + 1]]``, in order, by ``chance[h]`` of the
    same; all others have the chance `IMPOSSIBLE`.
    """

    indptr: IntArray
    dest: npt.NDArray[np.int32]
    chance: FloatArray


class Desk(NamedTuple):
    """Room for the exchanges of one group between two steps.

    The slots of the next step lie in ``members``, state by state: those in the c-th state that
    there is begin at ``first[c]``. ``nth_after`` (d,) is that c of each state, ``nth`` (people,)
    which of the states that there are a slot of this step is in. ``running`` (states, width) are
    the chances of the slots of the next step, from each state here, summed from state to state
    over ``n_near`` of these, which are ``near``; of whole tables these are all, in their order.
    """

    first: IntArray
    members: IntArray
    states_after: IntArray
    nth_after: IntArray
    nth_here: IntArray
    nth: IntArray
    running: FloatArray
    near: IntArray
    n_near: IntArray


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


# What differs between whole tables of transitions (H, d, d) and those of near states.


@njit(cache=True, nogil=True)
def _first_from(tables, x, y):
    """The first entry of near tables from x that leads to y or beyond."""
    low, left = tables.indptr[x], tables.indptr[x + 1] - tables.indptr[x]
    # A search without branches, whose every turn would be a guess.
    while left > 0:
        half = left // 2
        low, left = (
            (low + half + 1, left - half - 1) if tables.dest[low + half] < y else (low, half)
        )
    return low


@njit(cache=True, nogil=True)
def _place_of_move(tables, x, y):
    """Which entry of near tables the move from x to y is, or -1."""
    at = _first_from(tables, x, y)
    return at if at < tables.indptr[x + 1] and tables.dest[at] == y else -1


def _chance_of_whole(tables, h, x, y):
    """The chance of a move from x to y."""
    return tables[h, x, y]


def _chance_of_near(tables, h, x, y):
    place = _place_of_move(tables, x, y)
    return tables.chance[h, place] if place >= 0 else IMPOSSIBLE


_chance = by_kind(_chance_of_whole, _chance_of_near)


def _add_whole_row(tables, h, x, factor, states, e0, n, ahead, t):
    """Add ``factor`` times the chances of moves from x to n states from ``e0`` on, which ascend."""
    for e in range(n):
        ahead[t, e] += factor * tables[h, x, states[e0 + e]]


def _add_near_row(tables, h, x, factor, states, e0, n, ahead, t):
    at, end = _first_from(tables, x, states[e0]), tables.indptr[x + 1]
    for e in range(n):
        y = states[e0 + e]
        while at < end and tables.dest[at] < y:
            at += 1
        here = at < end and tables.dest[at] == y
        ahead[t, e] += factor * (tables.chance[h, at] if here else IMPOSSIBLE)


_add_row = by_kind(_add_whole_row, _add_near_row)


def _weigh_whole_row(tables, h, x, states, e0, n, ahead, t):
    """Multiply by the chances of moves from x to n states from ``e0`` on, which ascend."""
    for e in range(n):
        ahead[t, e] *= tables[h, x, states[e0 + e]]


def _weigh_near_row(tables, h, x, states, e0, n, ahead, t):
    at, end = _first_from(tables, x, states[e0]), tables.indptr[x + 1]
    for e in range(n):
        y = states[e0 + e]
        while at < end and tables.dest[at] < y:
            at += 1
        here = at < end and tables.dest[at] == y
        ahead[t, e] *= tables.chance[h, at] if here else IMPOSSIBLE


_weigh_row = by_kind(_weigh_whole_row, _weigh_near_row)


def _run_whole_row(tables, h, x, n, desk, n_here):
    """Sum up the chances of the slots of the next step from state x; they are row ``n_here``."""
    line, running, total = tables[h, x], desk.running[n_here], 0.0
    for c in range(n):
        total += (desk.first[c + 1] - desk.first[c]) * line[desk.states_after[c]]
        running[c] = total
    desk.n_near[n_here] = n


def _run_near_row(tables, h, x, _n, desk, n_here):
    running, near, total, found = desk.running[n_here], desk.near[n_here], 0.0, 0
    for e in range(tables.indptr[x], tables.indptr[x + 1]):
        c = desk.nth_after[tables.dest[e]]
        if c >= 0:
            total += (desk.first[c + 1] - desk.first[c]) * tables.chance[h, e]
            running[found], near[found] = total, c
            found += 1
    desk.n_near[n_here] = found


_run_row = by_kind(_run_whole_row, _run_near_row)


def _nth_of_whole(_tables, _desk, _row, place):
    """Which of the states that there are the next one at a place of a running sum is."""
    return place


def _nth_of_near(_tables, desk, row, place):
    return desk.near[row, place]


_nth_after = by_kind(_nth_of_whole, _nth_of_near)


def _width_of_whole(_tables, most):
    """Most states that somebody can come to, of so many that there are, if these are listed."""
    return most, 0


def _width_of_near(tables, most):
    width = min(np.max(np.diff(tables.indptr)), most)
    return width, width


_width = by_kind(_width_of_whole, _width_of_near)


def _no_pairs_of_whole(tables):
    """Moves by each table, none yet: (H, d, d), or (H, n) of those that are near."""
    return np.zeros(tables.shape)


def _no_pairs_of_near(tables):
    return np.zeros(tables.chance.shape)


_no_pairs = by_kind(_no_pairs_of_whole, _no_pairs_of_near)


def _add_whole_pair(_tables, pairs, h, x, y):
    """Add one who moved from x to y; who did what cannot be is left out."""
    pairs[h, x, y] += 1.0


def _add_near_pair(tables, pairs, h, x, y):
    place = _place_of_move(tables, x, y)
    if place >= 0:
        pairs[h, place] += 1.0


_add_pair = by_kind(_add_whole_pair, _add_near_pair)


@njit(cache=True, nogil=True)
def _find_chances(tables, h, slots, entry, t, a, size, n, desk):
    """The chances of the slots of the next step from each state that somebody is in."""
    n_here = 0
    for i in range(size):
        x = slots.states[entry[t, a + i]]
        if desk.nth_here[x] < 0:
            desk.nth_here[x] = n_here
            _run_row(tables, h, x, n, desk, n_here)
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
    tables, h, slots, entry, after, before, t, k, n_swaps, generator, desk
):  # fmt: skip
    """Offer people the futures of others, in proportion to their chances; returns the generator.

    Person i draws a slot v of the next step by A(x_i, y_v), and exchanges futures with j, whom v
    follows; i and j come to each other's futures also by j's drawing that of i. The offer is taken
    with Metropolis' and Hastings' ratio, which leaves the posterior as it is::

        A(x_i, y_v) A(x_j, y_u) (A(x_i, y_u) / Z_i + A(x_j, y_v) / Z_j)
        / [A(x_i, y_u) A(x_j, y_v) (A(x_i, y_v) / Z_i + A(x_j, y_u) / Z_j)]

    with Z_i the sum of A(x_i, y) over all slots, which an exchange does not change. Where near
    states alone can be come to, only slots in these are drawn, and who has none draws nothing.
    """
    a = slots.first[k]
    size = slots.first[k + 1] - a
    n = _sort_slots(slots, entry, t, a, size, desk)
    _find_chances(tables, h, slots, entry, t, a, size, n, desk)
    for _ in range(n_swaps):
        generator = _next(generator)
        i = a + int(_uniform(generator) * size)
        row = desk.nth[i - a]
        mine, n_mine = desk.running[row], desk.n_near[row]
        if n_mine == 0:
            continue
        generator = _next(generator)
        wanted = _uniform(generator) * mine[n_mine - 1]
        place = _place_of(mine, n_mine, wanted)
        c = _nth_after(tables, desk, row, place)
        # Where within the state the draw fell says which of its slots.
        low = mine[place - 1] if place > 0 else 0.0
        held = desk.first[c + 1] - desk.first[c]
        part = mine[place] - low
        nth = int((wanted - low) / part * held) if part > 0.0 else 0
        v = desk.members[desk.first[c] + min(nth, held - 1)]
        u, j = after[t, i], before[t + 1, v]
        if u == v:
            continue
        xi, xj = slots.states[entry[t, i]], slots.states[entry[t, j]]
        yu, yv = slots.states[entry[t + 1, u]], slots.states[entry[t + 1, v]]
        if xi != xj and yu != yv:
            iu, jv = _chance(tables, h, xi, yu), _chance(tables, h, xj, yv)
            iv, ju = _chance(tables, h, xi, yv), _chance(tables, h, xj, yu)
            other = desk.nth[j - a]
            n_other = desk.n_near[other]
            # What is not drawn weighs nothing beside what is.
            zi = mine[n_mine - 1]
            zj = desk.running[other, n_other - 1] if n_other > 0 else IMPOSSIBLE
            ratio = (1.0 / (jv * zi) + 1.0 / (iu * zj)) / (1.0 / (ju * zi) + 1.0 / (iv * zj))
            if ratio < 1.0:
                generator = _next(generator)
                if _uniform(generator) >= ratio:
                    continue
        after[t, i], after[t, j] = v, u
        before[t + 1, v], before[t + 1, u] = i, j
    return generator


@njit(cache=True, nogil=True)
def _filter_path(startprob, tables, which, slots, after, i, ahead):
    """Chances of the states of a person at each step given what they showed up to it.

    Returns the slot of the last step, or -1 where products of what stands for zero are none.
    """
    length, at = slots.row.shape[0], i
    f0 = f1 = 0
    for t in range(length):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        if t == 0:
            for e in range(e1 - e0):
                ahead[0, e] = startprob[slots.states[e0 + e]]
        else:
            for e in range(e1 - e0):
                ahead[t, e] = 0.0
            for f in range(f0, f1):
                _add_row(
                    tables, which[t - 1], slots.states[f], ahead[t - 1, f - f0],
                    slots.states, e0, e1 - e0, ahead, t,
                )  # fmt: skip
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
    startprob, tables, transposed, which, slots, entry, after, before, i, ahead, generator
):  # fmt: skip
    """Draw all states of the person in slot ``i`` of the first step; returns the generator.

    Forward along the links with the chances of the states given what was observed so far, then
    backward with one draw each: an exact draw of the whole path.
    """
    at = _filter_path(startprob, tables, which, slots, after, i, ahead)
    future = -1
    for t in range(slots.row.shape[0] - 1 if at >= 0 else -1, -1, -1):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        if future >= 0:
            _weigh_row(transposed, which[t], future, slots.states, e0, e1 - e0, ahead, t)
        total = 0.0
        for e in range(e1 - e0):
            total += ahead[t, e]
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
    startprob, tables, transposed, which, slots, entry, after, i, ahead, generator
):  # fmt: skip
    """Draw each state of the person in slot ``i`` of the first step given those beside it.

    ``transposed`` are ``tables`` with rows and columns exchanged. Returns the generator. Where a
    sensor tells the cell up to its neighbours, this mixes as a draw of the path does, for less.
    """
    length, at, before = slots.row.shape[0], i, -1
    for t in range(length):
        row = slots.row[t, at]
        e0, e1 = slots.indptr[row], slots.indptr[row + 1]
        n = e1 - e0
        if n > 1:
            for e in range(n):
                ahead[t, e] = slots.values[e0 + e]
            if t == 0:
                for e in range(n):
                    ahead[t, e] *= startprob[slots.states[e0 + e]]
            else:
                _weigh_row(tables, which[t - 1], before, slots.states, e0, n, ahead, t)
            if t < length - 1:
                future = slots.states[entry[t + 1, after[t, at]]]
                _weigh_row(transposed, which[t], future, slots.states, e0, n, ahead, t)
            total = 0.0
            for e in range(n):
                total += ahead[t, e]
                ahead[t, e] = total
            if total > 0.0:
                generator = _next(generator)
                wanted, drawn = _uniform(generator) * total, 0
                for e in range(n - 1):
                    drawn += ahead[t, e] <= wanted
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
def _count(tables, which, slots, entry, after, a, b, start, pairs, shown):
    """Add the people of one group by start, move and, if asked for, table entry."""
    length = slots.row.shape[0]
    for i in range(a, b):
        start[slots.states[entry[0, i]]] += 1.0
    for t in range(length - 1):
        for i in range(a, b):
            x, y = slots.states[entry[t, i]], slots.states[entry[t + 1, after[t, i]]]
            _add_pair(tables, pairs, which[t], x, y)
    for t in range(length if shown.size else 0):
        for i in range(a, b):
            shown[entry[t, i]] += 1.0


@njit(cache=True, nogil=True)
def _is_stuck(startprob, tables, which, slots, entry, after, a, b, possible):
    """Whether somebody of a group starts or moves with a chance below ``possible``."""
    for i in range(a, b):
        if startprob[slots.states[entry[0, i]]] < possible:
            return True
        for t in range(slots.row.shape[0] - 1):
            x, y = slots.states[entry[t, i]], slots.states[entry[t + 1, after[t, i]]]
            if _chance(tables, which[t], x, y) < possible:
                return True
    return False


@njit(cache=True, nogil=True)
def sample_links(
    startprob, tables, transposed, which, slots, entry, after, before, generators, swaps_each,
    n_rounds, n_counted, possible, with_emission,
):  # fmt: skip
    """Rounds of swaps and draws of states in place; counts of the last ``n_counted``, summed.

    A round offers each slot of each step as many swaps as its group has people, ``swaps_each`` at
    most, then draws all states: those of whole paths in one round of ten, at random, otherwise
    each given those beside it. Between steps t and t + 1 group k moves by table ``which[k, t]`` of
    ``tables``, an array (H, d, d) or `NearTables`, and ``transposed`` are these with rows and
    columns exchanged. Returns start (d,), pairs (H, d, d), or (H, n) of near tables, entries (table
    entries,; none without ``with_emission``) and the sum of the logarithms of the values of the
    entries drawn; and for every group whether it is left with a move or a start of a chance below
    ``possible``.
    """
    length, d = slots.row.shape[0], startprob.size
    n_groups = slots.first.size - 1
    widest, largest = _widest(slots), np.max(np.diff(slots.first))
    logs = np.log(slots.values)
    start = np.zeros(d)
    pairs = _no_pairs(tables)
    shown = np.zeros(slots.states.size if with_emission else 0)
    log_values = 0.0
    stuck = np.zeros(n_groups, dtype=np.bool_)
    ahead = np.empty((length, widest))
    most_states = min(largest, d)
    width, listed = _width(tables, most_states)
    desk = Desk(
        np.empty(largest + 1, dtype=np.int64), np.empty(largest, dtype=np.int64),
        np.empty(largest, dtype=np.int64), np.full(d, -1), np.full(d, -1),
        np.empty(largest, dtype=np.int64), np.empty((most_states, width)),
        np.empty((most_states, listed), dtype=np.int64), np.empty(most_states, dtype=np.int64),
    )  # fmt: skip
    for k in range(n_groups):
        generator = generators[k]
        a, b = slots.first[k], slots.first[k + 1]
        for r in range(n_rounds):
            for t in range(length - 1 if b - a > 1 else 0):
                generator = _swap_links(
                    tables, which[k, t], slots, entry, after, before, t, k,
                    min(swaps_each, b - a) * (b - a), generator, desk,
                )  # fmt: skip
            generator = _next(generator)
            paths = _uniform(generator) < PATHS
            for i in range(a, b if widest > 1 else a):
                if paths:
                    generator = _draw_path(
                        startprob, tables, transposed, which[k], slots, entry, after, before, i,
                        ahead, generator,
                    )  # fmt: skip
                else:
                    generator = _draw_states(
                        startprob, tables, transposed, which[k], slots, entry, after, i,
                        ahead, generator,
                    )  # fmt: skip
            if r >= n_rounds - n_counted:
                _count(tables, which[k], slots, entry, after, a, b, start, pairs, shown)
                for t in range(length):
                    for i in range(a, b):
                        log_values += logs[entry[t, i]]
        generators[k] = generator
        stuck[k] = _is_stuck(startprob, tables, which[k], slots, entry, after, a, b, possible)
    return start, pairs, shown, log_values, stuck
