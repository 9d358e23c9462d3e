"""Soft counts: part of each change is taken for an error of counting, not for people who moved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from agg_core.counts.held_out import expected_next
from agg_core.counts.pairs import CountPairs

__all__ = ["softened"]

FloatArray = npt.NDArray[np.float64]

LEAST = 1e-9


def softened(pairs: CountPairs, transmats: FloatArray, trust: float) -> CountPairs:
    """Pairs whose next counts lie between what was counted and what transitions predict.

    A count y of which xi were expected becomes y^w xi^(1 - w), scaled so that a pair keeps its
    people; w is ``trust``, from 1 (counts are exact) to 0 (counts tell nothing). With transitions
    (H, d, d) or (1, d, d) learned from these again, and so on, a belief is corrected by the factor
    (y / xi)^w in place of y / xi, as a soft observation does in belief propagation.
    """
    if trust >= 1:
        return pairs
    expected = np.maximum(expected_next(pairs, transmats), LEAST)
    after = np.maximum(pairs.after, 0.0) ** trust * expected ** (1 - trust)
    people = pairs.after.sum(axis=1, keepdims=True)
    return replace(
        pairs, after=after * people / np.maximum(after.sum(axis=1, keepdims=True), LEAST)
    )
