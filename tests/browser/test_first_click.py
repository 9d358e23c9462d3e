"""From Home to flows by one click, and from a file to its flows by one more."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.agg_core import tiny
from tests.browser import drive

LAPTOP = {"width": 1280, "height": 800}


def in_sight(target: Locator) -> None:
    """The whole of it can be seen without scrolling."""
    expect(target).to_be_visible()
    expect(target).to_be_in_viewport(ratio=1)


def test_from_home_to_flows_and_to_the_learner(page: Page) -> None:
    page.set_viewport_size(LAPTOP)
    page.goto("/")
    drive.arrive(page, "Home")
    drive.press_next(page, "Open the sample", "Flows")
    in_sight(page.get_by_text(re.compile("^This is the sample: 19,779 made-up people")))
    expect(page).to_have_url(re.compile("run=sample-tokyo"))
    drive.press_next(page, "Learn it again with other settings", "Learn")
    learn = page.get_by_role("button", name="Learn the flows")
    in_sight(learn)
    learn.click()
    cancel = page.get_by_role("button", name="Cancel")
    in_sight(cancel)
    in_sight(page.get_by_role("progressbar"))
    cancel.click()
    expect(page.get_by_text(drive.ENDED)).to_be_visible()


def test_from_a_file_to_its_flows(page: Page) -> None:
    page.set_viewport_size(LAPTOP)
    page.goto("/Data")
    drive.arrive(page, "Data")
    people = tiny.frame(tiny.day_states())
    morning = people.loc[people["time"].dt.hour.between(7, 11)]
    drive.upload(page, "sixty.csv", morning.to_csv(index=False).encode())
    in_sight(page.get_by_role("button", name="Show me the flows"))
    drive.press_next(page, "Show me the flows", "Learn")
    expect(page.get_by_role("heading", name="Flows", exact=True, level=1)).to_be_visible(
        timeout=drive.RUN_MS
    )
    expect(page).to_have_url(re.compile("/Flows"))
