"""Small charts as SVG text, for pages that open without a network and are printed.

Colours are those of classes that the page defines, so that a chart follows it into the dark and
onto white paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10

__all__ = ["Series", "histogram", "profile", "xy_plot"]

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
TICKS = 5
MOST_LABELS = 12
MOST_POINTS = 3_000
SERIES = 2
"""Colours that series have, in turn."""


@dataclass(frozen=True)
class Series:
    """Values at each place of a chart, ends of their intervals, and what was counted there.

    nan where there is none; all have the same length. ``days`` are the values of single days, a
    thin line each.
    """

    name: str
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    counted: Sequence[float] = ()
    days: Sequence[Sequence[float]] = ()


def _round_up(most: float) -> tuple[float, float]:
    """A round end of an axis from 0, and the distance of its ticks."""
    if not (isfinite(most) and most > 0):
        return 1.0, 0.5
    least = most / TICKS
    power = 10.0 ** floor(log10(least))
    step = power * next(width for width in ROUND if width * power >= least * (1 - 1e-9))
    ticks = int(most / step * (1 - 1e-9)) + 1
    return ticks * step, step


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,g}"


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(value / most, 0.0), 1.0)


def _frame(body: Sequence[str], most: float, step: float, words: tuple[str, str, str]) -> str:
    """A chart with its vertical axis; words are what it shows, and the names of both axes."""
    about, across, up = (escape(text) for text in words)
    ticks, value = [], 0.0
    while value <= most * (1 + 1e-9):
        y = _y(value, most)
        ticks.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        )
        value += step
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}">'
        f"<title>{about}</title>{''.join(ticks)}{''.join(body)}"
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{across}</text>"
        f'<text transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{up}</text></svg>'
    )


def _most(*some: Sequence[float]) -> float:
    return max((value for values in some for value in values if isfinite(value)), default=0.0)


def profile(places: Sequence[str], series: Sequence[Series], words: tuple[str, str, str]) -> str:
    """Values of series at places such as times of day, with bars of intervals; counts are crosses.

    ``words`` are what the chart shows, and the names of the axes.
    """
    every = [part for one in series for part in (one.values, one.high, one.counted, *one.days)]
    most, step = _round_up(_most(*every))
    apart = (WIDTH - LEFT - RIGHT) / max(len(places), 1)
    body = []
    for number, one in enumerate(series):
        kind = f"s{number % SERIES}"
        shift = (number - (len(series) - 1) / 2) * min(apart / (len(series) + 1), 12)
        x = [LEFT + apart * (at + 0.5) + shift for at in range(len(places))]
        for day in one.days:
            path = " ".join(
                f"{x[at]:.1f},{_y(value, most):.1f}" for at, value in enumerate(day)
                if isfinite(value)
            )  # fmt: skip
            body.append(f'<polyline class="day {kind}" points="{path}"/>')
        known = [at for at, value in enumerate(one.values) if isfinite(value)]
        path = " ".join(f"{x[at]:.1f},{_y(one.values[at], most):.1f}" for at in known)
        wide = "mean" if one.days else "thin"
        body.append(f'<polyline class="{wide} {kind}" points="{path}"/>')
        for at in known:
            low, high, value = one.low[at], one.high[at], one.values[at]
            if isfinite(low) and isfinite(high):
                body.append(_ends(x[at], _y(low, most), _y(high, most), kind))
            body.append(
                f'<circle class="{kind}" cx="{x[at]:.1f}" cy="{_y(value, most):.1f}" r="3"/>'
            )
        for at, value in enumerate(one.counted):
            if isfinite(value):
                body.append(_cross(x[at], _y(value, most)))
    body += _labels(places, [LEFT + apart * (at + 0.5) for at in range(len(places))])
    return _frame(body, most, step, words) + _legend(series)


def _ends(x: float, low: float, high: float, kind: str) -> str:
    return (
        f'<path class="thick {kind}" d="M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8'
        f'M{x:.1f} {low:.1f}V{high:.1f}"/>'
    )


def _cross(x: float, y: float) -> str:
    return f'<path class="counted" d="M{x - 4:.1f} {y - 4:.1f}l8 8M{x - 4:.1f} {y + 4:.1f}l8 -8"/>'


def _labels(places: Sequence[str], x: Sequence[float]) -> list[str]:
    every = -(-len(places) // MOST_LABELS)
    return [
        f'<text x="{x[at]:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
        f"{escape(places[at])}</text>"
        for at in range(0, len(places), max(every, 1))
    ]


def _legend(series: Sequence[Series]) -> str:
    some = any(isfinite(value) for one in series for value in one.counted)
    names = [
        f'<span><i class="s{number % SERIES}"></i>{escape(one.name)}</span>'
        for number, one in enumerate(series)
    ]
    more = ["<span>× counted</span>"] * some
    more += ["<span>thin lines: single days</span>"] * any(one.days for one in series)
    return f'<p class="legend">{"".join([*names, *more])}</p>'


def histogram(
    edges: Sequence[float], shown: Series, beside: Sequence[float], words: tuple[str, str, str]
) -> str:
    """Bars between edges (n + 1,), with intervals, and steps of what stands ``beside`` (n,)."""
    most, step = _round_up(_most(shown.values, shown.high, beside))
    wide = (WIDTH - LEFT - RIGHT) / max(len(shown.values), 1)
    body, steps = [], []
    for at, value in enumerate(shown.values):
        x = LEFT + wide * at
        if isfinite(value):
            y = _y(value, most)
            body.append(
                f'<rect class="s0 pale" x="{x + 1:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}"/>'
            )
        if isfinite(shown.low[at]) and isfinite(shown.high[at]):
            low, high = _y(shown.low[at], most), _y(shown.high[at], most)
            body.append(_ends(x + wide / 2, low, high, "s0"))
        if at < len(beside) and isfinite(beside[at]):
            steps.append(f"M{x:.1f} {_y(beside[at], most):.1f}h{wide:.1f}")
    if steps:
        body.append(f'<path class="counted" d="{"".join(steps)}"/>')
    body += _labels(
        [_number(edge) for edge in edges], [LEFT + wide * at for at in range(len(edges))]
    )
    names = [f'<span><i class="s0"></i>{escape(shown.name)}</span>']
    names += ["<span>– reference</span>"] * bool(steps)
    return _frame(body, most, step, words) + f'<p class="legend">{"".join(names)}</p>'


def xy_plot(counted: Sequence[float], values: Sequence[float], words: tuple[str, str, str]) -> str:
    """Values against those counted, and the line on which both are alike; the largest if many."""
    pairs = [(c, v) for c, v in zip(counted, values, strict=True) if isfinite(c) and isfinite(v)]
    pairs = sorted(pairs, key=lambda pair: -max(pair))[:MOST_POINTS]
    most, step = _round_up(_most(*pairs))
    wide = WIDTH - LEFT - RIGHT
    body = [
        f'<line class="same" x1="{LEFT}" y1="{_y(0, most):.1f}" x2="{WIDTH - RIGHT}" '
        f'y2="{_y(most, most):.1f}"/>'
    ]
    body += [
        f'<circle class="s0 point" cx="{LEFT + wide * max(c, 0) / most:.1f}" '
        f'cy="{_y(v, most):.1f}" r="3"/>'
        for c, v in pairs
    ]
    ticks = [step * at for at in range(round(most / step) + 1)]
    body += _labels([_number(tick) for tick in ticks], [LEFT + wide * t / most for t in ticks])
    return _frame(body, most, step, words)
