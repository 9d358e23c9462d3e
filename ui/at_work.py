"""Jobs found again: by the address of the page that shows one, and in a list of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.store.job_store import DamagedJob, unknown_job
from agg_core.store.jobs import (
    AT_WORK,
    COUNTS,
    EXPERIMENT,
    GATES,
    STUDY,
    SWEEP,
    TEACHING,
    Job,
    JobState,
    Kind,
)
from agg_core.study.settings import CountLearnSettings, GateLearnSettings, StudySettings
from ui.owner import is_logged_in, own_machine, owner
from ui.shell import plain, tell_fault
from ui.state import Run, state
from ui.workspace import job as find_job
from ui.workspace import jobs, workspace

__all__ = [
    "OF_LEARNING",
    "PARAMETER",
    "do",
    "follow_address",
    "open_job",
    "others",
    "tell_address",
    "whose",
]

OF_LEARNING = (STUDY, COUNTS, GATES, SWEEP)
"""Kinds of jobs that the page Learn shows."""

PARAMETER = "job"
"""What the id of a job is called in an address."""

FOLLOWED = "learn.followed"

EVERY_S = 5.0
"""How often the list of other work is looked at anew."""

LISTED: tuple[JobState, ...] = (*AT_WORK, "interrupted")
NAMES = {
    STUDY.name: "from people",
    COUNTS.name: "from counts",
    GATES.name: "from entries and exits",
    SWEEP.name: "a comparison of settings",
    EXPERIMENT.name: "an experiment",
    TEACHING.name: "a view of group sizes",
}


def follow_address() -> None:
    """Show the job that the address of the page Learn names, once a session."""
    if FOLLOWED not in st.session_state:
        sentence, asked = "", st.query_params.get(PARAMETER)
        if asked is not None:
            try:
                open_job(asked, OF_LEARNING)
            except InputError as fault:
                sentence = str(fault)
        # Last, since a page may be interrupted and run anew at any of its elements.
        st.session_state[FOLLOWED] = sentence
    now = state()
    begun = (*(runs.run for runs in now.learned.values()), now.sweeps.run)
    if st.session_state[FOLLOWED] and all(run is None for run in begun):
        tell_fault(st.session_state[FOLLOWED])


def open_job(job_id: str, kinds: Sequence[Kind[Any, Any, Any]]) -> None:
    """Show a job of some kinds in this session, with its settings.

    Raises
    ------
    InputError
        If there is none of that id, it is of another kind, or damaged, or belongs to another
        person who has logged in; what was shown stays.
    """
    now, found = state(), jobs().job(job_id)
    if is_logged_in() and found.about.owner != owner():
        raise unknown_job()
    if found.kind not in kinds:
        raise InputError(
            "The work of that address is shown on another page; open it there.", code="other-page"
        )
    about, settings = found.about, found.settings
    run: Run[Any] = Run(job_id, about.title, settings, lasting=about.lasting)
    workspace().follow(job_id)
    if found.kind is STUDY:
        now.study.run = run
        _show_settings(settings)
    elif found.kind is COUNTS:
        now.counts.run = run
        _show_settings(settings)
    elif found.kind is GATES:
        now.gates.run = run
        _show_settings(settings)
    elif found.kind is SWEEP:
        now.sweeps.run = run
        _show_settings(settings.settings)
    elif found.kind is EXPERIMENT:
        now.experiments.run = run
    else:
        now.views.run = run


def _show_settings(settings: StudySettings | CountLearnSettings | GateLearnSettings) -> None:
    """Let the settings of this session, and the controls that show them, be these."""
    now = state()
    if isinstance(settings, CountLearnSettings):
        now.count_learn = settings
        _forget_widgets("counts.")
    elif isinstance(settings, GateLearnSettings):
        now.gate_learn = settings
        _forget_widgets("gate_learn.")
    else:
        now.grid, now.window, now.learn = settings.grid, settings.window, settings.learn
        _forget_widgets("grid.", "window.", "learn.", "observed.", "learner.")


def _forget_widgets(*beginnings: str) -> None:
    """Controls are to show the settings of the job."""
    for key in [key for key in st.session_state if str(key).startswith(beginnings)]:
        del st.session_state[key]


def tell_address(run: Run[Any] | None) -> None:
    """Let the address name the job that is shown: it brings it back to whoever has it.

    Of several that the page Learn shows it is the one that was begun, or found again, last.
    """
    if run is None or run.key != _last_begun(run):
        return
    if find_job(run.key) is not None:
        if st.query_params.get(PARAMETER) != run.key:
            st.query_params[PARAMETER] = run.key
    elif PARAMETER in st.query_params:
        del st.query_params[PARAMETER]


def _last_begun(run: Run[Any]) -> str:
    now = state()
    shown = {of.run.key for of in (*now.learned.values(), now.sweeps) if of.run is not None}
    return next((key for key in reversed(workspace().followed) if key in shown), run.key)


def do(action: Callable[..., None], *given: Any) -> None:
    """What a button asks for, and then the page anew; why it could not be done is one sentence.

    A job may be gone since the page was drawn, and what is drawn anew by itself has no page around
    it that would tell.
    """
    try:
        action(*given)
    except InputError as fault:
        tell_fault(str(fault))
    else:
        st.rerun()


def whose() -> str:
    """The owner of work that this session begins; on a machine of one's own it is nobody's."""
    return "" if own_machine() else owner()


def others(kinds: Sequence[Kind[Any, Any, Any]], *shown: Run[Any] | None) -> None:
    """One's own jobs that run, wait or were interrupted, but those that are shown.

    Those of the given kinds can be shown on the page. On a server of this machine alone all are
    one's own.
    """
    ids = [run.key for run in shown if run is not None]

    @st.fragment(run_every=EVERY_S if _listed(ids) else None)
    def tell() -> None:
        listed = _listed(ids)
        if listed:
            with st.expander("Other work of yours", icon=":material/pending:", expanded=True):
                for each in listed:
                    if isinstance(each, Job):
                        _row(each, kinds)
                    else:
                        st.caption(plain(printable(each.fault)))

    tell()


def _listed(shown: Sequence[str]) -> list[Job[Any] | DamagedJob]:
    found = jobs().all(None if own_machine() else owner())
    return [
        each for each in found
        if isinstance(each, DamagedJob) or (each.state in LISTED and each.id not in shown)
    ]  # fmt: skip


def _row(found: Job[Any], kinds: Sequence[Kind[Any, Any, Any]]) -> None:
    status = found.status()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        title = plain(printable(found.about.title))
        st.markdown(f"**{title}**, {NAMES[found.kind.name]}: {_words(found, status.progress)}")
        if found.kind in kinds and st.button(
            "Show it", key=f"job.{found.id}.show", type="tertiary"
        ):
            do(open_job, found.id, kinds)
        if status.state == "interrupted" and st.button(
            "Go on", key=f"job.{found.id}.resume", type="tertiary"
        ):
            do(jobs().resume, found.id)
        if st.button("Cancel", key=f"job.{found.id}.cancel", type="tertiary"):
            do(jobs().cancel, found.id)


def _words(found: Job[Any], progress: Any) -> str:
    state = found.state
    if state == "queued":
        ahead = jobs().ahead(found.id)
        return f"waits, {ahead:,} before it" if ahead else "waits, the next to begin"
    share = "" if progress is None else f", {min(progress.share, 1):.0%} done"
    return ("was interrupted" if state == "interrupted" else "at work") + share
