"""Many files as one source: a folder, a zip archive, or several uploads of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.account import shifted
from agg_core.io.choices import Choices
from agg_core.io.contents import Data
from agg_core.io.flights import are_flights, place_table, with_places
from agg_core.io.guess.columns import ColumnChoice, find_columns
from agg_core.io.held import Member, Opener, Shelf, check_number, of_one_kind
from agg_core.io.layouts import laid_out
from agg_core.io.place_tables import is_place_table, lacks_places, with_place_table
from agg_core.io.slot_tables import is_slot_table, names_slots, with_slot_table
from agg_core.io.source import RawRows, RawSource

__all__ = ["ID_KINDS", "SHARED", "joined"]

MOST_LOOKED_AT = 50
"""Files that are looked at for a table of places."""

SHARED, PER_FILE, PER_FOLDER = ID_KINDS = ("shared", "per file", "per folder")


@dataclass(frozen=True)
class _Opened:
    name: str
    source: RawSource
    columns: ColumnChoice

    @property
    def roles(self) -> frozenset[str]:
        return frozenset(self.columns.positions) - {"user_id"}


def joined(
    members: Sequence[Member], name: str, choices: Choices, opener: Opener, plain_opener: Opener
) -> RawSource:
    """The files that hold fixes, one after the other, as one source with a column for each role.

    Files of another kind than most are passed over and named. The same id in two files is the
    same person, unless ``choices.ids`` or the layout says otherwise; files whose rows name nobody
    are of one person each, or of one person a folder where they lie in several. A table of places
    goes with tables that name these by a key; one such table stays as it is, with the
    places. A table of slots of time goes with tables that number these.
    ``plain_opener`` opens a file without a look at its layout.

    Raises
    ------
    InputError
        If none of the files can be read.
    """
    check_number(len(members), name)
    slots = _slots_of(members, plain_opener)
    if slots is not None:
        member, table = slots
        members = [each for each in members if each.name != member.name]
        opener, plain_opener = (
            _with_slots(each, table, printable(member.name)) for each in (opener, plain_opener)
        )
        if len(members) == 1:
            only = members[0]
            return laid_out(opener(only.read(), printable(only.name)), choices, name)
    tables, rest = _tables_with_places(members, choices, plain_opener)
    if len(tables) == 1 and not rest:
        return next(iter(tables.values()))
    opened, refused = _opened(rest, choices, opener, tables)
    if not opened:
        reason = next(iter(refused.values()))
        raise InputError(
            f"{name} holds no file that can be read; of the first: {reason}",
            code="no-readable-file",
        )
    usual, told = of_one_kind([(each.name, each.roles) for each in opened], refused)
    kept = [each for each in opened if each.roles == usual]
    roles = ["user_id", *sorted(usual)]
    ids, owners = _ids(kept, choices), _owners([each.name for each in kept])

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        before, types = 0, dict[int, pa.DataType]()
        for number, part in enumerate(kept):
            at = part.columns.positions
            inputs = [at[roles[i]] for i in positions if roles[i] in at]
            seen = 0
            for rows in part.source.batches(inputs):
                columns = {
                    i: _column(rows, at.get(roles[i]), types.get(i))
                    if roles[i] != "user_id"
                    else _people(rows, at.get("user_id"), part.name, ids, owners)
                    for i in positions
                }
                types = {i: column.type for i, column in columns.items()} | types
                share = (number + rows.share) / len(kept)
                yield replace(
                    rows, columns=columns, line_numbers=shifted(rows.line_numbers, before),
                    share=share,
                )  # fmt: skip
                seen += rows.n_rows
            before += seen

    first = kept[0]
    sample = [
        [
            row[first.columns.positions[role]] if role in first.columns.positions else ""
            for role in roles
        ]
        for row in first.source.sample[:50]
        if len(row) == len(first.source.names)
    ]
    guesses = {**first.columns.guesses, **first.source.guesses, "files": told}
    others = tuple(kind for kind in ID_KINDS if kind != ids)
    guesses["ids"] = Guess(ids, others, option="ids")
    zone = first.columns.timezone or first.source.timezone
    return RawSource(
        tuple(roles), True, sample, guesses=guesses, timezone=zone, stream=stream,
        in_degrees=first.source.in_degrees,
        is_of_one=all(each.source.is_of_one for each in kept),
    )  # fmt: skip


def _slots_of(members: Sequence[Member], opener: Opener) -> tuple[Member, RawSource] | None:
    """The table of slots among a few files of which another numbers them."""
    if not 2 <= len(members) <= MOST_LOOKED_AT:
        return None
    found, needed = [], False
    for member in members:
        try:
            source = opener(member.read(), printable(member.name))
        except InputError:
            continue
        if is_slot_table(source):
            found.append((member, source))
        needed |= names_slots(source) is not None
    return found[0] if len(found) == 1 and needed else None


def _with_slots(opener: Opener, slots: RawSource, name: str) -> Opener:
    def opened(data: Data, shown: str) -> RawSource:
        source = opener(data, shown)
        return source if names_slots(source) is None else with_slot_table(source, slots, name)

    return opened


def _tables_with_places(
    members: Sequence[Member], choices: Choices, opener: Opener
) -> tuple[dict[str, RawSource], list[Member]]:
    """Tables that name places by a key, with these, if a table of places is among the files.

    And the files that are neither; nothing is taken where there is no table of places, or none
    that needs it.
    """
    if len(members) < 2:
        return {}, list(members)
    places: list[tuple[Member, RawSource]] = []
    lacking: list[tuple[Member, RawSource]] = []
    for member in members[:MOST_LOOKED_AT]:
        try:
            source = opener(member.read(), printable(member.name))
        except InputError:
            continue
        if are_flights(source):
            return {}, list(members)
        if is_place_table(source):
            places.append((member, source))
        elif lacks_places(source, dict(choices.columns)):
            lacking.append((member, source))
    if not places or not lacking:
        return {}, list(members)
    table, where = places[0]
    found = {}
    for member, source in lacking:
        called = printable(table.name)
        placed = with_place_table(source, where, called, choices.places_key)
        found[member.name] = laid_out(placed, choices, printable(member.name))
    used = {member.name for member, _ in (*places, *lacking)}
    return found, [member for member in members if member.name not in used]


def _opened(
    members: Sequence[Member],
    choices: Choices,
    opener: Opener,
    tables: Mapping[str, RawSource],
) -> tuple[list[_Opened], dict[str, str]]:
    """The files that can be read, and why others cannot."""
    sources: dict[str, RawSource] = dict(tables)
    refused: dict[str, str] = {}
    shelf = Shelf(opener)
    for member in members:
        try:
            sources[member.name] = shelf.open(member)
        except InputError as fault:
            refused[member.name] = str(fault)
    journeys = [path for path, source in sources.items() if are_flights(source)]
    if journeys:
        found = [(path, place_table(source)) for path, source in sources.items()]
        table = next((table for _, table in found if table is not None), None)
        for path, places in found:
            if places is not None:
                del sources[path]
        sources |= {path: with_places(sources[path], table, path) for path in journeys}
    opened: list[_Opened] = []
    for path, source in sources.items():
        try:
            opened.append(_Opened(path, source, find_columns(source, dict(choices.columns))))
        except InputError as fault:
            refused[path] = str(fault)
    return opened, refused


def _ids(kept: Sequence[_Opened], choices: Choices) -> str:
    """Whether ids hold for all files, or for one, or for the files of a folder."""
    if choices.ids is not None:
        return choices.ids
    nameless = any("user_id" not in each.columns.positions for each in kept)
    own = any(each.source.ids_end_with_file for each in kept)
    if not (nameless or own):
        return SHARED
    return PER_FOLDER if nameless and len({_folder(each.name) for each in kept}) > 1 else PER_FILE


def _owners(paths: Sequence[str]) -> dict[str, str]:
    """What to call the person of each file: by its name, with its folders where two are alike."""
    stems = [PurePosixPath(path).stem for path in paths]
    number = Counter(stems)
    return {
        path: stem if number[stem] == 1 else PurePosixPath(path).with_suffix("").as_posix()
        for path, stem in zip(paths, stems, strict=True)
    }


def _folder(path: str) -> str:
    """The folder that a file lies in, but for one that is called so in every person's folder."""
    parts = [part for part in PurePosixPath(path).parts[:-1] if part != "Trajectory"]
    return parts[-1] if parts else ""


def _people(
    rows: RawRows, at: int | None, path: str, ids: str, owners: Mapping[str, str]
) -> pa.ChunkedArray:
    owner = _folder(path) if ids == PER_FOLDER else owners[path]
    if at is None:
        return pa.chunked_array([pa.repeat(pa.scalar(owner), rows.n_rows)])
    text = rows.columns[at].cast(pa.string())
    if ids == SHARED:
        return text
    return pc.binary_join_element_wise(pa.scalar(owner), pc.fill_null(text, ""), "/")


def _column(rows: RawRows, at: int | None, kind: pa.DataType | None) -> pa.ChunkedArray:
    assert at is not None  # every file has the usual roles
    column = rows.columns[at]
    if kind is None or column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise InputError(
            f"The files hold {kind} and {column.type} in one column; read them one by one.",
            code="mixed-column-types",
        ) from error
