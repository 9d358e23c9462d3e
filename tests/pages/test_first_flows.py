"""From an upload to its flows by one button, with settings that can be seen and changed."""

import time

import pytest

from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.study.settings import LearnSettings
from agg_core.study.suggest import suggest_grid, suggest_window
from tests.agg_core import tiny
from tests.pages.visit import RUN_SECONDS, Visit
from ui.cached import store
from ui.state import AppState

PEOPLE = tiny.frame(tiny.day_states()).to_csv(index=False)
COUNTS = docomo_csv(simulate_city(2, 3, days=2, people=60, random_state=0))


def session(visit: Visit) -> AppState:
    found = visit.at.session_state["app"]
    assert isinstance(found, AppState)
    return found


def quick(visit: Visit) -> Visit:
    """The people at one time of day, with nothing chosen by trials, on the page Data."""
    visit.upload("sixty.csv", PEOPLE).go("Learn").choose_nothing().set("learn.iterations", 1)
    return visit.set("window.times", ["08:00"]).go("Data")


def ask_for_flows(visit: Visit) -> Visit:
    """One click; that the page Learn is shown since must be told to the visit, which reruns it."""
    visit.press("show.flows")
    assert visit.title == "Learn"
    return visit.go("Learn")


def test_one_click_takes_what_the_pages_have_at_first() -> None:
    visit = ask_for_flows(Visit("Data").upload("sixty.csv", PEOPLE))
    assert "learner.cancel" in visit.keys("button")
    now, data = session(visit), tiny.people()
    assert now.study.run is not None
    taken = now.study.run.settings
    assert taken == now.settings
    assert taken.grid == suggest_grid(data)
    assert taken.window == suggest_window(data)
    assert taken.learn == LearnSettings()
    assert visit.value("learn.group_size") == taken.learn.group_size
    assert visit.go("Grid").value("grid.rows") == taken.grid.rows
    visit.go("Learn").press("learner.cancel")


def test_of_the_sample_they_are_there_already_unless_other_settings_are_chosen() -> None:
    visit = Visit("Data").press("data.tokyo_commuters").press("show.flows")
    assert visit.title == "Flows"
    assert visit.address["run"] == "sample-tokyo"
    visit.go("Learn").set("learn.group_size", 40).go("Data")
    ask_for_flows(visit).press("learner.cancel")


def test_the_flows_follow_by_themselves() -> None:
    visit = ask_for_flows(quick(Visit("Data"))).wait_until_ended()
    assert visit.title == "Flows"
    assert not visit.errors
    assert visit.figures
    assert visit.go("Learn").title == "Learn", "it goes on once, not each time"


def test_who_went_elsewhere_meanwhile_is_left_there() -> None:
    visit = quick(Visit("Data")).press("show.flows").go("Runs")
    deadline = time.monotonic() + RUN_SECONDS
    while not store().list() and time.monotonic() < deadline:
        time.sleep(0.3)
        assert visit.go("Runs").title == "Runs"
    assert visit.go("Learn").title == "Learn"
    assert "See the flows" in visit.ways_on


def test_a_run_started_on_learn_does_not_go_on() -> None:
    visit = quick(Visit("Data")).go("Learn").learn()
    assert visit.title == "Learn"
    assert "See the flows" in visit.ways_on


def test_a_cancelled_run_and_one_that_fails_stay_on_learn() -> None:
    visit = Visit("Data").upload("sixty.csv", PEOPLE).go("Learn").set("learn.iterations", 5000)
    ask_for_flows(visit.go("Data")).press("learner.cancel")
    assert visit.title == "Learn"
    ask_for_flows(visit.set("learn.group_size", 61).go("Data")).wait_until_ended()
    assert visit.title == "Learn"
    assert len(visit.errors) == 1
    assert "61 is larger" in visit.errors[0].replace("\\", "")


def test_counts_become_flows_by_one_click_too() -> None:
    visit = Visit("Data").upload("counts.csv", COUNTS).go("Learn").set("counts.replicates", 0)
    visit.set("counts.time", "one").set("counts.strength", "given").set("counts.count_error", 0.0)
    ask_for_flows(visit.go("Data")).wait_until_ended()
    assert visit.title == "Flows"
    assert not visit.errors
    now = session(visit)
    assert now.shows == "counts"
    assert now.counts.finished is not None
    assert now.counts.finished.settings == now.count_learn


@pytest.mark.parametrize("at_work", [False, True])
def test_an_empty_page_of_flows_offers_those_of_the_open_data(at_work: bool) -> None:
    visit = Visit("Data").upload("sixty.csv", PEOPLE)
    if at_work:
        visit.go("Learn").set("learn.iterations", 5000).press("start")
    visit.go("Flows")
    assert ("show.flows" in visit.keys("button")) is not at_work
    assert "Go to Learn" in visit.ways_on
    (visit.go("Learn") if at_work else ask_for_flows(visit)).press("learner.cancel")
