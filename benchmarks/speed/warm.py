"""What is left to compile after ``agg-core warm``: files that a first learn adds to the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agg_core.io import read_trajectories
from agg_core.learn.table import AUTO, LEARNERS
from agg_core.made.samples import count_sample, make_sample, sample_settings
from agg_core.store.jobs import COUNTS, STUDY, start_job
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.tables.counts import write_counts

__all__ = ["rows"]

SAMPLE = "tokyo_commuters"
N_PEOPLE, FEW_ITERATIONS, FEW_WORLDS = 1_000, 3, 1
POLL_S = 0.05


def rows() -> list[dict[str, Any]]:
    """For `warm` in an empty cache, again, and each learner after it: seconds, and files added.

    ``first_step_s`` is the time from the start of a job of the page Learn to its first progress,
    which holds the start of a process, imports and reading.
    """
    with tempfile.TemporaryDirectory(prefix="warm-") as scratch:
        cache = Path(scratch) / "cache"
        cache.mkdir()
        before = os.environ.get("NUMBA_CACHE_DIR")
        os.environ["NUMBA_CACHE_DIR"] = str(cache)
        try:
            return list(_rows(Path(scratch), cache))
        finally:
            if before is None:
                del os.environ["NUMBA_CACHE_DIR"]
            else:
                os.environ["NUMBA_CACHE_DIR"] = before


def _rows(scratch: Path, cache: Path) -> Iterator[dict[str, Any]]:
    for name in ("warm, empty cache", "warm, again"):
        before, began = _files(cache), time.perf_counter()
        subprocess.run([sys.executable, "-m", "agg_core", "warm"], check=True, capture_output=True)
        yield {
            "work": name,
            "wall_s": time.perf_counter() - began,
            "files_added": len(_files(cache) - before),
        }
    for number, (name, kind, settings, data) in enumerate(_jobs(scratch)):
        before, began = _files(cache), time.perf_counter()
        running = start_job(kind, settings, scratch / str(number), data)
        first = None
        while (status := running.status()).state == "running":
            if first is None and status.progress is not None:
                first = time.perf_counter() - began
            time.sleep(POLL_S)
        yield {
            "work": name, "state": status.state, "first_step_s": first,
            "wall_s": time.perf_counter() - began, "files_added": len(_files(cache) - before),
        }  # fmt: skip
        running.remove()


def _jobs(scratch: Path) -> Iterator[tuple[Any, ...]]:
    """Name, kind, settings and data of a learn with each learner, and from counts."""
    people = read_trajectories(make_sample(SAMPLE, N_PEOPLE))
    settings = sample_settings(SAMPLE)
    window = replace(settings.window, times=("08:00",))
    learn = replace(settings.learn, iterations=FEW_ITERATIONS, replicates=FEW_WORLDS)
    given = replace(learn, noise="given", strength="given", replicates=0)

    def study(name: str, **changed: Any) -> tuple[Any, ...]:
        chosen = replace(given, **changed)
        return name, STUDY, StudySettings(settings.grid, window, chosen), people

    yield "page's default", STUDY, StudySettings(settings.grid, window, learn), people
    for row in LEARNERS.own.values():
        if row.name == AUTO:
            continue
        yield study(f"{row.name}, cells", inference=row.name)
        if "positions" in row.observes:
            yield study(
                f"{row.name}, positions", inference=row.name, observed="positions", sigma_m=500.0
            )
        if row.calibrated:
            yield study(f"{row.name}, calibrated", inference=row.name, calibrate=1)
    counted = scratch / "counts.parquet"
    write_counts(count_sample(), counted)
    yield "counts", COUNTS, CountLearnSettings(replicates=FEW_WORLDS), counted


def _files(cache: Path) -> set[Path]:
    return {path for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc")}
