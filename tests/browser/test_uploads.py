"""Files of people: real trajectories to the command line's figures, and a file that is none."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agg_core.cli.main import main
from tests.browser import drive

TOKYO = "tokyo_people_flow/tokyo_1000users_20min.csv"
EXTENT = {"west": 139.68, "south": 35.65, "east": 139.80, "north": 35.75}
LABELS = {
    "cpc": "Common part",
    "correlation": "Correlation",
    "precision": "Precision",
    "recall": "Recall",
    "total_ratio": "Total movement",
}


def command_line_figures(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What ``python -m agg_core learn`` says of the estimate against the counted flows."""
    box = ",".join(str(EXTENT[side]) for side in ("west", "south", "east", "north"))
    options = f"--where full_day=1 --bbox {box} --grid 10x10 --step 20min --length 3"
    options += " --group-size 20 --misclassify 0.05 --noise given --strength given --iterations 15"
    options += " --replicates 0 --seed 0 --threshold 35"
    assert main(["learn", str(file), "--json", *options.split()]) == 0
    found = json.loads(capsys.readouterr().out)["vs_counted"]
    return {
        label: "–" if found[name] is None else f"{found[name]:.3f}"
        for name, label in LABELS.items()
    }


def test_real_flows_are_those_of_the_command_line(
    page: Page, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.goto("/Data")
    drive.arrive(page, "Data")
    file = shared_data / TOKYO
    drive.upload(page, file.name, file.read_bytes())
    expect(page.get_by_test_id("stMetricValue").get_by_text("1,000", exact=True)).to_be_visible()
    drive.settle(page)
    page.get_by_text("Read it differently").click()
    drive.choose(page, "reading.where", "full_day")
    page.wait_for_timeout(1000)  # a late redraw of the form would take the typed value back
    drive.widget(page, "reading.value").locator("input").fill("1")
    page.keyboard.press("Tab")
    page.wait_for_timeout(500)
    expect(drive.widget(page, "reading.value").locator("input")).to_have_value("1")
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_test_id("stMetricValue").get_by_text("546", exact=True)).to_be_visible()
    drive.go(page, "Grid")
    for side, degrees in EXTENT.items():
        drive.fill(page, f"grid.{side}", degrees)
    drive.fill(page, "grid.rows", 10)
    drive.fill(page, "grid.cols", 10)
    drive.fill(page, "window.step_minutes", 20)
    drive.wait_until_drawn(page, "People per cell")
    drive.go(page, "Learn")
    drive.remove_times(page)
    drive.choose_nothing(page)
    for key, value in (
        ("window.length", 3), ("learn.group_size", 20), ("learn.misclassify", 0.05),
        ("learn.iterations", 15), ("learn.seed", 0),
    ):  # fmt: skip
        drive.fill(page, key, value)
    drive.learn(page)
    drive.go(page, "Flows")
    shown = drive.Instrument(page).wait()
    shown.control("Beside the estimate").select_option("counted")
    shown.control("Arrows above").fill("35")
    expect(page).to_have_url(re.compile("above=35"))
    expect(page.get_by_text("against: Counted, before noise")).to_be_visible()
    assert drive.figures(page) == command_line_figures(file, capsys)


def test_garbage_is_one_sentence_and_the_city_stays_open(page: Page) -> None:
    drive.open_sample(page)
    drive.go(page, "Data")
    drive.upload(page, "holiday.csv", bytes(range(256)) * 400)
    alerts = page.get_by_test_id("stAlertContentError")
    expect(alerts).to_have_count(1)
    said = alerts.locator("p").all_inner_texts()
    assert len(said) == 1
    assert said[0].startswith("holiday.csv is not a text table")
    assert page.get_by_text("Traceback").count() == 0
    assert drive.figures(page)["People"] == "20,000"
    drive.go(page, "Grid")
    drive.wait_until_drawn(page, "People per cell")


def test_markdown_in_a_file_fetches_nothing(page: Page) -> None:
    """The page fixture fails the test if the image is asked for."""
    page.goto("/Data")
    drive.arrive(page, "Data")
    drive.upload(page, "a.csv", b"user,![x](http://example.org/x.png),lon,lat\n1,2,139.5,35.6\n")
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(1)
    assert page.locator('img[src*="example.org"]').count() == 0
