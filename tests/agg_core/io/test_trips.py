"""Trips as an origin-destination table, counted by hand."""

import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices, count_trips

NEW = (
    "ride_id,started_at,ended_at,start_station_id,end_station_id,start_lat,start_lng,end_lat,end_lng\n"
    "A1,2024-02-01 08:00:00,2024-02-01 08:10:00,S1,S2,40.73,-74.05,40.74,-74.06\n"
    "A2,2024-02-01 08:59:59,2024-02-01 09:10:00,S1,S2,40.73,-74.05,40.74,-74.06\n"
    "A3,2024-02-01 09:00:00,2024-02-01 09:10:00,S1,S2,40.73,-74.05,40.74,-74.06\n"
    "A4,2024-02-01 09:00:00,2024-02-01 09:10:00,S2,S1,40.74,-74.06,40.73,-74.05\n"
    "A5,,2024-02-01 09:10:00,S2,S1,40.74,-74.06,40.73,-74.05\n"
    "A6,2024-02-01 09:00:00,2024-02-01 09:10:00,,S1,,,40.73,-74.05\n"
)


def test_trips_by_hour_and_station():
    counted = count_trips(NEW.encode())
    assert counted.table["count"].tolist() == [2, 1, 1]
    assert [(f"{t:%H:%M}") for t in counted.table["time"]] == ["08:00", "09:00", "09:00"]
    assert counted.table[["origin", "dest"]].to_numpy().tolist() == [
        ["S1", "S2"], ["S1", "S2"], ["S2", "S1"],
    ]  # fmt: skip
    assert (counted.trips, counted.left_out) == (6, 2)
    first = counted.table.iloc[0]
    assert (first["origin_lon"], first["origin_lat"]) == (-74.05, 40.73)
    assert (first["dest_lon"], first["dest_lat"]) == (-74.06, 40.74)


def test_trips_between_zones_without_a_place():
    text = (
        "tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n"
        "2024-01-01 00:57:55,2024-01-01 01:17:43,186,79\n"
    )
    counted = count_trips(text.encode(), Choices(tz="America/New_York"), "1D")
    assert counted.table["origin"].tolist() == ["186"]
    assert list(counted.table.columns) == ["time", "origin", "dest", "count"]
    assert str(counted.table["time"][0]) == "2024-01-01 00:00:00"


def test_ends_without_a_name_are_called_by_their_position():
    text = NEW.replace("start_station_id,end_station_id", "a,b")
    counted = count_trips(text.encode())
    assert counted.table["origin"].tolist() == ["40.73 -74.05"] * 2 + ["40.74 -74.06"]


@pytest.mark.parametrize(
    ("text", "step", "code"),
    [
        ("user_id,time,lon,lat\na,2024-02-01,1,2\n", "1h", "no-trips-found"),
        (NEW, "soon", "malformed-duration"),
        (NEW, "-1h", "value-out-of-range"),
    ],
)
def test_what_cannot_be_counted(text, step, code):
    with pytest.raises(InputError) as told:
        count_trips(text.encode(), step=step)
    assert told.value.code == code
