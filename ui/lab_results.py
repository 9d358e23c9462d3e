"""Which result the Lab shows: one that this session learned, or one that was learned before.

Finished results are kept by the server, so that an address or a reload opens them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.lab.experiments import LabSettings
from agg_core.lab.teaching import TeachingSettings
from agg_core.store.jobs import Kind
from agg_core.store.lab_results import LabStore
from ui import cached
from ui.shell import plain, tell_fault
from ui.state import Run, Runs, state
from ui.views import take_finished
from ui.workspace import workspace

__all__ = ["PART", "about_kept", "follow_address", "show_kept", "take_result", "tell_address"]

Settings = TypeVar("Settings", LabSettings, TeachingSettings)

PART = "view.lab.part"
"""Key of the control of the parts of the Lab."""

FOLLOWED = "lab.followed"


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
    part, key = params.get("part"), params.get("result")
    if part in parts:
        st.session_state[PART] = part
    elif part is not None:
        return "The address asks for a part that the Lab does not have; choose one of these."
    if key is None:
        return ""
    try:
        about = cached.lab_store().about(key)
        cached.lab_result(key)  # it may be damaged
    except InputError as fault:
        return str(fault)
    now, settings = state(), about.settings
    if isinstance(settings, LabSettings):
        now.experiments.finished = Run(key, about.title, settings, saved=key)
        now.own[settings.experiment] = settings
        st.session_state["view.lab.experiment"] = settings.experiment
        st.session_state["view.lab.preset"] = "own"
    else:
        now.views.finished = Run(key, about.title, settings, saved=key)
        now.teaching = settings
    return ""


def _shown() -> tuple[str | None, ...]:
    now = state()
    finished = (now.experiments.finished, now.views.finished)
    return (st.session_state.get(PART), *(run.key if run else None for run in finished))


def tell_address(part: str, shown: Run[Any] | None) -> None:
    """Let the address name what is shown."""
    params = {"part": part}
    if shown is not None and shown.saved is not None:
        params["result"] = shown.saved
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def take_result(runs: Runs[Settings], kind: Kind[Settings, Any, Any]) -> None:
    """Show the last job if it ended well, and keep what it found."""
    if not take_finished(runs) or runs.finished is None:
        return
    run = runs.finished
    try:
        key = cached.lab_store().keep(
            kind, run.settings, run.title, workspace().jobs[run.key].result_folder
        )
    except InputError as fault:
        st.warning(plain(str(fault)), icon=":material/save:")
        return
    runs.finished = Run(run.key, run.title, run.settings, saved=key)


def show_kept(
    runs: Runs[Settings], kind: Kind[Settings, Any, Any], settings: Settings, title: str
) -> bool:
    """Show what was learned with these settings before; False if nothing was, or it is damaged."""
    key = LabStore.key_of(kind, settings)
    try:
        cached.lab_result(key)
    except InputError:
        return False
    runs.finished = Run(key, title, settings, saved=key)
    return True


def about_kept(run: Run[Any]) -> None:
    """Say of a result that this session did not learn when it was learned."""
    if run.saved is None or run.saved != run.key:
        return
    try:
        made = cached.lab_store().about(run.key).made
    except InputError:
        return
    st.caption(
        f"Learned on {datetime.fromtimestamp(made, UTC):%d %B %Y, %H:%M} UTC with these settings "
        "and this seed, and kept by the server."
    )
