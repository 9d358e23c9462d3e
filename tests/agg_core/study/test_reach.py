"""Studies with a farthest move in a step: sparse tables of the moves that may be, alone."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agg_core.base.moves import whole
from agg_core.io import read_trajectories
from agg_core.model.hmm import allowed_moves
from agg_core.study.beside import two_results
from agg_core.study.people import (
    BEYOND_REACH,
    SOURCES,
    estimate_megabytes,
    reach_words,
    study_steps,
)
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny
from tests.faults import refused

TIMES = WindowSettings(60, 3, ("06:00", "12:00"), 90)
EVERYWHERE = 500_000.0
"""Metres, farther than the grid is wide."""
NEAR = 12_000.0
"""Metres: to a cell that shares a border, and not over a corner."""

PEOPLE = {
    "people": tiny.people,
    "people outside": lambda: tiny.people(True),
    "two days": tiny.people_of_two_days,
}


@cache
def study(people="people", reach_m=None, **learn):
    settings = tiny.settings(TIMES, **{"inference": "cfb", **learn})
    settings = replace(settings, learn=replace(settings.learn, reach_m=reach_m))
    *_, result = study_steps(PEOPLE[people](), settings)
    return result


def near_enough(one, other):
    """Two tables of figures, of which text is alike and numbers are equal but for rounding."""
    assert list(one.columns) == list(other.columns)
    for name in one.columns:
        if one[name].dtype.kind == "f":
            np.testing.assert_allclose(one[name], other[name], rtol=1e-7, atol=1e-9)
        else:
            assert one[name].tolist() == other[name].tolist()


# ---------------------------------------------------------------- as far as the grid


@pytest.mark.parametrize("people", PEOPLE)
def test_a_reach_over_the_whole_grid_gives_the_flows_without_one(people):
    free, bound = study(people), study(people, EVERYWHERE)
    assert (free.is_sparse, bound.is_sparse) == (False, True)
    assert bound.beyond_reach == 0
    assert bound.times == free.times
    for time in free.times:
        for source in SOURCES:
            for step in (None, 0, 1):
                found = bound.matrix(time, source, step)
                assert sparse.issparse(found)
                expected = free.matrix(time, source, step)
                np.testing.assert_allclose(whole(found), expected, atol=1e-9)
        assert bound.value_columns == free.value_columns
        for name, matrix in free.matrices(time).items():
            np.testing.assert_allclose(whole(bound.matrices(time)[name]), matrix, atol=1e-9)
        near_enough(bound.values(time), free.values(time))
        near_enough(bound.table(time), free.table(time))
    for one, other in zip(bound.by_time, free.by_time, strict=True):
        for figures in ("vs_single", "vs_counted"):
            expected = getattr(other, figures).to_dict()
            assert getattr(one, figures).to_dict() == pytest.approx(expected, nan_ok=True)
    tables, expected = bound.parameter_tables(), free.parameter_tables()
    for name in ("start", "transitions"):
        near_enough(tables[name].reset_index(drop=True), expected[name].reset_index(drop=True))
    figures, expected = bound.summary(), free.summary()
    for name in ("movers", "n_sequences", "n_groups", "converged", "iterations"):
        assert figures[name] == pytest.approx(expected[name])


def test_parameters_are_those_of_whole_tables():
    free, bound = study().parameters(), study(reach_m=EVERYWHERE).parameters()
    assert bound.keys() - free.keys() == {"indices", "indptr"}
    for number in range(2):
        data = bound["estimate_transmat"][number]
        table = sparse.csr_array((data, bound["indices"], bound["indptr"]))
        np.testing.assert_allclose(table.toarray(), free["estimate_transmat"][number], atol=1e-9)


def test_what_happened_on_days_is_told_within_a_reach():
    free, bound = study("two days"), study("two days", EVERYWHERE)
    assert bound.days == free.days
    assert len(bound.days) == 2
    for day in bound.days:
        one, other = bound.of_days([day]), free.of_days([day])
        for time in one.times:
            # Days are as the same people were counted; what groups tell of them is drawn.
            counted = one.matrix(time, "counted")
            assert sparse.issparse(counted)
            np.testing.assert_allclose(whole(counted), other.matrix(time, "counted"), atol=1e-9)
            assert one.matrix(time).sum() == pytest.approx(other.matrix(time).sum(), rel=0.02)
    both = bound.of_days(bound.days)
    for time in both.times:
        # All days together are what was learned of all, but for what is too little to keep.
        np.testing.assert_allclose(whole(both.matrix(time)), whole(bound.matrix(time)), atol=0.1)


# ---------------------------------------------------------------- a small reach


@cache
def walk():
    """Sixty people who go to a cell beside their own, or stay; two jump over the grid."""
    rng = np.random.default_rng(5)
    states = np.empty((tiny.N_PEOPLE, 24), dtype=int)
    states[:, 0] = rng.integers(0, 9, tiny.N_PEOPLE)
    for hour in range(1, 24):
        row, col = np.divmod(states[:, hour - 1], 3)
        along, by = rng.random(tiny.N_PEOPLE) < 0.5, rng.integers(-1, 2, tiny.N_PEOPLE)
        row, col = np.where(along, row + by, row), np.where(along, col, col + by)
        states[:, hour] = np.clip(row, 0, 2) * 3 + np.clip(col, 0, 2)
    states[:2, 7], states[:2, 8] = 0, 8
    return states


@cache
def walked(inference="cfb", replicates=0, days=1):
    first = tiny.frame(walk())
    frames = [first.assign(time=first["time"] + pd.Timedelta(days=day)) for day in range(days)]
    people = read_trajectories(pd.concat(frames))
    settings = tiny.settings(TIMES, inference=inference, replicates=replicates, reach_m=NEAR)
    *_, result = study_steps(people, settings)
    return result


def allowed():
    return allowed_moves(tiny.GRID.make(), NEAR).toarray() > 0


def test_the_near_cells_are_those_that_share_a_border():
    assert int(allowed().sum()) == 9 + 2 * 12


@pytest.mark.parametrize("inference", ["cfb", "sampling", "auto"])
def test_no_flow_goes_beyond_the_reach(inference):
    result = walked(inference)
    for time in result.times:
        for source in SOURCES:
            matrix = result.matrix(time, source)
            assert matrix.nnz == allowed().sum()
            assert (matrix.toarray()[~allowed()] == 0).all()
            assert matrix.sum() == pytest.approx(result.at(time).n_sequences)
            rows = result.rows(time, source)
            assert allowed()[rows["origin"], rows["dest"]].all()
    for table in result.parameter_tables().values():
        assert len(table) in (2 * 2 * 9, 2 * 2 * int(allowed().sum()))
    assert result.parameters()["estimate_transmat"].shape == (2, allowed().sum())


def test_who_moved_farther_is_left_out_and_counted():
    result = walked()
    # Both jump from hour 7 to hour 8, in the window that begins at 6.
    assert result.dropped[BEYOND_REACH] == result.beyond_reach == 2
    assert result.at("06:00").n_sequences == tiny.N_PEOPLE - 2
    assert result.at("12:00").n_sequences == tiny.N_PEOPLE
    assert result.summary()["beyond_reach"] == 2
    counted = [walk()[2:, 6:9], walk()[:, 12:15]]
    for time, windows in zip(result.times, counted, strict=True):
        flows = result.rows(time, "counted").set_index(["origin", "dest"])["count"]
        assert flows.to_dict() == pytest.approx(tiny.counted_by_hand(windows))
    words = reach_words(2, result.n_sequences, NEAR)
    assert tiny.is_one_sentence(words)
    assert "2 of 120" in words
    assert "12 km" in words
    assert reach_words(0, 120, NEAR) == reach_words(2, 118, None) == ""


def test_nobody_within_the_reach_is_refused():
    states = np.tile([0, 8], (60, 12))
    with refused("reach-too-small") as fault:
        tiny.run(read_trajectories(tiny.frame(states)), tiny.settings(TIMES, reach_m=NEAR))
    assert tiny.is_one_sentence(str(fault.value))


@pytest.mark.parametrize("inference", ["cfb", "sampling"])
def test_worlds_tell_intervals_within_the_reach(inference):
    result = walked(inference, replicates=3)
    assert result.has_intervals
    for time in result.times:
        flows, low, high = (
            result.matrix(time, column=column) for column in ("count", "low", "high")
        )
        assert low.nnz == high.nnz == allowed().sum()
        assert (low.data <= high.data).all()
        inside = (low.data <= flows.data) & (flows.data <= high.data)
        assert inside.mean() > 0.5
        rows = result.rows(time)
        assert {"low", "high", "resolved"} <= {*rows.columns}
        assert allowed()[rows["origin"], rows["dest"]].all()
        assert {"low", "high"} <= {*result.rows(time, step=1).columns}
        drawn = result.draws(time)
        assert len(drawn) == 3
        assert all((table.toarray()[~allowed()] == 0).all() for table in drawn)
        # Sums by sparse tables are those of the draws made whole.
        ends = result.cell_intervals(time)
        apart = np.stack([whole(table) for table in drawn]) * (1 - np.eye(9))
        errors = apart - whole(flows) * (1 - np.eye(9))
        for name, axis in (("incoming", 0), ("outgoing", 1)):
            low_end, high_end = ends[name]
            middle = (whole(flows) * (1 - np.eye(9))).sum(axis=axis) + errors.sum(axis + 1).mean(0)
            assert ((low_end <= middle + 1e-9) & (middle <= high_end + 1e-9)).all()
        low_end, high_end = result.interval(time, "estimate", np.ones((9, 9)) - np.eye(9))
        told = result.summary()["times"][result.times.index(time)]
        assert (told["movers_low"], told["movers_high"]) == pytest.approx((low_end, high_end))
        few = sparse.csr_array(np.ones((9, 9)) - np.eye(9))
        assert result.interval(time, "estimate", few) == pytest.approx((low_end, high_end))
        for weights in (few[:8], few * np.nan):
            with refused("wrong-shape"):
                result.interval(time, "estimate", weights)


def test_worlds_tell_flows_of_days_within_the_reach():
    result = walked("sampling", replicates=3, days=2)
    day = result.of_days(result.days[:1])
    assert day.has_intervals
    for time in day.times:
        low, high = (day.matrix(time, column=column) for column in ("low", "high"))
        assert low.nnz == allowed().sum()
        assert (low.data <= high.data).all()
        assert (day.matrix(time).toarray()[~allowed()] == 0).all()
        assert day.interval(time, "estimate", np.ones((9, 9)) - np.eye(9)) is not None


def test_the_same_is_found_in_worlds_whatever_the_table(monkeypatch):
    """Intervals of a study with the whole grid in reach are as wide as those of one without."""
    free, bound = (study(reach_m=reach, replicates=4) for reach in (None, EVERYWHERE))
    for time in free.times:
        width = [
            float(whole(result.matrix(time, column="high")).sum()
                  - whole(result.matrix(time, column="low")).sum())
            for result in (free, bound)
        ]  # fmt: skip
        assert width[1] == pytest.approx(width[0], rel=0.3)


def test_two_studies_are_set_beside_each_other_whatever_their_tables():
    free, bound, near = study(), study(reach_m=EVERYWHERE), walked()
    same = two_results(free, bound).apart(free.times)
    assert (same.ratio, same.common_part) == pytest.approx((1.0, 1.0))
    one, other = (two_results(result, near).apart(near.times) for result in (free, bound))
    assert one.moves == pytest.approx(other.moves)
    assert one.common_part == pytest.approx(other.common_part)


# ---------------------------------------------------------------- noise and memory


def test_the_noise_of_groups_is_that_of_single_people():
    result = study(reach_m=EVERYWHERE, noise="auto", inference="sampling")
    assert result.noise.learned
    assert result.noise.groups == result.noise.single
    free = study(noise="auto", inference="sampling")
    assert result.noise.single == pytest.approx(free.noise.single, abs=1e-6)


def test_memory_grows_with_the_moves_that_may_be():
    grid = replace(tiny.GRID, rows=100, cols=100)
    side = max(grid.make().cell_size_m)
    free, bound = (
        estimate_megabytes(20_000, 60_000, grid.make(), tiny.settings(TIMES, grid, reach_m=reach))
        for reach in (None, 4 * side)
    )
    assert free > 10_000
    assert bound < 2_000
    wider = estimate_megabytes(
        20_000, 60_000, grid.make(), tiny.settings(TIMES, grid, reach_m=8 * side)
    )
    assert bound < wider < free
