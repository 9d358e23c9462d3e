"""How fast this machine is: a small task of the kind that learners do, timed once."""

from __future__ import annotations

from functools import cache
from statistics import median
from time import thread_time

import numpy as np

__all__ = ["probe_s", "probed_s"]

REPEATS = 7
"""Times that the task is timed: the median is taken, as others may use the core now and then."""

MATRICES, SIDE = 24, 48
"""Stack of matrices that are inverted; one product is too small to be shared by threads."""

VALUES = 60_000


@cache
def probe_s() -> float:
    """Seconds of a core that the task takes on this machine, found once in a process."""
    return probed_s()


def probed_s() -> float:
    """The same, found anew."""
    rng = np.random.default_rng(0)
    stack = rng.random((MATRICES, SIDE, SIDE)) + SIDE * np.eye(SIDE)
    values = rng.random(VALUES)
    taken = []
    for _ in range(REPEATS):
        began = thread_time()
        inverse = np.linalg.inv(stack)
        inverse @ stack
        np.sort(np.exp(values))
        np.add.at(np.zeros(SIDE), (values * SIDE).astype(np.int64), values)
        total = 0.0
        for value in range(VALUES // 2):
            total += value % 7
        taken.append(thread_time() - began)
    return median(taken)
