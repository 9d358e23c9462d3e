"""Sums of flows to hold intervals against: of cells, of districts, of all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.study.reference import FROM, SLACK
from agg_core.study.result import FlowResult

__all__ = ["districts", "held_flows", "held_sums", "sum_masks"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

AT_ONCE = 50
"""Sums that intervals are found of at once."""


def sum_masks(n: int, places: FloatArray | None) -> dict[str, BoolArray]:
    """Masks (K, n, n) of moves among n cells that are summed: of each, of districts, of all.

    ``places`` (n, 2) are in metres, None where cells have none (see `districts`).
    """
    district, cell = districts(n, places), np.eye(n, dtype=bool)
    away, into = ~cell, ~district
    return {
        "out of a cell": cell[:, :, None] & away,
        "into a cell": cell[:, None, :] & away,
        "out of a district": district[:, :, None] & into[:, None, :],
        "into a district": into[:, :, None] & district[:, None, :],
        "within a district": district[:, :, None] & district[:, None, :] & away,
        "all moves": away[None],
    }


def districts(n: int, places: FloatArray | None, number: int = 200) -> BoolArray:
    """Cells (number, n) of districts: a cell and the nearest ones, or any where none has a place.

    Each has 3 to 10 cells, and half of the cells at most.
    """
    rng = np.random.default_rng(0)
    chosen = np.zeros((number, n), dtype=bool)
    for row in chosen:
        middle, size = rng.integers(n), min(int(rng.integers(3, 11)), n // 2)
        apart = rng.random(n) if places is None else np.hypot(*(places - places[middle]).T)
        row[np.argsort(apart, kind="stable")[:size]] = True
    return chosen


def held_flows(truth: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether true moves (..., n, n) lie in their intervals, of those above `FROM` people."""
    moves = ~np.eye(truth.shape[-1], dtype=bool) & (truth > FROM)
    held: BoolArray = (low - SLACK <= truth) & (truth <= high + SLACK)
    return held[moves]


def held_sums(
    result: FlowResult, time: str, source: str, masks: BoolArray, moved: FloatArray
) -> BoolArray:
    """Whether true sums at a time lie in their intervals, of those estimated above `FROM` people.

    ``moved`` (n, n) are the people who moved over the period. Of small sums that were chosen by
    what they truly are, more would be among those that were missed.
    """
    n, d, steps = len(moved), len(result.states.names), result.steps_summed(time)
    flows, held = result.matrix(time, source), []
    for part in np.array_split(masks, len(masks) // AT_ONCE + 1):
        weights = np.zeros((len(part), d, d))
        weights[:, :n, :n] = part
        ends = result.interval(time, source, weights)
        assert ends is not None
        low, high = (end * steps for end in ends)
        truth = np.tensordot(part.astype(float), moved, axes=2)
        shown = steps * np.tensordot(weights, flows, axes=2) > FROM
        held.append(((low - SLACK <= truth) & (truth <= high + SLACK))[shown])
    return np.concatenate(held)
