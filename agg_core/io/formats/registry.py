"""Every kind of file, told by its content, never by its name: the registry, and what opens any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path, PurePath
from typing import BinaryIO

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.archives import ZIP_MAGIC, check_archive
from agg_core.io.choices import Choices
from agg_core.io.contents import Data, read_content
from agg_core.io.features import is_geoparquet, open_features, recognises_features
from agg_core.io.flights import PlaceTable, are_flights, place_table, with_places
from agg_core.io.formats.delimited import open_delimited
from agg_core.io.formats.excel import open_excel, recognises_excel
from agg_core.io.formats.fit import open_fit, recognises_fit
from agg_core.io.formats.geojson import open_geojson, recognises_geojson
from agg_core.io.formats.google import open_google, recognises_google
from agg_core.io.formats.json_rows import open_json_rows, recognises_json
from agg_core.io.formats.nmea import open_nmea, recognises_nmea
from agg_core.io.formats.parquet import PARQUET_MAGIC, open_frame, open_parquet
from agg_core.io.formats.parquet_folder import holds_parquet, open_parquet_folder, open_points
from agg_core.io.formats.vector import MOST_MEGABYTES
from agg_core.io.formats.xml_tracks import open_xml_tracks, recognises_xml
from agg_core.io.guess.columns import find_columns
from agg_core.io.held import Member, files_in, members_of
from agg_core.io.layouts import NO_LAYOUT, laid_out
from agg_core.io.place_tables import (
    is_place_table,
    lacks_places,
    names_places,
    with_place_table,
)
from agg_core.io.several import ID_KINDS, SHARED, joined
from agg_core.io.slot_tables import lacks_times
from agg_core.io.source import RawSource, show_names

__all__ = ["FORMATS", "Format", "Source", "open_content", "open_source"]

Opener = Callable[[Data, str, Choices], RawSource]

HEAD_BYTES = 4096
MOST_BESIDE, MOST_BYTES_BESIDE = 50, 50_000_000

OneSource = str | PathLike[str] | bytes | BinaryIO | pd.DataFrame
Source = OneSource | Mapping[str, str | PathLike[str] | bytes]
"""A path to a file or folder, content, an open file, a table; or several files by name."""


@dataclass(frozen=True)
class Format:
    """A kind of file: how its first bytes give it away, and how it is opened."""

    name: str
    recognises: Callable[[bytes], bool]
    open: Opener


def _as_it_is(opened: Callable[[Data, str], RawSource]) -> Opener:
    """A kind of file of which there is nothing to choose."""
    return lambda data, name, _: opened(data, name)


def _own_ids(opener: Opener) -> Opener:
    """A kind of file that numbers its people, or is of one: other files are of others."""
    return lambda data, name, choices: replace(
        opener(data, name, choices), ids_end_with_file=True, is_of_one=True
    )


def _parquet(data: Data, name: str, choices: Choices) -> RawSource:
    if is_geoparquet(data):
        if len(data) > MOST_MEGABYTES * 1_000_000:  # more than is loaded as shapes
            return open_points(data, name, choices.crs)
        return open_features(data, name, crs=choices.crs)
    return open_parquet(data, name)


def _text(data: Data, name: str, choices: Choices) -> RawSource:
    return open_delimited(
        data, name, header=choices.header, separator=choices.separator, encoding=choices.encoding
    )


def _zip(data: Data, name: str, choices: Choices) -> RawSource:
    """A KMZ, or an archive of files that are read together."""
    archive = check_archive(data, name, in_part=True)
    maps = [entry for entry in archive.entries if entry.name.lower().endswith(".kml")]
    if maps and len(maps) == 1:
        return open_xml_tracks(archive.read(maps[0]), name)
    return _together(members_of(archive), name, choices)


FORMATS: tuple[Format, ...] = (
    Format("Parquet", lambda head: head.startswith(PARQUET_MAGIC), _parquet),
    Format(
        "Excel", recognises_excel,
        lambda data, name, choices: open_excel(data, name, sheet=choices.sheet),
    ),
    Format(
        "vector file", recognises_features,
        lambda data, name, choices: open_features(data, name, crs=choices.crs),
    ),
    Format("FIT", recognises_fit, _own_ids(_as_it_is(open_fit))),
    Format("zip archive", lambda head: head.startswith(ZIP_MAGIC), _zip),
    Format("XML", recognises_xml, _own_ids(_as_it_is(open_xml_tracks))),
    Format("GeoJSON", recognises_geojson, _as_it_is(open_geojson)),
    Format(
        "Google location history", recognises_google, _own_ids(_as_it_is(open_google)),
    ),
    Format("NMEA", recognises_nmea, _own_ids(_as_it_is(open_nmea))),
    Format("JSON", recognises_json, _as_it_is(open_json_rows)),
    Format("delimited text", lambda _: True, _text),
)  # fmt: skip
"""Kinds of file in the order they are tried; delimited text takes what is left."""


def open_source(
    source: Source, choices: Choices, filename: str | None = None, *, of_people: bool = True
) -> RawSource:
    """Open whatever it is; several files are read as one.

    A folder of Parquet is the table of its files as it is, unless its rows are to be ``of_people``
    and name nobody.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    if isinstance(source, pd.DataFrame):
        return open_frame(source)
    if isinstance(source, Mapping):
        if len(source) == 1:
            ((filename, source),) = source.items()
        else:
            members = [_member(content, name) for name, content in source.items()]
            return _together(members, filename or "These files", choices)
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        return _folder(Path(source), choices, of_people)
    name = _name(source, filename)
    opened = open_content(read_content(source, name), name, choices)
    if are_flights(opened):
        beside = _places_beside(Path(source)) if isinstance(source, str | PathLike) else None
        return with_places(opened, beside, name)
    if of_people and lacks_times(opened, dict(choices.columns)):
        raise _no_slots(opened, name)
    if of_people and names_places(opened) and lacks_places(opened, dict(choices.columns)):
        raise _no_places(opened, source, name)
    return opened


def _no_places(opened: RawSource, source: OneSource, name: str) -> InputError:
    """The question for the table that says where the places of another lie."""
    beside = []
    if isinstance(source, str | PathLike):
        for other in sorted(Path(source).parent.glob("*.csv"))[:MOST_BESIDE]:
            if other != Path(source) and other.stat().st_size < MOST_BYTES_BESIDE:
                try:
                    table = open_delimited(read_content(other, other.name), other.name)
                    if is_place_table(table):
                        with_place_table(opened, table, other.name)
                        beside.append(printable(other.name))
                except InputError:
                    continue
    seems = f" ({', '.join(beside)} beside it seems to be one)" if beside else ""
    return InputError(
        f"{name} has times and no longitude or latitude; give the table that says where its places "
        f"lie together with it{seems}, or say which columns they are: {show_names(opened)}.",
        f"--places {beside[0] if beside else 'FILE'}",
        code="no-place-table",
    )


def _no_slots(opened: RawSource, name: str) -> InputError:
    """The question for the table that says when the slots of another begin."""
    return InputError(
        f"{name} numbers slots of time and does not say when they begin; give the table that says "
        f"it (slot, start) together with it, or say which column is the time: "
        f"{show_names(opened)}.",
        "--slots FILE",
        code="no-slot-table",
    )


def _folder(folder: Path, choices: Choices, of_people: bool) -> RawSource:
    """A folder of Parquet as the table that it is, of other files as files of one kind."""
    paths, name = files_in(folder), printable(folder.name or "The folder")
    if holds_parquet(paths):
        table = open_parquet_folder(folder, paths, choices.crs)
        table = None if table is None else laid_out(table, choices, name)
        if table is not None and not of_people:
            return table
        if table is not None and _names_people(table, choices):
            others = tuple(kind for kind in ID_KINDS if kind != SHARED)
            return replace(
                table, guesses={**table.guesses, "ids": Guess(SHARED, others, option="ids")}
            )
    if len(paths) == 1:
        return open_source(paths[0], choices)
    members = [_member(path, path.relative_to(folder).as_posix()) for path in paths]
    return _together(members, name, choices)


def _names_people(table: RawSource, choices: Choices) -> bool:
    """Whether a column says whose a row is, and the same id is the same person's in all files."""
    if choices.ids not in (None, SHARED) or table.ids_end_with_file or are_flights(table):
        return False
    try:
        return "user_id" in find_columns(table, dict(choices.columns)).positions
    except InputError:
        return True  # whoever reads it finds the same fault, and tells it


def _places_beside(path: Path) -> PlaceTable | None:
    """A table of places in the folder of a file that names places by their codes."""
    for other in sorted(path.parent.glob("*.csv"))[:MOST_BESIDE]:
        if other != path and other.stat().st_size < MOST_BYTES_BESIDE:
            try:
                table = place_table(open_delimited(read_content(other, other.name), other.name))
            except InputError:
                continue
            if table is not None:
                return table
    return None


def open_content(data: Data, name: str, choices: Choices) -> RawSource:
    """Open the content of one file, whatever it is.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    kind = next(kind for kind in FORMATS if kind.recognises(data[:HEAD_BYTES]))
    return laid_out(kind.open(data, name, choices), choices, name)


def _together(members: Sequence[Member], name: str, choices: Choices) -> RawSource:
    as_it_is = replace(choices, layout=NO_LAYOUT)
    return joined(
        members, name, choices, lambda data, shown: open_content(data, shown, choices),
        lambda data, shown: open_content(data, shown, as_it_is),
    )  # fmt: skip


def _member(content: str | PathLike[str] | bytes, name: str) -> Member:
    """A file of several; content that somebody else holds takes no memory of ours."""
    size = 0 if isinstance(content, bytes) else _size(Path(content))
    return Member(name, size, lambda: read_content(content, printable(name)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # opening it says why
        return 0


def _name(source: object, filename: str | None) -> str:
    if filename is None and isinstance(source, str | PathLike):
        filename = PurePath(source).name
    return printable(filename or getattr(source, "name", None) or "The file")
