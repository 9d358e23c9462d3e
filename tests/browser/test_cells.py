"""Own areas in a browser: read on the page Grid, drawn, and clicked on the page Flows."""

from __future__ import annotations

import re
from pathlib import Path

import geopandas as gpd
import pytest
from playwright.sync_api import Page, expect
from shapely.geometry import MultiPolygon, box

from agg_core.io import read_trajectories
from agg_core.made.samples import SAMPLES, sample_path
from agg_core.space.build import Grid
from agg_core.space.settings import AreaSettings
from agg_core.store.runs import RunStore
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from tests.browser import drive
from tests.browser.server import RUNS
from tests.browser.test_flows import open_run

CITY = SAMPLES["tokyo_commuters"]


def zones() -> gpd.GeoDataFrame:
    """Two strips that are one area, one in the south, and one in the middle, the last in order."""
    west, south, east, north = CITY.bounds
    wide, high = (east - west) / 4, (north - south) / 4
    sides = MultiPolygon(
        [box(west, south, west + wide, north), box(east - wide, south, east, north)]
    )
    low = box(west + wide, south, east - wide, south + high)
    middle = box(west + wide, south + high, east - wide, north)
    return gpd.GeoDataFrame(
        {"zone": ["両端", "南", "*中央*"]}, geometry=[sides, low, middle], crs="EPSG:4326"
    )


@pytest.fixture(scope="session")
def zones_run(runs_home: Path) -> str:
    """Save a quick run on these areas; return its id."""
    settings = StudySettings(
        AreaSettings.of(Grid.from_polygons(zones()), "zones.gpkg"),
        WindowSettings(CITY.step_minutes, CITY.length, ("08:00",)),
        LearnSettings(noise="given", strength="given", iterations=2, replicates=0),
    )
    people = read_trajectories(sample_path(CITY.key), tz=CITY.timezone)
    *_, result = study_steps(people, settings)
    assert isinstance(result, StudyResult)
    return RunStore(runs_home / RUNS / "runs").save(result, "Zones").id


def test_a_click_chooses_the_area_that_is_there(page: Page, zones_run: str) -> None:
    shown = open_run(page, zones_run, at="08:00", above=1_000_000)
    for at, cell, name in (((0.5, 0.6), 2, "*中央*"), ((0.9, 0.5), 0, "両端")):
        place = shown.place(*_within(CITY.bounds, at))
        shown.point(place, name)
        page.mouse.click(*place)
        shown.expect_view(cells=[cell])
        expect(shown.root.get_by_role("heading", name=name, exact=True)).to_be_visible()
        drive.settle(page)  # what stands above the map may have changed


def _within(bounds: tuple[float, float, float, float], at: tuple[float, float]) -> list[float]:
    west, south, east, north = bounds
    return [west + at[0] * (east - west), south + at[1] * (north - south)]


def test_own_areas_are_read_and_drawn(page: Page, tmp_path: Path) -> None:
    zones().to_crs("EPSG:6677").to_file(tmp_path / "zones.gpkg")
    drive.open_sample(page)
    drive.pick(page, "grid.kind", "Own areas")
    page.locator('input[type="file"]').set_input_files(tmp_path / "zones.gpkg")
    expect(page.get_by_text(re.compile("read as EPSG:6677, named by zone"))).to_be_visible()
    drive.settle(page)
    expect(page.get_by_text(re.compile("^3 cells of"))).to_be_visible()
    drive.pick(page, "grid.kind", "JIS mesh")
    expect(page.get_by_text(re.compile(r"cells of 11\.\d+ km x 9\.\d+ km"))).to_be_visible()
