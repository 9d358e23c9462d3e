"""The flow map as an element of a page: it plays in the browser, and tells what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from agg_core.plotting.flow_map import PackedFlows, script

__all__ = ["flow_map", "told"]


def told(key: str) -> dict[str, Any]:
    """The view that a person chose last on the map of a key, as its ``View``; empty before."""
    found = st.session_state.get(_TOLD + key)
    return dict(found) if isinstance(found, Mapping) else {}


def flow_map(
    packed: PackedFlows, view: Mapping[str, Any], *, key: str, height: str | None = None
) -> None:
    """Draw flows, at first with a ``view``; ``height`` is a length of style sheets.

    Without a height the map fills what the window has left below its upper edge. `told` has what a
    person then chooses.
    """

    def keep() -> None:
        st.session_state[_TOLD + key] = st.session_state[key].get("view")

    size = "--height: calc(100vh - 190px); --fill: 1;" if height is None else f"--height: {height};"
    component = st.components.v2.component(
        "flow_map", js=script(), html="<div></div>", css=f":host {{ {size} }}"
    )
    component(key=key, data=packed.showing(view), on_view_change=keep)


_TOLD = "told."
