import base64
import hashlib
import re
from html import escape
from xml.etree import ElementTree

import pandas as pd
import pydeck as pdk
import pytest

from agg_core.plotting.charts import arrow_legend
from agg_core.plotting.deck import Scene
from agg_core.plotting.flow_maps import flow_deck
from agg_core.plotting.html_map import arrow_legend_svg, standalone_map
from agg_core.plotting.theme import DARK, LIGHT, css
from agg_core.space.build import Grid
from tests.agg_core.plotting.pages import decks_of, elements_of

HOSTILE = "</script><script>alert('=1')</script><img src=x onerror=alert(1)> & \"東京\""


def deck(where="a cell"):
    layer = pdk.Layer(
        "ScatterplotLayer",
        [{"at": [139.1, 35.1], "where": where, "what": "5 people"}],
        id="dots",
        get_position="at",
    )
    return pdk.Deck(
        layers=[layer],
        initial_view_state=pdk.ViewState(longitude=139.1, latitude=35.1, zoom=9),
        map_provider=None,
        tooltip={"text": "{where}\n{what}"},
    )


def page(name="Left", title="Flows", notes=("A note.",), legend=None, where="a cell"):
    return standalone_map([(name, deck(where)), ("Right", deck())], title, notes, legend)


def scripts(content):
    return [(about, text) for tag, about, text in elements_of(content) if tag == "script"]


def test_the_library_is_within_once():
    content = page()
    assert content.count("createDeck:()=>") == 1
    assert [about.get("type") for about, _ in scripts(content)] == ["application/json"] * 2 + [
        None,
        None,
    ]


def test_nothing_is_linked():
    content = page()
    for tag, about, _ in elements_of(content):
        assert tag != "link"
        assert not {"src", "href", "srcset", "action"} & about.keys(), (tag, about)
    library = max((text for _, text in scripts(content)), key=len)
    assert "http" not in content.replace(library, "").replace("http-equiv", "")


def test_the_policy_lets_these_scripts_act_and_nothing_reach_out():
    content = page()
    policy = next(
        about["content"]
        for tag, about, _ in elements_of(content)
        if about.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert "unsafe" not in policy
    assert rules["img-src"] == "data: blob:"
    acting = [text for about, text in scripts(content) if "type" not in about]
    style = next(text for tag, _, text in elements_of(content) if tag == "style")
    assert rules["script-src"].split() == [sha256(text) for text in acting]
    assert rules["style-src"] == sha256(style)


def sha256(text):
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def test_each_map_has_its_deck_its_text_and_its_size():
    content = page()
    left, right = decks_of(content)
    assert left == right
    assert left["deck"]["initialViewState"] == {"longitude": 139.1, "latitude": 35.1, "zoom": 9}
    assert left["deck"]["layers"][0]["data"][0]["where"] == "a cell"
    assert left["tooltip"] == {"text": "{where}\n{what}"}
    assert left["fitted"] == [540, 500]
    labels = [about["aria-label"] for _, about, _ in elements_of(content) if "aria-label" in about]
    assert labels == ["Map: Left", "Map: Right"]


@pytest.mark.parametrize("place", ["name", "title", "where"])
def test_text_from_outside_stays_text(place):
    content = page(**{place: HOSTILE})
    tags = [tag for tag, _, _ in elements_of(content)]
    assert tags == [tag for tag, _, _ in elements_of(page())]
    if place == "where":
        assert decks_of(content)[0]["deck"]["layers"][0]["data"][0]["where"] == HOSTILE
    else:
        assert escape(HOSTILE) in content


def test_notes_stay_text():
    content = page(notes=("One.", HOSTILE))
    assert [text for tag, _, text in elements_of(content) if tag == "p"][-2:] == ["One.", HOSTILE]
    assert "img" not in {tag for tag, _, _ in elements_of(content)}


def test_a_comment_in_the_data_does_not_swallow_the_page():
    content = page(where="<!--<script>")
    assert decks_of(content)[0]["deck"]["layers"][0]["data"][0]["where"] == "<!--<script>"
    assert len(scripts(content)) == 4


def test_the_theme_colours_the_page():
    content = standalone_map([("Map", deck())], "Flows", theme=DARK)
    assert f"background: {css(DARK.paper)}; color: {css(DARK.text)}" in content


def test_real_maps_go_in():
    grid = Grid.from_bbox(139.0, 35.0, 139.3, 35.3, 3, 3)
    flows = pd.DataFrame({"origin": [0, 4], "dest": [1, 8], "count": [5.0, 2.0]})
    drawn = flow_deck(grid, flows, vmax=10, threshold=1, scene=Scene(theme=DARK))
    content = standalone_map([("Map", drawn)], "Flows", theme=DARK)
    layers = {layer["id"]: layer for layer in decks_of(content)[0]["deck"]["layers"]}
    assert [arrow["dest"] for arrow in layers["arrows"]["data"]] == [8, 1]


# ---------------------------------------------------------------- legend

SVG = "{*}"


def legend(*arguments, **options):
    return ElementTree.fromstring(arrow_legend_svg(*arguments, **options))


def test_the_legend_has_the_arrows_of_the_chart():
    svg = legend(166.0, 35.0, LIGHT, half_widths_px=(0.9, 3.6))
    figure = arrow_legend(166.0, 35.0, LIGHT, half_widths_px=(0.9, 3.6))
    paths = svg.findall(f"{SVG}path")
    assert [path.get("fill") for path in paths] == [trace.fillcolor for trace in figure.data]
    for path, trace in zip(paths, figure.data, strict=True):
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", path.get("d"))]
        assert numbers[::2] == pytest.approx(list(trace.x), abs=0.006)
        assert numbers[1::2] == pytest.approx([70 - y for y in trace.y], abs=0.006)


def test_the_legend_has_values_and_unit():
    svg = legend(166.0, 35.0)
    words = [word.text for word in svg.findall(f"{SVG}text")]
    assert words == ["35", "60", "100", "166 or more", "People per step"]
    assert svg.get("aria-label") == "People per step: 35, 60, 100, 166 or more"
    assert svg.get("role") == "img"


def test_every_part_of_the_legend_lies_within_it():
    svg = legend(166.0, 35.0, width_px=320)
    assert (svg.get("width"), svg.get("height")) == ("320", "70")
    for path in svg.findall(f"{SVG}path"):
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", path.get("d"))]
        assert 0 <= min(numbers[::2]) <= max(numbers[::2]) <= 320
        assert 0 <= min(numbers[1::2]) <= max(numbers[1::2]) <= 70


def test_the_title_of_the_legend_is_text():
    svg = legend(10.0, 1.0, title='<b>"People"</b>')
    assert svg.findall(f"{SVG}text")[-1].text == '<b>"People"</b>'
