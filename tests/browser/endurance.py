"""How the flow map holds out: ``python -m tests.browser.endurance [--minutes 2]``.

Opens a run of the sample city in software WebGL twice, and prints how long the map takes to stand:
the second time the server knows the run. Then the map plays, and minute by minute it prints the
longest that the page went without a frame, how often the time changed, and what script keeps of
memory after its garbage was collected.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import CDPSession, Page, expect, sync_playwright

from tests.browser.city import save_city
from tests.browser.drive import Instrument
from tests.browser.server import CHROMIUM_ARGS, RUNS, served

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="of play")
    minutes = parser.parse_args().minutes
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        sys.exit("Chromium is not there: install it or set CHROMIUM to its path.")
    expect.set_options(timeout=120_000)
    with tempfile.TemporaryDirectory() as home, served(REPOSITORY, Path(home)) as address:
        run = save_city(Path(home) / RUNS)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
            window = {"base_url": address, "viewport": {"width": 1280, "height": 900}}
            for server in ("cold", "warm"):
                page = browser.new_page(**window)
                print(f"map drawn, {server} server: {_open(page, run):.1f} s after its address")
            _play(page, minutes)
            browser.close()


def _open(page: Page, run: str) -> float:
    """Seconds from the address to the first frame with all arrows."""
    began = time.monotonic()
    page.goto(f"/Flows?run={run}&at=08:00")
    expect(Instrument(page).root).to_have_attribute("data-arrows", re.compile(r"^\d"))
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return time.monotonic() - began


def _play(page: Page, minutes: float) -> None:
    devtools = page.context.new_cdp_session(page)
    Instrument(page).key(" ")
    print("minute  slowest frame, s  times shown  script memory, MB")
    print(f"{0:6d}  {'':16s}  {'':11s}  {_heap_mb(devtools):17.1f}", flush=True)
    for minute in range(1, round(minutes) + 1):
        slowest, times = _watch(page, 60.0)
        print(f"{minute:6d}  {slowest:16.2f}  {times:11d}  {_heap_mb(devtools):17.1f}", flush=True)


def _heap_mb(devtools: CDPSession) -> float:
    devtools.send("HeapProfiler.collectGarbage")
    return float(devtools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def _watch(page: Page, seconds: float) -> tuple[float, int]:
    """The longest the page went without drawing a frame, and how often the time changed."""
    found = Instrument(page).root.evaluate(
        """(map, ms) => new Promise((done) => {
            const shown = () => JSON.parse(map.dataset.view).time;
            const began = performance.now();
            let last = began, slowest = 0, times = 0, before = shown();
            const frame = (now) => {
                slowest = Math.max(slowest, now - last);
                last = now;
                if (shown() !== before) { times += 1; before = shown(); }
                if (now - began < ms) requestAnimationFrame(frame);
                else done([slowest / 1000, times]);
            };
            requestAnimationFrame(frame);
        })""",
        seconds * 1000,
    )
    return float(found[0]), int(found[1])


if __name__ == "__main__":
    main()
