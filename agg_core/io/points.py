"""Points gathered one by one from a document, kept as columns, handed over as a source."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.errors import InputError
from agg_core.base.report import SHOWN_LINES, Guess, SetAside, printable
from agg_core.io.source import RawRows, RawSource
from agg_core.io.texts import written

__all__ = [
    "ACCURACY",
    "PLACE",
    "SAMPLE_ROWS",
    "LeftOut",
    "NumberColumn",
    "PointTable",
    "TextColumn",
    "as_source",
    "sampled",
    "spread",
]

PLACE = ("user_id", "time", "lon", "lat")
ACCURACY = "accuracy_m"
SAMPLE_ROWS = 50
CHUNK_ROWS = 1 << 16
SPREAD_ROWS = 1 << 20

IntArray = npt.NDArray[np.int64]


class TextColumn:
    """A growing column of texts, null where None."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._values: list[str | None] = []

    def append(self, value: str | None) -> None:
        """Add one value."""
        self._values.append(value)
        if len(self._values) >= CHUNK_ROWS:
            self._pack()

    def finish(self) -> pa.ChunkedArray:
        """All values so far."""
        self._pack()
        return pa.chunked_array(self._chunks, pa.string())

    def _pack(self) -> None:
        if not self._values:
            return
        try:
            packed = pa.array(self._values, pa.string())
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
            whole = [text and text.encode(errors="replace").decode() for text in self._values]
            packed = pa.array(whole, pa.string())
        self._chunks += packed.chunks if isinstance(packed, pa.ChunkedArray) else [packed]
        self._values = []


class NumberColumn:
    """A growing column of numbers, null where not finite."""

    def __init__(self) -> None:
        self._values = array("d")

    def append(self, value: float) -> None:
        """Add one value."""
        self._values.append(value)

    def finish(self) -> pa.ChunkedArray:
        """All values so far."""
        numbers = np.array(self._values, dtype=np.float64)
        return pa.chunked_array([pa.array(numbers, mask=~np.isfinite(numbers))])


class LeftOut:
    """Points that are no rows: by cause their count, their first numbers and one example."""

    def __init__(self) -> None:
        self._found: dict[str, SetAside] = {}

    def note(self, cause: str, numbers: Sequence[int], example: str = "") -> None:
        """Add the points with these numbers in the file."""
        if numbers:
            more = SetAside(len(numbers), tuple(islice(numbers, SHOWN_LINES)), printable(example))
            self._found[cause] = self._found.get(cause, SetAside(0)) + more

    def __len__(self) -> int:
        return sum(found.count for found in self._found.values())

    def account(self) -> dict[str, SetAside]:
        """What was noted."""
        return dict(self._found)


class PointTable:
    """Rows of a person, a time, a place, and columns of the reader's own."""

    def __init__(self, *others: str) -> None:
        self.names = (*PLACE, *others)
        self._columns = [
            NumberColumn() if name in ("lon", "lat", ACCURACY) else TextColumn()
            for name in self.names
        ]
        self._appends = [column.append for column in self._columns]
        self.numbers = array("q")
        self.n_times = 0
        self.left_out = LeftOut()

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, number: int, *values: str | float | None) -> None:
        """Add a row, its values in the order of the names; ``number`` counts points from 1."""
        self.numbers.append(number)
        self.n_times += values[1] is not None
        for append, value in zip(self._appends, values, strict=True):
            append(value)  # type: ignore[arg-type]  # text and numbers by the column's name

    def columns(self) -> dict[str, pa.ChunkedArray]:
        """The finished columns by name."""
        return {
            name: column.finish() for name, column in zip(self.names, self._columns, strict=True)
        }

    def to_source(
        self, guesses: Mapping[str, Guess], columns: Mapping[str, pa.ChunkedArray] | None = None
    ) -> RawSource:
        """The rows as a source; ``columns`` stand in for the table's own."""
        whole = columns or self.columns()
        values = list(whole.values())
        return as_source(
            tuple(whole), lambda at, n: values[at].slice(0, n), self.numbers, self.left_out, guesses
        )


def as_source(
    names: Sequence[str],
    column: Callable[[int, int], pa.ChunkedArray],
    numbers: Sequence[int],
    left_out: LeftOut,
    guesses: Mapping[str, Guess],
    *,
    in_degrees: bool = False,
) -> RawSource:
    """Gathered rows as a source.

    ``column`` makes the column at a position, of so many of the first rows, when it is asked for;
    ``numbers`` (n,) count the points of the file that became rows, from 1.
    """
    counted, set_aside = np.array(numbers, dtype=np.int64), left_out.account()
    n_rows = len(counted)

    def load(positions: Sequence[int]) -> RawRows:
        loaded = {at: column(at, n_rows) for at in positions}
        return RawRows(loaded, n_rows, lambda rows: counted[rows], set_aside)

    sample = sampled(column(at, SAMPLE_ROWS) for at in range(len(names)))
    return RawSource(tuple(names), True, sample, load, guesses, in_degrees=in_degrees)


def sampled(columns: Iterable[pa.Array | pa.ChunkedArray]) -> list[list[str]]:
    """The first rows of some columns as text; of lists, bytes and the like it is empty."""
    heads = [
        [written(value) for value in column.slice(0, SAMPLE_ROWS)] if _is_plain(column.type)
        else [""] * min(len(column), SAMPLE_ROWS)
        for column in columns
    ]  # fmt: skip
    return [list(row) for row in zip(*heads, strict=True)]


def _is_plain(kind: pa.DataType) -> bool:
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return not (is_binary or kind == pa.binary_view() or pa.types.is_nested(kind))


def spread(values: pa.Array | pa.ChunkedArray, index: IntArray) -> pa.ChunkedArray:
    """The values at each index, null where it is negative.

    Raises
    ------
    InputError
        If the texts are too long to be repeated so often.
    """
    pieces: list[pa.Array] = []
    for start in range(0, len(index), SPREAD_ROWS):
        piece = index[start : start + SPREAD_ROWS]
        try:
            taken = values.take(pa.array(piece, mask=piece < 0))
        except pa.ArrowException as error:
            raise InputError(
                "The texts beside the points are too long to read; shorten or leave them out.",
                code="too-much-text",
            ) from error
        pieces += taken.chunks if isinstance(taken, pa.ChunkedArray) else [taken]
    return pa.chunked_array(pieces, values.type)
