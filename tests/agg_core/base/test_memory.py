import gc
import resource
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agg_core.base import memory

HELD = 300_000_000


def test_the_peak_holds_what_was_held_and_given_back():
    program = (
        "from agg_core.base.memory import peak_bytes\n"
        "before = peak_bytes()\n"
        f"held = b'x' * {HELD}\n"
        "del held\n"
        "print(peak_bytes() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert int(done.stdout) == pytest.approx(HELD, rel=0.1)


@pytest.mark.parametrize(
    ("platform", "told"), [("darwin", 5_000_000), ("linux", 5_000_000 // 1024)]
)
def test_the_unit_of_getrusage_is_that_of_the_system(platform, told, monkeypatch, tmp_path):
    """man getrusage: bytes on macOS, kilobytes on Linux."""
    monkeypatch.setattr(memory, "STATUS", tmp_path / "status")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=told))
    assert memory.peak_bytes() == pytest.approx(5_000_000, abs=1024)


def test_linux_tells_the_peak_of_this_process_itself(monkeypatch, tmp_path):
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  9000 kB\nVmHWM:\t  2000 kB\n")
    monkeypatch.setattr(memory, "STATUS", status)
    assert memory.peak_bytes() == 2000 * 1024


def test_memory_in_use_grows_by_what_is_held():
    before = memory.memory_in_use()
    held = np.ones(100_000_000 // 8)
    assert 80_000_000 < memory.memory_in_use() - before < 200_000_000
    assert held[0] == 1


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("freebsd14", 1024)])
def test_elsewhere_the_most_that_was_in_use_is_asked_for(monkeypatch, tmp_path, platform, unit):
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    monkeypatch.setattr(memory, "STATUS", tmp_path / "status")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(memory, "resident_bytes", lambda _: 0)
    assert most * unit <= memory.memory_in_use() < 2 * most * unit


def test_memory_of_a_process_that_is_not_there_is_none():
    assert memory.resident_bytes(2**22 + 1) == 0


@pytest.mark.parametrize(
    ("told", "most"), [("max\n", None), ("5000000\n", 5_000_000), ("9223372036854771712\n", None)]
)
def test_a_container_has_as_much_memory_as_it_may_take(monkeypatch, tmp_path, told, most):
    monkeypatch.setattr(memory, "LIMITS", ())
    whole, limit = memory.machine_bytes(), tmp_path / "memory.max"
    limit.write_text(told)
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "missing", limit))
    assert memory.machine_bytes() == (most or whole)


class Ring:
    """Something that only a collection frees."""

    def __init__(self):
        self.itself = self


def test_what_is_put_out_of_sight_is_freed_at_the_next_call_once_nobody_has_it():
    held, dropped = Ring(), Ring()
    freed = weakref.ref(held), weakref.ref(dropped)
    del dropped
    try:
        memory.tidy_up()
        assert [one() is None for one in freed] == [False, True]
        assert gc.get_freeze_count() > 0
        del held
        gc.collect()
        assert freed[0]() is not None, "collections do not look there"
        memory.tidy_up()
        assert freed[0]() is None
    finally:
        gc.unfreeze()
