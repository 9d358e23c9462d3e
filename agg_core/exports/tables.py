"""What the exports share: all that is known of each flow, names, text safe in a sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from agg_core.base.clock import later_on_the_clock
from agg_core.study.people import ALL_DAY
from agg_core.study.result import FlowResult
from agg_core.tables.flows import places_of_ends

__all__ = [
    "csv_bytes",
    "is_drawable",
    "left_out",
    "people_text",
    "safe_text",
    "step_times",
    "timed_flows",
    "wide_flows",
    "zip_bytes",
]

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def wide_flows(result: FlowResult, time: str) -> pd.DataFrame:
    """Every flow of a moment in people per step, ordered by origin and dest.

    Columns origin, dest, origin_name, dest_name, the places of both ends in degrees (nan for the
    outside; none where cells have no place) and those of `FlowResult.values`: of a study each
    source (0 where it lacks the flow), ``difference``, the estimate minus the fit to single people,
    and, with intervals, low, high and resolved of the estimate; of counts count (what happened) and
    usual, with intervals low, high, resolved and the same after ``usual_``. Stays are rows like
    others. Of a limited result ``least_people`` says below how many people flows are withheld.
    """
    counts, states = result.values(time), result.states
    names = np.array(states.names, dtype=object)
    ends = counts[["origin", "dest"]].copy()
    for end in ("origin", "dest"):
        ends[f"{end}_name"] = names[counts[end]]
    if states.grid is not None:
        ends = ends.assign(**places_of_ends(counts, states.grid))
    wide = ends.join(counts.drop(columns=["origin", "dest"]))
    return wide if result.least_people is None else wide.assign(least_people=result.least_people)


def timed_flows(result: FlowResult, times: Sequence[str]) -> pd.DataFrame:
    """`wide_flows` of several moments in one table; its first column, ``time``, says which."""
    tables = []
    for time in times:
        table = wide_flows(result, time)
        table.insert(0, "time", time)
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


def step_times(time: str, step_minutes: int, n_steps: int) -> list[str]:
    """Local clock time HH:MM of each step of a window; empty for windows of the whole day."""
    if time == ALL_DAY:
        return [""] * n_steps
    return [later_on_the_clock(time, step * step_minutes) for step in range(n_steps)]


def safe_text(text: str) -> str:
    """Text that a spreadsheet shows and does not compute: an apostrophe before = + - @, TAB, CR."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _in_one_field(text: str) -> str:
    """The same, which stays in its field: for what ends a line at CR, one that is not quoted."""
    return safe_text(text).replace("\r\n", "\n").replace("\r", "\n")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8: text is made safe, numbers have ten digits, nan is empty."""
    safe = frame.copy(deep=False)
    # By place: cells may be called like each other, or like a column of ours.
    for at in range(frame.shape[1]):
        if not pd.api.types.is_numeric_dtype(frame.iloc[:, at]):
            safe.isetitem(at, frame.iloc[:, at].map(_in_one_field).to_numpy())
    safe.columns = pd.Index([_in_one_field(str(name)) for name in frame.columns])
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
