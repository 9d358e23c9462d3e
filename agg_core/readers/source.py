"""What a format's reader hands over: named columns, a sample, and a way to load some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.readers.report import Guess, SetAside, printable

__all__ = ["RawRows", "RawSource", "show_names"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RawRows:
    """Loaded columns by position, text or typed, n rows each.

    ``line_numbers`` turns row indices into line numbers of the file, counted from 1;
    ``set_aside`` holds rows that could not even be split into columns.
    """

    columns: Mapping[int, pa.ChunkedArray]
    n_rows: int
    line_numbers: Callable[[IntArray], IntArray]
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)


@dataclass(frozen=True)
class RawSource:
    """An opened file: column names (empty text where a file has none), sample rows, a loader.

    ``sample`` are the first rows as text; ``load`` reads the columns at the given positions;
    ``timezone`` is the zone that the file itself names for its clock.
    """

    names: tuple[str, ...]
    has_header: bool
    sample: Sequence[Sequence[str]]
    load: Callable[[Sequence[int]], RawRows]
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    timezone: str | None = None


def show_names(source: RawSource, limit: int = 30) -> str:
    """The file's columns for a message: names, or positions with a value of the first row."""
    if source.has_header:
        shown = [printable(name, 40) or "(no name)" for name in source.names]
    else:
        first = source.sample[0] if source.sample else ()
        shown = [f"{i} ({printable(value, 24)})" for i, value in enumerate(first)]
    return ", ".join(shown[:limit]) + (", …" if len(shown) > limit else "")
