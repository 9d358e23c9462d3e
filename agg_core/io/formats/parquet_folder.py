"""A folder of Parquet files as one table, of which no more is read than is asked for.

What the names of folders say (``date=2024-05-01/part-0.parquet``, as Hive writes partitions) is a
column of text like any other. Points of GeoParquet, as WKB or as coordinates apart, are the columns
lon and lat. Of every file only the footer is read until rows are wanted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, SetAside, printable
from agg_core.io.archives import Data
from agg_core.io.formats.parquet import (
    PARQUET_MAGIC,
    Ends,
    Part,
    Piece,
    later_by,
    named_zone,
    passed_over,
)
from agg_core.io.formats.vector import places_in_degrees
from agg_core.io.geometry import geometry_to_lonlat
from agg_core.io.held import check_number, of_one_kind
from agg_core.io.points import SAMPLE_ROWS, sampled
from agg_core.io.source import Needed, RawRows, RawSource
from agg_core.space.degrees import DEGREES, epsg_of

__all__ = ["holds_parquet", "open_parquet_folder", "open_points"]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How Hive writes a partition that has no value."""
OTHER_TABLE = "rows of a file with other columns"
AXES = ("lon", "lat")

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Geometry:
    """The column of points: its name, its system, and columns whose ranges hold its axes."""

    column: str
    crs: Any
    covering: Mapping[str, tuple[str, str]]

    @property
    def label(self) -> str:
        """What tells one system from another."""
        return self.crs if isinstance(self.crs, str) else json.dumps(self.crs, sort_keys=True)


@dataclass(frozen=True)
class _File:
    """A file of the table, and what the names of its folders say."""

    part: Part
    keys: Mapping[str, str | None]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.part.schema.names)

    @cached_property
    def geometry(self) -> _Geometry | None:
        return _geometry_of(self.part)


def holds_parquet(paths: Sequence[Path]) -> bool:
    """Whether most of the files are Parquet, by their first bytes."""
    kinds = Counter(_is_parquet(path) for path in paths)
    return kinds[True] > kinds[False]


def open_parquet_folder(
    folder: Path, paths: Sequence[Path], crs: str | None = None
) -> RawSource | None:
    """The Parquet files of a folder as one table; None if they are none.

    Files whose name, or that of a folder of theirs, begins with _ are no data. Columns are those of
    all files, by name; where a file lacks one its values are missing. Files of another table are
    passed over: their rows are counted. ``crs`` is the system of points, whatever the files state.
    Where most files are no Parquet, or their columns differ much and no folder says what a column
    holds, they are no table.

    Raises
    ------
    InputError
        If a file is damaged, files differ in the kind of a column, its system or its zone, in what
        their folders tell, or none has rows.
    """
    name = printable(folder.name or "The folder")
    data = [p for p in paths if not any(s.startswith("_") for s in p.relative_to(folder).parts)]
    check_number(len(data), name)
    if not holds_parquet(data):
        return None
    refused = {_shown(p, folder): "it is no Parquet" for p in data if not _is_parquet(p)}
    files = [
        _File(Part.of_path(path, _shown(path, folder)), _keys_of(path, folder))
        for path in data
        if _shown(path, folder) not in refused
    ]
    _check_keys(files)
    usual = Counter(file.columns for file in files).most_common(1)[0][0]
    kinds = [(f.part.name, _is_alike(f.columns, usual)) for f in files]
    alike = [file for file, (_, same) in zip(files, kinds, strict=True) if same]
    others = [file for file, (_, same) in zip(files, kinds, strict=True) if not same]
    if others and not files[0].keys:
        return None
    _, told = of_one_kind(kinds, refused, [True])
    found = _Table(name, alike, others, crs)
    if found.n_rows == 0:
        raise InputError(
            f"{name} has no rows; choose a folder that holds trajectories.", code="no-rows"
        )
    return found.source(told)


def open_points(data: Data, name: str, crs: str | None = None) -> RawSource:
    """The points of one GeoParquet of any size, batch by batch.

    Raises
    ------
    InputError
        If it is damaged, has no rows, or its geometry or system cannot be read.
    """
    found = _Table(name, [_File(Part.of_content(data, name), {})], [], crs)
    if found.n_rows == 0:
        raise InputError(
            f"{name} has no rows; choose a file that holds trajectories.", code="no-rows"
        )
    return found.source(None)


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError:
        return False


def _is_alike(columns: frozenset[str], usual: frozenset[str]) -> bool:
    """Whether a file is of the table whose columns are the usual ones: it has most of them."""
    return 2 * len(columns & usual) > len(usual)


def _shown(path: Path, folder: Path) -> str:
    return printable(path.relative_to(folder).as_posix(), 120)


def _keys_of(path: Path, folder: Path) -> dict[str, str | None]:
    """What the names of the folders say of every row of a file: column and value."""
    found: dict[str, str | None] = {}
    for part in path.relative_to(folder).parts[:-1]:
        key, equals, value = part.partition("=")
        if equals and key:
            found[unquote(key)] = None if value == NO_VALUE else unquote(value)
    return found


def _check_keys(files: Sequence[_File]) -> None:
    first = files[0]
    for file in files:
        if file.keys.keys() != first.keys.keys():
            told = [", ".join(each.keys) or "nothing" for each in (first, file)]
            raise InputError(
                f"The folders of {first.part.name} tell {printable(told[0])} and those of "
                f"{file.part.name} {printable(told[1])}; put all files into folders of one kind.",
                code="partitions-differ",
            )


class _Table:
    """Files of one table: its columns, and how the rows of each file become rows of it."""

    def __init__(
        self, name: str, files: Sequence[_File], others: Sequence[_File], crs: str | None
    ) -> None:
        self.name, self.files, self.others, self.crs = name, files, others, crs
        self.n_rows = sum(file.part.n_rows for file in files)
        self.geometry = self._one_geometry()
        stored = self._stored()
        self.keys = [key for key in files[0].keys if key not in stored]
        made = () if self.geometry is None else AXES
        self.types = {
            **{axis: pa.float64() for axis in made},
            **{n: kind for n, kind in stored.items() if not made or n not in self._taken()},
            **{key: pa.dictionary(pa.int32(), pa.string()) for key in self.keys},
        }
        self.names = tuple(self.types)
        self._transform = self._to_degrees()

    def source(self, told: Guess | None, needed: Sequence[Needed] = ()) -> RawSource:
        """The table as a source, without rows that are not needed."""

        def stream(positions: Sequence[int]) -> Iterator[RawRows]:
            yield from self._rows(positions, needed)

        guesses = {} if told is None else {"files": told}
        if self.keys:
            shown = ", ".join(printable(key) for key in self.keys)
            guesses["folders"] = Guess(f"columns {shown}")
        if self.geometry is not None:
            stated = self.crs or self.geometry.label
            code = epsg_of(stated)
            own = epsg_of(self.geometry.label) or "its own"
            differs = "the files state another" if self.crs and code != own else ""
            guesses["crs"] = Guess(code or "as the files state", (), differs, "crs")
        return RawSource(
            self.names, True, self._sample, guesses=guesses, stream=stream,
            timezone=self._zone, in_degrees=self.geometry is not None,
            passing_over=lambda more: self.source(told, more),
        )  # fmt: skip

    # --------------------------------------------------------------------------- columns

    def _one_geometry(self) -> _Geometry | None:
        """The geometry of all files.

        Raises
        ------
        InputError
            If they differ in it.
        """
        if not all(file.geometry for file in self.files):
            return None
        found: dict[tuple[str, str], _File] = {}
        for file in self.files:
            assert file.geometry is not None
            found.setdefault((file.geometry.column, file.geometry.label), file)
        if (len(found) > 1 and self.crs is None) or len({column for column, _ in found}) > 1:
            one, other, *_ = found.values()
            raise InputError(
                f"{one.part.name} and {other.part.name} state points in other systems or columns; "
                "bring all to one.",
                code="mixed-crs",
            )
        return self.files[0].geometry

    def _taken(self) -> set[str]:
        """Columns that say nothing beside the points: these, and boxes about them."""
        assert self.geometry is not None
        boxes = {path.split(".")[0] for ends in self.geometry.covering.values() for path in ends}
        return {*AXES, self.geometry.column, *boxes}

    def _stored(self) -> dict[str, pa.DataType]:
        """Columns of the files and the kind that holds all values of each.

        Raises
        ------
        InputError
            If a column is of kinds that do not go together, or two have one name.
        """
        kinds: dict[str, pa.DataType] = {}
        for file in self.files:
            schema = file.part.schema
            names = schema.names
            if len(set(names)) < len(names):
                raise InputError(
                    f"{file.part.name} has two columns of one name; rename one.",
                    code="duplicate-column-name",
                )
            for field in schema:
                kind = _plain_kind(field.type)
                held = kinds.get(field.name, kind)
                if held != kind:
                    kind = _common(held, kind, field.name, file.part.name)
                kinds[field.name] = kind
        return kinds

    @cached_property
    def _zone(self) -> str | None:
        """The zone that the files name for their clock.

        Raises
        ------
        InputError
            If they name several.
        """
        zones = {named_zone(file.part.schema) for file in self.files}
        if len(zones) > 1:
            told = ", ".join(sorted(zone or "none" for zone in zones))
            raise InputError(
                f"The files of {self.name} name several time zones ({told}); read those of each "
                "by themselves.",
                code="mixed-time-zones",
            )
        return zones.pop()

    def _to_degrees(self) -> Callable[[FloatArray], FloatArray] | None:
        """What brings places (n, 2) to degrees; None if they are."""
        if self.geometry is None:
            return None
        crs = self.geometry.crs if self.crs is None else epsg_of(self.crs.strip())
        if crs is None:
            raise InputError(
                f"No reference system is called {printable(self.crs)!r}; use a code such as "
                "EPSG:6677.",
                "--crs EPSG:CODE",
                code="unknown-crs",
            )
        if crs == DEGREES:
            return None
        if not isinstance(crs, str):
            crs = _system(crs, self.name)
        name = self.name
        return lambda places: places_in_degrees(places, crs, name)

    @cached_property
    def _sample(self) -> list[list[str]]:
        first = next(file for file in self.files if file.part.n_rows)
        own = self._needed_columns(first, range(len(self.names)))
        head = first.part.head(own, SAMPLE_ROWS)
        columns = self._columns(first, head, range(len(self.names)))
        return sampled(columns[at] for at in range(len(self.names)))

    # ------------------------------------------------------------------------------ rows

    def _rows(self, positions: Sequence[int], needed: Sequence[Needed]) -> Iterator[RawRows]:
        done = left_out = 0
        for file in self.others:
            if file.part.n_rows:
                told = SetAside(file.part.n_rows, (), file.part.name)
                yield RawRows({}, 0, set_aside={OTHER_TABLE: told}, share=0.0)
        for file in self.files:
            for piece in self._pieces(file, positions, needed):
                share = (done + piece.n_rows) / self.n_rows
                if piece.table is None:
                    yield passed_over(piece, done, share)
                    left_out += piece.n_rows
                else:
                    columns = self._columns(file, piece.table, positions)
                    yield RawRows(columns, piece.n_rows, later_by(left_out + 1), share=share)
                done += piece.n_rows

    def _pieces(
        self, file: _File, positions: Sequence[int], needed: Sequence[Needed]
    ) -> Iterator[Piece]:
        for each in needed:
            key = self.names[each.position]
            if key in self.keys and each.holds is not None:
                one = pa.chunked_array([pa.array([file.keys[key]], pa.string())])
                if not each.holds(one)[0]:
                    if file.part.n_rows:
                        yield Piece(0, file.part.n_rows, each.cause)
                    return
        ranges = [(each, self._ends(file, self.names[each.position])) for each in needed]
        yield from file.part.pieces(self._needed_columns(file, positions), ranges)

    def _ends(self, file: _File, name: str) -> Ends:
        """Columns of a file whose ranges hold the values of a column of the table."""
        if self.geometry is not None and name in AXES:
            if self._transform is not None or file.geometry is None:
                return None
            return file.geometry.covering.get(name)
        if name in self.keys or name not in file.columns or "." in name:
            return None
        return None if pa.types.is_nested(file.part.schema.field(name).type) else (name, name)

    def _needed_columns(self, file: _File, positions: Sequence[int]) -> list[str]:
        """Columns of a file from which those of the table are made."""
        wanted = [self.names[at] for at in positions]
        own = [n for n in wanted if n in file.columns and not (self.geometry and n in AXES)]
        if self.geometry is not None and set(AXES) & set(wanted):
            own.append(self.geometry.column)
        return list(dict.fromkeys(own))

    def _columns(
        self, file: _File, table: pa.Table, positions: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """The columns of the table at these positions, from those of a file."""
        axes: dict[str, pa.ChunkedArray] = {}
        if self.geometry is not None and set(AXES) & {self.names[at] for at in positions}:
            axes = self._axes(table.column(self.geometry.column))
        found = {}
        for at in positions:
            name, n = self.names[at], table.num_rows
            if name in axes:
                found[at] = axes[name]
            elif name in self.keys:
                found[at] = _repeated(file.keys[name], n)
            elif name not in file.columns:
                found[at] = pa.chunked_array([pa.nulls(n, self.types[name])])
            else:
                found[at] = self._as_kind(table.column(name), name, file.part.name)
        return found

    def _axes(self, column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
        """Longitudes and latitudes of points, null where there is none."""
        read = geometry_to_lonlat(column)
        lon, lat = read.lon, read.lat
        if self._transform is not None:
            lon, lat = self._transform(np.column_stack([lon, lat])).T
            lon, lat = (np.where(np.isfinite(axis), axis, np.nan) for axis in (lon, lat))
        return {
            axis: pa.chunked_array([pa.array(values, from_pandas=True)])
            for axis, values in zip(AXES, (lon, lat), strict=True)
        }

    def _as_kind(self, column: pa.ChunkedArray, name: str, file: str) -> pa.ChunkedArray:
        kind = self.types[name]
        held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if held == kind:
            return column
        try:
            return column.cast(kind)
        except pa.ArrowException as error:
            raise _mixed(kind, column.type, name, file) from error


def _repeated(value: str | None, n: int) -> pa.ChunkedArray:
    """A column of one text, which it holds once."""
    index = pa.nulls(n, pa.int32()) if value is None else pa.array(np.zeros(n, dtype=np.int32))
    words = pa.array([] if value is None else [value], pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(index, words)])


def _plain_kind(kind: pa.DataType) -> pa.DataType:
    """A kind of column without its dictionary; text is text, however its length is kept."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_large_string(kind) or kind == pa.string_view()
    return pa.string() if is_text else kind


def _common(one: pa.DataType, other: pa.DataType, name: str, file: str) -> pa.DataType:
    """The kind that holds the values of both.

    Raises
    ------
    InputError
        If there is none.
    """
    fields = [pa.schema([pa.field(name, kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException as error:
        raise _mixed(one, other, name, file) from error


def _mixed(one: pa.DataType, other: pa.DataType, name: str, file: str) -> InputError:
    return InputError(
        f"The files hold {one} and, from {file} on, {other} in the column {printable(name)}; write "
        "it as one kind in all of them.",
        code="mixed-column-types",
    )


# -------------------------------------------------------------------------------- geometry


def _geometry_of(part: Part) -> _Geometry | None:
    """What the footer of GeoParquet says of its points; None for other Parquet."""
    stated = (part.schema.metadata or {}).get(b"geo")
    if stated is None:
        return None
    try:
        geo = json.loads(stated)
        column = str(geo["primary_column"])
        about = geo["columns"][column]
        encoding = about.get("encoding")
        crs = about.get("crs", DEGREES)
        boxes = (about.get("covering") or {}).get("bbox") or {}
        covering = {
            axis: (".".join(boxes[f"{side}min"]), ".".join(boxes[f"{side}max"]))
            for axis, side in zip(AXES, "xy", strict=True)
            if f"{side}min" in boxes and f"{side}max" in boxes
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{part.name} says of its geometry what cannot be read; make it again.",
            code="damaged-parquet",
        ) from error
    if column not in part.schema.names:
        raise InputError(
            f"{part.name} has no column {printable(column)}, in which it says that its geometry "
            "is; make it again.",
            code="damaged-parquet",
        )
    if encoding == "point":
        covering = {axis: (f"{column}.{s}",) * 2 for axis, s in zip(AXES, "xy", strict=True)}
    elif encoding != "WKB":
        raise InputError(
            f"{part.name} encodes its geometry as {printable(encoding)}; give points, as WKB or "
            "with x and y apart.",
            code="unknown-geometry-encoding",
        )
    return _Geometry(column, DEGREES if _is_degrees(crs) else crs, covering)


def _is_degrees(crs: object) -> bool:
    """Whether a system is longitude and latitude of WGS84; one that is not stated is taken so."""
    if crs is None or crs == DEGREES:
        return True
    code = crs.get("id") if isinstance(crs, dict) else None
    if not isinstance(code, dict):
        return False
    return (code.get("authority"), str(code.get("code"))) in (("OGC", "CRS84"), ("EPSG", "4326"))


def _system(crs: Any, name: str) -> Any:
    """The system that a footer describes.

    Raises
    ------
    InputError
        If it describes none.
    """
    from pyproj import CRS  # noqa: PLC0415
    from pyproj.exceptions import CRSError  # noqa: PLC0415

    try:
        return CRS.from_json_dict(crs)
    except (CRSError, TypeError, AttributeError) as error:
        raise InputError(
            f"{name} states a reference system that nobody knows; state it.",
            "--crs EPSG:CODE",
            code="unknown-stated-crs",
        ) from error
