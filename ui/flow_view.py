"""What a person looks at on the page Flows, as a value that an address can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from agg_core.plotting.deck import Bounds
from agg_core.plotting.flow_maps import Shade
from agg_core.space.grid import BaseGrid
from agg_core.study.people import ALL_DAY
from agg_core.study.result import FlowResult
from agg_core.study.scales import first_difference_threshold, first_threshold
from agg_core.tables.flows import Direction
from ui.view_params import Params, choice, people, read, several, shade, switch, whole, written

__all__ = [
    "DIRECTIONS",
    "MOST_ARROWS",
    "SHOWS",
    "FlowView",
    "first_view",
    "step_label",
    "threshold_held",
    "times_shown",
]

SHOWS = ("both", "difference")
DIRECTIONS: tuple[Direction, ...] = ("both", "in", "out")
MOST_ARROWS = 2_000
TOP = 300
"""Arrows beyond which nobody can read a map."""
CELL_THRESHOLD = 1.0
"""A chosen cell shows its own flows, also those that are small in the whole city."""
SURROUNDINGS = 3.5
"""Cells to each side of the chosen one that a close view shows."""


@dataclass(frozen=True)
class FlowView:
    """One picture of a run: what an address says besides the run itself.

    time, step : time of day, and a step from then on (the mean of all if None)
    days : days that what happened is shown of; all of them if none
    truth : what stands beside the estimate, None where there is nothing
    show : "both" side by side, or their "difference"
    net : whether the way back is taken off each flow
    threshold : arrows are flows above this many people per step; difference_threshold for
        differences, cell_threshold with a cell
    top_n : the most arrows that are drawn
    shade : what the shade of a cell stands for; none if None
    cell, direction : the chosen cell, and which of its flows are shown
    close : whether the maps begin with the surroundings of the cell
    resolved : whether only flows that the data resolve are shown
    """

    time: str
    step: int | None = None
    truth: str | None = None
    show: str = "both"
    net: bool = False
    threshold: float = 35.0
    difference_threshold: float = 5.0
    cell_threshold: float = CELL_THRESHOLD
    top_n: int = TOP
    shade: Shade | None = "people"
    cell: int | None = None
    direction: Direction = "both"
    close: bool = False
    resolved: bool = False
    days: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        """The threshold that holds now."""
        return float(getattr(self, threshold_held(self.show, self.cell)))

    def focus(self, grid: BaseGrid) -> Bounds | None:
        """Where the maps begin: about the chosen cell, or everywhere (None)."""
        if self.cell is None or not self.close:
            return None
        lon, lat = grid.centroids[self.cell]
        west, south, east, north = grid.cell_bounds[self.cell]
        wide, high = SURROUNDINGS * (east - west), SURROUNDINGS * (north - south)
        return lon - wide, lat - high, lon + wide, lat + high

    def next_moment(self, result: FlowResult) -> FlowView:
        """The time of day that follows; if single steps are shown, the step that follows."""
        times = times_shown(result)
        if self.step is not None and self.step + 1 < result.n_steps:
            return replace(self, step=self.step + 1)
        following = times[(times.index(self.time) + 1) % len(times)]
        return replace(self, time=following, step=None if self.step is None else 0)

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


def threshold_held(show: str, cell: int | None) -> str:
    """The attribute of a view that is its threshold: whole map, differences and cells differ."""
    if cell is not None:
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


def times_shown(result: FlowResult) -> tuple[str, ...]:
    """Times to choose among: the one time of day that some results have is their whole day."""
    return result.times if len(result.times_of_day) > 1 else result.times[:1]


def step_label(result: FlowResult, time: str, step: int | None) -> str:
    """A step of a window by the clock: "08:00 – 08:30"; by its number where windows have none."""
    if step is None:
        return "mean of the window"
    if time == ALL_DAY or result.step_minutes is None:
        return f"step {step + 1} of {result.n_steps}"
    hours, minutes = (int(part) for part in time.split(":"))
    length = int(result.step_minutes)
    first = 60 * hours + minutes + step * length
    ends = (first, first + length)
    return " – ".join(f"{end // 60 % 24:02d}:{end % 60:02d}" for end in ends)


_PARAMS: Params = {
    "at": choice("time", times_shown),
    "step": whole("step", 0, lambda result: result.n_steps),
    "beside": choice("truth", lambda result: result.references),
    "show": choice("show", lambda result: SHOWS if result.references else SHOWS[:1]),
    "net": switch("net"),
    "above": people("threshold"),
    "differing": people("difference_threshold"),
    "cell_above": people("cell_threshold"),
    "top": whole("top_n", 1, lambda _: MOST_ARROWS + 1, optional=False),
    "shade": shade("shade"),
    "cell": whole("cell", 0, lambda result: result.states.n_cells),
    "way": choice("direction", lambda _: DIRECTIONS),
    "close": switch("close"),
    "resolved": switch("resolved"),
    "day": several("days", lambda result: result.days),
}

_EARLIER = {"block": "cell", "block_above": "cell_above"}
"""Names of parameters in addresses that earlier versions gave."""

assert {param.attribute for param in _PARAMS.values()} == {f.name for f in fields(FlowView)}
