"""What a person looks at of flows from counts, as a value that an address can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from agg_core.plotting.flow_maps import Shade
from agg_core.study.counts import CountStudy
from agg_core.study.results import WHOLE_DAY, moments_of, times_of
from agg_core.study.scales import first_threshold
from agg_core.tables.flows import Direction
from ui.flow_view import CELL_THRESHOLD, DIRECTIONS, MOST_ARROWS, TOP
from ui.view_params import Params, choice, people, read, shade, switch, whole, written

__all__ = ["CountsView", "first_counts_view", "moments_shown"]


@dataclass(frozen=True)
class CountsView:
    """One picture of a run on counts: what an address says besides the run itself.

    time : time of day at which a step begins, or the whole day
    threshold : arrows are flows above this many people per step; cell_threshold with a cell
    top_n : the most arrows that are drawn
    shade : what the shade of a cell stands for; none if None
    cell, direction : the chosen cell, and which of its flows are shown
    resolved : whether only flows that the counts resolve are shown
    """

    time: str = WHOLE_DAY
    threshold: float = 5.0
    cell_threshold: float = CELL_THRESHOLD
    top_n: int = TOP
    shade: Shade | None = "people"
    cell: int | None = None
    direction: Direction = "both"
    resolved: bool = False

    @property
    def least(self) -> float:
        """The threshold that holds now."""
        return self.threshold if self.cell is None else self.cell_threshold

    def fitted(self, study: CountStudy) -> CountsView:
        """This view with whatever the run does not have as it is shown at first."""
        return CountsView.from_params(written(self, _PARAMS), study)[0]

    def to_params(self, study: CountStudy) -> dict[str, str]:
        """As parameters of an address: the time of day, and what is not as at first."""
        first = written(first_counts_view(study), _PARAMS)
        return {k: v for k, v in written(self, _PARAMS).items() if k == "at" or v != first[k]}

    @classmethod
    def from_params(
        cls, params: Mapping[str, str], study: CountStudy
    ) -> tuple[CountsView, tuple[str, ...]]:
        """The view of an address, and the names of the parameters that this run cannot follow."""
        chosen, refused = read(params, _PARAMS, study)
        return replace(first_counts_view(study), **chosen), refused


def first_counts_view(study: CountStudy) -> CountsView:
    """How a run is shown before anybody chooses: the whole day, some arrows."""
    return CountsView(threshold=float(first_threshold(study)))


def moments_shown(study: CountStudy) -> tuple[str, ...]:
    """Moments to choose among: the one time of day that some counts have is their whole day."""
    return moments_of(study) if len(times_of(study)) > 1 else (WHOLE_DAY,)


_PARAMS: Params = {
    "at": choice("time", moments_shown),
    "above": people("threshold"),
    "block_above": people("cell_threshold"),
    "top": whole("top_n", 1, lambda _: MOST_ARROWS + 1, optional=False),
    "shade": shade("shade"),
    "block": whole("cell", 0, lambda study: study.n_cells),
    "way": choice("direction", lambda _: DIRECTIONS),
    "resolved": switch("resolved"),
}

assert {param.attribute for param in _PARAMS.values()} == {f.name for f in fields(CountsView)}
