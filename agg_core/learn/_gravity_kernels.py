"""Compiled inner loop of the gravity model."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["balanced", "balanced_near"]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def balanced(far, log_shape, leavers, arrivals, even, attraction):
    """Scale ``attraction`` (d,) twice in place, and look where leavers then go.

    Rows are proportional to ``far`` (d, d) times the attraction. Returns the sum of the logarithms
    ``log_shape`` (d, d) of the shape over the moves of all ``leavers`` (d,), and their variance
    within rows.
    """
    d = attraction.size
    for _ in range(2):
        met = np.zeros(d)
        for i in range(d):
            if leavers[i] != 0:
                total = 0.0
                for j in range(d):
                    total += far[i, j] * attraction[j]
                if total > 0:
                    part = leavers[i] / total
                    for j in range(d):
                        met[j] += part * far[i, j]
        for j in range(d):
            attraction[j] *= (arrivals[j] + even) / (attraction[j] * met[j] + even)
    foreseen = spread = 0.0
    for i in range(d):
        if leavers[i] != 0:
            total = first = second = 0.0
            for j in range(d):
                weight = far[i, j] * attraction[j]
                total += weight
                first += weight * log_shape[i, j]
                second += weight * log_shape[i, j] ** 2
            if total > 0:
                mean = first / total
                foreseen += leavers[i] * mean
                spread += leavers[i] * (second / total - mean**2)
    return foreseen, spread


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def balanced_near(indptr, dest, far, log_shape, leavers, arrivals, even, attraction):
    """`balanced` of near moves alone, (n,): those from i are ``indptr[i] : indptr[i + 1]``."""
    d = attraction.size
    for _ in range(2):
        met = np.zeros(d)
        for i in range(d):
            if leavers[i] != 0:
                total = 0.0
                for e in range(indptr[i], indptr[i + 1]):
                    total += far[e] * attraction[dest[e]]
                if total > 0:
                    part = leavers[i] / total
                    for e in range(indptr[i], indptr[i + 1]):
                        met[dest[e]] += part * far[e]
        for j in range(d):
            attraction[j] *= (arrivals[j] + even) / (attraction[j] * met[j] + even)
    foreseen = spread = 0.0
    for i in range(d):
        if leavers[i] != 0:
            total = first = second = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                weight = far[e] * attraction[dest[e]]
                total += weight
                first += weight * log_shape[e]
                second += weight * log_shape[e] ** 2
            if total > 0:
                mean = first / total
                foreseen += leavers[i] * mean
                spread += leavers[i] * (second / total - mean**2)
    return foreseen, spread
