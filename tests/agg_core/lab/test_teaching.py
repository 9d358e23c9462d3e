from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from agg_core.io import read_trajectories
from agg_core.lab.teaching import (
    GROUP_SIZES,
    PAPERS,
    TRUTH,
    TeachingProgress,
    TeachingResult,
    TeachingSettings,
    learner_label,
    teaching_steps,
)
from agg_core.made.samples import sample_path
from agg_core.study.people import study_steps
from agg_core.tables.flows import compare_flows
from tests.agg_core import tiny
from tests.faults import refused

SETTINGS = TeachingSettings(n_people=400, iterations=6)


@cache
def view(settings=SETTINGS):
    *progress, result = teaching_steps(settings)
    assert isinstance(result, TeachingResult)
    return progress, result


def test_every_group_size_is_there_and_progress_never_falls_back():
    progress, result = view()
    assert result.group_sizes == GROUP_SIZES == (1, 2, 5, 10, 20, 50, 100)
    assert all(isinstance(step, TeachingProgress) for step in progress)
    shares = [step.share for step in progress]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
    assert [*dict.fromkeys(step.group_size for step in progress)] == list(GROUP_SIZES)
    assert result.learners == (PAPERS, "auto")
    assert {(step.learner, step.group_size) for step in progress} == {
        *((name, size) for name in result.learners for size in GROUP_SIZES if size > 1), (PAPERS, 1)
    }  # fmt: skip


def test_the_flows_at_one_size_are_those_of_the_study_alone():
    _, result = view()
    table = pd.read_parquet(sample_path("tokyo_commuters"))
    first = table["user_id"].unique()[:400]
    people = read_trajectories(table[table["user_id"].isin(first)], tz="Asia/Tokyo")
    for learner in ("cfb", "auto"):
        *_, study = study_steps(people, SETTINGS.study(learner, 10))
        for mine, theirs in (
            (result.table(learner, 10), study.table("08:00", "estimate")),
            (result.truth, study.table("08:00", "single")),
        ):
            pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
        assert result.point(learner, 10).figures == study.vs_single
        assert result.point(learner, 10).taken == study.learner


def matrix(flows):
    counts = np.zeros((SETTINGS.grid.make().n_cells + 1,) * 2)
    counts[flows["origin"], flows["dest"]] = flows["count"]
    return counts


def test_figures_are_those_of_the_flows():
    _, result = view()
    truth = result.truth
    assert set(result.flows.loc[result.flows["group_size"] == TRUTH, "learner"]) == {""}
    for point in result.points:
        flows = result.table(point.learner, point.group_size)
        off = flows["origin"] != flows["dest"]
        assert point.moves == pytest.approx(flows.loc[off, "count"].sum())
        assert point.figures == compare_flows(matrix(flows), matrix(truth), SETTINGS.threshold)
        assert point.figures.total_ratio == pytest.approx(point.moves / result.true_moves)
        # Everybody who stays in a window is somewhere: all flows add up to the same people.
        assert flows["count"].sum() == pytest.approx(truth["count"].sum())


def test_single_people_hide_nothing_and_groups_make_the_papers_learner_invent_movement():
    _, result = view()
    for learner in result.learners:
        single = result.point(learner, 1)
        assert single.figures.total_ratio == pytest.approx(1, abs=1e-9)
        assert single.figures.cpc == pytest.approx(1, abs=1e-9)
    assert result.point("cfb", 20).figures.total_ratio > 1.2
    assert result.point("cfb", 100).figures.cpc < 0.8


def test_the_learner_that_is_best_for_the_data_keeps_more():
    _, result = view()
    for size in (5, 10, 20):
        paper, best = (result.point(name, size).figures for name in ("cfb", "auto"))
        assert best.cpc > paper.cpc
        assert abs(best.total_ratio - 1) < abs(paper.total_ratio - 1)


ALONE = TeachingSettings(learner="cfb", n_people=150, iterations=2)


def test_the_papers_learner_alone_is_not_shown_twice():
    progress, result = view(ALONE)
    assert result.learners == ("cfb",)
    assert len(result.points) == len(GROUP_SIZES)
    assert progress[-1].n_runs == len(GROUP_SIZES)


def test_learners_have_names():
    assert learner_label("cfb") == "CFB, the paper's"
    assert learner_label("auto") == "Best for the data"


def test_the_scale_ends_at_the_largest_flow_between_cells():
    _, result = view()
    flows = result.flows[result.flows["origin"] != result.flows["dest"]]
    inside = flows[(flows["origin"] < 56) & (flows["dest"] < 56)]
    assert result.largest == inside["count"].max()


def test_the_same_seed_gives_the_same_and_another_does_not():
    _, one = view(ALONE)
    *_, again = teaching_steps(ALONE)
    *_, other = teaching_steps(replace(ALONE, seed=1))
    pd.testing.assert_frame_equal(one.flows, again.flows, check_exact=True)
    assert not np.isclose(one.point("cfb", 20).moves, other.point("cfb", 20).moves)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"n_people": 99}, "value-out-of-range"),
        ({"n_people": 20_001}, "value-out-of-range"),
        ({"learner": "oracle"}, "not-a-choice"),
        ({"iterations": 0}, "value-out-of-range"),
    ],
)
def test_settings_out_of_range_are_one_sentence(wrong, code):
    with refused(code) as fault:
        TeachingSettings(**wrong)
    assert tiny.is_one_sentence(str(fault.value).replace("; ", ", "))


def test_settings_come_back_from_their_dictionary():
    assert TeachingSettings.from_dict(SETTINGS.to_dict()) == SETTINGS
