"""Files of strangers are read by a process of their own, which may take so much and no more.

The process sees a folder with the content and the choices, reads in the same way as everybody
(`converting_steps`), and leaves the canonical table; nothing else ever opens the content. It keeps
its limits on time and memory itself (`confine`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agg_core.base.errors import InputError
from agg_core.io.choices import Choices
from agg_core.io.confined import (
    Limits,
    confine,
    confined_main,
    left_fault,
    start_confined,
    too_much,
    write_fault,
    write_json,
)
from agg_core.io.reading import ReadingProgress, converting_steps
from agg_core.tables.trajectories import Trajectories, read_canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agg_core.io.counts.choices import CountChoices
    from agg_core.tables.counts import CountTable

__all__ = ["Kind", "Reading", "main", "start_reading"]

CONTENT, CHOICES, COLUMNS = "content", "choices.json", "columns.json"
PROGRESS, RESULT = "progress.json", "result.parquet"
KIND = "kind.json"
Kind = Literal["trajectories", "counts", "auto"]
"""What files are read as; "auto" finds out which of the two they hold."""


class Reading:
    """A process that reads a file. It ends done, failed (`fault` says why) or cancelled."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, name: str) -> None:
        self.name = name
        self._process, self._folder = process, folder
        self._fault: InputError | None = None
        self._cancelled = False

    @property
    def state(self) -> Literal["running", "done", "failed", "cancelled"]:
        """How it is now."""
        if self._process.poll() is None:
            return "running"
        if self._cancelled:
            return "cancelled"
        return "done" if (self._folder / RESULT).exists() else "failed"

    @property
    def fault(self) -> InputError:
        """Why it failed."""
        if self._fault is None:
            self._fault = left_fault(self._folder, self.name)
        return self._fault

    @property
    def progress(self) -> ReadingProgress | None:
        """How far it is; None before the first rows."""
        try:
            return ReadingProgress(**json.loads((self._folder / PROGRESS).read_text()))
        except (OSError, ValueError):
            return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file to choose from; none if it could not be opened."""
        try:
            return tuple(json.loads((self._folder / COLUMNS).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return ()

    def wait(self) -> None:
        """Wait until it has ended, as its limits see to."""
        self._process.wait()

    def result(self) -> Trajectories:
        """What was read.

        Raises
        ------
        InputError
            If reading failed; the sentence of the reader, or that a limit was met.
        """
        if self.state != "done":
            raise self.fault
        return read_canonical(self._folder / RESULT)

    @property
    def kind(self) -> Literal["trajectories", "counts"]:
        """What the files were read as, once it is done."""
        try:
            told = json.loads((self._folder / KIND).read_text(encoding="utf-8"))
        except OSError:
            return "trajectories"
        return "counts" if told == "counts" else "trajectories"

    def counts(self) -> CountTable:
        """What was read of files of counts.

        Raises
        ------
        InputError
            As `result`.
        """
        from agg_core.tables.counts import open_counts  # noqa: PLC0415

        if self.state != "done":
            raise self.fault
        return open_counts(self._folder / RESULT)

    def cancel(self) -> None:
        """Stop it; one that has ended stays as it is."""
        if self._process.poll() is None:
            self._cancelled = True
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_reading(
    files: Mapping[str, bytes],
    choices: Choices | CountChoices,
    folder: Path,
    limits: Limits | None = None,
    *,
    kind: Kind = "trajectories",
) -> Reading:
    """Begin to read uploaded files (name to content) in a process of its own.

    ``folder`` must not exist yet. Names stay names: the files lie under numbers. ``kind`` says
    what they hold; choices of the other kind are not used.
    """
    folder.mkdir(mode=0o700)
    names = list(files)
    for number, content in enumerate(files.values()):
        (folder / f"{CONTENT}.{number}").write_bytes(content)
    of_counts = not isinstance(choices, Choices)
    told = {"names": names, "choices": choices.to_dict(), "of_counts": of_counts, "kind": kind}
    (folder / CHOICES).write_text(json.dumps(told), encoding="utf-8")
    limits = limits or Limits.of_size(sum(map(len, files.values())))
    process = start_confined("agg_core.io.sandbox", folder, limits)
    return Reading(process, folder, _called(names))


def _called(names: Sequence[str]) -> str:
    """What sentences call the files."""
    return names[0] if len(names) == 1 else "These files"


def main(folder: Path, limits: Limits) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    told = json.loads((folder / CHOICES).read_text(encoding="utf-8"))
    confine(limits, folder, _called(told["names"]))
    files = {name: folder / f"{CONTENT}.{i}" for i, name in enumerate(told["names"])}
    try:
        part = folder / f"{RESULT}.part"
        for step in _steps(files, told, part, folder):
            if step.columns:
                write_json(folder / COLUMNS, step.columns)
            else:
                write_json(folder / PROGRESS, {"rows": step.rows, "share": step.share})
        part.rename(folder / RESULT)
    except InputError as fault:
        write_fault(folder, fault)
    except MemoryError:
        write_fault(folder, too_much(_called(told["names"]), "memory"))


def _steps(
    files: Mapping[str, Path], told: dict[str, Any], part: Path, folder: Path
) -> Iterator[ReadingProgress]:
    """Steps of reading the files as what they are said to be, or as what they hold."""
    given, of_counts = told["choices"], told["of_counts"]
    choices = Choices() if of_counts else Choices.from_dict(given)
    if told["kind"] == "trajectories":
        return converting_steps(files, choices, part)
    from agg_core.io.counts import CountChoices, counting_steps, holds_counts  # noqa: PLC0415

    if told["kind"] == "auto" and not holds_counts(files):
        return converting_steps(files, choices, part)
    write_json(folder / KIND, "counts")
    return counting_steps(
        files, CountChoices.from_dict(given) if of_counts else CountChoices(), part
    )


if __name__ == "__main__":
    confined_main(main)
