"""What results of both kinds have: cells by name, moments, and the flows at each.

A study has the moments and sources that it was asked for; flows learned from counts have times of
day, their mean over the whole day, and one source.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.space.grid import Grid
from agg_core.study.counts import CountStudy
from agg_core.study.people import SOURCES, StudyResult

__all__ = [
    "OUTSIDE_NAME",
    "WHOLE_DAY",
    "Result",
    "busiest_of",
    "cell_names",
    "check_moment",
    "flows_at",
    "grid_of",
    "moments_of",
    "n_cells_of",
    "sources_of",
    "threshold_of",
    "times_of",
]

Result = StudyResult | CountStudy

OUTSIDE_NAME = "outside"
"""Name of the state of people who are in no cell."""

WHOLE_DAY = "whole day"
"""The moment of flows from counts that stands for the mean step of a day."""


def cell_names(result: Result) -> list[str]:
    """Name of each state, (S,); the outside, where the result has one, is the last."""
    if isinstance(result, CountStudy):
        return [*result.cells, *[OUTSIDE_NAME] * result.has_outside]
    return result.settings.grid.make().labels + [OUTSIDE_NAME] * result.has_outside


def grid_of(result: Result) -> Grid | None:
    """The cells; None where counts are of cells without a place."""
    grid = result.grid if isinstance(result, CountStudy) else result.settings.grid
    return None if grid is None else grid.make()


def n_cells_of(result: Result) -> int:
    """Number of cells, the outside not among them."""
    if isinstance(result, CountStudy):
        return result.n_cells
    return result.settings.grid.make().n_cells


def times_of(result: Result) -> tuple[str, ...]:
    """Times of day that have flows of their own, in order."""
    if isinstance(result, CountStudy):
        rows = np.bincount(result.flows["slot"].to_numpy(dtype=np.int64))
        return tuple(result.slots[slot] for slot in np.flatnonzero(rows))
    return tuple(a.anchor for a in result.anchors)


def moments_of(result: Result) -> tuple[str, ...]:
    """All that `flows_at` can be asked for: `times_of`, after `WHOLE_DAY` where there is one."""
    return ((WHOLE_DAY,) if isinstance(result, CountStudy) else ()) + times_of(result)


def busiest_of(result: Result) -> str:
    """The moment that is shown before anybody chooses one."""
    return WHOLE_DAY if isinstance(result, CountStudy) else result.busiest


def sources_of(result: Result) -> tuple[str, ...]:
    """Where flows come from; the estimate is the first."""
    return SOURCES[:1] if isinstance(result, CountStudy) else SOURCES


def threshold_of(result: Result) -> float:
    """People per step above which a flow was to be an arrow."""
    if isinstance(result, CountStudy):
        return result.settings.threshold
    return result.settings.learn.threshold


def check_moment(result: Result, moment: str) -> None:
    """Refuse a moment that a result does not have.

    Raises
    ------
    InputError
        With those that it has.
    """
    known = moments_of(result)
    if moment not in known:
        none = "These counts have no flows" if isinstance(result, CountStudy) else (
            "This study has no windows"
        )  # fmt: skip
        raise InputError(f"{none} at {moment}; choose one of {', '.join(known)}.")


def flows_at(result: Result, moment: str, source: str = SOURCES[0]) -> pd.DataFrame:
    """Origin, dest and count, people per step, at a moment; more columns by the kind of result.

    Raises
    ------
    InputError
        If the result has no such moment.
    """
    check_moment(result, moment)
    if isinstance(result, StudyResult):
        return result.table(moment, source)
    return result.rows(None if moment == WHOLE_DAY else result.slots.index(moment))
