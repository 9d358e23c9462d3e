"""What it takes until something is seen: imports, the help, a look into a small file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["BARS_S", "rows"]

REPEATS = 5
BARS_S = {"import agg_core": 0.2, "agg_core --help": 0.3, "agg_core inspect small.csv": 0.8}
"""CPU seconds that each may take."""

SMALL = "user_id,time,lon,lat\n" + "".join(
    f"u{i},2024-05-01 {8 + j:02d}:00,{139.5 + i / 100},{35.6 + j / 100}\n"
    for i in range(20)
    for j in range(5)
)

_MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps(used.ru_utime + used.ru_stime))
"""


def rows() -> list[dict[str, Any]]:
    """For each of `BARS_S` the medians of CPU (user + system) and wall seconds of new processes.

    ``python_cpu_s`` is what the interpreter takes by itself, which is part of them.
    """
    with tempfile.TemporaryDirectory(prefix="first-seconds-") as folder:
        small = Path(folder) / "small.csv"
        small.write_text(SMALL, encoding="utf-8")
        module = [sys.executable, "-m", "agg_core"]
        commands = dict(
            zip(
                BARS_S,
                (
                    [sys.executable, "-c", "import agg_core"],
                    [*module, "--help"],
                    [*module, "inspect", str(small)],
                ),
                strict=True,
            )
        )
        alone = _measured([sys.executable, "-c", "pass"])
        return [
            {"work": work, **_measured(command), "bar_s": BARS_S[work],
             "python_cpu_s": alone["cpu_s"]}
            for work, command in commands.items()
        ]  # fmt: skip


def _measured(command: list[str]) -> dict[str, float]:
    """Medians of `REPEATS` runs, after one that is not counted."""
    found = [_once(command) for _ in range(REPEATS + 1)][1:]
    return {"cpu_s": median(cpu for cpu, _ in found), "wall_s": median(wall for _, wall in found)}


def _once(command: list[str]) -> tuple[float, float]:
    """CPU seconds of a command, seen by a parent that has no other child; and wall seconds."""
    began = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    return float(json.loads(told.stdout)), time.perf_counter() - began
