"""The finished runs that come with the app: one click to their flows, and ways on from there."""

import pytest

from agg_core.made.samples import COUNT_SAMPLE, SAMPLES
from agg_core.store.shipped_runs import SHIPPED_RUNS, load_shipped
from agg_core.study.settings import CountLearnSettings, LearnSettings
from tests.agg_core import tiny
from tests.pages.visit import Visit
from ui import saved
from ui.cached import store
from ui.state import AppState

TOKYO, COUNTS = "sample-tokyo", "sample-counts"
SAMPLE = SAMPLES["tokyo_commuters"]
CSV = tiny.frame(tiny.day_states()).to_csv(index=False)


def session(visit: Visit) -> AppState:
    found = visit.at.session_state["app"]
    assert isinstance(found, AppState)
    return found


@pytest.mark.parametrize("key", SHIPPED_RUNS)
def test_one_click_on_home_shows_the_flows(key: str) -> None:
    visit = Visit("Home").press(f"home.{key}")
    assert visit.title == "Flows"
    assert not visit.errors
    assert visit.address["run"] == key
    result = load_shipped(key)
    flows = result.table(visit.address["at"], "estimate")
    assert flows["count"].iloc[0] > 0


def test_what_is_told_of_the_sample_is_true_of_it() -> None:
    said = Visit("Home").press(f"home.{TOKYO}").captions.replace("\\", "")
    assert "19,779 made-up people, learned with M = 20" in said
    said = Visit("Home").press(f"home.{COUNTS}").captions.replace("\\", "")
    assert "25 cells, counted for 7 days" in said


@pytest.mark.parametrize("key", SHIPPED_RUNS)
def test_its_address_opens_it_in_any_session(key: str) -> None:
    visit = Visit("Flows", run=key)
    assert not visit.errors
    assert "shipped.again" in visit.keys("button")
    assert visit.address["run"] == key


@pytest.mark.parametrize("key", ["sample-nowhere", "../runs/sample-tokyo", "sample-tokyo/", ""])
def test_an_address_of_none_is_a_sentence(key: str) -> None:
    visit = Visit("Flows", run=key)
    assert len(visit.errors) == 1
    assert "no saved run" in visit.errors[0]


def test_the_sample_is_learned_again_from_the_settings_of_its_run() -> None:
    visit = Visit("Data").upload("sixty.csv", CSV).go("Learn").set("learn.group_size", 7)
    visit.go("Home").press(f"home.{TOKYO}").go("Flows").press("shipped.again")
    assert visit.title == "Learn"
    now = session(visit.go("Learn"))
    assert now.dataset is not None
    assert now.dataset.title == SAMPLE.title
    assert now.settings == load_shipped(TOKYO).settings
    assert now.learn == LearnSettings()
    assert visit.value("learn.group_size") == 20
    assert visit.value("window.times") == list(SAMPLE.times)


def test_the_counts_are_learned_again_from_the_settings_of_their_run() -> None:
    visit = Visit("Home").press(f"home.{COUNTS}").go("Flows").press("shipped.again")
    assert visit.title == "Learn"
    now = session(visit)
    assert now.dataset is not None
    assert (now.dataset.title, now.dataset.kind) == (COUNT_SAMPLE, "counts")
    assert now.count_learn == CountLearnSettings(replicates=4) == load_shipped(COUNTS).settings


def test_own_data_are_one_click_away_and_what_was_open_stays() -> None:
    visit = Visit("Data").upload("sixty.csv", CSV)
    before = session(visit).dataset
    visit.go("Home").press(f"home.{TOKYO}").go("Flows").press("shipped.own")
    assert visit.title == "Data"
    assert session(visit).dataset == before
    assert visit.figures["People"] == "60"


def test_shipped_runs_are_not_among_saved_ones_and_stay() -> None:
    visit = Visit("Home").press(f"home.{TOKYO}").go("Runs")
    assert "No runs are saved yet" in visit.at.info[0].value
    assert store().list() == ()
    assert not saved.may_change(TOKYO)
    visit.go("Flows")
    assert visit.address["run"] == TOKYO


def test_flows_of_a_sample_are_offered_where_there_are_none() -> None:
    visit = Visit("Flows").press(f"flows.{COUNTS}")
    assert visit.title == "Flows"
    assert visit.address["run"] == COUNTS
