"""Locks on files that end with the process that holds them, however it ends.

The system keeps such a lock with the open file, and not with a number that another process may be
given later: whoever inherits the open file holds the lock with it, and it is free once nobody has
the file open.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_held", "locked", "take"]


def take(path: Path) -> int:
    """Wait for the lock of a file, which is made if it is missing; returns it as an open file.

    To close the file is to give the lock back.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except BaseException:
        os.close(lock)
        raise
    return lock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file for a while; others wait for it."""
    lock = take(path)
    try:
        yield
    finally:
        os.close(lock)


def is_held(path: Path, *, wait: bool = False) -> bool:
    """Whether somebody holds the lock of a file; with ``wait`` not before it is free.

    Any number may ask at once: whoever asks keeps no other from asking.
    """
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
