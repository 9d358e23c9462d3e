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
        for x in range(ahead.shape[1]):
            ahead[r, x] *= likelihood[shown[r], x]
            total += ahead[r, x]
        scale[r] = total
        factor = 1.0 / total
        for x in range(ahead.shape[1]):
            ahead[r, x] *= factor


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _meeting(ahead, met, chosen, scale):
    """How likely each person's row of ``ahead`` meets the chosen row of ``met``, into scale."""
    for r in range(chosen.size):
        total = 0.0
        for x in range(ahead.shape[1]):
            total += ahead[r, x] * met[chosen[r], x]
        scale[r] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _pulled(likelihood, shown, back, scale, pull):
    """What pulls each person to the states of a step: likelihood times beta, over the scale."""
    for r in range(shown.size):
        factor = 1.0 / scale[r]
        for x in range(pull.shape[1]):
            pull[r, x] = back[r, x] * likelihood[shown[r], x] * factor


@njit(cache=True, nogil=True, error_model="numpy")
def _taken(rows, chosen, factors, target):
    """Each person's chosen row times a factor of one's own."""
    for r in range(chosen.size):
        for x in range(rows.shape[1]):
            target[r, x] = rows[chosen[r], x] * factors[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_to_chosen(rows, chosen, factors, sums):
    """Add each person's row, times a factor of one's own, to the chosen row of sums."""
    for r in range(chosen.size):
        for x in range(rows.shape[1]):
            sums[chosen[r], x] += rows[r, x] * factors[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_people(shown, ahead, back, people, emission):
    """Add the people of a step, by what they showed and the state they were in."""
    for r in range(shown.size):
        for x in range(ahead.shape[1]):
            emission[shown[r], x] += people[r] * ahead[r, x] * back[r, x]


@njit(cache=True, nogil=True)
def _add_to_rows(rows, values, sums):
    """Add values (n, d) to the named rows of sums."""
    for r in range(rows.size):
        sums[rows[r]] += values[r]


@njit(cache=True, nogil=True)
def _distinct(shown, n_rows):
    """The rows that are shown, each once, and which of these every person shows."""
    place = np.full(n_rows, -1)
    rows, chosen = np.empty(n_rows, np.int64), np.empty(shown.size, np.int64)
    n = 0
    for r in range(shown.size):
        if place[shown[r]] < 0:
            place[shown[r]] = n
            rows[n] = shown[r]
            n += 1
        chosen[r] = place[shown[r]]
    return rows[:n], chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _log_scales(scale, people, first):
    """Log-likelihood by the scales (T, n) of people, and the first whose scale is not above 0."""
    total = 0.0
    for t in range(scale.shape[0]):
        for r in range(people.size):
            if not scale[t, r] > 0.0:
                return total, first + r
            total += people[r] * np.log(scale[t, r])
    return total, -1


@njit(cache=True, nogil=True, error_model="numpy")
def _of_one_step(opened, opened_by, open_scale, people):
    """People in each state by the symbol that they showed, where there is one step."""
    scale = np.empty((1, people.size))
    held = np.zeros((opened.shape[0], 1))
    for r in range(people.size):
        scale[0, r] = open_scale[opened_by[r]]
        held[opened_by[r], 0] += people[r]
    log_likelihood, failed = _log_scales(scale, people, 0)
    return opened * held, log_likelihood, failed


@njit(cache=True, nogil=True, error_model="numpy")
def _ahead(transmat, likelihood, shown, start, scale):
    """Alpha of the steps between the first and the last, the first of them given."""
    ahead = np.empty((max(shown.shape[0] - 2, 1), *start.shape))
    ahead[0] = start
    for t in range(1, shown.shape[0] - 1):
        if t > 1:
            np.dot(ahead[t - 2], transmat, ahead[t - 1])
        _met(likelihood, shown[t], ahead[t - 1], scale[t])
    return ahead


@njit(cache=True, nogil=True, error_model="numpy")
def _add_between(back_transmat, likelihood, shown, ahead, scale, people, back, pairs, emission):
    """Add what the steps between the first and the last say; the pull of the first of them.

    ``back`` is beta of the last of them, and is changed.
    """
    n, d = back.shape
    pull, weighted, part = np.empty((n, d)), np.empty((d, n)), np.empty((d, d))
    for t in range(shown.shape[0] - 2, 0, -1):
        if emission.size:
            _add_people(shown[t], ahead[t - 1], back, people, emission)
        _pulled(likelihood, shown[t], back, scale[t], pull)
        if t > 1:
            for r in range(n):
                for x in range(d):
                    weighted[x, r] = people[r] * ahead[t - 2, r, x]
            np.dot(weighted, pull, part)
            pairs += part
            np.dot(pull, back_transmat, back)
    return pull


@njit(cache=True, nogil=True, error_model="numpy")
def forward_backward_of_people(startprob, transmat, likelihood, shown, people, with_emission):
    """Expected counts of single people, by forward-backward scaled at each step.

    ``likelihood`` (U, d) are p(symbol | state), ``shown`` (T, K) is the row of it that each of K
    people shows (a row of ones for who was not seen), and ``people`` (K,) is how many each stands
    for. Returns start (d,), pairs (d, d) without the factor transmat, emission (U, d), minus the
    log-likelihood and the first sequence that cannot happen, or -1.

    What the first step says of the second depends on the first symbol alone, what the last step
    says of the one before on the last symbol alone, and expected counts are sums: moves of the
    first and of the last step are therefore multiplied once for each symbol, not for each person.
    """
    d, (length, n) = startprob.size, shown.shape
    start, pairs = np.zeros(d), np.zeros((d, d))
    emission = np.zeros(likelihood.shape if with_emission else (0, 0))
    openers, opened_by = _distinct(shown[0], likelihood.shape[0])
    opened, open_scale = np.empty((openers.size, d)), np.empty(openers.size)
    opened[:] = startprob
    _met(likelihood, openers, opened, open_scale)
    energy = 0.0
    if length == 1:
        opened, log_likelihood, failed = _of_one_step(opened, opened_by, open_scale, people)
        if with_emission:
            _add_to_rows(openers, opened, emission)
        return opened.sum(axis=0), pairs, emission, -log_likelihood, failed

    back_transmat = np.ascontiguousarray(transmat.T)
    begun, pulled_first = np.dot(opened, transmat), np.zeros((openers.size, d))
    closers, closed_by = _distinct(shown[length - 1], likelihood.shape[0])
    closing, came_last = likelihood[closers], np.zeros((closers.size, d))
    ended = np.dot(closing, back_transmat) if length > 2 else closing
    width = max(CACHED // d, 16)
    for first in range(0, n, width):
        here = slice(first, min(first + width, n))
        now, opener, closer = people[here], opened_by[here], closed_by[here]
        before, scale = np.empty((now.size, d)), np.empty((length, now.size))
        _taken(begun, opener, np.ones(now.size), before)
        scale[0] = open_scale[opener]
        ahead = _ahead(transmat, likelihood, shown[:, here], before, scale)
        _meeting(ahead[-1], ended, closer, scale[length - 1])
        log_likelihood, failed = _log_scales(scale, now, first)
        if failed >= 0:
            return start, pairs, emission, energy, failed
        energy -= log_likelihood
        inverse, back = 1.0 / scale[length - 1], np.empty((now.size, d))
        _taken(ended, closer, inverse, back)
        if length == 2:  # the first move is the last
            if with_emission:
                _add_people(shown[1, here], ahead[0], back, now, emission)
            _add_to_chosen(back, opener, now, pulled_first)
        else:
            _add_to_chosen(ahead[-1], closer, now * inverse, came_last)
            pull = _add_between(
                back_transmat, likelihood, shown[:, here], ahead, scale, now, back, pairs, emission
            )
            _add_to_chosen(pull, opener, now, pulled_first)

    pairs += np.dot(np.ascontiguousarray(opened.T), pulled_first)
    pairs += np.dot(np.ascontiguousarray(came_last.T), closing)
    opened *= np.dot(pulled_first, back_transmat)
    start += opened.sum(axis=0)
    if with_emission:
        _add_to_rows(openers, opened, emission)
        closing *= np.dot(came_last, transmat)
        _add_to_rows(closers, closing, emission)
    return start, pairs, emission, energy, -1
