"""The command line: the same functions as the pages, figures as JSON.

``agg-core inspect FILE`` says what a file holds, ``agg-core learn FILE ...`` runs a study,
``agg-core flows FOLDER --format KEY`` writes a saved one as a file for other programs,
``agg-core app`` starts the dashboard, ``agg-core bench accuracy`` repeats the paper's experiments.
The word ``sample`` in place of FILE is the sample city. ``python -m agg_core`` does the same. Exit
code 2 and one sentence when input or settings cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import agg_core
from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install
from agg_core.base.memory import peak_bytes
from agg_core.base.options import Option, options_of
from agg_core.base.threads import wait_asleep
from agg_core.serving import serve

if TYPE_CHECKING:
    from agg_core.io import Choices
    from agg_core.lab.accuracy import AccuracyProgress
    from agg_core.space import AreaGrid
    from agg_core.space.grid import Bounds, Grid
    from agg_core.space.settings import AnyGridSettings
    from agg_core.study.people import Progress
    from agg_core.study.settings import LearnSettings
    from agg_core.tables.trajectories import Trajectories

# What is slow to load is imported where it is used: a command loads what it needs itself.
# ruff: noqa: PLC0415

__all__ = ["main", "program"]

Step = TypeVar("Step")
Result = TypeVar("Result")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = _joined(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["app"]:
            return serve(words[1:])
        chosen = _parser(words[0] if words else "").parse_args(words)
        return int(chosen.run(chosen))
    except InputError as fault:
        sentence = str(fault).removesuffix(".") + f" ({fault.option})." if fault.option else fault
        print(f"agg-core: {sentence}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as fault:
        told = how_to_install(fault.name)
        if told is None:
            raise
        print(f"agg-core: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("agg-core: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, for example `| head`
        sys.stderr.close()
        return 0


def _joined(arguments: Sequence[str]) -> list[str]:
    """``--bbox -74.1,...`` as one word: argparse takes a western longitude for an option."""
    words: list[str] = []
    for word in arguments:
        if words and words[-1] == "--bbox":
            words[-1] = f"--bbox={word}"
        else:
            words.append(word)
    return words


def _parser(asked: str) -> argparse.ArgumentParser:
    """All commands, and the options of the one that is asked for."""
    parser = argparse.ArgumentParser(prog="agg-core", description=__doc__)
    version = f"agg-core {agg_core.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (about, fill) in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if name == asked and fill is not None:
            fill(command)
    return parser


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_file_options(parser)
    parser.add_argument("--rows", type=int, metavar="N", help="print N canonical rows as CSV")
    parser.set_defaults(run=_inspect)


def _add_counts(parser: argparse.ArgumentParser) -> None:
    from agg_core.io import Choices
    from agg_core.io.checks import OF_TRACKS

    _add_file_options(parser, (name for name in options_of(Choices) if name not in OF_TRACKS))
    _add_grid_options(parser)
    parser.add_argument("--step", default="30min", metavar="TIME", help="step of time: 30min, 1h")
    parser.add_argument(
        "--max-gap", metavar="TIME", help="longest time that a person is carried on"
    )
    parser.set_defaults(run=_counts)


def _add_trips(parser: argparse.ArgumentParser) -> None:
    from agg_core.io.trips import TRIP_CHOICES

    _add_file_options(parser, TRIP_CHOICES, columns=False)
    parser.add_argument("--step", default="1h", metavar="TIME", help="step of time: 30min, 1h, 1D")
    parser.set_defaults(run=_trips)


def _add_learn(parser: argparse.ArgumentParser) -> None:
    _add_file_options(parser)
    _add_study_options(parser)
    parser.add_argument("--save", metavar="FOLDER", help="keep the result in this new folder")
    parser.set_defaults(run=_learn)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(required=True, metavar="WHAT")
    accuracy = kinds.add_parser("accuracy", help="the paper's experiments, figures 3 to 7")
    _add_accuracy_options(accuracy)
    accuracy.set_defaults(run=_accuracy)


def _add_file_options(
    parser: argparse.ArgumentParser, choices: Iterable[str] | None = None, *, columns: bool = True
) -> None:
    """Options of reading; all of `Choices` unless ``choices`` names some."""
    from agg_core.io import DATE_ORDERS, ROLES, Choices
    from agg_core.made.samples import file_or_sample

    parser.add_argument(
        "file", metavar="FILE", type=_typed(file_or_sample),
        help="file or folder: CSV, Excel, Parquet, GPX, KML, GeoJSON, JSON, GeoPackage, zip, ...; "
        "or the word sample",
    )  # fmt: skip
    if columns:
        parser.add_argument(
            "--column", action="append", default=[], metavar="ROLE=NAME",
            help=f"column of a role ({', '.join(ROLES)}), by name or by number from 0",
        )  # fmt: skip
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=VALUE", help="keep these rows only"
    )
    parser.add_argument(
        "--date-order", choices=list(DATE_ORDERS), help="what comes first in dates such as 1/2/2024"
    )
    for name in options_of(Choices) if choices is None else choices:
        _add_choice(parser, name, options_of(Choices)[name])
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_choice(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    """A choice of reading as an option: --max-speed KM/H."""
    from agg_core.io import Choices

    flag, text = "--" + name.replace("_", "-"), option.help.replace("%", "%%")
    default = getattr(Choices(), name)
    if default is False:
        parser.add_argument(flag, action="store_true", help=text)
    elif name == "header":
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    elif option.choices:
        parser.add_argument(flag, choices=option.choices, default=default, help=text)
    else:
        kind, unit = (float, option.unit.upper()) if option.unit else (str, "TEXT")
        parser.add_argument(flag, type=kind, metavar=unit, default=default, help=text)


def _add_grid_options(parser: argparse.ArgumentParser) -> None:
    from agg_core.space.hexagons import FINEST_RESOLUTION
    from agg_core.space.mesh import MESH_SIZES
    from agg_core.space.settings import GridSettings, parse_bbox, parse_grid_size

    grid = GridSettings()
    parser.add_argument(
        "--bbox", type=_typed(parse_bbox), metavar="W,S,E,N",
        help="extent in degrees; if left out, where nearly all fixes lie, or all areas of "
        "--polygons",
    )  # fmt: skip
    cells = parser.add_mutually_exclusive_group()
    cells.add_argument(
        "--grid", type=_typed(parse_grid_size), metavar="RxC", default=(grid.rows, grid.cols),
        help="blocks, rows x columns",
    )  # fmt: skip
    cells.add_argument(
        "--mesh", type=int, choices=list(MESH_SIZES), metavar="LEVEL",
        help="cells of the JIS X 0410 mesh: "
        + ", ".join(f"{level} = {size}" for level, size in MESH_SIZES.items()),
    )  # fmt: skip
    cells.add_argument(
        "--h3", type=int, metavar="RESOLUTION", help=f"cells of H3, 0 to {FINEST_RESOLUTION}"
    )
    cells.add_argument(
        "--polygons", metavar="FILE",
        help="areas as cells: GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf, GeoParquet",
    )  # fmt: skip
    parser.add_argument(
        "--name", metavar="COLUMN", help="column that names the areas; found if left out"
    )
    parser.add_argument(
        "--polygons-crs", metavar="EPSG:CODE", help="coordinate system of the areas, as in the file"
    )


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    from agg_core.study.settings import LearnSettings, WindowSettings, parse_anchor, parse_minutes

    _add_grid_options(parser)
    window, minutes = WindowSettings(), _typed(parse_minutes)
    about = options_of(WindowSettings)
    parser.add_argument(
        "--step", type=minutes, default=window.step_minutes, metavar="TIME",
        help=about["step_minutes"].help + " For example 20min or 1h.",
    )  # fmt: skip
    parser.add_argument("--length", type=int, default=window.length, help=about["length"].help)
    parser.add_argument(
        "--anchor", action="extend", nargs="+", type=_typed(parse_anchor), default=[],
        metavar="HH:MM", help=about["anchors"].help,
    )  # fmt: skip
    parser.add_argument(
        "--max-gap", type=minutes, metavar="TIME", help=about["max_gap_minutes"].help
    )
    for f in fields(LearnSettings):
        option = f.metadata["option"]
        parser.add_argument(
            "--" + f.name.replace("_", "-"), type=type(f.default), default=argparse.SUPPRESS,
            choices=option.choices or None,
            metavar=None if option.choices else (option.unit or "NUMBER").split()[0].upper(),
            help=option.help.replace("%", "%%"),
        )  # fmt: skip


def _add_flows(parser: argparse.ArgumentParser) -> None:
    from agg_core.exports import EXPORTS
    from agg_core.study.people import SOURCES
    from agg_core.study.settings import parse_anchor

    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="what learn --save wrote")
    parser.add_argument("--format", choices=list(EXPORTS), metavar="KEY", help="see --list")
    parser.add_argument("--list", action="store_true", help="list the formats")
    parser.add_argument(
        "--anchor", type=_typed(parse_anchor), metavar="HH:MM",
        help="time of day; the busiest if left out",
    )  # fmt: skip
    parser.add_argument(
        "--source", choices=SOURCES,
        help=f"whose flows, where a format holds those of one source; {SOURCES[0]} if left out",
    )  # fmt: skip
    parser.add_argument("--title", metavar="TEXT", help="title in formats with one")
    parser.add_argument(
        "--out", metavar="FILE", help="file to write; - for standard output; named after the format"
    )
    parser.set_defaults(run=_flows)


def _add_accuracy_options(parser: argparse.ArgumentParser) -> None:
    from agg_core.lab.experiments import EXPERIMENTS

    parser.add_argument("--quick", action="store_true", help="fewer seeds and people: minutes")
    parser.add_argument("--experiment", choices=list(EXPERIMENTS), help="this one alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _typed(parse: Any) -> Any:
    """argparse swallows ValueError messages; let ours through."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except InputError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return convert


def _read(chosen: argparse.Namespace) -> Trajectories:
    from agg_core.io import reading_steps
    from agg_core.tables.trajectories import Trajectories

    choices = _choices(chosen)
    *_, trajectories = reading_steps(chosen.file, choices)
    assert isinstance(trajectories, Trajectories)
    return trajectories


def _counts(chosen: argparse.Namespace) -> int:
    """People present by step of the local clock and cell, as CSV; with --json, how many of what."""
    from agg_core.io.fixes import FixReader
    from agg_core.io.formats.registry import open_source
    from agg_core.io.streaming import FixBatch, count_cells
    from agg_core.space import AreaGrid
    from agg_core.tables.sequences import nothing_inside

    choices = _choices(chosen)
    settings = _grid(chosen, lambda: _extent_of_file(chosen.file, choices))
    grid = settings if isinstance(settings, AreaGrid) else settings.make()
    reader = FixReader(open_source(chosen.file, choices), choices)
    batches = reader.batches()
    first = next(batches)  # tells the zone of the clock
    spans: list[Bounds] = []

    def fixes() -> Iterator[FixBatch]:
        for f in chain([first], batches):
            if len(f):
                spans.append((f.lon.min(), f.lat.min(), f.lon.max(), f.lat.max()))
            yield FixBatch(f.user, f.time.astype("int64"), f.lon, f.lat)

    table = count_cells(fixes(), grid, chosen.step, reader.timezone, chosen.max_gap)
    reader.account.need_rows(len(spans))
    if (table["cell"] == grid.n_cells).all():
        west, south, east, north = zip(*spans, strict=True)
        raise nothing_inside(grid.bounds, (min(west), min(south), max(east), max(north)))
    if chosen.json:
        aside = {cause: rows.count for cause, rows in reader.account.result().items()}
        told = {"rows_read": reader.rows_read, "set_aside": aside, "timezone": reader.timezone}
        told |= {"individuals": len(reader.user_ids), "counts": len(table)}
        print(json.dumps({**told, **_extent_told(chosen, grid)}))
        return 0
    if _is_suggested(chosen):
        print(_extent_words(grid.bounds), file=sys.stderr)
    table.to_csv(sys.stdout, index=False, lineterminator="\n")
    return 0


def _extent_of_file(file: str, choices: Choices) -> Bounds:
    """Where nearly all fixes of a file of any size lie; the file is read once for that."""
    from agg_core.io.fixes import FixReader
    from agg_core.io.formats.registry import open_source
    from agg_core.study.suggest import PlaceSample, suggest_extent

    reader, sample = FixReader(open_source(file, choices), choices), PlaceSample()
    for fixes in reader.batches():
        sample.add(fixes.lon, fixes.lat)
    reader.account.need_rows(len(sample.lon))
    return suggest_extent(sample.lon, sample.lat)


def _is_suggested(chosen: argparse.Namespace) -> bool:
    """Whether the extent is the one that the data suggest."""
    return chosen.bbox is None and chosen.polygons is None


def _extent_told(chosen: argparse.Namespace, grid: Grid) -> dict[str, Any]:
    """The extent of the cells, and who chose it."""
    source = "data" if _is_suggested(chosen) else "areas" if chosen.bbox is None else "stated"
    return {"extent": list(grid.bounds), "extent_from": source}


def _extent_words(bounds: Bounds) -> str:
    extent = ",".join(f"{side:.10g}" for side in bounds)
    return f"extent {extent} (suggested by the data; --bbox W,S,E,N states another)"


def _trips(chosen: argparse.Namespace) -> int:
    """The table as CSV, or with --json what it holds in all."""
    from agg_core.io import count_trips

    counted = count_trips(chosen.file, _choices(chosen), chosen.step)
    if chosen.json:
        told = {
            "trips": counted.trips, "left_out": counted.left_out,
            "not_selected": counted.not_selected, "rows": len(counted.table),
        }  # fmt: skip
        print(json.dumps({**told, "timezone": counted.timezone}))
    else:
        counted.table.to_csv(sys.stdout, index=False, lineterminator="\n")
    return 0


def _choices(chosen: argparse.Namespace) -> Choices:
    from agg_core.io import DATE_ORDERS, Choices, as_column

    columns = {
        role: as_column(name)
        for role, name in (_pair(text, "--column") for text in getattr(chosen, "column", ()))
    }
    where = dict(_pair(text, "--where") for text in chosen.where)
    stated = {name: value for name, value in vars(chosen).items() if name in options_of(Choices)}
    if chosen.date_order and stated["time_format"]:
        raise InputError("--date-order and --time-format say the same; give one of them.")
    if chosen.date_order:
        stated["time_format"] = DATE_ORDERS[chosen.date_order]
    return Choices.of(columns, where, **stated)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise InputError(f"{option} takes NAME=VALUE, not {text!r}.")
    return name, value


def _inspect(chosen: argparse.Namespace) -> int:
    if chosen.rows is not None and chosen.json:
        raise InputError("--rows prints CSV and --json an object; give one of them.")
    trajectories = _read(chosen)
    if chosen.rows is not None:
        rows = trajectories.table.head(max(chosen.rows, 0))
        time = rows["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").str.replace(".000000Z", "Z")
        rows.assign(time=time).to_csv(sys.stdout, index=False, lineterminator="\n")
    elif chosen.json:
        print(json.dumps(trajectories.report.to_dict(), ensure_ascii=False))
    else:
        print(trajectories.report.to_text())
    return 0


def _learn(chosen: argparse.Namespace) -> int:
    from agg_core.space import AreaGrid
    from agg_core.space.settings import AreaSettings
    from agg_core.store.codec import save_result
    from agg_core.study.people import StudyResult, study_steps
    from agg_core.study.settings import StudySettings, WindowSettings
    from agg_core.study.suggest import suggest_grid

    if chosen.save:
        _need_new_folder(Path(chosen.save))
    read = cache(lambda: _read(chosen))  # after the cells, unless the data tell where these lie
    grid = _grid(chosen, lambda: suggest_grid(read()).bounds)
    settings = StudySettings(
        grid
        if not isinstance(grid, AreaGrid)
        else AreaSettings.of(grid, Path(chosen.polygons).name),
        WindowSettings(chosen.step, chosen.length, tuple(chosen.anchor), chosen.max_gap),
        _learn_settings(chosen),
    )
    result = _watched(study_steps(read(), settings), StudyResult, _iteration_of)
    if chosen.save:
        with _writing(chosen.save):
            save_result(result, Path(chosen.save))
    summary = result.summary()
    if isinstance(grid, AreaGrid) and grid.report is not None:
        pairs = [[o.first, o.second, round(o.share, 4)] for o in grid.overlaps]
        summary["areas"] = {**grid.report.to_dict(), "overlaps": pairs}
    summary |= _extent_told(chosen, settings.grid.make())
    summary["peak_mb"] = round(peak_bytes() / 1e6, 1)
    if chosen.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        about = grid.words() if isinstance(grid, AreaGrid) else []
        if _is_suggested(chosen):
            about = [_extent_words(settings.grid.make().bounds)]
        print("\n".join([*about, _as_text(summary)]))
    return 0


def _learn_settings(chosen: argparse.Namespace) -> LearnSettings:
    """What was given, and defaults; what the learner makes no use of is refused."""
    from agg_core.study.settings import LearnSettings

    names = [f.name for f in fields(LearnSettings)]
    given = {name: value for name, value in vars(chosen).items() if name in names}
    settings = LearnSettings(**given)
    for name in settings.unused:
        if name in given:
            raise InputError(
                f"The learner {settings.inference} from {settings.observed} in groups of "
                f"{settings.group_size} makes no use of --{name}; leave it out."
            )
    return settings


def _grid(
    chosen: argparse.Namespace, suggested: Callable[[], Bounds]
) -> AnyGridSettings | AreaGrid:
    """Cells of the kind that was asked for; ``suggested`` tells the extent if none is stated."""
    from agg_core.space.settings import GridSettings, HexSettings, MeshSettings

    if chosen.polygons is not None:
        return _areas(chosen)
    if chosen.name or chosen.polygons_crs:
        raise InputError("--name and --polygons-crs go with --polygons FILE.")
    west, south, east, north = chosen.bbox or suggested()
    if chosen.mesh is not None:
        return MeshSettings(west, south, east, north, chosen.mesh)
    if chosen.h3 is not None:
        return HexSettings(west, south, east, north, chosen.h3)
    return GridSettings(west, south, east, north, *chosen.grid)


def _areas(chosen: argparse.Namespace) -> AreaGrid:
    from agg_core.io.areas import read_areas
    from agg_core.io.formats.vector import MOST_MEGABYTES

    path = Path(chosen.polygons)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_MEGABYTES * 1_000_000 + 1)
    except OSError as fault:
        raise InputError(f"{path} cannot be opened ({fault.strerror}); check its path.") from fault
    try:
        grid = read_areas(content, path.name, chosen.polygons_crs, chosen.name)
    except InputError as fault:
        option = "--polygons-crs EPSG:CODE" if "crs" in fault.option else fault.option
        raise InputError(str(fault), option) from fault
    return grid if chosen.bbox is None else grid.within(chosen.bbox)


def _need_new_folder(folder: Path) -> None:
    """Told before the learning, not after it."""
    if folder.exists():
        raise InputError(f"{folder} exists already; give --save a new folder.")
    with _writing(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """A disk that refuses is one sentence."""
    try:
        yield
    except OSError as fault:
        raise InputError(
            f"{name} could not be written ({fault.strerror}); choose another place."
        ) from fault


def _flows(chosen: argparse.Namespace) -> int:
    from agg_core.exports import EXPORTS, ExportInput, export_file_name
    from agg_core.store.codec import load_result
    from agg_core.study.people import SOURCES

    if chosen.list:
        others = ("folder", "format", "anchor", "source", "title", "out")
        if any(getattr(chosen, name) is not None for name in others):
            raise InputError("--list only lists the formats; leave out all that is beside it.")
        width = max(map(len, EXPORTS))
        print("\n".join(f"{key:{width}}  {export.about}" for key, export in EXPORTS.items()))
        return 0
    if not chosen.folder or not chosen.format:
        raise InputError("Give the folder of a result and a --format; --list names the formats.")
    if not Path(chosen.folder).is_dir():
        raise InputError(f"There is no folder {chosen.folder}; learn --save writes one.")
    result = load_result(Path(chosen.folder))
    export = EXPORTS[chosen.format]
    if not export.available(result):
        raise InputError(f"This result has nothing for {export.key}; choose another format.")
    for name, is_used in (
        ("anchor", not export.of_all_times),
        ("source", export.one_source),
        ("title", export.titled),
    ):
        if getattr(chosen, name) is not None and not is_used:
            raise InputError(f"The format {export.key} makes no use of --{name}; leave it out.")
    anchor, source = chosen.anchor or result.busiest, chosen.source or SOURCES[0]
    asked = ExportInput(result, anchor, chosen.title or "", source)
    content = export.make(asked)
    if chosen.out == "-":
        sys.stdout.buffer.write(content)
        return 0
    path = chosen.out or export_file_name(export, asked.anchor)
    with _writing(path):
        Path(path).write_bytes(content)
    print(f"{path}: {len(content):,} bytes")
    return 0


def _watched(
    steps: Iterator[Step | Result], kind: type[Result], describe: Callable[[Step], str]
) -> Result:
    """The result at the end of the steps; at a terminal, each step is told on one line."""
    watched = sys.stderr.isatty()
    for step in steps:
        if isinstance(step, kind):
            break
        if watched:
            # The rest of the line that was there is wiped out.
            print(f"\r{describe(cast(Step, step))}\033[K", end="", file=sys.stderr, flush=True)
    if watched:
        print(file=sys.stderr)
    assert isinstance(step, kind)
    return step


def _iteration_of(step: Progress) -> str:
    return (
        f"{step.anchor} {step.source}: iteration {step.iteration}, free energy "
        f"{step.free_energy / step.people:.5f} per person"
    )


def _run_of(step: AccuracyProgress) -> str:
    at = step.progress
    return f"{step.part}: {at.done} of {at.n_runs} runs, {at.label}"


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


def _accuracy(chosen: argparse.Namespace) -> int:
    from agg_core.lab.accuracy import AccuracyReport, accuracy_steps, error_by_groups
    from agg_core.lab.experiments import EXPERIMENTS

    names = [chosen.experiment] if chosen.experiment else list(EXPERIMENTS)
    settings = [EXPERIMENTS[n].quick if chosen.quick else EXPERIMENTS[n].full for n in names]
    steps = accuracy_steps(settings, None if chosen.experiment else error_by_groups)
    report = _watched(steps, AccuracyReport, _run_of)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if chosen.json else report.to_text())
    return 0


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None] | None]] = {
    "app": ("start the dashboard", None),
    "inspect": ("say what a file holds and what was guessed", _add_inspect),
    "counts": ("count people by cell and step, in files of any size", _add_counts),
    "trips": ("count trips of nobody as an origin-destination table", _add_trips),
    "learn": ("learn flows from groups and compare with the truth", _add_learn),
    "flows": ("write a saved result as a file of some format", _add_flows),
    "bench": ("measure the learners on made data", _add_bench),
}
"""Commands: what each does, and what adds its options."""


def program() -> int:
    """`main` as a process of its own, which may set up how its threads wait."""
    wait_asleep()
    return main()


if __name__ == "__main__":
    sys.exit(program())
