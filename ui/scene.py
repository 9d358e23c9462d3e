"""The scene that all maps of the dashboard are drawn in: outline, theme, and one's own choices."""

from __future__ import annotations

import streamlit as st

from agg_core.plotting.deck import Bounds, Scene, fitting_height_px
from ui import cached
from ui.shell import theme
from ui.window import content_width_px

__all__ = ["BASEMAPS", "basemap_choice", "map_size_px", "scene"]

BASEMAPS = {
    "light": "https://tiles.openfreemap.org/styles/positron",
    "dark": "https://tiles.openfreemap.org/styles/dark",
}
"""Online basemaps (OpenStreetMap data, served without a key), asked only when a person says so."""


def scene(bounds: Bounds, size_px: tuple[int, int]) -> Scene:
    """The ground and colours of this session's maps, for an extent, and a width and height."""
    if st.session_state.get("view.basemap", False):
        return Scene(theme=theme(), size_px=size_px, basemap=BASEMAPS[theme().name])
    return Scene(theme=theme(), size_px=size_px, under=cached.under(bounds, theme()))


GAP_PX = 16
HIGHEST_PX, HIGHEST_BESIDE_PX = 680, 820
"""A map is no higher than what a screen shows at once, alone or beside others."""


def map_size_px(bounds: Bounds, maps_in_a_row: int = 1) -> tuple[int, int]:
    """Width and height of one of so many maps beside each other, for the reader's window."""
    width = (content_width_px() - GAP_PX * (maps_in_a_row - 1)) // maps_in_a_row
    most = HIGHEST_PX if maps_in_a_row == 1 else HIGHEST_BESIDE_PX
    return width, fitting_height_px(bounds, width, most=most)


def basemap_choice() -> None:
    """The switch that lets the maps ask the network for streets; off unless a person wants it."""
    st.toggle(
        "Online basemap on the maps of Data and Grid",
        key="view.basemap",
        help="Streets and names from tiles.openfreemap.org (OpenStreetMap). Your browser then asks "
        "that server for the region you look at; your data is not sent. Off, no request leaves "
        "this machine.",
    )
