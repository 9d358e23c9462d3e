"""What the process of a job does: its work, keeping the result, and starting the job after it.

It is given the lock of the job as its standard input, and holds it until it ends.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from agg_core.base.disk import refused_by_disk
from agg_core.base.engine import use_engine
from agg_core.base.errors import InputError
from agg_core.base.processes import leaving_faults, write_fault, write_json
from agg_core.base.threads import give_way
from agg_core.store.codec import load_result
from agg_core.store.files import sha256
from agg_core.store.job_store import JobStore
from agg_core.store.jobs import COUNTS, GATES, NICENESS, SAVED, STUDY, SWEEP, Job, unexpected
from agg_core.store.lab_results import LabStore
from agg_core.store.runs import RunStore
from agg_core.store.saved_runs import SavedRun

__all__ = ["program", "work"]

SAVING = "saving"
"""A mark that the result is being kept, left until it is known under which id."""


def work(folder: Path) -> None:
    """Do the work of a job folder, in the process that asks; a fault is left in the folder.

    Where the disk refuses, no end is left: the job was interrupted, and can go on once there is
    room.
    """
    job: Job[Any] = Job(folder)
    try:
        with leaving_faults(folder, unexpected()), use_engine(job.about.engine):
            job.kind.run(folder, (lambda made: _keep(job, made)) if job.about.kept else None)
    except OSError as fault:
        traceback.print_exc()
        if not refused_by_disk(fault):
            write_fault(folder, unexpected())
    except Exception:
        traceback.print_exc()
        write_fault(folder, unexpected())


def _keep(job: Job[Any], made: Path) -> None:
    """Let the result go on to where results are kept, once; the job is done, kept or not.

    What the disk refuses is tried again by whoever looks at the job first. A table of a sweep is no
    run: its place is the job's folder.
    """
    if job.saved is not None or job.kind is SWEEP:
        return
    kept = ""
    with suppress(InputError, OSError):
        is_run = job.kind in (STUDY, COUNTS, GATES)
        kept = _keep_run(job, made) if is_run else _keep_of_lab(job, made)
    if kept:
        # Refused, it is no end: who goes on finds what is kept, where who looks would keep it anew.
        write_json(job.folder / SAVED, {"id": kept})


def _keep_run(job: Job[Any], made: Path) -> str:
    store = RunStore(job.folder.parent.with_name("runs"))
    mark = job.folder / SAVING
    # A process before this one may have died between the two: then the run is there already.
    saved = _run_like(store, made) if mark.exists() else None
    mark.touch(0o600)
    about = job.about
    return saved or store.save(load_result(made), about.title or about.kind, about.owner or None).id


def _run_like(store: RunStore, made: Path) -> str | None:
    """The run whose files are those of a result."""
    for run in store.list():
        if isinstance(run, SavedRun) and all(
            (made / name).exists() and sha256(made / name) == file.sha256
            for name, file in run.files.items()
        ):
            return run.id
    return None


def _keep_of_lab(job: Job[Any], made: Path) -> str:
    store = LabStore(job.folder.parent.with_name("lab"))
    return store.keep(job.kind, job.settings, job.about.title, made)


def program() -> None:
    """Hold the lock, do the work unless it was cancelled meanwhile, and start what waits."""
    folder = Path(sys.argv[1])
    lock = _lock_of_ours()
    give_way(NICENESS)
    job: Job[Any] = Job(folder)
    if not job.has_ended:
        work(folder)
    if job.about.kept:
        job.forget_data()
        # Its place is free as soon as the lock is: nobody else may be there to see that.
        os.close(lock)
        store = JobStore(folder.parent)
        store.clean()
        store.start_waiting()


def _lock_of_ours() -> int:
    """The lock, kept from what this process starts: it is to be free once this process ends."""
    lock = os.dup(0)  # such a copy is not handed on
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lock


if __name__ == "__main__":
    program()
