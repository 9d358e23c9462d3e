"""The view of counts with what happened beside what is usual: its address, and another run's."""

from dataclasses import replace

import pytest

from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from ui.flow_view import FlowView, first_view

BOTH, EARLIER, PEOPLE = counted.both(), counted.study(), by_hand.result()
FIRST = first_view(BOTH)


def test_the_usual_flows_stand_beside_what_happened_at_first() -> None:
    assert (FIRST.truth, FIRST.show) == ("usual", "both")
    assert first_view(EARLIER).truth is None


@pytest.mark.parametrize("show", ["both", "difference"])
def test_an_address_brings_both_back(show: str) -> None:
    view = replace(FIRST, show=show, time=counted.MORNING, difference_threshold=0.25)
    params = view.to_params(BOTH)
    assert FlowView.from_params(params, BOTH) == (view, ())
    assert FlowView.from_params({**params, "beside": "usual"}, BOTH) == (view, ())


@pytest.mark.parametrize("other", [EARLIER, PEOPLE], ids=["earlier", "people"])
def test_what_another_run_has_not_is_refused_and_fitted(other: object) -> None:
    _, refused = FlowView.from_params({"beside": "usual"}, other)
    assert refused == ("beside",)
    fitted = replace(FIRST, show="difference").fitted(other)
    assert fitted.truth == first_view(other).truth
    assert fitted.show == ("both" if other is EARLIER else "difference")


def test_differences_begin_where_some_are_to_be_seen() -> None:
    # The whole day's differences are 1, 1 and 2.25 people: five thousandths leave none out.
    assert 0 < FIRST.difference_threshold < 1
