"""Any trajectory file to one checked table: `read_trajectories`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.report import printable
from agg_core.io.checks import Tidy, unset_clocks, usual_span
from agg_core.io.choices import Choices
from agg_core.io.fixes import Fixes, FixReader
from agg_core.io.formats.registry import Source, open_source
from agg_core.io.source import RawSource
from agg_core.io.spool import Spool
from agg_core.tables.report import ImportReport
from agg_core.tables.trajectories import CanonicalWriter, Trajectories

__all__ = [
    "ReadingProgress",
    "columns_of",
    "converting_steps",
    "read_trajectories",
    "reading_steps",
]

READ_SHARE = 0.7
"""Share of the work that is done when all is read and not yet in order."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReadingProgress:
    """How far reading is: rows read, and the share of the file.

    The first step has read none and tells the columns to choose from: their names, or their
    positions from 0 where a file names none, with values of the first row as ``examples``.
    """

    rows: int
    share: float
    columns: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


def read_trajectories(
    source: Source,
    *,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    filename: str | None = None,
    **stated: Any,
) -> Trajectories:
    """Read trajectories from a file or folder, bytes, an open file, a table, or several by name.

    >>> import agg_core
    >>> import pandas as pd
    >>> times = ["2024-05-01T08:00Z", "2024-05-01T09:00Z"]
    >>> seen = pd.DataFrame({"user_id": "a", "time": times, "lon": [139.5, 139.6], "lat": 35.5})
    >>> people = agg_core.read_trajectories(seen)
    >>> len(people), people.report.individuals
    (2, 1)

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
    yield columns_of(opened)
    reader, totals = FixReader(opened, choices), _Totals()
    parts: list[Fixes] = []
    for fixes in reader.batches():
        totals.see(fixes)
        parts.append(fixes)
        yield ReadingProgress(reader.rows_read, reader.share)
    reader.account.need_rows(len(totals.per_day))
    tidy = Tidy(
        reader.user_ids, choices, reader.account, usual_span(totals.per_day),
        asks_whose=reader.asks_whose,
    )  # fmt: skip
    fixes = tidy(Fixes.joined(parts))
    tidy.refuse_merged()
    totals.keep(fixes)
    report = totals.report(reader, tidy)
    yield Trajectories(_table(fixes, reader.user_ids), report, report.timezone)


def converting_steps(
    source: Source, choices: Choices, path: str | PathLike[str], *, filename: str | None = None
) -> Iterator[ReadingProgress]:
    """Read into a canonical Parquet file at ``path``, in memory that does not grow with the file.

    Fixes go to files of some people each, beside ``path``; then they are put in order some people
    at a time. The table is that of `reading_steps`.

    Raises
    ------
    InputError
        As `read_trajectories`.
    """
    opened = open_source(source, choices, filename)
    yield columns_of(opened)
    reader, totals = FixReader(opened, choices), _Totals()
    with TemporaryDirectory(dir=Path(path).parent) as folder:
        spool = Spool(Path(folder))
        for fixes in reader.batches():
            totals.see(fixes)
            spool.add(fixes)
            yield ReadingProgress(reader.rows_read, reader.share * READ_SHARE)
        reader.account.need_rows(len(totals.per_day))
        user_ids = reader.user_ids
        tidy = Tidy(
            user_ids, choices, reader.account, usual_span(totals.per_day),
            asks_whose=reader.asks_whose,
        )  # fmt: skip
        with CanonicalWriter(path) as writer:
            for share, fixes in spool.people():
                kept = tidy(fixes)
                totals.keep(kept)
                if len(kept):
                    writer.write(_table(kept, user_ids))
                yield ReadingProgress(reader.rows_read, READ_SHARE + (1 - READ_SHARE) * share)
            tidy.refuse_merged()
            report = totals.report(reader, tidy)
            writer.finish(report, report.timezone)


def columns_of(opened: RawSource) -> ReadingProgress:
    """The first step: nothing read, and the columns to choose from."""
    named = tuple(name for name in opened.names if name)
    numbers = tuple(str(i) for i in range(len(opened.names)))
    first = tuple(printable(value, 30) for value in (opened.sample[0] if opened.sample else ()))
    if opened.has_header:
        return ReadingProgress(0, 0.0, named)
    return ReadingProgress(0, 0.0, numbers, first)


def _table(fixes: Fixes, user_ids: list[str]) -> pd.DataFrame:
    present, codes = np.unique(fixes.user, return_inverse=True)
    ids = pd.Series([user_ids[i] for i in present], dtype="str")
    return pd.DataFrame(
        {
            "user_id": ids.take(codes).reset_index(drop=True),
            "time": pd.DatetimeIndex(fixes.time).tz_localize("UTC"),
            "lon": fixes.lon,
            "lat": fixes.lat,
        }
    )


class _Totals:
    """What a report says of all fixes, gathered part by part."""

    def __init__(self) -> None:
        self.per_day = Counter[np.datetime64]()
        self._per_person: list[IntArray] = []
        self._first: list[np.datetime64] = []
        self._last: list[np.datetime64] = []
        self._boxes: list[tuple[float, float, float, float]] = []

    def see(self, fixes: Fixes) -> None:
        """Fixes as they come."""
        days, counts = np.unique(fixes.time.astype("datetime64[D]"), return_counts=True)
        self.per_day.update(dict(zip(days, counts.tolist(), strict=True)))

    def keep(self, fixes: Fixes) -> None:
        """Fixes that are kept, of some people all."""
        if len(fixes) == 0:
            return
        self._per_person.append(np.unique(fixes.user, return_counts=True)[1])
        self._first.append(fixes.time.min())
        self._last.append(fixes.time.max())
        lon, lat = fixes.lon, fixes.lat
        self._boxes.append((float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max())))

    def report(self, reader: FixReader, tidy: Tidy) -> ImportReport:
        """The account of all that was kept."""
        each = np.concatenate(self._per_person)
        boxes = np.array(self._boxes)
        west, south = boxes[:, :2].min(axis=0).tolist()
        east, north = boxes[:, 2:].max(axis=0).tolist()
        return ImportReport(
            rows_read=reader.rows_read,
            rows_kept=int(each.sum()),
            individuals=len(each),
            fixes_per_individual=(int(each.min()), float(np.median(each)), int(each.max())),
            first_utc=pd.Timestamp(min(self._first), tz="UTC"),
            last_utc=pd.Timestamp(max(self._last), tz="UTC"),
            bbox=(west, south, east, north),
            timezone=reader.timezone,
            set_aside=reader.account.result(),
            guesses={**reader.guesses, **tidy.guesses, **unset_clocks(self.per_day)},
        )
