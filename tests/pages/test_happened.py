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


def opened(study: object, **address: str) -> Visit:
    run = store().save(study, "week")
    visit = Visit("Flows", run=run.id, at=counted.MORNING, above="0.4", **address)
    assert not visit.errors
    return visit


def headings(visit: Visit) -> list[str]:
    return [source["heading"] for source in visit.maps[0].header["sources"]]


def said(visit: Visit) -> str:
    return "\n".join(
        str(block.value)
        for blocks in (visit.at.caption, visit.at.markdown, visit.at.header, visit.at.warning)
        for block in blocks
    )


def test_both_stand_side_by_side_with_their_numbers() -> None:
    visit = opened(counted.both())
    (sent,) = visit.maps
    happened, usual = (sent.flows(source, counted.MORNING) for source in ("estimate", "usual"))
    assert (happened[0, 1], happened[1, 0], happened[5, 2]) == (8.0, 0.5, 4.0)
    assert (usual[0, 1], usual[1, 0]) == (6.0, 1.0)
    assert (5, 2) not in usual
    assert visit.view["show"] == "both"
    assert ["happened" in name for name in headings(visit)] == [True, False]
    assert "usually" in headings(visit)[1]
    assert "truth" not in said(visit)
    table = visit.at.dataframe[0].value
    rows = table.loc[table["From"] == "cell 0"].set_index("To")
    assert rows.loc["cell 1", ["People", "Low", "High", "Usually"]].tolist() == [8.0, 6.5, 9.5, 6.0]
    assert not visit.at.warning


def test_the_difference_is_of_what_happened_and_the_usual() -> None:
    visit = opened(counted.both(), show="difference", differing="0.4", beside="usual")
    view = visit.view
    assert (view["show"], view["truth"], view["difference_threshold"]) == (
        "difference", "usual", 0.4,
    )  # fmt: skip
    assert visit.address["show"] == "difference"
    assert "truth" not in said(visit)


def test_resolved_flows_alone_are_a_choice_of_the_map_and_the_table() -> None:
    visit = opened(counted.both()).tell(resolved=True)
    assert visit.address["resolved"] == "1"
    assert visit.at.dataframe[0].value["Resolved"].all()
    sure = visit.maps[0].flows("estimate", counted.MORNING, column="resolved")
    assert (sure[0, 1], sure[1, 0], sure[5, 2]) == (1, 0, 1)


def test_the_map_has_the_totals_of_both() -> None:
    (sent,) = opened(counted.both()).maps
    totals = {
        source: [sent.total(source, counted.MORNING, n)[0] for n in ("incoming", "outgoing")]
        for source in ("estimate", "usual")
    }
    assert totals == {"estimate": [0.5, 10.5], "usual": [1.0, 7.5]}


def test_sums_of_cells_have_their_interval_where_there_are_draws() -> None:
    study = counted.drawn()
    (sent,) = opened(study).maps
    into, out_of = np.zeros((10, 10)), np.zeros((10, 10))
    into[1:, 0], out_of[0, 1:] = 1.0, 1.0
    for name, weights in (("incoming", into), ("outgoing", out_of)):
        ends = study.interval(counted.MORNING, ESTIMATE, weights)
        got = [
            sent.total("estimate", counted.MORNING, f"{end}_{name}")[0] for end in ("low", "high")
        ]
        assert got == pytest.approx(ends)
    assert "low_incoming" not in opened(counted.both()).maps[0].table("estimate", counted.MORNING)


@pytest.mark.parametrize(("r_hat", "warned"), [(1.2, True), (1.05, False), (None, False)])
def test_draws_that_have_not_settled_are_warned_of(r_hat: float | None, warned: bool) -> None:
    visit = opened(counted.both(r_hat))
    assert ["R-hat 1.20" in warning.value for warning in visit.at.warning] == [True] * warned


def test_a_run_saved_before_says_that_it_shows_the_usual() -> None:
    visit = opened(counted.study())
    assert headings(visit) == ["What usually happens, learned from counts alone"]
    assert "Shown is what usually happens" in visit.captions
    assert "what usually happens" in visit.captions
    assert "Usually" not in visit.at.dataframe[0].value


def test_cells_without_a_place_are_a_table_of_both() -> None:
    visit = opened(replace(counted.both(), grid=None))
    assert not visit.maps
    assert "what happened" in visit.captions
    assert visit.at.dataframe[0].value["Usually"].tolist()


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
