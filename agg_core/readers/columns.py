"""Which column is the person, the time, the longitude, the latitude."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agg_core.errors import InputError
from agg_core.readers.report import Guess, printable
from agg_core.readers.source import RawSource, show_names
from agg_core.readers.times import looks_like_time

__all__ = [
    "ROLES",
    "ColumnChoice",
    "as_column",
    "find_columns",
    "is_number",
    "knows_name",
    "position_of",
]

ROLES: Mapping[str, tuple[str, ...]] = {
    "user_id": (
        *("userid", "user", "uid", "personid", "individualid", "agentid", "pid", "deviceid"),
        *("ユーザーid", "ユーザid", "利用者id", "bikeid", "vehicleid", "taxiid", "mmsi"),
        *("trajectoryid", "trajid", "trackid", "tripid", "person", "individual", "agent"),
        *("device", "traj", "trajectory", "track", "id"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "trackedat", "recordedat", "gpstime", "timeutc"),
        *("utctime", "localtime", "日時", "時刻", "zeit", "unixtime", "unixtimestamp", "epoch"),
        *("unixtimems", "timestampms", "epochms", "ts", "when", "t"),
    ),
    "lon": ("lon", "lng", "longitude", "long", "xlon", "lonx", "経度", "länge", "laenge", "x"),
    "lat": ("lat", "latitude", "ylat", "laty", "緯度", "breite", "y"),
}
"""Spellings of each column's name, in order of preference, as `_plain` writes them."""

_SPOKEN = {"user_id": "user id", "time": "time", "lon": "longitude", "lat": "latitude"}


@dataclass(frozen=True)
class ColumnChoice:
    """The position of each role's column in the file, and how it was found."""

    positions: Mapping[str, int]
    guesses: Mapping[str, Guess]


def knows_name(name: str) -> bool:
    """Whether a column name is one of the known spellings of some role."""
    return any(_plain(name) in spellings for spellings in ROLES.values())


def as_column(text: str) -> str | int:
    """What a person typed for a column: a position from 0 if it is a number, else a name."""
    return int(text) if text.isascii() and text.isdigit() else text


def is_number(text: str) -> bool:
    """Whether a value is a plain number, with a decimal point or comma."""
    try:
        float(text.strip().replace(",", ".", 1))
    except ValueError:
        return False
    return True


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
    """Find the four columns: as the caller says, else by name, else by the layout of the values.

    Raises
    ------
    InputError
        If the caller names a role or column that does not exist, or a column is not found.
    """
    given = dict(columns or {})
    positions: dict[str, int] = {}
    guesses: dict[str, Guess] = {}
    for role, wanted in given.items():
        if role not in ROLES:
            raise InputError(
                f"No column role is called {printable(role)!r}; choose among {', '.join(ROLES)}."
            )
        position = position_of(source, wanted)
        if position is None:
            raise InputError(
                f"No column is called {printable(wanted)!r}; the file has: {show_names(source)}."
            )
        positions[role] = position
    for role in ROLES:
        if role not in positions and source.has_header:
            found = _by_name(role, source.names, taken=positions.values())
            if found:
                positions[role], *others = found
                names = tuple(printable(source.names[other]) for other in others)
                guesses[role] = Guess(printable(source.names[positions[role]]), names)
    missing = [role for role in ROLES if role not in positions]
    if missing and not given:
        layout = _by_layout(source.sample, source.has_header)
        if layout and positions.items() <= layout.positions.items():
            return layout
    if missing:
        spoken = " or ".join(_SPOKEN[role] for role in missing)
        options = " ".join(f"--column {role}=NAME" for role in missing)
        holds = "column it is" if len(missing) == 1 else "columns they are"
        raise InputError(
            f"No {spoken} column found among: {show_names(source)}; say which {holds}.",
            options,
        )
    return ColumnChoice(positions, guesses)


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in folded if c not in " _-.\t\u3000")


def _by_name(role: str, names: Sequence[str], taken: Collection[int]) -> list[int]:
    """Positions of the columns whose name spells the role, the preferred spelling first."""
    rank = {spelling: i for i, spelling in enumerate(ROLES[role])}
    found = [
        (rank[_plain(name)], position)
        for position, name in enumerate(names)
        if _plain(name) in rank and position not in taken
    ]
    return [position for _, position in sorted(found)]


def _by_layout(sample: Sequence[Sequence[str]], has_header: bool) -> ColumnChoice | None:
    """Columns by their position in layouts that carry no usable names.

    The nine columns are told apart by their number; fewer are only guessed without a header, for
    a name that says something else than a role (a row number, say) is to be believed.
    """
    if not sample:
        return None
    width = len(sample[0])
    rows = [row for row in sample if len(row) == width]
    if width == 9 and _fits(rows, time=2, lat=3, lon=4):
        note = "nine columns laid out as in SNS-based People Flow Data"
        return _positions(note, user_id=0, time=2, lat=3, lon=4)
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
    return is_number(text) and abs(float(text.strip().replace(",", ".", 1))) <= limit
