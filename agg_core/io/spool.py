"""Fixes in files of some people each, so that a file larger than memory is put in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agg_core.io.fixes import Fixes

__all__ = ["Spool"]

PEOPLE = 256
"""People whose fixes lie in one file, and are in memory together."""

RECORD = np.dtype(
    [("user", "<i8"), ("time", "<M8[us]"), ("lon", "<f8"), ("lat", "<f8"), ("row", "<i8")]
)


class Spool:
    """Files of records within a folder; those of one person are in one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_files = 0

    def add(self, fixes: Fixes) -> None:
        """Append fixes to the files of their people."""
        records = np.empty(len(fixes), dtype=RECORD)
        for name in RECORD.names or ():
            records[name] = getattr(fixes, name)
        number = fixes.user // PEOPLE
        order = np.argsort(number, kind="stable")
        files, starts = np.unique(number[order], return_index=True)
        for file, part in zip(files.tolist(), np.split(records[order], starts[1:]), strict=False):
            with self._path(file).open("ab") as out:
                part.tofile(out)
            self._n_files = max(self._n_files, file + 1)

    def people(self) -> Iterator[tuple[float, Fixes]]:
        """The fixes of some people after those of others, with the share that is done then."""
        for file in range(self._n_files):
            path = self._path(file)
            if not path.exists():
                continue
            records = np.fromfile(path, dtype=RECORD)
            path.unlink()
            columns = (np.ascontiguousarray(records[name]) for name in RECORD.names or ())
            yield (file + 1) / self._n_files, Fixes(*columns)

    def _path(self, file: int) -> Path:
        return self._folder / f"{file}.fixes"
