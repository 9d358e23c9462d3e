"""Learning: every learner as a stream of states, and when to stop."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from agg_core.aggregates import Aggregates
from agg_core.errors import InputError, UnreachableError
from agg_core.inference import INFERENCE, POISSON
from agg_core.inference.base import ExpectedCounts, Inference, NoiseMap
from agg_core.inference.pairs import least_squares, least_squares_steps
from agg_core.parameters import HMM

__all__ = [
    "LEARNERS",
    "MOMENTS",
    "NOISE_MAPS",
    "PARTS",
    "ConvergenceMonitor",
    "EMState",
    "LearnState",
    "NoiseMap",
    "Reason",
    "em_steps",
    "inference_named",
    "learn",
    "learner_steps",
    "log_likelihood",
    "moments_start",
    "monitored",
    "resolve_learner",
]

FloatArray = npt.NDArray[np.float64]

PARTS = ("startprob", "transmat", "emission")
"""Parts of the model that can be held fixed."""

MOMENTS = "moments"
"""The learner by conditional least squares, which has no E-step."""

LEARNERS = ("auto", *INFERENCE, MOMENTS)
"""Names of all learners; "auto" is the best there is."""

NOISE_MAPS: tuple[NoiseMap, ...] = get_args(NoiseMap)

Reason = Literal["running", "converged", "limit", "failed"]

SWEEP_TOL = 1e-3
"""Counts met to a thousandth of the people: the flows then move by far less than EM's next step."""

MAX_SWEEPS = 30
"""Sweeps per E-step; messages are kept, so that the next E-step goes on where this one ended."""


MOMENTS_SHARE = 0.95

POISSON_TOL = 1e-6
POISSON_SWEEPS = 500
"""The learners with Poisson noise move in small steps: the limits their papers use."""


@dataclass(frozen=True)
class LearnState:
    """One iteration of a learner.

    Attributes
    ----------
    iteration : 1 for the first
    hmm : the parameters after it
    free_energy : what the learner minimises, under the parameters before; -log-likelihood for
        cfb at M = 1. Objectives of different learners do not compare
    change : how far the parameters moved: the largest of the L1 changes of startprob and of the
        rows of transmat averaged over people, 0 to 2, and of the change of the emission
    n_empty : rows of transmat that no one is expected in; they keep their old value
    sweeps : mean number of sweeps that the sequences took
    n_unconverged : sequences whose E-step reached the limit of sweeps
    """

    iteration: int
    hmm: HMM
    free_energy: float
    change: float
    n_empty: int
    sweeps: float
    n_unconverged: int


@dataclass(frozen=True)
class EMState(LearnState):
    """One iteration of EM; ``expected`` is the E-step under the parameters before."""

    expected: ExpectedCounts


@dataclass
class ConvergenceMonitor:
    """The course of a fit, and honestly why it ended.

    ``history`` holds the free energy of every iteration, ``change`` the last move of the
    parameters (see `LearnState`). ``reason`` is "converged", "limit" (of iterations), or "failed":
    the free energy was no number, or the observations became impossible under what was learned;
    ``message`` then says what happened, and the parameters before are kept.
    """

    tol: float
    n_iter: int
    history: list[float] = field(default_factory=list)
    change: float = np.inf
    n_unconverged: int = 0
    reason: Reason = "running"
    message: str = ""

    @property
    def converged(self) -> bool:
        """Whether the parameters stood still to within ``tol`` and all counts were met."""
        return self.reason == "converged"

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return len(self.history)

    def report(self, state: LearnState) -> bool:
        """Take in one iteration; True when it was the last."""
        if not np.isfinite(state.free_energy):
            self.fail(f"The free energy was no longer a number at iteration {state.iteration}.")
            return True
        self.history.append(state.free_energy)
        self.change = state.change
        self.n_unconverged = state.n_unconverged
        if state.change < self.tol and state.n_unconverged == 0:
            self.reason = "converged"
        elif self.iteration >= self.n_iter:
            self.reason = "limit"
        return self.reason != "running"

    def fail(self, message: str) -> None:
        """The fit cannot go on."""
        self.reason, self.message = "failed", message


def resolve_learner(name: str) -> str:
    """The learner behind a name: "auto" is the best there is.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in LEARNERS:
        raise InputError(
            f"There is no learner called {name!r}; choose one of: {', '.join(LEARNERS)}."
        )
    return "cfb" if name == "auto" else name


def inference_named(name: str, noise_map: NoiseMap = "emission") -> Inference:
    """The E-step of that name; least squares has none and is given that of cfb.

    ``noise_map`` is for the learners with Poisson noise alone.

    Raises
    ------
    InputError
        If there is none of that name, or no such noise map.
    """
    name = resolve_learner(name)
    if noise_map not in NOISE_MAPS:
        raise InputError(f"noise_map must be one of {', '.join(NOISE_MAPS)}; it was {noise_map!r}.")
    if name in POISSON:
        return partial(POISSON[name], noise_map=noise_map)
    return INFERENCE["cfb" if name == MOMENTS else name]


def learner_steps(
    name: str,
    aggregates: Aggregates,
    hmm: HMM,
    *,
    fixed: Collection[str] = (),
    noise_map: NoiseMap = "emission",
) -> Iterator[LearnState]:
    """The iterations of any learner from ``hmm`` on, without end.

    Raises
    ------
    InputError
        If there is no such learner, it cannot learn what is not in ``fixed``, or observations
        cannot happen under ``hmm``.
    """
    name = resolve_learner(name)
    if name in (*POISSON, MOMENTS) and "emission" not in fixed:
        raise InputError(
            f"The learner {name} learns startprob and transmat only; give the emission and add "
            "'emission' to fixed."
        )
    if name == MOMENTS:
        yield from _least_squares(aggregates, hmm, fixed)
    else:
        tol, sweeps = (POISSON_TOL, POISSON_SWEEPS) if name in POISSON else (SWEEP_TOL, MAX_SWEEPS)
        yield from em_steps(
            aggregates, hmm, inference=inference_named(name, noise_map), fixed=fixed,
            sweep_tol=tol, max_sweeps=sweeps,
        )  # fmt: skip


def _least_squares(
    aggregates: Aggregates, hmm: HMM, fixed: Collection[str]
) -> Iterator[LearnState]:
    """Conditional least squares told as the other learners are."""
    for state in least_squares_steps(aggregates, hmm, fixed=fixed):
        yield LearnState(
            iteration=state.iteration,
            hmm=HMM(state.startprob, state.transmat, hmm.emission),
            free_energy=state.objective,
            change=state.change,
            n_empty=state.n_empty,
            sweeps=1.0,
            n_unconverged=0,
        )


def em_steps(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: Inference,
    fixed: Collection[str] = (),
    sweep_tol: float = SWEEP_TOL,
    max_sweeps: int = MAX_SWEEPS,
) -> Iterator[EMState]:
    """Expectation-maximisation from ``hmm`` on, without end (Algorithm 2 of the paper).

    Each M-step sets startprob, transmat and emission to the normalised expected counts
    (Proposition 1; a sequence of M_k people counts M_k times), but for the parts in ``fixed``.

    Raises
    ------
    InputError
        If ``fixed`` names no part of the model, shapes do not fit, or observations cannot happen.
    """
    unknown = set(fixed) - set(PARTS)
    if unknown:
        raise InputError(
            f"fixed names {sorted(unknown)}, which is no part of the model; use any of {PARTS}."
        )
    learn_emission = "emission" not in fixed
    messages = None
    iteration = 0
    likelihoods = hmm.emission.likelihoods(aggregates)
    while True:
        iteration += 1
        expected = inference(
            hmm, aggregates, likelihoods,
            messages=messages, tol=sweep_tol, max_sweeps=max_sweeps, with_emission=learn_emission,
        )  # fmt: skip
        messages = expected.messages
        startprob, transmat, emission = hmm.startprob, hmm.transmat, hmm.emission
        row_people = expected.transitions.sum(axis=1, keepdims=True)
        changes = [0.0]
        if "startprob" not in fixed:
            startprob = expected.start / expected.start.sum()
            changes.append(float(np.abs(startprob - hmm.startprob).sum()))
        if "transmat" not in fixed and aggregates.length > 1:
            transmat = np.where(
                row_people > 0,
                expected.transitions / np.where(row_people > 0, row_people, 1.0),
                hmm.transmat,
            )
            moved = np.abs(transmat - hmm.transmat).sum(axis=1)
            changes.append(float(moved @ row_people[:, 0] / row_people.sum()))
        if expected.emission is not None:
            emission = hmm.emission.maximise(aggregates, likelihoods, expected.emission)
            changes.append(hmm.emission.distance(emission))
            likelihoods = emission.likelihoods(aggregates)
        hmm = HMM(startprob, transmat, emission)
        yield EMState(
            iteration=iteration,
            hmm=hmm,
            free_energy=expected.free_energy,
            change=max(changes),
            n_empty=int((row_people == 0).sum()) if aggregates.length > 1 else 0,
            sweeps=expected.sweeps,
            n_unconverged=expected.n_unconverged,
            expected=expected,
        )


def moments_start(aggregates: Aggregates, hmm: HMM, *, fixed: Collection[str] = ()) -> HMM:
    """The start moved to the conditional least squares fit, for a learner to go on from.

    Least squares sets many moves to zero, and EM never leaves a zero: a twentieth of the start is
    kept. The emission and the parts in ``fixed`` stay.
    """
    fitted = least_squares(aggregates, hmm, fixed=fixed)
    startprob, transmat = (
        MOMENTS_SHARE * found + (1 - MOMENTS_SHARE) * before
        for found, before in zip(fitted, (hmm.startprob, hmm.transmat), strict=True)
    )
    return HMM(startprob, transmat, hmm.emission)


def learn(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: str = "auto",
    fixed: Collection[str] = (),
    n_iter: int = 100,
    tol: float = 1e-5,
    noise_map: NoiseMap = "emission",
) -> tuple[HMM, ConvergenceMonitor]:
    """Run `learner_steps` until the parameters move by less than ``tol`` or ``n_iter`` iterations.

    A fit that cannot go on gives the last parameters that worked, and the monitor says why; only
    if the observations cannot happen under the start is there nothing to give.

    Raises
    ------
    InputError
        As `learner_steps`; `UnreachableError` if the start cannot explain the observations.
    """
    monitor = ConvergenceMonitor(tol=tol, n_iter=n_iter)
    if n_iter == 0:
        monitor.reason = "limit"
        return hmm, monitor
    steps = learner_steps(inference, aggregates, hmm, fixed=fixed, noise_map=noise_map)
    for state in monitored(steps, monitor):
        hmm = state.hmm
    return hmm, monitor


def monitored(steps: Iterator[LearnState], monitor: ConvergenceMonitor) -> Iterator[LearnState]:
    """The iterations of a learner that worked, up to the one that the monitor ends it by.

    Raises
    ------
    UnreachableError
        If the observations cannot happen under the start; later on that is a failed fit.
    """
    try:
        for state in steps:
            done = monitor.report(state)
            if monitor.reason != "failed":
                yield state
            if done:
                return
    except UnreachableError as fault:
        if monitor.iteration == 0:
            raise
        monitor.fail(str(fault))


def log_likelihood(hmm: HMM, aggregates: Aggregates) -> float:
    """Sum over people, exact for single ones; -inf if an observation cannot happen.

    For groups it is minus the free energy of the paper.
    """
    try:
        expected = INFERENCE["cfb"](hmm, aggregates, hmm.emission.likelihoods(aggregates))
    except UnreachableError:
        return -np.inf
    return -expected.free_energy
