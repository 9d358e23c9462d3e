"""``agg-core inspect``: what a file holds and what was guessed."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.cli.options import add_field, add_source_options, choices_of, option_fields, source_of
from agg_core.io import ROLES, Choices, count_trips, reading_steps
from agg_core.io.choices import Stated
from agg_core.io.counts import CountChoices, counts_of
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.formats.registry import Source
from agg_core.io.kinds import USES, kind_of_file
from agg_core.io.movements import read_movements
from agg_core.io.place_reports import table_report
from agg_core.io.trips import TRIP_CHOICES, TRIP_ROLES
from agg_core.tables.count_report import CountReport
from agg_core.tables.report import ImportReport
from agg_core.tables.table_report import TableReport
from agg_core.tables.trajectories import Trajectories

__all__ = ["add_options", "run"]

OF_COUNTS = ("sum", "largest")
"""What may be taken of several counts of one cell at one time, and of several fixes not."""
AnyReport = ImportReport | CountReport | TableReport


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading, and how many rows to print."""
    add_source_options(parser, dict.fromkeys((*ROLES, *COUNT_ROLES, *TRIP_ROLES)))
    for name, field in option_fields(Choices).items():
        about = field.metadata["option"]
        if name == "duplicates":
            about = replace(about, choices=(*about.choices, *OF_COUNTS), choice_labels=())
        add_field(parser, field, about)
    parser.add_argument("--rows", type=int, metavar="N", help="print N canonical rows as CSV")


def run(chosen: argparse.Namespace) -> int:
    """Print what kind of table it is and the report, or the first rows.

    Raises
    ------
    InputError
        If the file cannot be read, what it holds cannot be told, or two options exclude each other.
    """
    if chosen.rows is not None and chosen.json:
        raise InputError(
            "--rows prints CSV and --json an object; give one of them.", code="options-conflict"
        )
    twins = chosen.duplicates if chosen.duplicates in OF_COUNTS else None
    if twins is not None:
        chosen = argparse.Namespace(**{**vars(chosen), "duplicates": None})
    choices, source = choices_of(chosen, Choices), source_of(chosen)
    kind = _kind(source, choices)
    if twins is not None and kind != "counts":
        raise InputError(
            f"This file holds {kind}, which are never added up; leave --duplicates out, or say "
            "last or first.",
            code="option-unused",
        )
    if chosen.rows is not None or kind == "fixes":
        try:
            *_, trajectories = reading_steps(source, choices)
        except InputError as fault:
            if chosen.json and chosen.rows is None:
                told = {"kind": kind, "use": USES[kind], "question": str(fault), "code": fault.code}
                print(json.dumps(told, ensure_ascii=False))
            raise
        assert isinstance(trajectories, Trajectories)
        if chosen.rows is not None:
            rows = trajectories.table.head(max(chosen.rows, 0))
            time = rows["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").str.replace(".000000Z", "Z")
            rows.assign(time=time).to_csv(sys.stdout, index=False, lineterminator="\n")
            return 0
        _tell(kind, trajectories.report, as_json=chosen.json)
        return 0
    _tell(kind, _report(kind, source, choices, twins), as_json=chosen.json)
    return 0


def _kind(source: Source, choices: Choices) -> str:
    """The kind that the columns which are stated name, or that the file is found to be of.

    Raises
    ------
    InputError
        If it cannot be told.
    """
    roles = dict(choices.columns).keys()
    if "count" in roles and "origin" not in roles:
        return "counts"
    if "user_id" in roles:
        return "fixes"
    kind = kind_of_file(source, choices)
    if kind is not None:
        return kind
    if roles & {"origin", "dest", "start", "origin_lon"}:
        return "movements" if "count" in roles else "trips"
    if choices.columns or choices.layout:
        return "fixes"
    *_, _ = reading_steps(source, choices)  # whose fault says what is missing
    return "fixes"


def _report(kind: str, source: Source, choices: Choices, twins: str | None) -> AnyReport:
    """The account of a table that is none of fixes; ``twins`` as `CountChoices.duplicates`.

    Raises
    ------
    InputError
        If something is stated that such a table has no use for, or it cannot be read.
    """
    if kind == "trips":
        return count_trips(source, choices).report
    left_open = Choices()
    unused = [
        name for name in options_of(Choices)
        if name not in TRIP_CHOICES and not (kind == "counts" and name == "duplicates")
        and getattr(choices, name) != getattr(left_open, name)
    ]  # fmt: skip
    if unused:
        raise InputError(
            f"This file holds {kind}, which have no use for {', '.join(unused)}; leave that out.",
            code="option-unused",
        )
    if kind == "movements":
        return read_movements(source, choices).report
    if kind == "counts":
        stated = {name: getattr(choices, name) for name in options_of(Stated)}
        last = {} if choices.duplicates == left_open.duplicates else {"duplicates": "first"}
        stated |= last if twins is None else {"duplicates": twins}
        of_counts = CountChoices(columns=choices.columns, where=choices.where, **stated)
        return counts_of(source, of_counts).report
    if kind == "other":
        counts_of(source, CountChoices())  # says why
    return table_report(source, choices)


def _tell(kind: str, report: AnyReport, *, as_json: bool) -> None:
    if as_json:
        told = report.to_dict()
        if isinstance(report, CountReport):
            told["rows_kept"] = report.rows_used
        print(json.dumps({"kind": kind, "use": USES[kind], **told}, ensure_ascii=False))
        return
    print(f"{'Kind':<24}{kind}: {USES[kind]}")
    print(report.to_text())
