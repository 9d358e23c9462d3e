"""The page of maps that is saved to a file, opened from it with no network."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from agg_core.plotting.flow_maps import flow_deck
from agg_core.plotting.html_map import arrow_legend_svg, standalone_map
from agg_core.space.build import Grid
from tests.browser import drive

GRID = Grid.from_bbox(139.28, 35.36, 140.24, 36.06, 14, 16)
HOSTILE = "</script><script>document.title = 'broken'</script><img src=http://example.com/x>"
WAIT_S = 30


def flows(seed: int) -> pd.DataFrame:
    """Three hundred flows between neighbours, and one large one across the middle of the map."""
    rng = np.random.default_rng(seed)
    origin = rng.integers(0, GRID.n_cells - 17, 300)
    dest = origin + rng.choice([1, 16, 17], 300)
    moves = pd.DataFrame({"origin": origin, "dest": dest, "count": rng.uniform(1, 60, 300)})
    large = pd.DataFrame({"origin": [7 * 16 + 2], "dest": [7 * 16 + 13], "count": [400.0 + seed]})
    return pd.concat([large, moves.drop_duplicates(["origin", "dest"])], ignore_index=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    maps = [
        (name, flow_deck(GRID, flows(seed), vmax=200, threshold=0, shade="people"))
        for seed, name in enumerate(("Estimate", f"Truth {HOSTILE}"))
    ]
    page = standalone_map(
        maps, f"Flows {HOSTILE}", [f"A note {HOSTILE}"], arrow_legend_svg(200, 10)
    )
    file = tmp_path_factory.mktemp("page") / "map.html"
    file.write_text(page, encoding="utf-8")
    return file


@dataclass
class Opened:
    page: Page
    faults: list[str]
    """What it asked for and complained of."""


@pytest.fixture(scope="module")
def opened(browser: Browser, saved: Path) -> Iterator[Opened]:
    """The saved page, opened offline once: a map takes seconds to be drawn first."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    context.on("request", lambda request: faults.append(f"asked for {request.url}"))
    context.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda fault: faults.append(str(fault.error)))
    page = context.new_page()
    page.goto(saved.as_uri())
    yield Opened(page, faults)
    context.close()


@pytest.fixture
def alone(opened: Opened, saved: Path) -> Iterator[Page]:
    """The page as the test before left it: who looks for a place comes first, who resizes last."""
    yield opened.page
    assert opened.faults == [f"asked for {saved.as_uri()}"]


def drawn_maps(page: Page) -> list[Locator]:
    """Both maps, when each shows more than a background."""
    boxes = page.locator(".map")
    expect(boxes.locator("canvas")).to_have_count(2)
    maps = [boxes.nth(0), boxes.nth(1)]
    for box in maps:
        for _ in range(WAIT_S * 4):
            if drive.colours(box) >= 8:
                break
            page.wait_for_timeout(250)
        else:
            raise AssertionError(f"a map stayed blank for {WAIT_S} s")
    return maps


def changes(page: Page, box: Locator, before: np.ndarray) -> np.ndarray:
    """What a map shows when it is no longer what it was."""
    for _ in range(WAIT_S * 4):
        now = drive.pixels(box)
        if np.mean(np.any(now != before, axis=2)) > 0.05:
            return now
        page.wait_for_timeout(250)
    raise AssertionError(f"the map did not move within {WAIT_S} s")


def middle(box: Locator) -> tuple[float, float]:
    place = box.bounding_box()
    assert place is not None
    return place["x"] + place["width"] / 2, place["y"] + place["height"] / 2


def test_it_opens_without_a_network_and_text_stays_text(alone: Page) -> None:
    drawn_maps(alone)
    expect(alone.get_by_role("heading", level=1)).to_have_text(f"Flows {HOSTILE}")
    expect(alone.get_by_role("heading", level=2).nth(1)).to_have_text(f"Truth {HOSTILE}")
    expect(alone.get_by_text(f"A note {HOSTILE}")).to_be_visible()
    assert alone.title() == f"Flows {HOSTILE}"
    assert alone.locator("img").count() == 0
    legend = alone.get_by_role("img", name=re.compile("^People per step: 10, "))
    expect(legend).to_be_visible()


def test_the_pointer_tells_what_is_there(alone: Page) -> None:
    maps = drawn_maps(alone)
    x, y = middle(maps[0])
    tooltip = maps[0].locator(".deck-tooltip")
    # The large arrow runs to the east, a little below the line between the two cells.
    for below in range(-20, 60, 4):
        alone.mouse.move(x, y + below)
        alone.wait_for_timeout(250)
        if tooltip.is_visible() and "from row 7" in tooltip.inner_text():
            break
    expect(tooltip).to_have_text(
        "from row 7, column 2 to row 7, column 13\npeople per step: 400", use_inner_text=True
    )


def test_who_drags_one_map_moves_both_alike(alone: Page) -> None:
    maps = drawn_maps(alone)
    for moved in maps:
        before = [drive.pixels(box) for box in maps]
        x, y = middle(moved)
        alone.mouse.move(x, y)
        alone.mouse.down()
        alone.mouse.move(x + 96, y + 32, steps=6)
        alone.mouse.up()
        alone.mouse.move(2, 2)
        for box, old in zip(maps, before, strict=True):
            changes(alone, box, old)
        alone.wait_for_timeout(1000)  # what glides on comes to rest
        shifts = [shift(old, drive.pixels(box)) for box, old in zip(maps, before, strict=True)]
        # The first step of the pointer begins the drag.
        assert shifts[0] == shifts[1]
        assert shifts[0] == pytest.approx((80, 27), abs=2)


def shift(before: np.ndarray, after: np.ndarray) -> tuple[int, int]:
    """How far right and down a picture went, by the peak of the phase correlation."""
    grey = [np.asarray(picture, dtype=float).mean(axis=2) for picture in (before, after)]
    spectra = [np.fft.fft2(picture - picture.mean()) for picture in grey]
    cross = np.conj(spectra[0]) * spectra[1]
    peak = np.abs(np.fft.ifft2(cross / np.maximum(np.abs(cross), 1e-9)))
    down, right = np.unravel_index(int(peak.argmax()), peak.shape)
    return int(right), int(down)


def test_the_wheel_zooms_both(alone: Page) -> None:
    maps = drawn_maps(alone)
    before = [drive.pixels(box) for box in maps]
    alone.mouse.move(*middle(maps[0]))
    alone.mouse.wheel(0, -300)
    for box, old in zip(maps, before, strict=True):
        changes(alone, box, old)


def test_maps_stand_side_by_side_and_wrap_in_a_narrow_window(alone: Page) -> None:
    left, right = (box.bounding_box() for box in drawn_maps(alone))
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"]
    assert left["width"] == right["width"]
    alone.set_viewport_size({"width": 480, "height": 900})
    expect(alone.locator(".map").first).to_have_css("width", "438px")
    left, right = (box.bounding_box() for box in drawn_maps(alone))
    assert left is not None
    assert right is not None
    assert left["x"] == right["x"]
    assert left["y"] < right["y"]
    assert alone.evaluate("document.documentElement.scrollWidth") == 480
