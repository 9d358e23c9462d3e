"""A still figure for slides and papers: flows by time of day, the estimate beside the truth."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from agg_core.base.errors import InputError
from agg_core.io.outlines import covers, cut_outline
from agg_core.plotting.arrows import FlowSelection
from agg_core.plotting.charts import LEGEND_BAR_PX, LEGEND_HEIGHT_PX, arrow_legend
from agg_core.plotting.deck import Bounds, Outline
from agg_core.plotting.grid_arrows import (
    LEAST_SHADED,
    arrow_half_widths_m,
    drawn_flows,
    flow_rings,
)
from agg_core.plotting.theme import (
    ARROW_ALPHA,
    LIGHT,
    SHADE_ALPHA,
    Ramp,
    Theme,
    as_text,
    css,
    ramp_colours,
)
from agg_core.space import LatticeGrid
from agg_core.space.grid import BaseGrid
from agg_core.tables.flows import cell_totals

__all__ = ["MOST_ROWS", "PaperRow", "camera", "mercator", "paper_figure"]

FloatArray = npt.NDArray[np.float64]

MOST_ROWS = 6
BUCKETS = 8
"""Colours of a ramp: one trace each, so that hundreds of arrows stay quick to draw."""

WIDTH_PX = 1000
MARGIN_PX = 16
TITLES_PX = 150
"""Room for the row titles at the left."""
GAP_PX = 12
PANEL_PX = (WIDTH_PX - 2 * MARGIN_PX - TITLES_PX - GAP_PX) / 2
SHAPES = (0.4, 1.5)
"""Height of a map over its width, at least and at most."""
HEAD_PX = 34
LEGEND_PX = 92
LEGEND_SCALE = 1.2
LINE_PX = 19
SOURCE_LETTERS = 132

PNG_SCALE = 2
"""Pixels of a saved picture for each of the figure: 2,000 across."""

PADDING = 0.015
"""Share of the extent that is shown round the grid."""
FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


@dataclass(frozen=True)
class PaperRow:
    """One time of day: flow tables (origin, dest, count in people per step) and what is said.

    `cpc` and `total_ratio` hold the estimate against the truth; nan leaves them out.
    """

    title: str
    estimate: pd.DataFrame
    truth: pd.DataFrame
    cpc: float = math.nan
    total_ratio: float = math.nan


def paper_figure(
    rows: Sequence[PaperRow],
    grid: BaseGrid,
    *,
    vmax: float,
    threshold: float,
    top_n: int | None = 300,
    shade_vmax: float | None = None,
    outline: Outline | None = None,
    ground: Outline | None = None,
    theme: Theme = LIGHT,
    titles: tuple[str, str] = ("Estimate", "Ground truth"),
    source: str = "",
) -> go.Figure:
    """A row of two maps for each time of day, as in the paper's Fig. 9, with legends and a source.

    The arrows are those of `drawn_flows`, sized and coloured up to `vmax` people per step on one
    scale; the shades say how many people are in a cell as the step begins, up to `shade_vmax` (the
    fullest cell of the figure without). Maps are in Web Mercator, equal in scale: x is degrees of
    longitude, y what `mercator` makes of the latitude. `source` is the line under the figure.

    Raises
    ------
    InputError
        If there is no row, or more than `MOST_ROWS`.
    """
    if not 1 <= len(rows) <= MOST_ROWS:
        raise InputError(
            f"A figure for slides shows 1 to {MOST_ROWS} times of day; {len(rows)} were chosen.",
            code="value-out-of-range",
        )
    totals = {
        (i, j): cell_totals(flows, grid.n_cells)["people"].to_numpy()
        for i, row in enumerate(rows)
        for j, flows in enumerate((row.estimate, row.truth))
    }
    fullest = shade_vmax or max(1.0, *(float(people.max()) for people in totals.values()))
    figure = go.Figure()
    sheet = _Sheet.of(grid, len(rows), source, theme)
    _style(figure, sheet)
    beneath = _ground(grid, sheet.view, outline, ground, theme)
    lines = _cell_lines(grid, theme)
    for i, row in enumerate(rows):
        _name_row(figure, sheet, row, i)
        for j, flows in enumerate((row.estimate, row.truth)):
            chosen = drawn_flows(grid, flows, threshold, top_n)
            shades = _shades(grid, totals[i, j], fullest, theme)
            arrows = _arrows(grid, chosen.frame, vmax, theme)
            _add_map(figure, sheet, (i, j), [*beneath, *shades, lines, *arrows])
            _count_arrows(figure, sheet, (i, j), chosen, threshold)
    _name_columns(figure, sheet, titles)
    _add_legends(figure, sheet, grid, vmax, threshold, fullest)
    _add_source(figure, sheet)
    return figure


def _style(figure: go.Figure, sheet: _Sheet) -> None:
    figure.update_layout(
        template="none",
        width=WIDTH_PX,
        height=round(sheet.height_px) + 2 * MARGIN_PX,
        autosize=False,
        margin={"l": MARGIN_PX, "r": MARGIN_PX, "t": MARGIN_PX, "b": MARGIN_PX},
        paper_bgcolor=css(sheet.theme.paper),
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": css(sheet.theme.text), "family": FONT},
        showlegend=False,
        dragmode=False,
        hovermode=False,
    )


def mercator(lat: npt.ArrayLike) -> FloatArray:
    """Latitude in degrees to Web Mercator's y, scaled to degrees of longitude at the equator."""
    inside = np.radians(np.clip(np.asarray(lat, dtype=float), -85.0, 85.0))
    return np.asarray(np.degrees(np.arcsinh(np.tan(inside))))


# ---------------------------------------------------------------------------------- sheet


@dataclass(frozen=True)
class _Sheet:
    """Where things lie, in pixels from the upper left corner inside the margins.

    ``view`` is west, south, east, north of every map, south and north as Mercator's y.
    """

    view: Bounds
    n_rows: int
    panel_height_px: float
    source_lines: tuple[str, ...]
    theme: Theme

    @classmethod
    def of(cls, grid: BaseGrid, n_rows: int, source: str, theme: Theme) -> _Sheet:
        west, low, east, high = grid.bounds
        south, north = mercator([low, high]).tolist()
        pad = PADDING * max(east - west, north - south)
        view = (west - pad, south - pad, east + pad, north + pad)
        shape = (view[3] - view[1]) / (view[2] - view[0])
        height_px = PANEL_PX * min(max(shape, SHAPES[0]), SHAPES[1])
        lines = textwrap.wrap(source, SOURCE_LETTERS, break_long_words=True)
        return cls(view, n_rows, height_px, tuple(lines), theme)

    @property
    def width_px(self) -> float:
        return WIDTH_PX - 2 * MARGIN_PX

    @property
    def legend_top_px(self) -> float:
        return HEAD_PX + self.n_rows * (self.panel_height_px + GAP_PX)

    @property
    def height_px(self) -> float:
        return self.legend_top_px + LEGEND_PX + LINE_PX * len(self.source_lines)

    def top_px(self, row: int) -> float:
        return HEAD_PX + row * (self.panel_height_px + GAP_PX)

    @staticmethod
    def left_px(column: int) -> float:
        return TITLES_PX + column * (PANEL_PX + GAP_PX)

    def across(self, left_px: float, width_px: float) -> list[float]:
        """A span from left to right as plotly's domain of an axis."""
        return [left_px / self.width_px, (left_px + width_px) / self.width_px]

    def down(self, top_px: float, height_px: float) -> list[float]:
        """A span from top to bottom as plotly's domain of an axis, whose 0 is the bottom."""
        return [1 - (top_px + height_px) / self.height_px, 1 - top_px / self.height_px]

    @property
    def px_per_m(self) -> float:
        """Pixels of a metre at the middle of a map."""
        west, south, east, north = self.view
        px_per_degree = min(PANEL_PX / (east - west), self.panel_height_px / (north - south))
        middle = math.atan(math.sinh(math.radians((south + north) / 2)))
        return px_per_degree / (111_319.49 * math.cos(middle))


def _add_map(
    figure: go.Figure, sheet: _Sheet, at: tuple[int, int], traces: Sequence[go.Scatter]
) -> None:
    """One map with axes of its own, equal in scale whatever becomes of the figure's size."""
    row, column = at
    name = 2 * row + column + 1
    west, south, east, north = sheet.view
    frame = {
        "showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "",
        "showline": True, "mirror": True, "linewidth": 1, "linecolor": css(sheet.theme.outline),
        "fixedrange": True, "constrain": "domain",
    }  # fmt: skip
    x, y = f"x{name}", f"y{name}"
    figure.layout[f"xaxis{name}"] = {
        **frame, "range": [west, east], "anchor": y,
        "domain": sheet.across(sheet.left_px(column), PANEL_PX),
    }  # fmt: skip
    figure.layout[f"yaxis{name}"] = {
        **frame, "range": [south, north], "anchor": x, "scaleanchor": x, "scaleratio": 1,
        "domain": sheet.down(sheet.top_px(row), sheet.panel_height_px),
    }  # fmt: skip
    figure.add_traces([go.Scatter(trace, xaxis=x, yaxis=y) for trace in traces])


# --------------------------------------------------------------------------------- traces


def _polygons(
    rings: Sequence[FloatArray], fill: str, line: Mapping[str, object], name: str
) -> go.Scatter:
    """Closed rings (k, 2) of x and y as one filled trace, with a gap between each and the next."""
    gap = np.full((1, 2), np.nan)
    parts = [part for ring in rings for part in (ring, gap)][:-1]
    places = np.vstack(parts)
    return go.Scatter(
        x=places[:, 0], y=places[:, 1], mode="lines", line=line, fill="toself", fillcolor=fill,
        name=name, hoverinfo="skip",
    )  # fmt: skip


def _by_colour(
    rings: Sequence[FloatArray], shares: FloatArray, ramp: Ramp, alpha: int,
    line: Mapping[str, object], name: str,
) -> list[go.Scatter]:  # fmt: skip
    """A trace for each colour that occurs, the least first, by ``shares`` of the scale.

    As on the other maps equal steps of the colours are equal steps of the root of the share.
    """
    bucket = np.clip((BUCKETS * np.sqrt(shares)).astype(int), 0, BUCKETS - 1)
    return [
        _polygons(
            [ring for ring, its in zip(rings, bucket, strict=True) if its == k], colour, line, name
        )
        for k, colour in enumerate(_colours(ramp, alpha))
        if (bucket == k).any()
    ]


def _colours(ramp: Ramp, alpha: int) -> list[str]:
    middles = (np.arange(BUCKETS) + 0.5) / BUCKETS
    # The ends of a scale are to look like the ends of the ramp.
    middles = (middles - middles[0]) / (middles[-1] - middles[0])
    return [css(tuple(colour), alpha / 255) for colour in ramp_colours(ramp, middles).tolist()]


def _flat(rings: FloatArray) -> FloatArray:
    """Rings (n, k, 2) of longitude and latitude on the plane of the maps."""
    return np.stack([rings[..., 0], mercator(rings[..., 1])], axis=-1)


def _ground(
    grid: BaseGrid, view: Bounds, outline: Outline | None, world: Outline | None, theme: Theme
) -> list[go.Scatter]:  # fmt: skip
    """Water and land as on the other maps: without what tells the water, all is land."""
    near = None if outline is None else cut_outline(outline, grid.bounds, 2 * PADDING)
    known = world is not None or (near is not None and covers(near, grid.bounds))
    west, south, east, north = view
    ring = np.array([[west, south], [east, south], [east, north], [west, north], [west, south]])
    none = {"width": 0}
    ground = [_polygons([ring], css(theme.background if known else theme.land), none, "ground")]
    if world is not None:
        coast = cut_outline(world, grid.bounds, 2 * PADDING)
        if land := _land_rings(grid, coast):
            ground.append(_polygons(land, css(theme.land), none, "land"))
    if near is not None and (land := _land_rings(grid, near)):
        line = {"width": 0.6, "color": css(theme.outline)}
        ground.append(_polygons(land, css(theme.land), line, "outline"))
    return ground


def _land_rings(grid: BaseGrid, near: Outline) -> list[FloatArray]:
    """Rings of an outline no finer than the figure can show; lakes run against their shores."""
    import shapely  # noqa: PLC0415

    west, _, east, _ = grid.bounds
    detail = (east - west) / (2 * PANEL_PX)
    shapes = [
        shapely.geometry.shape(feature["geometry"]).simplify(detail) for feature in near["features"]
    ]
    parts = shapely.get_parts(shapes)
    areas = shapely.orient_polygons(parts[shapely.get_dimensions(parts) == 2])
    return [_flat(shapely.get_coordinates(ring)) for ring in shapely.get_rings(areas)]


def _shades(grid: BaseGrid, people: FloatArray, fullest: float, theme: Theme) -> list[go.Scatter]:
    """People per cell as the step begins; traces of an estimate too small to show stay clear."""
    shown = people >= LEAST_SHADED
    pieces = [(cell, ring) for cell, rings in grid.pieces() if shown[cell] for ring in rings]
    shares = people[[cell for cell, _ in pieces]] / fullest
    rings = [_flat(ring) for _, ring in pieces]
    return _by_colour(rings, shares, theme.heat, SHADE_ALPHA, {"width": 0}, "people")


def _cell_lines(grid: BaseGrid, theme: Theme) -> go.Scatter:
    gap = (np.nan, np.nan)
    if isinstance(grid, LatticeGrid) and grid.is_full:
        lon, y = grid.lon_edges, mercator(grid.lat_edges)
        upright = [[(x, y[0]), (x, y[-1]), gap] for x in lon]
        level = [[(lon[0], at), (lon[-1], at), gap] for at in y]
        places = np.array(upright + level).reshape(-1, 2)
    else:
        borders = [ring for _, rings in grid.pieces() for ring in rings]
        places = np.vstack([part for ring in borders for part in (_flat(ring), [gap])])
    return go.Scatter(
        x=places[:, 0], y=places[:, 1], mode="lines", name="cells", hoverinfo="skip",
        line={"width": 0.5, "color": css(theme.grid_line, 0.35)},
    )  # fmt: skip


def _arrows(grid: BaseGrid, chosen: pd.DataFrame, vmax: float, theme: Theme) -> list[go.Scatter]:
    """Arrows as on the flow map; the darkest, which are the largest, lie on top."""
    count = chosen["count"].to_numpy(dtype=float)
    rings = _flat(flow_rings(grid, chosen, count, vmax)[0])
    rim = {"width": 0.5, "color": css(theme.land)}
    return _by_colour(list(rings), count / vmax, theme.arrow, ARROW_ALPHA, rim, "arrows")


# ---------------------------------------------------------------------------------- words


def _words(
    figure: go.Figure, sheet: _Sheet, text: str, left_px: float, top_px: float, size: int, *,
    anchor: tuple[str, str] = ("left", "top"), **more: object,
) -> None:  # fmt: skip
    figure.add_annotation(
        text=text, xref="paper", yref="paper", showarrow=False,
        x=left_px / sheet.width_px, y=1 - top_px / sheet.height_px,
        xanchor=anchor[0], yanchor=anchor[1], align=anchor[0],
        font={"size": size, "color": css(sheet.theme.text)}, **more,
    )  # fmt: skip


def _name_row(figure: go.Figure, sheet: _Sheet, row: PaperRow, number: int) -> None:
    middle = sheet.top_px(number) + sheet.panel_height_px / 2
    lines = [f'<span style="font-size:24px"><b>{as_text(row.title)}</b></span>']
    if not math.isnan(row.cpc):
        lines.append(f"CPC {row.cpc:.2f}")
    if not math.isnan(row.total_ratio):
        lines.append(f"movement × {row.total_ratio:.2f}")
    _words(figure, sheet, "<br>".join(lines), 0, middle, 15, anchor=("left", "middle"))


def _name_columns(figure: go.Figure, sheet: _Sheet, titles: tuple[str, str]) -> None:
    for column, title in enumerate(titles):
        middle = sheet.left_px(column) + PANEL_PX / 2
        text = f"<b>{as_text(title)}</b>"
        _words(figure, sheet, text, middle, 0, 18, anchor=("center", "top"))


def _count_arrows(
    figure: go.Figure, sheet: _Sheet, at: tuple[int, int], chosen: FlowSelection, threshold: float
) -> None:
    """How many arrows a map has, in its lower right corner."""
    row, column = at
    if chosen.n_above == 0:
        text = f"no flow above {threshold:g}"
    else:
        text = "1 arrow" if chosen.n_shown == 1 else f"{chosen.n_shown:,} arrows"
        if chosen.n_shown < chosen.n_above:
            text += f" of {chosen.n_above:,}"
        text += f", {chosen.share_shown:.0%} of movement"
    right, bottom = sheet.left_px(column) + PANEL_PX, sheet.top_px(row) + sheet.panel_height_px
    _words(
        figure, sheet, text, right - 3, bottom - 3, 13, anchor=("right", "bottom"),
        bgcolor=css(sheet.theme.paper, 0.85), borderpad=2,
    )  # fmt: skip


def _add_source(figure: go.Figure, sheet: _Sheet) -> None:
    text = "<br>".join(as_text(line) for line in sheet.source_lines)
    if text:
        _words(figure, sheet, text, 0, sheet.legend_top_px + LEGEND_PX, 14)


def _add_legends(
    figure: go.Figure, sheet: _Sheet, grid: BaseGrid, vmax: float, threshold: float, fullest: float
) -> None:
    """Sample arrows under the left map, the shades of the cells under the right one."""
    half_px = [half * sheet.px_per_m / LEGEND_SCALE for half in arrow_half_widths_m(grid)]
    width_px = PANEL_PX / LEGEND_SCALE
    arrows = arrow_legend(
        vmax, threshold, sheet.theme, half_widths_px=(half_px[0], half_px[1]),
        width_px=round(width_px),
    )  # fmt: skip
    for column, legend in enumerate((arrows, _shade_legend(fullest, sheet.theme, width_px))):
        _add_legend(figure, sheet, column, legend)


def _add_legend(figure: go.Figure, sheet: _Sheet, column: int, legend: go.Figure) -> None:
    """What a legend shows, enlarged, on axes of which a unit is `LEGEND_SCALE` pixels."""
    name = 2 * sheet.n_rows + column + 1
    x, y = f"x{name}", f"y{name}"
    sides = {
        f"xaxis{name}": (PANEL_PX, sheet.across(sheet.left_px(column), PANEL_PX), y),
        f"yaxis{name}": (LEGEND_PX, sheet.down(sheet.legend_top_px, LEGEND_PX), x),
    }
    for axis, (size_px, domain, anchor) in sides.items():
        figure.layout[axis] = {
            "visible": False, "fixedrange": True, "range": [0, size_px / LEGEND_SCALE],
            "domain": domain, "anchor": anchor,
        }  # fmt: skip
    figure.add_traces([go.Scatter(trace, xaxis=x, yaxis=y, name="legend") for trace in legend.data])
    for word in legend.layout.annotations:
        figure.add_annotation(word, xref=x, yref=y, font_size=round(word.font.size * LEGEND_SCALE))


def _shade_legend(fullest: float, theme: Theme, width_px: float) -> go.Figure:
    """A box for each shade and, under their edges, the people at which they begin."""
    edges = np.linspace(0, 0.9 * width_px, BUCKETS + 1)
    low, high = LEGEND_BAR_PX
    figure = go.Figure()
    line = {"width": 0.5, "color": css(theme.grid_line, 0.6)}
    for left, right, colour in zip(
        edges[:-1], edges[1:], _colours(theme.heat, SHADE_ALPHA), strict=True
    ):
        box = np.array([[left, low], [right, low], [right, high], [left, high], [left, low]])
        figure.add_trace(_polygons([box], colour, line, "legend"))
    font = {"size": 11, "color": css(theme.text)}
    for k in range(0, BUCKETS + 1, 2):
        figure.add_annotation(
            text=f"{fullest * (k / BUCKETS) ** 2:,.0f}", x=edges[k], y=low - 4, showarrow=False,
            xanchor="center" if k else "left", yanchor="top", font=font,
        )  # fmt: skip
    figure.add_annotation(
        text="People per cell as the step begins", x=0, y=LEGEND_HEIGHT_PX - 1, showarrow=False,
        xanchor="left", yanchor="top", font=font | {"size": 12},
    )  # fmt: skip
    return figure


def camera(figure: go.Figure, file_format: str) -> dict[str, object]:
    """Plotly's settings for a figure whose only button saves it as "png" or "svg".

    A PNG has twice the pixels of the figure; an SVG needs none.
    """
    return {
        "displayModeBar": True,
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {
            "format": file_format,
            "filename": "flows",
            "width": figure.layout.width,
            "height": figure.layout.height,
            "scale": PNG_SCALE if file_format == "png" else 1,
        },
    }
