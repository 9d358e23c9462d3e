"""Processes that start at once: forked by a server that has imported the library already.

The app starts a process of its own for each upload and each learner, which spends most of its time
on imports. A test that is not about this start may have it forked: it is still a process with a
number, limits and an end by force, and it runs the same module in the same way.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing import reduction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

import pytest

from agg_core.base import processes
from agg_core.io import apart, sandbox
from agg_core.store import job_process

__all__ = ["fork_from_now_on"]

STARTED = (job_process, sandbox, apart)
"""What the app runs as a program."""

_warm = multiprocessing.get_context("forkserver")
_warm.set_forkserver_preload(["tests.warm"])


class Forked:
    """What the app uses of `subprocess.Popen`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        stderr: IO[bytes],
        stdin: int,
        stdout: int,
        start_new_session: bool,
        cwd: Path | None = None,
    ) -> None:
        python, option, module, *arguments = command
        assert (python, option) == (sys.executable, "-m")
        assert module in [known.__name__ for known in STARTED]
        assert stdout == subprocess.DEVNULL
        given = None if stdin == subprocess.DEVNULL else Given(stdin)
        asked = (module, arguments, dict(env), cwd, stderr.name, given, start_new_session)
        self._process = _warm.Process(target=_run, args=asked, daemon=True)
        # The process would first run again what `__main__` is: in a page test, the app.
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            self._process.start()
        finally:
            sys.modules["__main__"] = main

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


class Given:
    """An open file that goes along to the process, lock and all."""

    def __init__(self, file: int) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._file),)


def _received(sent: Any) -> int:
    return int(sent.detach())


def _run(
    module: str,
    arguments: list[str],
    env: dict[str, str],
    cwd: Path | None,
    log: str,
    given: int | None,
    apart: bool,
) -> None:
    if apart:
        os.setsid()
    os.environ.clear()
    os.environ.update(env)
    if cwd is not None:
        os.chdir(cwd)
    for stream, file in enumerate((os.devnull, os.devnull, log)):
        os.dup2(os.open(file, os.O_RDWR | os.O_APPEND), stream)
    if given is not None:
        os.dup2(given, 0)
        os.close(given)
    sys.argv = [module, *arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the module is imported, on purpose
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    os._exit(0)


def fork_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that the app starts forked, until the test ends."""
    shown = SimpleNamespace(Popen=Forked, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(processes, "subprocess", shown)
