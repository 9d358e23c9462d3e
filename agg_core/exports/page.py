"""The flow maps of one moment as a page: the estimate beside the fit to single people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agg_core.exports.tables import left_out, people_text, source_words
from agg_core.scales import flow_scale, total_scale
from agg_core.study import StudyResult

if TYPE_CHECKING:
    import pandas as pd

    from agg_core.plotting.deck import Scene
    from agg_core.plotting.html_map import NamedDecks

__all__ = ["html_page"]

Tables = Mapping[str, "pd.DataFrame"]

TOP_N = 300
"""More arrows than this nobody can read."""


def html_page(
    result: StudyResult,
    anchor: str,
    title: str = "",
    *,
    truth: str = "single",
    threshold: float | None = None,
    top_n: int = TOP_N,
    scene: Scene | None = None,
) -> bytes:
    """An HTML page with the arrows of the estimate and of `truth`, which opens with no network.

    Both maps share one scale. Arrows are flows above `threshold` people per step (that of the
    study by default), at most `top_n` a map. A `scene` brings theme and outline; its basemap,
    which needs a network, is left out.
    """
    from agg_core.plotting.deck import Scene  # noqa: PLC0415
    from agg_core.plotting.flow_maps import arrow_half_widths_px  # noqa: PLC0415
    from agg_core.plotting.html_map import arrow_legend_svg, standalone_map  # noqa: PLC0415
    from agg_core.samples import load_outline  # noqa: PLC0415

    shown = replace(scene or Scene(outline=load_outline()), basemap=None)
    least = result.settings.learn.threshold if threshold is None else threshold
    vmax = flow_scale(result, truth)
    tables = {source: result.table(anchor, source) for source in ("estimate", truth)}
    half_widths = arrow_half_widths_px(result.settings.grid.make(), shown)
    page = standalone_map(
        _decks(result, tables, vmax, total_scale(result, truth, "people"), least, top_n, shown),
        f"{title or 'Population flows'}, {anchor}",
        _notes(result, tables, least, top_n),
        arrow_legend_svg(vmax, least, shown.theme, half_widths_px=half_widths),
        shown.theme,
        size_px=shown.size_px,
    )
    return page.encode("utf-8")


def _decks(
    result: StudyResult,
    tables: Tables,
    vmax: float,
    fullest: float,
    threshold: float,
    top_n: int,
    scene: Scene,
) -> NamedDecks:
    """Both maps on one scale of arrows and one of shades, each telling what the other has."""
    from agg_core.plotting.flow_maps import flow_deck  # noqa: PLC0415

    grid = result.settings.grid.make()
    brief = {source: _brief(result, source) for source in tables}
    return [
        (
            _name(result, source),
            flow_deck(
                grid, tables[source], vmax=vmax, threshold=threshold, top_n=top_n, scene=scene,
                shade="people", shade_vmax=fullest, reference=tables[other],
                names=(brief[source], brief[other]),
            ),
        )
        for source, other in zip(tables, reversed([*tables]), strict=True)
    ]  # fmt: skip


def _name(result: StudyResult, source: str) -> str:
    words = source_words(result, source)
    return words[0].upper() + words[1:]


def _brief(result: StudyResult, source: str) -> str:
    """A name for the text under the pointer, where room is small."""
    sizes = {"estimate": result.settings.learn.group_size, "single": 1}
    return f"M = {sizes[source]}" if source in sizes else "counted"


def _notes(result: StudyResult, tables: Tables, threshold: float, top_n: int) -> list[str]:
    from agg_core.plotting.flow_maps import drawn_flows  # noqa: PLC0415

    grid = result.settings.grid.make()
    notes = [
        f"An arrow is the number of people who go from one block to another in a step of "
        f"{result.settings.window.step_minutes} minutes. Arrows above {threshold:g} people per "
        f"step are drawn, at most {top_n} a map. The shade of a block says how many people are in "
        f"it. Arrows and shades have the same scales on both maps. {result.n_individuals:,} people "
        "were followed."
    ]
    for source, table in tables.items():
        drawn = drawn_flows(grid, table, threshold, top_n)
        notes.append(
            f"{_name(result, source)}: {drawn.n_shown:,} of {drawn.n_above:,} arrows above the "
            f"threshold, {drawn.share_shown:.0%} of the {people_text(drawn.total_moves)} people "
            f"per step who move. No arrow stands for {left_out(table, grid.n_cells)}."
        )
    return notes
