"""Every row of every kind of table is kept or counted, and names say what a column is."""

import io
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agg_core.base.errors import InputError
from agg_core.io import count_trips, read_trajectories
from agg_core.io.counts import read_counts
from agg_core.io.gates import read_gates
from agg_core.io.movements import read_movements
from agg_core.io.place_reports import table_report
from agg_core.io.trips import TRIP_ROLES
from tests.agg_core.io.formats import fits

FEW = settings(
    max_examples=6, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
MIXED = st.lists(
    st.sampled_from(["good", "no time", "no place", "far", "null island", "twin"]),
    min_size=3, max_size=25,
).map(lambda kinds: ["good", "good", *kinds])  # fmt: skip


def fixes(kinds):
    """Rows of two people, some of them wrong."""
    rows = []
    for i, kind in enumerate(kinds):
        minute = i - 2 if kind == "twin" else i
        row = {"user_id": f"u{i % 2}", "time": f"2024-05-01T08:{minute:02d}:00Z",
               "lon": 139.7 + i / 1000, "lat": 35.6 + i / 1000}  # fmt: skip
        row |= {
            "no time": {"time": None}, "no place": {"lon": None, "lat": None},
            "far": {"lat": 95.0}, "null island": {"lon": 0.0, "lat": 0.0},
        }.get(kind, {})  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def parquet(table):
    out = io.BytesIO()
    table.to_parquet(out)
    return out.getvalue()


def excel(table):
    out = io.BytesIO()
    table.to_excel(out, index=False)
    return out.getvalue()


def geojson(table):
    features = [
        {"type": "Feature", "properties": {"user_id": row.user_id, "time": row.time},
         "geometry": None if pd.isna(row.lon) else
         {"type": "Point", "coordinates": [row.lon, row.lat]}}
        for row in table.itertuples()
    ]  # fmt: skip
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def gpx(table):
    points = "".join(
        "<trkpt"
        + ("" if pd.isna(row.lon) else f' lat="{row.lat}" lon="{row.lon}"')
        + ">" + ("" if pd.isna(row.time) else f"<time>{row.time}</time>") + "</trkpt>"
        for row in table.itertuples()
    )  # fmt: skip
    return f"<gpx><trk><name>a</name><trkseg>{points}</trkseg></trk></gpx>".encode()


def nmea(table):
    def place(degrees, width):
        if pd.isna(degrees):
            return ""
        return f"{int(degrees):0{width}d}{degrees % 1 * 60:07.4f}"

    return "".join(
        f"$GPRMC,{'' if pd.isna(row.time) else row.time[11:19].replace(':', '')},A,"
        f"{place(row.lat, 2)},N,{place(row.lon, 3)},E,0,0,010524,,\n"
        for row in table.itertuples()
    ).encode()


def watch(table):
    return fits.fit(fits.definition(), *(
        fits.record(
            0xFFFFFFFF if pd.isna(row.time)
            else int(pd.Timestamp(row.time).timestamp()) - fits.EPOCH_UNIX,
            *(fits.NO_PLACE if pd.isna(axis) else fits.semicircles(axis)
              for axis in (row.lat, row.lon)),
        )
        for row in table.itertuples()
    ))  # fmt: skip


WRITERS = {
    "CSV": lambda table: table.to_csv(index=False).encode(),
    "semicolons": lambda table: table.to_csv(index=False, sep=";", decimal=",").encode(),
    "UTF-16": lambda table: table.to_csv(index=False, sep="\t").encode("utf-16"),
    "Parquet": parquet,
    "Excel": excel,
    "JSON": lambda table: table.to_json(orient="records").encode(),
    "JSON lines": lambda table: table.to_json(orient="records", lines=True).encode(),
    "GeoJSON": geojson,
    "GPX": gpx,
    "NMEA": nmea,
    "FIT": watch,
}


def adds_up(report, n_rows):
    aside = {cause: rows.count for cause, rows in report.set_aside.items()}
    assert report.rows_read == n_rows, aside
    assert report.rows_kept + sum(aside.values()) == n_rows, aside


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind != "Excel"])
@FEW
@given(MIXED)
def test_every_fix_of_every_format_is_kept_or_counted(kind, kinds):
    table = fixes(kinds)
    found = read_trajectories(WRITERS[kind](table), columns=stated(kind))
    adds_up(found.report, len(table))
    assert len(found.table) == found.report.rows_kept


def test_every_fix_of_a_workbook_is_kept_or_counted():
    table = fixes(["good", "no time", "twin", "good", "far", "null island", "no place", "good"])
    adds_up(read_trajectories(excel(table)).report, len(table))  # in a process of its own


def stated(kind):
    return {"user_id": "user_id"} if kind not in ("GPX", "NMEA", "FIT") else None


ENDS = st.lists(st.sampled_from(["good", "no start", "no end", "bad time"]), min_size=1,
                max_size=20).map(lambda kinds: ["good", *kinds])  # fmt: skip


@FEW
@given(ENDS)
def test_every_trip_is_counted_or_left_out_by_cause(kinds):
    table = pd.DataFrame({
        "started_at": ["never" if k == "bad time" else "2024-05-01 08:05" for k in kinds],
        "start_station": [None if k == "no start" else "a" for k in kinds],
        "end_station": [None if k == "no end" else "b" for k in kinds],
    })  # fmt: skip
    found = count_trips(table.to_csv(index=False).encode())
    adds_up(found.report, len(kinds))
    assert found.table["count"].sum() == found.report.rows_kept == kinds.count("good")


@FEW
@given(st.lists(st.sampled_from(["3", "", "x", "<5", "-2", "0", "1.5"]), min_size=1, max_size=20))
def test_every_movement_is_kept_or_counted(counts):
    counts = ["4", *counts]
    text = "origin,dest,count\n" + "".join(f"a,{i},{n}\n" for i, n in enumerate(counts))
    adds_up(read_movements(text.encode()).report, len(counts))


@FEW
@given(st.lists(st.sampled_from(["3", "", "0", "1.5"]), min_size=9, max_size=9))
def test_every_cell_of_a_matrix_is_kept_or_counted(cells):
    cells = ["1", *cells[1:]]
    rows = [f"{name},{','.join(cells[3 * i : 3 * i + 3])}" for i, name in enumerate("abc")]
    found = read_movements("\n".join(["from,a,b,c", *rows]).encode())
    adds_up(found.report, 9)
    assert found.table["count"].sum() == sum(float(cell or 0) for cell in cells)


@FEW
@given(st.lists(st.sampled_from(["good", "no place", "far"]), min_size=1, max_size=20))
def test_every_place_is_kept_or_counted(kinds):
    kinds = ["good", *kinds]
    lat = {"good": "35.1", "no place": "", "far": "99"}
    text = "tower_id,lat,lon\n" + "".join(f"t{i},{lat[k]},139.1\n" for i, k in enumerate(kinds))
    report = table_report(text.encode())
    adds_up(report, len(kinds))
    assert report.rows_kept == kinds.count("good")


@FEW
@given(st.lists(st.integers(0, 50), min_size=4, max_size=4))
def test_no_passenger_of_a_gate_is_lost(numbers):
    numbers = [n + 1 for n in numbers]
    text = "time,station,entries,exits\n" + "".join(
        f"2024-05-01 0{8 + i // 2}:00,{'ab'[i % 2]},{n},{2 * n}\n" for i, n in enumerate(numbers)
    )
    table = read_gates(text.encode())
    assert (table.n_entered, table.n_left) == (sum(numbers), 2 * sum(numbers))


@FEW
@given(st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_no_count_is_lost(numbers):
    text = "time,cell,count\n" + "".join(
        f"2024-05-01 0{8 + i // 3}:00,{'abc'[i % 3]},{n}\n" for i, n in enumerate(numbers)
    )
    assert read_counts(text.encode()).counts.sum() == sum(numbers)


# Names say what a column is, whatever its place

NAMES = {
    "user_id": ("user_id", "uid", "device_id", "imsi"),
    "time": ("time", "timestamp", "datetime"),
    "lon": ("lon", "lng", "longitude"),
    "lat": ("lat", "latitude"),
}


@settings(FEW, max_examples=25)
@given(st.permutations([*NAMES, "speed"]), st.data())
def test_order_and_known_names_of_columns_change_nothing(order, data):
    table = fixes(["good"] * 6).assign(speed=[10, 20, 30, 40, 50, 60])
    names = {role: data.draw(st.sampled_from(names)) for role, names in NAMES.items()}
    made = table[list(order)].rename(columns=names)
    found = read_trajectories(made.to_csv(index=False).encode())
    pd.testing.assert_frame_equal(found.table, read_trajectories(table).table)


@settings(FEW, max_examples=15)
@given(st.permutations(range(4)), st.data())
def test_order_and_known_names_of_trips_change_nothing(order, data):
    roles = ("start", "end", "origin", "dest")
    values = {"start": ["2024-05-01 08:05"] * 2, "end": ["2024-05-01 08:25"] * 2,
              "origin": ["p", "q"], "dest": ["q", "r"]}  # fmt: skip
    draw = {role: data.draw(st.sampled_from(TRIP_ROLES[role])) for role in roles}
    table = pd.DataFrame({draw[roles[at]]: values[roles[at]] for at in order})
    if table.shape[1] < 4:
        return  # two roles know this name, such as from and to
    try:
        found = count_trips(table.to_csv(index=False).encode()).table
    except InputError:
        return  # a question is right where names together are none of trips
    assert list(zip(found["origin"], found["dest"], strict=True)) == [("p", "q"), ("q", "r")]


@settings(FEW, max_examples=15)
@given(st.lists(st.sampled_from(["qqa", "zzb", "vvc", "wwd", "kke"]), min_size=4, max_size=4,
                unique=True), st.permutations(range(4)))  # fmt: skip
def test_names_that_nobody_knows_are_a_question(names, order):
    table = fixes(["good"] * 6)
    made = table[[table.columns[at] for at in order]]
    made.columns = names
    with pytest.raises(InputError) as fault:
        read_trajectories(made.to_csv(index=False).encode())
    assert fault.value.code == "column-not-found"
