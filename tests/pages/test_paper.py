"""The figure for slides on the page Flows."""

import json
from typing import Any

import pytest

from agg_core.study.people import StudyResult
from agg_core.study.scales import first_threshold
from tests.agg_core import tiny
from tests.agg_core.study import test_days_of_people as people
from tests.pages.visit import Visit
from ui.cached import store

TIMES = ("02:00", "08:00", "14:00")


@pytest.fixture(scope="module")
def result() -> StudyResult:
    window = tiny.WindowSettings(60, 3, TIMES)
    made = tiny.run(tiny.people(outside=True), tiny.settings(window, iterations=2))[1]
    assert isinstance(made, StudyResult)
    return made


@pytest.fixture
def visit(result: StudyResult) -> Visit:
    return Visit("Flows", run=store().save(result, "<b>sixty</b>").id)


def opened(visit: Visit) -> Visit:
    visit.at.session_state["paper.open"] = True
    visit.at.run()
    assert not visit.at.exception
    return visit


def figure(visit: Visit) -> tuple[list[str], dict[str, Any]]:
    """Texts of the figure, and what its camera does."""
    for chart in visit.at.get("plotly_chart"):
        layout = json.loads(chart.proto.spec)["layout"]
        said = [note["text"] for note in layout.get("annotations", ())]
        if any("on one scale" in text for text in said):
            return said, json.loads(chart.proto.config)
    raise AssertionError("there is no figure for slides")


def test_it_is_not_drawn_before_it_is_opened(visit: Visit) -> None:
    with pytest.raises(AssertionError, match="no figure"):
        figure(visit)
    assert "view.paper.times" not in visit.keys("multiselect")


def test_it_has_a_row_for_each_chosen_time_in_the_order_of_the_day(visit: Visit) -> None:
    said, _ = figure(opened(visit))
    assert [time for time in TIMES if any(f"<b>{time}</b>" in text for text in said)] == list(TIMES)
    visit.set("view.paper.times", ["14:00", "02:00"])
    rows = [text for text in figure(visit)[0] if "CPC" in text]
    assert ["02:00" in rows[0], "14:00" in rows[1], len(rows)] == [True, True, 2]
    visit.set("view.paper.times", [])
    assert any("at least one time" in note.value for note in visit.at.info)


def test_on_chosen_days_it_is_of_these() -> None:
    first, second = people.DAYS
    run = store().save(people.two_days(), "two days")
    said, _ = figure(opened(Visit("Flows", run=run.id, at="01:00", day=first)))
    assert sum(first in text for text in said) >= 2
    assert not any(second in text for text in said)
    (row,) = [text for text in said if "CPC" in text and "01:00" in text]
    figures = people.two_days().of_days([first]).at("01:00").vs_single
    assert row.endswith(f"CPC {figures.cpc:.2f}<br>movement × {figures.total_ratio:.2f}")


def test_its_words_say_what_it_shows_and_a_title_cannot_act(
    visit: Visit, result: StudyResult
) -> None:
    said, _ = figure(opened(visit))
    (source,) = [text for text in said if "on one scale" in text]
    told = source.replace("<br>", " ")
    assert "&lt;b&gt;sixty&lt;/b&gt;: 60 people, learned from groups of M = 5." in told
    assert f"above {first_threshold(result):g} people per 60-minute step" in told
    morning = result.at("08:00").vs_single
    row = next(text for text in said if "08:00" in text)
    assert row.endswith(f"CPC {morning.cpc:.2f}<br>movement × {morning.total_ratio:.2f}")


def test_the_camera_saves_a_large_picture_in_the_chosen_format(visit: Visit) -> None:
    camera = figure(opened(visit))[1]["toImageButtonOptions"]
    assert (camera["format"], camera["width"] * camera["scale"]) == ("png", 2000)
    visit.set("view.paper.format", "svg")
    assert figure(visit)[1]["toImageButtonOptions"]["format"] == "svg"
    assert "saves it as SVG" in visit.captions
