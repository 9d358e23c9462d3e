"""Few people per cell: flows learned by drawing who of a cell went where."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import Course
from agg_core.base.moves import entries
from agg_core.counts.beside import evidence_beside
from agg_core.counts.pairs import CountPairs
from agg_core.counts.posterior import FlowChains
from agg_core.counts.rows import Strength, Tied, tied_rows
from agg_core.counts.state import FlowState, apart, begin_rows
from agg_core.learn.averaging import RecentMean
from agg_core.learn.mstep import Statistics

__all__ = ["drawn_steps"]

FloatArray = npt.NDArray[np.float64]

FIRST_ROUNDS, ROUNDS = 8, 1
UPDATES = 5
"""Rounds of chains before the first M-step, and for each; and M-steps per state that is given."""

PER_CHAIN = 2
"""People of whom one begins a chain of moves in a round. An M-step reads all tables anew, which
costs more than a round: one whose draws are nearly independent is worth its chains."""

NEW_SHARE = 0.3


def drawn_steps(
    pairs: CountPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    start: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
    course: Course | None = None,
) -> Iterator[FlowState]:
    """Stochastic approximation EM over pairs of counts, without end.

    Who went where between the two counts of a pair is drawn from the exact posterior (see
    `agg_core.counts.posterior.FlowChains`), and the moves expected from that go through
    `tied_rows`. What is given are the rows of the moves averaged over the
    last third to two thirds of the way.
    ``start`` (H or 1, d, d) are transitions to begin with, ``shape`` else; what a ``course`` stood
    at is gone on from as if it had not stopped, by the same ``random_state``.
    """
    pairs, beside = evidence_beside(pairs, strength)
    n_slots = len(pairs.slots) if strength.by_time else 1
    transmats = begin_rows(shape if start is None else start, n_slots)
    even = np.full(pairs.n_states, 1 / pairs.n_states)
    chains = FlowChains(
        pairs, transmats, n_chains=1, per_chain=PER_CHAIN, random_state=random_state
    )
    burn, done = FIRST_ROUNDS, 0
    running: FloatArray | None = None
    recent = RecentMean()
    before = transmats
    tied: Tied | None = None
    if course is not None and course.stood is not None:
        burn = 0
        done, before, running, recent, tied, chains.place = course.stood
        assert tied is not None
        transmats = tied.transmats

    def stands() -> tuple[Any, ...]:
        return iteration, found, running, recent, tied, chains.place

    for iteration in count(done + 1):
        for _ in range(UPDATES):
            chains.moved_by(transmats)
            moves, burn = chains.summed(ROUNDS, burn=burn), 0
            if beside is not None:
                moves = moves + beside.expected(transmats, moves)
            running = moves if running is None else running + NEW_SHARE * (moves - running)
            tied = tied_rows(running, shape, strength, tied)
            transmats = tied.transmats
            recent.add(Statistics(even, moves))
        found = tied_rows(entries(recent.mean.transitions), shape, strength, tied).transmats
        if course is not None:
            course.note(stands)
        yield FlowState(iteration, found, apart(before, found, pairs))
        before = found
