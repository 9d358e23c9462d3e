"""A table of flows that was read, in a file of ours: a job learns from it in its own process."""

from __future__ import annotations

import json
from os import PathLike

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.io.flow_tables import FlowTable

__all__ = ["open_flow_table", "write_flow_table"]

_METADATA_KEY = b"agg_core.io.flow_table"


def write_flow_table(table: FlowTable, path: str | PathLike[str]) -> None:
    """Write a table to one Parquet file that `open_flow_table` gives back."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    about = {"times": table.times, "set_aside": dict(table.set_aside), "dates": table.dates}
    stored = pa.Table.from_pandas(table.flows, preserve_index=False)
    metadata = {**(stored.schema.metadata or {}), _METADATA_KEY: json.dumps(about).encode()}
    pq.write_table(stored.replace_schema_metadata(metadata), path, compression="zstd")


def open_flow_table(path: str | PathLike[str]) -> FlowTable:
    """Open what `write_flow_table` wrote.

    Raises
    ------
    InputError
        If there is no such file or it was not written by `write_flow_table`.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        stored = pq.read_table(path)
        about = json.loads(stored.schema.metadata[_METADATA_KEY])
        flows: pd.DataFrame = stored.to_pandas()
        return FlowTable(
            flows, tuple(about["times"]), dict(about["set_aside"]), tuple(about["dates"])
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "The stored table of flows cannot be read; load the original file again.",
            code="flows-unreadable",
        ) from error
