"""Compiled forward-backward of single people, many side by side as products of matrices."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["forward_backward_of_people"]

CACHED = 16_000
"""Numbers per step that people side by side have together: what a core keeps at hand."""


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _met(likelihood, shown, ahead, scale):
    """Multiply in the likelihoods of what each person showed; made to sum to 1, sums in scale."""
    for r in range(shown.size):
        total = 0.0
        if shown[r] < 0:  # nobody looked
            for x in range(ahead.shape[1]):
                total += ahead[r, x]
        else:
            for x in range(ahead.shape[1]):
                ahead[r, x] *= likelihood[shown[r], x]
                total += ahead[r, x]
        scale[r] = total
        factor = 1.0 / total
        for x in range(ahead.shape[1]):
            ahead[r, x] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def _pulled(likelihood, shown, back, scale, pull):
    """What pulls each person to the states of a step: likelihood times beta, over the scale."""
    for r in range(shown.size):
        factor = 1.0 / scale[r]
        if shown[r] < 0:
            for x in range(pull.shape[1]):
                pull[r, x] = back[r, x] * factor
        else:
            for x in range(pull.shape[1]):
                pull[r, x] = back[r, x] * likelihood[shown[r], x] * factor


@njit(cache=True, nogil=True, error_model="numpy")
def _add_people(shown, ahead, back, people, emission):
    """Add the people of a step, by what they showed and the state they were in."""
    for r in range(shown.size):
        if shown[r] >= 0:
            for x in range(ahead.shape[1]):
                emission[shown[r], x] += people[r] * ahead[r, x] * back[r, x]


@njit(cache=True, nogil=True, error_model="numpy")
def forward_backward_of_people(startprob, transmat, likelihood, shown, people, with_emission):
    """Expected counts of single people, by forward-backward scaled at each step.

    ``likelihood`` (U, d) are p(symbol | state), ``shown`` (T, K) is the row of it that each of K
    people shows, -1 for none, and ``people`` (K,) is how many each stands for. Returns start (d,),
    pairs (d, d) without the factor transmat, emission (U, d), minus the log-likelihood and the
    first sequence that cannot happen, or -1.
    """
    d, (length, n) = startprob.size, shown.shape
    start, pairs = np.zeros(d), np.zeros((d, d))
    emission = np.zeros(likelihood.shape if with_emission else (0, 0))
    energy = 0.0
    back_transmat = np.ascontiguousarray(transmat.T)
    width = max(CACHED // d, 16)
    for first in range(0, n, width):
        last = min(first + width, n)
        now = people[first:last]
        ahead = np.empty((length, last - first, d))
        scale = np.empty((length, last - first))
        for t in range(length):
            if t == 0:
                ahead[0] = startprob
            else:
                np.dot(ahead[t - 1], transmat, ahead[t])
            _met(likelihood, shown[t, first:last], ahead[t], scale[t])
            for r in range(last - first):
                if not scale[t, r] > 0.0:
                    return start, pairs, emission, energy, first + r
                energy -= now[r] * np.log(scale[t, r])
        back = np.ones((last - first, d))
        pull = np.empty((last - first, d))
        weighted = np.empty((d, last - first))
        part = np.empty((d, d))
        for t in range(length - 1, -1, -1):
            if with_emission:
                _add_people(shown[t, first:last], ahead[t], back, now, emission)
            if t == 0:
                for r in range(last - first):
                    for x in range(d):
                        start[x] += now[r] * ahead[0, r, x] * back[r, x]
            else:
                _pulled(likelihood, shown[t, first:last], back, scale[t], pull)
                for r in range(last - first):
                    for x in range(d):
                        weighted[x, r] = now[r] * ahead[t - 1, r, x]
                np.dot(weighted, pull, part)
                pairs += part
                np.dot(pull, back_transmat, back)
    return start, pairs, emission, energy, -1
