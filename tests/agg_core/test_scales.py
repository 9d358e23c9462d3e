"""Scales over all times of day, on flows written by hand: see tests/agg_core/exports/by_hand.py."""

from dataclasses import replace

import pytest

from agg_core.scales import difference_scale, flow_scale, total_scale
from tests.agg_core.exports import by_hand

RESULT = by_hand.result()


@pytest.mark.parametrize("truth", ["single", "counted"])
def test_the_largest_flow_is_that_of_the_night(truth):
    assert flow_scale(RESULT, truth) == 7.0


def test_people_who_stay_or_cross_the_border_stretch_no_scale():
    flows = RESULT.flows
    kept = (flows["origin"] == flows["dest"]) | (flows["dest"] == by_hand.OUT)
    nobody = replace(RESULT, flows=flows.loc[kept])
    assert flow_scale(nobody, "single") == 1.0, "where nobody moves, a scale still has a length"
    assert difference_scale(nobody, "single") == 1.0


@pytest.mark.parametrize(("truth", "largest"), [("single", 1.0), ("counted", 3.0)])
def test_the_largest_difference(truth, largest):
    # Single: (3, 4) in the morning and (4, 0) at night by one. Counted: three from 8 to 7.
    assert difference_scale(RESULT, truth) == largest


@pytest.mark.parametrize(
    ("column", "largest"),
    [("people", 12.0), ("stays", 12.0), ("incoming", 7.0), ("outgoing", 7.0), ("change", 7.0)],
)
def test_the_largest_total_of_a_block(column, largest):
    assert total_scale(RESULT, "single", column) == largest
