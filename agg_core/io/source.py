"""What a format's reader hands over: named columns, a sample, and a way to load some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.report import Guess, SetAside, printable

__all__ = ["Needed", "RawRows", "RawSource", "count_from_one", "show_names"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def count_from_one(rows: IntArray) -> IntArray:
    """Line numbers of a source whose rows count from 1."""
    return rows + 1


@dataclass(frozen=True)
class RawRows:
    """Loaded columns by position, text or typed, n rows each: all of a source, or a batch.

    ``line_numbers`` turns row indices of the source into line numbers of the file, counted from
    1; ``set_aside`` holds rows that could not even be split into columns; ``share`` is how much
    of the source has been read with this batch.
    """

    columns: Mapping[int, pa.ChunkedArray]
    n_rows: int
    line_numbers: Callable[[IntArray], IntArray] = count_from_one
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True)
class Needed:
    """What every row to keep fulfils; those that do not are set aside for ``cause``.

    A source may pass over rows that surely do not, if it counts them under the cause: where the
    column at ``position`` holds one value throughout, ``holds`` (of a column, a truth value a row)
    tells; where a range of its numbers or instants is known, it must meet ``least`` to ``most``
    (None: no limit), the most itself included unless ``below`` it is asked for.
    """

    position: int
    cause: str
    holds: Callable[[pa.ChunkedArray], BoolArray] | None = None
    least: float | np.datetime64 | None = None
    most: float | np.datetime64 | None = None
    below: bool = False

    def meets(self, low: Any, high: Any) -> bool:
        """Whether values from ``low`` to ``high`` can be within the limits."""
        if self.least is not None and high < self.least:
            return False
        if self.most is None:
            return True
        return bool(low < self.most if self.below else low <= self.most)


@dataclass(frozen=True)
class RawSource:
    """An opened file: column names (empty text where a file has none), sample rows, a loader.

    ``sample`` are the first rows as text; ``load`` reads the columns at the given positions,
    ``stream`` does so batch by batch where the format can; ``timezone`` is the zone that the file
    itself names for its clock; ``ids_end_with_file`` says that another file may give the same id
    to somebody else, ``in_degrees`` that lon and lat are degrees already, whatever reference
    system the file, or a person, states; ``is_of_one`` that a file without a column of people is of
    one person by its nature; ``passing_over`` makes the same source without rows that
    do not fulfil what is needed, which it counts in `RawRows.set_aside` of a batch without rows.
    """

    names: tuple[str, ...]
    has_header: bool
    sample: Sequence[Sequence[str]]
    load: Callable[[Sequence[int]], RawRows] | None = None
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    timezone: str | None = None
    stream: Callable[[Sequence[int]], Iterator[RawRows]] | None = None
    ids_end_with_file: bool = False
    in_degrees: bool = False
    passing_over: Callable[[Sequence[Needed]], RawSource] | None = None
    is_of_one: bool = False

    def needing(self, needed: Sequence[Needed]) -> RawSource:
        """The source, perhaps without some of the rows that do not fulfil all that is needed."""
        return self if self.passing_over is None or not needed else self.passing_over(needed)

    def batches(self, positions: Sequence[int]) -> Iterator[RawRows]:
        """The columns at these positions, one batch of rows after another."""
        wanted = list(dict.fromkeys(positions))
        if self.stream is not None:
            yield from self.stream(wanted)
        elif self.load is not None:
            yield self.load(wanted)


def show_names(source: RawSource, limit: int = 30) -> str:
    """The file's columns for a message: names, or positions with a value of the first row."""
    if source.has_header:
        shown = [printable(name, 40) or "(no name)" for name in source.names]
    else:
        first = source.sample[0] if source.sample else ()
        shown = [f"{i} ({printable(value, 24)})" for i, value in enumerate(first)]
    return ", ".join(shown[:limit]) + (", …" if len(shown) > limit else "")
