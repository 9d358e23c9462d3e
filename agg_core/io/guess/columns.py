"""Which column is the person, the time, the longitude, the latitude."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agg_core.base.clock import check_zone
from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.source import RawSource, show_names

__all__ = [
    "ONE_PERSON",
    "PLACES",
    "ROLES",
    "TIME_PARTS",
    "ColumnChoice",
    "ColumnFinder",
    "as_column",
    "column_at",
    "ends_of",
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
        *("subscriberid", "subscriber", "callerid", "caller", "customerid", "cardid", "cardno"),
        *("smartcardid", "cardnumber", "memberid", "driverid", "riderid", "passengerid", "maid"),
        *("advertiserid", "adid", "caid", "anonid", "hashid", "panelistid", "respondentid"),
        *("phoneid", "simid", "iccid", "anumber", "dailyid", "trackerid", "shipid", "vesselid"),
        *("macaddress", "mac", "tid", "deviceuid", "deviceserial", "userhash", "subjectid"),
        *("individuallocalidentifier", "taglocalidentifier", "imei", "imsi", "msisdn", "caseid"),
        *("tailnum", "tailnumber", "icao24", "busid", "carid", "animalid", "participantid"),
        *("veh", "vehid", "vehicleno", "vehiclenumber", "busno", "taxino", "carno", "plate"),
        *("licenseplate", "licenceplate"),
        *("trajectoryid", "trajid", "trackid", "tripid", "person", "individual", "agent"),
        *("device", "unit", "unitid", "vehicle", "bus", "taxi", "bike", "車両id", "端末id"),
        *(
            "who",
            "tagid",
            "collarid",
            "birdid",
            "subject",
            "respondent",
            "driver",
            "rider",
            "imsihash",
        ),
        *("traj", "trajectory", "track", "trip", "id", "code", "key", "name", "名前"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "trackedat", "recordedat", "gpstime", "timeutc"),
        *("utctime", "localtime", "日時", "時刻", "zeit", "unixtime", "unixtimestamp", "epoch"),
        *("unixtimems", "timestampms", "epochms", "timestamputc", "datetimeutc", "utcdatetime"),
        *("datetimelocal", "localdatetime", "timestamplocal", "utctimestamp", "gpsdatetime"),
        *("fixtime", "devicetime", "locationtime", "positiontime", "basedatetime", "pingtime"),
        *("eventtime", "eventtimestamp", "observedat", "capturedat", "loggedat", "reportedat"),
        *("createdat", "isotime", "isotst", "tst", "utc", "fechahora", "datahora", "horodatage"),
        *("zeitstempel", "tijd", "callstart", "calltime", "startedat", "starttime", "start"),
        *("servertime", "seenat", "lastreported", "lastseen", "firstseen", "taptime", "stamp"),
        *("datestamp", "timestampstr", "ts", "when", "t"),
    ),
    "lon": (
        *("lon", "lng", "longitude", "long", "xlon", "lonx", "gpslon", "gpslongitude", "経度"),
        *("longitudee7", "lone7", "länge", "laenge", "longitud", "xcoord", "coordx", "easting"),
        *(
            "utme",
            "utmx",
            "utmeasting",
            "positionlong",
            "positionlon",
            "positionlongitude",
            "decimallongitude",
            "longitudedeg",
        ),
        *("londeg", "geolon", "geolong", "geolng", "wgs84lon", "stoplon", "lonwgs84"),
        *("locationlong", "pointx", "xm", "x座標", "x"),
    ),
    "lat": (
        *("lat", "latitude", "ylat", "laty", "gpslat", "gpslatitude", "緯度"),
        *("latitudee7", "late7", "breite", "latitud", "ycoord", "coordy", "northing"),
        *(
            "utmn",
            "utmy",
            "utmnorthing",
            "positionlat",
            "positionlatitude",
            "decimallatitude",
            "latitudedeg",
            "latdeg",
        ),
        *("geolat", "wgs84lat", "stoplat", "latwgs84"),
        *("locationlat", "pointy", "ym", "y座標", "y"),
    ),
    "geometry": ("geometry", "geom", "thegeom", "wkt", "wkb", "wkbgeometry", "shape", "point"),
    "place": (
        "latlng",
        "latlon",
        "latlong",
        "coordinates",
        "gps",
        "position",
        "location",
        "place",
        "geohash",
    ),
    "date": ("date", "localdate", "日付", "年月日", "datum", "fecha", "gpsdate", "utcdate"),
    "accuracy": (
        *("accuracy", "accuracym", "horizontalaccuracy", "haccuracy", "hacc", "acc", "精度"),
    ),
    "lat_side": (
        *("ns", "latns", "nsindicator", "latdir", "latdirection", "latref", "latituderef"),
        *("gpslatituderef", "latitudens", "latitudehemisphere", "lathemisphere", "northsouth"),
        *("norths", "nors", "latitudedirection", "latsign", "lathemi", "hemins"),
    ),
    "lon_side": (
        *("ew", "lonew", "ewindicator", "londir", "londirection", "lonref", "longituderef"),
        *("gpslongituderef", "longitudeew", "longitudehemisphere", "lonhemisphere", "eastwest"),
        *("eorw", "longitudedirection", "lonsign", "longdir", "lonhemi", "hemiew"),
    ),
    "year": ("year", "yr", "yyyy", "年", "jahr", "annee", "année", "ano", "año"),
    "month": ("month", "mon", "月", "monat", "mois", "mes", "mm"),
    "day": ("day", "dayofmonth", "mday", "日", "tag", "jour", "dia", "día", "dd"),
    "hour": ("hour", "hours", "hh", "hr", "時", "stunde", "heure", "hora"),
    "minute": ("minute", "minutes", "min", "分", "mi", "minuto"),
    "second": ("second", "seconds", "sec", "秒", "ss", "segundo"),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""

_WORDS = {
    "time": frozenset(("time", "timestamp", "datetime", "日時", "時刻")),
    "lon": frozenset(("lon", "lng", "long", "longitude", "経度")),
    "lat": frozenset(("lat", "latitude", "緯度")),
}
SAMPLE_ROWS = 50
"""Rows whose values are looked at."""

_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|(?:19|20)\d{6}")
_OF_TABLES = frozenset((
    *("origin", "dest", "destination", "count", "cell", "station", "startedat", "endedat"),
    *("startstationid", "endstationid", "entries", "exits", "origen", "destino"),
))  # fmt: skip
"""Names by which a header of a table of trips, movements or counts is told."""
_ZONES = ("tz", "timezone", "zone", "tzname", "tzid", "timezoneid", "localtimezone")
_BRACKETS = re.compile(r"[(\[].*?[)\]]")
_NO_WORD = re.compile(r"[^a-z\u3040-\u9fff]+")

PLACES = ("lon", "lat", "geometry", "place", "lat_side", "lon_side")
"""Roles that say where; a geometry or a place does for a longitude and a latitude."""
TIME_PARTS = ("year", "month", "day", "hour", "minute", "second")
"""Roles of columns that make up a time together."""
ONE_PERSON = "one person"
"""What is stated for the person's column to say that all rows are of one."""

_SPOKEN = {
    **{"user_id": "user id", "time": "time", "lon": "longitude", "lat": "latitude"},
    **{"geometry": "geometry", "place": "position", "date": "date", "accuracy": "accuracy"},
}
_SIDES = {"lat_side": ("N", "S", "NORTH", "SOUTH"), "lon_side": ("E", "W", "EAST", "WEST")}


@dataclass(frozen=True)
class ColumnChoice:
    """The position of each role's column in the file, how it was found, and the layout's zone.

    Without a position of "user_id" all rows are of one person.
    """

    positions: Mapping[str, int]
    guesses: Mapping[str, Guess]
    timezone: str | None = None
    is_stated: bool = field(default=False, kw_only=True)
    """Whether somebody said whose the rows are."""
    names: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """What the columns are called."""

    def called(self, role: str) -> str:
        """What to call the column of a role."""
        return self.names.get(role, "")

    def with_person(self, position: int, guess: Guess) -> ColumnChoice:
        """The same with the column that says whose a row is."""
        return replace(
            self, positions={**self.positions, "user_id": position},
            guesses={**self.guesses, "user_id": guess},
        )  # fmt: skip


def knows_name(name: str) -> bool:
    """Whether a column name is one of the known spellings of some role."""
    return plain_name(name) in _OF_TABLES or any(
        plain_name(name) in spellings for spellings in ROLES.values()
    )


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
        self._ends = [ends_of(name) for name in self.names]
        self.guesses: dict[str, Guess] = {}
        self.positions: dict[str, int] = {}
        self.is_one_person = False
        for role, wanted in (stated or {}).items():
            if role not in roles:
                raise InputError(
                    f"No column role is called {printable(role)!r}; choose among "
                    f"{', '.join(roles)}.",
                    code="unknown-role",
                )
            if role == "user_id" and wanted == ONE_PERSON and ONE_PERSON not in source.names:
                self.is_one_person = True
                continue
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
        spellings = list(dict.fromkeys(self._roles[role]))
        rank = {spelling: i for i, spelling in enumerate(spellings)}
        rest = self.rest()
        found = []
        for at in rest:
            spelt = [rank[end] for end in (self.plain[at], *self._ends[at]) if end in rank]
            if spelt:  # of two that are spelt alike the one that lies less deep
                found.append((min(spelt), len(self._ends[at]), at))
        found.sort()
        if found or role not in _WORDS:
            return [at for _, _, at in found]
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
    parts = (*TIME_PARTS, *_SIDES)
    found.look_for(*(
        role for role in ROLES
        if role not in parts and not (one_place and role in ("lon", "lat"))
    ))  # fmt: skip
    _leave_one_place(found)
    _take_sides(found)
    _split_date(found)
    _take_parts(found)
    at = found.positions
    places = () if {"geometry", "place"} & at.keys() else ("lon", "lat")
    timed = "time" in at or "year" in at or {"date", "hour"} <= at.keys()
    missing = [
        role for role in ("user_id", "time", *places)
        if role not in at and not (role == "time" and timed)
    ]  # fmt: skip
    if missing and not found.stated and not found.is_one_person:
        layout = _by_layout(source.sample, source.has_header)
        if layout and at.items() <= layout.positions.items():
            return layout
    if missing == ["user_id"] and (source.has_header or found.is_one_person):
        note = "no column names the person, so that all rows are of one; say which if one does"
        note = "" if found.is_one_person else note
        left = tuple(printable(found.names[at]) for at in found.rest() if found.names[at])
        found.guesses["user_id"] = Guess(ONE_PERSON, left, note, "column user_id")
    elif missing:
        raise found.not_found(_SPOKEN, *missing)
    stated = "user_id" in found.stated or found.is_one_person
    called = {role: found.called(position) for role, position in at.items()}
    return ColumnChoice(at, found.guesses, _zone_of(found), is_stated=stated, names=called)


def _zone_of(found: ColumnFinder) -> str | None:
    """The zone that a column names in all first rows: Europe/Berlin; None where none does."""
    for at in found.rest():
        if found.plain[at] in _ZONES:
            values = set(found.values(at))
            if len(values) == 1 and "/" in (value := values.pop()):
                try:
                    return check_zone(value)
                except InputError:
                    return None
    return None


def _take_sides(found: ColumnFinder) -> None:
    """Columns that say north or south, east or west, of degrees without a sign.

    They are found by name, or, where both are there, by standing behind the degrees that they are
    of; their values must say no more than that.
    """
    at = found.positions
    if not {"lon", "lat"} <= at.keys():
        found.drop(*_SIDES.keys() - found.stated.keys())
        return
    found.look_for(*_SIDES)
    for role in _SIDES:
        if role in at and role not in found.stated and not _says_side(found, role, at[role]):
            found.drop(role)
    behind = {role: at[role[:3]] + 1 for role in _SIDES}
    if not _SIDES.keys() & at.keys() and all(
        position in found.rest() and _says_side(found, role, position)
        for role, position in behind.items()
    ):
        for role, position in behind.items():
            found.take(role, position)


def _says_side(found: ColumnFinder, role: str, at: int) -> bool:
    values = {value.upper() for value in found.values(at)}
    return bool(values) and values <= set(_SIDES[role])


def _take_parts(found: ColumnFinder) -> None:
    """Columns of a year, a month, a day and so on, where no column holds a whole time."""
    at, stated = found.positions, found.stated
    if "date" in at:
        return
    clock_alone = "time" not in stated and all(map(looks_like_clock, found.values("time")
                                                   if "time" in at else ()))  # fmt: skip
    if "time" in at and not clock_alone and not set(TIME_PARTS) & stated.keys():
        if _are_dates(found, "time"):
            _add_clock(found)
        return
    found.look_for(*TIME_PARTS)
    if {"year", "month", "day"} <= at.keys():
        said = " ".join(found.called(at[role]) for role in TIME_PARTS if role in at)
        if "time" in at:
            found.drop(*("hour", "minute", "second"))
            said = f"{said} and {found.called(at['time'])}"
        found.guesses["time"] = Guess(said, option="column time")
        for role in TIME_PARTS:
            found.guesses.pop(role, None)
        return
    found.drop(*set(TIME_PARTS) - stated.keys())


def _add_clock(found: ColumnFinder) -> None:
    """The hour, and perhaps the minute and second, beside a column of dates only."""
    found.look_for("hour", "minute", "second")
    at = found.positions
    if "hour" not in at or not all(
        (number_of(value) or 0) in range(49) for value in found.values("hour")
    ):
        found.drop("hour", "minute", "second")
        return
    said = " ".join(found.called(at[role]) for role in ("time", "hour", "minute", "second")
                    if role in at)  # fmt: skip
    found.rename("time", "date")
    found.guesses["time"] = Guess(said, option="column time")
    for role in ("hour", "minute", "second", "date"):
        found.guesses.pop(role, None)


def _are_dates(found: ColumnFinder, role: str) -> bool:
    """Whether values are dates without a time of day."""
    values = found.values(role)
    return bool(values) and all(_DATE.fullmatch(value) for value in values)


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
    return "".join(c for c in (bare if bare.strip() else folded) if c not in " _-.\t\u3000:/#")


def ends_of(name: str) -> tuple[str, ...]:
    """What a name such as vehicle.position.latitude ends with, by its last part, two, three."""
    parts = [part for part in name.split(".") if part.strip()]
    if len(parts) < 2:
        return ()
    return tuple(plain_name("".join(parts[-n:])) for n in range(1, min(len(parts), 4)))


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
    if any(looks_like_time(row[0]) for row in rows):  # a beginning and an end: no id
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
