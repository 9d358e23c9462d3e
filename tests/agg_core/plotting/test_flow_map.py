"""What the flow map is sent, held against flows written down by hand; and the page around it."""

import base64
import hashlib
import re

import numpy as np
import pandas as pd
import pytest

from agg_core.plotting import flow_map
from agg_core.plotting.flow_map import MapFlows, MapSource, flows_of, pack, page, step_label
from agg_core.plotting.theme import DARK
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT, OUT
from tests.agg_core.plotting.canvas import GROUND, OUTLINE, SMALL, flows, square
from tests.agg_core.plotting.pages import elements_of
from tests.agg_core.plotting.unpacked import Unpacked, unpacked_page

HOSTILE = "</script><script>alert('=1')</script><img src=x onerror=alert(1)> & \"東京\""
NOTHING = {"time": MORNING}


def sent(of, view=NOTHING, outline=None):
    return Unpacked(pack(of, outline=outline).showing(view))


def made(*rows, cells=None, **more):
    table = flows(*rows)
    return MapFlows(
        grid=SMALL,
        cells=cells or SMALL.labels,
        times=[MORNING],
        sources=[MapSource("estimate", "Estimate", "estimate")],
        rows=lambda source, time, step: table,
        unit="per step",
        **more,
    )


def test_moves_of_each_source_and_time_arrive_one_by_one():
    got = sent(flows_of(by_hand.result()))
    assert got.header["times"] == [MORNING, NIGHT]
    for source in ("estimate", "single", "counted"):
        for time in (MORNING, NIGHT):
            moves = {
                pair: n for pair, n in by_hand.FLOWS[time, source].items() if pair[0] != pair[1]
            }
            assert got.flows(source, time) == moves


def test_totals_of_cells_count_stays_and_the_outside():
    got = sent(flows_of(by_hand.result()))
    # 4 stay in cell 0, 2.5 and 1.5 leave it and 0.5 come; 2.5 and 0.25 come to cell 1.
    assert got.total("estimate", MORNING, "stays")[0] == 4.0
    assert got.total("estimate", MORNING, "outgoing")[:2] == [4.0, 0.5]
    assert got.total("estimate", MORNING, "incoming")[:2] == [0.5, 2.75]
    assert got.total("estimate", MORNING, "people")[:2] == [8.0, 0.5]
    table = got.table("estimate", MORNING)
    assert table["moves"] == 4.75
    assert table["crossing"] == 1.75
    assert OUT == 9


def test_scales_are_those_of_all_sources_and_times():
    scales = sent(flows_of(by_hand.result())).header["scales"]
    assert scales["flow"] == 7.0, "at night from 4 to 0; who stays is no arrow"
    assert scales["difference"] == {"single": 1.0, "counted": 3.0}
    assert scales["totals"]["people"] == 12.0
    assert scales["totals"]["change"] == 7.0
    still = sent(made((1, 1, 5))).header["scales"]
    assert still["flow"] == 1.0, "where nobody moves, a scale still has a length"


def test_steps_arrive_with_their_labels():
    result = by_hand.result()
    got = sent(flows_of(result))
    assert got.header["steps"][0] == ["08:00 – 09:00", "09:00 – 10:00"]
    rows = result.rows(MORNING, "counted", 1)
    moves = rows.loc[rows["origin"] != rows["dest"]]
    assert sum(got.flows("counted", MORNING, 1).values()) == pytest.approx(moves["count"].sum())


def test_steps_are_told_by_the_clock_past_midnight():
    result = by_hand.result()
    assert step_label(result, "23:00", 1) == "00:00 – 01:00"
    assert step_label(result, "all day", 0) == "step 1 of 2"


def test_intervals_of_flows_and_of_sums_of_cells():
    study = counted.study()
    got = sent(flows_of(study))
    low, high = (got.flows("estimate", counted.MORNING, column=c) for c in ("low", "high"))
    assert (low[0, 1], high[0, 1]) == (4.5, 7.5)
    sure = got.flows("estimate", counted.MORNING, column="resolved")
    assert (sure[0, 1], sure[1, 0]) == (1, 0)
    ends = {
        "incoming": (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])),
        "outgoing": (np.array([0.0, 0.0, 0.0]), np.array([9.0, 9.0, 9.0])),
    }
    of = made((0, 1, 5), sums=lambda source, time: ends)
    assert sent(of).total("estimate", MORNING, "low_incoming")[:3] == [1.0, 2.0, 3.0]
    assert sent(of).total("estimate", MORNING, "high_outgoing")[:3] == [9.0, 9.0, 9.0]


def test_traces_of_people_are_in_sums_alone(monkeypatch):
    of = made((0, 1, 5), (0, 2, 0.001))
    assert sent(of).flows("estimate", MORNING) == {(0, 1): 5.0}
    assert sent(of).table("estimate", MORNING)["moves"] == pytest.approx(5.001)
    assert sent(of).total("estimate", MORNING, "incoming")[2] == pytest.approx(0.001)
    monkeypatch.setattr(flow_map, "MOST_ROWS", 1)
    many = sent(made((0, 1, 5), (0, 2, 0.05)))
    assert many.flows("estimate", MORNING) == {(0, 1): 5.0}
    assert many.header["least"] > 0.05


def test_cells_arrive_with_names_places_and_rings():
    got = sent(made((0, 1, 5), cells=[HOSTILE, *SMALL.labels[1:]]))
    assert got.header["cells"][0] == HOSTILE
    assert got.column(got.header["centres"]).reshape(-1, 2) == pytest.approx(SMALL.centroids)
    rings = {name: got.column(about) for name, about in got.header["rings"].items()}
    assert rings["cell"].tolist() == list(range(6))
    assert (rings["ring"] == 0).all()
    first = rings["places"].reshape(-1, 2)[rings["start"][0] : rings["start"][1]]
    assert (first.min(axis=0), first.max(axis=0)) == (
        pytest.approx([139.0, 35.0]), pytest.approx([139.1, 35.1]),
    )  # fmt: skip


def test_the_digest_tells_flows_apart_and_not_views():
    one, same, other = pack(made((0, 1, 5))), pack(made((0, 1, 5))), pack(made((0, 1, 6)))
    assert one.digest == same.digest != other.digest
    views = [Unpacked(one.showing({"time": time})).header for time in ("a", "b")]
    assert [header["view"]["time"] for header in views] == ["a", "b"]
    assert views[0]["digest"] == views[1]["digest"] == one.digest


def test_an_outline_that_covers_the_cells_says_where_the_water_is():
    wide = {"type": "FeatureCollection", "features": [square(138.0, 34.0, 3.0)]}
    assert sent(made((0, 1, 5)), outline=wide).header["waterKnown"]
    assert not sent(made((0, 1, 5))).header["waterKnown"]
    near = sent(made((0, 1, 5)), outline=OUTLINE).header["outline"]
    assert len(near["features"]) == 2, "the far one is left out"


def test_cells_are_named_after_the_area_that_holds_their_middle():
    wards = {
        "type": "FeatureCollection",
        "features": [square(139.0, 35.0, 0.1, name="北区"), square(139.2, 35.1, 0.1, name=7)],
    }
    header = sent(made((0, 1, 5)), outline=wards).header
    assert header["cells"] == ["北区, row 0, column 0", *SMALL.labels[1:]]
    assert header["places"] == [["北区", 0]]


# ------------------------------------------------------------------------------------ page


def whole_page(cells=None, title="Flows", notes=("A note.",), **more):
    packed = pack(made((0, 1, 5), cells=cells)).showing({**NOTHING, **more})
    return page(packed, title, notes)


def scripts(content):
    return [(about, text) for tag, about, text in elements_of(content) if tag == "script"]


def test_a_page_holds_the_flows_and_the_map_once():
    content = whole_page()
    assert unpacked_page(content).flows("estimate", MORNING) == {(0, 1): 5.0}
    kinds = [about.get("type") for about, _ in scripts(content)]
    assert kinds == ["text/plain", "module"]


def test_a_page_asks_nothing_of_anybody():
    content = whole_page()
    for tag, about, _ in elements_of(content):
        assert tag != "link"
        assert not {"src", "href", "srcset", "action"} & about.keys(), (tag, about)
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', content)
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    (code,) = (text for about, text in scripts(content) if about.get("type") == "module")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_names_from_the_data_cannot_act():
    content = whole_page([HOSTILE] * 6, HOSTILE, (HOSTILE,))
    assert "<script>alert" not in content
    assert "<img" not in content.replace(flow_map.script(), "")
    assert len(scripts(content)) == 2
    assert unpacked_page(content).header["cells"] == [HOSTILE] * 6


def test_a_page_has_the_colours_of_its_theme():
    packed = pack(made((0, 1, 5))).showing(NOTHING)
    assert "background: rgba(18,25,31,1)" in page(packed, "Flows", (), DARK)


def test_the_program_ends_no_script():
    assert "</script" not in flow_map.script()


def test_rows_that_a_result_gives_need_no_order():
    shuffled = made((2, 0, 1), (0, 1, 5), (1, 1, 7))
    assert sent(shuffled).flows("estimate", MORNING) == {(2, 0): 1.0, (0, 1): 5.0}
    assert isinstance(shuffled.rows("estimate", MORNING, None), pd.DataFrame)


def test_the_ground_arrives_as_shapes_and_towns():
    got = Unpacked(pack(made((0, 1, 5)), ground=GROUND).showing(NOTHING)).header

    kinds = [shape["properties"]["kind"] for shape in got["ground"]["features"]]
    assert kinds == ["land", "border"]
    assert got["towns"] == [[139.1, 35.1, "<b>Here</b>", 7]]
    assert got["waterKnown"]
    bare = sent(made((0, 1, 5))).header
    assert (bare["ground"], bare["towns"], bare["waterKnown"]) == (None, [], False)
