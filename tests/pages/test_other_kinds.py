"""Files on the page Data that go with other data: tables of trips and of places, single trips."""

import pytest

from tests.agg_core.gates.made import STATIONS, long_table, pair_table, places, trips
from tests.pages.visit import SESSION, Visit
from ui import workspace

ENTRIES, EXITS, WENT = trips(3)
BOTH = (
    long_table(ENTRIES).rename(columns={"count": "entries"})
    .assign(exits=long_table(EXITS)["count"]).to_csv(index=False)
)  # fmt: skip
PAIRS, STOPS = pair_table(WENT).to_csv(index=False), places().to_csv(index=False)
TRIPS = "begun,over,one,two\n" + "".join(
    f"2024-05-01 0{hour}:10,2024-05-01 0{hour}:30,{a},{b}\n"
    for hour, a, b in ((7, "x", "y"), (8, "x", "y"), (8, "y", "x"))
)


def test_a_table_of_trips_is_told_and_held_against_flows() -> None:
    visit = Visit("Data").upload("pairs.csv", PAIRS)
    assert visit.errors == []
    visit.press("other.reference")
    assert visit.title == "Evidence"
    brought = workspace.held_by(SESSION)["brought"]
    assert brought.tables["reference"] == ("pairs.csv", PAIRS.encode())
    assert visit.at.session_state["evidence.reference"] == "file"


def test_a_table_of_trips_becomes_the_old_matrix_of_open_gates() -> None:
    visit = Visit("Data").upload("both.csv", BOTH)
    assert "other.matrix" not in visit.keys("button")
    visit.upload("pairs.csv", PAIRS).press("other.matrix")
    assert visit.title == "Learn"
    assert "gates.matrix.drop" in visit.keys("button")


def test_a_table_of_places_is_joined_to_the_file_before() -> None:
    visit = Visit("Data").upload("stops.csv", STOPS)
    assert visit.errors == []
    assert "other.join" not in visit.keys("button")
    visit.upload("both.csv", BOTH)
    assert visit.decks() == []
    visit.upload("stops.csv", STOPS)
    assert visit.errors == []
    visit.press("other.join")
    assert visit.errors == []
    assert visit.figures["Stations"] == str(len(STATIONS))
    assert len(visit.decks()[0]["stations"]) == len(STATIONS)
    assert "other.join" not in visit.keys("button")


def test_records_of_towers_are_joined_to_places_that_come_later() -> None:
    calls = "caller_id,call_start,cell_id\n1,2023-03-01 08:01:00,7\n1,2023-03-01 09:30:00,8\n"
    towers = "cell_id,lat,lon\n7,35.68,139.76\n8,35.69,139.7\n"
    visit = Visit("Data").upload("cdr.csv", calls)
    assert len(visit.errors) == 1
    visit.upload("towers.csv", towers).press("other.join")
    assert visit.errors == []
    assert visit.figures["Fixes kept"] == "2"


@pytest.mark.parametrize(("one", "two"), [("one", "two"), ("two", "one")])
def test_columns_of_single_trips_are_stated(one, two) -> None:
    visit = Visit("Data").upload("rides.csv", TRIPS).press("reading.as_trips")
    visit.read_again(start="begun", end="over", origin=one, dest=two)
    assert visit.errors == []
    assert visit.figures["Trips"] == "3"
    table = next(found for found in visit.at.dataframe if "origin" in found.value).value
    by_pair = table.groupby(["origin", "dest"])["count"].sum()
    assert by_pair["x", "y"] == (2 if one == "one" else 1)
