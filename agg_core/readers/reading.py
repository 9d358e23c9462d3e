"""Any trajectory file to one checked table: `read_trajectories`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from agg_core.errors import InputError
from agg_core.readers.checks import tidy
from agg_core.readers.choices import Choices
from agg_core.readers.fixes import Fixes, FixReader
from agg_core.readers.formats import Source, open_source
from agg_core.readers.report import Guess, ImportReport
from agg_core.trajectories import Trajectories

__all__ = ["ReadingProgress", "read_trajectories", "reading_steps"]


@dataclass(frozen=True)
class ReadingProgress:
    """How far reading is: rows read, and the share of the file.

    The first step has read none and tells the columns to choose from: their names, or their
    positions from 0 where a file names none.
    """

    rows: int
    share: float
    columns: tuple[str, ...] = ()


def read_trajectories(
    source: Source,
    *,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    filename: str | None = None,
    **stated: Any,
) -> Trajectories:
    """Read trajectories from a file or folder, bytes, an open file, a table, or several by name.

    Parameters
    ----------
    columns
        Names (or zero-based positions) of the columns by role, see `columns.ROLES`; those not
        given are found by name or layout.
    where
        Keep only rows whose column equals the value, as text or as a number.
    filename
        What messages call the file.
    **stated
        What would else be guessed: tz, time_format, crs, swap_axes and the other fields of
        `Choices`.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not found, or no row is left.
    """
    choices = Choices.of(columns, where, **stated)
    for step in reading_steps(source, choices, filename=filename):
        if isinstance(step, Trajectories):
            return step
    raise AssertionError("reading ends with trajectories")


def reading_steps(
    source: Source, choices: Choices, *, filename: str | None = None
) -> Iterator[ReadingProgress | Trajectories]:
    """Like `read_trajectories`, telling after each batch how far it is; the table comes last."""
    opened = open_source(source, choices, filename)
    named = tuple(name for name in opened.names if name)
    numbers = tuple(str(i) for i in range(len(opened.names)))
    yield ReadingProgress(0, 0.0, named if opened.has_header else numbers)
    reader = FixReader(opened, choices)
    parts: list[Fixes] = []
    for fixes in reader.batches():
        parts.append(fixes)
        yield ReadingProgress(reader.rows_read, reader.share)
    fixes = Fixes.joined(parts)
    if len(fixes) == 0:
        raise InputError(
            f"No row is left: {reader.account.summary()}; choose other rows or another file."
        )
    fixes, found = tidy(fixes, reader.user_ids, choices, reader.account)
    yield _trajectories(fixes, reader, found)


def _trajectories(fixes: Fixes, reader: FixReader, found: Mapping[str, Guess]) -> Trajectories:
    ids = pd.Series(reader.user_ids, dtype="str")
    table = pd.DataFrame(
        {
            "user_id": ids.take(fixes.user).reset_index(drop=True),
            "time": pd.DatetimeIndex(fixes.time).tz_localize("UTC"),
            "lon": fixes.lon,
            "lat": fixes.lat,
        }
    )
    each = np.bincount(fixes.user)
    each = each[each > 0]
    report = ImportReport(
        rows_read=reader.rows_read,
        rows_kept=len(table),
        individuals=len(each),
        fixes_per_individual=(int(each.min()), float(np.median(each)), int(each.max())),
        first_utc=table["time"].min(),
        last_utc=table["time"].max(),
        bbox=(
            *(float(fixes.lon.min()), float(fixes.lat.min())),
            *(float(fixes.lon.max()), float(fixes.lat.max())),
        ),
        timezone=reader.timezone,
        set_aside=reader.account.result(),
        guesses={**reader.guesses, **found},
    )
    return Trajectories(table, report, reader.timezone)
