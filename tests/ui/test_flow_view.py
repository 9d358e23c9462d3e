"""The view of the page Flows as a value: to an address and back, moved on, focused."""

import json
from dataclasses import replace

import pytest

from agg_core.study.scales import first_difference_threshold
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny
from ui.flow_view import FlowView, first_view

TIMES = ("02:00", "08:00", "20:00")
THRESHOLD = 1.25
"""Set by somebody, and some flow exceeds it."""
_, RESULT = tiny.run(
    tiny.people(), tiny.settings(WindowSettings(60, 3, TIMES), iterations=1, threshold=THRESHOLD)
)
FIRST = first_view(RESULT)
OTHER = FlowView(
    time="20:00", step=1, truth="counted", show="difference", net=True, threshold=0.25,
    difference_threshold=3.0, cell_threshold=7.0, top_n=12, shade=None, cells=(4,), direction="in",
    clusters=True, camera=(139.5, 35.5, 9.25),
)  # fmt: skip


def test_a_run_is_first_shown_at_its_busiest_time_with_its_own_threshold() -> None:
    least = first_difference_threshold(RESULT, "single")
    assert (
        FlowView(RESULT.busiest, truth="single", threshold=THRESHOLD, difference_threshold=least)
        == FIRST
    )
    assert FIRST.to_params(RESULT) == {"at": RESULT.busiest}


@pytest.mark.parametrize("view", [FIRST, OTHER, replace(FIRST, time="08:00", shade="change")])
def test_an_address_brings_the_view_back(view: FlowView) -> None:
    assert FlowView.from_params(view.to_params(RESULT), RESULT) == (view, ())


def test_addresses_of_before_are_followed() -> None:
    params = OTHER.to_params(RESULT)
    params |= {"block": params.pop("cell"), "block_above": params.pop("cell_above")}
    assert FlowView.from_params(params, RESULT) == (OTHER, ())


def test_an_address_reads_as_its_parts() -> None:
    assert OTHER.to_params(RESULT) == {
        "at": "20:00", "step": "1", "beside": "counted", "show": "difference", "net": "1",
        "above": "0.25", "differing": "3", "cell_above": "7", "top": "12", "shade": "none",
        "cell": "4", "way": "in", "merged": "1", "look": "139.50000,35.50000,9.25",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("at", "09:00"), ("at", "<b>"), ("step", "2"), ("step", "-1"), ("beside", "estimate"),
        ("show", "none"), ("net", "yes"), ("above", "-1"), ("above", "nan"), ("above", "1e99"),
        ("above", "many"), ("differing", "-2"), ("top", "0"), ("top", "5000"), ("top", ""),
        ("shade", "red"),
        ("cell", "9"), ("cell", "-1"), ("cell", "1.5"), ("cell", "4,9"), ("way", "up"),
        ("merged", ""),
        ("look", "1,2"), ("look", "nan,0,3"), ("look", "0,91,3"), ("look", "0,0,99"),
    ],
)  # fmt: skip
def test_what_a_run_cannot_follow_is_named_and_shown_as_usual(name: str, text: str) -> None:
    params = {**OTHER.to_params(RESULT), name: text}
    view, refused = FlowView.from_params(params, RESULT)
    assert refused == (name,)
    changed = {n for n in vars(view) if getattr(view, n) != getattr(OTHER, n)}
    assert len(changed) == 1
    assert all(getattr(view, n) == getattr(FIRST, n) for n in changed)


def test_other_parameters_are_none_of_its_business() -> None:
    assert FlowView.from_params({"run": "x", "theme": "dark"}, RESULT) == (FIRST, ())


def test_a_view_of_another_run_is_fitted() -> None:
    assert OTHER.fitted(RESULT) == OTHER
    odd = replace(OTHER, time="05:00", cells=(500,), step=9)
    assert odd.fitted(RESULT) == replace(OTHER, time=FIRST.time, cells=(), step=None)


def test_the_threshold_of_a_cell_is_its_own() -> None:
    assert FIRST.least == THRESHOLD
    assert replace(FIRST, cells=(0,)).least == 1.0
    assert OTHER.least == 7.0


def test_the_map_has_the_view_and_gives_it_back() -> None:
    told = OTHER.to_map()
    assert (told["until"], told["shade"], told["cells"]) == ("20:00", "none", (4,))
    assert told["camera"] == {"longitude": 139.5, "latitude": 35.5, "zoom": 9.25}
    back = json.loads(json.dumps(told))
    assert FIRST.after(back, RESULT) == OTHER


def test_a_range_ends_at_a_time_that_is_there() -> None:
    _, refused = FlowView.from_params({"at": "02:00", "until": "09:00"}, RESULT)
    assert refused == ("until",)


def test_a_range_of_times_comes_back_and_a_single_time_is_none() -> None:
    told = {**FIRST.to_map(), "time": "02:00", "until": "20:00"}
    assert FIRST.after(told, RESULT) == replace(FIRST, time="02:00", until="20:00")
    assert FIRST.after({**told, "until": "02:00"}, RESULT) == replace(FIRST, time="02:00")


@pytest.mark.parametrize(
    "nonsense",
    [
        {"time": "09:00"}, {"time": None}, {"time": {"$": 1}}, {"cells": "all"}, {"cells": [9]},
        {"cells": 3}, {"camera": {}}, {"camera": [1]}, {"threshold": "many"},
        {"threshold": float("nan")}, {"top_n": -1}, {"shade": 7}, {"step": "x"}, {"days": ["x"]},
        {"net": "yes"}, {"else": 1},
    ],
)  # fmt: skip
def test_what_is_not_of_a_view_is_left_as_it_was(nonsense: dict[str, object]) -> None:
    assert OTHER.after(nonsense, RESULT) == OTHER
