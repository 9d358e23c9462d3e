"""How sure flows from groups are: worlds, intervals, and what a study keeps of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from agg_core.io.flow_tables import FlowTable
from agg_core.learn.table import LEARNERS
from agg_core.model.aggregates import aggregate
from agg_core.model.hmm import HMM
from agg_core.store.codec import load_result, save_result
from agg_core.study import people
from agg_core.study.doubting import Learned, doubt_steps
from agg_core.study.people import study_steps
from agg_core.study.reference import compare_reference
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import WindowSettings
from agg_core.tables.flows import flow_matrix
from tests.agg_core import tiny
from tests.faults import refused

TWO_TIMES = WindowSettings(step_minutes=60, length=3, times=("05:00", "08:00"))
TIMES = TWO_TIMES.times
AWAY = 1 - np.eye(9)
HALVES = replace(tiny.GRID, rows=1, cols=2)


@cache
def study(**learn):
    """Progress and result of a study with worlds."""
    return tiny.run(tiny.people(), tiny.settings(TWO_TIMES, **{"replicates": 4, **learn}))


def ended(steps):
    """All that is yielded, and what is returned."""
    found = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as end:
            return found, end.value


# ----------------------------------------------------------------------------------------- worlds


def learned(n=600, size=6, d=4, seed=0, learner="sampling"):
    """People of a chain of four cells in groups, learned by who knows it, and their moves."""
    rng = np.random.default_rng(seed)
    transmat = 0.6 * np.eye(d) + 0.4 * rng.dirichlet(np.ones(d), d)
    emission = 0.95 * np.eye(d) + 0.05 / d
    emission /= emission.sum(axis=1, keepdims=True)
    hmm = HMM.categorical(rng.dirichlet(np.full(d, 5.0)), transmat, emission)
    symbols, states = hmm.sample(n, 3, rng)
    groups = aggregate(symbols, size, d, rng)
    start = HMM.categorical(np.full(d, 1 / d), 0.5 * np.eye(d) + 0.5 / d, emission)
    part = Learned(
        groups, np.zeros(groups.n_sequences, dtype=int), start, start, learner, 1.0, 30, 1e-5
    )
    chain, _ = replace(part, chain=start).again(groups, rng)
    moves = np.zeros((d, d))
    for t in range(2):
        np.add.at(moves, (states[:, t], states[:, t + 1]), 0.5)
    return replace(part, chain=chain), moves


def test_every_world_has_as_many_people_at_each_time():
    steps, doubts = ended(doubt_steps([learned()[0], learned(seed=1)[0]], 3, 0))
    assert [state.iteration for state in steps] == [1, 2, 3, 4, 5, 6]
    errors = [doubts.ensemble.errors(ESTIMATE, slot) for slot in (0, 1)]
    assert errors[0].shape == (3, 4, 4)
    # As many moved as are estimated to have, the same people: what is too little here is too much
    # there. An error below a grain is a grain or none.
    np.testing.assert_allclose([each.sum(axis=(1, 2)) for each in errors], 0.0, atol=0.02)
    assert min(np.abs(each).sum() for each in errors) > 10
    for interval in doubts.intervals:
        assert (interval.low <= interval.high).all()


def test_intervals_hold_the_flows_of_people_who_follow_a_chain():
    held, sums = [], []
    for seed in range(20):
        part, moves = learned(seed=seed)
        _, doubts = ended(doubt_steps([part], 6, seed))
        (interval,) = doubts.intervals
        held.append((interval.low <= moves) & (moves <= interval.high))
        errors = doubts.ensemble.errors(ESTIMATE, 0)
        missed = (errors * (1 - np.eye(4))).sum(axis=(1, 2))
        middle = ((part.flows(part.chain) - moves) * (1 - np.eye(4))).sum() + missed.mean()
        sums.append(abs(middle) / missed.std(ddof=1))
    assert 0.8 < np.mean(held) < 0.99
    # Student's t of 5 degrees of freedom that a tenth exceed, from a printed table.
    assert np.mean(np.array(sums) < 2.015 * np.sqrt(1 + 1 / 6)) > 0.7


@pytest.mark.parametrize(
    "learner", [row.name for row in LEARNERS.own.values() if row.name != "auto" and row.groups]
)
def test_every_learner_is_doubted(learner):
    part, _ = learned(n=120, learner=learner)
    _, doubts = ended(doubt_steps([part], 2, 0))
    assert doubts.ensemble.draws == 2
    assert np.isfinite(doubts.intervals[0].high).all()


def test_what_goes_on_from_what_was_learned_ends_where_a_cold_start_does():
    """Few iterations hide nothing: errors of worlds are as large from either."""
    part, _ = learned(n=2000, size=10, d=6)
    apart = {}
    for name, begun in (("warm", part), ("cold", replace(part, chain=part.start))):
        rng, found = np.random.default_rng(5), []
        worlds = part.worlds(rng)
        for groups, moves in (worlds.drawn() for _ in range(6)):
            again, _ = begun.again(groups, rng)
            found.append(moves.mean(axis=0) - part.flows(again))
        apart[name] = np.sqrt(np.mean(np.square(found)))
    assert 0.75 < apart["warm"] / apart["cold"] < 1.15


# ---------------------------------------------------------------------------------------- results


def test_rows_have_intervals_of_the_mean_and_of_single_steps():
    _, result = study()
    assert result.has_intervals
    for step in (None, 0, 1):
        rows = result.rows("05:00", step=step)
        assert list(rows) == ["origin", "dest", "count", "low", "high", "resolved"]
        assert (rows["low"] <= rows["high"]).all()
        assert (rows["resolved"] == ((rows["high"] - rows["low"]) / 2 < rows["count"])).all()
        np.testing.assert_array_equal(
            result.matrix("05:00", step=step, column="high")[rows["origin"], rows["dest"]],
            rows["high"],
        )
    assert list(result.rows("05:00", "counted")) == ["origin", "dest", "count"]
    with refused("unknown-column"):
        result.matrix("05:00", "single", column="low")
    least = result.rows("05:00", least=1.0)
    assert 0 < len(least) < len(result.rows("05:00"))
    assert (least["count"] >= 1.0).all()


def test_values_and_their_matrices_have_the_ends():
    _, result = study()
    assert result.value_columns == ("estimate", "single", "counted", "low", "high")
    values = result.values("08:00").set_index(["origin", "dest"])
    rows = result.rows("08:00").set_index(["origin", "dest"])
    pd.testing.assert_frame_equal(
        values.loc[rows.index, ["low", "high", "resolved"]], rows[["low", "high", "resolved"]]
    )
    for name, matrix in result.matrices("08:00").items():
        assert matrix.sum() == pytest.approx(values[name].sum(), rel=0.01)


def test_sums_have_intervals_of_the_errors_of_worlds():
    _, result = study()
    assert result.times_of_draws == TIMES
    draws = result.draws("05:00")
    errors = draws - result.matrix("05:00")
    assert draws.shape == (4, 9, 9)
    missed = (errors * AWAY).sum(axis=(1, 2))
    middle = (result.matrix("05:00") * AWAY).sum() + missed.mean()
    # Student's t of 3 degrees of freedom that 5 % exceed, from a printed table.
    half = 2.353363 * missed.std(ddof=1) * np.sqrt(1 + 1 / 4)
    low, high = result.interval("05:00", ESTIMATE, AWAY)
    assert (low, high) == pytest.approx((max(middle - half, 0), middle + half), rel=1e-6)
    assert result.interval("05:00", "counted", AWAY) is None
    assert result.draws("05:00", "single") is None


def test_the_summary_tells_who_moves_and_how_sure_that_is():
    _, result = study()
    told = result.summary()
    assert told["ensemble"]["draws"] == 4
    movers = [(result.matrix(time) * AWAY).sum() for time in TIMES]
    assert told["movers"] == pytest.approx(sum(movers))
    assert told["movers_low"] < sum(movers) + 10
    assert told["movers_high"] > sum(movers) - 10
    for at, time, moved in zip(told["times"], TIMES, movers, strict=True):
        assert at["movers"] == pytest.approx(moved)
        low, high = result.interval(time, ESTIMATE, AWAY)
        assert (at["movers_low"], at["movers_high"]) == pytest.approx((low, high))
    # Errors of all times together are those of a sum, not sums of ends.
    errors = sum(result.draws(time) - result.matrix(time) for time in TIMES)
    missed = (errors * AWAY).sum(axis=(1, 2))
    half = 2.353363 * missed.std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert told["movers_high"] - sum(movers) == pytest.approx(missed.mean() + half, rel=1e-5)


def test_without_worlds_there_are_no_intervals_and_flows_are_the_same():
    (_, one), (_, none) = study(), study(replicates=0)
    assert not none.has_intervals
    assert none.interval("05:00", ESTIMATE, AWAY) is None
    assert none.times_of_draws == ()
    assert list(none.rows("05:00")) == ["origin", "dest", "count"]
    told = none.summary()
    assert told["ensemble"] is told["movers_low"] is told["movers_high"] is None
    for time in TIMES:
        np.testing.assert_array_equal(none.matrix(time), one.matrix(time))


def test_one_world_gives_flows_intervals_and_sums_none():
    _, result = study(replicates=1)
    assert result.has_intervals
    assert result.ensemble is None
    assert result.summary()["movers_low"] is None


@pytest.mark.parametrize(
    "learn",
    [
        {"group_size": 1}, {"inference": "cfb"}, {"inference": "cavity"}, {"inference": "auto"},
        {"inference": "least_squares"}, {"start": "least_squares"}, {"observed": "positions"},
        {"inference": "cavity", "calibrate": 1},
    ],
    ids=str,
)  # fmt: skip
def test_worlds_are_made_of_all_that_can_be_learned(learn):
    _, result = study(replicates=2, **learn)
    assert result.ensemble.draws == 2
    for time in TIMES:
        rows = result.rows(time)
        assert np.isfinite(rows[["low", "high"]]).all(axis=None)


def test_single_people_without_noise_are_sure():
    _, result = study(group_size=1, misclassify=0.0, iterations=30)
    # Who was seen is known; the chain is as near to them as it can be.
    low, high = result.interval("05:00", ESTIMATE, AWAY)
    assert high - low < 0.2 * (result.matrix("05:00") * AWAY).sum()
    _, groups = study(group_size=20, misclassify=0.05, iterations=30)
    ends = groups.interval("05:00", ESTIMATE, AWAY)
    assert ends[1] - ends[0] > 2 * (high - low)


@pytest.mark.parametrize("window", [tiny.HOURLY, TWO_TIMES], ids=["all day", "times"])
@pytest.mark.parametrize("group_size", [1, 5])
def test_the_share_rises_to_one_with_worlds(window, group_size):
    chosen = tiny.settings(window, group_size=group_size, replicates=2)
    progress, _ = tiny.run(tiny.people(), chosen)
    stages = list(dict.fromkeys(step.stage for step in progress))
    assert stages[-1] == "doubting"
    shares = [step.share for step in progress]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    doubting = [step for step in progress if step.stage == "doubting"]
    assert [step.iteration for step in doubting] == list(range(1, doubting[0].n_iter + 1))
    before = [step.share for step in progress if step.stage != "doubting"]
    assert before[-1] == pytest.approx(doubting[0].begins)


def test_the_same_seed_gives_the_same_intervals():
    *_, again = study_steps(tiny.people(), tiny.settings(TWO_TIMES, replicates=4))
    _, result = study()
    pd.testing.assert_frame_equal(again.rows("05:00"), result.rows("05:00"), check_exact=True)
    np.testing.assert_array_equal(again.draws("05:00"), result.draws("05:00"))


# ----------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_saved_study_has_its_intervals(n, tmp_path):
    _, result = study(replicates=n)
    save_result(result, tmp_path / "run")
    assert (tmp_path / "run" / "ensemble.parquet").exists() == (n > 1)
    back = load_result(tmp_path / "run")
    for time in TIMES:
        for step in (None, 1):
            pd.testing.assert_frame_equal(
                back.rows(time, step=step), result.rows(time, step=step), check_exact=True
            )
    assert back.summary() == result.summary()
    if n > 1:
        np.testing.assert_array_equal(back.draws("05:00"), result.draws("05:00"))


def test_flows_are_those_of_the_chain():
    part, _ = learned()
    expected = flow_matrix(part.chain.startprob, part.chain.transmat, 600, 3)
    np.testing.assert_allclose(part.flows(part.chain), expected)
    both = np.mean([part.flows(part.chain, step) for step in (0, 1)], axis=0)
    np.testing.assert_allclose(both, expected)


# -------------------------------------------------------------------------------------- reference


def test_a_reference_without_times_is_held_against_the_interval_of_the_sum():
    _, result = study(grid=HALVES)
    flows = sum(result.matrix(time) for time in TIMES)
    errors = sum(result.draws(time) - result.matrix(time) for time in TIMES)
    centre, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
    # Student's t of 3 degrees of freedom that 5 % exceed, from a printed table.
    half = 2.353363 * spread * np.sqrt(1 + 1 / 4)
    origin, dest = np.array([0, 1]), np.array([1, 0])
    for at, inside in ((1.0, True), (1.3, False)):
        truth = (flows + centre + at * half)[origin, dest] + (0.4 if inside else 0.6)
        table = pd.DataFrame({"origin": origin, "dest": dest, "count": truth, "rows": 1})
        found = compare_reference(result, FlowTable(table, (), {}))
        assert found.n_flows == 2
        assert found.coverage_90 == (1.0 if inside else 0.0)
    one_world = study(replicates=1, grid=HALVES)[1]
    assert np.isnan(compare_reference(one_world, FlowTable(table, (), {})).coverage_90)


def test_a_reference_by_time_is_held_against_the_intervals_of_rows():
    _, result = study(grid=HALVES)
    parts = []
    for number, time in enumerate(TIMES):
        rows = result.rows(time)
        rows = rows.loc[rows["origin"] != rows["dest"]]
        parts.append(rows[["origin", "dest"]].assign(count=rows["high"] + 0.4, time=number, rows=1))
    found = compare_reference(result, FlowTable(pd.concat(parts), TIMES, {}))
    assert found.n_flows == 4
    assert found.coverage_90 == 1.0


@pytest.mark.parametrize("group_size", [1, 4])
def test_groups_are_known_by_the_window_of_their_people(group_size):
    """People who show their window: a group shows that of all of its people."""
    rng = np.random.default_rng(0)
    window = rng.choice([3, 5, 8], 50)
    shown = np.repeat(np.searchsorted([3, 5, 8], window)[:, None], 3, axis=1)
    groups = aggregate(shown, group_size, 3, rng, within=window)
    learn = tiny.settings(group_size=group_size).learn
    hmm = HMM.categorical([1, 0, 0], np.eye(3), np.eye(3))
    _, result = study()
    part = people._learned(groups, window, hmm, result.by_time[0].estimate, learn)
    seen = groups.to_dense()[:, 0].argmax(axis=1)
    assert np.array([3, 5, 8])[seen].tolist() == part.within.tolist()
