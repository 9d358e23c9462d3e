"""What results of both kinds have in common, on flows written by hand."""

import pytest

from agg_core.base.errors import InputError
from agg_core.study import results
from agg_core.study.results import WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand

STUDY, COUNTS = by_hand.result(), counted.study()


def test_cells_of_a_study_are_named_by_its_grid_and_those_of_counts_by_their_table():
    assert results.cell_names(STUDY)[8:] == ["row 2, column 2", "outside"]
    assert results.cell_names(by_hand.whole_day())[-1] == "row 2, column 2"
    assert results.cell_names(COUNTS)[8:] == ["cell 8", "outside"]
    assert [results.n_cells_of(found) for found in (STUDY, COUNTS)] == [9, 9]


def test_cells_without_a_place_have_no_grid():
    assert results.grid_of(counted.placeless()) is None
    for found in (STUDY, COUNTS):
        grid = results.grid_of(found)
        assert grid is not None
        assert grid.n_cells == 9


def test_moments_of_counts_are_the_whole_day_and_the_times_that_have_flows():
    assert results.moments_of(COUNTS) == (WHOLE_DAY, counted.MORNING, counted.NIGHT)
    assert results.times_of(COUNTS) == (counted.MORNING, counted.NIGHT)
    assert results.busiest_of(COUNTS) == WHOLE_DAY
    anchors = (by_hand.MORNING, by_hand.NIGHT)
    assert results.moments_of(STUDY) == results.times_of(STUDY) == anchors
    assert results.busiest_of(STUDY) == by_hand.NIGHT


def test_counts_have_one_source_and_the_threshold_is_that_of_the_settings():
    assert results.sources_of(COUNTS) == ("estimate",)
    assert results.sources_of(STUDY) == ("estimate", "single", "counted")
    assert [results.threshold_of(found) for found in (STUDY, COUNTS)] == [2.0, 2.0]


@pytest.mark.parametrize("moment", [WHOLE_DAY, counted.MORNING, counted.NIGHT])
def test_flows_at_a_moment_are_those_written_for_it(moment):
    found = results.flows_at(COUNTS, moment)
    values = zip(*(found[c] for c in ("count", "low", "high", "resolved")), strict=True)
    pairs = zip(found["origin"], found["dest"], strict=True)
    assert dict(zip(pairs, values, strict=True)) == counted.flows_of(moment)


def test_flows_of_a_study_are_by_source():
    found = results.flows_at(STUDY, by_hand.MORNING, "counted")
    assert found["count"].tolist() == [3.0, 2.0]


@pytest.mark.parametrize("found", [STUDY, COUNTS])
def test_a_moment_that_is_not_there_is_refused(found):
    with pytest.raises(InputError, match=r"at 12:00; choose one of .*08:00") as no:
        results.check_moment(found, "12:00")
    assert tiny.is_one_sentence(str(no.value).replace("; ", ", "))
    if found is COUNTS:
        with pytest.raises(InputError, match="no flows at 12:00"):
            results.flows_at(found, "12:00")
