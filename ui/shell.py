"""The frame of every page: title, steps, theme, and a guard that turns faults into sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from agg_core.base.disk import disk_refused, refused_by_disk
from agg_core.base.errors import InputError
from agg_core.base.logs import note
from agg_core.plotting.theme import DARK, LIGHT, Theme
from ui import window
from ui.owner import sign_in_or_stop, sign_out
from ui.state import Dataset, state

__all__ = [
    "beside",
    "go_on",
    "need_dataset",
    "page",
    "plain",
    "tell_fault",
    "theme",
]

PAGES = (
    ("app.py", "Home", ":material/home:"),
    ("pages/1_Data.py", "Data", ":material/upload_file:"),
    ("pages/2_Grid.py", "Grid", ":material/grid_on:"),
    ("pages/3_Learn.py", "Learn", ":material/model_training:"),
    ("pages/4_Flows.py", "Flows", ":material/moving:"),
    ("pages/7_Evidence.py", "Evidence", ":material/fact_check:"),
    ("pages/5_Lab.py", "Lab", ":material/science:"),
    ("pages/6_Runs.py", "Runs", ":material/history:"),
)

ICON = str(Path(__file__).with_name("icon.png"))

# Streamlit leaves 6 rem above every page: room that the maps need on a laptop. Its buttons side by
# side are lower than its other controls, which shows where both stand in one line. Captions, and
# the chosen one of such buttons and of a slider, would be too pale to read on one of the themes.
STYLE = """<style>
[data-testid='stMainBlockContainer'] {padding-top: 2.5rem}
[data-testid='stButtonGroup'] button {min-height: 2.5rem}
[data-testid='stButtonGroup'] button[aria-checked='true'],
[data-testid='stButtonGroup'] button[aria-checked='true'] *,
[data-testid='stSliderThumbValue'] {color: inherit !important}
[data-testid='stCaptionContainer'] {opacity: 0.78}
[data-testid='stHeading'] h2 {padding-top: 0.25rem}
</style>"""


@contextmanager
def page(title: str) -> Iterator[None]:
    """Frame a page. What goes wrong inside is told in one sentence; nothing loaded is lost."""
    began = time.monotonic()
    # Any page may be the first that the server runs.
    st.set_page_config(
        page_title=f"{title} · Population flows",
        page_icon=ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    sign_in_or_stop()
    try:
        _begin(title)
        yield
    except InputError as fault:
        note("refused", fault.code or "input", duration=time.monotonic() - began)
        tell_fault(str(fault))
    except Exception as fault:
        if isinstance(fault, OSError) and refused_by_disk(fault):
            told = disk_refused(fault)
            note("refused", told.code, duration=time.monotonic() - began)
            tell_fault(str(told))
            return
        note("fault", title, duration=time.monotonic() - began, fault=fault)
        st.error(
            "Something went wrong on this page. Your data is still loaded; change the last "
            "setting back or reload the page. The server's log has the details.",
            icon=":material/error:",
        )
    else:
        note("page", title, duration=time.monotonic() - began)


def _begin(title: str) -> None:
    """What stands above every page, and what holds for all of them."""
    # Streamlit forgets the values of widgets that a page does not show; these are to stay.
    for key in [k for k in st.session_state if str(k).startswith("view.")]:
        st.session_state[key] = st.session_state[key]
    before, st.session_state[SHOWN] = st.session_state.get(SHOWN), title
    st.session_state[ENTERED] = before != title
    _steps()
    if title != "Learn":
        state().onward = None  # who has left the learner is not taken to its flows


SHOWN, ENTERED = "page.shown", "page.entered"


def entered() -> bool:
    """Whether another page was shown before this one, so that all of it is drawn anew."""
    return bool(st.session_state.get(ENTERED, True))


def _steps() -> None:
    """The way through the app, one link a page, and what is open now."""
    st.html(STYLE)
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
    ):
        with st.container(horizontal=True, gap="small", width="content"):
            for path, label, icon in PAGES:
                st.page_link(path, label=label, icon=icon)
            window.ask()
            sign_out()
        data = state().dataset
        if data is not None:
            st.caption(f"Open: {plain(data.title)}", width="content")


def beside(
    widths: Sequence[int],
    *,
    gap: Literal["small", "medium", "large"] = "small",
    align: Literal["top", "center", "bottom"] = "top",
) -> Sequence[DeltaGenerator]:
    """Places beside each other of these widths; in a narrow window one under the other."""
    if window.is_narrow():
        return [st.container() for _ in widths]
    return st.columns(widths, gap=gap, vertical_alignment=align)


def plain(text: str) -> str:
    """Text from outside with markdown's signs made harmless, and what is no letter as "?"."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # names of files may hold any bytes
    return "".join("\\" + c if c in r"\`*_{}[]()#+-.!|<>~$:" else c for c in text)


def theme() -> Theme:
    """Colours of the maps and charts that go with the reader's theme."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def tell_fault(sentence: str) -> None:
    """An error in one sentence; it may quote names from a file, which must not act."""
    st.error(plain(sentence), icon=":material/error:")


def go_on(path: str, label: str, *, leads: bool = True) -> None:
    """A button to the next page; one that ``leads`` is the first that the eye meets."""
    kind: Literal["primary", "secondary"] = "primary" if leads else "secondary"
    if st.button(label, type=kind, icon=":material/arrow_forward:", key=f"to.{path}"):
        st.switch_page(path)


def need_dataset() -> Dataset:
    """The open data set; without one the page says where to get it and ends."""
    opened = state().dataset
    if opened is None:
        st.info(
            "No data is open yet. Open the sample city or upload a file on the Data page. Data "
            "stay open until the page is loaded anew, since they belong to one session alone; "
            "finished flows are kept under Runs.",
            icon=":material/upload_file:",
        )
        go_on("pages/1_Data.py", "Go to Data")
        st.stop()
    return opened
