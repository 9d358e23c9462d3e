import numpy as np
import pytest

from agg_core.plotting import charts, maps
from agg_core.plotting.deck import Scene
from agg_core.plotting.theme import ARROW_ALPHA, DARK, LIGHT, arrow_colours, css, over_land
from agg_core.space.build import Grid
from tests.faults import refused

GRID = Grid.from_bbox(139.28, 35.36, 140.24, 36.06, 14, 16)
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def words(figure):
    return [note.text for note in figure.layout.annotations]


def seen(fill, theme):
    """What the eye sees of a translucent fill on the land of a map."""
    return css(tuple(over_land(theme, np.array([fill[:3]]), fill[3])[0].tolist()))


def test_free_energy_has_one_line_for_each_fit():
    figure = charts.free_energy_chart({"CFB": [3.0, 2.5, 2.25], "cavity": [3.0, 2.0]})

    assert [trace.name for trace in figure.data] == ["CFB", "cavity"]
    assert figure.data[0].x == (1, 2, 3)
    assert figure.data[0].y == (3.0, 2.5, 2.25)
    assert figure.data[0].line.dash != figure.data[1].line.dash
    assert figure.layout.showlegend


def test_free_energy_of_nothing_and_of_a_single_step_can_be_drawn():
    assert len(charts.free_energy_chart({}).data) == 0
    assert charts.free_energy_chart({"CFB": [3.0]}).data[0].mode == "lines+markers"


def test_population_marks_the_chosen_step():
    figure = charts.population_chart([5, 7, 6], ["2:00", "8:00", "14:00"], step=1)

    assert figure.data[0].y == (5.0, 7.0, 6.0)
    assert figure.data[0].customdata == ("2:00", "8:00", "14:00")
    assert (figure.data[1].x, figure.data[1].y) == ((1,), (7.0,))
    assert figure.layout.xaxis.ticktext == ("2:00", "8:00", "14:00")


@pytest.mark.parametrize(
    ("labels", "step", "code"), [(["a"], None, "lengths-differ"), (["a", "b"], 2, "unknown-step")]
)
def test_impossible_population_charts_are_refused(labels, step, code):
    with refused(code):
        charts.population_chart([1, 2], labels, step=step)


@THEMES
def test_arrow_legend_shows_colours_and_widths_up_to_the_end_of_the_scale(theme):
    figure = charts.arrow_legend(900, 35, theme, half_widths_px=(0.6, 3.5))

    for trace, people in ((figure.data[0], 35.0), (figure.data[-1], 900.0)):
        colour = arrow_colours(theme, [people], 900)[0].tolist()
        assert trace.fillcolor == seen([*colour, ARROW_ALPHA], theme)
    widest = np.array(figure.data[-1].y)
    assert np.ptp(widest[[1, 5]]) == pytest.approx(2 * 3.5)
    assert np.mean(widest[[1, 5]]) == pytest.approx(np.mean(figure.data[0].y[1::4]))
    assert figure.layout.height == figure.layout.yaxis.range[1]
    assert words(figure)[0] == "35"
    assert words(figure)[-2:] == ["900 or more", "People per step"]


@pytest.mark.parametrize(("vmax", "threshold"), [(10, 35), (10, 0), (0.5, 0.1), (35, 35), (2e6, 1)])
def test_arrow_legend_samples_rise_to_the_top_of_the_scale(vmax, threshold):
    figure = charts.arrow_legend(vmax, threshold)
    widths = [np.ptp(trace.y) for trace in figure.data]

    assert 2 <= len(widths) <= 4
    assert (np.diff(widths) >= 0).all()
    assert figure.data[-1].fillcolor == seen([*LIGHT.arrow[-1], ARROW_ALPHA], LIGHT)


@THEMES
def test_heat_legend_has_the_colours_of_the_cells_at_its_values(theme):
    figure = charts.heat_legend(1600, theme)
    bar = figure.data[0]

    assert bar.colorscale[-1][0] == 1
    ends = np.array(bar.x)[[0, -1]]
    tick = next(note for note in figure.layout.annotations if note.text == "400")
    assert tick.x == pytest.approx(ends.mean())
    assert words(figure)[:1] == ["0"]
    assert "1,600" in words(figure)
    cells = (
        maps.heat_deck(GRID, np.full(224, 1600), vmax=1600, scene=Scene(theme=theme))
        .layers[-1]
        ._data
    )
    last = [int(part) for part in bar.colorscale[-1][1][5:-3].split(",")]
    top = over_land(theme, np.array([cells[0]["fill"][:3]]), cells[0]["fill"][3])[0]
    np.testing.assert_allclose(last, top, atol=4)


def test_a_legend_without_a_scale_is_refused():
    with refused("scale-not-positive"):
        charts.heat_legend(0)
