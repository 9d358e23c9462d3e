import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from numba import get_num_threads
from streamlit.testing.v1 import AppTest

from agg_core.base.threads import one_thread, side_by_side, wait_asleep
from tests.threads import in_two_threads

POLICY = "OMP_WAIT_POLICY"


ROOT = Path(__file__).parents[3]


def ran(*arguments, **more):
    """What a new process prints whose environment says nothing of how to wait."""
    env = {name: value for name, value in os.environ.items() if name != POLICY}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=env | more, check=True, capture_output=True,
        text=True,
    ).stdout.strip()  # fmt: skip


def test_an_import_leaves_the_environment_as_it_was():
    """Of every module of the core and of the pages' frame."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for place in ("agg_core", "ui")
        for path in sorted((ROOT / place).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    assert "agg_core.learn.esteps.cfb" in names
    # What other packages set in passing is theirs: only ours may not add to it.
    program = (
        "import importlib, os, sys\n"
        "import streamlit, numba, sklearn, geopandas, pydeck, plotly\n"
        "before = dict(os.environ)\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "print(dict(os.environ) == before, os.environ.get('OMP_WAIT_POLICY'))"
    )
    assert ran("-c", program, *names) == "True None"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("agg_core", ["--help"]), ("agg_core.store.jobs", []), ("benchmarks", ["--help"])],
)
def test_programs_of_ours_let_who_waits_sleep(module, arguments):
    """A job without a folder fails, having set it; so do programs that only tell of themselves."""
    program = (
        "import os, runpy, sys\n"
        "module, *sys.argv[1:] = sys.argv[1:]\n"
        "found = []\n"
        "for given in ({}, {'OMP_WAIT_POLICY': 'ACTIVE'}):\n"
        "    os.environ.update(given)\n"
        "    try:\n"
        "        runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
        "    except (SystemExit, IndexError):\n"
        "        pass\n"
        "    found.append(os.environ.get('OMP_WAIT_POLICY'))\n"
        "print(*found)"
    )
    assert ran("-c", program, module, *arguments).splitlines()[-1] == "PASSIVE ACTIVE"


def test_a_page_that_is_opened_first_lets_who_waits_sleep(monkeypatch):
    monkeypatch.delenv(POLICY, raising=False)
    AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert os.environ[POLICY] == "PASSIVE"


def test_who_waits_sleeps_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv(POLICY, raising=False)
    wait_asleep()
    assert os.environ[POLICY] == "PASSIVE"
    monkeypatch.setenv(POLICY, "ACTIVE")
    wait_asleep()
    assert os.environ[POLICY] == "ACTIVE"


def threads_about_a_fault():
    seen = [get_num_threads()]
    try:
        with one_thread():
            seen.append(get_num_threads())
            raise KeyError
    except KeyError:
        seen.append(get_num_threads())
    return seen


def test_one_thread_until_the_end_whatever_it_is():
    assert in_two_threads(threads_about_a_fault) == [2, 1, 2]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_are_in_the_order_of_their_items(n):
    assert side_by_side(lambda item: item**2, range(n)) == [item**2 for item in range(n)]


def met():
    """Two items that wait for each other, which they can do in two threads only."""
    meeting = threading.Barrier(2, timeout=60)
    return sorted(side_by_side(lambda _: meeting.wait(), range(2)))


def test_items_meet_in_two_threads_and_not_in_one():
    assert in_two_threads(met) == [0, 1]
    with one_thread():
        assert set(side_by_side(lambda _: threading.get_ident(), range(3))) == {
            threading.get_ident()
        }


def failing(value):
    side_by_side(lambda item: 1 / item, [1, value])


@pytest.mark.parametrize("run", [in_two_threads, lambda function, value: function(value)])
def test_a_fault_in_a_thread_is_raised(run):
    with pytest.raises(ZeroDivisionError):
        run(failing, 0)
