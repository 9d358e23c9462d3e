"""Figures of evidence: what is drawn is what the tables say."""

import json

import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString, MultiLineString, box

from agg_core.evidence.lines import Screenline
from agg_core.plotting.evidence import day_chart, length_chart, lines_deck, xy_chart
from agg_core.plotting.theme import DARK, LIGHT
from tests.agg_core import tiny

NAN = np.nan


def test_volumes_by_direction_with_intervals_and_counts():
    rows = pd.DataFrame({
        "direction": ["east", "west", "east", "west"], "time": ["08:00", "08:00", "09:00", "09:00"],
        "count": [5.0, 2.0, 7.0, 1.0], "low": [4.0, 1.0, 6.5, NAN], "high": [6.0, 4.0, 9.0, NAN],
        "counted": [NAN, NAN, 8.0, NAN],
    })  # fmt: skip
    east, counted, west = day_chart(rows, "people per hour").data
    assert (east.name, list(east.x), list(east.y)) == ("east", ["08:00", "09:00"], [5, 7])
    assert list(east.error_y.array) == pytest.approx([1, 2])
    assert list(east.error_y.arrayminus) == pytest.approx([1, 0.5])
    assert list(counted.y) == [8]
    assert list(west.y) == [2, 1]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_days_are_thin_lines_behind_their_mean_and_the_reference_beside(theme):
    rows = pd.DataFrame({
        "direction": ["out", "in"], "time": "08:00", "count": [5.0, 2.0], "low": NAN, "high": NAN,
        "reference": [4.0, NAN],
    })  # fmt: skip
    days = pd.DataFrame({
        "direction": ["out", "in", "out", "in"], "day": ["a", "a", "b", "b"], "time": "08:00",
        "count": [6.0, 1.0, 4.0, 3.0],
    })  # fmt: skip
    drawn = day_chart(rows, "people", theme, days=days).data
    assert [trace.name for trace in drawn] == ["a", "b", "out", "out, reference", "a", "b", "in"]
    assert [list(trace.y) for trace in drawn] == [[6], [4], [5], [4], [1], [3], [2]]
    widths = {trace.name: trace.line.width for trace in drawn if trace.mode != "markers"}
    assert widths["a"] < widths["out"]
    # Whoever sees no colours tells the two directions by their dashes.
    assert drawn[2].line.dash != drawn[6].line.dash
    assert drawn[2].line.color != drawn[6].line.color


def test_times_keep_their_order_where_a_day_lacks_some():
    rows = pd.DataFrame({
        "direction": "out", "time": ["08:00", "09:00"], "count": [5.0, 2.0], "low": NAN,
        "high": NAN,
    })  # fmt: skip
    days = pd.DataFrame({"direction": "out", "day": "a", "time": ["09:00"], "count": [6.0]})
    chart = day_chart(rows, "people", days=days)
    assert list(chart.layout.xaxis.categoryarray) == ["08:00", "09:00"]


def test_lengths_beside_a_reference():
    rows = pd.DataFrame({
        "from_km": [0.0, 2.0], "to_km": [2.0, 4.0], "count": [3.0, 1.0], "low": [2.0, 1.0],
        "high": [4.0, 1.5], "reference": [2.5, 0.5],
    })  # fmt: skip
    bars, beside = length_chart(rows, "people").data
    assert (list(bars.x), list(bars.y), list(bars.width)) == ([1, 3], [3, 1], [2, 2])
    assert list(beside.y) == [2.5, 0.5]
    assert len(length_chart(rows.assign(reference=NAN), "people").data) == 1


def test_estimates_against_counts():
    rows = pd.DataFrame({"counted": [1.0, 4.0], "count": [2.0, 3.0], "low": NAN, "high": NAN})
    alike, values = xy_chart(rows, ["a", "b"], "people").data
    assert list(alike.x) == list(alike.y) == [0, 4]
    assert (list(values.x), list(values.y)) == ([1, 4], [2, 3])
    assert list(values.customdata) == ["a", "b"]


def test_lines_and_borders_of_cordons_lie_on_the_map():
    two = MultiLineString([[(139.1, 35), (139.1, 35.1)], [(139.2, 35), (139.2, 35.1)]])
    lines = [
        Screenline("a", LineString([(139.1, 34.9), (139.1, 35.4)])), Screenline("b", two),
        Screenline("c", box(139.1, 35.1, 139.2, 35.2)),
    ]  # fmt: skip
    deck = json.loads(lines_deck(tiny.GRID.make(), lines).to_json())
    paths = {layer["id"]: layer["data"] for layer in deck["layers"]}["lines"]
    assert [len(path["path"]) for path in paths] == [2, 2, 2, 5]
    assert paths[0]["path"] == [[139.1, 34.9], [139.1, 35.4]]


def test_chosen_cells_are_filled():
    deck = json.loads(lines_deck(tiny.GRID.make(), [], [4]).to_json())
    cells = {layer["id"]: layer["data"] for layer in deck["layers"]}["cells"]
    faint = {cell["fill"][3] for cell in cells if cell["cell"] != 4}
    (chosen,) = [cell["fill"][3] for cell in cells if cell["cell"] == 4]
    assert chosen > max(faint)


def test_a_line_that_grows_is_drawn_with_its_points():
    places = [[139.05, 35.05], [139.15, 35.05], [139.15, 35.15]]
    deck = json.loads(
        lines_deck(tiny.GRID.make(), [], [0, 1, 4], growing=places, clicks=3).to_json()
    )
    layers = {layer["id"]: layer["data"] for layer in deck["layers"]}
    assert layers["growing"] == [{"path": places}]
    assert [corner["place"] for corner in layers["corners"]] == places
    assert layers["corners"][0]["px"] > layers["corners"][1]["px"]
    assert "cells 3" in layers
    deck = json.loads(lines_deck(tiny.GRID.make(), [], growing=places[:1]).to_json())
    layers = {layer["id"]: layer["data"] for layer in deck["layers"]}
    assert layers["growing"] == []
    assert len(layers["corners"]) == 1
