"""Parts of work that tests give to engines; workers of a cluster find them by their name."""

from __future__ import annotations

import os
import signal
import threading
from itertools import count
from pathlib import Path

import distributed

from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.threads import number_of_threads


def square(x):
    return x**2


def inverse(x):
    return 1 / x


def within(_):
    """Workers of the engine within a part, what it makes of parts, and the threads there may be."""
    return current().n_workers, current().map(square, range(3)), number_of_threads()


def met(_):
    """Wait for another one who does the same, which takes two at once."""
    return MEETING.wait()


MEETING = threading.Barrier(2, timeout=60)


def refused(code):
    raise InputError("a sentence", "an option", code=code)


def process_of(_):
    return os.getpid()


def killed(_):
    """No worker survives it."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(given):
    """Ends the first worker that comes to the item that is marked so by a file."""
    path, x = given
    if Path(path).exists():
        Path(path).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return x**2


def forever(name):
    """Tells that it has begun, goes on without end, and tells if it is stopped all the same."""
    begun, stopped = (distributed.Event(f"{name} {what}") for what in ("begun", "stopped"))
    try:
        begun.set()
        for _ in count():
            pass
    finally:
        stopped.set()


def forever_after_the_first(name):
    """The same of each but one."""
    if name != "first":
        forever(name)


class Deadly(distributed.WorkerPlugin):
    """Ends a worker as soon as it is at work on a part."""

    name = "deadly"

    def transition(self, key, start, finish, **_):
        if finish == "executing" and str(key).startswith("agg-core-"):
            os.kill(os.getpid(), signal.SIGKILL)


def die_of_the_next(dask_worker):
    """Let this worker end with the next part; one that takes its place will not."""
    dask_worker.plugins[Deadly.name] = Deadly()
