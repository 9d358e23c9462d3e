"""A learner in the browser that a reload, cleared caches and the end of its server do not end."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from agg_core.store.job_store import JobStore
from agg_core.store.jobs import AT_WORK, Job
from tests.agg_core import tiny
from tests.browser.conftest import Watch, opened_page
from tests.browser.drive import arrive, choose, fill, open_more, start, upload, widget
from tests.browser.server import RUNS, served

PEOPLE = tiny.frame(tiny.day_states()).to_csv(index=False).encode()


def begin(page: Page) -> None:
    """A learner that has a long way to go."""
    page.goto("/Data")
    arrive(page, "Data")
    upload(page, "sixty.csv", PEOPLE)
    page.get_by_role("link", name="Learn", exact=True).first.click()
    arrive(page, "Learn")
    fill(page, "learn.group_size", 60)
    open_more(page, "learner.noise")
    choose(page, "learner.strength", "As given")
    fill(page, "learn.iterations", 5000)
    start(page, "Learn the flows")
    expect(page).to_have_url(re.compile("[?]job=[0-9a-f]{32}$"))


def test_a_job_outlives_a_reload_and_its_server(
    browser: Browser, repository: Path, tmp_path: Path
) -> None:
    store = JobStore(tmp_path / RUNS / "jobs")
    cancel = "learner.cancel"
    with (
        served(repository, tmp_path, jobs_go_on=True) as address,
        opened_page(browser, address, Watch()) as page,
    ):
        begin(page)
        page.reload()
        arrive(page, "Learn")
        expect(widget(page, cancel)).to_be_visible()
        where = page.url.removeprefix(address)
    (job,) = store.all()
    assert isinstance(job, Job)
    assert job.state in AT_WORK, "the server has ended, and its browser with it"
    watch = Watch()
    with (
        served(repository, tmp_path) as address,
        opened_page(browser, address, watch) as page,
    ):
        page.goto(where)
        arrive(page, "Learn")
        assert job.state in AT_WORK
        assert job.starts == 1
        button = widget(page, cancel).get_by_role("button")
        button.click()
        expect(page.get_by_text("Cancelled")).to_be_visible()
        assert job.state == "cancelled"
        watch.complain()
