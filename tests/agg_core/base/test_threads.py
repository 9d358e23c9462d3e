import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from agg_core.base import threads
from agg_core.base.threads import give_way, number_of_threads, one_blas_thread, one_thread
from tests.threads import in_two_threads

ROOT = Path(__file__).parents[3]


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
        "print(dict(os.environ) == before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *names], cwd=ROOT, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(("said", "threads"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_the_environment_may_say_how_many_threads_there_are(monkeypatch, said, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert number_of_threads() == (threads or len(os.sched_getaffinity(0)))


def threads_about_a_fault():
    seen = [number_of_threads()]
    try:
        with one_thread():
            seen.append(number_of_threads())
            raise KeyError
    except KeyError:
        seen.append(number_of_threads())
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


def test_a_process_and_its_session_give_way():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as other:
        assert give_way(7, other.pid)
        assert os.getpriority(os.PRIO_PROCESS, other.pid) == 7
        group = Path(f"/proc/{other.pid}/autogroup")
        if group.exists():
            assert group.read_text().split()[-2:] == ["nice", "7"]
        assert not give_way(5, other.pid) or os.geteuid() == 0, "there is no way back"
        other.communicate()
    assert not give_way(7, other.pid), "it has ended"


def test_a_session_is_asked_again_when_the_system_has_no_time(monkeypatch):
    said = []

    def refuse_twice(_, text, **__):
        said.append(text)
        if len(said) < 3:
            raise BlockingIOError

    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    monkeypatch.setattr(threads.Path, "write_text", refuse_twice)
    monkeypatch.setattr(threads.time, "sleep", lambda _: None)
    assert give_way(3)
    assert said == ["3", "3", "3"]
    said.clear()
    assert not give_way(3, tries=1)
    assert said == ["3"]
