"""Tables with a row per cell and a column per time, as tables with a row per time and cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.report import Guess
from agg_core.io.counts.columns import ROLES
from agg_core.io.counts.values import coded, is_count
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import number_of, plain_name
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.source import RawRows, RawSource
from agg_core.tables.counts import check_size

__all__ = ["TRANSPOSED", "headed", "time_columns", "unfolded"]

IntArray = npt.NDArray[np.int64]

TRANSPOSED = "transposed"
"""The layout with a row per cell and a column per time."""

LEAST_TIMES = 2
LEAST_HOURS = 12
"""So many numbers from 0 to 24 as names of columns are hours, where another column is the date."""
_DATE = re.compile(
    r"(?:19|20)\d{2}([-/.]?)(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?:\d{4}(?:\d{2})?)?"
)
_SAMPLE = 50


def time_columns(names: Sequence[str], sample: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Positions of the columns that are called by a time and hold counts; none if few are.

    Clock times and hours of the day are times where there is a column of dates.
    """
    plain = [plain_name(name) for name in names]
    dated = bool(set(plain) & set(ROLES["date"]))
    at = [i for i, name in enumerate(names) if _is_time(name)]
    if dated and not at:
        at = [i for i, name in enumerate(names) if looks_like_clock(name)]
        at = at or _hours(names)
    named = {names[i].strip() for i in at}
    others = len(names) - len(at)
    if len(at) < LEAST_TIMES or len(named) < len(at) or others > len(at) + 1 or not others:
        return ()
    values = [row[i] for row in sample[:_SAMPLE] for i in at if i < len(row)]
    return tuple(at) if 2 * sum(map(is_count, values)) > len(values) else ()


def _is_time(name: str) -> bool:
    text = name.strip()
    return looks_like_time(text) or bool(_DATE.fullmatch(text))


def _hours(names: Sequence[str]) -> list[int]:
    """Columns called 0 to 23 or 1 to 24, if most hours are there."""
    found = {i: number_of(name) for i, name in enumerate(names)}
    at = [i for i, hour in found.items() if hour is not None and 0 <= hour <= 24 and hour % 1 == 0]
    return at if len(at) >= LEAST_HOURS else []


def headed(source: RawSource) -> RawSource:
    """The source with its first row as the names of its columns."""

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        skip = 1
        for rows in source.batches(positions):
            taken = min(skip, rows.n_rows)
            skip -= taken
            columns = {position: column.slice(taken) for position, column in rows.columns.items()}
            yield replace(
                rows, columns=columns, n_rows=rows.n_rows - taken,
                line_numbers=_one_later(rows.line_numbers),
            )  # fmt: skip

    first, *rows = source.sample
    return replace(
        source, names=tuple(first), has_header=True, sample=rows, load=None, stream=stream
    )


def unfolded(source: RawSource) -> RawSource:
    """The source with a row for each cell and time, if its columns are called by times."""
    times = time_columns(source.names, source.sample) if source.has_header else ()
    if not times:
        return source
    kept = [i for i in range(len(source.names)) if i not in times]
    names = tuple(source.names[i] for i in kept)
    known = [*ROLES.values(), PERSON_ROLES["user_id"]]
    if len(kept) == 1 and not any(plain_name(names[0]) in spelt for spelt in known):
        names = ("cell",)
    called = [source.names[i].strip() for i in times]
    said = Guess(f"names of {len(times):,} columns", (), "a row per cell, a column per time")

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        before = 0
        for rows in source.batches([*kept, *times]):
            check_size(rows.n_rows, len(times))
            yield _unfolded_rows(rows, kept, times, called, positions, before)
            before += rows.n_rows

    return replace(
        source, names=(*names, "time", "count"), sample=_sample(source, kept, times), load=None,
        stream=stream, guesses={**source.guesses, "times": said},
    )  # fmt: skip


def _unfolded_rows(
    rows: RawRows,
    kept: Sequence[int],
    times: Sequence[int],
    called: Sequence[str],
    positions: Sequence[int],
    before: int,
) -> RawRows:
    """All rows at the first time, then all at the next."""
    n, k = rows.n_rows, len(times)
    columns = {}
    for position in positions:
        if position < len(kept):
            column = _plain(rows.columns[kept[position]])
            columns[position] = pa.chunked_array(column.chunks * k, column.type)
        elif position == len(kept):
            labels = pa.array(called, pa.large_string())
            columns[position] = pa.chunked_array([labels.take(np.repeat(np.arange(k), n))])
        else:
            columns[position] = _stacked([rows.columns[i] for i in times])
    return replace(
        rows, columns=columns, n_rows=n * k,
        line_numbers=_lines(rows.line_numbers, n, before, before * k),
    )  # fmt: skip


def _one_later(of_rows: Callable[[IntArray], IntArray]) -> Callable[[IntArray], IntArray]:
    return lambda rows: of_rows(rows + 1)


def _lines(
    of_rows: Callable[[IntArray], IntArray], n: int, before: int, first: int
) -> Callable[[IntArray], IntArray]:
    return lambda rows: of_rows((rows - first) % max(n, 1) + before)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def _stacked(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Columns one below the other, as text where their types differ."""
    plain = [_plain(column) for column in columns]
    if len({column.type for column in plain}) == 1:
        chunks = [chunk for column in plain for chunk in column.chunks]
        return pa.chunked_array(chunks, plain[0].type)
    words = [coded(column) for column in plain]
    return pa.chunked_array(
        [pa.array([word.texts[i] for i in word.codes], pa.large_string()) for word in words]
    )


def _sample(source: RawSource, kept: Sequence[int], times: Sequence[int]) -> list[list[str]]:
    """First rows as text; few cells at many times, as the times are what is to be told."""
    found = []
    for row in source.sample[:_SAMPLE]:
        whole = [*row, *[""] * (len(source.names) - len(row))]
        found += [[*(whole[i] for i in kept), source.names[t].strip(), whole[t]] for t in times]
    return found
