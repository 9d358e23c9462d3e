"""Scales over all times of day, on flows written by hand: see tests/agg_core/exports/by_hand.py."""

from dataclasses import replace

import pytest

from agg_core.plotting.flow_map import flows_of, pack
from agg_core.study import scales
from agg_core.study.scales import (
    first_difference_threshold,
    first_threshold,
    flow_scale,
    total_scale,
)
from tests.agg_core import counted
from tests.agg_core.exports import by_hand


def _difference_scale(result, truth):
    """As a map of the result has it."""
    return pack(flows_of(result)).header["scales"]["difference"][truth]


RESULT = by_hand.result()


@pytest.mark.parametrize("truth", ["single", "counted"])
def test_the_largest_flow_is_that_of_the_night(truth):
    assert flow_scale(RESULT, truth) == 7.0


def test_people_who_stay_or_cross_the_border_stretch_no_scale():
    kept = {
        key: {(a, b): n for (a, b), n in flows.items() if b in (a, by_hand.OUT)}
        for key, flows in by_hand.FLOWS.items()
    }
    nobody = replace(RESULT, written=kept)
    assert flow_scale(nobody, "single") == 1.0, "where nobody moves, a scale still has a length"
    assert _difference_scale(nobody, "single") == 1.0


@pytest.mark.parametrize(("truth", "largest"), [("single", 1.0), ("counted", 3.0)])
def test_the_largest_difference(truth, largest):
    # Single: (3, 4) in the morning and (4, 0) at night by one. Counted: three from 8 to 7.
    assert _difference_scale(RESULT, truth) == largest


@pytest.mark.parametrize(
    ("column", "largest"),
    [("people", 12.0), ("stays", 12.0), ("incoming", 7.0), ("outgoing", 7.0), ("change", 7.0)],
)
def test_the_largest_total_of_a_cell(column, largest):
    assert total_scale(RESULT, "single", column) == largest


def with_flows(counts, threshold, truth=None):
    """The morning's estimate has these moves, each between another pair of the nine cells."""
    pairs = [(a, b) for a in range(9) for b in range(9) if a != b][: len(counts)]
    sides = {"estimate": counts, "counted": counts if truth is None else truth}
    written = {
        (by_hand.MORNING, source): dict(zip(pairs, side, strict=True))
        for source, side in sides.items()
    }
    learn = replace(RESULT.settings.learn, threshold=threshold)
    by_time = RESULT.by_time[:1]
    settings = replace(RESULT.settings, learn=learn)
    return replace(RESULT, written=written, settings=settings, by_time=by_time)


@pytest.mark.parametrize(
    ("counts", "asked", "first"),
    [
        ([40, 3, 2], 36.0, 36.0),  # the study's own leaves one arrow
        ([40, 3, 2], 35.0, 1.0),  # nobody has set it: half of the smallest is 1
        ([30, 9, 6], 36.0, 2.0),  # half of the smallest is 3
        ([30 - i / 2 for i in range(60)], 35.0, 10.0),  # the 41st is 10: forty exceed it
        ([3.0, *[0.1] * 50], 35.0, 0.5),  # traces are left out
        ([0.03], 35.0, 0.01),
    ],
)
def test_the_first_picture_has_arrows(counts, asked, first, monkeypatch):
    monkeypatch.setattr(scales, "FIRST_ARROWS", 40)
    result = with_flows(counts, asked)
    assert first_threshold(result) == pytest.approx(first)
    assert max(counts) > first


def test_the_round_threshold_is_the_one_that_leaves_the_number_nearest_to_the_one_wanted(
    monkeypatch,
):
    monkeypatch.setattr(scales, "FIRST_ARROWS", 10)
    # The 11th is 19: eleven are above 10, three above 20.
    assert first_threshold(with_flows([25.0] * 3 + [19.0] * 8 + [9.0] * 40, 35.0)) == 10.0
    # The 11th is 19.9: forty are above 10, nine above 20.
    assert first_threshold(with_flows([21.0] * 9 + [19.9] * 31, 35.0)) == 20.0


def test_nobody_moves_at_all():
    assert first_threshold(with_flows([0.0], 35.0)) == 35.0


def test_the_first_map_of_differences_has_some_arrows(monkeypatch):
    monkeypatch.setattr(scales, "FIRST_ARROWS", 40)
    counts = [30 - i / 2 for i in range(60)]
    twice = with_flows(counts, 35.0, truth=[2 * count for count in counts])
    assert first_difference_threshold(twice, "counted") == 10.0, "they differ by as much as it is"
    same = with_flows(counts, 35.0)
    assert first_difference_threshold(same, "counted") == 0.5, "half a person, where none differs"


# ---------------------------------------------------------------- flows from counts

COUNTED = counted.study()


def test_the_scale_of_counts_is_that_of_all_times_and_of_the_whole_day():
    assert flow_scale(COUNTED) == 9.0, "at night, not 20 who stay or 30"
    night = COUNTED.flows["slot"] == 2
    assert flow_scale(replace(COUNTED, flows=COUNTED.flows.loc[~night])) == 6.0
    still = COUNTED.flows["origin"] == COUNTED.flows["dest"]
    alone = replace(COUNTED, flows=COUNTED.flows.loc[still])
    assert flow_scale(alone) == 4.5, "that of the day"
    assert flow_scale(replace(alone, day_flows=alone.day_flows.loc[[2]])) == 1.0


@pytest.mark.parametrize(
    ("column", "largest"),
    # In the morning 6 + 20 + 1.5 are in cell 0; outside people count at the cell's end.
    [("people", 30.0), ("stays", 30.0), ("incoming", 9.0), ("outgoing", 9.0), ("change", 9.0)],
)
def test_the_largest_total_of_a_cell_of_counts(column, largest):
    assert total_scale(COUNTED, "estimate", column) == largest


@pytest.mark.parametrize(("asked", "first"), [(2.0, 2.0), (4.5, 1.0), (100.0, 1.0)])
def test_the_first_picture_of_counts_has_arrows_over_the_whole_day(asked, first):
    """The largest flow of the day is 4.5, the least one 3: half of that, rounded down, is 1."""
    settings = replace(COUNTED.settings, threshold=asked)
    assert first_threshold(replace(COUNTED, settings=settings)) == first


def test_counts_of_nobody_who_moves():
    still = replace(COUNTED, day_flows=COUNTED.day_flows.loc[[2]])
    assert first_threshold(still) == 2.0
