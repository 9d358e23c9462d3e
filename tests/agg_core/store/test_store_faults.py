"""A store after anything: writers killed at any moment, a disk that refuses at any step."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from agg_core.base.errors import InputError
from agg_core.store import catalogue
from agg_core.store.codec import save_result
from agg_core.store.runs import Quota, RunStore
from agg_core.store.saved_runs import SavedRun
from tests.agg_core import counted, tiny

ROOT = Path(__file__).resolve().parents[3]
MANY = Quota(100_000, 100_000)
ROUNDS, WRITERS = 20, 3


@cache
def result():
    return tiny.run(tiny.people(), tiny.settings(iterations=1))[1]


def beside_catalogue(folder):
    return {name for name in os.listdir(folder) if not name.startswith("catalogue.sqlite")}


# ---------------------------------------------------------------- killed

# It imports what writers need and does nothing of it itself, so that they can be forked.
KILLS = """
import os, random, signal, sys, time
from pathlib import Path
import pyarrow.parquet
from agg_core.store.codec import load_result
from agg_core.store.runs import Quota, RunStore

folder, job, log, rounds, writers = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
rng = random.Random(0)


def write(number):
    store, held = RunStore(folder, Quota(10**6, 10**6)), load_result(job)
    os.write(told, b"begun\\n")
    while True:
        saved = store.save(held, f"of {number}", f"owner {number}")
        os.write(told, f"saved {saved.id}\\n".encode())
        if int(saved.id, 16) % 3 == 0:
            os.write(told, f"deletes {saved.id}\\n".encode())
            store.delete(saved.id)
            os.write(told, f"deleted {saved.id}\\n".encode())
        elif int(saved.id, 16) % 3 == 1:
            store.rename(saved.id, "renamed")
            os.write(told, f"renamed {saved.id}\\n".encode())


for _ in range(int(rounds)):
    begun = Path(log).read_text().count("begun")
    pids = []
    for number in range(int(writers)):
        pid = os.fork()
        if pid == 0:
            try:
                write(number)
            finally:
                os._exit(1)
        pids.append(pid)
    while Path(log).read_text().count("begun") < begun + int(writers):
        time.sleep(0.01)
    for pid in rng.sample(pids, len(pids)):
        time.sleep(rng.uniform(0, 0.2))
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
"""


def test_writers_killed_at_any_moment_lose_nothing_that_was_acknowledged(tmp_path):
    save_result(result(), tmp_path / "job")
    log = tmp_path / "log"
    words = [tmp_path / "runs", tmp_path / "job", log, ROUNDS, WRITERS]
    command = [sys.executable, "-c", KILLS, *map(str, words)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    said = {}
    for line in log.read_text().splitlines():
        what, _, run_id = line.partition(" ")
        said.setdefault(what, set()).add(run_id)
    assert len(said["saved"]) > ROUNDS
    store = RunStore(tmp_path / "runs", MANY)
    listed = {run.id: run for run in store.list()}
    assert all(isinstance(run, SavedRun) for run in listed.values())
    assert said["saved"] - said.get("deletes", set()) <= set(listed)
    assert not said.get("deleted", set()) & set(listed)
    assert {listed[run_id].title for run_id in said.get("renamed", ())} <= {"renamed"}
    assert beside_catalogue(store.folder) == set(listed), "nothing is left over"
    summary = result().summary()
    for run_id, run in listed.items():
        assert store.load(run_id).summary() == summary
        assert run.owner.startswith("owner ")


# ---------------------------------------------------------------- a disk that refuses


class Disk:
    """Refuses the n-th step, or all from it on; a step is a write, a sync, a name, a statement."""

    def __init__(self, monkeypatch, nth=0, lasting=False, after_commit=False):
        self.n_steps, self.nth, self.lasting, self.refused = 0, nth, lasting, []
        self.after_commit = after_commit
        self._watch(monkeypatch)

    def step(self, what, of_catalogue=False):
        self.n_steps += 1
        if self.n_steps == self.nth or (self.lasting and self.n_steps > self.nth > 0):
            self.refused.append(what)
            if of_catalogue:
                raise sqlite3.OperationalError("database or disk is full")
            number = errno.ENOSPC if self.nth % 2 else errno.EIO
            raise OSError(number, os.strerror(number))

    def _watch(self, monkeypatch):
        disk, real = self, {"fsync": os.fsync, "replace": os.replace, "mkdir": os.mkdir}
        opened = Path.open

        def stepping(name):
            def call(*args, **others):
                disk.step(name)
                return real[name](*args, **others)

            return call

        for name in real:
            monkeypatch.setattr(os, name, stepping(name))

        class Written:
            """A file of which each write is a step."""

            def __init__(self, file):
                self._file = file

            def write(self, content):
                disk.step("write")
                return self._file.write(content)

            def __getattr__(self, name):
                return getattr(self._file, name)

            def __enter__(self):
                return self

            def __exit__(self, *fault):
                self._file.close()

        def open_path(path, mode="r", *args, **others):
            if "w" not in mode:
                return opened(path, mode, *args, **others)
            disk.step("open")
            return Written(opened(path, mode, *args, **others))

        monkeypatch.setattr(Path, "open", open_path)

        class Connection(sqlite3.Connection):
            def execute(self, statement, *values):
                disk.step(statement, of_catalogue=True)
                done = super().execute(statement, *values)
                if disk.after_commit and statement == "COMMIT":
                    disk.refused.append(statement)
                    raise sqlite3.OperationalError("disk I/O error")
                return done

        connect = sqlite3.connect
        monkeypatch.setattr(
            catalogue.sqlite3,
            "connect",
            lambda *args, **others: connect(*args, factory=Connection, **others),
        )


ACTS = {
    "save": lambda store, old: store.save(counted.study(), "new", "ada"),
    "rename": lambda store, old: store.rename(old.id, "new"),
    "share": lambda store, old: store.share(old.id, True),
    "delete": lambda store, old: store.delete(old.id),
}


def state_of(store):
    """What is told of all runs but the moments at which they were saved, and that they open."""
    told = []
    for run in store.list():
        assert isinstance(run, SavedRun), run
        store.load(run.id)
        told.append((run.title, run.owner, run.shared, run.kind))
    return sorted(told)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("act", ACTS)
def test_a_disk_that_refuses_any_step_leaves_the_old_or_the_new(
    act, lasting, tmp_path, monkeypatch
):
    old_state = [("old", "ada", False, "study"), ("other", "ada", False, "study")]
    seen = set()
    first = RunStore(tmp_path / "first", MANY)
    old = first.save(result(), "old", "ada")
    first.save(result(), "other", "ada")
    for nth in count(1):
        folder = tmp_path / str(nth)
        shutil.copytree(first.folder, folder)
        store = RunStore(folder, MANY)
        with monkeypatch.context() as patched:
            disk = Disk(patched, nth, lasting)
            fault = None
            try:
                ACTS[act](store, old)
            except InputError as told:
                fault = told
        if not disk.refused:
            break
        seen |= set(disk.refused)
        again = RunStore(folder, MANY)
        state = state_of(again)
        ids = {run.id for run in again.list()}
        assert beside_catalogue(folder) == ids, "nothing is left over"
        new_state = state_of_new(act)
        if fault is None:
            assert state == new_state, disk.refused
        else:
            assert fault.code == "run-not-written", disk.refused
            assert state in (old_state, new_state), disk.refused
            if not lasting:
                assert state == old_state, disk.refused
    assert fault is None
    assert {"COMMIT", "BEGIN IMMEDIATE", "fsync"} <= seen
    if act == "save":
        assert {"open", "write", "mkdir", "replace"} <= seen


def state_of_new(act):
    old, other = ("old", "ada", False, "study"), ("other", "ada", False, "study")
    after = {
        "save": [old, other, ("new", "ada", False, "counts")],
        "rename": [("new", "ada", False, "study"), other],
        "share": [("old", "ada", True, "study"), other],
        "delete": [other],
    }
    return sorted(after[act])


@pytest.mark.parametrize("act", ACTS)
def test_a_fault_after_the_end_of_the_transaction_is_none_of_the_act(act, tmp_path, monkeypatch):
    """Whatever goes wrong once it counts is not told as if it did not."""
    store = RunStore(tmp_path / "runs", MANY)
    old = store.save(result(), "old", "ada")
    store.save(result(), "other", "ada")
    with monkeypatch.context() as patched:
        disk = Disk(patched, after_commit=True)
        ACTS[act](store, old)
    assert disk.refused == ["COMMIT"]
    assert state_of(store) == state_of_new(act)
