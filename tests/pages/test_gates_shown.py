"""Runs of entries and exits on the pages Flows, Evidence and Runs."""

import pandas as pd
import pytest

from agg_core.evidence.asking import reference_for
from agg_core.evidence.examine import Asked, examine
from agg_core.exports.registry import EXPORTS, ExportInput
from agg_core.exports.report import report_page
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.gates import read_gates
from agg_core.study.gates import GateStudy, gate_study_steps
from agg_core.study.reference import NO_SUCH_DAY, PEOPLE_OF_A_DAY, compare_by_day
from agg_core.study.result import OUTSIDE_NAME, WHOLE_DAY
from agg_core.study.settings import GateLearnSettings
from tests.agg_core import counted
from tests.agg_core.gates.made import STATIONS, long_table, pair_table, places, trips
from tests.pages.visit import Visit
from ui.cached import store
from ui.two_runs import tick_key

QUICK = {"minutes_per_km": 1.2, "draws": 2}
ENTRIES, EXITS, WENT = trips(7)
PAIRS = pair_table(WENT)


@pytest.fixture(scope="module")
def studies() -> list[GateStudy]:
    """Two runs of the same counts with other settings, with single days."""
    table = read_gates(long_table(ENTRIES), long_table(EXITS), places())
    found = []
    for spread in (0.5, 0.2):
        *_, study = gate_study_steps(table, GateLearnSettings(spread=spread, **QUICK))
        found.append(study)
    return found


def tick(visit: Visit, *runs: str) -> Visit:
    """Take runs into the comparison."""
    for run in runs:
        visit.at.checkbox(key=tick_key(run)).check()
    visit.at.run()
    assert not visit.at.exception
    return visit


def tables_of(visit: Visit) -> list[pd.DataFrame]:
    return [found.value for found in visit.at.table]


def test_flows_of_chosen_days_add_up_to_their_entries(studies: list[GateStudy]) -> None:
    saved = store().save(studies[0], "railway")
    visit = Visit("Flows", run=saved.id)
    assert visit.errors == []
    day = studies[0].days[1]
    visit.set("flows.days", [day])
    assert visit.errors == []
    time = visit.view["time"]
    shown = visit.maps[-1].flows("estimate", time, None)
    of_day = studies[0].of_days([day])
    moves = of_day.matrix(time)
    for (origin, dest), count in shown.items():
        assert count == pytest.approx(moves[origin, dest], rel=0.01, abs=0.06)
    assert "exits" in visit.captions


def test_every_export_of_the_page_can_be_made(studies: list[GateStudy]) -> None:
    found = ExportInput(studies[0], studies[0].busiest, "railway")
    for name, export in EXPORTS.items():
        if export.available(studies[0]):
            assert export.make(found), name


def test_held_against_known_pairs_day_by_day(studies: list[GateStudy]) -> None:
    saved = store().save(studies[0], "railway")
    visit = Visit("Flows", run=saved.id).go("Evidence").set("evidence.part", "Checks")
    visit.set("evidence.reference", "file")
    visit.at.file_uploader(key="evidence.reference.file").upload(
        "pairs.csv", PAIRS.to_csv(index=False).encode(), "text/csv"
    )
    visit.at.run()
    assert not visit.at.exception
    assert visit.errors == []
    days = next(found for found in visit.at.dataframe if "Day" in found.value).value
    assert list(days["Day"]) == list(studies[0].days)
    known = KnownStates(STATIONS, OUTSIDE_NAME, studies[0].times_of_day, 60.0, "UTC")
    told = compare_by_day(studies[0], read_flow_table(PAIRS, known, by_date=True), PEOPLE_OF_A_DAY)
    assert days["Common part"].tolist() == pytest.approx(list(told.by_day.values()))
    assert float(visit.figures["Common part"]) == pytest.approx(told.cpc, abs=0.001)


def test_a_reference_of_some_days_is_of_their_steps(
    studies: list[GateStudy],
) -> None:
    some = PAIRS.loc[PAIRS["date"] <= "2024-05-08"]
    found, aside = reference_for(studies[0], some, "pairs")
    every, _ = reference_for(studies[0], PAIRS, "pairs")
    steps = 24 * 3
    total = some.groupby(["origin", "dest"])["count"].sum()
    assert found.tables[WHOLE_DAY][0, 1] == pytest.approx(total["a", "b"] / steps)
    assert every.tables[WHOLE_DAY].sum() * 24 * 7 == pytest.approx(WENT.sum())
    assert aside == {}
    other = pd.concat([some, some.assign(date="2031-01-01")])
    assert reference_for(studies[0], other, "pairs")[1] == {NO_SUCH_DAY: len(some)}


def test_report_of_gates_is_made(studies: list[GateStudy]) -> None:
    saved = store().save(studies[0], "railway")
    visit = Visit("Flows", run=saved.id).go("Evidence").set("evidence.part", "Report")
    assert visit.errors == []
    page = report_page(studies[0], examine(studies[0], Asked()), "railway").decode()
    assert studies[0].about_intervals.split(".")[0] in page


def test_facts_and_figures_of_two_runs(studies: list[GateStudy]) -> None:
    made = [store().save(study, f"spread {study.settings.spread:g}") for study in studies]
    visit = tick(Visit("Runs"), *(run.id for run in made))
    assert visit.errors == []
    differ, figures = tables_of(visit)
    assert len(differ) == 1
    assert {differ.iloc[0]["A"], differ.iloc[0]["B"]} == {"0\\.5", "0\\.2"}
    rows = figures.set_index(figures.columns[0])
    trips_a_day = [f"{study.summary()['trips_per_day']:,.0f}" for study in studies]
    assert set(rows.loc["Trips a day"]) == set(trips_a_day)
    assert set(rows.loc["Entries"]) == {f"{ENTRIES.sum():,.0f}"}
    assert "8 stations" in visit.captions
    assert "7 days" in visit.captions


def test_gates_and_counts_have_no_settings_in_common(studies: list[GateStudy]) -> None:
    made = [store().save(studies[0], "railway"), store().save(counted.study(), "week")]
    visit = tick(Visit("Runs"), *(run.id for run in made))
    assert len(visit.errors) == 1  # they have other cells, so that there is no map of both
    assert len(visit.at.table) == 0
    assert "from entries and exits" in visit.captions.rpartition("no settings")[0]
