"""Jobs on a disk that refuses at any step: told before they begin, and gone on with afterwards."""

from __future__ import annotations

import errno
import shutil
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agg_core.base.errors import InputError
from agg_core.store.codec import load_result
from agg_core.store.job_process import work
from agg_core.store.job_store import JobStore
from agg_core.store.jobs import ENDS, QUEUED, STUDY, About, Job, prepare_job
from agg_core.store.runs import RunStore
from tests.agg_core import tiny
from tests.faults import disk_refuses, refused

SETTINGS = tiny.settings(iterations=2)
NUMBERS = (errno.ENOSPC, errno.EROFS)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process begins."""
    monkeypatch.setattr(Job, "start", lambda job: (job.folder / QUEUED).unlink())


def add(store: JobStore) -> Job[Any]:
    return store.add(STUDY, SETTINGS, title="some", owner="", data=tiny.people())


@pytest.mark.parametrize("passes", [True, False], ids=["once", "from then on"])
@pytest.mark.parametrize("number", NUMBERS)
def test_what_cannot_be_begun_is_told_and_leaves_nothing(
    number: int, passes: bool, never: None, tmp_path: Path
) -> None:
    for nth in count(1):
        store = JobStore(tmp_path / str(nth) / "jobs")
        fault = None
        with disk_refuses(store.folder.parent, number, nth, passes=passes) as disk:
            try:
                add(store)
            except InputError as told:
                fault = told
        if not disk.refused:
            break
        assert fault is not None, disk.refused
        assert fault.code == "job-not-begun", disk.refused
        # Where nothing can be changed at all, it waits there.
        assert store.all() == () or not passes, disk.refused
        assert add(store).folder.is_dir(), disk.refused
    assert nth > 5


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared") / "job"
    about = About(STUDY.name, title="some", created=time.time(), kept=True)
    prepare_job(SETTINGS, folder, about, tiny.people())
    return folder


@pytest.mark.parametrize("passes", [True, False], ids=["once", "from then on"])
def test_a_full_disk_on_the_way_ends_no_work_for_good(
    passes: bool, prepared: Path, tmp_path: Path
) -> None:
    """What tells of the work is left out; what is made waits for room, and is made the same."""
    whole = tiny.run(tiny.people(), SETTINGS)[1].vs_counted
    for nth in count(1, 2 if passes else 7):
        home = tmp_path / str(nth)
        folder = home / "jobs" / ("a" * 32)
        folder.parent.mkdir(parents=True)
        shutil.copytree(prepared, folder)
        job: Job[Any] = Job(folder)
        with disk_refuses(home, errno.ENOSPC, nth, passes=passes) as disk:
            work(folder)
        if not disk.refused:
            break
        assert job.state in ("done", "interrupted"), disk.refused
        work(folder) if job.state == "interrupted" else None
        assert job.state == "done", disk.refused
        assert load_result(job.result_folder).vs_counted == whole, disk.refused
        kept = RunStore(home / "runs").list()
        assert [run.id for run in kept] == [job.saved] * (job.saved is not None), disk.refused
        shutil.rmtree(home)
    assert nth > 10


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_asked_of_a_job_is_told_where_it_cannot_be_done(
    number: int, never: None, tmp_path: Path
) -> None:
    store = JobStore(tmp_path / "jobs")
    job = add(store)
    assert job.state == "interrupted"
    with disk_refuses(store.folder, number):
        with refused("job-not-changed"):
            store.cancel(job.id)
        with refused("job-not-begun"):
            store.resume(job.id)
        store.look(job.id)
        assert [each.id for each in store.all()] == [job.id]
        assert store.ahead(job.id) == 0
    assert job.state == "interrupted"
    store.cancel(job.id)
    assert job.state == ENDS["cancelled"]
