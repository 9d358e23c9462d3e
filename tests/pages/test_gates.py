"""Entries and exits on the pages, from files to flows."""

import numpy as np
import pytest

from tests.agg_core.gates.made import STATIONS, long_table, pair_table, places, trips
from tests.pages.visit import SESSION, Visit
from ui import workspace

QUICK = {"minutes_per_km": 1.2, "draws": 2}
ENTRIES, EXITS, WENT = trips(7)
FILES = {
    "entries": long_table(ENTRIES), "exits": long_table(EXITS), "stations": places(),
    "pairs": pair_table(WENT),
    "both": long_table(ENTRIES).rename(columns={"count": "entries"}).assign(
        exits=long_table(EXITS)["count"]
    ),
}  # fmt: skip
CSV = {name: table.to_csv(index=False) for name, table in FILES.items()}


def add(visit: Visit, key: str, name: str) -> Visit:
    """Upload a file to another uploader than the first."""
    visit.at.file_uploader(key=key).upload(f"{name}.csv", CSV[name].encode(), "text/csv")
    visit.at.run()
    assert not visit.at.exception
    return visit


def held_matrix() -> object:
    """The old matrix that the session of the visit holds, if any."""
    return workspace._workspaces[SESSION].matrix


@pytest.fixture
def opened() -> Visit:
    """Both directions in one table, with stations."""
    return add(Visit("Data").upload("both.csv", CSV["both"]), "gates.places", "stations")


def test_one_table_is_told_by_its_columns() -> None:
    visit = Visit("Data").upload("both.csv", CSV["both"])
    assert visit.errors == []
    assert visit.figures["Stations"] == "8"
    assert visit.figures["Days"] == "7"
    assert visit.figures["Entries"] == f"{ENTRIES.sum():,.0f}"
    assert visit.figures["Exits"] == f"{EXITS.sum():,.0f}"
    bars = visit.charts()[0]["data"]
    assert len(bars) == 2
    assert visit.decks() == []  # nobody has said yet where stations lie


def test_stations_on_a_map_are_as_large_as_their_entries(opened) -> None:
    deck = opened.decks()[0]
    radius = {each["what"].partition(":")[0]: each["radius"] for each in deck["stations"]}
    people = dict(zip(STATIONS, ENTRIES.sum(axis=(0, 1)), strict=True))
    assert radius.keys() == people.keys()
    least, most = min(people, key=people.get), max(people, key=people.get)
    assert radius[least] / radius[most] == pytest.approx(
        np.sqrt(people[least] / people[most]), abs=0.01
    )


def test_entries_first_and_exits_as_a_second_upload() -> None:
    visit = Visit("Data").upload("entries.csv", CSV["entries"])
    assert visit.at.session_state["app"].dataset.kind == "counts"
    visit.press("reading.as_gates")
    assert len(visit.errors) == 1
    assert visit.at.session_state["app"].dataset.kind == "counts"  # what was open stays
    add(visit, "gates.exits", "exits")
    assert visit.errors == []
    assert visit.at.session_state["app"].dataset.kind == "gates"
    assert visit.figures["Exits"] == f"{EXITS.sum():,.0f}"
    visit.press("gates.exits.drop")
    assert len(visit.errors) == 1


def test_several_files_are_told_apart() -> None:
    visit = Visit("Data")
    named = {"stations": "stops", "exits": "tap_out", "entries": "tap_in"}
    uploader = visit.at.file_uploader(key="uploads")
    for part, name in named.items():
        uploader.upload(f"{name}.csv", CSV[part].encode(), "text/csv")
    visit.at.run()
    assert visit.errors == []
    assert visit.figures["Entries"] == f"{ENTRIES.sum():,.0f}"
    assert len(visit.decks()) == 1


def test_columns_of_other_names_are_stated() -> None:
    other = FILES["both"].rename(columns={"entries": "u", "exits": "v"}).to_csv(index=False)
    visit = Visit("Data").upload("other.csv", other).press("reading.as_gates")
    visit.read_again(entries="v", exits="u")
    assert visit.errors == []
    assert visit.figures["Entries"] == f"{EXITS.sum():,.0f}"


def test_stations_without_many_people_are_left_out_and_said() -> None:
    visit = Visit("Data").upload("both.csv", CSV["both"])
    lost = FILES["stations"].replace({"station": {STATIONS[0]: "elsewhere"}}).to_csv(index=False)
    visit.at.file_uploader(key="gates.places").upload("st.csv", lost.encode(), "text/csv")
    visit.at.run()
    assert len(visit.errors) == 1
    assert visit.figures["Stations"] == "8"  # what was open stays


def test_the_sample_is_opened_and_shown() -> None:
    visit = Visit("Data").press("data.gates")
    assert visit.errors == []
    assert visit.figures["Stations"] == "10"
    assert len(visit.decks()[0]["stations"]) == 10


def test_grid_shows_stations_and_leads_on(opened) -> None:
    opened.go("Grid")
    assert opened.errors == []
    assert len(opened.decks()[0]["stations"]) == 8


def quick(visit: Visit) -> Visit:
    visit.go("Learn")
    for name, value in QUICK.items():
        visit.set(f"gate_learn.{name}", value)
    return visit


def test_learned_shown_and_found_again(opened) -> None:
    quick(opened).learn()
    assert opened.errors == []
    now = opened.at.session_state["app"]
    assert now.gates.finished is not None
    assert now.gates.finished.saved is not None
    assert opened.address["job"] == now.gates.run.key
    opened.press("to.gates.flows")
    assert opened.title == "Flows"
    assert opened.errors == []
    assert set(opened.maps[-1].header["cells"]) == set(STATIONS)
    saved = now.gates.finished.saved
    again = Visit("Flows", run=saved)
    assert again.errors == []
    assert again.at.session_state["app"].shows == "gates"


def test_an_old_matrix_is_learned_from_and_left_out(opened) -> None:
    add(quick(opened), "gates.matrix", "pairs")
    assert opened.errors == []
    assert held_matrix() is not None
    opened.learn()
    result = opened.at.session_state["app"].gates.finished
    assert result is not None
    opened.press("gates.matrix.drop")
    assert held_matrix() is None


def test_a_matrix_of_other_places_is_refused(opened) -> None:
    quick(opened)
    opened.at.file_uploader(key="gates.matrix").upload(
        "odd.csv", b"origin,dest,count\nx,y,5\n", "text/csv"
    )
    opened.at.run()
    assert len(opened.errors) == 1
    assert held_matrix() is None
