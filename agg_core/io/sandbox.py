"""Files of strangers are read by a process of their own, which may take so much and no more.

The process sees a folder with the content and the choices, reads in the same way as everybody
(`converting_steps`), and leaves the canonical table; nothing else ever opens the content. It keeps
its limits on time and memory itself (`confine`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agg_core.base.errors import InputError
from agg_core.base.processes import (
    PROGRESS,
    Limits,
    Process,
    confine,
    confined_main,
    leaving_faults,
    start_confined,
    too_much,
    write_json,
)
from agg_core.io.choices import Choices
from agg_core.io.contents import content_bytes
from agg_core.io.reading import ReadingProgress, columns_of, converting_steps
from agg_core.tables.trajectories import Trajectories, read_canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from agg_core.io.counts.choices import CountChoices
    from agg_core.io.gate_files import Parts
    from agg_core.tables.counts import CountTable
    from agg_core.tables.gates import GateTable
    from agg_core.tables.table_report import TableReport

__all__ = ["Kind", "Reading", "main", "start_reading"]

CONTENT, CHOICES, COLUMNS = "content", "choices.json", "columns.json"
REPORT = "report.json"
KIND, RESULT = "kind.json", "result.parquet"
MOST_FIXES = 30_000_000
"""Fixes that are held at once at most: about 100 bytes each."""

Kind = Literal["trajectories", "counts", "gates", "trips", "auto"]
"""What files are read as; "auto" finds out which of these they hold."""

Content = bytes | Path
Beside = Mapping[str, Mapping[str, Content]]
"""Files by name that go with those of entries, by what they hold: see `gate_files.BESIDE`."""


class Reading(Process):
    """A process that reads files. It ends done, failed (`fault` says why) or cancelled."""

    @property
    def progress(self) -> ReadingProgress | None:
        """How far it is; None before the first rows."""
        told = self.left(PROGRESS)
        return None if told is None else ReadingProgress(**told)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file to choose from; none if it could not be opened."""
        return tuple((self.left(COLUMNS) or {}).get("columns", ()))

    @property
    def examples(self) -> tuple[str, ...]:
        """A value of each column, where the file does not name them."""
        return tuple((self.left(COLUMNS) or {}).get("examples", ()))

    @property
    def kind(self) -> Literal["trajectories", "counts", "gates", "trips"]:
        """What the files were read as, once it is done; trips of nobody are counted."""
        found = self.left(KIND)
        return found if found in ("counts", "gates", "trips") else "trajectories"

    def result(self) -> Trajectories:
        """What was read.

        Raises
        ------
        InputError
            If reading failed: the sentence of the reader, or that a limit was met; or if it has
            more than `MOST_FIXES` to be held in memory.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415

        path = self._read()
        n_fixes = pq.read_metadata(path).num_rows
        if n_fixes > MOST_FIXES:
            raise InputError(
                f"There are {n_fixes:,} fixes, and {MOST_FIXES:,} can be held at once; read fewer "
                "days or a smaller extent, or count them by the command counts.",
                code="too-many-fixes",
            )
        return read_canonical(path)

    def counts(self) -> CountTable:
        """What was read of files of counts.

        Raises
        ------
        InputError
            As `result`.
        """
        from agg_core.tables.counts import open_counts  # noqa: PLC0415

        return open_counts(self._read())

    def gates(self) -> GateTable:
        """What was read of files of entries and exits.

        Raises
        ------
        InputError
            As `result`.
        """
        from agg_core.tables.gates import open_gates  # noqa: PLC0415

        return open_gates(self._read())

    def trips(self) -> tuple[pd.DataFrame, TableReport]:
        """The origin-destination table of trips, as `count_trips` makes it, and its account.

        Raises
        ------
        InputError
            If reading failed.
        """
        import pandas as pd  # noqa: PLC0415

        from agg_core.tables.table_report import TableReport  # noqa: PLC0415

        table = pd.read_parquet(self._read())
        return table, TableReport.from_dict(self.left(REPORT))

    def _read(self) -> Path:
        if self.state != "done":
            raise self.fault
        return self.folder / RESULT


def start_reading(
    files: Mapping[str, Content],
    choices: Choices | CountChoices,
    folder: Path,
    limits: Limits | None = None,
    *,
    kind: Kind = "trajectories",
    beside: Beside | None = None,
) -> Reading:
    """Begin to read uploaded files (name to content) in a process of its own.

    ``folder`` must not exist yet. Names stay names: the files lie under numbers. What has a path, a
    file or a folder of this machine, is read where it lies. ``kind`` says what they hold; choices
    of the other kind are not used. With ``beside`` the files are entries, and these go with them.
    """
    folder.mkdir(mode=0o700)
    parts = [("", files), *(beside or {}).items()]
    every = [(part, name, content) for part, some in parts for name, content in some.items()]
    names, paths = list(files), []
    for number, (_, _, content) in enumerate(every):
        path = content if isinstance(content, Path) else folder / f"{CONTENT}.{number}"
        if not isinstance(content, Path):
            path.write_bytes(content)
        paths.append(str(path.absolute()))
    of_counts = not isinstance(choices, Choices)
    told = {
        "names": names,
        "paths": paths[: len(names)],
        "beside": [
            (part, name, path) for (part, name, _), path in zip(every, paths, strict=True) if part
        ],
        "choices": choices.to_dict(),
        "of_counts": of_counts,
        "kind": kind,
    }
    (folder / CHOICES).write_text(json.dumps(told), encoding="utf-8")
    limits = limits or Limits.of_size(sum(content_bytes(content) for _, _, content in every))
    process = start_confined("agg_core.io.sandbox", folder, limits)
    return Reading(process, folder, RESULT, too_much(_called(names)))


def _called(names: Sequence[str]) -> str:
    """What sentences call the files."""
    return names[0] if len(names) == 1 else "These files"


def main(folder: Path, limits: Limits) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    told = json.loads((folder / CHOICES).read_text(encoding="utf-8"))
    confine(limits, folder, _called(told["names"]))
    files = dict(zip(told["names"], map(Path, told["paths"]), strict=True))
    with leaving_faults(folder, too_much(_called(told["names"]), "memory")):
        part = folder / f"{RESULT}.part"
        for step in _steps(files, told, part, folder):
            if step.columns:
                told_columns = {"columns": step.columns, "examples": step.examples}
                write_json(folder / COLUMNS, told_columns)
            else:
                write_json(folder / PROGRESS, {"rows": step.rows, "share": step.share})
        part.rename(folder / RESULT)


def _steps(
    files: Mapping[str, Path], told: dict[str, Any], part: Path, folder: Path
) -> Iterator[ReadingProgress]:
    """Steps of reading the files as what they are said to be, or as what they hold."""
    given, of_counts, kind = told["choices"], told["of_counts"], told["kind"]
    choices = Choices() if of_counts else Choices.from_dict(given)
    if kind == "trajectories":
        return _people_steps(files, choices, part, folder)
    if kind == "trips":
        return _trip_steps(files, choices, part, folder)
    from agg_core.io.counts import CountChoices, counting_steps, holds_counts  # noqa: PLC0415
    from agg_core.io.gate_files import gate_steps  # noqa: PLC0415

    of_file = CountChoices.from_dict(given) if of_counts else CountChoices()
    gates = _gates_of(files, told)
    if gates is not None:
        write_json(folder / KIND, "gates")
        return gate_steps(gates, of_file, part)
    if kind == "auto" and not holds_counts(files):
        return _people_steps(files, choices, part, folder)
    write_json(folder / KIND, "counts")
    return counting_steps(files, of_file, part)


def _gates_of(files: Mapping[str, Path], told: dict[str, Any]) -> Parts | None:
    """The files as entries and what goes with them, if they are said to be, or are found so."""
    from agg_core.io.gate_files import parts_of_gates  # noqa: PLC0415

    found: Parts | None = None
    if told["kind"] in ("gates", "auto"):
        with suppress(InputError):  # what cannot be opened is told by whoever reads it
            found = parts_of_gates(files)
    if told["kind"] == "gates":
        beside: dict[str, dict[str, Path]] = {}
        for part, name, path in told["beside"]:
            beside.setdefault(part, {})[name] = Path(path)
        found = {**(found or {"entries": files}), **beside}
    return found


def _trip_steps(
    files: Mapping[str, Path], choices: Choices, part: Path, folder: Path
) -> Iterator[ReadingProgress]:
    """Steps of counting trips by where they begin and end."""
    from agg_core.io.known_tables import open_table  # noqa: PLC0415
    from agg_core.io.trips import TRIP_CHOICES, count_trips  # noqa: PLC0415

    write_json(folder / KIND, "trips")
    yield columns_of(open_table(files, "The table"))
    stated = {name: getattr(choices, name) for name in TRIP_CHOICES}
    counted = count_trips(files, Choices(where=choices.where, columns=choices.columns, **stated))
    counted.table.to_parquet(part)
    write_json(folder / REPORT, counted.report.to_dict())


def _people_steps(
    files: Mapping[str, Path], choices: Choices, part: Path, folder: Path
) -> Iterator[ReadingProgress]:
    """Steps of reading people; trips that nobody is named for are counted instead.

    Raises
    ------
    InputError
        As `converting_steps`; what a table holds instead of people is said.
    """
    from agg_core.io.kinds import explained  # noqa: PLC0415

    try:
        yield from converting_steps(files, choices, part)
    except InputError as fault:
        if fault.code != "nameless-trips":
            raise explained(fault, files, choices) from fault
        found_by_name = replace(choices, columns=())
        yield from _trip_steps(files, found_by_name, part, folder)


if __name__ == "__main__":
    confined_main(main)
