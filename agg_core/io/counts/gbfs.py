"""Snapshots of stations (GBFS station_status): how many vehicles stand at each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from agg_core.base.errors import InputError
from agg_core.io.contents import Data
from agg_core.io.formats.json_text import as_number, as_text, head_text, json_pieces

__all__ = ["Snapshots", "recognises_gbfs"]

_COUNTS = ("num_bikes_available", "num_vehicles_available")
_MARKS = ('"stations"', '"station_id"')
MOST_ROWS = 20_000_000
EARLIEST_S, LATEST_S = 1e8, 7e9
"""Unix times from 1973 to 2191."""


def recognises_gbfs(head: bytes) -> bool:
    """Whether a file that begins so is a feed of stations, or several of them."""
    text = head_text(head)
    return any(mark in text for mark in _MARKS) and ('"data"' in text or '"last_updated"' in text)


class Snapshots:
    """Feeds gathered one by one: counts of stations at a time, and where stations lie."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[float, float]] = {}
        self.n_documents = 0
        self._times: list[Any] = []
        self._stations: list[str] = []
        self._counts: list[float] = []

    def take(self, data: Data, name: str) -> None:
        """All feeds of a file.

        Raises
        ------
        InputError
            If it is no JSON, or holds no stations.
        """
        n_before = self.n_documents
        for key, document in json_pieces(data, name):
            if key is None and document == []:
                continue
            stations = _stations_of(document)
            if stations is not None:
                self.n_documents += 1
                self._add(document, stations)
        if self.n_documents == n_before:
            raise InputError(
                f"{name} is JSON without a list of stations; choose another file.",
                code="no-station-list",
            )
        if len(self._counts) > MOST_ROWS:
            raise InputError(
                f"The snapshots hold more than {MOST_ROWS:,} rows; give fewer.",
                code="too-many-rows",
            )

    def _add(self, document: Mapping[str, Any], stations: list[Any]) -> None:
        updated = document.get("last_updated")
        for station in stations:
            if not isinstance(station, dict):
                continue
            station_id = as_text(station.get("station_id")) or ""
            lon, lat = as_number(station.get("lon")), as_number(station.get("lat"))
            if station_id and abs(lon) <= 180 and abs(lat) <= 90 and (lon or lat):
                self.places[station_id] = (lon, lat)
            count = next((station[key] for key in _COUNTS if key in station), None)
            if count is not None:
                self._times.append(_instant(updated, station.get("last_reported")))
                self._stations.append(station_id)
                self._counts.append(as_number(count))

    def to_frame(self) -> pd.DataFrame:
        """A row per snapshot and station: last_updated (UTC), station_id, num_bikes_available.

        Raises
        ------
        InputError
            If no feed tells how many vehicles there are.
        """
        if not self._counts:
            raise InputError(
                "These feeds tell where stations are, not how many vehicles stand there; "
                "give snapshots of station_status too.",
                code="no-station-counts",
            )
        return pd.DataFrame(
            {
                "last_updated": pd.DatetimeIndex(self._times).tz_localize("UTC"),
                "station_id": pd.Series(self._stations, dtype="str"),
                "num_bikes_available": self._counts,
            }
        )


def _stations_of(document: Any) -> list[Any] | None:
    if not isinstance(document, dict):
        return None
    data = document.get("data", document)
    stations = data.get("stations") if isinstance(data, dict) else None
    return stations if isinstance(stations, list) else None


def _instant(updated: Any, reported: Any) -> Any:
    """When a feed was written, else when the station reported; NaT if neither is a time."""
    for value in (updated, reported):
        number = as_number(value)
        if EARLIEST_S < number < LATEST_S:
            return pd.Timestamp(number, unit="s").as_unit("us")
        if isinstance(value, str):
            return _iso(value)
    return pd.NaT


def _iso(text: str) -> Any:
    """A time as text, of which one without an offset is UTC; NaT if it is none."""
    try:
        found = pd.Timestamp(text)
        return (found.tz_convert("UTC").tz_localize(None) if found.tzinfo else found).as_unit("us")
    except (ValueError, OverflowError):
        return pd.NaT
