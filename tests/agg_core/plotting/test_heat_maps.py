import json

import numpy as np
import pytest

from agg_core.plotting import maps
from agg_core.plotting.deck import Scene
from agg_core.plotting.theme import DARK, HEAT_ALPHA, LIGHT
from tests.agg_core.plotting.canvas import OUTLINE, SMALL, layers

PEOPLE = [0, 1, 2, 4, 8, 2]
LONGER_SIDE_M = 27_353
"""0.3 degrees of longitude at 35.1 degrees north on WGS84: 6,385.2 km · cos 35.1° · 0.3 π / 180."""


def seen(deck):
    """The first view and what the mouse may do, as the browser gets them."""
    found = json.loads(deck.to_json())
    return found["initialViewState"], found["views"][0]["controller"]


def columns(vmax=8.0, **choices):
    return layers(maps.heat_deck(SMALL, PEOPLE, vmax=vmax, columns=True, **choices))["cells"]


def test_a_column_is_as_high_as_its_people_and_none_stands_where_nobody_is():
    layer = columns()
    heights_m = [cell["people"] * layer["elevationScale"] for cell in layer["data"]]

    assert layer["extruded"]
    assert layer["getElevation"] == "@@=people"
    assert [cell["cell"] for cell in layer["data"]] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(
        heights_m, 0.22 * LONGER_SIDE_M * np.array([1, 2, 4, 8, 2]) / 8, rtol=1e-3
    )


def test_maps_that_are_compared_share_the_height_of_a_person():
    assert columns(vmax=16.0)["elevationScale"] == pytest.approx(columns()["elevationScale"] / 2)


def test_only_a_map_of_columns_is_tilted_and_can_be_turned():
    flat_view, flat_mouse = seen(maps.heat_deck(SMALL, PEOPLE, vmax=8))
    view, mouse = seen(maps.heat_deck(SMALL, PEOPLE, vmax=8, columns=True))

    assert (flat_view["pitch"], view["pitch"]) == (0, 50)
    assert view["zoom"] < flat_view["zoom"]
    assert (flat_mouse["dragRotate"], mouse["dragRotate"]) == (False, True)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_roof_has_the_colour_that_the_flat_cell_has_over_land(theme):
    flat = layers(maps.heat_deck(SMALL, PEOPLE, vmax=8, scene=Scene(theme=theme)))["cells"]
    solid = columns(scene=Scene(theme=theme))
    share = HEAT_ALPHA / 255

    for cell in solid["data"]:
        *over, _ = flat["data"][cell["cell"]]["fill"]
        seen_flat = share * np.array(over) + (1 - share) * np.array(theme.land)
        assert cell["fill"] == [*np.rint(seen_flat).astype(int).tolist(), 255]


def test_a_column_tells_its_people():
    assert [cell["what"] for cell in columns()["data"]][:2] == ["1.0 people", "2.0 people"]


def test_water_and_land_of_a_tilted_map_do_not_fight_for_the_same_plane():
    scene = Scene(outline=OUTLINE)
    found = layers(maps.heat_deck(SMALL, PEOPLE, vmax=8, scene=scene, columns=True))

    for name in ("background", "outline"):
        assert found[name]["parameters"] == {"depthWriteEnabled": False}
    assert "parameters" not in found["cells"], "columns hide what stands behind them"
