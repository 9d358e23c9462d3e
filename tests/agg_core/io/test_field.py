"""Kinds of files that people hold, re-created in a few rows each, and what is right of them."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agg_core.base.errors import InputError
from agg_core.io import Choices, count_trips, read_trajectories
from agg_core.io.counts import holds_counts, read_counts
from agg_core.io.guess.columns import ROLES
from agg_core.io.kinds import kind_of_file
from agg_core.io.movements import read_movements
from tests.faults import refused

TEN = [f"2024-05-01 08:{minute:02d}:00" for minute in range(10)]


def read(text, **choices):
    return read_trajectories(text.encode(), **choices)


def kind(text):
    return kind_of_file({"file": text.encode()})


def rows_of(found):
    time = found.table["time"].dt.strftime("%Y-%m-%d %H:%M:%S")
    return list(zip(found.table["user_id"], time, found.table["lon"], found.table["lat"],
                    strict=True))  # fmt: skip


def aside(report):
    return {cause: rows.count for cause, rows in report.set_aside.items()}


# Names before shape


def test_eight_columns_with_names_are_read_by_these():
    lines = [f"{40 + i % 2},14,7,1,{35.6 + i / 100:.2f},{139.7 + i / 100:.2f},{20 + i},{time}"
             for i, time in enumerate(TEN)]  # fmt: skip
    found = read("\n".join(["veh,route,trip,dir,lat,lon,speed,time", *lines]))
    assert found.report.individuals == 2
    assert str(found.report.first_utc) == "2024-05-01 08:00:00+00:00"
    assert "layout" not in found.report.guesses


def test_a_table_without_places_has_none():
    lines = [f"7;{i};{i};{3 * i};{i % 4};{i % 3};{10 * i};{time}" for i, time in enumerate(TEN)]
    with refused("no-place-table"):
        read("\n".join(["trip;stop;seq;load;door_a;door_b;delay;stamp", *lines]))


def test_nine_columns_whose_names_agree_are_no_layout_without_its_words():
    line = "a,1,2024-05-01 08:0{},35.6{},139.7,,,x,"
    text = "id,n,time,lat,lon,p,q,state,c\n" + "\n".join(line.format(i, i) for i in range(4))
    assert read(text).timezone == "UTC"


# Whose rows


def test_people_of_an_unknown_column_stay_apart():
    lines = [f"{time},35.{60 + 5 * p}{i},139.{70 + 5 * p},s{p}"
             for i, time in enumerate(TEN[:4]) for p in range(5)]  # fmt: skip
    found = read("\n".join(["time,lat,lon,zzz", *lines]))
    assert (found.report.individuals, found.report.rows_kept) == (5, 20)
    assert found.report.guesses["user_id"].value == "zzz"


def test_people_who_are_merged_and_cannot_be_told_apart_are_asked_for():
    lines = [f"{time},35.{60 + 5 * p},139.{70 + 5 * p}" for time in TEN for p in range(3)]
    text = "\n".join(["time,lat,lon", *lines])
    with refused("people-merged"):
        read(text)
    assert read(text, columns={"user_id": "one person"}).report.individuals == 1


def test_two_columns_that_could_name_people_are_asked_for():
    lines = [f"{time},35.{60 + 5 * p},139.{70 + 5 * p},z{p},w{p}{i // 5}"
             for i, time in enumerate(TEN) for p in range(3)]  # fmt: skip
    text = "\n".join(["time,lat,lon,zzz,www", *lines])
    with refused("people-merged"):
        read(text)
    assert read(text, columns={"user_id": "zzz"}).report.individuals == 3


@pytest.mark.parametrize("ids", [["3.56E+14"] * 2, ["356000000000000000", "357000000000000000"]])
def test_rounded_ids_are_asked_for(ids):
    text = "imei,timestamp,lat,lon\n" + "".join(
        f"{each},2024-05-01 08:{m}0:00,35.{m},139.7\n" for m in range(2) for each in ids
    )
    with refused("rounded-ids"):
        read(text)
    assert read(text, columns={"user_id": "imei"}).report.individuals == len(set(ids))


# Places


def test_a_column_of_hemispheres_gives_the_sign():
    text = "id,utc,lat,{},lon,{}\n1,2024-05-18T01:00:00Z,33.8688,S,151.2093,E\n"
    for names in (("ns", "ew"), ("lat_dir", "lon_dir"), ("q", "r")):
        assert rows_of(read(text.format(*names)))[0][2:] == (151.2093, -33.8688)
    west = text.format("ns", "ew").replace(",E\n", ",W\n")
    assert rows_of(read(west))[0][2:] == (-151.2093, -33.8688)


def test_semicircles_and_seconds_of_fit():
    text = "timestamp,position_lat,position_long\n1083395520,425697650,1667450000\n"
    (row,) = rows_of(read(text + "1083395580,425707650,1667460000\n"))[:1]
    assert row[1] == "2024-04-30 07:12:00"
    assert row[2:] == pytest.approx((1667450000 * 180 / 2**31, 425697650 * 180 / 2**31))


def test_geohashes_are_the_middles_of_their_cells():
    # The well-known example: u4pruydqqvj lies in Jutland.
    found = read("id,time,geohash\n1,2024-05-01 08:00,u4pruydqqvj\n1,2024-05-01 08:10,u4pruydqqv\n")
    assert rows_of(found)[0][2:] == pytest.approx((10.40744, 57.64911), abs=1e-5)


def test_degrees_and_minutes_are_asked_for_or_told_by_hemispheres():
    text = "id,time,lat,lon\n1,2024-05-01 08:00,3540.872,13946.026\n"
    with refused("degrees-and-minutes"):
        read(text)
    place = pytest.approx((139 + 46.026 / 60, 35 + 40.872 / 60))
    assert rows_of(read(text, place_unit="degrees and minutes"))[0][2:] == place
    sided = "id,time,lat,ns,lon,ew\n1,2024-05-01 08:00,3540.872,N,13946.026,E\n"
    assert rows_of(read(sided))[0][2:] == place


def test_a_zone_of_utm_in_a_column_is_proposed():
    text = "id,time,easting,northing,zone\n1,2024-05-01 08:00,652345.2,5250123.4,32N\n"
    with refused("projected-places") as fault:
        read(text)
    assert fault.value.option == "--crs EPSG:32632"
    assert rows_of(read(text, crs="EPSG:32632"))[0][2:] == pytest.approx((11.018, 47.387), abs=0.01)


# Times


@pytest.mark.parametrize(
    ("time", "utc"),
    [
        ("2024-05-01T08:00:00+02:00[Europe/Berlin]", "2024-05-01 06:00:00"),
        ("2024-05-01T08:00:00[Europe/Berlin]", "2024-05-01 06:00:00"),
        ("2024-05-01 08:00:00 JST", "2024-04-30 23:00:00"),
        ("1.373155253E9", "2013-07-07 00:00:53"),
    ],
)
def test_times_with_zones_and_powers(time, utc):
    assert rows_of(read(f"id,time,lat,lon\n1,{time},52.5,13.4\n"))[0][1] == utc


def test_times_that_are_rounded_to_hours_are_refused():
    with refused("rounded-times"):
        read("id,time,lat,lon\n1,1.37E+09,52.5,13.4\n1,1.37E+09,52.6,13.4\n")


def test_a_time_in_five_columns():
    text = "dailyid,year,month,day,hour,minute,lat,lon\na,2021,4,1,8,5,35.1,139.1\n"
    assert rows_of(read(text))[0][1] == "2021-04-01 08:05:00"
    dated = "id,date,hour,lat,lon\na,2021-04-01,9,35.1,139.1\n"
    assert rows_of(read(dated))[0][1] == "2021-04-01 09:00:00"
    whole = "id,timestamp,hour,day,lat,lon\na,2021-04-01 08:05,3,2,35.1,139.1\n"
    assert rows_of(read(whole))[0][1] == "2021-04-01 08:05:00"


def test_a_stay_is_a_fix_where_it_begins_and_one_where_it_ends():
    found = read(
        "id,start_time,end_time,lat,lon\n1,2024-01-01 09:00,2024-01-01 17:00,35.68,139.76\n"
    )
    assert [row[1][11:16] for row in rows_of(found)] == ["09:00", "17:00"]
    came = read("id,arrival,departure,lat,lon\n1,2024-01-01 09:00,2024-01-01 17:00,35.68,139.76\n")
    assert rows_of(came) == rows_of(found)


def test_clocks_that_were_never_set_are_said():
    text = "id,time,lat,lon\n1,1970-01-21T01:50:52Z,48.1,14.0\n1,1970-01-21T01:51:52Z,48.1,14.0\n"
    found = read(text)
    assert found.report.rows_kept == 2
    assert found.report.guesses["clock"].note


def test_fixes_that_are_marked_as_wrong_are_said():
    found = read("deviceid,Time,Latitude,Longitude,valid\n1,2012-08-25 21:26:20,37.9,23.7,1\n"
                 "1,2012-08-25 21:30:20,37.9,23.7,0\n")  # fmt: skip
    assert found.report.rows_kept == 2
    assert found.report.guesses["column valid"].note.startswith("1 ")


def test_a_header_that_begins_with_a_hash():
    text = (
        "# Timestamp,Type,MMSI,Latitude,Longitude\n"
        "25/07/2017 00:00:03,A,219000001,57.72,10.58\n"
        "25/07/2017 00:00:07,A,219000002,91.0,0.0\n"
    )
    found = read(text)
    assert found.table["user_id"].tolist() == ["219000001"]
    assert aside(found.report) == {"position out of range": 1}


# Nested JSON and GeoJSON


def test_feeds_and_trackers_in_nested_json():
    vehicles = [
        {"id": str(i), "vehicle": {"position": {"latitude": 53.4 + i / 100, "longitude": -2.9},
         "timestamp": 1709251100 + i, "vehicle": {"id": f"bus{i}"}}}
        for i in range(3)
    ]  # fmt: skip
    del vehicles[2]["vehicle"]["timestamp"]
    feed = read(json.dumps({"header": {"timestamp": "1709251200"}, "entity": vehicles}))
    assert set(feed.table["user_id"]) == {"bus0", "bus1"}
    assert aside(feed.report) == {"missing time": 1}
    own = [{"_type": "location", "tid": "ab", "lat": 35.6, "lon": 139.7, "tst": 1714521600}]
    assert rows_of(read(json.dumps({"count": 1, "data": own}))) == [
        ("ab", "2024-05-01 00:00:00", 139.7, 35.6)
    ]
    kept = [{"_id": {"$oid": "x"}, "user": "u", "ts": {"$date": "2024-05-01T00:00:00Z"},
             "loc": {"type": "Point", "coordinates": [139.7, 35.6]}}]  # fmt: skip
    assert rows_of(read(json.dumps(kept)))[0][2:] == (139.7, 35.6)
    deep = {"device": "d1", "positions": [{"time": "2024-05-01T00:00:00Z", "lat": 1.0, "lon": 2.0}]}
    assert rows_of(read(json.dumps([deep])))[0][0] == "d1"


def test_every_feature_is_read_or_counted():
    point = {"type": "Point", "coordinates": [139.7, 35.6]}
    shapes = [point, {"type": "GeometryCollection", "geometries": []},
              {"type": "MultiPoint", "coordinates": []}, {"type": "LineString", "coordinates": []},
              {"type": "MultiLineString", "coordinates": []}, None, point]  # fmt: skip
    features = [
        {"type": "Feature", "geometry": shape,
         "properties": {"id": "u", "time": f"2024-01-01T00:{i}0:00Z"}}
        for i, shape in enumerate(shapes[:6])
    ]  # fmt: skip
    report = read(json.dumps({"type": "FeatureCollection", "features": features})).report
    assert (report.rows_read, report.rows_kept) == (6, 1)
    assert sum(aside(report).values()) == 5


# Kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user_id,time,lon,lat\na,2024-05-01 08:00,139.5,35.5\n", "fixes"),
        ("bike_id,start_time,end_time,start_station_id,end_station_id\n"
         "1,1/2/2018 0:12,1/2/2018 0:17,5,6\n", "trips"),
        ("trip_id,start_time,end_time,from_station_name,to_station_name\n"
         "1,1/2/2018 0:12,1/2/2018 0:17,a,b\n", "trips"),
        ("time,cell,count\n2024-05-01 08:00,a,3\n", "counts"),
        ("timestamp,gate_a,gate_b,gate_c,hour,weekday\n2024-05-01 00:00,10,20,30,0,1\n", "counts"),
        ("fecha|origen|destino|periodo|viajes\n20200214|01_A|02_B|07|12.5\n", "movements"),
        ("w_geocode,h_geocode,S000,createdate\n0600,0601,1,20160228\n", "movements"),
        ("origin,dest,count\na,b,3\n", "movements"),
        ("station,time,entries,exits\na,2024-05-01 08:00,3,4\n", "gates"),
        ("stop_id,hour,boardings,alightings\n7,8,3,4\n", "gates"),
        ("tower_id,lat,lon\n1,35.1,139.1\n2,35.2,139.2\n", "places"),
        ("country_region,date,retail_and_recreation_percent_change_from_baseline\n"
         "J,2020-04-01,-3\n", "other"),
        ("caller_id,call_start,cell_id\n1,2023-03-01 08:01:00,40101\n", "fixes"),
        ("aa,bb,cc\n1,2,3\n", None),
        ("1\t1383260400000\t39\t2.5\n1\t1383260400000\t0\t0.25\n", None),
    ],
)  # fmt: skip
def test_what_kind_of_table_it_is(text, expected):
    assert kind(text) == expected


def test_parts_of_a_time_are_no_cells():
    text = "timestamp,gate_a,gate_b,gate_c,hour,weekday,is_weekend\n" + "".join(
        f"2024-05-01 {h:02d}:00,{10 + h},{20 + h},{30 + h},{h},1,0\n" for h in range(24)
    )
    table = read_counts(text.encode())
    assert table.cells == ("gate_a", "gate_b", "gate_c")
    assert len(table.times) == 24


def test_an_origin_destination_table_is_no_table_of_counts():
    text = b"fecha|origen|destino|periodo|viajes\n20200214|a|b|07|12.5\n20200214|b|a|08|7.5\n"
    assert not holds_counts({"od": text})
    with refused("table-of-movements"):
        read_counts(text, layout=None)
    found = read_movements({"od": text})
    assert found.table["time"].tolist() == ["20200214 07", "20200214 08"]
    assert found.report.figures["trips"] == 20.0
    timeless = read_movements({"od": b"w_geocode,h_geocode,S000,createdate\n06,07,3,20160228\n"})
    assert timeless.table.to_dict("records") == [{"origin": "07", "dest": "06", "count": 3.0}]


# Trips


def test_trips_leave_a_report_of_every_row():
    text = (
        "vendor_id, pickup_datetime, dropoff_datetime,pickup_longitude,pickup_latitude,"
        "dropoff_longitude,dropoff_latitude\n"
        "A,2014-01-09 20:45:25,2014-01-09 20:52:31,-73.99477,40.736828,-73.982227,40.73179\n"
        "B,2014-01-09 20:44:47,2014-01-09 20:59:46,0,0,0,0\n"
        "B,,2014-01-09 20:59:46,-73.99477,40.736828,-73.982227,40.73179\n"
    )
    found = count_trips(text.encode())
    assert (found.report.rows_read, found.report.rows_kept) == (3, 1)
    assert aside(found.report) == {"missing time": 1, "no origin": 1}
    only = count_trips(text.encode(), Choices.of(where={"vendor_id": "A"}))
    assert aside(only.report) == {"not vendor_id=A": 2}


def test_days_before_months_are_said_of_trips():
    text = b"bike_id,start_time,end_time,start_station_id,end_station_id\n"
    text += b"1,1/2/2018 0:12,1/2/2018 0:17,5,6\n"
    guess = count_trips(text).report.guesses["time format"]
    assert guess.alternatives == ("month/day/year",)
    assert guess.note


def test_ends_of_trips_are_stated():
    text = b"aa,bb,cc\n2024-05-01 08:00,x,y\n"
    with refused("no-trips-found"):
        count_trips(text)
    stated = Choices.of({"start": "aa", "origin": "bb", "dest": "cc"})
    assert count_trips(text, stated).table[["origin", "dest"]].to_numpy().tolist() == [["x", "y"]]


# Places by a key

TOWERS = b"cell_id,lat,lon\n40101,35.68,139.76\n40102,35.69,139.70\n"
CALLS = b"caller_id,call_start,cell_id\n1,2023-03-01 08:01:00,40101\n1,2023-03-01 09:30:00,9\n"


def test_towers_are_joined_by_their_key_or_asked_for():
    with refused("no-place-table"):
        read_trajectories(CALLS)
    found = read_trajectories({"calls.csv": CALLS, "towers.csv": TOWERS})
    assert rows_of(found) == [("1", "2023-03-01 08:01:00", 139.76, 35.68)]
    assert aside(found.report) == {"missing position": 1}
    kept = read_trajectories({"c": CALLS, "t": TOWERS}, where={"cell_id": "40101"})
    assert kept.report.rows_kept == 1


def test_a_key_that_is_called_otherwise_is_stated():
    calls, towers = CALLS.replace(b"cell_id", b"site"), TOWERS.replace(b"cell_id", b"no")
    found = read_trajectories({"c": calls, "t": towers}, places_key="site=no")
    assert found.report.rows_kept == 1
    with refused("unknown-column"):
        read_trajectories({"c": calls, "t": towers}, places_key="site=nothing")


def test_ends_of_trips_get_the_places_of_their_stations():
    trips = b"bike_id,started_at,ended_at,start_station_id,end_station_id\n" + (
        b"7,2024-05-01 08:00,2024-05-01 08:10,40101,40102\n"
    )
    files = {"trips.csv": trips, "stations.csv": TOWERS}
    counted = count_trips(files).table.iloc[0]
    assert (counted["origin_lon"], counted["dest_lon"]) == (139.76, 139.70)
    assert read_trajectories(files).report.rows_kept == 2


# Properties

ROWS = [
    ("a", "2024-05-01 08:00", "139.5", "35.5"), ("a", "2024-05-01 08:10", "139.51", "35.5"),
    ("b", "2024-05-01 08:00", "139.6", "35.6"), ("b", "2024-05-01 08:10", "139.61", "35.6"),
]  # fmt: skip
SPELT = {role: [name for name in ROLES[role] if name.isascii()] for role in
         ("user_id", "time", "lon", "lat")}  # fmt: skip
ALONE = {"trip", "tripid", "id", "name", "code", "key", "start", "t", "x", "y", "xm", "ym"}
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(st.permutations(range(4)), st.data())
def test_any_order_and_any_known_names_of_columns_are_one_table(order, data):
    names = [data.draw(st.sampled_from([n for n in SPELT[role] if n not in ALONE]), label=role)
             for role in SPELT]  # fmt: skip
    table = [names, *ROWS]
    text = "\n".join(",".join(row[i] for i in order) for row in table)
    found = read(text)
    assert rows_of(found) == rows_of(read("\n".join(map(",".join, [tuple(SPELT), *ROWS]))))


@QUICK
@given(st.permutations(range(4)), st.lists(
    st.sampled_from(["qa", "qb", "qc", "qd", "zz", "yy", "ww"]), min_size=4, max_size=4,
    unique=True))  # fmt: skip
def test_a_table_of_unknown_names_is_a_question(order, names):
    text = "\n".join([",".join(names), *(",".join(row[i] for i in order) for row in ROWS)])
    with pytest.raises(InputError):
        read(text)
    assert kind(text) is None


CELLS = st.sampled_from(["a", "", "2024-05-01 08:00", "0", "139.5", "35.5", "nan", "x", "999"])


@QUICK
@given(st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=1, max_size=12))
def test_rows_are_kept_or_counted(rows):
    text = "\n".join(map(",".join, [("user_id", "time", "lon", "lat"), *rows, ROWS[0]]))
    try:
        report = read(text, columns={"user_id": "user_id"}).report
    except InputError:
        return  # a column that is none is asked for
    assert report.rows_read == len(rows) + 1
    assert report.rows_kept + sum(aside(report).values()) == report.rows_read


@QUICK
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12))
def test_trips_are_kept_or_counted(rows):
    good = ("2024-05-01 08:00", "s", "t")
    text = "\n".join(map(",".join, [("start_time", "start_station_id", "end_station_id"), *rows,
                                    good]))  # fmt: skip
    report = count_trips(text.encode(), Choices(time_format="year-month-day")).report
    assert report.rows_kept + sum(aside(report).values()) == report.rows_read == len(rows) + 1


@QUICK
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12))
def test_movements_are_kept_or_counted(rows):
    text = "\n".join(map(",".join, [("origin", "dest", "count"), *rows, ("s", "t", "3")]))
    report = read_movements({"od": text.encode()}).report
    assert report.rows_kept + sum(aside(report).values()) == report.rows_read == len(rows) + 1
    assert np.isfinite(report.figures["trips"])


# Archives


def packed(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def test_an_archive_gives_what_can_be_read_and_says_what_cannot():
    good = b"user_id,time,lon,lat\na,2024-05-01 08:00,139.5,35.5\n"
    inner = packed(("x.csv", good))
    found = read_trajectories(packed(("a.csv", good), ("b.zip", inner), ("c.csv", b"nothing")))
    assert found.report.rows_kept == 1
    assert found.report.guesses["files"].value.startswith("1 of 3")
    with refused("archive-in-archive"):
        read_trajectories(packed(("b.zip", inner)))
    counts = b"time,cell,count\n2024-05-01 08:00,a,3\n2024-05-01 09:00,a,4\n"
    table = read_counts(packed(("b.zip", inner), ("a.csv", counts)))
    assert table.report.rows_used == 2


def test_movements_between_places():
    text = (b"date_time,start_lat,start_lon,end_lat,end_lon,n_crisis\n"
            b"2020-05-01 08:00,35.1,139.1,35.2,139.2,12\n")  # fmt: skip
    found = read_movements({"od": text})
    assert found.table[["origin", "dest", "count"]].to_numpy().tolist() == [
        ["35.1 139.1", "35.2 139.2", 12.0]
    ]


def test_a_zone_in_a_column_is_that_of_the_clock():
    text = "id,date,time,tz,lat,lon\n1,2024-05-01,08:00,Europe/Berlin,52.52,13.40\n"
    assert rows_of(read(text))[0][1] == "2024-05-01 06:00:00"


def test_two_doors_beside_the_weather_are_counts():
    text = "date_time,Door N,Door S,dow,temp\n2024-05-01 00:00,1,2,3,12.5\n"
    assert kind(text + "2024-05-01 01:00,3,2,3,12.5\n") == "counts"


# Hints


def test_proposals_say_where_they_put_the_file():
    text = "id,time,x,y\n1,2024-05-18 10:00,15558802.4,4256843.2\n"
    with refused("projected-places", "139.767", "Tokyo") as fault:
        read(text)
    assert fault.value.option == "--crs EPSG:3857"


def test_axes_of_a_stated_system_are_asked_for():
    # The north of UTM zone 32 given as x.
    text = "id,time,x,y\n1,2024-05-01 08:00,5250123.4,652345.2\n"
    with refused("coordinates-swapped") as fault:
        read(text, crs="EPSG:32632")
    assert fault.value.option == "--swap-axes"
    swapped = rows_of(read(text, crs="EPSG:32632", swap_axes=True))
    assert swapped[0][2:] == pytest.approx((11.018, 47.387), abs=0.01)
    either = "id,time,x,y\n1,2024-05-01 08:00,-5995.0,-35367.5\n"
    assert read(either, crs="EPSG:6677").report.guesses["axes"].alternatives == ("swapped",)


def test_trips_without_a_header_are_no_fixes():
    line = "2024-05-01 08:00:00,2024-05-01 08:10:00,35.1,139.1,35.2,139.2\n"
    with refused("column-not-found"):
        read(line + line.replace("08:", "09:"))


def test_a_southern_zone_of_utm_is_proposed():
    text = "id,time,utm_e,utm_n,utm_zone\n1,2024-05-01 08:00,334900,6252300,56H\n"
    with refused("projected-places", "Sydney") as fault:
        read(text)
    assert fault.value.option == "--crs EPSG:32756"
