"""``python -m benchmarks big-files``: a log larger than it looks, to counts, beside DuckDB.

A made log (people at random among places, in order of time) is written as Parquet and as CSV.
Then each side counts people per cell (50 x 50) and half hour, each in a process of its own:
CPU seconds are user + system from its start to its answer. Last, a log of ``--partitioned`` rows is
written as a folder with a partition a day, and counted in the same way; the memory that this takes
is to stay below 2 GB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.big_files.contest import SIDES, Figures, figures_of
from benchmarks.big_files.log import LogSettings, write_folder, write_logs

__all__ = ["main"]

FIXES_A_PERSON = 1_000
MOST_MB = 2_000
"""Peak memory that the counting of the folder may take."""
NAMES = {"ours": "ours", "duck": "DuckDB"}


def main(arguments: Sequence[str]) -> int:
    """Write the log, count it by both sides; the exit code is 1 if ours is not the cheaper one."""
    chosen = _parser().parse_args(arguments)
    people = chosen.people or max(chosen.rows // FIXES_A_PERSON, 1)
    settings = LogSettings(chosen.rows, people)
    with tempfile.TemporaryDirectory(prefix="big-files-") as temporary:
        folder = chosen.folder or Path(temporary)
        files = _logs(settings, folder)
        print(
            f"{settings.rows:,} fixes of {settings.people:,} people over {settings.days} days "
            "to 50 x 50 cells and bins of 30 min",
            flush=True,
        )
        better = [_contest(path, settings) for path in files]
        if chosen.partitioned:
            better.append(_partitioned(chosen.partitioned, Path(temporary)))
    return 0 if all(better) else 1


def _partitioned(rows: int, temporary: Path) -> bool:
    """Whether a partitioned folder is counted in the memory that it may take; it is deleted."""
    settings = LogSettings(rows, max(rows // FIXES_A_PERSON, 1))
    folder = temporary / "partitioned"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as maker:
        maker.submit(write_folder, settings, folder).result()
    n_files = sum(1 for _ in folder.rglob("*.parquet"))
    print(f"{rows:,} fixes of {settings.people:,} people in {n_files:,} files", flush=True)
    figures = {side: figures_of(side, folder, settings.bounds) for side in SIDES}
    for side, found in figures.items():
        print(_line("folder", NAMES[side], found), flush=True)
    same = figures["ours"].checksum == figures["duck"].checksum
    within = figures["ours"].peak_mb <= MOST_MB
    ratio = figures["ours"].cpu_s / figures["duck"].cpu_s
    print(
        f"  CPU of ours : DuckDB = {ratio:.2f}, "
        f"{'same checksum' if same else 'the answers differ'}, peak "
        f"{'within' if within else 'above'} {MOST_MB:,} MB",
        flush=True,
    )
    return same and within


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks big-files", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rows", type=_whole, default=20_000_000, metavar="N", help="2e7")
    parser.add_argument(
        "--people", type=_whole, metavar="N", help="one for each 1,000 rows if not given"
    )
    parser.add_argument(
        "--partitioned", type=_whole_or_none, default=100_000_000, metavar="N",
        help="rows of the folder, 1e8; 0 leaves it out",
    )  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, help="where the files are kept and, if there already, taken from"
    )
    return parser


def _whole(text: str) -> int:
    number = float(text)
    if number != int(number) or number < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number from 1 on, not {text}")
    return int(number)


def _whole_or_none(text: str) -> int:
    return 0 if text == "0" else _whole(text)


def _logs(settings: LogSettings, folder: Path) -> list[Path]:
    """The log as Parquet and CSV, made in a process of its own if it is not there."""
    stem = f"log-{settings.rows}-{settings.people}"
    parquet, text = folder / f"{stem}.parquet", folder / f"{stem}.csv"
    if not (parquet.exists() and text.exists()):
        parts = [path.with_name(f"{path.name}.part") for path in (parquet, text)]
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as maker:
            maker.submit(write_logs, settings, *parts).result()
        for part, path in zip(parts, (parquet, text), strict=True):
            part.replace(path)
    return [parquet, text]


def _contest(path: Path, settings: LogSettings) -> bool:
    """Whether ours gives the same answer for no more CPU seconds."""
    figures = {side: figures_of(side, path, settings.bounds) for side in SIDES}
    for side, found in figures.items():
        print(_line(path.suffix[1:], NAMES[side], found), flush=True)
    ours, theirs = figures["ours"], figures["duck"]
    if ours.checksum != theirs.checksum:
        print("  the answers differ", file=sys.stderr)
        return False
    print(f"  CPU of ours : DuckDB = {ours.cpu_s / theirs.cpu_s:.2f}, same checksum", flush=True)
    return ours.cpu_s <= theirs.cpu_s


def _line(kind: str, name: str, found: Figures) -> str:
    return (
        f"  {kind:8s}{name:8s}CPU {found.cpu_s:6.2f} s  wall {found.wall_s:6.2f} s  "
        f"peak {found.peak_mb:6,.0f} MB  {found.rows:,} counts  checksum {found.checksum}"
    )
