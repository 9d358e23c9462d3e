"""Tables with a row per cell and a column per time, as tables with a row per time and cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.report import Guess
from agg_core.io.counts.columns import ROLES
from agg_core.io.counts.values import is_count, stacked
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import number_of, plain_name
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.layouts import Made, derived
from agg_core.io.source import RawRows, RawSource
from agg_core.io.texts import is_text, plain
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
    labels = pa.array([source.names[i].strip() for i in times], pa.large_string())

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        n, k = len(columns[times[0]]), len(times)
        check_size(n, k)
        parents = np.repeat(np.arange(n), k)
        counts = stacked([plain(columns[i]) for i in times])
        made = [_few(columns[i]).take(pa.array(parents)) for i in kept]
        made.append(pa.chunked_array([labels.take(pa.array(np.tile(np.arange(k), n)))]))
        made.append(counts.take(pa.array(np.arange(n * k).reshape(k, n).T.ravel())))
        return made, parents

    said = Guess(f"names of {len(times):,} columns", (), "a row per cell, a column per time")
    return derived(
        source, (*names, "time", "count"), [*kept, *times], make,
        guesses={**source.guesses, "times": said},
    )  # fmt: skip


def _one_later(of_rows: Callable[[IntArray], IntArray]) -> Callable[[IntArray], IntArray]:
    return lambda rows: of_rows(rows + 1)


def _few(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of texts that are repeated often, each of them held once."""
    return column.dictionary_encode() if is_text(column) else column
