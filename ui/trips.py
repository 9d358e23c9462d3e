"""Trips of nobody on the page Data: what was counted, where, and what it is good for."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from agg_core.plotting.maps import fixes_deck
from agg_core.tables.table_report import TableReport
from ui import reading
from ui.loading import TRIPS
from ui.scene import map_size_px, scene
from ui.shell import plain
from ui.workspace import workspace

__all__ = ["counted_trips"]

ENDS = ("origin", "dest")
SHOWN_ROWS = 1_000


def counted_trips() -> None:
    """The trips of the last file as a table of origins and dests, if it held trips of nobody."""
    held: tuple[str, pd.DataFrame, TableReport] | None = workspace().held.get(TRIPS)
    if held is None:
        return
    title, table, report = held
    st.header(f"Trips in {plain(title)}", anchor=False)
    st.caption(
        "Single trips, of which nobody says who made them: they are counted by hour, origin and "
        "dest. Learned flows can be held against this table on the page Evidence."
    )
    tiles = st.columns(4)
    tiles[0].metric("Trips", f"{report.rows_kept:,}", help=f"of {report.rows_read:,} rows read")
    tiles[1].metric("Rows set aside", f"{report.rows_read - report.rows_kept:,}")
    tiles[2].metric("Pairs of places", f"{report.figures.get('pairs', 0):,}")
    tiles[3].metric("Places", f"{report.figures.get('places', 0):,}")
    reading.set_aside(report)
    reading.doubts(report)
    reading.details(report)
    st.dataframe(table.head(SHOWN_ROWS), hide_index=True, width="stretch", key="trips.table")
    st.download_button(
        "Download the table", lambda: table.to_csv(index=False), "trips.csv", "text/csv",
        key="trips.download", icon=":material/download:",
    )  # fmt: skip
    _map(table)


def _map(table: pd.DataFrame) -> None:
    """Where trips begin and end, if the file says it."""
    if "origin_lon" not in table:
        return
    ends = (
        pd.concat([table[f"{end}_{axis}"] for end in ENDS], ignore_index=True)
        for axis in ("lon", "lat")
    )
    places = pd.concat(ends, axis=1).dropna().to_numpy()
    lon, lat = places.T
    if not len(lon):
        return
    margin = 0.01
    box = (
        float(lon.min()) - margin, float(lat.min()) - margin, float(lon.max()) + margin,
        float(lat.max()) + margin,
    )  # fmt: skip
    size = map_size_px(box)
    st.pydeck_chart(
        fixes_deck(lon, lat, box, scene=scene(box, size)), height=size[1], key="trips.map",
        alt="Where trips begin and end",
    )  # fmt: skip
    st.caption("Each point is an end of trips of one hour and pair of places.")
