"""Figures of evidence: volumes over the day, lengths, estimates against counts, lines on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
import pydeck as pdk

from agg_core.evidence.lengths import bins_with_people
from agg_core.evidence.lines import Screenline
from agg_core.plotting.charts import style
from agg_core.plotting.deck import PLAIN, Scene, cell_layer, cell_records, make_deck
from agg_core.plotting.theme import LIGHT, Theme, as_text, css
from agg_core.space.grid import BaseGrid

__all__ = ["day_chart", "length_chart", "lines_deck", "xy_chart"]

DECIMALS = 6
DASHES = ("solid", "dot", "dash")
"""Directions are told apart without colours, too."""
REFERENCES = ("circle-open", "diamond-open", "square-open")
FAINT = 0.45
CROSS = {"symbol": "x-thin", "size": 9, "line": {"width": 2}}


def _bars(rows: pd.DataFrame, colour: str) -> dict[str, Any]:
    """Intervals around counts, for plotly."""
    over, under = rows["high"] - rows["count"], rows["count"] - rows["low"]
    return {
        "type": "data", "symmetric": False, "array": over.tolist(), "arrayminus": under.tolist(),
        "color": colour, "thickness": 1.5, "width": 4,
    }  # fmt: skip


def day_chart(
    rows: pd.DataFrame,
    unit: str,
    theme: Theme = LIGHT,
    *,
    days: pd.DataFrame | None = None,
    height_px: int = 300,
) -> go.Figure:
    """Flows over the times of day, by direction: with intervals, and single days as thin lines.

    ``rows`` have direction, time, count, low, high, perhaps reference, and counted where something
    was counted; ``days`` direction, day, time and count, as `Evidence` and `Profile` have them.
    """
    figure = go.Figure()
    some_days = days is not None and len(days) > 0
    for number, (direction, some) in enumerate(rows.groupby("direction", sort=False)):
        colour, dash = css(theme.series[number % len(theme.series)]), DASHES[number % len(DASHES)]
        if days is not None and some_days:
            _thin(figure, days.loc[days["direction"] == direction], theme, number)
        figure.add_scatter(
            x=some["time"].tolist(), y=some["count"].tolist(), name=as_text(direction),
            mode="lines+markers", error_y=_bars(some, colour),
            line={"color": colour, "width": 4 if some_days else 2, "dash": dash},
            hovertemplate="%{x}: %{y:,.1f}<extra>%{fullData.name}</extra>",
        )  # fmt: skip
        if "reference" in some and some["reference"].notna().any():
            figure.add_scatter(
                x=some["time"].tolist(), y=some["reference"].tolist(), mode="markers",
                name=as_text(f"{direction}, reference"),
                marker={"symbol": REFERENCES[number % len(REFERENCES)], "size": 9,
                        "color": colour, "line": {"width": 2, "color": colour}},
                hovertemplate="%{x}: %{y:,.1f} in the reference<extra></extra>",
            )  # fmt: skip
        if "counted" not in some:
            continue
        known = some.loc[some["counted"].notna()]
        if len(known):
            marker = {**CROSS, "line": {"width": 2, "color": css(theme.text)}}
            figure.add_scatter(
                x=known["time"].tolist(), y=known["counted"].tolist(), mode="markers",
                name=as_text(f"{direction}, counted"), marker=marker,
                hovertemplate="%{x}: %{y:,.1f} counted<extra></extra>",
            )  # fmt: skip
    style(figure, theme, height_px)
    times = rows["time"].drop_duplicates().tolist()
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=times)
    figure.update_yaxes(title=unit.capitalize(), rangemode="tozero", tickformat=",")
    return figure


def _thin(figure: go.Figure, days: pd.DataFrame, theme: Theme, number: int) -> None:
    """A thin line for each day of a direction."""
    colour = css(theme.series[number % len(theme.series)], FAINT)
    for day, some in days.groupby("day", sort=False):
        figure.add_scatter(
            x=some["time"].tolist(), y=some["count"].tolist(), name=as_text(day), mode="lines",
            line={"color": colour, "width": 1, "dash": DASHES[number % len(DASHES)]},
            showlegend=False, hovertemplate="%{x}: %{y:,.1f}<extra>%{fullData.name}</extra>",
        )  # fmt: skip


def length_chart(
    rows: pd.DataFrame, unit: str, theme: Theme = LIGHT, *, height_px: int = 300
) -> go.Figure:
    """Moves by their length, with intervals, beside those of a reference where there is one.

    ``rows`` have from_km, to_km, count, low, high and reference, as `Evidence.histogram`.
    """
    rows = bins_with_people(rows)
    middle = ((rows["from_km"] + rows["to_km"]) / 2).tolist()
    figure = go.Figure()
    figure.add_bar(
        x=middle, y=rows["count"].tolist(), width=(rows["to_km"] - rows["from_km"]).tolist(),
        name="estimate", marker={"color": css(theme.series[0], 0.45)},
        error_y=_bars(rows, css(theme.series[0])),
        hovertemplate="%{x:.3g} km: %{y:,.1f}<extra></extra>",
    )  # fmt: skip
    if rows["reference"].notna().any():
        figure.add_scatter(
            x=middle, y=rows["reference"].tolist(), name="reference", mode="lines",
            line={"color": css(theme.series[1]), "width": 2, "shape": "hvh"},
            hovertemplate="%{x:.3g} km: %{y:,.1f} in the reference<extra></extra>",
        )  # fmt: skip
    style(figure, theme, height_px)
    figure.update_xaxes(title="Length, km", rangemode="tozero")
    figure.update_yaxes(title=unit.capitalize(), rangemode="tozero", tickformat=",")
    return figure


def xy_chart(
    rows: pd.DataFrame,
    names: Sequence[str],
    unit: str,
    theme: Theme = LIGHT,
    *,
    height_px: int = 340,
) -> go.Figure:
    """Estimates against what was counted, and the line on which both are alike.

    ``rows`` have counted, count, low and high; ``names`` say what each row is.
    """
    colour = css(theme.series[0])
    figure = go.Figure()
    most = float(np.nanmax([*rows["counted"], *rows["count"], 0.0]))
    figure.add_scatter(
        x=[0, most], y=[0, most], mode="lines", name="alike", hoverinfo="skip",
        line={"color": css(theme.text, 0.5), "dash": "dash", "width": 1},
    )  # fmt: skip
    figure.add_scatter(
        x=rows["counted"].tolist(), y=rows["count"].tolist(), mode="markers", name="values",
        marker={"color": colour, "size": 6, "opacity": 0.6}, customdata=list(map(as_text, names)),
        error_y={**_bars(rows, css(theme.series[0], 0.35)), "width": 0},
        hovertemplate="%{customdata}: %{y:,.1f}, counted %{x:,.1f}<extra></extra>",
    )  # fmt: skip
    style(figure, theme, height_px)
    figure.update_xaxes(title=f"Counted, {unit}", rangemode="tozero", tickformat=",")
    figure.update_yaxes(title=f"Estimate, {unit}", rangemode="tozero", tickformat=",")
    figure.update_layout(showlegend=False)
    return figure


def lines_deck(
    grid: BaseGrid,
    lines: Sequence[Screenline],
    chosen: Sequence[int] = (),
    *,
    growing: npt.ArrayLike = (),
    clicks: int = 0,
    scene: Scene = PLAIN,
) -> pdk.Deck:
    """Screenlines and cordons over the cells, of which the chosen ones are filled.

    ``growing`` (n, 2) are the points of a line that is being drawn, in degrees; the first is
    larger. The layer of cells is another one after each of some ``clicks``, so that what was
    clicked is not held as chosen and can be clicked again.
    """
    import shapely  # noqa: PLC0415

    theme = scene.theme
    cells = cell_records(grid, theme)
    for cell in cells:
        is_chosen = cell["cell"] in chosen
        cell["fill"] = [*theme.series[0], 150] if is_chosen else [*theme.arrow[1], 20]
        cell["line"] = [*theme.grid_line, 150]
    paths = []
    for line in lines:
        shape = shapely.boundary(line.shape) if line.is_cordon else line.shape
        for part in shapely.get_parts(shape):
            places = np.round(shapely.get_coordinates(part), DECIMALS).tolist()
            paths.append({"path": places})
    drawn = pdk.Layer(
        "PathLayer", paths, id="lines", get_path="path", get_color=[*theme.series[1], 255],
        get_width=3, width_units="'pixels'", pickable=False,
    )  # fmt: skip
    layer = cell_layer(cells)
    layer.id = f"cells {clicks}" if clicks else "cells"
    points = np.round(np.asarray(growing, dtype=np.float64).reshape(-1, 2), DECIMALS).tolist()
    colour = [*theme.text, 255]
    way = pdk.Layer(
        "PathLayer", [{"path": points}] if len(points) > 1 else [], id="growing", get_path="path",
        get_color=colour, get_width=2, width_units="'pixels'", pickable=False,
    )  # fmt: skip
    corners = pdk.Layer(
        "ScatterplotLayer",
        [{"place": place, "px": 4 if number else 7} for number, place in enumerate(points)],
        id="corners", get_position="place", get_radius="px", radius_units="'pixels'",
        get_fill_color=colour, pickable=False,
    )  # fmt: skip
    return make_deck(grid.bounds, [layer, drawn, way, corners], scene, margin_px=12)
