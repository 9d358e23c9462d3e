"""Limits that a process keeps by itself: nobody looks at it before it has ended."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.base.shipped import import_root
from agg_core.io import Choices, confined, start_reading
from agg_core.io.confined import (
    FAULT,
    Limits,
    left_fault,
    memory_in_use,
    resident_bytes,
    write_fault,
)

MEGABYTE = 1 << 20

GROWS = """
import sys, time
from pathlib import Path
from agg_core.io.confined import Limits, confined_main, confine
def work(folder, limits):
    confine(limits, folder, "The file")
    {work}
    (folder / "done").write_text("")
confined_main(work)
"""

# A small process starts it: the system counts the memory of who starts to that of the started.
WAITS = """
import json, os, sys, time
from pathlib import Path
from agg_core.io.confined import Limits, start_confined
folder, memory, seconds = sys.argv[1:]
process = start_confined("grows", Path(folder), Limits(int(memory), float(seconds)))
began = time.monotonic()
_, _, used = os.wait4(process.pid, 0)
print(json.dumps({"most": used.ru_maxrss * 1024, "seconds": time.monotonic() - began}), flush=True)
os._exit(0)  # its child is waited for already
"""

SLOWLY = "held = [time.sleep(0.001) or b'x' * 1_000_000 for _ in range(100_000)]"
AT_ONCE = """try:
        bytearray(1 << 40)
    except MemoryError:
        (folder / "refused").write_text("")"""
SPINS = "while True: pass"
SLEEPS = "time.sleep(60)"
FITS = "held = bytes(20_000_000)"


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """Run work within limits to its end, without a look at it; its fault and what else it left."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(import_root())]))

    def run(work, limits):
        (tmp_path / "grows.py").write_text(GROWS.format(work=work))
        folder = tmp_path / "folder"
        folder.mkdir()
        command = [sys.executable, "-c", WAITS, folder, str(limits.memory), str(limits.seconds)]
        waited = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        fault = left_fault(folder, "It") if (folder / FAULT).exists() else None
        left = {path.name for path in folder.iterdir()}
        return fault, left, waited["most"], waited["seconds"]

    return run


@pytest.mark.parametrize(
    ("work", "limits", "what"),
    [
        (SLOWLY, Limits(300 * MEGABYTE, 60), "memory"),
        (SPINS, Limits(1 << 40, 1.0), "time"),
        (SLEEPS, Limits(1 << 40, 1.0), "time"),
    ],
    ids=["memory", "processor", "clock"],
)
def test_who_takes_too_much_ends_with_the_sentence_though_nobody_looks(ended, work, limits, what):
    fault, left, most, seconds = ended(work, limits)
    assert fault.code == "reading-limit-met"
    assert str(fault).startswith(f"The file needs more {what} than ")
    assert "done" not in left
    assert most < 800 * MEGABYTE
    assert seconds < 20


def test_who_fits_is_left_alone(ended):
    fault, left, _, _ = ended(FITS, Limits(1 << 30, 30))
    assert fault is None
    assert left == {"done"}


def test_what_is_too_large_at_once_is_refused_by_the_system(ended):
    _, left, _, _ = ended(AT_ONCE, Limits(1 << 30, 30))
    assert "refused" in left


def test_a_fault_is_left_with_all_its_parts(tmp_path):
    write_fault(tmp_path, InputError("Say which.", "--column time=NAME", code="column-not-found"))
    fault = left_fault(tmp_path, "It")
    parts = (str(fault), fault.option, fault.code)
    assert parts == ("Say which.", "--column time=NAME", "column-not-found")


@pytest.mark.parametrize("left", [None, '{"message": "br'])
def test_who_left_no_fault_was_ended_at_a_limit(tmp_path, left):
    if left is not None:
        (tmp_path / FAULT).write_text(left)
    assert left_fault(tmp_path, "It").code == "reading-limit-met"


def test_an_upload_that_takes_too_much_fails_though_nobody_polls(tmp_path):
    rows = b"".join(b"a,2024-02-01 09:%02d,139.7,35.6\n" % (i % 60) for i in range(400_000))
    content = {"long.csv": b"user_id,time,lon,lat\n" + rows}
    reading = start_reading(content, Choices(), tmp_path / "r", Limits(90 * MEGABYTE, 60))
    reading._process.wait()
    assert reading.state == "failed"
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "reading-limit-met"
    assert "more memory" in str(told.value)
    reading.remove()


def test_memory_in_use_grows_by_what_is_held():
    before = memory_in_use()
    held = np.ones(100 * MEGABYTE // 8)
    assert 80 * MEGABYTE < memory_in_use() - before < 200 * MEGABYTE
    assert held[0] == 1


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("freebsd14", 1024)])
def test_elsewhere_the_most_that_was_in_use_is_asked_for(monkeypatch, platform, unit):
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    monkeypatch.setattr(confined.sys, "platform", platform)
    monkeypatch.setattr(confined, "resident_bytes", lambda _: 0)
    assert memory_in_use() >= most * unit
    assert memory_in_use() < 2 * most * unit


def test_memory_of_a_process_that_is_not_there_is_none():
    assert resident_bytes(2**22 + 1) == 0
