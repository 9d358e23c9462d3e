"""What `agg-core counts` counts."""

import io
import json

import pandas as pd
import pytest

from agg_core.io import read_trajectories
from agg_core.space.build import Grid
from agg_core.study.suggest import suggest_grid
from agg_core.tables.sequences import cell_counts
from tests.agg_core.cli.told import (
    assert_matches,
    only_sentence,
    strict_json,
    text_file,
)


def test_counts_of_a_file_by_cell_and_step(run, tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(
        "user_id,time,lon,lat\n"
        "a,2024-02-01 09:00,139.1,35.1\na,2024-02-01 09:20,139.9,35.9\n"
        "b,2024-02-01 09:10,139.9,35.9\nb,2024-02-01 09:40,139.1,35.1\n,2024-02-01 10:00,139,35\n"
    )
    options = ["--bbox", "139,35,140,36", "--grid", "2x2", "--tz", "Asia/Tokyo"]
    code, out, err = run("counts", file, *options)
    assert code == 0
    assert err.startswith("agg-core: 1 ")
    assert out.splitlines() == [
        "time,cell,count",
        "2024-02-01 09:00:00,3,2",
        "2024-02-01 09:30:00,0,1",
    ]
    code, out, _ = run("counts", file, *options, "--json")
    assert json.loads(out) == {
        "rows_read": 5, "rows_kept": 4, "set_aside": {"missing user id": 1},
        "timezone": "Asia/Tokyo", "individuals": 2, "counts": 2,
        "extent": [139, 35, 140, 36], "extent_from": "stated",
    }  # fmt: skip


PARIS = "user_id,time,lon,lat\n" + "".join(
    f"{person},2024-02-01 {hour:02d}:10,{2.2 + person / 50},{48.8 + hour / 200}\n"
    for person in range(9) for hour in range(12)
)  # fmt: skip
"""Nine people far from every default."""


CELLS = {
    "rectangle": (["--grid", "3x4"], lambda bounds: Grid.from_bbox(*bounds, rows=3, cols=4)),
    "h3": (["--h3", "6"], lambda bounds: Grid.from_h3(6, bounds)),
}


@pytest.mark.parametrize("kind", CELLS)
def test_counts_without_an_extent_are_where_the_data_lie(run, tmp_path, kind):
    file = text_file(tmp_path, PARIS)
    options, made = CELLS[kind]
    trajectories = read_trajectories(file)
    extent = suggest_grid(trajectories).bounds
    grid = made(extent)
    code, out, err = run("counts", file, *options, "--step", "1h")
    assert code == 0
    found = pd.read_csv(io.StringIO(out), parse_dates=["time"])
    expected = cell_counts(trajectories, grid, "1h", "1us")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert (found["cell"] < grid.n_cells).mean() > 0.9
    stated = ",".join(f"{side:.10g}" for side in grid.bounds)
    assert err.startswith(f"extent {stated} ")
    told = strict_json(run("counts", file, *options, "--json")[1])
    assert (told["extent"], told["extent_from"]) == (list(grid.bounds), "data")


@pytest.mark.parametrize("command", ["counts", "learn"])
@pytest.mark.parametrize("cells", [["--grid", "3x3"], ["--mesh", "2"], ["--h3", "5"]])
def test_a_stated_extent_that_holds_nobody_is_refused(run, tmp_path, command, cells):
    file = text_file(tmp_path, PARIS)
    code, out, err = run(command, file, "--bbox", "139,35,140,36", *cells)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), r"the data span 2\.2, 48\.8, 2\.36, 48\.855 \(west")


def test_areas_that_hold_nobody_are_refused(run, tmp_path, areas_file):
    code, out, err = run("counts", text_file(tmp_path, PARIS), "--polygons", areas_file)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "No fix lies inside")


@pytest.mark.parametrize("extent", [[], ["--bbox", "2,48,3,49"]])
def test_counts_of_no_row_are_refused(run, tmp_path, extent):
    code, out, err = run("counts", text_file(tmp_path, PARIS), *extent, "--where", "user_id=none")
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "^No row is left")
