"""Which columns of a table of counts are the time, the cell and the count, and its layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.counts.layouts import OPTIONS, PUBLISHED_LAYOUTS, CountColumns
from agg_core.io.counts.values import bare_date, is_count
from agg_core.io.guess.columns import ROLES as PERSON_ROLES
from agg_core.io.guess.columns import ColumnFinder, number_of, plain_name
from agg_core.io.guess.ends import end_columns
from agg_core.io.guess.times import looks_like_clock, looks_like_time
from agg_core.io.source import RawSource, show_names

__all__ = ["ROLES", "SIDES", "changes_in_percent", "find_count_columns", "looks_like_counts"]

ROLES: Mapping[str, tuple[str, ...]] = {
    "date": (*(*PERSON_ROLES["date"], "観測日", "ds", "day", "yyyymmdd"),),
    "clock": (
        *("time", "hour", "時刻", "時間帯", "時間", "時", "hhmm", "clock", "localtime", "slot"),
        *("timeslot", "hourofday", "stunde", "hora", "heure", "timeofday", "slotid"),
    ),
    "time": (
        *("time", "timestamp", "datetime", "日時", "utctime", "timeutc", "localtime", "snapshot"),
        *("observedat", "lastupdated", "datehour", "hour", "starttime", "start", "begin", "from"),
        *("periodstart", "date", "日付", "年月日", "day", "時刻", "ts", "unixtime", "epoch"),
        *("when", "lastreported", "t"),
    ),
    "cell": (
        *("cell", "cellid", "area", "areacode", "areaid", "mesh", "meshcode", "meshid"),
        *("mesh1kmid", "mesh500mid", "mesh250mid", "gridcode", "gridid", "grid", "quadkey"),
        *("tile", "tileid", "h3", "h3index", "h3cell", "hex", "hexid", "station", "stationid"),
        *("zone", "zoneid", "sensor", "sensorid", "counter", "counterid", "site", "siteid"),
        *("location", "locationid", "エリア", "エリアコード", "メッシュ", "メッシュコード", "地域"),
        *("地域コード", "地点", "観測地点", "place", "placeid", "region", "regionid", "district"),
        *("ward", "citycode", "block", "room", "stationname", "stop", "stopid", "stopname"),
        *(
            "stopcode",
            "stationcode",
            "駅",
            "駅名",
            "gate",
            "gateid",
            "gatename",
            "tower",
            "towerid",
        ),
        *("name", "code", "id"),
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
    "cell": "cell (or longitude and latitude, or row and col)",
}
LEAST_WIDE = 3
"""Columns of cells by which a table is told; one less where others tell more of the time."""
NO_CELLS = frozenset((
    *("hour", "hourofday", "weekday", "isweekend", "weekend", "dayofweek", "dow", "day", "month"),
    *("year", "week", "weekofyear", "weeknumber", "dayofyear", "dayofmonth", "quarter", "minute"),
    *("season", "holiday", "isholiday", "workday", "isworkday", "workingday", "daytype", "second"),
    *("index", "rowid", "rownumber", "rowno", "no", "unnamed0", "timezone", "utcoffset", "dst"),
    *("temperature", "temp", "rain", "rainfall", "precipitation", "humidity", "wind", "windspeed"),
    *("snow", "weather", "pressure", "曜日", "祝日", "時", "月", "年", "日", "wochentag", "monat"),
    *("isholidayorweekend", "publicholiday", "schoolholiday", "slot", "timeslot", "period"),
))  # fmt: skip
"""Columns that tell more of a time, or of the weather then, and are no cells."""
_SLOTS = frozenset(("slot", "timeslot", "slotid"))
_COUNT_ALONE = frozenset(("count", "counts", "population", "人口", "人数", "滞在人口"))
"""What no cell is called."""
_TOTALS = ("total", "sum", "計", "合計", "総数", "all")
_OF_TIME = ("time", "date", "clock")
_AXES = ("lon", "lat")
_TOGETHER = (_AXES, ("row", "col"), SIDES)


def looks_like_counts(names: Sequence[str], sample: Sequence[Sequence[str]]) -> bool:
    """Whether a table with these column names and first rows holds counts and no individuals.

    A table with a column of persons is one of trajectories. Percentages of change count as
    counts, so that their reader says why they cannot be used.
    """
    plain = [plain_name(name) for name in names]
    if changes_in_percent(plain) or any(
        layout.fits(plain) for layout in PUBLISHED_LAYOUTS.values()
    ):
        return True
    if _PERSON & set(plain):
        return False
    try:
        found = find_count_columns(RawSource(tuple(names), True, sample))
    except InputError:
        return False
    if found.layout == "wide":
        least = LEAST_WIDE - bool(NO_CELLS & set(plain))
        return len(found.wide) >= least and not all(set(ROLES[axis]) & set(plain) for axis in _AXES)
    return "count" not in found.guesses or plain[found.positions["count"]] in ROLES["count"]


def find_count_columns(
    source: RawSource,
    columns: Mapping[str, str | int] | None = None,
    layout: str | None = None,
) -> CountColumns:
    """Find layout and columns: as the caller says, else as a known layout has them, else by name.

    Raises
    ------
    InputError
        If a column is not found or could be several, or the table cannot be one of counts.
    """
    found = ColumnFinder(source, ROLES, columns)
    if changes_in_percent(found.plain):
        raise InputError(
            "This is a mobility report of changes in percent, which tell nothing of how many "
            "people are where: nobody can be followed from them; use a table of counts.",
            code="changes-in-percent",
        )
    for key, known in PUBLISHED_LAYOUTS.items():
        if layout in (None, key) and known.fits(found.plain):
            laid_out = known.columns(key, found.names, found.plain)
            if not laid_out.positions:
                plain = _plain_table(ColumnFinder(source, ROLES), "long")
                laid_out = replace(laid_out, positions=plain.positions, guesses=plain.guesses)
            return _with_stated(laid_out, found)
    if layout in PUBLISHED_LAYOUTS:
        raise InputError(
            f"The file is not laid out as {layout}: its columns are {show_names(source)}; "
            "leave the layout open.",
            code="layout-mismatch",
        )
    return _plain_table(found, layout)


def _with_stated(known: CountColumns, found: ColumnFinder) -> CountColumns:
    """A known layout with some other columns, as somebody says."""
    positions, guesses = {**known.positions, **found.stated}, dict(known.guesses)
    if "time" in found.stated:
        positions = {role: at for role, at in positions.items() if role not in ("date", "clock")}
    for role, at in found.stated.items():
        before = guesses.get(role, Guess(""))
        others = (before.value, *before.alternatives)
        others = tuple(name for name in others if name not in ("", found.names[at]))
        guesses[role] = Guess(found.called(at), others, option=f"column {role}")
    options = tuple(at for at in known.options if at not in found.stated.values())
    return replace(known, positions=positions, options=options, guesses=guesses)


def changes_in_percent(plain: Sequence[str]) -> bool:
    """Whether a table with columns of these plain names holds changes in percent only."""
    return any("percentchangefrombaseline" in name for name in plain)


# ------------------------------------------------------------------------------ plain tables


def _plain_table(found: ColumnFinder, layout: str | None) -> CountColumns:
    """Long (a row per time and cell) or wide (a row per time, a column per cell)."""
    at = found.positions
    _find_time(found)
    if "time" not in at and "date" not in at:
        raise found.not_found(_SPOKEN, "time")
    if layout != "wide":
        found.look_for("cell", *_AXES, "row", "col", *SIDES)
        for roles in _TOGETHER:  # some of them alone are of no use
            if not {*roles} <= at.keys():
                found.drop(*set(roles) - found.stated.keys())
    placed = "cell" in at or any({*roles} <= at.keys() for roles in _TOGETHER[:2])
    if not placed:  # cells may be called by points of the compass
        found.drop(*set(SIDES) - found.stated.keys())
    numeric = [
        i for i in found.rest() if found.plain[i] not in NO_CELLS and _holds_counts(found, i)
    ]
    # Whose count is one column has no others that are: what another holds may be its cell.
    is_long = "count" in found.stated or any(found.plain[i] in _COUNT_ALONE for i in numeric)
    may_be_wide = layout is None and not placed and not is_long
    if layout == "wide" or (may_be_wide and len(numeric) >= 2):
        if layout is None:
            _refuse_people(found)
            _refuse_movements(found)
        return _wide(found, numeric)
    if not placed:
        raise found.not_found(_SPOKEN, "cell")
    found.look_for("count")
    if "count" not in at:
        _refuse_people(found)
        if len(numeric) != 1:
            raise found.not_found(_SPOKEN, "count")
        found.take("count", *numeric, *(i for i in found.rest() if i not in numeric))
    options = tuple(i for i in found.rest() if found.plain[i] in OPTIONS)
    return CountColumns(
        at, found.guesses, None, "long", "a row per time and cell", options,
        clock=_clock_kind(found),
    )  # fmt: skip


def _refuse_people(found: ColumnFinder) -> None:
    """Refuse a table with a column of persons, of which nobody said what its counts are."""
    person = next((i for i, spelt in enumerate(found.plain) if spelt in _PERSON), None)
    if person is not None:
        raise InputError(
            f"The column {printable(found.names[person], 40)} names individuals, so that the table "
            "holds trajectories rather than counts; read it as these, or say which column is the "
            "count.",
            "--column count=NAME",
            code="table-of-trajectories",
        )


def _refuse_movements(found: ColumnFinder) -> None:
    """Refuse a table of trips between areas, whose rows are of two places."""
    ends = end_columns(found.source.names, found.source.sample)
    if ends is not None:
        a, b = (printable(found.names[at], 40) for at in ends)
        raise InputError(
            f"This is a table of trips between areas (from {a} to {b}), no counts of who was "
            "where; use it as a reference that learned flows are held against, or say which column "
            "is the cell.",
            "--column cell=NAME",
            code="table-of-movements",
        )


def _wide(found: ColumnFinder, numeric: Sequence[int]) -> CountColumns:
    cells = tuple(i for i in numeric if found.plain[i] not in _TOTALS)
    if not cells:
        raise found.not_found(_SPOKEN, "count")
    rest = found.rest()
    found.drop(*found.positions.keys() - {*_OF_TIME})
    others = [printable(found.names[i], 40) for i in rest if i not in cells and found.names[i]]
    if others:
        note = "no cells, and left out: " + ", ".join(others[:10])
        found.guesses["columns"] = Guess(f"{len(cells):,} columns of cells", (), note)
    return CountColumns(
        found.positions, found.guesses, None, "wide", "a row per time, a column per cell",
        wide=cells, clock=_clock_kind(found),
    )  # fmt: skip


def _find_time(found: ColumnFinder) -> None:
    """One column of times, or a date and a clock time, an hour or a slot in another."""
    if "time" in found.positions or _take_whole_time(found):
        return
    found.look_for("date")
    if "date" not in found.positions:
        found.look_for("time")
        return
    if not any(map(_has_clock, found.values("date"))):
        found.look_for("clock")
        if "clock" in found.positions and all(map(_is_clock, found.values("clock"))):
            return
        found.drop("clock")
    found.rename("date", "time")


def _take_whole_time(found: ColumnFinder) -> bool:
    """Take a column of dates with a time of day, which says more than a day and an hour apart."""
    if "date" in found.stated or "clock" in found.stated:
        return False
    known = {spelt: rank for rank, spelt in enumerate(ROLES["time"])}
    whole = [
        at for at in found.rest()
        if found.plain[at] in known
        and (values := found.values(at)) and all(map(_has_clock, values))
    ]  # fmt: skip
    whole.sort(key=lambda at: known[found.plain[at]])
    if whole:
        found.take("time", *whole)
    return bool(whole)


def _has_clock(value: str) -> bool:
    """Whether a date has a time of day, other than the midnight that typed files give it."""
    return looks_like_time(bare_date(value))


def _is_clock(value: str) -> bool:
    number = number_of(value)
    return looks_like_clock(value) or (number is not None and 0 <= number <= 2400)


def _clock_kind(found: ColumnFinder) -> str:
    """How clock times are written."""
    if "clock" not in found.positions:
        return ""
    values, name = found.values("clock"), found.plain[found.positions["clock"]]
    if any(number_of(value) is None for value in values):
        return "clock"
    if name in _SLOTS:
        return "slots"
    largest = max((number_of(value) or 0 for value in values), default=0)
    written = any(len(value) == 4 and value[0] == "0" for value in values)
    return "hhmm" if largest > 48 or written or name == "hhmm" else "hours"


def _holds_counts(found: ColumnFinder, at: int) -> bool:
    """Whether half of the filled sample values are counts; an empty column may hold some."""
    values = found.values(at)
    return 2 * sum(map(is_count, values)) >= len(values)
