"""``python -m benchmarks evidence TABLE``: what a release tells, and how surely."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.threads import one_thread
from benchmarks.evidence import attack, changes, coverage
from benchmarks.group_sizes.tables import Row
from benchmarks.pages import check_markers, write_table

__all__ = ["TABLES", "EvidenceTable", "main"]


@dataclass(frozen=True)
class EvidenceTable:
    """A table: what it tells, its settings, and what measures the rows.

    Means are taken over seeds, by the columns ``by``, of the columns ``figures``.
    """

    title: str
    settings: type
    measure: Callable[[Any], Iterator[Row]]
    by: tuple[str, ...]
    figures: tuple[str, ...]

    def summary(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Means of the figures by case, in the order in which cases came."""
        return rows.groupby(list(self.by), sort=False)[list(self.figures)].mean().reset_index()


TABLES: Mapping[str, EvidenceTable] = {
    "attack": EvidenceTable(
        "Real people followed through their counts, by those who know where each was at 9:00",
        attack.AttackSettings,
        attack.measure,
        ("cells", "least_people", "attack"),
        ("steps", "whole", "chance_steps", "stay_steps", "stay_whole", "withheld"),
    ),
    "coverage": EvidenceTable(
        "Sums that lie in their intervals of nine in ten, and verdicts that are those of the truth",
        coverage.CoverageSettings,
        coverage.measure,
        ("case",),
        (
            "n_screenlines",
            "screenlines",
            "n_sectors",
            "sectors",
            "n_lengths",
            "lengths",
            "agree",
            "wrong",
            "cannot_tell",
            "right_or_open",
        ),
    ),
    "changes": EvidenceTable(
        "Pairs of mornings of which all moves, a bridge's volume or a flow are called changed",
        changes.ChangeSettings,
        changes.measure,
        ("kind",),
        ("total", "bridge_found", "any_flow", "flows", "trip_ends", "asked", "ratio"),
    ),
}
"""All tables by name."""


def main(arguments: Sequence[str]) -> int:
    """Make the chosen table; the exit code is 2 if it could not be made."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks evidence", description=__doc__)
    parser.add_argument("table", choices=list(TABLES))
    parser.add_argument("--seeds", dest="n_seeds", type=int, metavar="N", help="repetitions")
    parser.add_argument("--cases", nargs="+", choices=list(coverage.CASES), help="of coverage")
    parser.add_argument("--pairs", type=int, metavar="N", help="of changes: ordinary mornings")
    parser.add_argument("--planted", type=int, metavar="N", help="of changes: closed bridges")
    parser.add_argument("--sides", type=int, nargs="+", metavar="N", help="of attack: cells a side")
    parser.add_argument(
        "--least", type=float, nargs="+", metavar="K",
        help="of attack: people below which counts are withheld",
    )  # fmt: skip
    parser.add_argument("--rows", type=Path, metavar="CSV", help="a file to write all rows into")
    parser.add_argument("--into", type=Path, metavar="PAGE",
                        help="write the table into a page, between its markers")  # fmt: skip
    chosen = parser.parse_args(arguments)
    table = TABLES[chosen.table]
    try:
        if chosen.into is not None:  # before an hour of measuring
            check_markers(chosen.into, chosen.table)
        began = time.perf_counter()
        with one_thread():
            rows = pd.DataFrame(list(table.measure(_settings(table, chosen))))
    except InputError as fault:
        print(f"{chosen.table}: {fault}", file=sys.stderr)
        return 2
    if chosen.rows is not None:
        rows.to_csv(chosen.rows, index=False)
    summary = table.summary(rows).to_string(index=False, float_format=lambda v: f"{v:.3g}")
    text = f"{table.title}\n{summary}\n({time.perf_counter() - began:.0f} s, on one thread)\n"
    print(text)
    if chosen.into is not None:
        write_table(
            chosen.into, chosen.table, f"python -m benchmarks evidence {chosen.table}", text
        )
    return 0


def _settings(table: EvidenceTable, chosen: argparse.Namespace) -> Any:
    """The table's own settings but for what was chosen."""
    given = {
        field.name: tuple(value) if isinstance(value, list) else value
        for field in fields(table.settings)
        if (value := getattr(chosen, field.name, None)) is not None
    }
    return replace(table.settings(), **given)
