"""The table of gates: how many people enter and leave each station in each step of time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.space.degrees import great_circle_km
from agg_core.space.settings import AnyGridSettings
from agg_core.tables.counts import CountTable, counts_from_arrow, counts_to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GateTable", "open_gates", "write_gates"]

FloatArray = npt.NDArray[np.float64]

_METADATA_KEY = b"agg_core.tables.gates"
_SIDES = ("entries", "exits")
_UNREADABLE = "The stored entries and exits cannot be read; load the original files again."


@dataclass(frozen=True)
class GateTable:
    """People who entered and who left each of S stations in each of n steps.

    Attributes
    ----------
    entries, exits : tables of the same moments and stations; a count is of the step that begins
        at its moment
    lines : the lines of each station, or other groups, several of them with a semicolon between;
        none where they are not known
    places : (S, 2) longitude and latitude of each station in degrees, None where not known
    km : (S, S) kilometres from each station to each on the way that people take, None for those of
        the straight line
    notes : what was found out or left out when the table was read, as sentences
    """

    entries: CountTable
    exits: CountTable
    lines: tuple[str, ...] = ()
    places: FloatArray | None = None
    km: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        same = (
            self.entries.cells == self.exits.cells
            and self.entries.times.equals(self.exits.times)
            and self.entries.slots == self.exits.slots
        )
        if not same:
            raise InputError(
                "Entries and exits must be of the same stations and moments.", code="gates-differ"
            )
        if self.lines and len(self.lines) != self.n_stations:
            raise InputError(
                f"{len(self.lines)} lines were given for {self.n_stations} stations; give one of "
                "each.",
                code="wrong-shape",
            )
        n = self.n_stations
        for name, shape in (("places", (n, 2)), ("km", (n, n))):
            given = getattr(self, name)
            if given is not None and given.shape != shape:
                raise InputError(
                    f"{name} of a table of gates must have the shape {shape}, not {given.shape}.",
                    code="wrong-shape",
                )

    @property
    def stations(self) -> tuple[str, ...]:
        """Names of the stations."""
        return self.entries.cells

    @property
    def n_stations(self) -> int:
        """Number of stations S."""
        return len(self.stations)

    @property
    def grid(self) -> AnyGridSettings | None:
        """The surroundings of each station; None where stations have no place."""
        return self.entries.grid

    @property
    def timezone(self) -> str:
        """Time zone of the clock."""
        return self.entries.timezone

    @property
    def step_minutes(self) -> float:
        """Minutes of a step."""
        return self.entries.step.total_seconds() / 60

    @property
    def n_entered(self) -> float:
        """People who entered, in all."""
        return float(np.nansum(self.entries.counts))

    @property
    def n_left(self) -> float:
        """People who left, in all."""
        return float(np.nansum(self.exits.counts))

    @property
    def distances_km(self) -> FloatArray | None:
        """Kilometres (S, S): those that were given, or straight ones; None without places."""
        if self.km is not None or self.places is None:
            return self.km
        lon, lat = self.places.T
        return great_circle_km(lon[:, None], lat[:, None], lon, lat)

    @property
    def local_times(self) -> pd.DatetimeIndex:
        """Moments (n,) on the local clock."""
        return self.entries.times.tz_convert(self.timezone).tz_localize(None)


def write_gates(table: GateTable, path: str | PathLike[str]) -> None:
    """Write a table to one Parquet file that `open_gates` gives back."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns: dict[str, pa.ChunkedArray] = {}
    about = {
        "lines": list(table.lines),
        "places": None if table.places is None else table.places.tolist(),
        "km": None if table.km is None else table.km.tolist(),
        "notes": list(table.notes),
    }
    metadata = {_METADATA_KEY: json.dumps(about).encode()}
    for side in _SIDES:
        stored = counts_to_arrow(getattr(table, side))
        columns |= {f"{side}.{name}": stored[name] for name in stored.column_names}
        metadata |= {
            f"{side}.".encode() + key: text for key, text in stored.schema.metadata.items()
        }
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path, compression="zstd")


def open_gates(path: str | PathLike[str]) -> GateTable:
    """Open what `write_gates` wrote.

    Raises
    ------
    InputError
        If there is no such file or it was not written by `write_gates`.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        stored = pq.read_table(path)
        metadata = stored.schema.metadata
        about = json.loads(metadata[_METADATA_KEY])
        return GateTable(
            _side_of(stored, "entries"),
            _side_of(stored, "exits"),
            lines=tuple(about["lines"]),
            places=_numbers(about["places"]),
            km=_numbers(about["km"]),
            notes=tuple(about["notes"]),
        )
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(_UNREADABLE, code="gates-unreadable") from error


def _numbers(values: list[list[float]] | None) -> FloatArray | None:
    return None if values is None else np.array(values, dtype=np.float64)


def _side_of(stored: pa.Table, side: str) -> CountTable:
    prefix = f"{side}."
    names = [name for name in stored.column_names if name.startswith(prefix)]
    mine = stored.select(names).rename_columns([name[len(prefix) :] for name in names])
    told = {
        key[len(prefix) :]: text
        for key, text in stored.schema.metadata.items()
        if key.startswith(prefix.encode())
    }
    return counts_from_arrow(mine.replace_schema_metadata(told))
