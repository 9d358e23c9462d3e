"""The figure of a sweep: what is drawn where, and what is left out."""

import math
from dataclasses import replace

import pytest

from agg_core.plotting.sweeps import sweep_chart
from agg_core.plotting.theme import DARK, LIGHT, css
from agg_core.study.settings import CountLearnSettings
from agg_core.study.sweeps import Sweep, SweepResult, SweepRow
from tests.agg_core import tiny


def of_people(name="group_size", values=(1, 5, 50), **learn):
    rows = (
        SweepRow(values[0], movers=100.0, total_ratio=1.0, cpc=1.0, chances_apart=0.0),
        SweepRow(values[1], movers=120.0, total_ratio=1.2, cpc=0.8, chances_apart=0.25),
        SweepRow(values[2], fault="It failed.", code="learning-failed"),
    )
    return SweepResult(Sweep(tiny.settings(**learn), name, values), rows, 1.0)


def lines(figure):
    return [(trace.xaxis, list(trace.x), list(trace.y)) for trace in figure.data]


def test_movement_and_errors_stand_beside_the_values_and_a_failed_one_is_a_gap():
    figure = sweep_chart(of_people())
    at = [1.0, 5.0, 50.0]
    found = lines(figure)
    assert found[0] == ("x", at, [100.0, 120.0, None])
    assert found[1] == ("x", at, [pytest.approx(100.0), pytest.approx(100.0), None])
    assert found[2] == ("x2", at, [0.0, pytest.approx(0.2), None])
    assert found[3] == ("x2", at, [0.0, 0.25, None])
    assert not any(trace.connectgaps for trace in figure.data)
    assert all(trace.error_y.array is None for trace in figure.data)


def test_counts_have_the_error_of_held_out_days():
    sweep = Sweep(CountLearnSettings(strength="given"), "prior", (0.0, 20.0))
    rows = (SweepRow(0.0, movers=7.0, held_out_gain=0.5), SweepRow(20.0, movers=8.0))
    figure = sweep_chart(SweepResult(sweep, rows, 1.0))
    assert lines(figure) == [("x", [0.0, 20.0], [7.0, 8.0]), ("x2", [0.0, 20.0], [0.5, None])]


@pytest.mark.parametrize(
    ("name", "values", "at", "kind"),
    [
        ("group_size", (1, 5, 50), [1.0, 5.0, 50.0], "log"),
        ("group_size", (10, 20, 30), [10.0, 20.0, 30.0], "linear"),
        ("misclassify", (0.0, 0.1, 0.9), [0.0, 0.1, 0.9], "linear"),
        ("reach_m", (2000.0, 5000.0, 9000.0), [2.0, 5.0, 9.0], "linear"),
        ("grid", ("2x2", "3x3", "9x9"), [0.0, 1.0, 2.0], "linear"),
        ("inference", ("cfb", "auto", "cavity"), [0.0, 1.0, 2.0], "linear"),
        ("seed", (7, 1, 100), [0.0, 1.0, 2.0], "linear"),
    ],
)
def test_numbers_lie_where_they_are_and_others_one_after_the_other(name, values, at, kind):
    result = of_people(name, values, **({"inference": "cfb"} if name == "reach_m" else {}))
    figure = sweep_chart(result)
    assert list(figure.data[0].x) == at
    for axis in (figure.layout.xaxis, figure.layout.xaxis2):
        assert (axis.type, list(axis.tickvals)) == (kind, at)
        assert list(axis.ticktext) == list(result.sweep.labels)


def test_an_interval_is_drawn_where_there_is_one():
    result = of_people()
    first = replace(result.rows[0], movers_low=90.0, movers_high=130.0)
    figure = sweep_chart(replace(result, rows=(first, *result.rows[1:])))
    bars = figure.data[0].error_y
    assert (list(bars.array), list(bars.arrayminus)) == ([30.0, 0.0, 0.0], [10.0, 0.0, 0.0])


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_it_has_the_colours_of_the_theme(theme):
    figure = sweep_chart(of_people(), theme)
    assert [trace.line.color for trace in figure.data] == [css(c) for c in theme.series[:4]]
    assert figure.layout.font.color == css(theme.text)
    assert len({trace.line.dash for trace in figure.data}) == 4


def test_an_error_without_an_end_is_not_drawn():
    result = of_people()
    row = replace(result.rows[0], total_ratio=math.inf, cpc=math.nan)
    figure = sweep_chart(replace(result, rows=(row, *result.rows[1:])))
    assert figure.data[2].y[0] is None
