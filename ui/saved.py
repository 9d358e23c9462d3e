"""Runs that outlive the session: saved when they finish, opened by their id, and who sees which."""

from __future__ import annotations

from dataclasses import replace

from agg_core.base.errors import InputError
from agg_core.store.saved_runs import DamagedRun, NewerRun, SavedRun
from agg_core.store.shipped_runs import SHIPPED_RUNS
from ui import cached
from ui.cached import store
from ui.owner import own_machine, owner
from ui.state import AppState, Run, state
from ui.workspace import jobs

__all__ = [
    "delete",
    "let_see",
    "listed",
    "may_change",
    "oldest_of_own",
    "open_saved",
    "rename",
    "save_finished",
    "share",
]

AnyRun = SavedRun | DamagedRun | NewerRun


def save_finished(now: AppState) -> str:
    """Save the run shown, once; returns its id in the store.

    Raises
    ------
    InputError
        If none is shown, or it cannot be saved.
    """
    runs = now.shown
    run = runs.finished
    if run is None:
        raise InputError(
            "There is no run to save yet; learn the flows first.", code="nothing-to-save"
        )
    if run.saved is not None:
        return run.saved
    saved = store().save(cached.result(run.key), run.title, _saver())
    runs.finished = replace(run, saved=saved.id)
    now.made.append(saved.id)
    return saved.id


def open_saved(run_id: str) -> bool:
    """Show a saved or shipped run in this session; returns whether another was shown before.

    Raises
    ------
    InputError
        If there is no such run that this session may open, or it is damaged; what was shown stays.
    """
    now = state()
    shown = now.shown.finished
    if shown is not None and run_id in (shown.key, shown.saved):
        return False
    is_shipped = run_id in SHIPPED_RUNS
    if not is_shipped:
        _check_may_open(run_id)
    found = cached.result(run_id)
    if is_shipped:
        kind, title = found.kind, SHIPPED_RUNS[run_id].title
    else:  # what others may see of a run has a kind of its own
        about = store().about(run_id)
        kind, title = about.kind, about.title
    now.show(kind)
    now.learned[kind].finished = Run(run_id, title, found.settings, saved=run_id)
    _note_opened(run_id)
    return True


def let_see(run_id: str) -> None:
    """List a run whose id came by an address, as one that this session opened.

    Raises
    ------
    InputError
        If there is no such run that this session may open, or it is damaged.
    """
    if run_id not in SHIPPED_RUNS:
        _check_may_open(run_id)
        store().about(run_id)
        _note_opened(run_id)


def _note_opened(run_id: str) -> None:
    now = state()
    if run_id not in SHIPPED_RUNS and run_id not in (*now.made, *now.opened):
        now.opened.append(run_id)


def _saver() -> str | None:
    """Owner of what this session saves; on a machine of one's own all runs are everybody's."""
    return None if own_machine() else owner()


def listed() -> tuple[AnyRun, ...]:
    """The runs that this session sees, newest first: its owner's, and others that it opened.

    Raises
    ------
    InputError
        If the disk refuses.
    """
    runs, now = store().list(), state()
    if own_machine():
        return runs
    ours, opened = owner(), [run_id for run_id in now.opened if _may_open(run_id)]
    return tuple(run for run in runs if run.owner == ours or run.id in (*now.made, *opened))


def _check_may_open(run_id: str) -> None:
    if not own_machine():
        store().check_open(run_id, owner())


def _may_open(run_id: str) -> bool:
    try:
        _check_may_open(run_id)
    except InputError:
        return False
    return True


def may_change(run_id: str) -> bool:
    """Whether this session may rename, share and delete a run: who was sent its address may not.

    Shipped runs stay as they are.
    """
    return run_id not in SHIPPED_RUNS and cached.is_own(run_id)


def oldest_of_own() -> SavedRun | DamagedRun | None:
    """The run that one would delete first to save another; None if there is none of one's own."""
    own = [run for run in store().list_of(_saver()) if not isinstance(run, NewerRun)]
    return own[-1] if own else None


def share(run_id: str, shared: bool, least_people: int | None = None) -> None:
    """Let others open a run who have its address, or no longer.

    Flows of fewer than ``least_people`` are withheld from them; as it was, if left out.

    Raises
    ------
    InputError
        If the run is another's, is gone or damaged.
    """
    _check_owner(run_id)
    store().share(run_id, shared, least_people)


def rename(run_id: str, title: str) -> None:
    """Give a run another title.

    Raises
    ------
    InputError
        If the run is another's, is gone or damaged, or the title is empty.
    """
    _check_owner(run_id)
    renamed = store().rename(run_id, title)
    for runs in state().learned.values():
        if runs.finished is not None and runs.finished.saved == run_id:
            runs.finished = replace(runs.finished, title=renamed.title)


def delete(run_id: str) -> None:
    """Delete a run; flows that this session learned itself stay on its screen.

    Raises
    ------
    InputError
        If the run is another's, or is gone.
    """
    _check_owner(run_id)
    store().delete(run_id)
    finished = (runs.finished for runs in state().learned.values())
    jobs().remove_of_run(run_id, keep=[run.key for run in finished if run is not None])
    for runs in state().learned.values():
        if runs.finished is not None and runs.finished.saved == run_id:
            opened = runs.finished.key == run_id
            runs.finished = None if opened else replace(runs.finished, saved=None)


def _check_owner(run_id: str) -> None:
    if not may_change(run_id):
        raise InputError(
            "Only the owner of a run can rename, share or delete it.", code="not-the-owner"
        )
