import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import get_num_threads
from streamlit.testing.v1 import AppTest
from threadpoolctl import threadpool_info, threadpool_limits

from agg_core.base.threads import one_blas_thread, one_thread, wait_asleep
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


def blas_about_a_fault():
    """Threads of BLAS before, within, within again and after, and those of the last one inside."""
    np.ones((2, 2)) @ np.ones((2, 2))

    def now():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    threadpool_limits(2, "blas")
    seen = [now()]
    try:
        with one_blas_thread():
            with one_blas_thread():
                seen.append(now())
            seen.append(now())
            raise KeyError
    except KeyError:
        seen.append(now())
    return seen


def test_one_thread_of_blas_until_the_last_one_is_done():
    assert in_two_threads(blas_about_a_fault) == [{2}, {1}, {1}, {2}]
