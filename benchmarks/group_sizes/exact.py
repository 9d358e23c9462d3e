"""Exact expected moves of a small group of which only counts of symbols are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from agg_core.model.hmm import HMM

__all__ = ["exact_transitions"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def exact_transitions(hmm: HMM, emissionprob: FloatArray, counts: IntArray) -> FloatArray:
    """Expected moves (d, d), summed over steps, given the counts (T, S) of one group.

    The state of the group is how many people are in each state. It moves by multinomial splits
    of the people in each state, so all (d, d) tables of moves with the group's total are
    enumerated, and forward-backward runs over the group's states: exact, for a handful of people.
    """
    d, people = hmm.n_states, int(counts[0].sum())
    occupied, rank = _occupancies(d, people)
    moves, move_weight = _splits(hmm.transmat, people)
    origin, dest = rank(moves.sum(axis=2)), rank(moves.sum(axis=1))
    shown, shown_weight = _splits(emissionprob, people)
    state, symbols = rank(shown.sum(axis=2)), shown.sum(axis=1)
    evidence = np.zeros((len(counts), len(occupied)))
    for t, seen in enumerate(counts):
        fits = (symbols == seen).all(axis=1)
        np.add.at(evidence[t], state[fits], shown_weight[fits])
    start = np.exp(
        gammaln(people + 1) + (xlogy(occupied, hmm.startprob) - gammaln(occupied + 1)).sum(axis=1)
    )
    n = len(occupied)
    forward, backward = evidence.copy(), np.ones_like(evidence)
    forward[0] *= start
    for t in range(1, len(counts)):
        forward[t] *= np.bincount(dest, forward[t - 1][origin] * move_weight, n)
    for t in range(len(counts) - 2, -1, -1):
        ahead = (evidence[t + 1] * backward[t + 1])[dest]
        backward[t] = np.bincount(origin, ahead * move_weight, n)
    total = forward[-1].sum()
    expected = np.zeros((d, d))
    for t in range(len(counts) - 1):
        chance = forward[t][origin] * move_weight * (evidence[t + 1] * backward[t + 1])[dest]
        expected += np.tensordot(chance / total, moves, axes=1)
    return expected


def _splits(probs: FloatArray, people: int) -> tuple[IntArray, FloatArray]:
    """All tables (n, rows, columns) of that many people, and p(table | its row sums)."""
    tables = _compositions(people, probs.size).reshape(-1, *probs.shape)
    log_ways = gammaln(tables.sum(axis=2) + 1).sum(axis=1) - gammaln(tables + 1).sum(axis=(1, 2))
    return tables, np.exp(log_ways + xlogy(tables, probs).sum(axis=(1, 2)))


def _occupancies(d: int, people: int) -> tuple[IntArray, Callable[[IntArray], IntArray]]:
    """All states of the group (n, d), and a function from such rows to their numbers."""
    occupied = _compositions(people, d)
    base = (people + 1) ** np.arange(d)
    keys = occupied @ base
    order = np.argsort(keys)

    def rank(rows: IntArray) -> IntArray:
        return np.asarray(order[np.searchsorted(keys[order], rows @ base)])

    return occupied, rank


@cache
def _compositions(total: int, parts: int) -> IntArray:
    """All ways to write ``total`` as an ordered sum of ``parts`` numbers from 0, (n, parts)."""
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(-1, parts - 1)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=(-1, total + parts - 1))
    return np.diff(edges, axis=1) - 1
