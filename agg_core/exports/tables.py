"""What the exports share: flows of all sources side by side, names, text safe in a sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.settings import parse_anchor
from agg_core.study import ALL_DAY, SOURCES, StudyResult

__all__ = [
    "OUTSIDE_NAME",
    "cell_names",
    "csv_bytes",
    "is_drawable",
    "left_out",
    "od_matrix",
    "people_text",
    "safe_text",
    "source_words",
    "step_times",
    "wide_flows",
    "zip_bytes",
]

OUTSIDE_NAME = "outside"
"""Name of the state of people who are not on the grid."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
DAY_MINUTES = 24 * 60


def cell_names(result: StudyResult) -> list[str]:
    """Name of each state, (S,); the outside, where the study has one, is the last."""
    grid = result.settings.grid.make()
    return grid.labels + [OUTSIDE_NAME] * result.has_outside


def source_words(result: StudyResult, source: str) -> str:
    """Where the flows of a source come from, for a reader who has only the file."""
    return {
        "estimate": f"learned from groups of M = {result.settings.learn.group_size}",
        "single": "learned from single people, M = 1",
        "counted": "counted before the noise",
    }[source]


def od_matrix(result: StudyResult, anchor: str, source: str) -> npt.NDArray[np.float64]:
    """People per step from each state (row) to each (column), (S, S); stays on the diagonal."""
    table = result.table(anchor, source)
    counts = np.zeros((result.n_states, result.n_states))
    counts[table["origin"], table["dest"]] = table["count"]
    return counts


def wide_flows(result: StudyResult, anchor: str) -> pd.DataFrame:
    """Every flow that any source has, in people per step, ordered by origin and dest.

    Columns origin, dest, origin_name, dest_name, the places of both ends in degrees (nan for the
    outside), one column for each of `SOURCES` (0 where it lacks the flow) and ``difference``,
    the estimate minus the fit to single people. Stays are rows like others.
    """
    sides = [
        result.table(anchor, source).set_index(["origin", "dest"])["count"].rename(source)
        for source in SOURCES
    ]
    counts = pd.concat(sides, axis=1).fillna(0.0).sort_index().reset_index()
    origin, dest = counts["origin"].to_numpy(), counts["dest"].to_numpy()
    names = np.array(cell_names(result), dtype=object)
    places = np.vstack([result.settings.grid.make().centroids, [[np.nan, np.nan]]])
    ends = pd.DataFrame(
        {
            "origin": origin,
            "dest": dest,
            "origin_name": names[origin],
            "dest_name": names[dest],
            "origin_lon": places[origin, 0],
            "origin_lat": places[origin, 1],
            "dest_lon": places[dest, 0],
            "dest_lat": places[dest, 1],
        }
    )
    values = counts[list(SOURCES)]
    return ends.join(values).assign(difference=values["estimate"] - values["single"])


def is_drawable(flows: pd.DataFrame, n_cells: int) -> pd.Series[bool]:
    """Which rows of a flow table join two different cells of the grid."""
    moves = flows["origin"] != flows["dest"]
    return moves & (flows["origin"] < n_cells) & (flows["dest"] < n_cells)


def left_out(flows: pd.DataFrame, n_cells: int, count: str = "count") -> str:
    """Words on the people per step that no line between two cells shows."""
    moves = flows["origin"] != flows["dest"]
    beyond = moves & ~is_drawable(flows, n_cells)
    return (
        f"{people_text(flows.loc[~moves, count].sum())} people per step who stay where they are "
        f"and {people_text(flows.loc[beyond, count].sum())} who come from or go to the outside"
    )


def people_text(number: float) -> str:
    """A number of people to read: whole from 10 on, one decimal below."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.1f}"


def step_times(anchor: str, step_minutes: int, n_steps: int) -> list[str]:
    """Local clock time HH:MM of each step of a window; empty for windows of the whole day."""
    if anchor == ALL_DAY:
        return [""] * n_steps
    hours, minutes = (int(part) for part in parse_anchor(anchor).split(":"))
    start = hours * 60 + minutes
    at = [(start + k * step_minutes) % DAY_MINUTES for k in range(n_steps)]
    return [f"{minute // 60:02d}:{minute % 60:02d}" for minute in at]


def safe_text(text: str) -> str:
    """Text that a spreadsheet shows and does not compute: an apostrophe before = + - @ and TAB."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8: text is made safe, numbers have ten digits, nan is empty."""
    safe = frame.rename(columns=safe_text)
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = safe[name].map(safe_text)
    text = safe.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    return text.encode("utf-8")


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Files by name in one zip; the same files give the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.create_system = 3  # or it would tell on which system it was made
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target.getvalue()
