from dataclasses import replace

import numpy as np
import pytest

from agg_core.evidence.limited import LimitedResult, limited, shared
from agg_core.evidence.privacy import Limit
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused


def pairs(rows, column="count"):
    return {(int(o), int(d)): v for o, d, v in zip(rows.origin, rows.dest, rows[column])}  # noqa: B905


def real():
    """A study of real people, with steps and times, whose flows are its own."""
    windows = replace(tiny.HOURLY, times=("05:00", "08:00"))
    return tiny.run(tiny.people(), tiny.settings(window=windows))[1]


def test_flows_of_few_people_are_no_rows():
    found = limited(by_hand.of_means(), Limit(2))
    assert pairs(found.rows(MORNING)) == {(0, 0): 4.0, (0, 1): 2.5}
    # The one person from 3 to 4 would be told by eight people in all.
    assert pairs(found.rows(MORNING, "single")) == {(0, 0): 5.0}
    assert pairs(found.rows(MORNING, "counted")) == {(0, 1): 2.0, (8, 7): 3.0}
    assert pairs(found.rows(MORNING, least=3)) == {(0, 0): 4.0}


def test_what_is_withheld_beside_another_number_is_nan():
    found = limited(by_hand.of_means(), Limit(2)).values(MORNING)
    assert pairs(found, "estimate").keys() == {(0, 0), (0, 1), (8, 7)}
    assert pairs(found, "estimate")[0, 1] == 2.5
    for pair, column in (((0, 1), "single"), ((0, 1), "difference"), ((8, 7), "estimate")):
        assert np.isnan(pairs(found, column)[pair])
    assert pairs(found, "difference")[0, 0] == -1.0


def test_matrices_have_nan_where_there_are_few_or_none():
    found = limited(by_hand.of_means(), Limit(2))
    for source, matrix in found.matrices(MORNING).items():
        whole = by_hand.result().matrix(MORNING, source)
        gone = whole < 2
        gone[0, 1] |= source == "single"
        np.testing.assert_array_equal(matrix, np.where(gone, np.nan, whole))


def test_nothing_is_withheld_where_numbers_are_only_rounded():
    found = limited(by_hand.result(), Limit(0, 5))
    assert pairs(found.rows(MORNING)) == {
        (0, 0): 5.0, (0, 1): 5.0, (0, 9): 0.0, (1, 0): 0.0, (9, 1): 0.0
    }  # fmt: skip
    assert found.matrix(MORNING).sum() == 10
    assert found.values(NIGHT)["estimate"].tolist() == [10.0, 5.0]


def test_rounding_by_chance_is_the_same_wherever_a_flow_is_asked_for():
    found = limited(by_hand.result(), Limit(0, 3, at_random=True, seed=5))
    rows = pairs(found.rows(MORNING))
    assert set(rows.values()) <= {0.0, 3.0, 6.0}
    for pair, number in rows.items():
        assert found.matrix(MORNING)[pair] == number
    assert pairs(found.rows(MORNING, least=2)) == {p: n for p, n in rows.items() if n >= 2}
    assert found.values(MORNING)["estimate"].sum() == sum(rows.values())


def test_a_result_without_a_limit_is_itself():
    result = by_hand.result()
    assert limited(result, Limit(0)) is result
    assert result.limit_words == ""
    assert result.least_people is None
    found = limited(result, Limit(7))
    assert found.least_people == 7
    assert found.limit_words in found.evidence


@pytest.mark.parametrize("least", [1.5, 4.0])
def test_a_mean_over_steps_never_tells_a_step_that_is_withheld(least):
    result = real()
    found = limited(result, Limit(least))
    n_told = 0
    for time in result.times:
        for source in result.sources:
            steps = [pairs(found.rows(time, source, step)) for step in range(result.n_steps)]
            whole = [pairs(result.rows(time, source, step)) for step in range(result.n_steps)]
            mean = pairs(found.rows(time, source))
            assert all(count >= least for rows in (*steps, mean) for count in rows.values())
            for pair in mean:
                gone = [full[pair] for rows, full in zip(steps, whole, strict=True)
                        if pair not in rows and full.get(pair, 0) > 0]  # fmt: skip
                assert len(gone) != 1
                assert not gone or sum(gone) >= least
                n_told += not gone
    assert n_told > 0


def test_a_whole_day_never_tells_a_time_that_is_withheld():
    result = counted.study()
    # Of the day (4, 0) is the mean of 9 people at night and none in the morning, (0, 1) of 6.
    found = limited(result, Limit(3.5))
    assert pairs(found.rows(WHOLE_DAY)) == {(3, 3): 15.0, (4, 0): 4.5}
    assert pairs(found.rows(counted.NIGHT)) == {(3, 3): 30.0, (4, 0): 9.0}
    # That of the day is told by the time that was its only one.
    assert (0, 1) not in pairs(found.rows(counted.MORNING))


def test_intervals_go_with_their_flows():
    found = limited(counted.both(), Limit(3.2))
    values = found.values(counted.MORNING)
    np.testing.assert_array_equal(values["usual_low"].isna(), values["usual"].isna())
    np.testing.assert_array_equal(values["high"].isna(), values["count"].isna())
    # Six people in the morning would be told by the three of a mean step.
    assert np.isnan(pairs(values, "usual")[0, 1])
    assert np.isnan(pairs(values, "usual_high")[0, 1])
    assert (pairs(values)[0, 1], pairs(values, "low")[0, 1]) == (8.0, 6.5)
    assert set(found.rows(counted.MORNING)) >= {"low", "high", "resolved"}
    assert found.cell_intervals(WHOLE_DAY) is None
    assert not found.times_of_draws


def test_people_of_several_days_are_of_a_mean_day():
    result = replace(tiny.run(tiny.people_of_two_days(), tiny.settings())[1])
    assert result.days_summed == 2
    least = 3.0
    found = limited(result, Limit(least))
    assert min(pairs(found.rows(result.busiest)).values()) >= 2 * least
    one = found.of_days(result.days[:1])
    assert isinstance(one, LimitedResult)
    assert one.chosen_days == result.days[:1]
    assert min(pairs(one.rows(result.busiest)).values()) >= least


def test_counts_that_were_observed_are_withheld_with_what_would_tell_them():
    counts = by_hand.OBSERVED[MORNING]
    found = limited(by_hand.result(), Limit(12)).observed(MORNING)
    gone = np.isnan(found)
    assert gone[counts < 12].all()
    np.testing.assert_array_equal(found[~gone], counts[~gone])
    for axis in (0, 1):
        assert 1 not in gone.sum(axis=axis)
    assert limited(by_hand.of_positions(), Limit(12)).observed(MORNING) is None


@pytest.mark.parametrize("asked", ["parameters", "parameter_tables", "summary"])
def test_what_cannot_be_limited_is_refused(asked):
    with refused("cannot-be-limited"):
        getattr(limited(by_hand.result(), Limit(3)), asked)()


def test_all_else_is_that_of_the_result():
    for result in (by_hand.result(), counted.drawn()):
        found = limited(result, Limit(3))
        for name in (
            "states", "times", "times_of_day", "busiest", "sources", "references", "truths",
            "threshold", "step_name", "step_minutes", "n_steps", "is_sparse", "days", "basis",
            "chosen_days", "days_summed", "value_columns", "settings", "learner", "wall_s",
        ):  # fmt: skip
            assert getattr(found, name) == getattr(result, name), name
        assert found.source_label(ESTIMATE) == result.source_label(ESTIMATE)
        assert found.steps_summed(result.busiest) == result.steps_summed(result.busiest)


def test_all_people_of_a_table_never_tell_a_flow_that_is_withheld():
    result, least = real(), 5.0
    found = limited(result, Limit(least))
    for time in result.times:
        for source in result.sources:
            for step in (None, *range(result.n_steps)):
                whole = pairs(result.rows(time, source, step))
                shown = pairs(found.rows(time, source, step))
                gone = [n for pair, n in whole.items() if pair not in shown and n > 0]
                assert not gone or (len(gone) > 1 and sum(gone) >= least)


def near():
    """The same of moves within a reach alone."""
    windows = replace(tiny.HOURLY, times=("05:00", "08:00"))
    found = tiny.run(tiny.people(), tiny.settings(window=windows, reach_m=40_000.0))[1]
    assert found.is_sparse
    return found


@pytest.mark.parametrize("limit", [Limit(3), Limit(3, 5), Limit(0, 10)], ids=str)
def test_flows_within_a_reach_are_limited_like_others(limit):
    result = near()
    found = limited(result, limit)
    for time in result.times:
        for source in result.sources:
            for step in (None, *range(result.n_steps)):
                shown = pairs(found.rows(time, source, step))
                every = pairs(result.rows(time, source, step))
                assert shown.keys() <= every.keys()
                for pair, count in shown.items():
                    assert every[pair] >= limit.least_people
                    assert not limit.base or count % limit.base == 0
                # A sparse table has the entries of all flows, and tells no more than the rows.
                matrix, like = (of.matrix(time, source, step) for of in (found, result))
                np.testing.assert_array_equal(matrix.indices, like.indices)
                np.testing.assert_array_equal(matrix.indptr, like.indptr)
                origin = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
                told = dict(
                    zip(zip(origin.tolist(), matrix.indices.tolist(), strict=True), matrix.data,
                        strict=True)
                )  # fmt: skip
                known = {pair: count for pair, count in told.items() if not np.isnan(count)}
                assert {pair: count for pair, count in known.items() if count} == pytest.approx(
                    {pair: count for pair, count in shown.items() if count}
                )
                if limit.least_people:
                    assert known.keys() == shown.keys()


def test_a_flow_within_a_reach_cannot_be_worked_out_from_the_mean_and_its_steps():
    result, limit = near(), Limit(3)
    found = limited(result, limit)
    for time in result.times:
        for source in result.sources:
            mean, *steps = (
                pairs(found.rows(time, source, step)) for step in (None, *range(result.n_steps))
            )
            for pair in pairs(result.rows(time, source)):
                # Of a mean and its parts one alone that is missing would be known.
                missing = sum(pair not in table for table in (mean, *steps))
                assert missing != 1


def test_a_shared_result_has_no_days_and_no_gaps():
    result = replace(tiny.run(tiny.people_of_two_days(), tiny.settings())[1])
    found, least = shared(result, 3), limited(result, Limit(3))
    assert result.days
    assert (found.days, dict(found.days_by_type)) == ((), {})
    with refused("days-not-kept"):
        found.of_days(result.days[:1])
    for source in result.sources:
        matrix = found.matrix(result.busiest, source)
        gaps = least.matrix(result.busiest, source)
        assert np.isnan(gaps).any()
        np.testing.assert_array_equal(matrix, np.nan_to_num(gaps))
        assert pairs(found.rows(result.busiest, source)) == pairs(
            least.rows(result.busiest, source)
        )
    assert shared(result, 0) is result
    with refused("least-people-out-of-range"):
        shared(result, -1)


@pytest.mark.parametrize("asked", [Limit(0), Limit(30), Limit(0, 5)], ids=str)
def test_another_limit_does_not_change_what_of_a_shared_result_is_withheld(asked):
    result = real()
    found, again = shared(result, 3), limited(shared(result, 3), asked)
    for time in result.times:
        for source in result.sources:
            assert pairs(again.rows(time, source)).keys() == pairs(found.rows(time, source)).keys()
            assert np.isnan(again.matrix(time, source)).any()
    assert again.least_people == 3
    assert not again.days
