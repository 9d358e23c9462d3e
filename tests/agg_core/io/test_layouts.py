"""Public data sets by their layout: made-up rows in the form of each, worked by hand."""

import json

import pytest

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories


def read(text, **choices):
    return read_trajectories(text.encode(), **choices)


def rows_of(trajectories):
    table = trajectories.table
    times = table["time"].dt.strftime("%Y-%m-%d %H:%M:%S")
    return list(zip(table["user_id"], times, table["lon"], table["lat"], strict=True))


def layout(trajectories):
    return trajectories.report.guesses["layout"].value


def test_nine_columns_of_people_flow_in_japan_are_on_japans_clock():
    text = (
        "uid,sex,when,latitude_of,longitude_of,main,sub,state,cat\n"
        "7,0,2013-07-01 09:00:00,35.65,139.70,,,STAY,\n"
        "7,0,2013-07-01 09:05:00,35.66,139.71,,,MOVE,\n"
    )
    trajectories = read(text)
    assert layout(trajectories) == "SNS-based People Flow Data"
    assert trajectories.timezone == "Asia/Tokyo"
    assert rows_of(trajectories)[0] == ("7", "2013-07-01 00:00:00", 139.70, 35.65)
    stated = read(text, tz="UTC")
    assert rows_of(stated)[0][1] == "2013-07-01 09:00:00"


def test_openpflow_is_longitude_before_latitude():
    text = (
        "00001\t2008/10/01 00:00:05\t139.5\t35.5\t97\n00001\t2008/10/01 00:01:05\t139.6\t35.6\t97\n"
    )
    trajectories = read(text)
    assert layout(trajectories) == "OpenPFLOW"
    assert rows_of(trajectories)[0] == ("00001", "2008-09-30 15:00:05", 139.5, 35.5)


def test_taxis_of_beijing():
    trajectories = read(
        "366,2008-02-02 13:30:44,116.36,39.88\n366,2008-02-02 13:40:44,116.37,39.89\n"
    )
    assert layout(trajectories) == "T-Drive"
    assert rows_of(trajectories)[0] == ("366", "2008-02-02 05:30:44", 116.36, 39.88)


def test_check_ins_show_the_clock_of_their_offset():
    line = "{}\tv\tc\tCafe\t35.7\t139.7\t540\tTue Apr 03 18:00:09 +0000 2012\n"
    trajectories = read(line.format(470) + line.format(979))
    assert trajectories.timezone == "UTC+09:00"
    assert rows_of(trajectories)[0] == ("470", "2012-04-03 18:00:09", 139.7, 35.7)


def test_numbered_blocks_of_a_hidden_city():
    # Day 1, slot 17 is 8:30 of the second day; the middle of block (1, 1) is half a block inside.
    text = "uid,d,t,x,y\n5,1,17,1,1\n5,1,18,200,3\n5,1,19,999,999\n"
    trajectories = read(text)
    half = 0.5 * 500 / 111_320
    assert rows_of(trajectories)[0] == (
        "5",
        "2000-01-02 08:30:00",
        pytest.approx(half),
        pytest.approx(half),
    )
    assert trajectories.report.set_aside["missing position"].count == 1
    assert trajectories.report.set_aside["missing position"].lines == (4,)
    turned = read(text, flip_y=True)
    assert turned.table["lat"].tolist() == pytest.approx([399 * half, 395 * half])


def test_a_line_of_points_every_fifteen_seconds():
    trips = [
        ("T1", 1372636858, [[-8.61, 41.14], [-8.62, 41.15], [-8.63, 41.16]]),
        ("T2", 1372637303, []),
    ]
    lines = [
        f'"{trip}","C","","","20000589","{start}","A","False","{json.dumps(line)}"'
        for trip, start, line in trips
    ]
    head = (
        '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP",'
        '"DAY_TYPE","MISSING_DATA","POLYLINE"'
    )
    trajectories = read("\n".join([head, *lines]))
    assert rows_of(trajectories) == [
        ("20000589", "2013-07-01 00:00:58", -8.61, 41.14),
        ("20000589", "2013-07-01 00:01:13", -8.62, 41.15),
        ("20000589", "2013-07-01 00:01:28", -8.63, 41.16),
    ]
    assert trajectories.report.set_aside["missing position"].lines == (3,)


OLD = (
    "Trip Duration,Start Time,Stop Time,Start Station ID,Start Station Latitude,"
    "Start Station Longitude,End Station Latitude,End Station Longitude,Bike ID\n"
    "376,2015-10-01 00:16:26,2015-10-01 00:22:42,3212,40.73,-74.05,40.74,-74.06,24470\n"
    "739,2015-10-01 00:27:12,2015-10-01 00:39:32,3207,40.74,-74.06,40.75,-74.07,24470\n"
)


def test_a_trip_is_a_fix_where_it_begins_and_one_where_it_ends():
    trajectories = read(OLD)
    assert [row[1][11:] for row in rows_of(trajectories)] == [
        "00:16:26", "00:22:42", "00:27:12", "00:39:32",
    ]  # fmt: skip
    assert trajectories.table["lon"].tolist() == [-74.05, -74.06, -74.06, -74.07]
    assert trajectories.report.individuals == 1


def test_trips_of_nobody_are_refused():
    text = (
        "ride_id,started_at,ended_at,start_lat,start_lng,end_lat,end_lng\n"
        "A1,2024-02-01 08:00:00,2024-02-01 08:10:00,40.73,-74.05,40.74,-74.06\n"
    )
    with pytest.raises(InputError) as told:
        read(text)
    assert told.value.code == "nameless-trips"


def test_a_layout_can_be_refused_or_asked_for():
    text = "366,2008-02-02 13:30:44,116.36,39.88\n366,2008-02-02 13:40:44,116.37,39.89\n"
    assert rows_of(read(text, layout="none"))[0][1] == "2008-02-02 13:30:44"
    with pytest.raises(InputError) as told:
        read(text, layout="porto")
    assert told.value.code == "layout-mismatch"
    with pytest.raises(InputError) as told:
        read(text, layout="porta")
    assert told.value.code == "unknown-layout"
