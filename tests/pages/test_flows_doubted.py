"""Flows from groups that say how sure they are, on the page Flows."""

import numpy as np
import pytest

from agg_core.exports.page import html_page
from agg_core.study.people import StudyResult
from agg_core.study.result import ESTIMATE
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny
from tests.agg_core.plotting.unpacked import unpacked_page
from tests.pages.visit import Visit
from ui.cached import store

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


@pytest.mark.parametrize("step", [None, 1])
def test_map_and_numbers_say_how_sure_they_are(result: StudyResult, step: int | None) -> None:
    address = {} if step is None else {"step": str(step)}
    visit = opened(result, **address)
    (sent,) = visit.maps
    rows = result.rows(TIME, step=step)
    moves = rows.loc[(rows["origin"] != rows["dest"]) & (rows["count"] >= 0.02)]
    pairs = list(zip(moves["origin"], moves["dest"], strict=True))
    for column in ("count", "low", "high", "resolved"):
        expected = dict(zip(pairs, moves[column].astype(float), strict=True))
        got = sent.flows("estimate", TIME, step, column)
        assert got == pytest.approx(expected, rel=1e-6)
    # What is known needs no interval.
    assert "low" not in sent.table("single", TIME, step)
    table = next(found.value for found in visit.at.dataframe if "Resolved" in found.value)
    assert list(table) == ["From", "To", "People", "Low", "High", "Resolved", "M = 1"]
    largest = result.table(TIME, step=step)
    largest = largest.loc[largest["origin"] != largest["dest"]]
    for name, column in (("People", "count"), ("Low", "low"), ("High", "high")):
        np.testing.assert_allclose(table[name], largest[column])


def test_sums_of_a_cell_have_their_interval_but_for_a_single_step(result: StudyResult) -> None:
    (sent,) = opened(result).maps
    into = np.zeros((10, 10))
    into[:, 4], into[4, 4] = 1.0, 0.0
    ends = result.interval(TIME, ESTIMATE, into)
    assert ends is not None
    got = [sent.total("estimate", TIME, f"{end}_incoming")[4] for end in ("low", "high")]
    assert got == pytest.approx([float(end) for end in ends])
    assert "low_incoming" not in sent.table("estimate", TIME, 0)


def test_the_page_to_take_away_has_them_too(result: StudyResult) -> None:
    got = unpacked_page(html_page(result, TIME, view={"resolved": True}).decode())
    assert got.header["view"]["resolved"] is True
    assert set(got.flows("estimate", TIME, column="resolved").values()) == {0, 1}
