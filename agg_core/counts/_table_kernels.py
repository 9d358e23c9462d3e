"""Compiled draws of flow tables: who went where between two counts of the same people."""

from __future__ import annotations

import numpy as np
from numba import njit

from agg_core.learn.esteps._sampling_kernels import _next, _uniform

__all__ = ["add_moves", "begin_chains", "draw_moves"]


@njit(cache=True, nogil=True)
def _begin(before, after, stay, generator):
    """People by cell, and where each goes: as many as can stay do, or all by chance."""
    d, n = len(before), before.sum()
    home, goes = np.empty(n, np.int64), np.empty(n, np.int64)
    left = after.copy()
    n_left = n
    i = 0
    for cell in range(d):
        stayers = min(before[cell], after[cell]) if stay else 0
        for number in range(before[cell]):
            home[i] = cell
            goes[i] = cell if number < stayers else -1
            i += 1
        left[cell] -= stayers
        n_left -= stayers
    for i in range(n):
        if goes[i] >= 0:
            continue
        generator = _next(generator)
        at = int(_uniform(generator) * n_left)
        to = 0
        while at >= left[to]:
            at -= left[to]
            to += 1
        goes[i] = to
        left[to] -= 1
        n_left -= 1
    return home, goes, generator


@njit(cache=True, nogil=True)
def _send(i, to, goes, members, place, sizes):
    """Let person i go to another cell; ``members`` lists who goes to each, ``place`` where i is."""
    frm = goes[i]
    last = members[frm, sizes[frm] - 1]
    members[frm, place[i]], place[last] = last, place[i]
    sizes[frm] -= 1
    members[to, sizes[to]], place[i] = i, sizes[to]
    sizes[to] += 1
    goes[i] = to


@njit(cache=True, nogil=True)
def _drawn_cell(running, own, u):
    """A cell by its chance, from running sums of a row of transitions, its ``own`` looked at first.

    Most people stay, so that it is mostly that one.
    """
    sought = u * running[-1]
    low, high = 0, len(running) - 1
    if sought < running[own]:
        if own == 0 or sought >= running[own - 1]:
            return own
        high = own - 1
    elif own < high:
        low = own + 1
    while low < high:
        middle = (low + high) // 2
        if sought < running[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _pass(first_gate, gate, times, d, home, frm, to, now):
    """Let somebody from ``home`` go ``to`` a cell and not ``frm`` one: ``now`` (G,) pass gates."""
    for at in range(first_gate[home * d + frm], first_gate[home * d + frm + 1]):
        now[gate[at]] -= times[at]
    for at in range(first_gate[home * d + to], first_gate[home * d + to + 1]):
        now[gate[at]] += times[at]


@njit(cache=True, nogil=True)
def _chain_of_moves(
    running, home, goes, members, place, sizes, who, came_from, generator,
    first_gate, gate, times, counted, precision, passed, now,
):  # fmt: skip
    """One person goes elsewhere, one of those there makes room, and so on, until all is whole.

    Whoever is chosen draws a cell by the transitions of their own: the first among all, the next
    ones among those who go where one is too many. Weighed by how many these are, every such step
    has the chance of its way back, so that none is refused. It ends where one is missing. A chain
    longer than ``who`` has room for is taken back as a whole, as its way back would be.

    Where there are gates, ``passed`` (G,) people pass them and ``counted`` were, with a
    ``precision`` each: a whole chain is taken with the chance by which that gets likelier.
    """
    n, d = len(home), running.shape[1]
    gated = len(passed) > 0
    now[:] = passed
    generator = _next(generator)
    i = int(_uniform(generator) * n)
    missing = goes[i]
    crowded = missing
    steps = 0
    for _ in range(16 * len(who)):
        generator = _next(generator)
        to = _drawn_cell(running[home[i]], home[i], _uniform(generator))
        if to != goes[i]:
            if steps == len(who):
                break
            who[steps], came_from[steps] = i, goes[i]
            steps += 1
            if gated:
                _pass(first_gate, gate, times, d, home[i], goes[i], to, now)
            _send(i, to, goes, members, place, sizes)
            crowded = to
        if crowded == missing:
            if not gated:
                return generator
            rise = 0.0
            for g in range(len(passed)):
                rise += precision[g] * ((passed[g] - counted[g]) ** 2 - (now[g] - counted[g]) ** 2)
            if rise < 0:
                generator = _next(generator)
                if np.log(_uniform(generator)) >= rise / 2:
                    break
            passed[:] = now
            return generator
        generator = _next(generator)
        i = members[crowded, int(_uniform(generator) * sizes[crowded])]
    for step in range(steps - 1, -1, -1):
        _send(who[step], came_from[step], goes, members, place, sizes)
    return generator


@njit(cache=True, nogil=True)
def begin_chains(before, after, starts, stay, generators, goes):
    """Where a chain begins for each of P pairs of counts: who goes where, written to ``goes``.

    ``before`` and ``after`` (P, d) are whole people, as many in both; those of pair p are numbers
    ``starts[p]`` to ``starts[p + 1]``, by the cell that they are in before. ``stay`` says whether
    as many stay as can; ``generators`` (P,) are seeds, which move on.
    """
    for p in range(len(before)):
        _, goes[starts[p] : starts[p + 1]], generators[p] = _begin(
            before[p], after[p], stay, generators[p]
        )


@njit(cache=True, nogil=True)
def draw_moves(
    before, after, starts, goes, which, running, generators, table, n_tables, burn, n_draws, thin,
    per, longest, apart, first_gate, gate, times, counted, precision,
):  # fmt: skip
    """Draws of who goes where given both margins of each of P pairs of counts.

    People are those of `begin_chains`; where each ``goes`` and ``generators`` (P,) move on, so that
    the next call continues. Pair p moves by the rows whose running sums are ``running[which[p]]``.
    A round begins a chain of moves, of ``longest`` moves at most, for every ``per`` people;
    ``burn`` rounds come first, then a draw every ``thin`` rounds. Gives flow tables summed over the
    draws, (n_tables, d, d), pair p into the one of number ``table[p]``, the people who change their
    cell in each draw (P, n_draws) and, if draws are to be kept ``apart``, where each of N people
    goes (n_draws, N).

    Gates have ``counted`` (P, G) people, with a ``precision``; ``first_gate``, ``gate`` and
    ``times`` say which moves pass them (see `agg_core.counts.crossings.GateCells`).
    """
    n_pairs, d = before.shape
    sums = np.zeros((n_tables, d, d), np.int32)
    movers = np.zeros((n_pairs, n_draws), np.int64)
    moves = np.empty((n_draws if apart else 0, starts[n_pairs] - starts[0]), np.int32)
    for p in range(n_pairs):
        n = starts[p + 1] - starts[p]
        if n == 0:
            continue
        there = goes[starts[p] : starts[p + 1]]
        home = np.repeat(np.arange(d), before[p])
        generator = generators[p]
        members = np.empty((d, after[p].max() + 1), np.int64)
        place, sizes = np.empty(n, np.int64), np.zeros(d, np.int64)
        for i in range(n):
            members[there[i], sizes[there[i]]], place[i] = i, sizes[there[i]]
            sizes[there[i]] += 1
        who, came_from = np.empty(longest, np.int64), np.empty(longest, np.int64)
        passed, now = np.zeros(counted.shape[1]), np.zeros(counted.shape[1])
        for i in range(n if len(passed) else 0):
            move = home[i] * d + there[i]
            for at in range(first_gate[move], first_gate[move + 1]):
                passed[gate[at]] += times[at]
        for number in range(burn + n_draws * thin):
            for _ in range((n + per - 1) // per):
                generator = _chain_of_moves(
                    running[which[p]], home, there, members, place, sizes, who, came_from,
                    generator, first_gate, gate, times, counted[p], precision[p], passed, now,
                )  # fmt: skip
            done = number - burn + 1
            if done > 0 and done % thin == 0:
                at = done // thin - 1
                for i in range(n):
                    sums[table[p], home[i], there[i]] += 1
                    movers[p, at] += home[i] != there[i]
                if apart:
                    moves[at, starts[p] - starts[0] : starts[p + 1] - starts[0]] = there
        generators[p] = generator
    return sums, movers, moves


@njit(cache=True, nogil=True)
def add_moves(moves, before, group, series):
    """Add who goes where (R, N) to the flows (R, G, d, d) of each draw, pair p to its ``group``."""
    for at in range(len(moves)):
        i = 0
        for p in range(len(before)):
            for home in range(before.shape[1]):
                for _ in range(before[p, home]):
                    series[at, group[p], home, moves[at, i]] += 1
                    i += 1
