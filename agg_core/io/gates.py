"""Entries and exits as operators publish them: one table or two, long or wide, with places."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import PurePath

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.counts import counts_of
from agg_core.io.counts.cells import Cells, to_grid
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.values import coded
from agg_core.io.distances import read_distances
from agg_core.io.formats.registry import Source
from agg_core.io.guess.columns import ROLES as PLACE_ROLES
from agg_core.io.guess.columns import ColumnFinder, plain_name
from agg_core.io.guess.ways import ENTRY_NAMES, EXIT_NAMES
from agg_core.io.known_tables import open_table
from agg_core.io.source import RawSource, show_names
from agg_core.space.settings import AnyGridSettings
from agg_core.tables.counts import MISSING, CountTable
from agg_core.tables.gates import GateTable

__all__ = ["read_gates"]

FloatArray = npt.NDArray[np.float64]

WORDS_IN, WORDS_OUT = (*ENTRY_NAMES, "enter"), (*EXIT_NAMES, "leave", "left")
"""Names of columns, and words in a column of directions, of people who go in and who go out."""

SIDES: Mapping[str, tuple[str, ...]] = {"entries": WORDS_IN, "exits": WORDS_OUT}

ROLES: Mapping[str, tuple[str, ...]] = {
    "station": (
        *("station", "stationname", "name", "stop", "stopname", "gate", "gatename", "stationid"),
        *("stopid", "id", "code", "stationcode", "駅", "駅名", "cell"),
    ),
    "lon": PLACE_ROLES["lon"],
    "lat": PLACE_ROLES["lat"],
    "line": (
        *("line", "lines", "linename", "route", "routename", "路線", "路線名", "network", "group"),
    ),
}
"""Spellings of the columns of a table of stations, as `plain_name` writes them."""

MOST_WITHOUT_PLACE = 0.05
"""Share of all people who pass stations without a place, up to which these are left out."""

NUDGE = 1e-4
"""Degrees by which a second station at the same place is set beside the first."""

ELSEWHERE = 0.01
"""Degrees from the first place of a station beyond which another one is said."""

MOST_DIRECTIONS = 4
SHOWN, ALIKE = 5, 0.7


@dataclass(frozen=True)
class _Places:
    """Where stations lie and which lines they are of, by their names as `_key` writes them."""

    names: Mapping[str, str]
    lonlat: Mapping[str, tuple[float, float]]
    lines: Mapping[str, str]
    notes: tuple[str, ...] = ()


def read_gates(
    entries: Source,
    exits: Source | None = None,
    places: Source | None = None,
    *,
    distances: Source | None = None,
    choices: CountChoices | None = None,
) -> GateTable:
    """Read who entered and who left each station, in each step of time.

    >>> import agg_core
    >>> import pandas as pd
    >>> hours = ["2024-05-01 08:00", "2024-05-01 09:00"]
    >>> gates = pd.DataFrame(
    ...     {"time": hours * 2, "station": ["a", "a", "b", "b"], "entries": [9, 3, 1, 2],
    ...      "exits": [0, 1, 5, 8]}
    ... )
    >>> table = agg_core.read_gates(gates)
    >>> table.stations, table.n_entered, table.n_left
    (('a', 'b'), 15.0, 14.0)

    Parameters
    ----------
    entries : a table of station, time and count, a row for each or a column for each station; with
        ``exits`` None it holds both directions, in two columns or told by a column of directions
    exits : the same of people who leave
    places : station, lon, lat and perhaps line; a station of several lines has a row for each, or
        names with a semicolon between
    distances : kilometres between stations on the way that people take (see `read_distances`)
    choices : how the tables of counts are read; rows that are absent at a time of which other
        stations have some are zero, unless it says otherwise. The columns of the roles entries and
        exits, where it states them, are those of each direction, of one table or of two

    Raises
    ------
    InputError
        If a table cannot be read, a direction is not found, or stations with many people have no
        place.
    """
    choices = choices or CountChoices()
    if choices.absent == "auto":
        choices = replace(choices, absent="zero")
    both = _both_sides(entries, exits, choices)
    notes: list[str] = []
    sides, names = _aligned(both, notes)
    if places is None:
        found = GateTable(*sides, notes=tuple(notes))
    else:
        table = _read_places(places)
        notes += table.notes
        found = _placed(sides, names, table, notes)
    if distances is not None:
        found = replace(found, km=read_distances(distances, found.stations))
    return found


def _name_of(source: Source, otherwise: str) -> str:
    is_path = isinstance(source, str | PathLike)
    return printable(PurePath(source).name) if is_path else otherwise  # type: ignore[arg-type]


def _both_sides(
    entries: Source, exits: Source | None, choices: CountChoices
) -> tuple[CountTable, CountTable]:
    stated = {role: str(name) for role, name in choices.columns if role in SIDES}
    choices = replace(
        choices, columns=tuple(each for each in choices.columns if each[0] not in SIDES)
    )
    if exits is not None:
        ways = ((entries, "entries"), (exits, "exits"))
        first, second = (
            counts_of(source, _of_column(source, side, stated, choices)) for source, side in ways
        )
        return first, second
    table = open_table(entries, _name_of(entries, "The table"))
    found = {side: stated.get(side) or _column_of(table, SIDES[side]) for side in SIDES}
    if all(found.values()):
        first, second = (
            counts_of(entries, _with_count(choices, str(name))) for name in found.values()
        )
        return first, second
    at, words_in, words_out = _directions(table)
    first, second = (
        counts_of(entries, replace(choices, where=(*choices.where, (table.names[at], word))))
        for word in (words_in, words_out)
    )
    return first, second


def _with_count(choices: CountChoices, name: str) -> CountChoices:
    columns = (*[each for each in choices.columns if each[0] != "count"], ("count", name))
    return replace(choices, columns=columns)


def _of_column(
    source: Source, side: str, stated: Mapping[str, str], choices: CountChoices
) -> CountChoices:
    """Choices by which the column of one direction is read where a table has that of the other."""
    if side in stated:
        return _with_count(choices, stated[side])
    if any(role == "count" for role, _ in choices.columns):
        return choices
    name = _column_of(open_table(source, _name_of(source, "The table")), SIDES[side])
    return choices if name is None else _with_count(choices, name)


def _column_of(table: RawSource, words: Sequence[str]) -> str | None:
    """The column that is called by a word, alone or as one word of its name."""
    plain = [plain_name(name) for name in table.names]
    for word in words:
        if word in plain:
            return table.names[plain.index(word)]
    for name in table.names:
        if set(re.split(r"[^\w]+|_", name.casefold())) & set(words):
            return name
    return None


def _directions(table: RawSource) -> tuple[int, str, str]:
    """Position of the column of directions, and its words for in and for out.

    Raises
    ------
    InputError
        If there is none.
    """
    for at in range(len(table.names)):
        texts = {row[at].strip() for row in table.sample if at < len(row)} - {""}
        if not 1 <= len(texts) <= MOST_DIRECTIONS:
            continue
        texts = {text for part in table.batches([at]) for text in coded(part.columns[at]).texts}
        plain = {plain_name(text): text.strip() for text in texts if text.strip()}
        inward = [plain[word] for word in WORDS_IN if word in plain]
        outward = [plain[word] for word in WORDS_OUT if word in plain]
        if inward and outward:
            return at, inward[0], outward[0]
    raise InputError(
        f"Entries and exits are needed both, and the columns are {show_names(table)}; give a table "
        "of each, one with columns entries and exits, or one with a column of directions.",
        code="gates-one-way",
    )


def _key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _aligned(
    both: tuple[CountTable, CountTable], notes: list[str]
) -> tuple[tuple[CountTable, CountTable], tuple[str, ...]]:
    """Both tables over all moments and stations of either."""
    steps = {side.step for side in both}
    zones = {side.timezone for side in both}
    if len(steps) > 1 or len(zones) > 1:
        told = " and ".join(str(each) for each in (steps if len(steps) > 1 else zones))
        raise InputError(
            f"Entries and exits must be of the same steps and time zone; these are of {told}.",
            code="gates-differ",
        )
    names: dict[str, str] = {}
    for side in both:
        for name in side.cells:
            names.setdefault(_key(name), name)
    keys = list(names)
    for side, what, other in zip(both, ("entries", "exits"), ("exits", "entries"), strict=True):
        mine = {_key(name) for name in side.cells}
        lacking = [names[key] for key in keys if key not in mine]
        if lacking:
            some = ", ".join(printable(name, 40) for name in lacking[:SHOWN])
            notes.append(
                f"{len(lacking):,} {'station has' if len(lacking) == 1 else 'stations have'} "
                f"{other} and no {what}: {some}; nobody is taken to pass there that way."
            )
    times = both[0].times.union(both[1].times)
    first, second = (_over(side, times, keys, tuple(names.values())) for side in both)
    return (first, second), tuple(names.values())


def _over(
    side: CountTable, times: pd.DatetimeIndex, keys: Sequence[str], names: tuple[str, ...]
) -> CountTable:
    at = {key: number for number, key in enumerate(keys)}
    rows = times.get_indexer(side.times)
    counts = np.full((len(times), len(keys)), np.nan)
    status = np.full(counts.shape, MISSING, dtype=np.uint8)
    # Of a station that has no rows at all nobody is known to pass.
    known = {_key(name) for name in side.cells}
    for key, number in at.items():
        if key not in known:
            counts[rows, number], status[rows, number] = 0.0, 0
    for number, name in enumerate(side.cells):
        column = at[_key(name)]
        counts[rows, column], status[rows, column] = side.counts[:, number], side.status[:, number]
    local = times.tz_convert(side.timezone)
    apart = np.diff(times.to_numpy()) != side.step.to_timedelta64()
    labels = [
        f"{hour:02d}:{minute:02d}" for hour, minute in zip(local.hour, local.minute, strict=True)
    ]
    slots = tuple(sorted(set(labels)))
    of = {label: number for number, label in enumerate(slots)}
    return replace(
        side,
        times=times,
        sequence=np.concatenate([[0], np.cumsum(apart)]).astype(np.int64),
        slot=np.array([of[label] for label in labels], dtype=np.int64),
        slots=slots,
        cells=names,
        counts=counts,
        status=status,
        grid=None,
    )


def _read_places(source: Source) -> _Places:
    name = _name_of(source, "The table of stations")
    table = open_table(source, name)
    finder = ColumnFinder(table, ROLES)
    finder.look_for("station", "lon", "lat", "line")
    at = finder.positions
    missing = [role for role in ("station", "lon", "lat") if role not in at]
    if missing:
        raise InputError(
            f"{name} has no column {' or '.join(missing)} among {show_names(table)}; a table "
            "of stations has station, lon, lat and perhaps line.",
            code="column-not-found",
        )
    names: dict[str, str] = {}
    lonlat: dict[str, tuple[float, float]] = {}
    lines: dict[str, list[str]] = {}
    n_none, elsewhere = 0, dict[str, None]()
    for batch in table.batches(list(at.values())):
        columns = {role: _texts(batch.columns[position]) for role, position in at.items()}
        for row, station in enumerate(columns["station"]):
            key = _key(station)
            place = _degrees(columns["lon"][row], columns["lat"][row])
            if not key or place is None:
                n_none += 1
                continue
            names.setdefault(key, station)
            first = lonlat.setdefault(key, place)
            if max(abs(first[0] - place[0]), abs(first[1] - place[1])) > ELSEWHERE:
                elsewhere[station] = None
            line = columns["line"][row].strip() if "line" in columns else ""
            if line and line not in lines.setdefault(key, []):
                lines[key].append(line)
    return _Places(
        names, lonlat, {key: ";".join(found) for key, found in lines.items()},
        tuple(_doubts(name, n_none, list(elsewhere))),
    )  # fmt: skip


def _doubts(name: str, n_none: int, elsewhere: Sequence[str]) -> Iterator[str]:
    """What a table of stations says that is not used."""
    if n_none:
        rows = "row tells" if n_none == 1 else "rows tell"
        yield f"{n_none:,} {rows} no name or no place in {name}, and nothing is taken from there."
    if elsewhere:
        some = ", ".join(printable(station, 40) for station in elsewhere[:SHOWN])
        yield (
            f"{name} puts {len(elsewhere):,} of its names at several places far from each other "
            f"({some}); the first of each is taken."
        )


def _texts(column: object) -> list[str]:
    found = coded(column)
    texts = found.texts
    return [texts[code] for code in found.codes]


def _degrees(lon: str, lat: str) -> tuple[float, float] | None:
    try:
        x, y = float(lon), float(lat)
    except ValueError:
        return None
    there = -180 <= x <= 180 and -90 <= y <= 90 and (x, y) != (0.0, 0.0)
    return (x, y) if there else None


def _placed(
    sides: tuple[CountTable, CountTable],
    names: tuple[str, ...],
    places: _Places,
    notes: list[str],
) -> GateTable:
    """The stations that have a place, with it."""
    keys = [_key(name) for name in names]
    has = np.array([key in places.lonlat for key in keys])
    if not has.all():
        passed = sum(np.nansum(side.counts, axis=0) for side in sides)
        share = float(passed[~has].sum() / max(passed.sum(), 1e-300))
        lost = [name for name, there in zip(names, has, strict=True) if not there]
        some = ", ".join(_perhaps(name, places) for name in lost[:SHOWN])
        if share > MOST_WITHOUT_PLACE or not has.any():
            raise InputError(
                f"{len(lost):,} of {len(names):,} stations, which {share:.0%} of the people pass, "
                f"are not in the table of stations: {some}; write their names as there.",
                code="stations-without-place",
            )
        notes.append(
            f"{len(lost):,} of {len(names):,} stations have no place and are left out, with "
            f"{share:.2%} of the people: {some}."
        )
    kept = np.flatnonzero(has)
    chosen = tuple(names[number] for number in kept)
    where = _apart([places.lonlat[keys[number]] for number in kept])
    lines = tuple(places.lines.get(keys[number], "") for number in kept)
    grid = to_grid(Cells(list(chosen), "names", dict(zip(chosen, where, strict=True))))
    entries, exits = (_some_stations(side, kept, chosen, grid) for side in sides)
    return GateTable(
        entries, exits, lines=lines if any(lines) else (), places=np.array(where),
        notes=tuple(notes),
    )  # fmt: skip


def _perhaps(name: str, places: _Places) -> str:
    """A name without a place, and the one that it may be meant for."""
    like = difflib.get_close_matches(_key(name), places.names, n=1, cutoff=ALIKE)
    perhaps = f" (perhaps {printable(places.names[like[0]], 40)})" if like else ""
    return printable(name, 40) + perhaps


def _apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Places of which no two are the same."""
    taken: set[tuple[float, float]] = set()
    found = []
    for x, y in places:
        place = (x, y)
        while place in taken:
            place = (round(place[0] + NUDGE, 7), y)
        taken.add(place)
        found.append(place)
    return found


def _some_stations(
    side: CountTable,
    kept: npt.NDArray[np.intp],
    names: tuple[str, ...],
    grid: AnyGridSettings | None,
) -> CountTable:
    return replace(
        side, cells=names, counts=side.counts[:, kept], status=side.status[:, kept], grid=grid
    )
