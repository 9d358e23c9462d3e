"""How CPU seconds and memory of an E-step grow with people: ``python growth.py WHAT N`` measures.

Each size is measured in a process of its own, whose memory is what the size adds to a tiny one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["rows"]

ROOT = Path(__file__).resolve().parents[2]

TINY, SIZES = 100, (1_000, 3_162, 10_000, 31_623, 100_000)
REPEATS = 3

WHAT = ("cfb, groups of 20", "cfb, single people", "sampling, groups of 20")
"""Sizes are groups, or single people."""


def rows() -> list[dict[str, Any]]:
    """A row for each E-step: its seconds and megabytes at each size, and their log-log slopes."""
    found = []
    for what in WHAT:
        tiny, *sizes = (_measured(what, n) for n in (TINY, *SIZES))
        row: dict[str, Any] = {"what": what, "n": list(SIZES)}
        row["cpu_s"] = [round(of["cpu_s"], 4) for of in sizes]
        row["mb"] = [round(of["peak_mb"] - tiny["peak_mb"], 1) for of in sizes]
        for name in ("cpu_s", "mb"):
            values = np.array(row[name])
            some = values > 0
            slope = np.polyfit(np.log(np.array(SIZES)[some]), np.log(values[some]), 1)[0]
            row[f"slope_{name}"] = round(float(slope), 3)
        found.append(row)
    return found


def _measured(what: str, n: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.speed.growth", what, str(n)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    found: dict[str, float] = json.loads(told)
    return found


def main() -> None:
    """Measure one E-step at one size."""
    from agg_core import Grid  # noqa: PLC0415
    from agg_core.base.memory import peak_bytes  # noqa: PLC0415
    from agg_core.base.threads import one_thread  # noqa: PLC0415
    from agg_core.learn.learners import inference_named  # noqa: PLC0415
    from agg_core.model.aggregates import aggregate  # noqa: PLC0415
    from agg_core.model.emissions import CategoricalEmission, grid_emission  # noqa: PLC0415
    from agg_core.model.hmm import HMM, distance_decay_transmat  # noqa: PLC0415

    what, n = sys.argv[1], int(sys.argv[2])
    size = 1 if "single" in what else 20
    grid = Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=14, cols=16)
    d = grid.n_cells
    emission = CategoricalEmission(grid_emission(grid, misclassify=0.05))
    hmm = HMM(np.full(d, 1 / d), distance_decay_transmat(grid), emission)
    groups = aggregate(hmm.sample(n * size, 3, 0)[0], size, d, 1)
    table, inference = emission.likelihoods(groups), inference_named(what.split(",")[0])
    seconds = []
    with one_thread():
        for _ in range(REPEATS):
            began = time.process_time()
            inference(hmm, groups, table, tol=1e-12, max_sweeps=4)
            seconds.append(time.process_time() - began)
    print(json.dumps({"cpu_s": float(np.median(seconds)), "peak_mb": peak_bytes() / 1e6}))


if __name__ == "__main__":
    main()
