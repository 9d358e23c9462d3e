"""``agg-core learn --sweep``: one setting at several values, and a table of what comes out."""

from __future__ import annotations

import argparse
import errno
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.cli.console import announce, watched, write_csv, writing
from agg_core.cli.options import Container, given, spelt
from agg_core.space.settings import parse_grid_size
from agg_core.study.lasting import Lasting
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.study.sweeps import (
    FIGURES,
    Sweep,
    SweepProgress,
    SweepResult,
    Value,
    lasting_of_sweep,
    read_values,
    sweep_steps,
)
from agg_core.tables.counts import CountTable
from agg_core.tables.trajectories import Trajectories

__all__ = ["Asked", "add_sweep_options", "asked_sweep", "run_sweep", "sweep_text"]

NOT_WITH = {
    "save": "keep the flows of one value by learning with it alone",
    "reference": "hold the flows of one value against it alone",
    "like": "leave it out",
}
"""Options that a sweep cannot honour, and what to do."""

CELLS = ("grid", "mesh", "h3", "polygons")
LONGEST_LABEL = 60


@dataclass(frozen=True)
class Asked:
    """The setting that is to be varied, and its values."""

    name: str
    values: tuple[Value, ...]


def add_sweep_options(parser: Container) -> None:
    """Add what is varied, and where its table goes."""
    parser.add_argument(
        "--sweep", metavar="NAME=VALUE,VALUE,...",
        help="learn at each of several values of one setting, such as group_size=1,5,20, with all "
        "others as given, and print a table; names are those of options, of cells grid, mesh, h3",
    )  # fmt: skip
    parser.add_argument("--csv", metavar="FILE", help="write the table of --sweep")


def asked_sweep(
    chosen: argparse.Namespace, kind: type[StudySettings] | type[CountLearnSettings]
) -> Asked:
    """What --sweep says, once nothing else that is given is against it.

    Of cells the first value is taken for given, so that they are of that kind.

    Raises
    ------
    InputError
        If it is misspelt, or another option cannot be honoured with it.
    """
    name, equals, values = chosen.sweep.partition("=")
    name = {"reach": "reach_m"}.get(name.strip(), name.strip().replace("-", "_"))
    if not (equals and name and values):
        raise InputError(
            f"--sweep takes NAME=VALUE,VALUE,..., not {chosen.sweep[:40]!r}.", code="not-name-value"
        )
    for option, instead in NOT_WITH.items():
        if getattr(chosen, option) is not None:
            raise InputError(
                f"{spelt(option)} is for one run, and --sweep makes several; {instead}.",
                code="option-unused",
            )
    asked = Asked(name, read_values(kind, name, values.split(",")))
    for other in given(chosen, CELLS if name in CELLS else (name,)):
        raise InputError(
            f"{spelt(other)} and --sweep {name} say both what is learned with; give one of them.",
            code="options-conflict",
        )
    if name == "grid":
        chosen.grid = parse_grid_size(str(asked.values[0]))
    elif name in CELLS:
        setattr(chosen, name, asked.values[0])
    return asked


def run_sweep(
    data: Trajectories | CountTable,
    sweep: Sweep,
    chosen: argparse.Namespace,
    each: Iterable[Lasting],
    n_workers: int,
) -> tuple[dict[str, Any], str]:
    """Learn at each value; the summary, and the same as text. ``each`` is told beforehand.

    Raises
    ------
    InputError
        As `sweep_steps`, or if the table cannot be written.
    """
    if chosen.csv:
        _need_place(Path(chosen.csv))
    told_s = None
    try:
        lasting = lasting_of_sweep(list(each), n_workers)
    except InputError:
        pass  # a value does not suit the data, which the work itself finds out
    else:
        told_s = lasting.told_s
        announce(f"Takes about {lasting.words} on this machine.")
    result = watched(sweep_steps(data, sweep), SweepResult, _step_of)
    text = sweep_text(result)
    if chosen.csv:
        text += f"\n{write_csv(chosen.csv, result.table)}"
    return {**result.summary(), "told_s": told_s}, text


def _need_place(path: Path) -> None:
    """Told before the learning, not after it."""
    with writing(str(path)):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.stat()


def _step_of(step: SweepProgress) -> str:
    return f"{step.done} of {step.n_values} values done, now {printable(step.label, LONGEST_LABEL)}"


def sweep_text(result: SweepResult) -> str:
    """The table of a sweep with aligned columns, and why values failed below it."""
    head = (result.sweep.name, *result.columns, "learner")
    lines = [head]
    for label, row in zip(result.sweep.texts, result.rows, strict=True):
        figures = [
            "-" if math.isnan(figure) else f"{figure:,.{FIGURES[name].digits}f}"
            for name, figure in ((name, row.figures[name]) for name in result.columns)
        ]
        lines.append((printable(label, LONGEST_LABEL), *figures, row.learner or "-"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    table = [
        "  ".join(
            cell.ljust(width) if column in (0, len(head) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    failed = [
        f"{printable(label, LONGEST_LABEL)}: {row.fault}"
        for label, row in zip(result.sweep.texts, result.rows, strict=True)
        if row.fault
    ]
    return "\n".join([*table, *failed])
