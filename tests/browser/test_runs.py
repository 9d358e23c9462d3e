"""Two runs on one map in the browser: by their address, as a difference, and after a reload."""

import re

from playwright.sync_api import Page, expect

from tests.browser.drive import Instrument, arrive, settle, widget


def test_two_runs_come_by_their_address_and_survive_a_reload(page: Page, city_run: str) -> None:
    page.goto(f"/Runs?a={city_run}&b=sample-tokyo")
    arrive(page, "Runs")
    shown = Instrument(page).wait()
    assert len(shown.arrows) == 2
    assert all(shown.arrows)
    said = page.get_by_text(re.compile("times the movement of B"))
    before = said.inner_text()
    shown.root.get_by_role("radio", name="Difference").click()
    shown.expect_view(show="difference")
    assert len(shown.wait().arrows) == 1
    page.reload()
    arrive(page, "Runs")
    Instrument(page).wait()
    assert f"a={city_run}&b=sample-tokyo" in page.url
    expect(said).to_have_text(before)
    widget(page, f"runs.{city_run}.tick").locator("label").click()
    settle(page)
    expect(page.locator(".instrument")).to_have_count(0)
    assert "a=" not in page.url
