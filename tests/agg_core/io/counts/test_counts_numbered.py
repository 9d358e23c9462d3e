"""Cells numbered on a grid: where they lie, by hand, and what is said where that is not known."""

import json

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import CountChoices, read_counts
from agg_core.space.settings import AreaSettings, GridSettings

HOUR = "2024-01-01 00:00"
BOX = (139.0, 35.0, 139.3, 35.2)
"""Three columns of 0.1 degrees, two rows."""


def read(*rows, header="time,cell,count", **choices):
    return read_counts("\n".join([header, *rows]).encode(), **choices)


def by_number(first=0, n=6):
    return [f"{HOUR},{i + first},{10 * i}" for i in range(n)]


def at(table, lon, lat):
    """The count of the cell at a place."""
    return table.counts[0, table.grid.make().assign([lon], [lat])[0]]


@pytest.mark.parametrize(
    ("corner", "south_west", "north_west"),
    [("from the south-west", 0, 30), ("from the north-west", 30, 0)],
)
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_begin_in_a_corner_and_go_row_by_row(corner, south_west, north_west, first):
    table = read(*by_number(first), grid_box=BOX, grid_rows=2, grid_cols=3, grid_corner=corner)
    assert isinstance(table.grid, GridSettings)
    assert (table.grid.bounds, table.grid.rows, table.grid.cols) == (BOX, 2, 3)
    assert at(table, 139.05, 35.05) == south_west
    assert at(table, 139.15, 35.05) == south_west + 10
    assert at(table, 139.05, 35.15) == north_west
    assert table.grid.make().labels == list(table.cells)
    assert sorted(map(int, table.cells)) == list(range(first, first + 6))
    guess = table.report.guesses["numbers"]
    assert guess.value == corner
    assert guess.option == "grid_corner"
    again = CountChoices().changed(guess.option, guess.alternatives[0])
    assert again.grid_corner == guess.alternatives[0] != corner


def test_rows_and_columns_need_no_size():
    rows = [f"{HOUR},{row},{col},{10 * row + col}" for row in (1, 2) for col in (1, 2, 3)]
    table = read(*rows, header="time,row,col,count", grid_box=BOX)
    assert (table.grid.rows, table.grid.cols) == (2, 3)
    assert at(table, 139.25, 35.15) == 23
    assert table.cells[0] == "row 1, column 1"
    assert table.report.guesses["first number"].value == "1"
    north = read(*rows, header="time,row,col,count", grid_box=BOX,
                 grid_corner="from the north-west")  # fmt: skip
    assert at(north, 139.25, 35.05) == 23
    stated = read(*rows, header="time,row,col,count", grid_box=BOX, grid_first="0")
    assert (stated.grid is None, stated.n_cells) == (False, 6)
    assert at(stated, 139.0 + 0.3 * 3.5 / 4, 35.0 + 0.2 * 2.5 / 3) == 23


@pytest.mark.parametrize(
    ("numbers", "size", "first", "sure"),
    [
        (range(6), {}, "0", True),
        ([1, 2, 6], {"grid_rows": 2, "grid_cols": 3}, "1", True),
        # A grid of two rows holds numbers up to 5 from 0, and all of these from 1.
        ([1, 2, 5], {"grid_rows": 2, "grid_cols": 3}, "0", False),
        (range(1, 7), {}, "1", False),
        ([2, 3, 4], {}, "0", False),
    ],
)
def test_the_first_number_is_guessed_and_can_be_stated(numbers, size, first, sure):
    rows = [f"{HOUR},{number},5" for number in numbers]
    guess = read(*rows, grid_box=BOX, **size).report.guesses["first number"]
    assert (guess.value, guess.note == "") == (first, sure)
    assert guess.alternatives == (() if sure else (str(1 - int(first)),))
    assert guess.option == "grid_first"


def test_directions_of_streets_are_no_extents():
    rows = [f"{HOUR},{name},9,{w},4,{e},3" for name, w, e in [("A", 5, 7), ("B", 8, 2)]]
    table = read(*rows, header="time,site,count,west,south,east,north")
    assert table.grid is None
    assert table.counts.tolist() == [[9, 9]]


def test_without_an_extent_there_is_no_map_and_it_is_asked_for():
    for table in (
        read(*by_number()),
        read(f"{HOUR},0,1,5", f"{HOUR},1,0,6", header="time,row,col,count"),
    ):
        assert table.grid is None
        guess = table.report.guesses["cells"]
        assert guess.option == "grid_box"
        assert "for a map say the extent" in guess.note
    # Numbers of stations are no numbers on a grid.
    assert "cells" not in read(*by_number(3000)).report.guesses


def test_the_size_is_guessed_from_the_largest_number_and_the_shape_of_the_box():
    rows = [f"{HOUR},{i},{i}" for i in range(397)]
    table = read(*rows, grid_box=(139.68, 35.65, 139.80, 35.75))
    guess = table.report.guesses["size of the grid"]
    assert guess.value == "20 rows x 20 columns"
    assert "as few as hold all" in guess.note
    # Zeros are written out, so that nobody knows of the other three.
    assert isinstance(table.grid, AreaSettings)
    assert table.n_cells == 397
    assert at(table, 139.68 + 0.006 * 15.5, 35.65 + 0.005 * 9.5) == 195
    stated = read(*rows, grid_box=(139.68, 35.65, 139.80, 35.75), grid_cols=50)
    assert stated.report.guesses["size of the grid"].value == "8 rows x 50 columns"
    assert at(stated, 139.68 + 0.12 * 45.5 / 50, 35.65 + 0.1 * 3.5 / 8) == 195


def test_cells_that_no_row_has_are_as_other_absent_ones():
    hours = [HOUR, "2024-01-01 01:00"]
    rows = [f"{hours[t]},{i},{i + 1}" for t in range(2) for i in range(5) if (t, i) != (1, 2)]
    table = read(*rows, grid_box=BOX, grid_rows=2, grid_cols=3)
    assert table.report.guesses["absent"].value == "zero"
    assert table.counts.tolist() == [[1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 0]]
    assert table.cells == ("0", "1", "2", "3", "4", "5")
    assert "1 of 6 cells of the grid have no row" in table.report.remarks["grid"]
    hidden = read(*rows, grid_box=BOX, grid_rows=2, grid_cols=3, suppressed_below=3)
    assert hidden.n_suppressed == 3
    assert hidden.status[:, 5].tolist() == [1, 1]
    # What nobody measured would make every moment incomplete.
    missing = read(*rows, grid_box=BOX, grid_rows=2, grid_cols=3, absent="missing")
    assert missing.cells == ("0", "1", "2", "3", "4")
    assert isinstance(missing.grid, AreaSettings)
    # Few cells of a large grid are areas, as are those of an extent.
    few = read(*rows, grid_box=BOX, grid_rows=200, grid_cols=3)
    assert few.n_cells == 5
    some = read(*rows, grid_box=BOX, grid_rows=2, grid_cols=3, bbox=(139.0, 35.0, 139.2, 35.1))
    assert some.cells == ("0", "1")


def test_columns_of_cells_are_numbered_too():
    text = "time,5,0,1,2,3,4\n" + f"{HOUR},50,0,10,20,30,40\n"
    table = read_counts(text.encode(), grid_box=BOX, grid_rows=2, grid_cols=3)
    assert table.counts.tolist() == [[0, 10, 20, 30, 40, 50]]
    assert table.cells == ("0", "1", "2", "3", "4", "5")


def test_cells_with_names_keep_them():
    rows = [f"{HOUR},{name},{i // 3},{i % 3},{i}" for i, name in enumerate("ABCDEF")]
    table = read(*rows, header="time,zone,row,col,count", grid_box=BOX)
    assert table.cells == tuple("ABCDEF")
    assert at(table, 139.25, 35.15) == 5
    # One name of several cells is the name of none.
    rows = [f"{HOUR},{i % 2},{i // 3},{i % 3},{i}" for i in range(6)]
    table = read(*rows, header="time,id,row,col,count", grid_box=BOX)
    assert table.cells[1] == "row 0, column 1"


def test_the_file_tells_its_box():
    rows = [f"{HOUR},{i},{i},139,35,139.3,35.2" for i in range(6)]
    table = read(*rows, header="time,cell,count,west,south,east,north", grid_cols=3)
    assert table.grid.bounds == BOX
    # Boxes of single cells tell their places.
    rows = [f"{HOUR},c{i},{i},{139 + i},35,{140 + i},36" for i in range(3)]
    table = read(*rows, header="time,cell,count,xmin,ymin,xmax,ymax")
    assert at(table, 140.5, 35.5) == 1
    # Counters may be called by points of the compass.
    text = f"time,north,south,east,west\n{HOUR},1,2,3,4\n"
    assert read_counts(text.encode()).cells == ("north", "south", "east", "west")


@pytest.mark.parametrize("sidecar", ["csv", "json"])
def test_a_table_of_one_row_beside_tells_the_grid(sidecar):
    about = {"west": 139, "south": 35, "east": 139.3, "north": 35.2, "rows": 2, "cols": 3}
    text = json.dumps([about]) if sidecar == "json" else pd.DataFrame([about]).to_csv(index=False)
    files = {
        "counts.csv": "\n".join(["time,cell,count", *by_number()]).encode(),
        f"grid.{sidecar}": text.encode(),
    }
    table = read_counts(files)
    assert (table.grid.bounds, table.grid.rows, table.grid.cols) == (BOX, 2, 3)
    assert at(table, 139.25, 35.15) == 50


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"grid_box": (139.3, 35.0, 139.0, 35.2)}, "malformed-extent"),
        ({"grid_box": (139.0, 35.2, 139.3, 35.0)}, "malformed-extent"),
        ({"grid_box": (139.0, 35.0, 139.3)}, "malformed-extent"),
        ({"grid_box": BOX, "grid_rows": 1, "grid_cols": 3}, "cell-off-grid"),
        ({"grid_rows": 2}, "no-grid-extent"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(choices, code):
    with pytest.raises(InputError) as told:
        read(*by_number(), **choices)
    assert told.value.code == code


def test_the_cell_that_is_off_the_grid_is_named():
    with pytest.raises(InputError) as told:
        read(*by_number(), grid_box=BOX, grid_rows=1, grid_cols=3)
    assert "The cell 3 is not on a grid of 1 rows x 3 columns that is numbered from 0" in str(
        told.value
    )


def test_names_are_no_numbers():
    with pytest.raises(InputError) as told:
        read(f"{HOUR},A,1", f"{HOUR},B,2", grid_box=BOX)
    assert told.value.code == "cells-not-numbered"
    table = read(*by_number(), f"{HOUR},away,3", grid_box=BOX, grid_cols=3)
    assert table.report.set_aside["cell is no number of the grid"].count == 1
    assert table.n_cells == 6


def test_people_of_tokyo_stand_where_they_were(shared_data):
    folder = shared_data / "tokyo_people_flow"
    table = read_counts(
        folder / "derived_counts_date_slot_cell.csv", tz="Asia/Tokyo", first_slot="09:00",
        slot_minutes=20, grid_box=(139.68, 35.65, 139.80, 35.75), grid_rows=20, grid_cols=20,
    )  # fmt: skip
    assert isinstance(table.grid, GridSettings)
    people = pd.read_csv(folder / "tokyo_1000users_20min.csv")
    cell = table.grid.make().assign(people["lon"], people["lat"])
    assert [table.cells[i] for i in cell] == people["cell"].astype(str).tolist()
    np.testing.assert_array_equal(np.nansum(table.counts, axis=0), np.bincount(cell, minlength=400))
