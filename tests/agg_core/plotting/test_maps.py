import numpy as np
import pytest

from agg_core.plotting import maps
from agg_core.plotting.theme import LIGHT, heat_colours
from tests.agg_core.plotting.canvas import SMALL, layers
from tests.faults import refused


def test_heat_uses_a_fixed_scale_and_leaves_empty_cells_clear():
    cells = layers(maps.heat_deck(SMALL, [0, 1, 2, 3, 4, 40], vmax=4))["cells"]["data"]

    assert cells[0]["fill"][3] == 0
    assert cells[3]["fill"][:3] == heat_colours(LIGHT, [3], 4)[0].tolist()
    assert cells[4]["fill"] == cells[5]["fill"]
    assert [cells[4]["where"], cells[4]["what"]] == ["row 1, column 1", "4.0 people"]
    np.testing.assert_allclose([cell["ring"] for cell in cells], SMALL.rings(), atol=1e-5)


@pytest.mark.parametrize(
    ("counts", "code"),
    [([1, 2], "wrong-shape"), ([0, 0, 0, 0, 0, -1], "not-counts"), ([np.nan] * 6, "not-counts")],
)
def test_impossible_totals_are_refused(counts, code):
    with refused(code):
        maps.heat_deck(SMALL, counts, vmax=4)


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
    with refused("malformed-fixes"):
        maps.fixes_deck([139.1, np.nan], [35.1, 35.1], SMALL.bounds)


def test_rows_and_columns_are_numbered_along_the_sides():
    numbers = layers(maps.grid_deck(SMALL))["labels"]["data"]

    assert [number["text"] for number in numbers] == ["0", "1", "0", "1", "2"]
    assert numbers[0]["at"] == [139.0, 35.05]
    assert numbers[2]["at"] == [139.05, 35.0]
