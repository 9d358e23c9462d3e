"""``agg-core counts``: people by cell and step, in files of any size."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain, islice

from agg_core.cli.cells import (
    add_extent_option,
    add_grid_options,
    extent_told,
    extent_words,
    grid_of,
    is_suggested,
)
from agg_core.cli.console import aside_lines
from agg_core.cli.options import add_file_options, choices_of, option_fields, source_of
from agg_core.io import Choices
from agg_core.io.checks import OF_TRACKS
from agg_core.io.fixes import Fixes, FixReader
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.streaming import count_cells
from agg_core.space import AreaGrid
from agg_core.space.grid import Bounds
from agg_core.study.suggest import PlaceSample, suggest_extent
from agg_core.tables.sequences import nothing_inside

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading that need no look at whole tracks, cells, and steps."""
    add_file_options(parser, (name for name in option_fields(Choices) if name not in OF_TRACKS))
    add_extent_option(parser)
    add_grid_options(parser)
    parser.add_argument("--step", default="30min", metavar="TIME", help="step of time: 30min, 1h")
    parser.add_argument(
        "--max-gap", metavar="TIME", help="longest time that a person is carried on"
    )


def run(chosen: argparse.Namespace) -> int:
    """Print people by step of the local clock and cell, as CSV; with --json, how many of what.

    What is left out is told beside the CSV. Every row that is kept counts, but a person once.

    Raises
    ------
    InputError
        If the file cannot be read, or nobody is in the cells.
    """
    choices, source = choices_of(chosen, Choices), source_of(chosen)
    settings = grid_of(chosen, lambda: _extent_of_file(source, choices))
    grid = settings if isinstance(settings, AreaGrid) else settings.make()
    reader = FixReader(open_source(source, choices), choices)
    batches = reader.batches()
    first = list(islice(batches, 1))  # tells the zone of the clock
    spans: list[Bounds] = []
    kept: list[int] = []

    def fixes() -> Iterator[Fixes]:
        for f in chain(first, batches):
            kept.append(len(f))
            if len(f):
                spans.append((f.lon.min(), f.lat.min(), f.lon.max(), f.lat.max()))
            yield f

    table = count_cells(fixes(), grid, chosen.step, reader.timezone, chosen.max_gap)
    reader.account.need_rows(len(spans))
    if (table["cell"] == grid.n_cells).all():
        west, south, east, north = zip(*spans, strict=True)
        raise nothing_inside(grid.bounds, (min(west), min(south), max(east), max(north)))
    set_aside = reader.account.result()
    if chosen.json:
        aside = {cause: rows.count for cause, rows in set_aside.items()}
        told = {"rows_read": reader.rows_read, "rows_kept": sum(kept), "set_aside": aside}
        told |= {"timezone": reader.timezone}
        told |= {"individuals": len(reader.user_ids), "counts": len(table)}
        print(json.dumps({**told, **extent_told(chosen, grid)}))
        return 0
    if is_suggested(chosen):
        print(extent_words(grid.bounds), file=sys.stderr)
    for line in aside_lines(set_aside):
        print(f"agg-core: {line}", file=sys.stderr)
    table.to_csv(sys.stdout, index=False, lineterminator="\n")
    return 0


def _extent_of_file(file: Source, choices: Choices) -> Bounds:
    """Where nearly all fixes of a file of any size lie; the file is read once for that."""
    reader, sample = FixReader(open_source(file, choices), choices), PlaceSample()
    for fixes in reader.batches():
        sample.add(fixes.lon, fixes.lat)
    reader.account.need_rows(len(sample.lon))
    return suggest_extent(sample.lon, sample.lat)
