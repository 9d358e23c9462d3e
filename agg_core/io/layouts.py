"""Public data sets whose files nobody should have to describe: told by their columns and values.

A layout turns an opened source into one with the columns user_id, time, lon and lat, by calling
its columns so, or by working them out: a trip becomes two fixes, a line of points as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.clock import offset_zone
from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.choices import Choices
from agg_core.io.guess.columns import (
    ROLES,
    ColumnFinder,
    is_number,
    number_of,
    plain_name,
    position_named,
)
from agg_core.io.guess.times import looks_like_time
from agg_core.io.source import RawRows, RawSource
from agg_core.io.texts import as_text, to_float, written
from agg_core.space.degrees import are_known

__all__ = [
    "ENDS",
    "LAYOUTS",
    "NO_LAYOUT",
    "RIDERS",
    "STATIONS",
    "Layout",
    "Made",
    "derived",
    "in_turn",
    "laid_out",
    "places_of",
    "trip_ends",
]

NO_LAYOUT = "none"
"""The choice of no layout."""

Bounds = tuple[float, float, float, float]
Place = tuple[float, float]
IntArray = npt.NDArray[np.int64]
Made = tuple[Sequence[pa.ChunkedArray], IntArray | None]
"""Columns, and the row that each row of theirs comes from (None: one row each)."""

JAPAN: Bounds = (122.0, 20.0, 154.0, 46.0)
BEIJING: Bounds = (115.0, 39.0, 118.0, 42.0)

YJMOB_CELLS = 200
YJMOB_DEGREES = 500 / 111_320
YJMOB_START_US = 946_684_800 * 10**6
PORTO_STEP_S = 15


@dataclass(frozen=True)
class Layout:
    """A public data set: how its tables are recognised, and what makes them fixes."""

    title: str
    fits: Callable[[RawSource], bool]
    apply: Callable[[RawSource, Choices], RawSource]


def laid_out(source: RawSource, choices: Choices, name: str) -> RawSource:
    """The source as its layout makes it; as it is where no layout fits, or columns are stated.

    Raises
    ------
    InputError
        If a stated layout is unknown or does not fit.
    """
    if choices.layout is not None and choices.layout not in (NO_LAYOUT, *LAYOUTS):
        raise InputError(
            f"No layout is called {choices.layout!r}; there are {', '.join(LAYOUTS)}, {NO_LAYOUT}.",
            code="unknown-layout",
        )
    if choices.layout == NO_LAYOUT or (choices.columns and choices.layout is None):
        return source
    keys = [choices.layout] if choices.layout else list(LAYOUTS)
    for key in keys:
        layout = LAYOUTS[key]
        if layout.fits(source):
            made = layout.apply(source, choices)
            guess = Guess(layout.title, (NO_LAYOUT,), option="layout")
            return replace(made, guesses={"layout": guess, **made.guesses})
    if choices.layout:
        raise InputError(
            f"{name} is not laid out as {LAYOUTS[choices.layout].title}; leave the layout open.",
            code="layout-mismatch",
        )
    return source


def derived(
    source: RawSource,
    names: Sequence[str],
    inputs: Sequence[int],
    make: Callable[[Mapping[int, pa.ChunkedArray]], Made],
    **changed: object,
) -> RawSource:
    """A source whose columns are made from the columns ``inputs`` of another, batch by batch."""

    def stream(positions: Sequence[int]) -> Iterator[RawRows]:
        made_before = read_before = 0
        for rows in source.batches(inputs):
            if not rows.columns:  # rows that were left out, and counted
                yield rows
                continue
            columns, parents = make(rows.columns)
            n_rows = rows.n_rows if parents is None else len(parents)
            yield replace(
                rows, columns={at: columns[at] for at in positions}, n_rows=n_rows,
                line_numbers=_lines_of_parents(rows, read_before, parents, made_before),
            )  # fmt: skip
            made_before += n_rows
            read_before += rows.n_rows

    first = [row for row in source.sample[:50] if len(row) > max(inputs, default=0)]
    columns, _ = make(
        {i: pa.chunked_array([[row[i] for row in first]], pa.string()) for i in inputs}
    )
    words = [[written(value) for value in column] for column in columns]
    return replace(
        source, names=tuple(names), has_header=True, load=None, stream=stream, passing_over=None,
        sample=[list(row) for row in zip(*words, strict=True)],
        **changed,  # type: ignore[arg-type]  # fields of RawSource
    )  # fmt: skip


def _lines_of_parents(
    rows: RawRows, read_before: int, parents: IntArray | None, made_before: int
) -> Callable[[IntArray], IntArray]:
    if parents is None:
        return rows.line_numbers
    return lambda made: rows.line_numbers(parents[made - made_before] + read_before)


# ------------------------------------------------------------------ columns called by their role


def _called(
    source: RawSource, timezone: str | None, guesses: Mapping[str, Guess] | None = None, **at: int
) -> RawSource:
    """The source with the columns at these positions called by their role."""
    names = list(source.names) if source.has_header else [""] * len(source.names)
    roles = set(at)
    names = ["" if plain_name(name) in roles else name for name in names]
    for role, position in at.items():
        names[position] = role
    return replace(
        source, names=tuple(names), has_header=True, timezone=source.timezone or timezone,
        guesses={**source.guesses, **(guesses or {})},
    )  # fmt: skip


def _rows_of(source: RawSource) -> list[Sequence[str]]:
    return [row for row in source.sample[:50] if len(row) == len(source.names)]


def _in(row: Sequence[str], lon: int, lat: int, bounds: Bounds) -> bool:
    x, y = number_of(row[lon]), number_of(row[lat])
    west, south, east, north = bounds
    return x is not None and y is not None and west <= x <= east and south <= y <= north


def _has_values(
    source: RawSource, widths: Sequence[int], time: int, lon: int, lat: int, bounds: Bounds
) -> bool:
    """Whether most sample rows of such a width have a time and a place within bounds there."""
    rows = _rows_of(source)
    if len(source.names) not in widths or not rows:
        return False
    hits = sum(looks_like_time(row[time]) and _in(row, lon, lat, bounds) for row in rows)
    return 2 * hits > len(rows)


def _agrees(source: RawSource, at: Mapping[str, int]) -> bool:
    """Whether the names of the columns, if there are any, say what a layout says of them.

    Names that can be read win: a layout that is told by its shape only calls for columns at which a
    name says so, of the place at least, and takes no column that a name gives another role.
    """
    if not source.has_header:
        return True
    found = ColumnFinder(source, ROLES)
    found.look_for("user_id", "time", "lon", "lat")
    if found.positions.get("lon") != at["lon"] or found.positions.get("lat") != at["lat"]:
        return False
    return all(found.positions.get(role, position) == position for role, position in at.items())


def _by_position(
    title: str, widths: Sequence[int], bounds: Bounds, timezone: str, *,
    marked: Callable[[RawSource], bool] | None = None,
    apply: Callable[[RawSource], RawSource] = lambda called: called, **at: int,
) -> Layout:  # fmt: skip
    """A layout told by its number of columns, and by times and places within bounds.

    A table with names of columns is one of it only where it is ``marked`` by its values besides,
    and its names agree; ``apply`` changes what is called by its role further.
    """
    time, lon, lat = at["time"], at["lon"], at["lat"]
    return Layout(
        title,
        lambda source: (
            (not source.has_header if marked is None else marked(source))
            and _has_values(source, widths, time, lon, lat, bounds)
            and _agrees(source, at)
        ),
        lambda source, _: apply(_called(source, timezone, None, **at)),
    )


def _with_weights(source: RawSource) -> RawSource:
    if len(source.names) < 6:
        return source
    weights = Guess("every row is one person", (), "the magnification in column 5 is not used")
    return replace(source, guesses={**source.guesses, "weights": weights})


def _marked_people_flow(source: RawSource) -> bool:
    """Whether there are no names, or the column of states holds its two words."""
    if not source.has_header:
        return True
    rows = [row for row in source.sample[:50] if len(row) > 7]
    return bool(rows) and all(row[7].strip().upper() in ("STAY", "MOVE") for row in rows)


def _is_foursquare(source: RawSource) -> bool:
    at = {"user_id": 0, "lat": 4, "lon": 5, "time": 7}
    if not _has_values(source, (8,), time=7, lon=5, lat=4, bounds=(-180, -90, 180, 90)):
        return False
    if source.has_header and "offset" not in plain_name(source.names[6]):
        return False
    return _agrees(source, at) and all(
        _is_offset(row[6]) and (source.has_header or row[7].strip()[:1].isalpha())
        for row in _rows_of(source)
    )


def _is_offset(text: str) -> bool:
    """Whether a number is minutes from UTC that a clock can have."""
    minutes = number_of(text)
    return minutes is not None and abs(minutes) <= 14 * 60 and minutes % 15 == 0


def _foursquare(source: RawSource, _: Choices) -> RawSource:
    offsets = [number_of(row[6]) for row in _rows_of(source)]
    minutes = max(set(offsets), key=offsets.count) or 0
    zone = offset_zone(int(minutes)) if abs(minutes) < 24 * 60 else None
    return _called(source, zone, user_id=0, lat=4, lon=5, time=7)


def _is_geolife(source: RawSource) -> bool:
    rows = _rows_of(source)
    return (
        not source.has_header
        and len(source.names) == 7
        and bool(rows)
        and all(looks_like_time(f"{row[5]} {row[6]}") and _is_degrees(row) for row in rows)
    )


def _is_degrees(row: Sequence[str]) -> bool:
    return _in(row, 1, 0, (-180, -90, 180, 90)) and is_number(row[4])


def _geolife(source: RawSource, _: Choices) -> RawSource:
    zone = Guess("UTC", (), "Geolife's clock is GMT")
    called = _called(source, "UTC", {"time zone": zone}, lat=0, lon=1, date=5, time=6)
    return replace(called, is_of_one=True)


# -------------------------------------------------------------------------- columns worked out


def places_of(source: RawSource, code: int, lon: int, lat: int) -> dict[str, Place]:
    """Longitude and latitude of each code or name of a table, by the positions of its columns."""
    found: dict[str, Place] = {}
    for rows in source.batches([code, lon, lat]):
        names = as_text(rows.columns[code]).to_pylist()
        x, y = (to_float(rows.columns[axis]) for axis in (lon, lat))
        good = are_known(np.column_stack([x, y])).tolist()
        for name, here, *place in zip(names, good, x.tolist(), y.tolist(), strict=True):
            if name and here:
                found.setdefault(name, (place[0], place[1]))
    return found


def _is_yjmob(source: RawSource) -> bool:
    names = [plain_name(name) for name in source.names]
    return source.has_header and names[:5] == ["uid", "d", "t", "x", "y"]


def _yjmob(source: RawSource, choices: Choices) -> RawSource:
    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        day, slot, x, y = (to_float(columns[i]) for i in range(1, 5))
        hidden = (x < 1) | (x > YJMOB_CELLS) | (y < 1) | (y > YJMOB_CELLS)
        if choices.flip_y:
            y = YJMOB_CELLS + 1 - y
        us = YJMOB_START_US + np.nan_to_num(day * 48 + slot) * 1800 * 10**6
        no_time = np.isnan(day) | np.isnan(slot)
        degrees = [
            pa.array((axis - 0.5) * YJMOB_DEGREES, mask=hidden | np.isnan(axis)) for axis in (x, y)
        ]
        time = pa.array(us.astype(np.int64), mask=no_time).cast(pa.timestamp("us", "UTC"))
        return [columns[0], *(pa.chunked_array([array]) for array in (time, *degrees))], None

    ways = ("from the north", "from the south")
    turned, other = ways if choices.flip_y else ways[::-1]
    guesses = {
        **source.guesses,
        "place": Guess("from 0°, 0°", (), "the city is hidden: its blocks of 500 m begin there"),
        "rows": Guess(turned, (other,), option="flip_y"),
        "dates": Guess("from 2000-01-01", (), "the days are numbered only"),
    }
    return derived(source, ("user_id", "time", "lon", "lat"), range(5), make, guesses=guesses)


def _is_porto(source: RawSource) -> bool:
    names = {plain_name(name) for name in source.names}
    return source.has_header and {"polyline", "timestamp", "tripid"} <= names


def _porto(source: RawSource, _: Choices) -> RawSource:
    at = [
        position_named(source, spellings) or 0
        for spellings in (("taxiid", "tripid"), ("tripid",), ("timestamp",), ("polyline",))
    ]

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        taxi, trip, start, line = (columns[i].combine_chunks() for i in at)
        bare = pc.replace_substring_regex(line, r"[\s]|^\s*\[+|\]+\s*$", "")
        pairs = pc.split_pattern(bare, "],[")
        parents = pc.list_parent_indices(pairs).to_numpy()
        lengths = pc.list_value_length(pairs).to_numpy()
        along = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        axes = pc.extract_regex(pc.list_flatten(pairs), r"^(?P<lon>[^,]+),(?P<lat>[^,]+)$")
        begun = to_float(pa.chunked_array([start]))[parents]
        us = (np.nan_to_num(begun) + PORTO_STEP_S * along) * 10**6
        time = pa.array(us.astype(np.int64), mask=np.isnan(begun)).cast(pa.timestamp("us", "UTC"))
        where = pa.array(parents)
        lon_lat = (pc.struct_field(axes, name) for name in ("lon", "lat"))
        made = (taxi.take(where), trip.take(where), time, *lon_lat)
        return [pa.chunked_array([array]) for array in made], parents

    names = ("user_id", "trip_id", "time", "lon", "lat")
    return derived(source, names, at, make, timezone=source.timezone or "Europe/Lisbon")


ENDS = {
    "time": (
        (
            *("starttime", "startedat", "startdate", "pickupdatetime", "starttimelocal"),
            *("tpeppickupdatetime", "lpeppickupdatetime", "departuretime", "departedat"),
            *("tripstarttimestamp", "tripstarttime", "starttimestamp", "startdatetime"),
            *("pickuptime", "departure", "departuredatetime", "tripstart", "begintime", "begin"),
            *("timestart", "tstart", "checkouttime", "unlocktime", "entrytime", "tapin", "start"),
            *("tapintime", "starttimeutc", "startedatlocal", "出発時刻", "開始時刻", "fechainicio"),
        ),
        (
            *("stoptime", "endedat", "endtime", "enddate", "dropoffdatetime", "endtimelocal"),
            *("tpepdropoffdatetime", "lpepdropoffdatetime", "arrivaltime", "arrivedat"),
            *("tripendtimestamp", "tripendtime", "endtimestamp", "enddatetime", "finishedat"),
            *("dropofftime", "arrival", "arrivaldatetime", "tripend", "timeend", "tend", "end"),
            *("stoppedat", "locktime", "exittime", "tapout", "tapouttime", "endtimeutc", "stop"),
            *("endedatlocal", "到着時刻", "終了時刻", "fechafin", "finishtime", "finish"),
        ),
    ),
    "lon": (
        (
            *("startstationlongitude", "startlng", "startlon", "pickuplongitude"),
            *("startlongitude", "fromlon", "fromlng", "fromlongitude", "originlon", "originlng"),
            *("originlongitude", "olon", "pickupcentroidlongitude", "startx", "originx", "ox"),
            *("pickuplon", "pickuplng", "departurelon", "fromstationlongitude", "lonstart"),
            *("slon", "lon1", "x1", "startlocationlongitude", "startcentroidlongitude"),
        ),
        (
            *("endstationlongitude", "endlng", "endlon", "dropofflongitude", "endlongitude"),
            *("tolon", "tolng", "tolongitude", "destlon", "destlng", "destlongitude", "dlon"),
            *("destinationlon", "destinationlng", "destinationlongitude", "endx", "destx", "dx"),
            *("dropoffcentroidlongitude", "dropofflon", "dropofflng", "arrivallon", "lonend"),
            *("tostationlongitude", "elon", "lon2", "x2", "endlocationlongitude"),
            *("endcentroidlongitude", "stoplongitude"),
        ),
    ),
    "lat": (
        (
            *("startstationlatitude", "startlat", "pickuplatitude", "startlatitude"),
            *("fromlat", "fromlatitude", "originlat", "originlatitude", "olat", "starty"),
            *("pickupcentroidlatitude", "originy", "oy", "pickuplat", "departurelat"),
            *("fromstationlatitude", "latstart", "slat", "lat1", "y1", "startlocationlatitude"),
            *("startcentroidlatitude",),
        ),
        (
            *("endstationlatitude", "endlat", "dropofflatitude", "endlatitude"),
            *("tolat", "tolatitude", "destlat", "destlatitude", "destinationlat", "dlat", "endy"),
            *("destinationlatitude", "dropoffcentroidlatitude", "desty", "dy", "dropofflat"),
            *("arrivallat", "tostationlatitude", "latend", "elat", "lat2", "y2"),
            *("endlocationlatitude", "endcentroidlatitude", "stoplatitude"),
        ),
    ),
}
"""Spellings of both ends of a trip."""
STATIONS = (
    (
        *("startstationid", "startstationname", "pulocationid", "origin", "startzone"),
        *("fromstationid", "fromstationname", "fromstation", "startstation", "originid"),
        *("originname", "originzone", "origincell", "originstation", "originstationid"),
        *("pickuplocationid", "pickupzone", "pickupcommunityarea", "pickupcensustract"),
        *("startstationnumber", "startterminal", "startnr", "startnode", "from", "fromid"),
        *("fromzone", "fromcell", "source", "orig", "origen", "origine", "departurestation"),
        *("departurestationid", "departureid", "entrystation", "entrystationid", "boardstation"),
        *(
            "startname",
            "startplace",
            "startid",
            "startstationuuid",
            "o",
            "出発地",
            "発地",
            "pickup",
        ),
        *("originairport", "boardingstation", "tapinstation", "start"),
    ),
    (
        *("endstationid", "endstationname", "dolocationid", "dest", "endzone"),
        *("tostationid", "tostationname", "tostation", "endstation", "destid"),
        *("destname", "destzone", "destcell", "deststation", "deststationid", "destination"),
        *("destinationid", "destinationname", "destinationzone", "destinationstation"),
        *("destinationstationid", "dropofflocationid", "dropoffzone", "dropoffcommunityarea"),
        *("dropoffcensustract", "endstationnumber", "endterminal", "endnr", "endnode", "to"),
        *("toid", "tozone", "tocell", "target", "destino", "arrivalstation", "returnstation"),
        *("arrivalstationid", "arrivalid", "exitstation", "exitstationid", "alightstation"),
        *("endname", "endplace", "endid", "endstationuuid", "d", "到着地", "着地", "dropoff"),
        *("destinationairport", "alightingstation", "tapoutstation", "returnstationid", "end"),
        *("stopstation", "stopstationid"),
    ),
)
"""Spellings of the station or zone of both ends."""
RIDERS = (
    *("bikeid", "bikenumber", "vehicleid", "scooterid", "userid", "riderid", "medallion"),
    *("taxiid", "bike", "bikeno", "cardid", "cardno", "cardnumber", "smartcardid", "deviceid"),
    *("passengerid", "personid", "driverid", "hacklicense", "vehicleno", "carid", "memberid"),
    *("subscriberid", "tailnum"),
)
"""Spellings of who, or which vehicle, made a trip."""


def _is_trips(source: RawSource) -> bool:
    """Whether rows are trips: two times, and a position or a zone of both ends."""
    return trip_ends(source) is not None


def trip_ends(source: RawSource) -> dict[str, int | None] | None:
    """Positions of the columns of both ends of trips, None for a table that holds none.

    Roles are start, end (times), origin, dest (stations or zones), and origin_lon, origin_lat,
    dest_lon, dest_lat; a role without a column is None. A trip has two times, or one and a rider,
    and both ends.
    """
    if not source.has_header:
        return None
    at: dict[str, int | None] = {}
    for role, spellings in zip(("start", "end"), ENDS["time"], strict=True):
        at[role] = position_named(source, spellings)
    for axis in ("lon", "lat"):
        for role, spellings in zip(("origin", "dest"), ENDS[axis], strict=True):
            at[f"{role}_{axis}"] = position_named(source, spellings)
    taken = {at["start"], at["end"]}
    for role, spellings in zip(("origin", "dest"), STATIONS, strict=True):
        position = position_named(source, spellings)
        at[role] = None if position in taken else position
    placed = all(at[f"{role}_{axis}"] is not None for role in ("origin", "dest")
                 for axis in ("lon", "lat"))  # fmt: skip
    named = at["origin"] is not None and at["dest"] is not None
    if at["start"] is None or at["end"] is None or not (placed or named):
        return None
    return at


def _trips(source: RawSource, _: Choices) -> RawSource:
    rider = position_named(source, RIDERS)
    axes = [
        position_named(source, spellings) for axis in ("lon", "lat") for spellings in ENDS[axis]
    ]
    if rider is None or None in axes:
        raise InputError(
            "These are trips whose rider or vehicle is not named, or whose ends have no position, "
            "so nobody can be followed from one to the next; count them as an origin-destination "
            "table instead.",
            "python -m agg_core trips FILE",
            code="nameless-trips",
        )
    ends = [[position_named(source, names) or 0 for names in both] for both in ENDS.values()]

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        order, parents = in_turn(len(columns[rider]))
        made = [_both(columns[a], columns[b]).take(pa.array(order)) for a, b in ends]
        return [columns[rider].take(pa.array(parents)), *made], parents

    inputs = [rider, *(position for both in ends for position in both)]
    guesses = {
        **source.guesses,
        "trips": Guess("two fixes each, where it begins and where it ends"),
        "user_id": Guess(source.names[rider], option="column user_id"),
    }
    return derived(source, ("user_id", *ENDS), inputs, make, guesses=guesses)


def _stay_columns(source: RawSource) -> tuple[int, int] | None:
    """Positions of the beginning and the end of stays at one place; None for other tables."""
    if not source.has_header or trip_ends(source) is not None:
        return None
    start, end = (position_named(source, spellings) for spellings in STAYS)
    if start is None or end is None:
        return None
    found = ColumnFinder(source, {"lon": ROLES["lon"], "lat": ROLES["lat"],
                                  "place": ROLES["geometry"] + ROLES["place"]})  # fmt: skip
    found.look_for("lon", "lat", "place")
    placed = {"lon", "lat"} <= found.positions.keys() or "place" in found.positions
    own = position_named(source, ROLES["time"])
    return (start, end) if placed and own in (None, start, end) else None


def _stays(source: RawSource, _: Choices) -> RawSource:
    """Two fixes of each stay, at its beginning and at its end."""
    ends = _stay_columns(source)
    assert ends is not None
    others = [i for i in range(len(source.names)) if i not in ends]

    def make(columns: Mapping[int, pa.ChunkedArray]) -> Made:
        order, parents = in_turn(len(columns[ends[0]]))
        rows = pa.array(parents)
        times = _both(columns[ends[0]], columns[ends[1]]).take(pa.array(order))
        return [times, *(columns[i].take(rows) for i in others)], parents

    called = (source.names[ends[0]], source.names[ends[1]])
    guesses = {
        **source.guesses,
        "stays": Guess("two fixes each, where it begins and where it ends", (),
                       f"by {printable(called[0])} and {printable(called[1])}"),
    }  # fmt: skip
    names = ("time", *(source.names[i] for i in others))
    return derived(source, names, [*ends, *others], make, guesses=guesses)


_COMING = ("arrivaltime", "arrival", "arrivedat", "arrived", "checkin", "checkintime", "enter")
_GOING = ("departuretime", "departure", "departedat", "checkout", "checkouttime", "left", "leave")
STAYS = (
    (*_COMING, *(name for name in ENDS["time"][0] if name not in _GOING)),
    (*_GOING, *(name for name in ENDS["time"][1] if name not in _COMING)),
)
"""Spellings of the beginning and the end of a stay."""


def in_turn(n_rows: int) -> tuple[IntArray, IntArray]:
    """Of n rows and as many others behind them, a row and its other in turn; and whose each is."""
    each = np.arange(2 * n_rows)
    return each // 2 + n_rows * (each % 2), each // 2


def _both(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array(first.chunks + second.chunks, first.type)


LAYOUTS: Mapping[str, Layout] = {
    "yjmob": Layout("YJMob100K", _is_yjmob, _yjmob),
    "porto": Layout("Porto taxi trips", _is_porto, _porto),
    "trips": Layout("trips with both ends", _is_trips, _trips),
    "stays": Layout("stays", lambda source: _stay_columns(source) is not None, _stays),
    "nightley": _by_position(
        "SNS-based People Flow Data", (9,), JAPAN, "Asia/Tokyo", marked=_marked_people_flow,
        apply=lambda called: replace(called, ids_end_with_file=True),
        user_id=0, time=2, lat=3, lon=4,
    ),
    "foursquare": Layout("Foursquare check-ins (TSMC2014)", _is_foursquare, _foursquare),
    "geolife": Layout("Geolife", _is_geolife, _geolife),
    "openpflow": _by_position(
        "OpenPFLOW", (5, 6), JAPAN, "Asia/Tokyo", apply=_with_weights,
        user_id=0, time=1, lon=2, lat=3,
    ),
    "tdrive": _by_position(
        "T-Drive", (4,), BEIJING, "Asia/Shanghai", user_id=0, time=1, lon=2, lat=3
    ),
}  # fmt: skip
"""Layouts in the order in which they are tried."""
