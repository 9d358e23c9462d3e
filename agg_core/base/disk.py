"""What a disk refuses, as one sentence: it is full, closed to us, or only read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agg_core.base.errors import InputError

__all__ = ["asking_disk", "disk_refused", "folder_named", "is_folder", "refused_by_disk"]

REFUSALS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE,
     errno.ENFILE}
)  # fmt: skip
"""Numbers of errors that are the machine's, and not of what was asked for."""


def refused_by_disk(fault: OSError) -> bool:
    """Whether an error says that the machine cannot write or read, whatever was asked for."""
    return fault.errno in REFUSALS


def disk_refused(fault: OSError) -> InputError:
    """The same as a sentence, with its reason in the words of the system."""
    return InputError(
        f"The disk of this server refuses ({fault.strerror or fault}): whoever runs it must make "
        "room there or let it be written; then try once more.",
        code="disk-refused",
    )


@contextmanager
def asking_disk() -> Iterator[None]:
    """What the disk refuses within is one sentence.

    Raises
    ------
    InputError
        In place of any OSError.
    """
    try:
        yield
    except OSError as fault:
        raise disk_refused(fault) from fault


def folder_named(text: str) -> Path:
    """The folder that a variable of the environment names, ``~`` followed as a shell does.

    What begins with the name of a user whom this machine does not know stays as it is written.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_folder(path: Path) -> bool:
    """Whether there is a folder, so far as it can be looked at; one that cannot is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
