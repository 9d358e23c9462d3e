"""How many threads there may be, and how they wait for each other."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "kernels_may_meet",
    "number_of_threads",
    "one_blas_thread",
    "one_thread",
    "wait_asleep",
]


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
    """One thread for all kernels and for the local engine (`agg_core.base.engine`).

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


def kernels_may_meet() -> bool:
    """Whether several threads may call kernels that have threads of their own at once.

    Numba ends the process where its threads are those of its own queue, which is where it finds
    neither OpenMP nor TBB.
    """
    from numba.np.ufunc.parallel import threading_layer  # noqa: PLC0415

    number_of_threads()  # which settles what the threads are
    return bool(threading_layer() != "workqueue")  # type: ignore[no-untyped-call]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread for each product of matrices of this process, until the last one who asks is done.

    Where several threads of ours multiply small matrices, those of BLAS would only wait for each
    other. Its number is one of the process, so that whoever comes first sets it, and whoever goes
    last puts it back.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


class _Blas:
    """How many want BLAS to have one thread, and what it had before the first of them."""

    def __init__(self) -> None:
        self.lock, self.n_inside = threading.Lock(), 0
        self.n_modules = 0
        self.libraries: Any = None
        self.before: Any = None

    def enter(self) -> None:
        with self.lock:
            self.n_inside += 1
            if self.n_inside == 1:
                self.before = self._loaded().limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self.lock:
            self.n_inside -= 1
            if not self.n_inside:
                self.before.restore_original_limits()
                self.before = None

    def _loaded(self) -> Any:
        """The libraries of now; looking for them takes longer than a small step of a learner."""
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415

        if self.n_modules != len(sys.modules):
            self.libraries, self.n_modules = ThreadpoolController(), len(sys.modules)
        return self.libraries


_blas = _Blas()
