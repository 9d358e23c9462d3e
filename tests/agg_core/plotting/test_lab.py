import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.lab.experiments import EXPERIMENTS
from agg_core.lab.teaching import TeachingPoint, TeachingResult, TeachingSettings
from agg_core.plotting import lab
from agg_core.plotting.theme import DARK, LIGHT, css
from agg_core.tables.flows import FlowComparison
from tests.faults import refused

FIG3, FIG7, GROUPS = (EXPERIMENTS[name] for name in ("fig3", "fig7", "groups"))
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def run(delta, d=3, m=1, seed=0, learner="cfb", wall=None, n=100):
    """Rows of one run: delta_nll at iterations 0, 1, 2, ..."""
    wall = np.arange(len(delta), dtype=float) if wall is None else wall
    return pd.DataFrame(
        {
            "n_states": d, "group_size": m, "n_individuals": n, "length": 5, "learner": learner,
            "seed": seed, "iteration": range(len(delta)), "wall_s": wall, "delta_nll": delta,
            "free_energy": np.nan,
        }
    )  # fmt: skip


def table(*runs):
    return pd.concat(runs, ignore_index=True)


def two_by_two():
    """d = 3 and 5, M = 1 and 10, two seeds; means by hand are 2, 1 and twice that at M = 10."""
    return table(
        *(
            run([factor * (2 + shift), factor * (1 + shift / 2)], d, m, seed)
            for d in (3, 5)
            for m, factor in ((1, 1.0), (10, 2.0))
            for seed, shift in ((0, -0.4), (1, 0.4))
        )
    )


def lines(figure):
    return [trace for trace in figure.data if trace.fill is None]


def bands(figure):
    return [trace for trace in figure.data if trace.fill == "toself"]


def drawn(experiment, rows, theme=LIGHT, log=False):
    return lab.lab_figure(experiment, lab.learning_curves(experiment, rows), theme, log=log)


# ---------------------------------------------------------------- curves


def test_a_curve_is_mean_and_deviation_over_the_seeds():
    first, second, *_ = lab.learning_curves(FIG3, two_by_two())
    assert (first.panel, first.curve, first.n_seeds) == ("d = 3", 1, 2)
    np.testing.assert_allclose(first.x, [0, 1])
    np.testing.assert_allclose(first.mean, [2, 1])
    # The sample deviation of two values is their distance over the root of 2.
    np.testing.assert_allclose(first.sd, np.array([0.8, 0.4]) / np.sqrt(2))
    np.testing.assert_allclose(second.mean, [4, 2])


def test_a_run_that_ended_early_keeps_its_last_value():
    (curve,) = lab.learning_curves(FIG3, table(run([3, 2, 1]), run([5, 4], seed=1)))
    np.testing.assert_allclose(curve.mean, [4, 3, 2.5])


def test_one_seed_has_no_band():
    figure = drawn(FIG3, run([3.0, 2.0, 1.0]))
    assert bands(figure) == []
    assert lines(figure)[0].y == (3.0, 2.0, 1.0)


def test_wall_times_are_put_on_common_times():
    """Both seeds fall linearly in log time, at paces apart by 4; the mean by hand."""
    times = np.array([0.0, 1.0, 10.0, 100.0])
    rows = table(
        run([9, 3, 2, 1], wall=times), run([9, 3, 2, 1], seed=1, wall=4 * times)
    )  # fmt: skip
    (curve,) = lab.learning_curves(FIG7, rows)
    assert curve.x[0] == pytest.approx(4), "from when both have done an iteration"
    assert curve.x[-1] == pytest.approx(400), "to when the last has ended"
    fast = np.maximum(3 - np.log10(curve.x), 1)
    slow = 3 - np.log10(curve.x / 4)
    np.testing.assert_allclose(curve.mean, (fast + slow) / 2)
    np.testing.assert_allclose(np.diff(np.log(curve.x)), np.log(100) / (len(curve.x) - 1))


def test_what_else_is_varied_makes_curves_of_its_own():
    rows = table(run([2, 1]), run([4, 3], n=1000))
    curves = lab.learning_curves(FIG3, rows)
    assert [curve.rest for curve in curves] == ["N = 100", "N = 1,000"]
    one, other = lines(lab.lab_figure(FIG3, curves))
    assert (one.name, other.name) == ("M = 1, N = 100", "M = 1, N = 1,000")
    assert one.line.color == other.line.color
    assert one.line.dash != other.line.dash


# ---------------------------------------------------------------- the figure


@THEMES
def test_a_curve_has_one_colour_in_all_panels_and_one_entry_in_the_legend(theme):
    figure = drawn(FIG3, two_by_two(), theme)
    assert [note.text for note in figure.layout.annotations] == ["d = 3", "d = 5"]
    assert [(line.name, line.xaxis) for line in lines(figure)] == [
        ("M = 1", "x"), ("M = 10", "x"), ("M = 1", "x2"), ("M = 10", "x2"),
    ]  # fmt: skip
    colours = [line.line.color for line in lines(figure)]
    assert colours[:2] == colours[2:] == [css(theme.series[0]), css(theme.series[1])]
    assert [line.showlegend for line in lines(figure)] == [True, True, False, False]
    assert not any(band.showlegend for band in bands(figure))
    assert {band.legendgroup for band in bands(figure)} == {"M = 1", "M = 10"}
    assert figure.layout.paper_bgcolor == css(theme.paper), "text on it is readable when saved"
    assert figure.layout.font.color == css(theme.text)


def test_axes_say_what_they_measure():
    figure = drawn(FIG3, two_by_two())
    assert figure.layout.xaxis.title.text == figure.layout.xaxis2.title.text == "Iteration"
    assert figure.layout.yaxis.title.text == "ΔNLL per person, nats"
    assert figure.layout.yaxis2.matches == "y"
    timed = drawn(FIG7, run([3, 2, 1]))
    assert timed.layout.xaxis.title.text == "Wall time, s (log scale)"
    assert timed.layout.xaxis.type == "log"


def test_a_band_lies_one_deviation_about_the_mean():
    band = bands(drawn(FIG3, two_by_two()))[0]
    sd = np.array([0.8, 0.4]) / np.sqrt(2)
    assert band.x == (0, 1, 1, 0)
    np.testing.assert_allclose(band.y, [2 - sd[0], 1 - sd[1], 1 + sd[1], 2 + sd[0]])


def test_more_panels_than_a_row_holds_are_wrapped():
    rows = table(*(run([2.0, 1.0], d) for d in (2, 3, 4, 5)))
    one, two = drawn(FIG3, rows[rows["n_states"] < 5]), drawn(FIG3, rows)
    assert two.layout.height > one.layout.height + 200
    assert two.layout.yaxis4.title.text == "ΔNLL per person, nats"
    titled = [
        axis for axis in ("xaxis", "xaxis2", "xaxis3", "xaxis4") if two.layout[axis].title.text
    ]
    assert titled == ["xaxis2", "xaxis3", "xaxis4"]


@THEMES
def test_all_learners_can_be_told_apart(theme):
    names = FIG7.full.learners
    figure = drawn(FIG7, table(*(run([3, 2, 1], learner=name) for name in names)), theme)
    looks = {(line.line.color, line.line.dash) for line in lines(figure)}
    assert len(looks) == len(names)
    assert len({line.line.color for line in lines(figure)}) == min(len(names), 8)


# ---------------------------------------------------------------- logarithms and infinities


def mixed():
    """Means 1, 0.1, -0.1, 0.02; deviations 0 but for the second, whose band reaches below 0."""
    return table(run([1, 0.4, -0.1, 0.02]), run([1, -0.2, -0.1, 0.02], seed=1))


def test_on_a_log_axis_what_is_not_above_0_is_a_gap_and_is_counted():
    curves = lab.learning_curves(FIG3, mixed())
    assert lab.not_drawn(curves, log=True) == (0, 1)
    assert lab.not_drawn(curves, log=False) == (0, 0)
    figure = lab.lab_figure(FIG3, curves, log=True)
    assert lines(figure)[0].y == pytest.approx((1, 0.1, None, 0.02))
    assert not lines(figure)[0].connectgaps
    assert figure.layout.yaxis.type == "log"
    low, high = figure.layout.yaxis.range
    assert low == pytest.approx(-2), "the power of ten below 0.02"
    assert 10**high > 1
    band = bands(figure)[0]
    assert min(y for y in band.y if y is not None) == pytest.approx(0.01), "cut at the foot"
    assert band.x == (0, 1, 1, 0, None, 3, 3), "two stretches, without the point that is left out"


def test_a_log_axis_with_nothing_above_0_is_one_sentence():
    with refused("no-positive-value"):
        drawn(FIG3, run([-1.0, 0.0]), log=True)
    assert len(drawn(FIG3, run([-1.0, 0.0])).data) == 1


def test_infinite_points_are_left_out_and_counted():
    rows = table(run([3, np.inf, 1]), run([3, 2, 1], seed=1))
    curves = lab.learning_curves(FIG3, rows)
    assert lab.not_drawn(curves, log=False) == (1, 0)
    assert lines(lab.lab_figure(FIG3, curves))[0].y == (3, None, 1)


def test_no_curves_are_one_sentence():
    with refused("no-curves"):
        lab.lab_figure(FIG3, [])


# ---------------------------------------------------------------- table and page


def test_the_table_says_where_the_curves_end():
    found = lab.final_table(FIG3, two_by_two())
    assert found.columns.tolist() == ["States, d", "Group size, M", "Mean", "sd", "Seeds"]
    assert found["Mean"].tolist() == pytest.approx([1, 2, 1, 2])
    assert found["sd"].tolist() == pytest.approx([0.4 / 2**0.5, 0.8 / 2**0.5] * 2)
    assert found["Seeds"].tolist() == [2] * 4
    named = lab.final_table(FIG7, run([3, 2, 1]))
    assert named["Learner"].tolist() == ["CFB"]


def test_a_page_of_the_figure_needs_no_network():
    page = lab.standalone_html(drawn(FIG3, two_by_two(), DARK), "Fig. 3, quick", DARK)
    assert "plotly.js v" in page
    assert len(page) > 1_000_000
    assert re.findall(r'<script[^>]*src="http', page) == []
    assert json.dumps("Fig. 3, quick") in page
    assert css(DARK.paper) in page


# ---------------------------------------------------------------- several learners, group sizes


def test_learners_stand_beside_each_other_a_row_for_each_number_of_states():
    rows = table(
        *(
            run([2.0, 1.0], d, m, learner=name)
            for d in (3, 5)
            for m in (1, 10)
            for name in ("cfb", "cavity_calibrated")
        )
    )
    figure = drawn(FIG3, rows)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == [
        "d = 3, CFB", "d = 3, Cavity CFB, calibrated", "d = 5, CFB", "d = 5, Cavity CFB, calibrated"
    ]  # fmt: skip
    assert figure.layout.yaxis.domain == figure.layout.yaxis2.domain, "one row"
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis3.domain[1], "the next row is below"
    shared = {figure.layout[axis].matches for axis in ("yaxis", "yaxis2", "yaxis4")}
    assert shared == {"y3"}, "heights compare over all panels"
    assert {line.name for line in lines(figure)} == {"M = 1", "M = 10"}
    assert {line.line.dash for line in lines(figure)} == {"solid"}
    found = lab.final_table(FIG3, rows)
    assert found.columns[:3].tolist() == ["States, d", "Learner", "Group size, M"]


def by_size():
    """Ends at M = 1, 10 and 100 of two learners, two seeds."""
    return table(
        *(
            run([5.0, end + 0.1 * seed], m=m, seed=seed, learner=name)
            for seed in (0, 1)
            for m, of in ((1, (0.1, 0.1)), (10, (0.4, 0.2)), (100, (0.8, 0.3)))
            for name, end in zip(("cfb", "auto"), of, strict=True)
        )
    )


@THEMES
def test_over_group_sizes_only_the_ends_are_drawn(theme):
    figure = drawn(GROUPS, by_size(), theme)
    cfb, best = lines(figure)
    assert (cfb.name, best.name) == ("CFB", "Best for the data")
    assert cfb.x == (1, 10, 100)
    assert cfb.y == pytest.approx((0.15, 0.45, 0.85))
    assert best.y == pytest.approx((0.15, 0.25, 0.35))
    assert cfb.mode == "lines+markers"
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.title.text == "Group size, M (log scale)"
    assert figure.layout.xaxis.tickvals == (1, 10, 100)
    assert bands(figure) == []
    assert cfb.hovertemplate.startswith("M = %{x:,}: ")
    # It lies upon the curve of the learner taken, which must be seen below it.
    assert (best.line.dash, best.line.color) == ("dot", css(theme.text))
    found = lab.final_table(GROUPS, by_size())
    assert found.columns.tolist()[:3] == ["States, d", "Learner", "Group size, M"]
    assert len(found) == 6


# ---------------------------------------------------------------- what aggregation hides

FIGURES = FlowComparison(cpc=1.0, correlation=1.0, precision=1.0, recall=1.0, total_ratio=1.0)
ENDS = {
    "cfb": ((1, 50.0, 1.0), (20, 80.0, 0.7), (100, 120.0, 0.5)),
    "auto": ((1, 50.0, 1.0), (20, 52.0, 0.9), (100, 60.0, 0.8)),
}


def view(*learners):
    return TeachingResult(
        settings=TeachingSettings(learner=learners[-1]),
        true_moves=50.0,
        points=tuple(
            TeachingPoint(name, size, name, moves, replace(FIGURES, cpc=cpc))
            for name in learners
            for size, moves, cpc in ENDS[name]
        ),
        flows=pd.DataFrame(),
        wall_s=1.0,
    )


@THEMES
def test_both_learners_have_curves_on_which_the_chosen_group_size_is_marked(theme):
    figure = lab.movement_chart(view("cfb", "auto"), 20, theme)
    moves, cpc, best_moves, best_cpc, truth = figure.data
    assert (moves.name, best_moves.name) == ("CFB, the paper's", "Best for the data")
    assert moves.y == (50.0, 80.0, 120.0)
    assert cpc.y == (1.0, 0.7, 0.5)
    assert best_moves.y == (50.0, 52.0, 60.0)
    assert best_cpc.y == (1.0, 0.9, 0.8)
    assert truth.y == (50.0, 50.0)
    assert [line.showlegend for line in figure.data] == [True, False, True, False, None]
    assert len({line.line.color for line in (moves, best_moves, truth)}) == 3
    assert moves.marker.size[1] > moves.marker.size[0]
    assert [shape.x0 for shape in figure.layout.shapes] == [20, 20]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"
    assert figure.layout.font.color == css(theme.text)


def test_cfb_alone_is_one_curve():
    figure = lab.movement_chart(view("cfb"), 1)
    assert [line.name for line in figure.data] == [
        "CFB, the paper's", "CFB, the paper's", "Single people: the truth"
    ]  # fmt: skip
