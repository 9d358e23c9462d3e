"""Where a learner from counts stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.counts.pairs import CountPairs

__all__ = ["FlowState", "apart", "begin_rows"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlowState:
    """An iteration: ``transmats`` (H, d, d), or (1, d, d) for all times of day, and their move.

    ``change`` is how far the rows moved in L1, a mean over people, 0 to 2. ``logits`` are those of
    the dense learner, from which it can go on (see `agg_core.counts.dense.Problem.begun`).
    """

    iteration: int
    transmats: FloatArray
    change: float
    logits: FloatArray | None = None


def apart(before: FloatArray, after: FloatArray, pairs: CountPairs) -> float:
    """L1 distance of rows of transitions, a mean over the people who are in them."""
    people = pairs.people if len(after) > 1 else pairs.people.sum(axis=0)[None]
    rows = np.abs(after - before).sum(axis=2)
    return float((rows * people).sum() / max(people.sum(), 1e-300))


def begin_rows(rows: FloatArray, n_slots: int) -> FloatArray:
    """Transitions for every slot from (d, d), from one matrix, from as many, or for day types."""
    given = rows if rows.ndim == 3 else rows[None]
    if len(given) == n_slots:
        return given.copy()
    types, rest = divmod(n_slots, len(given))
    if types and not rest:
        return np.concatenate([given] * types)
    return np.repeat(given.mean(axis=0)[None], n_slots, axis=0)
