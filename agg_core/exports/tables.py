"""What the exports share: all that is known of each flow, names, text safe in a sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.space.grid import Grid
from agg_core.study.counts import CountStudy
from agg_core.study.people import ALL_DAY, SOURCES, StudyResult
from agg_core.study.results import Result, cell_names, flows_at, grid_of, sources_of
from agg_core.study.settings import parse_anchor

__all__ = [
    "csv_bytes",
    "is_drawable",
    "left_out",
    "od_matrix",
    "people_text",
    "placed_grid",
    "safe_text",
    "source_words",
    "step_times",
    "step_words",
    "timed_flows",
    "value_columns",
    "wide_flows",
    "zip_bytes",
]

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
DAY_MINUTES = 24 * 60


def placed_grid(result: Result) -> Grid:
    """The cells with their places.

    Raises
    ------
    InputError
        If counts are of cells without a place.
    """
    grid = grid_of(result)
    if grid is None:
        raise InputError("These cells have no place on a map; choose a table or a matrix instead.")
    return grid


def source_words(result: Result, source: str) -> str:
    """Where the flows of a source come from, for a reader who has only the file."""
    if isinstance(result, CountStudy):
        return "learned from counts alone"
    return {
        "estimate": f"learned from groups of M = {result.settings.learn.group_size}",
        "single": "learned from single people, M = 1",
        "counted": "counted before the noise",
    }[source]


def step_words(result: Result) -> str:
    """What a flow is per: a step and, where the result knows it, its length."""
    if isinstance(result, CountStudy):
        return result.step_name
    return f"{result.settings.window.step_minutes}-minute step"


def value_columns(result: Result) -> tuple[str, ...]:
    """Columns of `wide_flows` that hold people per step; the estimate is the first.

    A study has its sources; flows from counts have the ends of their interval, if there is one.
    """
    if isinstance(result, StudyResult):
        return sources_of(result)
    return ("count", "low", "high") if result.settings.replicates else ("count",)


def od_matrix(
    result: Result, anchor: str, source: str = SOURCES[0], column: str = "count"
) -> npt.NDArray[np.float64]:
    """People per step from each state (row) to each (column), (S, S); stays on the diagonal."""
    table, n_states = flows_at(result, anchor, source), len(cell_names(result))
    counts = np.zeros((n_states, n_states))
    counts[table["origin"], table["dest"]] = table[column]
    return counts


def wide_flows(result: Result, anchor: str) -> pd.DataFrame:
    """Every flow of a moment in people per step, ordered by origin and dest.

    Columns origin, dest, origin_name, dest_name, the places of both ends in degrees (nan for the
    outside; none where cells have no place) and `value_columns`: of a study each of `SOURCES` (0
    where it lacks the flow) and ``difference``, the estimate minus the fit to single people; of
    counts with intervals also ``resolved``. Stays are rows like others.
    """
    counts = _values(result, anchor)
    names = np.array(cell_names(result), dtype=object)
    ends = counts[["origin", "dest"]].copy()
    for end in ("origin", "dest"):
        ends[f"{end}_name"] = names[counts[end]]
    grid = grid_of(result)
    if grid is not None:
        places = np.vstack([grid.centroids, [[np.nan, np.nan]]])
        for end in ("origin", "dest"):
            ends[[f"{end}_lon", f"{end}_lat"]] = places[counts[end]]
    return ends.join(counts.drop(columns=["origin", "dest"]))


def _values(result: Result, anchor: str) -> pd.DataFrame:
    """Origin, dest and what is known of each flow."""
    if isinstance(result, CountStudy):
        known = [*value_columns(result), *["resolved"] * bool(result.settings.replicates)]
        flows = flows_at(result, anchor)[["origin", "dest", *known]]
        return flows.sort_values(["origin", "dest"], ignore_index=True)
    sides = [
        result.table(anchor, source).set_index(["origin", "dest"])["count"].rename(source)
        for source in SOURCES
    ]
    values = pd.concat(sides, axis=1).fillna(0.0).sort_index().reset_index()
    return values.assign(difference=values["estimate"] - values["single"])


def timed_flows(result: Result, anchors: Sequence[str]) -> pd.DataFrame:
    """`wide_flows` of several moments in one table; its first column, ``time``, says which."""
    tables = []
    for anchor in anchors:
        table = wide_flows(result, anchor)
        table.insert(0, "time", anchor)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


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
