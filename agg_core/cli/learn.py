"""``agg-core learn``: flows from people in groups, or from counts; the file tells which."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from agg_core.base.engine import Engine, use_engine
from agg_core.base.errors import InputError
from agg_core.base.memory import peak_bytes
from agg_core.base.options import Option
from agg_core.cli.cells import (
    add_extent_option,
    add_grid_options,
    areas_in,
    extent_told,
    extent_words,
    grid_of,
    is_suggested,
)
from agg_core.cli.console import announce, aside_lines, watched, writing
from agg_core.cli.options import (
    add_engine_option,
    add_field,
    add_source_options,
    choices_of,
    given,
    option_fields,
    source_of,
    spelt,
    typed,
)
from agg_core.cli.pull import told_of_pull
from agg_core.cli.summaries import counts_text, gates_text, people_text
from agg_core.cli.sweeps import add_sweep_options, asked_sweep, run_sweep
from agg_core.evidence.gates import GateFile
from agg_core.io import ROLES, Choices
from agg_core.io.choices import OPENING
from agg_core.io.counts import CountChoices
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.day_labels import read_day_labels
from agg_core.io.flow_tables import FlowTable, KnownStates, read_flow_table
from agg_core.io.gates import read_gates
from agg_core.io.kinds import kind_of_file
from agg_core.io.opening import HOLDS, choices_kind, open_as
from agg_core.space import AreaGrid
from agg_core.space.settings import AnyGridSettings, AreaSettings
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import CountProgress, CountStudy, count_study_steps
from agg_core.study.gates import GateProgress, GateStudy, gate_study_steps
from agg_core.study.lasting import CountSizes, Lasting, PeopleSizes, tried_alike
from agg_core.study.other_evidence import OtherEvidence, evidence_from, without_each
from agg_core.study.people import Progress, StudyResult, study_steps
from agg_core.study.reference import PEOPLE_OF_A_DAY, compare_by_day, compare_reference
from agg_core.study.result import OUTSIDE_NAME, FlowResult
from agg_core.study.settings import (
    CountLearnSettings,
    GateLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
    learn_settings,
    parse_clock,
    parse_minutes,
)
from agg_core.study.suggest import suggest_grid
from agg_core.study.sweeps import Sweep, check_used, first_at
from agg_core.tables.counts import CountTable
from agg_core.tables.gates import GateTable
from agg_core.tables.trajectories import Trajectories

__all__ = ["OPTIONS", "add_options", "run"]

Fields = Mapping[str, Field[Any]]

WINDOW = {
    "step": "step_minutes", "length": "length", "times": "times", "max_gap": "max_gap_minutes",
}  # fmt: skip
"""Fields of windows by the name of their option."""
COUNT_NAMES = {"step_minutes": "step"}
"""Options by fields of `CountChoices`, where people have an option for the same."""
DAY_LABELS = "day_labels"
"""The setting that a file is given for."""

OF_PEOPLE: Fields = {**option_fields(Choices), **option_fields(LearnSettings)}
OF_COUNTS: Fields = {
    COUNT_NAMES.get(name, name): each
    for kind in (CountChoices, CountLearnSettings)
    for name, each in option_fields(kind).items()
}
CELLS = ("bbox", "grid", "mesh", "h3", "polygons", "name", "polygons_crs")
NOT_OF_GATES = (
    *("placeless", "step_minutes", "coarser", "bbox", "grid_box", "grid_rows", "grid_cols"),
    *("grid_corner", "grid_first"),
)
"""Fields of `CountChoices` that tables of gates have no use for."""
OF_GATES: Fields = {
    name: each
    for kind in (CountChoices, GateLearnSettings)
    for name, each in option_fields(kind).items()
    if name not in NOT_OF_GATES
}
GATE_FILES = {
    "exits": "people who leave each station, where the file holds those who enter alone",
    "distances": "kilometres from each station to each on the way that people take",
}
"""Options that name files beside the first and the table of places."""
CROSSINGS = {
    "gates": "people who passed gates in the steps of the counts: columns line, direction, time "
    "and count, or lon and lat for the line, or origin, dest, time and count; times with dates, or "
    "a column of these",
    "screenlines": "the lines that --gates stand at, and areas as cordons; left out: borders of "
    "two cells",
    "gate_error": "standard deviation of what --gates are wrong by, as a share of the count; left "
    "out: learned gate by gate",
}
"""Options of gates that stand beside counts."""
MATRIX, PULL = "matrix", "pull"
COUNT_FILES = {
    "panel": "fixes of a few of the people who were counted: a row per person and time",
    "matrix_zones": "the zones that the old matrix is of, where they are not the cells: GeoJSON, "
    "GeoPackage and the like",
}
"""Options that name files beside counts; an old matrix stands beside counts and gates."""
PLACES, SLOTS, MATRIX_KEY = "places", "slots", "matrix_key"
FOR_LEARNERS = ("like", "engine")
"""Options of all kinds of data but entries and exits."""
OPTIONS = {
    Choices: frozenset((*OF_PEOPLE, *WINDOW, *CELLS, *FOR_LEARNERS, PLACES, SLOTS)),
    CountChoices: frozenset(
        (*OF_COUNTS, *CROSSINGS, *FOR_LEARNERS, *COUNT_FILES, MATRIX, MATRIX_KEY, PULL)
    ),
    GateTable: frozenset((*OF_GATES, *GATE_FILES, MATRIX, PLACES, PULL)),
}
"""Options for people, those for counts, and those for entries and exits; the file, its columns and
rows are for all of them."""
HELD: Mapping[type, str] = {**HOLDS, GateTable: "entries and exits"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for both kinds of data, and those for either."""
    add_source_options(parser, dict.fromkeys((*ROLES, *COUNT_ROLES)))
    parser.add_argument("--save", metavar="FOLDER", help="keep the result in this new folder")
    parser.add_argument(
        "--reference", metavar="FILE",
        help="flows that are known, to hold the learned ones against: a table of origin, dest, "
        "count and perhaps time, summed over the days",
    )  # fmt: skip
    parser.add_argument(
        "--like",
        metavar="FOLDER",
        help="a result of the same data that --save kept: what its trials found is not tried again",
    )
    parser.add_argument(
        spelt(MATRIX), metavar="FILE",
        help="of counts, and of entries and exits: trips that are known, of last week or of a "
        "survey: origin, dest, count and perhaps time (of gates also date)",
    )  # fmt: skip
    parser.add_argument(
        spelt(PULL), action="store_const", const=True,
        help="of counts, and of entries and exits: learn again without each of the sources beside "
        "them, and say how far flows move",
    )  # fmt: skip
    add_engine_option(parser)
    add_sweep_options(parser)
    people = parser.add_argument_group("if the file holds people")
    counts = parser.add_argument_group("if the file holds counts")
    gates = parser.add_argument_group("if the file holds entries and exits")
    for group, files in ((gates, GATE_FILES), (counts, COUNT_FILES)):
        for name, told in files.items():
            group.add_argument(spelt(name), metavar="FILE", help=told)
    counts.add_argument(
        spelt(MATRIX_KEY), metavar="COLUMN",
        help="the column of --matrix-zones that names them as the matrix does",
    )  # fmt: skip
    for name, told in CROSSINGS.items():
        kind: Any = {"type": float, "metavar": "SHARE"} if name == "gate_error" else {
            "metavar": "FILE"
        }  # fmt: skip
        counts.add_argument(spelt(name), help=told, **kind)
    window, minutes = option_fields(WindowSettings), typed(parse_minutes)
    add_extent_option(parser, "; of counts, cells whose middle lies within it stay")
    parser.add_argument(
        "--step", type=minutes, metavar="TIME",
        help=f"{_about(window['step_minutes']).help} For example 20min or 1h. Of counts: "
        + _about(OF_COUNTS["step"]).help,
    )  # fmt: skip
    for name, field in OF_PEOPLE.items():
        if name in OF_COUNTS:
            add_field(parser, field, _for_both(_about(field), _about(OF_COUNTS[name])))
        else:
            add_field(people, field)
    add_grid_options(people)
    people.add_argument("--length", type=int, help=_about(window["length"]).help)
    people.add_argument(
        "--times", "--anchor", action="extend", nargs="+", type=typed(parse_clock), metavar="HH:MM",
        help=_about(window["times"]).help,
    )  # fmt: skip
    people.add_argument(
        "--max-gap", type=minutes, metavar="TIME", help=_about(window["max_gap_minutes"]).help
    )
    for name, field in OF_COUNTS.items():
        about = _about(field)
        said = f"{about.label}: {about.help}"
        if name == DAY_LABELS:
            counts.add_argument(spelt(name), metavar="FILE", help=f"{said} A table of both.")
        elif name not in OPTIONS[Choices]:
            add_field(counts, field, replace(about, help=said))
    for name, field in OF_GATES.items():
        if name not in OF_PEOPLE and name not in OF_COUNTS:
            add_field(gates, field)


def _about(field: Field[Any]) -> Option:
    option: Option = field.metadata["option"]
    return option


def _for_both(people: Option, counts: Option) -> Option:
    """One option for two fields; the settings check what each of them takes."""
    same = people.help == counts.help
    is_open = not (people.choices and counts.choices)
    return replace(
        people,
        help=people.help if same else f"{people.help} Of counts: {counts.help}",
        choices=() if is_open else tuple(dict.fromkeys((*counts.choices, *people.choices))),
    )


def run(chosen: argparse.Namespace) -> int:
    """Learn, print a summary, and keep the result where that is asked for.

    Raises
    ------
    InputError
        If the file cannot be read or learned from, or an option cannot be honoured.
    """
    if chosen.sweep is not None:
        kind = _kind_of(chosen)
        if kind is GateTable:
            raise InputError(
                "--sweep varies settings of learning from people or counts, and "
                f"{Path(chosen.file).name} holds {HELD[kind]}; leave it out.",
                code="option-unused",
            )
        way = _counts_at_values if kind is CountChoices else _people_at_values
        summary, text = way(chosen)
    else:
        summary, text = _learned(chosen)
    if chosen.json:
        peak = {"peak_mb": round(peak_bytes() / 1e6, 1)}
        print(json.dumps({**summary, **peak}, ensure_ascii=False))
    else:
        print(text)
    return 0


def _says_gates(chosen: argparse.Namespace) -> bool:
    """Whether columns are those of entries and exits; a file that cannot be opened is none."""
    try:
        return kind_of_file(chosen.file, Choices(**given(chosen, OPENING))) == "gates"
    except InputError:
        return False


def _learned(chosen: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The summary of one run, and the same as text."""
    if chosen.csv:
        raise InputError(
            "--csv writes the table of --sweep; say what is varied, or leave it out.",
            code="option-unused",
        )
    if chosen.save:
        _need_new_folder(Path(chosen.save))
    kind = _kind_of(chosen)
    like = load_result(Path(chosen.like)) if chosen.like else None
    way = {Choices: _from_people, CountChoices: _from_counts, GateTable: _from_gates}[kind]
    return way(chosen, like)


def _need_new_folder(folder: Path) -> None:
    """Told before the learning, not after it."""
    if folder.exists():
        raise InputError(
            f"{folder} exists already; give --save a new folder.", code="folder-exists"
        )
    with writing(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)


def _kind_of(chosen: argparse.Namespace) -> type[Choices | CountChoices | GateTable]:
    """What the file holds; options for what it does not hold are refused."""
    roles = [text.partition("=")[0] for text in chosen.column or ()]
    kind: type[Choices | CountChoices | GateTable]
    if chosen.exits or (not roles and _says_gates(chosen)):
        kind = GateTable
    else:
        stated = given(chosen, OPTIONS[Choices] & OPTIONS[CountChoices] - {*FOR_LEARNERS})
        kind = choices_kind(source_of(chosen), roles, stated)
    for other, options in OPTIONS.items():
        for name in given(chosen, sorted(options - OPTIONS[kind])):
            raise InputError(
                f"{spelt(name)} is for {HELD[other]}, and {Path(chosen.file).name} holds "
                f"{HELD[kind]}; leave it out.",
                code="option-unused",
            )
    return kind


def _from_people(chosen: argparse.Namespace, like: FlowResult | None) -> tuple[dict[str, Any], str]:
    # After the cells, unless the data tell where these lie.
    read = cache(lambda: _people_in(chosen))
    grid = grid_of(chosen, lambda: suggest_grid(read()).bounds)
    settings = StudySettings(
        _settings_of(grid, chosen),
        _window(chosen),
        learn_settings(LearnSettings, given(chosen, option_fields(LearnSettings))),
    )
    window = settings.window
    cells, minutes = settings.grid.make().labels, window.step_minutes
    reference = _reference(chosen, cells, window.times, minutes, lambda: read().timezone)
    told = _told(lambda: _lasting_of_people(read(), settings, like))
    known = {} if like is None else like.remembered
    people = read()
    with use_engine(chosen.engine) as engine:
        told |= _engine_told(chosen, engine)
        result = watched(study_steps(people, settings, known), StudyResult, _iteration_of)
    _keep(result, chosen)
    summary = result.summary() | told
    summary |= _compared(result, reference) | _recalled(result, known, chosen)
    if isinstance(grid, AreaGrid) and grid.report is not None:
        pairs = [[o.first, o.second, round(o.share, 4)] for o in grid.overlaps]
        summary["areas"] = {**grid.report.to_dict(), "overlaps": pairs}
    about = grid.words() if isinstance(grid, AreaGrid) else []
    bounds = settings.grid.make().bounds
    if is_suggested(chosen):
        about = [extent_words(bounds)]
    summary |= extent_told(chosen, settings.grid.make())
    summary["reading"] = people.report.to_dict()
    return summary, "\n".join([*_left_out(people), *about, people_text(summary)])


def _settings_of(grid: AnyGridSettings | AreaGrid, chosen: argparse.Namespace) -> AnyGridSettings:
    """Settings of the cells that options say."""
    if isinstance(grid, AreaGrid):
        return AreaSettings.of(grid, Path(chosen.polygons).name)
    return grid


def _people_at_values(chosen: argparse.Namespace) -> tuple[dict[str, Any], str]:
    asked = asked_sweep(chosen, StudySettings)
    read = cache(lambda: _people_in(chosen))
    grid = grid_of(chosen, lambda: suggest_grid(read()).bounds)
    stated = given(chosen, option_fields(LearnSettings))
    first: dict[str, Any] = {**stated, **first_at(StudySettings, asked.name, asked.values)}
    settings = StudySettings(_settings_of(grid, chosen), _window(chosen), LearnSettings(**first))
    sweep = Sweep(settings, asked.name, asked.values)
    check_used(stated, sweep)
    people = read()
    with use_engine(chosen.engine) as engine:
        told = _engine_told(chosen, engine)
        each = (
            _lasting_of_people(people, one, None)
            for one in sweep.each
            if isinstance(one, StudySettings)
        )
        summary, text = run_sweep(people, sweep, chosen, each, engine.n_workers)
    summary |= told | extent_told(chosen, settings.grid.make())
    summary["reading"] = people.report.to_dict()
    about = [extent_words(settings.grid.make().bounds)] if is_suggested(chosen) else []
    return summary, "\n".join([*_left_out(people), *about, text])


def _counts_at_values(chosen: argparse.Namespace) -> tuple[dict[str, Any], str]:
    for name in given(chosen, ("gates", *COUNT_FILES, MATRIX, MATRIX_KEY, PULL)):
        raise InputError(
            f"--sweep varies what is learned from counts alone; leave {spelt(name)} out.",
            code="option-unused",
        )
    _gate_file(chosen)
    asked = asked_sweep(chosen, CountLearnSettings)
    stated = _stated_of_counts(chosen)
    first: dict[str, Any] = {**stated, **first_at(CountLearnSettings, asked.name, asked.values)}
    sweep = Sweep(CountLearnSettings(**first), asked.name, asked.values)
    check_used(stated, sweep)
    table = _counts_in(chosen)
    with use_engine(chosen.engine) as engine:
        told = _engine_told(chosen, engine)
        each = (
            CountSizes.of(table, one).lasting(one)
            for one in sweep.each
            if isinstance(one, CountLearnSettings)
        )
        summary, text = run_sweep(table, sweep, chosen, each, engine.n_workers)
    summary |= {**told, "reading": table.report.to_dict()}
    return summary, "\n".join([table.report.to_text(), text])


def _people_in(chosen: argparse.Namespace) -> Trajectories:
    people = open_as(source_of(chosen), choices_of(chosen, Choices))
    assert isinstance(people, Trajectories)
    return people


def _window(chosen: argparse.Namespace) -> WindowSettings:
    values = {WINDOW[name]: value for name, value in given(chosen, WINDOW).items()}
    if "times" in values:
        values["times"] = tuple(values["times"])
    return WindowSettings(**values)


def _iteration_of(step: Progress) -> str:
    if step.stage == "noise":
        return f"{step.source}: learning the noise, {step.iteration} of {step.n_iter}"
    if step.stage == "doubting":
        return f"{step.time}: how sure flows are, simulation {step.iteration} of {step.n_iter}"
    if step.stage == "choosing":
        return f"{step.time} {step.source}: choosing the prior, {step.iteration} of {step.n_iter}"
    return (
        f"{step.time} {step.source}: iteration {step.iteration}, free energy "
        f"{step.free_energy / step.people:.5f} per person"
    )


def _gate_file(chosen: argparse.Namespace) -> GateFile | None:
    """The gates beside the counts, where there are some."""
    if chosen.gates:
        return GateFile(chosen.gates, chosen.screenlines, chosen.gate_error)
    for name in given(chosen, sorted(CROSSINGS)):
        raise InputError(
            f"{spelt(name)} says something of gates; give these with --gates, or leave it out.",
            code="option-unused",
        )
    return None


def _from_counts(chosen: argparse.Namespace, like: FlowResult | None) -> tuple[dict[str, Any], str]:
    file = _gate_file(chosen)
    settings = learn_settings(CountLearnSettings, _stated_of_counts(chosen))
    table = _counts_in(chosen)
    gates = None if file is None else file.beside(table)
    minutes = table.step.total_seconds() / 60
    reference = _reference(chosen, table.cells, table.slots, minutes, lambda: table.timezone)
    tried = _tried(like, settings)
    beside = _beside(chosen, table)
    told = _told(lambda: CountSizes.of(table, settings).lasting(settings, remembered=tried))
    known = {} if like is None else like.remembered
    left_out = without_each(gates, beside) if chosen.pull else {}
    if chosen.pull:
        _need_sources(tuple(left_out))
    with use_engine(chosen.engine) as engine:
        told |= _engine_told(chosen, engine)
        steps = count_study_steps(table, settings, known, gates=gates, beside=beside)
        result = watched(steps, CountStudy, _stage_of)
        without: dict[str, FlowResult] = {}
        for source, others in left_out.items():
            announce(f"Once more, without {source}.")
            steps = count_study_steps(
                table, settings, result.remembered, gates=others[0], beside=others[1]
            )
            without[source] = watched(steps, CountStudy, _stage_of)
    _keep(result, chosen)
    summary = result.summary() | told
    summary |= _compared(result, reference) | _recalled(result, known, chosen)
    pull = _pulled(result, without)
    text = "\n".join([table.report.to_text(), counts_text(summary), *pull.lines])
    return {**summary, **pull.told, "reading": table.report.to_dict()}, text


@dataclass(frozen=True)
class _Pulled:
    """How far flows move without each source, for JSON and as text; nothing if nobody asked."""

    told: dict[str, Any]
    lines: tuple[str, ...]


def _pulled(result: FlowResult, without: Mapping[str, FlowResult]) -> _Pulled:
    if not without:
        return _Pulled({}, ())
    told, text = told_of_pull(result, without)
    return _Pulled({PULL: told}, (text,))


def _need_sources(sources: Sequence[str]) -> None:
    """Refuse to leave a source out where there is none.

    Raises
    ------
    InputError
        If there is none.
    """
    if not sources:
        raise InputError(
            "--pull learns again without each of --gates, --panel and --matrix; give one of these, "
            "or leave it out.",
            code="option-unused",
        )


def _beside(chosen: argparse.Namespace, table: CountTable) -> OtherEvidence | None:
    """What is known beside the counts, read before the learning."""
    if chosen.matrix_key and not chosen.matrix_zones:
        raise InputError(
            "--matrix-key names a column of --matrix-zones FILE; give both, or leave it out.",
            code="option-unused",
        )
    zones = None
    if chosen.matrix_zones:
        zones = areas_in(chosen.matrix_zones, chosen.matrix_key)
    return evidence_from(table, chosen.panel, chosen.matrix, zones)


def _from_gates(
    chosen: argparse.Namespace,
    like: FlowResult | None,  # noqa: ARG001  # refused before
) -> tuple[dict[str, Any], str]:
    settings = learn_settings(GateLearnSettings, given(chosen, option_fields(GateLearnSettings)))
    choices = choices_of(chosen, CountChoices)
    table = read_gates(
        chosen.file, chosen.exits, chosen.places, distances=chosen.distances, choices=choices
    )
    known = KnownStates(
        table.stations, OUTSIDE_NAME, table.entries.slots, table.step_minutes, table.timezone
    )
    matrix, reference = (
        None if file is None else read_flow_table(file, known, by_date=True)
        for file in (chosen.matrix, chosen.reference)
    )
    if chosen.pull:
        _need_sources(() if matrix is None else (MATRIX,))
    result = watched(gate_study_steps(table, settings, matrix), GateStudy, _stage_of)
    _keep(result, chosen)
    summary = result.summary()
    without: dict[str, FlowResult] = {}
    if chosen.pull:
        announce("Once more, without matrix.")
        without[MATRIX] = watched(gate_study_steps(table, settings), GateStudy, _stage_of)
    pull = _pulled(result, without)
    if reference is not None:
        held = compare_by_day(result, reference, PEOPLE_OF_A_DAY)
        summary["vs_reference"] = held.to_dict()
    sides = {"entries": table.entries.report, "exits": table.exits.report}
    summary["reading"] = {name: report.to_dict() for name, report in sides.items()}
    aside = [
        line for name, report in sides.items()
        for line in aside_lines(report.set_aside, f"rows of {name} ")
    ]  # fmt: skip
    return {**summary, **pull.told}, "\n".join([*aside, gates_text(summary), *pull.lines])


def _left_out(people: Trajectories) -> list[str]:
    """What rows of a file of people were not used for."""
    return aside_lines(people.report.set_aside, "rows ")


def _stated_of_counts(chosen: argparse.Namespace) -> dict[str, Any]:
    stated = given(chosen, option_fields(CountLearnSettings))
    if DAY_LABELS in stated:
        stated[DAY_LABELS] = read_day_labels(stated[DAY_LABELS])
    return stated


def _counts_in(chosen: argparse.Namespace) -> CountTable:
    table = open_as(source_of(chosen), choices_of(chosen, CountChoices, COUNT_NAMES))
    assert isinstance(table, CountTable)
    return table


def _engine_told(chosen: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    """Say who works before that begins, and what is added to a summary of it."""
    if chosen.engine is None:
        return {}
    announce(f"{engine.n_workers:,} at work by the engine {chosen.engine}.")
    return {"engine": chosen.engine, "n_workers": engine.n_workers}


def _lasting_of_people(
    people: Trajectories, settings: StudySettings, like: FlowResult | None
) -> Lasting:
    learn = settings.learn
    sizes = PeopleSizes.of(
        people, settings.grid.make(), settings.window, learn.group_size, learn.reach_m
    )
    return sizes.lasting(learn, remembered=_tried(like, settings))


def _tried(like: FlowResult | None, settings: StudySettings | CountLearnSettings) -> bool:
    """Whether trials of the result that ``--like`` names tell all that would be tried."""
    return isinstance(like, StudyResult | CountStudy) and tried_alike(like.settings, settings)


def _told(ask: Callable[[], Lasting]) -> dict[str, Any]:
    """Say how long it takes before it begins, and what is added to a summary of that."""
    try:
        lasting = ask()
    except InputError:
        # The settings do not suit the data, or some of it, which the work itself finds out.
        return {"told_s": None}
    announce(f"Takes about {lasting.words} on this machine.")
    return {"told_s": lasting.told_s}


def _reference(
    chosen: argparse.Namespace,
    cells: Sequence[str],
    times: Sequence[str],
    minutes: float,
    timezone: Callable[[], str],
) -> FlowTable | None:
    """The flows to compare with, read before the learning: what is wrong with them is told then."""
    if chosen.reference is None:
        return None
    known = KnownStates(cells, OUTSIDE_NAME, times, minutes, timezone())
    return read_flow_table(chosen.reference, known)


def _compared(result: FlowResult, reference: FlowTable | None) -> dict[str, Any]:
    """What is added to a summary."""
    if reference is None:
        return {}
    return {"vs_reference": compare_reference(result, reference).to_dict()}


def _recalled(
    result: FlowResult, known: Mapping[str, Any], chosen: argparse.Namespace
) -> dict[str, int]:
    """How many findings of the run that ``--like`` names were of use; told if none was."""
    if not chosen.like:
        return {}
    n_recalled = len(known.keys() & result.remembered.keys())
    if not n_recalled:
        print(
            f"Nothing that {chosen.like} found was of use: it is of other data, or of settings "
            "that trials depend on.",
            file=sys.stderr,
        )
    return {"remembered": n_recalled}


def _stage_of(step: CountProgress | GateProgress) -> str:
    return f"{step.share:4.0%} {step.stage}: {step.message}"


def _keep(result: FlowResult, chosen: argparse.Namespace) -> None:
    if chosen.save:
        with writing(chosen.save):
            save_result(result, Path(chosen.save))
