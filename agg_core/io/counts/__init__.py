"""Any file of counts to one checked table: `read_counts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from agg_core.base.errors import InputError
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.columns import looks_like_counts
from agg_core.io.counts.files import first_table, open_count_files
from agg_core.io.counts.reading import CountReader
from agg_core.io.formats.registry import Source
from agg_core.io.reading import ReadingProgress, columns_of
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import CountTable, write_counts

__all__ = [
    "CountChoices",
    "CountReport",
    "counting_steps",
    "counts_of",
    "holds_counts",
    "looks_like_counts",
    "read_counts",
]

WRITING = 0.9
"""Share of the work that is done when the table is read and not yet written."""


def read_counts(
    source: Source,
    *,
    columns: Mapping[str, str | int] | None = None,
    where: Mapping[str, str] | None = None,
    filename: str | None = None,
    **stated: Any,
) -> CountTable:
    """Read counts per cell and moment from a file or folder, bytes, a table, or several by name.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = ["2024-05-01 08:00", "2024-05-01 08:00", "2024-05-01 09:00", "2024-05-01 09:00"]
    >>> rows = pd.DataFrame({"time": hours, "cell": ["a", "b"] * 2, "count": [30, 20, 25, 25]})
    >>> agg_core.read_counts(rows).cells
    ('a', 'b')

    Parameters
    ----------
    columns
        Names (or zero-based positions) of the columns by role, see `counts.columns.ROLES`; those
        not given are found by name or layout.
    where
        Keep only rows whose column equals the value, as text or as a number.
    filename
        What messages call the file.
    **stated
        What would else be guessed: tz, absent, suppressed_below and the other fields of
        `CountChoices`.

    Raises
    ------
    InputError
        If the file cannot be read or is none of counts, a column is not found, or nothing is left.
    """
    return counts_of(source, CountChoices.of(columns, where, **stated), filename=filename)


def counts_of(source: Source, choices: CountChoices, *, filename: str | None = None) -> CountTable:
    """Like `read_counts`, with the choices as they are."""
    return CountReader(open_count_files(source, choices, filename), choices).table()


def counting_steps(
    source: Source, choices: CountChoices, path: str | PathLike[str], *, filename: str | None = None
) -> Iterator[ReadingProgress]:
    """Read counts into a file at ``path`` for `open_counts`, telling how far it is.

    Raises
    ------
    InputError
        As `read_counts`.
    """
    opened = open_count_files(source, choices, filename)
    yield columns_of(opened.first)
    table = CountReader(opened, choices).table()
    yield ReadingProgress(table.report.rows_read, WRITING)
    write_counts(table, path)


def holds_counts(source: Source, choices: CountChoices | None = None) -> bool:
    """Whether files hold counts rather than people, by a look at the first table of them.

    ``choices`` say how it is opened, where they do.
    """
    try:
        found = first_table(source, choices or CountChoices())
    except InputError:
        return False
    if found is None:
        return True
    return found.has_header and looks_like_counts(found.names, found.sample)
