"""Holidays and labels of days on the page Learn, and days of a type on What changed."""

from __future__ import annotations

import pytest

from agg_core.made.counts import mlit_csv, simulate_city
from agg_core.study.counts import count_study_steps
from tests.agg_core.study.test_day_types import DATES, LABELS, SETTINGS, STRIKE, city
from tests.pages.visit import Visit
from ui import cached
from ui.state import Run

QUICK = {
    "counts.strength": "given", "counts.replicates": 0, "counts.count_error": 0.0,
    "counts.expansion": 1.0,
}  # fmt: skip
FILE = "date;label\n" + "".join(f"{day};{label}\n" for day, label in LABELS.items())


@pytest.fixture(scope="module")
def counts() -> str:
    """Six weeks in which nobody moves on the days of the strike."""
    table = city()
    return "time,cell,count\n" + "".join(
        f"{time:%Y-%m-%d %H:%M},{cell},{int(count)}\n"
        for time, row in zip(table.times, table.counts, strict=True)
        for cell, count in zip("ABC", row, strict=True)
    )


@pytest.fixture
def visit(counts: str) -> Visit:
    opened = Visit("Data").upload("counts.csv", counts).go("Learn")
    assert not opened.errors
    return opened


def labelled(visit: Visit, text: str) -> Visit:
    visit.at.file_uploader(key="counts.day_labels").upload("days.csv", text.encode(), "text/csv")
    visit.at.run()
    assert not visit.at.exception
    return visit


def settings(visit: Visit):
    return visit.at.session_state["app"].count_learn


def said(visit: Visit) -> str:
    return "\n".join([*(block.value for block in visit.at.markdown), visit.captions])


def test_holidays_are_those_of_a_country_and_of_a_part_of_it(visit: Visit) -> None:
    assert settings(visit).holidays is None
    visit.set("counts.holidays", "DE")
    assert settings(visit).holidays == "DE"
    visit.set("counts.holidays.DE", "BW")
    assert settings(visit).holidays == "DE-BW"
    # Easter Monday, and the first and ninth of May are counted days.
    assert "holiday 3" in visit.captions
    visit.go("Grid").go("Learn")
    assert (visit.value("counts.holidays"), visit.value("counts.holidays.DE")) == ("DE", "BW")
    visit.set("counts.holidays", "JP")
    assert settings(visit).holidays == "JP"
    visit.set("counts.holidays", "")
    assert settings(visit).holidays is None
    assert not visit.errors


def test_labels_of_a_file_are_taken_and_left_out_again(visit: Visit) -> None:
    labelled(visit, FILE)
    assert settings(visit).day_labels == tuple(sorted(LABELS.items()))
    assert "strike 6" in visit.captions
    kept = settings(visit).day_labels
    labelled(visit, "date,label\n05/03/2024,a\n06/04/2024,b\n")
    assert len(visit.errors) == 1
    assert settings(visit).day_labels == kept
    visit.press("counts.day_labels.drop")
    assert settings(visit).day_labels == ()
    assert "counts.day_labels.drop" not in visit.keys("button")


def test_text_of_a_file_of_labels_is_shown_as_it_is(visit: Visit) -> None:
    labelled(visit, f"date,label\n{DATES[1]},**<b>bold</b>**\n")
    assert r"\*\*" in said(visit)
    assert "<b>" not in said(visit).replace(r"\<b\>", "").replace("&lt;", "")
    assert not visit.errors


def test_what_was_learned_tells_its_types(visit: Visit) -> None:
    for key, value in QUICK.items():
        visit.set(key, value)
    labelled(visit, FILE).learn()
    assert not visit.errors
    types = next(t.value for t in visit.at.dataframe if "Told apart" in t.value).set_index("Type")
    assert types["Days"].to_dict() == {"weekday": 18, "weekend": 12, "match": 6, "strike": 6}
    assert types.index[types["Told apart"]].tolist() == ["strike"]
    assert types.loc["strike", "Score gained"] > 2 * types.loc["strike", "Standard error"]
    tried = next(t.value for t in visit.at.dataframe if "Days apart" in t.value)
    assert tried.loc[tried["Chosen"], "Days apart"].tolist() == ["strike"]
    assert "Weekends apart" not in tried


def test_there_is_no_control_where_times_of_day_are_one(visit: Visit) -> None:
    assert "counts.holidays" in visit.keys("selectbox")
    visit.set("counts.time", "one")
    assert "counts.holidays" not in visit.keys("selectbox")


def test_counts_without_dates_refuse_names_of_days() -> None:
    mlit = mlit_csv(simulate_city(4, 4, 75, 2_000, random_state=0))
    visit = Visit("Data").upload("mlit.csv", mlit).go("Learn")
    assert visit.at.button(key="start").disabled is False
    visit.set("counts.holidays", "JP")
    assert len(visit.errors) == 1
    assert visit.at.button(key="start").disabled is True
    visit.set("counts.holidays", "")
    assert not visit.errors


def test_days_of_a_type_are_a_side_of_what_changed_with_one_click(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, study = count_study_steps(city(), SETTINGS)
    monkeypatch.setattr(cached, "result", lambda _: study)
    now = visit.at.session_state["app"]
    now.counts.finished = Run("learned before", "counts.csv", study.settings)
    now.show("counts")
    visit.go("Evidence").set("evidence.part", "What changed").set("evidence.kind", "days")
    at = list(study.days_by_type).index("strike")
    visit.press(f"evidence.days.before.type.{at}")
    strike = [DATES[day] for day in STRIKE]
    assert visit.at.multiselect("evidence.days.before").value == strike
    visit.press("evidence.days.after.type.0")
    weekdays = visit.at.multiselect("evidence.days.after").value
    assert tuple(weekdays) == study.days_by_type["weekday"]
    assert not visit.errors
    visit.press(f"evidence.days.after.type.{at}")
    assert visit.at.multiselect("evidence.days.after").value == strike
    assert visit.at.multiselect("evidence.days.before").value == []
