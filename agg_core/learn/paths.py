"""The hidden states of single people under a known model: Viterbi's path and the marginals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError, UnreachableError
from agg_core.base.moves import whole
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM

__all__ = ["most_likely_paths", "state_probs"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PAIRS_AT_ONCE = 20_000_000
"""State pairs of people that Viterbi's recursion holds in memory."""

IMPOSSIBLE = (
    "Sequence {} cannot happen under this model; learn from data that holds such sequences, or "
    "leave it out."
)


def most_likely_paths(hmm: HMM, people: Aggregates) -> tuple[FloatArray, IntArray]:
    """Log-probability of the most likely path of each person, (N,), and the path, (N, T).

    The joint probability of states and observations (Viterbi 1967). Of paths that are equally
    likely, the one of lower states from the end is taken. Steps without an observation are passed.

    Raises
    ------
    InputError
        If the observations are of groups; `UnreachableError` if a sequence cannot happen.
    """
    emission, log_scale = _emission(hmm, people)
    with np.errstate(divide="ignore"):
        log_start, log_moves = np.log(hmm.startprob), np.log(whole(hmm.transmat))
        log_emission = np.log(emission)
    n_people, length, d = log_emission.shape
    log_probs, states = np.empty(n_people), np.empty((n_people, length), dtype=np.int64)
    at_once = max(PAIRS_AT_ONCE // d**2, 1)
    for first in range(0, n_people, at_once):
        some = slice(first, first + at_once)
        log_probs[some], states[some] = _viterbi(log_start, log_moves, log_emission[some])
    _need_possible(np.isfinite(log_probs))
    return log_probs + log_scale, states


def state_probs(hmm: HMM, people: Aggregates) -> FloatArray:
    """Chance of each state of each person at each step, given all their observations, (N, T, d).

    By forward and backward recursions, normalised at every step (Rabiner 1989).

    Raises
    ------
    InputError
        If the observations are of groups; `UnreachableError` if a sequence cannot happen.
    """
    emission, _ = _emission(hmm, people)
    length = emission.shape[1]
    probs = np.empty_like(emission)
    ahead = np.broadcast_to(hmm.startprob, emission[:, 0].shape)
    for t in range(length):
        probs[:, t] = ahead * emission[:, t]
        total = probs[:, t].sum(axis=1, keepdims=True)
        _need_possible(total[:, 0] > 0)
        probs[:, t] /= total
        ahead = probs[:, t] @ hmm.transmat
    behind = np.ones_like(emission[:, 0])
    for t in range(length - 1, -1, -1):
        probs[:, t] *= behind
        probs[:, t] /= probs[:, t].sum(axis=1, keepdims=True)
        behind = (emission[:, t] * behind) @ hmm.transmat.T
        behind /= behind.max(axis=1, keepdims=True)
    return probs


def _viterbi(
    log_start: FloatArray, log_moves: FloatArray, log_emission: FloatArray
) -> tuple[FloatArray, IntArray]:
    n_people, length, d = log_emission.shape
    came_from = np.empty((length, n_people, d), dtype=np.int64)
    best = log_start + log_emission[:, 0]
    for t in range(1, length):
        reached = best[:, :, None] + log_moves
        came_from[t] = reached.argmax(axis=1)
        best = reached.max(axis=1) + log_emission[:, t]
    states = np.empty((n_people, length), dtype=np.int64)
    states[:, -1] = best.argmax(axis=1)
    each = np.arange(n_people)
    for t in range(length - 1, 0, -1):
        states[:, t - 1] = came_from[t, each, states[:, t]]
    return best.max(axis=1), states


def _emission(hmm: HMM, people: Aggregates) -> tuple[FloatArray, FloatArray]:
    """p(observation | state), (N, T, d), up to a factor; its logarithm by person, (N,)."""
    per_step = np.diff(people.indptr)
    if people.stated_sizes is not None or per_step.max() > 1 or (people.count != 1).any():
        raise InputError(
            "States are those of single people, but these are counts of groups; give the symbols "
            "(N, T) or places (N, T, s) of people, or ask expected_counts for groups.",
            code="single-people-needed",
        )
    found = hmm.emission.likelihoods(people)
    table = np.zeros((len(found.indptr) - 1, found.n_states))
    table[np.repeat(np.arange(len(table)), np.diff(found.indptr)), found.states] = found.values
    emission = np.ones((len(per_step), found.n_states))
    log_scale = np.zeros(len(per_step))
    emission[per_step == 1] = table[found.row]
    if found.log_scale is not None:
        log_scale[per_step == 1] = found.log_scale[found.row]
    shape = (people.n_sequences, people.length)
    return emission.reshape(*shape, -1), log_scale.reshape(shape).sum(axis=1)


def _need_possible(possible: npt.NDArray[np.bool_]) -> None:
    if not possible.all():
        raise UnreachableError(
            IMPOSSIBLE.format(int(np.flatnonzero(~possible)[0])), code="sequence-impossible"
        )
