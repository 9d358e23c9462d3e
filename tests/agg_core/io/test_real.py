"""Real files, read by default to the people and the spans that they are known to have."""

import pandas as pd
import pytest

from agg_core.io import count_trips, read_trajectories
from agg_core.io.movements import read_movements

BIKES = "jersey_city_bikes/JC-201510-citibike-tripdata_nodemog.csv"


@pytest.mark.parametrize(
    ("path", "rows", "individuals", "first", "last"),
    [
        (
            "tokyo_people_flow/tokyo_1000users_20min.csv",
            30_000, 1_000, "2013-07-01 00:00:00", "2013-12-22 09:40:59",
        ),
        (
            "liverpool_bus_gps/route14_outbound.csv",
            1_533, 8, "2026-01-26 15:55:12", "2026-01-26 18:19:36",
        ),
        (BIKES, 2 * 19_264, 321, "2015-10-01 00:16:26", "2015-11-03 07:18:37"),
    ],
)  # fmt: skip
def test_real_files(shared_data, path, rows, individuals, first, last):
    report = read_trajectories(shared_data / path).report
    assert (report.rows_read, report.individuals) == (rows, individuals)
    assert (str(report.first_utc)[:19], str(report.last_utc)[:19]) == (first, last)
    assert report.rows_kept == rows


@pytest.mark.parametrize("source", ["", "flights_2013-07-01_07.csv"])
def test_aircraft_by_their_tail_number(shared_data, source):
    folder = shared_data / "nycflights13_week"
    trajectories = read_trajectories(folder / source)
    flights = pd.read_csv(folder / "flights_2013-07-01_07.csv")
    airports = pd.read_csv(folder / "airports.csv")
    known = flights["tailnum"].notna()
    left = known & flights["dep_time"].notna()
    came = known & flights["arr_delay"].notna() & flights["dest"].isin(airports["faa"])
    assert trajectories.report.individuals == flights.loc[left | came, "tailnum"].nunique()
    assert trajectories.report.rows_kept == left.sum() + came.sum()
    # By the table's own column of scheduled departures in UTC, and the delay.
    scheduled = pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], "min")
    departures = (scheduled + pd.to_timedelta(flights["dep_delay"], "min"))[left]
    assert trajectories.report.first_utc == departures.min()
    on_board = trajectories.table.groupby("user_id")["time"].min()
    first_of = departures.groupby(flights["tailnum"]).min()
    both = on_board.index.intersection(first_of.index)
    assert len(both) > 2_000
    assert (on_board[both] == first_of[both]).mean() > 0.99


def test_the_trips_of_bikes_by_hour(shared_data):
    counted = count_trips(shared_data / BIKES).table
    known = pd.read_csv(shared_data / "jersey_city_bikes" / "derived_trips_hour_od.csv", dtype=str)
    keys = zip(
        counted["time"].dt.strftime("%Y-%m-%d %H:%M"),
        counted["origin"],
        counted["dest"],
        strict=True,
    )
    expected = zip(known["hour"], known["Start Station ID"], known["End Station ID"], strict=True)
    assert dict(zip(keys, counted["count"], strict=True)) == dict(
        zip(expected, known["trips"].astype(int), strict=True)
    )


def test_sums_of_trips_between_stations(shared_data):
    path = shared_data / "jersey_city_bikes" / "derived_trips_hour_od.csv"
    found, known = read_movements(path), pd.read_csv(path)
    assert (found.report.rows_read, found.report.rows_kept) == (len(known), len(known))
    assert found.report.figures["trips"] == known[known.columns[-1]].sum()
