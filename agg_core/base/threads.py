"""How many threads there may be, and who goes first."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

__all__ = ["give_way", "number_of_threads", "one_blas_thread", "one_thread"]

TRIES, BETWEEN_S = 5, 0.11
"""Linux refuses a group of processes another place more often than ten times a second."""


_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the local engine (`agg_core.base.engine`).

    Small steps on shared cores wait for each other for long. One thread also makes the clock fair
    to learners that share their work less well.
    """
    token = _limit.set(1)
    try:
        yield
    finally:
        _limit.reset(token)


def number_of_threads() -> int:
    """Threads that there may be: one per core of this process, or what OMP_NUM_THREADS says.

    That is the variable which NumPy's and others' threads obey.
    """
    limit = _limit.get()
    if limit is not None:
        return limit
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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


def give_way(niceness: int, pid: int = 0, *, tries: int = TRIES) -> bool:
    """Let others go before a process of ours, by default this one, where both want a core.

    Where Linux shares cores among sessions of processes first (man 7 sched, "autogroup"), niceness
    counts only within one; so the session of the process gives way, too. Returns whether all was
    done; false where the system refuses. ``tries`` is how often the session is asked to.
    """
    group = Path("/proc", str(pid or "self"), "autogroup")
    try:
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    except OSError:  # it has ended, or gives way more than that
        return False
    for left in reversed(range(tries)):
        try:
            group.write_text(str(niceness), encoding="ascii")
        except FileNotFoundError:
            return True
        except BlockingIOError:
            if left:
                time.sleep(BETWEEN_S)
        except OSError:
            return False
        else:
            return True
    return False


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
