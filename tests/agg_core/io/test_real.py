"""Real files, read by default to the people and the spans that they are known to have."""

import numpy as np
import pandas as pd
import pytest

from agg_core.io import count_trips, read_trajectories
from agg_core.io.counts import read_counts
from agg_core.io.gates import read_gates
from agg_core.io.movements import read_movements
from agg_core.io.place_reports import table_report

MOST_ROWS = 150_000  # of 789,149: the rest takes ten seconds more and is alike
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


def accounted(report, rows):
    kept = report.rows_kept if hasattr(report, "rows_kept") else report.rows_used
    return (report.rows_read, kept, dict(report.set_aside)) == (rows, rows, {})


def test_entries_and_exits_of_a_metro(shared_data):
    folder = shared_data / "bengaluru_metro"
    files = [folder / f"{side}_by_hour.parquet" for side in ("entries", "exits")]
    table = read_gates(*files, folder / "stations.csv")
    for side, file in zip((table.entries, table.exits), files, strict=True):
        known = pd.read_parquet(file)
        assert accounted(side.report, len(known))
        sums = known.groupby("Station")["Ridership"].sum()
        found = dict(zip(side.cells, side.counts.sum(axis=0), strict=True))
        assert {name: found[name] for name in sums.index} == sums.to_dict()
    assert table.notes == ()


@pytest.mark.parametrize(
    ("path", "time", "origin", "dest", "count"),
    [
        ("bengaluru_metro/pairs_by_hour_aug01_12.parquet", ["Date", "Hour"], "Origin Station",
         "Destination Station", "Ridership"),
        ("jersey_city_bikes/derived_trips_hour_od.csv", ["hour"], "Start Station ID",
         "End Station ID", "trips"),
        ("jersey_city_bikes/derived_true_moves_hour_from_to.csv", ["hour"], "from", "to", "bikes"),
    ],
)  # fmt: skip
def test_movements_are_those_that_a_group_by_sums(shared_data, path, time, origin, dest, count):
    file = shared_data / path
    known = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    known = known.head(MOST_ROWS)
    found = read_movements(known if len(known) == MOST_ROWS else file)
    assert accounted(found.report, len(known))
    by = known.groupby([*time, origin, dest])[count].sum()
    assert len(found.table) == len(by)
    assert found.report.figures["times"] == len(known[time].drop_duplicates())
    ends = found.table.groupby(["origin", "dest"])["count"].sum()
    expected = known.astype({origin: str, dest: str}).groupby([origin, dest])[count].sum()
    assert ends.to_dict() == expected.to_dict()


def test_counts_at_stations_and_where_these_lie(shared_data):
    folder = shared_data / "jersey_city_bikes"
    known = pd.read_csv(folder / "derived_counts_hour_station.csv")
    table = read_counts(folder / "derived_counts_hour_station.csv")
    assert accounted(table.report, len(known))
    sums = known.groupby("station")["bikes"].sum()
    found = dict(zip(table.cells, np.nansum(table.counts, axis=0), strict=True))
    assert found == {str(name): total for name, total in sums.items()}
    for file in (folder / "derived_stations.csv", shared_data / "bengaluru_metro/stations.csv"):
        assert accounted(table_report(file), len(pd.read_csv(file)))


@pytest.mark.parametrize(
    ("path", "user"),
    [
        ("tokyo_people_flow/tokyo_1000users_20min.csv", "user_id"),
        ("liverpool_bus_gps/route14_outbound.csv", "vehicle_id"),
    ],
)
def test_fixes_of_each_person_are_those_that_pandas_counts(shared_data, path, user):
    found = read_trajectories(shared_data / path).table
    expected = pd.read_csv(shared_data / path, dtype=str).groupby(user).size()
    assert found.groupby("user_id").size().to_dict() == expected.to_dict()
