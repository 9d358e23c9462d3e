"""Programs of ours at work in folders: start, limits, progress, fault, cancel, removal.

A program knows its folder and is known by the files that it leaves there: JSON that tells how far
it is and what went wrong, and its result, which is there when it is whole. One that reads what
strangers wrote may take so much memory and time and no more, watched or not: it limits itself
before it opens anything. A thread of it measures what is in use and ends it with the sentence that
says so; where a library keeps that thread from running, the system's own limits end it: on memory,
on processor time, and an alarm on the clock. What it may do else is taken from it as well
(`agg_core.base.rights`).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from agg_core.base.errors import InputError
from agg_core.base.memory import memory_in_use, reserved_bytes
from agg_core.base.rights import give_up_rights
from agg_core.base.shipped import import_root

__all__ = [
    "FAULT",
    "PROGRESS",
    "Limits",
    "Process",
    "State",
    "confine",
    "confined_main",
    "is_confined",
    "leaving_faults",
    "left_fault",
    "start_confined",
    "start_program",
    "too_much",
    "write_fault",
    "write_json",
]

FAULT = "fault.json"
"""What went wrong, in the folder of the process: the parts of an InputError."""
PROGRESS = "progress.json"
"""How far it is, in its folder."""

State = Literal["running", "done", "failed", "cancelled"]

POLL_S = 0.02
SPARE_BYTES = 1 << 30
"""Memory of the libraries and of a file of megabytes."""
BYTES_PER_BYTE = 16
"""Memory that a byte of content may take: text as short as "1,1,1,1" becomes wider numbers."""
LEAST_BYTES, LEAST_PER_BYTE = 512 << 20, 256
"""The same of a smaller file, which may be packed: the libraries alone take a third of it."""
SET_ASIDE_BYTES = 256 << 20
"""Memory that may be set aside, beyond what may be in use, before the system refuses more."""
WRITTEN_PER_BYTE = 4
"""Bytes that a file of its own may have, for each of memory."""
GRACE_S = 5.0
"""What the alarm waits longer than the thread that can say why."""
SECONDS, BYTES_PER_SECOND = 20.0, 2_000_000
WALL_PER_CPU = 3.0
"""Seconds on the clock that a second of processor time may take on a busy machine."""
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
"""Reading multiplies no matrices: a pool of threads for it would only delay the start. Nobody sees
where a library broke: to look it up would only delay the end."""

_confined = threading.Event()


@dataclass(frozen=True)
class Limits:
    """Bytes of memory in use, and seconds of processor time."""

    memory: int
    seconds: float

    @classmethod
    def of_size(cls, size: int) -> Self:
        """What a file of so many bytes may take; never more than three quarters of the machine."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(
            SPARE_BYTES + BYTES_PER_BYTE * size,
            LEAST_BYTES + LEAST_PER_BYTE * size,
            3 * machine // 4,
        )
        return cls(max(memory, LEAST_BYTES), SECONDS + size / BYTES_PER_SECOND)


# ---------------------------------------------------------------- seen by who starts it


class Process:
    """A program at work and its folder. It ends done, failed (`fault` says why) or cancelled.

    It is done once ``result``, a file or a folder within its own, is there. ``unsaid`` is the fault
    of one that ended with neither a result nor a fault.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], folder: Path, result: str, unsaid: InputError
    ) -> None:
        self.folder = folder
        self._process, self._result, self._unsaid = process, folder / result, unsaid
        self._fault: InputError | None = None
        self._cancelled = False

    @property
    def state(self) -> State:
        """How it is now; never blocks."""
        running = self._process.poll() is None
        if self._result.exists():
            return "done"
        if self._cancelled:
            return "cancelled"
        return "running" if running and not (self.folder / FAULT).exists() else "failed"

    @property
    def fault(self) -> InputError:
        """Why it failed."""
        if self._fault is None:
            self._fault = left_fault(self.folder, self._unsaid)
        return self._fault

    def left(self, name: str) -> Any:
        """The content of a file of JSON in its folder; None if it is not there yet."""
        return _left(self.folder / name)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    def cancel(self) -> None:
        """Stop it; one that has ended stays as it is."""
        if self._process.poll() is None:
            self._cancelled = True
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_program(
    module: str,
    *arguments: str,
    log: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    outlives: bool = False,
) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` with this package at hand; what it writes to stderr goes to a log.

    ``env`` is added to the environment; ``stdin`` is an open file that it is given. One that
    ``outlives`` is of a session of its own: what ends the one who starts it does not end it.
    """
    path = os.pathsep.join(filter(None, [str(import_root()), os.environ.get("PYTHONPATH", "")]))
    with Path(log or os.devnull).open("wb") as stderr:
        return subprocess.Popen(  # noqa: S603  # our own module and a folder that we named
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
            cwd=cwd, stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=outlives,
        )  # fmt: skip


def start_confined(module: str, folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    """Start ``python -m module``, whose main part is `confined_main`, in a folder of ours."""
    given = (str(folder), str(limits.memory), str(limits.seconds))
    env = {"TMPDIR": str(folder), **ENVIRONMENT}
    return start_program(module, *given, cwd=folder, env=env)


def left_fault(folder: Path, unsaid: InputError) -> InputError:
    """What went wrong in a process: what `write_fault` left, or, if nothing, what is not said."""
    told = _left(folder / FAULT)
    if told is None:
        return unsaid
    parts = _Fault(**told)
    return InputError(parts.message, parts.option, code=parts.code)


def _left(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


# ---------------------------------------------------------------- done by the program itself


@dataclass(frozen=True)
class _Fault:
    """The parts of an InputError."""

    message: str
    option: str
    code: str


def write_fault(folder: Path, fault: InputError) -> None:
    """Leave `FAULT` in the folder of the process, for `left_fault`."""
    write_json(folder / FAULT, asdict(_Fault(str(fault), fault.option, fault.code)))


@contextlib.contextmanager
def leaving_faults(folder: Path, no_memory: InputError) -> Iterator[None]:
    """Work whose fault is left in the folder; ``no_memory`` is that of want of memory."""
    try:
        yield
    except InputError as fault:
        write_fault(folder, fault)
    except MemoryError:
        write_fault(folder, no_memory)


def write_json(path: Path, values: object) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    partial.write_text(json.dumps(values), encoding="utf-8")
    os.replace(partial, path)


def confined_main(work: Callable[[Path, Limits], None]) -> None:
    """What a process does that `start_confined` started: the work, and nothing after it."""
    folder, memory, seconds = sys.argv[1:]
    work(Path(folder), Limits(int(memory), float(seconds)))
    os._exit(0)  # all is written; taking the libraries down would keep the one who waits


def confine(limits: Limits, folder: Path, name: str) -> None:
    """Limit this process from now on; one that takes too much leaves `FAULT` and ends.

    ``name`` is what the sentence calls the content. Memory is that in use, limited to the byte by
    nobody: between two looks of the thread, and while a library holds it up, the process may
    allocate what the system lets it have, ``SET_ASIDE_BYTES`` beyond the limit and what is set
    aside already. What it cannot undo it gives up: network, rights, files outside of its folder.
    """
    _confined.set()
    whole = max(int(limits.seconds), 0) + 1
    began = time.monotonic()
    _limit(resource.RLIMIT_CPU, whole)
    _limit(resource.RLIMIT_CORE, 0)
    _let_the_system_allocate()
    _limit(resource.RLIMIT_DATA, reserved_bytes() + limits.memory + SET_ASIDE_BYTES)
    _limit(resource.RLIMIT_FSIZE, SPARE_BYTES + WRITTEN_PER_BYTE * limits.memory)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, WALL_PER_CPU * whole + GRACE_S)
    give_up_rights(folder)

    def look() -> None:
        used_s = max(time.process_time(), (time.monotonic() - began) / WALL_PER_CPU)
        what = "memory" if memory_in_use() > limits.memory else "time"
        if what == "memory" or used_s > limits.seconds:
            write_fault(folder, too_much(name, what))
            os._exit(1)

    def watch() -> None:
        while True:
            look()
            time.sleep(POLL_S)

    look()
    threading.Thread(target=watch, daemon=True).start()


def _let_the_system_allocate() -> None:
    """Arrow's own pool sets aside a gigabyte at once, which would have to be allowed to all."""
    import pyarrow as pa  # noqa: PLC0415

    pa.set_memory_pool(pa.system_memory_pool())


def is_confined() -> bool:
    """Whether this process has limits already."""
    return _confined.is_set()


def _limit(what: int, most: int) -> None:
    """A limit of the system, where it knows this one and lets it be set."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(what, (most, most))


def too_much(name: str, what: str = "time or memory") -> InputError:
    """That content so called needs more (memory, time) than it may take."""
    return InputError(
        f"{name} needs more {what} than reading a file of its size may take; split it or save it "
        "as CSV.",
        code="reading-limit-met",
    )
