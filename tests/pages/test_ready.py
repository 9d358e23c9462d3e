"""Whether the learners are compiled is told where they are started."""

from __future__ import annotations

import pytest

from agg_core.made.samples import SAMPLES
from tests.pages.visit import Visit
from ui import cached
from ui.panels import NOT_READY

SAMPLE = SAMPLES["tokyo_commuters"]


@pytest.mark.parametrize("ready", [True, False])
def test_learners_that_are_not_prepared_are_told(
    monkeypatch: pytest.MonkeyPatch, ready: bool
) -> None:
    monkeypatch.setattr(cached, "is_warm", lambda: ready)
    cached.learners_are_ready.clear()
    visit = Visit("Data").press(f"data.{SAMPLE.key}").go("Learn")
    assert (NOT_READY in visit.captions) is not ready
    cached.learners_are_ready.clear()
