"""The store of jobs: who begins, who waits, what outlives what, and what is cleaned."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agg_core.base import locks
from agg_core.base.memory import machine_bytes
from agg_core.lab.experiments import LabSettings
from agg_core.lab.teaching import TeachingSettings
from agg_core.store import job_process, job_store, jobs
from agg_core.store.codec import load_result, load_sweep
from agg_core.store.job_process import work
from agg_core.store.job_store import DamagedJob, JobStore
from agg_core.store.jobs import AT_WORK, EXPERIMENT, STUDY, SWEEP, TEACHING, Job
from agg_core.store.lab_results import LabStore
from agg_core.store.runs import RunStore
from agg_core.study.lasting import Lasting
from agg_core.study.sweeps import Sweep
from tests.agg_core import tiny
from tests.faults import refused
from tests.warm import fork_from_now_on

DEADLINE_S = 90
ONE, OTHER = "1" * 32, "2" * 32
LONG = LabSettings(n_states=(10,), n_seeds=100, iterations=5000)
SHORT = LabSettings(
    n_states=(2,), group_sizes=(1,), n_individuals=(40,), lengths=(3,), n_seeds=1, iterations=2
)


def wait_for(reached: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (value := reached()):
        assert time.monotonic() < deadline, "it did not get there in time"
        time.sleep(0.05)
    return value


def _share(job: Job[Any]) -> float:
    progress = job.status().progress
    return 0.0 if progress is None else progress.share


def ended(job: Job[Any]) -> str:
    wait_for(lambda: job.state not in AT_WORK)
    job.wait()
    return job.state


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where jobs are, beside runs; no process outlives the test."""
    fork_from_now_on(monkeypatch)
    yield tmp_path / "jobs"
    for job in JobStore(tmp_path / "jobs").all():
        if isinstance(job, Job):
            job.remove()


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no process begins: what is started looks as if it had died at once."""

    def start(job: Job[Any]) -> None:
        (job.folder / jobs.QUEUED).unlink()
        jobs.write_json(job.folder / jobs.STARTED, {"at": time.time(), "starts": job.starts + 1})

    monkeypatch.setattr(Job, "start", start)


def add(store: JobStore, settings: Any = LONG, owner: str = ONE, **how: Any) -> Job[Any]:
    kind = TEACHING if isinstance(settings, TeachingSettings) else EXPERIMENT
    return store.add(kind, settings, title="some work", owner=owner, **how)


def study(store: JobStore, title: str = "sixty people", **learn: Any) -> Job[Any]:
    settings = tiny.settings(**learn)
    return store.add(STUDY, settings, title=title, owner=ONE, data=tiny.people())


class TestOneJob:
    def test_it_is_done_and_saved_once_though_nobody_looks(self, folder: Path) -> None:
        store = JobStore(folder)
        job = study(store)
        assert len(job.id) == 32
        assert int(job.id, 16)
        assert stat.S_IMODE(job.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert ended(job) == "done"
        (run,) = RunStore(folder.with_name("runs")).list()
        assert job.saved == run.id
        assert (run.title, run.owner) == ("sixty people", ONE)
        _, here = tiny.run(tiny.people(), tiny.settings())
        there = RunStore(folder.with_name("runs")).load(run.id)
        assert there.vs_counted == here.vs_counted
        assert load_result(job.result_folder).vs_counted == here.vs_counted
        assert not (job.folder / jobs.INPUT).exists(), "nobody learns from them any more"

    def test_its_copy_of_a_run_that_is_deleted_goes_too(self, folder: Path) -> None:
        store = JobStore(folder)
        jobs_done = [study(store, title) for title in ("one", "other", "shown")]
        assert [ended(job) for job in jobs_done] == ["done"] * 3
        one, other, shown = jobs_done
        assert one.saved is not None
        store.remove_of_run(one.saved)
        store.remove_of_run(shown.saved or "", keep=[shown.id])
        store.remove_of_run("0" * 32)
        assert {job.id for job in store.all() if isinstance(job, Job)} == {other.id, shown.id}

    def test_what_nobody_in_particular_asked_for_is_nobodys(
        self, folder: Path, never: None
    ) -> None:
        how = {"title": "x", "owner": "", "data": tiny.people()}
        job = JobStore(folder).add(STUDY, tiny.settings(), **how)
        work(job.folder)
        (run,) = RunStore(folder.with_name("runs")).list()
        assert run.owner is None

    def test_a_result_of_the_lab_goes_to_those_of_the_lab(self, folder: Path) -> None:
        job = add(JobStore(folder), SHORT)
        assert ended(job) == "done", (job.folder / jobs.LOG).read_text()
        assert job.saved == LabStore.key_of(EXPERIMENT, SHORT)
        kept = LabStore(folder.with_name("lab")).about(job.saved)
        assert (kept.title, kept.settings) == ("some work", SHORT)

    def test_the_table_of_a_sweep_stays_in_its_folder(self, folder: Path, never: None) -> None:
        sweep = Sweep(tiny.settings(), "seed", (1, 2))
        how = {"title": "x", "owner": ONE, "data": tiny.people()}
        job = JobStore(folder).add(SWEEP, sweep, **how)
        work(job.folder)
        job.forget_data()
        assert (job.state, job.saved) == ("done", None)
        assert [row.value for row in load_sweep(job.result_folder).rows] == [1, 2]
        assert not RunStore(folder.with_name("runs")).list()
        assert not (job.folder / jobs.INPUT).exists()
        assert not (job.folder / jobs.CHECKPOINT).exists()

    def test_what_it_is_is_read_back(self, folder: Path, never: None) -> None:
        how = {"engine": "dask", "priority": 3, "megabytes": 7.5, "lasting": Lasting(1.0, 2.0)}
        job = add(JobStore(folder), **how)
        there = JobStore(folder).job(job.id)
        assert there.about == job.about
        assert {name: getattr(there.about, name) for name in how} == how
        assert (there.about.owner, there.about.kept, there.settings) == (ONE, True, LONG)

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_one_killed_while_it_is_saved_is_saved_once(
        self, folder: Path, never: None, monkeypatch: pytest.MonkeyPatch, moment: str
    ) -> None:
        job = study(JobStore(folder))
        runs = RunStore(folder.with_name("runs"))

        class KilledError(BaseException):
            pass

        def die(*_: Any) -> None:
            raise KilledError

        with monkeypatch.context() as patch:
            where, name = (RunStore, "save") if moment == "before" else (job_process, "write_json")
            patch.setattr(where, name, die)
            with pytest.raises(KilledError):
                work(job.folder)
        assert len(runs.list()) == (moment == "after")
        assert job.state == "interrupted"
        monkeypatch.setattr(jobs, "study_steps", None)  # what was made is not made again
        work(job.folder)
        (run,) = runs.list()
        assert (job.state, job.saved) == ("done", run.id)

    def test_what_cannot_be_saved_is_done_all_the_same(
        self, folder: Path, never: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = study(JobStore(folder))
        folder.with_name("runs").write_text("no folder")
        work(job.folder)
        assert (job.state, job.saved) == ("done", None)

    def test_an_error_that_nobody_foresaw_is_a_failure(
        self, folder: Path, never: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = study(JobStore(folder))
        monkeypatch.setattr(jobs, "study_steps", lambda *_, **__: 1 / 0)
        work(job.folder)
        status = job.status()
        assert (status.state, status.code) == ("failed", "work-stopped")

    @pytest.mark.parametrize(
        "job_id", ["", "0" * 32, "../runs", "0" * 31, "0" * 32 + "\n", "/etc", "A" * 32, "x" * 500]
    )
    def test_an_id_that_is_none_is_refused(self, folder: Path, job_id: str) -> None:
        store = JobStore(folder)
        for ask in (store.job, store.cancel, store.resume, store.remove, store.look):
            with refused("unknown-job"):
                ask(job_id)
        assert store.find(job_id) is None

    def test_a_link_is_no_job(self, folder: Path, never: None, tmp_path: Path) -> None:
        job = add(JobStore(folder))
        os.rename(job.folder, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", job.folder)
        with refused("unknown-job"):
            JobStore(folder).job(job.id)


class TestSurvival:
    def test_a_killed_server_leaves_its_job_at_work_and_it_is_found(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = (
            "import sys, time\n"
            "from pathlib import Path\n"
            "from agg_core.store.job_store import JobStore\n"
            "from agg_core.store.jobs import EXPERIMENT\n"
            "from tests.agg_core.store.test_job_store import LONG, ONE\n"
            "store = JobStore(Path(sys.argv[1]))\n"
            "job = store.add(EXPERIMENT, LONG, title='long', owner=ONE)\n"
            "print(job.id, flush=True)\n"
            "sys.stdin.read()\n"
        )
        root = Path(__file__).parents[3]
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], cwd=root, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as server:  # fmt: skip
            assert server.stdout is not None
            job_id = server.stdout.readline().decode().strip()
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        store = JobStore(folder)
        (found,) = store.all(ONE)
        assert isinstance(found, Job)
        assert found.id == job_id
        first = wait_for(lambda: found.status().progress)
        assert found.state == "running", (found.folder / jobs.LOG).read_text()
        wait_for(lambda: found.status().progress.done > first.done)
        assert os.getpriority(os.PRIO_PROCESS, found.pid) > os.getpriority(os.PRIO_PROCESS, 0)
        store.cancel(job_id)
        assert found.state == "cancelled"
        assert not found.holds_its_place, "its process has ended"

    def test_a_killed_process_is_an_interruption_that_can_be_resumed(self, folder: Path) -> None:
        store = JobStore(folder)
        job = study(store, iterations=3000, group_size=60, misclassify=0.5)
        wait_for(lambda: job.status().progress)
        killed = job.pid
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: job.state == "interrupted")
        before = job.status().elapsed_s
        assert before > 0
        # It is resumed with less to do, so that the test has an end.
        jobs.write_json(job.folder / jobs.SETTINGS, tiny.settings().to_dict())
        store.resume(job.id)
        assert job.state in AT_WORK
        assert ended(job) == "done", (job.folder / jobs.LOG).read_text()
        assert job.starts == 2
        assert job.status().elapsed_s > before
        assert len(RunStore(folder.with_name("runs")).list()) == 1

    def test_only_what_was_interrupted_is_resumed(self, folder: Path, never: None) -> None:
        store = JobStore(folder)
        job = add(store)
        store.cancel(job.id)
        store.resume(job.id)
        assert job.state == "cancelled"

    def test_one_killed_ten_times_comes_to_the_same_to_the_bit(self, folder: Path) -> None:
        store = JobStore(folder)
        learn = {"strength": "auto", "replicates": 12, "iterations": 12}
        job = study(store, **learn)
        kills = 0
        for share in np.sort(np.random.default_rng(0).uniform(0.05, 0.95, 10)):
            wait_for(lambda share=share: _share(job) >= share or job.state not in AT_WORK)
            if job.state == "running":
                os.kill(job.pid, signal.SIGKILL)
                kills += 1
            job.wait()
            if job.state == "interrupted":
                store.resume(job.id)
        assert ended(job) == "done", (job.folder / jobs.LOG).read_text()
        assert kills >= 3
        assert not (job.folder / jobs.CHECKPOINT).exists()
        found = load_result(job.result_folder)
        _, whole = tiny.run(tiny.people(), tiny.settings(**learn))
        for name, array in whole.parameters().items():
            np.testing.assert_array_equal(found.parameters()[name], array)
        pd.testing.assert_frame_equal(found.ensemble.table, whole.ensemble.table, check_exact=True)
        assert found.vs_single == whole.vs_single

    def test_a_number_that_another_process_has_by_now_is_not_killed(
        self, folder: Path, never: None
    ) -> None:
        job = add(JobStore(folder))
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as other:
            jobs.write_json(job.folder / jobs.STARTED, {"at": time.time(), "pid": other.pid})
            job.cancel()
            job.remove()
            assert other.poll() is None
            other.communicate()
        assert other.returncode == 0

    def test_a_server_that_begins_goes_on_with_what_was_interrupted_but_not_for_ever(
        self, folder: Path, never: None
    ) -> None:
        store = JobStore(folder)
        job = add(store)
        for starts in range(1, job_store.MOST_STARTS + 3):
            assert job.starts == min(starts, job_store.MOST_STARTS)
            assert job.state == "interrupted"
            store.go_on()
        store.resume(job.id)
        assert job.starts == job_store.MOST_STARTS + 1, "a person may ask for more"

    def test_of_one_that_is_cancelled_no_data_stay(self, folder: Path, never: None) -> None:
        job = study(JobStore(folder))
        (job.folder / jobs.CHECKPOINT).mkdir()
        assert (job.folder / jobs.INPUT).exists()
        job.cancel()
        assert not (job.folder / jobs.INPUT).exists()
        assert not (job.folder / jobs.CHECKPOINT).exists()

    def test_a_job_cancelled_while_it_begins_does_nothing(
        self, folder: Path, never: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = add(JobStore(folder), SHORT)
        job.cancel()
        monkeypatch.setattr(sys, "argv", ["", str(job.folder)])
        for name in ("_lock_of_ours", "work", "give_way"):
            monkeypatch.setattr(job_process, name, lambda *_: os.open(os.devnull, os.O_RDONLY))
        job_process.program()
        assert job.state == "cancelled"
        assert not job.result_folder.exists()


class TestQueue:
    def test_who_comes_first_is_first_and_the_next_begins_when_one_ends(self, folder: Path) -> None:
        store = JobStore(folder, most_running=1)
        first, second, third = (add(store, owner=owner) for owner in (ONE, OTHER, "3" * 32))
        assert [job.state for job in (first, second, third)] == ["running", "queued", "queued"]
        assert [store.ahead(job.id) for job in (second, third)] == [0, 1]
        assert second.status().elapsed_s == 0
        store.cancel(second.id)
        assert second.state == "cancelled"
        assert store.ahead(third.id) == 0
        store.cancel(first.id)
        assert third.state == "running"

    def test_one_more_of_an_owner_waits_and_keeps_nobody_else_waiting(self, folder: Path) -> None:
        store = JobStore(folder, most_running=3)
        first, second, other = add(store), add(store), add(store, owner=OTHER)
        view = add(store, TeachingSettings())
        states = [job.state for job in (first, second, other, view)]
        assert states == ["running", "queued", "running", "running"], "one of a kind and an owner"

    def test_the_process_that_ends_starts_the_next_without_any_other(self, folder: Path) -> None:
        store = JobStore(folder, most_running=1)
        job_ids = [add(store, SHORT, owner=owner).id for owner in (ONE, OTHER)]
        first, second = (Job[Any](folder / job_id) for job_id in job_ids)
        assert second.state == "queued"
        # From here on only files are looked at, which starts nothing.
        assert ended(first) == "done"
        wait_for(lambda: second.state == "done")
        second.wait()
        assert second.starts == 1

    def test_priority_goes_before_time(self, folder: Path, never: None) -> None:
        store = JobStore(folder, most_running=0)
        low, high = add(store, owner=ONE), add(store, owner=OTHER, priority=1)
        assert (store.ahead(high.id), store.ahead(low.id)) == (0, 1)

    def test_beyond_the_most_that_wait_one_is_refused_with_figures(
        self, folder: Path, never: None
    ) -> None:
        store = JobStore(folder, most_running=0, most_waiting=2)
        for owner in (ONE, OTHER):
            add(store, owner=owner)
        with refused("queue-full", "2 wait", "(0 and 2)"):
            add(store)
        assert len(store.all()) == 2
        assert [path.name for path in folder.glob(".*")] == [".lock"]

    def test_what_cannot_fit_the_machine_is_refused_with_figures(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, never: None
    ) -> None:
        monkeypatch.setattr(job_store, "machine_bytes", lambda: 8_000_000_000)
        with refused("work-too-large", "9.0 GB", "8.0 GB"):
            add(JobStore(folder), megabytes=9_000)
        assert not folder.exists()

    def test_what_is_told_to_take_longer_than_work_may_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, never: None
    ) -> None:
        monkeypatch.setenv("FLOWS_JOB_HOURS", "2")
        store, longer = JobStore(folder), Lasting(7_201.0, 90_000.0)
        with refused("work-too-long", longer.words, "2 h"):
            add(store, lasting=longer)
        assert not folder.exists()
        add(store, lasting=Lasting(7_199.0, 90_000.0))
        add(store, owner=OTHER)  # of which no time is told
        monkeypatch.setenv("FLOWS_JOB_HOURS", "much")
        with refused("wrong-job-hours"):
            add(store, owner="3" * 32)
        monkeypatch.delenv("FLOWS_JOB_HOURS")
        add(store, owner="3" * 32, lasting=longer)

    def test_what_does_not_fit_beside_what_runs_waits(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_store, "machine_bytes", lambda: 8_000_000_000)
        store = JobStore(folder)
        first = add(store, megabytes=5_000)
        second = add(store, owner=OTHER, megabytes=5_000)
        assert second.state == "queued"
        store.cancel(first.id)
        assert second.state == "running"

    @pytest.mark.parametrize("together", ["resume", "start_waiting"])
    def test_two_stores_do_not_start_a_job_twice(
        self, folder: Path, never: None, monkeypatch: pytest.MonkeyPatch, together: str
    ) -> None:
        waits = JobStore(folder, most_running=0)
        if together == "resume":
            waits = JobStore(folder)
        job = add(waits)
        before = job.starts
        started, held = [], []

        def start(job: Job[Any]) -> None:
            held.append(locks.take(job.folder / jobs.LOCK))
            started.append(job.id)
            (job.folder / jobs.QUEUED).unlink()

        monkeypatch.setattr(Job, "start", start)
        barrier = threading.Barrier(8)

        def race() -> None:
            store = JobStore(folder)
            barrier.wait()
            store.resume(job.id) if together == "resume" else store.start_waiting()

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert started == [job.id]
        assert job.starts == before
        for lock in held:
            os.close(lock)


class TestFolder:
    def test_owners_see_their_own(self, folder: Path, never: None) -> None:
        store = JobStore(folder, most_running=0)
        mine, theirs = add(store), add(store, owner=OTHER)
        assert [job.id for job in store.all(ONE)] == [mine.id]
        assert [job.id for job in store.all(OTHER)] == [theirs.id]
        assert {job.id for job in store.all()} == {mine.id, theirs.id}

    @pytest.mark.parametrize("about", ["", "{", "[]", "null", '{"format": 1}', "[" * 50_000, None])
    def test_a_damaged_job_is_named_and_breaks_nothing(
        self, folder: Path, never: None, about: str | None
    ) -> None:
        store = JobStore(folder, most_running=0)
        good, bad = add(store), add(store, owner=OTHER)
        (bad.folder / jobs.ABOUT).unlink()
        if about is not None:
            (bad.folder / jobs.ABOUT).write_text(about)
        (folder / "stranger").mkdir()
        (folder / "a file").touch()
        found = store.all()
        assert [job.id for job in found if isinstance(job, Job)] == [good.id]
        assert {job.id for job in found if isinstance(job, DamagedJob)} == {
            bad.id, "stranger", "a file",
        }  # fmt: skip
        assert [job.id for job in store.all(OTHER)] == []
        with refused("job-damaged"):
            store.job(bad.id)
        store.start_waiting()
        store.clean()
        assert bad.folder.exists()

    @pytest.mark.parametrize("kind", ["pipe", "link", "huge", "other format", "other kind"])
    def test_an_about_that_is_no_file_of_ours_is_damage(
        self, folder: Path, never: None, tmp_path: Path, kind: str
    ) -> None:
        store = JobStore(folder, most_running=0)
        job = add(store)
        path = job.folder / jobs.ABOUT
        text = path.read_text()
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            (tmp_path / "about").write_text(text)
            path.symlink_to(tmp_path / "about")
        elif kind == "huge":
            path.write_text(text + " " * jobs.MOST_BYTES)
        else:
            changed = {"format": 2} if kind == "other format" else {"kind": "mining"}
            path.write_text(json.dumps({**json.loads(text), **changed}))
        assert [type(each) for each in store.all()] == [DamagedJob]

    @pytest.mark.parametrize("name", [jobs.STARTED, jobs.PROGRESS, jobs.PACE, jobs.SAVED])
    @pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', '{"at": "x", "pid": [], "id": 3}'])
    def test_other_damaged_files_are_as_if_they_were_not_there(
        self, folder: Path, never: None, name: str, text: str
    ) -> None:
        job = add(JobStore(folder, most_running=0))
        (job.folder / name).write_text(text)
        status = job.status()
        assert (status.state, status.elapsed_s) == ("queued", 0)
        assert (job.pid, job.starts, job.saved, status.progress) == (None, 0, None, None)

    def test_what_ended_and_was_not_looked_at_is_cleaned_and_nothing_else(
        self, folder: Path, never: None
    ) -> None:
        store = JobStore(folder, most_running=0)
        names = ("waits", "runs", "saved", "saved lately", "unsaved", "unsaved lately", "dead")
        held = {name: add(store, owner=f"{number:032x}") for number, name in enumerate(names)}
        now = time.time()
        for name, job in held.items():
            if name != "waits":
                (job.folder / jobs.QUEUED).unlink()
            if "saved" in name:
                (job.folder / jobs.RESULT).mkdir()
            if name.startswith("saved"):
                jobs.write_json(job.folder / jobs.SAVED, {"id": ONE})
            kept_s = job_store.SAVED_KEPT_S if name.startswith("saved") else job_store.KEPT_S
            age_s = kept_s + (-60 if name.endswith("lately") else 60)
            if name in ("waits", "runs"):
                age_s *= 100
            (job.folder / jobs.LOCK).touch()
            os.utime(job.folder, (now - age_s, now - age_s))
        for age_s, name in ((60, ".young"), (job_store.LEFT_OVER_S + 60, ".old")):
            (folder / name).mkdir()
            os.utime(folder / name, (now - age_s, now - age_s))
        with locks.locked(held["runs"].folder / jobs.LOCK):
            store.clean()
        left = {name for name, job in held.items() if job.folder.exists()}
        assert left == {"waits", "runs", "saved lately", "unsaved lately"}
        assert (folder / ".young").exists()
        assert not (folder / ".old").exists()

    def test_to_look_is_to_keep(self, folder: Path, never: None) -> None:
        store = JobStore(folder)
        job = add(store)
        job.cancel()
        os.utime(job.folder, (0, 0))
        store.look(job.id)
        store.clean()
        assert job.folder.exists()

    def test_a_folder_that_cannot_be_written_is_one_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        store = JobStore(tmp_path / "file" / "jobs")
        assert store.all() == ()
        with refused("job-not-begun"):
            add(store)


def test_the_machine_has_memory() -> None:
    assert 10**8 < machine_bytes() < 10**15
