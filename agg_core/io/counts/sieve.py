"""Which rows of a table of counts are used, and the account of the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agg_core.base.report import printable
from agg_core.io.fixes import Account

__all__ = ["Sieve"]

BoolArray = npt.NDArray[np.bool_]


class Sieve:
    """Rows (n,) that are kept; a row goes out once, for the first cause that takes it."""

    def __init__(
        self, n_rows: int, columns: Mapping[int, pa.ChunkedArray], account: Account
    ) -> None:
        self.kept: BoolArray = np.ones(n_rows, dtype=bool)
        self._columns, self._account = columns, account

    def take(self, cause: str, mask: BoolArray) -> None:
        """These rows go out, unless they are out already."""
        fresh = np.flatnonzero(mask & self.kept)
        if len(fresh):
            self.kept[fresh] = False
            self._account.add(cause, fresh, lambda: self._example(int(fresh[0])))

    def _example(self, row: int) -> str:
        shown = [_shown(column, row) for column in list(self._columns.values())[:8]]
        return printable(", ".join(shown), 120)


def _shown(column: pa.ChunkedArray, row: int) -> str:
    try:
        value = column[row].as_py()
    except (OverflowError, ValueError):  # a stamp beyond what Python can write
        return "out of range"
    return printable("" if value is None else value, 40)
