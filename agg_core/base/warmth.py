"""Whether the compiled kernels of this very source are kept on this machine: a record beside them.

The record says of which source they are and how many lie in which folder; without it, or with
another source or fewer files, they are taken to be missing. Looking takes hundredths of a second.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs

from agg_core.base.errors import InputError
from agg_core.base.processes import write_json
from agg_core.base.shipped import import_root
from agg_core.base.version import __version__

__all__ = ["RECORD", "is_warm", "n_kernels_kept", "record_warm"]

RECORD = "agg_core.warm.json"


def is_warm() -> bool:
    """Whether all kernels of this source are compiled and kept."""
    told = _recorded()
    folders = told.get("folders")
    if not isinstance(folders, dict) or told.get("source") != _source_state():
        return False
    return all(_n_kept(folder) >= n for folder, n in folders.items())


def n_kernels_kept() -> int:
    """How many kernels are kept, of those that were recorded."""
    return sum(map(_n_kept, _recorded().get("folders") or ()))


def record_warm(folders: Iterable[str]) -> None:
    """Record that all kernels are kept in these folders now.

    Raises
    ------
    InputError
        If nothing can be written where they are kept.
    """
    record = _record_path()
    told = {"source": _source_state(), "folders": {each: _n_kept(each) for each in sorted(folders)}}
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_json(record, told)
    except OSError as error:
        raise InputError(
            f"That the learners are prepared cannot be kept ({error.strerror}); name a folder that "
            "can be written in NUMBA_CACHE_DIR.",
            code="file-not-written",
        ) from error


def _source_state() -> str:
    """What tells one source of kernels, and one compiler, from another."""
    root = import_root() / "agg_core"
    told = [__version__, version("numba"), platform.python_version(), platform.machine()]
    for path in sorted(root.rglob("*.py")):
        if b"from numba" in path.read_bytes():
            about = path.stat()
            told.append(f"{path.relative_to(root)} {about.st_mtime_ns} {about.st_size}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _record_path() -> Path:
    """Where the record lies: beside the kernels, where that can be written."""
    stated = os.environ.get("NUMBA_CACHE_DIR")
    if stated:
        return Path(stated) / RECORD
    beside = import_root() / "agg_core" / "__pycache__"
    writable = os.access(beside if beside.is_dir() else beside.parent, os.W_OK)
    return (beside if writable else platformdirs.user_cache_path("population-flows")) / RECORD


def _recorded() -> dict[str, Any]:
    """What was recorded last; nothing where there is no record."""
    try:
        told = json.loads(_record_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _n_kept(folder: str) -> int:
    """Kernels in a folder: each has an index of its compiled forms."""
    return sum(1 for _ in Path(folder).glob("*.nbi"))
