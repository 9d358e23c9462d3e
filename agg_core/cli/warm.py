"""``agg-core warm``: compile what learners need, once for this machine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from agg_core.store.warming import warm

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add whether to print JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Compile and keep every kernel, and say so in one line."""
    done = warm()
    if chosen.json:
        print(json.dumps(asdict(done)))
    elif done.was_warm:
        print(f"The learners are prepared already: {done.n_kernels} kernels ({done.seconds:.1f} s)")
    else:
        print(
            f"Prepared the learners for this machine: {done.n_kernels} kernels compiled and kept "
            f"({done.seconds:.0f} s)"
        )
    return 0
