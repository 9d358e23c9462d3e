"""Which column is the person, the time, the longitude, the latitude."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.source import RawSource, show_names

__all__ = [
    "PLACES",
    "ROLES",
    "ColumnChoice",
    "as_column",
    "find_columns",
    "is_number",
    "knows_name",
    "number_of",
    "plain_name",
    "position_of",
]

ROLES: Mapping[str, tuple[str, ...]] = {
    "user_id": (
        *("userid", "user", "uid", "personid", "individualid", "agentid", "pid", "deviceid"),
        *("ユーザーid", "ユーザid", "利用者id", "bikeid", "vehicleid", "taxiid", "mmsi"),
        *("individuallocalidentifier", "taglocalidentifier", "imei", "imsi", "msisdn", "caseid"),
        *("tailnum", "tailnumber", "icao24", "busid", "carid", "animalid", "participantid"),
        *("trajectoryid", "trajid", "trackid", "tripid", "person", "individual", "agent"),
        *("device", "unit", "unitid", "vehicle", "bus", "taxi", "bike", "車両id", "端末id"),
        *("traj", "trajectory", "track", "trip", "id", "code", "key", "name", "名前"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "trackedat", "recordedat", "gpstime", "timeutc"),
        *("utctime", "localtime", "日時", "時刻", "zeit", "unixtime", "unixtimestamp", "epoch"),
        *("unixtimems", "timestampms", "epochms", "ts", "when", "t"),
    ),
    "lon": (
        *("lon", "lng", "longitude", "long", "xlon", "lonx", "gpslon", "gpslongitude", "経度"),
        *("longitudee7", "lone7", "länge", "laenge", "longitud", "xcoord", "coordx", "easting"),
        *("locationlong", "pointx", "xm", "x座標", "x"),
    ),
    "lat": (
        *("lat", "latitude", "ylat", "laty", "gpslat", "gpslatitude", "緯度"),
        *("latitudee7", "late7", "breite", "latitud", "ycoord", "coordy", "northing"),
        *("locationlat", "pointy", "ym", "y座標", "y"),
    ),
    "geometry": ("geometry", "geom", "thegeom", "wkt", "wkb", "wkbgeometry", "shape", "point"),
    "place": ("latlng", "latlon", "latlong", "coordinates", "gps", "position", "location", "place"),
    "date": ("date", "localdate", "日付", "年月日", "datum", "fecha"),
    "accuracy": ("accuracy", "accuracym", "horizontalaccuracy", "haccuracy", "精度"),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""

_WORDS = {
    "time": frozenset(("time", "timestamp", "datetime", "日時", "時刻")),
    "lon": frozenset(("lon", "lng", "long", "longitude", "経度")),
    "lat": frozenset(("lat", "latitude", "緯度")),
}
_BRACKETS = re.compile(r"[(\[].*?[)\]]")
_NO_WORD = re.compile(r"[^a-z\u3040-\u9fff]+")

PLACES = ("lon", "lat", "geometry", "place")
"""Roles that say where; one column of the last two does for the first two."""

_SPOKEN = {
    **{"user_id": "user id", "time": "time", "lon": "longitude", "lat": "latitude"},
    **{"geometry": "geometry", "place": "position", "date": "date", "accuracy": "accuracy"},
}


@dataclass(frozen=True)
class ColumnChoice:
    """The position of each role's column in the file, how it was found, and the layout's zone.

    Without a position of "user_id" all rows are of one person.
    """

    positions: Mapping[str, int]
    guesses: Mapping[str, Guess]
    timezone: str | None = None


def knows_name(name: str) -> bool:
    """Whether a column name is one of the known spellings of some role."""
    return any(plain_name(name) in spellings for spellings in ROLES.values())


def as_column(text: str) -> str | int:
    """What a person typed for a column: a position from 0 if it is a number, else a name."""
    return int(text) if text.isascii() and text.isdigit() else text


def is_number(text: str) -> bool:
    """Whether a value is a plain number, with a decimal point or comma."""
    return number_of(text) is not None


def number_of(text: str) -> float | None:
    """The number that a value is, with a decimal point or comma; None if it is none."""
    try:
        return float(text.strip().replace(",", ".", 1))
    except ValueError:
        return None


def position_of(source: RawSource, wanted: str | int) -> int | None:
    """Position of the column called so, or at the zero-based position; None if there is none."""
    names = source.names
    if isinstance(wanted, str):
        if wanted in names:
            return names.index(wanted)
        plain = [name.strip().casefold() for name in names]
        if source.has_header and wanted.strip().casefold() in plain:
            return plain.index(wanted.strip().casefold())
        if not wanted.strip().isdecimal():
            return None
    position = int(wanted)
    return position if 0 <= position < len(names) else None


def find_columns(source: RawSource, columns: Mapping[str, str | int] | None = None) -> ColumnChoice:
    """Find the columns: as the caller says, else by name, else by the layout of the values.

    A file needs a time, and a longitude and a latitude or one column of places. Where no column
    names the person, all rows are of one.

    Raises
    ------
    InputError
        If the caller names a role or column that does not exist, or a column is not found.
    """
    given = dict(columns or {})
    positions = {role: _stated(source, role, wanted) for role, wanted in given.items()}
    guesses: dict[str, Guess] = {}
    for role in ROLES:
        if role not in positions and source.has_header:
            found = _by_name(role, source.names, taken=positions.values())
            if role in ("lon", "lat") and {"geometry", "place"} & given.keys():
                continue
            if found:
                positions[role], *others = found
                names = tuple(printable(source.names[other]) for other in others)
                name = printable(source.names[positions[role]])
                guesses[role] = Guess(name, names, option=f"column {role}")
    _leave_one_place(positions, guesses)
    _split_date(source, positions, guesses)
    missing = [
        role for role in ("user_id", "time", *_missing_places(positions)) if role not in positions
    ]
    if missing and not given:
        layout = _by_layout(source.sample, source.has_header)
        if layout and positions.items() <= layout.positions.items():
            return layout
    if missing == ["user_id"] and source.has_header:
        note = "no column names the person, so that all rows are of one; say which if one does"
        left = tuple(
            printable(name)
            for at, name in enumerate(source.names)
            if name and at not in positions.values()
        )
        guesses["user_id"] = Guess("one person", left, note, "column user_id")
        missing = []
    if missing:
        spoken = " or ".join(_SPOKEN[role] for role in missing)
        options = " ".join(f"--column {role}=NAME" for role in missing)
        holds = "column it is" if len(missing) == 1 else "columns they are"
        raise InputError(
            f"No {spoken} column found among: {show_names(source)}; say which {holds}.",
            options,
            code="column-not-found",
        )
    return ColumnChoice(positions, guesses)


def _stated(source: RawSource, role: str, wanted: str | int) -> int:
    if role not in ROLES:
        raise InputError(
            f"No column role is called {printable(role)!r}; choose among {', '.join(ROLES)}.",
            code="unknown-role",
        )
    position = position_of(source, wanted)
    if position is None:
        raise InputError(
            f"No column is called {printable(wanted)!r}; the file has: {show_names(source)}.",
            code="unknown-column",
        )
    return position


def _missing_places(positions: Mapping[str, int]) -> tuple[str, ...]:
    return () if {"geometry", "place"} & positions.keys() else ("lon", "lat")


def _leave_one_place(positions: dict[str, int], guesses: dict[str, Guess]) -> None:
    """Longitude and latitude are believed before a geometry, that before a pair in one column."""
    if {"lon", "lat"} <= positions.keys():
        unneeded: tuple[str, ...] = ("geometry", "place")
    elif "geometry" in positions:
        unneeded = ("lon", "lat", "place")
    elif "place" in positions:
        unneeded = ("lon", "lat")
    else:
        return
    for role in unneeded:
        positions.pop(role, None)
        guesses.pop(role, None)


def _split_date(source: RawSource, positions: dict[str, int], guesses: dict[str, Guess]) -> None:
    """Keep a date column only where the time column holds no date; it is the time if alone."""
    if "date" not in positions:
        return
    if "time" not in positions:
        positions["time"] = positions.pop("date")
        guesses["time"] = guesses.pop("date", Guess("date"))
        return
    at = positions["time"]
    clocks = [row[at].strip() for row in source.sample[:50] if at < len(row) and row[at].strip()]
    if not clocks or not all(looks_like_clock(clock) for clock in clocks):
        positions.pop("date")
        guesses.pop("date", None)


def plain_name(name: str) -> str:
    """A column name without case, width, blanks and other marks, nor a unit in brackets."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    bare = _BRACKETS.sub("", folded)
    return "".join(c for c in (bare if bare.strip() else folded) if c not in " _-.\t\u3000:/")


def _by_name(role: str, names: Sequence[str], taken: Collection[int]) -> list[int]:
    """Positions of the columns whose name spells the role, the preferred spelling first.

    If none does, the one column of which a word does: gps_lat, Latitude WGS84.
    """
    rank = {spelling: i for i, spelling in enumerate(ROLES[role])}
    found = [
        (rank[plain_name(name)], position)
        for position, name in enumerate(names)
        if plain_name(name) in rank and position not in taken
    ]
    if found or role not in _WORDS:
        return [position for _, position in sorted(found)]
    within = [
        position
        for position, name in enumerate(names)
        if position not in taken and _WORDS[role] & set(_words_of(name))
    ]
    return within if len(within) == 1 else []


def _words_of(name: str) -> list[str]:
    return _NO_WORD.split(unicodedata.normalize("NFKC", name).casefold())


def _by_layout(sample: Sequence[Sequence[str]], has_header: bool) -> ColumnChoice | None:
    """Columns by their position, in files without a header.

    With one, a name that says something else than a role (a row number, say) is to be believed.
    """
    if not sample:
        return None
    width = len(sample[0])
    rows = [row for row in sample if len(row) == width]
    if has_header or width < 4:
        return None
    if _fits(rows, time=1, lat=3, lon=2):
        note = "by position: id, time, longitude, latitude"
        return _positions(note, user_id=0, time=1, lon=2, lat=3)
    if _fits(rows, time=1, lat=2, lon=3):
        note = "by position: id, time, latitude, longitude"
        return _positions(note, user_id=0, time=1, lat=2, lon=3)
    return None


def _positions(note: str, **positions: int) -> ColumnChoice:
    guesses = {role: Guess(f"column {at}", (), note) for role, at in positions.items()}
    if note.startswith("by position"):
        for role, other in (("lon", "lat"), ("lat", "lon")):
            guesses[role] = Guess(
                f"column {positions[role]}", (f"column {positions[other]}",), note
            )
    return ColumnChoice(positions, guesses)


def _fits(rows: Sequence[Sequence[str]], *, time: int, lat: int, lon: int) -> bool:
    """Whether every sample row has a time and degrees within range at these positions."""
    return all(
        looks_like_time(row[time]) and _within(row[lat], 90) and _within(row[lon], 180)
        for row in rows[:50]
    )


def _within(text: str, limit: float) -> bool:
    number = number_of(text)
    return number is not None and abs(number) <= limit
