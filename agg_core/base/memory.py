"""How much memory a process has in use, and has taken at most; and what it gives back."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

__all__ = [
    "machine_bytes",
    "memory_in_use",
    "peak_bytes",
    "reserved_bytes",
    "resident_bytes",
    "tidy_up",
]

STATUS = Path("/proc/self/status")
LIMITS = tuple(
    Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory/memory.limit_in_bytes")
)
"""Where a container tells how much memory it may take, in both versions of control groups."""


def machine_bytes() -> int:
    """Memory of this machine, or of the container that this process is in."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in LIMITS:
        try:
            most = min(most, int(file.read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return most


def peak_bytes() -> int:
    """Most resident memory of this process so far, in bytes.

    Linux tells it in ``VmHWM``: its ``ru_maxrss``, in kilobytes, may be that of the parent, which
    a process keeps from before it began its own program. macOS counts ``ru_maxrss`` in bytes.
    """
    if STATUS.exists():
        for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def memory_in_use() -> int:
    """Bytes that this process has in use; the most it ever had where only that is told."""
    return resident_bytes(os.getpid()) or peak_bytes()


def resident_bytes(pid: int) -> int:
    """Memory of a process in use; 0 where the system does not tell."""
    return _told_bytes(pid, 1)


def reserved_bytes() -> int:
    """Memory that libraries have set aside for this process, most of it not in use."""
    return _told_bytes(os.getpid(), 5)


def _told_bytes(pid: int, column: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[column]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def tidy_up() -> None:
    """Drop what nobody refers to any more, and give the system the memory that is free.

    What is left is out of the sight of later collections until the next call: a server holds
    hundreds of thousands of objects for as long as it runs (modules, what all sessions share), and
    to look through them takes a tenth of a second in which no thread goes on. Streamlit collects
    after every run of a page.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # The C library keeps what threads of sessions have freed; only that of GNU can be asked.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
