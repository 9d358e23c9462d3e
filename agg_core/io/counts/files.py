"""Files of counts, opened: one or many of one kind, snapshots of stations, tables of places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path, PurePath

import pandas as pd
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable, printable_apart
from agg_core.io.account import Account, shifted
from agg_core.io.archives import check_archive
from agg_core.io.contents import Data, read_content
from agg_core.io.counts.cells import NAME_LETTERS
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.columns import ROLES, SIDES, looks_like_counts
from agg_core.io.counts.gbfs import Snapshots, recognises_gbfs
from agg_core.io.counts.numbered import GridHint, hint_of
from agg_core.io.counts.unfolded import TRANSPOSED, headed, time_columns, unfolded
from agg_core.io.counts.values import stacked, without_zeros
from agg_core.io.formats.parquet import open_frame
from agg_core.io.formats.parquet_folder import holds_parquet, open_parquet_folder
from agg_core.io.formats.registry import FORMATS, HEAD_BYTES, Source, open_content
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import plain_name, position_named
from agg_core.io.guess.times import looks_like_time
from agg_core.io.held import Member, Shelf, check_number, files_in, members_of, of_one_kind
from agg_core.io.layouts import places_of
from agg_core.io.source import RawSource
from agg_core.io.texts import to_float

__all__ = ["CountSource", "Loaded", "first_table", "open_count_files"]

_NO_PLACES = frozenset(
    (*ROLES["time"], *ROLES["date"], *ROLES["clock"], *PERSON_ROLES["time"])
) - {"from", "start"}  # fmt: skip


_SIZES = (("rows", "nrows", "ny"), ("cols", "columns", "ncols", "nx"))


@dataclass(frozen=True)
class Loaded:
    """Whole columns by position, n rows each, and the account of rows that could not be split."""

    columns: Mapping[int, pa.ChunkedArray]
    n_rows: int
    account: Account
    n_unsplit: int


@dataclass(frozen=True)
class CountSource:
    """Opened tables of the same columns, one after the other, and where cells lie."""

    parts: tuple[RawSource, ...]
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    places: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    grid: GridHint | None = None

    @property
    def first(self) -> RawSource:
        """The first table, which names the columns."""
        return self.parts[0]

    def load(self, positions: Sequence[int]) -> Loaded:
        """The columns at these positions, whole."""
        account = Account()
        pieces: dict[int, list[pa.ChunkedArray]] = {position: [] for position in positions}
        n_rows = n_unsplit = before = 0
        for part in self.parts:
            for rows in part.batches(positions):
                account.follow(n_rows, shifted(rows.line_numbers, before))
                account.add_counted(rows.set_aside)
                n_unsplit += sum(aside.count for aside in rows.set_aside.values())
                for position, found in pieces.items() if rows.columns else ():
                    found.append(rows.columns[position])
                n_rows += rows.n_rows
            before = n_rows
        columns = {position: stacked(found) for position, found in pieces.items()}
        return Loaded(columns, n_rows, account, n_unsplit)


def open_count_files(
    source: Source, choices: CountChoices, filename: str | None = None
) -> CountSource:
    """Open a file, folder, archive or several files; those of the same columns are one table.

    Snapshots of stations (GBFS) become rows; a table of names with longitude and latitude, and no
    times, says where cells lie; one row with the sides of an extent, where numbered ones do.

    Raises
    ------
    InputError
        If none can be read.
    """
    if isinstance(source, pd.DataFrame):
        return _source_of([("The table", _in_rows(open_frame(source), choices))], {}, {})
    folder = _parquet_folder(source, choices)
    if folder is not None:
        return _source_of([folder], {}, {})
    snapshots, tables = Snapshots(), list[tuple[str, RawSource]]()
    faults: dict[str, InputError] = {}
    beside: list[tuple[str, RawSource]] = []
    places: dict[str, tuple[float, float]] = {}
    grid: GridHint | None = None
    shelf = Shelf(partial(_opened, choices))
    for member, content in _members(source, filename):
        try:
            opened = _table_of(member, content, snapshots, shelf)
            if opened is None:
                continue
            found, hint = _places_of(opened), _grid_of(opened)
        except InputError as fault:
            faults[member.name] = fault
            continue
        places |= found
        grid = hint or grid
        (beside if found or hint else tables).append((member.name, opened))
    if len(faults) + len(beside) == 1 and not tables and not snapshots.n_documents:
        if faults:
            raise next(iter(faults.values()))
        tables, places, grid = beside, {}, None
    refused = {name: str(fault) for name, fault in faults.items()}
    if snapshots.n_documents:
        tables.insert(0, ("The snapshots", open_frame(snapshots.to_frame())))
        places |= snapshots.places
    if not tables:
        reason = next(iter(refused.values()), "they only tell where places lie")
        raise InputError(
            f"None of the files holds a table of counts: {reason}", code="no-table-of-counts"
        )
    return replace(_source_of(tables, places, refused), grid=grid)


def _table_of(
    member: Member, content: Data | None, snapshots: Snapshots, shelf: Shelf
) -> RawSource | None:
    """The table that a file holds; None for snapshots, which are taken."""
    content = member.read() if content is None else content
    if not recognises_gbfs(content[:HEAD_BYTES]):
        return shelf.open(member, content)
    snapshots.take(content, member.name)
    return None


def _opened(choices: CountChoices, content: Data, name: str) -> RawSource:
    """A table; a first row with names of times is a header, though codes are no names."""
    opened = open_content(content, name, choices.of_file())
    if not opened.has_header and choices.header is None and opened.sample:
        first, *rows = opened.sample
        if _NO_PLACES & {plain_name(value) for value in first} or time_columns(first, rows):
            opened = open_content(content, name, replace(choices.of_file(), header=True))
            opened = opened if opened.has_header else headed(opened)
    return _in_rows(opened, choices)


def _in_rows(source: RawSource, choices: CountChoices) -> RawSource:
    """The table with a row per time and cell, if it has a row per cell and a column per time.

    Raises
    ------
    InputError
        If it is said to, and has not.
    """
    if choices.layout not in (None, TRANSPOSED):
        return source
    found = unfolded(source)
    if choices.layout == TRANSPOSED and found.stream is source.stream:
        raise InputError(
            "The file is no transposed table: its columns are not called by times; leave the "
            "layout open.",
            code="layout-mismatch",
        )
    return found


def first_table(source: Source, choices: CountChoices) -> RawSource | None:
    """The first table of the files that is none of places; None for snapshots of stations.

    Raises
    ------
    InputError
        If it cannot be read, or there is none.
    """
    if isinstance(source, pd.DataFrame):
        return _in_rows(open_frame(source), choices)
    folder = _parquet_folder(source, choices)
    if folder is not None:
        return folder[1]
    first_fault: InputError | None = None
    for member, at_hand in _members(source, None):
        try:
            content = member.read() if at_hand is None else at_hand
            if recognises_gbfs(content[:HEAD_BYTES]):
                return None
            opened = _opened(choices, content, member.name)
        except InputError as fault:
            first_fault = first_fault or fault
            continue
        if not _places_of(opened) and _grid_of(opened) is None:
            return opened
    if first_fault is not None:
        raise first_fault
    raise InputError("The files hold no table.", code="no-table-of-counts")


def _parquet_folder(source: Source, choices: CountChoices) -> tuple[str, RawSource] | None:
    """A folder of Parquet whose one table looks like counts, and its name; None for all else."""
    if isinstance(source, Mapping) and len(source) == 1:
        source = next(iter(source.values()))
    if not (isinstance(source, str | PathLike) and Path(source).is_dir()):
        return None
    folder = Path(source)
    paths = files_in(folder)
    table = open_parquet_folder(folder, paths) if holds_parquet(paths) else None
    if table is None:
        return None
    table = _in_rows(table, choices)
    return (printable(folder.name or "The folder"), table) if _fits(table) else None


def _source_of(
    tables: Sequence[tuple[str, RawSource]],
    places: Mapping[str, tuple[float, float]],
    refused: Mapping[str, str],
) -> CountSource:
    """The tables whose columns are those of most, of those that look like counts if any do."""
    likely = [each.names for _, each in tables if len(tables) > 1 and _fits(each)]
    kinds = [(name, each.names) for name, each in tables]
    usual, told = of_one_kind(kinds, refused, likely, " tables")
    kept = [source for _, source in tables if source.names == usual]
    guesses = dict(kept[0].guesses)
    if len(tables) + len(refused) > 1:
        guesses["files"] = told
    if places:
        guesses["places"] = Guess(f"{len(places):,} named places", (), "from another table")
    return CountSource(tuple(kept), guesses, places)


def _fits(source: RawSource) -> bool:
    return source.has_header and looks_like_counts(source.names, source.sample)


# ------------------------------------------------------------------------------- what to open


def _members(source: Source, filename: str | None) -> Iterator[tuple[Member, Data | None]]:
    """Every single file, of a folder, an archive, or of several; its content if it was read."""
    if isinstance(source, Mapping):
        check_number(len(source), filename or "The mapping")
        for name, content in source.items():
            yield from _members(content, name)
    elif isinstance(source, str | PathLike) and Path(source).is_dir():
        paths = files_in(Path(source))
        check_number(len(paths), "The folder")
        for path in paths:
            yield from _members(path, path.name)
    else:
        assert not isinstance(source, pd.DataFrame)
        stored = source if isinstance(source, str | PathLike) else None
        name = printable(filename or (PurePath(stored).name if stored else "") or "The file")
        data = read_content(source, name)
        if _is_archive(data):
            for member in members_of(check_archive(data, name, in_part=True)):
                yield replace(member, name=printable(member.name)), None
        elif stored is None:
            yield Member(name, len(data), lambda: data), data
        else:
            yield Member(name, len(data), partial(read_content, stored, name)), data


def _is_archive(data: Data) -> bool:
    kind = next(kind for kind in FORMATS if kind.recognises(data[:HEAD_BYTES]))
    return kind.name == "zip archive"


def _places_of(source: RawSource) -> dict[str, tuple[float, float]]:
    """Where each name lies, if a table says that and has no times."""
    cell, lon, lat = (position_named(source, ROLES[role]) for role in ("cell", "lon", "lat"))
    if cell is None or lon is None or lat is None or not _is_timeless(source):
        return {}
    found = places_of(source, cell, lon, lat)
    names = [without_zeros(name) for name in found]
    shown = printable_apart(names, NAME_LETTERS)
    return {shown[name]: place for name, place in zip(names, found.values(), strict=True)}


def _is_timeless(source: RawSource) -> bool:
    if not source.has_header or _NO_PLACES & set(map(plain_name, source.names)):
        return False
    return not any(looks_like_time(value) for row in source.sample[:1] for value in row)


def _grid_of(source: RawSource) -> GridHint | None:
    """The extent of a grid, and its rows and columns, if a table of one row says that."""
    at = [position_named(source, names) for names in (*(ROLES[s] for s in SIDES), *_SIZES)]
    if None in at[: len(SIDES)] or not _is_timeless(source):
        return None
    rows = next(iter(source.batches([each for each in at if each is not None])), None)
    if rows is None or rows.n_rows != 1:
        return None
    return hint_of(
        *(0.0 if each is None else float(to_float(rows.columns[each])[0]) for each in at)
    )
