"""``python -m benchmarks counts TABLE``, one of `TABLES`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from benchmarks.counts.cases import CASES, city
from benchmarks.counts.contest import coverage, errors_of_counting, methods, suppression
from benchmarks.counts.gates import gate_rows
from benchmarks.counts.panel import FOLLOWED, old_matrix_rows, panel_means, panel_rows
from benchmarks.counts.picture import population_figure, take
from benchmarks.group_sizes.tables import Row

__all__ = ["main"]

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "counts-populations.png"
BELOW = {"tokyo 10x10": 3.0, "tokyo 20x20": 3.0}
WITHHELD = 10.0
ERRORS = (0.0, 0.02, 0.05, 0.1)
TABLES = (
    "flows",
    "coverage",
    "suppression",
    "errors",
    "population",
    "panel",
    "old-matrix",
    "gates",
    "picture",
)
KINDS = ("one transition matrix", "one per half hour")


def main(arguments: Sequence[str]) -> int:
    """Print the rows of a table as they are found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks counts", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--populations", nargs="+", type=float, default=[1e2, 1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--by-hour", action="store_true", help="a transition matrix per half hour")
    parser.add_argument("--time", choices=["auto", "one", "by_time"], default="by_time",
                        help="whether flows are learned by time of day too")  # fmt: skip
    parser.add_argument("--replicates", type=int, default=12)
    parser.add_argument("--errors", nargs="+", type=float,
                        help="standard deviations of errors of counts, over the count, for errors "
                        "(0 to 0.1) and coverage (0)")  # fmt: skip
    parser.add_argument("--share", type=int, default=1,
                        help="for errors: counts of one in so many, scaled up")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5,
                        help="cities of gates, draws of panels")  # fmt: skip
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.02, 0.05],
                        help="for panel: of the people who are in it")  # fmt: skip
    parser.add_argument("--rows", nargs="+", type=Path, default=[],
                        help="a file to write rows into; for picture, those of population without "
                        "and with --by-hour")  # fmt: skip
    parser.add_argument("--out", type=Path, default=PICTURE)
    chosen = parser.parse_args(arguments)
    if chosen.table == "picture":
        take(population_figure([pd.read_csv(path) for path in chosen.rows], KINDS), chosen.out)
        return 0
    rows = []
    for row in _rows(chosen):
        rows.append(row)
        print("  " + "  ".join(f"{k}={_short(v)}" for k, v in row.items()), flush=True)
    for path in chosen.rows:
        pd.DataFrame(rows).to_csv(path, index=False)
    table = panel_means(pd.DataFrame(rows)) if chosen.table == "panel" else pd.DataFrame(rows)
    kinds = table["table"].unique() if "table" in table else ()
    parts = [table.loc[table["table"] == kind].dropna(axis=1, how="all") for kind in kinds]
    for part in parts or [table]:
        print(part.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    return 0


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _rows(chosen: argparse.Namespace) -> Iterator[Row]:
    if chosen.table == "gates":
        yield from gate_rows(chosen.seeds, replicates=chosen.replicates)
        return
    if chosen.table == "population":
        for population in chosen.populations:
            case = city(int(population), by_hour=chosen.by_hour, seed=chosen.seed)
            for row in methods(case, time_of_day=chosen.time, seed=chosen.seed):
                yield {"population": population, **row}
        return
    if chosen.table == "panel":
        for name in filter(FOLLOWED.__contains__, chosen.cases):
            yield from panel_rows(name, tuple(chosen.shares), chosen.seeds)
        return
    for name in chosen.cases:
        case = CASES[name]()
        if chosen.table == "old-matrix":
            found: Iterator[Row] = old_matrix_rows(case, seed=chosen.seed)
        elif chosen.table == "flows":
            found = methods(case, time_of_day=chosen.time, seed=chosen.seed)
        elif chosen.table == "errors":
            found = errors_of_counting(
                case, chosen.errors or ERRORS, share=chosen.share, seed=chosen.seed
            )
        elif chosen.table == "coverage":
            found = chain.from_iterable(
                coverage(case, replicates=chosen.replicates, error=error, seed=chosen.seed)
                for error in chosen.errors or (0.0,)
            )
        else:
            found = suppression(case, BELOW.get(name, WITHHELD), seed=chosen.seed)
        for row in found:
            yield {"case": name, **row}
