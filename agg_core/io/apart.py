"""Vector files of strangers, read by a process of their own that may take so much and no more.

The process reads the content as everybody does (`read_vector`) and leaves a GeoParquet file of
ours; nothing else opens the content, and a library that breaks over it breaks alone.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.base.shipped import import_root
from agg_core.io.formats.vector import VectorFile, read_vector
from agg_core.io.sandbox import NO_POOLS, TOO_MUCH, Limits, resident_bytes

if TYPE_CHECKING:
    import geopandas as gpd

__all__ = ["main", "read_vector_apart"]

CONTENT, ASKED, ABOUT, FAULT = "content", "asked.json", "about.json", "fault.json"
RESULT = "result.parquet"
POLL_S = 0.02
WALL_PER_CPU = 3.0
"""Seconds on the clock that a second of processor time may take on a busy machine."""


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
        process = _start(folder, limits)
        _wait(process, limits, printable(filename))
        return _result(folder, printable(filename))


def _start(folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(import_root()), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(  # noqa: S603  # our own module and a folder that we named
        [sys.executable, "-m", "agg_core.io.apart", str(folder), str(limits.seconds)],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), **NO_POOLS},
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _wait(process: subprocess.Popen[bytes], limits: Limits, name: str) -> None:
    until = time.monotonic() + WALL_PER_CPU * limits.seconds
    try:
        while process.poll() is None:
            if resident_bytes(process.pid) > limits.memory:
                raise InputError(TOO_MUCH.format(name, "memory"))
            if time.monotonic() > until:
                raise InputError(TOO_MUCH.format(name, "time"))
            time.sleep(POLL_S)
    finally:
        process.kill()
        process.wait()


def _result(folder: Path, name: str) -> VectorFile:
    import geopandas as gpd  # noqa: PLC0415

    if (folder / FAULT).exists():
        told = json.loads((folder / FAULT).read_text(encoding="utf-8"))
        raise InputError(told["message"], told["option"])
    if not (folder / ABOUT).exists():
        raise InputError(TOO_MUCH.format(name, "time or memory"))
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    guesses = {
        what: Guess(guess["value"], tuple(guess["alternatives"]), guess["note"])
        for what, guess in about.pop("guesses").items()
    }
    return VectorFile(frame=gpd.read_parquet(folder / RESULT), guesses=guesses, **about)


def main(folder: Path, seconds: float) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    whole = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    filename, crs = json.loads((folder / ASKED).read_text(encoding="utf-8"))
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
        (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    except InputError as fault:
        told = {"message": str(fault), "option": fault.option}
        (folder / FAULT).write_text(json.dumps(told), encoding="utf-8")


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
    main(Path(sys.argv[1]), float(sys.argv[2]))
    os._exit(0)  # all is written; taking the libraries down would keep the one who waits
