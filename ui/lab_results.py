"""Which result the Lab shows: one that this session learned, or one that was learned before.

Finished results are kept by the server, so that an address or a reload opens them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.lab.experiments import EXPERIMENTS, LabSettings
from agg_core.lab.teaching import TeachingSettings
from agg_core.store.jobs import AT_WORK, EXPERIMENT, TEACHING, Kind
from agg_core.store.lab_results import KeptResult, LabStore
from agg_core.store.shipped_lab import TEACHING as SHIPPED
from agg_core.store.shipped_lab import TEACHING_SETTINGS
from ui import cached
from ui.at_work import PARAMETER, open_job
from ui.shell import plain, tell_fault
from ui.state import Run, Runs, state
from ui.views import take_finished
from ui.workspace import job, jobs

__all__ = [
    "PART",
    "about_kept",
    "follow_address",
    "show_kept",
    "take_result",
    "tell_address",
    "was_learned_before",
]

Settings = TypeVar("Settings", LabSettings, TeachingSettings)

PART = "view.lab.part"
"""Key of the control of the parts of the Lab."""

FOLLOWED = "lab.followed"

PART_OF = {EXPERIMENT.name: "experiments", TEACHING.name: "teaching"}
"""The part of the Lab that shows the results of a kind of job."""


@dataclass(frozen=True)
class _Note:
    """What could not be followed of an address; told until something else is shown."""

    sentence: str
    shown: tuple[str | None, ...]


def follow_address(parts: Sequence[str]) -> None:
    """Show the part and the result that the session's address names, once."""
    if FOLLOWED not in st.session_state:
        st.session_state.setdefault(PART, parts[0])
        sentence = _follow(st.query_params.to_dict(), parts)
        # Last, since a page may be interrupted and run anew at any of its elements.
        st.session_state[FOLLOWED] = _Note(sentence, _shown()) if sentence else None
    note: _Note | None = st.session_state[FOLLOWED]
    if note is not None and note.shown == _shown():
        tell_fault(note.sentence)


def _follow(params: Mapping[str, str], parts: Sequence[str]) -> str:
    """Follow parameters of an address; returns what could not be followed, in a sentence."""
    part, key, begun = params.get("part"), params.get("result"), params.get(PARAMETER)
    if part in parts:
        st.session_state[PART] = part
    if begun is not None:
        try:
            _follow_job(begun)
        except InputError as fault:
            if key is None:
                return str(fault)
    if key is not None:
        try:
            about = cached.lab_store().about(key)
            _open(about)
        except InputError as fault:
            return str(fault)
        if part is None:
            st.session_state[PART] = PART_OF[about.kind]
    if part is not None and part not in parts:
        return "The address asks for a part that the Lab does not have; choose one of these."
    return ""


def _follow_job(job_id: str) -> None:
    """Show a job of the Lab, with its settings.

    Raises
    ------
    InputError
        If there is none of that id.
    """
    open_job(job_id, (EXPERIMENT, TEACHING))
    found = jobs().job(job_id)
    st.session_state[PART] = PART_OF[found.kind.name]
    _set_up(found.settings)


def _open(about: KeptResult) -> None:
    """Show a result that is kept, with its settings."""
    now, settings = state(), about.settings
    if isinstance(settings, LabSettings):
        now.experiments.finished = _kept(about.key, about.title, settings)
    else:
        now.views.finished = _kept(about.key, about.title, settings)
    _set_up(settings)


def _set_up(settings: LabSettings | TeachingSettings) -> None:
    """Let the controls show settings."""
    now = state()
    if isinstance(settings, LabSettings):
        experiment = EXPERIMENTS[settings.experiment]
        presets = {experiment.quick: "quick", experiment.full: "full"}
        st.session_state["view.lab.experiment"] = settings.experiment
        st.session_state["view.lab.preset"] = presets.get(settings, "own")
        if settings not in presets:
            now.own[settings.experiment] = settings
    else:
        now.teaching = settings


def _kept(key: str, title: str, settings: Settings) -> Run[Settings]:
    """What the Lab shows of a result that is kept, which is looked at now.

    Raises
    ------
    InputError
        If it is not kept any more, or damaged.
    """
    cached.lab_result(key)
    cached.lab_store().touch(key)
    return Run(key, title, settings, saved=key)


def _shown() -> tuple[str | None, ...]:
    now = state()
    finished = (now.experiments.finished, now.views.finished)
    return (st.session_state.get(PART), *(run.key if run else None for run in finished))


def tell_address(
    part: str, shown: Run[Any] | None, scene: int | None, begun: Run[Any] | None
) -> None:
    """Let the address name what is shown: a part, its result, a scene of the story (from 0).

    Of the job that was begun it is the id until it is done: then the result is.
    """
    params = {"part": part}
    if scene is not None:
        params["scene"] = str(scene + 1)
    if shown is not None and shown.saved is not None:
        params["result"] = shown.saved
    found = None if begun is None else job(begun.key)
    if found is not None and found.state in (*AT_WORK, "interrupted"):
        params[PARAMETER] = found.id
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def take_result(runs: Runs[Settings], kind: Kind[Settings, Any, Any]) -> None:
    """Show the last job if it ended well, and keep what it found."""
    if not take_finished(runs) or runs.finished is None:
        return
    run = runs.finished
    key = run.saved
    try:
        if key is None:  # the disk refused when the job was done
            found = jobs().job(run.key)
            key = cached.lab_store().keep(kind, run.settings, run.title, found.result_folder)
    except InputError as fault:
        st.warning(plain(str(fault)), icon=":material/save:")
        return
    cached.lab_result.clear(key)  # there may have been an earlier one
    runs.finished = replace(run, saved=key)


def show_kept(
    runs: Runs[Settings], kind: Kind[Settings, Any, Any], settings: Settings, title: str
) -> bool:
    """Show what was learned with these settings before; False if nothing was, or it is damaged."""
    if settings == TEACHING_SETTINGS:
        runs.finished = Run(SHIPPED, title, settings)
        return True
    try:
        runs.finished = _kept(LabStore.key_of(kind, settings), title, settings)
    except InputError:
        return False
    return True


def was_learned_before(run: Run[Any]) -> bool:
    """Whether what is shown came with the app or was kept, and not learned by this session."""
    return run.key in (SHIPPED, run.saved)


def about_kept(run: Run[Any]) -> None:
    """Say of a result that this session did not learn where it is from."""
    if run.key == SHIPPED:
        st.caption("These flows come with the app, learned with the settings shown at first.")
    elif was_learned_before(run):
        with suppress(InputError):
            made = cached.lab_store().about(run.key).made
            st.caption(
                f"Learned on {made:%d %B %Y, %H:%M} UTC with these settings and this seed, and "
                "kept by the server."
            )
