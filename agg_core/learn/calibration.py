"""Calibration: any E-step made right on average, by what it does to simulated groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.checkpoints import Course
from agg_core.base.engine import current
from agg_core.base.errors import InputError
from agg_core.base.moves import counted_like, entries, moves_like, origin_sums
from agg_core.learn.averaging import RecentMean, Settling
from agg_core.learn.em import MAX_SWEEPS, SWEEP_TOL, LearnState
from agg_core.learn.esteps.base import ExpectedCounts, Inference
from agg_core.learn.esteps.sampling import whole_people
from agg_core.learn.mstep import Pull, Statistics, check_parts, maximised
from agg_core.learn.worlds import grouped_like
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import Emission, TokenLikelihoods
from agg_core.model.hmm import HMM

__all__ = ["CALIBRATION_NOISE", "calibrated_steps", "simulated_groups"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PLAIN_STEPS = 5
"""Iterations without correction first: far from the data a correction says little."""

NEW_SHARE = 0.2
"""Weight of the newest correction in the running one: it is noise, and the bias changes slowly."""

KEPT = 0.05

CALIBRATION_NOISE = 0.03
"""A change of averaged parameters below this is taken for the noise of simulation."""


def calibrated_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: Inference,
    replicates: int = 1,
    fixed: Collection[str] = (),
    pull: Pull | None = None,
    sweep_tol: float = SWEEP_TOL,
    max_sweeps: int = MAX_SWEEPS,
    random_state: int | np.random.Generator | None = None,
    course: Course | None = None,
) -> Iterator[LearnState]:
    """EM on E-steps corrected by their own error on simulated groups, from ``hmm``, without end.

    Each iteration draws, ``replicates`` times, groups of the same sizes and observed steps from
    the present parameters, runs the same E-step on them, and gives the M-step::

        C = C_data + mean over replicates of (C_true - C_simulated),    at least C_data / 20

    C are the statistics of start, transitions and emission; C_true counts the simulated people
    themselves. At the parameters that made the data both E-steps err alike, so these are a fixed
    point whatever the E-step: an unbiased estimating equation (indirect inference; Gourieroux,
    Monfort & Renault 1993). C_true in place of its expectation is a control variate: what chance
    did to the simulated people cancels. The correction is averaged over iterations (weight 0.2
    for the newest), and what is given is the M-step of the C averaged over the last third to two
    thirds of the way. Simulated groups are formed at random: of groups of people who are alike the
    correction is wrong.

    What a ``course`` stood at is gone on from.

    ``change`` is how far the averages still are from where they settle (see `Settling`);
    ``free_energy`` is that of the E-step on the data.

    Raises
    ------
    InputError
        If groups hold parts of people, ``replicates`` is below 1 or ``fixed`` names no part;
        `UnreachableError` if observations cannot happen.
    """
    check_parts(fixed)
    if replicates < 1:
        raise InputError(
            f"calibrate must be 1 or more simulated replicates; it was {replicates}.",
            code="value-out-of-range",
        )
    if not whole_people(aggregates):
        raise InputError(
            "Calibration simulates whole people: counts must be whole numbers that add up to the "
            "size of the group at every step; learn without it.",
            code="not-whole-people",
        )
    rng = np.random.default_rng(random_state)
    with_emission = "emission" not in fixed

    expected = partial(inference, tol=sweep_tol, max_sweeps=max_sweeps, with_emission=with_emission)
    messages: Any = None
    correction: Statistics | None = None
    recent, settling = RecentMean(), Settling()
    iteration = 0
    if course is not None and course.stood is not None:
        iteration, hmm, messages, correction, recent, settling = course.stood
        rng.spawn(replicates * max(iteration - PLAIN_STEPS, 0))  # those that were taken by then
    likelihoods = hmm.emission.likelihoods(aggregates)

    def stands() -> tuple[Any, ...]:
        return iteration, hmm, messages, correction, recent, settling

    while True:
        iteration += 1
        found = expected(hmm, aggregates, likelihoods, messages=messages)
        messages = found.messages
        uncorrected = Statistics.of(found, hmm, aggregates, likelihoods)
        target = uncorrected
        if iteration > PLAIN_STEPS:
            one = partial(_own_error, hmm, aggregates, expected, with_emission)
            errors = current().map(one, rng.spawn(replicates))
            error = reduce(add, errors) * (1 / replicates)
            correction = error if correction is None else correction.towards(error, NEW_SHARE)
            target = _kept_possible(uncorrected + correction, uncorrected, hmm.emission)
        before, hmm = hmm, maximised(target, hmm, fixed=fixed, pull=pull)
        if hmm.emission is not before.emission:
            likelihoods = hmm.emission.likelihoods(aggregates)
        row_people = origin_sums(target.transitions)
        if recent.add(target) and iteration > PLAIN_STEPS:
            block = maximised(recent.last_block, hmm, fixed=fixed, pull=pull)
            settling.report(block, row_people)
        if course is not None:
            course.note(stands)
        yield LearnState(
            iteration=iteration,
            hmm=maximised(recent.mean, hmm, fixed=fixed, pull=pull),
            free_energy=found.free_energy,
            change=settling.change,
            n_empty=int((row_people == 0).sum()) if aggregates.length > 1 else 0,
            sweeps=found.sweeps,
            n_unconverged=found.n_unconverged,
            noise=CALIBRATION_NOISE,
            of_people=None if pull is None else maximised(recent.mean, hmm, fixed=fixed),
        )


def _own_error(
    hmm: HMM,
    aggregates: Aggregates,
    expected: Callable[..., ExpectedCounts],
    with_emission: bool,
    rng: np.random.Generator,
) -> Statistics:
    """What an E-step misses of the people of simulated groups."""
    groups, truth, table = simulated_groups(hmm, aggregates, rng, with_emission)
    found = expected(hmm, groups, table, messages=None)
    return truth - Statistics.of(found, hmm, groups, table)


def _kept_possible(corrected: Statistics, found: Statistics, emission: Emission) -> Statistics:
    """Counts of people, a part of what the E-step found at least: what is lost never comes back."""
    shown = corrected.emission
    if shown is not None and found.emission is not None:
        shown = emission.at_least(shown, KEPT * found.emission)
    return Statistics(
        np.maximum(corrected.start, KEPT * found.start),
        moves_like(
            found.transitions,
            np.maximum(entries(corrected.transitions), KEPT * entries(found.transitions)),
        ),
        shown,
    )


def simulated_groups(
    hmm: HMM,
    aggregates: Aggregates,
    random_state: int | np.random.Generator | None = None,
    with_emission: bool = False,
) -> tuple[Aggregates, Statistics, TokenLikelihoods]:
    """Groups drawn from a model, like given ones in size and in which steps were observed.

    Returns them, the statistics of the people themselves, and the likelihoods of their tokens.
    """
    rng = np.random.default_rng(random_state)
    length, sizes = aggregates.length, aggregates.sizes.astype(np.int64)
    observations, states = hmm.sample(int(sizes.sum()), length, rng)
    step = np.repeat(np.arange(len(sizes)), sizes)[:, None] * length + np.arange(length)
    seen = (np.diff(aggregates.indptr) > 0)[step]
    groups, row = grouped_like(observations[seen], step[seen], aggregates)
    table = hmm.emission.likelihoods(groups)
    d = hmm.n_states
    emission = None
    if with_emission:
        counts = _true_entries(table, row, states[seen])
        emission = hmm.emission.statistics(groups, table, counts)
    truth = Statistics(
        np.bincount(states[:, 0], minlength=d).astype(np.float64),
        counted_like(hmm.transmat, states[:, :-1].ravel(), states[:, 1:].ravel()),
        emission,
    )
    return groups, truth, table


def _true_entries(table: TokenLikelihoods, row: IntArray, states: IntArray) -> FloatArray:
    """How many people each entry of the table stands for: their observation in their state."""
    n_entries = len(table.values)
    place = sparse.csr_array(
        (np.arange(1, n_entries + 1), table.states, table.indptr),
        shape=(len(table.indptr) - 1, table.n_states),
    )
    found = np.asarray(place[row, states]).ravel()
    # 0: a state left out of the support of the place that it showed, too improbable to matter.
    return np.bincount(found[found > 0] - 1, minlength=n_entries).astype(np.float64)
