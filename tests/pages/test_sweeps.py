"""Several values of one setting, compared on the page Learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.store.codec import load_sweep
from agg_core.store.jobs import SWEEP, Job
from agg_core.study.sweeps import FIGURES, SweepResult
from tests.agg_core import tiny
from tests.pages.visit import Visit, cleared_session
from ui.cached import store
from ui.workspace import jobs

PEOPLE = tiny.frame(tiny.day_states()).to_csv(index=False)
COUNTS = docomo_csv(simulate_city(2, 3, days=3, people=60, random_state=0))


def opened(visit: Visit) -> Visit:
    """The expander is opened, as by a click."""
    visit.at.session_state["sweep.open"] = True
    return visit.go("Learn")


def of_people(values: str = "2, 5") -> Visit:
    visit = Visit("Data").upload("sixty.csv", PEOPLE).go("Learn").choose_nothing()
    visit.set("learn.iterations", 2).set("window.times", ["08:00"])
    return opened(visit).set("sweep.trajectories.group_size", values)


def of_counts() -> Visit:
    visit = Visit("Data").upload("counts.csv", COUNTS).go("Learn").set("counts.replicates", 0)
    visit.set("counts.time", "one").set("counts.strength", "given").set("counts.count_error", 0.0)
    return opened(visit)


def only() -> Job[Any]:
    (job,) = jobs().all()
    assert isinstance(job, Job)
    return job


def result() -> SweepResult:
    return load_sweep(only().result_folder)


def test_people_are_learned_from_at_each_value_and_both_figures_are_shown() -> None:
    visit = of_people()
    assert "sweep.take" not in visit.keys("button")
    visit.press("sweep.start")
    assert visit.address == {"job": only().id}
    visit.wait_until_ended()
    assert not visit.errors
    assert only().kind is SWEEP
    found = result()
    assert found.sweep.texts == ("2", "5")
    assert not store().list(), "a comparison is no run"
    table = visit.at.dataframe[-1].value
    labels = [FIGURES[name].label for name in found.columns]
    assert list(table.columns) == [found.sweep.option.label, *labels, "Learner"]
    assert table[FIGURES["movers"].label].tolist() == [row.movers for row in found.rows]
    chart = visit.charts()[-1]
    assert chart["data"][0]["y"] == [row.movers for row in found.rows]
    assert "sweep.csv" in [button.key for button in visit.at.get("download_button")]


def test_it_is_found_again_by_its_address_without_the_data() -> None:
    address = of_people().press("sweep.start").wait_until_ended().address
    with cleared_session():
        pass
    visit = Visit("Learn", **address)
    assert not visit.errors
    assert visit.charts()
    assert visit.address == address
    assert "sweep.take" not in visit.keys("button"), "there is nothing to learn from"
    visit.go("Data").upload("sixty.csv", PEOPLE).go("Learn")
    assert visit.value("learn.iterations") == 2, "its other settings come back, too"


def test_settings_of_a_value_are_taken_over_and_learned_with() -> None:
    visit = of_people().press("sweep.start").wait_until_ended()
    visit.set("sweep.taken", 0).press("sweep.take")
    assert visit.value("learn.group_size") == 2
    visit.press("start")
    assert visit.address["job"] != only_of(SWEEP).id, "the address is that of the last begun"
    visit.wait_until_ended()
    (run,) = store().list()
    alone = store().load(run.id).summary()
    assert alone["movers"] == load_sweep(only_of(SWEEP).result_folder).rows[0].movers


def only_of(kind: object) -> Job[Any]:
    (job,) = [each for each in jobs().all() if isinstance(each, Job) and each.kind is kind]
    return job


def test_counts_are_learned_from_at_each_value() -> None:
    visit = of_counts().set("sweep.counts.name", "prior").set("sweep.counts.prior", "1, 20")
    visit.press("sweep.start").wait_until_ended()
    assert not visit.errors
    found = result()
    assert [each.prior for each in found.sweep.each] == [1.0, 20.0]
    assert visit.charts()[-1]["data"][0]["y"] == [row.movers for row in found.rows]
    visit.set("sweep.taken", 1).press("sweep.take")
    assert visit.value("counts.prior") == 20.0


@pytest.mark.parametrize(
    "values", ["2", "2, 2", "2, x", "2, 0", "", ", ".join(map(str, range(1, 20)))]
)
def test_values_that_cannot_be_are_told_and_nothing_is_begun(values: str) -> None:
    visit = of_people(values)
    assert len(visit.errors) == 1
    assert tiny.is_one_sentence(visit.errors[0])
    assert "sweep.start" not in visit.keys("button")
    assert "start" in visit.keys("button")


def test_groups_larger_than_the_people_are_refused_before_it_begins() -> None:
    visit = of_people("2, 61").press("sweep.start")
    assert len(visit.errors) == 1
    assert "M = 61" in visit.errors[0]
    assert not jobs().all()


def test_a_prior_that_is_compared_is_given_and_choices_are_chosen() -> None:
    visit = Visit("Data").upload("sixty.csv", PEOPLE)
    visit = opened(visit).set("sweep.trajectories.name", "prior")
    assert not visit.errors
    assert "sweep.start" in visit.keys("button")
    assert visit.value("learner.strength") == "auto", "the settings of the page stay"
    visit.set("sweep.trajectories.name", "inference")
    visit.set("sweep.trajectories.inference", ["cfb", "sampling"])
    assert not visit.errors


def test_a_closed_expander_asks_nothing_and_cancel_keeps_nothing() -> None:
    visit = Visit("Data").upload("sixty.csv", PEOPLE).go("Learn")
    assert "sweep.start" not in visit.keys("button")
    visit = of_people().set("learn.iterations", 5000).set("learn.group_size", 60)
    visit.set("sweep.trajectories.name", "seed").set("sweep.trajectories.seed", "1, 2, 3")
    visit.press("sweep.start").press("sweep.cancel")
    assert only().state == "cancelled"
    assert not visit.charts()
    assert not (only().folder / "result").exists()


def test_the_table_is_a_csv_of_all_rows(tmp_path: Path) -> None:
    of_people().press("sweep.start").wait_until_ended()
    found = result().table
    path = tmp_path / "table.csv"
    found.to_csv(path, index=False)
    assert pd.read_csv(path)["movers"].tolist() == found["movers"].tolist()
