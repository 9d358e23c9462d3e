"""Who does the work of the learner, where the server's owner lets people choose."""

from __future__ import annotations

import os

import streamlit as st

from agg_core.base.engine import ENGINES_ALLOWED, LOCAL, allowed_engines
from agg_core.base.errors import EngineError
from ui.shell import plain, tell_fault
from ui.state import state

__all__ = ["choose_engine", "engine_of_choice"]


def choose_engine() -> None:
    """A choice among the engines that the owner allows; nothing where there is only one."""
    try:
        engines = _allowed()
    except EngineError as fault:
        tell_fault(f"{ENGINES_ALLOWED}: {fault}")
        return
    if len(engines) < 2:
        return
    now = state()
    now.engine = st.selectbox(
        "Who does the work", engines, index=engines.index(engine_of_choice()), key="engine",
        format_func=_named,
        help="The flows are the same with any: a cluster only has them sooner.",
    )  # fmt: skip


def engine_of_choice() -> str:
    """The engine that was chosen, if the owner allows it still."""
    try:
        return state().engine if state().engine in _allowed() else LOCAL
    except EngineError:
        return LOCAL


def _allowed() -> tuple[str, ...]:
    return allowed_engines(os.environ.get(ENGINES_ALLOWED, ""))


def _named(engine: str) -> str:
    return {
        LOCAL: "This server", "dask": "Processes on this server"
    }.get(engine, f"The cluster at {plain(engine.removeprefix('dask://'))}")  # fmt: skip
