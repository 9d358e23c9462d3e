"""Expectation-maximisation as a stream of states, plain and accelerated."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import Course
from agg_core.base.errors import UnreachableError
from agg_core.base.moves import entries, origin_sums
from agg_core.learn.esteps.base import ExpectedCounts, Inference
from agg_core.learn.mstep import (
    ROUNDING,
    Pull,
    Statistics,
    check_parts,
    distance,
    maximised,
    remaining,
)
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import Emission, TokenLikelihoods, near_probs, near_rows
from agg_core.model.hmm import HMM

__all__ = [
    "MAX_SWEEPS",
    "SWEEP_TOL",
    "EMState",
    "Iteration",
    "LearnState",
    "accelerated_em_steps",
    "em_steps",
]

FloatArray = npt.NDArray[np.float64]

SWEEP_TOL = 1e-3
"""Counts met to a thousandth of the people: the flows then move by far less than EM's next step."""

MAX_SWEEPS = 30
"""Sweeps per E-step; messages are kept, so that the next E-step goes on where this one ended."""

LONGEST_LEAP = 4096.0
"""An extrapolated step is at most so many EM steps long."""

STRETCHES = 4
"""Pairs of EM steps that tell how many steps as long as the last one are still to go."""

SLACK = 1e-7
"""A leap may raise the free energy by this part of it: E-steps end at a tolerance."""


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """Where an iteration stands, without its parameters: what those who only wait want to know.

    Attributes
    ----------
    iteration : 1 for the first
    free_energy, change : as of `LearnState`
    """

    iteration: int
    free_energy: float
    change: float


@dataclass(frozen=True, kw_only=True)
class LearnState(Iteration):
    """One iteration of a learner.

    Attributes
    ----------
    iteration : 1 for the first
    hmm : the parameters after it
    free_energy : what the learner minimises, under the parameters before; -log-likelihood for
        cfb at M = 1. Objectives of different learners do not compare
    change : how far the parameters moved, or, of learners that know it, how far they still are
        from where they would stand still (see `agg_core.learn.mstep.distance`)
    n_empty : rows of transmat that no one is expected in; they keep their old value
    sweeps : mean number of sweeps that the sequences took
    n_unconverged : sequences whose E-step reached the limit of sweeps
    noise : what ``change`` cannot be told from nothing below: the noise of sampling
    of_people : the chain whose moves are those expected of the people who were observed, without
        the people of a prior, which ``hmm`` is pulled by; None where nothing is pulled or expected
    """

    hmm: HMM
    n_empty: int
    sweeps: float
    n_unconverged: int
    noise: float = 0.0
    of_people: HMM | None = None


@dataclass(frozen=True, kw_only=True)
class EMState(LearnState):
    """One iteration of EM; ``expected`` is the E-step under the parameters before."""

    expected: ExpectedCounts | None = None


@dataclass
class _Map:
    """The step of EM from parameters to parameters; messages are kept between calls."""

    aggregates: Aggregates
    inference: Inference
    fixed: Collection[str]
    pull: Pull | None
    sweep_tol: float
    max_sweeps: int
    messages: Any = None
    n_steps: int = 0
    known: tuple[Emission, TokenLikelihoods] | None = None

    def _likelihoods(self, emission: Emission) -> TokenLikelihoods:
        """Those of the last emission are kept: a fixed one needs them once."""
        if self.known is None or self.known[0] is not emission:
            self.known = emission, emission.likelihoods(self.aggregates)
        return self.known[1]

    def __call__(self, hmm: HMM) -> EMState:
        self.n_steps += 1
        likelihoods = self._likelihoods(hmm.emission)
        expected = self.inference(
            hmm, self.aggregates, likelihoods, messages=self.messages, tol=self.sweep_tol,
            max_sweeps=self.max_sweeps, with_emission="emission" not in self.fixed,
        )  # fmt: skip
        self.messages = expected.messages
        statistics = Statistics.of(expected, hmm, self.aggregates, likelihoods)
        after = maximised(statistics, hmm, fixed=self.fixed, pull=self.pull)
        row_people = origin_sums(expected.transitions)
        return EMState(
            iteration=self.n_steps,
            hmm=after,
            free_energy=expected.free_energy,
            change=distance(hmm, after, row_people),
            n_empty=int((row_people == 0).sum()) if self.aggregates.length > 1 else 0,
            sweeps=expected.sweeps,
            n_unconverged=expected.n_unconverged,
            of_people=None if self.pull is None else maximised(statistics, hmm, fixed=self.fixed),
            expected=expected,
        )


def em_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: Inference,
    fixed: Collection[str] = (),
    sweep_tol: float = SWEEP_TOL,
    max_sweeps: int = MAX_SWEEPS,
    pull: Pull | None = None,
    course: Course | None = None,
) -> Iterator[EMState]:
    """Expectation-maximisation from ``hmm`` on, without end (Algorithm 2 of the paper).

    Each M-step sets startprob, transmat and emission to the normalised expected counts
    (Proposition 1; a sequence of M_k people counts M_k times), but for the parts in ``fixed``.
    With a ``pull`` its people are added to the transitions. What a ``course`` stood at is gone on
    from.

    Raises
    ------
    InputError
        If ``fixed`` names no part of the model, shapes do not fit, or observations cannot happen.
    """
    check_parts(fixed)
    step = _Map(aggregates, inference, fixed, pull, sweep_tol, max_sweeps)
    if course is not None and course.stood is not None:
        hmm, step.messages, step.n_steps = course.stood

    def stands() -> tuple[Any, ...]:
        return hmm, step.messages, step.n_steps

    while True:
        state = step(hmm)
        hmm = state.hmm
        if course is not None:
            course.note(stands)
        yield state


def accelerated_em_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: Inference,
    fixed: Collection[str] = (),
    sweep_tol: float = SWEEP_TOL,
    max_sweeps: int = MAX_SWEEPS,
    pull: Pull | None = None,
    course: Course | None = None,
) -> Iterator[EMState]:
    """EM with leaps (SQUAREM; Varadhan & Roland, Scand. J. Stat. 2008), for large groups.

    Groups of M people hide all but about 1 / M of the information, so plain EM needs about M
    iterations. From theta_0, EM steps to theta_1 and theta_2 give r = theta_1 - theta_0 and
    v = theta_2 - theta_1 - r; the leap goes to theta_0 + 2 a r + a^2 v with a = |r| / |v|, put
    back among the probabilities, and a further EM step from there. A leap after which the free
    energy would be higher is not taken, and the next ones are kept shorter. Each iteration is one
    E-step, so that costs compare with `em_steps`; ``free_energy`` is that of the parameters kept.

    ``change`` is the distance to the fixed point: the length of an EM step divided by 1 - q, where
    q is how much shorter the second of two EM steps was than the first, at the slowest of the last
    four times: a leap may have hidden for a while what moves slowly.

    Raises
    ------
    InputError
        As `em_steps`.
    """
    check_parts(fixed)
    step = _Map(aggregates, inference, fixed, pull, sweep_tol, max_sweeps)
    longest, stretches = 4.0, deque[float](maxlen=STRETCHES)
    if course is not None and course.stood is not None:
        hmm, step.messages, step.n_steps, longest, stretches = course.stood

    def note() -> None:
        if course is not None:
            course.note(lambda: (hmm, step.messages, step.n_steps, longest, stretches))

    while True:
        first = step(hmm)
        yield replace(first, change=_to_go(first.change, stretches))
        second = step(first.hmm)
        to_go = remaining(first.change, second.change)
        if ROUNDING < second.change < first.change:
            stretches.append(to_go / second.change)
            to_go = _to_go(second.change, stretches)
        leap, length = _leap(hmm, first.hmm, second.hmm, longest)
        hmm, messages = second.hmm, step.messages
        if length <= 1.0:
            note()
        yield replace(second, change=to_go)
        if length <= 1.0:
            continue
        try:
            landed = step(leap)
        except UnreachableError:
            landed = None
        allowed = second.free_energy + SLACK * abs(second.free_energy)
        if landed is not None and landed.free_energy <= allowed:
            hmm = landed.hmm
            longest = min(4 * longest, LONGEST_LEAP) if length >= longest else longest
            note()
            yield replace(landed, change=max(to_go, landed.change))
        else:
            step.messages = messages
            longest = max(longest / 4, 2.0)
            note()
            yield replace(second, iteration=step.n_steps, change=to_go)


def _to_go(length: float, stretches: Collection[float]) -> float:
    """How far it is after an EM step of this length, by the longest of recent stretches."""
    if length < ROUNDING:
        return length
    farthest = max(2.0, length)
    return min(length * max(stretches), farthest) if stretches else farthest


def _leap(start: HMM, once: HMM, twice: HMM, longest: float) -> tuple[HMM, float]:
    """The extrapolated parameters, and how many EM steps long the leap is."""
    points = [
        _values(hmm, learned=start.emission is not twice.emission) for hmm in (start, once, twice)
    ]
    r = [b - a for a, b in zip(points[0], points[1], strict=True)]
    v = [c - b - d for b, c, d in zip(points[1], points[2], r, strict=True)]
    size_r, size_v = (np.sqrt(sum(float((part**2).sum()) for part in p)) for p in (r, v))
    a = float(min(size_r / size_v, longest)) if size_v > 0 else 1.0
    if a <= 1.0:
        return twice, 1.0
    moved = [p + 2 * a * dr + a * a * dv for p, dr, dv in zip(points[0], r, v, strict=True)]
    return HMM(
        near_probs(moved[0], twice.startprob),
        near_rows(moved[1], twice.transmat),
        twice.emission.with_values(moved[2]) if len(moved) > 2 else twice.emission,
    ), a


def _values(hmm: HMM, *, learned: bool) -> list[FloatArray]:
    """The parameters that a leap moves."""
    chain = [hmm.startprob, entries(hmm.transmat)]
    return chain + ([hmm.emission.values] if learned else [])
