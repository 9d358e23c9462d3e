"""Parquet files and data frames: typed columns, sized by their metadata before they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agg_core.base.clock import check_zone
from agg_core.base.errors import InputError
from agg_core.base.report import SHOWN_LINES, SetAside
from agg_core.io.archives import MAX_RATIO, Data, most_unpacked
from agg_core.io.points import SAMPLE_ROWS, sampled
from agg_core.io.source import Needed, RawRows, RawSource
from agg_core.io.texts import plain

__all__ = [
    "PARQUET_MAGIC",
    "Ends",
    "Part",
    "Piece",
    "as_limit",
    "column_of",
    "later_by",
    "named_zone",
    "open_frame",
    "open_parquet",
    "passed_over",
    "undamaged",
]

PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 1 << 20
MOST_COLUMNS = 2_000
"""A footer of a few megabytes tells of so many columns that looking at them takes minutes."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """A Parquet file: what opens it, its name in messages, its size, and what its footer tells.

    Numbers of rows are of its row groups, in order.
    """

    opener: Callable[[Sequence[str]], pq.ParquetFile]
    name: str
    n_bytes: int
    schema: pa.Schema
    groups: tuple[int, ...]

    @classmethod
    def of_content(cls, data: Data, name: str) -> Part:
        """That of some content.

        Raises
        ------
        InputError
            If it is damaged.
        """
        buffer = pa.py_buffer(data)
        return cls._of(
            lambda texts: pq.ParquetFile(pa.BufferReader(buffer), read_dictionary=list(texts)),
            name,
            len(data),
        )

    @classmethod
    def of_path(cls, path: Path, name: str) -> Part:
        """That of a path, of which nothing is read but the footer.

        Raises
        ------
        InputError
            If it is damaged, or cannot be opened.
        """
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(
                f"{name} cannot be opened ({error.strerror}); check who may read it.",
                code="file-not-opened",
            ) from error
        return cls._of(lambda texts: pq.ParquetFile(path, read_dictionary=list(texts)), name, size)

    @classmethod
    def _of(
        cls, opener: Callable[[Sequence[str]], pq.ParquetFile], name: str, n_bytes: int
    ) -> Part:
        with undamaged(name), opener(()) as file:
            metadata = file.metadata
            if metadata.num_columns > MOST_COLUMNS:
                raise InputError(
                    f"{name} has {metadata.num_columns:,} columns and at most {MOST_COLUMNS:,} are "
                    "read; leave some out.",
                    code="too-many-columns",
                )
            groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
            return cls(opener, name, n_bytes, file.schema_arrow, groups)

    @property
    def n_rows(self) -> int:
        """Rows of all groups."""
        return sum(self.groups)

    def head(self, columns: Sequence[str], n_rows: int) -> pa.Table:
        """The first rows of some columns."""
        with undamaged(self.name), self.opener(()) as file:
            batch = next(file.iter_batches(n_rows, columns=list(columns)), None)
            if batch is None:
                return self.schema.empty_table().select(list(columns))
            return pa.Table.from_batches([batch]).select(list(columns))

    def pieces(
        self, columns: Sequence[str], needed: Sequence[tuple[Needed, Ends]] = ()
    ) -> Iterator[Piece]:
        """The rows of some columns, piece by piece; row groups that cannot be needed are passed.

        ``needed`` come with the columns of which row groups tell the least and the most.

        Raises
        ------
        InputError
            If the file is damaged, or unpacks to more than 200 times its size.
        """
        allowed = most_unpacked(self.n_bytes)
        fields = [self.schema.field(name) for name in columns]
        # By rows times width: the sizes in a footer are whatever its writer says.
        width = sum(_width(field.type) for field in fields)
        if self.n_rows * width > allowed:
            raise InputError(
                f"{self.name} says that it holds {self.n_rows:,} rows, which its "
                f"{self.n_bytes:,} bytes cannot hold unless they repeat each other; make it again "
                "without repeated rows.",
                code="implausible-row-count",
            )
        texts = [field.name for field in fields if pa.types.is_string(field.type)]
        loaded = first = 0
        with undamaged(self.name), self.opener(texts) as file:
            for cause, numbers in _runs(file.metadata, needed):
                n_rows = sum(self.groups[i] for i in numbers)
                if cause:
                    yield Piece(first, n_rows, cause)
                    first += n_rows
                    continue
                for batch in file.iter_batches(BATCH_ROWS, numbers, list(columns)):
                    loaded += batch.nbytes
                    if loaded > allowed:
                        raise InputError(
                            f"{self.name} unpacks to more than {MAX_RATIO} times its size; make "
                            "it again.",
                            code="unpacks-too-large",
                        )
                    table = pa.Table.from_batches([batch]).select(list(columns))
                    yield Piece(first, batch.num_rows, table=table)
                    first += batch.num_rows


@dataclass(frozen=True)
class Piece:
    """Rows of a file from ``first`` on: a table of them, or why they were passed over."""

    first: int
    n_rows: int
    cause: str = ""
    table: pa.Table | None = None


Ends = tuple[str, str] | None
"""Columns, by their path in the file, of which one's least and the other's most are the ends of a
range that holds all values; usually one column. None: nothing is known."""


def open_parquet(data: Data, name: str) -> RawSource:
    """Open Parquet; columns are loaded batch by batch, only those needed.

    Raises
    ------
    InputError
        If the file is damaged, has no rows, or would unpack to more than 200 times its size.
    """
    part = Part.of_content(data, name)
    names = tuple(part.schema.names)
    if part.n_rows == 0:
        raise InputError(
            f"{name} has no rows; choose a file that holds trajectories.", code="no-rows"
        )

    def source_of(needed: Sequence[Needed]) -> RawSource:
        ranges = [(each, _ends_of(part.schema, names[each.position])) for each in needed]

        def stream(positions: Sequence[int]) -> Iterator[RawRows]:
            if len(set(names)) < len(names):
                raise InputError(
                    f"{name} has two columns of one name; rename one.",
                    code="duplicate-column-name",
                )
            passed = seen = 0
            for piece in part.pieces([names[i] for i in positions], ranges):
                seen += piece.n_rows
                if piece.table is None:
                    yield passed_over(piece, piece.first, seen / part.n_rows)
                    passed += piece.n_rows
                else:
                    rows = _rows(piece.table, positions, seen / part.n_rows)
                    yield replace(rows, line_numbers=later_by(passed + 1))

        return RawSource(
            names, True, sample, stream=stream, timezone=named_zone(part.schema),
            passing_over=source_of,
        )  # fmt: skip

    with undamaged(name), part.opener(()) as file:
        head = next(file.iter_batches(SAMPLE_ROWS), None)
        sample = [] if head is None else sampled(head.columns)
    return source_of(())


def passed_over(piece: Piece, before: int, share: float) -> RawRows:
    """A batch without rows that counts those of a piece; ``before`` are the rows ahead of it."""
    lines = tuple(range(before + 1, before + 1 + min(piece.n_rows, SHOWN_LINES)))
    return RawRows({}, 0, set_aside={piece.cause: SetAside(piece.n_rows, lines)}, share=share)


def later_by(before: int) -> Callable[[IntArray], IntArray]:
    """Line numbers of rows that ``before`` others come ahead of."""
    return lambda rows: rows + before


def _runs(
    metadata: pq.FileMetaData, needed: Sequence[tuple[Needed, Ends]]
) -> Iterator[tuple[str, list[int]]]:
    """Row groups one after the other that are read, or passed over for one cause, together."""
    n_groups = metadata.num_row_groups
    at = {}
    if needed and n_groups:
        group = metadata.row_group(0)
        at = {group.column(i).path_in_schema: i for i in range(group.num_columns)}
    causes = [_passed(metadata.row_group(i), at, needed) if at else "" for i in range(n_groups)]
    for cause, numbers in groupby(range(n_groups), causes.__getitem__):
        yield cause, list(numbers)


def _passed(
    group: pq.RowGroupMetaData, at: dict[str, int], needed: Sequence[tuple[Needed, Ends]]
) -> str:
    """Why no row of a group can be needed, as far as its own account of it tells; else empty."""
    for each, ends in needed:
        if ends is None or not all(path in at for path in ends):
            continue
        low, high = (group.column(at[path]).statistics for path in ends)
        known = all(
            one is not None and one.has_min_max and one.has_null_count and one.null_count == 0
            for one in (low, high)
        )
        if not known:
            continue
        least, most = as_limit(low.min), as_limit(high.max)
        if least is None or most is None or (type(least) is not type(most)):
            continue
        wanted = each.least if each.least is not None else each.most
        if isinstance(wanted, np.datetime64) == isinstance(least, np.datetime64) and not (
            each.meets(least, most)
        ):
            return each.cause
    return ""


def as_limit(value: object) -> float | np.datetime64 | None:
    """A value of a footer as a number or an instant in UTC; None for what is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return None if np.isnan(value) else float(value)
    if isinstance(value, datetime):
        stamp = pd.Timestamp(value)
        stamp = stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)
        return stamp.to_datetime64()
    return None


def _ends_of(schema: pa.Schema, name: str) -> Ends:
    """The column itself, if it is the only one of its name and no structure."""
    at = schema.get_all_field_indices(name)
    if len(at) != 1 or "." in name or pa.types.is_nested(schema.field(at[0]).type):
        return None
    return name, name


@contextmanager
def undamaged(name: str) -> Iterator[None]:
    """Whatever Arrow raises on a damaged file is one sentence."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{name} is damaged Parquet; make or copy it again.", code="damaged-parquet"
        ) from error


def _width(kind: pa.DataType) -> int:
    """Bytes that a value takes at least once it is unpacked."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # text and other values of any length: their offset alone
        return 4


def open_frame(frame: pd.DataFrame) -> RawSource:
    """A data frame as a source; its rows count as lines from 1."""
    if len(frame) == 0:
        raise InputError("The table has no rows.", code="no-rows")
    names = tuple(str(name) for name in frame.columns)

    def load(positions: Sequence[int]) -> RawRows:
        wanted = list(dict.fromkeys(positions))
        try:
            columns = [pa.array(frame.iloc[:, i], from_pandas=True) for i in wanted]
        except pa.ArrowException as error:
            raise InputError(
                "A column of the table mixes kinds of values.", code="mixed-column-types"
            ) from error
        return _rows(pa.table(columns, names=[str(i) for i in wanted]), wanted)

    head = frame.head(SAMPLE_ROWS)
    return RawSource(
        names, True, sampled(column_of(head.iloc[:, i]) for i in range(len(names))), load
    )


def column_of(values: pd.Series[Any]) -> pa.ChunkedArray:
    """A column as Arrow; what mixes kinds of values becomes text."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        texts = [
            None if lacks else _text(value)
            for value, lacks in zip(values, values.isna(), strict=True)
        ]
        column = pa.array(texts, pa.string())
    column = plain(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    return column.cast(pa.string()) if pa.types.is_null(column.type) else column


def _text(value: object) -> str:
    written = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return written.encode(errors="replace").decode()


def named_zone(schema: pa.Schema) -> str | None:
    """The zone under the key "timezone" of the file's metadata, if it is one."""
    named = (schema.metadata or {}).get(b"timezone", b"").decode("utf-8", "replace")
    try:
        return check_zone(named) if named else None
    except InputError:
        return None


def _rows(table: pa.Table, positions: Sequence[int], share: float = 1.0) -> RawRows:
    columns = (
        column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
        for column in table.columns
    )
    return RawRows(dict(zip(positions, columns, strict=True)), table.num_rows, share=share)
