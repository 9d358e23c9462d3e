"""``agg-core flows``: a saved result as a file of some format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agg_core.base.errors import InputError
from agg_core.cli.console import writing
from agg_core.cli.options import moment
from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import BASES, LEAST_PEOPLE, Limit
from agg_core.exports import EXPORTS, ExportInput, check_limit, days_in, export_file_name
from agg_core.store.codec import load_result
from agg_core.study.counts import USUAL
from agg_core.study.people import SOURCES

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the result, the format, and what of the result is written."""
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="what learn --save wrote")
    parser.add_argument("--format", choices=list(EXPORTS), metavar="KEY", help="see --list")
    parser.add_argument("--list", action="store_true", help="list the formats")
    parser.add_argument(
        "--time", "--anchor", type=moment, metavar="HH:MM",
        help="time of day; the busiest, or of counts the whole day, if left out",
    )  # fmt: skip
    parser.add_argument(
        "--source", choices=[*SOURCES, USUAL],
        help=f"whose flows, where a format holds those of one source; {SOURCES[0]} if left out, "
        f"which of counts is what happened; {USUAL}, of counts, is what usually happens",
    )  # fmt: skip
    parser.add_argument(
        "--day", action="append", metavar="DATE",
        help="what happened on this day, as 2024-05-01, instead of on all; of several, each with "
        "--day, the mean per step of counts, people per step of all of them of trajectories",
    )  # fmt: skip
    parser.add_argument(
        "--least-people", type=float, metavar="K",
        help="withhold flows of fewer people per step of a mean day, and others that would tell "
        f"them; {LEAST_PEOPLE} is usual where people were followed",
    )  # fmt: skip
    parser.add_argument(
        "--round-to",
        type=int,
        metavar="N",
        help=f"round people to multiples of one of {', '.join(map(str, BASES[1:]))}",
    )
    parser.add_argument("--title", metavar="TEXT", help="title in formats with one")
    parser.add_argument(
        "--out", metavar="FILE", help="file to write; - for standard output; named after the format"
    )


def run(chosen: argparse.Namespace) -> int:
    """Write the file, or list the formats.

    Raises
    ------
    InputError
        If there is no such result, or the format has no use for it or for an option.
    """
    if chosen.list:
        others = (
            "folder", "format", "time", "source", "day", "least_people", "round_to", "title", "out",
        )  # fmt: skip
        if any(getattr(chosen, name) is not None for name in others):
            raise InputError(
                "--list only lists the formats; leave out all that is beside it.",
                code="option-unused",
            )
        width = max(map(len, EXPORTS))
        print("\n".join(f"{key:{width}}  {export.about}" for key, export in EXPORTS.items()))
        return 0
    if not chosen.folder or not chosen.format:
        raise InputError(
            "Give the folder of a result and a --format; --list names the formats.",
            code="option-missing",
        )
    if not Path(chosen.folder).is_dir():
        raise InputError(
            f"There is no folder {chosen.folder}; learn --save writes one.", code="folder-missing"
        )
    result = load_result(Path(chosen.folder))
    if chosen.day:
        result = result.of_days(chosen.day)
    if chosen.least_people is not None or chosen.round_to is not None:
        result = limited(result, Limit(chosen.least_people or 0, chosen.round_to or 0))
    export = EXPORTS[chosen.format]
    check_limit(export, result)
    export.check(result)
    if not export.available(result):
        raise InputError(
            f"This result has nothing for {export.key}; choose another format.",
            code="nothing-to-export",
        )
    for name, is_used in (
        ("time", not export.of_all_times),
        ("source", export.one_source),
        ("title", export.titled),
    ):
        if getattr(chosen, name) is not None and not is_used:
            raise InputError(
                f"The format {export.key} makes no use of --{name}; leave it out.",
                code="option-unused",
            )
    time = chosen.time or result.busiest
    source = chosen.source or result.sources[0]
    asked = ExportInput(result, time, chosen.title or "", source)
    if chosen.day and not days_in(export, asked):
        raise InputError(
            f"{export.key}{'' if chosen.source is None else f' of {source}'} holds nothing of what "
            "happened on single days; leave out --day.",
            code="option-unused",
        )
    if export.of_draws and source not in result.sources_of_draws:
        raise InputError(
            f"There are no draws of {source}; choose {' or '.join(result.sources_of_draws)}.",
            code="nothing-to-export",
        )
    content = export.make(asked)
    if chosen.out == "-":
        sys.stdout.buffer.write(content)
        return 0
    path = chosen.out or export_file_name(
        export, asked.time, days_in(export, asked), result.least_people
    )
    with writing(path):
        Path(path).write_bytes(content)
    print(f"{path}: {len(content):,} bytes")
    return 0
