"""How many threads the compiled kernels may take, and how they wait for each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_thread", "wait_asleep"]


def wait_asleep() -> None:
    """Let threads that wait for each other sleep, unless the environment says otherwise.

    By default they spin, and on a core that others use too the one who spins keeps the other from
    ending: a kernel of a millisecond then takes fifty. OpenMP reads this once, when Numba loads it
    for the first kernel with threads. It changes the environment of the process, so only a program
    of ours calls it as it starts (the command line, a job, a page), and no import does.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for all kernels: small steps on shared cores wait for each other for long.

    It also makes the clock fair to learners that share their work less well.
    """
    from numba import get_num_threads, set_num_threads  # noqa: PLC0415

    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)
