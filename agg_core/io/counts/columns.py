"""Which columns of a table of counts are the time, the cell and the count, and its layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.counts.layouts import OPTIONS, PUBLISHED_LAYOUTS, CountColumns
from agg_core.io.counts.values import bare_date, is_count
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import number_of, plain_name
from agg_core.io.guess.times import looks_like_clock, looks_like_time

__all__ = ["ROLES", "SIDES", "find_count_columns", "looks_like_counts"]

ROLES: Mapping[str, tuple[str, ...]] = {
    "date": (
        *("date", "localdate", "日付", "年月日", "観測日", "datum", "fecha", "ds", "day"),
        *("yyyymmdd",),
    ),
    "clock": (
        *("time", "hour", "時刻", "時間帯", "時間", "時", "hhmm", "clock", "localtime", "slot"),
        *("timeslot", "hourofday", "stunde", "hora", "heure", "timeofday", "slotid"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "日時", "utctime", "timeutc", "localtime", "snapshot"),
        *("observedat", "lastupdated", "datehour", "hour", "starttime", "start", "begin", "from"),
        *(
            "periodstart",
            "date",
            "日付",
            "年月日",
            "day",
            "時刻",
            "ts",
            "unixtime",
            "epoch",
            "when",
        ),
        *("lastreported", "t"),
    ),
    "cell": (
        *("cell", "cellid", "area", "areacode", "areaid", "mesh", "meshcode", "meshid"),
        *("mesh1kmid", "mesh500mid", "mesh250mid", "gridcode", "gridid", "grid", "quadkey"),
        *("tile", "tileid", "h3", "h3index", "h3cell", "hex", "hexid", "station", "stationid"),
        *("zone", "zoneid", "sensor", "sensorid", "counter", "counterid", "site", "siteid"),
        *("location", "locationid", "エリア", "エリアコード", "メッシュ", "メッシュコード", "地域"),
        *("地域コード", "地点", "観測地点", "place", "placeid", "region", "regionid", "district"),
        *("ward", "citycode", "block", "room", "stationname", "name", "code", "id"),
    ),
    "lon": ("lon", "lng", "longitude", "long", "経度", "x", "lonx"),
    "lat": ("lat", "latitude", "緯度", "y", "laty"),
    "row": ("row", "gridrow", "rowid", "rowno", "rowindex", "irow", "iy", "yindex", "行"),
    "col": (
        *("col", "column", "gridcol", "gridcolumn", "colid", "colno", "colindex", "icol", "ix"),
        *("xindex", "columnid", "columnindex", "列"),
    ),
    "west": ("west", "minlon", "lonmin", "xmin", "minx"),
    "south": ("south", "minlat", "latmin", "ymin", "miny"),
    "east": ("east", "maxlon", "lonmax", "xmax", "maxx"),
    "north": ("north", "maxlat", "latmax", "ymax", "maxy"),
    "count": (
        *("count", "counts", "population", "people", "persons", "n", "num", "number", "人口"),
        *("人数", "滞在人口", "滞在人数", "来訪者数", "visitors", "visits", "users", "devices"),
        *("volume", "numbikesavailable", "numvehiclesavailable", "bikes", "vehicles", "cars"),
        *("occupancy", "pedestrians", "passengers", "headcount", "stock", "total", "value"),
        *("ncrisis", "nbaseline", "estimate", "pop", "ncount", "usercount", "availablebikes"),
    ),
}
"""Spellings of each column's name, in order of preference, as `plain_name` writes them."""

SIDES = ("west", "south", "east", "north")
"""Columns that are of use together only, as are those of a place and of a row and column."""

_PERSON = frozenset(PERSON_ROLES["user_id"]) - {"id", "code", "key", "name", "名前", "unit", "bus"}
_SPOKEN = {
    **{"time": "time", "count": "count"},
    "cell": "cell (or longitude and latitude, or row and column)",
}
_SLOTS = frozenset(("slot", "timeslot", "slotid"))
_SAMPLE = 50
_TOGETHER = (("lon", "lat"), ("row", "col"), SIDES)

Names = Sequence[str]
Rows = Sequence[Sequence[str]]


def looks_like_counts(names: Names, sample: Rows) -> bool:
    """Whether a table with these column names and first rows holds counts and no individuals.

    A table with a column of persons is one of trajectories. Percentages of change count as
    counts, so that their reader says why they cannot be used.
    """
    plain = [plain_name(name) for name in names]
    if _are_changes(plain) or _fits_known(plain):
        return True
    if _PERSON & set(plain):
        return False
    try:
        found = find_count_columns(names, sample, {}, None)
    except InputError:
        return False
    if found.layout == "wide":
        return len(found.wide) >= 3 and not {"lon", "lat"} <= set(_roles_named(plain))
    return "count" not in found.guesses or plain[found.positions["count"]] in ROLES["count"]


def find_count_columns(
    names: Names, sample: Rows, stated: Mapping[str, int], layout: str | None
) -> CountColumns:
    """Find layout and columns: as the caller says, else as a known layout has them, else by name.

    ``names`` are empty where a file has none; ``stated`` maps roles to positions.

    Raises
    ------
    InputError
        If a column is not found or could be several, or the table cannot be one of counts.
    """
    plain = [plain_name(name) for name in names]
    if _are_changes(plain):
        raise InputError(
            "This is a mobility report of changes in percent, which tell nothing of how many "
            "people are where: nobody can be followed from them; use a table of counts.",
            code="changes-in-percent",
        )
    if layout in (None, *PUBLISHED_LAYOUTS, "gbfs"):
        for key, (fits, make) in PUBLISHED_LAYOUTS.items():
            if layout in (None, key) and fits(plain):
                return _with_stated(make(names, plain), stated, names)
        if layout in (None, "gbfs") and _is_gbfs(plain):
            return _with_stated(_gbfs(names, plain, sample), stated, names)
        if layout is not None:
            raise InputError(
                f"The file is not laid out as {layout}: its columns are {_shown(names)}; "
                "leave the layout open.",
                code="layout-mismatch",
            )
    return _plain_table(names, plain, sample, stated, layout)


def _with_stated(found: CountColumns, stated: Mapping[str, int], names: Names) -> CountColumns:
    """A known layout with some other columns, as somebody says."""
    positions, guesses = {**found.positions, **stated}, dict(found.guesses)
    if "time" in stated:
        positions = {role: at for role, at in positions.items() if role not in ("date", "clock")}
    for role, at in stated.items():
        known = guesses.get(role, Guess(""))
        others = tuple(n for n in (known.value, *known.alternatives) if n not in ("", names[at]))
        guesses[role] = Guess(_called(names, at), others, option=f"column {role}")
    used = set(stated.values())
    options = tuple(at for at in found.options if at not in used)
    return replace(found, positions=positions, options=options, guesses=guesses)


def _are_changes(plain: Names) -> bool:
    return any("percentchangefrombaseline" in name for name in plain)


def _fits_known(plain: Names) -> bool:
    return _is_gbfs(plain) or any(fits(plain) for fits, _ in PUBLISHED_LAYOUTS.values())


def _is_gbfs(plain: Names) -> bool:
    counts = {"numbikesavailable", "numvehiclesavailable"}
    return "stationid" in plain and bool(counts & set(plain))


def _gbfs(names: Names, plain: Names, sample: Rows) -> CountColumns:
    found = _plain_table(names, plain, sample, {}, "long")
    return CountColumns(
        "gbfs", "GBFS station status", found.positions, timezone="UTC", guesses=found.guesses
    )


# ------------------------------------------------------------------------------ plain tables


def _plain_table(
    names: Names, plain: Names, sample: Rows, stated: Mapping[str, int], layout: str | None
) -> CountColumns:
    """Long (a row per time and cell) or wide (a row per time, a column per cell)."""
    at, guesses = dict(stated), dict[str, Guess]()
    _find_time(names, plain, sample, at, guesses)
    if "time" not in at and "date" not in at:
        raise _not_found("time", names)
    if layout != "wide":
        for role in ("cell", *_TOGETHER[0], *_TOGETHER[1], *SIDES):
            _find_named(role, names, plain, at, guesses)
        at = _whole_sets(at, stated)
    placed = "cell" in at or any({*roles} <= at.keys() for roles in _TOGETHER[:2])
    if not placed:  # cells may be called by points of the compass
        at = {role: i for role, i in at.items() if role not in SIDES or role in stated}
    rest = [i for i in range(len(names)) if i not in at.values()]
    numeric = [i for i in rest if _holds_numbers(sample, i)]
    clock = _clock_kind(plain, sample, at.get("clock"))
    if layout == "wide" or (layout is None and not placed and len(numeric) >= 2):
        if layout is None:
            _refuse_people(names, plain)
        return _wide(names, numeric, rest, at, plain, guesses, clock)
    if not placed:
        raise _not_found("cell", names)
    _find_named("count", names, plain, at, guesses)
    if "count" not in at:
        _refuse_people(names, plain)
        if len(numeric) != 1:
            raise _not_found("count", names)
        at["count"] = numeric[0]
        others = tuple(printable(names[i]) for i in rest if i != numeric[0] and names[i])
        guesses["count"] = Guess(_called(names, numeric[0]), others, option="column count")
    used = set(at.values())
    options = tuple(i for i, name in enumerate(plain) if name in OPTIONS and i not in used)
    return CountColumns(
        "long", "a row per time and cell", at, options, clock=clock, guesses=guesses
    )


def _whole_sets(at: Mapping[str, int], stated: Mapping[str, int]) -> dict[str, int]:
    """Columns without those that are of use together only, where one of them is not there."""
    alone = {
        role for roles in _TOGETHER for role in roles if not {*roles} <= at.keys()
    } - stated.keys()
    return {role: i for role, i in at.items() if role not in alone}


def _refuse_people(names: Names, plain: Names) -> None:
    """Refuse a table with a column of persons, of which nobody said what its counts are."""
    person = next((name for name, spelt in zip(names, plain, strict=True) if spelt in _PERSON), "")
    if person:
        raise InputError(
            f"The column {printable(person, 40)} names individuals, so that the table holds "
            "trajectories rather than counts; read it as these, or say which column is the count.",
            "--column count=NAME",
            code="table-of-trajectories",
        )


def _wide(
    names: Names,
    numeric: Sequence[int],
    rest: Sequence[int],
    at: Mapping[str, int],
    plain: Names,
    guesses: Mapping[str, Guess],
    clock: str,
) -> CountColumns:
    positions = {role: i for role, i in at.items() if role in ("time", "date", "clock")}
    totals = [i for i in numeric if plain[i] in ("total", "sum", "計", "合計", "総数", "all")]
    cells = tuple(i for i in numeric if i not in totals)
    if not cells:
        raise _not_found("count", names)
    others = [printable(names[i], 40) for i in rest if i not in cells and names[i]]
    told = {role: guess for role, guess in guesses.items() if role in ("time", "date", "clock")}
    if others:
        note = "no cells, and left out: " + ", ".join(others[:10])
        told["columns"] = Guess(f"{len(cells):,} columns of cells", (), note)
    return CountColumns(
        "wide",
        "a row per time, a column per cell",
        positions,
        wide=cells,
        clock=clock,
        guesses=told,
    )


def _find_time(
    names: Names, plain: Names, sample: Rows, at: dict[str, int], guesses: dict[str, Guess]
) -> None:
    """One column of times, or a date and a clock time, an hour or a slot in another."""
    if "time" in at:
        return
    _find_named("date", names, plain, at, guesses)
    if "date" in at and not any(map(_has_clock, _values(sample, at["date"]))):
        _find_named("clock", names, plain, at, guesses)
        if "clock" in at and all(_is_clock(v) for v in _values(sample, at["clock"])):
            return
        at.pop("clock", None)
        guesses.pop("clock", None)
    if "date" in at:
        at["time"] = at.pop("date")
        guesses["time"] = guesses.pop("date", Guess(_called(names, at["time"])))
        return
    _find_named("time", names, plain, at, guesses)


def _has_clock(value: str) -> bool:
    """Whether a date has a time of day, other than the midnight that typed files give it."""
    return looks_like_time(bare_date(value))


def _is_clock(value: str) -> bool:
    number = number_of(value)
    return looks_like_clock(value) or (number is not None and 0 <= number <= 2400)


def _clock_kind(plain: Names, sample: Rows, at: int | None) -> str:
    if at is None:
        return ""
    values = _values(sample, at)
    if any(number_of(value) is None for value in values):
        return "clock"
    if plain[at] in _SLOTS:
        return "slots"
    largest = max((number_of(value) or 0 for value in values), default=0)
    written = any(len(value) == 4 and value[0] == "0" for value in values)
    return "hhmm" if largest > 48 or written or plain[at] == "hhmm" else "hours"


def _find_named(
    role: str, names: Names, plain: Names, at: dict[str, int], guesses: dict[str, Guess]
) -> None:
    """The column whose name spells a role, the preferred spelling first."""
    if role in at:
        return
    rank = {spelling: i for i, spelling in enumerate(ROLES[role])}
    taken: Collection[int] = at.values()
    found = sorted(
        (rank[name], i) for i, name in enumerate(plain) if name in rank and i not in taken
    )
    if found:
        at[role] = found[0][1]
        others = tuple(printable(names[i]) for _, i in found[1:])
        guesses[role] = Guess(printable(names[at[role]]), others, option=f"column {role}")


def _roles_named(plain: Names) -> list[str]:
    return [role for role, spellings in ROLES.items() if set(spellings) & set(plain)]


def _values(sample: Rows, at: int) -> list[str]:
    return [row[at].strip() for row in sample[:_SAMPLE] if at < len(row) and row[at].strip()]


def _holds_numbers(sample: Rows, at: int) -> bool:
    """Whether half of the filled sample values are counts; an empty column may hold some."""
    values = _values(sample, at)
    numbers = sum(is_count(value) for value in values)
    return 2 * numbers >= len(values)


def _called(names: Names, at: int) -> str:
    return printable(names[at]) or f"column {at}"


def _shown(names: Names) -> str:
    shown = [printable(name, 40) or f"(column {i})" for i, name in enumerate(names[:30])]
    return ", ".join(shown) + (", …" if len(names) > 30 else "")


def _not_found(role: str, names: Names) -> InputError:
    return InputError(
        f"No column is sure to hold the {_SPOKEN[role]} among: {_shown(names)}; "
        f"say which column it is.",
        f"--column {role}=NAME",
        code="column-not-found",
    )
