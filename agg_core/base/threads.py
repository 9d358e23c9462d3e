"""How many threads there may be, how they wait for each other, and work that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["number_of_threads", "one_thread", "side_by_side", "wait_asleep"]

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    """One thread for all kernels and for `side_by_side`.

    Small steps on shared cores wait for each other for long. One thread also makes the clock fair
    to learners that share their work less well.
    """
    from numba import get_num_threads, set_num_threads  # noqa: PLC0415

    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def number_of_threads() -> int:
    """Threads that there may be: one per core, or as many as NUMBA_NUM_THREADS says."""
    from numba import get_num_threads  # noqa: PLC0415

    return int(get_num_threads())


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of a function for each item, in their order, in several threads at once.

    It is for work in NumPy, which lets other threads go on. Compiled kernels that have threads of
    their own must not be called so: two of them at a time are more than their threads allow.
    """
    found = list(items)
    n_threads = min(number_of_threads(), len(found))
    if n_threads < 2:
        return [function(item) for item in found]
    with ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(function, found))
