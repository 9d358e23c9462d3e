"""Few people per cell: flows learned by drawing who of a cell went where."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.moves import entries
from agg_core.counts.filling import whole_pairs
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import Strength, Tied, tied_rows
from agg_core.counts.state import FlowState, apart, begin_rows
from agg_core.learn.averaging import RecentMean
from agg_core.learn.esteps.sampling import sampled_moves
from agg_core.learn.mstep import Statistics
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import CategoricalEmission

__all__ = ["drawn_steps"]

FloatArray = npt.NDArray[np.float64]

ROUNDS = 2
UPDATES = 5
"""Rounds of the sampler per M-step, and M-steps per state that is given."""

NEW_SHARE = 0.3


def drawn_steps(
    pairs: CountPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    start: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[FlowState]:
    """Stochastic approximation EM over pairs of counts, without end.

    Who of a pair's first moment is who at its second is drawn from the exact posterior (see
    `agg_core.learn.esteps.sampling.sampled_moves`), and the moves expected from that go through
    `tied_rows`. What is given are the rows of the moves averaged over the
    last third to two thirds of the way.
    ``start`` (H or 1, d, d) are transitions to begin with, ``shape`` else.
    """
    by_time = strength.by_time
    whole = whole_pairs(pairs.before, pairs.after)
    somebody = whole[:, 0].any(axis=1)
    people = Aggregates.from_dense(whole[somebody])
    table = CategoricalEmission(np.eye(pairs.n_states)).likelihoods(people)
    slot = pairs.slot if by_time else np.zeros_like(pairs.slot)
    which = slot[somebody, None]
    n_slots = len(pairs.slots) if by_time else 1
    transmats = begin_rows(shape if start is None else start, n_slots)
    even = np.full(pairs.n_states, 1 / pairs.n_states)
    seed = int(np.random.default_rng(random_state).integers(2**31))
    chain: Any = None
    running: FloatArray | None = None
    recent = RecentMean()
    before = transmats
    tied: Tied | None = None
    for iteration in count(1):
        for _ in range(UPDATES):
            drawn = sampled_moves(
                even, transmats, which, people, table, messages=chain, max_sweeps=ROUNDS, seed=seed
            )
            chain, moves = drawn.messages, drawn.moves
            running = moves if running is None else running + NEW_SHARE * (moves - running)
            tied = tied_rows(running, shape, strength, tied)
            transmats = tied.transmats
            recent.add(Statistics(even, moves))
        found = tied_rows(entries(recent.mean.transitions), shape, strength, tied).transmats
        yield FlowState(iteration, found, apart(before, found, pairs))
        before = found
