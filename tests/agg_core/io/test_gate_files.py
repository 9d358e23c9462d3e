"""Files of entries and exits told apart, and read by a process of their own."""

import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices, start_reading
from agg_core.io.counts import CountChoices
from agg_core.io.gate_files import gate_steps, gates_of_files, parts_of_gates
from agg_core.tables.gates import open_gates

ENTRIES = b"time,station,count\n2024-05-01 08:00,a,5\n2024-05-01 08:00,b,7\n"
EXITS = b"time,station,count\n2024-05-01 08:00,a,3\n2024-05-01 08:00,b,9\n"
BOTH = b"time,station,entries,exits\n2024-05-01 08:00,a,5,3\n2024-05-01 08:00,b,7,9\n"
STATIONS = b"station,lon,lat\na,139.5,35.6\nb,139.6,35.7\n"
PEOPLE = b"user_id,time,lon,lat\nx,2024-05-01 08:00,139.5,35.6\n"
PAIRS = b"origin,dest,count\na,b,5\nb,a,6\n"


@pytest.mark.parametrize(
    ("files", "parts"),
    [
        ({"g.csv": BOTH}, {"entries": ["g.csv"]}),
        ({"s.csv": STATIONS, "g.csv": BOTH}, {"entries": ["g.csv"], "places": ["s.csv"]}),
        (
            {"tap_out.csv": EXITS, "tap_in.csv": ENTRIES, "s.csv": STATIONS},
            {"entries": ["tap_in.csv"], "exits": ["tap_out.csv"], "places": ["s.csv"]},
        ),
        (
            {"x.csv": EXITS.replace(b"count", b"exits"), "e.csv": BOTH.replace(b",exits", b",z")},
            {"entries": ["e.csv"], "exits": ["x.csv"]},
        ),
        ({"entries.csv": ENTRIES}, None),
        ({"may.csv": ENTRIES, "june.csv": EXITS}, None),
        ({"entries.csv": PEOPLE, "exits.csv": PEOPLE}, None),
        ({"p.csv": PAIRS}, None),
        ({"s.csv": STATIONS}, None),
    ],
)
def test_which_file_holds_what(files, parts) -> None:
    found = parts_of_gates(files)
    told = None if found is None else {part: list(some) for part, some in found.items()}
    assert told == parts


def test_read_in_steps_into_a_file(tmp_path) -> None:
    parts = {"entries": {"e": ENTRIES}, "exits": {"x": EXITS}, "places": {"s": STATIONS}}
    first, *_ = list(gate_steps(parts, CountChoices(), tmp_path / "gates"))
    assert first.columns == ("time", "station", "count")
    table = open_gates(tmp_path / "gates")
    assert (table.n_entered, table.n_left) == (12, 12)
    assert table.stations == ("a", "b")
    assert table.places.tolist() == [[139.5, 35.6], [139.6, 35.7]]


def test_columns_of_each_direction_are_stated() -> None:
    table = BOTH.replace(b"entries", b"u").replace(b"exits", b"v")
    choices = CountChoices.of({"entries": "v", "exits": "u"})
    found = gates_of_files({"entries": {"g": table}}, choices)
    assert found.entries.counts.tolist() == [[3, 9]]
    assert found.exits.counts.tolist() == [[5, 7]]
    one = CountChoices.of({"entries": "v"})
    with pytest.raises(InputError) as fault:
        gates_of_files({"entries": {"g": table}}, one)
    assert fault.value.code == "gates-one-way"


def read(files, folder, **given):
    reading = start_reading(files, given.pop("choices", Choices()), folder, **given)
    reading.wait()
    return reading


def test_a_process_tells_gates_by_itself(tmp_path) -> None:
    found = read({"g.csv": BOTH}, tmp_path / "r", kind="auto")
    assert found.kind == "gates"
    assert found.gates().n_entered == 12


def test_a_process_reads_entries_with_what_goes_with_them(tmp_path) -> None:
    alone = read({"g.csv": ENTRIES}, tmp_path / "alone", kind="gates")
    assert (alone.kind, alone.state, alone.fault.code) == ("gates", "failed", "gates-one-way")
    beside = {"exits": {"x.csv": EXITS}, "places": {"s.csv": STATIONS}}
    found = read({"g.csv": ENTRIES}, tmp_path / "both", kind="gates", beside=beside).gates()
    assert found.n_left == 12
    assert found.grid is not None


def test_a_process_counts_trips_by_stated_columns(tmp_path) -> None:
    trips = b"t,u,p,q\n2024-05-01 08:00,2024-05-01 08:20,a,b\n2024-05-01 08:10,x,b,a\n"
    columns = {"start": "t", "origin": "q", "dest": "p"}
    found = read({"t.csv": trips}, tmp_path / "r", kind="trips", choices=Choices.of(columns))
    table, report = found.trips()
    assert sorted(zip(table["origin"], table["dest"], strict=True)) == [("a", "b"), ("b", "a")]
    assert report.rows_kept == 2
    assert found.columns == ("t", "u", "p", "q")
