"""Flow tables: who goes from which cell to which, and how well an estimate meets the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.errors import InputError
from agg_core.grid import Grid
from agg_core.sequences import Sequences

__all__ = ["FlowComparison", "compare_flows", "count_flows", "flow_table", "people_per_block"]

FloatArray = npt.NDArray[np.float64]

COLUMNS = ["origin", "dest", "count", "origin_lon", "origin_lat", "dest_lon", "dest_lat"]


def flow_table(
    startprob: npt.ArrayLike, transmat: npt.ArrayLike, grid: Grid, population: float, length: int
) -> pd.DataFrame:
    """People per step from each cell to each, under a Markov chain of ``length`` steps.

    ``count`` is the population times the mean over the length - 1 steps of
    P(origin at t, dest at t + 1). Stays (origin = dest) are rows like others. The outside state,
    if there is one, is cell ``grid.n_cells`` and has no place (nan).

    Returns
    -------
    DataFrame with origin, dest, count, and the places of both ends in degrees; largest first.

    Raises
    ------
    InputError
        If ``length`` is below 2: one step has no moves.
    """
    if length < 2:
        raise InputError(f"Flows need windows of 2 steps or more; the length was {length}.")
    trans = np.asarray(transmat, dtype=np.float64)
    at = np.asarray(startprob, dtype=np.float64)
    steps = length - 1
    origins = np.zeros_like(at)
    for _ in range(steps):
        origins += at
        at = at @ trans
    return _table(population / steps * origins[:, None] * trans, grid)


def count_flows(sequences: Sequences, grid: Grid) -> pd.DataFrame:
    """People per step from each cell to each, counted from state sequences: the truth.

    Same columns and meaning as `flow_table`: counts are a mean over the T - 1 steps.
    """
    d = sequences.n_states
    states = sequences.states
    pair = (states[:, :-1] * d + states[:, 1:]).ravel()
    steps = states.shape[1] - 1
    counts = np.bincount(pair, weights=np.repeat(sequences.weights, steps), minlength=d * d)
    return _table(counts.reshape(d, d) / max(steps, 1), grid)


def _table(counts: FloatArray, grid: Grid) -> pd.DataFrame:
    origin, dest = np.nonzero(counts)
    places = np.vstack([grid.centroids, [[np.nan, np.nan]]])
    table = pd.DataFrame(
        {
            "origin": origin,
            "dest": dest,
            "count": counts[origin, dest],
            "origin_lon": places[origin, 0],
            "origin_lat": places[origin, 1],
            "dest_lon": places[dest, 0],
            "dest_lat": places[dest, 1],
        },
        columns=COLUMNS,
    )
    return table.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def people_per_block(flows: pd.DataFrame, grid: Grid) -> FloatArray:
    """People in each block at the beginning of a step, (d,): those who stay and those who go.

    An estimate leaves traces of people everywhere; less than half a person counts as nobody.
    """
    people = np.zeros(grid.n_cells + 1)
    np.add.at(people, flows["origin"].to_numpy(), flows["count"].to_numpy(dtype=float))
    return np.where(people < 0.5, 0.0, people)[: grid.n_cells]


@dataclass(frozen=True)
class FlowComparison:
    """How an estimate of moves (origin not dest) meets the truth.

    Attributes
    ----------
    cpc : common part of commuters, sum 2 min(e, t) / (sum e + sum t); 1 is perfect
    correlation : Pearson, over all ordered pairs of different cells that occur in either table
    precision : share of the estimate's arrows (count above the threshold) that are true arrows
    recall : share of the true arrows that the estimate has
    total_ratio : all estimated moves over all true moves; above 1 movement is invented

    A figure that has no meaning (no arrows, no moves) is nan.
    """

    cpc: float
    correlation: float
    precision: float
    recall: float
    total_ratio: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON: nan becomes None."""
        return {k: None if np.isnan(v) else v for k, v in asdict(self).items()}


def compare_flows(
    estimate: pd.DataFrame, truth: pd.DataFrame, threshold: float = 35.0
) -> FlowComparison:
    """Compare two flow tables; stays are left out, pairs missing in a table count as 0."""
    key = ["origin", "dest"]
    keys = [*(["anchor"] if "anchor" in estimate and "anchor" in truth else []), *key]
    moves = [
        table.loc[table["origin"] != table["dest"]].groupby(keys)["count"].sum()
        for table in (estimate, truth)
    ]
    both = pd.concat(moves, axis=1, keys=["e", "t"]).fillna(0.0)
    e, t = both["e"].to_numpy(dtype=float), both["t"].to_numpy(dtype=float)
    cells = pd.unique(pd.concat([table[c] for table in (estimate, truth) for c in key]))
    layers = 1
    if len(keys) == 3:
        layers = pd.concat([estimate["anchor"], truth["anchor"]]).nunique()
    n_pairs = len(cells) * (len(cells) - 1) * layers
    shown, true = e > threshold, t > threshold
    hits = float((shown & true).sum())
    return FlowComparison(
        cpc=_ratio(2 * np.minimum(e, t).sum(), e.sum() + t.sum()),
        correlation=_correlation(e, t, n_pairs),
        precision=_ratio(hits, float(shown.sum())),
        recall=_ratio(hits, float(true.sum())),
        total_ratio=_ratio(e.sum(), t.sum()),
    )


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")


def _correlation(e: FloatArray, t: FloatArray, n: int) -> float:
    """Pearson correlation over n pairs, of which only those not both zero are listed."""
    if n < 2:
        return float("nan")
    centred = [side - side.sum() / n for side in (e, t)]
    means = [side.sum() / n for side in (e, t)]
    unlisted = n - len(e)
    covariance = centred[0] @ centred[1] + unlisted * means[0] * means[1]
    variances = [c @ c + unlisted * mean**2 for c, mean in zip(centred, means, strict=True)]
    # Rounding leaves a trace of variance where all values are equal.
    floor = [1e-24 * n * mean**2 for mean in means]
    if any(v <= least for v, least in zip(variances, floor, strict=True)):
        return float("nan")
    return float(covariance / np.sqrt(variances[0] * variances[1]))
