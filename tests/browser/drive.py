"""What a person does in the browser: go, fill, choose, wait, and look at a map."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Download, Locator, Page, TimeoutError, expect

TITLES = {
    "Home": "Population flows",
    "Data": "Data",
    "Grid": "Grid",
    "Learn": "Learn",
    "Flows": "Flows",
    "Evidence": "Evidence",
    "Lab": "Lab",
    "Runs": "Runs",
}
RUN_MS = 300_000
WAIT_S = 30
TRIES, TRY_MS = 4, 15_000
"""How often a click is tried, and how long its effect is waited for."""
ENDED = re.compile("^Done in|^Cancelled")


def widget(page: Page, key: str) -> Locator:
    """The element of a widget: its key is a class name in the page."""
    return page.locator(".st-key-" + re.sub(r"[^\w-]", "-", key))


def settle(page: Page) -> None:
    """Wait until the server has answered and nothing of an older answer is left."""
    page.wait_for_timeout(200)  # the front end needs a moment to send what was done
    page.wait_for_function(
        """() => {
            const app = document.querySelector('[data-testid="stApp"]');
            return app?.dataset.testScriptState === 'notRunning'
                && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]');
        }"""
    )


def press(target: Locator, effect: Locator) -> None:
    """Click until the effect is seen; only for what may be clicked twice, or goes by the click."""

    def click() -> None:
        if target.is_visible():
            target.click()

    _until_seen(click, effect)


def _until_seen(click: Callable[[], None], effect: Locator) -> None:
    """A click on what is being drawn anew is lost: it is done again when nothing came of it."""
    for _ in range(TRIES):
        if not effect.is_visible():
            click()
        try:
            expect(effect).to_be_visible(timeout=TRY_MS)
        except AssertionError:
            continue
        return
    raise AssertionError(f"{effect} did not appear after {TRIES} clicks")


def press_next(page: Page, button: str, name: str) -> None:
    """Press a button that leads to another page."""
    press(page.get_by_role("button", name=button), _heading(page, name))
    arrive(page, name)


def pick(page: Page, key: str, option: str) -> None:
    """Choose one of several that stand side by side."""
    group = widget(page, key)
    press(
        group.get_by_text(option, exact=True),
        group.get_by_role("radio", name=option, exact=True, checked=True),
    )
    settle(page)


def downloaded(page: Page, button: Locator) -> Download:
    """What a button of a download gives, however often it must be clicked."""
    for _ in range(TRIES):
        try:
            with page.expect_download(timeout=TRY_MS) as made:
                button.click()
        except TimeoutError:
            continue
        return made.value
    raise AssertionError(f"{button} was clicked, and nothing was downloaded")


def _heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", name=TITLES[name], exact=True, level=1)


def arrive(page: Page, name: str) -> None:
    expect(_heading(page, name)).to_be_visible()
    settle(page)


def go(page: Page, name: str) -> None:
    """Take the step at the top of the page."""
    press(page.get_by_role("link", name=name, exact=True).first, _heading(page, name))
    arrive(page, name)


def fill(page: Page, key: str, value: object) -> None:
    """Type a value and wait until the page has taken it."""
    box = widget(page, key).locator("input")
    expect(box).to_have_count(1)  # a page that runs twice shows the old one beside the new
    box.fill(str(value))
    box.press("Enter")
    settle(page)


def choose(page: Page, key: str, option: str) -> None:
    """Pick an option of a select box; a page that still runs would close its list."""
    settle(page)
    box = widget(page, key).locator("input")
    expect(box).to_have_count(1)

    def look() -> None:
        box.click()
        box.fill(option)  # a long list shows only what fits

    _until_seen(look, page.get_by_role("option", name=option, exact=True))
    box.press("Enter")
    settle(page)


def remove_times(page: Page) -> None:
    """Take out all times at which windows begin: the whole day is left."""
    remove = widget(page, "window.times").get_by_role("button", name="Remove")
    for left in range(remove.count() - 1, -1, -1):
        remove.first.click()
        expect(remove).to_have_count(left)
        settle(page)


def open_more(page: Page, inside: str) -> None:
    """Unfold the settings that are folded away on the page Learn; ``inside`` is the key of one."""
    press(
        page.get_by_test_id("stExpander").get_by_text("More", exact=True),
        widget(page, inside).locator("input").first,
    )
    settle(page)


def choose_nothing(page: Page) -> None:
    """On the page Learn: noise and prior as given, no simulated worlds, which take long."""
    open_more(page, "learner.noise")
    for key in ("learner.noise", "learner.strength"):
        choose(page, key, "As given")
    fill(page, "learn.replicates", 0)


def open_sample(page: Page) -> None:
    """Open the data of the sample and go to its grid."""
    page.goto("/Data")
    arrive(page, "Data")
    following = page.get_by_role("button", name="Next: the grid")
    press(page.get_by_role("button", name="Tokyo commuters (synthetic)", exact=True), following)
    settle(page)
    press_next(page, "Next: the grid", "Grid")


def upload(page: Page, name: str, content: bytes) -> None:
    widget(page, "upload").locator('input[type="file"]').set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    # The uploader shortens a long name in its middle.
    expect(widget(page, "upload").get_by_text(name[-6:]).first).to_be_visible()
    settle(page)


def start(page: Page, button: str) -> None:
    """Start long work that has not been done on this page yet."""
    running = page.get_by_role("button", name="Cancel").or_(page.get_by_text(ENDED))
    press(page.get_by_role("button", name=button), running.first)


def learn(page: Page, button: str = "Learn the flows") -> None:
    """Start long work and wait for its end."""
    start(page, button)
    expect(page.get_by_text(ENDED)).to_be_visible(timeout=RUN_MS)
    settle(page)


def figures(page: Page) -> dict[str, str]:
    """Every metric on the page: label to value."""
    tiles = page.get_by_test_id("stMetric")
    return {
        tile.get_by_test_id("stMetricLabel").inner_text().strip(): tile.get_by_test_id(
            "stMetricValue"
        )
        .inner_text()
        .strip()
        for tile in tiles.all()
    }


def pixels(target: Locator) -> np.ndarray:
    """What is drawn in an element, (height, width, 3)."""
    shot = target.screenshot(animations="disabled")
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))


def colours(target: Locator) -> int:
    """Different colours that cover at least ten pixels: one or two when nothing is drawn."""
    red, green, blue = np.moveaxis(pixels(target).astype(np.intp) // 8, -1, 0)
    counts = np.bincount((red * 32 + green).ravel() * 32 + blue.ravel())
    return int((counts >= 10).sum())


def alike(before: np.ndarray, after: np.ndarray) -> float:
    """Share of pixels that are nearly the same."""
    return float(np.mean(np.abs(before.astype(int) - after).max(axis=2) < 16))


def wait_until_drawn(page: Page, title: str, least: int = 8) -> Locator:
    """Wait until the map of that title shows more than a background."""
    canvas = page.get_by_role("figure", name=title).locator("canvas").first
    expect(canvas).to_be_visible()
    for _ in range(WAIT_S * 4):
        if colours(canvas) >= least:
            return canvas
        page.wait_for_timeout(250)
    raise AssertionError(f"the map {title!r} stayed blank for {WAIT_S} s")


class Instrument:
    """The flow map of a page: its maps, its controls and what it says of itself."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".instrument")
        self.canvas = self.root.locator(".canvas")
        self.day = self.root.locator(".day")

    def wait(self, least: int = 5) -> Instrument:
        """Wait until it stands and shows more than a ground."""
        expect(self.root).to_have_attribute("data-arrows", re.compile(r"^\d"))
        for _ in range(WAIT_S * 4):
            if colours(self.canvas) >= least:
                return self
            self.page.wait_for_timeout(250)
        raise AssertionError(f"the flow map stayed blank for {WAIT_S} s")

    @property
    def view(self) -> dict[str, Any]:
        """All that is chosen on it, by the names of ``View`` in ``ui/flowmap``."""
        return dict(json.loads(self.root.get_attribute("data-view") or "{}"))

    @property
    def arrows(self) -> tuple[int, ...]:
        """Arrows on each of its maps."""
        return tuple(int(n) for n in (self.root.get_attribute("data-arrows") or "").split())

    @property
    def camera(self) -> dict[str, float]:
        """Where both maps look."""
        return dict(json.loads(self.root.get_attribute("data-camera") or "{}"))

    @property
    def script_ms(self) -> float:
        """How long the last change kept the script."""
        return float(self.root.get_attribute("data-script-ms") or "nan")

    def control(self, label: str) -> Locator:
        return self.root.get_by_label(label, exact=True)

    def key(self, *keys: str) -> None:
        """Press keys with the focus on the map itself."""
        self.root.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def expect_view(self, **chosen: object) -> None:
        """Wait until these parts of the view are as named."""
        for _ in range(WAIT_S * 10):
            view = self.view
            if all(view.get(name) == value for name, value in chosen.items()):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"not {chosen} but {self.view}")

    def place(self, lon: float, lat: float) -> tuple[float, float]:
        """Where on the window a place lies, on the first of the maps."""
        box = self.canvas.bounding_box()
        assert box is not None
        wide, high = box["width"], box["height"]
        if wide < 640 and high > wide * 0.8:
            high /= len(self.arrows)  # they lie above each other
        else:
            wide /= len(self.arrows)
        camera = self.camera
        size = 512 * 2 ** camera["zoom"]
        right = (lon - camera["longitude"]) / 360 * size
        down = (_mercator(camera["latitude"]) - _mercator(lat)) / (2 * math.pi) * size
        return box["x"] + wide / 2 + right, box["y"] + high / 2 + down

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """The same part of each of two maps side by side, where nothing is written on them."""
        shown = pixels(self.canvas)
        high, wide = shown.shape[0], shown.shape[1] // 2
        part = (slice(high // 4, high * 3 // 4), slice(wide // 8, wide * 7 // 8))
        return shown[:, :wide][part], shown[:, -wide:][part]

    def point(self, at: tuple[float, float], name: str) -> Locator:
        """Move the pointer to a place until the map names what is there; what it says."""
        tip = self.root.locator(".tip", has_text=name)
        for step in range(WAIT_S * 4):
            self.page.mouse.move(at[0] + step % 2, at[1])
            if tip.is_visible():
                return tip
            self.page.wait_for_timeout(250)
        said = self.root.locator(".tip").inner_text()
        raise AssertionError(f"at {at} the map says {said!r}, not {name}")


@dataclass
class Alone:
    """A page that was opened from a file with no network; what it asked for and complained of."""

    file: Path
    map: Instrument
    faults: list[str]

    def expect_quiet(self) -> None:
        """It asked for nothing but itself, and complained of nothing."""
        assert self.faults == [f"asked for {self.file.as_uri()}"]


@contextmanager
def opened_alone(browser: Browser, file: Path) -> Iterator[Alone]:
    """Open a page that was taken away, offline, and wait until its map stands."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    context.on("request", lambda request: faults.append(f"asked for {request.url}"))
    context.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda fault: faults.append(str(fault.error)))
    alone = context.new_page()
    alone.goto(file.as_uri())
    yield Alone(file, Instrument(alone).wait(), faults)
    context.close()


def _mercator(lat: float) -> float:
    return math.log(math.tan(math.pi / 4 + math.radians(lat) / 2))
