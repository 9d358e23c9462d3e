"""The page Flows on a saved run: its map, its figures, and the address of a picture."""

import pytest

from agg_core.store.saved_runs import SavedRun
from agg_core.study.people import StudyResult
from agg_core.study.settings import WindowSettings
from agg_core.tables.flows import compare_flows
from tests.agg_core import tiny
from tests.pages.visit import Visit, cleared_session
from ui.cached import store

TIMES = ("02:00", "08:00")
THRESHOLD = 2.0
LABELS = ("Common part", "Correlation", "Precision", "Recall", "Total movement")


@pytest.fixture(scope="module")
def result() -> StudyResult:
    settings = tiny.settings(WindowSettings(60, 3, TIMES), iterations=3, threshold=THRESHOLD)
    made = tiny.run(tiny.people(outside=True), settings)[1]
    assert isinstance(made, StudyResult)
    return made


@pytest.fixture
def saved(result: StudyResult) -> SavedRun:
    return store().save(result, "sixty")


@pytest.fixture
def visit(saved: SavedRun) -> Visit:
    opened = Visit("Flows", run=saved.id, at="08:00")
    assert not opened.errors
    return opened


def test_an_address_opens_the_run_with_its_figures(visit: Visit, result: StudyResult) -> None:
    figures = compare_flows(
        result.matrix("08:00", "estimate"), result.matrix("08:00", "single"), THRESHOLD
    )
    assert visit.figures["Common part"] == f"{figures.cpc:.3f}"
    assert set(visit.figures) == set(LABELS)
    assert visit.address["at"] == "08:00"
    assert (visit.view["time"], visit.view["threshold"]) == ("08:00", THRESHOLD)


def test_the_map_has_the_flows_of_all_times_and_sources(visit: Visit, result: StudyResult) -> None:
    (sent,) = visit.maps
    for time in TIMES:
        for source in ("estimate", "single", "counted"):
            rows = result.rows(time, source)
            moves = rows.loc[(rows["origin"] != rows["dest"]) & (rows["count"] >= 0.02)]
            expected = zip(moves["origin"], moves["dest"], strict=True)
            assert sent.flows(source, time) == pytest.approx(
                dict(zip(expected, moves["count"], strict=True)), rel=1e-6
            )


def test_what_is_chosen_on_the_map_moves_figures_table_and_address(
    visit: Visit, result: StudyResult
) -> None:
    visit.tell(time="02:00", until="02:00", threshold=0.5, truth="counted", cells=[4, 5])
    assert not visit.errors
    figures = compare_flows(result.matrix("02:00"), result.matrix("02:00", "counted"), 0.5)
    assert visit.figures["Common part"] == f"{figures.cpc:.3f}"
    assert visit.address["at"] == "02:00"
    assert visit.address["cell"] == "4,5"
    assert visit.address["beside"] == "counted"
    table = visit.at.dataframe[-1].value
    chosen = {result.states.names[cell] for cell in (4, 5)}
    assert len(table)
    assert all(row.From in chosen or row.To in chosen for row in table.itertuples())
    visit.tell(direction="in")
    table = visit.at.dataframe[-1].value
    assert all(row.To in chosen and row.From not in chosen for row in table.itertuples())


def test_the_map_keeps_what_it_has_while_its_view_changes(visit: Visit) -> None:
    before = visit.at.get("bidi_component")[-1].proto.bytes
    visit.tell(time="02:00", until="02:00")
    assert visit.address["at"] == "02:00"
    assert visit.at.get("bidi_component")[-1].proto.bytes == before, "nothing is sent again"


def test_an_address_brings_the_whole_view_back(saved: SavedRun) -> None:
    visit = Visit("Flows", run=saved.id)
    visit.tell(
        time="02:00", until="08:00", truth="counted", threshold=0.5, cells=[4], direction="in",
        top_n=7, show="difference", net=True, clusters=True, shade="none",
        camera={"longitude": 139.5, "latitude": 35.5, "zoom": 9.5},
    )  # fmt: skip
    address = visit.address
    assert address["look"] == "139.50000,35.50000,9.50"
    with cleared_session():  # a colleague, elsewhere
        other = Visit("Flows", **address)
        assert other.address == address
        assert {**other.view, "asked": ""} == {
            **other.view, "asked": "", "time": "02:00", "until": "08:00", "truth": "counted",
            "threshold": 0.5, "cells": [4], "direction": "in", "top_n": 7, "show": "difference",
            "net": True, "clusters": True, "shade": "none",
            "camera": {"longitude": 139.5, "latitude": 35.5, "zoom": 9.5},
        }  # fmt: skip


def test_an_address_of_before_is_followed(saved: SavedRun) -> None:
    visit = Visit("Flows", run=saved.id, at="08:00", block="4", block_above="0.5")
    assert not visit.errors
    assert (visit.view["cells"], visit.view["cell_threshold"]) == ([4], 0.5)


@pytest.mark.parametrize("run", ["0" * 32, "../../etc/passwd", ""])
def test_an_address_of_no_run_is_a_sentence_and_says_what_to_do(run: str) -> None:
    visit = Visit("Flows", run=run)
    assert len(visit.errors) == 1
    assert "no flows yet" in visit.at.info[0].value


def test_what_an_address_asks_in_vain_is_named(saved: SavedRun) -> None:
    visit = Visit("Flows", run=saved.id, at="09:00", cell="4000", net="1")
    assert ["at, cell" in error for error in visit.errors] == [True]
    assert visit.view["net"] is True
    assert not visit.tell(net=False).errors


def test_what_an_earlier_map_tells_no_longer_counts(visit: Visit, saved: SavedRun) -> None:
    visit.tell(time="02:00", until="02:00")
    visit.at.session_state["flows.asked"] = 99
    visit.tell(asked="1", time="08:00", until="08:00")
    assert visit.address["at"] == "02:00"


def test_the_view_survives_a_change_of_page(visit: Visit) -> None:
    visit.tell(threshold=0.5, cells=[4], net=True, shade="stays")
    visit.go("Lab").go("Flows")
    view = visit.view
    assert (view["cells"], view["net"], view["shade"]) == ([4], True, "stays")
    visit.tell(time="02:00", until="02:00")
    assert visit.address["cell"] == "4"


def test_the_address_to_copy_holds_the_view_and_no_more(visit: Visit, saved: SavedRun) -> None:
    visit.tell(cells=[4])
    code = visit.at.code[0].value
    assert f"run={saved.id}" in code
    assert "cell=4" in code
    assert "theme=light" in code
