"""The heatmap of the page BaseGrid: one time of day or two side by side, flat or as columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from agg_core.plotting.deck import fitting_height_px
from agg_core.plotting.maps import heat_deck
from agg_core.space.grid import BaseGrid
from agg_core.study.heat import DayProfile
from ui import cached
from ui.panels import STATIC
from ui.scene import map_size_px, scene
from ui.shell import beside, theme
from ui.window import content_width_px, is_narrow

__all__ = ["Places", "heat_over_the_day", "places"]

ONE, TWO = "One time", "Two times side by side"
TIME = "view.heat.time"
PAPERS_TIMES = {"view.heat.first": "02:00", "view.heat.second": "14:00"}
"""The two times of the paper's Fig. 8, by the key of the select that shows the nearest there is."""

CLOCK = re.compile(r"(\d{1,2}):(\d{2})")

SETTINGS_AND_MAP = (3, 5)
GAP_PX = 64
HIGHEST_PX = 600
"""The slider above one map and its legend below are to be seen with it."""

FASTEST_S = 1.5
CELLS_A_SECOND = 1_000
"""What a browser draws anew without falling behind where it draws in software."""

# Streamlit shows a label or leaves the button without a name: this one is only read aloud.
ICONS_ALONE = """<style>
:is(.st-key-heat-earlier, .st-key-heat-later) [data-testid="stMarkdownContainer"]
{position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
</style>"""


@dataclass(frozen=True)
class Places:
    """Where the settings and the maps of the page go, and how many settings stand in a row."""

    extent: DeltaGenerator
    time: DeltaGenerator
    maps: DeltaGenerator
    extent_in_a_row: int
    time_in_a_row: int


def places() -> Places:
    """One map stands beside the settings; two need the whole width under them."""
    if is_narrow():
        return Places(st.container(), st.container(), st.container(), 3, 3)
    if st.session_state.get("view.heat.show") == TWO:
        extent, time = st.columns([3, 1], gap="medium")
        return Places(extent, time, st.container(), 3, 1)
    settings, maps = st.columns(SETTINGS_AND_MAP, gap="large")
    return Places(settings.container(), settings.container(), maps, 2, 2)


def _one_px(grid: BaseGrid) -> tuple[int, int]:
    """Width and height of the map beside the settings."""
    if is_narrow():
        return map_size_px(grid.bounds)
    width = (content_width_px() - GAP_PX) * SETTINGS_AND_MAP[1] // sum(SETTINGS_AND_MAP)
    return width, fitting_height_px(grid.bounds, width, most=HIGHEST_PX)


def heat_over_the_day(grid: BaseGrid, profile: DayProfile) -> None:
    """People per cell on a map; one colour scale for the whole day."""
    st.session_state.setdefault("view.heat.show", ONE)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        shown = st.segmented_control(
            "Show", (ONE, TWO), required=True, key="view.heat.show", label_visibility="collapsed"
        )
        columns = st.toggle(
            "Columns (3-D)", key="view.heat.columns",
            help="The map is tilted and each cell stands as high as its people.",
        )  # fmt: skip
        seconds = max(FASTEST_S, grid.n_cells / CELLS_A_SECOND)
        playing = shown == ONE and st.toggle(
            "Play", key="heat.play", help=f"One step in {seconds:.2g} s."
        )
    if shown == TWO:
        _two_times(grid, profile, columns)
    else:
        _one_time(grid, profile, columns, seconds if playing else None)
    if columns:
        st.caption("Drag with the right button, or with Ctrl held, to turn and tilt a map.")


def _one_time(grid: BaseGrid, profile: DayProfile, columns: bool, every_s: float | None) -> None:
    @st.fragment(run_every=every_s)
    def show() -> None:
        labels = profile.labels
        if st.session_state.get(TIME) not in labels:
            st.session_state[TIME] = labels[int(profile.totals.argmax())]
        elif every_s is not None:
            _go(labels, 1)
        if len(labels) > 1:
            _choose_time(labels)
        step = labels.index(st.session_state[TIME])
        _map(grid, profile, step, columns, _one_px(grid), key="heat.map")
        _legend(profile)
        st.plotly_chart(
            cached.population_chart(
                tuple(profile.totals.tolist()), tuple(labels), theme().name, step
            ),
            theme=None, config=STATIC, key="heat.day", alt="People on the grid over the day",
        )  # fmt: skip

    show()


def _choose_time(labels: Sequence[str]) -> None:
    st.html(ICONS_ALONE)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.button(
            "Earlier", icon=":material/chevron_left:", key="heat.earlier",
            on_click=_go, args=(labels, -1),
        )  # fmt: skip
        st.select_slider(f"Time of day, {labels[0]} to {labels[-1]}", labels, key=TIME)
        st.button(
            "Later", icon=":material/chevron_right:", key="heat.later",
            on_click=_go, args=(labels, 1),
        )  # fmt: skip


def _go(labels: Sequence[str], steps: int) -> None:
    """To a later or earlier time of day; after the last comes the first."""
    now = labels.index(st.session_state[TIME])
    st.session_state[TIME] = labels[(now + steps) % len(labels)]


@st.fragment
def _two_times(grid: BaseGrid, profile: DayProfile, columns: bool) -> None:
    size = map_size_px(grid.bounds, 1 if is_narrow() else 2)
    for (key, clock), place in zip(PAPERS_TIMES.items(), beside([1, 1]), strict=True):
        if st.session_state.get(key) not in profile.labels:
            st.session_state[key] = _nearest(profile.labels, clock)
        with place:
            time = st.selectbox("Time of day", profile.labels, key=key, width=160)
            step = profile.labels.index(time)
            _map(grid, profile, step, columns, size, key=key.replace("view.", "map."))
    _legend(profile)


def _nearest(labels: Sequence[str], clock: str) -> str:
    """The label closest to a time of day, across midnight too; of a period its first time."""

    def minutes(label: str) -> int:
        found = CLOCK.search(label)
        return 60 * int(found[1]) + int(found[2]) if found else 0

    def apart(label: str) -> int:
        gap = abs(minutes(label) - minutes(clock))
        return min(gap, 24 * 60 - gap)

    return min(labels, key=apart)


def _map(
    grid: BaseGrid,
    profile: DayProfile,
    step: int,
    columns: bool,
    size_px: tuple[int, int],
    *,
    key: str,
) -> None:
    deck = heat_deck(
        grid,
        profile.counts[step],
        vmax=profile.largest,
        scene=scene(grid.bounds, size_px),
        columns=columns,
    )
    label, outside = profile.labels[step], profile.outside[step]
    elsewhere = "" if np.isnan(outside) else f", {outside:,.0f} outside it"
    st.pydeck_chart(deck, height=size_px[1], key=key, alt=f"People per cell at {label} on a map")
    st.caption(
        f"{label}: {_people(profile, step)} people on the grid{elsewhere}. "
        "Hover over a cell for its people."
    )


def _people(profile: DayProfile, step: int) -> str:
    """How many people are on the grid, or between which numbers that lies."""
    total = profile.totals[step]
    least, most = (total, total) if profile.between is None else profile.between[step]
    exact = f"{least:,.0f}" == f"{most:,.0f}"
    return f"{total:,.0f}" if exact else f"{least:,.0f} to {most:,.0f}"


def _legend(profile: DayProfile) -> None:
    st.plotly_chart(
        cached.heat_legend(float(profile.largest), theme().name), width="content", config=STATIC,
        key="heat.legend",
        alt="Colours of the map: from no people in a cell to the most at any time of the day",
    )  # fmt: skip
