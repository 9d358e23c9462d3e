"""What happened on chosen days on the page Flows, by the numbers written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.study import test_days_of_people as people
from tests.pages.test_happened import headings, opened, said
from tests.pages.visit import Visit
from ui.cached import store
from ui.views import DAYS as KEY

DAYS = counted.DAYS


def happened(visit: Visit) -> dict[tuple[int, int], float]:
    return visit.arrows()


def test_days_are_chosen_and_forgotten_again() -> None:
    visit = opened(counted.by_day())
    assert happened(visit) == {(0, 1): 8.0, (1, 0): 0.5, (5, 2): 4.0}
    assert "day" not in visit.address
    visit.at.multiselect(KEY).set_value([DAYS[0]]).run()
    assert not visit.errors
    # Twelve and four people in two steps.
    assert happened(visit) == {(0, 1): 6.0, (5, 2): 2.0}
    assert visit.address["day"] == DAYS[0]
    assert [DAYS[0] in name for name in headings(visit)] == [True, False]
    assert visit.arrows("usual") == {(0, 1): 6.0, (1, 0): 1.0}
    assert "no interval" not in said(visit)
    visit.at.multiselect(KEY).set_value([DAYS[1], DAYS[0]]).run()
    assert happened(visit) == {(0, 1): 5.33, (5, 2): 1.33}
    assert visit.address["day"] == f"{DAYS[1]},{DAYS[0]}"
    visit.at.multiselect(KEY).set_value([]).run()
    assert happened(visit) == {(0, 1): 8.0, (1, 0): 0.5, (5, 2): 4.0}
    assert "day" not in visit.address


def test_a_run_without_errors_by_day_says_that_sums_have_no_interval() -> None:
    visit = opened(counted.by_day(sums=False), day=DAYS[0])
    assert "no interval" in said(visit)


def test_an_address_brings_days() -> None:
    visit = opened(counted.by_day(), day=f"{DAYS[0]},{DAYS[1]}")
    assert visit.at.multiselect(KEY).value == [DAYS[0], DAYS[1]]
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
        assert KEY not in visit.keys("multiselect")
        assert "Days cannot be chosen" not in said(visit)
    full = counted.by_day()
    assert full.happened is not None
    assert full.happened.by_day is not None
    none = replace(full.happened.by_day, dates=(), table=full.happened.by_day.table.head(0))
    visit = opened(replace(full, happened=replace(full.happened, by_day=none)))
    assert KEY not in visit.keys("multiselect")
    assert "Days cannot be chosen" in said(visit)


# ------------------------------------------------------------------------------- groups of people


def of_groups(**address: str) -> Visit:
    run = store().save(people.two_days(), "two days")
    visit = Visit("Flows", run=run.id, above="0.4", **address)
    assert not visit.errors
    return visit


def test_days_of_groups_are_chosen_and_all_sources_are_of_them() -> None:
    first, second = people.DAYS
    visit = of_groups(at="01:00")
    assert visit.maps[0].header["steps"][0]
    assert happened(visit)[0, 1] == pytest.approx(12, abs=0.1)
    visit.at.multiselect(KEY).set_value([first]).run()
    assert not visit.errors
    assert visit.address["day"] == first
    for source in ("estimate", "single", "counted"):
        ((at, people_there),) = [(pair, n) for pair, n in visit.arrows(source).items() if n > 1]
        assert at == (0, 1)
        assert people_there == pytest.approx(12, abs=0.1)
    assert [first in name for name in headings(visit)] == [True, True, True]
    assert first in said(visit)
    # Steps are not told apart there.
    assert not visit.maps[0].header["steps"][0]
    visit.at.multiselect(KEY).set_value([second]).run()
    assert not visit.errors
    assert [visit.arrows(source) for source in ("estimate", "single")] == [{}, {}]


def test_an_address_brings_days_of_groups() -> None:
    visit = of_groups(at="01:00", day=people.DAYS[0], beside="counted")
    assert visit.at.multiselect(KEY).value == [people.DAYS[0]]
    assert visit.address["day"] == people.DAYS[0]


def test_groups_of_one_day_have_no_choice_of_days() -> None:
    run = store().save(people.of_one_day(), "one day")
    visit = Visit("Flows", run=run.id)
    assert not visit.errors
    assert KEY not in visit.keys("multiselect")
    visit = Visit("Flows", run=run.id, day="2024-05-01")
    (sentence,) = visit.errors
    assert "(day" in sentence.replace("\\", "")
