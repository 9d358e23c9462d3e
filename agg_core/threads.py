"""How many threads the compiled kernels may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numba import get_num_threads, set_num_threads

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for all kernels: small steps on shared cores wait for each other for long.

    It also makes the clock fair to learners that share their work less well.
    """
    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)
