import io
import json
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import LineString, box

from agg_core.exports import geo
from agg_core.space.settings import GridSettings
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused

SIDES = ["estimate", "single", "counted", "difference"]
LINES = {
    (0, 1): ([2.5, 2.0, 2.0, 0.5], [(139.05, 35.05), (139.15, 35.05)]),
    (1, 0): ([0.5, 0.0, 0.0, 0.5], [(139.15, 35.05), (139.05, 35.05)]),
    (3, 4): ([0.0, 1.0, 0.0, -1.0], [(139.05, 35.15), (139.15, 35.15)]),
    (8, 7): ([0.0, 0.0, 3.0, 0.0], [(139.25, 35.25), (139.15, 35.25)]),
}


def test_flows_are_lines_in_geojson():
    collection = json.loads(geo.geojson_flows(by_hand.result(), MORNING))
    assert collection["type"] == "FeatureCollection"
    features = {
        (f["properties"]["origin"], f["properties"]["dest"]): f for f in collection["features"]
    }
    assert len(collection["features"]) == len(features)
    assert features.keys() == LINES.keys()
    for pair, (values, places) in LINES.items():
        about, shape = features[pair]["properties"], features[pair]["geometry"]
        assert [about[side] for side in SIDES] == values
        assert shape == {"type": "LineString", "coordinates": [list(place) for place in places]}
    assert features[3, 4]["properties"]["dest_name"] == "row 1, column 1"


def test_geojson_tells_whom_no_line_shows():
    collection = json.loads(geo.geojson_flows(by_hand.result(), MORNING))
    assert collection["description"] == (
        "People per 60-minute step, 08:00. Not in the estimate: 4.0 people per step who stay where "
        "they are and 1.8 who come from or go to the outside."
    )


@pytest.mark.parametrize("make", [geo.geojson_flows, geo.geoparquet_flows])
def test_geopandas_reads_flows(make):
    content = io.BytesIO(make(by_hand.result(), MORNING))
    read = gpd.read_parquet if make is geo.geoparquet_flows else gpd.read_file
    frame = read(content)
    assert frame.crs == "EPSG:4326"
    assert len(frame) == len(LINES)
    for row in frame.itertuples():
        values, places = LINES[row.origin, row.dest]
        assert [getattr(row, side) for side in SIDES] == values
        assert row.geometry.equals_exact(LineString(places), 1e-9)


# In, out and stay at 08:00, by adding up the flows of by_hand.
CELLS = {
    0: {"estimate": (0.5, 4.0, 4.0), "single": (0.0, 2.0, 5.0), "counted": (0.0, 2.0, 0.0)},
    1: {"estimate": (2.75, 0.5, 0.0), "single": (2.0, 0.0, 0.0), "counted": (2.0, 0.0, 0.0)},
    7: {"estimate": (0.0, 0.0, 0.0), "single": (0.0, 0.0, 0.0), "counted": (3.0, 0.0, 0.0)},
}


@pytest.mark.parametrize("make", [geo.geojson_cells, geo.geoparquet_cells])
def test_geopandas_reads_cells(make):
    content = io.BytesIO(make(by_hand.result(), MORNING))
    read = gpd.read_parquet if make is geo.geoparquet_cells else gpd.read_file
    frame = read(content).set_index("cell")
    assert frame.crs == "EPSG:4326"
    assert frame.index.tolist() == list(range(9))
    for cell, sources in CELLS.items():
        for source, expected in sources.items():
            row = frame.loc[cell]
            found = tuple(row[f"{source}_{side}"] for side in ("in", "out", "stay"))
            assert found == expected, (cell, source)
    west, south = 139.2, 35.1
    assert frame.loc[5, "name"] == "row 1, column 2"
    assert (
        frame.geometry[5]
        .normalize()
        .equals_exact(box(west, south, west + 0.1, south + 0.1).normalize(), 1e-6)
    )


def test_coordinates_have_six_decimals_at_most():
    crooked = by_hand.result()
    settings = replace(crooked.settings, grid=GridSettings(139.0, 35.0, 139.0 + 1 / 3, 35.3, 3, 3))
    for make in (geo.geojson_flows, geo.geojson_cells):
        features = json.loads(make(replace(crooked, settings=settings), MORNING))["features"]
        places = [x for f in features for x in numbers(f["geometry"]["coordinates"])]
        assert places == [round(place, 6) for place in places]
        assert any(place != round(place, 5) for place in places)


def numbers(nested):
    if isinstance(nested, float):
        yield nested
    else:
        for part in nested:
            yield from numbers(part)


def test_a_moment_without_moves_is_an_empty_layer():
    still = by_hand.nobody_moves()
    frame = geo.flows_frame(still, NIGHT)
    assert len(frame) == 0
    empty = json.loads(geo.geojson_flows(still, NIGHT))
    assert empty["features"] == []


@pytest.mark.parametrize("result", [by_hand.result(), counted.study()], ids=["study", "counts"])
def test_a_geopackage_has_both_layers(result, tmp_path):
    (tmp_path / "flows.gpkg").write_bytes(geo.geopackage(result, MORNING))
    assert set(gpd.list_layers(tmp_path / "flows.gpkg")["name"]) == {"flows", "cells"}
    layers = {
        "flows": geo.flows_frame(result, MORNING), "cells": geo.cells_frame(result, MORNING),
    }  # fmt: skip
    for name, frame in layers.items():
        found = gpd.read_file(tmp_path / "flows.gpkg", layer=name)
        assert found.crs == "EPSG:4326"
        about = frame.drop(columns="geometry")
        pd.testing.assert_frame_equal(
            pd.DataFrame(found.drop(columns="geometry")), pd.DataFrame(about), check_dtype=False
        )
        assert found.geometry.geom_equals_exact(frame.geometry, 1e-9).all()


# ---------------------------------------------------------------- flows from counts


def test_flows_from_counts_are_lines_with_their_intervals():
    collection = json.loads(geo.geojson_flows(counted.study(), MORNING))
    found = {
        (f["properties"]["origin"], f["properties"]["dest"]): f["properties"]
        for f in collection["features"]
    }
    # Stays and the outside are no lines; (2, 5) may be up to half a person.
    assert set(found) == {(0, 1), (1, 0), (2, 5)}
    for pair, about in found.items():
        values = tuple(about[name] for name in ("count", "low", "high", "resolved"))
        assert values == counted.FLOWS[MORNING][pair]
    assert collection["description"] == (
        "People per step, 08:00. Not in the estimate: 20 people per step who stay where they are "
        "and 1.8 who come from or go to the outside."
    )
    unsure = json.loads(geo.geojson_flows(counted.unsure(), MORNING))["features"]
    assert set(unsure[0]["properties"]) == {"origin", "dest", "origin_name", "dest_name", "count"}


def test_flows_from_counts_say_how_long_a_step_is():
    hourly = replace(counted.study(), step_minutes=60.0)
    said = json.loads(geo.geojson_flows(hourly, MORNING))["description"]
    assert said.startswith("People per hour, 08:00.")


def test_cells_of_counts_have_their_totals():
    frame = geo.cells_frame(counted.study(), WHOLE_DAY).set_index("cell")
    assert frame["name"].tolist() == list(counted.study().cells)
    sides = [f"estimate_{side}" for side in ("in", "out", "stay")]
    # Cell 0: 4.5 come from 4; 3 go to 1 and 0.75 outside.
    assert frame.loc[0, sides].tolist() == [4.5, 3.75, 0.0]
    assert frame.loc[3, sides].tolist() == [0.0, 0.0, 15.0]
    assert not [name for name in frame if name.startswith(("single", "counted"))]


@pytest.mark.parametrize("make", [geo.flows_frame, geo.cells_frame, geo.geojson_flows])
def test_cells_without_a_place_are_refused(make):
    with refused("cells-without-place"):
        make(counted.placeless(), WHOLE_DAY)


def test_cells_have_intervals_where_sums_have_some():
    result = counted.drawn()
    cells = geo.cells_frame(result, counted.MORNING)
    known = result.cell_intervals(counted.MORNING)
    for column, suffix in (("incoming", "in"), ("outgoing", "out")):
        low, high = known[column]
        np.testing.assert_array_equal(cells[f"estimate_{suffix}_low"], low[:9])
        np.testing.assert_array_equal(cells[f"estimate_{suffix}_high"], high[:9])
        assert (high > low).any()
    assert "single_in_low" not in geo.cells_frame(by_hand.result(), by_hand.MORNING)


def test_both_layers_of_a_geopackage_say_how_sure_they_are(tmp_path):
    path = tmp_path / "flows.gpkg"
    path.write_bytes(geo.geopackage(counted.drawn(), counted.MORNING))
    lines, cells = (gpd.read_file(path, layer=name) for name in ("flows", "cells"))
    assert {"count", "low", "high", "resolved"} <= set(lines)
    assert {"estimate_in", "estimate_in_low", "estimate_in_high"} <= set(cells)
    assert set(lines.geom_type) == {"LineString"}
