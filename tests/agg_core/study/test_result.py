"""What results of both kinds have in common, on flows written by hand."""

import pytest

from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.faults import refused

STUDY, COUNTS = by_hand.result(), counted.study()


def test_cells_of_a_study_are_named_by_its_grid_and_those_of_counts_by_their_table():
    assert STUDY.states.names[8:] == ["row 2, column 2", "outside"]
    assert by_hand.whole_day().states.names[-1] == "row 2, column 2"
    assert COUNTS.states.names[8:] == ["cell 8", "outside"]
    assert [found.states.n_cells for found in (STUDY, COUNTS)] == [9, 9]


def test_cells_without_a_place_have_no_grid():
    assert counted.placeless().states.grid is None
    for found in (STUDY, COUNTS):
        grid = found.states.grid
        assert grid is not None
        assert grid.n_cells == 9


def test_moments_of_counts_are_the_whole_day_and_the_times_that_have_flows():
    assert COUNTS.times == (WHOLE_DAY, counted.MORNING, counted.NIGHT)
    assert COUNTS.times_of_day == (counted.MORNING, counted.NIGHT)
    assert COUNTS.busiest == WHOLE_DAY
    times = (by_hand.MORNING, by_hand.NIGHT)
    assert STUDY.times == STUDY.times_of_day == times
    assert STUDY.busiest == by_hand.NIGHT


def test_counts_have_one_source_and_the_threshold_is_that_of_the_settings():
    assert COUNTS.sources == ("estimate",)
    assert STUDY.sources == ("estimate", "single", "counted")
    assert [found.threshold for found in (STUDY, COUNTS)] == [2.0, 2.0]


@pytest.mark.parametrize("moment", [WHOLE_DAY, counted.MORNING, counted.NIGHT])
def test_flows_at_a_moment_are_those_written_for_it(moment):
    found = COUNTS.rows(moment)
    values = zip(*(found[c] for c in ("count", "low", "high", "resolved")), strict=True)
    pairs = zip(found["origin"], found["dest"], strict=True)
    assert dict(zip(pairs, values, strict=True)) == counted.flows_of(moment)


def test_flows_of_a_study_are_by_source():
    found = STUDY.rows(by_hand.MORNING, "counted")
    written = {pair: n for pair, n in by_hand.FLOWS[by_hand.MORNING, "counted"].items() if n}
    pairs = zip(found["origin"], found["dest"], strict=True)
    assert dict(zip(pairs, found["count"], strict=True)) == written


@pytest.mark.parametrize("found", [STUDY, COUNTS])
def test_a_moment_that_is_not_there_is_refused(found):
    with refused("unknown-time", "12:00") as no:
        found.check("12:00")
    assert tiny.is_one_sentence(str(no.value).replace("; ", ", "))
    if found is COUNTS:
        with refused("unknown-time", "12:00"):
            found.rows("12:00")


def test_steps_that_a_result_cannot_tell_apart_are_refused():
    assert (STUDY.n_steps, COUNTS.n_steps) == (2, 0)
    for found, step in ((STUDY, 2), (STUDY, -1), (COUNTS, 0)):
        with refused("unknown-step"):
            found.rows(found.busiest, step=step)
