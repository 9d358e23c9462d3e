"""What happened beside what usually happens on the page Flows, by the numbers written by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from agg_core.study.result import ESTIMATE
from tests.agg_core import counted
from tests.pages.visit import Visit
from ui.cached import store
from ui.views import KEY


def opened(study: object, **address: str) -> Visit:
    run = store().save(study, "week")  # type: ignore[arg-type]
    visit = Visit("Flows", run=run.id, at=counted.MORNING, above="0.4", **address)
    assert not visit.errors
    return visit


def headings(visit: Visit) -> list[str]:
    return [header.value for header in visit.at.header]


def said(visit: Visit) -> str:
    return "\n".join(
        str(block.value)
        for blocks in (visit.at.caption, visit.at.markdown, visit.at.header, visit.at.warning)
        for block in blocks
    )


def test_both_stand_side_by_side_with_their_numbers() -> None:
    visit = opened(counted.both())
    happened, usual = (
        {(a["origin"], a["dest"]): a["count"] for a in deck["arrows"]} for deck in visit.decks()
    )
    assert happened == {(0, 1): 8.0, (1, 0): 0.5, (5, 2): 4.0}
    assert usual == {(0, 1): 6.0, (1, 0): 1.0}
    assert ["happened" in name for name in headings(visit)] == [True, False]
    assert "usually" in headings(visit)[1]
    assert f"{KEY}truth" not in visit.keys("selectbox"), "there is nothing to choose"
    assert "truth" not in said(visit)
    table = visit.at.dataframe[0].value
    rows = table.loc[table["From"] == "cell 0"].set_index("To")
    assert rows.loc["cell 1", ["People", "Low", "High", "Usually"]].tolist() == [8.0, 6.5, 9.5, 6.0]
    assert not visit.at.warning


def test_the_difference_is_what_happened_minus_the_usual() -> None:
    visit = opened(counted.both(), show="difference", differing="0.4", beside="usual")
    (deck,) = visit.decks()
    found = {(a["origin"], a["dest"]): a["count"] for a in deck["arrows"]}
    assert found == {(0, 1): 2.0, (1, 0): -0.5, (5, 2): 4.0}
    assert visit.address["show"] == "difference"
    assert "truth" not in said(visit)
    titles = str([chart["layout"] for chart in visit.charts()])
    assert "truth" not in titles
    # Neither way of (1, 0) is resolved; that of (0, 1) is, on both sides.
    visit.set(f"{KEY}resolved", True)
    (deck,) = visit.decks()
    assert {(a["origin"], a["dest"]) for a in deck["arrows"]} == {(0, 1), (5, 2)}


def test_what_is_left_out_of_a_map_is_still_told_beside_an_arrow() -> None:
    visit = opened(counted.both(), resolved="1")
    (way,) = [a for a in visit.decks()[0]["arrows"] if (a["origin"], a["dest"]) == (5, 2)]
    assert "usual: 0.0" in way["what"].lower()
    way = next(a for a in visit.decks()[1]["arrows"] if (a["origin"], a["dest"]) == (0, 1))
    assert "happened: 8.0" in way["what"].lower()


def test_a_cell_has_the_numbers_of_both() -> None:
    visit = opened(counted.both(), cell="0")
    totals = visit.at.dataframe[0].value
    assert list(totals)[1:] == ["Happened", "Usual"]
    # In, out, staying, in minus out.
    assert totals["Happened"].tolist() == [0.5, 10.5, 18.0, -10.0]
    assert totals["Usual"].tolist() == [1.0, 7.5, 20.0, -6.5]


def test_sums_of_a_cell_have_their_interval_where_there_are_draws() -> None:
    study = counted.drawn()
    totals = opened(study, cell="0").at.dataframe[0].value
    assert list(totals)[1:] == ["Happened", "Usual", "Low", "High"]
    into, out_of = np.zeros((10, 10)), np.zeros((10, 10))
    into[1:, 0], out_of[0, 1:] = 1.0, 1.0
    stay = np.diag(np.eye(10)[0])
    for row, weights in enumerate((into, out_of, stay, into - out_of)):
        ends = study.interval(counted.MORNING, ESTIMATE, weights)
        assert totals.loc[row, ["Low", "High"]].tolist() == pytest.approx(ends)


@pytest.mark.parametrize(("r_hat", "warned"), [(1.2, True), (1.05, False), (None, False)])
def test_draws_that_have_not_settled_are_warned_of(r_hat: float | None, warned: bool) -> None:
    visit = opened(counted.both(r_hat))
    assert ["R-hat 1.20" in warning.value for warning in visit.at.warning] == [True] * warned


def test_a_run_saved_before_says_that_it_shows_the_usual() -> None:
    visit = opened(counted.study())
    assert len(visit.decks()) == 1
    assert "Shown is what usually happens" in visit.captions
    assert "what usually happens" in visit.captions
    assert "Usually" not in visit.at.dataframe[0].value


def test_cells_without_a_place_are_a_table_of_both() -> None:
    visit = opened(replace(counted.both(), grid=None))
    assert not visit.decks()
    assert "what happened" in visit.captions
    assert visit.at.dataframe[0].value["Usually"].tolist()
    visit.set(f"{KEY}cell", 4)
    assert not visit.errors
    visit.set(f"{KEY}show", "difference")
    assert not visit.errors


@pytest.mark.parametrize(("smaller", "decimals"), [(1, 2), (40, 3), (0.01, 1)])
def test_people_are_written_with_as_many_figures_as_their_size_needs(
    smaller: float, decimals: int
) -> None:
    """The largest move of the morning is 8.0 people, or 0.2, or 800."""
    study = counted.both()
    assert study.happened is not None
    flows = study.happened.flows
    sized = flows.assign(count=flows["count"] / smaller)
    happened = replace(study.happened, flows=sized)
    visit = opened(replace(study, happened=happened))
    columns = json.loads(visit.at.dataframe[0].proto.columns)
    assert columns["People"]["type_config"]["format"] == f"%.{decimals}f"
