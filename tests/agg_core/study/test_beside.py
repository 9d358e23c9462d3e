"""Two results beside each other, on a 2 x 2 grid with flows that can be summed by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.space.settings import GridSettings
from agg_core.study.beside import two_results
from agg_core.study.result import WHOLE_DAY
from agg_core.study.scales import first_threshold
from tests.agg_core import counted, tiny
from tests.agg_core.counted import MORNING, NIGHT
from tests.agg_core.exports import by_hand

GRID = GridSettings(139.0, 35.0, 139.2, 35.2, 2, 2)
OUT = 4

MOVES = {MORNING: {(0, 1): 6.0, (1, 0): 2.0, (0, 0): 20.0, (3, OUT): 4.0}, NIGHT: {(2, 3): 8.0}}
DAY = {(0, 1): 3.0, (1, 0): 1.0, (2, 3): 4.0}
OTHER_MOVES = {MORNING: {(0, 1): 4.0, (1, 2): 4.0, (0, 0): 10.0}, NIGHT: {(2, 3): 2.0}}
OTHER_DAY = {(0, 1): 2.0, (1, 2): 2.0, (2, 3): 1.0}


def made(moves=MOVES, day=DAY, **more):
    """A study of counts with an hour a step; ``moves`` by time of day, origin and dest."""
    slots = {MORNING: 0, "12:00": 1, NIGHT: 2}
    flows = [of(flows).assign(slot=slots[time]) for time, flows in moves.items()]
    study = replace(
        counted.study(), grid=GRID, cells=("a", "b", "c", "d"), people=np.ones((3, 5)) / 5,
        transmats=np.ones((3, 5, 5)) / 5, flows=pd.concat(flows, ignore_index=True),
        day_flows=of(day), step_minutes=60.0,
    )  # fmt: skip
    return replace(study, **more)


def of(flows):
    return counted.rows({pair: (n, n - 1, n + 1, True) for pair, n in flows.items()})


def other(**more):
    return made(OTHER_MOVES, OTHER_DAY, **more)


def code(one, two):
    with pytest.raises(InputError) as refused:
        two_results(one, two)
    return refused.value.code


def test_moves_their_ratio_and_what_is_common_at_a_time():
    two = two_results(made(), other())
    assert two.times == (WHOLE_DAY, MORNING, NIGHT)
    apart = two.apart([MORNING])
    # 6 + 2 + 4 to the outside; 4 + 4; who stays is no move. Common are 4 from 0 to 1.
    assert apart.moves == (12.0, 8.0)
    assert apart.ratio == 1.5
    assert apart.common_part == 2 * 4 / (12 + 8)


def test_a_range_of_times_is_compared_in_its_mean():
    apart = two_results(made(), other()).apart([MORNING, NIGHT])
    assert apart.moves == ((12.0 + 8.0) / 2, (8.0 + 2.0) / 2)
    assert apart.ratio == 2.0
    assert apart.common_part == 2 * (4 + 2) / (20 + 10)


def test_a_run_beside_itself_has_all_in_common():
    apart = two_results(made(), made()).apart([WHOLE_DAY])
    assert (apart.moves, apart.ratio, apart.common_part) == ((8.0, 8.0), 1.0, 1.0)


def test_nobody_who_moves_is_no_figure():
    nobody = made({MORNING: {(0, 0): 5.0}}, {(0, 0): 5.0})
    apart = two_results(nobody, nobody).apart([MORNING])
    assert apart.moves == (0.0, 0.0)
    assert np.isnan([apart.ratio, apart.common_part]).all()


def test_no_time_is_no_comparison():
    with pytest.raises(InputError) as refused:
        two_results(made(), made()).apart([])
    assert refused.value.code == "nothing-chosen"


def test_the_outside_counts_only_where_both_know_it():
    inside = other(has_outside=False, people=np.ones((3, 4)) / 4, transmats=np.ones((3, 4, 4)) / 4)
    two = two_results(made(), inside)
    assert (two.n_states, two.has_outside, two.leaves_outside) == (4, False, True)
    assert two.apart([MORNING]).moves == (8.0, 8.0)
    assert two.rows(0, MORNING)[["origin", "dest"]].to_numpy().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert not two_results(inside, inside).leaves_outside
    assert two_results(made(), made()).has_outside


def test_rows_are_those_of_each():
    two = two_results(made(), other())
    for which, flows in enumerate((MOVES, OTHER_MOVES)):
        rows = two.rows(which, MORNING)
        got = {(o, d): n for o, d, n in rows[["origin", "dest", "count"]].to_numpy().tolist()}
        assert got == flows[MORNING]
        assert rows["low"].tolist() == (rows["count"] - 1).tolist()


def test_only_common_times_are_compared_and_no_mean_of_other_times():
    two = two_results(made(), made({MORNING: MOVES[MORNING]}))
    assert two.times == (MORNING,)
    assert two.first_time == MORNING
    assert two_results(made(), other()).first_time == WHOLE_DAY


def test_people_and_counts_of_the_same_cells_and_steps():
    two = two_results(by_hand.result(), replace(counted.both(), step_minutes=60.0))
    assert two.times == (MORNING,)
    assert two.n_steps == 0
    # 2.5 + 0.5 + 1.5 + 0.25 of the people; of what happened 8 + 0.5 + 2.5 + 4.
    apart = two.apart([MORNING])
    assert apart.moves == (4.75, 15.0)
    assert apart.common_part == 2 * (2.5 + 0.5 + 1.5) / 19.75


def test_steps_are_told_apart_where_both_have_as_many():
    assert two_results(by_hand.result(), by_hand.result()).n_steps == 2


@pytest.mark.parametrize(
    "grid",
    [
        GridSettings(139.0, 35.0, 139.3, 35.2, 2, 2),
        GridSettings(139.0, 35.0, 139.2, 35.2, 1, 4),
        None,
    ],
)
def test_other_places_are_refused(grid):
    assert code(made(), made(grid=grid)) == "other-cells"


def test_another_number_of_cells_is_refused():
    assert code(made(), counted.study()) == "other-cells"


def test_cells_without_a_place_are_known_by_their_names():
    one, two = made(grid=None), other(grid=None)
    assert two_results(one, two).apart([MORNING]).ratio == 1.5
    assert code(one, replace(two, cells=("a", "b", "c", "e"))) == "other-cells"


def test_names_do_not_matter_where_places_are_the_same():
    assert two_results(made(), made(cells=("1", "2", "3", "4"))).n_states == 5


@pytest.mark.parametrize("minutes", [30.0, None])
def test_steps_of_another_length_are_refused(minutes):
    assert code(made(), made(step_minutes=minutes)) == "other-steps"


def test_steps_of_people_may_be_of_another_length_too():
    half_hours = tiny.settings(window=replace(tiny.HOURLY, step_minutes=30), iterations=1)
    people = replace(by_hand.whole_day(), settings=half_hours)
    assert code(people, replace(counted.study(), step_minutes=60.0)) == "other-steps"


def test_no_time_in_common_is_refused():
    night = made({NIGHT: MOVES[NIGHT]})
    assert code(made({MORNING: MOVES[MORNING]}), night) == "no-common-time"
    assert (
        code(by_hand.whole_day(), replace(counted.study(), step_minutes=60.0)) == "no-common-time"
    )


def test_sums_over_other_numbers_of_days_are_of_a_mean_day():
    same = two_results(made(), other())
    assert not same.of_mean_day
    two = replace(same, days=(2, 1))
    assert two.of_mean_day
    # 12 moves of two days are 6 of a mean one; beside them are 8, of which 3 and 4 are from 0 to 1.
    apart = two.apart([MORNING])
    assert apart.moves == (6.0, 8.0)
    assert apart.common_part == 2 * 3 / (6 + 8)
    halves, whole = two.rows(0, MORNING), same.rows(0, MORNING)
    for name in ("count", "low", "high"):
        np.testing.assert_array_equal(halves[name], whole[name] / 2)
    np.testing.assert_array_equal(halves["origin"], whole["origin"])
    pd.testing.assert_frame_equal(two.rows(1, MORNING), same.rows(1, MORNING))


def test_the_first_threshold_is_of_the_flows_that_are_shown():
    same = two_results(made(), other())
    two = replace(same, days=(40, 1))
    assert same.first_threshold == min(first_threshold(result) for result in same.results)
    # Of a mean of 40 days the largest flow of the one is a fortieth: a threshold above hides it.
    largest = two.rows(0, two.first_time).query("origin != dest")["count"].max()
    assert two.first_threshold < largest < same.first_threshold


def test_days_of_people_are_those_that_their_flows_are_sums_over():
    people = tiny.run(tiny.people(), tiny.settings())[1]
    assert people.days_summed == 1
    assert made().days_summed == 1, "flows of counts are of a mean day"
