import re

import numpy as np
import pandas as pd
import pytest
import shapely
from plotly.offline import get_plotlyjs
from pyproj import Transformer

from agg_core.plotting.grid_arrows import drawn_flows
from agg_core.plotting.lab import standalone_html
from agg_core.plotting.paper import PaperRow, mercator, paper_figure
from agg_core.plotting.theme import DARK, LIGHT, css
from agg_core.space.build import Grid
from tests.agg_core.plotting.canvas import GROUND, OUTLINE, SMALL, TOKYO, flows
from tests.faults import refused

MORNING = PaperRow(
    "08:00", flows((0, 1, 90), (1, 0, 40), (5, 2, 60), (3, 3, 500), (6, 2, 77), (4, 3, 3)),
    flows((0, 1, 80), (2, 2, 500)), cpc=0.876, total_ratio=1.1,
)  # fmt: skip
NIGHT = PaperRow("02:00", flows((3, 3, 500), (0, 0, 0.4)), flows((0, 1, 70), (4, 4, 120)))


def paper(*rows, grid=SMALL, vmax=90.0, threshold=35.0, **choices):
    return paper_figure(rows, grid, vmax=vmax, threshold=threshold, **choices)


def rings(figure, name, row=0, column=0):
    """Polygons of one kind on one map, with their fill colours: (n, k, 2) in the maps' plane."""
    axis = f"x{2 * row + column + 1}"
    found = []
    for trace in figure.data:
        if trace.name == name and trace.xaxis == axis.removesuffix("1" if axis == "x1" else ""):
            places = np.column_stack([trace.x, trace.y])
            gaps = np.flatnonzero(np.isnan(places[:, 0]))
            parts = [part[~np.isnan(part[:, 0])] for part in np.split(places, gaps)]
            found += [(part, trace.fillcolor) for part in parts]
    return found


def latitude(y):
    return np.degrees(np.arctan(np.sinh(np.radians(y))))


def pairs(figure, grid, row=0, column=0):
    """Origin and destination of each arrow, by where its tail and its tip lie."""
    found = set()
    for ring, _ in rings(figure, "arrows", row, column):
        ends = np.array([(ring[0] + ring[6]) / 2, ring[3]])
        found.add(tuple(grid.assign(ends[:, 0], latitude(ends[:, 1])).tolist()))
    return found


def words(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def shown_size(figure, name):
    """Pixels that a unit takes along both axes of a map."""
    layout = figure.layout
    width = layout.width - layout.margin.l - layout.margin.r
    height = layout.height - layout.margin.t - layout.margin.b
    x, y = layout[f"xaxis{name}"], layout[f"yaxis{name}"]
    return tuple(
        (axis.domain[1] - axis.domain[0]) * px / (axis.range[1] - axis.range[0])
        for axis, px in ((x, width), (y, height))
    )


# ----------------------------------------------------------------------------------- arrows


def test_each_map_has_the_arrows_of_the_flow_map_and_no_other():
    figure = paper(MORNING, NIGHT)

    assert pairs(figure, SMALL, 0, 0) == {(0, 1), (1, 0), (5, 2)}
    assert pairs(figure, SMALL, 0, 1) == {(0, 1)}
    assert pairs(figure, SMALL, 1, 0) == set()
    assert pairs(figure, SMALL, 1, 1) == {(0, 1)}


@pytest.mark.parametrize(("threshold", "top_n"), [(35, 300), (35, 2), (1, None), (1000, 300)])
def test_as_many_arrows_are_drawn_as_the_flow_map_draws(threshold, top_n):
    figure = paper(MORNING, threshold=threshold, top_n=top_n)
    expected = drawn_flows(SMALL, MORNING.estimate, threshold, top_n)

    assert len(rings(figure, "arrows")) == expected.n_shown


def test_one_arrow_by_hand():
    """Two cells on the equator, where a degree east is 111,319.5 m and one north 110,574 m.

    The extent is 22,263.9 m by 11,057.4 m, so a typical side is their geometric mean over 10,
    1,569.0 m; half a full arrow is 0.115 of it, 180.4 m, and it begins and ends 0.24 of it, 376.6
    m, inside the two middles, and 2.35 times 180.4 m to the right, which is south.
    """
    grid = Grid.from_bbox(0.0, -0.05, 0.2, 0.05, 1, 2)
    row = PaperRow("all day", flows((0, 1, 50)), flows((0, 1, 50)))
    ((ring, _),) = rings(paper(row, grid=grid, vmax=50.0), "arrows")
    half, inset, east, north = 180.4, 376.6, 111_319.5, 110_574.0
    tail, tip = 0.05 + inset / east, 0.15 - inset / east
    neck, middle = tip - 4.4 * half / east, -2.35 * half / north
    expected = [
        (tail, middle - 0.3 * half / north), (neck, middle - half / north),
        (neck, middle - 2.2 * half / north), (tip, middle), (neck, middle + 2.2 * half / north),
        (neck, middle + half / north), (tail, middle + 0.3 * half / north),
        (tail, middle - 0.3 * half / north),
    ]  # fmt: skip

    np.testing.assert_allclose(ring, expected, atol=5e-6)


def test_the_largest_arrow_has_the_end_of_the_ramp_and_lies_on_top():
    drawn = rings(paper(MORNING), "arrows")
    (*_, (last, colour)) = drawn

    assert colour.startswith("rgba({},{},{},".format(*LIGHT.arrow[-1]))
    assert SMALL.assign([last[3, 0]], latitude(last[3:4, 1]))[0] == 1
    assert len({colour for _, colour in drawn}) == 3


def test_counts_stand_in_the_corner_of_each_map():
    said = words(paper(MORNING, NIGHT, top_n=2))

    # Of the 90 + 40 + 60 + 77 + 3 people who move, the two largest arrows carry 150.
    assert "2 arrows of 3, 56% of movement" in said
    assert said.count("1 arrow, 100% of movement") == 2
    assert "no flow above 35" in said


# ------------------------------------------------------------------------------------ places


def test_mercator_is_that_of_web_maps():
    lat = np.array([-60.0, 0.0, 35.7, 84.9])
    _, y = Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True).transform(0 * lat, lat)

    np.testing.assert_allclose(mercator(lat), np.degrees(y / 6_378_137.0), atol=1e-9)


@pytest.mark.parametrize("grid", [SMALL, TOKYO], ids=["small", "Tokyo"])
def test_one_scale_both_ways_on_all_maps(grid):
    row = PaperRow("02:00", flows((0, 1, 50)), flows((0, 1, 50)))
    figure = paper(row, row, grid=grid)
    across = []

    for name in ("", "2", "3", "4"):
        axis = figure.layout[f"yaxis{name}"]
        assert (axis.scaleanchor, axis.scaleratio, axis.constrain) == (f"x{name}", 1, "domain")
        across.append(shown_size(figure, name)[0])
        assert across[-1] == pytest.approx(shown_size(figure, name)[1], rel=2e-3)
    np.testing.assert_allclose(across, across[0])


@pytest.mark.parametrize(
    ("bounds", "shape"), [((10, 59, 10.1, 60, 20, 2), 1.5), ((0, 1, 9, 2, 1, 9), 0.4)]
)
def test_a_long_extent_gets_a_map_of_bounded_shape(bounds, shape):
    row = PaperRow("02:00", flows((0, 1, 50)), flows((0, 1, 50)))
    figure = paper(row, grid=Grid.from_bbox(*bounds))
    sides = [
        (axis.domain[1] - axis.domain[0]) * px
        for axis, px in (
            (figure.layout.xaxis, figure.layout.width - 32),
            (figure.layout.yaxis, figure.layout.height - 32),
        )
    ]

    assert sides[1] / sides[0] == pytest.approx(shape, rel=2e-3)


def test_maps_and_legends_do_not_overlap():
    layout = paper(MORNING, NIGHT, source="who " * 80).layout
    boxes = [(*layout[f"xaxis{i}"].domain, *layout[f"yaxis{i}"].domain) for i in range(1, 7)]

    for i, (left, right, bottom, top) in enumerate(boxes):
        assert 0 <= left < right <= 1 + 1e-9
        assert 0 < bottom < top < 1
        for other_left, other_right, other_bottom, other_top in boxes[:i]:
            assert (
                right <= other_left or other_right <= left
                or top <= other_bottom or other_top <= bottom
            )  # fmt: skip


def test_height_grows_by_the_same_for_each_row():
    heights = [paper(*[MORNING] * n).layout.height for n in (1, 2, 3)]

    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=1)
    assert heights[0] < 0.8 * 1000 < heights[1]


# ------------------------------------------------------------------------------------ shades


def shades(figure, row, column):
    """Colour of each shaded cell of a map."""
    found = {}
    for ring, colour in rings(figure, "people", row, column):
        lon, y = ring[:4].mean(axis=0)
        found[int(SMALL.assign([lon], [latitude(y)])[0])] = colour
    return found


def test_shades_are_people_on_one_scale_and_traces_of_people_stay_clear():
    figure = paper(MORNING, NIGHT)
    morning, night = shades(figure, 0, 0), shades(figure, 1, 0)

    # Cell 0 has 90 people in the morning, 0.4 at night; cell 2 receives but begins with none.
    assert set(morning) == {0, 1, 3, 4, 5}
    assert set(night) == {3}
    assert set(shades(figure, 0, 1)) == {0, 2}
    assert morning[3] == night[3]
    assert morning[3].startswith("rgba({},{},{},".format(*LIGHT.heat[-1]))
    assert morning[4].startswith("rgba({},{},{},".format(*LIGHT.heat[0]))


def test_the_end_of_the_scale_of_shades_can_be_given_and_stands_in_the_legend():
    given = paper(MORNING, shade_vmax=2_000.0)

    # 500 of 2,000 is the share 1/4, the root of it 1/2: the fifth of eight colours.
    assert shades(given, 0, 0)[3] == fill_of_box(given, 4)
    assert [text for text in words(given) if text in {"0", "125", "500", "1,125", "2,000"}] == [
        "0", "125", "500", "1,125", "2,000",
    ]  # fmt: skip


def fill_of_box(figure, number):
    boxes = [trace for trace in figure.data if trace.name == "legend" and trace.xaxis == "x4"]
    return boxes[number].fillcolor


def test_the_legend_has_arrows_as_wide_as_those_of_the_maps():
    figure = paper(MORNING)
    largest = max(
        (ring for ring, _ in rings(figure, "arrows")), key=lambda ring: np.ptp(ring[[2, 4], 1])
    )
    scale = shown_size(figure, "")[0]
    sample = [trace for trace in figure.data if trace.name == "legend" and trace.xaxis == "x3"][-1]
    unit = shown_size(figure, "3")[1]

    on_map = np.hypot(*(largest[4] - largest[2])) * scale
    in_legend = abs(sample.y[4] - sample.y[2]) * unit
    assert in_legend == pytest.approx(on_map, rel=0.01)


# ------------------------------------------------------------------------------------ ground


def test_the_outline_is_cut_at_the_edge_of_the_maps():
    land = rings(paper(MORNING, outline=OUTLINE), "outline")
    places = np.vstack([ring for ring, _ in land])

    assert len(land) == 2, "the feature far away is left out"
    assert {colour for _, colour in land} == {css(LIGHT.land)}
    # It begins with the grid in the west and goes far on in the east.
    assert places[:, 0].min() == pytest.approx(139.0, abs=1e-6)
    assert places[:, 0].max() == pytest.approx(139.3 + 0.03 * 0.3, abs=1e-6)


def test_where_no_outline_tells_the_water_all_is_land():
    away = {**OUTLINE, "features": OUTLINE["features"][1:2]}

    assert rings(paper(MORNING), "ground")[0][1] == css(LIGHT.land)
    assert rings(paper(MORNING, outline=away), "ground")[0][1] == css(LIGHT.land)


def test_a_land_that_reaches_round_the_grid_leaves_the_rest_to_the_water():
    wide = {"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [
            [[138, 34], [141, 34], [141, 36], [138, 36], [138, 34]],
            [[139.1, 35.05], [139.1, 35.15], [139.2, 35.15], [139.2, 35.05], [139.1, 35.05]],
        ]}},
    ]}  # fmt: skip
    figure = paper(MORNING, outline=wide)
    shore = rings(figure, "outline")

    assert rings(figure, "ground")[0][1] == css(LIGHT.background)
    assert len(shore) == 2
    areas = [shapely.LinearRing(ring).is_ccw for ring, _ in shore]
    assert areas[0] != areas[1], "a lake runs the other way, so that it is not filled"


def test_the_ground_of_the_world_lies_beneath_and_tells_the_water():
    figure = paper(MORNING, ground=GROUND)
    land = rings(figure, "land")

    assert rings(figure, "ground")[0][1] == css(LIGHT.background)
    assert [colour for _, colour in land] == [css(LIGHT.land)]
    assert land[0][0][:, 1].min() == pytest.approx(mercator(35.1), abs=1e-6)
    assert not rings(figure, "outline")


# ------------------------------------------------------------------------------------- words


def test_rows_columns_and_source_are_named_and_text_cannot_act():
    figure = paper(
        PaperRow("<b>8</b>", MORNING.estimate, MORNING.truth, 0.876, 1.1), NIGHT,
        titles=("M = <20>", "truth"), source="<a href='x'>who</a> & when",
    )  # fmt: skip
    said = words(figure)

    first = next(text for text in said if "CPC" in text)
    assert "&lt;b&gt;8&lt;/b&gt;" in first
    assert first.endswith("<br>CPC 0.88<br>movement × 1.10")
    assert sum("CPC" in text for text in said) == 1, "what is not known is not said"
    assert "<b>M = &lt;20&gt;</b>" in said
    assert "&lt;a href='x'&gt;who&lt;/a&gt; &amp; when" in said


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_those_of_the_theme(theme):
    figure = paper(MORNING, outline=OUTLINE, theme=theme)

    assert figure.layout.paper_bgcolor == css(theme.paper)
    assert {note.font.color for note in figure.layout.annotations} == {css(theme.text)}
    arrows = {colour for _, colour in rings(figure, "arrows")}
    assert "rgba({},{},{},{:g})".format(*theme.arrow[-1], 240 / 255) in arrows


@pytest.mark.parametrize("n_rows", [0, 7])
def test_too_few_or_many_rows_are_refused(n_rows):
    with refused("value-out-of-range", "1 to 6"):
        paper(*[MORNING] * n_rows)


def test_the_page_is_small_and_asks_for_nothing():
    rng = np.random.default_rng(0)
    many = pd.DataFrame(
        {
            "origin": rng.integers(0, 224, 2_000),
            "dest": rng.integers(0, 224, 2_000),
            "count": rng.uniform(36, 500, 2_000),
        }
    ).drop_duplicates(["origin", "dest"])
    figure = paper(*[PaperRow("08:00", many, many)] * 4, grid=TOKYO, vmax=500.0)
    library, page = get_plotlyjs(), standalone_html(figure, "All")
    own = page.replace(library, "")

    assert sum(len(rings(figure, "arrows", i, j)) for i in range(4) for j in range(2)) == 2_400
    assert len(figure.data) < 200
    assert len(page) - len(library) < 3_000_000
    assert len(own) < len(page)
    assert not re.search(r"(src|href)=|https?://(?!plot\.ly)", own)
