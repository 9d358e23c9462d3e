"""Vector files of strangers, read by a process of their own that may take so much and no more.

The process reads the content as everybody does (`read_vector`) and leaves a GeoParquet file of
ours; nothing else opens the content, and a library that breaks over it breaks alone.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agg_core.base.errors import InputError
from agg_core.base.processes import (
    FAULT,
    Limits,
    confine,
    confined_main,
    left_fault,
    start_confined,
    too_much,
    write_fault,
    write_json,
)
from agg_core.base.report import Guess, printable
from agg_core.io.formats.vector import VectorFile, read_vector

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = ["main", "read_vector_apart"]

CONTENT, ASKED, ABOUT, RESULT = "content", "asked.json", "about.json", "result.parquet"


def read_vector_apart(
    content: bytes, filename: str, crs: str | None = None, *, limits: Limits | None = None
) -> VectorFile:
    """Read a vector file as `read_vector` does, in a process with limits on memory and time.

    Attributes of several types in one column become text.

    Raises
    ------
    InputError
        That of `read_vector`, or that the file needs more than a file of its size may take.
    """
    limits = limits or Limits.of_size(len(content))
    with tempfile.TemporaryDirectory(prefix="flows-vector-") as name:
        folder = Path(name)
        (folder / CONTENT).write_bytes(content)
        (folder / ASKED).write_text(json.dumps([filename, crs]), encoding="utf-8")
        process = start_confined("agg_core.io.apart", folder, limits)
        try:
            process.wait()
        finally:
            process.kill()
            process.wait()
        return _result(folder, printable(filename))


def _result(folder: Path, name: str) -> VectorFile:
    import geopandas as gpd  # noqa: PLC0415

    if (folder / FAULT).exists() or not (folder / ABOUT).exists():
        raise left_fault(folder, too_much(name))
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    guesses = {
        what: Guess(guess["value"], tuple(guess["alternatives"]), guess["note"])
        for what, guess in about.pop("guesses").items()
    }
    return VectorFile(frame=gpd.read_parquet(folder / RESULT), guesses=guesses, **about)


def main(folder: Path, limits: Limits) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    filename, crs = json.loads((folder / ASKED).read_text(encoding="utf-8"))
    confine(limits, folder, printable(filename))
    try:
        found = read_vector((folder / CONTENT).read_bytes(), filename, crs)
        _of_one_type(found.frame).to_parquet(folder / RESULT)
        about: dict[str, Any] = {
            "name": found.name,
            "format": found.format,
            "crs": found.crs,
            "without_shape": dict(found.without_shape),
            "guesses": {what: asdict(guess) for what, guess in found.guesses.items()},
        }
        write_json(folder / ABOUT, about)
    except InputError as fault:
        write_fault(folder, fault)
    except MemoryError:
        write_fault(folder, too_much(printable(filename), "memory"))


def _of_one_type(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """A table whose columns Parquet can hold."""
    import pyarrow as pa  # noqa: PLC0415

    found = frame.copy()
    for name in found.columns.drop(found.geometry.name):
        try:
            pa.array(found[name], from_pandas=True)
        except (pa.ArrowException, OverflowError, ValueError):
            found[name] = found[name].map(lambda value: None if value is None else str(value))
    return found


if __name__ == "__main__":
    confined_main(main)
