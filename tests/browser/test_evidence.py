"""Evidence in the browser: a line in two clicks, what crosses it, and the report as a file."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.drive import arrive, downloaded, go, pick, press, settle, widget


def test_who_crosses_the_river_and_a_report_to_take_away(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    page.goto("/Flows?run=sample-tokyo")
    arrive(page, "Flows")
    go(page, "Evidence")
    press(page.get_by_role("button", name="Add the line"), widget(page, "evidence.drop.0"))
    settle(page)
    crossing = page.get_by_text(re.compile(r"^river, 08:00: .* eastbound and .* westbound"))
    expect(crossing).to_be_visible()
    pick(page, "evidence.part", "What changed")
    expect(page.get_by_text(re.compile("flows changed"))).to_be_visible()
    pick(page, "evidence.part", "Report")
    made = downloaded(page, page.get_by_role("button", name="Make the report"))
    path = tmp_path / "report.html"
    made.save_as(path)
    seen: list[str] = []
    alone = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    alone.on("request", lambda request: seen.append(request.url))
    alone.on("console", lambda said: seen.append(said.text))
    report = alone.new_page()
    report.goto(path.as_uri())
    expect(report.get_by_role("heading", name="river", exact=True)).to_be_visible()
    expect(report.get_by_role("heading", name="What changed")).to_be_visible()
    assert seen == [path.as_uri()]
    assert report.evaluate("document.documentElement.scrollWidth <= innerWidth")
    alone.close()


def test_a_cell_that_is_clicked_becomes_a_cordon(page: Page) -> None:
    page.goto("/Flows?run=sample-tokyo")
    arrive(page, "Flows")
    go(page, "Evidence")
    cells = page.get_by_test_id("stDeckGlJsonChart")
    expect(cells.locator("canvas").first).to_be_visible()
    cells.scroll_into_view_if_needed()
    around = page.get_by_role("button", name="Cordon around the chosen cells")
    press(cells, around)
    press(around, widget(page, "evidence.drop.0"))
    settle(page)
    expect(page.get_by_text(re.compile(r"^cordon 1, 08:00: .* in and .* out"))).to_be_visible()


def test_clicks_draw_a_line_and_the_first_cell_again_closes_it(page: Page) -> None:
    page.goto("/Flows?run=sample-tokyo")
    arrive(page, "Flows")
    go(page, "Evidence")
    cells = page.get_by_test_id("stDeckGlJsonChart")
    expect(cells.locator("canvas").first).to_be_visible()
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box is not None
    first, second, third = (
        {"x": box["width"] * x, "y": box["height"] * y}
        for x, y in ((0.3, 0.3), (0.7, 0.3), (0.5, 0.7))
    )
    through = page.get_by_role("button", name="Line through them")
    closed = page.get_by_role("button", name="Close it as a cordon")
    undo = page.get_by_role("button", name="Undo the last point")
    for place, shown in ((first, undo), (second, through), (third, closed)):
        cells.click(position=place)
        expect(shown).to_be_visible()
    undo.click()
    expect(closed).to_be_hidden()
    cells.click(position=third)
    expect(closed).to_be_visible()
    settle(page)
    cells.click(position=first)
    expect(widget(page, "evidence.drop.0")).to_be_visible()
    settle(page)
    expect(page.get_by_text(re.compile(r"^cordon 1, 08:00: .* in and .* out"))).to_be_visible()
