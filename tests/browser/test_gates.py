"""Entries and exits of a railway, from the page Data to flows and to the list of runs."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.agg_core.gates.made import long_table, places, trips
from tests.browser import drive


def test_entries_and_exits_become_arrows(page: Page) -> None:
    entries, exits, _ = trips(7)
    tables = {"entries": long_table(entries), "exits": long_table(exits), "stations": places()}
    files = {name: table.to_csv(index=False) for name, table in tables.items()}
    page.goto("/Data")
    drive.arrive(page, "Data")
    page.get_by_text("Several files", exact=True).click()
    drive.widget(page, "uploads").locator('input[type="file"]').set_input_files([
        {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": csv.encode()}
        for name, csv in files.items()
    ])  # fmt: skip
    following = page.get_by_role("button", name="Next: learn")
    expect(following).to_be_visible()
    drive.settle(page)
    assert drive.figures(page)["Stations"] == "8"
    drive.wait_until_drawn(page, "Stations on a map")
    drive.press_next(page, "Next: learn", "Learn")
    drive.open_more(page, "gate_learn.draws")
    drive.fill(page, "gate_learn.draws", 2)
    drive.fill(page, "gate_learn.minutes_per_km", 1.2)
    drive.learn(page)
    drive.press_next(page, "See the flows", "Flows")
    shown = drive.Instrument(page).wait()
    assert min(shown.arrows) > 0
    drive.go(page, "Runs")
    expect(page.get_by_text("from entries and exits").first).to_be_visible()
