from dataclasses import replace
from html import unescape

import pytest

from agg_core.exports.page import html_page
from agg_core.plotting.flow_map import flows_of, pack
from agg_core.plotting.theme import DARK
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.agg_core.plotting.unpacked import unpacked_page
from tests.faults import refused


def text_of(page):
    return unescape(page.decode("utf-8"))


def packed(page):
    return unpacked_page(page.decode("utf-8"))


def test_all_times_and_sources_are_on_the_page():
    got = packed(html_page(by_hand.result(), MORNING))
    assert got.header["times"] == [MORNING, NIGHT]
    assert [source["heading"] for source in got.header["sources"]] == [
        "Learned from groups, M = 5", "Single people, M = 1", "Counted, before noise",
    ]  # fmt: skip
    assert got.flows("counted", MORNING) == {(0, 1): 2.0, (8, 7): 3.0}


def test_it_begins_at_the_time_with_the_threshold_of_the_study():
    view = packed(html_page(by_hand.result(), NIGHT)).header["view"]
    assert view["time"] == view["until"] == NIGHT
    assert view["threshold"] == by_hand.result().settings.learn.threshold == 2.0
    assert (view["truth"], view["show"]) == ("single", "both")


def test_it_begins_with_another_view_if_one_is_given():
    chosen = {"threshold": 0.25, "cells": [4], "show": "difference"}
    view = packed(html_page(by_hand.result(), NIGHT, view=chosen)).header["view"]
    assert {name: view[name] for name in chosen} == chosen
    assert view["time"] == NIGHT


def test_title_and_theme():
    page = html_page(by_hand.result(), NIGHT, "<script>alert(1)</script>", theme=DARK)
    content = page.decode("utf-8")
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>" in content
    assert "<script>alert" not in content
    assert "background: rgba(18,25,31,1)" in content


def test_the_ground_of_the_world_goes_along_and_its_sources_are_named():
    page = html_page(by_hand.result(), NIGHT)
    header = packed(page).header
    assert {shape["properties"]["kind"] for shape in header["ground"]["features"]} >= {"land"}
    assert header["towns"]
    assert "GeoNames (CC BY 4.0)" in text_of(page)
    assert len(page) < 2_500_000


def test_what_a_map_has_packed_lies_on_what_the_map_lies_on():
    page = html_page(by_hand.result(), NIGHT, packed=pack(flows_of(by_hand.result())))
    assert packed(page).header["ground"] is None
    assert "GeoNames" not in text_of(page)


def test_a_time_that_is_not_there_is_refused():
    with refused("unknown-time"):
        html_page(by_hand.result(), "05:00")


@pytest.mark.parametrize(
    ("minutes", "said"), [(30.0, "in a step of 30 minutes:"), (None, "in a step:")]
)
def test_a_page_says_how_long_a_step_is_if_known(minutes, said):
    study = replace(counted.study(), step_minutes=minutes)
    assert said in text_of(html_page(study, counted.MORNING, "Week"))


def test_counts_have_one_source_with_intervals():
    page = html_page(counted.study(), counted.MORNING, "Week")
    got = packed(page)
    assert [source["key"] for source in got.header["sources"]] == ["estimate"]
    assert got.header["view"]["show"] == "estimate"
    assert got.flows("estimate", counted.MORNING, column="high")[1, 0] == 3.0
    assert "50 pairs of successive counts of 7 days" in text_of(page)


def test_counts_without_intervals_or_places():
    page = html_page(counted.unsure(), WHOLE_DAY)
    assert "How sure the flows are is not known" in text_of(page)
    assert "low" not in packed(page).table("estimate", WHOLE_DAY)
    with refused("cells-without-place"):
        html_page(counted.placeless(), WHOLE_DAY)
