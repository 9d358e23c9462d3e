"""The view of the page Flows as a value: to an address and back, moved on, focused."""

from dataclasses import replace

import pytest

from agg_core.study.scales import first_difference_threshold
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny
from ui.flow_view import FlowView, first_view, step_label
from ui.flows import clicked_cell

TIMES = ("02:00", "08:00", "20:00")
_, RESULT = tiny.run(
    tiny.people(), tiny.settings(WindowSettings(60, 3, TIMES), iterations=1, threshold=2.0)
)
FIRST = first_view(RESULT)
OTHER = FlowView(
    time="20:00", step=1, truth="counted", show="difference", net=True, threshold=0.25,
    difference_threshold=3.0, cell_threshold=7.0, top_n=12, shade=None, cell=4, direction="in",
    close=True,
)  # fmt: skip


def test_a_run_is_first_shown_at_its_busiest_time_with_its_own_threshold() -> None:
    least = first_difference_threshold(RESULT, "single")
    assert (
        FlowView(RESULT.busiest, truth="single", threshold=2.0, difference_threshold=least) == FIRST
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
        "cell": "4", "way": "in", "close": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("at", "09:00"), ("at", "<b>"), ("step", "2"), ("step", "-1"), ("beside", "estimate"),
        ("show", "all"), ("net", "yes"), ("above", "-1"), ("above", "nan"), ("above", "1e99"),
        ("above", "many"), ("differing", "-2"), ("top", "0"), ("top", "5000"), ("top", ""),
        ("shade", "red"),
        ("cell", "9"), ("cell", "-1"), ("cell", "1.5"), ("way", "up"), ("close", ""),
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
    odd = replace(OTHER, time="05:00", cell=500, step=9)
    assert odd.fitted(RESULT) == replace(OTHER, time=FIRST.time, cell=None, step=None)


def test_play_goes_round_the_times_of_day() -> None:
    view = replace(FIRST, time="02:00")
    seen = []
    for _ in range(4):
        seen.append(view.time)
        view = view.next_moment(RESULT)
    assert seen == ["02:00", "08:00", "20:00", "02:00"]
    assert view.step is None


def test_play_goes_through_the_steps_where_single_steps_are_shown() -> None:
    view = replace(FIRST, time="08:00", step=0)
    seen = []
    for _ in range(4):
        seen.append((view.time, view.step))
        view = view.next_moment(RESULT)
    assert seen == [("08:00", 0), ("08:00", 1), ("20:00", 0), ("20:00", 1)]
    assert (view.time, view.step) == ("02:00", 0)


def test_steps_are_told_by_the_clock_past_midnight() -> None:
    assert step_label(RESULT, "08:00", 1) == "09:00 – 10:00"
    assert step_label(RESULT, "23:00", 1) == "00:00 – 01:00"
    assert step_label(RESULT, "all day", 0) == "step 1 of 2"


def test_the_threshold_of_a_cell_is_its_own() -> None:
    assert FIRST.least == 2.0
    assert replace(FIRST, cell=0).least == 1.0
    assert OTHER.least == 7.0


def test_a_close_view_is_about_the_cell() -> None:
    grid = RESULT.settings.grid.make()
    assert replace(OTHER, close=False).focus(grid) is None
    assert replace(OTHER, cell=None).focus(grid) is None
    west, south, east, north = OTHER.focus(grid) or ()
    lon, lat = grid.centroids[4]
    assert ((west + east) / 2, (south + north) / 2) == pytest.approx((lon, lat))
    assert (east - west) / 7 == pytest.approx((grid.east - grid.west) / grid.cols)


CELL, OTHER_CELL, ARROW = ("cells", 5), ("cells", 7), ("arrows", 2)


@pytest.mark.parametrize(
    ("now", "before", "ends", "chosen", "then"),
    [
        (CELL, None, None, None, 5),  # a first click
        (None, CELL, None, 5, None),  # the same again: the whole map
        (OTHER_CELL, CELL, None, 5, 7),  # another cell
        (CELL, CELL, None, None, None),  # cleared by name: the redrawn map repeats itself
        (CELL, None, None, 5, None),  # chosen by name, then clicked: the whole map
        (None, CELL, None, 7, 5),  # another was chosen by name meanwhile: the click means its hit
        (None, None, None, None, None),  # beside the grid
        (ARROW, None, (3, 4), None, 3),  # an arrow: where it comes from
        (ARROW, CELL, (5, 4), 5, 4),  # from the chosen cell: where it goes
        (ARROW, ARROW, (8, 9), 3, 3),  # another arrow has its number once the map is redrawn
        (None, ARROW, None, 3, 3),  # or none has
    ],
)
def test_clicks(now, before, ends, chosen, then) -> None:  # type: ignore[no-untyped-def]
    assert clicked_cell(now, before, ends, chosen) == then


def test_the_one_step_of_a_short_window_can_be_chosen() -> None:
    _, short = tiny.run(
        tiny.people(), tiny.settings(WindowSettings(60, 2, ("08:00",)), iterations=1)
    )
    assert short.n_steps == 1
    view = replace(first_view(short), step=0)
    assert view.fitted(short) == view
    assert FlowView.from_params({"step": "1"}, short)[1] == ("step",)
