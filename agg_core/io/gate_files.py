"""Files of entries and exits, told apart when several come together, and read step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import PurePath

from agg_core.io.counts.choices import CountChoices
from agg_core.io.gates import read_gates
from agg_core.io.guess.ends import words_of
from agg_core.io.guess.ways import ENTRY_NAMES, EXIT_NAMES
from agg_core.io.kinds import kind_of_file
from agg_core.io.known_tables import open_table
from agg_core.io.reading import ReadingProgress, columns_of
from agg_core.tables.gates import GateTable, write_gates

__all__ = ["BESIDE", "Parts", "gate_steps", "gates_of_files", "parts_of_gates"]

Content = str | PathLike[str] | bytes

BESIDE = ("exits", "places", "distances")
"""What may come in files of its own beside the entries."""

Parts = Mapping[str, Mapping[str, Content]]
"""Files by name, by what they hold: "entries", and of `BESIDE`."""

WRITING = 0.9
_SIDES = {"entries": frozenset(ENTRY_NAMES) | {"enter"}, "exits": frozenset(EXIT_NAMES) | {"leave"}}


def parts_of_gates(files: Mapping[str, Content]) -> Parts | None:
    """Which files hold entries, exits and stations; None where they are no gates.

    One table of both, perhaps with a table of stations; or two tables of which the name of the
    file, or of a column, says in which direction people were counted.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    kinds = {name: kind_of_file({name: content}) for name, content in files.items()}
    places = {name: files[name] for name, kind in kinds.items() if kind == "places"}
    counted = [name for name in files if name not in places]
    beside = {"places": places} if places else {}
    if len(places) > 1:
        return None
    if len(counted) == 1:
        found = {counted[0]: files[counted[0]]}
        return {"entries": found, **beside} if kinds[counted[0]] == "gates" else None
    if len(counted) != len(_SIDES) or not all(
        kinds[each] in ("gates", "counts") for each in counted
    ):
        return None
    sides = {_side_of(name, files[name]): {name: files[name]} for name in counted}
    if sides.keys() != _SIDES.keys():
        return None
    return {"entries": sides["entries"], "exits": sides["exits"], **beside}


def _side_of(name: str, content: Content) -> str | None:
    """The direction that the name of a file tells, or else its columns; None where both do."""
    texts = [[PurePath(name).stem], open_table({name: content}, name).names]
    for some in texts:
        words = {word for text in some for word in words_of(text)}
        told = [side for side, known in _SIDES.items() if words & known]
        if len(told) == 1:
            return told[0]
    return None


def gate_steps(
    parts: Parts, choices: CountChoices, path: str | PathLike[str]
) -> Iterator[ReadingProgress]:
    """Read files into one at ``path`` for `open_gates`, telling how far it is.

    Raises
    ------
    InputError
        As `read_gates`.
    """
    yield columns_of(open_table(parts["entries"], "The table"))
    table = gates_of_files(parts, choices)
    rows = sum(side.report.rows_read for side in (table.entries, table.exits))
    yield ReadingProgress(rows, WRITING)
    write_gates(table, path)


def gates_of_files(parts: Parts, choices: CountChoices | None = None) -> GateTable:
    """Read files as what they are said to hold.

    Raises
    ------
    InputError
        As `read_gates`.
    """
    return read_gates(
        parts["entries"], parts.get("exits"), parts.get("places"),
        distances=parts.get("distances"), choices=choices,
    )  # fmt: skip
