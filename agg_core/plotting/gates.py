"""Stations on a map, and the entries and exits of each day."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import pydeck as pdk

from agg_core.base.errors import InputError
from agg_core.plotting.charts import style
from agg_core.plotting.deck import DECIMALS, PLAIN, Bounds, Scene, make_deck, people_text
from agg_core.plotting.theme import LIGHT, Theme, css

__all__ = ["days_chart", "stations_deck"]

LARGEST_PX, SMALLEST_PX = 26.0, 2.5
"""Radius of the station of most people, and of one that nobody passes."""
FILL_ALPHA = 150


def stations_deck(
    names: Sequence[str],
    places: npt.ArrayLike,
    people: npt.ArrayLike,
    bounds: Bounds,
    *,
    scene: Scene = PLAIN,
) -> pdk.Deck:
    """Stations at places (n, 2) in degrees as circles, their areas as so many people (n,).

    Raises
    ------
    InputError
        If there are not as many of each.
    """
    at, size = np.asarray(places, dtype=float), np.asarray(people, dtype=float)
    if at.shape != (len(names), 2) or size.shape != (len(names),):
        raise InputError(
            "A map of stations needs a name, a place and a number of people of each.",
            code="lengths-differ",
        )
    radius = np.maximum(
        LARGEST_PX * np.sqrt(size / max(float(size.max(initial=0.0)), 1e-9)), SMALLEST_PX
    )
    records = [
        {"at": place, "radius": each, "what": f"{name}: {people_text(number)} people a day"}
        for name, place, each, number in zip(
            names, np.round(at, DECIMALS).tolist(), np.round(radius, 2).tolist(), size.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    # The largest first, so that a small one beside it is not hidden.
    records.sort(key=lambda record: -float(record["radius"]))
    layer = pdk.Layer(
        "ScatterplotLayer",
        records,
        id="stations",
        get_position="at",
        get_radius="radius",
        radius_units="'pixels'",
        get_fill_color=[*scene.theme.series[0], FILL_ALPHA],
        get_line_color=[*scene.theme.text, 255],
        line_width_units="'pixels'",
        get_line_width=1,
        stroked=True,
        pickable=True,
    )
    return make_deck(bounds, [layer], scene)


def days_chart(
    dates: Sequence[str],
    entries: npt.ArrayLike,
    exits: npt.ArrayLike,
    theme: Theme = LIGHT,
    *,
    height_px: int = 240,
) -> go.Figure:
    """People who entered and who left on each day (n,), a bar each.

    Raises
    ------
    InputError
        If there are not as many of each.
    """
    sides = {"Entries": np.asarray(entries, float), "Exits": np.asarray(exits, float)}
    if any(len(people) != len(dates) for people in sides.values()):
        raise InputError(
            "A chart of days needs one date, entries and exits for each.", code="lengths-differ"
        )
    figure = go.Figure()
    for number, (name, people) in enumerate(sides.items()):
        figure.add_bar(
            x=list(dates),
            y=people.tolist(),
            name=name,
            marker={"color": css(theme.series[number])},
            hovertemplate="%{x|%a %Y-%m-%d}: %{y:,.0f}<extra>%{fullData.name}</extra>",
        )
    style(figure, theme, height_px)
    figure.update_xaxes(type="date")
    figure.update_yaxes(title="People a day", rangemode="tozero", tickformat=",")
    figure.update_layout(showlegend=True, barmode="group")
    return figure
