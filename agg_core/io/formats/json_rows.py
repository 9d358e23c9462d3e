"""Rows written as JSON objects: a list of them, one a line, or a list within an object."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from agg_core.base.errors import InputError
from agg_core.io.contents import Data
from agg_core.io.formats.json_nested import points_within, rows_within
from agg_core.io.formats.json_text import SparseColumns, head_text, json_pieces
from agg_core.io.points import LeftOut, as_source
from agg_core.io.source import RawSource

__all__ = ["open_json_rows", "recognises_json"]

LISTS = (
    *("data", "rows", "records", "results", "items", "points", "positions", "locations", "entity"),
    *("vehicles", "vehicle_status", "events", "messages", "documents", "docs", "fixes", "devices"),
    *("trips", "entries", "trackpoints", "values", "track", "observations", "states"),
)
"""Keys under which an object holds the list of its rows."""


def recognises_json(head: bytes) -> bool:
    """Whether a file that begins so is JSON of any kind."""
    return head_text(head) != ""


def open_json_rows(data: Data, name: str) -> RawSource:
    """Open rows in JSON as a table of texts; an object within a row gives columns ``outer.inner``.

    Rows may lie deeper within an object, or within rows that hold what is common to them.

    Raises
    ------
    InputError
        If it is no JSON, broken, or holds no list of objects.
    """
    found = _Rows(name)
    for key, value in json_pieces(data, name, LISTS):
        if key is not None:
            found.take(value)
        elif isinstance(value, dict) and not _is_wrapper(value):
            for row in rows_within(value):
                found.take(row)
        elif not (isinstance(value, list) or _is_wrapper(value)):
            found.take(value)
    return found.to_source()


def _is_wrapper(document: Any) -> bool:
    """Whether an outermost object held its rows in a list, and is none itself."""
    return isinstance(document, dict) and any(document.get(key) == [] for key in LISTS)


class _Rows:
    def __init__(self, name: str) -> None:
        self.name = name
        self.columns = SparseColumns(name)
        self.left_out = LeftOut()
        self._numbers = array("q")
        self._n_found = 0

    def take(self, row: Any) -> None:
        """A row, or what stands in the place of one."""
        self._n_found += 1
        if not isinstance(row, dict) or not row:
            self.left_out.note("not an object with names", [self._n_found], str(row)[:60])
            return
        rows = points_within(row)
        for number, flat in enumerate(rows):
            self._n_found += number > 0
            self.columns.add(len(self._numbers), flat)
            self._numbers.append(self._n_found)

    def to_source(self) -> RawSource:
        names = self.columns.names
        if len(names) < 2:
            raise InputError(
                f"{self.name} is JSON, but no list of rows with names such as "
                '[{"id": 1, "time": "2024-01-01T08:00:00Z", "lon": 139.7, "lat": 35.7}, ...], '
                "no GeoJSON and no Google location history; save the points as one of these.",
                code="unknown-json-shape",
            )
        rows = np.arange(len(self._numbers))
        return as_source(
            names, lambda at, n: self.columns.column(names[at], rows[:n]), self._numbers,
            self.left_out, self.columns.guesses(),
        )  # fmt: skip
