"""How the flow maps hold out: ``python -m tests.browser.endurance [--minutes 10]``.

Opens a run of the sample city with 300 arrows on each of two maps in software WebGL, and prints
how long they take to be drawn, how large they are on the wire, how long a click takes to show the
flows of a cell, and minute by minute whether the page answers while it plays.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from agg_core.plotting.flow_maps import flow_deck
from playwright.sync_api import Locator, Page, expect, sync_playwright

from agg_core.made.samples import load_outline
from agg_core.plotting.deck import Scene
from agg_core.store.runs import RunStore
from tests.browser import drive
from tests.browser.city import save_city
from tests.browser.server import CHROMIUM_ARGS, RUNS, served

REPOSITORY = Path(__file__).resolve().parents[2]
MAPS = ("Map of flows: Learned from groups", "Map of flows: Single people")
LEAST = 1.0
"""A threshold in people per step below which more than 300 flows lie."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of play")
    minutes = parser.parse_args().minutes
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        sys.exit("Chromium is not there: install it or set CHROMIUM to its path.")
    expect.set_options(timeout=120_000)
    with tempfile.TemporaryDirectory() as home, served(REPOSITORY, Path(home)) as address:
        run = save_city(Path(home) / RUNS)
        print(f"one map on the wire: {_bytes(RunStore(Path(home) / RUNS / 'runs'), run):,} bytes")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
            page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 900})
            _measure(page, run, minutes)
            browser.close()


def _bytes(store: RunStore, run: str) -> int:
    result = store.load(run)
    tables = [result.table("08:00", source) for source in ("estimate", "single")]
    deck = flow_deck(
        result.settings.grid.make(), tables[0], vmax=200, threshold=LEAST, shade="people",
        reference=tables[1], scene=Scene(load_outline()),
    )  # fmt: skip
    return len(deck.to_json().encode())


def _measure(page: Page, run: str, minutes: float) -> None:
    began = time.monotonic()
    page.goto(f"/Flows?run={run}&at=08:00&above={LEAST:g}&top=300")
    maps = [drive.wait_until_drawn(page, title) for title in MAPS]
    print(f"both maps drawn: {time.monotonic() - began:.1f} s after the address was entered")
    drive.settle(page)
    said = page.get_by_text("300 arrows of")
    expect(said).to_have_count(2)
    for attempt in range(3):
        print(f"click {attempt + 1} to the cell's flows: {_click(page, maps[0]):.2f} s")
    page.get_by_role("button", name="Play").click()
    print("minute  slowest frame, s  moments shown  script memory, MB")
    for minute in range(1, round(minutes) + 1):
        slowest, moments = _watch(page, min(60.0, minutes * 60))
        heap = page.evaluate("performance.memory.usedJSHeapSize / 1e6")
        print(f"{minute:6d}  {slowest:16.2f}  {moments:13d}  {heap:17.0f}", flush=True)
    began = time.monotonic()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    print(f"pause answered after {time.monotonic() - began:.2f} s")
    print(f"click to the cell's flows after play: {_click(page, maps[0]):.2f} s")


def _click(page: Page, canvas: Locator) -> float:
    """Choose a cell by a click; give the seconds until its numbers are there; and back."""
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + 0.53 * box["width"], box["y"] + 0.53 * box["height"]
    page.mouse.move(x - 3, y)
    page.wait_for_timeout(1500)
    page.mouse.move(x, y)
    page.wait_for_timeout(1500)
    shown = page.get_by_text("of this cell per 30-minute step")
    seconds = _press_until_told(page, (x, y), shown)
    drive.settle(page)
    page.wait_for_timeout(1000)
    drive.widget(page, "flows.view.cell").get_by_role("button", name="Clear").click()
    expect(shown).to_have_count(0)
    drive.settle(page)
    page.wait_for_timeout(1000)
    return seconds


def _press_until_told(page: Page, at: tuple[float, float], shown: Locator) -> float:
    """Seconds from the click that was heard; the map misses one while it draws a long frame."""
    for _ in range(5):
        began = time.monotonic()
        page.mouse.click(*at)
        try:
            expect(shown).to_have_count(2, timeout=8_000)
        except AssertionError:
            print("a click was not heard")
            continue
        return time.monotonic() - began
    raise AssertionError("no click was heard")


def _watch(page: Page, seconds: float) -> tuple[float, int]:
    """The longest the page went without drawing a frame, and how often the time of day changed."""
    found = page.evaluate(
        """(ms) => new Promise((done) => {
            const times = document.querySelector('[role="radiogroup"][aria-label="Time of day"]');
            const chosen = () => times?.querySelector('[aria-checked="true"]')?.textContent;
            const began = performance.now();
            let last = began, slowest = 0, moments = 0, before = chosen();
            const frame = (now) => {
                slowest = Math.max(slowest, now - last);
                last = now;
                if (chosen() !== before) { moments += 1; before = chosen(); }
                if (now - began < ms) requestAnimationFrame(frame);
                else done([slowest / 1000, moments]);
            };
            requestAnimationFrame(frame);
        })""",
        seconds * 1000,
    )
    return float(found[0]), int(found[1])


if __name__ == "__main__":
    main()
