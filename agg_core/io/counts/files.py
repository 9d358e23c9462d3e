"""Files of counts, opened: one or many of one kind, snapshots of stations, tables of places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from os import PathLike
from pathlib import Path, PurePath

import numpy as np
import pandas as pd
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.archives import check_archive
from agg_core.io.contents import Data, read_content
from agg_core.io.counts.cells import NAME_LETTERS
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.columns import ROLES, SIDES, looks_like_counts
from agg_core.io.counts.gbfs import Snapshots, recognises_gbfs
from agg_core.io.counts.numbered import GridHint, hint_of
from agg_core.io.counts.unfolded import TRANSPOSED, headed, time_columns, unfolded
from agg_core.io.counts.values import coded, without_zeros
from agg_core.io.fixes import Account
from agg_core.io.formats.parquet import open_frame
from agg_core.io.formats.registry import FORMATS, HEAD_BYTES, Source, open_content
from agg_core.io.guess.columns import plain_name
from agg_core.io.held import Member, Shelf
from agg_core.io.layouts import to_float
from agg_core.io.several import MOST_FILES
from agg_core.io.source import RawSource

__all__ = ["CountSource", "Loaded", "first_table", "open_count_files"]

SAMPLE_ROWS = 50
_NO_PLACES = frozenset((*ROLES["time"], *ROLES["date"], *ROLES["clock"])) - {"from", "start"}


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
    sample: Sequence[Sequence[str]]
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
        chunks: dict[int, list[pa.Array]] = {position: [] for position in positions}
        n_rows = n_unsplit = before = 0
        for part in self.parts:
            for rows in part.batches(positions):
                account.follow(n_rows, _shifted(rows.line_numbers, before))
                account.add_counted(rows.set_aside)
                n_unsplit += sum(aside.count for aside in rows.set_aside.values())
                for position in chunks:
                    chunks[position] += _plain(rows.columns[position]).chunks
                n_rows += rows.n_rows
            before = n_rows
        columns = {position: _joined(found) for position, found in chunks.items()}
        return Loaded(columns, n_rows, account, n_unsplit)


def _shifted(line_numbers, before: int):  # type: ignore[no-untyped-def]  # as of RawRows
    return lambda rows: line_numbers(rows - before)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def _joined(chunks: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Chunks of several files as one column, as text where their types differ."""
    if len({chunk.type for chunk in chunks}) <= 1:
        return pa.chunked_array(chunks)
    words = [coded(pa.chunked_array([chunk])) for chunk in chunks]
    return pa.chunked_array(
        [pa.array([word.texts[i] for i in word.codes], pa.large_string()) for word in words]
    )


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
    snapshots, tables = Snapshots(), list[tuple[str, RawSource]]()
    refused: dict[str, str] = {}
    places: dict[str, tuple[float, float]] = {}
    grid: GridHint | None = None
    leaves, shelf = _leaves(source, filename), Shelf()
    first = [*islice(leaves, 2)]
    is_one = len(first) == 1
    for leaf in chain(first, leaves):
        try:
            with leaf:
                if recognises_gbfs(leaf.head):
                    snapshots.take(leaf.content(), leaf.name)
                    continue
                opened = shelf.open(leaf.member(choices))
            found = {} if is_one else _places_of(opened)
            hint = None if is_one else _grid_of(opened)
            places |= found
            grid = hint or grid
            if not found and hint is None:
                tables.append((leaf.name, opened))
        except InputError as fault:
            if is_one:
                raise
            refused[leaf.name] = str(fault)
    if snapshots.n_documents:
        tables.insert(0, ("The snapshots", open_frame(snapshots.to_frame())))
        places |= snapshots.places
    if not tables:
        reason = next(iter(refused.values()), "they only tell where places lie")
        raise InputError(
            f"None of the files holds a table of counts: {reason}", code="no-table-of-counts"
        )
    return replace(_source_of(tables, places, refused), grid=grid)


def _opened(name: str, content: Data, choices: CountChoices) -> RawSource:
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
    found = unfolded(replace(source, sample=_sample(source)) if source.has_header else source)
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
    for leaf in _leaves(source, None):
        if recognises_gbfs(leaf.head):
            return None
        opened = _opened(leaf.name, leaf.content(), choices)
        if not _places_of(opened) and _grid_of(opened) is None:
            return opened
    raise InputError("The files hold no table.", code="no-table-of-counts")


def _source_of(
    tables: Sequence[tuple[str, RawSource]],
    places: Mapping[str, tuple[float, float]],
    refused: Mapping[str, str],
) -> CountSource:
    """The tables whose columns are those of most, of those that look like counts if any do."""
    fitting = [source for _, source in tables if _fits(source)] if len(tables) > 1 else []
    kinds = [source.names for source in fitting or [source for _, source in tables]]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    kept = [source for _, source in tables if source.names == usual]
    strange = "its columns are others than those of most files"
    refused = {**refused, **{name: strange for name, each in tables if each.names != usual}}
    guesses = dict(kept[0].guesses)
    if len(tables) + len(refused) > 1:
        first = next(iter(refused.items()), None)
        note = "" if first is None else f"{printable(first[0])} is not: {first[1]}"
        total = len(kept) + len(refused)
        guesses["files"] = Guess(f"{len(kept):,} of {total:,} tables read", (), note)
    if places:
        guesses["places"] = Guess(f"{len(places):,} named places", (), "from another table")
    return CountSource(tuple(kept), _sample(kept[0]), guesses, places)


def _fits(source: RawSource) -> bool:
    return source.has_header and looks_like_counts(source.names, _sample(source))


def _sample(source: RawSource) -> Sequence[Sequence[str]]:
    """First rows as text, of tables in memory too."""
    if source.sample:
        return source.sample
    first = next(iter(source.batches(range(len(source.names)))), None)
    if first is None:
        return []
    columns = []
    for at in range(len(source.names)):
        words = coded(first.columns[at].slice(0, SAMPLE_ROWS))
        columns.append([words.texts[i] for i in words.codes])
    return [list(row) for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------------------- what to open


class _Leaf:
    """A single file: what it is called, and its content, which is read once and held a while."""

    def __init__(self, name: str, read: Callable[[], Data], content: Data | None = None) -> None:
        self.name, self._read, self._content = name, read, content

    def __enter__(self) -> None:
        """The content stays at hand."""

    def __exit__(self, *_: object) -> None:
        self._content = None

    def content(self) -> Data:
        """The content, read if it is not at hand.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        if self._content is None:
            self._content = self._read()
        return self._content

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self.content()[:HEAD_BYTES])

    def member(self, choices: CountChoices) -> Member:
        """The file as one of many, to be opened now or again."""

        def opened() -> RawSource:
            content = self._read() if self._content is None else self._content
            return _opened(self.name, content, choices)

        return Member(self.name, len(self.content()), opened)


def _leaves(source: Source, filename: str | None) -> Iterator[_Leaf]:
    """Every single file: of a folder, an archive, or of several."""
    if isinstance(source, Mapping):
        if len(source) > MOST_FILES:
            raise InputError(
                f"{len(source):,} files are too many; give {MOST_FILES:,} at most.",
                code="too-many-files",
            )
        for name, content in source.items():
            yield from _leaves(content, name)
    elif isinstance(source, str | PathLike) and Path(source).is_dir():
        paths = sorted(path for path in Path(source).rglob("*") if path.is_file())
        shown = [path for path in paths if not path.name.startswith(".")]
        if not shown:
            raise InputError("The folder holds no file; choose another one.", code="no-files")
        if len(shown) > MOST_FILES:
            raise InputError(
                f"The folder holds {len(shown):,} files; give {MOST_FILES:,} at most.",
                code="too-many-files",
            )
        for path in shown:
            yield from _leaves(path, path.name)
    else:
        assert not isinstance(source, pd.DataFrame)
        stored = source if isinstance(source, str | PathLike) else None
        name = printable(filename or (PurePath(stored).name if stored else "") or "The file")
        data = read_content(source, name)
        if _is_archive(data):
            archive = check_archive(data, name)
            for entry in archive.entries:
                yield _Leaf(printable(entry.name), partial(archive.read, entry))
        elif stored is None:
            yield _Leaf(name, lambda: data, data)
        else:
            yield _Leaf(name, partial(read_content, stored, name), data)


def _is_archive(data: Data) -> bool:
    head = bytes(data[:HEAD_BYTES])
    return next(kind for kind in FORMATS if kind.recognises(head)).name == "zip archive"


def _places_of(source: RawSource) -> dict[str, tuple[float, float]]:
    """Where each name lies, if a table says that and has no times."""
    names = [plain_name(name) for name in source.names]
    if not source.has_header or _NO_PLACES & set(names):
        return {}
    at = [
        next((names.index(spelling) for spelling in ROLES[role] if spelling in names), None)
        for role in ("cell", "lon", "lat")
    ]
    if None in at:
        return {}
    cell, lon, lat = (int(position or 0) for position in at)
    found: dict[str, tuple[float, float]] = {}
    for rows in source.batches([cell, lon, lat]):
        words = coded(_plain(rows.columns[cell]))
        x, y = (to_float(_plain(rows.columns[axis])) for axis in (lon, lat))
        for code, *place in zip(words.codes.tolist(), x.tolist(), y.tolist(), strict=True):
            name = printable(without_zeros(words.texts[code]), NAME_LETTERS)
            if name and np.isfinite(place).all() and abs(place[0]) <= 180 and abs(place[1]) <= 90:
                found.setdefault(name, (place[0], place[1]))
    return found


def _grid_of(source: RawSource) -> GridHint | None:
    """The extent of a grid, and its rows and columns, if a table of one row says that."""
    names = [plain_name(name) for name in source.names]
    if not source.has_header or _NO_PLACES & set(names):
        return None
    at = [
        next((names.index(spelling) for spelling in spellings if spelling in names), None)
        for spellings in (*(ROLES[side] for side in SIDES), *_SIZES)
    ]
    if None in at[: len(SIDES)]:
        return None
    rows = next(iter(source.batches([each for each in at if each is not None])), None)
    if rows is None or rows.n_rows != 1:
        return None
    return hint_of(
        *(0.0 if each is None else float(to_float(_plain(rows.columns[each]))[0]) for each in at)
    )
