"""``agg-core evidence``: what a saved result says of lines, areas and lengths, and how surely."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.cli.console import write_csv, writing
from agg_core.cli.options import Container
from agg_core.evidence.asking import (
    counters_for,
    distances_for,
    lines_for,
    reference_for,
    sectors_for,
    vector_file,
)
from agg_core.evidence.counters import WITHIN_M
from agg_core.evidence.examine import Asked, Evidence, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.presets import PRESETS, preset_of
from agg_core.evidence.profiles import Profile, profile, profiled_by_name
from agg_core.evidence.reference import Reference, of_result
from agg_core.evidence.sectors import Sectors
from agg_core.exports.report import report_page
from agg_core.store.codec import load_result
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = [
    "add_options",
    "add_place_options",
    "evidence_text",
    "opened",
    "places_of",
    "profile_text",
    "run",
]

RESULT_FILE = "result.json"
"""What the folder of a saved result has, and that of a table has not."""

MOST_ROWS = 12
"""Rows of a table that are printed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the result, what is asked of it, and how the answer is written."""
    parser.add_argument("folder", metavar="RUN", help="what learn --save wrote")
    parser.add_argument(
        "--reference", metavar="TABLE|RUN",
        help="flows to hold these against: a table or OMX with origin, dest and count, a folder "
        "that learn --save wrote, or another source of RUN, such as counted",
    )  # fmt: skip
    add_place_options(parser)
    parser.add_argument(
        "--counters", metavar="TABLE",
        help="what passed at lines of --screenlines: columns line, direction, time and count; or "
        "lon and lat for the line, without --screenlines the nearest border of two cells",
    )  # fmt: skip
    parser.add_argument(
        "--within-m", type=float, metavar="METRES",
        help=f"how far a counter with a place may be off its line; {WITHIN_M:g} if left out",
    )  # fmt: skip
    parser.add_argument(
        "--slot-minutes", type=float, metavar="MINUTES",
        help="how long each count of --counters lasts; told by their times if left out",
    )  # fmt: skip
    parser.add_argument(
        "--distances", metavar="FILE",
        help="kilometres between cells, as OMX, a square table, or origin, dest and km; straight "
        "ones if left out",
    )  # fmt: skip
    parser.add_argument(
        "--preset", choices=list(PRESETS), help="criteria of a guideline that are checked"
    )
    parser.add_argument(
        "--profile", nargs="+", metavar="NAME",
        help="a line, a sector or a cell that is followed over the times of day, or two cells",
    )  # fmt: skip
    parser.add_argument("--source", metavar="SOURCE", help=f"whose flows; {ESTIMATE} if left out")
    parser.add_argument(
        "--day", action="append", metavar="DATE",
        help="what happened on this day, as 2024-05-01; several with --day each",
    )  # fmt: skip
    parser.add_argument(
        "--tz", metavar="ZONE",
        help="zone of the clock of the flows, as Asia/Tokyo, where tables have moments of another",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--html", metavar="FILE", help="write a report that opens in a browser")
    form.add_argument("--csv", metavar="FILE", help="write the table of --profile")


def add_place_options(container: Container) -> None:
    """Add files of lines and of areas."""
    container.add_argument(
        "--screenlines", metavar="FILE",
        help="lines, and areas as cordons: GeoJSON, GeoPackage, zipped Shapefile, ...",
    )  # fmt: skip
    container.add_argument(
        "--sectors", metavar="FILE", help="areas between which flows are summed, such as wards"
    )


def run(chosen: argparse.Namespace) -> int:
    """Print the evidence, or write the report.

    Raises
    ------
    InputError
        If there is no such result, a file cannot be read, or an option does not fit it.
    """
    for option, value, use in (
        ("--slot-minutes", chosen.slot_minutes, "is how long counts of --counters last"),
        ("--within-m", chosen.within_m, "is how far --counters may be off lines"),
    ):
        if value is not None and not chosen.counters:
            raise InputError(f"{option} {use}; give these or leave it out.", code="option-unused")
    if chosen.csv and not chosen.profile:
        raise InputError(
            "--csv writes what is followed over the day; say what that is with --profile.",
            code="option-missing",
        )
    result = opened(chosen.folder)
    if chosen.day:
        result = result.of_days(chosen.day)
    zone = chosen.tz or "UTC"
    lines, sectors = places_of(result, chosen)
    aside: dict[str, Mapping[str, int]] = {}
    said: list[str] = []
    counters = None
    if chosen.counters:
        read, lines = counters_for(
            result, lines, chosen.counters, timezone=zone, slot_minutes=chosen.slot_minutes,
            within_m=WITHIN_M if chosen.within_m is None else chosen.within_m,
        )  # fmt: skip
        counters, aside["counters"] = read.counters, read.set_aside
        said.append(read.words)
    reference = None
    if chosen.reference:
        reference, aside["reference"] = _reference(result, chosen.reference, zone)
    asked = Asked(
        source=chosen.source or ESTIMATE, lines=lines, sectors=sectors, counters=counters,
        reference=reference, preset=preset_of(chosen.preset) if chosen.preset else None,
        km=distances_for(result, chosen.distances) if chosen.distances else None,
    )  # fmt: skip
    followed = []
    if chosen.profile:
        of = profiled_by_name(result.states, chosen.profile, lines, sectors)
        followed.append(profile(result, of, source=asked.source, reference=reference))
    if chosen.csv:
        print(write_csv(chosen.csv, followed[0].table))
        return 0
    found = examine(result, asked)
    left_out = {name: dict(causes) for name, causes in aside.items() if causes}
    said += [_set_aside(*item) for item in left_out.items()]
    if chosen.html:
        content = report_page(
            result, found, Path(chosen.folder).resolve().name, profiles=followed,
            preset=asked.preset, notes=said, made=f"{datetime.now():%Y-%m-%d}",
        )  # fmt: skip
        with writing(chosen.html):
            Path(chosen.html).write_bytes(content)
        print(f"{chosen.html}: {len(content):,} bytes")
    elif chosen.json:
        told: dict[str, Any] = {**found.to_dict(), **({"set_aside": left_out} if left_out else {})}
        for one in followed:
            told["profile"] = one.to_dict()
        print(json.dumps(told, ensure_ascii=False, allow_nan=False))
    else:
        print(evidence_text(result, found))
        for one in followed:
            print(profile_text(one))
        for sentence in said:
            print(sentence)
    return 0


def opened(folder: str) -> FlowResult:
    """A saved result.

    Raises
    ------
    InputError
        If there is none.
    """
    if not Path(folder).is_dir():
        raise InputError(
            f"There is no folder {folder}; learn --save writes one.", code="folder-missing"
        )
    return load_result(Path(folder))


def places_of(
    result: FlowResult, chosen: argparse.Namespace
) -> tuple[tuple[Screenline, ...], Sectors | None]:
    """Lines and sectors of the files that were given.

    Raises
    ------
    InputError
        If one cannot be read or does not fit the result.
    """
    lines: tuple[Screenline, ...] = ()
    if chosen.screenlines:
        lines = lines_for(result, vector_file(chosen.screenlines))
    sectors = sectors_for(result, vector_file(chosen.sectors)) if chosen.sectors else None
    return lines, sectors


def _reference(result: FlowResult, given: str, zone: str) -> tuple[Reference, Mapping[str, int]]:
    path = Path(given)
    if given not in result.sources and (path / RESULT_FILE).is_file():
        return of_result(result, load_result(path), printable(path.name)), {}
    return reference_for(result, given, printable(path.name), timezone=zone)


def _set_aside(name: str, causes: Mapping[str, int]) -> str:
    shown = ", ".join(f"{cause} ({count:,})" for cause, count in causes.items())
    return f"Rows of the {name} that were left out: {shown}."


def evidence_text(result: FlowResult, found: Evidence) -> str:
    """Verdicts, and the figures of the busiest time, for a terminal."""
    time = result.busiest
    lines = [f"{found.about['source']}: {found.about['basis']}"]
    lines.append(f"At {time}, {found.unit}; in brackets intervals of nine in ten")
    lines += _some(_lengths(found.lengths.loc[found.lengths["time"] == time]))
    volumes = found.volumes.loc[found.volumes["time"] == time]
    lines += _some(_volumes(volumes))
    largest = found.sector_flows.loc[found.sector_flows["time"] == time]
    largest = largest.sort_values("count", ascending=False, kind="stable")
    lines += _some(
        f"{printable(row['origin'])} to {printable(row['dest'])}: {_with_ends(row, 'count')}"
        for row in largest.to_dict("records")
    )
    for fit in found.fits.to_dict("records"):
        lines.append(
            f"fit of {fit['n']:,} {fit['of']}: slope {_with_ends(fit, 'slope', 3)}, "
            f"R² {_with_ends(fit, 'r2', 3)}, RMSE {fit['percent_rmse']:.0f} %"
        )
    for verdict in found.verdicts:
        met = "met" if verdict.met else "not met"
        if not verdict.criterion.is_fit:
            met = f"{verdict.share:.0%} of {verdict.n:,} within"
        lines.append(f"{verdict.answer}: {verdict.criterion.words} ({met})")
    lines += [f"not asked, since nothing was counted: {words}" for words in found.not_asked]
    return "\n".join([*lines, *found.notes])


def profile_text(found: Profile) -> str:
    """The mean of each time of day and, of several days, from the least to the most, as text."""
    lines = [f"{printable(found.name)} over the times of day, {found.unit}"]
    days = found.days.groupby(["direction", "time"])["count"].agg(["min", "max"])
    for row in found.rows.to_dict("records"):
        words = f"{row['time']} {printable(str(row['direction']))}: {_with_ends(row, 'count')}"
        key = row["direction"], row["time"]
        if key in days.index:
            least, most = days.loc[key]
            words += f", on single days {least:,.0f} to {most:,.0f}"
        lines.append(words)
    return "\n".join(lines)


def _some(words: Iterable[str]) -> list[str]:
    every = list(words)
    more = [f"and {len(every) - MOST_ROWS:,} more: see --json"] * (len(every) > MOST_ROWS)
    return [*every[:MOST_ROWS], *more]


def _lengths(rows: pd.DataFrame) -> Iterable[str]:
    names = {
        "mean_km": "mean length in km", "sd_km": "spread of lengths in km",
        "share_within": "share who stay in a cell", "coincidence": "coincidence ratio of lengths",
    }  # fmt: skip
    for row in rows.to_dict("records"):
        beside = "" if pd.isna(row["reference"]) else f", reference {row['reference']:.2f}"
        yield f"{names[row['figure']]}: {_with_ends(row, 'value', 2)}{beside}"


def _volumes(rows: pd.DataFrame) -> Iterable[str]:
    for row in rows.to_dict("records"):
        beside = [
            f"{name} {row[name]:,.0f}" for name in ("counted", "reference") if pd.notna(row[name])
        ]
        if pd.notna(row["geh"]):
            beside.append(f"GEH {row['geh']:.1f}")
        yield ", ".join(
            [f"{printable(row['line'])} {row['direction']}: {_with_ends(row, 'count')}", *beside]
        )


def _with_ends(row: Mapping[Any, Any], name: str, digits: int = 0) -> str:
    """A figure with its interval, if it has one."""
    of = f"{name}_" if f"{name}_low" in row else ""
    low, high, middle = (row[f"{of}{end}"] for end in ("low", "high", "corrected"))
    figure = f"{row[name]:,.{digits}f}"
    if pd.isna(low):
        return figure
    if pd.notna(middle):
        figure += f", corrected {middle:,.{digits}f}"
    return f"{figure} ({low:,.{digits}f} to {high:,.{digits}f})"
