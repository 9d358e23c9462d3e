"""Real tables of counts, against what is known of them."""

import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import holds_counts, read_counts

TOKYO = "tokyo_people_flow/derived_counts_date_slot_cell.csv"
BIKES = "jersey_city_bikes/derived_counts_hour_station.csv"
STATIONS = "jersey_city_bikes/derived_stations.csv"


def test_people_of_tokyo_by_slot(shared_data):
    table = read_counts(shared_data / TOKYO, tz="Asia/Tokyo", first_slot="09:00", slot_minutes=20)
    assert (table.n_moments, table.n_cells) == (6 * 30, 375)
    assert table.slots[0] == "09:00"
    assert table.slots[-1] == "18:40"
    assert str(table.times[0]) == "2013-07-01 00:00:00+00:00"
    assert table.sequence.max() == 5
    # The people of each date at 09:00, by the file that the counts were made from.
    people = pd.read_csv(shared_data / "tokyo_people_flow" / "tokyo_1000users_20min.csv")
    first = people[people["time"].str.contains("T09:00|09:00:00")]
    dates = first["time"].str[:10].value_counts().sort_index()
    assert table.totals[::30].tolist() == dates.tolist()
    assert table.report.guesses["absent"].value == "zero"
    assert "come and go" in table.report.remarks["totals"]


def test_bikes_of_jersey_city_by_hour(shared_data):
    table = read_counts(shared_data / BIKES, tz="America/New_York")
    # 321 bikes, each always somewhere: at a station or on a trip.
    assert set(table.totals) == {321}
    assert "-1" in table.cells
    assert table.sequence.max() == 0
    assert "same total" in table.report.remarks["totals"]


def test_stations_have_places_and_bikes_on_a_trip_are_away(shared_data):
    files = {"counts.csv": shared_data / BIKES, "stations.csv": shared_data / STATIONS}
    table = read_counts(files, tz="America/New_York")
    stations = pd.read_csv(shared_data / STATIONS, dtype={"station": str}).set_index("station")
    grid = table.grid.make()
    assert set(table.cells) == set(stations.index)
    at = stations.loc[list(table.cells)]
    assert grid.assign(at["lon"], at["lat"]).tolist() == list(range(43))
    assert table.totals.max() == 321
    assert table.totals.min() < 321


@pytest.mark.parametrize(
    "path",
    [
        "tokyo_people_flow/tokyo_1000users_20min.csv",
        "liverpool_bus_gps/route14_outbound.csv",
        "jersey_city_bikes/JC-201510-citibike-tripdata_nodemog.csv",
    ],
)
def test_trajectories_are_no_counts(shared_data, path):
    assert not holds_counts(shared_data / path)
    with pytest.raises(InputError) as told:
        read_counts(shared_data / path)
    assert told.value.code == "table-of-trajectories"


@pytest.mark.parametrize("path", [TOKYO, BIKES])
def test_counts_are_known_as_such(shared_data, path):
    assert holds_counts(shared_data / path)


def test_messy_trajectories_are_no_counts(shared_data):
    taken = [p.name for p in sorted((shared_data / "messy").glob("*.*"))
             if p.suffix != ".md" and holds_counts(p)]  # fmt: skip
    assert taken == []
