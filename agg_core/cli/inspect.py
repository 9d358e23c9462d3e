"""``agg-core inspect``: what a file holds and what was guessed."""

from __future__ import annotations

import argparse
import json
import sys

from agg_core.base.errors import InputError
from agg_core.cli.options import add_file_options, choices_of
from agg_core.io import Choices, reading_steps
from agg_core.tables.trajectories import Trajectories

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading, and how many rows to print."""
    add_file_options(parser)
    parser.add_argument("--rows", type=int, metavar="N", help="print N canonical rows as CSV")


def run(chosen: argparse.Namespace) -> int:
    """Print the report, or the first rows.

    Raises
    ------
    InputError
        If the file cannot be read, or two options exclude each other.
    """
    if chosen.rows is not None and chosen.json:
        raise InputError(
            "--rows prints CSV and --json an object; give one of them.", code="options-conflict"
        )
    *_, trajectories = reading_steps(chosen.file, choices_of(chosen, Choices))
    assert isinstance(trajectories, Trajectories)
    if chosen.rows is not None:
        rows = trajectories.table.head(max(chosen.rows, 0))
        time = rows["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").str.replace(".000000Z", "Z")
        rows.assign(time=time).to_csv(sys.stdout, index=False, lineterminator="\n")
    elif chosen.json:
        print(json.dumps(trajectories.report.to_dict(), ensure_ascii=False))
    else:
        print(trajectories.report.to_text())
    return 0
