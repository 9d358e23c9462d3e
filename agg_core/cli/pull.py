"""``agg-core pull``: how far flows move when a source is left out."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.cli.console import records, write_csv
from agg_core.cli.evidence import opened
from agg_core.cli.options import moment
from agg_core.evidence.pull import Pull, pull_of
from agg_core.study.result import WHOLE_DAY, FlowResult

__all__ = ["add_options", "run", "told_of_pull"]

MOST_PLACES = 3
"""Places that are printed of each source."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the result with all sources, those without one, and what is asked."""
    parser.add_argument("folder", metavar="RUN", help="what learn --save wrote, of all sources")
    parser.add_argument(
        "--without", action="append", required=True, metavar="SOURCE=RUN2",
        help="a run that was learned without a source, such as panel=RUN2; repeat for more",
    )  # fmt: skip
    parser.add_argument(
        "--time", type=moment, metavar="HH:MM", help="one time; all times if left out"
    )
    parser.add_argument("--csv", metavar="FILE", help="write what moves at each place to this file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Print how far flows move.

    Raises
    ------
    InputError
        If there is no such result, or they are not of the same cells and steps.
    """
    without: dict[str, FlowResult] = {}
    for word in chosen.without:
        source, equals, folder = str(word).partition("=")
        if not (source and equals and folder):
            raise InputError(
                f"--without {printable(str(word))} tells no source; write it as panel=RUN2.",
                code="option-unreadable",
            )
        if source in without:
            raise InputError(
                f"{printable(source)} is left out twice; give each source once.",
                code="options-conflict",
            )
        without[source] = opened(folder)
    times = None if chosen.time is None else [chosen.time]
    found = pull_of(opened(chosen.folder), without, times)
    written = write_csv(chosen.csv, found.places) if chosen.csv else None
    if chosen.json:
        print(json.dumps(_told(found), ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(filter(None, [_text(found), written])))
    return 0


def told_of_pull(
    result: FlowResult, without: Mapping[str, FlowResult]
) -> tuple[dict[str, Any], str]:
    """How far flows move without each source, for JSON and as text."""
    found = pull_of(result, without)
    return _told(found), _text(found)


def _told(found: Pull) -> dict[str, Any]:
    return {"flows": records(found.flows), "places": records(found.places)}


def _text(found: Pull) -> str:
    lines = []
    for source in found.sources:
        row = found.flows.loc[found.flows["source"] == source].iloc[0]
        when = "over the day" if row["time"] == WHOLE_DAY else f"at {row['time']}"
        width = row["width"]
        wider = "" if math.isnan(width) else f", intervals are {width:.2f} times as wide"
        lines.append(
            f"without {printable(source)}, {when}: {row['moved']:.1%} of the moves are others, "
            f"{row['n_movers_without']:,.0f} people per step move instead of "
            f"{row['n_movers']:,.0f}{wider}"
        )
        there = found.places.loc[
            (found.places["source"] == source) & (found.places["time"] == row["time"])
        ]
        apart = (there["count"] - there["count_without"]).abs()
        for number in apart.sort_values(ascending=False, kind="stable").index[:MOST_PLACES]:
            place = there.loc[number]
            way = "leave" if place["end"] == "origin" else "come to"
            lines.append(
                f"  {way} {printable(place['place'])}: {place['count_without']:,.1f} instead of "
                f"{place['count']:,.1f}"
            )
    return "\n".join(lines)
