"""Merged cells: which lie in which, and their sums."""

import h3
import numpy as np
import pytest
from jismesh.utils import to_meshcode, to_meshpoint

from agg_core.base.errors import InputError
from agg_core.io.counts import CountChoices, read_counts
from agg_core.space.settings import AreaSettings, GridSettings, HexSettings, MeshSettings
from agg_core.tables.counts import MISSING, SUPPRESSED

HOUR = "2024-01-01 00:00"
BOX = (139.0, 35.0, 139.5, 35.3)
"""Five columns of 0.1 degrees, three rows."""


def read(cells, header="time,cell,count", **choices):
    rows = [f"{HOUR},{cell},{2**i}" for i, cell in enumerate(cells)]
    return read_counts("\n".join([header, *rows]).encode(), **choices)


@pytest.mark.parametrize(("level", "levels"), [(6, 1), (5, 2), (4, 1), (3, 1), (3, 2)])
def test_mesh_cells_become_those_they_lie_in(level, levels):
    lat, lon = np.meshgrid(np.linspace(35.60, 35.68, 3), np.linspace(139.70, 139.79, 3))
    codes = to_meshcode(lat.ravel(), lon.ravel(), level).astype(str)
    words = f"{levels} level{'s' * (levels > 1)} coarser"
    table = read(codes, "time,mesh,count", coarser=words)
    # The code of the larger cell is that of a place in the smaller one.
    middle = to_meshpoint(codes.astype(np.int64), 0.5, 0.5)
    parents = to_meshcode(*middle, level - levels).astype(str)
    assert isinstance(table.grid, MeshSettings)
    assert table.cells == tuple(sorted(set(parents)))
    wanted = [sum(2**i for i, p in enumerate(parents) if p == cell) for cell in table.cells]
    assert table.counts[0].tolist() == wanted


def test_hexagons_become_their_parents():
    parents = list(h3.grid_disk(h3.latlng_to_cell(35.6, 139.7, 7), 1))[:3]
    children = [child for parent in parents for child in h3.cell_to_children(parent, 9)[:5]]
    table = read(children, coarser="2 levels coarser")
    assert isinstance(table.grid, HexSettings)
    assert set(table.cells) == set(parents)
    wanted = {p: sum(2**i for i in range(5 * k, 5 * k + 5)) for k, p in enumerate(parents)}
    assert dict(zip(table.cells, table.counts[0], strict=True)) == wanted
    note = table.report.guesses["merged cells"].note
    assert note == "15 cells of the file are 3 larger ones"


def test_tiles_become_the_tiles_above():
    table = read(["0120", "0123", "0131"], "time,quadkey,count", coarser="1 level coarser")
    assert isinstance(table.grid, AreaSettings)
    assert table.cells == ("012", "013")
    assert table.counts[0].tolist() == [3, 4]
    note = table.report.guesses["merged cells"].note
    assert "1 have fewer than 2 in the file" in note


def test_numbered_cells_become_blocks_of_two_by_two():
    table = read(range(15), grid_box=BOX, grid_rows=3, grid_cols=5, coarser="1 level coarser")
    assert isinstance(table.grid, GridSettings)
    assert (table.grid.rows, table.grid.cols) == (2, 3)
    # The blocks in the north and east reach beyond the extent.
    assert table.grid.bounds == pytest.approx((139.0, 35.0, 139.6, 35.4))
    grid = table.grid.make()
    assert grid.labels == list(table.cells)
    for cell in range(15):
        row, col = divmod(cell, 5)
        found = grid.assign([139.05 + 0.1 * col], [35.05 + 0.1 * row])[0]
        assert int(table.counts[0, found]) & 2**cell, "its people are counted there"
    assert table.counts.sum() == 2**15 - 1
    north = read(range(15), grid_box=BOX, grid_rows=3, grid_cols=5, coarser="1 level coarser",
                 grid_corner="from the north-west")  # fmt: skip
    assert int(north.counts[0, north.grid.make().assign([139.05], [35.25])[0]]) & 1


def test_grids_too_large_for_blocks_can_be_merged():
    rows = [f"{HOUR},{row},{col},1" for row in range(0, 200, 4) for col in range(0, 200, 2)]
    text = "\n".join(["time,row,col,count", *rows]).encode()
    table = read_counts(
        text, grid_box=BOX, grid_rows=200, grid_cols=200, coarser="2 levels coarser"
    )
    assert (table.grid.rows, table.grid.cols) == (50, 50)
    assert set(table.counts.ravel()) == {2}


def test_a_part_that_is_suppressed_or_not_measured():
    rows = [f"{HOUR},5339450{i},{n}" for i, n in enumerate([12, "<10", "<10", "<10"])]
    rows += [f"{HOUR},5339460{i},{n}" for i, n in enumerate(["<10", "<10", "<10", "<10"])]
    rows += [f"{HOUR},5339470{i},{n}" for i, n in enumerate([15, ""])]
    text = "\n".join(["time,mesh,count", *rows]).encode()
    table = read_counts(text, coarser="1 level coarser")
    assert table.cells == ("533945", "533946", "533947")
    assert table.n_estimated == 1
    assert table.status[0, 1:].tolist() == [SUPPRESSED, MISSING]
    assert table.suppressed_below == 40
    assert 12 < table.counts[0, 0] < 42


@pytest.mark.parametrize(
    ("cells", "choices", "code"),
    [
        (["A", "B"], {"coarser": "1 level coarser"}, "no-cell-hierarchy"),
        (["53394500", "53394501"], {"coarser": "3 levels coarser"}, "too-many-levels"),
        (range(4), {"coarser": "2 levels coarser", "grid_box": BOX, "grid_rows": 2, "grid_cols": 2},
         "too-many-levels"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_said(cells, choices, code):
    with pytest.raises(InputError) as told:
        read(cells, "time,mesh,count", **choices)
    assert told.value.code == code


def test_many_cells_are_offered_to_be_merged():
    rows = [f"{HOUR},{row},{col},1" for row in range(40) for col in range(40)]
    text = "\n".join(["time,row,col,count", *rows]).encode()
    guess = read_counts(text, grid_box=BOX).report.guesses["merged cells"]
    assert guess.value == "as they are"
    assert "1,600 cells are slow to learn from" in guess.note
    again = CountChoices.of(grid_box=BOX).changed(guess.option, guess.alternatives[0])
    assert read_counts(text, **{"grid_box": BOX, "coarser": again.coarser}).n_cells == 400
    few = read(["53394500", "53394501"], "time,mesh,count")
    assert "merged cells" not in few.report.guesses
