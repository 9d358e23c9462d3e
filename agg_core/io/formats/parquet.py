"""Parquet files and data frames: typed columns, sized by their metadata before they are loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agg_core.base.clock import check_zone
from agg_core.base.errors import InputError
from agg_core.io.archives import MAX_RATIO, Data, most_unpacked
from agg_core.io.points import SAMPLE_ROWS, sampled
from agg_core.io.source import RawRows, RawSource
from agg_core.io.texts import plain

__all__ = ["PARQUET_MAGIC", "column_of", "open_frame", "open_parquet"]

PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 1 << 20

IntArray = npt.NDArray[np.int64]


def open_parquet(data: Data, name: str) -> RawSource:
    """Open Parquet; columns are loaded batch by batch, only those needed.

    Raises
    ------
    InputError
        If the file is damaged, has no rows, or would unpack to more than 200 times its size.
    """
    with _undamaged(name):
        file = _opened(data)
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
    names = tuple(schema.names)
    if n_rows == 0:
        raise InputError(
            f"{name} has no rows; choose a file that holds trajectories.", code="no-rows"
        )
    allowed = most_unpacked(len(data))

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        # By rows times width: the sizes in a footer are whatever its writer says.
        width = sum(_width(schema.field(i).type) for i in positions)
        if n_rows * width > allowed:
            raise InputError(
                f"{name} says that it holds {n_rows:,} rows, which its {len(data):,} bytes cannot "
                "hold unless they repeat each other; make it again without repeated rows.",
                code="implausible-row-count",
            )
        if len(set(names)) < len(names):
            raise InputError(
                f"{name} has two columns of one name; rename one.", code="duplicate-column-name"
            )
        wanted = [names[i] for i in positions]
        texts = [names[i] for i in positions if pa.types.is_string(schema.field(i).type)]
        file = _opened(data, texts)
        loaded = seen = 0
        with _undamaged(name):
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                loaded += batch.nbytes
                seen += batch.num_rows
                if loaded > allowed:
                    raise InputError(
                        f"{name} unpacks to more than {MAX_RATIO} times its size; make it again.",
                        code="unpacks-too-large",
                    )
                table = pa.Table.from_batches([batch.select(wanted)])
                yield _rows(table, positions, seen / n_rows)

    with _undamaged(name):
        head = next(file.iter_batches(SAMPLE_ROWS), None)
        sample = [] if head is None else sampled(head.columns)
    return RawSource(names, True, sample, stream=stream, timezone=_named_zone(schema))


def _opened(data: Data, in_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """The file; values of text columns stay in their dictionaries, where they repeat."""
    source = pa.BufferReader(pa.py_buffer(data))
    return pq.ParquetFile(source, read_dictionary=list(in_dictionary))


@contextmanager
def _undamaged(name: str) -> Iterator[None]:
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


def _named_zone(schema: pa.Schema) -> str | None:
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
