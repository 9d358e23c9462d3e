"""The flow maps of one moment as a page: the estimate, and what it is held against if there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agg_core.exports.tables import left_out, people_text
from agg_core.study.result import ESTIMATE, FlowResult, only_resolved
from agg_core.study.scales import flow_scale, total_scale

if TYPE_CHECKING:
    import pandas as pd

    from agg_core.plotting.deck import Scene
    from agg_core.plotting.html_map import NamedDecks

__all__ = ["html_page"]

Tables = Mapping[str, "pd.DataFrame"]

TOP_N = 300
"""More arrows than this nobody can read."""


def html_page(
    result: FlowResult,
    time: str,
    title: str = "",
    *,
    truth: str | None = None,
    threshold: float | None = None,
    top_n: int = TOP_N,
    resolved_only: bool = False,
    scene: Scene | None = None,
) -> bytes:
    """An HTML page with the arrows of the estimate and of `truth`, which opens with no network.

    Flows of an estimate with intervals that the data do not resolve are drawn faint, or not at all
    if `resolved_only`. Of counts what happened stands beside what usually happens; runs that know
    only the latter have one map. Both maps share one scale. Arrows are flows above `threshold`
    people per step (that of the settings by default), at most `top_n` a map. A `scene` brings theme
    and outline; its basemap, which needs a network, is left out.

    Raises
    ------
    InputError
        If the cells have no place.
    """
    from agg_core.made.samples import load_outline  # noqa: PLC0415
    from agg_core.plotting.deck import Scene  # noqa: PLC0415
    from agg_core.plotting.flow_maps import arrow_half_widths_px  # noqa: PLC0415
    from agg_core.plotting.html_map import arrow_legend_svg, standalone_map  # noqa: PLC0415

    shown = replace(scene or Scene(outline=load_outline()), basemap=None)
    least = result.threshold if threshold is None else threshold
    beside = truth or next(iter(result.references), ESTIMATE)
    vmax = flow_scale(result, beside)
    tables = {source: result.rows(time, source) for source in dict.fromkeys((ESTIMATE, beside))}
    whole = tables
    if resolved_only:
        tables = only_resolved(tables)
    half_widths = arrow_half_widths_px(result.states.placed_grid, shown)
    page = standalone_map(
        _decks(
            result, tables, whole, vmax, total_scale(result, beside, "people"), least, top_n, shown
        ),
        f"{title or 'Population flows'}, {time}",
        _notes(result, tables, least, top_n),
        arrow_legend_svg(vmax, least, shown.theme, half_widths_px=half_widths),
        shown.theme,
        size_px=shown.size_px,
    )
    return page.encode("utf-8")


def _decks(
    result: FlowResult,
    tables: Tables,
    whole: Tables,
    vmax: float,
    fullest: float,
    threshold: float,
    top_n: int,
    scene: Scene,
) -> NamedDecks:
    """Maps on one scale of arrows and one of shades, each telling what the other, if any, has.

    ``whole`` are the tables with the flows that are not drawn.
    """
    from agg_core.plotting.flow_maps import flow_deck  # noqa: PLC0415

    grid = result.states.placed_grid
    brief = {source: result.source_name(source) for source in tables}
    return [
        (
            _name(result, source),
            flow_deck(
                grid, tables[source], vmax=vmax, threshold=threshold, top_n=top_n, scene=scene,
                shade="people", shade_vmax=fullest,
                reference=whole[other] if other != source else None,
                names=(brief[source], brief[other]),
            ),
        )
        for source, other in zip(tables, reversed([*tables]), strict=True)
    ]  # fmt: skip


def _name(result: FlowResult, source: str) -> str:
    words = result.source_words(source)
    return words[0].upper() + words[1:]


def _notes(result: FlowResult, tables: Tables, threshold: float, top_n: int) -> list[str]:
    from agg_core.plotting.flow_maps import drawn_flows  # noqa: PLC0415

    grid = result.states.placed_grid
    notes = [
        f"An arrow is the number of people who go from one cell to another in a step"
        f"{_minutes(result)}. Arrows above {threshold:g} people per step are drawn, at most "
        f"{top_n} a map. The shade of a cell says how many people are in it. {result.evidence}"
    ]
    for source, table in tables.items():
        drawn = drawn_flows(grid, table, threshold, top_n)
        notes.append(
            f"{_name(result, source)}: {drawn.n_shown:,} of {drawn.n_above:,} arrows above the "
            f"threshold, {drawn.share_shown:.0%} of the {people_text(drawn.total_moves)} people "
            f"per step who move. No arrow stands for {left_out(table, grid.n_cells)}."
        )
    return notes


def _minutes(result: FlowResult) -> str:
    """How long a step is, if that is known."""
    minutes = result.step_minutes
    return "" if minutes is None else f" of {minutes:g} minutes"
