"""Cells numbered on a grid, by one number or by row and column: where each of them lies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.counts.choices import CORNERS, SOUTH_WEST, CountChoices
from agg_core.io.counts.values import Coded, without_zeros
from agg_core.space.grid import Bounds

if TYPE_CHECKING:
    from agg_core.space.settings import AnyGridSettings

__all__ = [
    "GridHint",
    "Numbering",
    "Numbers",
    "by_row_and_column",
    "hint_of",
    "numbering_of",
    "numbers_of",
]

IntArray = npt.NDArray[np.int64]
Numbers = Mapping[str, tuple[int | None, int]]
"""Row, or None where one number tells all, and column or number of each cell by its name."""

MOST_A_SIDE = 100
"""Rows or columns of a `GridSettings`."""
DENSE_FROM = 0.25
LEAST_CELLS = 4
MOST_NUMBER = 10**9


@dataclass(frozen=True)
class GridHint:
    """The extent of a grid that a file tells itself, and its rows and columns, 0 where open."""

    box: Bounds
    rows: int = 0
    cols: int = 0


def hint_of(
    west: float, south: float, east: float, north: float, rows: float = 0, cols: float = 0
) -> GridHint | None:
    """What a file tells of its grid; nothing where that is no extent in degrees."""
    if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
        return None
    sides = [int(side) if 1 <= side <= MOST_NUMBER else 0 for side in (rows, cols)]
    box = (float(west), float(south), float(east), float(north))
    return GridHint(box, *sides)


@dataclass(frozen=True)
class Numbering:
    """A grid of rows x cols cells over an extent, and how its cells are numbered.

    They are numbered row by row from the corner in the south-west, or in the north-west, from
    ``first``. Cells as such are counted from the south-west, from 0.
    """

    box: Bounds
    rows: int
    cols: int
    from_north: bool
    first: int
    by_row: bool
    index: Mapping[str, int]

    @property
    def n_cells(self) -> int:
        """Cells of the whole grid."""
        return self.rows * self.cols

    def places(self) -> dict[str, tuple[float, float]]:
        """Middle of each named cell in degrees."""
        boxes = self._boxes(list(self.index.values()))
        middles = [((w + e) / 2, (s + n) / 2) for w, s, e, n in boxes]
        return dict(zip(self.index, middles, strict=True))

    def in_full(self) -> Numbering:
        """With all cells of the grid from the south-west; those that have no name by number."""
        known = {at: name for name, at in self.index.items()}
        names = {known.get(at) or self._name(at): at for at in range(self.n_cells)}
        return replace(self, index=names)

    def grid(self, names: Sequence[str]) -> AnyGridSettings:
        """The cells of these names in their order: all of the grid, or areas that are some."""
        from agg_core.space.areas import pack  # noqa: PLC0415
        from agg_core.space.settings import AreaSettings, GridSettings  # noqa: PLC0415

        if len(names) == self.n_cells and max(self.rows, self.cols) <= MOST_A_SIDE:
            return GridSettings(*self.box, self.rows, self.cols, names=tuple(names))
        import shapely  # noqa: PLC0415

        boxes = self._boxes([self.index[name] for name in names])
        shapes = shapely.box(*np.array(boxes, dtype=np.float64).T)
        column = f"number on a grid of {self.rows} x {self.cols}"
        return AreaSettings(tuple(names), pack(np.asarray(shapes, dtype=object)), column=column)

    def _boxes(self, at: Sequence[int]) -> list[Bounds]:
        west, south, east, north = self.box
        x = np.linspace(west, east, self.cols + 1).tolist()
        y = np.linspace(south, north, self.rows + 1).tolist()
        rows_cols = [divmod(each, self.cols) for each in at]
        return [(x[c], y[r], x[c + 1], y[r + 1]) for r, c in rows_cols]

    def _name(self, at: int) -> str:
        row, col = divmod(at, self.cols)
        row = self.rows - 1 - row if self.from_north else row
        if self.by_row:
            return _pair_name(row + self.first, col + self.first)
        return str(row * self.cols + col + self.first)


def _pair_name(row: int, col: int) -> str:
    return f"row {row}, column {col}"


def by_row_and_column(row: Coded, col: Coded, names: Coded | None) -> tuple[Coded, Numbers]:
    """Cell of each row by its numbers, and those of each; by its name where that tells the same.

    The name is empty where a number cannot be read.
    """
    both = row.codes * len(col.texts) + col.codes
    present, codes = np.unique(both, return_inverse=True)
    pairs = [divmod(int(key), len(col.texts)) for key in present]
    read = [(_whole(row.texts[a]), _whole(col.texts[b])) for a, b in pairs]
    known = [None if None in pair else (int(pair[0] or 0), int(pair[1] or 0)) for pair in read]
    codes = codes.reshape(-1).astype(np.int64)
    if names is not None and _same_cells(names, codes, len(pairs)):
        at = np.zeros(len(names.texts), dtype=np.int64)
        at[names.codes] = codes
        named = dict(zip(names.texts, (known[i] for i in at.tolist()), strict=True))
        return names, {name: pair for name, pair in named.items() if name and pair is not None}
    texts = ["" if pair is None else _pair_name(*pair) for pair in known]
    return Coded(codes, texts), {
        text: pair for text, pair in zip(texts, known, strict=True) if pair is not None
    }


def _same_cells(names: Coded, codes: IntArray, n_pairs: int) -> bool:
    """Whether each name has one row and column, and each of these one name."""
    n_both = len(np.unique(names.codes * max(n_pairs, 1) + codes))
    return n_both == len(np.unique(names.codes)) == len(np.unique(codes))


def numbers_of(texts: Sequence[str]) -> Numbers:
    """The number of each text that is a whole one."""
    found = {text: _whole(text) for text in texts if text}
    return {text: (None, number) for text, number in found.items() if number is not None}


def _whole(text: str) -> int | None:
    plain = without_zeros(text.strip())
    digits = plain.isascii() and plain.isdigit() and len(plain) <= len(str(MOST_NUMBER))
    return int(plain) if digits else None


def numbering_of(
    numbers: Numbers, texts: Sequence[str], choices: CountChoices, hint: GridHint | None
) -> tuple[Numbering | None, dict[str, Guess]]:
    """The grid that cells of these numbers stand on, if its extent is stated or the file tells it.

    ``texts`` are the names of all cells.

    Raises
    ------
    InputError
        If a number is beyond the grid, no cell has one, or rows and columns are stated alone.
    """
    box = choices.grid_box or (hint.box if hint else ())
    if not box:
        if choices.grid_rows or choices.grid_cols:
            raise InputError(
                "A grid of numbered cells needs its extent, too: west, south, east and north in "
                "degrees (grid_box).",
                code="no-grid-extent",
            )
        return None, _asked(numbers, texts)
    if not numbers:
        if not choices.grid_box:
            return None, {}
        some = printable(next((text for text in texts if text), ""), 20)
        raise InputError(
            f"The cells, such as {some!r}, are no numbers on a grid; leave the extent of numbered "
            "cells open (grid_box), or say which columns are row and col.",
            code="cells-not-numbered",
        )
    west, south, east, north = box
    bounds = (west, south, east, north)
    by_row = next(iter(numbers.values()))[0] is not None
    first, told = _first(numbers, choices, hint, by_row)
    rows, cols, sized = _size(numbers, bounds, choices, hint, first)
    from_north = choices.grid_corner != SOUTH_WEST
    index = {
        name: _index(name, row, number - first, rows, cols, first, from_north)
        for name, (row, number) in numbers.items()
    }
    others = tuple(corner for corner in CORNERS if corner != choices.grid_corner)
    corner = Guess(choices.grid_corner, others, "where the first of them is", "grid_corner")
    guesses = {**told, **sized, "numbers": corner}
    return Numbering(bounds, rows, cols, from_north, first, by_row, index), guesses


def _asked(numbers: Numbers, texts: Sequence[str]) -> dict[str, Guess]:
    """What to say of cells that seem to be numbered on a grid that nobody told."""
    largest = max((number for _, number in numbers.values()), default=0)
    by_row = any(row is not None for row, _ in numbers.values())
    n_named = sum(bool(text) for text in texts)
    dense = n_named >= LEAST_CELLS and len(numbers) == n_named > DENSE_FROM * largest
    if not numbers or not (by_row or dense):
        return {}
    note = "for a map say the extent of their grid, its rows and columns"
    return {"cells": Guess("numbers of cells", (), note, "grid_box")}


def _first(
    numbers: Numbers, choices: CountChoices, hint: GridHint | None, by_row: bool
) -> tuple[int, dict[str, Guess]]:
    """The first number, 0 or 1: stated, or as the smallest and the largest tell."""
    if choices.grid_first != "auto":
        return int(choices.grid_first), {}
    rows = choices.grid_rows or (hint.rows if hint else 0)
    cols = choices.grid_cols or (hint.cols if hint else 0)
    tops = [row for row, _ in numbers.values() if row is not None]
    sides = [number for _, number in numbers.values()]
    if 0 in tops or 0 in sides:
        return 0, {"first number": Guess("0", option="grid_first")}
    largest = (max(tops), max(sides)) if by_row else (max(sides),)
    ends = (rows, cols) if by_row else (rows * cols,)
    if any(number == end for number, end in zip(largest, ends, strict=True)):
        return 1, {"first number": Guess("1", option="grid_first")}
    fits = all(number == end - 1 for number, end in zip(largest, ends, strict=True))
    smallest = min(*tops, *sides) if by_row else min(sides)
    first = 1 if smallest == 1 and not fits else 0
    note = f"the smallest one is {smallest}"
    return first, {"first number": Guess(str(first), (str(1 - first),), note, "grid_first")}


def _size(
    numbers: Numbers, box: Bounds, choices: CountChoices, hint: GridHint | None, first: int
) -> tuple[int, int, dict[str, Guess]]:
    """Rows and columns: stated, told, or as few as hold all numbers, of cells about square."""
    rows = choices.grid_rows or (hint.rows if hint else 0)
    cols = choices.grid_cols or (hint.cols if hint else 0)
    if rows and cols:
        return rows, cols, {}
    tops = [row for row, _ in numbers.values() if row is not None]
    last = max(number for _, number in numbers.values()) - first + 1
    if tops:
        rows, cols = rows or max(tops) - first + 1, cols or last
    elif rows:
        cols = math.ceil(last / rows)
    elif not cols:
        west, south, east, north = box
        narrow = math.cos(math.radians((south + north) / 2))
        wide = (east - west) * max(narrow, 0.01) / (north - south)
        cols = max(round(math.sqrt(last * wide)), 1)
    rows = max(rows or math.ceil(last / cols), 1)
    cols = max(cols, 1)
    note = "as few as hold all numbers; say rows and columns if there are more"
    option = "grid_rows" if cols and choices.grid_cols else "grid_cols"
    size = Guess(f"{rows} rows x {cols} columns", (), note, option)
    return rows, cols, {"size of the grid": size}


def _index(
    name: str, row: int | None, number: int, rows: int, cols: int, first: int, from_north: bool
) -> int:
    """Index from the south-west of a cell by its numbers, of which the last is counted from 0."""
    up, across = divmod(number, cols) if row is None else (row - first, number)
    if not (0 <= up < rows and 0 <= across < cols):
        raise InputError(
            f"The cell {printable(name, 40)} is not on a grid of {rows:,} rows x {cols:,} columns "
            f"that is numbered from {first}; say other rows and columns, or another first number.",
            code="cell-off-grid",
        )
    return (rows - 1 - up if from_north else up) * cols + across
