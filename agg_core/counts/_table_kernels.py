"""Compiled draws of flow tables: who went where between two counts of the same people."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from agg_core.learn.esteps._sampling_kernels import _next, _uniform

__all__ = ["draw_tables"]


@njit(cache=True)
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


@njit(cache=True)
def _send(i, to, goes, members, place, sizes):
    """Let person i go to another cell; ``members`` lists who goes to each, ``place`` where i is."""
    frm = goes[i]
    last = members[frm, sizes[frm] - 1]
    members[frm, place[i]], place[last] = last, place[i]
    sizes[frm] -= 1
    members[to, sizes[to]], place[i] = i, sizes[to]
    sizes[to] += 1
    goes[i] = to


@njit(cache=True)
def _drawn_cell(running, u):
    """A cell by its chance, from running sums of a row of transitions."""
    return min(np.searchsorted(running, u * running[-1], side="right"), len(running) - 1)


@njit(cache=True)
def _chain_of_moves(running, home, goes, members, place, sizes, who, came_from, generator):
    """One person goes elsewhere, one of those there makes room, and so on, until all is whole.

    Whoever is chosen draws a cell by the transitions of their own: the first among all, the next
    ones among those who go where one is too many. Weighed by how many these are, every such step
    has the chance of its way back, so that none is refused. It ends where one is missing. A chain
    longer than ``who`` has room for is taken back as a whole, as its way back would be.
    """
    n = len(home)
    generator = _next(generator)
    i = int(_uniform(generator) * n)
    missing = goes[i]
    crowded = missing
    steps = 0
    for _ in range(16 * len(who)):
        generator = _next(generator)
        to = _drawn_cell(running[home[i]], _uniform(generator))
        if to != goes[i]:
            if steps == len(who):
                break
            who[steps], came_from[steps] = i, goes[i]
            steps += 1
            _send(i, to, goes, members, place, sizes)
            crowded = to
        if crowded == missing:
            return generator
        generator = _next(generator)
        i = members[crowded, int(_uniform(generator) * sizes[crowded])]
    for step in range(steps - 1, -1, -1):
        _send(who[step], came_from[step], goes, members, place, sizes)
    return generator


@njit(cache=True, parallel=True)
def draw_tables(
    before, after, which, running, stay, generators, burn, n_draws, thin, longest, apart
):
    """Draws of flow tables (P, n_draws, d, d) given both margins of each of P pairs of counts.

    ``before`` and ``after`` (P, d) are whole people, as many in both; pair p moves by the rows
    whose running sums are ``running[which[p]]``. ``stay`` says how a chain begins, ``generators``
    (P,) are its seeds. A round begins as many chains of moves, of ``longest`` moves at most, as
    there are people; ``burn`` rounds come first, then a draw every ``thin`` rounds. Unless draws
    are to be kept ``apart``, tables are their sum (P, 1, d, d). Also gives the people who change
    their cell in each draw (P, n_draws).
    """
    n_pairs, d = before.shape
    draws = np.zeros((n_pairs, n_draws if apart else 1, d, d), np.int32)
    movers = np.zeros((n_pairs, n_draws), np.int64)
    for p in prange(n_pairs):
        home, goes, generator = _begin(before[p], after[p], stay, generators[p])
        n = len(home)
        if n == 0:
            continue
        members = np.empty((d, after[p].max() + 1), np.int64)
        place, sizes = np.empty(n, np.int64), np.zeros(d, np.int64)
        for i in range(n):
            members[goes[i], sizes[goes[i]]], place[i] = i, sizes[goes[i]]
            sizes[goes[i]] += 1
        who, came_from = np.empty(longest, np.int64), np.empty(longest, np.int64)
        for number in range(burn + n_draws * thin):
            for _ in range(n):
                generator = _chain_of_moves(
                    running[which[p]], home, goes, members, place, sizes, who, came_from, generator
                )
            done = number - burn + 1
            if done > 0 and done % thin == 0:
                at = done // thin - 1
                for i in range(n):
                    draws[p, at if apart else 0, home[i], goes[i]] += 1
                    movers[p, at] += home[i] != goes[i]
    return draws, movers
