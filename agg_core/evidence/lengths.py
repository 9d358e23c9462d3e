"""How far people go: the distribution of the lengths of moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.evidence.measures import coincidence_ratio
from agg_core.evidence.sums import CellFlows, Sums
from agg_core.space.grid import BaseGrid

__all__ = [
    "FIGURES",
    "LengthSums",
    "bins_with_people",
    "length_bins",
    "length_sums",
    "straight_km",
]

FloatArray = npt.NDArray[np.float64]

BINS = 20
"""Bins of a histogram of lengths, about."""

FIGURES = ("mean_km", "sd_km", "share_within", "coincidence")
"""Names of figures of lengths."""

ROUNDING = 1e-9

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Round widths of bins, times powers of ten."""


@dataclass(frozen=True)
class LengthSums:
    """Sums from which figures of the lengths of moves follow.

    ``sums`` are people by bin of length, then people who move, their kilometres, their squared
    kilometres, and people who stay; ``edges`` (n + 1,) are the borders of the bins in km.
    """

    edges: FloatArray
    sums: Sums

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def by_bin(self) -> Sums:
        """People by bin of length, (n,)."""
        return self.sums.take(slice(0, self.n_bins))

    def figures(self, counted: LengthSums | None = None) -> Sums:
        """Figures by `FIGURES`: mean and standard deviation of lengths of moves, share of people
        who stay, and with ``counted`` lengths how far both coincide. nan where nobody moves; where
        worlds are too far off for a spread, it has no interval.
        """

        def of(sums: FloatArray) -> FloatArray:
            found = _figures(sums)
            if counted is not None:
                beside = coincidence_ratio(sums[..., : self.n_bins], counted.by_bin.estimate)
                found = np.concatenate([found, beside[..., None]], axis=-1)
            return found

        return self.sums.figures(of)


def _figures(sums: FloatArray) -> FloatArray:
    moved, km, squared, stayed = np.moveaxis(sums[..., -4:], -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = km / moved
        # Sums that are too far off for a spread have a variance below 0, by more than rounding.
        share = squared / (moved * mean**2) - 1
        spread = mean * np.sqrt(np.where(np.abs(share) < ROUNDING, 0.0, share))
        return np.stack([mean, spread, stayed / (stayed + moved)], axis=-1)


def bins_with_people(rows: pd.DataFrame) -> pd.DataFrame:
    """Bins up to the last that holds more than a thousandth of the largest.

    ``rows`` are those of one time of a histogram, with count and reference (see `Evidence`).
    """
    most = rows[["count", "reference"]].astype(float).max(axis=1).fillna(0.0).to_numpy()
    some = np.flatnonzero(most > most.max(initial=0.0) / 1000)
    return rows.iloc[: int(some[-1]) + 1] if len(some) else rows


def straight_km(grid: BaseGrid, flows: CellFlows) -> FloatArray:
    """Straight kilometres between the middles of the cells of each pair, (P,)."""
    middles = grid.centroids_m
    apart = middles[flows.dest] - middles[flows.origin]
    return np.asarray(np.hypot(*apart.T) / 1000)


def length_bins(longest_km: float) -> FloatArray:
    """Borders (n + 1,) of about `BINS` bins of a round width, in km."""
    if not longest_km > 0:
        return np.array([0.0, 1.0])
    least = longest_km / BINS
    power = 10.0 ** np.floor(np.log10(least))
    width = power * next(step for step in STEPS if step * power >= least * (1 - 1e-9))
    return np.asarray(width * np.arange(int(np.ceil(longest_km / width * (1 - 1e-12))) + 1))


def length_sums(flows: CellFlows, km: FloatArray, edges: FloatArray) -> LengthSums:
    """Sum flows by the length (P,) in km of each pair.

    Raises
    ------
    InputError
        If a length is no number or negative.
    """
    if not (np.isfinite(km).all() and (km >= 0).all()):
        raise InputError(
            "Some distances between cells are missing or negative; give one for every pair.",
            code="distance-missing",
        )
    n, moves = len(edges) - 1, flows.moves.astype(float)
    of_bin = np.clip(np.searchsorted(edges, km, side="right") - 1, 0, n - 1)
    of_bin = np.where(flows.moves, of_bin, -1)
    bins = flows.by(of_bin, n)
    rest = flows.summed(np.stack([moves, moves * km, moves * km**2, 1 - moves]))
    errors = None
    if bins.errors is not None and rest.errors is not None:
        errors = np.concatenate([bins.errors, rest.errors], axis=1)
    return LengthSums(edges, Sums(np.concatenate([bins.estimate, rest.estimate]), errors))
