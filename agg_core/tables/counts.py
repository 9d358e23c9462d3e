"""The table of counts: how many people are in each cell at each moment, nobody told apart."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import check_zone
from agg_core.base.errors import InputError
from agg_core.space.settings import AnyGridSettings, grid_from_dict, grid_to_dict

if TYPE_CHECKING:
    import pyarrow as pa

    from agg_core.tables.count_report import CountReport

__all__ = [
    "ESTIMATED",
    "MISSING",
    "MOST_ENTRIES",
    "PUBLISHED",
    "SUPPRESSED",
    "CountTable",
    "check_size",
    "counts_from_arrow",
    "counts_to_arrow",
    "expected_of_hidden",
    "open_counts",
    "write_counts",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
StatusArray = npt.NDArray[np.uint8]

PUBLISHED, SUPPRESSED, MISSING, ESTIMATED = 0, 1, 2, 3
"""What is known of a cell at a moment: its number, that its number is suppressed, nothing, or of a
sum of which some parts are suppressed the others, to which what is expected of these is added."""

MOST_ENTRIES = 50_000_000
"""Moments times cells of one table."""

_METADATA_KEY = b"agg_core.tables.counts"
_UNREADABLE = "The stored counts cannot be read; load the original file again."


def check_size(n_moments: int, n_cells: int) -> None:
    """Refuse a table that would be too large to hold.

    Raises
    ------
    InputError
        With its size and what to do.
    """
    if n_moments * n_cells > MOST_ENTRIES:
        raise InputError(
            f"{n_cells:,} cells at {n_moments:,} moments are more than the {MOST_ENTRIES:,} "
            "counts that one table can hold; choose fewer cells or days.",
            code="table-too-large",
        )


@dataclass(frozen=True)
class CountTable:
    """People counted per cell and moment: n moments, c cells.

    ``times`` (n,) are the beginnings of the periods in UTC, in order; ``sequence`` (n,) the number
    of the unbroken run of each, from 0: successive moments of a run are one step apart. ``slot``
    (n,) is the time of day of each, an index into the labels ``slots``. ``counts`` (n, c) are NaN
    unless ``status`` (n, c) is `PUBLISHED` or `ESTIMATED`; a suppressed one is at least 0 and below
    ``suppressed_below``, which is 0 where nothing is suppressed. ``grid`` has the cells in the
    order of ``cells``; it is None where their names have no place.

    Raises
    ------
    InputError
        If shapes do not fit, times or runs are out of order, or counts and status disagree.
    """

    times: pd.DatetimeIndex
    sequence: IntArray
    slot: IntArray
    slots: tuple[str, ...]
    cells: tuple[str, ...]
    counts: FloatArray
    status: StatusArray
    suppressed_below: float
    timezone: str
    grid: AnyGridSettings | None
    report: CountReport

    def __post_init__(self) -> None:
        object.__setattr__(self, "timezone", check_zone(self.timezone))
        self._check_shapes()
        self._check_order()
        self._check_values()

    def _check_shapes(self) -> None:
        n, c = len(self.times), len(self.cells)
        if n == 0 or c == 0:
            raise InputError(
                "A table of counts needs one moment and one cell at least.", code="table-empty"
            )
        check_size(n, c)
        shapes = {
            "sequence": (self.sequence.shape, (n,)),
            "slot": (self.slot.shape, (n,)),
            "counts": (self.counts.shape, (n, c)),
            "status": (self.status.shape, (n, c)),
        }
        for name, (found, wanted) in shapes.items():
            if found != wanted:
                raise InputError(
                    f"{name} of a table of counts must have the shape {wanted}, not {found}.",
                    code="wrong-shape",
                )
        if len(set(self.cells)) < c:
            raise InputError(
                "Two cells of a table of counts have one name; rename one.",
                code="duplicate-cell-name",
            )
        if self.grid is not None and _n_cells(self.grid) != c:
            raise InputError(
                "The grid of a table of counts must have its cells, and no others.",
                code="grid-differs",
            )

    def _check_order(self) -> None:
        if self.times.tz is None or self.times.hasnans:
            raise InputError(
                "The times of a table of counts must be instants in UTC.", code="times-not-utc"
            )
        steps = np.diff(self.sequence)
        in_order = self.times.is_monotonic_increasing and self.times.is_unique
        if not in_order or self.sequence[0] != 0 or not np.isin(steps, (0, 1)).all():
            raise InputError(
                "The moments of a table of counts must be in order, and their runs numbered so.",
                code="moments-out-of-order",
            )
        if self.slot.min() < 0 or self.slot.max() >= len(self.slots):
            raise InputError(
                "The slots of a table of counts must be indices into their labels.",
                code="slot-out-of-range",
            )

    def _check_values(self) -> None:
        if self.status.max() > ESTIMATED:
            raise InputError(
                "The status of a count must be one of the four that there are.",
                code="unknown-status",
            )
        known = (self.status == PUBLISHED) | (self.status == ESTIMATED)
        values = self.counts[known]
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise InputError(
                "Published counts must be numbers, none of them negative.", code="not-counts"
            )
        if not np.isnan(self.counts[~known]).all():
            raise InputError(
                "Counts that are not published must be left open (NaN).",
                code="unpublished-with-value",
            )
        below = self.suppressed_below
        if not (np.isfinite(below) and below >= 0) or (below == 0 and self.n_suppressed):
            raise InputError(
                "Suppressed counts need a positive number that they are below.",
                code="suppressed-without-bound",
            )

    @property
    def n_cells(self) -> int:
        """Number of cells c."""
        return len(self.cells)

    @property
    def has_dates(self) -> bool:
        """Whether moments are of the dates that they have, not of months that these stand for."""
        return "dates" not in self.report.guesses

    @property
    def n_moments(self) -> int:
        """Number of moments n."""
        return len(self.times)

    @property
    def step(self) -> pd.Timedelta:
        """Commonest time from a moment to the next of its run; an hour where no run has two."""
        within = np.diff(self.sequence) == 0
        if not within.any():
            return pd.Timedelta(hours=1)
        spacings, numbers = np.unique(np.diff(self.times.to_numpy())[within], return_counts=True)
        return pd.Timedelta(spacings[numbers.argmax()])

    @property
    def n_published(self) -> int:
        """Cells at moments whose number is known, zeros too."""
        return int((self.status == PUBLISHED).sum())

    @property
    def n_suppressed(self) -> int:
        """Cells at moments whose number is suppressed."""
        return int((self.status == SUPPRESSED).sum())

    @property
    def n_missing(self) -> int:
        """Cells at moments where nothing was measured."""
        return int((self.status == MISSING).sum())

    @property
    def n_estimated(self) -> int:
        """Cells at moments whose number is a sum of which some parts are suppressed."""
        return int((self.status == ESTIMATED).sum())

    @property
    def totals(self) -> FloatArray:
        """Sum of the counts of each moment that are published or estimated, (n,)."""
        return np.asarray(np.nansum(self.counts, axis=1), dtype=np.float64)

    def take(self, moments: npt.ArrayLike) -> CountTable:
        """The table of some moments, by a mask (n,) or by indices in order.

        Moments that were not successive are in different runs.

        Raises
        ------
        InputError
            If there are none, or they are out of order.
        """
        chosen = np.asarray(moments)
        rows = np.arange(self.n_moments)[chosen if chosen.size else slice(0)]
        if len(rows) == 0 or (np.diff(rows) <= 0).any():
            raise InputError(
                "Choose one moment at least, each once and in order.", code="moments-not-chosen"
            )
        breaks = (np.diff(rows) > 1) | (np.diff(self.sequence[rows]) > 0)
        return replace(
            self,
            times=self.times[rows],
            sequence=np.concatenate([[0], np.cumsum(breaks)]).astype(np.int64),
            slot=self.slot[rows],
            counts=self.counts[rows],
            status=self.status[rows],
        )


def _n_cells(grid: AnyGridSettings) -> int:
    for name in ("codes", "cells", "names"):
        listed = getattr(grid, name, ())
        if listed:
            return len(listed)
    return grid.make().n_cells


def write_counts(table: CountTable, path: str | PathLike[str]) -> None:
    """Write a table to one Parquet file that `open_counts` gives back."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(counts_to_arrow(table), path, compression="zstd")


def counts_to_arrow(table: CountTable) -> pa.Table:
    """A row per moment: its time, run and slot, counts and status as lists of c values."""
    import pyarrow as pa  # noqa: PLC0415

    def rows_of(values: npt.NDArray[Any]) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), table.n_cells)

    columns = {
        "time": pa.array(table.times.as_unit("us")),
        "sequence": pa.array(table.sequence),
        "slot": pa.array(table.slot),
        "counts": rows_of(table.counts),
        "status": rows_of(table.status),
    }
    about = json.dumps(_about(table)).encode()
    return pa.table(columns).replace_schema_metadata({_METADATA_KEY: about})


def _about(table: CountTable) -> dict[str, Any]:
    grid = None if table.grid is None else {"grid": grid_to_dict(table.grid)}
    return {
        "slots": table.slots,
        "cells": table.cells,
        "suppressed_below": table.suppressed_below,
        "timezone": table.timezone,
        "grid": grid,
        "report": table.report.to_dict(),
    }


def open_counts(path: str | PathLike[str]) -> CountTable:
    """Open what `write_counts` wrote.

    Raises
    ------
    InputError
        If there is no such file or it was not written by `write_counts`.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return counts_from_arrow(pq.read_table(path))
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(_UNREADABLE, code="counts-unreadable") from error


def counts_from_arrow(stored: pa.Table) -> CountTable:
    """The table that `counts_to_arrow` laid out so.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it was laid out otherwise.
    """
    from agg_core.tables.count_report import CountReport  # noqa: PLC0415

    about = json.loads(stored.schema.metadata[_METADATA_KEY])
    shape = (stored.num_rows, len(about["cells"]))

    def matrix(name: str) -> npt.NDArray[Any]:
        flat = stored[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.array(flat).reshape(shape)

    grid = about["grid"]
    return CountTable(
        times=pd.DatetimeIndex(stored["time"].to_pandas()).tz_convert("UTC"),
        sequence=np.array(stored["sequence"].to_numpy()),
        slot=np.array(stored["slot"].to_numpy()),
        slots=tuple(about["slots"]),
        cells=tuple(about["cells"]),
        counts=matrix("counts"),
        status=matrix("status"),
        suppressed_below=float(about["suppressed_below"]),
        timezone=about["timezone"],
        grid=None if grid is None else grid_from_dict(grid["grid"]),
        report=CountReport.from_dict(about["report"]),
    )


def expected_of_hidden(seen: FloatArray, n_hidden: int, below: float) -> float:
    """Mean of suppressed counts if each octave below the bound has as many as the one above it.

    ``seen`` are the counts that are known. Their numbers per doubling change slowly in a city;
    what is suppressed beyond them is zero. So thousands of suppressed parts, of which most hold
    nobody, do not make a crowd.
    """
    if n_hidden == 0 or below <= 1:
        return below / 2 if below < 1 else 0.0
    above = int(((seen >= below) & (seen < 2 * below)).sum())
    share = min(above * np.log2(below) / n_hidden, 1.0)
    return float(share * min((below - 1) / np.log(below), below / 2))
