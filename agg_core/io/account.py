"""Which rows of a file are used, and the account of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import SHOWN_LINES, SetAside, printable

__all__ = ["Account", "Sieve", "shifted"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
LineNumbers = Callable[[IntArray], IntArray]


def shifted(line_numbers: LineNumbers, before: int) -> LineNumbers:
    """Line numbers of rows that are counted on after ``before`` rows of other files."""
    return lambda rows: line_numbers(rows - before)


class Account:
    """How many rows were set aside for what, their first lines, and one example each."""

    def __init__(self) -> None:
        self._found: dict[str, SetAside] = {}
        self._line_numbers: list[tuple[int, LineNumbers]] = []

    def follow(self, first_row: int, line_numbers: LineNumbers) -> None:
        """From this row of the file on, lines are numbered so."""
        self._line_numbers.append((first_row, line_numbers))

    def add(self, cause: str, rows: IntArray, example: Callable[[], str]) -> None:
        """Rows of the file go out for a cause."""
        if len(rows) == 0:
            return
        cause = printable(cause)
        found = self._found.get(cause, SetAside(0))
        few = rows[: 0 if len(found.lines) == SHOWN_LINES else 2 * SHOWN_LINES]
        lines = tuple(self._line_of(int(row)) for row in few)
        self._found[cause] = found + SetAside(len(rows), lines, found.example or example())

    def add_counted(self, set_aside: Mapping[str, SetAside]) -> None:
        """What a format's reader has set aside itself."""
        for cause, aside in set_aside.items():
            self._found[cause] = self._found.get(cause, SetAside(0)) + aside

    def result(self) -> dict[str, SetAside]:
        """The account so far."""
        return dict(self._found)

    def summary(self) -> str:
        """The causes and their counts in a sentence."""
        causes = (f"{cause} ({found.count:,})" for cause, found in self._found.items())
        return ", ".join(causes) or "no rows"

    def need_rows(self, n_left: int) -> None:
        """Raise InputError if no row was left."""
        if n_left == 0:
            raise InputError(
                f"No row is left: {self.summary()}; choose other rows or another file.",
                code="no-rows-left",
            )

    def _line_of(self, row: int) -> int:
        numbers = next(f for first, f in reversed(self._line_numbers) if first <= row)
        return int(numbers(np.array([row]))[0])


class Sieve:
    """Rows (n,) that are kept; a row goes out once, for the first cause that takes it.

    ``first_row`` is the number in the file of the first of them; ``example`` shows one of them.
    """

    def __init__(
        self, n_rows: int, account: Account, example: Callable[[int], str], first_row: int = 0
    ) -> None:
        self.kept: BoolArray = np.ones(n_rows, dtype=bool)
        self._account, self._example, self._first_row = account, example, first_row

    def take(self, cause: str, mask: BoolArray) -> None:
        """These rows go out, unless they are out already."""
        fresh = np.flatnonzero(mask & self.kept)
        if len(fresh):
            self.kept[fresh] = False
            self._account.add(cause, fresh + self._first_row, lambda: self._example(int(fresh[0])))

    def take_all(self, causes: Mapping[str, BoolArray]) -> None:
        """Rows go out by each cause in turn."""
        for cause, mask in causes.items():
            self.take(cause, mask)
