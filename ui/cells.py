"""The choice of cells on the page Grid: rows x columns, JIS mesh, H3 or a person's own areas."""

from __future__ import annotations

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.io.areas import areas_of
from agg_core.io.formats.vector import FILE_ENDINGS, MOST_MEGABYTES, read_vector_apart
from agg_core.space import AreaGrid
from agg_core.space.grid import Bounds
from agg_core.space.mesh import JAPAN
from agg_core.space.settings import (
    AnyGridSettings,
    AreaSettings,
    GridSettings,
    HexSettings,
    MeshSettings,
    grid_kind,
    grid_words,
)
from agg_core.study.suggest import suggest_level, suggest_resolution
from ui import cached
from ui.forms import edit
from ui.shell import plain, tell_fault
from ui.state import state
from ui.workspace import workspace

__all__ = ["cells"]

KINDS = {"rectangle": "Rectangles", "mesh": "JIS mesh", "h3": "H3", "areas": "Own areas"}
EXTENT = ["west", "east", "south", "north"]


def cells(dataset: str, in_a_row: int) -> AnyGridSettings:
    """Widgets of the kind of cells and of its settings; returns what they say.

    What cannot be used is told, and the grid stays as it was.
    """
    now = state().grid
    kind = st.segmented_control(
        "Cells", _kinds(now, cached.extent(dataset)), default=grid_kind(now), required=True,
        key="grid.kind", format_func=KINDS.__getitem__,
    )  # fmt: skip
    try:
        if kind == "areas":
            return _own_areas(now, cached.extent(dataset))
        began = now if grid_kind(now) == kind else _first(kind, _rectangular(now, dataset))
    except InputError as fault:
        tell_fault(str(fault))
        return now
    if isinstance(began, MeshSettings):
        return edit(began, "grid", [*EXTENT, "level"], columns=in_a_row)
    if isinstance(began, HexSettings):
        return edit(began, "grid", [*EXTENT, "resolution"], columns=in_a_row)
    assert isinstance(began, GridSettings)
    return edit(began, "grid", [*EXTENT, "rows", "cols"], columns=in_a_row)


def _kinds(now: AnyGridSettings, data: Bounds) -> list[str]:
    """The kinds that make sense for the data: mesh codes are of Japan."""
    west, south, east, north = data
    in_japan = JAPAN[0] <= west and JAPAN[1] <= south and east <= JAPAN[2] and north <= JAPAN[3]
    return [kind for kind in KINDS if kind != "mesh" or in_japan or isinstance(now, MeshSettings)]


def _rectangular(now: AnyGridSettings, dataset: str) -> Bounds:
    """The extent to begin another kind with: the one in the form, or that of the data."""
    return cached.extent(dataset) if isinstance(now, AreaSettings) else now.bounds


def _first(kind: str, bounds: Bounds) -> AnyGridSettings:
    if kind == "mesh":
        return MeshSettings(*bounds, suggest_level(bounds))
    if kind == "h3":
        return HexSettings(*bounds, suggest_resolution(bounds))
    return GridSettings(*bounds)


def _own_areas(now: AnyGridSettings, data: Bounds) -> AnyGridSettings:
    """Areas from a file, all of them or those near the data."""
    st.file_uploader(
        "Wards, zones or other areas", FILE_ENDINGS, key="areas.file", on_change=_take_file,
        max_upload_size=MOST_MEGABYTES,
        help="GeoJSON, GeoPackage, zipped Shapefile, FlatGeobuf or GeoParquet. The areas stay in "
        "this session, and in the runs that are learned with them.",
    )  # fmt: skip
    st.text_input(
        "Coordinate system", key="areas.crs", placeholder="as the file says", on_change=_read,
        help="EPSG code, such as EPSG:6677, where the file does not say it or is wrong.",
    )  # fmt: skip
    fault = st.session_state.get("areas.fault")
    if fault is not None:
        tell_fault(fault)
    areas = workspace().areas
    if areas is not None:
        return _chosen(areas[0].name, areas[1], data)
    st.caption(
        f"The cells are {plain(grid_words(now))}." if isinstance(now, AreaSettings)
        else "Until a file is read, the grid stays as it was."
    )  # fmt: skip
    return now


def _chosen(file: str, found: AreaGrid, data: Bounds) -> AreaSettings:
    """The areas of the file that was read, by the column that was chosen."""
    assert found.report is not None
    named = found.report.named
    columns = st.session_state.setdefault("areas.columns", [named.value, *named.alternatives])
    st.selectbox(
        "Named by", columns, index=columns.index(named.value), key="areas.column",
        on_change=_name, format_func=lambda name: name or "each row by itself",
        help="Areas of one name are one cell.",
    )  # fmt: skip
    near = st.toggle(
        "Only areas near the data", value=True, key="areas.near",
        help="Without it all areas of the file are cells, also where nobody is.",
    )  # fmt: skip
    grid = cached.areas_near(found.digest, named.value, data) if near else found
    for sentence in grid.words():
        st.caption(plain(sentence))
    return AreaSettings.of(grid, file)


def _take_file() -> None:
    """Callback of the uploader: read the new file by the column that its names suggest."""
    upload = st.session_state.get("areas.file")
    if upload is None:
        return
    workspace().areas_upload = (upload.name, upload.getvalue())
    _read()


def _read() -> None:
    """Callback of the file and its system: a fault leaves the grid as it was."""
    upload = workspace().areas_upload
    if upload is None:
        return
    name, content = upload
    st.session_state["areas.fault"] = None
    try:
        with st.spinner("Reading the areas …"):
            found = read_vector_apart(content, name, st.session_state.get("areas.crs") or None)
        workspace().areas = (found, areas_of(found))
    except InputError as fault:
        st.session_state["areas.fault"] = str(fault)
        return
    for key in ("areas.column", "areas.columns"):
        st.session_state.pop(key, None)


def _name() -> None:
    """Callback of the column of names."""
    areas = workspace().areas
    assert areas is not None
    column, columns = (st.session_state[f"areas.{key}"] for key in ("column", "columns"))
    st.session_state["areas.fault"] = None
    try:
        # The guess tells areas of one name apart by where they are; a chosen column does not.
        named = areas_of(areas[0], None if column == columns[0] else column)
        workspace().areas = (areas[0], named)
    except InputError as fault:
        st.session_state["areas.fault"] = str(fault)
