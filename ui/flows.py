"""Pieces of the page Flows: days, the map, figures, what to take away, and the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from agg_core.evidence.limited import SharedResult
from agg_core.exports.page import html_page
from agg_core.plotting.flow_map import PackedFlows
from agg_core.plotting.theme import Theme
from agg_core.study.result import ESTIMATE, FlowResult
from ui import cached
from ui.address import params_of, set_address, take_away, tell_note
from ui.counts_data import NO_PLACES
from ui.flow_figures import about, comparison, distrust, numbers, tell_limit, unsettled
from ui.flow_map import flow_map
from ui.flow_view import FlowView
from ui.paper import paper
from ui.shell import entered, theme
from ui.state import Run
from ui.views import DAYS, MAP, asked, held_view, told_view

__all__ = ["show"]

STAYS: Literal["session"] = "session"
"""Controls keep what was chosen while they are not shown."""

SENT = "flows.sent"
"""The view that the map was given when the page was opened; from then on it has its own."""


def show(run: Run[Any]) -> None:
    """Everything about a run: the map, how sure it is, what to take away."""
    if entered():
        st.session_state.pop(SENT, None)
    st.fragment(_show)(run)


def _show(run: Run[Any]) -> None:
    whole = cached.result(run.key)
    _days(whole)
    result = cached.result_of(run.key, held_view(whole).days)
    view = told_view(result)
    tell_note(view)
    params = params_of(run, view.to_params(result))
    set_address(params)
    tell_limit(result)
    figures = None
    if view.truth in result.truths and not isinstance(result, SharedResult):
        figures = cached.comparison(run.key, view.time, view.truth, view.threshold, view.days)
        distrust(figures)
    unsettled(result)
    cells: Sequence[str] = result.states.cells
    packed = None
    if result.states.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
    else:
        packed = cached.packed(run.key, view.days, cached.outline_key())
        cells = packed.header["cells"]
        _map(packed, view)
    if figures is not None and view.truth is not None:
        comparison(figures, view, result)
    # All that the page is made of is taken now: the file is made where no session is known.
    page = partial(_page, result, run.title, view, packed, theme())
    take_away(run, result, view.time, params, page)
    if figures is not None and view.truth is not None:
        paper(run, view.truth, view.threshold, view.top_n, view.days)
    numbers(result, _tables(result, view), view, cells)
    about(result, view.time, run.title)


def _page(
    result: FlowResult,
    title: str,
    view: FlowView,
    packed: PackedFlows | None,
    colours: Theme,
    limited: FlowResult | None,
) -> bytes:
    """The picture that is shown as a page to take away, or the same of a limited result."""
    shown, of = (result, packed) if limited is None else (limited, None)
    return html_page(shown, view.time, title, view=view.to_map(), packed=of, theme=colours)


def _days(whole: FlowResult) -> None:
    """Which days' flows are shown; another choice is sent to the map anew."""
    if not whole.days:
        return
    if DAYS not in st.session_state:
        st.session_state[DAYS] = list(held_view(whole).days)
    st.multiselect(
        "Days", whole.days, key=DAYS, persist_state=STAYS, width=420,
        placeholder="All days: choose some to see what happened on them",
        label_visibility="collapsed",
    )  # fmt: skip


def _map(packed: PackedFlows, view: FlowView) -> None:
    sent = st.session_state.get(SENT)
    if sent is None or sent["asked"] != asked():
        sent = st.session_state[SENT] = {**view.to_map(), "asked": asked()}
    flow_map(packed, sent, key=MAP)


def _tables(result: FlowResult, view: FlowView) -> Mapping[str, pd.DataFrame]:
    """The flows of the estimate and of what stands beside it, largest first."""
    sources = [source for source in (ESTIMATE, view.truth) if source is not None]
    return {source: result.table(view.time, source, view.step) for source in sources}
