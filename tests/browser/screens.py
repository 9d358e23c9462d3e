"""Pictures of the app for its documentation: ``python -m tests.browser.screens [--flows]``.

Learns the flows of the sample city once, runs a quick experiment and the teaching view of the
Lab, and writes docs/screens/PAGE-THEME.png and the pictures of the maps in docs/. Takes some
minutes. With ``--flows`` only the page Flows is shown, of a quick run at every width.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from agg_core.made.counts import docomo_csv, simulate_city
from tests.browser import drive
from tests.browser.city import save_city
from tests.browser.drive import Instrument
from tests.browser.server import CHROMIUM_ARGS, RUNS, served

REPOSITORY = Path(__file__).resolve().parents[2]
SCREENS = REPOSITORY / "docs" / "screens"
PICTURES = {
    "light": REPOSITORY / "docs" / "flows.png",
    "dark": REPOSITORY / "docs" / "flows-dark.png",
}
MAPS = {"Data": ("A sample of the fixes",), "Grid": ("People per cell",)}
WIDTHS = {1440: 900, 1280: 900, 900: 900, 390: 844}
"""Widths and heights of windows that the page Flows is shown in."""
CELL = 6 * 16 + 8
STORY = "A story for a class"
EXPERIMENTS = "The paper's experiments"
TEACHING = "What does aggregation hide?"
WINDOW: ViewportSize = {"width": 1280, "height": 1000}
LEARNING_MS = 1_800_000
ERROR = 0.03


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", action="store_true", help="only the page Flows")
    only_flows = parser.parse_args().flows
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        sys.exit("Chromium is not there: install it or set CHROMIUM to its path.")
    SCREENS.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        served(REPOSITORY, Path(home)) as address,
        sync_playwright() as playwright,
    ):
        expect.set_options(timeout=120_000)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        page = browser.new_page(base_url=address, viewport=WINDOW, color_scheme="light")
        _show_flows_at_every_width(page, save_city(Path(home) / RUNS))
        if only_flows:
            browser.close()
            return
        _learn_the_city(page)
        _fill_the_lab(page)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            _show_maps_alone(page, PICTURES[theme])
            for name in drive.TITLES:
                _show(page, name)
                _save(page.screenshot(), SCREENS / f"{name.lower()}-{theme}.png")
                print(name, theme, flush=True)
            for scene in (2, 6):
                _show_a_scene(page, scene)
                _save(page.screenshot(), SCREENS / f"lab-story-{scene}-{theme}.png")
            _show_teaching(page)
            _save(page.screenshot(), SCREENS / f"lab-teaching-{theme}.png")
            _show_a_cell(page)
            _save(page.screenshot(), SCREENS / f"flows-cell-{theme}.png")
            _show_the_difference(page)
            _save(page.screenshot(), SCREENS / f"flows-difference-{theme}.png")
        _learn_from_counts(page)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for name in ("Learn", "Flows"):
                _show_of_counts(page, name)
                _save(page.screenshot(), SCREENS / f"{name.lower()}-counts-{theme}.png")
                print(name, "counts", theme, flush=True)
        browser.close()


def _learn_the_city(page: Page) -> None:
    drive.open_sample(page)
    drive.go(page, "Learn")
    page.get_by_role("button", name="Learn the flows").click()
    expect(page.get_by_text(drive.ENDED)).to_be_visible(timeout=LEARNING_MS)
    drive.settle(page)


def _learn_from_counts(page: Page) -> None:
    """Counts of a week that err by 3 %, in place of the people."""
    city = simulate_city(6, 6, 7, 3_000, random_state=0)
    wrong = 1 + ERROR * np.random.default_rng(0).standard_normal(city.counts.shape)
    erring = replace(city, counts=np.rint(city.counts * wrong).astype(city.counts.dtype))
    drive.go(page, "Data")
    drive.upload(page, "counts of a week.csv", docomo_csv(erring).encode())
    expect(page.get_by_text("Mobile Spatial Statistics").first).to_be_visible()
    drive.go(page, "Learn")
    page.get_by_role("button", name="Learn the flows").click()
    expect(page.get_by_text(drive.ENDED)).to_be_visible(timeout=LEARNING_MS)
    drive.settle(page)


def _show_of_counts(page: Page, name: str) -> None:
    drive.go(page, name)
    if name == "Flows":
        Instrument(page).wait()
    _stand_still(page)


def _fill_the_lab(page: Page) -> None:
    """A quick experiment; the teaching view comes with the app."""
    drive.go(page, "Lab")
    _open_part(page, EXPERIMENTS)
    page.get_by_role("button", name="Run the experiment").click()
    expect(page.get_by_text(drive.ENDED)).to_be_visible(timeout=LEARNING_MS)
    drive.settle(page)


def _open_part(page: Page, part: str) -> None:
    drive.widget(page, "view.lab.part").get_by_text(part, exact=True).click()
    drive.settle(page)


def _show_a_scene(page: Page, scene: int) -> None:
    drive.go(page, "Lab")
    _open_part(page, STORY)
    told = Instrument(page).wait()
    told.root.get_by_role("button", name=f"{scene}. ").click()
    told.expect_view(scene=scene - 1)
    _stand_still(page)


def _show_teaching(page: Page) -> None:
    drive.go(page, "Lab")
    _open_part(page, TEACHING)
    Instrument(page).wait()
    _stand_still(page)


def _show_flows_at_every_width(page: Page, run: str) -> None:
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"/Flows?run={run}&at=08:00&theme={theme}")
            drive.arrive(page, "Flows")
            Instrument(page).wait()
            _stand_still(page)
            _save(page.screenshot(), SCREENS / f"flows-{width}-{theme}.png")
            print("Flows", width, theme, flush=True)
    page.set_viewport_size(WINDOW)


def _show_maps_alone(page: Page, picture: Path) -> None:
    """The picture of the README and of Home: it must be there before Home is shown."""
    page.set_viewport_size({"width": 1280, "height": 1000})
    _show(page, "Flows")
    _save(Instrument(page).root.screenshot(), picture)
    page.set_viewport_size(WINDOW)


def _show_a_cell(page: Page) -> None:
    _show(page, "Flows")
    shown = Instrument(page)
    shown.control("Find a place").fill("row 6, column 8")
    shown.control("Find a place").press("Enter")
    shown.expect_view(cells=[CELL])
    _stand_still(page)


def _show_the_difference(page: Page) -> None:
    shown = Instrument(page)
    shown.key("Escape", "0")
    shown.root.get_by_role("radio", name="Difference").click()
    shown.expect_view(show="difference", cells=[])
    _stand_still(page)
    shown.root.get_by_role("radio", name="Two").click()


def _show(page: Page, name: str) -> None:
    """Open a page and wait until its maps are drawn; nothing is hovered."""
    drive.go(page, name)
    if name == "Flows":
        shown = Instrument(page).wait()
        shown.day.focus()
        page.keyboard.press("Home")
        shown.key(".")
        shown.expect_view(time="08:00")
        drive.settle(page)
    if name == "Evidence":
        _add_a_line(page)
    if name == "Lab":
        _open_part(page, EXPERIMENTS)
    for title in MAPS.get(name, ()):
        drive.wait_until_drawn(page, title)
    _stand_still(page)


def _add_a_line(page: Page) -> None:
    """Once: the second theme finds it there."""
    if drive.widget(page, "evidence.drop.0").count():
        return
    drive.press(
        page.get_by_role("button", name="Add the line"), drive.widget(page, "evidence.drop.0")
    )
    drive.settle(page)


def _stand_still(page: Page) -> None:
    """At the top of the page; nothing is hovered."""
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    page.mouse.move(2, 2)
    page.wait_for_timeout(2000)  # fades end, and the map draws its last layer


def _save(shot: bytes, path: Path) -> None:
    """Without the alpha channel, and packed as small as it goes without loss."""
    with Image.open(io.BytesIO(shot)) as picture:
        picture.convert("RGB").save(path, optimize=True)


if __name__ == "__main__":
    main()
