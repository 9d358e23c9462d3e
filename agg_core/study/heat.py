"""People per cell over the day: what the heatmap and its time slider show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED, CountTable, expected_of_hidden

__all__ = ["DayProfile", "counted_profile", "day_profile", "local_dates", "mean_counts"]

FloatArray = npt.NDArray[np.float64]
Moments = slice | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DayProfile:
    """Counts per step of the day.

    ``labels`` are local times HH:MM; ``counts`` (n, d) people per cell and ``outside`` (n,) people
    beyond the grid at each of them. ``between`` (n, 2) are the fewest and the most people that the
    grid can hold, where some counts are suppressed.
    """

    labels: tuple[str, ...]
    counts: FloatArray
    outside: FloatArray
    between: FloatArray | None = None

    @property
    def totals(self) -> FloatArray:
        """People on the grid at each step (n,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def largest(self) -> float:
        """Most people in one cell at any step, at least 1: the end of the colour scale."""
        return max(float(self.counts.max(initial=0.0)), 1.0)


def local_dates(cell_counts: pd.DataFrame) -> list[str]:
    """Local dates that the counts of `agg_core.tables.sequences.cell_counts` cover, in order."""
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


def mean_counts(table: CountTable) -> FloatArray:
    """Mean people of each cell over the moments at which it was measured, (c,); 0 if it never was.

    A suppressed count is taken for what is expected of one: the mean of the published ones alone
    would be too large, as those that lack are the small ones.
    """
    return _means(table, slice(None), _expected(table))


def counted_profile(table: CountTable) -> DayProfile:
    """Means of counts by time of day, as `mean_counts`; nothing is known of people elsewhere."""
    values = (0.0, _expected(table), table.suppressed_below)
    least, taken, most = (
        np.array([_means(table, table.slot == slot, each) for slot in range(len(table.slots))])
        for each in values
    )
    between = np.column_stack([least.sum(axis=1), most.sum(axis=1)])
    return DayProfile(table.slots, taken, np.full(len(table.slots), np.nan), between)


def _expected(table: CountTable) -> float:
    seen = table.counts[table.status == PUBLISHED]
    return expected_of_hidden(seen, table.n_suppressed, table.suppressed_below)


def _means(table: CountTable, moments: Moments, suppressed: float) -> FloatArray:
    """Means (c,) over some moments, with suppressed counts as a number."""
    counts, status = table.counts[moments], table.status[moments]
    total = np.nansum(np.where(status == SUPPRESSED, suppressed, counts), axis=0)
    number = (status != MISSING).sum(axis=0)
    return np.asarray(total / np.maximum(number, 1), dtype=np.float64)
