"""Addresses that nobody would write: a page shows what it can and says what it cannot."""

from __future__ import annotations

from random import Random

import pytest

from agg_core.made.samples import SAMPLES
from agg_core.store.shipped_runs import SHIPPED_RUNS
from tests.pages.visit import PAGES, Visit
from ui import address, at_work, lab_results, shell, two_runs
from ui.flow_view import _EARLIER, _PARAMS

SAMPLE = SAMPLES["tokyo_commuters"]
N_EACH = 25
"""Addresses of a page: 200 for all eight."""

NAMES = (
    *_PARAMS,
    *_EARLIER,
    "run",
    "job",
    "a",
    "b",
    "part",
    "result",
    "scene",
    "theme",
    "none",
    "x" * 99,
)
TEXTS = (
    "", "0", "1", "-1", "9" * 30, "9" * 5000, "nan", "inf", "-inf", "1e308", "1e-320", "08:00",
    "whole day", "all", "none", "x" * 100_001, "../../etc/passwd", "/dev/zero", "%00", "\x00",
    "<script>alert(1)</script>", "[x](javascript:1) **y** :red[z]", "0" * 32, "f" * 64, "\u0663",
    "1,2,3", "1," * 50_000, "0,1,0,1", ",,,", "139.7,35.6,9", "nan,nan,nan", "light",
    "\u202e\u0000\U0001f600", "experiments", "teaching", "story", *SHIPPED_RUNS,
)  # fmt: skip
FOLLOWED = (address.FOLLOWED, at_work.FOLLOWED, two_runs.FOLLOWED, lab_results.FOLLOWED)


@pytest.mark.parametrize("page", PAGES)
def test_any_address_is_followed_or_told(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(shell, "note", lambda event, code, **_: told.append((event, code)))
    followed = 0
    rng = Random(f"addresses of {page}")
    visit = Visit("Data").press(f"data.{SAMPLE.key}").go(page)
    for _ in range(N_EACH):
        asked = {rng.choice(NAMES): rng.choice(TEXTS) for _ in range(rng.randrange(1, 7))}
        if rng.random() < 0.5:
            asked["run"] = rng.choice(list(SHIPPED_RUNS))
        visit.at.query_params.clear()
        visit.at.query_params.update(asked)
        for key in FOLLOWED:
            if key in visit.at.session_state:
                del visit.at.session_state[key]
        told.clear()
        visit.go(page)
        followed += any(key in visit.at.session_state for key in FOLLOWED)
        assert [event for event, _ in told if event == "fault"] == []
        assert shell.plain(SAMPLE.title) in visit.captions
        assert sum(map(len, visit.errors)) < 1000
    if page in ("Flows", "Learn", "Runs", "Lab"):  # pages that look at their address
        assert followed > 0
