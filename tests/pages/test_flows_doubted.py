"""Flows from groups that say how sure they are, on the page Flows."""

import numpy as np
import pytest

from agg_core.exports.page import html_page
from agg_core.study.people import StudyResult
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny
from tests.pages.visit import Visit
from ui.cached import store
from ui.views import KEY

TIME = "08:00"


@pytest.fixture(scope="module")
def result() -> StudyResult:
    settings = tiny.settings(WindowSettings(60, 3, (TIME,)), replicates=3, threshold=0.5)
    made = tiny.run(tiny.people(outside=True), settings)[1]
    assert isinstance(made, StudyResult)
    return made


def opened(result: StudyResult, **address: str) -> Visit:
    run = store().save(result, "sixty")
    visit = Visit("Flows", run=run.id, at=TIME, above="0.5", **address)
    assert not visit.errors
    return visit


def unsure(visit: Visit) -> list[set[tuple[int, int]]]:
    """Arrows of each map that the data do not resolve."""
    return [
        {(a["origin"], a["dest"]) for a in deck["arrows"] if "not resolved" in a["what"]}
        for deck in visit.decks()
    ]


@pytest.mark.parametrize("step", [None, 1])
def test_arrows_and_numbers_say_how_sure_they_are(result: StudyResult, step: int | None) -> None:
    address = {} if step is None else {"step": str(step)}
    visit = opened(result, **address)
    rows = result.rows(TIME, step=step)
    inside = (rows[["origin", "dest"]] < 9).all(axis=1) & (rows["origin"] != rows["dest"])
    drawn = rows.loc[inside & (rows["count"] > 0.5)]
    faint = drawn.loc[~drawn["resolved"]]
    pairs = set(zip(faint["origin"], faint["dest"], strict=True))
    # What is known needs no interval: no arrow of the truth is faint.
    assert unsure(visit) == [pairs, set()]
    table = next(found.value for found in visit.at.dataframe if "Resolved" in found.value)
    assert list(table) == ["From", "To", "People", "Low", "High", "Resolved", "M = 1"]
    largest = result.table(TIME, step=step)
    largest = largest.loc[largest["origin"] != largest["dest"]]
    for name, column in (("People", "count"), ("Low", "low"), ("High", "high")):
        np.testing.assert_allclose(table[name], largest[column])


def test_only_resolved_flows_are_left_if_only_these_are_asked_for(result: StudyResult) -> None:
    visit = opened(result, resolved="1")
    assert unsure(visit) == [set(), set()]
    sure = result.rows(TIME)
    sure = sure.loc[sure["resolved"] & (sure["count"] > 0.5)]
    assert {(a["origin"], a["dest"]) for a in visit.decks()[0]["arrows"]} <= set(
        zip(sure["origin"], sure["dest"], strict=True)
    )
    assert len(visit.decks()[1]["arrows"]) == len(opened(result).decks()[1]["arrows"])
    visit.set(f"{KEY}show", "difference")
    assert not visit.errors
    rows = result.rows(TIME)
    rows = rows.loc[rows["resolved"]]
    pairs = set(zip(rows["origin"], rows["dest"], strict=True))
    assert {(a["origin"], a["dest"]) for a in visit.decks()[0]["arrows"]} <= pairs


def test_sums_of_a_cell_have_their_interval_but_for_a_single_step(result: StudyResult) -> None:
    totals = opened(result, cell="4").at.dataframe[0].value
    assert {"Low", "High"} <= set(totals)
    into = np.zeros((10, 10))
    into[:, 4], into[4, 4] = 1.0, 0.0
    ends = result.interval(TIME, ESTIMATE, into)
    assert ends is not None
    assert totals.loc[0, ["Low", "High"]].tolist() == pytest.approx([float(end) for end in ends])
    of_step = opened(result, cell="4", step="0").at.dataframe[0].value
    assert not {"Low", "High"} & set(of_step)


@pytest.mark.parametrize("resolved_only", [False, True])
def test_the_page_to_take_away_draws_them_too(result: StudyResult, resolved_only: bool) -> None:
    text = html_page(result, TIME, threshold=0.5, resolved_only=resolved_only).decode()
    assert ("not resolved by the data" in text) != resolved_only
