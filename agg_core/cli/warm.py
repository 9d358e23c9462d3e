"""``agg-core warm``: compile what learners need, once for this machine."""

from __future__ import annotations

import argparse
import json
import time

from agg_core.base.warmth import is_warm, n_kernels_kept

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add whether to print JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Compile and keep every kernel unless that is done, and say so in one line.

    Raises
    ------
    InputError
        If they cannot be kept.
    """
    began = time.perf_counter()
    was_warm = is_warm()
    n_kernels = n_kernels_kept() if was_warm else _warm()
    seconds = time.perf_counter() - began
    if chosen.json:
        told = {"was_warm": was_warm, "n_kernels": n_kernels, "seconds": round(seconds, 2)}
        print(json.dumps(told))
        return 0
    done = "were prepared already" if was_warm else "are prepared for this machine now"
    print(f"The learners {done}: {n_kernels} compiled kernels kept ({seconds:.1f} s)")
    return 0


def _warm() -> int:
    from agg_core.store.warming import warm  # noqa: PLC0415  # all learners, for nothing if done

    return warm()
