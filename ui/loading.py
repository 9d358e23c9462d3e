"""Opening data: a sample, or a file as the person says it is to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.io import Choices, Reading
from agg_core.io.allowed import allowed_source
from agg_core.io.contents import content_bytes
from agg_core.io.counts.choices import CountChoices
from agg_core.io.sandbox import Content, Kind
from agg_core.made.samples import COUNT_SAMPLE, GATE_SAMPLE, SAMPLES, sample_settings
from agg_core.space.settings import AnyGridSettings
from agg_core.store.shipped_runs import shipped_run_of
from agg_core.study.settings import WindowSettings
from agg_core.study.suggest import suggest_grid, suggest_window
from ui.cached import count_sample, gate_sample, sample
from ui.state import Dataset, state
from ui.workspace import workspace

__all__ = [
    "TRIPS",
    "join_places",
    "leave_out_beside",
    "open_count_sample",
    "open_gate_sample",
    "open_sample",
    "read_as",
    "reread",
    "take_beside",
    "take_from_server",
    "take_read",
    "take_upload",
    "take_uploads",
]

TRIPS = "data.trips"
"""Where the workspace holds trips of nobody: their title, table and account."""
OTHERS: Mapping[str, Literal["movements", "places"]] = {
    "table-of-movements": "movements",
    "table-of-places": "places",
}
"""What a file holds that goes with others, by the code of the fault that says so."""
AT_ONCE_BYTES = 8_000_000
"""Up to this size the page waits for files; how far the reading of larger ones is, it shows."""

STILL_FITS = 0.5
"""Share of fixes that the present extent must hold to be kept when a file is read again."""


def open_sample(key: str, n_people: int | None = None) -> None:
    """Open a shipped sample, or a larger one made now, with the settings that show it well."""
    about = SAMPLES[key]
    title = about.title if n_people is None else f"{about.title}, {n_people:,} people"
    now = state()
    now.tried = now.fault = now.remedy = now.other = None
    shipped = shipped_run_of(key) if n_people is None else None
    now.dataset = Dataset(workspace().keep(sample(key, n_people)), title, shipped=shipped)
    settings = sample_settings(key)
    _set_up(settings.grid, settings.window)


def open_count_sample() -> None:
    """Open the counts of a made-up city, laid out as an operator delivers them.

    Where the disk refuses the page Data says so, and what was open stays.
    """
    now = state()
    now.tried = now.fault = now.remedy = now.other = None
    try:
        kept = workspace().keep_counts(count_sample())
    except InputError as fault:
        now.fault = str(fault)
        return
    now.dataset = Dataset(kept, COUNT_SAMPLE, "counts", shipped_run_of(None))
    _forget_widgets()


def open_gate_sample() -> None:
    """Open the entries and exits of a made-up railway; where the disk refuses, what was open stays.

    What is said of the disk is said by the page Data.
    """
    now = state()
    now.tried = now.fault = now.remedy = now.other = None
    try:
        kept = workspace().keep_gates(gate_sample())
    except InputError as fault:
        now.fault = str(fault)
        return
    now.dataset = Dataset(kept, GATE_SAMPLE, "gates")
    _forget_widgets()


def take_upload() -> None:
    """Callback of the uploader ("upload"): read the new file; a fault leaves all as it was."""
    upload = st.session_state.get("upload")
    if upload is not None:
        _take([upload])


def take_uploads() -> None:
    """Callback of the uploader of several files ("uploads"): read them together."""
    uploads = st.session_state.get("uploads")
    if uploads:
        _take(uploads)


def take_from_server() -> None:
    """Callback: read what was chosen of the files of this server ("server.choice")."""
    name = st.session_state.get("server.choice")
    if name is None:
        return
    try:
        path = allowed_source(name)
    except InputError as fault:
        now = state()
        now.fault, now.remedy = str(fault), None
        return
    _try({name.rpartition("/")[2]: path})


def _take(uploads: Sequence[Any]) -> None:
    # Two files of one name lie in different folders, which the browser does not tell.
    names = [upload.name for upload in uploads]
    _try({
        name if names.count(name) == 1 else f"{number}/{name}": upload.getvalue()
        for number, (name, upload) in enumerate(zip(names, uploads, strict=True), 1)
    })  # fmt: skip


def _try(files: dict[str, Content]) -> None:
    """Find out what files hold, and open it."""
    own = workspace()
    own.before = own.uploads
    own.uploads, own.beside = files, {}
    _read(Choices(), "auto")


def take_beside(part: str) -> None:
    """Callback of the uploader of files that go with entries ("gates." and what they hold)."""
    upload = st.session_state.get(f"gates.{part}")
    if upload is None:
        return
    workspace().beside[part] = {upload.name: upload.getvalue()}
    tried = state().tried
    _read(tried if isinstance(tried, CountChoices) else CountChoices(), "gates")


def leave_out_beside(part: str) -> None:
    """Callback: read the entries again without the files of a kind that went with them."""
    del workspace().beside[part]
    tried = state().tried
    _read(tried if isinstance(tried, CountChoices) else CountChoices(), "gates")


def join_places() -> None:
    """Callback: read the files that were tried before together with the table of places."""
    own, now = workspace(), state()
    places, own.uploads, own.before = own.uploads, own.before, {}
    if now.dataset is not None and now.dataset.kind == "gates":
        own.beside["places"] = places
        _read(CountChoices(), "gates")
    else:
        own.uploads = {**own.uploads, **places}
        _read(Choices(), "auto")


def reread(choices: Choices | CountChoices) -> None:
    """Read the last upload with these choices; what takes long goes on while the page shows it."""
    reading = workspace().reading
    taken = None if reading is None else reading.kind
    if isinstance(choices, Choices):
        _read(choices, "trips" if taken == "trips" else "trajectories")
    else:
        _read(choices, "gates" if taken == "gates" else "counts")


def read_as(kind: Kind) -> None:
    """Read the last upload as another kind of data than it was taken for."""
    _read(Choices() if kind in ("trajectories", "trips") else CountChoices(), kind)


def _read(choices: Choices | CountChoices, kind: Kind) -> None:
    now = state()
    now.tried, now.reading, now.other = choices, True, None
    try:
        reading = workspace().read(choices, kind)
    except InputError as fault:
        now.reading, now.fault, now.remedy = False, str(fault), None
        return
    # Size decides, not the clock: the same file is read in the same way on a busy machine too.
    if _bytes_to_read() <= AT_ONCE_BYTES:
        reading.wait()
        take_read()


def _bytes_to_read() -> int:
    own = workspace()
    every = (own.uploads, *own.beside.values())
    return sum(content_bytes(content) for files in every for content in files.values())


def take_read() -> None:
    """Open what a finished reading has read, or remember why it could not be read.

    An extent that still fits is kept where a file is read again; one that was chosen for other
    data, because this file could not be read before, is not.
    """
    now, reading = state(), workspace().reading
    assert reading is not None
    now.reading = False
    workspace().held.pop(TRIPS, None)
    if reading.kind in ("counts", "gates"):
        _take_table(reading)
        return
    first_try = not isinstance(now.tried, Choices) or not now.tried.by_hand
    had_failed, now.fault, now.remedy = now.fault is not None, None, None
    if reading.state == "cancelled":
        return
    try:
        if reading.kind == "trips":
            workspace().held[TRIPS] = (_title(), *reading.trips())
            return
        trajectories = reading.result()
    except InputError as fault:
        now.other = OTHERS.get(fault.code)
        if now.other is None:
            now.fault, now.remedy = str(fault), _remedy(fault.option)
        return
    now.dataset = Dataset(workspace().keep(trajectories), _title())
    table = trajectories.table
    inside = now.grid.make().assign(table["lon"].to_numpy(), table["lat"].to_numpy()) >= 0
    if first_try or had_failed or np.mean(inside) < STILL_FITS:
        _set_up(suggest_grid(trajectories), suggest_window(trajectories))


def _take_table(reading: Reading) -> None:
    """The same for files of counts, or of entries and exits; settings of the learner stay."""
    now = state()
    if not isinstance(now.tried, CountChoices):
        now.tried = CountChoices()  # nothing was stated, and now it is known of what
    now.fault, now.remedy = None, None
    if reading.state == "cancelled":
        return
    own = workspace()
    try:
        if reading.kind == "gates":
            now.dataset = Dataset(own.keep_gates(reading.gates()), _title(), "gates")
        else:
            now.dataset = Dataset(own.keep_counts(reading.counts()), _title(), "counts")
    except InputError as fault:
        now.fault = str(fault)
        return
    _forget_widgets()


def _title() -> str:
    names = list(workspace().uploads)
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _remedy(option: str) -> tuple[str, str] | None:
    """What the command line would be told ("--crs EPSG:3857") as a choice and its value."""
    flag, _, value = option.partition(" ")
    name = flag.removeprefix("--").replace("-", "_")
    if name == "swap_axes":
        return name, "swapped"
    if name == "place_unit":
        return name, value.strip("'")
    return (name, value) if name == "crs" and value.removeprefix("EPSG:").isdigit() else None


def _set_up(grid: AnyGridSettings, window: WindowSettings) -> None:
    now = state()
    now.grid, now.window = grid, window
    _forget_widgets()


def _forget_widgets() -> None:
    # Widgets must show the new settings and dates, not what was chosen for the old data.
    for key in [
        k for k in st.session_state if str(k).startswith(("grid.", "window.", "view.heat"))
    ]:
        del st.session_state[key]
