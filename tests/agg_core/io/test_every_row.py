"""Rows in are rows kept and rows counted, in every format and for every command."""

import io
import json
import zipfile

import geopandas as gpd
import openpyxl
import pandas as pd
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agg_core.base.errors import InputError
from agg_core.cli import main as command_line
from agg_core.io import read_trajectories
from agg_core.io.counts import CountChoices, read_counts
from agg_core.io.gates import read_gates
from agg_core.io.movements import read_movements
from agg_core.io.place_reports import table_report
from agg_core.io.trips import count_trips
from tests.agg_core.io import books
from tests.agg_core.io.formats import fits
from tests.faults import refused
from tests.warm import fork_from_now_on

FEW = settings(
    max_examples=8, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
NAMES = ("user_id", "time", "lon", "lat")
GOOD = [("a", "2024-05-01 08:00", "139.5", "35.5"), ("b", "2024-05-01 10:00", "139.5", "35.5")]
FIXES = st.tuples(
    st.sampled_from(["a", "b", ""]),
    st.sampled_from(["2024-05-01 08:00", "2024-05-01 09:00", "2024-05-01 08:10", "", "x"]),
    st.sampled_from(["139.5", "139.6", "", "x", "0", "999"]),
    st.sampled_from(["35.5", "35.6", "", "x", "0", "999"]),
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """A process that reads a workbook is forked: these tests are not about its start."""
    fork_from_now_on(monkeypatch)


def number(text):
    return float(text) if text.replace(".", "").isdigit() else None


def text(rows, join=","):
    return "\n".join(join.join(row) for row in [NAMES, *rows]).encode()


def cells(rows):
    return [NAMES, *([value or None for value in row] for row in rows)]


def xlsx(rows):
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in cells(rows):
        book.active.append(list(row))
    book.save(out)
    return out.getvalue()


def parquet(rows):
    out = io.BytesIO()
    table = pd.DataFrame(rows, columns=NAMES)
    table["lon"], table["lat"] = table["lon"].map(number), table["lat"].map(number)
    table.to_parquet(out)
    return out.getvalue()


def objects(rows):
    return [{name: value for name, value in zip(NAMES, row, strict=True) if value} for row in rows]


def places(rows):
    found = [(number(x), number(y)) for _, _, x, y in rows]
    return [None if None in place else place for place in found]


def geojson(rows):
    features = [
        {"type": "Feature", "properties": {"user_id": row[0] or None, "time": row[1] or None},
         "geometry": None if place is None else {"type": "Point", "coordinates": place}}
        for row, place in zip(rows, places(rows), strict=True)
    ]  # fmt: skip
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def geopackage(rows):
    shapes = [None if place is None else shapely.Point(place) for place in places(rows)]
    frame = gpd.GeoDataFrame(
        {"user_id": [row[0] for row in rows], "time": [row[1] for row in rows]},
        geometry=shapes, crs="EPSG:4326",
    )  # fmt: skip
    out = io.BytesIO()
    frame.to_file(out, driver="GPKG")
    return out.getvalue()


def gpx(rows):
    points = "".join(
        f'<trkpt lat="{y}" lon="{x}">' + (f"<time>{when}</time>" if when else "") + "</trkpt>"
        for _, when, x, y in rows
    )
    return f"<gpx><trk><name>a</name><trkseg>{points}</trkseg></trk></gpx>".encode()


def kml(rows):
    marks = "".join(
        f"<Placemark><name>{who}</name>"
        + (f"<TimeStamp><when>{when}</when></TimeStamp>" if when else "")
        + f"<Point><coordinates>{x},{y}</coordinates></Point></Placemark>"
        for who, when, x, y in rows
    )
    return (
        f"<kml xmlns='http://www.opengis.net/kml/2.2'><Document>{marks}</Document></kml>".encode()
    )


def google(rows):
    records = []
    for (_, when, _, _), place in zip(rows, places(rows), strict=True):
        record = {"timestamp": when.replace(" ", "T") + ":00Z"} if when else {}
        if place is not None:
            record["longitudeE7"], record["latitudeE7"] = (int(axis * 1e7) for axis in place)
        records.append(record)
    return json.dumps({"locations": records}).encode()


def archive(rows):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("a.csv", text(rows))
    return out.getvalue()


def nmea(rows):
    def shown(axis, width):
        return f"{int(axis):0{width}d}{axis % 1 * 60:07.4f}"

    sentences = []
    for (_, when, _, _), place in zip(rows, places(rows), strict=True):
        clock = f"{when[11:].replace(':', '')}00" if ":" in when else ""
        lon, lat = ("", "") if place is None else (shown(place[0], 3), shown(place[1], 2))
        sentences.append(f"$GPRMC,{clock},A,{lat},N,{lon},E,0,0,010524,,\n")
    return "".join(sentences).encode()


def watch(rows):
    records = []
    for (_, when, _, _), place in zip(rows, places(rows), strict=True):
        there = place is not None and max(place) <= 180  # others are no semicircles
        moment = pd.Timestamp(when, tz="UTC").timestamp() if ":" in when else None
        records.append(
            fits.record(
                0xFFFFFFFF if moment is None else int(moment) - fits.EPOCH_UNIX,
                *((fits.semicircles(place[1]), fits.semicircles(place[0])) if there else
                  (fits.NO_PLACE, fits.NO_PLACE)),
            )
        )  # fmt: skip
    return fits.fit(fits.definition(), *records)


WRITTEN = {
    "CSV": text,
    "semicolons": lambda rows: text(rows, ";"),
    "tabs": lambda rows: text(rows, "\t"),
    "UTF-16": lambda rows: text(rows).decode().encode("utf-16"),
    "Excel": xlsx,
    "xls": lambda rows: books.xls(cells(rows)),
    "ods": lambda rows: books.ods(cells(rows)),
    "Parquet": parquet,
    "JSON rows": lambda rows: json.dumps(objects(rows)).encode(),
    "JSON lines": lambda rows: "\n".join(map(json.dumps, objects(rows))).encode(),
    "GeoJSON": geojson,
    "GPX": gpx,
    "KML": kml,
    "Google": google,
    "NMEA": nmea,
    "FIT": watch,
    "zip": archive,
}
NAMELESS = ("GPX", "KML", "Google", "NMEA", "FIT")


def fair(report, n_rows, kept=None):
    aside = sum(rows.count for rows in report.set_aside.values())
    kept = report.rows_kept if kept is None else kept
    assert report.rows_read == n_rows, report
    assert kept + aside == n_rows, report


@pytest.mark.parametrize("kind", WRITTEN)
def test_fixes_of_every_format_are_kept_or_counted(kind):
    columns = {} if kind in NAMELESS else {"user_id": "user_id"}

    @FEW
    @given(st.lists(FIXES, max_size=7), st.integers(0, 7))
    def rows_are_there(rows, at):
        rows = [*rows[:at], *GOOD, *rows[at:]]
        fair(read_trajectories(WRITTEN[kind](rows), columns=columns).report, len(rows))

    rows_are_there()


def test_features_of_a_geopackage_are_kept_or_counted():
    rows = [*GOOD, ("a", "", "139.5", "35.5"), ("", "2024-05-01 08:00", "139.5", "35.5"),
            ("a", "2024-05-01 09:00", "", ""), ("a", "x", "0", "0")]  # fmt: skip
    report = read_trajectories(geopackage(rows), columns={"user_id": "user_id"}).report
    fair(report, len(rows), kept=2)


PLACE = st.sampled_from(["139.5", "139.6", "", "x", "0", "999"])
LAT = st.sampled_from(["35.5", "", "x", "0", "999"])
TIME = st.sampled_from(["2024-05-01 08:00", "2024-05-01 09:00", "", "x"])
NAME = st.sampled_from(["s", "t", "", "nan"])
COUNT = st.sampled_from(["3", "0", "", "-", "x", "-1", "<5", "1e99"])


def lines(names, rows):
    return "\n".join(map(",".join, [names, *rows])).encode()


@FEW
@given(st.lists(st.tuples(TIME, PLACE, LAT, PLACE, LAT), max_size=9))
def test_trips_between_positions_are_kept_or_counted(rows):
    names = ("start_time", "start_lon", "start_lat", "end_lon", "end_lat")
    good = ("2024-05-01 08:00", "139.5", "35.5", "139.6", "35.5")
    fair(count_trips(lines(names, [good, *rows])).report, len(rows) + 1)


ENTRY = st.sampled_from(["3", "0", ""])


@FEW
@given(st.lists(st.tuples(NAME, ENTRY, ENTRY, ENTRY), max_size=5))
def test_entries_of_a_matrix_are_kept_or_counted(rows):
    good = [("s", "1", "2", "3"), ("t", "1", "2", "3"), ("u", "1", "2", "3")]
    file = lines(("zone", "s", "t", "u"), [*good, *rows])
    report = read_movements({"od": file}).report
    fair(report, 3 * (len(rows) + 3))
    named = [value for name, *values in rows if name for value in values]
    assert report.rows_kept == 9 + sum(value != "" for value in named)


@FEW
@given(st.lists(st.tuples(TIME, NAME, COUNT), max_size=9))
def test_counts_are_used_or_counted(rows):
    good = [("2024-05-01 08:00", "s", "3"), ("2024-05-01 09:00", "s", "3"),
            ("2024-05-01 10:00", "u", "4")]  # fmt: skip
    names = ("time", "cell", "count")
    report = read_counts(lines(names, [*good, *rows]), duplicates="last").report
    fair(report, len(rows) + 3, kept=report.rows_used)


@FEW
@given(st.lists(st.tuples(TIME, NAME, COUNT, COUNT), max_size=6))
def test_entries_and_exits_are_used_or_counted(rows):
    good = [("2024-05-01 08:00", "s", "3", "1"), ("2024-05-01 09:00", "u", "3", "2")]
    names = ("time", "station", "entries", "exits")
    choices = CountChoices(duplicates="last")
    table = read_gates({"g": lines(names, [*good, *rows])}, choices=choices)
    for side in (table.entries, table.exits):
        fair(side.report, len(rows) + 2, kept=side.report.rows_used)


@FEW
@given(st.lists(st.tuples(NAME, PLACE, LAT), max_size=9))
def test_places_are_kept_or_counted(rows):
    good = ("s", "139.5", "35.5")
    report = table_report({"p": lines(("tower_id", "lon", "lat"), [good, *rows])})
    fair(report, len(rows) + 1)


# One answer, whatever the order and the names of the columns

TABLES = {
    "trips": (
        {"start_time": ("started_at", "Start Time"), "from_station_id": ("start_station_id",),
         "to_station_id": ("end_station_id",), "note": ("remark",)},
        [("2024-05-13 08:00", "s", "t", "p"), ("2024-05-13 09:30", "t", "s", "q")],
        lambda file: count_trips(file).table,
    ),
    "movements": (
        {"origin": ("from", "origin_zone"), "dest": ("to", "destination"),
         "count": ("trips", "flow"), "time": ("timestamp", "datetime")},
        [("s", "t", "3", "2024-05-13 08:00"), ("t", "s", "4", "2024-05-13 09:00")],
        lambda file: read_movements({"od": file}).table,
    ),
    "counts": (
        {"time": ("timestamp", "datetime"), "cell": ("cell_id", "zone"),
         "count": ("population", "people")},
        [("2024-05-13 08:00", "s", "3"), ("2024-05-13 09:00", "s", "4"),
         ("2024-05-13 08:00", "t", "5"), ("2024-05-13 09:00", "t", "6")],
        lambda file: frame_of(read_counts(file)),
    ),
    "gates": (
        {"time": ("timestamp", "datetime"), "station": ("stop", "gate", "station_name"),
         "entries": ("boardings", "in"), "exits": ("alightings", "out")},
        [("2024-05-13 08:00", "s", "3", "1"), ("2024-05-13 09:00", "s", "4", "2"),
         ("2024-05-13 08:00", "t", "5", "7"), ("2024-05-13 09:00", "t", "6", "8")],
        lambda file: both_of(read_gates(file)),
    ),
}  # fmt: skip


def frame_of(table):
    return pd.DataFrame(table.counts, index=table.times, columns=list(table.cells))


def both_of(table):
    return pd.concat([frame_of(table.entries), frame_of(table.exits)])


@pytest.mark.parametrize("kind", TABLES)
def test_any_order_and_any_known_names_of_columns_are_one_table(kind):
    names, rows, read = TABLES[kind]
    expected = read(lines(tuple(names), rows))

    @FEW
    @given(st.data())
    def the_same(data):
        order = data.draw(st.permutations(range(len(names))))
        called = [data.draw(st.sampled_from([name, *others])) for name, others in names.items()]
        table = [[row[at] for at in order] for row in [called, *rows]]
        found = read(lines(table[0], table[1:]))
        pd.testing.assert_frame_equal(found, expected)

    the_same()


UNKNOWN = ["qa", "qb", "qc", "qd", "zz", "yy", "ww"]


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_unknown_names_is_a_question(kind):
    names, rows, read = TABLES[kind]

    @FEW
    @given(st.permutations(UNKNOWN))
    def asked(called):
        file = lines(called[: len(names)], rows)
        with pytest.raises(InputError):
            read(file)

    asked()


def test_an_unknown_column_beside_a_count_is_no_cell():
    rows = [("2024-05-13 08:00", "1", "3"), ("2024-05-13 09:00", "2", "4")]
    with refused("column-not-found"):
        read_counts(lines(("time", "zzz", "count"), rows))
    found = read_counts(lines(("time", "zzz", "count"), rows), columns={"cell": "zzz"})
    assert found.cells == ("1", "2")


def test_places_at_nought_are_none():
    rows = [("2024-05-13 08:00", "s", "3", "139.5", "35.5"),
            ("2024-05-13 09:00", "s", "4", "0", "0"),
            ("2024-05-13 09:00", "t", "4", "139.6", "35.5")]  # fmt: skip
    table = read_counts(lines(("time", "cell", "count", "lon", "lat"), rows))
    west, south, east, north = table.grid.bounds
    assert 139 < west < east < 140
    assert 35 < south < north < 36


def test_stations_without_a_place_or_with_two_are_said():
    rows = [("2024-05-13 08:00", "s", "3", "1"), ("2024-05-13 09:00", "t", "3", "2")]
    gates = pd.DataFrame(rows, columns=["time", "station", "entries", "exits"])
    places = [("s", 139.5, 35.5), ("s", 139.9, 35.5), ("t", 139.6, 35.5), ("u", 0.0, 0.0)]
    found = read_gates(gates, places=pd.DataFrame(places, columns=["station", "lon", "lat"]))
    assert len(found.notes) == 2
    assert found.places.tolist() == [[139.5, 35.5], [139.6, 35.5]]


# Commands

FILES = {
    "inspect": (NAMES, [*GOOD, ("", *GOOD[0][1:]), ("a", "x", "139.5", "35.5")], []),
    "counts": (NAMES, [*GOOD, ("", *GOOD[0][1:]), ("a", "x", "139.5", "35.5")],
               ["--column", "user_id=user_id"]),
    "trips": (("start_time", "start_station_id", "end_station_id"),
              [("2024-05-13 08:00", "s", "t"), ("x", "s", "t"), ("2024-05-13 08:00", "", "t")], []),
    "inspect movements": (("origin", "dest", "count"), [("s", "t", "3"), ("s", "", "4")], []),
    "inspect counts": (("time", "cell", "count"),
                       [("2024-05-13 08:00", "s", "3"), ("2024-05-13 09:00", "s", "4"),
                        ("2024-05-13 09:00", "", "4")], []),
    "inspect places": (("tower_id", "lat", "lon"), [("1", "35.1", "139.1"), ("2", "0", "0")], []),
}  # fmt: skip


@pytest.mark.parametrize("command", FILES)
def test_commands_tell_of_every_row(command, tmp_path, capsys):
    names, rows, options = FILES[command]
    path = tmp_path / "table.csv"
    path.write_bytes(lines(names, rows))
    assert command_line.main([command.split()[0], str(path), *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    aside = [n if isinstance(n, int) else n["count"] for n in told["set_aside"].values()]
    assert told["rows_read"] == len(rows) == told["rows_kept"] + sum(aside)
    assert sum(aside) > 0


@pytest.mark.parametrize("command", ["counts", "trips"])
def test_commands_that_print_tables_tell_what_is_left_out(command, tmp_path, capsys):
    names, rows, options = FILES[command]
    path = tmp_path / "table.csv"
    path.write_bytes(lines(names, rows))
    command_line.main([command, str(path), *options])
    assert len(capsys.readouterr().err.splitlines()) >= 2
