"""What a person looks at: kept from page to page, apart from the settings of the study."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.store.jobs import COUNTS, GATES, STUDY
from agg_core.study.result import FlowResult
from ui.flow_map import told
from ui.flow_view import FlowView
from ui.saved import save_finished
from ui.shell import plain
from ui.state import Runs, state
from ui.workspace import job, workspace

__all__ = [
    "DAYS",
    "MAP",
    "asked",
    "held_view",
    "hold",
    "look_afresh",
    "take_finished",
    "take_finished_run",
    "told_view",
]

DAYS = "flows.days"
"""Key of the control of days, the one choice of a view that the map does not make by itself."""

HELD, ASKED = "flows.view", "flows.asked"
MAP = "flows.map"
"""Key of the map, which tells the view that a person has chosen on it."""


def held_view(result: FlowResult) -> FlowView:
    """The view of the session, fitted to the run: what was chosen before, or the first one."""
    texts = dict(st.session_state.get(HELD, {}))
    if DAYS in st.session_state:
        texts["day"] = ",".join(st.session_state[DAYS])
    return FlowView.from_params(texts, result)[0]


def told_view(result: FlowResult) -> FlowView:
    """The same after what was chosen on the map, which answers the view that it was given."""
    view, chosen = held_view(result), told(MAP)
    if chosen.get("asked") == asked():
        view = view.after(chosen, result)
        _keep(view)
    return view


def asked() -> str:
    """Which view the map was asked for; what it tells of an earlier one no longer counts."""
    return str(st.session_state.get(ASKED, 0))


def hold(view: FlowView) -> None:
    """Show a view: the map takes it, whatever it shows; only before the controls are drawn."""
    _keep(view)
    st.session_state[DAYS] = list(view.days)
    _ask_again()


def _keep(view: FlowView) -> None:
    st.session_state[HELD] = view.to_texts()


def _ask_again() -> None:
    st.session_state[ASKED] = st.session_state.get(ASKED, 0) + 1


def take_finished(runs: Runs[Any]) -> bool:
    """Show the last run if it ended well, whether or not anybody watched its end.

    Returns whether it is newly shown; one that failed or was cancelled leaves what was shown.
    """
    run = runs.run
    if run is None or runs.taken == run.key:
        return False
    ended = job(run.key)
    if ended is None or ended.state != "done":
        return False
    runs.finished, runs.taken = replace(run, saved=ended.saved), run.key
    workspace().keep_only(run.key)
    return True


def take_finished_run() -> None:
    """Show the flows of the last run that ended well, of people, counts or gates.

    They are looked at afresh: at the first moment, with a threshold of their own. The job has saved
    them already, unless the disk refused: then they are saved here.
    """
    now = state()
    _note_saved()
    for kind, runs in now.learned.items():
        if not take_finished(runs):
            continue
        now.show(kind)
        _note_saved()
        try:
            save_finished(now)
        except InputError as fault:
            st.warning(plain(str(fault)), icon=":material/save:")
        look_afresh()


def _note_saved() -> None:
    """What jobs of this session saved is this session's, shown or not."""
    now = state()
    for kind in (STUDY, COUNTS, GATES):
        for each in workspace().jobs_of(kind):
            if each.saved is not None and each.saved not in now.made:
                now.made.append(each.saved)


OF_ONE_RUN = ("at", "until", "step", "above", "differing", "cell", "look", "day")


def look_afresh() -> None:
    """Forget what was chosen for the flows of another run, not how a person likes to look."""
    held = st.session_state.get(HELD, {})
    st.session_state[HELD] = {name: held[name] for name in held if name not in OF_ONE_RUN}
    st.session_state.pop(DAYS, None)
    _ask_again()
