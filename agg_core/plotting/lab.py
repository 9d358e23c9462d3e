"""Figures of the Lab: learning curves of the paper's experiments, and what aggregation hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from agg_core import experiments
from agg_core.errors import InputError
from agg_core.experiments import LEARNER_LABELS, RUN_COLUMNS, Experiment, setting_text
from agg_core.plotting.theme import LIGHT, Colour, Theme, css
from agg_core.teaching import TeachingResult

__all__ = [
    "Curve",
    "final_table",
    "lab_figure",
    "learning_curves",
    "movement_chart",
    "not_drawn",
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
X_TITLES = {"iteration": "Iteration", "wall_s": "Wall time, s"}

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

FONT = "system-ui, 'Segoe UI', Roboto, sans-serif"
TIMES = 60
PANELS_A_ROW = 3
PANEL_PX = 300
FRAME_PX = 96
LEGEND_ROW_PX = 24
TITLE_PX = 36
LEGEND_ENTRIES_A_ROW = 5


@dataclass(frozen=True)
class Curve:
    """One curve in one panel: mean and standard deviation over seeds at each x.

    ``rest`` names whatever else is varied, "" if nothing is. ``sd`` is nan where one seed is all
    there is; ``mean`` is infinite where a model rules out a person of the test set.
    """

    panel: object
    curve: object
    rest: str
    x: FloatArray
    mean: FloatArray
    sd: FloatArray
    n_seeds: int


def learning_curves(experiment: Experiment, table: pd.DataFrame) -> list[Curve]:
    """Curves of the table of a `LabResult`, in the order of panels, curves and the rest.

    Over iterations a run that ended early keeps its last value. Over wall time each seed is
    interpolated linearly in the logarithm of time at common times, from when all seeds have done
    their first evaluated iteration to when the last has ended; until then the others keep their
    last value.
    """
    columns = [experiment.panel, experiment.curve, *_rest_columns(experiment, table)]
    curves = []
    for values, runs in table.groupby(columns, sort=False):
        setting = dict(zip(columns, values, strict=True))
        over = _over_time if experiment.x == "wall_s" else _over_iterations
        x, by_seed = over(runs)
        mean, sd = _mean_and_sd(by_seed)
        rest = ", ".join(setting_text(name, setting[name]) for name in columns[2:])
        panel, curve = setting[experiment.panel], setting[experiment.curve]
        curves.append(Curve(panel, curve, rest, x, mean, sd, len(by_seed)))
    return curves


def _rest_columns(experiment: Experiment, table: pd.DataFrame) -> list[str]:
    """Columns that are varied besides panels, curves and seeds."""
    taken = (experiment.panel, experiment.curve, "seed")
    return [name for name in RUN_COLUMNS if name not in taken and table[name].nunique() > 1]


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

    A curve has the same colour in all panels and one entry in the legend; what else is varied is
    told by the dashes. With ``log`` the axis of ΔNLL is logarithmic: means at or below 0 leave a
    gap (`not_drawn` counts them) and a band that reaches below is cut at the foot of the axis.

    Raises
    ------
    InputError
        If there is nothing to draw: no curve, or on a log axis no mean above 0.
    """
    if not curves:
        raise InputError("This experiment has no curves to draw; run it again.")
    foot = _foot(curves) if log else -np.inf
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    values = list(dict.fromkeys(curve.curve for curve in curves))
    rests = list(dict.fromkeys(curve.rest for curve in curves))
    columns = min(len(panels), PANELS_A_ROW)
    rows = -(-len(panels) // columns)
    figure = make_subplots(
        rows, columns, shared_xaxes="all" if experiment.x == "wall_s" else False,
        shared_yaxes="all",
        subplot_titles=[setting_text(experiment.panel, panel) for panel in panels],
        horizontal_spacing=0.03, vertical_spacing=0.16 / rows + 0.04,
    )  # fmt: skip
    named: set[str] = set()
    alpha = BAND_ALPHAS[len(values) * len(rests) > FEW_CURVES]
    for curve in curves:
        row, column = divmod(panels.index(curve.panel), columns)
        name = ", ".join(filter(None, [setting_text(experiment.curve, curve.curve), curve.rest]))
        number = values.index(curve.curve)
        for trace in _traces(
            curve, name, _colour(theme, number), _dash(number, rests.index(curve.rest)),
            foot=foot, alpha=alpha, unit="s" if experiment.x == "wall_s" else "iterations",
        ):  # fmt: skip
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
    if log:
        figure.update_yaxes(
            type="log", dtick=LOG_TICKS, range=[np.log10(foot), np.log10(_top(curves))]
        )
    return figure


def _name_axes(figure: go.Figure, experiment: Experiment, n_panels: int, columns: int) -> None:
    """Titles outside only: x under the lowest panel of each column, y at the left of each row."""
    in_time = experiment.x == "wall_s"
    title = X_TITLES[experiment.x] + (" (log scale)" if in_time else "")
    for place in range(n_panels):
        row, column = divmod(place, columns)
        figure.update_xaxes(
            type="log" if in_time else "linear",
            showticklabels=True,
            row=row + 1,
            col=column + 1,
            dtick=LOG_TICKS if in_time else None,
        )
        if place + columns >= n_panels:
            figure.update_xaxes(title=title, row=row + 1, col=column + 1)
        if column == 0:
            figure.update_yaxes(title=DELTA_NLL, row=row + 1, col=1)


def _traces(
    curve: Curve, name: str, colour: Colour, dash: str, *, foot: float, alpha: float, unit: str
) -> Iterator[go.Scatter]:
    """The band, if there is more than one seed, and the line over it."""
    low, high = np.maximum(curve.mean - curve.sd, foot), curve.mean + curve.sd
    x, y = _band(curve.x, low, high, np.isfinite(low) & np.isfinite(high) & (high > foot))
    if x:
        yield go.Scatter(
            x=x, y=y, name=name, legendgroup=name, mode="lines", line={"width": 0},
            fill="toself", fillcolor=css(colour, alpha), hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    shown = np.isfinite(curve.mean) & (curve.mean > (0 if np.isfinite(foot) else -np.inf))
    about = "%{x:.3g} " + unit + ": %{y:.4f}"
    yield go.Scatter(
        x=curve.x.tolist(),
        y=[float(value) if ok else None for value, ok in zip(curve.mean, shown, strict=True)],
        customdata=curve.sd.tolist() if curve.n_seeds > 1 else None,
        name=name, legendgroup=name, mode="lines", connectgaps=False, showlegend=True,
        line={"color": css(colour), "dash": dash, "width": 2},
        hovertemplate=about
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
        raise InputError("No ΔNLL here is above 0, so a log scale can show none; switch it off.")
    return float(10 ** np.floor(np.log10(positive.min())))


def _top(curves: list[Curve]) -> float:
    reach = np.concatenate([curve.mean + np.nan_to_num(curve.sd) for curve in curves])
    return 1.15 * float(reach[np.isfinite(reach)].max())


def _colour(theme: Theme, number: int) -> Colour:
    colours = [*(theme.series[place] for place in ORDER), *MORE_COLOURS[theme.name]]
    return colours[number % len(colours)]


def _dash(number: int, rest: int) -> str:
    """Colours beyond the theme's own are harder to tell apart: their lines are dashed as well."""
    return DASHES[(rest + (number >= len(LIGHT.series))) % len(DASHES)]


def final_table(experiment: Experiment, table: pd.DataFrame) -> pd.DataFrame:
    """Where the runs end: mean and standard deviation over seeds, for each panel and curve."""
    columns = [experiment.panel, experiment.curve, *_rest_columns(experiment, table)]
    ends = experiments.final_table(table).sort_values(columns)
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
    result: TeachingResult, group_size: int, theme: Theme = LIGHT, *, height_px: int = 300
) -> go.Figure:
    """Movers per step and the common part of movement (CPC) against M, with the chosen M marked."""
    sizes = list(result.group_sizes)
    panels = (
        ([point.moves for point in result.points], "People who move per step", "%{y:,.0f} movers"),
        ([point.figures.cpc for point in result.points], "Common part, CPC", "CPC %{y:.3f}"),
    )
    figure = make_subplots(1, 2, horizontal_spacing=0.1)
    for column, (values, title, about) in enumerate(panels, start=1):
        figure.add_scatter(
            x=sizes, y=values, name="learned from groups", mode="lines+markers",
            line={"color": css(theme.series[0]), "width": 2}, showlegend=column == 1,
            hovertemplate="M = %{x}: " + about + "<extra></extra>", row=1, col=column,
        )  # fmt: skip
        figure.add_scatter(
            x=[group_size], y=[values[sizes.index(group_size)]], name=f"M = {group_size}",
            mode="markers", showlegend=column == 1, hoverinfo="skip", row=1, col=column,
            marker={
                "color": css(theme.series[1]),
                "size": 13,
                "line": {"color": css(theme.paper), "width": 1.5},
            },
        )  # fmt: skip
        figure.update_yaxes(title=title, rangemode="tozero", row=1, col=column)
    figure.add_scatter(
        x=[sizes[0], sizes[-1]], y=[result.true_moves] * 2, name="single people: the truth",
        mode="lines", line={"color": css(theme.series[2]), "width": 2, "dash": "dash"},
        hovertemplate="%{y:,.0f} movers<extra>single people</extra>", row=1, col=1,
    )  # fmt: skip
    _style(figure, theme)
    figure.update_xaxes(type="log", tickvals=sizes, title="Group size, M (log scale)")
    figure.update_yaxes(tickformat=",", row=1, col=1)
    figure.update_yaxes(range=[0, 1.05], row=1, col=2)
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
