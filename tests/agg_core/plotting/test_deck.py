import json
import re

import numpy as np
import pytest
from pyproj import Transformer

from agg_core.plotting import deck, maps
from agg_core.plotting.deck import Scene, ground_json
from agg_core.plotting.theme import DARK, LIGHT
from tests.agg_core.plotting.canvas import GROUND, OUTLINE, SMALL, TOKYO, layers


def every_deck(theme):
    common = {"scene": Scene(outline=OUTLINE, theme=theme)}
    return {
        "heat": maps.heat_deck(SMALL, np.arange(6), vmax=5, selected=2, **common),
        "grid": maps.grid_deck(SMALL, **common),
        "fixes": maps.fixes_deck([139.1, 139.2], [35.1, 35.1], SMALL.bounds, **common),
    }


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("heat", ["background", "outline", "cells", "selected"]),
        ("grid", ["background", "outline", "cells", "labels"]),
        ("fixes", ["background", "outline", "fixes"]),
    ],
)
def test_layers_in_drawing_order_and_no_address_to_fetch(name, ids, theme):
    text = every_deck(theme)[name].to_json()

    assert [layer["id"] for layer in json.loads(text)["layers"]] == ids
    assert "http" not in text
    assert "<b>" not in text
    # Streamlit takes this mark, and only this one, for a map without a style.
    assert re.findall(r'"map_?[sS]tyle":"([^"]*)"', text) == ["__MAP_STYLE__"]
    assert "mapProvider" not in text


def test_coordinates_have_five_decimals():
    for made in every_deck(LIGHT).values():
        data = json.dumps([layer["data"] for layer in json.loads(made.to_json())["layers"]])
        numbers = re.findall(r"\d+\.\d+", data)
        assert max(len(number.split(".")[1]) for number in numbers) == 5


def test_no_outline_leaves_plain_land():
    found = layers(maps.grid_deck(SMALL))

    assert "outline" not in found
    fill = found["background"]["_subLayerProps"]["fill"]["getFillColor"]
    assert fill == [*LIGHT.land, 255]


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
    view = deck.fit_view(bounds, *size)
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
        deck.fit_view(TOKYO.bounds, 500, 500),
        deck.fit_view(TOKYO.bounds, 500, 500, margin_px=125),
    )

    assert near.zoom - far.zoom == pytest.approx(1, abs=1e-3)


def test_words_under_the_pointer_are_plain_text():
    tooltip = maps.grid_deck(SMALL)._tooltip

    assert tooltip["text"] == "{where}\n{what}"
    assert "html" not in tooltip


def test_a_selection_does_not_fade_what_the_map_draws():
    # Streamlit fades only layers that carry getFillColor themselves.
    drawn = layers(every_deck(LIGHT)["heat"])
    assert "cells" in drawn
    assert not any("getFillColor" in layer for layer in drawn.values())


def test_an_online_basemap_is_asked_for_only_by_choice():
    online = "https://tiles.example/style.json"
    found = json.loads(maps.grid_deck(SMALL, scene=Scene(OUTLINE, basemap=online)).to_json())

    assert (found["mapProvider"], found["mapStyle"]) == ("maplibre", online)
    assert [layer["id"] for layer in found["layers"]] == ["cells", "labels"], "no land over streets"


def test_the_outline_ends_a_little_beyond_the_extent_and_has_no_names():
    # The large square reaches far beyond: it is cut 0.35 of the extent away.
    found = layers(maps.grid_deck(SMALL, scene=Scene(OUTLINE)))["outline"]["data"]
    places = np.array(
        [place for shape in found["features"] for place in shape["geometry"]["coordinates"][0]]
    )

    assert [feature["properties"] for feature in found["features"]] == [{}, {}]
    np.testing.assert_allclose(places.max(axis=0), [139.3 + 0.35 * 0.3, 35.2 + 0.35 * 0.2])


def test_lines_alone_say_nothing_of_water_and_are_drawn_to_be_seen():
    rail = {
        "type": "Feature",
        "properties": {},
        "geometry": {"type": "LineString", "coordinates": [[138.0, 34.0], [140.0, 36.0]]},
    }
    scene = Scene({"type": "FeatureCollection", "features": [rail]})
    found = layers(maps.grid_deck(SMALL, scene=scene))

    assert found["background"]["_subLayerProps"]["fill"]["getFillColor"] == [*LIGHT.land, 255]
    assert found["outline"]["getLineColor"] == [*LIGHT.grid_line, 255]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_ground_lies_between_the_water_and_the_outline(theme):
    found = layers(maps.grid_deck(SMALL, scene=Scene(OUTLINE, GROUND, theme)))

    assert list(found)[:3] == ["background", "ground", "outline"]
    background = found["background"]["_subLayerProps"]["fill"]["getFillColor"]
    assert background == [*theme.background, 255]
    assert found["background"]["data"][0]["ring"][0] == pytest.approx([139.15 - 180, -85.0])
    ground = found["ground"]
    assert ground["_subLayerProps"]["polygons-fill"]["getFillColor"] == [*theme.land, 255]
    assert not ground["stroked"]
    kinds = [shape["geometry"]["type"] for shape in ground["data"]["features"]]
    assert kinds == ["Polygon", "MultiLineString"], "places have no name here, and none is drawn"


@pytest.mark.parametrize(
    "scene", [Scene(OUTLINE, GROUND, DARK), Scene(basemap="https://a.example")]
)
def test_a_ground_that_was_made_before_is_the_same_map(scene):
    under = ground_json(SMALL.bounds, scene)
    made = Scene(theme=scene.theme, basemap=scene.basemap, under=under)
    assert (
        maps.grid_deck(SMALL, scene=made).to_json() == maps.grid_deck(SMALL, scene=scene).to_json()
    )


def test_a_name_in_the_data_does_not_take_the_ground():
    hostile = Scene({"type": "FeatureCollection", "features": []}, GROUND)
    deck = maps.grid_deck(SMALL, scene=hostile)
    deck.layers[0].data[0]["where"] = '"layers":['
    told = json.loads(deck.to_json())
    assert [layer["id"] for layer in told["layers"]][:2] == ["background", "ground"]
    cells = next(layer for layer in told["layers"] if layer["id"] == "cells")
    assert cells["data"][0]["where"] == '"layers":['


def test_with_a_ground_lines_alone_do_not_dry_the_sea():
    scene = Scene({"type": "FeatureCollection", "features": []}, GROUND)
    found = layers(maps.grid_deck(SMALL, scene=scene))

    background = found["background"]["_subLayerProps"]["fill"]["getFillColor"]
    assert background == [*LIGHT.background, 255]
