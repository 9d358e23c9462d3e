"""Several values of a setting compared in the browser: figure, table, and settings taken over."""

import io
import re

import pandas as pd
from playwright.sync_api import Page, expect

from tests.agg_core import tiny
from tests.browser.drive import (
    RUN_MS,
    arrive,
    choose,
    choose_nothing,
    downloaded,
    fill,
    press,
    settle,
    upload,
    widget,
)

PEOPLE = tiny.frame(tiny.day_states()).to_csv(index=False).encode()


def test_values_are_compared_and_one_is_taken_over(page: Page) -> None:
    page.goto("/Data")
    arrive(page, "Data")
    upload(page, "sixty.csv", PEOPLE)
    page.get_by_role("link", name="Learn", exact=True).first.click()
    arrive(page, "Learn")
    choose_nothing(page)
    fill(page, "learn.iterations", 2)
    values = widget(page, "sweep.trajectories.group_size")
    press(page.get_by_text("Compare several settings", exact=True), values)
    settle(page)
    fill(page, "sweep.trajectories.group_size", "2, 7, 20")
    figure = widget(page, "sweep.figure").locator(".main-svg").first
    press(page.get_by_role("button", name="Compare the values"), widget(page, "sweep.shown"))
    expect(figure).to_be_visible(timeout=RUN_MS)
    settle(page)
    expect(page).to_have_url(re.compile("[?]job=[0-9a-f]{32}$"))
    found = downloaded(page, page.get_by_role("button", name="The table (CSV)"))
    with open(found.path(), "rb") as file:
        table = pd.read_csv(io.BytesIO(file.read()))
    assert table["value"].tolist() == [2, 7, 20]
    # A browser keeps what stands in a control: it is to follow, and to stay so.
    choose(page, "sweep.taken", "7")
    page.get_by_role("button", name="Take over its settings").click()
    box = widget(page, "learn.group_size").locator("input")
    expect(box).to_have_value("7")
    settle(page)
    fill(page, "learn.iterations", 3)
    expect(box).to_have_value("7")
    expect(page.get_by_text("created with a default value")).to_have_count(0)
    # The address brings it back.
    page.reload()
    arrive(page, "Learn")
    expect(figure).to_be_visible()
