"""Learners as they are named on the command line, and one timed fit of any of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from agg_core.base.errors import InputError
from agg_core.learn.learners import ConvergenceMonitor, learn
from agg_core.learn.table import LEARNERS, PAPERS, learner_named
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM

__all__ = [
    "CALIBRATED",
    "DEFAULT_E_STEPS",
    "DEFAULT_LEARNERS",
    "REFERENCE",
    "START",
    "Fitted",
    "Learner",
    "ready",
]

CALIBRATED = "+calibrated"
"""Ending of a learner that is run with calibration."""

START = "start"
"""The name under which the start itself is measured, so that it shows what was learned."""

REFERENCE = PAPERS
"""The learner that ratios are taken to: the paper's."""

DEFAULT_LEARNERS = tuple(name for name, row in LEARNERS.own.items() if not row.readings)
DEFAULT_E_STEPS = tuple(name for name in DEFAULT_LEARNERS if LEARNERS.own[name].e_step)
"""All of this package but those made for Poisson readings of counts."""

FIT_TOL = 1e-5


@dataclass(frozen=True)
class Fitted:
    """What one fit gave, and how it went."""

    hmm: HMM
    monitor: ConvergenceMonitor
    seconds: float

    def course(self) -> dict[str, float]:
        """Figures of the fit for a row: seconds, iterations, and 1.0 if it converged."""
        return {
            "seconds": self.seconds,
            "iterations": float(self.monitor.iteration),
            "converged": float(self.monitor.converged),
        }


@dataclass(frozen=True)
class Learner:
    """A learner of `agg_core.learn.table`, perhaps calibrated, or the start without learning.

    Raises
    ------
    InputError
        If there is no learner of that name.
    """

    label: str

    def __post_init__(self) -> None:
        if self.label != START:
            learner_named(self.name)

    @property
    def name(self) -> str:
        """The name that `agg_core.learn.table` knows."""
        return self.label.removesuffix(CALIBRATED)

    @property
    def calibrated(self) -> bool:
        """Whether it runs with calibration."""
        return self.label.endswith(CALIBRATED)

    def fit(self, aggregates: Aggregates, start: HMM, iterations: int) -> Fitted:
        """Learn startprob and transmat from ``start`` on; the emission is known.

        Raises
        ------
        InputError
            If the learner cannot learn from these observations.
        """
        options: dict[str, Any] = {"calibrate": 1} if self.calibrated else {}
        inference, limit = (REFERENCE, 0) if self.label == START else (self.name, iterations)
        began = time.perf_counter()
        hmm, monitor = learn(
            aggregates, start, inference=inference, fixed=("emission",), n_iter=limit,
            tol=FIT_TOL, **options,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        if monitor.reason == "failed":
            raise InputError(monitor.message)
        return Fitted(hmm, monitor, seconds)


def ready(labels: Iterable[str]) -> list[Learner]:
    """The learners of these names, their compiled code loaded, so that clocks tell learning alone.

    Raises
    ------
    InputError
        If there is no learner of a name.
    """
    learners = [Learner(label) for label in dict.fromkeys(labels)]
    symbols = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
    start = HMM.categorical([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], np.eye(2))
    for learner in learners:
        for size in (1, 2):
            try:
                learner.fit(aggregate(symbols, size, 2, 0), start, 2)
            except InputError:
                # Where it matters the row says so.
                continue
    return learners
