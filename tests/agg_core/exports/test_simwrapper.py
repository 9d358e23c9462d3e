import io
import json
import zipfile
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import Limit
from agg_core.exports.simwrapper import simwrapper
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING
from tests.faults import refused


def unpacked(content, folder):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def folder(tmp_path):
    return unpacked(simwrapper(by_hand.result(), MORNING, title='a: "b"\n- c'), tmp_path)


def panels(folder):
    page = json.loads((folder / "dashboard-flows.yaml").read_text(encoding="utf-8"))
    rows = [panel for row in page["layout"].values() for panel in row]
    return page["header"], {panel["type"]: panel for panel in rows}


def test_panels_name_files_that_are_there(folder):
    header, found = panels(folder)
    assert header["title"] == 'a: "b"\n- c'
    assert set(found) == {"text", "flowmap", "aggregate", "csv"}
    for panel in found.values():
        for key in ("file", "dataset", "boundaries", "csvFile", "shpFile", "dbfFile"):
            assert key not in panel or (folder / panel[key]).is_file()


def test_flows_are_between_zones_from_one(folder):
    flows = pd.read_csv(folder / "flows.csv")
    assert flows.to_numpy().tolist() == [[1, 2, 2.5], [2, 1, 0.5]]
    _, found = panels(folder)
    for name in ("cells.geojson", "cells.shp"):
        cells = gpd.read_file(folder / name)
        assert cells[found["flowmap"]["boundariesJoinCol"]].tolist() == list(range(1, 10))
        assert cells[found["aggregate"]["idColumn"]].tolist() == list(range(1, 10))
        assert cells["name"].tolist() == list(by_hand.result().states.cells)
        grid = by_hand.result().states.grid
        np.testing.assert_allclose(cells.total_bounds, grid.bounds, atol=1e-6)


def test_all_times_are_columns(folder):
    times = pd.read_csv(folder / "times.csv")
    assert list(times) == ["origin", "destination", "08:00", "23:30"]
    assert times.to_numpy().tolist() == [[1, 2, 2.5, 0], [2, 1, 0.5, 0], [5, 1, 0, 7]]


def test_what_is_withheld_is_empty_and_told(tmp_path):
    folder = unpacked(simwrapper(limited(by_hand.of_means(), Limit(2)), MORNING), tmp_path)
    times = pd.read_csv(folder / "times.csv")
    assert times["23:30"].isna().tolist() == [True, False]
    assert Limit(2).words in (folder / "about.md").read_text(encoding="utf-8")


def test_nobody_who_moves_is_a_folder_too(tmp_path):
    folder = unpacked(simwrapper(by_hand.nobody_moves(), MORNING), tmp_path)
    assert pd.read_csv(folder / "flows.csv").empty


def test_a_hostile_name_is_text_in_the_shapes_alone(tmp_path):
    cells = ("<b>x</b>", "=1+1", *(f"cell {i}" for i in range(2, 9)))
    folder = unpacked(simwrapper(replace(counted.study(), cells=cells), counted.MORNING), tmp_path)
    assert gpd.read_file(folder / "cells.geojson")["name"].tolist()[:2] == list(cells[:2])
    for name in ("about.md", "dashboard-flows.yaml", "flows.csv"):
        assert "<b>" not in (folder / name).read_text(encoding="utf-8")


def test_cells_without_a_place_are_refused():
    with refused("cells-without-place"):
        simwrapper(counted.placeless(), counted.MORNING)
