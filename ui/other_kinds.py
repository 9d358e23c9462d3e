"""A file on the page Data that goes with other data: what it is, and what to do with it next."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from ui import cached
from ui.brought import brought
from ui.gates_learn import keep_matrix
from ui.loading import join_places, read_as
from ui.shell import plain, tell_fault
from ui.state import state
from ui.workspace import workspace

__all__ = ["goes_with_others"]


def goes_with_others() -> None:
    """Say what the last file is, if it is none to learn from, and offer what can be done."""
    what = state().other
    if what == "movements":
        _movements()
    elif what == "places":
        _places()


def _title() -> str:
    return printable(next(iter(workspace().uploads), ""))


def _movements() -> None:
    now = state()
    st.info(
        plain(f"{_title()} is a table of trips between places, already counted.")
        + " Nothing is left to learn from it, but learned flows can be held against it.",
        icon=":material/table_chart:",
    )
    with st.container(horizontal=True, gap="small"):
        if st.button(
            "Hold flows against it", type="primary", icon=":material/balance:",
            key="other.reference",
        ):  # fmt: skip
            own = brought()
            own.tables["reference"] = _content()
            own.stamp += 1
            st.session_state["evidence.reference"] = "file"
            st.session_state["evidence.part"] = "Checks"
            st.switch_page("pages/7_Evidence.py")
        opened = now.dataset
        if opened is not None and opened.kind == "gates" and st.button(
            plain(f"Take it as the old matrix of {printable(opened.title)}"),
            key="other.matrix", icon=":material/history:",
        ):  # fmt: skip
            try:
                keep_matrix(cached.gates(opened.key), *_content())
            except InputError as fault:
                tell_fault(str(fault))
            else:
                st.switch_page("pages/3_Learn.py")
        st.button(
            "They are single trips: count them", key="other.trips", type="tertiary",
            icon=":material/swap_horiz:", on_click=read_as, args=("trips",),
        )  # fmt: skip


def _content() -> tuple[str, bytes]:
    name, content = next(iter(workspace().uploads.items()))
    return name, content.read_bytes() if isinstance(content, Path) else content


def _places() -> None:
    before = next(iter(workspace().before), None)
    st.info(
        plain(f"{_title()} says where places lie.")
        + " It goes with a table that names these places: entries and exits of stations, counts of "
        "cells, records of towers, trips between stations. "
        + ("" if before is not None else "Open both together, under Several files."),
        icon=":material/place:",
    )
    if before is not None:
        st.button(
            plain(f"Join it to {printable(before)}"), type="primary", key="other.join",
            icon=":material/join:", on_click=join_places,
        )  # fmt: skip
