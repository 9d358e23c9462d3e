"""The Lab as a person uses it: an experiment of own values, its files, and M that slides."""

import csv
import re
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import drive

SMALL = {"n_states": "2, 3", "group_sizes": "1, 5", "n_individuals": "50", "lengths": "3",
         "n_seeds": 2, "iterations": 5}  # fmt: skip


def saved(page: Page, key: str) -> Path:
    return drive.downloaded(page, drive.widget(page, key).get_by_role("button")).path()


def test_an_experiment_is_run_looked_at_and_taken_home(page: Page, browser: Browser) -> None:
    page.goto("/Lab?part=experiments")
    drive.arrive(page, "Lab")
    expect(page.get_by_text("Choose one of the paper's figures")).to_be_visible()
    drive.pick(page, "view.lab.preset", "Own values")
    for name, value in SMALL.items():
        drive.fill(page, f"lab.fig3.{name}", value)
    drive.learn(page, "Run the experiment")
    figure = drive.widget(page, "lab.figure")
    expect(figure.get_by_text("d = 2, CFB", exact=True)).to_be_visible()
    expect(figure.get_by_text("ΔNLL per person, nats").first).to_be_visible()
    expect(figure.locator(".legendtext").get_by_text("M = 5")).to_have_count(1)
    expect(page.get_by_text("What to see.")).to_be_visible()
    expect(page.get_by_text("What to doubt.")).to_be_visible()
    expect(page.get_by_text(re.compile("in [012] of 2 seeds")).first).to_be_visible()
    drive.go(page, "Home")
    drive.go(page, "Lab")
    expect(figure.get_by_text("d = 3, CFB", exact=True)).to_be_visible()
    page.reload()
    drive.arrive(page, "Lab")
    expect(figure.get_by_text("d = 3, CFB", exact=True)).to_be_visible()

    with saved(page, "lab.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["group_size"] for row in rows} == {"1", "5"}
    assert {int(row["iteration"]) for row in rows} >= {0, 5}
    _opens_without_a_network(saved(page, "lab.html"), browser)


def _opens_without_a_network(file: Path, browser: Browser) -> None:
    context = browser.new_context(offline=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    alone = context.new_page()
    alone.set_content(file.read_text(encoding="utf-8"))
    expect(alone.locator(".legendtext").get_by_text("M = 5")).to_be_visible()
    expect(alone.get_by_text("ΔNLL per person, nats").first).to_be_visible()
    context.close()
    assert [url for url in asked if not url.startswith(("data:", "blob:", "about:"))] == []


def test_the_story_is_told_without_the_server(page: Page, browser: Browser) -> None:
    page.goto("/Lab")
    drive.arrive(page, "Lab")
    told = drive.Instrument(page).wait()
    told.key("ArrowRight", "ArrowRight")
    told.expect_view(scene=2)
    drive.go(page, "Home")
    drive.go(page, "Lab")
    told.wait().expect_view(scene=2)
    with drive.opened_alone(browser, _named(saved(page, "lab.story.page"), "story.html")) as alone:
        alone.map.expect_view(scene=0)
        alone.map.key("PageDown")
        alone.map.expect_view(scene=1)
        alone.expect_quiet()


def _named(file: Path, name: str) -> Path:
    """The same file by a name that a browser opens as a page."""
    return file.rename(file.with_name(name))


def test_m_slides_and_the_movement_follows(page: Page) -> None:
    page.goto("/Lab")
    drive.arrive(page, "Lab")
    drive.pick(page, "view.lab.part", "What does aggregation hide?")
    drive.fill(page, "teach.n_people", 200)
    drive.fill(page, "teach.iterations", 8)
    drive.learn(page, "Learn at every M")
    shown = drive.Instrument(page).wait()
    before = _movement(page, shown, 20)
    shown.day.focus()
    for _ in range(4):  # 20, 10, 5, 2, 1 by the keyboard
        page.keyboard.press("ArrowLeft")
    after = _movement(page, shown, 1)
    assert before[0] > 1.1 * after[0], "groups of 20 invent movement that single people do not show"
    n = len(shown.arrows)
    assert before[1].shape == after[1].shape
    learned, truth = (
        drive.alike(_part(before[1], i, n), _part(after[1], i, n)) for i in (0, n - 1)
    )
    assert learned < 0.999, "the map is that of the other group size"
    assert truth > 0.999, "the truth stays as it was"


def _movement(page: Page, shown: drive.Instrument, group_size: int) -> tuple[float, np.ndarray]:
    """People who seem to move, as the sentence says, and the maps."""
    shown.expect_view(time=f"M = {group_size}")
    begins = rf"^At M = {group_size} the paper's learner sees"
    sentence: Locator = page.get_by_text(re.compile(begins))
    expect(sentence).to_be_visible()
    found = re.search(r"([\d,]+) people seem to move", sentence.inner_text())
    assert found is not None
    page.mouse.move(2, 2)
    drive.settle(page)
    page.wait_for_timeout(1000)
    return float(found[1].replace(",", "")), drive.pixels(shown.canvas)


def _part(picture: np.ndarray, i: int, n: int) -> np.ndarray:
    """One of maps that lie beside each other, without what is written at the top and the bottom."""
    high, wide = picture.shape[0], picture.shape[1] // n
    return picture[high // 4 : high * 3 // 4, i * wide + 4 : (i + 1) * wide - 4]
