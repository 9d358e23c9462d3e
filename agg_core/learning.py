"""Learning: expectation-maximisation as a stream of states, and when to stop."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from agg_core.aggregates import Aggregates
from agg_core.errors import InputError
from agg_core.inference import INFERENCE
from agg_core.inference.base import ExpectedCounts, Inference
from agg_core.parameters import HMM

__all__ = [
    "PARTS",
    "ConvergenceMonitor",
    "EMState",
    "Reason",
    "em_steps",
    "inference_named",
    "learn",
]

FloatArray = npt.NDArray[np.float64]

PARTS = ("startprob", "transmat", "emission")
"""Parts of the model that can be held fixed."""

Reason = Literal["running", "converged", "limit"]

SWEEP_TOL = 1e-3
"""Counts met to a thousandth of the people: the flows then move by far less than EM's next step."""

MAX_SWEEPS = 30
"""Sweeps per E-step; messages are kept, so that the next E-step goes on where this one ended."""


@dataclass(frozen=True)
class EMState:
    """One iteration of EM.

    Attributes
    ----------
    iteration : 1 for the first
    hmm : the parameters after the M-step
    expected : the E-step under the parameters before
    free_energy : objective of that E-step; -log-likelihood at M = 1
    change : how far the parameters moved, 0 to 2: the largest of the L1 changes of startprob and
        of the rows of transmat and of the emission, these two averaged over people
    n_empty : rows of transmat that no one is expected in; they keep their old value
    """

    iteration: int
    hmm: HMM
    expected: ExpectedCounts
    free_energy: float
    change: float
    n_empty: int


@dataclass
class ConvergenceMonitor:
    """The course of a fit, and honestly why it ended.

    ``history`` holds the free energy of every iteration, ``change`` the last move of the
    parameters (see `EMState`), ``reason`` is "converged" or "limit".
    """

    tol: float
    n_iter: int
    history: list[float] = field(default_factory=list)
    change: float = np.inf
    reason: Reason = "running"

    @property
    def converged(self) -> bool:
        """Whether the parameters stood still to within ``tol`` and all counts were met."""
        return self.reason == "converged"

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return len(self.history)

    def report(self, state: EMState) -> bool:
        """Take in one iteration; True when it was the last."""
        self.history.append(state.free_energy)
        self.change = state.change
        if state.change < self.tol and state.expected.n_unconverged == 0:
            self.reason = "converged"
        elif self.iteration >= self.n_iter:
            self.reason = "limit"
        return self.reason != "running"


def inference_named(name: str) -> Inference:
    """The E-step of that name; "auto" is the best there is.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name == "auto":
        name = "cfb"
    if name not in INFERENCE:
        known = ", ".join(["auto", *INFERENCE])
        raise InputError(f"There is no learner called {name!r}; choose one of: {known}.")
    return INFERENCE[name]


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
            emission = hmm.emission.maximise(likelihoods, expected.emission)
            changes.append(hmm.emission.distance(emission))
            likelihoods = emission.likelihoods(aggregates)
        hmm = HMM(startprob, transmat, emission)
        yield EMState(
            iteration=iteration,
            hmm=hmm,
            expected=expected,
            free_energy=expected.free_energy,
            change=max(changes),
            n_empty=int((row_people == 0).sum()) if aggregates.length > 1 else 0,
        )


def learn(
    aggregates: Aggregates,
    hmm: HMM,
    *,
    inference: str = "auto",
    fixed: Collection[str] = (),
    n_iter: int = 100,
    tol: float = 1e-5,
) -> tuple[HMM, ConvergenceMonitor]:
    """Run `em_steps` until the parameters move by less than ``tol`` or ``n_iter`` iterations."""
    monitor = ConvergenceMonitor(tol=tol, n_iter=n_iter)
    if n_iter > 0:
        for state in em_steps(aggregates, hmm, inference=inference_named(inference), fixed=fixed):
            hmm = state.hmm
            if monitor.report(state):
                break
    else:
        monitor.reason = "limit"
    return hmm, monitor
