"""Locks that end with whoever holds them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from agg_core.base import locks

HOLDER = """
import sys, time
from pathlib import Path
from agg_core.base import locks
lock = locks.take(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    """A process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_lock_is_held_until_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not locks.is_held(path), "there is no such file"
    with locks.locked(path):
        assert locks.is_held(path)
        assert locks.is_held(path), "to ask takes nothing away"
    assert not locks.is_held(path)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        assert locks.is_held(path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not locks.is_held(path)
        assert not locks.is_held(path, wait=True)


def test_whoever_inherits_the_open_file_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = locks.take(path)
    code = "import os, sys; print('here', flush=True); os.read(int(sys.argv[1]), 1)"
    ends, end = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(ends)], stdin=lock, stdout=subprocess.PIPE,
        pass_fds=(ends,),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        os.close(lock)
        assert locks.is_held(path), "the one who was given it lives"
        os.write(end, b".")
        process.wait()
    os.close(ends)
    os.close(end)
    assert not locks.is_held(path)


def test_another_waits_until_it_is_free(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", []
    lock = locks.take(path)

    def wait() -> None:
        with locks.locked(path):
            order.append("second")

    other = threading.Thread(target=wait)
    other.start()
    order.append("first")
    os.close(lock)
    other.join(timeout=30)
    assert order == ["first", "second"]
