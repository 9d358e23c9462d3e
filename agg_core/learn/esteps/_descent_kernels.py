"""Compiled inner loop of L-BFGS."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_curvature"]


@njit(cache=True, nogil=True)
def add_curvature(direction, steps, turns, bends, newest, n):
    """Multiply ``direction`` (N,) by the inverse Hessian of ``n`` steps, in place (two loops).

    ``steps`` and ``turns`` (M, N) and ``bends`` (M,) stand in a ring, the last one at ``newest``.
    """
    most, width = steps.shape
    shares = np.empty(n)
    for back in range(n):
        at = (newest - back) % most
        share = np.dot(steps[at], direction) / bends[at]
        turn = turns[at]
        for k in range(width):
            direction[k] -= share * turn[k]
        shares[back] = share
    scale = bends[newest] / np.dot(turns[newest], turns[newest])
    for k in range(width):
        direction[k] *= scale
    for back in range(n - 1, -1, -1):
        at = (newest - back) % most
        more = shares[back] - np.dot(turns[at], direction) / bends[at]
        step = steps[at]
        for k in range(width):
            direction[k] += more * step[k]
