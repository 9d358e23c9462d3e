"""Compiled parts of the likelihood of pairs: a pool at a time, which stays in the cache."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["covariances", "inverted", "moves_of_layers", "residual_slopes", "slopes_of_layers"]


@njit(cache=True, nogil=True)
def covariances(y, n, transmat, dither):
    """Covariances (G, B, B) of the next counts of G pools, ``dither`` added to the variances.

    People ``y`` (G, O) of ``n`` (G,) pairs go by ``transmat`` (G, O, B).
    """
    n_pools, n_from, d = transmat.shape
    V = np.empty((n_pools, d, d))
    rooted, turned = np.empty((n_from, d)), np.empty((d, n_from))
    for g in range(n_pools):
        A, found = transmat[g], V[g]
        mean = np.zeros(d)
        for i in range(n_from):
            each = y[g, i] / n[g]
            root = np.sqrt(each)
            for j in range(d):
                mean[j] += each * A[i, j]
                rooted[i, j] = root * A[i, j]
        turned[:] = rooted.T
        np.dot(turned, rooted, found)
        for i in range(d):
            for j in range(d):
                found[i, j] = -found[i, j]
            found[i, i] += mean[i] + dither
    return V


@njit(cache=True, nogil=True)
def residual_slopes(y, n, before, after, transmat, W, dither):
    """What residuals and W (G, B, B), inverses of `covariances`, cost; and the slopes (G, O, B).

    Minus twice the log-likelihood but for determinants, and the slopes of the log-likelihood.
    ``before`` (G, P, O) and ``after`` (G, P, B) are the counts of P pairs of each pool.
    """
    n_pools, n_from, d = transmat.shape
    n_pairs = before.shape[1]
    slopes = np.empty(transmat.shape)
    bend, weighed, residual = np.empty((d, d)), np.empty((n_pairs, d)), np.empty((n_pairs, d))
    arrivals = np.empty((n_from, n_pairs))
    turned, moved = np.empty((d, n_pairs)), np.empty((d, d))
    value = 0.0
    for g in range(n_pools):
        A, of_pool, slope = transmat[g], W[g], slopes[g]
        np.dot(before[g], A, residual)
        for p in range(n_pairs):
            for j in range(d):
                residual[p, j] = after[g, p, j] - residual[p, j]
        np.dot(residual, of_pool, weighed)
        for p in range(n_pairs):
            for j in range(d):
                value += weighed[p, j] * residual[p, j]
        np.dot(of_pool, of_pool, bend)
        turned[:] = weighed.T
        np.dot(turned, weighed, moved)
        for i in range(d):
            value += n[g] * dither * of_pool[i, i]
            for j in range(d):
                bend[i, j] = moved[i, j] + n[g] * (dither * bend[i, j] - of_pool[i, j])
        np.dot(A, bend, slope)
        for i in range(n_from):
            each = y[g, i] / n[g]
            for j in range(d):
                slope[i, j] = each * (0.5 * bend[j, j] - slope[i, j])
        arrivals[:] = before[g].T
        for i in range(n_from):
            for p in range(n_pairs):
                people = arrivals[i, p]
                if people != 0:
                    for j in range(d):
                        slope[i, j] += people * weighed[p, j]
    return value, slopes


@njit(cache=True, nogil=True)
def moves_of_layers(weights, draw, share):
    """Destinations of those who leave, and transitions, (H, d, d) both.

    Destinations are in proportion to ``weights`` (d, d) times ``draw`` (H, d), without a weight on
    the diagonal; a ``share`` (H, d) leaves.
    """
    n_slots, d = draw.shape
    going, transmats = np.empty((n_slots, d, d)), np.empty((n_slots, d, d))
    for h in range(n_slots):
        for i in range(d):
            total = 0.0
            for j in range(d):
                going[h, i, j] = weights[i, j] * draw[h, j]
                total += going[h, i, j]
            per = 1 / total if total > 0 else 1.0
            for j in range(d):
                going[h, i, j] *= per
                transmats[h, i, j] = going[h, i, j] * share[h, i]
            transmats[h, i, i] = 1 - share[h, i]
    return going, transmats


@njit(cache=True, nogil=True)
def slopes_of_layers(going, share, slot, slope):
    """Slopes in logits of the layers, of slopes (G, d, d) in transitions of the times ``slot``.

    Those in logits of destinations, over all times (d, d) and by time over all origins (H, d), and
    in the logit of leaving (H, d).
    """
    n_slots, d, _ = going.shape
    of_moves, of_draws, of_leaving = np.zeros((d, d)), np.zeros((n_slots, d)), np.zeros(share.shape)
    for g in range(len(slot)):
        h = slot[g]
        for i in range(d):
            mean = 0.0
            for j in range(d):
                mean += going[h, i, j] * slope[g, i, j]
            for j in range(d):
                each = going[h, i, j] * share[h, i] * (slope[g, i, j] - mean)
                of_moves[i, j] += each
                of_draws[h, j] += each
            of_leaving[h, i] += share[h, i] * (1 - share[h, i]) * (mean - slope[g, i, i])
    return of_moves, of_draws, of_leaving


@njit(cache=True, nogil=True)
def inverted(V, least, W, log_dets):
    """Inverses of small symmetric V (n, d, d), written to ``W``, and of determinants ``log_dets``.

    By elimination in the order of rows (Gauss and Jordan). False if a pivot is not above ``least``
    of what its row began with, as one of a covariance always is: what is written then says nothing.
    """
    n, d, _ = V.shape
    for k in range(n):
        found = W[k]
        found[:] = V[k]
        log_det = 0.0
        for i in range(d):
            pivot = found[i, i]
            if not pivot > least * V[k, i, i] or not V[k, i, i] > 0:
                return False
            log_det += np.log(pivot)
            found[i, i] = 1.0
            for j in range(d):
                found[i, j] /= pivot
            for other in range(d):
                if other != i:
                    times = found[other, i]
                    found[other, i] = 0.0
                    for j in range(d):
                        found[other, j] -= times * found[i, j]
        for i in range(d):
            for j in range(i):
                mean = 0.5 * (found[i, j] + found[j, i])
                found[i, j] = found[j, i] = mean
        log_dets[k] = log_det
    return True
