"""Files that a library reads apart: by a process of its own, which may take so much and no more.

The process reads the content of a folder, leaves what was found as files of ours and tells of it
in words of ours; nothing else opens the content, and a library that breaks over it breaks alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from agg_core.base.disk import asking_disk
from agg_core.base.processes import (
    Limits,
    confine,
    confined_main,
    is_confined,
    leaving_faults,
    left_fault,
    start_confined,
    too_much,
    write_json,
)
from agg_core.base.report import Guess, printable
from agg_core.io.contents import Data

__all__ = ["CONTENT", "guess_of", "main", "reading_apart"]

CONTENT = "content"
"""The file of the folder that is to be read."""
ASKED, ABOUT = "asked.json", "about.json"


@contextmanager
def reading_apart(
    reader: str, content: Data, filename: str, limits: Limits | None = None, **asked: Any
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Have content read by a process with limits, this one if it has some; its folder and words.

    ``reader`` is a function as "module:name", called in the process with the folder, the name and
    what is asked; what it returns must be JSON. The folder goes with the block.

    Raises
    ------
    InputError
        That of the reader, that the content needs more than a file of its size may take, or that
        the disk refuses.
    """
    with ExitStack() as folders:
        with asking_disk():
            # What cannot be deleted is no fault of what was read.
            made = tempfile.TemporaryDirectory(prefix="flows-apart-", ignore_cleanup_errors=True)
            folder = Path(folders.enter_context(made))
            (folder / CONTENT).write_bytes(content)
        if is_confined():
            about = _run(reader, folder, filename, asked)
        else:
            told = json.dumps({"reader": reader, "filename": filename, "asked": asked})
            with asking_disk():
                (folder / ASKED).write_text(told, encoding="utf-8")
            about = _wait(folder, filename, limits or Limits.of_size(len(content)))
        yield folder, about


def _wait(folder: Path, filename: str, limits: Limits) -> dict[str, Any]:
    """What a process tells that reads the folder."""
    process = start_confined("agg_core.io.apart", folder, limits)
    try:
        process.wait()
    finally:
        process.kill()
        process.wait()
    if not (folder / ABOUT).exists():
        raise left_fault(folder, too_much(printable(filename)))
    about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return about


def _run(reader: str, folder: Path, filename: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    module, _, function = reader.partition(":")
    about: dict[str, Any] = getattr(import_module(module), function)(folder, filename, **asked)
    return about


def guess_of(told: Mapping[str, Any]) -> Guess:
    """A guess of the process."""
    return Guess(**{**told, "alternatives": tuple(told["alternatives"])})


def main(folder: Path, limits: Limits) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    told = json.loads((folder / ASKED).read_text(encoding="utf-8"))
    name = printable(told["filename"])
    confine(limits, folder, name)
    with leaving_faults(folder, too_much(name, "memory")):
        about = _run(told["reader"], folder, told["filename"], told["asked"])
        write_json(folder / ABOUT, about)


if __name__ == "__main__":
    confined_main(main)
