"""The trajectory table, its account and its clock; state sequences are cut from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import check_zone, to_local
from agg_core.base.errors import InputError

if TYPE_CHECKING:
    from agg_core.tables.report import ImportReport

__all__ = [
    "CanonicalWriter",
    "Trajectories",
    "read_canonical",
    "write_canonical",
]

COLUMNS = ("user_id", "time", "lon", "lat")
_METADATA_KEY = b"agg_core.tables.trajectories"


@dataclass(frozen=True)
class Trajectories:
    """Fixes of individuals: one table, the report of its import, and the zone of its clock.

    ``table`` has columns user_id (text), time (UTC), lon, lat (degrees, EPSG:4326), one block of
    rows per individual in order of first appearance, each block in order of time. ``timezone``
    is an IANA name, "UTC+09:00" for a constant offset, or "UTC".

    Raises
    ------
    InputError
        If a column is missing, rows of an individual are not together and in order of time, or
        the zone is unknown.
    """

    table: pd.DataFrame
    report: ImportReport
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        missing = [column for column in COLUMNS if column not in self.table.columns]
        if missing:
            raise InputError(
                f"A trajectory table needs the columns {', '.join(missing)}.",
                code="columns-missing",
            )
        if not isinstance(self.table["time"].dtype, pd.DatetimeTZDtype):
            raise InputError(
                "The times of a trajectory table must be instants in UTC.", code="times-not-utc"
            )
        object.__setattr__(self, "timezone", check_zone(self.timezone))
        codes = self.user_codes
        new_user = np.diff(codes)
        later = np.diff(self.time_utc) > np.timedelta64(0, "us")
        if not np.where(new_user == 0, later, new_user == 1).all():
            raise InputError(
                "The rows of a trajectory table must be together for each individual, "
                "in order of time, without two rows at one time.",
                code="rows-out-of-order",
            )

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def user_codes(self) -> npt.NDArray[np.int64]:
        """Number of the individual of each row, (n,), from 0 in order of the table."""
        codes, _ = pd.factorize(self.table["user_id"])
        return codes.astype(np.int64)

    @property
    def user_ids(self) -> npt.NDArray[np.object_]:
        """Ids of the individuals, (n_individuals,) text, in order of the table."""
        return self.table["user_id"].drop_duplicates().to_numpy(dtype=object)

    @property
    def time_utc(self) -> npt.NDArray[np.datetime64]:
        """Instants in UTC, (n,) datetime64[us]."""
        utc = self.table["time"].dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray(utc, dtype="datetime64[us]")

    @property
    def time_local(self) -> npt.NDArray[np.datetime64]:
        """Times on the clock of `timezone`, (n,) datetime64[us]."""
        return to_local(self.time_utc, self.timezone)


class CanonicalWriter:
    """Writes a table of trajectories part by part to one Parquet file; the report comes last.

    A context: without `finish` nothing that `read_canonical` takes is left.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        kinds = (pa.string(), pa.timestamp("us", "UTC"), pa.float64(), pa.float64())
        self._schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def __enter__(self) -> CanonicalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, table: pd.DataFrame) -> None:
        """A part of the table: whole individuals, in order."""
        import pyarrow as pa  # noqa: PLC0415

        self._writer.write_table(
            pa.Table.from_pandas(table[list(COLUMNS)], self._schema, preserve_index=False)
        )

    def finish(self, report: ImportReport, timezone: str) -> None:
        """What was found of the whole."""
        about = {"timezone": timezone, "report": report.to_dict()}
        self._writer.add_key_value_metadata({_METADATA_KEY.decode(): json.dumps(about)})


def write_canonical(trajectories: Trajectories, path: str | PathLike[str]) -> None:
    """Write table, zone and report to one Parquet file that `read_canonical` gives back."""
    with CanonicalWriter(path) as writer:
        writer.write(trajectories.table)
        writer.finish(trajectories.report, trajectories.timezone)


def read_canonical(path: str | PathLike[str]) -> Trajectories:
    """Read what `write_canonical` wrote.

    Raises
    ------
    InputError
        If there is no such file or it was not written by `write_canonical`.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from agg_core.tables.report import ImportReport  # noqa: PLC0415

    try:
        table = pq.read_table(path)
        about = json.loads(pq.read_metadata(path).metadata[_METADATA_KEY])
        frame = table.to_pandas()
        report = ImportReport.from_dict(about["report"])
        timezone = about["timezone"]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "The stored trajectories cannot be read; load the original file again.",
            code="trajectories-unreadable",
        ) from error
    frame["user_id"] = frame["user_id"].astype("str")
    frame["time"] = frame["time"].dt.tz_convert("UTC")
    return Trajectories(frame, report, timezone)
