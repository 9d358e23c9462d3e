"""Opening data: a sample, or a file as the person says it is to be read."""

from __future__ import annotations

import numpy as np
import streamlit as st

from agg_core.errors import InputError
from agg_core.readers import as_column, column_names, read_trajectories
from agg_core.samples import SAMPLES
from agg_core.settings import AnyGridSettings, GridSettings, WindowSettings
from agg_core.suggest import suggest_grid, suggest_window
from agg_core.trajectories import Trajectories
from ui.cached import sample
from ui.state import Choices, Dataset, state
from ui.workspace import workspace

__all__ = ["columns_of_upload", "open_sample", "reread", "take_upload"]

STILL_FITS = 0.5
"""Share of fixes that the present extent must hold to be kept when a file is read again."""


def open_sample(key: str, n_people: int | None = None) -> None:
    """Open a shipped sample, or a larger one made now, with the settings that show it well."""
    about = SAMPLES[key]
    title = about.title if n_people is None else f"{about.title}, {n_people:,} people"
    now = state()
    now.tried, now.fault = None, None
    now.dataset = Dataset(workspace().keep(sample(key, n_people)), title)
    _set_up(
        GridSettings(*about.bounds, about.rows, about.cols),
        WindowSettings(about.step_minutes, about.length, about.anchors),
    )


def take_upload() -> None:
    """Callback of the uploader ("upload"): read the new file; a fault leaves all as it was."""
    upload = st.session_state.get("upload")
    if upload is None:
        return
    workspace().upload = (upload.name, upload.getvalue())
    trajectories = _read(Choices())
    if trajectories is not None:
        _set_up(suggest_grid(trajectories), suggest_window(trajectories))


def reread(choices: Choices) -> None:
    """Read the last upload once more, with other choices; an extent that still fits is kept.

    One that was chosen for other data, because this file could not be read before, is not.
    """
    was_read = state().fault is None
    trajectories = _read(choices)
    if trajectories is None:
        return
    table = trajectories.table
    inside = state().grid.make().assign(table["lon"].to_numpy(), table["lat"].to_numpy()) >= 0
    if not was_read or np.mean(inside) < STILL_FITS:
        _set_up(suggest_grid(trajectories), suggest_window(trajectories))


def _read(choices: Choices) -> Trajectories | None:
    """Read the last upload and open it, or remember why it could not be read."""
    now = state()
    upload = workspace().upload
    assert upload is not None
    name, content = upload
    now.tried, now.fault = choices, None
    try:
        trajectories = read_trajectories(
            content,
            columns={role: as_column(column) for role, column in choices.columns},
            tz=choices.tz,
            where=dict([choices.where]) if choices.where else None,
            filename=name,
        )
    except InputError as fault:
        now.fault = str(fault)
        return None
    now.dataset = Dataset(workspace().keep(trajectories), name)
    return trajectories


@st.cache_data(scope="session", show_spinner=False, max_entries=4)
def columns_of_upload(name: str, content: bytes) -> tuple[str, ...]:
    """Columns of a file to choose from; none if it cannot be opened."""
    try:
        return column_names(content, filename=name)
    except InputError:
        return ()


def _set_up(grid: AnyGridSettings, window: WindowSettings) -> None:
    now = state()
    now.grid, now.window = grid, window
    # Widgets must show the new settings and dates, not what was chosen for the old data.
    for key in [
        k for k in st.session_state if str(k).startswith(("grid.", "window.", "view.heat"))
    ]:
        del st.session_state[key]
