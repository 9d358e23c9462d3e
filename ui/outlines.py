"""The choice of what lies under the maps: the world, nothing, or a person's own file upon it."""

from __future__ import annotations

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.io.formats.vector import FILE_ENDINGS, MOST_MEGABYTES, read_vector_apart
from agg_core.io.ground import ATTRIBUTION
from agg_core.io.outlines import Outline, outline_of
from ui.scene import basemap_choice
from ui.shell import plain, tell_fault
from ui.state import OutlineChoice, state
from ui.workspace import workspace

__all__ = ["outline_choice"]

KINDS = {"shipped": "The world", "none": "Nothing", "own": "My own file upon the world"}

THE_WORLD = (
    "Land, water, borders and larger places, kept on this machine: no request leaves it. A coast "
    "may be off by a kilometre, but for Greater Tokyo, which has finer ones and its "
    f"municipalities. {ATTRIBUTION}."
)


def outline_choice(bounds: tuple[float, float, float, float]) -> None:
    """Let the person choose; `bounds` (west, south, east, north) are those of the open data."""
    with st.expander("Ground under the maps"):
        kind = st.radio(
            "Ground", KINDS, list(KINDS).index(state().outline.kind), KINDS.__getitem__,
            key="outline.kind", horizontal=True, on_change=_take_kind, label_visibility="collapsed",
        )  # fmt: skip
        if kind == "own":
            st.file_uploader(
                "Coast, districts or roads", FILE_ENDINGS, key="outline.file",
                on_change=_take_file, max_upload_size=MOST_MEGABYTES,
                help="Lines and areas as GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf or "
                "GeoParquet; points are left out. The file stays in this session and is not kept.",
            )  # fmt: skip
            st.text_input(
                "Coordinate system", key="outline.crs", placeholder="as the file says",
                on_change=_take_file, width=240,
                help="EPSG code, such as EPSG:6677, where the file does not say it or is wrong.",
            )  # fmt: skip
        fault = state().outline_fault
        if fault is not None:
            tell_fault(fault)
        if kind == "own":
            _tell_own(bounds)
        elif kind == "shipped":
            st.caption(THE_WORLD)
        basemap_choice()


def _tell_own(bounds: tuple[float, float, float, float]) -> None:
    own = workspace().outlines.get(state().outline.key)
    if own is None:
        st.caption("Until a file is read, the maps stay as they are.")
        return
    st.caption(plain(_about(own)))
    if not own.meets(bounds):
        st.warning(
            "No part of this outline is near the open data, so the maps show none of it.",
            icon=":material/wrong_location:",
        )


def _about(own: Outline) -> str:
    """What was read, in one line."""
    west, south, east, north = own.bounds
    facts = [
        f"{own.name}: {own.n_shapes:,} {'shape' if own.n_shapes == 1 else 'shapes'}, "
        f"read as {own.crs}",
        f"west {west:.4f}°, south {south:.4f}°, east {east:.4f}°, north {north:.4f}°",
    ]
    if own.tolerance_m > 0:
        facts.append(
            f"{own.n_points_kept:,} of {own.n_points_read:,} points drawn, "
            f"lines moved by up to {own.tolerance_m:,.0f} m"
        )
    if own.n_left_out:
        causes = [f"{number:,} {cause}" for cause, number in own.n_left_out.items()]
        facts.append(f"left out: {', '.join(causes)}")
    return " · ".join(facts)


def _take_kind() -> None:
    """Callback of the choice: an own file counts from when it is read."""
    now, kind = state(), st.session_state["outline.kind"]
    now.outline_fault = None
    if kind != "own":
        now.outline = OutlineChoice(kind, KINDS[kind])
    elif workspace().outlines:
        key, own = next(iter(workspace().outlines.items()))
        now.outline = OutlineChoice("own", own.name, key)


def _take_file() -> None:
    """Callback of the uploader: read the new file; a fault leaves the maps as they were."""
    upload, now = st.session_state.get("outline.file"), state()
    now.outline_fault = None
    if upload is None:
        return
    try:
        crs = st.session_state.get("outline.crs") or None
        own = outline_of(read_vector_apart(upload.getvalue(), upload.name, crs))
    except InputError as fault:
        now.outline_fault = str(fault)
        return
    now.outline = OutlineChoice("own", own.name, workspace().keep_outline(own))
