"""``python -m benchmarks group-sizes``: the tables of learners by group size.

Without a table all of them are made. A learner is a name that the ``learn`` command knows, such
a name with ``+calibrated``, or ``start`` for the start itself. An option that a table has no use
for is left aside; the heading of each table names all its settings.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.threads import one_thread
from benchmarks.group_sizes.bikes import BIKES
from benchmarks.group_sizes.consistency import CONSISTENCY
from benchmarks.group_sizes.cost import COST
from benchmarks.group_sizes.coverage import COVERAGE
from benchmarks.group_sizes.learners import Learner
from benchmarks.group_sizes.metres import METRES
from benchmarks.group_sizes.paper import PAPER
from benchmarks.group_sizes.populations import POPULATIONS
from benchmarks.group_sizes.tables import FAULT, Row, Table
from benchmarks.group_sizes.tiny import TINY
from benchmarks.group_sizes.tokyo import TOKYO
from benchmarks.group_sizes.untold import TOLD, UNTOLD, UntoldSettings
from benchmarks.pages import check_markers, write_table

__all__ = ["TABLES", "main"]

ALL = (TINY, PAPER, TOKYO, CONSISTENCY, POPULATIONS, BIKES, COST, UNTOLD, METRES, COVERAGE)
TABLES = {table.name: table for table in ALL}
"""All tables by name."""


def main(arguments: Sequence[str]) -> int:
    """Make the chosen tables; the exit code is 2 if one could not be made."""
    chosen = _parser().parse_args(arguments)
    code = 0
    try:
        for label in chosen.learners or ():
            if label != TOLD:
                Learner(label)
    except InputError as fault:
        print(f"group-sizes: {fault}", file=sys.stderr)
        return 2
    for name in chosen.tables or TABLES:
        try:
            with one_thread():
                _make(TABLES[name], chosen)
        except InputError as fault:
            print(f"{name}: {fault}", file=sys.stderr)
            code = 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks group-sizes", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "tables", nargs="*", choices=[*TABLES, []], default=[], metavar="TABLE",
        help=", ".join(TABLES),
    )  # fmt: skip
    parser.add_argument("--learners", nargs="+", metavar="NAME")
    parser.add_argument(
        "--seeds", dest="n_seeds", type=_positive, metavar="N",
        help="repetitions; of tiny, the problems of each kind",
    )  # fmt: skip
    parser.add_argument(
        "--group-sizes", nargs="+", type=_positive, metavar="M",
        help="people per group; of populations, people a day",
    )  # fmt: skip
    parser.add_argument(
        "--misclassify", nargs="+", type=float, metavar="P",
        help="chances of a neighbour cell, in tokyo, untold and coverage; 0 is without noise",
    )  # fmt: skip
    parser.add_argument(
        "--cases", nargs="+", choices=UntoldSettings.cases, metavar="NAME",
        help=f"people of untold and coverage: {', '.join(UntoldSettings.cases)}",
    )  # fmt: skip
    parser.add_argument("--iterations", type=_positive, metavar="N")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--json", action="store_true", help="one JSON object a table: settings, summary, all rows"
    )
    shown.add_argument(
        "--into", type=Path, metavar="PAGE",
        help="write each table into a page, between its markers: docs/results.md",
    )  # fmt: skip
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it must be 1 or more, not {number}")
    return number


def _make(table: Table, chosen: argparse.Namespace) -> None:
    settings = _settings(table, chosen)
    if chosen.into is not None:  # before an hour of measuring
        check_markers(chosen.into, table.name)
    began = time.perf_counter()
    rows = table.framed(_watched(table, table.measure(settings)))
    wall_s = time.perf_counter() - began
    show = _as_json if chosen.json else _as_text
    text = show(table, settings, rows, wall_s)
    print(text, flush=True)
    if chosen.into is not None:
        write_table(chosen.into, table.name, _command(table, chosen), text)


def _command(table: Table, chosen: argparse.Namespace) -> str:
    """What is typed to make one of the chosen tables."""
    options = {
        "--learners": chosen.learners,
        "--seeds": chosen.n_seeds,
        "--group-sizes": chosen.group_sizes,
        "--misclassify": chosen.misclassify,
        "--cases": chosen.cases,
        "--iterations": chosen.iterations,
    }
    words = ["python", "-m", "benchmarks", "group-sizes", table.name]
    for option, value in options.items():
        if value is not None:
            words += [option, *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def _settings(table: Table, chosen: argparse.Namespace) -> Any:
    """The table's own settings but for what was chosen."""
    defaults = table.settings()
    given = {}
    for field in fields(defaults):
        value = getattr(chosen, field.name, None)
        if value is not None:
            given[field.name] = tuple(value) if isinstance(value, list) else value
    return replace(defaults, **given)


def _watched(table: Table, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, and on a terminal the case that was done last."""
    for row in rows:
        if sys.stderr.isatty():
            case = ", ".join(f"{name} {row[name]}" for name in (*table.case, "learner"))
            print(f"\r{table.name}: {case}\033[K", end="", file=sys.stderr, flush=True)
        yield row
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _as_text(table: Table, settings: Any, rows: pd.DataFrame, wall_s: float) -> str:
    lines = [table.heading(settings), table.text(table.summary(rows))]
    faults = rows.loc[rows[FAULT] != ""]
    for (learner, fault), part in faults.groupby(["learner", FAULT], sort=False):
        lines.append(f"{learner}: {len(part)} without figures. {fault}")
    return "\n".join([*lines, f"({wall_s:.0f} s in all, on one thread)\n"])


def _as_json(table: Table, settings: Any, rows: pd.DataFrame, wall_s: float) -> str:
    return json.dumps(
        {
            "table": table.name,
            "settings": asdict(settings),
            "summary": _records(table.summary(rows)),
            "rows": _records(rows),
            "wall_s": round(wall_s, 1),
        },
        ensure_ascii=False,
    )


def _records(frame: pd.DataFrame) -> list[Row]:
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.to_dict(orient="records")
    ]
