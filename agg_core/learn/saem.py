"""Learning by sampling individual assignments: EM whose E-step is drawn and averaged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from agg_core.base.checkpoints import Course
from agg_core.base.moves import origin_sums
from agg_core.learn.averaging import RecentMean, Settling
from agg_core.learn.em import LearnState
from agg_core.learn.esteps.sampling import sampled_counts
from agg_core.learn.mstep import Pull, Statistics, check_parts, maximised
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM

__all__ = ["SAMPLING_NOISE", "m_steps_per_iteration", "sampling_steps"]

FEWEST_UPDATES = 5
MOST_UPDATES = 20
SLOTS_PER_ITERATION = 250_000
"""M-steps per iteration: large groups need many, so there are as many as leave an iteration with
so many draws of people at a step, between these limits."""

ROUNDS = 2
"""Rounds of the sampler per M-step; the chain goes on where it was."""

NEW_SHARE = 0.3
"""Weight of new counts in the running ones that an M-step sees."""

LEAST_PULL = 0.05
"""People that pull each row at least: without, a move not drawn for a while would be lost."""

SAMPLING_NOISE = 0.01
"""A change of averaged parameters below this is taken for the noise of sampling."""


def m_steps_per_iteration(n_slots: float) -> int:
    """M-steps in an iteration over so many people at a step, ``n_slots`` = N T."""
    return int(np.clip(SLOTS_PER_ITERATION // max(n_slots, 1), FEWEST_UPDATES, MOST_UPDATES))


def sampling_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    pull: Pull | None = None,
    random_state: int | np.random.Generator | None = None,
    course: Course | None = None,
) -> Iterator[LearnState]:
    """Stochastic approximation EM (Delyon, Lavielle & Moulines 1999) from ``hmm``, without end.

    The E-step is `sampled_counts`, exact but for noise at every size of group. Each iteration has 5
    to 20 M-steps, with the counts of two rounds each, mixed into running ones with weight 0.3. What
    is given is the M-step of the counts averaged over the last third to two thirds of the way, so
    that noise goes on falling.

    ``change`` is how far the averages still are from where they settle (see `Settling`), and
    ``free_energy`` the complete-data energy, which wavers. What a ``course`` stood at is gone on
    from.

    Raises
    ------
    InputError
        If groups hold parts of people, or ``fixed`` names no part; `UnreachableError` if
        observations cannot happen.
    """
    check_parts(fixed)
    seed = int(np.random.default_rng(random_state).integers(2**31))
    pull = pull or Pull(hmm.transmat, 0.0)
    least = Pull(pull.shape, LEAST_PULL)
    held = pull if pull.strength > LEAST_PULL else least
    updates = m_steps_per_iteration(aggregates.n_individuals * aggregates.length)
    likelihoods = hmm.emission.likelihoods(aggregates)
    messages: Any = None
    running: Statistics | None = None
    recent, settling = RecentMean(), Settling()
    iteration = 0
    if course is not None and course.stood is not None:
        iteration, hmm, messages, running, recent, settling = course.stood
        likelihoods = hmm.emission.likelihoods(aggregates)

    def stands() -> tuple[Any, ...]:
        return iteration, hmm, messages, running, recent, settling

    while True:
        iteration += 1
        energy = 0.0
        for _ in range(updates):
            drawn = sampled_counts(
                hmm, aggregates, likelihoods, messages=messages, max_sweeps=ROUNDS,
                with_emission="emission" not in fixed, seed=seed,
            )  # fmt: skip
            messages = drawn.messages
            energy += drawn.free_energy / updates
            new = Statistics.of(drawn, hmm, aggregates, likelihoods)
            running = new if running is None else running.towards(new, NEW_SHARE)
            before, hmm = hmm, maximised(running, hmm, fixed=fixed, pull=held)
            if hmm.emission is not before.emission:
                likelihoods = hmm.emission.likelihoods(aggregates)
            if recent.add(new):
                block = maximised(recent.last_block, hmm, fixed=fixed, pull=held)
                settling.report(block, origin_sums(new.transitions))
        mean = recent.mean
        if course is not None:
            course.note(stands)
        yield LearnState(
            iteration=iteration,
            hmm=maximised(mean, hmm, fixed=fixed, pull=held),
            free_energy=energy,
            change=settling.change,
            n_empty=int((origin_sums(mean.transitions) == 0).sum()) if aggregates.length > 1 else 0,
            sweeps=float(updates * ROUNDS),
            n_unconverged=drawn.n_unconverged,
            noise=SAMPLING_NOISE,
            of_people=maximised(mean, hmm, fixed=fixed, pull=least),
        )
