"""What happened on chosen days on the page Flows, by the numbers written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.pages.test_happened import headings, opened, said
from tests.pages.visit import Visit
from ui.cached import store
from ui.views import KEY

DAYS = counted.DAYS


def happened(visit: Visit) -> dict[tuple[int, int], float]:
    return {(a["origin"], a["dest"]): round(a["count"], 2) for a in visit.decks()[0]["arrows"]}


def test_days_are_chosen_and_forgotten_again() -> None:
    visit = opened(counted.by_day())
    assert happened(visit) == {(0, 1): 8.0, (1, 0): 0.5, (5, 2): 4.0}
    assert "day" not in visit.address
    visit.at.multiselect(f"{KEY}days").set_value([DAYS[0]]).run()
    assert not visit.errors
    # Twelve and four people in two steps.
    assert happened(visit) == {(0, 1): 6.0, (5, 2): 2.0}
    assert visit.address["day"] == DAYS[0]
    assert [DAYS[0] in name for name in headings(visit)] == [True, False]
    usual = {(a["origin"], a["dest"]): a["count"] for a in visit.decks()[1]["arrows"]}
    assert usual == {(0, 1): 6.0, (1, 0): 1.0}
    assert "no interval" in said(visit)
    visit.at.multiselect(f"{KEY}days").set_value([DAYS[1], DAYS[0]]).run()
    assert happened(visit) == {(0, 1): 5.33, (5, 2): 1.33}
    assert visit.address["day"] == f"{DAYS[1]},{DAYS[0]}"
    visit.at.multiselect(f"{KEY}days").set_value([]).run()
    assert happened(visit) == {(0, 1): 8.0, (1, 0): 0.5, (5, 2): 4.0}
    assert "day" not in visit.address


def test_an_address_brings_days() -> None:
    visit = opened(counted.by_day(), day=f"{DAYS[0]},{DAYS[1]}")
    assert visit.at.multiselect(f"{KEY}days").value == [DAYS[0], DAYS[1]]
    assert happened(visit) == {(0, 1): 5.33, (5, 2): 1.33}
    assert visit.address["day"] == f"{DAYS[0]},{DAYS[1]}"


@pytest.mark.parametrize(
    ("day", "refused", "at"),
    [
        ("2024-05-03", "day", counted.MORNING),
        ("x", "day", counted.MORNING),
        # That day has one time, which is its whole day.
        (DAYS[2], "at", WHOLE_DAY),
    ],
)
def test_an_address_with_what_is_not_there_says_so(day: str, refused: str, at: str) -> None:
    run = store().save(counted.by_day(), "week")
    visit = Visit("Flows", run=run.id, at=counted.MORNING, day=day)
    (sentence,) = visit.errors
    assert f"({refused}" in sentence.replace("\\", "")
    assert visit.address["at"] == at
    assert visit.address.get("day") == (DAYS[2] if refused == "at" else None)


def test_where_days_are_not_kept_there_is_no_choice() -> None:
    for study in (counted.both(), counted.study()):
        visit = opened(study)
        assert f"{KEY}days" not in visit.keys("multiselect")
        assert "Days cannot be chosen" not in said(visit)
    full = counted.by_day()
    assert full.happened is not None
    assert full.happened.by_day is not None
    none = replace(full.happened.by_day, dates=(), table=full.happened.by_day.table.head(0))
    visit = opened(replace(full, happened=replace(full.happened, by_day=none)))
    assert f"{KEY}days" not in visit.keys("multiselect")
    assert "Days cannot be chosen" in said(visit)
