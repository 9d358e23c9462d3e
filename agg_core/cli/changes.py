"""``agg-core changes``: which flows of a saved result differ, beyond what chance does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.cli.console import records
from agg_core.cli.evidence import add_place_options, opened, places_of
from agg_core.cli.options import moment
from agg_core.evidence.changes import (
    DISCOVERIES,
    Changes,
    Side,
    of_days,
    of_runs,
    of_times,
    what_changed,
)
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = ["add_options", "run"]

MOST_ROWS = 10
"""Flows that are printed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the result or two of them, the two sides, and what is compared."""
    parser.add_argument("folder", metavar="RUN", help="what learn --save wrote")
    parser.add_argument("other", metavar="RUN2", nargs="?", help="a run that is the other side")
    parser.add_argument(
        "--before", action="append", metavar="DATE", help="a day of the one side; repeat for more"
    )
    parser.add_argument(
        "--after", action="append", metavar="DATE", help="a day of the other side; repeat for more"
    )
    parser.add_argument(
        "--from-time", action="append", type=moment, metavar="HH:MM",
        help="a time of day of the one side; repeat for more",
    )  # fmt: skip
    parser.add_argument(
        "--to-time", action="append", type=moment, metavar="HH:MM",
        help="a time of day of the other side; repeat for more",
    )  # fmt: skip
    parser.add_argument(
        "--time", type=moment, metavar="HH:MM",
        help="time at which days or runs are compared; the busiest if left out",
    )  # fmt: skip
    add_place_options(parser)
    parser.add_argument("--source", metavar="SOURCE", help=f"whose flows; {ESTIMATE} if left out")
    parser.add_argument(
        "--level", type=float, metavar="SHARE",
        help=f"share of what is called changed that may be none; {DISCOVERIES:g} if left out",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Print what changed.

    Raises
    ------
    InputError
        If there is no such result, or the two sides are not told, or not alike.
    """
    result = opened(chosen.folder)
    sides = _sides(result, chosen)
    lines, sectors = places_of(result, chosen)
    found = what_changed(
        sides, source=chosen.source or ESTIMATE, lines=lines, sectors=sectors,
        level=DISCOVERIES if chosen.level is None else chosen.level,
    )  # fmt: skip
    names = result.states.names
    if chosen.json:
        print(json.dumps(_told(found, names), ensure_ascii=False, allow_nan=False))
    else:
        print(_text(found, names))
    return 0


def _sides(result: FlowResult, chosen: argparse.Namespace) -> tuple[Side, Side]:
    days, times = (chosen.before, chosen.after), (chosen.from_time, chosen.to_time)
    kinds = [bool(chosen.other), any(days), any(times)]
    if sum(kinds) != 1 or any(bool(one) != bool(other) for one, other in (days, times)):
        raise InputError(
            "Changes are between two runs, RUN and RUN2, between days, --before and --after, or "
            "between times, --from-time and --to-time; give one of these pairs.",
            code="options-conflict",
        )
    if chosen.other:
        labels = (_label(chosen.folder), _label(chosen.other))
        return of_runs(result, opened(chosen.other), labels, chosen.time)
    if any(days):
        return of_days(result, *days, chosen.time)
    if chosen.time is not None:
        raise InputError(
            "--time is of no use beside --from-time and --to-time; leave it out.",
            code="option-unused",
        )
    return of_times(result, *times)


def _label(folder: str) -> str:
    return printable(Path(folder).resolve().name)


def _told(found: Changes, names: list[str]) -> dict[str, Any]:
    flows = found.flows.assign(
        origin=[names[number] for number in found.flows["origin"]],
        dest=[names[number] for number in found.flows["dest"]],
    )
    return {
        "before": found.labels[0],
        "after": found.labels[1],
        "unit": found.unit,
        "level": found.level,
        "n_asked": found.n_asked,
        "n_changed": found.n_changed,
        "total": records(found.total)[0],
        "flows": records(flows),
        "trip_ends": records(found.trip_ends),
        "volumes": records(found.volumes),
        "sector_flows": records(found.sector_flows),
    }


def _text(found: Changes, names: list[str]) -> str:
    lines = [found.sentence]
    lines += [
        f"{printable(row['line'])} {row['direction']}: {_difference(row)}"
        for row in found.volumes.to_dict("records")
    ]
    lines += [
        f"{printable(row['origin'])} to {printable(row['dest'])}: {_difference(row)}"
        for row in found.sector_flows.head(MOST_ROWS).to_dict("records")
    ]
    lines += [
        f"{printable(names[row['origin']])} to {printable(names[row['dest']])}: {_difference(row)}"
        for row in found.flows.head(MOST_ROWS).to_dict("records")
    ]
    return "\n".join(lines)


def _difference(row: Mapping[Any, Any]) -> str:
    ends = "" if pd.isna(row["low"]) else f" ({row['low']:+,.1f} to {row['high']:+,.1f})"
    called = ", changed" if row["changed"] else ""
    return f"{row['before']:,.1f} to {row['after']:,.1f}, {row['difference']:+,.1f}{ends}{called}"
