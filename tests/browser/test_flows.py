"""The page Flows: an address, what needs no server, reload, a theme, files, streets."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import numpy as np
import openmatrix
import pytest
from playwright.sync_api import Browser, Page, expect

from agg_core.plotting.theme import LIGHT
from tests.browser import drive
from tests.browser.conftest import Watch, opened_page
from tests.browser.drive import Instrument

CELL = 6 * 16 + 8
"""A busy cell of the sample city, row 6, column 8."""
SCRIPT_MS = 100
SPIED = """() => {
    window.sent = [];
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (...message) {
        window.sent.push(performance.now());
        return send.apply(this, message);
    };
}"""
"""Notes when the page sends something to the server."""
NOTED = """(root) => {
    window.drawn = null;
    window.sent.length = 0;
    const watching = new MutationObserver(() => {
        watching.disconnect();
        requestAnimationFrame(() => { window.drawn = performance.now(); });
    });
    watching.observe(root, { attributeFilter: ['data-view'] });
}"""
"""Notes when the frame after the next change of the map is drawn."""


SEA = bytes.fromhex(
    "1a20"  # one layer of 32 bytes:
    "7802"
    "0a057761746572"  # version 2, named "water",
    "1212"
    "1803"
    "220e"
    "090000"
    "1a"
    "80400000"
    "8040"
    "ff3f"
    "00"
    "0f"  # a square over all of it
    "288020"  # in units of 4096
)
"""A tile of vectors that is water and nothing else."""


def open_run(page: Page, run: str, **view: object) -> Instrument:
    """Open a picture by its address and wait for the map."""
    asked = "&".join(f"{name}={value}" for name, value in {"run": run, **view}.items())
    page.goto(f"/Flows?{asked}")
    drive.arrive(page, "Flows")
    return Instrument(page).wait()


@dataclass
class Morning:
    """The flows of 8:00, opened once for all tests that take back what they choose."""

    page: Page
    watch: Watch
    map: Instrument


@pytest.fixture(scope="module")
def opened_morning(browser: Browser, app_url: str, city_run: str) -> Iterator[Morning]:
    watch = Watch()
    with opened_page(browser, app_url, watch) as page:
        page.add_init_script(f"({SPIED})()")
        yield Morning(page, watch, open_run(page, city_run, at="08:00"))


@pytest.fixture
def morning(opened_morning: Morning) -> Iterator[Morning]:
    shown = opened_morning.map
    shown.key("Escape", "0")
    shown.day.focus()
    shown.page.keyboard.press("Home")
    shown.page.keyboard.press("ArrowRight")
    shown.expect_view(time="08:00", cells=[], camera=None)
    drive.settle(shown.page)
    yield opened_morning
    opened_morning.watch.complain()


def test_the_picture_changes_before_the_server_hears_of_it(morning: Morning) -> None:
    page, shown = morning.page, morning.map
    direction = shown.root.get_by_role("radiogroup", name="Flows of the chosen cells")
    find = shown.control("Find a place")

    def choose_by_name() -> None:
        find.fill("row 6, column 8")
        find.press("Enter")

    acts: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        ("threshold", lambda: shown.control("Arrows above").fill("35"),
         lambda: shown.control("Arrows above").fill("10")),
        ("time", lambda: shown.key("."), lambda: shown.key(",")),
        ("shade", lambda: shown.control("Shade of cells").select_option("change"),
         lambda: shown.control("Shade of cells").select_option("people")),
        ("cell", choose_by_name, lambda: shown.key("Escape")),
        ("direction", lambda: direction.get_by_role("radio", name="Out").click(),
         lambda: direction.get_by_role("radio", name="Both").click()),
    ]  # fmt: skip
    for name, act, back in acts:
        if name == "direction":
            choose_by_name()
            page.wait_for_timeout(1000)
        before = drive.pixels(shown.canvas)
        times = []
        for attempt in range(3):  # another program may have the processor meanwhile
            shown.root.evaluate(NOTED)
            act()
            page.wait_for_function("window.drawn !== null")
            sent = page.evaluate("window.sent.filter((at) => at < window.drawn).length")
            assert sent == 0, f"{name}: the server is told after the picture has changed"
            times.append(shown.script_ms)
            if attempt == 0:
                page.wait_for_timeout(300)
                after = drive.pixels(shown.canvas)
                assert not np.array_equal(after, before), f"{name} changes the picture"
            drive.settle(page)
            back()
            page.wait_for_timeout(600)  # what is told a little later has been sent
            drive.settle(page)
        assert min(times) < SCRIPT_MS, f"{name} took {times} ms of script"


def test_what_is_chosen_is_in_the_address_and_comes_back(morning: Morning) -> None:
    page, shown = morning.page, morning.map
    x, y = shown.place(*_centre(shown, CELL))
    page.mouse.click(x - 6, y - 6)  # beside the arrows that meet in its middle
    shown.expect_view(cells=[CELL])
    expect(page).to_have_url(re.compile(rf"[?&]cell={CELL}\b"))
    shown.key("+", "ArrowLeft")
    expect(page).to_have_url(re.compile(r"[?&]look=[\d.]+"))
    shown.key(".")
    expect(page).to_have_url(re.compile(r"[?&]at=14"))
    drive.settle(page)
    before = shown.view
    page.reload()
    drive.arrive(page, "Flows")
    shown.wait()
    after = shown.view
    camera = after["camera"]
    assert {**after, "asked": "", "camera": None} == {**before, "asked": "", "camera": None}
    assert [camera[name] for name in ("longitude", "latitude")] == pytest.approx(
        [before["camera"][name] for name in ("longitude", "latitude")], abs=1e-4
    )
    assert camera["zoom"] == pytest.approx(before["camera"]["zoom"], abs=0.01)


def _centre(shown: Instrument, cell: int) -> tuple[float, float]:
    """Middle of a cell of the sample's grid, 14 x 16 cells."""
    row, column = divmod(cell, 16)
    west, south, east, north = 139.28, 35.36, 140.24, 36.06
    return west + (column + 0.5) * (east - west) / 16, south + (row + 0.5) * (north - south) / 14


def test_play_goes_through_the_day_and_stops(morning: Morning) -> None:
    page, shown = morning.page, morning.map
    shown.control("Play").click()
    for time in ("14:00", "02:00", "08:00"):
        shown.expect_view(time=time)
    shown.control("Pause").click()
    stopped = shown.view["time"]
    drive.settle(page)
    page.wait_for_timeout(2500)
    assert shown.view["time"] == stopped
    expect(page).to_have_url(re.compile(f"at={stopped[:2]}"))


def test_a_colleague_sees_the_same_picture_in_the_same_theme(
    page: Page, browser: Browser, city_run: str
) -> None:
    shown = open_run(page, city_run, at="08:00", above="12", cell=CELL, way="in",
                     look="139.70000,35.70000,9.50")  # fmt: skip
    assert shown.view["camera"] == {"longitude": 139.7, "latitude": 35.7, "zoom": 9.5}
    page.emulate_media(color_scheme="dark")
    expect(page).to_have_url(re.compile("theme=dark"))
    drive.settle(page)
    page.get_by_role("button", name="Address of this picture").click()
    address = page.get_by_test_id("stCode").locator("code").inner_text()
    page.keyboard.press("Escape")
    page.mouse.move(2, 2)
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    page.wait_for_timeout(2000)
    mine = drive.pixels(shown.canvas)
    assert np.median(mine) < 100, "the map is dark"

    context = browser.new_context(viewport=page.viewport_size, color_scheme="light")
    other = context.new_page()
    other.goto(address)
    drive.arrive(other, "Flows")
    expect(other).to_have_url(re.compile("embed_options=dark_theme"))
    drive.arrive(other, "Flows")
    theirs = Instrument(other).wait()
    other.mouse.move(2, 2)
    other.wait_for_timeout(2000)
    assert {**theirs.view, "asked": ""} == {**shown.view, "asked": ""}
    same = drive.alike(mine, drive.pixels(theirs.canvas))
    context.close()
    assert same > 0.97


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
    page, shown = morning.page, morning.map
    shown.control("Find a place").fill("row 6, column 8")
    shown.control("Find a place").press("Enter")
    expect(page).to_have_url(re.compile(rf"[?&]cell={CELL}\b"))
    drive.settle(page)
    page.get_by_role("button", name="Download", exact=True).click()
    page.wait_for_timeout(1500)
    least = drive.widget(page, "view.export.least").get_by_role("spinbutton")
    expect(least).to_have_value("10")
    drive.fill(page, "view.export.least", 0)

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
    page.keyboard.press("Escape")
    _is_the_same_map_offline(browser, map_file, shown)


def _is_the_same_map_offline(browser: Browser, file: Path, shown: Instrument) -> None:
    context = browser.new_context(offline=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    alone = context.new_page()
    alone.goto(file.as_uri())
    saved = Instrument(alone).wait()
    view = saved.view
    assert [view[name] for name in ("time", "cells")] == ["08:00", [CELL]]
    assert saved.arrows == shown.arrows
    saved.key(".")
    saved.expect_view(time="14:00")
    context.close()
    assert asked == [file.as_uri()]


def test_streets_are_fetched_only_when_a_person_says_so(
    page: Page, city_run: str, watch: Watch
) -> None:
    asked: list[str] = []

    def answer(route, request):  # playwright's callback
        asked.append(request.url)
        allowed = {"Access-Control-Allow-Origin": "*"}
        if request.url.endswith(".pbf"):
            route.fulfill(body=SEA, headers=allowed)
        else:
            tiles = "https://tiles.openfreemap.org/{z}/{x}/{y}.pbf"
            route.fulfill(json={"tilejson": "3.0.0", "tiles": [tiles]}, headers=allowed)

    page.route("https://tiles.openfreemap.org/**", answer)
    shown = open_run(page, city_run, at="08:00", shade="none", above="100000")
    assert asked == []
    assert _share_of(shown, LIGHT.background) < 0.5
    shown.control("Streets (online)").check()
    for _ in range(drive.WAIT_S * 2):
        if _share_of(shown, LIGHT.background) > 0.8:
            break
        page.wait_for_timeout(500)
    else:
        raise AssertionError("the sea of the tiles is not drawn")
    expect(shown.root.get_by_text("OpenStreetMap contributors")).to_be_visible()
    assert {url.split("/")[2] for url in asked} == {"tiles.openfreemap.org"}
    shown.control("Streets (online)").uncheck()
    page.wait_for_timeout(1000)
    assert _share_of(shown, LIGHT.background) < 0.5
    watch.outside.clear()  # on purpose


def _share_of(shown: Instrument, colour: tuple[int, int, int]) -> float:
    """Share of the first map that has about that colour."""
    part = shown.halves()[0].astype(int)
    return float(np.mean(np.abs(part - colour).max(axis=2) < 6))
