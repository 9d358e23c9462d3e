"""The map of two results beside each other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.plotting.flow_map import MapFlows, MapSource, step_label
from agg_core.study.beside import TwoResults
from agg_core.study.result import ESTIMATE, WHOLE_DAY

FloatArray = npt.NDArray[np.float64]

__all__ = ["OTHER", "SOURCE_KEYS", "flows_beside"]

OTHER = "other"
"""The source that stands beside the first on a map of two results."""

SOURCE_KEYS = (ESTIMATE, OTHER)


def flows_beside(
    two: TwoResults, headings: tuple[str, str], names: tuple[str, str] = ("A", "B")
) -> MapFlows:
    """The estimates of two results as the two sources of a map, at the times that both have.

    ``headings`` stand above the maps and tell them apart, ``names`` do so in a word or two.

    Raises
    ------
    InputError
        If cells have no place.
    """
    one = two.results[0]
    sources = [
        MapSource(key, heading, name)
        for key, heading, name in zip(SOURCE_KEYS, headings, names, strict=True)
    ]

    def rows(source: str, time: str, step: int | None) -> pd.DataFrame:
        return two.rows(SOURCE_KEYS.index(source), time, step)

    def sums(source: str, time: str) -> Mapping[str, tuple[FloatArray, FloatArray]] | None:
        return two.cell_intervals(SOURCE_KEYS.index(source), time)

    return MapFlows(
        grid=one.states.placed_grid,
        cells=one.states.cells,
        times=two.times,
        sources=sources,
        rows=rows,
        unit=f"per {one.step_name}" + (" of a mean day" if two.of_mean_day else ""),
        steps={time: [step_label(one, time, i) for i in range(two.n_steps)] for time in two.times},
        whole_day=WHOLE_DAY if WHOLE_DAY in two.times else None,
        sums=sums,
    )
