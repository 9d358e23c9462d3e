"""Parquet files and data frames: typed columns, sized by their metadata before they are loaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agg_core.clock import check_zone
from agg_core.errors import InputError
from agg_core.readers.source import RawRows, RawSource

__all__ = ["MAX_VALUES", "PARQUET_MAGIC", "open_frame", "open_parquet"]

PARQUET_MAGIC = b"PAR1"
MAX_VALUES = 400_000_000
"""Most values (rows x columns needed) loaded from one file."""
MAX_LOADED_BYTES = 16 << 30
SAMPLE_ROWS = 50

IntArray = npt.NDArray[np.int64]


def open_parquet(data: bytes, name: str, max_values: int = MAX_VALUES) -> RawSource:
    """Open Parquet; columns are loaded batch by batch, only those needed.

    Raises
    ------
    InputError
        If the file is damaged, has no rows, or more than ``max_values`` values would be loaded.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        names = tuple(file.schema_arrow.names)
        n_rows = file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{name} is damaged Parquet; make or copy it again.") from error
    if n_rows == 0:
        raise InputError(f"{name} has no rows; choose a file that holds trajectories.")

    def load(positions: Sequence[int]) -> RawRows:
        wanted = list(dict.fromkeys(positions))
        if n_rows * len(wanted) > max_values:
            raise InputError(
                f"{name} has {n_rows:,} rows; at most {max_values // len(wanted):,} are read: "
                "split it."
            )
        if len(set(names)) < len(names):
            raise InputError(f"{name} has two columns of one name; rename one.")
        schema = pa.schema([file.schema_arrow.field(i) for i in wanted])
        batches = []
        loaded = 0
        try:
            for batch in file.iter_batches(columns=[names[i] for i in wanted]):
                loaded += batch.nbytes
                if loaded > MAX_LOADED_BYTES:
                    raise InputError(f"{name} unpacks to more than 16 GiB; split it.")
                batches.append(batch.select(schema.names))
            table = pa.Table.from_batches(batches, schema=schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{name} is damaged Parquet; make or copy it again.") from error
        return _rows(table, wanted)

    return RawSource(names, True, (), load, timezone=_named_zone(file.schema_arrow))


def open_frame(frame: pd.DataFrame) -> RawSource:
    """A data frame as a source; its rows count as lines from 1."""
    if len(frame) == 0:
        raise InputError("The table has no rows.")
    names = tuple(str(name) for name in frame.columns)

    def load(positions: Sequence[int]) -> RawRows:
        wanted = list(dict.fromkeys(positions))
        try:
            table = pa.table(
                [pa.array(frame.iloc[:, i], from_pandas=True) for i in wanted],
                names=[str(i) for i in wanted],
            )
        except pa.ArrowException as error:
            raise InputError("A column of the table mixes kinds of values.") from error
        return _rows(table, wanted)

    return RawSource(names, True, (), load)


def _named_zone(schema: pa.Schema) -> str | None:
    """The zone under the key "timezone" of the file's metadata, if it is one."""
    named = (schema.metadata or {}).get(b"timezone", b"").decode("utf-8", "replace")
    try:
        return check_zone(named) if named else None
    except InputError:
        return None


def _rows(table: pa.Table, positions: Sequence[int]) -> RawRows:
    columns = {}
    for at, position in enumerate(positions):
        column = table.column(at)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        columns[position] = column
    return RawRows(columns, table.num_rows, _count_from_one)


def _count_from_one(rows: IntArray) -> IntArray:
    return rows + 1
