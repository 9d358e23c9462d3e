"""The page Flows in a browser: an address, a click, zoom, play, a theme, files, a basemap."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import numpy as np
import openmatrix
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import drive
from tests.browser.conftest import Watch, opened_page

LEARNED, SINGLE = "Map of flows: Learned from groups", "Map of flows: Single people"
KEY = "flows.view."
MIDDLE = (0.53, 0.53)
"""A place on the maps where a busy cell of the city is, as shares of width and height."""


def open_run(page: Page, run: str, **view: object) -> tuple[Locator, Locator]:
    """Open a picture by its address and wait for both maps."""
    asked = "&".join(f"{name}={value}" for name, value in {"run": run, **view}.items())
    page.goto(f"/Flows?{asked}")
    drive.arrive(page, "Flows")
    return drive.wait_until_drawn(page, LEARNED), drive.wait_until_drawn(page, SINGLE)


def place_on(canvas: Locator, at: tuple[float, float] = MIDDLE) -> tuple[float, float]:
    box = canvas.bounding_box()
    assert box is not None
    return box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"]


def point_at(page: Page, canvas: Locator) -> str:
    """Move the pointer over the map until it says what is there."""
    x, y = place_on(canvas)
    told = page.locator(".deck-tooltip", has_text=re.compile("row"))
    for step in range(40):
        page.mouse.move(x + step % 3, y)
        if told.first.is_visible():
            return told.first.inner_text()
        page.wait_for_timeout(250)
    raise AssertionError("the map says nothing of what is under the pointer")


def click(page: Page, canvas: Locator) -> None:
    point_at(page, canvas)
    drive.click_at(page, place_on(canvas), page.get_by_text(re.compile("^Cell row")).first)


def chosen_cell(page: Page) -> str:
    return drive.widget(page, f"{KEY}cell").locator("input").input_value()


def alike(before: np.ndarray, after: np.ndarray) -> float:
    """Share of pixels that are nearly the same."""
    return float(np.mean(np.abs(before.astype(int) - after).max(axis=2) < 16))


@dataclass
class Morning:
    """The flows of 8:00, opened once for all tests that leave the map where it lies."""

    page: Page
    watch: Watch
    learned: Locator

    def from_the_start(self) -> None:
        """Take back what a test before has chosen: a cell, another time of day."""
        clear = drive.widget(self.page, f"{KEY}cell").get_by_role("button", name="Clear")
        if clear.count():
            clear.click()
            drive.settle(self.page)
        choose_time(self.page, "08:00")


def choose_time(page: Page, time: str) -> None:
    drive.pick(page, f"{KEY}time", time)


@pytest.fixture(scope="module")
def opened_morning(browser: Browser, app_url: str, city_run: str) -> Iterator[Morning]:
    watch = Watch()
    with opened_page(browser, app_url, watch) as page:
        learned, _ = open_run(page, city_run, at="08:00")
        yield Morning(page, watch, learned)


@pytest.fixture
def morning(opened_morning: Morning) -> Iterator[Morning]:
    opened_morning.from_the_start()
    yield opened_morning
    opened_morning.watch.complain()


def test_a_click_shows_the_flows_of_a_cell_and_the_next_the_whole_map(morning: Morning) -> None:
    page, learned = morning.page, morning.learned
    said = point_at(page, learned)
    assert "M = 20: " in said
    assert "M = 1: " in said
    click(page, learned)
    chosen = drive.widget(page, f"{KEY}cell").locator("input")
    expect(chosen).to_have_value(re.compile("^row "))
    clear = re.compile("^Clear selection")
    for title, count in ((LEARNED, 1), (SINGLE, 0)):  # of the one map that was clicked
        figure = page.get_by_role("figure", name=title)
        expect(figure.get_by_role("button", name=clear)).to_have_count(count)
    cell = chosen_cell(page)
    expect(page.get_by_text(f"Cell {cell}")).to_be_visible()
    expect(page.get_by_text(re.compile("move in or out of this cell")).first).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]cell=\d+"))

    drive.pick(page, f"{KEY}direction", "Out")
    expect(page.get_by_text(re.compile("move out of this cell")).first).to_be_visible()
    choose_time(page, "14:00")
    assert chosen_cell(page) == cell, "the selection survives another time of day"
    drive.widget(page, f"{KEY}cell").get_by_role("button", name="Clear").click()
    drive.settle(page)
    expect(page.get_by_text(re.compile("people who move per 30")).first).to_be_visible()
    expect(page).not_to_have_url(re.compile("cell="))


def test_play_goes_through_the_day_and_stops(morning: Morning) -> None:
    page = morning.page
    choose_time(page, "02:00")
    drive.widget(page, "flows.play").get_by_role("button").click()
    times = drive.widget(page, f"{KEY}time")
    for time in ("08:00", "14:00", "02:00"):
        expect(times.get_by_role("radio", name=time)).to_be_checked()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    drive.settle(page)
    stopped = times.get_by_role("radio", checked=True).inner_text()
    page.wait_for_timeout(3000)
    expect(times.get_by_role("radio", name=stopped)).to_be_checked()


def test_a_colleague_sees_the_same_picture_in_the_same_theme(
    page: Page, browser: Browser, city_run: str
) -> None:
    learned, _ = open_run(page, city_run, at="08:00", above="12", cell="118", way="in")
    page.emulate_media(color_scheme="dark")
    expect(page).to_have_url(re.compile("theme=dark"))
    drive.settle(page)
    page.get_by_role("button", name="Address of this picture").click()
    address = page.get_by_test_id("stCode").locator("code").inner_text()
    page.keyboard.press("Escape")
    page.wait_for_timeout(2000)
    mine = drive.pixels(learned)

    context = browser.new_context(viewport=page.viewport_size, color_scheme="light")
    other = context.new_page()
    other.goto(address)
    drive.arrive(other, "Flows")
    expect(other).to_have_url(re.compile("embed_options=dark_theme"))
    drive.arrive(other, "Flows")
    theirs = drive.wait_until_drawn(other, LEARNED)
    other.mouse.move(2, 2)
    other.wait_for_timeout(2000)
    assert chosen_cell(other) == chosen_cell(page)
    same = alike(mine, drive.pixels(theirs))
    context.close()
    assert same > 0.97


def test_reloading_the_page_brings_the_flows_back(page: Page, city_run: str) -> None:
    page.goto(f"/Flows?run={city_run}&at=08:00&show=difference&beside=counted&differing=5")
    drive.arrive(page, "Flows")
    drive.wait_until_drawn(page, "Map of differences")
    drive.choose(page, f"{KEY}cell", "row 6, column 7")
    page.reload()
    drive.arrive(page, "Flows")
    drive.wait_until_drawn(page, "Map of differences")
    assert chosen_cell(page) == "row 6, column 7"


def test_an_address_that_leads_nowhere_is_a_sentence(page: Page) -> None:
    page.goto(f"/Flows?run={'0' * 32}")
    drive.arrive(page, "Flows")
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(1)
    expect(page.get_by_text("There are no flows yet")).to_be_visible()


def download(page: Page, label: str) -> Path:
    drive.choose(page, "view.export.format", label)
    page.wait_for_timeout(1500)  # the button is drawn anew for the format; a click before is lost
    return drive.downloaded(page, drive.widget(page, "flows.export").get_by_role("button")).path()


def test_files_open_in_the_programs_they_are_for(
    morning: Morning, browser: Browser, tmp_path: Path
) -> None:
    page = morning.page
    page.get_by_role("button", name="Download").click()
    page.wait_for_timeout(1500)

    matrices = openmatrix.open_file(str(download(page, "OMX")))
    try:
        assert {"estimate", "single", "counted"} <= set(matrices.list_matrices())
        moves = np.array(matrices["estimate"])
    finally:
        matrices.close()
    lines = gpd.read_parquet(download(page, "Flows as GeoParquet"))
    assert lines.crs == "EPSG:4326"
    first = lines.iloc[0]
    assert moves[first["origin"], first["dest"]] == pytest.approx(first["estimate"], rel=1e-6)

    with zipfile.ZipFile(download(page, "flowmap.blue")) as tables:
        locations, flows = (
            list(csv.DictReader(io.StringIO(tables.read(f"{name}.csv").decode())))
            for name in ("locations", "flows")
        )
    assert {"id", "name", "lat", "lon"} <= set(locations[0])
    assert {"origin", "dest", "count"} <= set(flows[0])
    assert {flow["origin"] for flow in flows} <= {place["id"] for place in locations}

    collection = json.loads(download(page, "Flows as GeoJSON").read_text(encoding="utf-8"))
    assert len(collection["features"]) == len(lines)

    map_file = tmp_path / "map.html"
    map_file.write_bytes(download(page, "Map as a page").read_bytes())
    _opens_offline(browser, map_file)


def _opens_offline(browser: Browser, file: Path) -> None:
    context = browser.new_context(offline=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    alone = context.new_page()
    alone.goto(file.as_uri())
    maps = alone.locator("canvas")
    expect(maps).to_have_count(2)
    for _ in range(drive.WAIT_S * 4):
        if all(drive.colours(maps.nth(i)) >= 8 for i in range(2)):
            break
        alone.wait_for_timeout(250)
    else:
        raise AssertionError("a map of the saved page stayed blank")
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_streets_are_fetched_only_when_a_person_says_so(
    page: Page, city_run: str, watch: Watch
) -> None:
    asked: list[str] = []
    style = {"version": 8, "sources": {}, "layers": [
        {"id": "ground", "type": "background", "paint": {"background-color": "#00ff00"}}
    ]}  # fmt: skip

    def answer(route, request):  # type: ignore[no-untyped-def]  # playwright's callback
        asked.append(request.url)
        route.fulfill(json=style, headers={"Access-Control-Allow-Origin": "*"})

    page.route("https://tiles.openfreemap.org/**", answer)
    open_run(page, city_run, at="08:00", shade="none")
    assert asked == []
    page.get_by_role("button", name="More").click()
    drive.widget(page, "view.basemap").locator("label").first.click()
    page.keyboard.press("Escape")
    green = np.array([0, 255, 0])
    for _ in range(drive.WAIT_S * 2):
        shown = drive.pixels(page.get_by_role("figure", name=LEARNED))
        if np.mean(np.abs(shown.astype(int) - green).max(axis=2) < 60) > 0.3:
            break
        page.wait_for_timeout(500)
    else:
        raise AssertionError("the streets are not under the arrows")
    assert asked
    assert {url.split("/")[2] for url in asked} == {"tiles.openfreemap.org"}
    watch.outside.clear()  # on purpose


def test_zoom_survives_a_change_of_the_arrows(morning: Morning) -> None:
    """The last test of this page: the map lies elsewhere afterwards."""
    page, learned = morning.page, morning.learned
    whole = drive.pixels(learned)
    page.mouse.move(*place_on(learned, (0.3, 0.8)))
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(2000)
    page.mouse.move(2, 2)
    close = drive.pixels(learned)
    assert alike(whole, close) < 0.8
    drive.fill(page, f"{KEY}threshold", 1000)
    page.mouse.move(2, 2)
    page.wait_for_timeout(2000)
    after = drive.pixels(learned)
    assert alike(close, after) > 0.9, "the ground lies where it lay; only arrows are gone"
