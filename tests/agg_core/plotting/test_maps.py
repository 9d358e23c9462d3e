import json
import re

import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Transformer

from agg_core.errors import InputError
from agg_core.grid import Grid
from agg_core.plotting import maps
from agg_core.plotting.theme import DARK, LIGHT, heat_colours

TOKYO = Grid.from_bbox(139.28, 35.36, 140.24, 36.06, 14, 16)
SMALL = Grid.from_bbox(139.0, 35.0, 139.3, 35.2, 2, 3)


def flows(*rows):
    return pd.DataFrame(rows, columns=["origin", "dest", "count"])


def square(west, south, side, **properties):
    ring = [
        [west, south],
        [west + side, south],
        [west + side, south + side],
        [west, south + side],
        [west, south],
    ]
    return {
        "type": "Feature",
        "properties": properties,
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


OUTLINE = {
    "type": "FeatureCollection",
    "features": [
        square(139.1234567, 35.0, 0.05, name="<b>near</b>"),
        square(150.0, 35.0, 0.05, name="far"),
        square(139.0, 34.95, 5.0, name="large"),
    ],
}


def layers(deck):
    """Layers of a deck by id, as the browser gets them."""
    return {layer["id"]: layer for layer in json.loads(deck.to_json())["layers"]}


def every_deck(theme):
    table = flows((0, 1, 40), (1, 0, 90), (0, 0, 500), (6, 2, 77))
    common = {"outline": OUTLINE, "theme": theme}
    return {
        "heat": maps.heat_deck(SMALL, np.arange(6), vmax=5, selected=2, **common),
        "flow": maps.flow_deck(
            SMALL, table, vmax=90, threshold=35, totals=np.arange(6), selected=2, **common
        ),
        "difference": maps.difference_deck(
            SMALL, table, flows((0, 1, 90)), vmax=90, threshold=5, **common
        ),
        "grid": maps.grid_deck(SMALL, **common),
        "fixes": maps.fixes_deck([139.1, 139.2], [35.1, 35.1], SMALL.bounds, **common),
    }


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("heat", ["background", "outline", "cells", "selected"]),
        ("flow", ["background", "outline", "cells", "selected", "arrows"]),
        ("difference", ["background", "outline", "cells", "arrows"]),
        ("grid", ["background", "outline", "cells", "labels"]),
        ("fixes", ["background", "outline", "fixes"]),
    ],
)
def test_layers_in_drawing_order_and_no_address_to_fetch(name, ids, theme):
    deck = every_deck(theme)[name]
    text = deck.to_json()

    assert [layer["id"] for layer in json.loads(text)["layers"]] == ids
    assert "http" not in text
    assert "<b>" not in text
    # Streamlit takes this mark, and only this one, for a map without a style.
    assert re.findall(r'"map_?[sS]tyle":"([^"]*)"', text) == ["__MAP_STYLE__"]
    assert "mapProvider" not in text


def test_coordinates_have_five_decimals():
    for deck in every_deck(LIGHT).values():
        for layer in json.loads(deck.to_json())["layers"]:
            for number in re.findall(r"\d+\.\d+", json.dumps(layer["data"])):
                assert len(number.split(".")[1]) <= 5


def test_no_outline_leaves_plain_land():
    found = layers(maps.grid_deck(SMALL))

    assert "outline" not in found
    fill = found["background"]["_subLayerProps"]["fill"]["getFillColor"]
    assert fill == [*LIGHT.land, 255]


def test_the_largest_arrow_is_drawn_last_and_coloured_by_the_shared_scale():
    table = flows((0, 1, 90), (1, 4, 40), (5, 2, 60), (3, 3, 999))
    arrows = layers(maps.flow_deck(SMALL, table, vmax=90, threshold=35))["arrows"]["data"]

    assert [arrow["count"] for arrow in arrows] == [40, 60, 90]
    assert arrows[-1]["fill"][:3] == list(LIGHT.arrow[-1])
    assert arrows[-1]["where"] == "from row 0, column 0 to row 0, column 1"
    assert arrows[-1]["what"] == "90 people per step"


def test_an_arrow_runs_from_its_origin_to_its_destination():
    table = flows((0, 5, 10))
    ring = layers(maps.flow_deck(SMALL, table, vmax=10, threshold=1))["arrows"]["data"][0]["ring"]
    tail, tip = np.mean([ring[0], ring[6]], axis=0), np.array(ring[3])

    assert SMALL.assign(*[[tail[0]], [tail[1]]])[0] == 0
    assert SMALL.assign([tip[0]], [tip[1]])[0] == 5


def test_arrow_widths_in_metres_follow_the_scale_of_the_compared_maps():
    def area(count):
        table = flows((0, 1, count))
        deck = maps.flow_deck(SMALL, table, vmax=100, threshold=0)
        ring = layers(deck)["arrows"]["data"][0]["ring"]
        return shapely.Polygon(SMALL.to_metres(ring)).area

    assert area(100) == pytest.approx(area(500))
    assert area(1) < area(50) < area(100)


def test_the_state_outside_has_no_arrow_but_counts_in_its_cell():
    found = layers(maps.flow_deck(SMALL, flows((6, 2, 77), (2, 0, 10)), vmax=77, threshold=1))

    assert [(arrow["origin"], arrow["dest"]) for arrow in found["arrows"]["data"]] == [(2, 0)]
    assert found["cells"]["data"][2]["what"].startswith("in: 77, out: 10 people per step")


def test_a_reference_shows_beside_the_estimate():
    deck = maps.flow_deck(
        SMALL, flows((0, 1, 90), (1, 2, 50)), vmax=90, threshold=1, reference=flows((0, 1, 1234))
    )
    what = [arrow["what"] for arrow in layers(deck)["arrows"]["data"]]

    assert what == [
        "estimate: 50 people per step\ntruth: 0.0 people per step",
        "estimate: 90 people per step\ntruth: 1,234 people per step",
    ]


@pytest.mark.parametrize(("direction", "kept"), [("in", [20]), ("out", [30]), (None, [10, 20, 30])])
def test_one_cell_shows_its_own_flows_and_keeps_its_totals(direction, kept):
    table = flows((0, 1, 20), (1, 2, 30), (2, 0, 10))
    deck = maps.flow_deck(SMALL, table, vmax=30, threshold=1, selected=1, direction=direction)
    found = layers(deck)

    assert [arrow["count"] for arrow in found["arrows"]["data"]] == kept
    assert found["cells"]["data"][0]["what"] == "in: 10, out: 20 people per step\nstay: 0.0"


def test_differences_are_signed():
    deck = maps.difference_deck(
        SMALL, flows((0, 1, 90)), flows((0, 1, 50), (1, 2, 70)), vmax=70, threshold=30
    )
    arrows = layers(deck)["arrows"]["data"]

    assert [arrow["count"] for arrow in arrows] == [40, -70]
    assert arrows[1]["fill"][:3] == list(LIGHT.difference[0])
    assert arrows[0]["what"] == "+40 people per step\nestimate: 90, truth: 50"


def test_heat_uses_a_fixed_scale_and_leaves_empty_blocks_clear():
    cells = layers(maps.heat_deck(SMALL, [0, 1, 2, 3, 4, 40], vmax=4))["cells"]["data"]

    assert cells[0]["fill"][3] == 0
    assert cells[3]["fill"][:3] == heat_colours(LIGHT, [3], 4)[0].tolist()
    assert cells[4]["fill"] == cells[5]["fill"]
    assert [cells[4]["where"], cells[4]["what"]] == ["row 1, column 1", "4.0 people"]
    np.testing.assert_allclose([cell["ring"] for cell in cells], SMALL.rings(), atol=1e-5)


@pytest.mark.parametrize("counts", [[1, 2], [0, 0, 0, 0, 0, -1], [np.nan] * 6])
def test_impossible_totals_are_refused(counts):
    with pytest.raises(InputError):
        maps.heat_deck(SMALL, counts, vmax=4)


def test_three_hundred_arrows_and_224_cells_stay_below_half_a_megabyte():
    rng = np.random.default_rng(1)
    pairs = rng.choice(224 * 224, 2_000, replace=False)
    table = flows(*zip(pairs // 224, pairs % 224, rng.exponential(100, 2_000), strict=True))
    deck = maps.flow_deck(
        TOKYO, table, vmax=500, threshold=1, totals=rng.uniform(0, 9e4, 224), reference=table
    )

    assert len(layers(deck)["arrows"]["data"]) == 300
    assert len(deck.to_json()) < 500_000


@pytest.mark.parametrize(
    ("bounds", "size"),
    [
        (TOKYO.bounds, (540, 500)),
        (TOKYO.bounds, (1200, 300)),
        ((-74.1, 40.6, -73.9, 40.9), (540, 500)),
        ((-60.0, -55.0, 20.0, -10.0), (400, 700)),
    ],
)
def test_the_view_just_holds_the_bounds(bounds, size):
    view = maps.fit_view(bounds, *size)
    to_mercator = Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    west, south = to_mercator.transform(bounds[0], bounds[1])
    east, north = to_mercator.transform(bounds[2], bounds[3])
    metres_per_px = 2 * np.pi * 6378137 / (512 * 2**view.zoom)
    used = np.array([east - west, north - south]) / metres_per_px / size

    assert used.max() == pytest.approx(1, abs=1e-4)
    middle = to_mercator.transform(view.longitude, view.latitude)
    np.testing.assert_allclose(middle, [(east + west) / 2, (north + south) / 2], atol=2)


def test_a_margin_makes_room():
    near, far = (
        maps.fit_view(TOKYO.bounds, 500, 500),
        maps.fit_view(TOKYO.bounds, 500, 500, margin_px=125),
    )

    assert near.zoom - far.zoom == pytest.approx(1, abs=1e-3)


def test_the_outline_keeps_what_is_near_without_its_names():
    kept = maps.clip_outline(OUTLINE, SMALL.bounds)["features"]

    assert [feature["properties"] for feature in kept] == [{}, {}]
    assert kept[0]["geometry"]["coordinates"][0][0] == [139.12346, 35.0]


def test_empty_and_nested_shapes_of_an_outline():
    multi = {
        "type": "Feature",
        "properties": {},
        "geometry": {
            "type": "MultiPolygon",
            "coordinates": [square(139.1, 35.1, 0.1)["geometry"]["coordinates"]],
        },
    }
    empty = {"type": "Feature", "properties": {}, "geometry": None}

    kept = maps.clip_outline({"features": [empty, multi]}, SMALL.bounds)["features"]

    assert [feature["geometry"]["type"] for feature in kept] == ["MultiPolygon"]


def test_fixes_are_sampled_the_same_way_each_time():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(139.0, 139.3, 9_000), rng.uniform(35.0, 35.2, 9_000)
    first = layers(maps.fixes_deck(lon, lat, SMALL.bounds))["fixes"]["data"]
    again = layers(maps.fixes_deck(lon, lat, SMALL.bounds))["fixes"]["data"]
    given = set(map(tuple, np.column_stack([lon, lat]).round(5).tolist()))

    assert len(first) == 5_000
    assert first == again
    assert {tuple(fix["at"]) for fix in first} <= given


def test_few_fixes_are_all_shown():
    fixes = layers(maps.fixes_deck([139.1, 139.2], [35.1, 35.15], SMALL.bounds))["fixes"]["data"]

    assert fixes == [{"at": [139.1, 35.1]}, {"at": [139.2, 35.15]}]


def test_fixes_without_a_place_are_refused():
    with pytest.raises(InputError, match="finite"):
        maps.fixes_deck([139.1, np.nan], [35.1, 35.1], SMALL.bounds)


def test_rows_and_columns_are_numbered_along_the_sides():
    numbers = layers(maps.grid_deck(SMALL))["labels"]["data"]

    assert [number["text"] for number in numbers] == ["0", "1", "0", "1", "2"]
    assert numbers[0]["at"] == [139.0, 35.05]
    assert numbers[2]["at"] == [139.05, 35.0]


def test_half_widths_in_pixels_match_the_view():
    # At the middle latitude a pixel is cos(lat) · 40,075,017 m / (512 · 2^zoom) on the sphere.
    view = maps.fit_view(TOKYO.bounds, 540, 500, margin_px=16)
    metres_per_px = np.cos(np.radians(view.latitude)) * 40_075_017 / (512 * 2**view.zoom)

    in_metres = maps.arrow_half_widths_m(TOKYO)

    np.testing.assert_allclose(
        maps.arrow_half_widths_px(TOKYO, (540, 500)), np.array(in_metres) / metres_per_px, rtol=0.01
    )


def test_words_under_the_pointer_are_plain_text():
    tooltip = maps.grid_deck(SMALL)._tooltip

    assert tooltip["text"] == "{where}\n{what}"
    assert "html" not in tooltip


def test_a_selection_does_not_fade_what_the_map_draws():
    # Streamlit fades only layers that carry getFillColor themselves.
    for name in ("heat", "flow", "difference"):
        for layer in layers(every_deck(LIGHT)[name]).values():
            assert "getFillColor" not in layer
