"""The view of flows from counts as a value: to an address and back, fitted to a run."""

from dataclasses import replace

import pytest

from agg_core.plotting.flow_map import times_shown
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from ui.flow_view import FlowView, first_view

STUDY = counted.study()
FIRST = first_view(STUDY)
OTHER = FlowView(
    time="23:00", threshold=0.25, cell_threshold=7.0, top_n=12, shade=None, cells=(4,),
    direction="in", resolved=True,
)  # fmt: skip


def test_a_run_is_first_shown_over_the_whole_day_with_its_own_threshold() -> None:
    assert FlowView(time=WHOLE_DAY, threshold=2.0) == FIRST
    assert FIRST.to_params(STUDY) == {"at": WHOLE_DAY}


@pytest.mark.parametrize("view", [FIRST, OTHER, replace(FIRST, time="08:00", shade="change")])
def test_an_address_brings_the_view_back(view: FlowView) -> None:
    assert FlowView.from_params(view.to_params(STUDY), STUDY) == (view, ())


def test_an_address_reads_as_its_parts() -> None:
    assert OTHER.to_params(STUDY) == {
        "at": "23:00", "above": "0.25", "cell_above": "7", "top": "12", "shade": "none",
        "cell": "4", "way": "in", "resolved": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("at", "12:00"), ("at", "<b>"), ("at", ""), ("above", "-1"), ("above", "nan"),
        ("above", "inf"), ("cell_above", "many"), ("top", "0"), ("top", "5000"), ("top", ""),
        ("shade", "red"), ("cell", "9"), ("cell", "-1"), ("cell", "1.5"), ("way", "up"),
        ("resolved", "yes"), ("resolved", ""),
    ],
)  # fmt: skip
def test_what_a_run_cannot_follow_is_named_and_shown_as_usual(name: str, text: str) -> None:
    view, refused = FlowView.from_params({**OTHER.to_params(STUDY), name: text}, STUDY)
    assert refused == (name,)
    changed = {n for n in vars(view) if getattr(view, n) != getattr(OTHER, n)}
    assert len(changed) == 1
    assert all(getattr(view, n) == getattr(FIRST, n) for n in changed)


def test_what_only_a_study_has_is_named_as_refused() -> None:
    params = {"run": "x", "theme": "dark", "beside": "counted", "step": "0", "show": "difference"}
    view, refused = FlowView.from_params(params, STUDY)
    assert view == FIRST
    assert set(refused) == {"beside", "step", "show"}


def test_a_view_of_another_run_is_fitted() -> None:
    assert OTHER.fitted(STUDY) == OTHER
    odd = replace(OTHER, time="05:00", cells=(500,))
    assert odd.fitted(STUDY) == replace(OTHER, time=WHOLE_DAY, cells=())


def test_counts_of_one_time_of_day_are_shown_as_their_day() -> None:
    one = replace(STUDY, flows=STUDY.flows.loc[STUDY.flows["slot"] == 0])
    assert times_shown(STUDY) == (WHOLE_DAY, "08:00", "23:00")
    assert times_shown(one) == (WHOLE_DAY,)
    assert replace(OTHER, time="08:00").fitted(one).time == WHOLE_DAY


def test_the_threshold_of_a_cell_is_its_own() -> None:
    assert FIRST.least == 2.0
    assert replace(FIRST, cells=(0,)).least == 1.0
    assert OTHER.least == 7.0
