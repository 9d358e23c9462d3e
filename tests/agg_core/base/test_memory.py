import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
