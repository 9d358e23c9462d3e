"""The flow map by itself: a page saved to a file, opened from it with no network."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from agg_core.plotting.flow_map import MapFlows, MapSource, pack, page
from agg_core.space.build import Grid
from tests.browser import drive
from tests.browser.drive import Alone, Instrument, opened_alone

GRID = Grid.from_bbox(139.28, 35.36, 140.24, 36.06, 14, 16)
WEST, EAST = 7 * 16 + 2, 7 * 16 + 13
"""Two cells of one row, with the two large flows between them."""
LONELY = 16 + 2
"""A cell without any arrow about it."""
LARGE = {
    ("estimate", "08:00"): (400.0, 100.0), ("truth", "08:00"): (300.0, 50.0),
    ("estimate", "14:00"): (120.0, 0.0), ("truth", "14:00"): (100.0, 0.0),
}  # fmt: skip
"""People from west to east and back, by source and time."""
HOSTILE = "</script><script>document.title = 'broken'</script><img src=http://example.com/x>"
VIEW = {
    "asked": "", "time": "08:00", "until": "08:00", "step": None, "truth": "truth",
    "show": "both", "net": False, "threshold": 20.0, "difference_threshold": 60.0,
    "cell_threshold": 1.0, "top_n": 300, "shade": "people", "cells": [], "direction": "both",
    "resolved": False, "clusters": False, "camera": None,
}  # fmt: skip


def rows(source: str, time: str, step: int | None) -> pd.DataFrame:
    """The large flows, and some between neighbours in the south."""
    rng = np.random.default_rng(0)
    origin = rng.integers(9 * 16, 13 * 16 - 1, 60)
    dest = origin + rng.choice([1, 16], 60)
    there, back = LARGE[source, time]
    origin, dest = np.append(origin, [WEST, EAST]), np.append(dest, [EAST, WEST])
    count = np.append(rng.uniform(1, 40, 60), [there, back])
    flows = pd.DataFrame({"origin": origin, "dest": dest, "count": count})
    return flows.drop_duplicates(["origin", "dest"])


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """The saved page, opened offline once: a map takes seconds to be drawn first."""
    flows = MapFlows(
        GRID, GRID.labels, ("08:00", "14:00"),
        (MapSource("estimate", f"Estimate {HOSTILE}", "Estimate"),
         MapSource("truth", "Truth", "Truth")),
        rows, "per step",
    )  # fmt: skip
    file = tmp_path_factory.mktemp("page") / "map.html"
    saved = page(pack(flows).showing(VIEW), f"Flows {HOSTILE}", [f"A note {HOSTILE}"])
    file.write_text(saved, encoding="utf-8")
    with opened_alone(browser, file) as alone:
        yield alone


@pytest.fixture
def instrument(opened: Alone) -> Iterator[Instrument]:
    """The map with nothing chosen on it; who resizes the window comes last."""
    shown = opened.map
    shown.key("Escape", "0")
    shown.control("Arrows above").fill("20")
    shown.root.get_by_role("radio", name="Two").or_(
        shown.root.get_by_role("radio", name="Both")
    ).click()
    at_eight(shown)
    yield shown
    opened.expect_quiet()


def at_eight(shown: Instrument) -> None:
    shown.day.focus()
    shown.page.keyboard.press("Home")
    shown.expect_view(time="08:00", cells=[], camera=None)


def middle(shown: Instrument, below: float = 6) -> tuple[float, float]:
    """Middle of the line between the two cells, or pixels below it: there the larger flow lies."""
    lon, lat = (GRID.centroids[WEST] + GRID.centroids[EAST]) / 2
    x, y = shown.place(lon, lat)
    return x, y + below


def cell_at(shown: Instrument, cell: int) -> tuple[float, float]:
    return shown.place(*GRID.centroids[cell])


def test_it_opens_without_a_network_and_text_stays_text(instrument: Instrument) -> None:
    page = instrument.page
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Flows {HOSTILE}")
    headings = instrument.root.locator(".caption h2")
    expect(headings).to_have_text([f"Estimate {HOSTILE}", "Truth"])
    expect(page.get_by_text(f"A note {HOSTILE}")).to_be_visible()
    assert page.title() == f"Flows {HOSTILE}"
    assert page.locator("img").count() == 0


def test_controls_change_the_arrows(instrument: Instrument) -> None:
    with_small = instrument.arrows
    assert min(with_small) > 2
    instrument.control("Arrows above").fill("90")
    assert instrument.arrows == (2, 1)
    instrument.control("Arrows above").fill("320")
    assert instrument.arrows == (1, 0)
    instrument.control("Arrows above").fill("260")
    assert instrument.arrows == (1, 1)
    net = instrument.control("Net flows")
    net.check()
    assert instrument.arrows == (1, 0), "400 - 100 and 300 - 50"
    net.uncheck()
    instrument.root.get_by_role("radio", name="Difference").click()
    assert instrument.arrows == (1,), "of 100 and 50, those above 60"
    instrument.root.get_by_role("radio", name="One").click()
    assert instrument.arrows == (1,)
    instrument.day.focus()
    instrument.page.keyboard.press("End")
    instrument.expect_view(time="14:00")
    assert instrument.arrows == (0,)


def test_the_pointer_tells_what_is_there(instrument: Instrument) -> None:
    instrument.control("Arrows above").fill("90")
    for below, name, numbers in (
        (-3, "row 7, column 13 to row 7, column 2", (100, 50)),
        (6, "row 7, column 2 to row 7, column 13", (400, 300)),
    ):
        tip = instrument.point(middle(instrument, below), name)
        lines = [name, "People per step", *map("{}: {}".format, ("Estimate", "Truth"), numbers)]
        expect(tip).to_have_text("\n".join(lines), use_inner_text=True)


def test_a_click_chooses_and_escape_takes_it_back(instrument: Instrument) -> None:
    mouse = instrument.page.mouse
    mouse.click(*cell_at(instrument, LONELY))
    instrument.expect_view(cells=[LONELY])
    expect(instrument.root.get_by_role("heading", name=GRID.labels[LONELY])).to_be_visible()
    instrument.page.keyboard.down("Shift")
    mouse.click(*cell_at(instrument, LONELY + 5))
    instrument.page.keyboard.up("Shift")
    instrument.expect_view(cells=[LONELY, LONELY + 5])
    mouse.click(*cell_at(instrument, LONELY + 5))
    instrument.expect_view(cells=[LONELY + 5])
    mouse.click(*cell_at(instrument, LONELY + 5))
    instrument.expect_view(cells=[])
    instrument.control("Arrows above").fill("320")
    mouse.click(*middle(instrument))
    instrument.expect_view(cells=[WEST])
    table = instrument.root.locator(".sums")
    expect(table.get_by_role("row", name="come in")).to_contain_text("100")
    expect(table.get_by_role("row", name="go out")).to_contain_text("400")
    instrument.root.locator(".partners li", has_text="→").click()
    instrument.expect_view(cells=[EAST])
    instrument.key("Escape")
    instrument.expect_view(cells=[])


def test_cells_are_chosen_by_lasso_and_by_name(instrument: Instrument) -> None:
    mouse = instrument.page.mouse
    instrument.control("Choose cells with a lasso").click()
    west, south, east, north = GRID.cell_bounds[LONELY]
    wide, high = east - west, north - south
    corners = [
        instrument.place(west - wide * 0.3 + dx * wide * 2.6, south - high * 0.3 + dy * high * 1.6)
        for dx, dy in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    mouse.move(*corners[0])
    mouse.down()
    for corner in (*corners[1:], corners[0]):
        mouse.move(*corner, steps=4)
    mouse.up()
    instrument.expect_view(cells=[LONELY, LONELY + 1])
    instrument.key("Escape")
    whole = instrument.camera
    find = instrument.control("Find a place")
    find.fill(GRID.labels[EAST].upper())
    find.press("Enter")
    instrument.expect_view(cells=[EAST])
    assert instrument.camera["zoom"] > whole["zoom"] + 0.5
    lon, lat = GRID.centroids[EAST]
    assert instrument.camera["longitude"] == pytest.approx(lon, abs=1e-3)
    assert instrument.camera["latitude"] == pytest.approx(lat, abs=1e-3)


def test_keys_go_through_the_day_and_over_the_map(instrument: Instrument) -> None:
    whole = instrument.camera
    instrument.key(".")
    instrument.expect_view(time="14:00")
    instrument.key(",")
    instrument.expect_view(time="08:00")
    instrument.key("+", "ArrowRight")
    assert instrument.camera["zoom"] == pytest.approx(whole["zoom"] + 1)
    assert instrument.camera["longitude"] > whole["longitude"]
    instrument.key("-", "0")
    assert instrument.camera == pytest.approx(whole)
    instrument.key(" ")
    instrument.expect_view(time="14:00")
    instrument.expect_view(time="08:00")
    expect(instrument.control("Pause")).to_be_visible()
    instrument.key("Escape")
    expect(instrument.control("Play")).to_be_visible()


def test_arrows_keep_their_width_in_pixels(instrument: Instrument) -> None:
    instrument.root.get_by_role("radio", name="One").click()
    instrument.control("Arrows above").fill("320")
    instrument.control("Shade of cells").select_option("none")
    before = width_of_the_large_arrow(instrument)
    assert before == pytest.approx(11, abs=2), "the largest flow has the largest width"
    zoom = instrument.camera["zoom"]
    instrument.page.mouse.move(*middle(instrument, 0))
    while instrument.camera["zoom"] < zoom + 6:
        instrument.page.mouse.wheel(0, -100)
        instrument.page.wait_for_timeout(50)
    assert width_of_the_large_arrow(instrument) == pytest.approx(before, abs=1)
    instrument.control("Shade of cells").select_option("people")


def width_of_the_large_arrow(shown: Instrument) -> int:
    """Dark pixels in the column of the middle of the large arrow."""
    shown.page.mouse.move(2, 2)
    shown.page.wait_for_timeout(500)
    box = shown.canvas.bounding_box()
    assert box is not None
    beside = round(middle(shown)[0] - box["x"]) + 8  # not on the border of two cells
    column = drive.pixels(shown.canvas)[120:-120, beside]  # nothing is written there
    return int((column.sum(axis=1, dtype=int) < 300).sum())


def test_two_maps_never_lie_apart(instrument: Instrument) -> None:
    """Two hundred pans and zooms, by wheel, hand and keys, on either map."""
    instrument.control("Shade of cells").select_option("none")
    instrument.control("Arrows above").fill("10000")
    rng = np.random.default_rng(17)
    whole = instrument.camera["zoom"]
    for deed in range(1, 201):
        pan_or_zoom(instrument, rng, whole)
        if deed % 20 == 0:
            instrument.page.mouse.move(2, 2)
            instrument.page.wait_for_timeout(500)
            left, right = instrument.halves()
            assert drive.alike(left, right) > 0.985
            assert np.ptp(left.sum(axis=2)) > 20, "borders of cells are in sight"
    instrument.control("Shade of cells").select_option("people")


def pan_or_zoom(shown: Instrument, rng: np.random.Generator, whole: float) -> None:
    """One deed at random that leaves some borders in sight."""
    box = shown.canvas.bounding_box()
    assert box is not None
    mouse, zoom = shown.page.mouse, shown.camera["zoom"]
    if zoom > whole + 3 or zoom < whole - 0.5:
        shown.key("0")
        return
    x = box["x"] + box["width"] * rng.uniform(0.05, 0.95)
    y = box["y"] + box["height"] * rng.uniform(0.3, 0.7)
    deed = rng.integers(3)
    if deed == 0:
        mouse.move(x, y)
        mouse.wheel(0, float(rng.choice([-120, 120])))
    elif deed == 1:
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + rng.uniform(-60, 60), y + rng.uniform(-60, 60), steps=2)
        mouse.up()
    else:
        keys = ["+", "-", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
        shown.key(str(rng.choice(keys)))


def test_maps_lie_above_each_other_in_a_narrow_window(instrument: Instrument) -> None:
    page: Page = instrument.page
    page.set_viewport_size({"width": 390, "height": 844})
    expect(instrument.root).to_have_class("instrument narrow")
    one, other = (box.bounding_box() for box in instrument.root.locator(".caption").all())
    assert one is not None
    assert other is not None
    assert one["x"] == other["x"]
    assert one["y"] + one["height"] < other["y"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
