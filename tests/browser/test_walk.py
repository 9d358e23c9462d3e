"""The way through the app as a person goes it, on the sample city."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser import drive

ADDRESSES = [("/", "Home"), *((f"/{name}", name) for name in drive.TITLES if name != "Home")]
ERROR = '[data-testid="stAlertContentError"], [data-testid="stException"]'


@pytest.mark.parametrize(("address", "name"), ADDRESSES)
def test_every_page_opens_by_its_address(page: Page, address: str, name: str) -> None:
    page.goto(address)
    drive.arrive(page, name)
    expect(page).to_have_title(re.compile("Population flows"))
    expect(page.locator(ERROR)).to_have_count(0)


def test_from_the_sample_to_the_flows(page: Page) -> None:
    drive.open_sample(page)
    drive.wait_until_drawn(page, "People per cell")
    drive.go(page, "Data")
    assert drive.figures(page)["People"] == "20,000"
    drive.wait_until_drawn(page, "A sample of the fixes")
    drive.press_next(page, "Next: the grid", "Grid")
    drive.fill(page, "grid.rows", 7)
    drive.fill(page, "grid.cols", 8)
    expect(page.get_by_text("56 cells")).to_be_visible()
    drive.press_next(page, "Next: learn", "Learn")
    _keep_times(page, "08:00", "14:00")
    drive.choose_nothing(page)
    drive.fill(page, "learn.iterations", 3)
    drive.start(page, "Learn the flows")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    _come_back_to_the_learner(page)
    expect(page.get_by_text(drive.ENDED)).to_be_visible(timeout=drive.RUN_MS)
    drive.settle(page)
    drive.press_next(page, "See the flows", "Flows")
    morning = _look_at_flows(page, "08:00")
    afternoon = _look_at_flows(page, "14:00")
    assert morning[0] != afternoon[0]
    assert np.any(morning[1] != afternoon[1]), "the map is that of the other time of day"


def _keep_times(page: Page, *kept: str) -> None:
    box = drive.widget(page, "window.times")
    for time in ("02:00", "20:00"):
        box.get_by_role("button", name=f"Remove {time}").click()
        expect(box.get_by_role("button", name=f"Remove {time}")).to_have_count(0)
        drive.settle(page)
    for time in kept:
        expect(box.get_by_role("button", name=f"Remove {time}")).to_be_visible()


def _come_back_to_the_learner(page: Page) -> None:
    drive.go(page, "Grid")
    drive.go(page, "Learn")
    running = page.get_by_role("button", name="Cancel")
    expect(running.or_(page.get_by_text(drive.ENDED)).first).to_be_visible()
    assert drive.widget(page, "learn.iterations").locator("input").input_value() == "3"


def _look_at_flows(page: Page, time: str) -> tuple[dict[str, str], np.ndarray]:
    shown = drive.Instrument(page).wait()
    shown.day.focus()
    page.keyboard.press({"08:00": "Home", "14:00": "End"}[time])
    shown.expect_view(time=time)
    expect(
        page.get_by_text(re.compile(rf"^Learned from groups, against: .* at {time}"))
    ).to_be_visible()
    drive.settle(page)
    figures = drive.figures(page)
    assert set(figures) == {"Common part", "Correlation", "Precision", "Recall", "Total movement"}
    assert 0 < float(figures["Common part"]) <= 1
    return figures, drive.pixels(shown.canvas)


def test_play_moves_the_time_on(page: Page) -> None:
    drive.open_sample(page)
    thumb = drive.widget(page, "view.heat.time").get_by_role("slider")
    before = thumb.get_attribute("aria-valuetext") or ""
    assert re.fullmatch(r"\d\d:\d\d", before)
    drive.widget(page, "heat.play").locator("label").first.click()
    expect(thumb).not_to_have_attribute("aria-valuetext", before)
    second = thumb.get_attribute("aria-valuetext") or ""
    expect(thumb).not_to_have_attribute("aria-valuetext", second)
    expect(page.get_by_text(re.compile(r"people on the grid"))).to_be_visible()


def test_the_farthest_move_is_typed_in_km_and_can_be_emptied_again(page: Page) -> None:
    drive.open_sample(page)
    drive.go(page, "Learn")
    for typed in ("12.5", "", "3"):
        drive.open_more(page, "learn.reach_m")
        drive.fill(page, "learn.reach_m", typed)
        drive.go(page, "Grid")
        drive.go(page, "Learn")
        drive.open_more(page, "learn.reach_m")
        box = drive.widget(page, "learn.reach_m").locator("input")
        expect(box).to_have_value(typed)
        expect(box).to_have_attribute("placeholder", "everywhere")
        drive.go(page, "Grid")
        drive.go(page, "Learn")
