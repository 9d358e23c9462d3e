"""``agg-core learn``: flows from groups of people, compared with the truth."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.memory import peak_bytes
from agg_core.base.options import options_of
from agg_core.cli.cells import add_grid_options, extent_told, extent_words, grid_of, is_suggested
from agg_core.cli.console import watched, writing
from agg_core.cli.options import add_file_options, add_option, choices_of, given, typed
from agg_core.io import reading_steps
from agg_core.space import AreaGrid
from agg_core.space.settings import AreaSettings
from agg_core.store.codec import save_result
from agg_core.study.people import Progress, StudyResult, study_steps
from agg_core.study.settings import (
    LearnSettings,
    StudySettings,
    WindowSettings,
    parse_anchor,
    parse_minutes,
)
from agg_core.study.suggest import suggest_grid
from agg_core.tables.trajectories import Trajectories

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading, cells, windows and learning."""
    add_file_options(parser)
    add_grid_options(parser)
    about, minutes = options_of(WindowSettings), typed(parse_minutes)
    parser.add_argument(
        "--step", type=minutes, metavar="TIME",
        help=about["step_minutes"].help + " For example 20min or 1h.",
    )  # fmt: skip
    parser.add_argument("--length", type=int, help=about["length"].help)
    parser.add_argument(
        "--anchor", action="extend", nargs="+", type=typed(parse_anchor), metavar="HH:MM",
        help=about["anchors"].help,
    )  # fmt: skip
    parser.add_argument(
        "--max-gap", type=minutes, metavar="TIME", help=about["max_gap_minutes"].help
    )
    for f in fields(LearnSettings):
        add_option(parser, f.name, type(f.default), f.metadata["option"])
    parser.add_argument("--save", metavar="FOLDER", help="keep the result in this new folder")


def run(chosen: argparse.Namespace) -> int:
    """Learn, print a summary, and keep the result where that is asked for.

    Raises
    ------
    InputError
        If the file cannot be read or learned from, or an option cannot be honoured.
    """
    if chosen.save:
        _need_new_folder(Path(chosen.save))
    read = cache(lambda: _read(chosen))  # after the cells, unless the data tell where these lie
    grid = grid_of(chosen, lambda: suggest_grid(read()).bounds)
    settings = StudySettings(
        grid
        if not isinstance(grid, AreaGrid)
        else AreaSettings.of(grid, Path(chosen.polygons).name),
        _window(chosen),
        _learn_settings(chosen),
    )
    result = watched(study_steps(read(), settings), StudyResult, _iteration_of)
    if chosen.save:
        with writing(chosen.save):
            save_result(result, Path(chosen.save))
    summary = result.summary()
    if isinstance(grid, AreaGrid) and grid.report is not None:
        pairs = [[o.first, o.second, round(o.share, 4)] for o in grid.overlaps]
        summary["areas"] = {**grid.report.to_dict(), "overlaps": pairs}
    summary |= extent_told(chosen, settings.grid.make())
    summary["peak_mb"] = round(peak_bytes() / 1e6, 1)
    if chosen.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        about = grid.words() if isinstance(grid, AreaGrid) else []
        if is_suggested(chosen):
            about = [extent_words(settings.grid.make().bounds)]
        print("\n".join([*about, _as_text(summary)]))
    return 0


def _need_new_folder(folder: Path) -> None:
    """Told before the learning, not after it."""
    if folder.exists():
        raise InputError(f"{folder} exists already; give --save a new folder.")
    with writing(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)


def _read(chosen: argparse.Namespace) -> Trajectories:
    *_, trajectories = reading_steps(chosen.file, choices_of(chosen))
    assert isinstance(trajectories, Trajectories)
    return trajectories


def _window(chosen: argparse.Namespace) -> WindowSettings:
    names = {
        "step": "step_minutes", "length": "length", "anchor": "anchors",
        "max_gap": "max_gap_minutes",
    }  # fmt: skip
    values = {names[name]: value for name, value in given(chosen, names).items()}
    if "anchors" in values:
        values["anchors"] = tuple(values["anchors"])
    return WindowSettings(**values)


def _learn_settings(chosen: argparse.Namespace) -> LearnSettings:
    """What was given, and defaults; what the learner makes no use of is refused."""
    stated = given(chosen, options_of(LearnSettings))
    settings = LearnSettings(**stated)
    for name in settings.unused:
        if name in stated:
            raise InputError(
                f"The learner {settings.inference} from {settings.observed} in groups of "
                f"{settings.group_size} makes no use of --{name}; leave it out."
            )
    return settings


def _iteration_of(step: Progress) -> str:
    return (
        f"{step.anchor} {step.source}: iteration {step.iteration}, free energy "
        f"{step.free_energy / step.people:.5f} per person"
    )


def _as_text(summary: dict[str, Any]) -> str:
    lines = [
        f"{summary['n_individuals']:,} people, {summary['n_sequences']:,} sequences in "
        f"{summary['n_groups']:,} groups, {summary['n_states']} states",
        _learner_line(summary),
        f"{summary['iterations']} iterations in {summary['wall_s']:.1f} s, "
        + ("converged" if summary["converged"] else "not converged: the limit ended it"),
    ]
    if summary["n_unconverged"]:
        lines.append(
            f"{summary['n_unconverged']:,} groups did not come to an agreement with their counts"
        )
    for name, title in (("vs_single", "against M = 1"), ("vs_counted", "against counted flows")):
        figures = ", ".join(
            f"{k} {'no meaning' if v is None else format(v, '.3f')}"
            for k, v in summary[name].items()
        )
        lines.append(f"{title}: {figures}")
    return "\n".join(lines)


def _learner_line(summary: dict[str, Any]) -> str:
    reason = summary["learner_reason"]
    return f"learner: {summary['learner']}" + (f", since {reason}" if reason else "")
