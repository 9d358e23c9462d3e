"""Journeys between places that are named by a code only, and the table that says where those lie.

Laid out as the departures of the US Bureau of Transportation Statistics: a row a flight, clock
times hhmm of each airport, delays in minutes; an aircraft is followed by its tail number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.clock import check_zone, to_utc
from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.guess.columns import ROLES, plain_name, position_named
from agg_core.io.layouts import Made, derived, in_turn, places_of
from agg_core.io.source import RawSource
from agg_core.io.texts import as_text, to_float

__all__ = ["PlaceTable", "are_flights", "flights", "place_table", "with_places"]

FloatArray = npt.NDArray[np.float64]
TimeArray = npt.NDArray[np.datetime64]

_COLUMNS = (
    *("tailnum", "origin", "dest", "year", "month", "day"),
    *("scheddeptime", "depdelay", "schedarrtime", "arrdelay", "airtime"),
)
_CODES = ("faa", "iata", "code", "airport", "placeid", "stationid")
_ZONES = ("tzone", "timezone", "tzname")
DAY_MIN = 24 * 60


@dataclass(frozen=True)
class PlaceTable:
    """Where each code lies, in degrees, and the zone of its clock where the table says so."""

    places: Mapping[str, tuple[float, float]]
    zones: Mapping[str, str]


def place_table(source: RawSource) -> PlaceTable | None:
    """The table of places that a source is: a code, a longitude and a latitude, and no time."""
    code, lon, lat = (
        position_named(source, names) for names in (_CODES, ROLES["lon"], ROLES["lat"])
    )
    if code is None or lon is None or lat is None or position_named(source, ("time",)) is not None:
        return None
    places, zones = places_of(source, code, lon, lat), dict[str, str]()
    zone = position_named(source, _ZONES)
    if zone is not None:
        for rows in source.batches([code, zone]):
            codes, named = (as_text(rows.columns[at]).to_pylist() for at in (code, zone))
            zones |= {key: name for key, name in zip(codes, named, strict=True) if _is_zone(name)}
    return PlaceTable(places, zones) if places else None


def _is_zone(name: str) -> bool:
    try:
        return bool(check_zone(name))
    except InputError:
        return False


def are_flights(source: RawSource) -> bool:
    """Whether a source holds flights between airports by their codes."""
    return source.has_header and set(_COLUMNS) <= {plain_name(name) for name in source.names}


def with_places(source: RawSource, table: PlaceTable | None, name: str) -> RawSource:
    """Flights by the table of places that came with them.

    Raises
    ------
    InputError
        If there is none.
    """
    if table is None:
        raise InputError(
            f"{name} names places by their codes only (columns origin and dest); give the table "
            "that says where they lie (a code, a longitude, a latitude) together with it.",
            code="no-place-table",
        )
    return flights(source, table)


def flights(source: RawSource, table: PlaceTable) -> RawSource:
    """Two fixes of the aircraft for each flight: where and when it left, and came down.

    Departure is the scheduled time with its delay; arrival likewise, on the day that fits the time
    in the air. A flight that was cancelled has no time, an airport that the table lacks no place.
    """
    names = [plain_name(name) for name in source.names]
    at = {name: names.index(name) for name in _COLUMNS}

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        n_rows = len(columns[at["tailnum"]])
        number = {name: to_float(columns[at[name]]) for name in _COLUMNS[3:]}
        ends = [_codes(columns[at[name]]) for name in ("origin", "dest")]
        date = _dates(number["year"], number["month"], number["day"])
        left = _instants(date, number["scheddeptime"], number["depdelay"], ends[0], table)
        came = _instants(date, number["schedarrtime"], number["arrdelay"], ends[1], table)
        came = _on_the_right_day(left, came, number["airtime"])
        order, parents = in_turn(n_rows)
        codes = np.concatenate(ends)[order]
        places = np.array([table.places.get(code, (np.nan, np.nan)) for code in codes]).reshape(
            -1, 2
        )
        time = pa.array(np.concatenate([left, came])[order]).cast(pa.timestamp("us", "UTC"))
        made = (
            time,
            *(pa.array(axis, from_pandas=True) for axis in places.T),
            pa.array(codes.astype(str), pa.string()),
        )
        user_id = columns[at["tailnum"]].take(pa.array(parents))
        return [user_id, *(pa.chunked_array([array]) for array in made)], parents

    guesses = {
        **source.guesses,
        "layout": Guess("flights of the US Bureau of Transportation Statistics"),
        "trips": Guess("two fixes each, where it begins and where it ends"),
        "places": Guess(f"{len(table.places):,} codes of the table of places"),
    }
    made = derived(
        source, ("user_id", "time", "lon", "lat", "code"), list(at.values()), make, guesses=guesses
    )
    return replace(made, timezone="UTC")


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    return np.asarray(pc.fill_null(column.cast(pa.string()), "").to_numpy(), dtype=object)


def _dates(year: FloatArray, month: FloatArray, day: FloatArray) -> TimeArray:
    months = np.nan_to_num((year - 1970) * 12 + month - 1).astype(np.int64)
    dates = months.astype("datetime64[M]").astype("datetime64[D]") + np.nan_to_num(day - 1).astype(
        "timedelta64[D]"
    )
    dates[np.isnan(year + month + day)] = np.datetime64("NaT")
    return np.asarray(dates.astype("datetime64[us]"))


def _instants(
    date: TimeArray,
    clock: FloatArray,
    delay_min: FloatArray,
    codes: npt.NDArray[np.object_],
    table: PlaceTable,
) -> TimeArray:
    """UTC of a clock time hhmm at each place, with its delay; NaT where either is unknown."""
    minutes = clock // 100 * 60 + clock % 100 + delay_min
    known = np.isfinite(minutes)
    local = date + np.where(known, minutes, 0).astype("timedelta64[m]")
    local[~known] = np.datetime64("NaT")
    utc = np.full(len(local), np.datetime64("NaT", "us"))
    zones = np.array([table.zones.get(code, "UTC") for code in codes], dtype=object)
    for zone in set(zones.tolist()):
        there = zones == zone
        utc[there] = to_utc(local[there], zone).utc
    return utc


def _on_the_right_day(left: TimeArray, came: TimeArray, air_min: FloatArray) -> TimeArray:
    """Arrivals moved by whole days so that the flight lasts about as long as it was in the air."""
    lasted = (came - left) / np.timedelta64(1, "m")
    days = np.round((np.where(np.isfinite(air_min), air_min, DAY_MIN / 4) - lasted) / DAY_MIN)
    return np.asarray(came + np.nan_to_num(days).astype("timedelta64[D]").astype("timedelta64[us]"))
