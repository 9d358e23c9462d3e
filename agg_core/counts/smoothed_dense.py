"""Counts that err: flows learned from what a smoother makes of whole runs of counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from agg_core.base.checkpoints import Course
from agg_core.counts.dense import MEMORY, Problem, Sums
from agg_core.counts.erring import CountError, ErringPairs
from agg_core.counts.rows import Strength
from agg_core.counts.smoothing import FEWEST, Smoothed, smoothed
from agg_core.counts.state import FlowState, apart
from agg_core.learn.esteps.descent import Steps, lbfgs

__all__ = ["SmoothedState", "smoothed_steps"]

FloatArray = npt.NDArray[np.float64]

FIRST_STEPS, INNER_STEPS = 50, 12
"""Steps of the descent after the first turn of the smoother and after each other one, which knows
from those before how the likelihood bends."""

FARTHER = 1.8
"""Part of an EM step that is gone: below 2 it leads to the same end, in fewer turns (over-relaxed
EM; Salakhutdinov & Roweis 2003)."""

LEAST_ERROR, FARTHEST = 1e-4, 1.5
"""The smallest relative error, and the factor by which it changes in one turn at most."""

DAMPED = 0.7
"""Share of a scoring step that is gone."""


@dataclass(frozen=True, kw_only=True)
class SmoothedState(FlowState):
    """An iteration, and the log-likelihood of the counts before it, error and people after it."""

    log_likelihood: float
    error: CountError
    people: tuple[FloatArray, FloatArray]


def smoothed_steps(
    pairs: ErringPairs,
    shape: FloatArray,
    strength: Strength,
    *,
    learn_error: bool = False,
    start: FlowState | None = None,
    course: Course | None = None,
) -> Iterator[SmoothedState]:
    """EM for the tied transitions of `agg_core.counts.dense.Problem`, without end.

    The E-step is the smoother (`agg_core.counts.smoothing`): expected sums of people and of their
    squares take the place of those of counts. With ``learn_error`` the relative error moves too, by
    Fisher scoring on the log-likelihood of the counts. It goes on from
    ``start``, a state of a fit with the same cells, or from what a ``course`` stood at as if it had
    not stopped.
    """
    problem = Problem.of(pairs, shape, strength)
    logits = problem.begun(None if start is None else start.logits)
    people: tuple[FloatArray, FloatArray] | None = None
    remembered = Steps(MEMORY)
    before, done = problem.transmats(logits), 0
    if course is not None and course.stood is not None:
        done, logits, before, people, error, kept = course.stood
        pairs, remembered = replace(pairs, error=error), Steps.of(kept)

    def stands() -> tuple[Any, ...]:
        return iteration, logits, before, people, pairs.error, remembered.kept

    for iteration in count(done + 1):
        told = smoothed(pairs, problem.transmats(logits), people)
        people = (np.maximum(told.before, FEWEST), np.maximum(told.after, FEWEST))
        problem = replace(problem, pools=_expected_sums(pairs, told, by_time=strength.by_time))
        points = lbfgs(problem.objective, logits, remembered)
        for _ in range(1 + (FIRST_STEPS if iteration == 1 else INNER_STEPS)):
            reached = next(points).x
        found = problem.transmats(reached)
        if learn_error:
            pairs = replace(pairs, error=_scored(pairs.error, told))
        state = SmoothedState(
            iteration, found, apart(before, found, pairs), problem.unscaled(reached),
            log_likelihood=float(told.scores.sum()), error=pairs.error, people=people,
        )  # fmt: skip
        logits, before = logits + FARTHER * (reached - logits), found
        if course is not None:
            course.note(stands)
        yield state


def _expected_sums(pairs: ErringPairs, told: Smoothed, *, by_time: bool) -> Sums:
    """Expected sums over pairs, as `agg_core.counts.dense.pooled` makes them of exact counts."""
    pool = pairs.slot if by_time else np.zeros_like(pairs.slot)
    slots = np.unique(pool)
    parts = [pool == slot for slot in slots]
    y, z = told.before, told.after
    return Sums(
        n=np.array([float(at.sum()) for at in parts]),
        y=np.stack([y[at].sum(axis=0) for at in parts]),
        yy=np.stack([y[at].T @ y[at] + told.of_before[at].sum(axis=0) for at in parts]),
        yz=np.stack([y[at].T @ z[at] + told.cross[at].sum(axis=0) for at in parts]),
        zz=np.stack([z[at].T @ z[at] + told.of_after[at].sum(axis=0) for at in parts]),
        slot=slots.astype(np.int64),
    )


def _scored(error: CountError, told: Smoothed) -> CountError:
    square = error.relative**2
    # Errors of cells are not told apart as well as the information says: whole steps go too far.
    moved = square + DAMPED * told.slope / max(told.information, 1e-300)
    relative = np.sqrt(np.clip(moved, square / FARTHEST**2, square * FARTHEST**2))
    return replace(error, relative=max(float(relative), LEAST_ERROR))
