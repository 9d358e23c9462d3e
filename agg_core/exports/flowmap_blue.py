"""Flows as the three sheets that flowmap.blue reads: locations, flows and properties.

The columns are those that its page "How to make a flow map" names; the form of ``time`` and the
names of the properties are those that its source accepts (github.com/FlowmapBlue/FlowmapBlue,
core/time.ts and core/types.ts).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from agg_core.exports.tables import (
    csv_bytes,
    is_drawable,
    left_out,
    zip_bytes,
)
from agg_core.study.result import FlowResult

__all__ = ["ANY_DAY", "flowmap_blue"]

ANY_DAY = "2000-01-01"
"""flowmap.blue knows no time of day without a date; this one stands for every day, but where
flows are of one chosen day."""


def flowmap_blue(
    result: FlowResult, times: Sequence[str], source: str = "estimate", title: str = ""
) -> bytes:
    """A zip of locations.csv, flows.csv and properties.csv; several times add ``time``.

    Flows are people per step above 0 between two cells. People who stay and flows from or to
    the outside, which has no place, are counted in the description.
    """
    grid, date = result.states.placed_grid, _date(result, source) or ANY_DAY
    tables = pd.concat([result.table(time, source).assign(time=f"{date} {time}") for time in times])
    drawn = tables.loc[is_drawable(tables, grid.n_cells) & (tables["count"] > 0)]
    columns = ["origin", "dest", "count", *(["time"] if len(times) > 1 else [])]
    locations = pd.DataFrame(
        {
            "id": np.arange(grid.n_cells),
            "name": result.states.cells,
            "lat": grid.centroids[:, 1].round(6),
            "lon": grid.centroids[:, 0].round(6),
        }
    )
    properties = pd.DataFrame(
        {
            "property": ["title", "description"],
            "value": [
                title or "Population flows",
                _description(result, times, source, left_out(tables, grid.n_cells)),
            ],
        }
    )
    return zip_bytes(
        {
            "locations.csv": csv_bytes(locations),
            "flows.csv": csv_bytes(drawn[columns]),
            "properties.csv": csv_bytes(properties),
        }
    )


def _description(result: FlowResult, times: Sequence[str], source: str, not_in_it: str) -> str:
    what = f"People per {result.step_name}"
    whence = result.source_words(source)
    limit = f" {result.limit_words}" if result.limit_words else ""
    if len(times) == 1:
        return f"{what}, {whence}, {times[0]}. Not in it: {not_in_it}.{limit}"
    any_day = "" if _date(result, source) else f"; the date {ANY_DAY} stands for any day"
    return (
        f"{what} at {len(times)} times of day, {whence}. Times are local{any_day}. Not in it, over "
        f"all times: {not_in_it}.{limit}"
    )


def _date(result: FlowResult, source: str) -> str | None:
    """The one day that flows are of, if there is one."""
    one = len(result.chosen_days) == 1 and source in result.sources_of_days
    return result.chosen_days[0] if one else None
