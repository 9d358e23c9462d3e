"""The engine that is a Dask cluster: one of our own on this machine, or one that runs already.

A task carries all that it needs by value, as data that lie on a worker are lost with it: one that
dies is replaced by another, which does the same again. What no worker survives is an error with a
name, and a client that goes away, however it does, takes its work with it: a worker that is told to
forget a task stops it.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any, Generic, TypeVar

import dask
from dask.system import CPU_COUNT
from distributed import (
    CancelledError,
    Client,
    Future,
    KilledWorker,
    LocalCluster,
    WorkerPlugin,
    get_worker,
    wait,
)
from distributed.client import ClosedClientError

from agg_core.base.engine import AHEAD, Engine, in_turn
from agg_core.base.errors import EngineError
from agg_core.base.threads import one_blas_thread
from agg_core.base.version import __version__

__all__ = ["DaskEngine", "code_here", "dask_engine"]

Item = TypeVar("Item")
Result = TypeVar("Result")

WORKERS_S = 60.0
"""Seconds to wait for a first worker, or for another one when all are gone."""

LOOK_S = 2.0
"""Seconds after which who waits for a result looks whether there is a worker."""

LARGE = "distributed.admin.large-graph-warning-threshold"
"""Tasks by value are large on purpose: Dask need not warn of it."""

OWN = "127.0.0.1:0"
"""Where a cluster of our own tells of itself: on a free port, to this machine alone."""


@contextmanager
def dask_engine(
    address: str | None, wait_s: float | None = None, n_workers: int | None = None
) -> Iterator[DaskEngine]:
    """The cluster with a scheduler at ``address``, host:port, or (None) one of our own.

    That has ``n_workers`` processes, None: one on each core.

    Where Dask's own configuration asks for encryption (``distributed.comm.require-encryption``),
    the scheduler is spoken to by TLS with the certificates that are named there.

    Raises
    ------
    EngineError
        If there is no scheduler, it has no worker after ``wait_s`` seconds (None: `WORKERS_S`), or
        its workers have another version of this package.
    """
    wait_s = WORKERS_S if wait_s is None else wait_s
    if address is None:
        with (
            _cluster_here(n_workers or CPU_COUNT) as cluster,
            Client(cluster, set_as_default=False) as client,
            _engine(client, wait_s) as engine,
        ):
            yield engine
        return
    encrypted = dask.config.get("distributed.comm.require-encryption")
    try:
        client = Client(
            f"{'tls' if encrypted else 'tcp'}://{address}", set_as_default=False, timeout=wait_s
        )
    except (OSError, ValueError, TypeError) as fault:
        raise EngineError(
            f"No scheduler of Dask answers at {address}; start one there, or leave the engine out.",
            code="cluster-unreachable",
        ) from fault
    with client, _engine(client, wait_s) as engine:
        yield engine


def _cluster_here(n_workers: int) -> LocalCluster:
    """A scheduler in this process, and processes of their own that work."""
    try:
        return LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=OWN,
            worker_dashboard_address=OWN, silence_logs=logging.ERROR,
        )  # fmt: skip
    except RuntimeError as fault:
        # Each process loads the program anew, which must not begin its work again.
        raise EngineError(
            "The processes of the engine dask did not start; a program of your own must begin its "
            'work below `if __name__ == "__main__":`, and lie in a file.',
            code="cluster-not-started",
        ) from fault


@contextmanager
def _engine(client: Client, wait_s: float) -> Iterator[DaskEngine]:
    """An engine whose workers are there and have this same package."""
    with dask.config.set({LARGE: "1TB"}):
        try:
            client.wait_for_workers(1, timeout=wait_s)
        except TimeoutError as fault:
            raise _no_workers() from fault
        others = set(client.run(_code_there()).values()) - {code_here()}
        if others:
            raise _other_code(others.pop(), code_here())
        client.register_plugin(_Stopping())
        yield DaskEngine(client, wait_s)


def _no_workers() -> EngineError:
    return EngineError(
        "The Dask cluster has no workers; start some, or leave the engine out.",
        code="no-workers",
    )


def _other_code(there: str | None, here: str) -> EngineError:
    seen = "no agg-core" if there is None else f"agg-core {there}"
    return EngineError(
        f"A worker of the Dask cluster has {seen}, and this is agg-core {here}; install the same "
        "on every worker.",
        code="worker-version-differs",
    )


@cache
def code_here() -> str:
    """The version of this package, and a digest of its modules that tells two of the same apart."""
    root, digest = Path(__file__).parents[1], sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("_app/"):  # the dashboard, which does no work
            digest.update(f"{name} ".encode())
            digest.update(sha256(path.read_bytes()).digest())
    return f"{__version__} ({digest.hexdigest()[:12]})"


def _code_there() -> Callable[[], str | None]:
    """`code_here` of a worker, or None where this package cannot be loaded.

    It is a function within a function, as such a one is sent whole and not by its name.
    """

    def found() -> str | None:
        try:
            from agg_core.base.dask_engine import code_here as there  # noqa: PLC0415
        except ImportError:
            return None
        return there()

    return found


class DaskEngine(Engine):
    """The workers of a scheduler."""

    def __init__(self, client: Client, wait_s: float = WORKERS_S) -> None:
        self.client, self.wait_s = client, wait_s

    @property
    def n_workers(self) -> int:
        """Threads of all workers that there are now."""
        with _named_errors():
            return sum(self.client.nthreads().values())

    def _side_by_side(
        self, function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Generator[Result, None, None]:
        at_once, task = AHEAD * max(self.n_workers, 1), _Task(function, code_here())
        at_work = deque[Future[Any]]()
        try:
            for item in items:
                with _named_errors():
                    key = f"agg-core-{token_hex(8)}"  # never that of an earlier task
                    at_work.append(self.client.submit(task, item, key=key))
                if len(at_work) >= at_once:
                    yield self._result(at_work.popleft())
            while at_work:
                yield self._result(at_work.popleft())
        finally:
            self._cancel(at_work)

    def _result(self, future: Future[Any]) -> Any:
        """What a task found, or its fault, once that is there."""
        try:
            with _named_errors():
                self._wait(future)
                fault = future.exception() if future.status == "error" else None
                if fault is None:
                    return future.result()
            if isinstance(fault, KilledWorker):
                raise EngineError(
                    "A part of the work ended every worker of the Dask cluster that tried it, "
                    "perhaps for want of memory; give the workers more, or the work less.",
                    code="worker-lost",
                ) from fault
            raise fault
        finally:
            if future.done():
                future.release()
            else:
                self._cancel([future])

    def _wait(self, future: Future[Any]) -> None:
        """Until a task has ended, or there have been no workers for too long."""
        alone_since: float | None = None
        while not future.done():
            with suppress(TimeoutError), self.client.as_current():
                wait([future], timeout=LOOK_S)
            if future.done() or self.client.nthreads():
                alone_since = None
                continue
            now = monotonic()
            alone_since = now if alone_since is None else alone_since
            if now - alone_since >= self.wait_s:
                raise _no_workers()

    def _cancel(self, futures: Collection[Future[Any]]) -> None:
        """Let the cluster forget tasks; those that are under way are stopped (`_Stopping`)."""
        if futures and self.client.status == "running":
            with suppress(OSError, CancelledError):
                self.client.cancel(list(futures), force=True)


@contextmanager
def _named_errors() -> Iterator[None]:
    """Errors of the connection to a scheduler as one that says what to do."""
    try:
        yield
    except (OSError, CancelledError, ClosedClientError) as fault:
        raise EngineError(
            "The scheduler of the Dask cluster was lost while it had work to do; see whether it "
            "runs, and begin again.",
            code="cluster-lost",
        ) from fault


# ---------------------------------------------------------------- done by the workers


@dataclass(frozen=True)
class _Task(Generic[Item, Result]):
    """A function to do, and the ``code`` of who asks for it (see `code_here`)."""

    function: Callable[[Item], Result]
    code: str

    def __call__(self, item: Item) -> Result:
        # A worker may have come after the others were asked.
        if self.code != code_here():
            raise _other_code(code_here(), self.code)
        key = get_worker().get_current_task()
        with _stoppable(key), one_blas_thread(), in_turn():
            return self.function(item)


class _StoppedError(BaseException):
    """Nobody waits for the task any more; a fault that no work takes for one of its own."""


_threads: dict[Any, int] = {}
_threads_lock = threading.Lock()


@contextmanager
def _stoppable(key: Any) -> Iterator[None]:
    """A task of this thread that `_stop` may end."""
    with _threads_lock:
        _threads[key] = threading.get_ident()
    try:
        yield
    finally:
        with _threads_lock:
            del _threads[key]
            _raise_in(threading.get_ident(), None)


def _stop(key: Any) -> None:
    """Let the thread of a task end it, as soon as it is back from what is compiled."""
    with _threads_lock:
        if key in _threads:
            _raise_in(_threads[key], _StoppedError)


def _raise_in(thread: int, fault: type[BaseException] | None) -> None:
    """Raise a fault in a thread, or, with None, take back one that has not come yet."""
    what = None if fault is None else ctypes.py_object(fault)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


class _Stopping(WorkerPlugin):
    """Stops what a worker does once its scheduler wants no result: Dask itself would let it run."""

    name = "agg-core-stopping"

    def transition(self, key: Any, start: Any, finish: Any, **_: Any) -> None:
        """A task of the worker comes from one state into another; what has ended has results."""
        if start in ("executing", "long-running") and finish == "released":
            _stop(key)
