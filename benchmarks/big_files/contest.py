"""One side on one file in a process of its own: ``python -m benchmarks.big_files.contest``."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from agg_core.base.memory import peak_bytes

__all__ = ["SIDES", "Figures", "figures_of"]

SIDES = ("ours", "duck")
"""Who counts: a module of this folder each."""


@dataclass(frozen=True)
class Figures:
    """What one side took from the start of its process: CPU (user + system), wall, peak memory."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    rows: int
    checksum: str


def figures_of(side: str, path: Path, bounds: tuple[float, float, float, float]) -> Figures:
    """Let one side count a file in a new process."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", __name__, side, str(path), *map(repr, bounds)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    wall_s = time.perf_counter() - began
    return Figures(wall_s=wall_s, **json.loads(done.stdout))


def _count(side: str, path: Path, bounds: tuple[float, ...]) -> dict[str, object]:
    counts = importlib.import_module(f"benchmarks.big_files.{side}").count(path, bounds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": peak_bytes() / 1e6,
        "rows": len(counts.count),
        "checksum": counts.checksum(),
    }


if __name__ == "__main__":
    named, file, *sides = sys.argv[1:]
    print(json.dumps(_count(named, Path(file), tuple(map(float, sides)))))
