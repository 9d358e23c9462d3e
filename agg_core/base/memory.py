"""How much memory this process has taken at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak_bytes"]

STATUS = Path("/proc/self/status")


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
