"""Which column is the person, the time, the longitude, the latitude."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.source import RawSource, show_names

__all__ = [
    "PLACES",
    "ROLES",
    "ColumnChoice",
    "ColumnFinder",
    "as_column",
    "column_at",
    "find_columns",
    "is_number",
    "knows_name",
    "number_of",
    "plain_name",
    "position_named",
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
SAMPLE_ROWS = 50
"""Rows whose values are looked at."""

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


def position_named(source: RawSource, spellings: Sequence[str]) -> int | None:
    """Position of the first of these plain names that the source has."""
    plain = [plain_name(name) for name in source.names]
    return next((plain.index(name) for name in spellings if name in plain), None)


def column_at(source: RawSource, wanted: str | int, use: str = "") -> int:
    """Position of the column called so, or at the zero-based position; ``use`` is what it is for.

    Raises
    ------
    InputError
        If there is none.
    """
    names, spelt = source.names, str(wanted).strip().casefold()
    if isinstance(wanted, str):
        if wanted in names:
            return names.index(wanted)
        plain = [name.strip().casefold() for name in names] if source.has_header else []
        if spelt in plain:
            return plain.index(spelt)
    if spelt.isdecimal() and int(spelt) < len(names):
        return int(spelt)
    raise InputError(
        f"No column is called {printable(wanted)!r}{use}; the file has: {show_names(source)}.",
        code="unknown-column",
    )


class ColumnFinder:
    """Columns of a table by their role: those that are stated, and those that are found by name.

    ``roles`` is the table of roles, with the spellings of each in order of preference;
    ``positions`` and ``guesses`` are what was found so far.

    Raises
    ------
    InputError
        If a role or a column that is stated does not exist.
    """

    def __init__(
        self,
        source: RawSource,
        roles: Mapping[str, Sequence[str]],
        stated: Mapping[str, str | int] | None = None,
    ) -> None:
        self.source, self._roles = source, roles
        self.names = source.names if source.has_header else ("",) * len(source.names)
        self.plain = [plain_name(name) for name in self.names]
        self.guesses: dict[str, Guess] = {}
        self.positions: dict[str, int] = {}
        for role, wanted in (stated or {}).items():
            if role not in roles:
                raise InputError(
                    f"No column role is called {printable(role)!r}; choose among "
                    f"{', '.join(roles)}.",
                    code="unknown-role",
                )
            self.positions[role] = column_at(source, wanted)
        self.stated = dict(self.positions)

    def look_for(self, *roles: str) -> None:
        """Find the column of each role by name, where it is not known."""
        for role in roles:
            found = [] if role in self.positions else self._spelt(role)
            if found:
                self.take(role, *found)

    def take(self, role: str, at: int, *others: int) -> None:
        """This column is taken for a role; others could be it, too."""
        names = tuple(printable(self.names[other]) for other in others if self.names[other])
        self.positions[role] = at
        self.guesses[role] = Guess(self.called(at), names, option=f"column {role}")

    def drop(self, *roles: str) -> None:
        """There is no column of these roles."""
        for role in roles:
            self.positions.pop(role, None)
            self.guesses.pop(role, None)

    def rename(self, role: str, new: str) -> None:
        """The column of a role is that of another one."""
        self.positions[new] = self.positions.pop(role)
        self.guesses[new] = self.guesses.pop(role, Guess(self.called(self.positions[new])))

    def called(self, at: int) -> str:
        """What to call a column."""
        return printable(self.names[at]) or f"column {at}"

    def rest(self) -> list[int]:
        """Columns without a role."""
        return [at for at in range(len(self.names)) if at not in self.positions.values()]

    def values(self, role: str | int) -> list[str]:
        """The first values of a role's column, or of one at a position, without empty ones."""
        at = self.positions[role] if isinstance(role, str) else role
        rows = self.source.sample[:SAMPLE_ROWS]
        return [row[at].strip() for row in rows if at < len(row) and row[at].strip()]

    def not_found(self, spoken: Mapping[str, str], *roles: str) -> InputError:
        """The fault that columns are not found, with the options that name them."""
        holds = "column it is" if len(roles) == 1 else "columns they are"
        return InputError(
            f"No {' or '.join(spoken[role] for role in roles)} column found among: "
            f"{show_names(self.source)}; say which {holds}.",
            " ".join(f"--column {role}=NAME" for role in roles),
            code="column-not-found",
        )

    def _spelt(self, role: str) -> list[int]:
        """Columns whose name spells the role, the preferred spelling first.

        If none does, the one column of which a word does: gps_lat, Latitude WGS84.
        """
        rank = {spelling: i for i, spelling in enumerate(self._roles[role])}
        rest = self.rest()
        found = sorted((rank[self.plain[at]], at) for at in rest if self.plain[at] in rank)
        if found or role not in _WORDS:
            return [at for _, at in found]
        within = [at for at in rest if _WORDS[role] & set(_words_of(self.names[at]))]
        return within if len(within) == 1 else []


def find_columns(source: RawSource, columns: Mapping[str, str | int] | None = None) -> ColumnChoice:
    """Find the columns: as the caller says, else by name, else by the layout of the values.

    A file needs a time, and a longitude and a latitude or one column of places. Where no column
    names the person, all rows are of one.

    Raises
    ------
    InputError
        If the caller names a role or column that does not exist, or a column is not found.
    """
    found = ColumnFinder(source, ROLES, columns)
    one_place = bool({"geometry", "place"} & found.stated.keys())
    found.look_for(*(role for role in ROLES if not (one_place and role in ("lon", "lat"))))
    _leave_one_place(found)
    _split_date(found)
    at = found.positions
    places = () if {"geometry", "place"} & at.keys() else ("lon", "lat")
    missing = [role for role in ("user_id", "time", *places) if role not in at]
    if missing and not found.stated:
        layout = _by_layout(source.sample, source.has_header)
        if layout and at.items() <= layout.positions.items():
            return layout
    if missing == ["user_id"] and source.has_header:
        note = "no column names the person, so that all rows are of one; say which if one does"
        left = tuple(printable(found.names[at]) for at in found.rest() if found.names[at])
        found.guesses["user_id"] = Guess("one person", left, note, "column user_id")
    elif missing:
        raise found.not_found(_SPOKEN, *missing)
    return ColumnChoice(at, found.guesses)


def _leave_one_place(found: ColumnFinder) -> None:
    """Longitude and latitude are believed before a geometry, that before a pair in one column."""
    if {"lon", "lat"} <= found.positions.keys():
        found.drop("geometry", "place")
    elif "geometry" in found.positions:
        found.drop("lon", "lat", "place")
    elif "place" in found.positions:
        found.drop("lon", "lat")


def _split_date(found: ColumnFinder) -> None:
    """Keep a date column only where the time column holds no date; it is the time if alone."""
    if "date" not in found.positions:
        return
    if "time" not in found.positions:
        found.rename("date", "time")
        return
    clocks = found.values("time")
    if not clocks or not all(map(looks_like_clock, clocks)):
        found.drop("date")


def plain_name(name: str) -> str:
    """A column name without case, width, blanks and other marks, nor a unit in brackets."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    bare = _BRACKETS.sub("", folded)
    return "".join(c for c in (bare if bare.strip() else folded) if c not in " _-.\t\u3000:/")


def _words_of(name: str) -> list[str]:
    return _NO_WORD.split(unicodedata.normalize("NFKC", name).casefold())


def _by_layout(sample: Sequence[Sequence[str]], has_header: bool) -> ColumnChoice | None:
    """Columns by their position, in files without a header: an id, a time, and both axes.

    With one, a name that says something else than a role (a row number, say) is to be believed.
    """
    width = len(sample[0]) if sample else 0
    rows = [row for row in sample if len(row) == width][:SAMPLE_ROWS]
    if has_header or width < 4 or not all(looks_like_time(row[1]) for row in rows):
        return None
    for (lon, lat), order in (((2, 3), "longitude, latitude"), ((3, 2), "latitude, longitude")):
        if all(_within(row[lat], 90) and _within(row[lon], 180) for row in rows):
            at = {"user_id": 0, "time": 1, "lon": lon, "lat": lat}
            note, other = f"by position: id, time, {order}", {"lon": lat, "lat": lon}
            return ColumnChoice(at, {
                role: Guess(
                    f"column {i}", (f"column {other[role]}",) if role in other else (), note
                )
                for role, i in at.items()
            })  # fmt: skip
    return None


def _within(text: str, limit: float) -> bool:
    number = number_of(text)
    return number is not None and abs(number) <= limit
