"""The flow map of a result as a page to take away: the same instrument, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agg_core.study.result import ESTIMATE, FlowResult

if TYPE_CHECKING:
    from agg_core.plotting.flow_map import PackedFlows
    from agg_core.plotting.theme import Theme

__all__ = ["html_page"]


def html_page(
    result: FlowResult,
    time: str,
    title: str = "",
    *,
    view: Mapping[str, Any] | None = None,
    packed: PackedFlows | None = None,
    theme: Theme | None = None,
) -> bytes:
    """An HTML page with the flow map of all times, which opens with no network.

    It begins at ``time``, with the estimate beside what it is measured by or what usually happens,
    and arrows above the threshold of the settings; ``view`` has what is to be otherwise, by the
    names of ``View`` in ``ui/flowmap``. ``packed`` are the flows of the result where a map has
    packed them already; else they lie over the sample's outline and the land, borders and places
    of the world.

    Raises
    ------
    InputError
        If the result has no such time, or cells have no place.
    """
    from agg_core.io.ground import ATTRIBUTION, ground_near  # noqa: PLC0415
    from agg_core.made.samples import load_outline  # noqa: PLC0415
    from agg_core.plotting.flow_map import flows_of, map_view, pack, page  # noqa: PLC0415
    from agg_core.plotting.theme import LIGHT  # noqa: PLC0415

    result.check(time)
    beside = next(iter(result.references), None)
    first = map_view(time, truth=beside, threshold=result.threshold)
    if packed is None:
        flows, outline = flows_of(result), load_outline()
        packed = pack(flows, outline=outline, ground=ground_near(flows.grid.bounds, outline))
    name = result.source_words(ESTIMATE)
    notes = [
        f"An arrow is the number of people who go from one cell to another in a step"
        f"{_minutes(result)}: {name}. {result.evidence}"
    ]
    if result.chosen_days:
        notes.append(f"What happened is that of {result.days_words}.")
    if packed.header["ground"]:
        notes.append(f"{ATTRIBUTION}.")
    shown = packed.showing({**first, **(view or {})})
    return page(shown, title or "Population flows", notes, theme or LIGHT).encode()


def _minutes(result: FlowResult) -> str:
    """How long a step is, if that is known."""
    minutes = result.step_minutes
    return "" if minutes is None else f" of {minutes:g} minutes"
