"""A file of counts, as an operator delivers it, to arrows on a map."""

from __future__ import annotations

import numpy as np
import openmatrix
from playwright.sync_api import Page, expect

from agg_core.made.counts import docomo_csv, simulate_city
from tests.browser import drive


def test_counts_of_an_operator_become_arrows(page: Page) -> None:
    page.goto("/Data")
    drive.arrive(page, "Data")
    city = simulate_city(4, 4, 3, 2_000, random_state=0)
    drive.upload(page, "docomo.csv", docomo_csv(city).encode())
    expect(page.get_by_text("Mobile Spatial Statistics").first).to_be_visible()
    assert drive.figures(page)["Cells"] == "16"
    drive.wait_until_drawn(page, "Mean count per cell")
    drive.press_next(page, "Next: the grid", "Grid")
    drive.wait_until_drawn(page, "People per cell")
    drive.press_next(page, "Next: learn", "Learn")
    drive.choose(page, "counts.time", "The same all day")
    drive.open_more(page, "counts.replicates")
    drive.fill(page, "counts.replicates", 2)
    drive.fill(page, "counts.threshold", 2)
    drive.learn(page)
    expect(page.get_by_text("Counts of held-out days")).to_be_visible()
    drive.press_next(page, "See the flows", "Flows")
    shown = drive.Instrument(page).wait()
    assert min(shown.arrows) > 0
    with_arrows = drive.pixels(shown.canvas)
    shown.control("Arrows above").fill("100000")
    assert max(shown.arrows) == 0
    expect(shown.root.get_by_text("No arrow above 100,000").first).to_be_visible()
    page.wait_for_timeout(1000)
    without = drive.pixels(shown.canvas)
    assert np.any(with_arrows != without, axis=-1).mean() > 0.005, "arrows were there, and go"
    drive.settle(page)
    page.reload()
    drive.arrive(page, "Flows")
    shown.wait()
    shown.expect_view(threshold=100_000)
    page.get_by_role("button", name="Download", exact=True).click()
    drive.choose(page, "view.export.format", "OMX, all times")
    page.wait_for_timeout(1500)  # the button is drawn anew for the format; a click before is lost
    made = drive.downloaded(page, drive.widget(page, "flows.export").get_by_role("button"))
    with openmatrix.open_file(str(made.path())) as matrices:
        assert len(matrices.list_matrices()) == 24
        assert np.array(matrices["at_05_00"]).sum() > 1_000, "of 2,000 people"
