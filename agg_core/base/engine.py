"""Who does work that comes in independent parts: threads of this process, or a Dask cluster.

What can be done in parts asks `current` for the engine and gives it a function and its items. Which
engine that is, whoever began the work has said by `use_engine`; results are the same with any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import chain, islice
from typing import TypeVar

from agg_core.base.errors import EngineError
from agg_core.base.extras import how_to_install, missing_of
from agg_core.base.threads import (
    number_of_threads,
    one_blas_thread,
    one_thread,
)

__all__ = [
    "ENGINES_ALLOWED",
    "ENGINE_HELP",
    "LOCAL",
    "Engine",
    "allowed_engines",
    "check_engine",
    "current",
    "in_turn",
    "use_engine",
]

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL, DASK, ADDRESS = "local", "dask", "dask://"

ENGINE_HELP = (
    "Who does the work: local, the cores of this machine; dask, processes on them; or "
    "dask://host:port, the scheduler of a Dask cluster."
)

ENGINES_ALLOWED = "FLOWS_ENGINES"
"""Variable of the environment by which the owner of a server allows more engines than the local."""

AHEAD = 2
"""Items that are under way or waiting, for each worker: so many that none waits for the next."""


class Engine(ABC):
    """Does a function for each of several items.

    Within such a function `current` is an engine that does one thing after the other, so that work
    in parts whose parts have parts neither waits for itself nor takes more than its share.
    """

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many items may be at work at once."""

    @abstractmethod
    def _side_by_side(
        self, function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Generator[Result, None, None]:
        """Results in the items' order; what is under way ends with the generator."""

    def each(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[Result, None, None]:
        """The results of a function for each item, in their order, as soon as each is there.

        Items are taken as workers come free: how many are taken before a result is given hangs on
        the engine, so that items may not hang on results. Closing the generator ends what is under
        way. A single item is done here, and its parts by this engine.

        Raises
        ------
        EngineError
            If the engine itself fails. What the function raises comes as it is.
        """
        ahead = iter(items)
        first = list(islice(ahead, 2))
        if len(first) < 2:
            yield from map(function, first)
        else:
            yield from self._side_by_side(function, chain(first, ahead))

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of a function for each item, in their order; errors as for `each`."""
        return list(self.each(function, items))


class _Serial(Engine):
    """One item after the other, within a part of the work of another engine."""

    @property
    def n_workers(self) -> int:
        return 1

    def _side_by_side(
        self, function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Generator[Result, None, None]:
        yield from map(function, items)


class _Local(Engine):
    """As many threads as kernels may have: for what lets other threads go on while it computes."""

    @property
    def n_workers(self) -> int:
        return number_of_threads()

    def _side_by_side(
        self, function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Generator[Result, None, None]:
        n_threads = self.n_workers
        if n_threads < 2:
            yield from map(function, items)
            return
        at_work = deque[Future[Result]]()
        with one_blas_thread(), ThreadPoolExecutor(n_threads) as threads:
            try:
                for item in items:
                    at_work.append(threads.submit(copy_context().run, _part, function, item))
                    if len(at_work) >= AHEAD * n_threads:
                        yield at_work.popleft().result()
                while at_work:
                    yield at_work.popleft().result()
            finally:
                for future in at_work:
                    future.cancel()


_SERIAL, _LOCAL = _Serial(), _Local()
_current: ContextVar[Engine] = ContextVar("engine", default=_LOCAL)


def _part(function: Callable[[Item], Result], item: Item) -> Result:
    """What a thread does of the work."""
    with in_turn():
        return function(item)


def current() -> Engine:
    """The engine in use: that of the `use_engine` around, or else the local one."""
    return _current.get()


@contextmanager
def in_turn() -> Iterator[None]:
    """One thing after the other, in one thread: what an engine does a part of the work in."""
    token = _current.set(_SERIAL)
    try:
        with one_thread():
            yield
    finally:
        _current.reset(token)


@contextmanager
def use_engine(spec: str | Engine | None) -> Iterator[Engine]:
    """Let what comes within be done by an engine, and close it after.

    ``spec`` is "local", threads of this process; "dask", a process of its own on each core, started
    now; "dask://host:port", the scheduler of a Dask cluster whose workers have this same package;
    an engine; or None: the one in use.

    Raises
    ------
    EngineError
        If there is no such engine, Dask is not installed, or the cluster cannot be used.
    """
    if spec is not None and not isinstance(spec, Engine):
        check_engine(spec)
    if spec is None or isinstance(spec, Engine) or spec == LOCAL:
        engine = _current.get() if spec is None else spec
        with _in_use(engine if isinstance(engine, Engine) else _LOCAL) as found:
            yield found
        return
    from agg_core.base.dask_engine import dask_engine  # noqa: PLC0415

    address = spec.removeprefix(ADDRESS) if spec.startswith(ADDRESS) else None
    with dask_engine(address) as made, _in_use(made) as found:
        yield found


@contextmanager
def _in_use(engine: Engine) -> Iterator[Engine]:
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)


def check_engine(spec: str) -> str:
    """The name of an engine, which is refused before any work begins if there is no such one.

    Raises
    ------
    EngineError
        If ``spec`` is none of those of `use_engine`, or needs Dask, which is not installed.
    """
    host, _, port = spec.removeprefix(ADDRESS).rpartition(":")
    is_address = spec.startswith(ADDRESS) and bool(host) and port.isdecimal()
    if spec not in (LOCAL, DASK) and not is_address:
        raise EngineError(
            f"The engine must be local, dask or dask://host:port; it was {spec}.",
            code="engine-unknown",
        )
    missing = [] if spec == LOCAL else missing_of("dask")
    if missing:
        raise EngineError(str(how_to_install(missing[0])), code="package-missing")
    return spec


def allowed_engines(said: str) -> tuple[str, ...]:
    """Engines that the owner of a server allows, by names with commas between: local ones first.

    Raises
    ------
    EngineError
        As `check_engine`.
    """
    named = filter(None, map(str.strip, said.split(",")))
    return tuple(dict.fromkeys([LOCAL, *map(check_engine, named)]))
