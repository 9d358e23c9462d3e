from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from agg_core.io.counts.choices import CountChoices
from agg_core.io.gates import read_gates
from agg_core.tables.gates import open_gates, write_gates
from tests.agg_core.gates.made import LINES, STATIONS, long_table, places, trips
from tests.faults import refused


@pytest.fixture(scope="module")
def sides() -> tuple[pd.DataFrame, pd.DataFrame]:
    entries, exits, _ = trips(3)
    return long_table(entries), long_table(exits)


def test_two_files(sides: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = read_gates(*sides, places())
    assert table.stations == STATIONS
    assert table.lines == LINES
    assert table.n_entered == sides[0]["count"].sum()
    assert table.n_left == sides[1]["count"].sum()
    assert table.step_minutes == 60
    assert table.notes == ()
    assert table.grid is not None
    assert table.grid.make().n_cells == len(STATIONS)


def test_one_table_with_two_columns_or_with_directions(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    apart = read_gates(*sides)
    named = sides[0].rename(columns={"count": "entries"}).assign(exits=sides[1]["count"])
    told = pd.concat([sides[0].assign(direction="in"), sides[1].assign(direction="out")])
    for table in (named, told):
        found = read_gates(table)
        assert np.array_equal(found.entries.counts, apart.entries.counts)
        assert np.array_equal(found.exits.counts, apart.exits.counts)


def test_wide_tables(sides: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    wide = []
    for side in sides:
        time = side["date"] + " " + side["hour"].map("{:02d}:00".format)
        rows = side.assign(time=time).pivot(index="time", columns="station", values="count")
        wide.append(rows.reset_index())
    found, apart = read_gates(*wide), read_gates(*sides)
    assert found.stations == apart.stations
    assert np.array_equal(found.exits.counts, apart.exits.counts)


def test_rows_that_are_absent_are_nobody_unless_it_is_said(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    entries = sides[0].loc[sides[0]["count"] > 0]
    found = read_gates(entries, sides[1])
    assert found.entries.counts[8, 0] == sides[0]["count"].iloc[8 * len(STATIONS)]
    assert np.nansum(found.entries.counts) == sides[0]["count"].sum()
    missing = read_gates(
        sides[0].drop(index=8 * len(STATIONS)), sides[1], choices=CountChoices(absent="missing")
    )
    assert np.isnan(missing.entries.counts[8, 0])


def test_names_are_matched_whatever_their_case(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    loud = sides[1].assign(station=sides[1]["station"].str.upper() + " ")
    found = read_gates(sides[0], loud, places())
    assert found.stations == STATIONS
    assert found.n_left == sides[1]["count"].sum()


def test_a_station_of_few_people_without_a_place_is_left_out_and_said(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    few = [side.assign(count=np.where(side["station"] == "h", 1, side["count"])) for side in sides]
    found = read_gates(few[0], few[1], places().iloc[:-1])
    assert found.stations == STATIONS[:-1]
    assert len(found.notes) == 1
    with refused("stations-without-place"):
        read_gates(*sides, places().iloc[:3])


def test_a_station_with_exits_alone_is_said(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    found = read_gates(sides[0].loc[sides[0]["station"] != "a"], sides[1])
    assert set(found.stations) == set(STATIONS)
    assert found.entries.counts[:, found.stations.index("a")].sum() == 0
    assert len(found.notes) == 1


def test_a_station_of_several_lines_has_a_row_for_each(
    sides: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    both = pd.concat([places(), places().iloc[[0]].assign(line="blue")])
    assert read_gates(*sides, both).lines[0] == "red;blue"


def test_two_stations_at_one_place(sides: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    same = places().assign(lon=139.0, lat=35.0)
    found = read_gates(*sides, same)
    assert found.grid is not None
    assert found.distances_km is not None
    assert found.distances_km.max() < 0.1


def test_distances(sides: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    straight = read_gates(*sides, places()).distances_km
    assert straight is not None
    # A twentieth of a degree of longitude at 35 degrees north.
    assert straight[0, 1] == pytest.approx(0.05 * np.pi / 180 * 6371.0088 * np.cos(np.radians(35)))
    rows = [(o, d, 5.0) for o in STATIONS for d in STATIONS if o != d]
    stated = pd.DataFrame(rows, columns=["origin", "dest", "km"])
    found = read_gates(*sides, places(), distances=stated)
    assert found.distances_km is not None
    assert found.distances_km[0, 1] == 5.0


def test_kept_in_a_file(sides: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> None:
    table = read_gates(*sides, places())
    write_gates(table, tmp_path / "gates.parquet")
    again = open_gates(tmp_path / "gates.parquet")
    assert again.stations == table.stations
    assert again.lines == table.lines
    assert np.array_equal(again.exits.counts, table.exits.counts, equal_nan=True)
    assert again.places is not None
    assert table.places is not None
    assert np.array_equal(again.places, table.places)
    assert again.grid == table.grid
    (tmp_path / "none.parquet").write_bytes(b"PAR1 nothing")
    with refused("gates-unreadable"):
        open_gates(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("gates-one-way", lambda entries, exits: (entries, None, None)),
        ("column-not-found", lambda entries, exits: (entries, exits, places().drop(columns="lon"))),
        (
            "gates-differ",
            lambda entries, exits: (entries, exits.loc[exits["hour"] % 2 == 0], None),
        ),
    ],
)  # fmt: skip
def test_refused(code: str, change: object, sides: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    with refused(code):
        read_gates(*change(*sides))
