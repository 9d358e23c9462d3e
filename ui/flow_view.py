"""What a person looks at on the page Flows, as a value that an address can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from agg_core.plotting.flow_map import SHADES, Shade, times_shown
from agg_core.study.result import FlowResult
from agg_core.study.scales import first_difference_threshold, first_threshold
from agg_core.tables.flows import Direction
from ui.view_params import (
    Params,
    choice,
    numbers,
    people,
    place,
    read,
    several,
    shade,
    switch,
    whole,
    written,
)

__all__ = ["DIRECTIONS", "MOST_ARROWS", "SHOWS", "FlowView", "first_view", "threshold_held"]

SHOWS = ("both", "difference", "estimate", "all")
DIRECTIONS: tuple[Direction, ...] = ("both", "in", "out")
MOST_ARROWS = 2_000
TOP = 300
"""Arrows beyond which nobody can read a map."""
CELL_THRESHOLD = 1.0
"""Chosen cells show their own flows, also those that are small in the whole city."""


@dataclass(frozen=True)
class FlowView:
    """One picture of a run: what an address says besides the run itself.

    time, until : time of day; the last of a range of times whose mean is shown
    step : a step from the time on (the mean of all if None)
    days : days that what happened is shown of; all of them if none
    truth : what stands beside the estimate, None where there is nothing
    show : "both" side by side, their "difference", the "estimate" alone, or "all" sources
    net : whether the way back is taken off each flow
    threshold : arrows are flows above this many people per step; difference_threshold for
        differences, cell_threshold with chosen cells
    top_n : the most arrows that are drawn
    shade : what the shade of a cell stands for; none if None
    cells, direction : the chosen cells, and which of their flows are shown
    resolved : whether only flows that the data resolve are shown
    clusters : whether cells that lie near to each other on the screen are merged
    camera : longitude, latitude and zoom of the maps; None where all cells are in sight
    """

    time: str
    until: str = ""
    step: int | None = None
    truth: str | None = None
    show: str = "both"
    net: bool = False
    threshold: float = 35.0
    difference_threshold: float = 5.0
    cell_threshold: float = CELL_THRESHOLD
    top_n: int = TOP
    shade: Shade | None = "people"
    cells: tuple[int, ...] = ()
    direction: Direction = "both"
    resolved: bool = False
    clusters: bool = False
    camera: tuple[float, float, float] | None = None
    days: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        """The threshold that holds now."""
        return float(getattr(self, threshold_held(self.show, self.cells)))

    def fitted(self, result: FlowResult) -> FlowView:
        """This view with whatever the run does not have as it is shown at first."""
        return FlowView.from_params(written(self, _PARAMS), result)[0]

    def to_params(self, result: FlowResult) -> dict[str, str]:
        """As parameters of an address: the time of day, and what is not as at first."""
        first = written(first_view(result), _PARAMS)
        return {k: v for k, v in written(self, _PARAMS).items() if k == "at" or v != first[k]}

    @classmethod
    def from_params(
        cls, params: Mapping[str, str], result: FlowResult
    ) -> tuple[FlowView, tuple[str, ...]]:
        """The view of an address, and the names of the parameters that this run cannot follow."""
        present = {_EARLIER.get(name, name): text for name, text in params.items()}
        chosen, refused = read(present, _PARAMS, result)
        complete = len(chosen) == len(_PARAMS)  # then the first view need not be found
        return cls(**chosen) if complete else replace(first_view(result), **chosen), refused

    def to_texts(self) -> dict[str, str]:
        """As texts of all parameters of an address."""
        return written(self, _PARAMS)

    def to_map(self) -> dict[str, Any]:
        """As the map in the browser has it, for JSON."""
        view = asdict(self)
        del view["days"]
        names = ("longitude", "latitude", "zoom")
        return view | {
            "until": self.until or self.time,
            "shade": self.shade or "none",
            "show": self.show if self.truth is not None else "estimate",
            "camera": dict(zip(names, self.camera, strict=True)) if self.camera else None,
        }

    def after(self, told: Mapping[str, Any], result: FlowResult) -> FlowView:
        """This view after the map has told its own; what is not of a view is left as it was."""
        names = {f.name for f in fields(self)} - {"days"}
        values = {name: value for name, value in told.items() if name in names}
        if values.get("until") == values.get("time"):
            values["until"] = ""
        if values.get("shade") == "none":
            values["shade"] = None
        texts = {}
        for name, param in _PARAMS.items():
            if param.attribute in values:
                try:
                    texts[name] = param.write(_plain(values[param.attribute]))
                except (TypeError, ValueError, LookupError, AttributeError):
                    continue
        chosen, _ = read(texts, _PARAMS, result)
        return replace(self, **chosen)


def _plain(value: Any) -> Any:
    """A list or a camera from JSON as the tuple that a view has."""
    if isinstance(value, Mapping):
        return tuple(value[name] for name in ("longitude", "latitude", "zoom"))
    return tuple(value) if isinstance(value, list) else value


def threshold_held(show: str, cells: tuple[int, ...]) -> str:
    """The attribute of a view that is its threshold: whole map, differences and cells differ."""
    if cells:
        return "cell_threshold"
    return "difference_threshold" if show == "difference" else "threshold"


def first_view(result: FlowResult) -> FlowView:
    """How a run is shown before anybody chooses: its busiest time, some arrows."""
    view = FlowView(time=result.busiest, threshold=float(first_threshold(result)))
    if not result.references:
        return view
    truth = result.references[0]
    difference = first_difference_threshold(result, truth)
    return replace(view, truth=truth, difference_threshold=difference)


_PARAMS: Params = {
    "at": choice("time", times_shown),
    "until": choice("until", lambda result: ("", *times_shown(result))),
    "step": whole("step", 0, lambda result: result.n_steps),
    "beside": choice("truth", lambda result: result.references),
    "show": choice("show", lambda result: SHOWS if result.references else SHOWS[:1]),
    "net": switch("net"),
    "above": people("threshold"),
    "differing": people("difference_threshold"),
    "cell_above": people("cell_threshold"),
    "top": whole("top_n", 1, lambda _: MOST_ARROWS + 1, optional=False),
    "shade": shade("shade", SHADES),
    "cell": numbers("cells", lambda result: result.states.n_cells),
    "way": choice("direction", lambda _: DIRECTIONS),
    "resolved": switch("resolved"),
    "merged": switch("clusters"),
    "look": place("camera"),
    "day": several("days", lambda result: result.days),
}

_EARLIER = {"block": "cell", "block_above": "cell_above"}
"""Names of parameters in addresses that earlier versions gave."""

assert {param.attribute for param in _PARAMS.values()} == {f.name for f in fields(FlowView)}
