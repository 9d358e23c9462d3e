import re
from dataclasses import replace
from html import unescape

import pytest

from agg_core.exports.page import html_page
from agg_core.plotting.deck import Scene
from agg_core.plotting.theme import DARK, LIGHT, heat_colours
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.agg_core.plotting.pages import decks_of
from tests.faults import refused


def text_of(page):
    return unescape(page.decode("utf-8"))


def arrows(page):
    """For each map, what its arrows tell under the pointer."""
    maps = []
    for deck in decks_of(page.decode("utf-8")):
        layer = next(layer for layer in deck["deck"]["layers"] if layer["id"] == "arrows")
        maps.append({arrow["where"]: arrow["what"] for arrow in layer["data"]})
    return maps


def test_the_estimate_stands_beside_single_people():
    page = html_page(by_hand.result(), MORNING, threshold=0.9)
    estimate, single = arrows(page)
    there = "from row 0, column 0 to row 0, column 1"
    assert estimate == {there: "people per step\nM = 5: 2.5\nM = 1: 2.0"}
    assert single[there] == "people per step\nM = 1: 2.0\nM = 5: 2.5"
    assert set(single) == {there, "from row 1, column 0 to row 1, column 1"}
    headings = re.findall("<h2>(.*?)</h2>", text_of(page))
    assert headings == ["Learned from groups of M = 5", "Learned from single people, M = 1"]


def test_the_truth_can_be_the_counted_flows():
    page = html_page(by_hand.result(), MORNING, truth="counted", threshold=0.9)
    assert arrows(page)[1]["from row 2, column 2 to row 2, column 1"] == (
        "people per step\ncounted: 3.0\nM = 5: 0.0"
    )
    assert "<h2>Counted before the noise</h2>" in text_of(page)


def test_the_threshold_of_the_study_holds_unless_another_is_given():
    assert by_hand.result().settings.learn.threshold == 2.0
    assert [len(drawn) for drawn in arrows(html_page(by_hand.result(), MORNING))] == [1, 0]
    assert [
        len(drawn) for drawn in arrows(html_page(by_hand.result(), MORNING, threshold=0.0))
    ] == [2, 2]
    assert [
        len(drawn) for drawn in arrows(html_page(by_hand.result(), MORNING, threshold=0, top_n=1))
    ] == [1, 1]


def test_the_notes_tell_what_is_drawn_and_what_is_not():
    page = text_of(html_page(by_hand.result(), MORNING, threshold=0.9))
    # 2.5 of the 2.5 + 0.5 + 1.5 + 0.25 people who move.
    assert "1 of 1 arrows above the threshold, 53% of the 4.8 people per step who move" in page
    assert "4.0 people per step who stay where they are and 1.8 who come from" in page
    assert "step of 60 minutes" in page


def test_pages_of_one_day_share_the_scale_of_the_legend():
    """The largest flow of the day is that of the night, 7 people."""
    for time in (MORNING, NIGHT):
        assert ">7 or more<" in text_of(html_page(by_hand.result(), time))


def test_title_and_scene():
    online = Scene(theme=DARK, basemap="https://tiles.example/style.json")
    page = html_page(by_hand.result(), NIGHT, "<script>alert(1)</script>", scene=online)
    content = page.decode("utf-8")
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt;, 23:30</h1>" in content
    assert "<script>alert" not in content
    assert "tiles.example" not in content
    assert "background: rgba(18,25,31,1)" in content


def test_nobody_moves():
    still = by_hand.nobody_moves()
    page = html_page(still, MORNING)
    assert arrows(page) == [{}, {}]
    assert "0 of 0 arrows above the threshold, 0% of the 0.0 people" in text_of(page)


@pytest.mark.parametrize(("truth", "people"), [("single", 7), ("counted", 2)])
def test_maps_of_all_times_share_one_shade(truth, people):
    """Cell 0 holds 8 people in the estimate: 4 stay, 2.5 and 1.5 leave. At night one holds 12."""
    page = html_page(by_hand.result(), MORNING, truth=truth)
    fills = []
    for deck in decks_of(page.decode("utf-8")):
        cells = next(layer for layer in deck["deck"]["layers"] if layer["id"] == "cells")["data"]
        fills.append(cells[0]["fill"][:3])
    assert fills == heat_colours(LIGHT, [8, people], 12).tolist()


# ---------------------------------------------------------------- flows from counts


@pytest.mark.parametrize(
    ("minutes", "said"), [(30.0, "in a step of 30 minutes."), (None, "in a step.")]
)
def test_a_page_of_counts_says_how_long_a_step_is_if_known(minutes, said):
    study = replace(counted.study(), step_minutes=minutes)
    assert said in text_of(html_page(study, counted.MORNING, "Week"))


def test_counts_have_one_map_that_tells_intervals():
    page = html_page(counted.study(), counted.MORNING, "Week", threshold=0.5)
    (drawn,) = arrows(page)
    here, there = "row 0, column 0", "row 0, column 1"
    unsure = "between 0.0 and 3.0\nnot resolved by the data"
    assert drawn == {
        f"from {here} to {there}": "people per step: 6.0\nbetween 4.5 and 7.5",
        f"from {there} to {here}": f"people per step: 1.0\n{unsure}",
    }
    text = text_of(page)
    assert re.findall("<h2>(.*?)</h2>", text) == ["What usually happens, learned from counts alone"]
    assert "<h1>Week, 08:00</h1>" in text
    assert "50 pairs of successive counts of 7 days" in text
    assert "Faint arrows" in text
    # 6 + 1 of the 6 + 1 + 1.5 + 0.25 people who move.
    assert "2 of 2 arrows above the threshold, 80% of the 8.8 people" in text
    assert ">9 or more<" in text, "one scale for all times: that of the night"


def test_only_resolved_flows_of_counts_if_that_is_asked_for():
    page = html_page(counted.study(), counted.MORNING, threshold=0.5, resolved_only=True)
    (drawn,) = arrows(page)
    assert list(drawn) == ["from row 0, column 0 to row 0, column 1"]


def test_counts_without_intervals_or_places():
    text = text_of(html_page(counted.unsure(), WHOLE_DAY))
    assert "How sure the flows are is not known" in text
    assert "between" not in "".join(arrows(html_page(counted.unsure(), WHOLE_DAY))[0].values())
    with refused("cells-without-place"):
        html_page(counted.placeless(), WHOLE_DAY)
