"""Figures of the Lab: learning curves of the paper's experiments, and what aggregation hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from agg_core.base.errors import InputError
from agg_core.lab import trends
from agg_core.lab.experiments import Experiment
from agg_core.lab.teaching import TeachingResult, learner_label
from agg_core.lab.trends import LEARNER_LABELS, RUN_COLUMNS, final_rows, setting_text
from agg_core.learn.table import AUTO
from agg_core.plotting.flow_map import MapFlows, MapSource
from agg_core.plotting.theme import FONT, LIGHT, Colour, Theme, css

__all__ = [
    "TRUTH_KEY",
    "Curve",
    "final_table",
    "flows_of_sizes",
    "lab_figure",
    "learning_curves",
    "movement_chart",
    "not_drawn",
    "size_label",
    "standalone_html",
]

FloatArray = npt.NDArray[np.float64]

TITLES = {
    "n_states": "States, d",
    "group_size": "Group size, M",
    "n_individuals": "Individuals, N",
    "length": "Steps, T",
    "learner": "Learner",
}
DELTA_NLL = "ΔNLL per person, nats"
X_TITLES = {
    "iteration": "Iteration",
    "wall_s": "Wall time, s (log scale)",
    "group_size": "Group size, M (log scale)",
}
AT = {
    "iteration": "%{x:.3g} iterations",
    "wall_s": "%{x:.3g} s",
    "group_size": "M = %{x:,}",
}
"""Where a point is, as its hover text says it."""

MORE_COLOURS: dict[str, tuple[Colour, ...]] = {
    "light": ((178, 34, 52), (128, 112, 0), (46, 160, 214)),
    "dark": ((255, 128, 128), (236, 222, 110), (150, 150, 255)),
}
"""What follows the five colours of a theme where there are more learners."""

LOG_TICKS = "D2"
"""At 1, 2 and 5 of every power of ten."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
ORDER = (0, 1, 3, 4, 2)
"""The theme's colours, its grey last: between other bands it would look like their mixture."""

BAND_ALPHAS = (0.18, 0.08)
FEW_CURVES = 4
"""Bands of up to so many curves are drawn in the first strength, of more in the second."""

TIMES = 60
PANELS_A_ROW = 3
MOST_A_ROW = 5
"""Learners beside each other in a row of their own, at most."""

PANEL_PX = 300
FRAME_PX = 96
LEGEND_ROW_PX = 24
TITLE_PX = 36
LEGEND_ENTRIES_A_ROW = 5


@dataclass(frozen=True)
class Curve:
    """One curve in one panel: mean and standard deviation over seeds at each x.

    ``panel`` is the title of the panel; ``rest`` names whatever else is varied, "" if nothing is.
    ``sd`` is nan where one seed is all there is; ``mean`` is infinite where a model rules out a
    person of the test set.
    """

    panel: str
    curve: object
    rest: str
    x: FloatArray
    mean: FloatArray
    sd: FloatArray
    n_seeds: int


def learning_curves(experiment: Experiment, table: pd.DataFrame) -> list[Curve]:
    """Curves of the table of a `LabResult`, in the order of panels, curves and the rest.

    Several learners that are not the curves have panels of their own. Over group sizes only the
    ends of runs are taken.

    Over iterations a run that ended early keeps its last value. Over wall time each seed is
    interpolated linearly in the logarithm of time at common times, from when all seeds have done
    their first evaluated iteration to when the last has ended; until then the others keep their
    last value.
    """
    panels, rest = _panel_columns(experiment, table), _rest_columns(experiment, table)
    columns = [*panels, experiment.curve, *rest]
    over = {"iteration": _over_iterations, "wall_s": _over_time, "group_size": _over_group_sizes}
    curves = []
    for values, runs in table.groupby(columns, sort=False):
        setting = dict(zip(columns, values, strict=True))
        x, by_seed = over[experiment.x](runs)
        mean, sd = _mean_and_sd(by_seed)
        panel, rest_text = (
            ", ".join(setting_text(name, setting[name]) for name in names)
            for names in (panels, rest)
        )
        curve = setting[experiment.curve]
        curves.append(Curve(panel, curve, rest_text, x, mean, sd, len(by_seed)))
    return curves


def _panel_columns(experiment: Experiment, table: pd.DataFrame) -> list[str]:
    """What tells panels apart."""
    several = experiment.curve != "learner" and table["learner"].nunique() > 1
    return [experiment.panel, *(["learner"] if several else [])]


def _rest_columns(experiment: Experiment, table: pd.DataFrame) -> list[str]:
    """Columns that are varied besides panels, curves, x and seeds."""
    taken = (*_panel_columns(experiment, table), experiment.curve, experiment.x, "seed")
    return [name for name in RUN_COLUMNS if name not in taken and table[name].nunique() > 1]


def _over_group_sizes(runs: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    ends = final_rows(runs).pivot(index="group_size", columns="seed", values="delta_nll")
    return ends.index.to_numpy(dtype=float), ends.to_numpy(dtype=float).T


def _over_iterations(runs: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    by_seed = runs.pivot(index="iteration", columns="seed", values="delta_nll").ffill()
    return by_seed.index.to_numpy(dtype=float), by_seed.to_numpy(dtype=float).T


def _over_time(runs: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    seeds = [
        (np.log(seed["wall_s"].to_numpy(dtype=float)), seed["delta_nll"].to_numpy(dtype=float))
        for _, seed in runs.loc[runs["wall_s"] > 0].sort_values("iteration").groupby("seed")
    ]
    if not seeds:
        return np.empty(0), np.empty((0, 0))
    first = max(times[0] for times, _ in seeds)
    last = max(times[-1] for times, _ in seeds)
    common = np.linspace(first, last, TIMES)
    return np.exp(common), np.array([np.interp(common, times, delta) for times, delta in seeds])


def _mean_and_sd(by_seed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Over seeds (rows); where a value is infinite the mean is, and has no deviation."""
    mean = by_seed.mean(axis=0)
    sd = np.full(mean.shape, np.nan)
    finite = np.isfinite(mean)
    if len(by_seed) > 1:
        sd[finite] = by_seed[:, finite].std(axis=0, ddof=1)
    return mean, sd


def not_drawn(curves: list[Curve], *, log: bool) -> tuple[int, int]:
    """Points that a figure of the curves leaves out: infinite ones; on a log axis those <= 0."""
    means = np.concatenate([curve.mean for curve in curves]) if curves else np.empty(0)
    infinite = ~np.isfinite(means)
    return int(infinite.sum()), int((~infinite & (means <= 0)).sum()) if log else 0


def lab_figure(
    experiment: Experiment, curves: list[Curve], theme: Theme = LIGHT, *, log: bool = False
) -> go.Figure:
    """A panel per panel value, a curve per curve value: the mean over seeds in a band of one sd.

    Over group sizes there are no bands: they would lie upon each other.

    A curve has the same colour in all panels and one entry in the legend; what else is varied is
    told by the dashes. Panels of several learners stand beside each other, a row for each panel
    value, so that heights compare. With ``log`` the axis of ΔNLL is logarithmic: means at or below
    0 leave a gap (`not_drawn` counts them) and a band that reaches below is cut at the foot of the
    axis.

    Raises
    ------
    InputError
        If there is nothing to draw: no curve, or on a log axis no mean above 0.
    """
    if not curves:
        raise InputError("This experiment has no curves to draw; run it again.", code="no-curves")
    foot = _foot(curves) if log else -np.inf
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    values = list(dict.fromkeys(curve.curve for curve in curves))
    rests = list(dict.fromkeys(curve.rest for curve in curves))
    columns = _columns(panels)
    rows = -(-len(panels) // columns)
    figure = make_subplots(
        rows, columns, shared_xaxes="all" if experiment.x == "wall_s" else False,
        shared_yaxes="all", subplot_titles=panels,
        horizontal_spacing=0.03, vertical_spacing=0.16 / rows + 0.04,
    )  # fmt: skip
    named: set[str] = set()
    alpha = BAND_ALPHAS[len(values) * len(rests) > FEW_CURVES]
    for curve in curves:
        row, column = divmod(panels.index(curve.panel), columns)
        name = ", ".join(filter(None, [setting_text(experiment.curve, curve.curve), curve.rest]))
        number = values.index(curve.curve)
        look = _line(theme, curve.curve, number, rests.index(curve.rest))
        for trace in _traces(curve, name, look, foot=foot, alpha=alpha, at=experiment.x):
            trace.showlegend = bool(trace.showlegend) and name not in named
            figure.add_trace(trace, row + 1, column + 1)
        named.add(name)
    _style(figure, theme)
    legend_rows = -(-len(named) // LEGEND_ENTRIES_A_ROW)
    figure.update_layout(
        # A picture saved from the figure must be readable wherever it is put.
        paper_bgcolor=css(theme.paper),
        height=rows * PANEL_PX + FRAME_PX + LEGEND_ROW_PX * legend_rows,
        margin={"l": 64, "r": 16, "t": 44 + LEGEND_ROW_PX * legend_rows, "b": 52},
    )
    _name_axes(figure, experiment, len(panels), columns)
    if experiment.x == "group_size":
        figure.update_xaxes(dtick=None, tickvals=sorted({x for curve in curves for x in curve.x}))
    if log:
        figure.update_yaxes(
            type="log", dtick=LOG_TICKS, range=[np.log10(foot), np.log10(_top(curves))]
        )
    return figure


def _columns(panels: list[str]) -> int:
    """Panels in a row: those of one panel value together, if they are of several learners."""
    in_first = sum(panel.split(", ")[0] == panels[0].split(", ")[0] for panel in panels)
    most = in_first if 1 < in_first <= MOST_A_ROW else PANELS_A_ROW
    return min(len(panels), most)


def _name_axes(figure: go.Figure, experiment: Experiment, n_panels: int, columns: int) -> None:
    """Titles outside only: x under the lowest panel of each column, y at the left of each row."""
    logarithmic = experiment.x != "iteration"
    for place in range(n_panels):
        row, column = divmod(place, columns)
        figure.update_xaxes(
            type="log" if logarithmic else "linear",
            showticklabels=True,
            row=row + 1,
            col=column + 1,
            dtick=LOG_TICKS if logarithmic else None,
        )
        if place + columns >= n_panels:
            figure.update_xaxes(title=X_TITLES[experiment.x], row=row + 1, col=column + 1)
        if column == 0:
            figure.update_yaxes(title=DELTA_NLL, row=row + 1, col=1)


def _traces(
    curve: Curve, name: str, line: dict[str, Any], *, foot: float, alpha: float, at: str
) -> Iterator[go.Scatter]:
    """The band, if there is more than one seed, and the line over it."""
    low, high = np.maximum(curve.mean - curve.sd, foot), curve.mean + curve.sd
    x, y = _band(curve.x, low, high, np.isfinite(low) & np.isfinite(high) & (high > foot))
    if x and at != "group_size":
        yield go.Scatter(
            x=x, y=y, name=name, legendgroup=name, mode="lines", line={"width": 0},
            fill="toself", fillcolor=css(line["rgb"], alpha), hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    shown = np.isfinite(curve.mean) & (curve.mean > (0 if np.isfinite(foot) else -np.inf))
    yield go.Scatter(
        x=curve.x.tolist(),
        y=[float(value) if ok else None for value, ok in zip(curve.mean, shown, strict=True)],
        customdata=curve.sd.tolist() if curve.n_seeds > 1 else None,
        name=name, legendgroup=name, connectgaps=False, showlegend=True,
        mode="lines+markers" if at == "group_size" else "lines",
        line={"color": css(line["rgb"]), "dash": line["dash"], "width": line["width"]},
        hovertemplate=AT[at] + ": %{y:.4f}"
        + (" ± %{customdata:.4f} nats" if curve.n_seeds > 1 else " nats")
        + "<extra>%{fullData.name}</extra>",
    )  # fmt: skip


def _band(
    x: FloatArray, low: FloatArray, high: FloatArray, shown: npt.NDArray[np.bool_]
) -> tuple[list[float | None], list[float | None]]:
    """A closed outline for each stretch of points that is shown, with a gap between stretches."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.astype(int), [0]])))
    for start, end in edges.reshape(-1, 2):
        stretch = slice(start, end)
        gap = [None] if xs else []
        xs += [*gap, *x[stretch].tolist(), *x[stretch][::-1].tolist()]
        ys += [*gap, *low[stretch].tolist(), *high[stretch][::-1].tolist()]
    return xs, ys


def _foot(curves: list[Curve]) -> float:
    """The power of ten below the least mean above 0."""
    means = np.concatenate([curve.mean for curve in curves])
    positive = means[np.isfinite(means) & (means > 0)]
    if positive.size == 0:
        raise InputError(
            "No ΔNLL here is above 0, so a log scale can show none; switch it off.",
            code="no-positive-value",
        )
    return float(10 ** np.floor(np.log10(positive.min())))


def _top(curves: list[Curve]) -> float:
    reach = np.concatenate([curve.mean + np.nan_to_num(curve.sd) for curve in curves])
    return 1.15 * float(reach[np.isfinite(reach)].max())


def _line(theme: Theme, value: object, number: int, rest: int) -> dict[str, Any]:
    """How curve ``number`` looks.

    Colours beyond the theme's own are harder to tell apart, and beyond all they begin again: such
    lines are dashed as well. What is best for the data lies upon the curve of the learner that was
    taken, and lets it be seen.
    """
    if value == AUTO:
        return {"rgb": theme.text, "dash": "dot", "width": 3}
    colours = [*(theme.series[place] for place in ORDER), *MORE_COLOURS[theme.name]]
    dash = rest + (number >= len(theme.series)) + number // len(colours)
    return {"rgb": colours[number % len(colours)], "dash": DASHES[dash % len(DASHES)], "width": 2}


def final_table(experiment: Experiment, table: pd.DataFrame) -> pd.DataFrame:
    """Where the runs end: mean and standard deviation over seeds, for each panel and curve."""
    columns = [
        *_panel_columns(experiment, table), experiment.curve, *_rest_columns(experiment, table),
        *(["group_size"] if experiment.x == "group_size" else []),
    ]  # fmt: skip
    ends = trends.final_table(table).sort_values(columns)
    found = ends[[*columns, "delta_nll", "sd", "n_seeds"]].rename(
        columns={**TITLES, "delta_nll": "Mean", "n_seeds": "Seeds"}
    )
    if TITLES["learner"] in found:
        found[TITLES["learner"]] = found[TITLES["learner"]].map(LEARNER_LABELS)
    return found


def standalone_html(figure: go.Figure, title: str, theme: Theme = LIGHT) -> str:
    """A page that shows the figure with no network: it holds plotly.js itself."""
    alone = go.Figure(figure)
    height = figure.layout.height + TITLE_PX
    alone.update_layout(
        title={"text": title, "x": 0, "xref": "paper", "y": 0.99, "yanchor": "top"},
        margin_t=figure.layout.margin.t + TITLE_PX,
        legend_y=1 - TITLE_PX / height,
        height=height,
    )
    page: str = alone.to_html(include_plotlyjs=True, full_html=True)
    return page.replace("<body>", f'<body style="background: {css(theme.paper)}">', 1)


def movement_chart(
    result: TeachingResult, group_size: int, theme: Theme = LIGHT, *, height_px: int = 320
) -> go.Figure:
    """Movers per step and the common part of movement (CPC) against M, a curve per learner.

    The chosen M is marked on all curves.
    """
    sizes = list(result.group_sizes)
    figure = make_subplots(1, 2, horizontal_spacing=0.1)
    for learner, colour in zip(result.learners, theme.series, strict=False):
        points = [result.point(learner, size) for size in sizes]
        name = learner_label(learner)
        for column, (values, about) in enumerate(
            (
                ([point.moves for point in points], "%{y:,.0f} movers"),
                ([point.figures.cpc for point in points], "CPC %{y:.3f}"),
            ),
            start=1,
        ):
            figure.add_scatter(
                x=sizes, y=values, name=name, legendgroup=name, mode="lines+markers",
                line={"color": css(colour), "width": 2}, showlegend=column == 1,
                hovertemplate="M = %{x}: " + about + f"<extra>{name}</extra>", row=1, col=column,
                marker={
                    "size": [13 if size == group_size else 6 for size in sizes],
                    "opacity": 1,
                    "line": {"color": css(theme.paper), "width": 1},
                },
            )  # fmt: skip
    figure.add_scatter(
        x=[sizes[0], sizes[-1]], y=[result.true_moves] * 2, name="Single people: the truth",
        mode="lines", line={"color": css(theme.series[2]), "width": 2, "dash": "dash"},
        hovertemplate="%{y:,.0f} movers<extra>single people</extra>", row=1, col=1,
    )  # fmt: skip
    _style(figure, theme)
    for column in (1, 2):
        figure.add_vline(
            x=group_size, line={"color": css(theme.grid_line), "dash": "dot"}, layer="below",
            row=1, col=column,
        )  # fmt: skip
    figure.update_xaxes(type="log", tickvals=sizes, title="Group size, M (log scale)")
    figure.update_yaxes(title="People who move per step", tickformat=",", row=1, col=1)
    figure.update_yaxes(rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="Common part, CPC", range=[0, 1.05], row=1, col=2)
    figure.update_layout(height=height_px, margin={"l": 64, "r": 16, "t": 36, "b": 48})
    return figure


def _style(figure: go.Figure, theme: Theme) -> None:
    line = css(theme.grid_line, 0.3)
    text = css(theme.text)
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": text, "size": 12, "family": FONT},
        legend={"orientation": "h", "y": 1, "yref": "container", "yanchor": "top", "x": 0},
        hovermode="closest",
    )
    figure.update_annotations(font={"color": text, "size": 13})
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=line, zeroline=False, linecolor=line, automargin=True)


TRUTH_KEY = "truth"
"""Source of the flows of single people on the map of group sizes."""


def size_label(group_size: int) -> str:
    """A group size as the slider of the map words it."""
    return f"M = {group_size}"


def flows_of_sizes(result: TeachingResult) -> MapFlows:
    """Flows by every learner at every group size, and those of single people beside each."""
    grid = result.settings.grid.make()
    sizes = {size_label(size): size for size in result.group_sizes}

    def rows(source: str, time: str, step: int | None) -> pd.DataFrame:  # noqa: ARG001  # of means
        table = result.truth if source == TRUTH_KEY else result.table(source, sizes[time])
        return table[["origin", "dest", "count"]]

    learners = [
        MapSource(name, learner_label(name), learner_label(name)) for name in result.learners
    ]
    return MapFlows(
        grid=grid,
        cells=grid.labels,
        times=list(sizes),
        sources=[*learners, MapSource(TRUTH_KEY, "Single people: the truth", "single people")],
        rows=rows,
        unit="per 30-minute step",
        axis="Group size, M",
        pooled=False,
    )
