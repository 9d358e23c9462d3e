"""Files of strangers are read by a process of their own, which may take so much and no more.

The process sees a folder with the content and the choices, reads in the same way as everybody
(`converting_steps`), and leaves the canonical table; nothing else ever opens the content. It has a
limit on processor time and on memory, which the one who waits for it watches.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agg_core.base.errors import InputError
from agg_core.base.shipped import import_root
from agg_core.io.choices import Choices
from agg_core.io.reading import ReadingProgress, converting_steps
from agg_core.tables.trajectories import Trajectories, read_canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agg_core.io.counts.choices import CountChoices
    from agg_core.tables.counts import CountTable

__all__ = ["NO_POOLS", "TOO_MUCH", "Limits", "Reading", "main", "resident_bytes", "start_reading"]

CONTENT, CHOICES, COLUMNS = "content", "choices.json", "columns.json"
PROGRESS, FAULT, RESULT = "progress.json", "fault.json", "result.parquet"
KIND = "kind.json"
POLL_S = 0.02
SPARE_BYTES = 1 << 30
"""Memory of the libraries and of a small file."""
BYTES_PER_BYTE = 16
"""Memory that a byte of content may take: text as short as "1,1,1,1" becomes wider numbers."""
SECONDS, BYTES_PER_SECOND = 30.0, 2_000_000
NO_POOLS = {"OPENBLAS_NUM_THREADS": "1"}
"""Reading multiplies no matrices: a pool of threads for it would only delay the start."""

Kind = Literal["trajectories", "counts", "auto"]
"""What files are read as; "auto" finds out which of the two they hold."""

TOO_MUCH = "{} needs more {} than reading a file of its size may take; split it or save it as CSV."


@dataclass(frozen=True)
class Limits:
    """Bytes of memory in use, and seconds of processor time."""

    memory: int
    seconds: float

    @classmethod
    def of_size(cls, size: int) -> Limits:
        """What a file of so many bytes may take; never more than three quarters of the machine."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(SPARE_BYTES + BYTES_PER_BYTE * size, 3 * machine // 4)
        return cls(max(memory, SPARE_BYTES), SECONDS + size / BYTES_PER_SECOND)


class Reading:
    """A process that reads a file. It ends done, failed (`fault` says why) or cancelled."""

    def __init__(
        self, process: subprocess.Popen[bytes], folder: Path, name: str, limits: Limits
    ) -> None:
        self.name = name
        self._process, self._folder, self._limits = process, folder, limits
        self._fault: InputError | None = None
        self._cancelled = False

    @property
    def state(self) -> Literal["running", "done", "failed", "cancelled"]:
        """How it is now; asking enforces the limit on memory."""
        if self._process.poll() is None:
            if resident_bytes(self._process.pid) <= self._limits.memory:
                return "running"
            self._stop()
            self._fault = InputError(TOO_MUCH.format(self.name, "memory"))
        if self._cancelled:
            return "cancelled"
        return "done" if (self._folder / RESULT).exists() else "failed"

    @property
    def fault(self) -> InputError:
        """Why it failed."""
        if self._fault is None:
            try:
                told = json.loads((self._folder / FAULT).read_text(encoding="utf-8"))
                self._fault = InputError(told["message"], told["option"])
            except (OSError, ValueError):
                self._fault = InputError(TOO_MUCH.format(self.name, "time or memory"))
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

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it has ended."""
        until = time.monotonic() + seconds
        while self.state == "running":
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True

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
            self._stop()

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()


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
    path = os.pathsep.join(filter(None, [str(import_root()), os.environ.get("PYTHONPATH", "")]))
    limits = limits or Limits.of_size(sum(map(len, files.values())))
    process = subprocess.Popen(  # noqa: S603  # our own module and a folder that we named
        [sys.executable, "-m", "agg_core.io.sandbox", str(folder), str(limits.seconds)],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), **NO_POOLS},
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return Reading(process, folder, names[0] if len(names) == 1 else "These files", limits)


def resident_bytes(pid: int) -> int:
    """Memory of a process in use; 0 where the system does not tell."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def main(folder: Path, seconds: float) -> None:
    """What the process does: read the folder's content, or say why it cannot be read."""
    whole = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    told = json.loads((folder / CHOICES).read_text(encoding="utf-8"))
    files = {name: folder / f"{CONTENT}.{i}" for i, name in enumerate(told["names"])}
    try:
        part = folder / f"{RESULT}.part"
        for step in _steps(files, told, part, folder):
            if step.columns:
                _write(folder / COLUMNS, step.columns)
            else:
                _write(folder / PROGRESS, {"rows": step.rows, "share": step.share})
        part.rename(folder / RESULT)
    except InputError as fault:
        _write(folder / FAULT, {"message": str(fault), "option": fault.option})
    except MemoryError:
        message = TOO_MUCH.format(told["names"][0], "memory")
        _write(folder / FAULT, {"message": message, "option": ""})


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
    _write(folder / KIND, "counts")
    return counting_steps(
        files, CountChoices.from_dict(given) if of_counts else CountChoices(), part
    )


def _write(path: Path, values: object) -> None:
    """All at once: somebody may be reading."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(values), encoding="utf-8")
    part.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
    os._exit(0)  # all is written; taking the libraries down would keep the one who waits
