"""What the page Flows gives away: files, and the limit within which they are."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from agg_core.evidence.attack import attack_on
from agg_core.evidence.privacy import LEAST_PEOPLE, Limit
from agg_core.store.saved_runs import SavedRun
from agg_core.study.people import StudyResult
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.agg_core.plotting.unpacked import unpacked_page
from tests.pages.visit import Visit
from ui.cached import store

LEAST = "view.export.least"
FORMAT = "view.export.format"


@pytest.fixture(scope="module")
def result() -> StudyResult:
    window = WindowSettings(60, 3, ("02:00", "08:00"))
    made = tiny.run(tiny.people(), tiny.settings(window, iterations=2))[1]
    assert isinstance(made, StudyResult)
    return made


@pytest.fixture
def saved(result: StudyResult) -> SavedRun:
    return store().save(result, "sixty")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable[[], bytes]]]:
    """Name and maker of each file that was offered."""
    offered: list[tuple[str, Callable[[], bytes]]] = []

    def button(_: str, data: Callable[[], bytes], **about: Any) -> None:
        offered.append((about["file_name"], data))

    monkeypatch.setattr(st, "download_button", button)
    return offered


def test_flows_of_few_followed_people_are_withheld_unless_one_chooses_otherwise(
    saved: SavedRun, result: StudyResult, made: list[tuple[str, Callable[[], bytes]]]
) -> None:
    visit = Visit("Flows", run=saved.id, at="08:00").set(FORMAT, "flows-csv")
    assert not visit.errors
    assert visit.value(LEAST) == LEAST_PEOPLE
    assert made[-1][0] == "flows-csv-08-00-at-least-10-people.csv"
    rows = list(csv.DictReader(io.StringIO(made[-1][1]().decode())))
    assert all(float(row[source] or 10) >= 10 for row in rows for source in result.sources)
    visit.set(LEAST, 0)
    assert made[-1][0] == "flows-csv-08-00.csv"
    everybody = list(csv.DictReader(io.StringIO(made[-1][1]().decode())))
    assert len(everybody) == len(result.values("08:00")) > len(rows)


def test_the_page_to_take_away_is_limited_with_its_view(
    saved: SavedRun, result: StudyResult, made: list[tuple[str, Callable[[], bytes]]]
) -> None:
    visit = Visit("Flows", run=saved.id, at="08:00").set(LEAST, 3)
    visit.tell(threshold=0.5, cells=[4])
    name, maker = made[-1]
    assert name == "flow-map-08-00-at-least-3-people.html"
    page = unpacked_page(maker().decode())
    assert (page.header["view"]["threshold"], page.header["view"]["cells"]) == (0.5, [4])
    for source in result.sources:
        for time in result.times:
            shown = page.flows(source, time)
            assert all(count >= 3 for count in shown.values())
    assert (
        page.flows("estimate", "08:00").items() < visit.maps[0].flows("estimate", "08:00").items()
    )


def test_what_cannot_be_limited_says_so_and_the_limit_stays(
    saved: SavedRun, made: list[tuple[str, Callable[[], bytes]]]
) -> None:
    visit = Visit("Flows", run=saved.id).set(LEAST, 4).set(FORMAT, "parameters-npz")
    assert LEAST not in visit.keys("number_input")
    assert "everybody" in visit.captions
    assert made[-1][0] == "parameters-npz.npz"
    assert visit.set(FORMAT, "omx").value(LEAST) == 4


def test_nothing_is_withheld_from_counts_unless_one_asks_for_it() -> None:
    visit = Visit("Flows", run=store().save(counted.both(), "counts").id)
    assert not visit.errors
    assert visit.value(LEAST) == 0


def test_numbers_are_rounded_and_one_click_says_who_could_be_followed(
    saved: SavedRun, result: StudyResult, made: list[tuple[str, Callable[[], bytes]]]
) -> None:
    visit = Visit("Flows", run=saved.id, at="08:00").set(FORMAT, "flows-csv")
    visit.set(LEAST, 2).set("view.export.round", 3)
    assert not visit.errors
    rows = list(csv.DictReader(io.StringIO(made[-1][1]().decode())))
    shown = [float(row["estimate"]) for row in rows if row["estimate"]]
    assert shown
    assert all(count % 3 == 0 for count in shown)
    visit.press("flows.found")
    assert not visit.errors
    expected = attack_on(result, "08:00", Limit(2, 3))
    assert f"{expected.steps:.0%} of them" in visit.captions.replace("\\", "")
    visit.go("Evidence").press("evidence.found")
    assert not visit.errors
    assert f"{attack_on(result, '08:00').steps:.0%} of them" in visit.captions.replace("\\", "")


def test_of_counts_nobody_can_be_followed(made: list[tuple[str, Callable[[], bytes]]]) -> None:
    visit = Visit("Flows", run=store().save(counted.drawn(), "counts").id)
    assert "flows.found" not in visit.keys("button")
    assert made
