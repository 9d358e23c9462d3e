"""``python -m benchmarks lasting collect|fit|check``: how long learning takes, and what is told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from agg_core.study.lasting import RATES_FILE
from benchmarks.lasting.fitting import check_table, timed_runs, written
from benchmarks.lasting.runs import LONGEST_S, collect, read_runs

__all__ = ["RUNS", "main"]

RUNS = Path(__file__).with_name("runs.jsonl")
"""The studies that the shipped rates were fitted to."""


def main(arguments: Sequence[str]) -> int:
    """Collect studies, fit the rates that are shipped to them, or check these."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks lasting", description=__doc__)
    parser.add_argument("what", choices=["collect", "fit", "check"])
    parser.add_argument("--runs", type=Path, default=RUNS, help="a line of JSON for each study")
    parser.add_argument("--seconds", type=float, default=1500, help="of a core, for collect")
    parser.add_argument("--longest", type=float, default=LONGEST_S,
                        help="seconds after which a study is cut")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RATES_FILE, help="where fit writes rates")
    chosen = parser.parse_args(arguments)
    if chosen.what == "collect":
        collect(chosen.runs, chosen.seconds, chosen.seed, chosen.longest)
        return 0
    runs = timed_runs(read_runs(chosen.runs))
    if chosen.what == "fit":
        chosen.out.write_text(written(runs), encoding="utf-8")
        return 0
    print(check_table(runs))
    return 0
