"""The address of the page Flows: it brings a run and a view, and keeps what is chosen since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.study.result import FlowResult
from ui import cached
from ui.exports import Picture, exports
from ui.flow_view import FlowView
from ui.saved import open_saved
from ui.shell import tell_fault, theme
from ui.state import Run
from ui.views import hold

__all__ = ["open_address", "params_of", "set_address", "take_away", "tell_note"]

FOLLOWED = "address.followed"

TO_THEME = """<script>
const address = new URL(window.location);
if (address.searchParams.get("embed_options") !== "{theme}_theme") {{
  address.searchParams.set("embed_options", "{theme}_theme");
  window.location.replace(address);
}}
</script>"""
"""Streamlit takes the theme of an address only while the page loads."""


@dataclass(frozen=True)
class _Note:
    """What could not be followed of an address; told until another picture is chosen."""

    sentence: str
    view: FlowView | None


def open_address() -> None:
    """Follow the address that the session came with: its run, its view, its theme."""
    if FOLLOWED in st.session_state:
        return
    params = st.query_params.to_dict()
    wanted = params.get("theme")
    if wanted in ("light", "dark") and st.context.theme.type not in (None, wanted):
        st.html(TO_THEME.format(theme=wanted), unsafe_allow_javascript=True)
        st.stop()  # the page is on its way to be loaded anew; its address must stay as it is
    note = _open(params) if "run" in params else None
    # Last, since a page may be interrupted and run anew at any of its elements.
    st.session_state[FOLLOWED] = note


def _open(params: Mapping[str, str]) -> _Note | None:
    try:
        open_saved(params["run"])
        view, refused = FlowView.from_params(params, cached.result(params["run"]))
        if view.days:
            of_days = cached.result_of(params["run"], view.days)
            view, refused = FlowView.from_params(params, of_days)
    except InputError as fault:
        return _Note(str(fault), None)
    hold(view)
    if not refused:
        return None
    return _Note(
        f"The address asks for something that this run does not have ({', '.join(refused)}): "
        "that part is shown as usual.",
        view,
    )


def tell_note(shown: FlowView | None) -> None:
    """Say what of the address could not be followed, as long as its picture is shown."""
    note: _Note | None = st.session_state.get(FOLLOWED)
    if note is not None and note.view == shown:
        tell_fault(note.sentence)


def params_of(run: Run[Any], view: Mapping[str, str]) -> dict[str, str]:
    """Parameters of the address of a picture, ``view`` being those of its view."""
    saved = {} if run.saved is None else {"run": run.saved}
    return {**saved, **view, "theme": theme().name}


def set_address(params: Mapping[str, str]) -> None:
    """Let the browser show these parameters."""
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def take_away(
    run: Run[Any],
    result: FlowResult,
    time: str,
    params: Mapping[str, str],
    picture: Picture,
) -> None:
    """The address of a picture to copy, and files of what is shown; see `exports`."""
    with st.container(horizontal=True, gap="small"):
        with st.popover("Address of this picture", icon=":material/link:"):
            _address(run, params)
        exports(run.title, result, time, picture)


def _address(run: Run[Any], params: Mapping[str, str]) -> None:
    if run.saved is None:
        st.markdown("This run could not be saved, so no address opens it.")
        return
    st.markdown(
        "Whoever can reach this server and has this address sees the same picture: the run, the "
        "time, the cell and the theme. It holds flows, no trajectories. On a server for several "
        "people the page Runs says, under Manage, who may open the run, and which flows are "
        "withheld from others."
    )
    st.code(f"{st.context.url or ''}?{urlencode(params)}", language=None, wrap_lines=True)
