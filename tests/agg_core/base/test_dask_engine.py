import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, Event, LocalCluster

from agg_core.base import dask_engine as of_dask
from agg_core.base.checkpoints import use_checkpoints
from agg_core.base.dask_engine import OWN, code_here, dask_engine
from agg_core.base.engine import current, use_engine
from agg_core.base.errors import EngineError, InputError
from agg_core.study.sweeps import Sweep, SweepResult, sweep_steps
from tests.agg_core import tiny
from tests.agg_core.base import parts
from tests.faults import refused

ROOT = Path(__file__).parents[3]


@contextmanager
def two_workers():
    """A scheduler with two workers, each a process, that gives a task up after two of them."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=OWN,
            silence_logs=logging.CRITICAL,
        ) as made,
    ):  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as made:
        yield made


def spec_of(cluster):
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture(scope="module")
def engine(cluster):
    with use_engine(spec_of(cluster)) as found:
        yield found


@pytest.fixture
def mortal():
    """An engine whose workers may be killed: one that has not quite begun is not replaced."""
    with two_workers() as cluster, use_engine(spec_of(cluster)) as found:
        yield found


@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_results_are_in_the_order_of_their_items(engine, n):
    assert engine.map(parts.square, range(n)) == [x**2 for x in range(n)]


def test_parts_are_done_by_both_workers_and_not_here(engine):
    assert engine.n_workers == 2
    processes = set(engine.map(parts.process_of, range(20)))
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_a_part_has_one_thread_and_does_its_own_parts_in_turn(engine):
    assert engine.map(parts.within, range(2)) == 2 * [(1, [0, 1, 4], 1)]


def test_the_engine_is_in_use_within_and_no_longer(cluster):
    before = current()
    with use_engine(spec_of(cluster)) as found:
        assert current() is found
        # What has one part only leaves its own parts to the cluster.
        ((n_workers, *_),) = found.map(parts.within, [0])
        assert n_workers == 2
    assert current() is before


def test_values_are_the_same_to_the_bit(engine):
    items = [np.random.default_rng(seed).standard_normal((40, 40)) for seed in range(6)]
    here = current().map(np.linalg.inv, items)
    for found, known in zip(engine.map(np.linalg.inv, items), here, strict=True):
        assert np.array_equal(found, known)


def figures_of_sweep(stop_after=None):
    """Rows of a sweep but for the time they took; steps up to a number if it is stopped there."""
    sweep = Sweep(tiny.settings(replicates=2), "group_size", (1, 4, 20))
    steps = sweep_steps(tiny.people(), sweep)
    if stop_after is not None:
        return list(islice(steps, stop_after))
    *_, result = steps
    assert isinstance(result, SweepResult)
    return [{**row.to_dict(), "cpu_s": None} for row in result.rows]


def test_a_sweep_is_the_same_to_the_bit(engine):
    found = figures_of_sweep()
    with use_engine("local"):
        assert figures_of_sweep() == found


def test_a_sweep_that_was_stopped_goes_on_with_the_cluster(engine, tmp_path):
    whole = figures_of_sweep()
    with use_checkpoints(tmp_path):
        figures_of_sweep(stop_after=2)
    kept = sorted(tmp_path.iterdir())
    assert kept
    with use_checkpoints(tmp_path):
        assert figures_of_sweep() == whole


def test_much_data_goes_with_a_part(engine):
    large = np.zeros(3_000_000)
    assert engine.map(np.sum, [large, large]) == [0.0, 0.0]


def test_a_fault_in_a_part_is_raised_as_it_is_and_the_engine_goes_on(engine):
    with pytest.raises(ZeroDivisionError):
        engine.map(parts.inverse, [1, 0, 2])
    with pytest.raises(InputError) as fault:
        engine.map(parts.refused, ["some-code", "other-code"])
    assert type(fault.value) is InputError
    assert (fault.value.code, fault.value.option) == ("some-code", "an option")
    assert engine.map(parts.square, range(3)) == [0, 1, 4]


def test_what_a_worker_had_that_was_killed_is_done_again(mortal, tmp_path):
    marks = [tmp_path / str(x) for x in range(8)]
    marks[2].touch()
    items = [(str(mark), x) for x, mark in enumerate(marks)]
    assert mortal.map(parts.killed_once, items) == [x**2 for x in range(8)]
    assert not marks[2].exists()


def test_a_part_that_no_worker_survives_is_a_fault_with_a_name(mortal):
    with refused("worker-lost", kind=EngineError):
        mortal.map(parts.killed, range(2))


def test_what_nobody_waits_for_any_more_is_stopped(cluster, engine):
    def items():
        yield from ("first", "second", None)

    with Client(cluster, set_as_default=False) as client:
        results = engine.each(parts.forever_after_the_first, items())
        next(results)
        assert Event("second begun", client).wait(60)
        results.close()
        assert Event("second stopped", client).wait(60)
    assert engine.map(parts.square, range(3)) == [0, 1, 4]


def test_a_client_that_is_killed_takes_its_work_with_it(cluster, engine):
    program = (
        "import sys\n"
        "from agg_core.base.engine import use_engine\n"
        "from tests.agg_core.base import parts\n"
        "with use_engine(sys.argv[1]) as engine:\n"
        "    engine.map(parts.forever, ['third', 'fourth', 'fifth'])\n"
    )
    with Client(cluster, set_as_default=False) as client:
        other = subprocess.Popen([sys.executable, "-c", program, spec_of(cluster)], cwd=ROOT)
        for name in ("third", "fourth"):
            assert Event(f"{name} begun", client).wait(60)
        other.send_signal(signal.SIGKILL)
        other.wait()
        for name in ("third", "fourth"):
            assert Event(f"{name} stopped", client).wait(60)
        assert not Event("fifth begun", client).is_set()
    assert engine.map(parts.square, range(3)) == [0, 1, 4]


def test_a_cluster_of_our_own_ends_with_its_context(monkeypatch):
    monkeypatch.setattr(of_dask, "CPU_COUNT", 2)
    with use_engine("dask") as engine:
        assert engine.n_workers == 2
        assert engine.map(parts.square, range(3)) == [0, 1, 4]
    assert engine.client.status == "closed"


def test_a_scheduler_that_is_lost_meanwhile_is_a_fault_with_a_name():
    made = LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=OWN, silence_logs=logging.CRITICAL
    )
    with refused("cluster-lost", kind=EngineError), made, use_engine(spec_of(made)) as engine:
        results = engine.each(parts.forever_after_the_first, ["first", "sixth", "seventh"])
        next(results)
        end = threading.Thread(target=made.close)
        end.start()
        try:
            next(results)
        finally:
            end.join()


def test_workers_of_another_version_are_refused(cluster, engine, monkeypatch):
    known = code_here()
    monkeypatch.setattr(of_dask, "code_here", lambda: "9.9 (of tomorrow)")
    wrong = "worker-version-differs"
    with refused(wrong, known, "9.9", kind=EngineError), use_engine(spec_of(cluster)):
        pass
    # So they are if they come later.
    with refused(wrong, known, "9.9", kind=EngineError):
        engine.map(parts.square, range(2))


def test_a_scheduler_that_there_is_not_is_refused():
    there = "127.0.0.1:1"
    with refused("cluster-unreachable", there, kind=EngineError), dask_engine(there, wait_s=0.2):
        pass


def test_a_cluster_without_workers_is_refused():
    with LocalCluster(n_workers=0, dashboard_address=OWN, protocol="tcp") as empty:
        address = empty.scheduler_address.replace("tcp://", "")
        with refused("no-workers", kind=EngineError), dask_engine(address, wait_s=0.2):
            pass
