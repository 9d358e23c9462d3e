"""Contestants take turns at one work, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

from benchmarks.speed import contestant

__all__ = ["BEFORE", "THREADS", "raced"]

BEFORE = "before"
"""Name of our own code at an earlier commit."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

ROOT = Path(__file__).resolve().parents[2]


class _Contestant:
    """A process that does one work when it is asked to."""

    def __init__(self, work: str, name: str, package: Path, threads: int) -> None:
        limits = dict.fromkeys(THREADS, str(threads))
        jax = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
        self.process = subprocess.Popen(
            [sys.executable, contestant.__file__, work, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **limits, **jax, "PYTHONPATH": str(package)},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def answer(self) -> dict[str, float]:
        """What it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a contestant ended before it was done; see its error above")
        told: dict[str, float] = json.loads(line)
        return told

    def run(self) -> dict[str, float]:
        """Its work done once."""
        assert self.process.stdin is not None
        print(file=self.process.stdin, flush=True)
        return self.answer()


def raced(
    work: str, names: Mapping[str, str], repeats: int, threads: int, before: Path | None = None
) -> dict[str, dict[str, Any]]:
    """Medians over ``repeats`` turns of each contestant, by name.

    ``names`` says of each contestant in the table how it is shown; with ``before`` our own code
    there is one more.
    """
    packages = dict.fromkeys(names.values(), ROOT)
    asked = {shown: name for name, shown in names.items()}
    if before is not None:
        packages[BEFORE], asked[BEFORE] = before, "ours"
    with ExitStack() as stack:
        running = {
            shown: stack.enter_context(_Contestant(work, asked[shown], package, threads))
            for shown, package in packages.items()
        }
        for each in running.values():
            each.answer()
        turns: dict[str, list[dict[str, float]]] = {shown: [] for shown in running}
        for _ in range(repeats):
            for shown, each in running.items():
                turns[shown].append(each.run())
    return {
        shown: {key: median(turn[key] for turn in told) for key in told[0]}
        for shown, told in turns.items()
    }
