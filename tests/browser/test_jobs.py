"""A learner in the browser that a reload, cleared caches and the end of its server do not end."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from agg_core.store.job_store import JobStore
from agg_core.store.jobs import AT_WORK, Job
from tests.agg_core import tiny
from tests.browser.conftest import Watch, opened_page
from tests.browser.drive import arrive, choose, fill, go, open_more, press, start, upload, widget
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


CLEAR = """async ([address, message]) => {
    const socket = new WebSocket(address, ["streamlit"]);
    socket.binaryType = "arraybuffer";
    await new Promise((resolve, reject) => {
        socket.onopen = resolve;
        socket.onerror = reject;
    });
    socket.send(new Uint8Array(message));
    while (socket.bufferedAmount > 0) {
        await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
    socket.close();
}"""
"""What the developer menu of any browser can send."""


def test_another_who_clears_the_caches_ends_no_job_and_takes_no_data(
    browser: Browser, app_url: str, runs_home: Path, page: Page
) -> None:
    begin(page)
    found = JobStore(runs_home / RUNS / "jobs").find(page.url[-32:])
    assert found is not None
    with opened_page(browser, app_url, Watch()) as other:
        other.goto("/")
        arrive(other, "Home")
        message = list(BackMsg(clear_cache=True).SerializeToString())
        other.evaluate(CLEAR, [f"{app_url.replace('http', 'ws')}/_stcore/stream", message])
        other.reload()
        arrive(other, "Home")
    assert found.state == "running"
    go(page, "Grid")
    expect(page.get_by_text("9 cells").or_(page.get_by_text("cells of")).first).to_be_visible()
    go(page, "Learn")
    press(widget(page, "learner.cancel").get_by_role("button"), page.get_by_text("Cancelled").first)
    assert found.state == "cancelled"
