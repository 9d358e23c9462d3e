"""What kind of table a file holds, and what can be done with it: said before anything is read.

Names of columns tell it, and the first rows; where they do not, nobody guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agg_core.base.errors import InputError
from agg_core.io.choices import Choices, Stated
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.columns import ROLES as COUNT_ROLES
from agg_core.io.counts.columns import changes_in_percent, looks_like_counts
from agg_core.io.counts.files import first_table
from agg_core.io.counts.layouts import PUBLISHED_LAYOUTS
from agg_core.io.flights import are_flights
from agg_core.io.flow_tables import ROLES as FLOW_ROLES
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ROLES, ColumnFinder, find_columns, number_of, plain_name
from agg_core.io.guess.ends import end_columns, is_square, words_of
from agg_core.io.guess.times import looks_like_time
from agg_core.io.guess.ways import ENTRY_NAMES, EXIT_NAMES
from agg_core.io.layouts import ENDS, RIDERS, STATIONS, laid_out, trip_ends
from agg_core.io.place_tables import PLACE_KEYS
from agg_core.io.source import RawSource

__all__ = ["KINDS", "USES", "explained", "kind_of_file", "kind_of_table"]

KINDS = ("fixes", "trips", "counts", "movements", "gates", "places", "other")
"""What a table may hold: where people were and when; single trips; people per cell and moment;
sums of trips between areas; entries and exits of stations; where places lie; something else."""

USES: Mapping[str, str] = {
    "fixes": "where people were and when: flows are learned from it, in groups",
    "trips": "single trips with both ends: they are counted as a table of trips between places, "
    "and followed where the rider or vehicle is named",
    "counts": "people per cell and moment: flows are learned from it",
    "movements": "a table of trips between areas: learned flows are held against it as a reference",
    "gates": "entries and exits of stations by time: sums of who passed, nobody told apart",
    "places": "where places lie: it goes with a table that names them",
    "other": "nothing that flows can be learned from",
}
"""What can be done with each kind, in words."""

_TRIP_IDS = ("rideid", "tripid", "journeyid", "trippid", "rentalid", "legid", "tripuuid")
_IN, _OUT = frozenset(ENTRY_NAMES), frozenset(EXIT_NAMES)
_SIDES = _IN | _OUT | {"i", "o", "enter", "leave"}
_WAYS = frozenset(
    ("direction", "type", "flow", "inout", "gate", "event", "way", "movement", "kind")
)
_STATIONS = frozenset((
    *("station", "stop", "gate", "stationname", "stationid", "stopid", "stopname", "駅", "駅名"),
    *("platform", "turnstile", "unit", "entrance", "terminal", "door", "building", "site"),
    *("stationcode", "gateid", "gatename", "store", "venue", "estacion", "bahnhof", "halt"),
))  # fmt: skip
_MEASURES = frozenset((
    *("trips", "trip", "viajes", "count", "counts", "flow", "flows", "volume", "journeys"),
    *("people", "traffic"),
    *("persons", "commuters", "workers", "jobs", "pax", "ridership", "passengers", "movers"),
    *("moves", "reisen", "wege", "personas", "travellers", "travelers", "demand", "人数", "人口"),
))  # fmt: skip
_SUMS = ("count", "counts", "trips", "flow", "flows", "numtrips", "tripcount", "journeys", "ntrips")
_ANYBODYS = ("id", "code", "key", "name", "名前", "unit", "bus", "trip", "track", "tripid")
_KEYS = PLACE_KEYS | (frozenset(COUNT_ROLES["cell"]) - {"name", "code", "id"})


def kind_of_file(source: Source, choices: Stated | None = None) -> str | None:
    """The kind of what a file or folder holds, one of `KINDS`; None where it cannot be told.

    Of several files it is that of the first table that does not only say where places lie.

    Raises
    ------
    InputError
        If the file cannot be opened.
    """
    stated = choices or Choices()
    try:
        table = first_table(source, CountChoices(**stated.opening))
    except InputError as fault:
        if fault.code in ("areas-not-trajectories", "no-table-of-counts"):
            return "places"
        raise
    return "counts" if table is None else kind_of_table(table)


def explained(fault: InputError, source: Source, choices: Stated) -> InputError:
    """The fault that columns of people are missing, or what the table holds instead of them."""
    if fault.code not in ("column-not-found", "nameless-trips", "no-place-table"):
        return fault
    try:
        kind = kind_of_file(source, choices)
    except InputError:
        return fault
    if kind == "movements":
        return InputError(
            f"This file holds {USES[kind]}; open people or counts, and give it beside them.",
            "--reference FILE",
            code="table-of-movements",
        )
    if kind == "gates":
        return InputError(
            f"This file holds {USES[kind]}; open people or counts per cell instead.",
            code="table-of-gates",
        )
    if kind == "places":
        return InputError(
            f"This file says {USES[kind]}; open that together with it.",
            "--places FILE",
            code="table-of-places",
        )
    return fault


def kind_of_table(source: RawSource) -> str | None:
    """The kind of an opened table, one of `KINDS`; None where it cannot be told."""
    if not source.has_header:
        return "fixes" if _is_known_by_shape(source) else None
    names, sample = source.names, source.sample
    plain = [plain_name(name) for name in names]
    if changes_in_percent(plain):
        return "other"
    published = any(layout.fits(plain) for layout in PUBLISHED_LAYOUTS.values())
    found = "counts" if published else "trips" if are_flights(source) else None
    found = found or _of_ends(source, plain)
    if found is None and _are_gates(names, plain, sample):
        found = "gates"
    if found is None and looks_like_counts(names, sample):
        found = "counts"
    return found or _of_people_or_places(source, plain)


def _is_known_by_shape(source: RawSource) -> bool:
    if laid_out(source, Choices(), "The file") is not source:
        return True
    try:
        find_columns(source)
    except InputError:
        return False
    return True


def _of_ends(source: RawSource, plain: Sequence[str]) -> str | None:
    """Trips or movements, if rows have an origin and a destination."""
    names, sample = source.names, source.sample
    known = set(plain)
    whole = trip_ends(source)
    placed = all(known & set(ENDS[axis][end]) for axis in ("lon", "lat") for end in (0, 1))
    found = ColumnFinder(source, {"origin": _ORIGINS, "dest": _DESTS, "count": FLOW_ROLES["count"]})
    found.look_for("origin", "dest")
    named = {"origin", "dest"} <= found.positions.keys() and not any(
        looks_like_time(value) for role in ("origin", "dest") for value in found.values(role)[:5]
    )
    pair = end_columns(names, sample)
    if not (whole or placed or named or pair):
        return "movements" if is_square(names, sample) else None
    if not whole and not placed and _has_own_place(source):
        return None
    found.look_for("count")
    single = bool(known & {*RIDERS, *_TRIP_IDS})
    beside = [at for at in found.rest() if pair is None or at not in pair]
    counted = "count" in found.positions or any(
        _MEASURES & set(words_of(names[at])) and _is_numeric(sample, at) for at in beside
    )
    if whole:  # fares and passengers are told of single trips, too
        at = found.positions.get("count")
        counted = at is not None and found.plain[at] in _SUMS
    if counted and not single:
        return "movements"
    timed = bool(known & {*ENDS["time"][0], *ROLES["time"], *ROLES["date"]}) or any(
        _are_times(sample, at) for at in range(len(names))
    )
    if whole or (single and timed):
        return "trips"
    if not (named or pair) and not counted:
        return None if not timed else "trips"
    numeric = [at for at in found.rest() if _is_numeric(sample, at) and (pair is None or
               at not in pair) and plain[at] not in (*ROLES["time"], *ROLES["date"])]  # fmt: skip
    return "trips" if timed and not numeric else "movements"


_ORIGINS = tuple(dict.fromkeys((*FLOW_ROLES["origin"], *STATIONS[0])))
_DESTS = tuple(dict.fromkeys((*FLOW_ROLES["dest"], *STATIONS[1])))


def _has_own_place(source: RawSource) -> bool:
    """Whether rows have a time and a place of their own, beside where a line begins and ends."""
    try:
        at = find_columns(source).positions
    except InputError:
        return False
    return {"lon", "lat"} <= at.keys()


def _are_gates(names: Sequence[str], plain: Sequence[str], sample: Sequence[Sequence[str]]) -> bool:
    """Whether rows are sums of who came in and who went out at a station, by time."""
    if {"lon", "lat"} <= set(plain) and len(plain) <= 4:
        return False
    words = [set(words_of(name)) | {plain_name(name)} for name in names]
    sides = [
        [at for at, own in enumerate(words) if own & side and _is_numeric(sample, at)]
        for side in (_IN, _OUT)
    ]
    stations = any(own & _STATIONS for own in words)
    timed = _has_time(plain, sample)
    if all(sides) and (timed or stations):
        return True
    strong = {"entries", "exits", "boardings", "alightings", "tapins", "tapouts"}
    if stations and timed and any(words[at] & strong for side in sides for at in side):
        return True
    way = any(own & _WAYS and _are_sides(sample, at) for at, own in enumerate(words))
    numeric = any(plain[at] in COUNT_ROLES["count"] or words[at] & _MEASURES
                  for at in range(len(names)) if _is_numeric(sample, at))  # fmt: skip
    if stations and timed and "ridership" in plain:
        return True
    return way and numeric and timed and stations


def _are_sides(sample: Sequence[Sequence[str]], at: int) -> bool:
    values = {row[at].strip().casefold() for row in sample[:50] if at < len(row)} - {""}
    return bool(values) and values <= _SIDES


def _of_people_or_places(source: RawSource, plain: Sequence[str]) -> str | None:
    """Fixes, or places; None where columns are missing."""
    found = ColumnFinder(source, ROLES)
    try:
        find_columns(source)
    except InputError:
        pass
    else:
        return "fixes"
    if laid_out(source, Choices(), "The file") is not source:
        return "fixes"
    found.look_for("lon", "lat", "geometry", "place", "user_id")
    at = found.positions
    keyed = bool(set(plain) & _KEYS)
    placed = {"lon", "lat"} <= at.keys() or "geometry" in at
    timed = _has_time(plain, source.sample)
    if timed and keyed and "user_id" in at:
        return "fixes"
    if not placed or timed:
        return None
    if "user_id" in at and plain[at["user_id"]] not in _ANYBODYS:
        return None  # people whose times are missing
    ids = found.values("user_id") if "user_id" in at else []
    return "places" if keyed or len(set(ids)) == len(ids) else None


def _has_time(plain: Sequence[str], sample: Sequence[Sequence[str]]) -> bool:
    known = {*ROLES["time"], *ROLES["date"], *COUNT_ROLES["time"], *COUNT_ROLES["date"],
             *ENDS["time"][0]} - {"from", "start", "t", "day"}  # fmt: skip
    return bool(known & set(plain)) or any(_are_times(sample, at) for at in range(len(plain)))


def _are_times(sample: Sequence[Sequence[str]], at: int) -> bool:
    values = [row[at] for row in sample[:20] if at < len(row) and row[at].strip()]
    return bool(values) and all(map(looks_like_time, values))


def _is_numeric(sample: Sequence[Sequence[str]], at: int) -> bool:
    values = [row[at] for row in sample[:50] if at < len(row) and row[at].strip()]
    return bool(values) and all(number_of(value) is not None for value in values)
