"""A process of our own that may take so much memory and time and no more, watched or not.

The limits are set by the process itself, before it opens anything, and hold while nobody looks at
it. A thread of it measures what is in use and ends it with the sentence that says so; where a
library keeps that thread from running, the system's own limits end it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agg_core.base.errors import InputError
from agg_core.base.shipped import import_root

__all__ = [
    "FAULT",
    "Limits",
    "confine",
    "confined_main",
    "left_fault",
    "memory_in_use",
    "resident_bytes",
    "start_confined",
    "too_much",
    "write_fault",
    "write_json",
]

FAULT = "fault.json"
"""What went wrong, in the folder of the process: the parts of an InputError."""

POLL_S = 0.02
SPARE_BYTES = 1 << 30
"""Memory of the libraries and of a small file."""
BYTES_PER_BYTE = 16
"""Memory that a byte of content may take: text as short as "1,1,1,1" becomes wider numbers."""
SECONDS, BYTES_PER_SECOND = 30.0, 2_000_000
WALL_PER_CPU = 3.0
"""Seconds on the clock that a second of processor time may take on a busy machine."""
NO_POOLS = {"OPENBLAS_NUM_THREADS": "1"}
"""Reading multiplies no matrices: a pool of threads for it would only delay the start."""


@dataclass(frozen=True)
class Limits:
    """Bytes of memory in use, and seconds of processor time."""

    memory: int
    seconds: float

    @classmethod
    def of_size(cls, size: int) -> Self:
        """What a file of so many bytes may take; never more than three quarters of the machine."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(SPARE_BYTES + BYTES_PER_BYTE * size, 3 * machine // 4)
        return cls(max(memory, SPARE_BYTES), SECONDS + size / BYTES_PER_SECOND)


def start_confined(module: str, folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    """Start ``python -m module``, whose main part is `confined_main`, in a folder of ours."""
    path = os.pathsep.join(filter(None, [str(import_root()), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(  # noqa: S603  # our own module and a folder that we named
        [sys.executable, "-m", module, str(folder), str(limits.memory), str(limits.seconds)],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), **NO_POOLS},
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def confined_main(work: Callable[[Path, Limits], None]) -> None:
    """What a process does that `start_confined` started: the work, and nothing after it."""
    folder, memory, seconds = sys.argv[1:]
    work(Path(folder), Limits(int(memory), float(seconds)))
    os._exit(0)  # all is written; taking the libraries down would keep the one who waits


def confine(limits: Limits, folder: Path, name: str) -> None:
    """Limit this process from now on; one that takes too much leaves `FAULT` and ends.

    ``name`` is what the sentence calls the content. Memory is that in use, limited to the byte by
    nobody: between two looks of the thread, and while a library holds it up, the process may
    allocate what the system lets it have, ``SPARE_BYTES`` beyond the limit and what is set aside.
    """
    whole = max(int(limits.seconds), 0) + 1
    began = time.monotonic()
    _limit(resource.RLIMIT_CPU, whole)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_DATA, _reserved_bytes() + limits.memory + SPARE_BYTES)

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


def _limit(what: int, most: int) -> None:
    """A limit of the system, where it knows this one and lets it be set."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(what, (most, most))


def memory_in_use() -> int:
    """Bytes of memory that this process has in use; the most it ever had where only that is told.

    Linux tells both, but counts the memory of the process that started this one to the most.
    """
    in_use = resident_bytes(os.getpid())
    if in_use:
        return in_use
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def resident_bytes(pid: int) -> int:
    """Memory of a process in use; 0 where the system does not tell."""
    return _told_bytes(pid, 1)


def _reserved_bytes() -> int:
    """Memory that libraries have set aside for this process, most of it not in use."""
    return _told_bytes(os.getpid(), 5)


def _told_bytes(pid: int, column: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[column]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def too_much(name: str, what: str) -> InputError:
    """That content so called needs more (memory, time) than it may take."""
    return InputError(
        f"{name} needs more {what} than reading a file of its size may take; split it or save it "
        "as CSV.",
        code="reading-limit-met",
    )


def write_fault(folder: Path, fault: InputError) -> None:
    """Leave `FAULT` in the folder of the process, for `left_fault`."""
    parts = {"message": str(fault), "option": fault.option, "code": fault.code}
    write_json(folder / FAULT, parts)


def left_fault(folder: Path, name: str) -> InputError:
    """What went wrong in a process: what `write_fault` left, or, if nothing, that it was ended."""
    try:
        return InputError(**json.loads((folder / FAULT).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return too_much(name, "time or memory")


def write_json(path: Path, values: object) -> None:
    """All at once: somebody may be reading."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(values), encoding="utf-8")
    part.rename(path)
