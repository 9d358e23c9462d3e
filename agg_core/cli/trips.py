"""``agg-core trips``: trips of nobody as an origin-destination table."""

from __future__ import annotations

import argparse
import json
import sys

from agg_core.cli.console import aside_lines
from agg_core.cli.options import add_file_options, choices_of, source_of
from agg_core.io import Choices, count_trips
from agg_core.io.trips import TRIP_CHOICES, TRIP_ROLES

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading that trips have a use for, and the step of time."""
    add_file_options(parser, TRIP_CHOICES, roles=TRIP_ROLES, slots=False)
    parser.add_argument("--step", default="1h", metavar="TIME", help="step of time: 30min, 1h, 1D")


def run(chosen: argparse.Namespace) -> int:
    """Print the table as CSV, or with --json what it holds in all.

    Raises
    ------
    InputError
        If the file cannot be read or holds no trips.
    """
    counted = count_trips(source_of(chosen), choices_of(chosen, Choices), chosen.step)
    if chosen.json:
        told = {
            "kind": "trips", **counted.report.to_dict(), "trips": counted.trips,
            "left_out": counted.left_out, "not_selected": counted.not_selected,
            "rows": len(counted.table),
        }  # fmt: skip
        print(json.dumps({**told, "timezone": counted.timezone}, ensure_ascii=False))
    else:
        counted.table.to_csv(sys.stdout, index=False, lineterminator="\n")
        doubts = [
            f"{name} taken as {guess.value}"
            + (f" (or: {', '.join(guess.alternatives)})" if guess.alternatives else "")
            + f": {guess.note}"
            for name, guess in counted.report.guesses.items() if guess.note
        ]  # fmt: skip
        for line in (*aside_lines(counted.report.set_aside), *doubts):
            print(f"agg-core: {line}", file=sys.stderr)
    return 0
