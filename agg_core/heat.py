"""People per block over the day: what the heatmap and its time slider show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["DayProfile", "day_profile", "local_dates"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DayProfile:
    """Counts per step of the day.

    ``labels`` are local times HH:MM; ``counts`` (n, d) people per block and ``outside`` (n,) people
    beyond the grid at each of them.
    """

    labels: tuple[str, ...]
    counts: FloatArray
    outside: FloatArray

    @property
    def totals(self) -> FloatArray:
        """People on the grid at each step (n,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def largest(self) -> float:
        """Most people in one block at any step, at least 1: the end of the colour scale."""
        return max(float(self.counts.max(initial=0.0)), 1.0)


def local_dates(cell_counts: pd.DataFrame) -> list[str]:
    """Local dates that the counts of `agg_core.trajectories.cell_counts` cover, in order."""
    return sorted(cell_counts["time"].dt.strftime("%Y-%m-%d").unique())


def day_profile(cell_counts: pd.DataFrame, n_cells: int, date: str | None = None) -> DayProfile:
    """Counts by time of day, of one local date or as the mean over all dates that have data."""
    clock = cell_counts["time"].dt.strftime("%H:%M")
    days = cell_counts["time"].dt.strftime("%Y-%m-%d")
    chosen = cell_counts.assign(clock=clock, day=days)
    if date is not None:
        chosen = chosen.loc[chosen["day"] == date]
    labels = np.unique(chosen["clock"].to_numpy(dtype=str))
    table = np.zeros((len(labels), n_cells + 1))
    step = np.searchsorted(labels, chosen["clock"].to_numpy(dtype=str))
    np.add.at(table, (step, chosen["cell"].to_numpy()), chosen["count"].to_numpy(dtype=float))
    days_with_data = chosen.groupby("clock")["day"].nunique().reindex(labels).to_numpy(dtype=float)
    table /= days_with_data[:, None]
    return DayProfile(tuple(labels.tolist()), table[:, :n_cells], table[:, n_cells])
