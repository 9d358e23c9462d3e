"""The report: one page without script or network, all text escaped, figures as they are."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString, box

from agg_core.evidence.changes import of_times, what_changed
from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.presets import PRESETS
from agg_core.evidence.profiles import cell_profiled
from agg_core.evidence.profiles import profile as profile_of
from agg_core.evidence.reference import of_source
from agg_core.evidence.sectors import merged_cells
from agg_core.exports.report import digest_of, report_page
from agg_core.exports.svg import Series, histogram, profile, xy_plot
from agg_core.study.day_types import DayType, DayTypes
from tests.agg_core import counted, tiny

HOSTILE = '<script>alert("x")</script>&\'"'
MORNING, NIGHT = counted.MORNING, counted.NIGHT
VOID = {"meta", "line", "circle", "rect", "path", "polyline"}


class Page(HTMLParser):
    """Elements, text, and whether every element that is opened is closed."""

    def __init__(self, content):
        super().__init__()
        self.names, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(content.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def full(result=None, name=HOSTILE):
    """A report in which every part has something."""
    result = counted.drawn() if result is None else result
    cells = tuple(f"{name} {i}" for i in range(9))
    result = replace(result, cells=cells, doubts=counted.DOUBTS)
    lines = (
        Screenline(name, LineString([(139.1, 34.9), (139.1, 35.4)])),
        Screenline("centre", box(139.1, 35.1, 139.2, 35.2)),
    )
    counters = pd.DataFrame(
        {"line": [name], "direction": ["eastbound"], "time": [MORNING], "count": [1234.0]}
    )
    sectors = merged_cells([(f"ward {name}", [0, 3, 6])], 9)
    asked = Asked(
        lines=lines, sectors=sectors, counters=counters, preset=PRESETS["tag-m3.1"],
        reference=of_source(result, "usual"),
    )  # fmt: skip
    found = examine(result, asked)
    changes = what_changed(of_times(result, [MORNING], [NIGHT]), lines=lines, sectors=sectors)
    content = report_page(
        result, found, name, changes, preset=asked.preset, notes=[name], made="2024-05-01"
    )
    return result, found, content


def test_it_is_one_page_with_no_script_and_no_request():
    _, _, content = full()
    page = Page(content)
    assert page.open == []
    assert {"script", "img", "link", "iframe", "object", "a"} & set(page.names) == set()
    named = {name for name, _ in page.attributes}
    assert {"href", "src", "style"} & named == set()
    assert not any(name.startswith("on") for name in named)
    assert page.names.count("html") == page.names.count("body") == 1
    assert page.names.count("svg") == 1 + 2 + 1 + 1  # moves, two lines, lengths, trip ends


def test_text_of_data_is_text():
    _, _, content = full()
    assert HOSTILE.encode() not in content
    assert page_count(content, HOSTILE) > 10


def page_count(content, text):
    return Page(content).text.count(text)


def test_figures_verdicts_doubts_and_what_it_was_made_with_are_in_it():
    result, found, content = full()
    text = Page(content).text
    assert "1,234" in text
    for verdict in found.verdicts:
        assert verdict.criterion.words in text
        assert verdict.answer in text
    for words in found.not_asked:
        assert words in text
    assert PRESETS["tag-m3.1"].source in text
    for doubt in result.doubts:
        assert doubt.sentence in text
    for note in found.notes:
        assert note in text
    assert digest_of(result) in text
    for name in result.settings.to_dict():
        assert name.replace("_", " ") in text


def test_types_of_days_that_somebody_named_are_in_it():
    days = tuple(f"2024-05-0{day}" for day in range(1, 4))
    plain = (DayType(name, days) for name in ("weekday", "weekend"))
    types = DayTypes((*plain, DayType(HOSTILE, days, True, 2.5, 0.5)))
    labels = tuple((day, "strike") for day in days)
    settings = replace(counted.study().settings, day_labels=labels)
    found = replace(counted.study(), typed_days=types, settings=settings)
    text = Page(report_page(found, examine(found), "")).text
    assert f"{HOSTILE} 3 days" in text
    assert "2024-05-01 strike, 2024-05-02 strike" in text


def test_the_digest_is_of_the_flows():
    result = counted.drawn()
    assert digest_of(result) == digest_of(counted.drawn())
    assert digest_of(result) != digest_of(counted.study())
    assert len(digest_of(result)) == 64


def test_people_and_cells_without_place_have_reports_too():
    for result in (tiny.run(tiny.people(), tiny.settings())[-1], counted.placeless()):
        content = report_page(result, examine(result), "")
        assert Page(content).open == []
        assert b"nan" not in content


def test_charts_say_what_they_show_and_have_a_mark_for_each_value():
    nothing = float("nan")
    series = Series("east", [1.0, nothing, 3.0], [0.5, nothing, nothing], [2.0, nothing, nothing],
                    [nothing, nothing, 2.5])  # fmt: skip
    drawn = profile(["8", "9", "<10>"], [series], ("volumes", "time", "people"))
    page = Page(drawn.encode())
    assert page.names.count("circle") == 2
    assert [value for name, value in page.attributes if name == "class"].count("thick s0") == 1
    assert [value for name, value in page.attributes if name == "class"].count("counted") == 1
    assert ("aria-label", "volumes") in page.attributes
    bars = Page(histogram([0, 1, 2], Series("all", [1, 2], [1, 1], [2, 3]), [1.5, nothing],
                          ("lengths", "km", "people")).encode())  # fmt: skip
    assert bars.names.count("rect") == 2
    assert Page(xy_plot([], [], ("", "", "")).encode()).names.count("circle") == 0
    assert Page(xy_plot([1, nothing], [2, 3], ("", "", "")).encode()).names.count("circle") == 1


@pytest.mark.parametrize("most", [0.0, 1e-9, 0.3, 7, 99, 1e12])
def test_axes_end_at_round_numbers_beyond_the_largest_value(most):
    drawn = xy_plot([most], [most], ("", "", ""))
    (circle,) = [dict(attributes) for attributes in circles(drawn)]
    assert 58 - 1e-6 <= float(circle["cx"]) <= 640 - 12 + 1e-6
    json.dumps(circle)
    assert np.isfinite(float(circle["cy"]))


def circles(drawn):
    found = []

    class Marks(HTMLParser):
        def handle_startendtag(self, tag, attrs):
            if tag == "circle":
                found.append(attrs)

    Marks().feed(drawn)
    return found


def test_single_days_are_thin_lines_of_lines_and_of_what_was_followed():
    result = counted.by_day()
    line = Screenline("river", LineString([(139.1, 34.9), (139.1, 35.4)]))
    followed = profile_of(result, cell_profiled(result.states, 0))
    content = report_page(
        result, examine(result, Asked(lines=(line,))), "t", profiles=[followed]
    ).decode()
    # Three days, two directions, of the line and of the cell.
    assert content.count('<polyline class="day') == 2 * 2 * 3
    assert content.count('<polyline class="mean') == 2 * 2
    assert "<h3>cell 0</h3>" in content
