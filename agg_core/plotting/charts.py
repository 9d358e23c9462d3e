"""Figures beside the maps: learning curves, legends, the population over the day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from agg_core.base.errors import InputError
from agg_core.plotting.arrows import arrow_rings, arrow_widths
from agg_core.plotting.theme import (
    ARROW_ALPHA,
    FONT,
    HEAT_ALPHA,
    LIGHT,
    Theme,
    arrow_colours,
    css,
    heat_colours,
    over_land,
)

__all__ = [
    "arrow_legend",
    "free_energy_chart",
    "heat_legend",
    "population_chart",
    "style",
    "totals_chart",
]

LEGEND_HEIGHT_PX = 70
LEGEND_BAR_PX = (30.0, 46.0)
BAR_ENDS_PX = (6.0, 34.0)
BAR_STEPS = 64
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def free_energy_chart(
    histories: Mapping[str, Sequence[float]], theme: Theme = LIGHT, *, height_px: int = 320
) -> go.Figure:
    """Free energy per person against the iteration, from 1, one line for each named fit."""
    figure = go.Figure()
    for i, (name, history) in enumerate(histories.items()):
        figure.add_scatter(
            x=list(range(1, len(history) + 1)),
            y=[float(value) for value in history],
            name=name,
            mode="lines+markers" if len(history) < 3 else "lines",
            line={
                "color": css(theme.series[i % len(theme.series)]),
                "dash": DASHES[i % len(DASHES)],
                "width": 2,
            },
            hovertemplate="iteration %{x}: %{y:.4f}<extra>%{fullData.name}</extra>",
        )
    style(figure, theme, height_px)
    longest = max((len(history) for history in histories.values()), default=0)
    # Few points would get ticks between the iterations.
    figure.update_xaxes(title="Iteration", tickformat="d", dtick=1 if longest < 8 else None)
    figure.update_yaxes(title="Free energy, nats per person")
    figure.update_layout(showlegend=len(histories) > 1)
    return figure


def population_chart(
    totals: npt.ArrayLike,
    labels: Sequence[str],
    theme: Theme = LIGHT,
    *,
    step: int | None = None,
    height_px: int = 200,
) -> go.Figure:
    """People on the grid at each step (T,), named by labels, with a mark at the chosen `step`.

    Raises
    ------
    InputError
        If there is not one label for each step, or the chosen step is none of them.
    """
    people = np.asarray(totals, dtype=float)
    if people.ndim != 1 or len(people) != len(labels):
        raise InputError(
            f"Each step needs one label; there are {people.size} totals and {len(labels)} labels.",
            code="lengths-differ",
        )
    if step is not None and not 0 <= step < len(people):
        raise InputError(f"Step {step} is not one of the {len(people)} steps.", code="unknown-step")
    at = list(range(len(people)))
    figure = go.Figure()
    figure.add_scatter(
        x=at,
        y=people.tolist(),
        customdata=list(labels),
        name="people on the grid",
        mode="lines",
        line={"color": css(theme.series[0]), "width": 2},
        fill="tozeroy",
        fillcolor=css(theme.series[0], 0.14),
        hovertemplate="%{customdata}: %{y:,.0f} people<extra></extra>",
    )
    if step is not None:
        figure.add_scatter(
            x=[step],
            y=[float(people[step])],
            name="chosen step",
            mode="markers",
            marker={
                "color": css(theme.series[1]),
                "size": 11,
                "line": {"color": css(theme.paper), "width": 1.5},
            },
            hoverinfo="skip",
        )
    style(figure, theme, height_px)
    every = max(1, -(-len(at) // 8))
    figure.update_xaxes(tickvals=at[::every], ticktext=list(labels)[::every])
    figure.update_yaxes(title="People on the grid", rangemode="tozero", tickformat=",")
    figure.update_layout(showlegend=False)
    return figure


def totals_chart(
    times: Sequence[str],
    totals: npt.ArrayLike,
    run: npt.ArrayLike,
    theme: Theme = LIGHT,
    *,
    height_px: int = 240,
) -> go.Figure:
    """Published people at each moment (n,); ``times`` are local, as ISO 8601 writes them.

    The line is broken between moments of different runs (n,).

    Raises
    ------
    InputError
        If there are not as many of each.
    """
    people, number = np.asarray(totals, dtype=float), np.asarray(run)
    if not len(times) == len(people) == len(number):
        raise InputError(
            "A chart of totals needs one time, total and run for each moment.",
            code="lengths-differ",
        )
    breaks = np.flatnonzero(np.diff(number)) + 1
    at = np.insert(np.arange(len(people)), breaks, -1).tolist()
    figure = go.Figure()
    figure.add_scatter(
        x=[None if i < 0 else times[i] for i in at],
        y=[None if i < 0 else float(people[i]) for i in at],
        mode="lines+markers" if len(people) < 60 or len(breaks) else "lines",
        marker={"size": 4},
        line={"color": css(theme.series[0]), "width": 2},
        hovertemplate="%{x|%Y-%m-%d %H:%M}: %{y:,.0f} people<extra></extra>",
    )
    style(figure, theme, height_px)
    figure.update_xaxes(type="date")
    figure.update_yaxes(title="People published", rangemode="tozero", tickformat=",")
    figure.update_layout(showlegend=False)
    return figure


def heat_legend(
    vmax: float,
    theme: Theme = LIGHT,
    *,
    title: str = "People per cell",
    alpha: int = HEAT_ALPHA,
    width_px: int = 300,
) -> go.Figure:
    """The colours of people per cell from 0 to `vmax`, with values along the bar.

    `alpha` is how opaque the cells of the map are, of 255: those of `heat_deck` if not said.

    Equal steps along the bar are equal steps of the square root, as on the map.
    """
    edges = np.linspace(0.0, 1.0, BAR_STEPS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    colours = heat_colours(theme, vmax * middle**2, vmax)
    figure = _bar(over_land(theme, colours, alpha), width_px, theme)
    ticks = _ticks(vmax)
    _bar_ticks(figure, np.sqrt(ticks / vmax), [_short(tick) for tick in ticks], width_px, theme)
    return _legend_frame(figure, title, theme, width_px)


def arrow_legend(
    vmax: float,
    threshold: float,
    theme: Theme = LIGHT,
    *,
    half_widths_px: tuple[float, float] = (0.6, 3.5),
    title: str = "People per step",
    width_px: int = 300,
) -> go.Figure:
    """Sample arrows from the threshold to `vmax` in the colours and widths of a figure.

    `half_widths_px` are the least and greatest half width of the figure's arrows in pixels.
    """
    samples = _arrow_samples(vmax, threshold)
    half = arrow_widths(samples, vmax, *half_widths_px)
    slot = width_px / len(samples)
    start = np.arange(len(samples)) * slot
    y = np.full(len(samples), sum(LEGEND_BAR_PX) / 2)
    rings = arrow_rings(
        np.column_stack([start, y]),
        np.column_stack([start + 0.8 * slot, y]),
        half,
        inset_share=0.0,
    )
    rings[..., 1] -= (rings[..., 1].max(axis=1) + rings[..., 1].min(axis=1))[:, None] / 2 - y[0]
    colours = over_land(theme, arrow_colours(theme, samples, vmax), ARROW_ALPHA)
    words = [_short(value) for value in samples]
    words[-1] += " or more"
    figure = go.Figure()
    for value, ring, colour in zip(samples, rings, colours.tolist(), strict=True):
        figure.add_scatter(
            x=ring[:, 0].tolist(),
            y=ring[:, 1].tolist(),
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=css(tuple(colour)),
            name=_short(value),
            hoverinfo="skip",
        )
    for x, word in zip(start, words, strict=True):
        _word(figure, x, word, theme, anchor="left")
    return _legend_frame(figure, title, theme, width_px)


def _arrow_samples(vmax: float, threshold: float) -> npt.NDArray[np.float64]:
    least = threshold if 0 < threshold < vmax else vmax / 16
    ratio = max(vmax / least, 1.0 + 1e-9)
    between = [_round(least * ratio ** (k / 3)) for k in (1, 2)]
    return np.unique([least, *(value for value in between if least < value < vmax), vmax])


def _round(value: float) -> float:
    """To one significant digit, or a half of it, for a number that reads well."""
    size = 10.0 ** np.floor(np.log10(value))
    return float(np.round(2 * value / size) / 2 * size)


def _ticks(vmax: float) -> npt.NDArray[np.float64]:
    return np.array([0.0, _round(vmax / 16), _round(vmax / 4), _round(vmax / 1.9), vmax])


def _short(value: float) -> str:
    """A number in few letters: 0.5, 35, 1,200, 45k."""
    if abs(value) >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def _bar(colours: npt.NDArray[np.int64], width_px: int, theme: Theme) -> go.Figure:
    n = len(colours)
    scale = [[i / (n - 1), css(tuple(colour))] for i, colour in enumerate(colours.tolist())]
    left, right = BAR_ENDS_PX[0], width_px - BAR_ENDS_PX[1]
    figure = go.Figure()
    figure.add_heatmap(
        z=[list(range(n))],
        x=np.linspace(left, right, n + 1).tolist(),
        y=list(LEGEND_BAR_PX),
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )
    figure.add_shape(
        type="rect",
        x0=left,
        x1=right,
        y0=LEGEND_BAR_PX[0],
        y1=LEGEND_BAR_PX[1],
        line={"color": css(theme.outline), "width": 1},
    )
    return figure


def _bar_ticks(
    figure: go.Figure,
    places: npt.NDArray[np.float64],
    words: Sequence[str],
    width_px: int,
    theme: Theme,
) -> None:
    left, right = BAR_ENDS_PX[0], width_px - BAR_ENDS_PX[1]
    for place, word in zip(places.tolist(), words, strict=True):
        anchor = "left" if place == 0 else "center"
        x = 0.0 if place == 0 else left + place * (right - left)
        _word(figure, x, word, theme, anchor=anchor)


def _word(figure: go.Figure, x: float, word: str, theme: Theme, *, anchor: str) -> None:
    figure.add_annotation(
        x=x,
        y=LEGEND_BAR_PX[0] - 4,
        text=word,
        showarrow=False,
        xanchor=anchor,
        yanchor="top",
        font={"size": 11, "color": css(theme.text)},
    )


def _legend_frame(figure: go.Figure, title: str, theme: Theme, width_px: int) -> go.Figure:
    """One unit of the axes is one pixel of the height, so widths are those of the map."""
    figure.update_layout(
        height=LEGEND_HEIGHT_PX,
        width=width_px,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=False,
        dragmode=False,
    )
    figure.update_xaxes(visible=False, range=[0, width_px], fixedrange=True)
    figure.update_yaxes(visible=False, range=[0, LEGEND_HEIGHT_PX], fixedrange=True)
    figure.add_annotation(
        x=0,
        y=LEGEND_HEIGHT_PX - 1,
        text=title,
        showarrow=False,
        xanchor="left",
        yanchor="top",
        font={"size": 12, "color": css(theme.text)},
    )
    return figure


def style(figure: go.Figure, theme: Theme, height_px: int) -> None:
    """Give a figure the height and the colours that charts of a theme have in common."""
    line = css(theme.grid_line, 0.3)
    figure.update_layout(
        template="none",
        height=height_px,
        margin={"l": 60, "r": 12, "t": 12, "b": 44},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": css(theme.text), "size": 12, "family": FONT},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="closest",
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=line, zeroline=False, linecolor=line, automargin=True)
