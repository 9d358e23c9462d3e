"""Programs in folders of their own, and limits that they keep though nobody looks at them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from agg_core.base.errors import InputError
from agg_core.base.processes import (
    FAULT,
    Limits,
    Process,
    leaving_faults,
    left_fault,
    write_fault,
    write_json,
)
from agg_core.base.shipped import import_root

MEGABYTE = 1 << 20
UNSAID = InputError("It ended.", code="it-ended")

GROWS = """
import sys, time
from pathlib import Path
from agg_core.base.processes import Limits, confined_main, confine
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
from agg_core.base.processes import Limits, start_confined
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
HOLDS = "import ctypes; ctypes.PyDLL(None).sleep(60)"
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
        fault = left_fault(folder, UNSAID) if (folder / FAULT).exists() else None
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


def test_a_library_that_lets_no_thread_look_ends_by_an_alarm(ended):
    fault, left, _, seconds = ended(HOLDS, Limits(1 << 40, 0.5))
    assert fault is None, "nobody could say it"
    assert "done" not in left
    assert seconds < 30


def test_who_fits_is_left_alone(ended):
    fault, left, _, _ = ended(FITS, Limits(1 << 30, 30))
    assert fault is None
    assert left == {"done"}


def test_what_is_too_large_at_once_is_refused_by_the_system(ended):
    _, left, _, _ = ended(AT_ONCE, Limits(1 << 30, 30))
    assert "refused" in left


def test_a_fault_is_left_with_all_its_parts(tmp_path):
    write_fault(tmp_path, InputError("Say which.", "--column time=NAME", code="column-not-found"))
    fault = left_fault(tmp_path, UNSAID)
    parts = (str(fault), fault.option, fault.code)
    assert parts == ("Say which.", "--column time=NAME", "column-not-found")


@pytest.mark.parametrize("left", [None, '{"message": "br'])
def test_of_who_left_no_fault_it_is_said_what_that_means(tmp_path, left):
    if left is not None:
        (tmp_path / FAULT).write_text(left)
    assert left_fault(tmp_path, UNSAID) is UNSAID


class Running:
    """Stands for a process that runs until it is killed or told its exit code."""

    def __init__(self):
        self.code = None

    def poll(self):
        return self.code

    def kill(self):
        self.code = -9

    def wait(self):
        return self.code


@pytest.fixture
def begun(tmp_path):
    running = Running()
    folder = tmp_path / "work"
    folder.mkdir()
    return running, Process(running, folder, "result", UNSAID)


def test_a_process_is_done_once_its_result_is_there(begun):
    running, process = begun
    assert process.state == "running"
    (process.folder / "result").mkdir()
    assert process.state == "done"
    process.cancel()
    assert (process.state, running.code) == ("done", -9)


def test_a_process_fails_by_the_fault_that_it_left_or_by_what_is_unsaid(begun):
    running, process = begun
    running.code = 0
    assert (process.state, process.fault) == ("failed", UNSAID)
    assert process.left("progress.json") is None
    others = Process(running, process.folder, "result", UNSAID)
    with leaving_faults(process.folder, UNSAID):
        raise InputError("Mend it.", code="mend-it")
    assert (others.state, others.fault.code) == ("failed", "mend-it")


def test_want_of_memory_is_the_fault_that_was_named(tmp_path):
    with leaving_faults(tmp_path, InputError("Too much.", code="too-much")):
        raise MemoryError
    assert left_fault(tmp_path, UNSAID).code == "too-much"


def test_a_cancelled_process_is_neither_done_nor_failed_and_can_be_removed(begun):
    running, process = begun
    process.cancel()
    assert (process.state, running.code) == ("cancelled", -9)
    process.remove()
    assert not process.folder.exists()
    process.remove()


def test_json_is_replaced_whole(tmp_path):
    path = tmp_path / "progress.json"
    write_json(path, {"iteration": 1})
    write_json(path, {"iteration": 2})
    assert json.loads(path.read_text()) == {"iteration": 2}
    with pytest.raises(TypeError):
        write_json(path, {"iteration": object()})
    assert json.loads(path.read_text()) == {"iteration": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["progress.json"]
