"""Tables that name places by a key, and the table that says where these lie: towers, stations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.columns import ROLES, ColumnFinder, find_columns, plain_name
from agg_core.io.guess.ends import end_columns, words_of
from agg_core.io.guess.times import looks_like_time
from agg_core.io.layouts import STATIONS, Made, Place, derived, places_of, trip_ends
from agg_core.io.source import RawSource, show_names
from agg_core.io.texts import as_text

__all__ = ["PLACE_KEYS", "is_place_table", "lacks_places", "names_places", "with_place_table"]

PLACE_KEYS = frozenset((
    *("cell", "cellid", "celltower", "station", "stationid", "stationname", "tower", "towerid"),
    *("bts", "btsid", "antenna", "antennaid", "poi", "poiid", "lac", "cid", "enodeb", "beacon"),
    *("beaconid", "ap", "apid", "apname", "placekey", "stop", "stopid", "stopname", "siteid"),
    *("site", "cellsite", "cellsiteid", "locationid", "locationcode", "gate", "gateid", "zoneid"),
    *("zone", "venueid", "venue", "roomid", "room", "sensorid", "sensor", "placeid", "areaid"),
    *("areacode", "regionid", "stationcode", "stopcode", "readerid", "terminalid", "antennano"),
    *("accesspoint", "accesspointid", "towercode", "cellcode", "sitecode", "locality"),
))  # fmt: skip
"""Names of columns that name a place by a key, as `plain_name` writes them."""
LEAST_FOUND = 0.5
"""Share of keys of the first rows that a column of places must hold."""
_TIMES = frozenset((*ROLES["time"], *ROLES["date"])) - {"t", "start", "when"}


def is_place_table(source: RawSource) -> bool:
    """Whether rows say where something lies, and nothing of a time."""
    if not source.has_header or _TIMES & {plain_name(name) for name in source.names}:
        return False
    if any(looks_like_time(value) for row in source.sample[:1] for value in row):
        return False
    found = ColumnFinder(source, ROLES)
    found.look_for("lon", "lat")
    return {"lon", "lat"} <= found.positions.keys() and len(source.names) > 2


def lacks_places(source: RawSource, columns: Mapping[str, str | int]) -> bool:
    """Whether rows have a time, and perhaps a person, and only a key of their place, or none."""
    if not source.has_header:
        return False
    ends = trip_ends(source)
    if ends is not None:
        return any(ends[f"{end}_{axis}"] is None for end in ("origin", "dest")
                   for axis in ("lon", "lat"))  # fmt: skip
    try:
        find_columns(source, columns)
    except InputError as fault:
        found = ColumnFinder(source, ROLES)
        found.look_for("time", "date", "lon", "lat")
        timed = {"time", "date"} & found.positions.keys()
        placed = {"lon", "lat"} & found.positions.keys()
        return fault.code == "column-not-found" and bool(timed) and not placed
    return False


def names_places(source: RawSource) -> bool:
    """Whether a column is called as keys of places are, and none speaks of degrees."""
    words = {word for name in source.names for word in words_of(name)}
    if words & {"lat", "lon", "lng", "latitude", "longitude", "x", "y"}:
        return False
    return bool(PLACE_KEYS & {plain_name(name) for name in source.names})


def with_place_table(
    source: RawSource, places: RawSource, name: str, key: str | None = None
) -> RawSource:
    """The source with the places that its keys name: columns lon and lat.

    Of trips with the places of both ends: origin_lon, origin_lat, dest_lon, dest_lat. ``key`` is
    the column of keys of the table of places, or "COLUMN=PLACES COLUMN" where they are called
    differently; without it the columns are those whose values meet. A key that the table lacks has
    no place. ``name`` is what the table of places is called.

    Raises
    ------
    InputError
        If no columns meet, or several do.
    """
    ends = _ends_of(source)
    found = ColumnFinder(places, ROLES)
    found.look_for("lon", "lat")
    axes = found.positions["lon"], found.positions["lat"]
    rest = [at for at in range(len(places.names)) if at not in axes]
    own, other = _keys(source, places, rest, ends, name, key)
    table = places_of(places, other, *axes)
    at = ends or (own,)
    labels = [("origin_lon", "origin_lat"), ("dest_lon", "dest_lat")] if ends else [("lon", "lat")]
    whole = list(range(len(source.names)))

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        made = [columns[i] for i in whole]
        for position in at:
            made += _looked_up(columns[position], table)
        return made, None

    called = f"{printable(source.names[at[0]])} = {printable(places.names[other])} of {name}"
    guesses = {**source.guesses, "places": Guess(called, (), f"{len(table):,} places",
                                                 "places_key")}  # fmt: skip
    names = (*source.names, *(axis for pair in labels for axis in pair))
    joined = derived(source, names, whole, make, guesses=guesses)
    return replace(joined, timezone=source.timezone)


def _ends_of(source: RawSource) -> tuple[int, int] | None:
    """Positions of both ends of trips, by name."""
    ends = trip_ends(source)
    if ends is not None and ends["origin"] is not None and ends["dest"] is not None:
        return ends["origin"], ends["dest"]
    found = ColumnFinder(source, dict(zip(("origin", "dest"), STATIONS, strict=True)))
    found.look_for("origin", "dest")
    if {"origin", "dest"} <= found.positions.keys():
        return found.positions["origin"], found.positions["dest"]
    return end_columns(source.names, source.sample)


def _keys(
    source: RawSource, places: RawSource, rest: Sequence[int], ends: tuple[int, int] | None,
    name: str, key: str | None,
) -> tuple[int, int]:  # fmt: skip
    """Positions of the key in the source and in the table of places."""
    own_name, _, other_name = (key or "").partition("=")
    other_name = other_name or own_name
    own = list(ends[:1]) if ends else list(range(len(source.names)))
    if key:
        others = [at for at in rest if plain_name(places.names[at]) == plain_name(other_name)]
        named = [at for at in own if plain_name(source.names[at]) == plain_name(own_name)]
        own = named or own
        if not others:
            raise InputError(
                f"No column of {name} is called {printable(other_name)!r}; it has: "
                f"{show_names(places)}.",
                "--places-key NAME",
                code="unknown-column",
            )
    else:
        others = list(rest)
    keys = {at: _values(places, at) for at in others}
    scored = []
    for a in own:
        values = [row[a].strip() for row in source.sample if a < len(row) and row[a].strip()]
        for b, known in keys.items():
            share = sum(value in known for value in values) / max(len(values), 1)
            alike = plain_name(source.names[a]) == plain_name(places.names[b])
            if share >= LEAST_FOUND:
                scored.append((share, alike, -a, -b))
    if not scored:
        raise InputError(
            f"No column of the table holds keys of the places of {name}; say which column of both "
            "is the key.",
            "--places-key COLUMN=PLACES_COLUMN",
            code="places-key-unclear",
        )
    scored.sort(reverse=True)
    best = [pair for pair in scored if pair[:2] == scored[0][:2]]
    if len({pair[2] for pair in best}) > 1:
        proposed = ", ".join(printable(source.names[-pair[2]]) for pair in best)
        raise InputError(
            f"Several columns hold keys of the places of {name} ({proposed}); say which names the "
            "place of a row.",
            "--places-key COLUMN=PLACES_COLUMN",
            code="places-key-unclear",
        )
    return -best[0][2], -best[0][3]


def _values(source: RawSource, at: int) -> set[str]:
    found: set[str] = set()
    for rows in source.batches([at]):
        if rows.columns:
            found |= set(as_text(rows.columns[at]).unique().to_pylist())
    return found - {""}


def _looked_up(column: pa.ChunkedArray, table: Mapping[str, Place]) -> list[pa.ChunkedArray]:
    """Longitude and latitude of each key, null where it is unknown."""
    keys = as_text(column).dictionary_encode().combine_chunks()
    if isinstance(keys, pa.ChunkedArray):
        keys = (
            keys.chunk(0)
            if keys.num_chunks
            else pa.array([], pa.large_string()).dictionary_encode()
        )
    known = [table.get(key, (np.nan, np.nan)) for key in keys.dictionary.to_pylist()]
    axes = np.array(known, dtype=float).reshape(-1, 2).T
    return [
        pa.chunked_array([pc.take(pa.array(axis, from_pandas=True), keys.indices)]) for axis in axes
    ]
