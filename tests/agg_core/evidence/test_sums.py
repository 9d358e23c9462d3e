"""Sums of flows with errors of worlds: by hand, their draws, sparse and whole tables."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from agg_core.evidence.sums import (
    DRAWS,
    FEWEST_DRAWS,
    Sums,
    cell_flows,
    hourly,
    pooled_spread,
    reference_at,
)
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.tables.certainty import sum_interval
from tests.agg_core import counted, tiny

MORNING, NIGHT = counted.MORNING, counted.NIGHT


def test_flows_between_cells_leave_the_outside_out():
    result = counted.drawn()
    matrix = np.asarray(result.matrix(MORNING))
    flows = cell_flows(result, [MORNING], factor=2.0)
    assert len(flows.count) == 81
    np.testing.assert_allclose(flows.count.reshape(9, 9), 2 * matrix[:9, :9])
    assert flows.outside == pytest.approx(2 * (matrix[9].sum() + matrix[:9, 9].sum()))
    drawn = result.draws(MORNING)
    np.testing.assert_allclose(
        flows.errors.reshape(3, 9, 9), 2 * (drawn - matrix)[:, :9, :9], atol=1e-12
    )


def test_the_mean_of_several_times_has_the_mean_of_their_errors():
    result = counted.drawn()
    both = cell_flows(result, [MORNING, NIGHT])
    each = [cell_flows(result, [time]) for time in (MORNING, NIGHT)]
    np.testing.assert_allclose(both.count, (each[0].count + each[1].count) / 2)
    np.testing.assert_allclose(both.errors, (each[0].errors + each[1].errors) / 2)


def test_without_worlds_nothing_is_known_of_errors():
    sums = cell_flows(counted.both(), [MORNING]).by(np.zeros(81, dtype=int), 1)
    assert sums.errors is None
    assert sums.interval() is None
    assert sums.drawn() is None
    assert sums.figures(np.cumsum).errors is None


def test_sums_by_number_and_by_weights_are_those_by_hand():
    result = counted.drawn()
    flows, matrix = cell_flows(result, [MORNING]), np.asarray(result.matrix(MORNING))[:9, :9]
    moved = np.where(flows.moves, flows.dest, -1)
    into = flows.by(moved, 9)
    np.testing.assert_allclose(into.estimate, matrix.sum(axis=0) - np.diag(matrix))
    errors = (result.draws(MORNING) - result.matrix(MORNING))[:, :9, :9]
    by_hand = errors.sum(axis=1) - np.einsum("bii->bi", errors)
    np.testing.assert_allclose(into.errors, by_hand, atol=1e-12)
    low, high = into.interval()
    ends = sum_interval(into.estimate, by_hand.T)
    np.testing.assert_allclose([low, high], ends)
    double = flows.by(moved, 9, 2.0)
    np.testing.assert_allclose(double.estimate, 2 * into.estimate)
    one = flows.summed(flows.moves.astype(float))
    assert one.estimate.tolist() == pytest.approx([into.estimate.sum()])
    alone = flows.only_moves
    assert alone.count.sum() == pytest.approx(into.estimate.sum())
    assert (alone.origin != alone.dest).all()


def test_an_interval_equals_that_of_the_result():
    result = counted.drawn()
    flows = cell_flows(result, [MORNING])
    weights = np.zeros((10, 10))
    weights[0, 1] = weights[5, 2] = 1
    sums = flows.summed(weights[flows.origin, flows.dest])
    by_result = result.interval(MORNING, ESTIMATE, weights)
    np.testing.assert_allclose(np.ravel(sums.interval()), np.ravel(by_result))


def test_draws_are_distributed_as_the_interval_takes_them_to_be():
    rng = np.random.default_rng(1)
    errors = rng.normal([2, -1, 0.5], [3, 1, 2], (6, 3))
    sums = Sums(np.array([10.0, 20.0, 0.0]), errors, positive=False)
    drawn = sums.drawn()
    assert drawn.shape == (DRAWS, 3)
    middle, scale = errors.mean(axis=0), errors.std(axis=0, ddof=1) * np.sqrt(1 + 1 / 6)
    for k in range(3):
        t = (drawn[:, k] - sums.estimate[k] - middle[k]) / scale[k]
        # 1,000 draws are farther from Student's t than .052 once in a hundred times.
        assert stats.kstest(t, stats.t(5).cdf).statistic < 0.052
    together = np.corrcoef(drawn.T)
    np.testing.assert_allclose(together, np.corrcoef(errors.T), atol=0.15)
    np.testing.assert_allclose(sums.take([2]).drawn()[:, 0], drawn[:, 2], atol=1e-12)
    joined = Sums.joined([sums.take([0]), sums.take([1, 2])])
    np.testing.assert_allclose(joined.drawn(), drawn, atol=1e-12)
    assert Sums.joined([sums, Sums(np.ones(2), None)]).errors is None
    assert (replace(sums, positive=True).drawn() >= 0).all()


def test_draws_of_very_many_sums_are_fewer_and_made_in_parts(monkeypatch):
    errors = np.random.default_rng(0).normal(size=(4, 50))
    sums = Sums(np.zeros(50), errors, positive=False)
    whole = sums.drawn(lambda part: part.sum(axis=1))
    monkeypatch.setattr("agg_core.evidence.sums.NUMBERS", 50 * 300)
    monkeypatch.setattr("agg_core.evidence.sums.AT_ONCE", 50 * 7)
    seen = []
    fewer = sums.drawn(lambda part: seen.append(len(part)) or part.sum(axis=1))
    assert max(seen) == 7
    np.testing.assert_allclose(fewer, whole[:300])
    monkeypatch.setattr("agg_core.evidence.sums.NUMBERS", 1)
    assert len(sums.drawn()) == FEWEST_DRAWS


def test_figures_err_as_those_of_the_sums_of_worlds():
    sums = Sums(np.array([8.0, 2.0]), np.array([[2.0, -1.0], [-4.0, 2.0], [1.0, -5.0]]))
    found = sums.figures(lambda values: values[..., :1] / values.sum(axis=-1, keepdims=True))
    assert found.estimate.tolist() == [0.8]
    # Worlds have 10 and 1, 4 and 4, and 9 and nobody, as there are no fewer.
    np.testing.assert_allclose(found.errors[:, 0], [10 / 11 - 0.8, 0.5 - 0.8, 1.0 - 0.8])


def test_units_are_people_per_hour_of_a_day():
    assert hourly(counted.drawn()) == (1.0, "people per step")
    hours = replace(counted.drawn(), step_minutes=15.0)
    assert hourly(hours) == (4.0, "people per hour")
    days = tiny.run(tiny.people_of_two_days(), tiny.settings())[-1]
    assert hourly(days) == (1 / 2, "people per hour")


def test_reference_flows_are_taken_at_the_same_pairs():
    result = counted.drawn()
    flows = cell_flows(result, [MORNING])
    tables = {time: np.asarray(result.matrix(time)) for time in (MORNING, NIGHT)}
    found = reference_at(tables, [MORNING, NIGHT], flows, 3.0)
    by_hand = 3 * (tables[MORNING] + tables[NIGHT])[:9, :9] / 2
    np.testing.assert_allclose(found.reshape(9, 9), by_hand)


def test_tables_of_moves_within_a_reach_have_the_same_sums():
    near = tiny.run(tiny.people(), tiny.settings(reach_m=40_000.0))[-1]
    assert near.is_sparse
    time = near.times[0]
    flows, matrix = cell_flows(near, [time]), near.matrix(time).toarray()
    np.testing.assert_allclose(
        flows.by(flows.dest, near.states.n_cells).estimate, matrix.sum(axis=0)[:9]
    )
    assert len(flows.count) <= near.matrix(time).nnz
    assert WHOLE_DAY not in near.times


def test_pooled_intervals_count_the_usual_errors_of_sums_of_like_size():
    errors = np.array([[0.0, 2.0, 1.0], [0.0, -4.0, 3.0]])
    sums = Sums(np.array([9.0, 10.0, 100.0]), errors)
    low, high = sums.pooled_interval(0.8)
    # The first two are of like size: squares 0 and 10, usually 5; the third is alone with 5.
    spread = np.sqrt([(2 * 0 + 10 * 5) / 12, (2 * 10 + 10 * 5) / 12, 5.0])
    half = stats.t(11).ppf(0.9) * spread
    np.testing.assert_allclose(low, np.maximum(sums.estimate - half, 0))
    np.testing.assert_allclose(high, sums.estimate + half)
    assert Sums(np.ones(1), None).pooled_interval() is None


def test_chance_that_is_known_is_beside_the_pooled_spread():
    errors = np.array([[0.0, 2.0], [0.0, -4.0]])
    spread, freedom = pooled_spread(errors, np.array([9.0, 10.0]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(spread**2, [(10 * 5) / 12 + 1, (2 * 10 + 10 * 5) / 12 + 2])
    assert freedom == 11
