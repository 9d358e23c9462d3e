import logging
import os
import shutil
import signal
import stat
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from agg_core.base import dask_engine, locks
from agg_core.base.dask_engine import OWN
from agg_core.base.errors import InputError
from agg_core.base.processes import left_fault
from agg_core.counts import choosing
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.gates import read_gates
from agg_core.io.kept_flows import write_flow_table
from agg_core.lab.experiments import LabProgress, LabSettings, lab_steps
from agg_core.lab.teaching import TeachingProgress, TeachingSettings, teaching_steps
from agg_core.made.counts import simulate_city
from agg_core.made.gates import simulate_railway
from agg_core.store import jobs
from agg_core.store.codec import load_lab, load_result, load_sweep, load_teaching
from agg_core.store.job_process import work
from agg_core.store.jobs import (
    AT_WORK,
    COUNTS,
    EXPERIMENT,
    GATES,
    KINDS,
    STUDY,
    SWEEP,
    TEACHING,
    About,
    Job,
    prepare_job,
    start_job,
)
from agg_core.study.counts import CountProgress, count_study_steps
from agg_core.study.gates import gate_study_steps
from agg_core.study.people import SOURCES, Progress
from agg_core.study.settings import CountLearnSettings, GateLearnSettings, StudySettings
from agg_core.study.sweeps import Sweep, SweepProgress, sweep_steps
from agg_core.tables.counts import write_counts
from agg_core.tables.gates import write_gates
from agg_core.tables.trajectories import read_canonical, write_canonical
from tests.agg_core import tiny
from tests.agg_core.counts import made
from tests.faults import refused
from tests.warm import fork_from_now_on

DEADLINE_S = 90
LONG = tiny.settings(group_size=60, misclassify=0.5, iterations=5000)


def wait_for(reached):
    """Poll until ``reached()`` is true; its value."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := reached()):
        assert time.monotonic() < deadline, "the job did not get there in time"
        time.sleep(0.05)
    return value


def end_of(job):
    wait_for(lambda: job.status().state not in AT_WORK)
    return job.status()


def work_here(kind, folder, engine="local"):
    """What the process of a job does with its folder; how the job is then."""
    jobs.write_json(folder / jobs.ABOUT, About(kind.name, engine=engine).to_dict())
    work(folder)
    return Job(folder)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Most tests are about what a process does, not about how it starts."""
    fork_from_now_on(monkeypatch)


@pytest.fixture
def start(tmp_path):
    """`start_job` in a folder of this test; no process outlives the test."""
    started = []

    def begin(settings, kind=STUDY):
        people = tiny.people() if kind in (STUDY, SWEEP) else None
        job = start_job(kind, settings, tmp_path / "job", people)
        started.append(job)
        return job

    yield begin
    for job in started:
        job.remove()


# ---------------------------------------------------------------- a job's life


def test_a_job_runs_ends_and_leaves_what_the_study_gives_here(start, monkeypatch):
    monkeypatch.undo()  # started as the app starts it
    chosen = tiny.settings()
    before = time.monotonic()
    job = start(chosen)
    seen = [job.status().state]
    assert stat.S_IMODE(job.folder.stat().st_mode) == 0o700
    status = end_of(job)
    assert [*seen, status.state] == ["running", "done"]
    assert status.message == ""
    assert 0 < status.elapsed_s <= time.monotonic() - before
    assert job.wait() is None
    assert job.status().elapsed_s == job.status().elapsed_s, "the clock of an ended job stands"

    progress, here = tiny.run(tiny.people(), chosen)
    there = load_result(job.result_folder)
    for source in SOURCES:
        mine, theirs = (found.table(here.busiest, source) for found in (here, there))
        pd.testing.assert_frame_equal(theirs, mine, check_exact=True)
    assert there.settings == chosen
    assert there.vs_counted == here.vs_counted
    for source in ("estimate", "single"):
        one, other = getattr(there.by_time[0], source), getattr(here.by_time[0], source)
        np.testing.assert_array_equal(one.transmat, other.transmat)
        assert one.history == other.history

    assert status.progress == progress[-1]
    progress = [step for step in progress if step.stage == "learning"]
    history = job.history()
    assert list(history.columns) == ["time", "source", "iteration", "energy"]
    assert history["source"].tolist() == [step.source for step in progress]
    assert history["iteration"].tolist() == [step.iteration for step in progress]
    assert (history["time"] == "all day").all()
    assert history["energy"].tolist() == pytest.approx(
        [step.free_energy / step.people for step in progress], rel=1e-8
    )

    job.cancel()
    assert job.status().state == "done", "cancelling comes too late"
    job.remove()
    assert not job.folder.exists()


def test_a_job_of_a_cluster_gives_the_same_and_ends_with_it(tmp_path, monkeypatch):
    monkeypatch.undo()
    with LocalCluster(n_workers=1, dashboard_address=OWN, silence_logs=logging.CRITICAL) as cluster:
        spec = cluster.scheduler_address.replace("tcp://", "dask://")
        chosen = tiny.settings(replicates=3)
        job = start_job(STUDY, chosen, tmp_path / "there", tiny.people(), engine=spec)
        assert end_of(job).state == "done", job.status().message
        job.wait()
    _, here = tiny.run(tiny.people(), chosen)
    there = load_result(job.result_folder)
    assert there.settings == chosen
    pd.testing.assert_frame_equal(
        there.table(here.busiest), here.table(here.busiest), check_exact=True
    )
    # Now nobody answers there.
    monkeypatch.setattr(dask_engine, "WORKERS_S", 0.2)
    folder = tmp_path / "alone"
    shutil.copytree(job.folder, folder, ignore=lambda *_: ["result", "history.csv"])
    work_here(STUDY, folder, spec)
    assert left_fault(folder, InputError("unsaid")).code == "cluster-unreachable"


def test_a_cancelled_job_takes_the_processes_of_its_engine_with_it(tmp_path, monkeypatch):
    monkeypatch.undo()
    job = start_job(STUDY, LONG, tmp_path / "job", tiny.people(), engine="dask")
    try:
        wait_for(lambda: _learning(job.status().progress))
        workers = children_of(job.pid)
        assert workers
    finally:
        job.cancel()
    wait_for(lambda: not any(map(is_at_work, workers)))


def children_of(pid):
    """Processes that a process started."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for found in lists for child in found.read_text().split()]


def is_at_work(pid):
    """Whether a process has not ended; one that nobody has asked for its end has no memory."""
    try:
        return "VmRSS" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _learning(progress):
    """Progress of the fits themselves, once these have begun."""
    return progress if progress is not None and progress.stage == "learning" else None


def test_a_cancelled_job_ends_at_once_without_a_result(start):
    job = start(LONG)
    progress = wait_for(lambda: _learning(job.status().progress))
    assert job.status().state == "running"
    assert isinstance(progress, Progress)
    assert progress.n_iter == 5000
    assert len(job.history()) >= progress.iteration
    began = time.monotonic()
    job.cancel()
    assert time.monotonic() - began < 5
    assert job.status().state == "cancelled"
    assert not job.result_folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(job.pid, 0)
    assert len(job.history()) >= progress.iteration, "the curve so far stays"
    job.cancel()
    assert job.status().state == "cancelled"


def test_what_is_wrong_with_the_input_is_said_in_the_same_words(start):
    chosen = tiny.settings(group_size=61)
    status = end_of(start(chosen))
    with refused("group-too-large", "M = 61") as fault:
        tiny.run(tiny.people(), chosen)
    assert (status.state, status.message, status.code) == (
        "failed",
        str(fault.value),
        fault.value.code,
    )
    assert status.progress is None


def test_a_process_killed_from_outside_leaves_its_job_interrupted(start):
    job = start(LONG)
    os.kill(job.pid, signal.SIGKILL)
    status = end_of(job)
    assert (status.state, status.message, status.code) == ("interrupted", "", "")
    assert not job.result_folder.exists()


def test_removing_a_running_job_ends_it_and_deletes_its_folder(start):
    job = start(LONG)
    pid = job.pid
    job.remove()
    assert not job.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    job.remove()


# ---------------------------------------------------------------- the other kinds

TINY_LAB = LabSettings(
    n_states=(2,), group_sizes=(1, 4), n_individuals=(40,), lengths=(3,), n_seeds=2, iterations=3
)
TIMES = ["wall_s"]
"""Columns that differ from run to run."""


def test_an_experiment_in_a_process_finds_what_it_finds_here(start):
    job = start(TINY_LAB, EXPERIMENT)
    assert end_of(job).state == "done", (job.folder / jobs.LOG).read_text()
    *progress, here = lab_steps(TINY_LAB)
    there = load_lab(job.result_folder)
    pd.testing.assert_frame_equal(
        there.table.drop(columns=TIMES), here.table.drop(columns=TIMES), check_exact=True
    )
    assert there.settings == TINY_LAB
    assert there.trends == here.trends
    assert there.notes == here.notes
    last = job.status().progress
    assert isinstance(last, LabProgress)
    assert last == progress[-1]
    assert job.history().empty
    assert not (job.folder / jobs.HISTORY).exists()


def test_a_cancelled_experiment_leaves_no_result(start):
    job = start(LabSettings(n_states=(10,), n_seeds=100, iterations=5000), EXPERIMENT)
    wait_for(lambda: job.status().progress)
    job.cancel()
    assert job.status().state == "cancelled"
    assert not job.result_folder.exists()


@pytest.mark.parametrize("name", ["table.parquet", "result.json"])
def test_a_cut_file_of_an_experiment_is_one_sentence(tmp_path, name):
    jobs.write_json(tmp_path / jobs.SETTINGS, TINY_LAB.to_dict())
    work_here(EXPERIMENT, tmp_path)
    file = tmp_path / jobs.RESULT / name
    file.write_bytes(file.read_bytes()[:20])
    with refused("result-damaged"):
        load_lab(tmp_path / jobs.RESULT)


TINY_VIEW = TeachingSettings(learner="cfb", n_people=200, iterations=2)


def test_the_teaching_view_by_its_process_is_the_one_made_here(tmp_path):
    jobs.write_json(tmp_path / jobs.SETTINGS, TINY_VIEW.to_dict())
    job = work_here(TEACHING, tmp_path)
    status = job.status()
    assert status.state == "done"
    assert isinstance(status.progress, TeachingProgress)
    assert status.progress.share == pytest.approx(1)
    *_, here = teaching_steps(TINY_VIEW)
    there = load_teaching(job.result_folder)
    pd.testing.assert_frame_equal(there.flows, here.flows, check_exact=True)
    assert there.points == here.points
    assert there.true_moves == here.true_moves
    assert there.settings == TINY_VIEW


TINY_COUNTS = CountLearnSettings(strength="given", time="one", replicates=1)


@pytest.fixture
def counts(tmp_path):
    """A file of counts of six cells on two days, as a session keeps it."""
    table = made.city_table(simulate_city(2, 3, days=2, people=300, random_state=3))
    write_counts(table, tmp_path / "counts.parquet")
    return table, tmp_path / "counts.parquet"


def test_counts_in_a_process_become_the_flows_that_they_become_here(counts, tmp_path):
    table, file = counts
    job = start_job(COUNTS, TINY_COUNTS, tmp_path / "job", file)
    try:
        file.unlink()  # the session opened other data meanwhile: the job has a copy
        assert end_of(job).state == "done", (job.folder / jobs.LOG).read_text()
        *progress, here = count_study_steps(table, TINY_COUNTS)
        there = load_result(job.result_folder)
        pd.testing.assert_frame_equal(there.flows, here.flows, check_exact=True)
        np.testing.assert_array_equal(there.transmats, here.transmats)
        assert there.settings == TINY_COUNTS
        last = job.status().progress
        assert isinstance(last, CountProgress)
        assert last == progress[-1]
        assert job.history().empty
    finally:
        job.remove()


TINY_GATES = GateLearnSettings(minutes_per_km=1.2, draws=2)


@pytest.mark.parametrize("with_matrix", [False, True])
def test_gates_in_a_process_become_the_flows_that_they_become_here(tmp_path, with_matrix):
    railway = simulate_railway(4)
    table = read_gates(railway.table(), places=railway.stations)
    file, old = tmp_path / "gates.parquet", tmp_path / "old.parquet"
    write_gates(table, file)
    known = KnownStates(table.stations, "outside", table.entries.slots, 60.0, table.timezone)
    matrix = read_flow_table(railway.pairs(), known, by_date=True) if with_matrix else None
    if matrix is not None:
        write_flow_table(matrix, old)
    job = tmp_path / "job"
    prepare_job(TINY_GATES, job, About("gates"), file, matrix=old if with_matrix else None)
    GATES.run(job)
    *_, here = gate_study_steps(table, TINY_GATES, matrix)
    there = load_result(job / jobs.RESULT)
    assert there.settings == TINY_GATES
    assert bool(there.matrix_weights) == with_matrix
    pd.testing.assert_frame_equal(there.happened.flows, here.happened.flows, check_exact=True)
    assert Job(job).status().progress.share == 1
    Job(job).forget_data()
    assert not (job / jobs.INPUT).exists()
    assert not (job / jobs.MATRIX).exists()


def figures_of(result):
    """What does not hang on the clock."""
    return [{**row.to_dict(), "cpu_s": None} for row in result.rows]


def test_a_sweep_in_a_process_finds_what_it_finds_here(start):
    sweep = Sweep(tiny.settings(), "group_size", (2, 5))
    job = start(sweep, SWEEP)
    assert end_of(job).state == "done", (job.folder / jobs.LOG).read_text()
    *progress, here = sweep_steps(tiny.people(), sweep)
    there = load_sweep(job.result_folder)
    assert there.sweep == job.settings == sweep
    assert figures_of(there) == figures_of(here)
    assert job.status().progress == progress[-1]
    assert job.history().empty


def test_a_sweep_of_counts_in_a_process_does_too(counts, tmp_path):
    table, file = counts
    sweep = Sweep(TINY_COUNTS, "seed", (1, 2))
    job = start_job(SWEEP, sweep, tmp_path / "job", file)
    try:
        assert end_of(job).state == "done", (job.folder / jobs.LOG).read_text()
        *_, here = sweep_steps(table, sweep)
        assert figures_of(load_sweep(job.result_folder)) == figures_of(here)
    finally:
        job.remove()


def test_a_sweep_that_was_killed_goes_on_to_the_same(tmp_path, monkeypatch):
    sweep = Sweep(tiny.settings(iterations=40), "seed", (0, 1, 2))
    job = start_job(SWEEP, sweep, tmp_path / "job", tiny.people())
    try:
        wait_for(lambda: (job.status().progress or SweepProgress(0, 3, "")).done >= 1)
        os.kill(job.pid, signal.SIGKILL)
        wait_for(lambda: job.status().state not in AT_WORK)
        if job.status().state == "interrupted":
            job.start()
        assert end_of(job).state == "done"
        *_, here = sweep_steps(tiny.people(), sweep)
        assert figures_of(load_sweep(job.result_folder)) == figures_of(here)
    finally:
        job.remove()


def test_a_value_beyond_the_people_fails_a_sweep_before_it_learns(start):
    status = end_of(start(Sweep(tiny.settings(), "group_size", (2, 61)), SWEEP))
    assert (status.state, status.code, status.progress) == ("failed", "group-too-large", None)


def test_what_is_wrong_with_counts_is_said_in_the_same_words(counts, tmp_path):
    table, file = counts
    write_counts(table.take([0]), file)
    (tmp_path / jobs.INPUT).write_bytes(file.read_bytes())
    jobs.write_json(tmp_path / jobs.SETTINGS, TINY_COUNTS.to_dict())
    status = work_here(COUNTS, tmp_path).status()
    with refused("no-successive-moments") as fault:
        list(count_study_steps(table.take([0]), TINY_COUNTS))
    assert (status.state, status.message, status.code) == (
        "failed",
        str(fault.value),
        fault.value.code,
    )


@pytest.mark.parametrize(
    ("kind", "settings", "field", "value", "code"),
    [
        (EXPERIMENT, TINY_LAB, "group_sizes", [41], "group-too-large"),
        (EXPERIMENT, TINY_LAB, "lengths", [], "no-value-given"),
        (COUNTS, TINY_COUNTS, "prior", -1, "value-out-of-range"),
        (SWEEP, Sweep(TINY_COUNTS, "seed", (1, 2)), "values", [1, 1], "value-given-twice"),
        (SWEEP, Sweep(TINY_COUNTS, "seed", (1, 2)), "values", [1, -1], "value-out-of-range"),
        (SWEEP, Sweep(TINY_COUNTS, "seed", (1, 2)), "name", "__init__", "unknown-option"),
        (TEACHING, TINY_VIEW, "n_people", 99, "value-out-of-range"),
        (TEACHING, TINY_VIEW, "learner", "oracle", "not-a-choice"),
    ],
)
def test_any_kind_refuses_bad_settings_in_one_sentence(
    tmp_path, kind, settings, field, value, code
):
    jobs.write_json(tmp_path / jobs.SETTINGS, {**settings.to_dict(), field: value})
    status = work_here(kind, tmp_path).status()
    assert (status.state, status.code) == ("failed", code)
    assert "\n" not in status.message


def test_kinds_are_found_by_the_name_that_the_process_is_given():
    kinds = ["study", "counts", "gates", "sweep", "experiment", "teaching"]
    assert [KINDS[name].name for name in KINDS] == kinds


# ---------------------------------------------------------------- its parts, without a process


def test_a_folder_that_exists_is_not_taken(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "folder").mkdir()
    for name in ("mine", "folder"):
        with pytest.raises(FileExistsError):
            start_job(STUDY, tiny.settings(), tmp_path / name, tiny.people())
    assert (tmp_path / "mine").read_text() == "precious"
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.fixture
def prepared(tmp_path):
    """A job folder as `start_job` leaves it for the process."""
    write_canonical(tiny.people(), tmp_path / jobs.INPUT)
    jobs.write_json(tmp_path / jobs.SETTINGS, tiny.settings(iterations=2).to_dict())
    return tmp_path


def test_the_input_is_stored_as_it_was(prepared):
    back = read_canonical(prepared / jobs.INPUT)
    pd.testing.assert_frame_equal(back.table, tiny.people().table)


def test_the_work_of_the_process(prepared):
    job = work_here(STUDY, prepared)
    assert job.status().state == "done"
    assert len(job.history()) == 4
    assert load_result(job.result_folder).settings == tiny.settings(iterations=2)


def test_a_job_like_another_makes_no_trial_again(counts, tmp_path, monkeypatch):
    _, file = counts
    first = start_job(COUNTS, TINY_COUNTS, tmp_path / "first", file)
    try:
        assert end_of(first).state == "done", (first.folder / jobs.LOG).read_text()
        again = tmp_path / "again"
        prepare_job(TINY_COUNTS, again, About("counts"), file, first.result_folder)
        monkeypatch.setattr(choosing, "prediction_scores", None)
        COUNTS.run(again)
        one, other = load_result(first.result_folder), load_result(again / jobs.RESULT)
        assert one.remembered == other.remembered != {}
    finally:
        first.remove()


def test_want_of_memory_is_said(prepared, monkeypatch):
    def hungry(*_):
        raise MemoryError

    monkeypatch.setattr(jobs, "study_steps", hungry)
    status = work_here(STUDY, prepared).status()
    assert (status.state, status.message, status.code) == (
        "failed",
        jobs.UNEXPECTED,
        "work-stopped",
    )


def test_settings_out_of_range_are_refused_by_the_process(prepared):
    values = StudySettings().to_dict()
    values["grid"]["rows"] = 0
    jobs.write_json(prepared / jobs.SETTINGS, values)
    status = work_here(STUDY, prepared).status()
    assert (status.state, status.message, status.code) == (
        "failed",
        "Rows must lie between 1 and 100; it was 0.",
        "value-out-of-range",
    )


def test_a_damaged_input_is_refused_by_the_process(prepared):
    (prepared / jobs.INPUT).write_bytes(b"no parquet")
    status = work_here(STUDY, prepared).status()
    assert (status.state, status.code) == ("failed", "trajectories-unreadable")


@pytest.mark.parametrize(
    ("written", "iterations"),
    [
        (None, []),
        ("", []),
        ("all day,estimate,1,-2.5\n", [1]),
        ("all day,estimate,1,-2.5\nall day,esti", [1]),
        ("all day,estimate,1,-2.5\nall day,estimate,2", [1]),
        ("08:00,single,1,-2.5\n08:00,single,2,-2.75\n", [1, 2]),
    ],
)
def test_a_history_that_is_still_being_written(tmp_path, written, iterations):
    if written is not None:
        (tmp_path / jobs.HISTORY).write_text(written)
    jobs.write_json(tmp_path / jobs.ABOUT, About("study").to_dict())
    history = Job(tmp_path).history()
    assert list(history.columns) == ["time", "source", "iteration", "energy"]
    assert history["iteration"].tolist() == iterations


def test_the_time_that_remains_goes_by_the_pace_since_the_first_iteration(tmp_path, monkeypatch):
    clock = [1_000_100.0]
    monkeypatch.setattr(jobs.time, "time", lambda: clock[0])
    jobs.write_json(tmp_path / jobs.ABOUT, About("study").to_dict())
    jobs.write_json(tmp_path / jobs.STARTED, {"at": clock[0], "before_s": 40.0, "pid": 0})

    def remaining(now, iteration, *, first=False):
        clock[0] = 1_000_000.0 + now
        if iteration is not None:
            step = Progress("all day", "estimate", 0, 1, iteration, 20, -1.0, 0.1, 4)
            jobs.write_json(tmp_path / jobs.PROGRESS, asdict(step))
            if first:
                jobs.write_json(tmp_path / jobs.PACE, {"at": clock[0], "share": step.share})
        status = Job(tmp_path).status()
        assert status.state == "running"
        assert status.elapsed_s == now - 100 + 40, "with what was done before it was interrupted"
        return status.remaining_s

    with locks.locked(tmp_path / jobs.LOCK):
        assert remaining(108, None) is None
        assert remaining(110, 1, first=True) is None, "gridding and compiling say nothing"
        assert remaining(111, 3) is None, "a second is too short to tell"
        # From 5 % to 25 % in 20 s: the other 75 % take 75 s.
        assert remaining(130, 5) == pytest.approx(75)
