"""Learners that are no EM on an E-step, as streams of states that their table refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from agg_core.base.checkpoints import Course
from agg_core.learn.em import LearnState
from agg_core.learn.esteps.gaussian_pairs import gaussian_pairs_steps
from agg_core.learn.esteps.pairs import PairsState, least_squares_steps
from agg_core.learn.mstep import Pull
from agg_core.learn.saem import sampling_steps
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM

__all__ = ["gaussian_pairs", "least_squares", "sampling"]


def sampling(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str],
    prior: float,
    random_state: int | np.random.Generator | None,
    begin: HMM | None = None,
    course: Course | None = None,
) -> Iterator[LearnState]:
    """`sampling_steps` from ``begin``, pulled towards what the transitions of ``hmm`` predict."""
    pull, start = Pull(hmm.transmat, prior), hmm if begin is None else begin
    return sampling_steps(
        aggregates, start, fixed=fixed, pull=pull, random_state=random_state, course=course
    )


def gaussian_pairs(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str],
    prior: float,
    begin: HMM | None = None,
    course: Course | None = None,
) -> Iterator[LearnState]:
    """`gaussian_pairs_steps`, told as the other learners are."""
    steps = gaussian_pairs_steps(
        aggregates, hmm, fixed=fixed, prior=prior, begin=begin, course=course
    )
    return _told(steps, hmm)


def least_squares(
    aggregates: Aggregates, hmm: HMM, *, fixed: Collection[str], course: Course | None = None
) -> Iterator[LearnState]:
    """`least_squares_steps`, told as the other learners are."""
    return _told(least_squares_steps(aggregates, hmm, fixed=fixed, course=course), hmm)


def _told(steps: Iterator[PairsState], hmm: HMM) -> Iterator[LearnState]:
    for state in steps:
        yield LearnState(
            iteration=state.iteration,
            hmm=HMM(state.startprob, state.transmat, hmm.emission),
            free_energy=state.objective,
            change=state.change,
            n_empty=state.n_empty,
            sweeps=1.0,
            n_unconverged=0,
        )
