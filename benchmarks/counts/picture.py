"""Figures of learners against population, as a picture for the documentation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from plotly.subplots import make_subplots

from agg_core.base.errors import InputError

__all__ = ["population_figure", "take"]

METHODS = ("gravity", "cfb, no prior", "no prior", "prior", "prior + time of day", "default")
COLOURS = ("#9aa3ad", "#c9652d", "#7b62b5", "#2f8f6b", "#3b7fc4", "#111827")
DASHES = ("dot", "dot", "dash", "dash", "dash", "solid")
FIGURES = {
    "cpc": "common part of movers, all day",
    "cpc_by_slot": "common part, each half hour",
    "total_ratio": "movers learned / true",
}
SIZE = (960, 860)
LEAST_WIDTH, DEFAULT_WIDTH = 1.5, 3.5


def population_figure(tables: Sequence[pd.DataFrame], titles: Sequence[str]) -> go.Figure:
    """A column of panels per table of rows, a row of panels per figure of `FIGURES`."""
    figure = make_subplots(
        len(FIGURES), len(tables), column_titles=list(titles), shared_xaxes=True,
        vertical_spacing=0.05, horizontal_spacing=0.09,
    )  # fmt: skip
    for col, table in enumerate(tables, start=1):
        for row, name in enumerate(FIGURES, start=1):
            for method, colour, dash in zip(METHODS, COLOURS, DASHES, strict=True):
                mine = table.loc[table["method"] == method].sort_values("population")
                width = DEFAULT_WIDTH if method == METHODS[-1] else LEAST_WIDTH
                figure.add_scatter(
                    x=mine["population"], y=mine[name], name=method, row=row, col=col,
                    mode="lines+markers", legendgroup=method, showlegend=row == col == 1,
                    line={"color": colour, "dash": dash, "width": width},
                )  # fmt: skip
            figure.update_yaxes(title=FIGURES[name] if col == 1 else None, row=row, col=col)
        figure.update_xaxes(title="people in the city", row=len(FIGURES), col=col)
    figure.update_xaxes(type="log", dtick=1, exponentformat="power")
    figure.update_yaxes(range=[0, 1.02], row=1)
    figure.update_yaxes(range=[0, 1.02], row=2)
    figure.update_yaxes(range=[0, 3.2], row=3)
    figure.update_layout(
        template="simple_white", width=SIZE[0], height=SIZE[1], font={"size": 13},
        legend={"orientation": "h", "y": -0.09}, margin={"l": 70, "r": 20, "t": 40, "b": 40},
    )  # fmt: skip
    return figure


def take(figure: go.Figure, path: Path) -> None:
    """Write a figure as PNG, drawn by Chromium.

    Raises
    ------
    InputError
        If there is no Chromium.
    """
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        raise InputError("Chromium is not there: install it or set CHROMIUM to its path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.set_content(figure.to_html(include_plotlyjs=True, config={"staticPlot": True}))
        page.locator(".main-svg").first.wait_for()
        page.locator(".js-plotly-plot").screenshot(path=path)
        browser.close()
