"""The page Flows on a saved run: its controls, its figures, and the address of a picture."""

import pytest

from agg_core.plotting.flow_maps import drawn_flows
from agg_core.store.saved_runs import SavedRun
from agg_core.study.people import StudyResult
from agg_core.study.settings import WindowSettings
from agg_core.tables.flows import cell_totals, compare_flows, net_flows, partners_of_cell
from tests.agg_core import tiny
from tests.pages.visit import Visit, cleared_session
from ui.cached import store
from ui.views import KEY

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


def choose(visit: Visit, **values: object) -> Visit:
    for name, value in values.items():
        visit.set(KEY + name, value)
    assert not visit.errors
    return visit


def arrows(visit: Visit) -> list[dict[tuple[int, int], float]]:
    return [
        {(arrow["origin"], arrow["dest"]): arrow["count"] for arrow in deck["arrows"]}
        for deck in visit.decks()
    ]


def drawn(
    result: StudyResult, source: str, step: int | None = None, **how: object
) -> dict[tuple[int, int], float]:
    table = result.table("08:00", source, step)
    frame = drawn_flows(result.settings.grid.make(), table, **{"threshold": THRESHOLD, **how}).frame
    rows = zip(frame["origin"], frame["dest"], frame["count"], strict=True)
    return {(int(a), int(b)): round(float(count), 2) for a, b, count in rows}


def test_an_address_opens_the_run_with_its_figures(visit: Visit, result: StudyResult) -> None:
    figures = compare_flows(
        result.matrix("08:00", "estimate"), result.matrix("08:00", "single"), THRESHOLD
    )
    assert visit.figures["Common part"] == f"{figures.cpc:.3f}"
    assert set(visit.figures) == set(LABELS)
    assert arrows(visit) == [drawn(result, "estimate"), drawn(result, "single")]
    assert visit.address["at"] == "08:00"


def test_an_address_brings_the_whole_view_back(saved: SavedRun) -> None:
    visit = Visit("Flows", run=saved.id)
    choose(visit, time="02:00", truth="counted", threshold=0.5, cell=4, direction="in", top_n=7,
           show="difference", net=True)  # fmt: skip
    address, before = visit.address, visit.decks()
    with cleared_session():  # a colleague, elsewhere
        other = Visit("Flows", **address)
        assert other.address == address
        assert other.decks() == before
        assert other.value(f"{KEY}cell") == 4


@pytest.mark.parametrize("run", ["0" * 32, "../../etc/passwd", ""])
def test_an_address_of_no_run_is_a_sentence_and_says_what_to_do(run: str) -> None:
    visit = Visit("Flows", run=run)
    assert len(visit.errors) == 1
    assert "no flows yet" in visit.at.info[0].value


def test_what_an_address_asks_in_vain_is_named(saved: SavedRun) -> None:
    visit = Visit("Flows", run=saved.id, at="09:00", cell="4000", net="1")
    assert ["at, cell" in error for error in visit.errors] == [True]
    assert visit.value(f"{KEY}net") is True
    choose(visit, net=False)


def test_a_cell_shows_its_own_flows_and_numbers(visit: Visit, result: StudyResult) -> None:
    tables = [result.table("08:00", source) for source in ("estimate", "single")]
    for direction in ("both", "in", "out"):
        choose(visit, cell=4)
        choose(visit, direction=direction)
        how = {"threshold": 1.0, "selected": 4, "direction": direction}
        assert arrows(visit) == [
            drawn(result, "estimate", **how), drawn(result, "single", **how),
        ]  # fmt: skip
    totals, partners = (frame.value for frame in visit.at.dataframe[:2])
    for column, table in zip(("Learned", "M = 1"), tables, strict=True):
        cell = cell_totals(table, 9).loc[4]
        assert totals[column].tolist() == pytest.approx(
            [cell[name] for name in ("incoming", "outgoing", "stays", "change")]
        )
    expected = partners_of_cell(*tables, 4)
    assert partners["Learned"].tolist() == pytest.approx(expected["estimate"].head(20).tolist())
    assert partners.iloc[0, 0].startswith("from " if expected["way"][0] == "in" else "to ")
    choose(visit, cell=None)
    assert arrows(visit)[0] == drawn(result, "estimate"), "the threshold of the map is back"


def test_net_flows(visit: Visit, result: StudyResult) -> None:
    choose(visit, net=True)
    surplus = net_flows(result.table("08:00", "estimate"))
    inside = surplus.loc[
        (surplus["origin"] < 9) & (surplus["dest"] < 9) & (surplus["count"] > THRESHOLD)
    ]
    assert len(arrows(visit)[0]) == len(inside)
    assert "net movement" in visit.captions


def test_one_step_of_the_window(visit: Visit, result: StudyResult) -> None:
    choose(visit, step=1, truth="counted")
    assert arrows(visit) == [drawn(result, "estimate", 1), drawn(result, "counted", 1)]
    assert "09:00 – 10:00" in visit._widget(f"{KEY}step").options


def test_the_difference_is_one_map_with_signs(visit: Visit, result: StudyResult) -> None:
    choose(visit, show="difference")
    choose(visit, truth="counted", difference_threshold=0.5)
    (differences,) = arrows(visit)
    estimate, counted = (
        result.table("08:00", source).set_index(["origin", "dest"])["count"]
        for source in ("estimate", "counted")
    )
    assert differences
    for pair, difference in differences.items():
        assert difference == pytest.approx(
            estimate.get(pair, 0.0) - counted.get(pair, 0.0), abs=0.006
        )
    assert "Orange" in visit.captions


def test_maps_of_all_times_share_their_scales(visit: Visit) -> None:
    def legends() -> list[object]:
        return [chart["layout"]["annotations"] for chart in visit.charts()[:2]]

    before = legends()
    assert legends() == before
    choose(visit, time="02:00")
    assert legends() == before


def test_the_shade_of_cells(visit: Visit) -> None:
    shades = {}
    for shade in ("people", "change", None):
        choose(visit, shade=shade)
        shades[shade] = [cell["fill"] for cell in visit.decks()[0]["cells"]]
    assert shades["people"] != shades["change"]
    assert all(fill[3] == 0 for fill in shades[None])


def test_play_moves_on_and_pauses(visit: Visit) -> None:
    button = next(b for b in visit.at.button if b.key == "flows.play")
    assert button.label == "Play"
    visit.press("flows.play")
    assert next(b for b in visit.at.button if b.key == "flows.play").label == "Pause"
    before = visit.value(f"{KEY}time")
    visit.at.session_state["flows.moved_on"] = 0.0  # as if the time of a moment had passed
    visit._run()
    assert visit.value(f"{KEY}time") != before
    visit.press("flows.play")
    stopped = visit.value(f"{KEY}time")
    visit.at.session_state["flows.moved_on"] = 0.0
    assert visit._run().value(f"{KEY}time") == stopped


def test_the_view_survives_a_change_of_page_and_of_the_time(visit: Visit) -> None:
    choose(visit, threshold=0.5, cell=4, net=True, shade="stays")
    visit.go("Lab").go("Flows")
    choose(visit, time="02:00")
    assert [visit.value(KEY + name) for name in ("cell", "net", "shade")] == [4, True, "stays"]
    assert visit.address["cell"] == "4"


def test_the_address_to_copy_holds_the_view_and_no_more(visit: Visit, saved: SavedRun) -> None:
    choose(visit, cell=4)
    code = visit.at.code[0].value
    assert f"run={saved.id}" in code
    assert "cell=4" in code
    assert "theme=light" in code
