"""Doubts of flows from counts on the page Learn."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.agg_core import counted
from ui.shell import plain


def page() -> None:
    from tests.agg_core import counted
    from ui.counts_learn import warn_of_doubts

    warn_of_doubts(counted.both())
    warn_of_doubts(counted.doubted())


def test_each_doubt_is_a_warning_and_without_one_there_is_none() -> None:
    at = AppTest.from_function(page).run()
    assert not at.exception
    assert [warning.value for warning in at.warning] == [
        plain(doubt.sentence) for doubt in counted.DOUBTS
    ]
