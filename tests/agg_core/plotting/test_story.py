"""Scenes of the Lab's story, as a browser gets them."""

import re
from functools import cache

import numpy as np

from agg_core.lab.story import GROUP_SIZE, morning
from agg_core.lab.teaching import GROUP_SIZES, PAPERS
from agg_core.plotting.flow_map import pack
from agg_core.plotting.lab import TRUTH_KEY, size_label
from agg_core.plotting.story import flows_of_story
from agg_core.store.shipped_lab import load_shipped_teaching
from tests.agg_core.plotting.unpacked import Unpacked


@cache
def told():
    result = load_shipped_teaching()
    people = morning(result)
    return result, people, Unpacked(pack(flows_of_story(result, people)).showing({}))


def test_dots_go_through_the_morning():
    _, people, got = told()
    story = got.header["story"]
    assert len(story) == 6
    for scene, states in (
        (story[0], None),
        (story[1], people.states),
        (story[2], people.reported),
    ):
        dots = scene["dots"]
        assert dots["frames"] == ["08:00", "08:30", "09:00"]
        places = people.places if states is None else people.in_cells(states)
        for step, about in enumerate(dots["places"]):
            np.testing.assert_array_equal(got.column(about).reshape(-1, 2), places[:, step])
        apart = people.misplaced if states is people.reported else people.movers
        assert got.column(dots["apart"]).astype(bool).tolist() == apart.tolist()
        assert dots["inCells"] == (states is not None)


def test_numbers_are_those_of_one_group():
    _, people, got = told()
    numbers = got.header["story"][3]["numbers"]
    assert got.header["story"][3]["dots"] is None
    assert [got.column(each["people"]).tolist() for each in numbers] == people.group[:2].tolist()
    assert sum(people.group[0]) <= GROUP_SIZE


def numbers_in(text):
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_words_tell_the_figures_of_each_group_size():
    result, people, got = told()
    story = got.header["story"]
    assert {round(people.moves), len(people.states)} <= set(numbers_in(story[1]["texts"][0]))
    assert round(people.seeming_moves) in numbers_in(story[2]["texts"][0])
    for scene, learner in ((story[4], PAPERS), (story[5], "auto")):
        assert got.header["times"] == [size_label(size) for size in GROUP_SIZES]
        assert len(scene["texts"]) == len(GROUP_SIZES)
        for size, text in zip(GROUP_SIZES[1:], scene["texts"][1:], strict=True):
            point = result.point(learner, size)
            figures = {
                size, round(point.moves), round(point.figures.total_ratio, 1),
                round(100 * point.figures.cpc),
            }  # fmt: skip
            assert figures <= set(numbers_in(text))


def test_flows_are_shown_beside_the_truth():
    *_, got = told()
    views = [scene["view"] for scene in got.header["story"]]
    assert [view["show"] for view in views] == [*["estimate"] * 4, "both", "all"]
    assert all(view["truth"] == TRUTH_KEY for view in views[4:])
    assert all(view["time"] == size_label(GROUP_SIZE) for view in views[4:])
