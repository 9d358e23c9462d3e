"""The finished runs that come with the app: opening one, and what stands above its flows."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from agg_core.store.shipped_runs import SHIPPED_RUNS
from agg_core.study.counts import CountStudy
from agg_core.study.people import StudyResult
from ui import cached
from ui.loading import open_count_sample, open_sample
from ui.saved import open_saved
from ui.shell import plain
from ui.state import Run, state
from ui.views import look_afresh

__all__ = ["about_shipped", "open_shipped"]


def open_shipped(key: str) -> None:
    """Go to the flows of a shipped run; data, settings and saved runs of the session stay.

    Raises
    ------
    InputError
        If its files are missing or damaged.
    """
    if open_saved(key):
        look_afresh()
    st.switch_page("pages/4_Flows.py")


def about_shipped(run: Run[Any]) -> None:
    """Of a shipped run say what it is, with ways to other settings and to other data."""
    if run.key not in SHIPPED_RUNS:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(_words(run)), width="content")
        again = st.button(
            "Learn it again with other settings", icon=":material/tune:", type="tertiary",
            key="shipped.again", on_click=_open_its_data, args=(run,),
        )  # fmt: skip
        own = st.button(
            "My own data", icon=":material/upload_file:", type="tertiary", key="shipped.own"
        )
    if again:
        # Where the disk refused, the page Data says so.
        st.switch_page("pages/1_Data.py" if state().fault else "pages/3_Learn.py")
    if own:
        st.switch_page("pages/1_Data.py")


def _words(run: Run[Any]) -> str:
    if SHIPPED_RUNS[run.key].sample is None:
        study = cast("CountStudy", cached.result(run.key))
        return (
            f"This is the sample of counts: {study.n_cells:,} cells, counted for "
            f"{study.n_days:,} days, nobody followed."
        )
    result = cast("StudyResult", cached.result(run.key))
    return (
        f"This is the sample: {result.n_individuals:,} made-up people, learned with "
        f"M = {result.settings.learn.group_size:,}."
    )


def _open_its_data(run: Run[Any]) -> None:
    """Callback: open what a shipped run was learned from, with the settings of the run."""
    sample = SHIPPED_RUNS[run.key].sample
    if sample is None:
        open_count_sample()
        if state().fault is None:
            state().count_learn = run.settings
    else:
        open_sample(sample)
        state().learn = run.settings.learn
