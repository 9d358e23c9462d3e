"""``python -m benchmarks speed``: our code and its peers take turns at the same work."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.speed.contestant import CONTESTANTS, support_gflop
from benchmarks.speed.race import BEFORE, ROOT, raced

__all__ = ["main"]

REPEATS = 5
TWO_THREADS = {
    "tokyo, 50 iterations", "sample by default", "10,000 cells, cfb", "10,000 cells, sampling"
}  # fmt: skip
"""Work that is measured with both cores; the rest with one thread."""

REFUSED_BEFORE = {"10,000 cells, cfb", "10,000 cells, sampling"}
"""Work that older code refuses, so that it has no turn at it."""

LONG = {"sample by default": 1, "sampling, mixing": 1, "tokyo, 50 iterations": 3}
"""How often what takes long is done."""

PEERS = ("hmmlearn", "dynamax")
VERSIONS = ("numpy", "scipy", "numba", "hmmlearn", "dynamax", "jax", "distributed", "duckdb")
MORE = ("first_seconds", "warm", "engine", "growth")
"""Modules beside this one that measure other things, with ``rows``."""


def main(arguments: list[str]) -> int:
    """Measure what is asked for, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed", description=__doc__)
    every = [*CONTESTANTS, *MORE]
    parser.add_argument(
        "--works", nargs="+", choices=every, metavar="WORK", default=every,
        help=f"which of: {', '.join(every)}",
    )  # fmt: skip
    parser.add_argument("--against", metavar="COMMIT", help="race our own code of a commit as well")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    found: dict[str, Any] = {"machine": platform.processor(), "versions": _versions()}
    with _checked_out(asked.against) as before:
        for work in asked.works:
            found[work] = (
                import_module(f"benchmarks.speed.{work}").rows()
                if work in MORE
                else _of_work(work, asked.repeats, before)
            )
            if not asked.json:
                _print(work, found[work])
    if asked.json:
        print(json.dumps(found, indent=1))
    return 0


def _of_work(work: str, repeats: int, before: Path | None) -> dict[str, dict[str, Any]]:
    here = {name: name for name in CONTESTANTS[work] if name not in PEERS or find_spec(name)}
    rival = None if work in REFUSED_BEFORE else before
    found = raced(
        work, here, LONG.get(work, repeats), 2 if work in TWO_THREADS else 1, rival
    )  # fmt: skip
    ours = found["ours"]
    for name, figures in found.items():
        figures["ratio"] = figures["cpu_s"] / ours["cpu_s"]
        figures["cores"] = figures["cpu_s"] / figures["wall_s"]
        if "sweeps" in figures and work.startswith("cfb,"):
            figures["gflops"] = support_gflop(figures["sweeps"]) / figures["cpu_s"]
        if name == "gemm":
            figures["gflops"] = figures["gflop"] / figures["cpu_s"]
    return found


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed (benchmarks/requirements.txt)"
    return found


@contextmanager
def _checked_out(commit: str | None) -> Iterator[Path | None]:
    """A folder with our code at a commit."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="before-") as folder:
        place = Path(folder) / "code"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(place), commit], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def _print(work: str, found: Any) -> None:
    print(f"\n{work}")
    named = found.items() if isinstance(found, dict) else ((None, row) for row in found)
    for name, figures in named:
        told = {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in figures.items()
        }
        shown = f"  {name + ' (at the commit)' if name == BEFORE else name or ''}"
        print(f"{shown:26s}", ", ".join(f"{key} {value}" for key, value in told.items()))
    sys.stdout.flush()
