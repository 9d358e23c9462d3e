"""What a person looks at: kept from page to page, apart from the settings of the study."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.study.result import FlowResult
from ui.flow_view import FlowView, first_view
from ui.saved import save_finished
from ui.shell import plain
from ui.state import Runs, state
from ui.workspace import workspace

__all__ = [
    "KEY",
    "held_view",
    "hold",
    "look_afresh",
    "take_finished",
    "take_finished_run",
]


KEY = "flows.view."
"""Controls of the flow maps are keyed by this and the name of a field of `FlowView`."""


def held_view(result: FlowResult) -> FlowView:
    """The view that the session's controls hold, fitted to the run."""
    names = [f.name for f in fields(FlowView)]
    held = {name: st.session_state[KEY + name] for name in names if KEY + name in st.session_state}
    # A control of several things holds a list of them.
    held = {name: tuple(v) if isinstance(v, list) else v for name, v in held.items()}
    view = FlowView(**held) if len(held) == len(names) else replace(first_view(result), **held)
    return view.fitted(result)


def hold(view: FlowView) -> None:
    """Let the controls show a view; only before they are drawn.

    What they show already is left alone: setting it again would undo what a person does to a
    control while the page runs.
    """
    for f in fields(view):
        key, value = KEY + f.name, getattr(view, f.name)
        value = list(value) if isinstance(value, tuple) else value
        if key not in st.session_state or st.session_state[key] != value:
            st.session_state[key] = value


def take_finished(runs: Runs[Any]) -> bool:
    """Show the last run if it ended well, whether or not anybody watched its end.

    Returns whether it is newly shown; one that failed or was cancelled leaves what was shown.
    """
    run = runs.run
    if run is None or runs.taken == run.key:
        return False
    job = workspace().jobs.get(run.key)
    if job is None or job.status().state != "done":
        return False
    runs.finished, runs.taken = run, run.key
    workspace().keep_only(run.key)
    return True


def take_finished_run() -> None:
    """Show the flows of the last run that ended well, of people or of counts, and save them.

    They are looked at afresh: at the first moment, with a threshold of their own.
    """
    now = state()
    for runs in (now.study, now.counts):
        if not take_finished(runs):
            continue
        now.shows_counts = runs is now.counts
        try:
            save_finished(now)
        except InputError as fault:
            st.warning(plain(str(fault)), icon=":material/save:")
        look_afresh()


def look_afresh() -> None:
    """Forget what was chosen for the flows of another run, not how a person likes to look."""
    for name in ("time", "step", "threshold", "difference_threshold", "cell", "close", "days"):
        st.session_state.pop(KEY + name, None)
