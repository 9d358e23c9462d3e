"""Work that outlives the session: found again, gone on with, waiting, and nobody else's."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from agg_core.base.processes import write_json
from agg_core.base.serving import JOB_HOURS
from agg_core.lab.experiments import LabSettings
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.store import job_store
from agg_core.store.job_store import MOST_RUNNING
from agg_core.store.jobs import AT_WORK, EXPERIMENT, SETTINGS, Job
from tests.agg_core import tiny
from tests.pages.visit import RUN_SECONDS, SESSION, Visit, cleared_session
from ui import at_work, owner, workspace
from ui.cached import store
from ui.workspace import jobs

PEOPLE = tiny.frame(tiny.day_states()).to_csv(index=False)
COUNTS = docomo_csv(simulate_city(2, 3, days=2, people=60, random_state=0))
LONG = LabSettings(n_states=(10,), n_seeds=100, iterations=5000)


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that others reach: jobs are listed for their owners alone."""
    monkeypatch.setattr(owner, "LOCAL", ())


def ready(iterations: int = 1) -> Visit:
    """The people at one time of day, with nothing chosen by trials."""
    visit = Visit("Data").upload("sixty.csv", PEOPLE).go("Learn").choose_nothing()
    return visit.set("learn.iterations", iterations).set("window.times", ["08:00"])


def at_length() -> Visit:
    """A learner that has a long way to go."""
    visit = ready(5000)
    return visit.set("learn.group_size", 60).set("learn.misclassify", 0.5).press("start")


def only() -> Job[Any]:
    (job,) = jobs().all()
    assert isinstance(job, Job)
    return job


def wait_for(reached: Callable[[], Any]) -> None:
    deadline = time.monotonic() + RUN_SECONDS
    while not reached():
        assert time.monotonic() < deadline, "it did not get there in time"
        time.sleep(0.05)


def interrupt(job: Job[Any]) -> None:
    """Kill its process, as a machine without memory does."""
    wait_for(lambda: job.status().progress is not None)
    os.kill(job.pid, signal.SIGKILL)
    wait_for(lambda: job.state == "interrupted")


def others_at_work(how_many: int) -> list[Job[Any]]:
    return [
        jobs().add(EXPERIMENT, LONG, title="theirs", owner=f"{number:032x}")
        for number in range(how_many)
    ]


class TestFoundAgain:
    def test_a_reload_brings_it_back_and_its_end_is_shown_without_the_data(self) -> None:
        address = at_length().address
        assert address == {"job": only().id}
        with cleared_session():  # the browser is closed, or the server ends
            pass
        assert only().state == "running", "nobody need look"
        visit = Visit("Learn", **address)
        assert "learner.cancel" in visit.keys("button")
        assert "Go to Data" in visit.ways_on
        assert visit.address == address
        # What is left to do is made short, so that the test has an end.
        interrupt(only())
        short = tiny.settings(window=tiny.WindowSettings(60, 3, ("08:00",)), iterations=1)
        write_json(only().folder / SETTINGS, short.to_dict())
        visit.go("Learn")
        assert not {"learner.cancel", "start"} & set(visit.keys("button"))
        visit.press("learner.resume").wait_until_ended()
        assert [s.value.startswith("Done") for s in visit.at.success] == [True]
        (run,) = store().list()
        visit.press("to.pages/4_Flows.py")
        assert visit.title == "Flows"
        assert visit.figures
        assert visit.address["run"] == run.id
        assert len(store().list()) == 1, "it is saved once, by its process"

    def test_its_settings_come_back_too(self) -> None:
        address = at_length().press("learner.cancel").address
        with cleared_session():
            visit = Visit("Learn", **address)
            visit.go("Data").upload("sixty.csv", PEOPLE)
            assert [w.value.startswith("Cancelled") for w in visit.go("Learn").at.warning] == [True]
            assert visit.value("learn.iterations") == 5000

    def test_flows_are_saved_though_no_browser_looks(self) -> None:
        visit = ready().press("start")
        address, job = visit.address, only()
        with cleared_session():
            pass
        wait_for(lambda: job.state not in AT_WORK)
        (run,) = store().list()
        assert run.title == "sixty.csv"
        visit = Visit("Learn", **address)
        assert visit.go("Flows").address["run"] == run.id
        assert len(store().list()) == 1

    def test_counts_are_found_again(self) -> None:
        visit = Visit("Data").upload("counts.csv", COUNTS).go("Learn").set("counts.replicates", 0)
        visit.set("counts.time", "one").set("counts.strength", "given")
        address = visit.set("counts.count_error", 0.0).press("start").address
        with cleared_session():
            visit = Visit("Learn", **address).wait_until_ended()
            assert not visit.errors
            assert visit.press("to.counts.flows").title == "Flows"

    def test_the_lab_finds_its_own_again(self) -> None:
        visit = Visit("Lab", part="experiments").set("view.lab.preset", "full")
        address = visit.press("lab.start").address
        assert address == {"part": "experiments", "job": only().id}
        with cleared_session():
            visit = Visit("Lab", job=address["job"])
            assert visit.value("view.lab.part") == "experiments"
            assert visit.value("view.lab.preset") == "full"
            visit.press("lab.cancel")
            assert visit.address == {"part": "experiments"}

    @pytest.mark.parametrize("page", ["Learn", "Lab"])
    @pytest.mark.parametrize("job", ["0" * 32, "../runs", "<b>x</b>"])
    def test_an_address_of_no_work_is_one_sentence(self, page: str, job: str) -> None:
        assert len(Visit(page, job=job).errors) == 1

    def test_work_of_another_page_is_one_sentence(self) -> None:
        others_at_work(1)
        assert len(Visit("Learn", job=only().id).errors) == 1
        assert "lab.cancel" in Visit("Lab", job=only().id).keys("button")

    def test_where_people_log_in_an_address_opens_work_of_ones_own_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        others_at_work(1)
        monkeypatch.setattr(at_work, "is_logged_in", lambda: True)
        refused = Visit("Lab", job=only().id)
        assert refused.errors == Visit("Lab", job="0" * 32).errors
        assert "lab.cancel" not in refused.keys("button")
        monkeypatch.setattr(at_work, "owner", lambda: only().about.owner)
        assert "lab.cancel" in Visit("Lab", job=only().id).keys("button")


class TestInterrupted:
    def test_it_is_said_and_gone_on_with_or_given_up(self) -> None:
        visit = at_length()
        job = only()
        interrupt(job)
        visit.go("Learn")
        assert "learner.cancel" not in visit.keys("button")
        visit.press("learner.resume")
        assert job.state == "running"
        assert "learner.cancel" in visit.keys("button")
        interrupt(job)
        visit.go("Learn").press("learner.drop")
        assert [w.value.startswith("Cancelled") for w in visit.at.warning] == [True]
        assert job.state == "cancelled"

    def test_a_server_that_begins_goes_on_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        at_length()
        job = only()
        interrupt(job)
        with cleared_session():
            pass
        monkeypatch.setattr(workspace, "_opened", set())
        Visit("Home").go("Learn")
        wait_for(lambda: job.state == "running")
        assert job.starts == 2


class TestGone:
    def test_work_that_was_deleted_meanwhile_is_told_of(self) -> None:
        visit = at_length()
        jobs().remove(only().id)
        visit.go("Learn")
        assert not visit.errors
        assert "learner.cancel" not in visit.keys("button")
        assert visit.address == {}
        assert "start" in visit.keys("button")

    def test_a_click_on_what_is_gone_is_one_sentence(self) -> None:
        visit = at_length()
        button = visit.at.button(key="learner.cancel")
        jobs().remove(only().id)
        button.click().run()
        assert not visit.at.exception
        assert "learner.cancel" not in visit.keys("button")


class TestWhose:
    def test_on_a_server_for_others_nobody_sees_the_work_of_another(self, public: None) -> None:
        at_length()
        with cleared_session():
            other = Visit("Learn")
            assert not [key for key in other.keys("button") if key.startswith("job.")]
        assert only().state == "running"

    def test_on_the_own_machine_all_work_is_listed_and_can_be_shown(self) -> None:
        at_length()
        job = only()
        with cleared_session():
            visit = Visit("Learn")
            assert "learner.cancel" not in visit.keys("button")
            visit.press(f"job.{job.id}.show")
            assert "learner.cancel" in visit.keys("button")
            assert visit.address == {"job": job.id}
            assert f"job.{job.id}.show" not in visit.keys("button")

    def test_what_was_interrupted_is_listed_and_gone_on_with(self) -> None:
        at_length()
        job = only()
        interrupt(job)
        with cleared_session():
            visit = Visit("Learn").press(f"job.{job.id}.resume")
            assert job.state == "running"
            visit.press(f"job.{job.id}.cancel")
            assert job.state == "cancelled"
            assert not [key for key in visit.keys("button") if key.startswith("job.")]


class TestQueue:
    def test_one_more_than_may_waits_and_says_how_many_are_before_it(self) -> None:
        theirs = others_at_work(MOST_RUNNING + 2)
        visit = at_length()
        assert any("2 before it" in info.value for info in visit.at.info)
        assert "learner.cancel" in visit.keys("button")
        jobs().cancel(theirs[0].id)
        assert any("1 before it" in info.value for info in visit.go("Learn").at.info)
        visit.press("learner.cancel")
        assert [w.value.startswith("Cancelled") for w in visit.at.warning] == [True]

    def test_other_settings_wait_for_those_that_run_and_both_are_shown(self) -> None:
        visit = at_length()
        first = only()
        visit.set("learn.group_size", 50).press("start")
        assert not visit.errors
        (second,) = [job for job in jobs().all() if job.id != first.id]
        assert (first.state, second.state) == ("running", "queued")
        assert visit.address == {"job": second.id}
        visit.press(f"job.{first.id}.cancel")
        assert second.state == "running"

    def test_a_full_queue_is_one_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(job_store.JobStore.__init__, "__defaults__", (1, 1, 1))
        others_at_work(2)
        visit = ready().press("start")
        assert len(visit.errors) == 1
        assert "learner.cancel" not in visit.keys("button")

    def test_what_cannot_fit_is_one_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        visit = ready()
        monkeypatch.setattr(job_store, "machine_bytes", lambda: 50_000_000)
        visit.press("start")
        assert len(visit.errors) == 1
        visit = Visit("Data").upload("counts.csv", COUNTS).go("Learn").press("start")
        assert len(visit.errors) == 1
        visit = Visit("Lab", part="experiments").press("lab.start")
        assert len(visit.errors) == 1
        assert jobs().all() == ()

    def test_what_takes_too_long_is_one_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(JOB_HOURS, "1e-5")
        visit = ready(5000).press("start")
        assert len(visit.errors) == 1
        assert jobs().all() == ()
        assert "start" in visit.keys("button")


class TestCaches:
    def test_whoever_clears_caches_loses_nobody_anything(self) -> None:
        visit = at_length()
        job = only()
        st.cache_resource.clear()
        st.cache_data.clear()
        visit.go("Grid")
        assert not visit.errors
        assert visit.decks()
        assert "learner.cancel" in visit.go("Learn").keys("button")
        assert job.state == "running"

    def test_whoever_asks_for_it_keeps_data_and_settings(self) -> None:
        visit = at_length()
        # Streamlit's answer to the message: all caches, and what this session remembers.
        st.cache_resource.clear()
        st.cache_data.clear()
        held = visit.at.session_state._state._state
        of_the_test = {key: held[key] for key in held if key.startswith("$$")}
        held.clear()
        held._old_state.update(of_the_test)
        visit.go("Learn")
        assert not visit.errors
        assert visit.value("learn.group_size") == 60
        assert "learner.cancel" in visit.keys("button")
        assert visit.go("Data").figures["People"] == "60"

    def test_a_connection_that_was_lost_keeps_them_too(self) -> None:
        visit = at_length()
        workspace.sweep(time.monotonic())
        st.cache_resource.clear()
        assert workspace.held_by(SESSION)
        assert visit.go("Data").figures["People"] == "60"
