"""Memory of learning from counts, told and measured: ``python -m benchmarks memory [--quick]``.

Each study has a process of its own, whose peak is held against what is told before it begins
(`agg_core.study.memory`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from agg_core.base.memory import peak_bytes
from agg_core.io.counts import read_counts
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.study.counts import count_study_steps
from agg_core.study.lasting import CountSizes
from agg_core.study.memory import count_megabytes
from agg_core.study.settings import CountLearnSettings

__all__ = ["main", "measured"]

CASES = (
    (5, 7, 5_000, 4, 0.0), (7, 7, 10_000, 4, 0.0), (7, 14, 10_000, 4, 0.0), (7, 7, 10_000, 12, 0.0),
    (7, 7, 10_000, 2, 0.03), (7, 7, 200, 4, 0.0), (10, 7, 20_000, 0, 0.0), (10, 7, 20_000, 4, 0.0),
)  # fmt: skip
"""Rows and columns of a city, its days and people, simulated worlds, and the error of counts."""

QUICK = CASES[:1]


def measured(case: Sequence[float]) -> tuple[float, float]:
    """MB that are told of a case, and its peak in this process."""
    side, days, people, worlds, error = case
    city = simulate_city(
        int(side), int(side), days=int(days), people=int(people), random_state=1
    )  # fmt: skip
    table = read_counts(docomo_csv(city, 0).encode())
    learn = CountLearnSettings(
        replicates=int(worlds), count_error=error, strength="given", prior=50.0, time="one"
    )
    told = count_megabytes(CountSizes.of(table, learn), learn)
    for _ in count_study_steps(table, learn):
        pass
    return told, peak_bytes() / 1e6


def main(words: Sequence[str]) -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small study")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    chosen = parser.parse_args(list(words))
    if chosen.case:
        print(json.dumps(measured(json.loads(chosen.case))))
        return 0
    print("  side   days  people  worlds  error  told MB  peak MB")
    for case in QUICK if chosen.quick else CASES:
        told, peak = json.loads(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.memory", "--case", json.dumps(case)],
                check=True, capture_output=True, text=True,
            ).stdout
        )  # fmt: skip
        print("".join(f"{value:>8g}" for value in (*case, round(told), round(peak))), flush=True)
    return 0


if __name__ == "__main__":  # without the libraries of the other benchmarks
    sys.exit(main(sys.argv[1:]))
