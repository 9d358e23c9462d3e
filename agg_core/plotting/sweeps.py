"""The figure of a sweep: movement, and how wrong it is, beside the value of the setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from agg_core.plotting.charts import DASHES, style
from agg_core.plotting.theme import LIGHT, Theme, css
from agg_core.study.sweeps import FIGURES, SweepResult

__all__ = ["sweep_chart"]

OF_PEOPLE = ("cpc_apart", "chances_apart")
OF_COUNTS = ("held_out_gain",)
"""What the second picture shows: errors, 0 being none."""

LABELS = {"cpc_apart": "1 minus CPC to M = 1", "chances_apart": "Chances apart from M = 1"}

WIDE = 8.0
"""How many times the largest value is the least one where a logarithmic axis shows all better."""


def sweep_chart(result: SweepResult, theme: Theme = LIGHT, *, height_px: int = 320) -> go.Figure:
    """Movement per step, and beside it the error, against the values; a failed one is a gap.

    Of people the movement of single people (M = 1) is drawn, too, and errors are those against
    them: 1 minus the common part of movement, and the share of the people whose next cell differs.
    Of counts the error is that of held-out counts over the one of leaving everybody in place.
    """
    figure = make_subplots(1, 2, horizontal_spacing=0.1)
    at, labels = _places(result), list(result.sweep.labels)
    movers = [row.movers for row in result.rows]
    lines: list[tuple[int, str, list[float], str]] = [(1, "Movement, as learned", movers, ",.1f")]
    if result.sweep.of_counts:
        lines += [
            (2, FIGURES[name].label, [row.figures[name] for row in result.rows], ".3f")
            for name in OF_COUNTS
        ]
    else:
        single = [
            row.movers / row.total_ratio if row.total_ratio > 0 else math.nan for row in result.rows
        ]
        lines.append((1, "Movement of single people, M = 1", single, ",.1f"))
        apart = {"cpc_apart": [1 - row.cpc for row in result.rows]}
        apart["chances_apart"] = [row.chances_apart for row in result.rows]
        lines += [(2, LABELS[name], apart[name], ".3f") for name in OF_PEOPLE]
    for number, (column, name, values, digits) in enumerate(lines):
        colour = css(theme.series[number % len(theme.series)])
        figure.add_scatter(
            x=at, y=[_shown(value) for value in values], name=name, mode="lines+markers",
            customdata=labels, connectgaps=False,
            line={"color": colour, "width": 2, "dash": DASHES[number % len(DASHES)]},
            marker={"color": colour, "size": 7},
            error_y=_interval(result, colour) if number == 0 else None,
            hovertemplate=f"%{{customdata}}: %{{y:{digits}}}<extra>%{{fullData.name}}</extra>",
            row=1, col=column,
        )  # fmt: skip
    style(figure, theme, height_px)
    figure.update_xaxes(title=_title(result), **_axis(at, labels))
    figure.update_yaxes(title="People per step", tickformat=",", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(
        title="Error, 0 is none", tickformat=".2~f", rangemode="tozero", row=1, col=2
    )
    return figure


def _title(result: SweepResult) -> str:
    option = result.sweep.option
    return f"{option.label} ({option.unit})" if option.unit else option.label


def _places(result: SweepResult) -> list[float]:
    """Where values are on the axis: numbers where they lie, others one after the other."""
    option, values = result.sweep.option, result.sweep.values
    numbers = [option.shown(value) for value in values if not isinstance(value, str)]
    if len(numbers) < len(values) or option.choices or result.sweep.name == "seed":
        return [float(place) for place in range(len(values))]
    return [float(number) for number in numbers]


def _axis(at: Sequence[float], labels: Sequence[str]) -> dict[str, Any]:
    """A mark at each value; a logarithmic axis for numbers of several sizes."""
    is_wide = min(at) > 0 and max(at) >= WIDE * min(at)
    return {
        "type": "log" if is_wide else "linear", "tickvals": list(at), "ticktext": list(labels),
    }  # fmt: skip


def _shown(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _interval(result: SweepResult, colour: str) -> dict[str, Any] | None:
    """The interval of the movement, where there is one."""
    if "movers_low" not in result.columns:
        return None

    def far(one: float, other: float) -> float:
        return max(one - other, 0.0) if math.isfinite(one - other) else 0.0

    return {
        "type": "data", "symmetric": False, "color": colour, "thickness": 1,
        "array": [far(row.movers_high, row.movers) for row in result.rows],
        "arrayminus": [far(row.movers, row.movers_low) for row in result.rows],
    }  # fmt: skip
